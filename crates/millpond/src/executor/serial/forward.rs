//! Interrupts from the executor below, passed on.
//!
//! The executor below runs a drain and knows nothing of the tasks inside. When it stops the drain,
//! the drain's token is set; a waker on that token stops the reach in which the inner task runs.

use millpond_raw::task::{Reach, Token};
use millpond_raw::waits::Ticket;
use std::sync::Arc;
use std::task::{Wake, Waker};

/// Passes an interrupt of the drain on to the task that it runs.
pub(super) struct Forward<'a> {
    bell: Arc<Bell>,
    listed: Option<(&'a Token, Ticket)>,
}

struct Bell(Reach);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.stop();
    }
}

impl<'a> Forward<'a> {
    pub(super) fn new(token: Option<&'a Token>) -> Self {
        let bell = Arc::new(Bell(Reach::new()));
        let waker = Waker::from(Arc::clone(&bell));
        let listed = token.and_then(|token| match token.enlist(&waker) {
            Some(ticket) => Some((token, ticket)),
            None => {
                bell.0.stop();
                None
            }
        });
        Forward { bell, listed }
    }

    /// Where the inner task runs.
    pub(super) fn reach(&self) -> &Reach {
        &self.bell.0
    }
}

impl Drop for Forward<'_> {
    fn drop(&mut self) {
        if let Some((token, ticket)) = self.listed.take() {
            token.leave(ticket);
        }
    }
}
