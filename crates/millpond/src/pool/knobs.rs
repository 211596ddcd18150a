//! The parameters that can change while a pool runs.
//!
//! Readers are many: every submit looks at the sizes, every idle worker at the keep-alive. They read
//! atomics. Writers are rare: they take turns under a lock, judge all parameters together, and write
//! only if all of them are right.
//!
//! - **N1** Core, maximum and growth are one word: a reader never sees the core of one setting
//!   beside the maximum of another. Two bits of it say whether anything is shed and in which order,
//!   so that a worker, which reads that word anyway, need not look for more ([`super::shed`]).
//! - **N2** Parameters are written under the lock and nowhere else.
//! - **N3** A rejection policy that is no more than its name is in a word of its own, so that a refusal
//!   takes no lock: refusals come in crowds. For the others the word says to look under the lock, and
//!   what is found there counts, even if it has changed meanwhile.

use super::Rejection;
use crate::manage::{Growth, Overload, OverloadOrder, Sizes};
use crate::thread::ThreadFactory;
use millpond_raw::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use millpond_raw::sync::{Mutex, MutexGuard};
use std::sync::Arc;
use std::time::Duration;

const FIELD_BITS: u32 = 29;
const FIELD_MASK: u64 = (1 << FIELD_BITS) - 1;
const THREADS_FIRST: u64 = 1 << 63;
const SHEDS: u64 = 1 << 62;
const NEWEST_FIRST: u64 = 1 << 61;

/// Core, maximum and growth, as they were at one moment (N1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits(u64);

impl Limits {
    pub(super) fn new(core: usize, max: usize, growth: Growth) -> Self {
        debug_assert!(core <= max && max <= Sizes::MOST_WORKERS);
        let first = match growth {
            Growth::QueueFirst => 0,
            Growth::ThreadsFirst => THREADS_FIRST,
        };
        Limits(first | (core as u64) << FIELD_BITS | max as u64)
    }

    /// The same, under this protection.
    fn under(self, overload: &Overload) -> Self {
        let bit = |is_set: bool, bit: u64| if is_set { bit } else { 0 };
        let newest = overload.order == OverloadOrder::NewestFirst;
        Limits(self.0 | bit(overload.sheds(), SHEDS) | bit(newest, NEWEST_FIRST))
    }

    /// Whether tasks may be shed when their turn comes.
    #[inline]
    pub(super) fn sheds(self) -> bool {
        self.0 & SHEDS != 0
    }

    /// Whether the newest task comes first under overload.
    #[inline]
    pub(super) fn is_newest_first(self) -> bool {
        self.0 & NEWEST_FIRST != 0
    }

    #[inline]
    pub(super) fn core(self) -> usize {
        (self.0 >> FIELD_BITS & FIELD_MASK) as usize
    }

    #[inline]
    pub(super) fn max(self) -> usize {
        (self.0 & FIELD_MASK) as usize
    }

    /// Up to how many workers a task that comes gets one of its own, if none is free.
    pub(super) fn eager(self) -> usize {
        match self.growth() {
            Growth::QueueFirst => self.core().max(1),
            Growth::ThreadsFirst => self.max(),
        }
    }

    #[inline]
    pub(super) fn growth(self) -> Growth {
        match self.0 & THREADS_FIRST != 0 {
            true => Growth::ThreadsFirst,
            false => Growth::QueueFirst,
        }
    }
}

/// All parameters.
pub(super) struct Knobs {
    limits: AtomicU64,
    /// In nanoseconds; the greatest number is for ever.
    keep_alive: AtomicU64,
    core_may_time_out: AtomicBool,
    /// N3
    plain_rejection: AtomicU8,
    rare: Mutex<Rare>,
}

/// What is needed when a thread is started or a task refused.
pub(super) struct Rare {
    /// Written by [`Knobs::set_rejection`] alone (N3).
    rejection: Rejection,
    pub(super) factory: Arc<dyn ThreadFactory>,
}

impl Rare {
    pub(super) fn new(rejection: Rejection, factory: Arc<dyn ThreadFactory>) -> Self {
        Rare { rejection, factory }
    }
}

/// Look under the lock (N3).
const NOT_PLAIN: u8 = 0;
const ABORT: u8 = 1;
const CALLER_RUNS: u8 = 2;
const DISCARD: u8 = 3;
const DISCARD_OLDEST: u8 = 4;

fn plain_word(rejection: &Rejection) -> u8 {
    match rejection {
        Rejection::Abort => ABORT,
        Rejection::CallerRuns => CALLER_RUNS,
        Rejection::Discard => DISCARD,
        Rejection::DiscardOldest => DISCARD_OLDEST,
        Rejection::Block(_)
        | Rejection::NewThread { .. }
        | Rejection::Report { .. }
        | Rejection::Custom(_) => NOT_PLAIN,
    }
}

impl Knobs {
    pub(super) fn new(sizes: Sizes, growth: Growth, overload: &Overload, rare: Rare) -> Self {
        let knobs = Knobs {
            limits: AtomicU64::new(0),
            keep_alive: AtomicU64::new(0),
            core_may_time_out: AtomicBool::new(false),
            plain_rejection: AtomicU8::new(plain_word(&rare.rejection)),
            rare: Mutex::new(rare),
        };
        knobs.write(&knobs.lock(), sizes, growth, overload);
        knobs
    }

    #[inline]
    pub(super) fn limits(&self) -> Limits {
        Limits(self.limits.load(Ordering::Relaxed))
    }

