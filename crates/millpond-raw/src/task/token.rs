//! The interrupt token: a flag in every task cell, and the list of those who block under it.
//!
//! Interruption belongs to a task, never to a thread, so an interrupt that comes late can reach
//! nobody else. The token is *set* by whoever interrupts; every blocking call of millpond looks at
//! the token of the task that it runs in, and while it blocks it has its waker in the token's list.
//! How it finds that token, and the stops of the engines behind it, is in [`current`].
//!
//! Flag and list are one word ([`lazy`](super::lazy), with K1 and K2), which in a cell also leads to
//! the list of its joiners.
//!
//! # Invariants
//!
//! - **K3** With a list, the setter sets first and rings second, and the waiter enlists first and
//!   looks at the flag second, under the list's lock: one of them sees the other.

use super::current;
use super::lazy::LazyLists;
use crate::waits::{Ticket, Waits};
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
    word: LazyLists,
}

impl Token {
    /// A token that is not set.
    pub fn new() -> Self {
        Token {
            word: LazyLists::new(),
        }
    }

    /// Interrupts: sets the token and wakes whoever blocks under it.
    pub fn set(&self) {
        if let Some(lists) = self.word.raise() {
            lists.blocked.wake_all();
        }
    }

    /// Whether it is set.
    pub fn is_set(&self) -> bool {
        self.word.is_flagged()
    }

    /// Clears it, and returns whether it was set: how a blocking call reports an interrupt.
    pub fn take(&self) -> bool {
        self.word.lower()
    }

    /// Asks to be woken when the token is set; `None` if it is set already.
    pub fn enlist(&self, waker: &Waker) -> Option<Ticket> {
        let lists = self.word.get_or_make();
        lists.blocked.enlist(waker, || !self.is_set())
    }

    /// Ends what [`enlist`](Token::enlist) began.
    pub fn leave(&self, ticket: Ticket) {
        // Who has a ticket has seen the list it is from.
        if let Some(lists) = self.word.known() {
            lists.blocked.leave(ticket);
        }
    }

    /// Runs `f` as the body of the task that this token belongs to.
    pub fn enter<R>(&self, f: impl FnOnce() -> R) -> R {
        current::enter(self, f)
    }

    /// The joiners of the cell that this token is in, if there have been any that the caller knows of:
    /// through a ticket, or because the state says so.
    pub(super) fn joiners(&self) -> Option<&Waits> {
        self.word.known().map(|lists| &lists.joiners)
    }

    /// As [`joiners`](Token::joiners), for somebody who may be the first.
    pub(super) fn joiners_or_new(&self) -> &Waits {
        &self.word.get_or_make().joiners
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
