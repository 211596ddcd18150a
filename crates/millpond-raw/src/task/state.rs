//! The state word of a task cell: what has happened to it, and how many refer to it.
//!
//! ```text
//!    63       32 31        16 15     8    7         6         5       4        3          2        1       0
//!   +-----------+------------+--------+---------+----------+-------+--------+-----------+----------+------+---------+
//!   | references | generation | reason | AT_HOME | IN_PLACE | TAKEN | WAITER | CANCELLED | PANICKED | DONE | CLAIMED |
//!   +-----------+------------+--------+---------+----------+-------+--------+-----------+----------+------+---------+
//! ```
//!
//! | bit | set when | by | never cleared, and |
//! |---|---|---|---|
//! | CLAIMED | somebody takes the closure over | runner or canceller, once | set before all but WAITER |
//! | DONE | the body has ended | the runner, once | never set by a canceller |
//! | PANICKED | it ended by a panic | together with DONE | |
//! | CANCELLED | the handle is finished without an outcome | canceller, once, never after DONE | comes with a reason |
//! | WAITER | somebody is in the list of waiters | waiters, under the list's lock | a hint: the waiter may have left |
//! | TAKEN | the outcome is out of the stage | its handle, or the runner if CANCELLED or without a handle | only with DONE, or just before it |
//! | IN_PLACE | a waiter takes the closure over, to run it where it waits | together with CLAIMED | so that whoever meets the shell knows what it is a shell of |
//! | AT_HOME | that waiter is a thread of the engine that has the task | together with IN_PLACE | |
//! | BEGUN | it was cancelled when somebody ran it already | together with CANCELLED | the highest bit of the reason's byte; there are few reasons |
//!
//! The generation is that of the process in which the cell was made ([`crate::fork`]), modulo 65,536: a
//! cell is taken for one of the present process if exactly so many forks, each of the child of the one
//! before, lie between. The word has 64 bits on every machine, so there is one layout; in 32 bits there
//! would be room for a few thousand references, and a task may have one for each of its waiters.
//!
//! 2^31 references end the process, as they do those of an [`Arc`](std::sync::Arc) on a 32-bit machine:
//! so many are not had but by forgetting them.
//!
//! A cell is *finished* when DONE or CANCELLED is set. CANCELLED wins over DONE in what a handle
//! sees: a value that comes late is dropped.
//!
//! [`Reading`] is a plain copy of the word that answers questions; only [`AtomicState`] touches
//! memory. Its transitions name what their caller has to do next.

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
const IN_PLACE: u64 = 1 << 6;
const AT_HOME: u64 = 1 << 7;
const BEGUN: u64 = 1 << 15;
const REASON_SHIFT: u32 = 8;
const REASON_MASK: u64 = 0xff << REASON_SHIFT;
const GENERATION_SHIFT: u32 = 16;
const GENERATION_MASK: u64 = 0xffff;
const REF_SHIFT: u32 = 32;
const REF: u64 = 1 << REF_SHIFT;
/// Half the room is left for the threads that are between adding a reference and looking at the sum.
const MOST_REFERENCES: u64 = (1 << (u64::BITS - REF_SHIFT - 1)) - 1;

/// A copy of the state word, as it was at one moment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Reading(u64);

impl Reading {
    /// Whether the closure has an owner: somebody runs it, has run it, or has dropped it.
    #[inline]
    pub fn is_claimed(self) -> bool {
        self.0 & CLAIMED != 0
    }

    /// Whether the body has run to its end.
    #[inline]
    pub fn is_done(self) -> bool {
        self.0 & DONE != 0
    }

