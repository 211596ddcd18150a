//! The mailbox: one request at a time passes between requesters and the thread that answers.
//!
//! ```text
//!            lock             request           serve              serve ends
//!     FREE --------> LOCKED ----------> REQUESTED ------> FILLING -------------> READY
//!       ^              ^                    |                |                     |
//!       |              +---- withdraw ------+                | abandon             |
//!       +------------------ value taken out -----------------|---------------------+
//!       +------------------ serve ends ------- ABANDONED <---+
//! ```
//!
//! Beside the phase there is one bit, CLOSED, which is set once and stays: the thread will not answer
//! any more. A value that it has filled in before is still good.
//!
//! `serve` runs in the signal handler: two or three atomic steps, the filling, and one system call.
//!
//! # Invariants
//!
//! STACK-1 of the [module](super), and:
//!
//! - **MAILBOX-1** Only the owner of a phase leaves it. FREE, LOCKED and READY are left by a requester, REQUESTED
//!   by the requester or the server, whichever is first; FILLING by the server, but the requester may turn
//!   it into ABANDONED, which tells the server that the value stays in the mailbox.
//!
//! # Orderings
//!
//! - `[MB-request]` Requesting releases, serving acquires: the server sees the value.
//! - `[MB-ready]` The end of serving releases, the requester's load acquires: it sees the filled value.
//! - `[MB-free]` Unlocking the mailbox releases, locking acquires: the next requester finds the mailbox as
//!   the last one left it, with or without an abandoned value.

use crate::sync::atomic::Ordering;
use crate::sync::{Futex, UnsafeCell, Woken};
use core::fmt;
use std::time::Instant;

const FREE: u32 = 0;
const LOCKED: u32 = 1;
const REQUESTED: u32 = 2;
const FILLING: u32 = 3;
const READY: u32 = 4;
const ABANDONED: u32 = 5;
const CLOSED: u32 = 8;

const fn phase(word: u32) -> u32 {
    word & !CLOSED
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MailboxError {
    /// The mailbox is closed: its thread does not answer any more.
    Closed,
    /// The deadline has passed.
    TimedOut,
}

/// Where a value of type `T` is requested and filled in.
///
/// ```
/// use millpond_raw::stack::mailbox::Mailbox;
/// use std::time::{Duration, Instant};
///
/// let mailbox = Mailbox::new();
/// let soon = Instant::now() + Duration::from_secs(1);
/// let request = mailbox.lock(soon).unwrap().request(Box::new(0)).unwrap();
/// // In practice this is another thread, in its signal handler.
/// assert!(mailbox.serve(|value| *value = 7));
/// assert_eq!(request.wait(soon, soon), Ok(Box::new(7)));
/// ```
pub struct Mailbox<T> {
    word: Futex,
    value: UnsafeCell<Option<Box<T>>>,
}

// SAFETY: STACK-1 - the value is accessed by one thread at a time.
unsafe impl<T: Send> Sync for Mailbox<T> {}

impl<T> fmt::Debug for Mailbox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailbox")
            .field("word", &self.word)
            .finish_non_exhaustive()
    }
}

impl<T> Default for Mailbox<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Mailbox<T> {
    /// An empty mailbox.
    pub fn new() -> Self {
        Mailbox {
            word: Futex::new(FREE),
            value: UnsafeCell::new(None),
        }
    }

