//! The control word: where the pool is in its life, and how many workers it has.
//!
//! ```text
//!    31      29 28                                0
//!   +----------+-----------------------------------+
//!   |  state   |              workers              |
//!   +----------+-----------------------------------+
//!
//!   RUNNING < SHUT DOWN < STOPPED < TIDYING < TERMINATED
//! ```
//!
//! Both in one word, so that "running, and below the maximum" is one look, and "one worker more,
//! unless something has changed" is one step.
//!
//! # Invariants
//!
//! - **C1** The state only grows.
//! - **C2** A worker is counted by a CAS from the very word that was judged, before its thread
//!   starts, and uncounted once, when it leaves, or when it could not start. So the count never
//!   passes the maximum that was read, and two workers that time out together cannot both leave
//!   because each saw one too many.
//! - **C3** TIDYING is entered from SHUT DOWN or STOPPED with no worker counted, by one thread.
//!
//! # Orderings
//!
//! - `[C-all]` Every look and every change is sequentially consistent. The word is one end of several patterns in
//!   which each side writes its own word and then reads the other's (a submitter pushes and looks
//!   for workers, a leaving worker is uncounted and looks into the queue); the other end of each is
//!   named where it is. The word changes when a worker comes or goes, so nothing is to be gained by
//!   less. Of [`Ctl::uncount`] no model can notice if it has no order of its own, for it has two kinds of
//!   readers, and to both a lock brings it: who ends the pool wants to see what the workers have done, and
//!   does so only when it has found the list of workers empty under its lock, which each of them has taken
//!   after it was uncounted, to strike itself off; and a submitter that counts on a worker has pushed its
//!   task, so if the worker's look into the queue, which comes after it was uncounted, has not seen that
//!   task, then the push has locked the queue later than the look, and sees the worker gone. Every worker
//!   takes that look, unless the queue was sealed and empty before: one that could not start by whoever
//!   counted it (E1), one that dies of a panic when its [`Shift`](super::worker) is dropped. (Panics of the user's queue
//!   do not get that far: a worker holds them up, pauses and tries again.) For a queue of the user's, which need not
//!   have a lock, both sides have a fence instead (`[E-line]`). How many there
//!   are is right in any case: it is one word, changed by steps that read and write at once.

use crate::manage::RunState;
use millpond_raw::sync::atomic::{AtomicU32, Ordering};
use std::fmt;

const COUNT_BITS: u32 = 29;
const COUNT_MASK: u32 = (1 << COUNT_BITS) - 1;

/// A copy of the control word, as it was at one moment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Reading(u32);

impl Reading {
    #[inline]
    pub(super) fn state(self) -> RunState {
        match self.0 >> COUNT_BITS {
            0 => RunState::Running,
            1 => RunState::ShutDown,
            2 => RunState::Stopped,
            3 => RunState::Tidying,
            _ => RunState::Terminated,
        }
    }

    #[inline]
    pub(super) fn is_running(self) -> bool {
        self.0 <= COUNT_MASK
    }

    /// Whether tasks of the queue are run: until it is stopped.
    #[inline]
    pub(super) fn runs_what_waits(self) -> bool {
        self.state() <= RunState::ShutDown
    }

    #[inline]
    pub(super) fn workers(self) -> usize {
        (self.0 & COUNT_MASK) as usize
    }
}

impl fmt::Debug for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with {} workers", self.state(), self.workers())
    }
}

/// The control word.
pub(super) struct Ctl(AtomicU32);

impl Ctl {
    pub(super) fn new() -> Self {
        Ctl(AtomicU32::new(0))
    }

    #[inline]
    pub(super) fn read(&self) -> Reading {
        // [C-all]
        Reading(self.0.load(Ordering::SeqCst))
    }

    /// Counts one worker more, if the word is still what was judged (C2).
    pub(super) fn count_in(&self, judged: Reading) -> bool {
        debug_assert!(judged.0 & COUNT_MASK < COUNT_MASK, "C2: the field is full");
        self.swap(judged, judged.0 + 1)
    }