    /// Whether there is an outcome for the handle.
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
            CancelReason::from_code(((self.0 & REASON_MASK & !BEGUN) >> REASON_SHIFT) as u8)
        })
    }

    /// Whether somebody has begun to run its body, also if it was cancelled afterwards.
    pub fn has_begun(self) -> bool {
        self.is_claimed() && self.0 & (CANCELLED | BEGUN) != CANCELLED
    }

    /// What a task that is claimed is the shell of.
    pub fn shell(self) -> Shell {
        match self.0 & (IN_PLACE | AT_HOME) {
            0 => Shell::Cancelled(self.cancelled()),
            IN_PLACE => Shell::InPlace(Place::Elsewhere),
            _ => Shell::InPlace(Place::AtHome),
        }
    }

    /// Whether it was made before this process was forked: whoever was to run it is in the parent.
    pub fn is_of_another_process(self) -> bool {
        self.is_older_than(fork::generation())
    }

    fn is_older_than(self, generation: u32) -> bool {
        (self.0 >> GENERATION_SHIFT) & GENERATION_MASK != kept(generation)
    }

    pub(super) fn ended_in_panic(self) -> bool {
        self.0 & PANICKED != 0
    }

    #[inline]
    pub(super) fn has_waiter(self) -> bool {
        self.0 & WAITER != 0
    }

    /// T4: whether the stage holds an outcome that somebody has to drop.
    #[inline]
    pub(super) fn holds_outcome(self) -> bool {
        self.0 & (DONE | TAKEN) == DONE
    }

    #[inline]
    pub(super) fn references(self) -> u64 {
        self.0 >> REF_SHIFT
    }
}

impl fmt::Debug for Reading {
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

/// Where a waiter runs a task in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a thread of the engine that has the task in its queue.
    AtHome,
    /// Anywhere else.
    Elsewhere,
}

/// What a task is the shell of, when there is nothing left in it to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shell {
    /// It was cancelled; no reason if it is its maker who has just taken the closure back.
    Cancelled(Option<CancelReason>),
    /// A waiter runs it, or has run it.
    InPlace(Place),
}

/// What a claim came to.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a claimed closure must be run or dropped"]
pub(super) enum Claim {
    /// The closure is the caller's.
    Yours,
    /// Somebody else has it, or had it.
    Gone(Reading),
}

/// What a cancellation came to.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the closure may have to be dropped, and waiters to be woken"]
pub(super) enum Cancelled {
    /// It had not started. The closure is the caller's to drop, then wake the waiters if any.
    Unrun { waiter: bool },
    /// Its body runs. Wake the waiters if any.
    Running { waiter: bool },
    /// It was finished before.
    TooLate,
}

/// What completing came to.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the duty depends on who else is there"]
pub(super) enum Completed {
    /// The outcome is delivered and, if that was asked for, the reference given back.
    Delivered,
    /// The outcome is delivered; somebody waits. Wake them, then give the reference back.
    WakeWaiters,
    /// Cancelled meanwhile: the outcome is the caller's to drop. Then [`AtomicState::bury`].
    Unwanted,
    /// Nobody else is there to want it: drop the outcome and free the cell.
    Alone,
}

/// What giving a reference back came to.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the last one frees the cell"]
pub(super) enum Released {
    /// Others are left.
    Others,
    /// It was the last one: free the cell, whose final state is this.
    Last(Reading),
}

