//! The interrupt token.

use super::{few_or_many, join_all, spawn_all};
use millpond_raw::park::{self, Site};
use millpond_raw::task::Token;
use std::sync::Arc;

const HERE: Site = Site::new("scenario.interruptible");

/// Blocks under the token until it is set, as every interruptible call does.
fn block_until_set(token: &Token) {
    let here = park::current();
    let Some(ticket) = token.register(&here.waker()) else {
        return;
    };
    while !token.is_set() {
        here.park(HERE);
    }
    token.unregister(ticket);
}

/// A thread that blocks under a token is woken when it is set, whichever comes first.
pub(crate) fn an_interrupt_reaches_all_blocked_threads() {
    let threads = few_or_many(1, 4);
    let token = Arc::new(Token::new());
    let blocked = spawn_all(threads, {
        let token = Arc::clone(&token);
        move |_| block_until_set(&token)
    });
    token.set();
    join_all(blocked);
    assert!(token.take());
    assert!(!token.take(), "reporting an interrupt clears it");
}

/// An interrupt and the first waiters race for the queue of waiters.
pub(crate) fn first_waiters_that_race_make_one_queue() {
    let threads = few_or_many(1, 3);
    let token = Arc::new(Token::new());
    let mut others = spawn_all(threads, {
        let token = Arc::clone(&token);
        move |_| block_until_set(&token)
    });
    others.extend(spawn_all(1, {
        let token = Arc::clone(&token);
        move |_| token.set()
    }));
    block_until_set(&token);
    join_all(others);
}