    /// Waits until the mailbox is free, and locks it.
    ///
    /// # Errors
    ///
    /// [`MailboxError::Closed`], or [`MailboxError::TimedOut`] if other requesters had it all the time.
    pub fn lock(&self, deadline: Instant) -> Result<MailboxGuard<'_, T>, MailboxError> {
        let mut timed_out = false;
        loop {
            let seen = self
                .word
                // [MB-free]
                .compare_exchange(FREE, LOCKED, Ordering::Acquire, Ordering::Relaxed);
            match seen {
                Ok(_) => return Ok(MailboxGuard { mailbox: self }),
                Err(seen) if seen & CLOSED != 0 => return Err(MailboxError::Closed),
                Err(_) if timed_out => return Err(MailboxError::TimedOut),
                Err(seen) => timed_out = self.sleep(seen, deadline),
            }
        }
    }

    /// Fills the value in, if one is requested; returns whether it did. Any thread may call it, and a
    /// signal handler, too, if `fill` may run there.
    pub fn serve(&self, fill: impl FnOnce(&mut T)) -> bool {
        let taken = self
            .word
            // [MB-request]
            .compare_exchange(REQUESTED, FILLING, Ordering::Acquire, Ordering::Relaxed);
        if taken.is_err() {
            return false;
        }
        self.value.with_mut(|value| {
            // SAFETY: STACK-1 - we moved the phase to FILLING, so the value is ours until we leave that phase.
            let value = unsafe { &mut *value };
            if let Some(value) = value {
                fill(value);
            }
        });
        // Relaxed: the load is a guess, the exchange decides.
        let mut seen = self.word.load(Ordering::Relaxed);
        loop {
            let next = match phase(seen) {
                FILLING => READY,
                // MAILBOX-1: the requester has abandoned it.
                _ => FREE,
            };
            let left = self.word.compare_exchange(
                seen,
                next | (seen & CLOSED),
                // [MB-ready] [MB-free]
                Ordering::Release,
                Ordering::Relaxed,
            );
            match left {
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        self.word.wake_all();
        true
    }

    /// Closes the mailbox: nothing is answered from now on. Waiting requesters are woken.
    pub fn close(&self) {
        self.word.fetch_or(CLOSED, Ordering::Relaxed);
        self.word.wake_all();
    }

    /// Whether [`close`](Mailbox::close) was called.
    pub fn is_closed(&self) -> bool {
        self.word.load(Ordering::Relaxed) & CLOSED != 0
    }

    #[cfg(test)]
    #[allow(dead_code, reason = "used by tests that are not built everywhere")]
    pub(super) fn is_free(&self) -> bool {
        phase(self.word.load(Ordering::Relaxed)) == FREE
    }

    /// Sleeps while the word is `seen`; returns whether the deadline has passed.
    fn sleep(&self, seen: u32, deadline: Instant) -> bool {
        self.word.wait(seen, Some(deadline)) == Woken::TimedOut
    }

    fn replace(&self, new: Option<Box<T>>) -> Option<Box<T>> {
        self.value.with_mut(|value| {
            // SAFETY: STACK-1 - called by the requester that has the mailbox locked, before its request or
            // after it has the value back.
            let value = unsafe { &mut *value };
            core::mem::replace(value, new)
        })
    }

    /// Takes the value out and unlocks the mailbox.
    fn unlock(&self) -> Option<Box<T>> {
        let value = self.replace(None);
        // [MB-free]
        self.word.fetch_and(CLOSED, Ordering::Release);
        self.word.wake_all();
        value
    }
}

/// A locked mailbox, without a request yet. Dropping it unlocks the mailbox.
pub struct MailboxGuard<'a, T> {
    mailbox: &'a Mailbox<T>,
}

impl<T> fmt::Debug for MailboxGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MailboxGuard").field(self.mailbox).finish()
    }
}

impl<'a, T> MailboxGuard<'a, T> {
    /// Requests that `value` be filled in.
    ///
    /// # Errors
    ///
    /// [`MailboxError::Closed`] if the thread does not answer any more.
    pub fn request(self, value: Box<T>) -> Result<Request<'a, T>, MailboxError> {
        // An abandoned value may be left; it is dropped here, on the requester's side.
        drop(self.mailbox.replace(Some(value)));
        let requested = self.mailbox.word.compare_exchange(
            LOCKED,
            REQUESTED,
            // [MB-request]
            Ordering::Release,
            Ordering::Relaxed,
        );
        match requested {
            Ok(_) => {
                let mailbox = self.mailbox;
                core::mem::forget(self);
                Ok(Request { mailbox })
            }
            // Only CLOSED can have been set. Dropping `self` unlocks the mailbox.
            Err(_) => Err(MailboxError::Closed),
        }
    }
}

impl<T> Drop for MailboxGuard<'_, T> {
    fn drop(&mut self) {
        drop(self.mailbox.unlock());
    }
}

/// A request. Dropping it withdraws the request, or abandons the value that is being filled in.
pub struct Request<'a, T> {
    mailbox: &'a Mailbox<T>,
}

impl<T> fmt::Debug for Request<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Request").field(self.mailbox).finish()
    }
}

impl<T> Request<'_, T> {
    /// Waits for the answer: until `start_by` for the filling to start, and until `finish_by` for a filling
    /// that has started to finish.
    ///
    /// # Errors
    ///
    /// [`MailboxError`]. The request is withdrawn then, and will not be served.
    pub fn wait(self, start_by: Instant, finish_by: Instant) -> Result<Box<T>, MailboxError> {
        let mailbox = self.mailbox;
        core::mem::forget(self);
        // The phase whose deadline has passed.
        let mut expired = FREE;
        loop {
            // [MB-ready]
            let seen = mailbox.word.load(Ordering::Acquire);
            match phase(seen) {
                READY => return mailbox.unlock().ok_or(MailboxError::Closed),
                // It will not be served: `serve` expects the phase without the bit.
                REQUESTED if seen & CLOSED != 0 => {
                    drop(mailbox.unlock());
                    return Err(MailboxError::Closed);
                }
                REQUESTED if expired == REQUESTED => {
                    if mailbox.withdraw() {
                        return Err(MailboxError::TimedOut);
                    }
                }
                FILLING if expired == FILLING => {
                    if mailbox.abandon(seen) {
                        return Err(MailboxError::TimedOut);
                    }
                }
                now => {
                    let until = if now == REQUESTED {
                        start_by
                    } else {
                        finish_by
                    };
                    if mailbox.sleep(seen, until) {
                        expired = now;
                    }
                }
            }
        }
    }
}

