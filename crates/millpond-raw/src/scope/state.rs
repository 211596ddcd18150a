//! The state word of a slot: what has become of a job's closure and of its outcome.
//!
//! | bit | set when | by | and |
//! |---|---|---|---|
//! | CLAIMED | somebody takes the closure over | runner, canceller or maker, once | set before ENDED |
//! | ENDED | closure and body are gone, and the outcome is in the stage or gone too | the claimer, once | the scope's owner waits for it |
//! | PANICKED | the outcome is a payload | together with ENDED | |
//! | CANCELLED | the handle is finished without an outcome | canceller, once, never after ENDED | comes with a reason |
//! | WAITER | somebody is in the list of waiters | waiters, under the list's lock | a hint: the waiter may have left |
//! | TAKEN | the outcome is out of the stage | whoever takes it, once, or the claimer together with ENDED | |
//! | ORPHAN | there is no handle that could take the outcome | the handle when it drops, or at birth | |
//! | BROUGHT | the job has what it needs to be run by whoever waits | its maker, once | |
//! | STRAY | the executor has dropped the stub unrun | the stub | of no meaning once CLAIMED |
//!
//! No bit is ever cleared. For the handle the job is *finished* when ENDED or CANCELLED is set.
//! CANCELLED wins: an outcome that comes later is dropped.
//!
//! [`Reading`] is a plain copy of the word that answers questions; only [`AtomicState`] touches
//! memory. Its transitions name what their caller has to do next.

use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::task::CancelReason;
use core::fmt;

const CLAIMED: usize = 1;
const ENDED: usize = 1 << 1;
const PANICKED: usize = 1 << 2;
const CANCELLED: usize = 1 << 3;
const WAITER: usize = 1 << 4;
const TAKEN: usize = 1 << 5;
const ORPHAN: usize = 1 << 6;
const STRAY: usize = 1 << 7;
const REASON_SHIFT: u32 = 8;
const BROUGHT: usize = 1 << 16;
const REASON_MASK: usize = 0xff << REASON_SHIFT;

/// A copy of the state word, as it was at one moment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Reading(usize);

impl Reading {
    /// Whether the closure has an owner: somebody runs it, has run it, or has dropped it.
    pub fn is_claimed(self) -> bool {
        self.0 & CLAIMED != 0
    }

    /// Whether it has been [brought](super::Fresh::bring) and nobody has started it.
    pub fn is_unstarted(self) -> bool {
        self.0 & (BROUGHT | CLAIMED) == BROUGHT
    }

    /// Whether nothing of the job runs any more, or ever will.
    pub fn is_ended(self) -> bool {
        self.0 & ENDED != 0
    }

    /// Whether the handle has nothing left to wait for.
    pub fn is_finished(self) -> bool {
        self.0 & (ENDED | CANCELLED) != 0
    }

    /// Whether there is no handle that could take the outcome.
    pub fn is_orphan(self) -> bool {
        self.0 & ORPHAN != 0
    }

    /// Whether nobody has started it, and its executor has given it up: it is up to whoever waits.
    pub fn is_stray(self) -> bool {
        self.0 & (STRAY | CLAIMED) == STRAY
    }

    /// Why it was cancelled, if it was.
    pub fn cancelled(self) -> Option<CancelReason> {
        (self.0 & CANCELLED != 0)
            .then(|| CancelReason::from_code(((self.0 & REASON_MASK) >> REASON_SHIFT) as u8))
    }

    pub(super) fn is_panicked(self) -> bool {
        self.0 & PANICKED != 0
    }

    fn has_waiter(self) -> bool {
        self.0 & WAITER != 0
    }
}

impl fmt::Debug for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cancelled() {
            Some(reason) if self.is_ended() => write!(f, "cancelled ({reason})"),
            Some(reason) => write!(f, "cancelled ({reason}), its body runs"),
            None if self.is_panicked() => f.write_str("panicked"),
            None if self.is_ended() => f.write_str("completed"),
            None if self.is_claimed() => f.write_str("running"),
            None if self.is_stray() => f.write_str("given up by its executor"),
            None => f.write_str("queued"),
        }
    }
}

/// What a cancellation found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// The job was finished before.
    TooLate,
    /// Nobody had started it, and nobody ever will: its closure is gone.
    Unrun,
    /// Its body runs, and its outcome will be dropped.
    Running,
}

/// What the word says of a cancellation.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "who cancels an unrun job owns its closure; waiters are to be woken"]
pub(super) enum Cancel {
    TooLate,
    /// The closure is the caller's to drop. Then [`AtomicState::bury`], and wake as that says.
    Unrun,
    Running {
        waiter: bool,
    },
}

