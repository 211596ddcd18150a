//! The state word of a task cell: what has happened to the task, and how many references there are.
//!
//! ```text
//!    63       32 31        16 15     8        7          6       5       4        3          2        1       0
//!   +-----------+------------+--------+---------------+--------+-------+--------+-----------+----------+------+---------+
//!   | references | generation | reason | ON_OWN_WORKER | INLINE | TAKEN | WAITER | CANCELLED | PANICKED | DONE | CLAIMED |
//!   +-----------+------------+--------+---------------+--------+-------+--------+-----------+----------+------+---------+
//! ```
//!
//! | bit | set when | by | never cleared, and |
//! |---|---|---|---|
//! | CLAIMED | a thread takes the closure over | runner or canceller, once | set before all but WAITER |
//! | DONE | the body has ended | the runner, once | never set by a canceller |
//! | PANICKED | it ended by a panic | together with DONE | |
//! | CANCELLED | the handle is finished without an outcome | canceller, once, never after DONE | comes with a reason |
//! | WAITER | a waiter is registered | waiters, under the queue's lock | a hint: the waiter may have left |
//! | TAKEN | the outcome is out of the stage | its handle, or the runner if CANCELLED or without a handle | only with DONE, or just before it |
//! | INLINE | a waiter takes the closure over, to run it on its own thread | together with CLAIMED | tells what a tombstone was |
//! | ON_OWN_WORKER | that waiter is a worker of the engine whose queue holds the task | together with INLINE | |
//! | STARTED | it was already running when it was cancelled | together with CANCELLED | the highest bit of the reason's byte; there are few reasons |
//!
//! The generation is that of the process in which the cell was made ([`crate::fork`]), modulo 65,536: a cell
//! is taken for one of the present process after exactly that many forks, each by the child of the one
//! before. The word has 64 bits on every machine, so there is one layout; 32 bits would have room for a few
//! thousand references only, and a task may have one for each of its waiters.
//!
//! 2^31 references abort the process, as those of an [`Arc`](std::sync::Arc) do on a 32-bit machine: only
//! leaking can produce so many.
//!
//! A cell is *finished* when DONE or CANCELLED is set. CANCELLED wins over DONE in what a handle sees: a
//! value that comes late is dropped.
//!
//! [`TaskState`] is a plain copy of the word that answers questions; only [`AtomicState`] touches memory. Its
//! transitions return what their caller has to do next.

use super::CancelReason;
use crate::fork;
use crate::sync::atomic::{AtomicU64, Ordering};
use core::fmt;

const CLAIMED: u64 = 1;
const DONE: u64 = 1 << 1;
const PANICKED: u64 = 1 << 2;
const CANCELLED: u64 = 1 << 3;
const WAITER: u64 = 1 << 4;
const TAKEN: u64 = 1 << 5;
const INLINE: u64 = 1 << 6;
const ON_OWN_WORKER: u64 = 1 << 7;
const STARTED: u64 = 1 << 15;
const REASON_SHIFT: u32 = 8;
const REASON_MASK: u64 = 0xff << REASON_SHIFT;
const GENERATION_SHIFT: u32 = 16;
const GENERATION_MASK: u64 = 0xffff;
const REF_SHIFT: u32 = 32;
const REF: u64 = 1 << REF_SHIFT;
/// The other half is for threads between adding a reference and checking the sum.
const MAX_REFERENCES: u64 = (1 << (u64::BITS - REF_SHIFT - 1)) - 1;

/// A copy of the state word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TaskState(u64);

impl TaskState {
    /// Whether the closure has been claimed: it runs, has run, or was dropped.
    #[inline]
    pub fn is_claimed(self) -> bool {
        self.0 & CLAIMED != 0
    }

    /// Whether the body has ended.
    #[inline]
    pub fn is_done(self) -> bool {
        self.0 & DONE != 0
    }

    /// Whether the handle has an outcome.
    #[inline]
    pub fn is_finished(self) -> bool {
        self.0 & (DONE | CANCELLED) != 0
    }

    /// Whether the outcome is a panic.
    #[inline]
    pub fn is_panicked(self) -> bool {
        self.0 & (PANICKED | CANCELLED) == PANICKED
    }

    /// Why it was cancelled, if it was.
    #[inline]
    pub fn cancelled(self) -> Option<CancelReason> {
        (self.0 & CANCELLED != 0).then(|| {
            CancelReason::from_code(((self.0 & REASON_MASK & !STARTED) >> REASON_SHIFT) as u8)
        })
    }

    /// Whether the body has started, also if the task was cancelled afterwards.
    pub fn has_begun(self) -> bool {
        self.is_claimed() && self.0 & (CANCELLED | STARTED) != CANCELLED
    }

    /// What is left of a claimed task.
    pub fn tombstone(self) -> Tombstone {
        match self.0 & (INLINE | ON_OWN_WORKER) {
            0 => Tombstone::Cancelled(self.cancelled()),
            INLINE => Tombstone::Inline(InlineRunner::OtherThread),
            _ => Tombstone::Inline(InlineRunner::OwnWorker),
        }
    }

