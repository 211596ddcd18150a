//! The interrupt token: a flag in every task cell, and the queue of the bodies that block under it.
//!
//! Interruption belongs to a task, never to a thread, so a late interrupt can hit no other task. Every
//! blocking call looks at the token of the task that it runs in, and has its waker registered there while it
//! blocks. How it finds that token, and the stops of the enclosing engines, is in [`current`].
//!
//! Flag and queue are one word ([`lazy_waiters`](super::lazy_waiters), with LAZY-1 and LAZY-2), which in a
//! cell also leads to the queue of its joiners.
//!
//! # Invariants
//!
//! - **TOKEN-1** Once there is a queue, the interrupter sets the flag first and wakes second, and the waiter
//!   registers first and reads the flag second, under the queue's lock: one of them sees the other.

use super::current;
use super::lazy_waiters::LazyWaiters;
use crate::wait_queue::{Ticket, WaitQueue};
use core::fmt;
use std::task::Waker;

/// The interrupt token of one task.
///
/// ```
/// use millpond_raw::task::{Token, current};
///
/// let token = Token::new();
/// token.set();
/// token.enter(|| {
///     // A blocking call looks here first, and clears what it reports.
///     assert!(current::take());
/// });
/// assert!(!token.is_set());
/// ```
pub struct Token {
    word: LazyWaiters,
}

impl Token {
    /// A token that is not set.
    pub fn new() -> Self {
        Token {
            word: LazyWaiters::new(),
        }
    }

    /// Interrupts: sets the token and wakes all that block under it.
    pub fn set(&self) {
        if let Some(queues) = self.word.set_flag() {
            queues.blocked.wake_all();
        }
    }

    /// Whether it is set.
    pub fn is_set(&self) -> bool {
        self.word.is_flag_set()
    }

    /// Clears it, and returns whether it was set: how a blocking call reports an interrupt.
    pub fn take(&self) -> bool {
        self.word.clear_flag()
    }

    /// Whether an interrupt was ever [reported](Token::take).
    pub(super) fn was_taken(&self) -> bool {
        self.word.was_flag_cleared()
    }

    /// Registers `waker` to be woken when the token is set; `None` if it is set already.
    pub fn register(&self, waker: &Waker) -> Option<Ticket> {
        let queues = self.word.get_or_init();
        queues.blocked.register(waker, || !self.is_set())
    }

    /// Undoes [`register`](Token::register).
    pub fn unregister(&self, ticket: Ticket) {
        // The caller has a ticket, so it has seen the queue.
        if let Some(queues) = self.word.get_known() {
            queues.blocked.unregister(ticket);
        }
    }

    /// Runs `f` as the body of the task that this token belongs to.
    pub fn enter<R>(&self, f: impl FnOnce() -> R) -> R {
        current::enter(self, f)
    }

    /// The joiners of the cell that this token is in, if the caller knows that there are any: through a
    /// ticket, or from the state.
    pub(super) fn joiners(&self) -> Option<&WaitQueue> {
        self.word.get_known().map(|queues| &queues.joiners)
    }

    /// As [`joiners`](Token::joiners), for a caller that may be the first.
    pub(super) fn joiners_or_init(&self) -> &WaitQueue {
        &self.word.get_or_init().joiners
    }
}

impl Default for Token {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token")
            .field("set", &self.is_set())
            .finish()
    }
}
