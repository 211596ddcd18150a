//! The state word of a slot: what has become of a job's closure and of its outcome.
//!
//! | bit | set when | by | and |
//! |---|---|---|---|
//! | CLAIMED | a thread takes the closure over | runner, canceller or maker, once | set before ENDED |
//! | ENDED | closure and body are gone, and the outcome is in the stage or gone too | the claimer, once | the scope's owner waits for it |
//! | PANICKED | the outcome is a payload | together with ENDED | |
//! | CANCELLED | the handle is finished without an outcome | canceller, once, never after ENDED | comes with a reason |
//! | WAITER | a waiter is registered | waiters, under the queue's lock | a hint: the waiter may have left |
//! | TAKEN | the outcome is out of the stage | the thread that takes it, once, or the claimer together with ENDED | |
//! | DETACHED | no handle can take the outcome | the handle when it drops, or the maker | |
//! | PUBLISHED | the job has its metadata, so a waiting thread may run it | its maker, once | |
//! | STUB_DROPPED | the executor has dropped the stub unused | the stub | meaningless once CLAIMED |
//!
//! No bit is ever cleared. For the handle the job is *finished* when ENDED or CANCELLED is set. CANCELLED
//! wins: an outcome that comes later is dropped.
//!
//! [`JobState`] is a plain copy of the word that answers questions; only [`AtomicState`] touches memory. Its
//! transitions return what their caller has to do next.

use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::task::CancelReason;
use core::fmt;

const CLAIMED: usize = 1;
const ENDED: usize = 1 << 1;
const PANICKED: usize = 1 << 2;
const CANCELLED: usize = 1 << 3;
const WAITER: usize = 1 << 4;
const TAKEN: usize = 1 << 5;
const DETACHED: usize = 1 << 6;
const STUB_DROPPED: usize = 1 << 7;
const REASON_SHIFT: u32 = 8;
const PUBLISHED: usize = 1 << 16;
const REASON_MASK: usize = 0xff << REASON_SHIFT;

/// A copy of the state word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct JobState(usize);

impl JobState {
    /// Whether the closure has been claimed: it runs, has run, or was dropped.
    pub fn is_claimed(self) -> bool {
        self.0 & CLAIMED != 0
    }

    /// Whether it has been [published](super::NewJob::publish) and not started.
    pub fn is_unstarted(self) -> bool {
        self.0 & (PUBLISHED | CLAIMED) == PUBLISHED
    }

    /// Whether nothing of the job runs, or ever will.
    pub fn is_ended(self) -> bool {
        self.0 & ENDED != 0
    }

    /// Whether the handle has nothing left to wait for.
    pub fn is_finished(self) -> bool {
        self.0 & (ENDED | CANCELLED) != 0
    }

    /// Whether no handle can take the outcome.
    pub fn is_detached(self) -> bool {
        self.0 & DETACHED != 0
    }

    /// Whether it has not started and its executor has dropped the stub: a waiting thread has to run it.
    pub fn is_stub_dropped(self) -> bool {
        self.0 & (STUB_DROPPED | CLAIMED) == STUB_DROPPED
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

impl fmt::Debug for JobState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cancelled() {
            Some(reason) if self.is_ended() => write!(f, "cancelled ({reason})"),
            Some(reason) => write!(f, "cancelled ({reason}), its body runs"),
            None if self.is_panicked() => f.write_str("panicked"),
            None if self.is_ended() => f.write_str("completed"),
            None if self.is_claimed() => f.write_str("running"),
            None if self.is_stub_dropped() => f.write_str("dropped by its executor"),
            None => f.write_str("queued"),
        }
    }
}

/// The result of a cancellation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelResult {
    /// The job was finished before.
    TooLate,
    /// It had not started and never will: its closure is gone.
    Unrun,
    /// Its body runs, and its outcome will be dropped.
    Running,
}