    /// Whether it was made before this process was forked: then the threads that would have run it are in the
    /// parent.
    pub fn is_of_another_process(self) -> bool {
        self.differs_from(fork::generation())
    }

    fn differs_from(self, generation: u32) -> bool {
        (self.0 >> GENERATION_SHIFT) & GENERATION_MASK != truncate(generation)
    }

    pub(super) fn ended_in_panic(self) -> bool {
        self.0 & PANICKED != 0
    }

    #[inline]
    pub(super) fn has_waiter(self) -> bool {
        self.0 & WAITER != 0
    }

    /// TASK-4: whether the stage holds an outcome that has to be dropped.
    #[inline]
    pub(super) fn holds_outcome(self) -> bool {
        self.0 & (DONE | TAKEN) == DONE
    }

    #[inline]
    pub(super) fn references(self) -> u64 {
        self.0 >> REF_SHIFT
    }
}

impl fmt::Debug for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cancelled() {
            Some(reason) if self.is_claimed() && !self.is_done() => {
                write!(f, "cancelled ({reason})")
            }
            Some(reason) => write!(f, "cancelled ({reason}), its body has ended"),
            None if self.is_panicked() => f.write_str("panicked"),
            None if self.is_done() => f.write_str("completed"),
            None if self.is_claimed() => f.write_str("running"),
            None => f.write_str("queued"),
        }
    }
}

/// Which thread runs a task inline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InlineRunner {
    /// A worker of the engine whose queue holds the task.
    OwnWorker,
    /// Any other thread.
    OtherThread,
}

/// What is left of a task in a queue when there is nothing to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tombstone {
    /// It was cancelled; no reason if its maker has just taken the closure back.
    Cancelled(Option<CancelReason>),
    /// A waiter runs it inline, or has done so.
    Inline(InlineRunner),
}

/// The transition of a claim.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a claimed closure must be run or dropped"]
pub(super) enum Claim {
    /// The caller owns the closure.
    Yours,
    /// It was claimed before.
    Gone(TaskState),
}

/// The transition of a cancellation.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the caller may have to drop the closure and wake the waiters"]
pub(super) enum Cancelled {
    /// It had not started. The caller drops the closure, then wakes the waiters if there are any.
    Unrun { waiter: bool },
    /// Its body runs. The caller wakes the waiters if there are any.
    Running { waiter: bool },
    /// It was finished before.
    TooLate,
}

/// The transition at the end of a body.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the caller may have to wake waiters, drop the outcome or free the cell"]
pub(super) enum Completed {
    /// The outcome is delivered and, if asked for, the reference given back.
    Delivered,
    /// The outcome is delivered, and there are waiters: wake them, then give the reference back.
    WakeWaiters,
    /// Cancelled meanwhile: the caller drops the outcome, then calls [`AtomicState::record_discarded`].
    Unwanted,
    /// The only reference is the caller's: drop the outcome and free the cell.
    Alone,
}

/// The transition of giving a reference back.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the last reference frees the cell"]
pub(super) enum Released {
    /// Other references are left.
    Others,
    /// It was the last one: free the cell, whose final state this is.
    Last(TaskState),
}

/// A generation as the word holds it.
#[inline]
fn truncate(generation: u32) -> u64 {
    u64::from(generation) & GENERATION_MASK
}

/// The state word.
pub(super) struct AtomicState(AtomicU64);

impl AtomicState {
    pub(super) fn new(references: u32) -> Self {
        AtomicState::of_generation(references, fork::generation())
    }

    #[inline]
    fn of_generation(references: u32, generation: u32) -> Self {
        AtomicState(AtomicU64::new(
            u64::from(references) << REF_SHIFT | truncate(generation) << GENERATION_SHIFT,
        ))
    }

    /// The current state. What a finished task has left behind may be read.
    #[inline]
    pub(super) fn read(&self) -> TaskState {
        // [T-out] [T-ref]
        TaskState(self.0.load(Ordering::Acquire))
    }

    /// Whether it was made before this process was forked.
    ///
    /// Relaxed: the generation never changes.
    pub(super) fn is_of_another_process(&self) -> bool {
        TaskState(self.0.load(Ordering::Relaxed)).is_of_another_process()
    }

    /// The current state, for a thread that has finished the cell and found a waiter in that step: the queue
    /// that the waiter made before it announced itself may be read.
    ///
    /// The word is only changed by read-modify-writes, so the value read here is in the release sequence of
    /// the announcement.
    pub(super) fn read_after_waiter(&self) -> TaskState {
        // [T-wait]
        TaskState(self.0.load(Ordering::Acquire))
    }

    /// Tries to claim the closure.
    ///
    /// Relaxed: the closure was written before the cell was shared, and the loser touches nothing.
    #[inline]
    pub(super) fn claim(&self) -> Claim {
        let seen = TaskState(self.0.fetch_or(CLAIMED, Ordering::Relaxed));
        if seen.is_claimed() {
            Claim::Gone(seen)
        } else {
            Claim::Yours
        }
    }