    /// Counts one worker less, if the word is still what was judged (C2).
    pub(super) fn count_out(&self, judged: Reading) -> bool {
        debug_assert!(judged.workers() > 0, "C2: nobody is counted");
        self.swap(judged, judged.0 - 1)
    }

    /// Counts one worker less, whatever else has changed (C2).
    pub(super) fn uncount(&self) {
        // [C-all] unmodelled: locks that are taken next order the same (proof in the header)
        let before = Reading(self.0.fetch_sub(1, Ordering::SeqCst));
        debug_assert!(before.workers() > 0, "C2: nobody was counted");
    }

    /// Moves on to `state`, unless it is that far (C1). Returns whether this call did it.
    pub(super) fn advance(&self, state: RunState) -> bool {
        let mut seen = self.read();
        while seen.state() < state {
            let next = (state as u32) << COUNT_BITS | (seen.0 & COUNT_MASK);
            if self.swap(seen, next) {
                return true;
            }
            seen = self.read();
        }
        false
    }

    /// Moves from the end of the work to the tidying, if the word is still what was judged (C3).
    pub(super) fn tidy(&self, judged: Reading) -> bool {
        debug_assert!(judged.workers() == 0 && !judged.is_running(), "C3");
        self.swap(judged, (RunState::Tidying as u32) << COUNT_BITS)
    }

    fn swap(&self, judged: Reading, next: u32) -> bool {
        self.0
            // [C-all]; relaxed on failure: who fails judges again, from another look.
            .compare_exchange(judged.0, next, Ordering::SeqCst, Ordering::Relaxed)
            .is_ok()
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn the_count_and_the_state_do_not_touch_each_other() {
        let ctl = Ctl::new();
        for workers in 0..5 {
            assert_eq!(ctl.read().workers(), workers);
            assert!(ctl.count_in(ctl.read()));
        }
        for state in [RunState::ShutDown, RunState::Stopped] {
            assert!(ctl.advance(state));
            assert_eq!((ctl.read().state(), ctl.read().workers()), (state, 5));
        }
        for workers in (0..5).rev() {
            ctl.uncount();
            assert_eq!(ctl.read().workers(), workers);
            assert_eq!(ctl.read().state(), RunState::Stopped);
        }
        assert!(ctl.tidy(ctl.read()));
        assert_eq!(ctl.read().state(), RunState::Tidying);
        assert!(ctl.advance(RunState::Terminated));
    }

    #[test]
    fn a_full_count_leaves_the_state_alone_and_the_last_worker_is_counted_out() {
        for state in 0..5 {
            let ctl = Ctl(AtomicU32::new(state << COUNT_BITS | (COUNT_MASK - 1)));
            let state = ctl.read().state();
            assert!(ctl.count_in(ctl.read()));
            assert_eq!(ctl.read().workers(), crate::manage::Sizes::MOST_WORKERS);
            assert_eq!(ctl.read().state(), state);
            assert_eq!(ctl.read().is_running(), state == RunState::Running);
            ctl.uncount();
            assert_eq!(ctl.read().workers(), COUNT_MASK as usize - 1);
            assert_eq!(ctl.read().state(), state);
        }
    }

    #[test]
    fn the_state_never_goes_back() {
        let ctl = Ctl::new();
        assert!(ctl.advance(RunState::Stopped));
        assert!(!ctl.advance(RunState::ShutDown));
        assert!(!ctl.advance(RunState::Stopped));
        assert_eq!(ctl.read().state(), RunState::Stopped);
        assert!(!ctl.read().is_running());
    }

    #[test]
    fn a_word_that_has_changed_is_not_swapped() {
        let ctl = Ctl::new();
        let old = ctl.read();
        assert!(ctl.count_in(old));
        assert!(!ctl.count_in(old));
        assert!(ctl.advance(RunState::ShutDown));
        assert!(!ctl.count_out(Reading(1)));
        assert!(ctl.count_out(ctl.read()));
        assert_eq!(ctl.read().workers(), 0);
    }
}