    pub(super) fn keep_alive(&self) -> Duration {
        match self.keep_alive.load(Ordering::Relaxed) {
            u64::MAX => Duration::MAX,
            nanos => Duration::from_nanos(nanos),
        }
    }

    pub(super) fn core_may_time_out(&self) -> bool {
        self.core_may_time_out.load(Ordering::Relaxed)
    }

    pub(super) fn sizes(&self) -> Sizes {
        let limits = self.limits();
        Sizes {
            core: limits.core(),
            max: limits.max(),
            keep_alive: self.keep_alive(),
            core_may_time_out: self.core_may_time_out(),
        }
    }

    /// What becomes of refused tasks, without a lock if it can be (N3).
    pub(super) fn rejection(&self) -> Rejection {
        match self.plain_rejection.load(Ordering::Relaxed) {
            ABORT => Rejection::Abort,
            CALLER_RUNS => Rejection::CallerRuns,
            DISCARD => Rejection::Discard,
            DISCARD_OLDEST => Rejection::DiscardOldest,
            _ => self.lock().rejection.clone(),
        }
    }

    /// Whether callers run refused tasks.
    #[inline]
    pub(super) fn caller_runs(&self) -> bool {
        self.plain_rejection.load(Ordering::Relaxed) == CALLER_RUNS
    }

    /// Changes that, and returns what it was: a handler of the user's is to be dropped by the caller,
    /// outside the lock.
    #[must_use]
    pub(super) fn set_rejection(&self, rejection: Rejection) -> Rejection {
        let mut turn = self.lock();
        let word = plain_word(&rejection);
        self.plain_rejection.store(word, Ordering::Relaxed);
        std::mem::replace(&mut turn.rejection, rejection)
    }

    /// Takes the turn of a writer (N2).
    pub(super) fn lock(&self) -> MutexGuard<'_, Rare> {
        self.rare.lock()
    }

    /// Writes sizes that have been judged. The guard says whose turn it is (N2).
    ///
    /// Relaxed: who acts on new parameters is woken after they are written, and looks at an epoch
    /// first (`Engine::nudge`).
    pub(super) fn write(
        &self,
        _turn: &MutexGuard<'_, Rare>,
        sizes: Sizes,
        growth: Growth,
        overload: &Overload,
    ) {
        let limits = Limits::new(sizes.core, sizes.max, growth).under(overload);
        self.limits.store(limits.0, Ordering::Relaxed);
        let nanos = u64::try_from(sizes.keep_alive.as_nanos()).unwrap_or(u64::MAX);
        self.keep_alive.store(nanos, Ordering::Relaxed);
        let may = sizes.core_may_time_out;
        self.core_may_time_out.store(may, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn knobs(rejection: Rejection) -> Knobs {
        let factory = Arc::new(crate::thread::Threads::named("mill"));
        let sizes = Sizes {
            core: 1,
            max: 1,
            keep_alive: Duration::MAX,
            core_may_time_out: false,
        };
        let rare = Rare::new(rejection, factory);
        Knobs::new(sizes, Growth::QueueFirst, &Overload::default(), rare)
    }

    fn policies() -> [Rejection; 8] {
        [
            Rejection::Abort,
            Rejection::CallerRuns,
            Rejection::Discard,
            Rejection::DiscardOldest,
            Rejection::Block(Duration::from_secs(7)),
            Rejection::NewThread { at_most: 3 },
            Rejection::Report {
                at_most_every: Duration::from_secs(5),
            },
            Rejection::custom(|task, refusal| refusal.give_back(task)),
        ]
    }

    #[test]
    fn every_policy_that_is_set_is_the_one_that_is_read_whatever_was_there_before() {
        let text = |policy: &Rejection| format!("{policy:?}");
        for before in policies() {
            for after in policies() {
                let knobs = knobs(before.clone());
                assert_eq!(text(&knobs.rejection()), text(&before));
                let replaced = knobs.set_rejection(after.clone());
                assert_eq!(text(&replaced), text(&before));
                assert_eq!(text(&knobs.rejection()), text(&after));
            }
        }
    }

    #[test]
    fn policies_that_are_no_more_than_a_name_are_read_while_a_writer_has_its_turn() {
        for policy in policies().into_iter().take(4) {
            let knobs = knobs(Rejection::Block(Duration::ZERO));
            drop(knobs.set_rejection(policy.clone()));
            // Or it would wait for itself here.
            assert_ne!(knobs.plain_rejection.load(Ordering::Relaxed), NOT_PLAIN);
            let turn = knobs.lock();
            assert_eq!(format!("{:?}", knobs.rejection()), format!("{policy:?}"));
            drop(turn);
        }
    }

    #[test]
    fn the_limits_keep_what_is_put_into_them() {
        for growth in [Growth::QueueFirst, Growth::ThreadsFirst] {
            for (core, max) in [
                (0, 1),
                (1, 1),
                (3, 7),
                (Sizes::MOST_WORKERS, Sizes::MOST_WORKERS),
            ] {
                let limits = Limits::new(core, max, growth);
                assert!(!limits.sheds() && !limits.is_newest_first());
                let guarded = limits.under(&Overload {
                    max_queue_wait: Some(Duration::from_secs(1)),
                    order: OverloadOrder::NewestFirst,
                    ..Overload::default()
                });
                assert!(guarded.sheds() && guarded.is_newest_first());
                for limits in [limits, guarded] {
                    assert_eq!(
                        (limits.core(), limits.max(), limits.growth()),
                        (core, max, growth)
                    );
                }
            }
        }
    }
}