/// The transition of a cancellation.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the canceller of an unrun job owns its closure, and must wake the waiters"]
pub(super) enum Cancel {
    TooLate,
    /// The caller owns the closure: drop it, then [`AtomicState::end_empty`], and wake as that says.
    Unrun,
    Running {
        waiter: bool,
    },
}

/// The transition at the end of a body.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the runner must dispose of an unwanted outcome, and wake the waiters"]
pub(super) enum Completed {
    /// The outcome is published.
    Delivered { waiter: bool },
    /// No handle will take it. The caller disposes of it, then calls [`AtomicState::end_empty`].
    Unwanted(JobState),
}

/// The state word.
pub(super) struct AtomicState(AtomicUsize);

impl AtomicState {
    /// An unclaimed job with a handle.
    pub(super) fn new() -> Self {
        AtomicState(AtomicUsize::new(0))
    }

    /// The current state. What an ended job has left behind may be read.
    pub(super) fn read(&self) -> JobState {
        // [J-out]
        JobState(self.0.load(Ordering::Acquire))
    }

    /// Tries to claim the closure; returns whether it did.
    ///
    /// Relaxed: the closure was written before the slot was shared, and the loser touches nothing.
    #[must_use = "a claimed closure must be run or dropped"]
    pub(super) fn claim(&self) -> bool {
        !self.set(CLAIMED, Ordering::Relaxed).is_claimed()
    }

    /// Finishes the handle without an outcome, unless it is finished.
    ///
    /// Relaxed: the reason is in the word itself.
    pub(super) fn cancel(&self, reason: CancelReason) -> Cancel {
        let mark = CLAIMED | CANCELLED | usize::from(reason.code()) << REASON_SHIFT;
        let mut seen = JobState(self.0.load(Ordering::Relaxed));
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

    /// Ends the job: publishes the outcome that the caller has put into the stage.
    pub(super) fn complete(&self, panicked: bool) -> Completed {
        let ended = if panicked { ENDED | PANICKED } else { ENDED };
        let mut seen = JobState(self.0.load(Ordering::Relaxed));
        loop {
            if seen.0 & (CANCELLED | DETACHED) != 0 {
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

    /// Ends the job with an empty stage. Returns whether there are waiters to wake.
    pub(super) fn end_empty(&self) -> bool {
        // [J-out]
        self.set(ENDED | TAKEN, Ordering::Release).has_waiter()
    }

    /// Tries to take ownership of the outcome of an ended job; returns whether it did.
    ///
    /// Relaxed: the caller has [read](AtomicState::read) that it has ended.
    #[must_use = "a taken outcome must be moved out of the stage"]
    pub(super) fn take(&self) -> bool {
        self.set(TAKEN, Ordering::Relaxed).0 & TAKEN == 0
    }

    /// Records that there is no handle. Returns whether the job has already ended.
    pub(super) fn detach(&self) -> bool {
        self.set(DETACHED, Ordering::Relaxed).is_ended()
    }

    /// Records that a waiting thread may run it.
    ///
    /// Relaxed: the metadata is under a lock.
    pub(super) fn mark_published(&self) {
        self.set(PUBLISHED, Ordering::Relaxed);
    }

    /// Records that the stub was dropped unused. Returns whether there are waiters to wake.
    pub(super) fn mark_stub_dropped(&self) -> bool {
        let before = self.set(STUB_DROPPED, Ordering::Relaxed);
        before.has_waiter() && !before.is_claimed()
    }

    /// Announces a waiter, and returns the state at that moment.
    ///
    /// Relaxed: the waker itself is under the lock of the queue (SCOPE-6).
    pub(super) fn announce_waiter(&self) -> JobState {
        self.set(WAITER, Ordering::Relaxed)
    }

    fn set(&self, bits: usize, order: Ordering) -> JobState {
        JobState(self.0.fetch_or(bits, order))
    }

    fn swap_word(&self, seen: JobState, next: usize, order: Ordering) -> Result<(), JobState> {
        self.0
            .compare_exchange_weak(seen.0, next, order, Ordering::Relaxed)
            .map(drop)
            .map_err(JobState)
    }
}