impl<T> Drop for Request<'_, T> {
    fn drop(&mut self) {
        let mailbox = self.mailbox;
        if mailbox.withdraw() {
            return;
        }
        loop {
            // [MB-ready]
            let seen = mailbox.word.load(Ordering::Acquire);
            if phase(seen) != FILLING {
                drop(mailbox.unlock());
                return;
            }
            if mailbox.abandon(seen) {
                return;
            }
        }
    }
}

impl<T> Mailbox<T> {
    /// Takes the request back, if it is not being served; returns whether it did.
    fn withdraw(&self) -> bool {
        // Relaxed: no other thread has touched the value.
        let withdrawn =
            self.word
                .compare_exchange(REQUESTED, LOCKED, Ordering::Relaxed, Ordering::Relaxed);
        if withdrawn.is_ok() {
            drop(self.unlock());
        }
        withdrawn.is_ok()
    }

    /// Leaves the value to the server, if the word is still `seen`; returns whether it did.
    fn abandon(&self, seen: u32) -> bool {
        self.word
            .compare_exchange(
                seen,
                ABANDONED | (seen & CLOSED),
                Ordering::Relaxed,
                Ordering::Relaxed,
            )
            .is_ok()
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "the mailbox is below the clock")]

    use super::*;

    fn now() -> Instant {
        Instant::now()
    }

    #[test]
    fn what_is_not_requested_is_not_served() {
        let mailbox = Mailbox::<u32>::new();
        assert!(!mailbox.serve(|_| unreachable!()));
        let locked = mailbox.lock(now()).unwrap();
        assert!(!mailbox.serve(|_| unreachable!()));
        drop(locked);
        assert!(mailbox.lock(now()).is_ok(), "it was unlocked");
    }

    #[test]
    fn a_withdrawn_request_is_not_served_and_the_mailbox_is_free_again() {
        let mailbox = Mailbox::new();
        let request = mailbox.lock(now()).unwrap().request(Box::new(1)).unwrap();
        assert_eq!(request.wait(now(), now()), Err(MailboxError::TimedOut));
        assert!(!mailbox.serve(|_| unreachable!()));
        let request = mailbox.lock(now()).unwrap().request(Box::new(1)).unwrap();
        drop(request);
        assert!(!mailbox.serve(|_| unreachable!()));
        assert!(mailbox.lock(now()).is_ok());
    }

    #[test]
    fn a_locked_mailbox_makes_others_wait_and_then_time_out() {
        let mailbox = Mailbox::<u32>::new();
        let locked = mailbox.lock(now()).unwrap();
        assert_eq!(mailbox.lock(now()).err(), Some(MailboxError::TimedOut));
        drop(locked);
        assert!(mailbox.lock(now()).is_ok());
    }

    #[test]
    fn a_requester_that_times_out_in_the_middle_abandons_the_value_to_the_mailbox() {
        let mailbox = Mailbox::new();
        let request = mailbox.lock(now()).unwrap().request(Box::new(1)).unwrap();
        assert!(mailbox.serve(|value| {
            // The requester times out now, as when a debugger stops the handler here.
            assert_eq!(request.wait(now(), now()), Err(MailboxError::TimedOut));
            assert_eq!(mailbox.lock(now()).err(), Some(MailboxError::TimedOut));
            *value = 2;
        }));
        let request = mailbox.lock(now()).unwrap().request(Box::new(3)).unwrap();
        assert!(mailbox.serve(|value| *value += 1));
        assert_eq!(request.wait(now(), now()), Ok(Box::new(4)));
    }

    #[test]
    fn closing_is_told_to_every_requester_and_a_ready_value_is_still_good() {
        let mailbox = Mailbox::new();
        let request = mailbox.lock(now()).unwrap().request(Box::new(1)).unwrap();
        assert!(mailbox.serve(|value| *value = 2));
        mailbox.close();
        assert_eq!(request.wait(now(), now()), Ok(Box::new(2)));
        assert_eq!(mailbox.lock(now()).err(), Some(MailboxError::Closed));

        let mailbox = Mailbox::new();
        let request = mailbox.lock(now()).unwrap().request(Box::new(1)).unwrap();
        mailbox.close();
        assert!(!mailbox.serve(|_| unreachable!()));
        assert_eq!(request.wait(now(), now()), Err(MailboxError::Closed));

        let mailbox = Mailbox::new();
        let locked = mailbox.lock(now()).unwrap();
        mailbox.close();
        assert_eq!(
            locked.request(Box::new(1)).err(),
            Some(MailboxError::Closed)
        );
        assert!(mailbox.is_closed());
    }
}
