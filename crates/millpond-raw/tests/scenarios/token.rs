//! The interrupt token.

use super::{crew, few_or_many, gather};
use millpond_raw::park::{self, Site};
use millpond_raw::task::Token;
use std::sync::Arc;

const HERE: Site = Site::new("scenario.interruptible");

/// Blocks under the token until it is set, as every interruptible call does.
fn block_until_set(token: &Token) {
    let here = park::current();
    let Some(ticket) = token.enlist(&here.waker()) else {
        return;
    };
    while !token.is_set() {
        here.park(HERE);
    }
    token.leave(ticket);
}

/// Whoever blocks under a token is woken when it is set, whichever comes first.
pub(crate) fn an_interrupt_reaches_everyone_who_blocks() {
    let threads = few_or_many(1, 4);
    let token = Arc::new(Token::new());
    let blocked = crew(threads, {
        let token = Arc::clone(&token);
        move |_| block_until_set(&token)
    });
    token.set();
    gather(blocked);
    assert!(token.take());
    assert!(!token.take(), "reporting an interrupt clears it");
}

/// An interrupt and those who block for the first time race for the list of waiters.
pub(crate) fn blocking_together_for_the_first_time_makes_one_list() {
    let threads = few_or_many(1, 3);
    let token = Arc::new(Token::new());
    let mut others = crew(threads, {
        let token = Arc::clone(&token);
        move |_| block_until_set(&token)
    });
    others.extend(crew(1, {
        let token = Arc::clone(&token);
        move |_| token.set()
    }));
    block_until_set(&token);
    gather(others);
}
