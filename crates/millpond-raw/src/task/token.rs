//! The interrupt token: one word in every task cell.
//!
//! Interruption belongs to a task, never to a thread, so an interrupt that comes late can reach
//! nobody else. The token is *set* by whoever interrupts; every blocking call of millpond looks at
//! the token of the task that it runs in, and while it blocks it has its waker in the token's list.
//! How it finds that token, and the stops of the engines behind it, is in [`current`].
//!
//! ```text
//!   word:  pointer to the list of those who block (null until the first one does)  | SET
//! ```
//!
//! Nearly no task ever blocks in an interruptible call and is interrupted, hence one word, and a
//! list that is only allocated for those that block.
//!
//! # Invariants
//!
//! - **K1** The pointer in the word is null or came from `Box::into_raw`; once it is not null it
//!   never changes, until the token is dropped, which frees it.
//! - **K2** A waiter that finds no list adds one by CAS; whoever sets the token does so by CAS on the
//!   same word. So either the setter sees the list and rings it, or the waiter sees SET.
//! - **K3** With a list, the setter sets first and rings second, and the waiter enlists first and
//!   looks at SET second, under the list's lock: again one of them sees the other.
//!
//! # Orderings
//!
//! - `[K-list]` The CAS that adds the list releases it; whoever reads the pointer acquires it.
//! - `[K-set]` The CAS that sets releases what its thread wrote before; whoever finds the token set,
//!   by looking or by taking, acquires that.

use super::current;
use crate::sync::atomic::{AtomicPtr, Ordering};
use crate::waits::{Ticket, Waits};
use core::fmt;
use core::ptr;
use std::task::Waker;

const SET: usize = 1;

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
    word: AtomicPtr<Waits>,
}

impl Token {
    /// A token that is not set.
    pub fn new() -> Self {
        Token {
            word: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Interrupts: sets the token and wakes whoever blocks under it.
    pub fn set(&self) {
        let mut seen = self.word.load(Ordering::Relaxed);
        loop {
            if seen.addr() & SET != 0 {
                return;
            }
            let next = seen.map_addr(|address| address | SET);
            match self.swap_word(seen, next) {
                Ok(()) => break,
                Err(now) => seen = now,
            }
        }
        if let Some(waits) = self.list(seen) {
            waits.wake_all();
        }
    }

    /// Whether it is set.
    pub fn is_set(&self) -> bool {
        // [K-set]
        self.word.load(Ordering::Acquire).addr() & SET != 0
    }

    /// Clears it, and returns whether it was set: how a blocking call reports an interrupt.
    pub fn take(&self) -> bool {
        let mut seen = self.word.load(Ordering::Relaxed);
        while seen.addr() & SET != 0 {
            match self.swap_word(seen, seen.map_addr(|address| address & !SET)) {
                Ok(()) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// Asks to be woken when the token is set; `None` if it is set already.
    pub fn enlist(&self, waker: &Waker) -> Option<Ticket> {
        self.list_or_new().enlist(waker, || !self.is_set())
    }

    /// Ends what [`enlist`](Token::enlist) began.
    pub fn leave(&self, ticket: Ticket) {
        // Relaxed: a ticket comes from this list, so its owner has seen the list before.
        let seen = self.word.load(Ordering::Relaxed);
        if let Some(waits) = self.list(seen) {
            waits.leave(ticket);
        }
    }

    /// Runs `f` as the body of the task that this token belongs to.
    pub fn enter<R>(&self, f: impl FnOnce() -> R) -> R {
        current::enter(self, f)
    }

    fn list(&self, word: *mut Waits) -> Option<&Waits> {
        let list = word.map_addr(|address| address & !SET);
        // SAFETY: K1 - null, or a list that lives as long as the token.
        unsafe { list.as_ref() }
    }

    fn list_or_new(&self) -> &Waits {
        // [K-list]
        let mut seen = self.word.load(Ordering::Acquire);
        if let Some(waits) = self.list(seen) {
            return waits;
        }
        let fresh = Box::into_raw(Box::new(Waits::new()));
        loop {
            match self.swap_word(seen, fresh.map_addr(|address| address | seen.addr())) {
                // SAFETY: K1 - it is in the word now, and lives as long as the token.
                Ok(()) => return unsafe { &*fresh },
                Err(now) => seen = now,
            }
            if let Some(waits) = self.list(seen) {
                // SAFETY: K1 - it never came into the word, so it is still ours alone.
                drop(unsafe { Box::from_raw(fresh) });
                return waits;
            }
        }
    }

    fn swap_word(&self, seen: *mut Waits, next: *mut Waits) -> Result<(), *mut Waits> {
        self.word
            // [K-list] [K-set]
            .compare_exchange(seen, next, Ordering::AcqRel, Ordering::Acquire)
            .map(drop)
    }
}

impl Default for Token {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        let word = self.word.load(Ordering::Relaxed);
        let list = word.map_addr(|address| address & !SET);
        if !list.is_null() {
            // SAFETY: K1 - it came from a box, and `&mut self` says that nobody else looks.
            drop(unsafe { Box::from_raw(list) });
        }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token")
            .field("set", &self.is_set())
            .finish()
    }
}
