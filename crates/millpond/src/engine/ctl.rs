//! The control word: the run state of an engine and its worker count.
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
//! Both are in one word, so that "running, and below the maximum" is one load, and "one worker more,
//! unless something has changed" is one step.
//!
//! # Invariants
//!
//! - **CTL-1** The state only grows.
//! - **CTL-2** A worker is counted by a CAS from the very word that was judged, before its thread
//!   starts. It is uncounted once: when it leaves, or when it could not start. So the count never
//!   exceeds the maximum that was read, and of two workers that time out together at most one leaves
//!   for being surplus.
//! - **CTL-3** TIDYING is entered from SHUT DOWN or STOPPED with no worker counted, by one thread.
//!
//! # Orderings
//!
//! - `[C-all]` Every load and every change is sequentially consistent. The word is one end of several
//!   store-load patterns, in which each side writes its own word and then reads the other's: a submitter
//!   enqueues and then looks for workers; a leaving worker is uncounted and then looks into the queue. The
//!   other end of each is named where it is. The word changes only when a worker comes or goes, so weaker
//!   orderings would gain nothing.
//!
//!   No model notices if [`AtomicCtl::decrement_workers`] has no order of its own, because locks order it for both
//!   kinds of readers:
//!
//!   - The thread that terminates the engine must see what the workers have done. It has found the registry empty under
//!     its lock, and each worker takes that lock after it was uncounted, to leave the registry.
//!   - A submitter that relies on a worker has enqueued its task. The worker looks into the queue after its decrement. If
//!     it has not seen the task, then the submitter has locked the queue after the worker, and sees the worker gone.
//!
//!   Every worker takes that look, unless the queue was sealed and empty before. If a worker could not start, the
//!   thread that counted it takes the look (SPAWN-1). A worker that dies of a panic takes it when its
//!   [`WorkerGuard`](super::WorkerGuard) is dropped. A user's queue need not have a lock: there, both sides have a fence
//!   instead (`[E-queue]` in `pool::task_queue`). The count itself is right in any case: it is one word, changed by
//!   read-modify-write steps.

use crate::manage::RunState;
use millpond_raw::sync::atomic::{AtomicU32, Ordering};
use std::fmt;

const COUNT_BITS: u32 = 29;
const COUNT_MASK: u32 = (1 << COUNT_BITS) - 1;

/// A copy of the control word, as it was at one moment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ctl(u32);

impl Ctl {
    #[inline]
    pub(crate) fn state(self) -> RunState {
        match self.0 >> COUNT_BITS {
            0 => RunState::Running,
            1 => RunState::ShutDown,
            2 => RunState::Stopped,
            3 => RunState::Tidying,
            _ => RunState::Terminated,
        }
    }

    #[inline]
    pub(crate) fn is_running(self) -> bool {
        self.0 <= COUNT_MASK
    }

    /// Whether queued tasks are still run: until the engine is stopped.
    #[inline]
    pub(crate) fn runs_queued_tasks(self) -> bool {
        self.state() <= RunState::ShutDown
    }

    #[inline]
    pub(crate) fn workers(self) -> usize {
        (self.0 & COUNT_MASK) as usize
    }
}

impl fmt::Debug for Ctl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with {} workers", self.state(), self.workers())
    }
}

/// The control word.
pub(crate) struct AtomicCtl(AtomicU32);

impl AtomicCtl {
    pub(crate) fn new() -> Self {
        AtomicCtl(AtomicU32::new(0))
    }

    #[inline]
    pub(crate) fn read(&self) -> Ctl {
        // [C-all]
        Ctl(self.0.load(Ordering::SeqCst))
    }

    /// Counts one worker more, if the word is still the one that was judged (CTL-2).
    pub(crate) fn try_increment_workers(&self, judged: Ctl) -> bool {
        debug_assert!(
            judged.0 & COUNT_MASK < COUNT_MASK,
            "CTL-2: the count is at its maximum"
        );
        self.swap(judged, judged.0 + 1)
    }