    /// As [`claim`](AtomicState::claim), for a waiter that runs it inline, which is recorded in the same
    /// step.
    pub(super) fn claim_inline(&self, runner: InlineRunner) -> Claim {
        let mark = match runner {
            InlineRunner::OwnWorker => CLAIMED | INLINE | ON_OWN_WORKER,
            InlineRunner::OtherThread => CLAIMED | INLINE,
        };
        let mut seen = TaskState(self.0.load(Ordering::Relaxed));
        while !seen.is_claimed() {
            match self.swap_word(seen, seen.0 | mark, Ordering::Relaxed) {
                Ok(()) => return Claim::Yours,
                Err(now) => seen = now,
            }
        }
        Claim::Gone(seen)
    }

    /// Finishes the handle without an outcome, unless it is finished.
    ///
    /// Relaxed: the reason is in the word itself. A caller that has to wake waiters acquires by
    /// [`read_after_waiter`](AtomicState::read_after_waiter).
    pub(super) fn cancel(&self, reason: CancelReason) -> Cancelled {
        self.cancel_unless(reason, TaskState::is_finished)
    }

    /// As [`cancel`](AtomicState::cancel), for the holder of the task: a body that a waiter runs inline is
    /// not cancelled.
    pub(super) fn give_up(&self, reason: CancelReason) -> Cancelled {
        self.cancel_unless(reason, TaskState::is_claimed)
    }

    fn cancel_unless(&self, reason: CancelReason, too_late: fn(TaskState) -> bool) -> Cancelled {
        let mark = CLAIMED | CANCELLED | u64::from(reason.code()) << REASON_SHIFT;
        let mut seen = TaskState(self.0.load(Ordering::Relaxed));
        loop {
            if too_late(seen) {
                return Cancelled::TooLate;
            }
            let begun = if seen.is_claimed() { STARTED } else { 0 };
            if let Err(now) = self.swap_word(seen, seen.0 | mark | begun, Ordering::Relaxed) {
                seen = now;
                continue;
            }
            let waiter = seen.has_waiter();
            return if seen.is_claimed() {
                Cancelled::Running { waiter }
            } else {
                Cancelled::Unrun { waiter }
            };
        }
    }

    /// Ends the body: publishes the outcome that the caller has put into the stage.
    ///
    /// `release` gives the caller's reference back in the same step if there are no waiters.
    #[inline]
    pub(super) fn complete(&self, panicked: bool, release: bool) -> Completed {
        let done = if panicked { DONE | PANICKED } else { DONE };
        let mut seen = self.read();
        loop {
            if seen.cancelled().is_some() {
                return Completed::Unwanted;
            }
            if release && seen.references() == 1 {
                return Completed::Alone;
            }
            let gives_back = release && !seen.has_waiter();
            let next = (seen.0 | done) - if gives_back { REF } else { 0 };
            // [T-out] [T-ref]
            match self.swap_word(seen, next, Ordering::Release) {
                Ok(()) if seen.has_waiter() => return Completed::WakeWaiters,
                Ok(()) => return Completed::Delivered,
                // Not acquired: read again before treating the cell as unshared.
                Err(now) if now.references() == 1 => seen = self.read(),
                Err(now) => seen = now,
            }
        }
    }

    /// Records that the body has ended and that its outcome, cancelled meanwhile, was dropped.
    pub(super) fn record_discarded(&self) {
        self.0.fetch_or(CLAIMED | DONE | TAKEN, Ordering::Relaxed);
    }

    /// Announces a waiter. Returns false if the task is finished.
    ///
    /// The waker itself is under the lock of the queue, but the finishing thread learns from here that there
    /// is a queue, and where (TASK-8).
    pub(super) fn announce_waiter(&self) -> bool {
        // [T-wait]
        !TaskState(self.0.fetch_or(WAITER, Ordering::Release)).is_finished()
    }

    /// Adds a reference. The caller owns one already.
    pub(super) fn retain(&self) {
        let before = TaskState(self.0.fetch_add(REF, Ordering::Relaxed));
        if before.references() >= MAX_REFERENCES {
            std::process::abort();
        }
    }

    /// Gives a reference back; `taken` says that its owner took the outcome out of the stage.
    #[inline]
    pub(super) fn release(&self, taken: bool) -> Released {
        let taken = if taken { TAKEN } else { 0 };
        let seen = self.read();
        if seen.references() == 1 {
            return Released::Last(TaskState(seen.0 | taken));
        }
        // Only the owner of the outcome sets TAKEN, so the addition carries nothing over.
        // [T-ref]
        let before = self.0.fetch_add(taken.wrapping_sub(REF), Ordering::Release);
        match TaskState(before).references() {
            1 => Released::Last(TaskState(self.read().0)),
            _ => Released::Others,
        }
    }

    #[inline]
    fn swap_word(&self, seen: TaskState, next: u64, order: Ordering) -> Result<(), TaskState> {
        self.0
            .compare_exchange_weak(seen.0, next, order, Ordering::Relaxed)
            .map(drop)
            .map_err(TaskState)
    }
}

impl fmt::Debug for AtomicState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.read().fmt(f)
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests;