/// What the end of a body came to.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "an unwanted outcome is the runner's to drop; waiters are to be woken"]
pub(super) enum Completed {
    /// The outcome is published.
    Delivered { waiter: bool },
    /// Nobody will take it. It is the caller's to dispose of; then [`AtomicState::bury`].
    Unwanted(Reading),
}

/// The state word.
pub(super) struct AtomicState(AtomicUsize);

impl AtomicState {
    /// A job whose closure waits, with a handle.
    pub(super) fn new() -> Self {
        AtomicState(AtomicUsize::new(0))
    }

    /// The state now. What an ended one has left behind may be read.
    pub(super) fn read(&self) -> Reading {
        // [J-out]
        Reading(self.0.load(Ordering::Acquire))
    }

    /// Tries to become the owner of the closure; says whether it worked.
    ///
    /// Relaxed: the closure was written before the slot was shared, and who loses touches nothing.
    #[must_use = "whoever claims a closure runs it or drops it"]
    pub(super) fn claim(&self) -> bool {
        !self.set(CLAIMED, Ordering::Relaxed).is_claimed()
    }

    /// Finishes the handle without an outcome, unless it is finished.
    ///
    /// Relaxed: the reason is in the word itself.
    pub(super) fn cancel(&self, reason: CancelReason) -> Cancel {
        let mark = CLAIMED | CANCELLED | usize::from(reason.code()) << REASON_SHIFT;
        let mut seen = Reading(self.0.load(Ordering::Relaxed));
        loop {
            if seen.is_finished() {
                return Cancel::TooLate;
            }
            match self.swap_word(seen, seen.0 | mark, Ordering::Relaxed) {
                Ok(()) if seen.is_claimed() => {
                    return Cancel::Running {
                        waiter: seen.has_waiter(),
                    };
                }
                Ok(()) => return Cancel::Unrun,
                Err(now) => seen = now,
            }
        }
    }

    /// Ends the job: publishes what the caller has put into the stage.
    pub(super) fn complete(&self, panicked: bool) -> Completed {
        let ended = if panicked { ENDED | PANICKED } else { ENDED };
        let mut seen = Reading(self.0.load(Ordering::Relaxed));
        loop {
            if seen.0 & (CANCELLED | ORPHAN) != 0 {
                return Completed::Unwanted(seen);
            }
            // [J-out]
            match self.swap_word(seen, seen.0 | ended, Ordering::Release) {
                Ok(()) => {
                    return Completed::Delivered {
                        waiter: seen.has_waiter(),
                    };
                }
                Err(now) => seen = now,
            }
        }
    }

    /// Ends the job with nothing in the stage. Returns whether somebody is to be woken.
    pub(super) fn bury(&self) -> bool {
        // [J-out]
        self.set(ENDED | TAKEN, Ordering::Release).has_waiter()
    }

    /// Tries to become the owner of the outcome of an ended job; says whether it worked.
    ///
    /// Relaxed: the caller has [read](AtomicState::read) that it has ended.
    #[must_use = "whoever takes an outcome moves it out of the stage"]
    pub(super) fn take(&self) -> bool {
        self.set(TAKEN, Ordering::Relaxed).0 & TAKEN == 0
    }

    /// Notes that there is no handle. Returns whether the outcome has come before.
    pub(super) fn orphan(&self) -> bool {
        self.set(ORPHAN, Ordering::Relaxed).is_ended()
    }

    /// Notes that it can be run by whoever waits.
    ///
    /// Relaxed: what it needs for that is under a lock.
    pub(super) fn bring(&self) {
        self.set(BROUGHT, Ordering::Relaxed);
    }

    /// Notes that the stub is gone unrun. Returns whether somebody is to be woken.
    pub(super) fn stray(&self) -> bool {
        let before = self.set(STRAY, Ordering::Relaxed);
        before.has_waiter() && !before.is_claimed()
    }

    /// Announces that somebody waits, and returns the state at that moment.
    ///
    /// Relaxed: the waiter itself travels under the lock of the list (J6).
    pub(super) fn announce_waiter(&self) -> Reading {
        self.set(WAITER, Ordering::Relaxed)
    }

    fn set(&self, bits: usize, order: Ordering) -> Reading {
        Reading(self.0.fetch_or(bits, order))
    }

    fn swap_word(&self, seen: Reading, next: usize, order: Ordering) -> Result<(), Reading> {
        self.0
            .compare_exchange_weak(seen.0, next, order, Ordering::Relaxed)
            .map(drop)
            .map_err(Reading)
    }
}