/// A generation as it is kept in the word.
#[inline]
fn kept(generation: u32) -> u64 {
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
            u64::from(references) << REF_SHIFT | kept(generation) << GENERATION_SHIFT,
        ))
    }

    /// The state now. What a finished one has left behind may be read.
    #[inline]
    pub(super) fn read(&self) -> Reading {
        // [T-out] [T-ref]
        Reading(self.0.load(Ordering::Acquire))
    }

    /// Whether it was made before this process was forked.
    ///
    /// Relaxed: that does not change.
    pub(super) fn is_of_another_process(&self) -> bool {
        Reading(self.0.load(Ordering::Relaxed)).is_of_another_process()
    }

    /// The state now, for one that has finished the cell and has found a waiter in that very step: what
    /// the waiter has made before it announced itself may be read.
    ///
    /// The word is changed in no way but by read-modify-writes, so whatever is read here comes after the
    /// announcement in one release sequence.
    pub(super) fn read_after_waiter(&self) -> Reading {
        // [T-wait]
        Reading(self.0.load(Ordering::Acquire))
    }

    /// Tries to become the owner of the closure.
    ///
    /// Relaxed: the closure was written before the cell was shared, and who loses touches nothing.
    #[inline]
    pub(super) fn claim(&self) -> Claim {
        let seen = Reading(self.0.fetch_or(CLAIMED, Ordering::Relaxed));
        match seen.is_claimed() {
            false => Claim::Yours,
            true => Claim::Gone(seen),
        }
    }

    /// As [`claim`](AtomicState::claim), for a waiter that runs it in place; and says so in the same
    /// step.
    pub(super) fn claim_in_place(&self, place: Place) -> Claim {
        let mark = match place {
            Place::AtHome => CLAIMED | IN_PLACE | AT_HOME,
            Place::Elsewhere => CLAIMED | IN_PLACE,
        };
        let mut seen = Reading(self.0.load(Ordering::Relaxed));
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
    /// Relaxed: the reason is in the word itself. Whoever has to wake somebody acquires on top of that,
    /// by [`read_after_waiter`](AtomicState::read_after_waiter).
    pub(super) fn cancel(&self, reason: CancelReason) -> Cancelled {
        self.cancel_unless(reason, Reading::is_finished)
    }

    /// As [`cancel`](AtomicState::cancel), for one who was to run it: what somebody else runs in its
    /// place is not its to cancel.
    pub(super) fn give_up(&self, reason: CancelReason) -> Cancelled {
        self.cancel_unless(reason, Reading::is_claimed)
    }

    fn cancel_unless(&self, reason: CancelReason, too_late: fn(Reading) -> bool) -> Cancelled {
        let mark = CLAIMED | CANCELLED | u64::from(reason.code()) << REASON_SHIFT;
        let mut seen = Reading(self.0.load(Ordering::Relaxed));
        loop {
            if too_late(seen) {
                return Cancelled::TooLate;
            }
            let begun = if seen.is_claimed() { BEGUN } else { 0 };
            if let Err(now) = self.swap_word(seen, seen.0 | mark | begun, Ordering::Relaxed) {
                seen = now;
                continue;
            }
            let waiter = seen.has_waiter();
            return match seen.is_claimed() {
                true => Cancelled::Running { waiter },
                false => Cancelled::Unrun { waiter },
            };
        }
    }

    /// Ends the body: publishes what the caller has put into the stage.
    ///
    /// `release` gives the caller's reference back in the same step if nobody waits.
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
                // Not acquired: a cell that turned out to be the caller's alone is read again.
                Err(now) if now.references() == 1 => seen = self.read(),
                Err(now) => seen = now,
            }
        }
    }

    /// Records that the body has ended and that its outcome, cancelled meanwhile, is gone.
    pub(super) fn bury(&self) {
        self.0.fetch_or(CLAIMED | DONE | TAKEN, Ordering::Relaxed);
    }

    /// Announces that somebody waits. Returns false if there is nothing left to wait for.
    ///
    /// The waiter itself travels under the lock of the list, but that there is a list, and where, the
    /// one who finishes learns from here (T8).
    pub(super) fn announce_waiter(&self) -> bool {
        // [T-wait]
        !Reading(self.0.fetch_or(WAITER, Ordering::Release)).is_finished()
    }

    /// Counts one reference more. The caller owns one already.
    pub(super) fn retain(&self) {
        let before = Reading(self.0.fetch_add(REF, Ordering::Relaxed));
        if before.references() >= MOST_REFERENCES {
            std::process::abort();
        }
    }

    /// Gives a reference back; `taken` says that its owner took the outcome out of the stage.
    #[inline]
    pub(super) fn release(&self, taken: bool) -> Released {
        let taken = if taken { TAKEN } else { 0 };
        let seen = self.read();
        if seen.references() == 1 {
            return Released::Last(Reading(seen.0 | taken));
        }
        // The owner of an outcome is the only one to set TAKEN, so the sum carries nothing over.
        // [T-ref]
        let before = self.0.fetch_add(taken.wrapping_sub(REF), Ordering::Release);
        match Reading(before).references() {
            1 => Released::Last(Reading(self.read().0)),
            _ => Released::Others,
        }
    }

    #[inline]
    fn swap_word(&self, seen: Reading, next: u64, order: Ordering) -> Result<(), Reading> {
        self.0
            .compare_exchange_weak(seen.0, next, order, Ordering::Relaxed)
            .map(drop)
            .map_err(Reading)
    }
}

impl fmt::Debug for AtomicState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.read().fmt(f)
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests;