    /// Counts one worker less, if the word is still the one that was judged (CTL-2).
    pub(crate) fn try_decrement_workers(&self, judged: Ctl) -> bool {
        debug_assert!(judged.workers() > 0, "CTL-2: no worker is counted");
        self.swap(judged, judged.0 - 1)
    }

    /// Counts one worker less, whatever else has changed (CTL-2).
    pub(crate) fn decrement_workers(&self) {
        // [C-all] unmodelled: locks that are taken next order the same (proof in the header)
        let before = Ctl(self.0.fetch_sub(1, Ordering::SeqCst));
        debug_assert!(before.workers() > 0, "CTL-2: no worker was counted");
    }

    /// Moves on to `state`, unless that is reached already (CTL-1). Returns whether this call did it.
    pub(crate) fn advance_to(&self, state: RunState) -> bool {
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

    /// Moves to TIDYING, if the word is still the one that was judged (CTL-3).
    pub(crate) fn try_tidy(&self, judged: Ctl) -> bool {
        debug_assert!(judged.workers() == 0 && !judged.is_running(), "CTL-3");
        self.swap(judged, (RunState::Tidying as u32) << COUNT_BITS)
    }

    fn swap(&self, judged: Ctl, next: u32) -> bool {
        self.0
            // [C-all]; relaxed on failure: a caller that fails judges again, from another load.
            .compare_exchange(judged.0, next, Ordering::SeqCst, Ordering::Relaxed)
            .is_ok()
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn the_count_and_the_state_do_not_touch_each_other() {
        let ctl = AtomicCtl::new();
        for workers in 0..5 {
            assert_eq!(ctl.read().workers(), workers);
            assert!(ctl.try_increment_workers(ctl.read()));
        }
        for state in [RunState::ShutDown, RunState::Stopped] {
            assert!(ctl.advance_to(state));
            assert_eq!((ctl.read().state(), ctl.read().workers()), (state, 5));
        }
        for workers in (0..5).rev() {
            ctl.decrement_workers();
            assert_eq!(ctl.read().workers(), workers);
            assert_eq!(ctl.read().state(), RunState::Stopped);
        }
        assert!(ctl.try_tidy(ctl.read()));
        assert_eq!(ctl.read().state(), RunState::Tidying);
        assert!(ctl.advance_to(RunState::Terminated));
    }

    #[test]
    fn a_full_count_leaves_the_state_alone_and_the_last_worker_is_counted_out() {
        for state in 0..5 {
            let ctl = AtomicCtl(AtomicU32::new(state << COUNT_BITS | (COUNT_MASK - 1)));
            let state = ctl.read().state();
            assert!(ctl.try_increment_workers(ctl.read()));
            assert_eq!(ctl.read().workers(), COUNT_MASK as usize);
            assert_eq!(ctl.read().state(), state);
            assert_eq!(ctl.read().is_running(), state == RunState::Running);
            ctl.decrement_workers();
            assert_eq!(ctl.read().workers(), COUNT_MASK as usize - 1);
            assert_eq!(ctl.read().state(), state);
        }
    }

    #[test]
    fn the_state_never_goes_back() {
        let ctl = AtomicCtl::new();
        assert!(ctl.advance_to(RunState::Stopped));
        assert!(!ctl.advance_to(RunState::ShutDown));
        assert!(!ctl.advance_to(RunState::Stopped));
        assert_eq!(ctl.read().state(), RunState::Stopped);
        assert!(!ctl.read().is_running());
    }

    #[test]
    fn a_word_that_has_changed_is_not_swapped() {
        let ctl = AtomicCtl::new();
        let old = ctl.read();
        assert!(ctl.try_increment_workers(old));
        assert!(!ctl.try_increment_workers(old));
        assert!(ctl.advance_to(RunState::ShutDown));
        assert!(!ctl.try_decrement_workers(Ctl(1)));
        assert!(ctl.try_decrement_workers(ctl.read()));
        assert_eq!(ctl.read().workers(), 0);
    }
}
