//! The parameters of a running pool.
//!
//! Readers are many: every submit reads the limits, every idle worker the keep-alive. They read atomics.
//! Writers are rare: they take turns under a lock, judge all parameters together, and write only if all of
//! them are right.
//!
//! # Invariants
//!
//! - **CONFIG-1** Core, maximum and growth are one word: a reader never sees the core of one configuration
//!   beside the maximum of another. Two bits of it say whether anything is shed and in which order,
//!   so a worker, which reads that word anyway, need not read more ([`shed`](crate::pool::shed)).
//! - **CONFIG-2** Parameters are written under the lock and nowhere else.
//! - **CONFIG-3** A rejection policy without an argument is in a word of its own, so a rejection takes no lock:
//!   rejections come in crowds. For the others the word says to read under the lock, and the policy that is
//!   there counts, even if it has changed meanwhile.

use super::capacity::CapacityPatches;
use super::{Config, Overload};
use crate::engine::parameters::KeepAlive;
use crate::engine::watchdog::RunWarning;
use crate::manage::{Growth, OverloadOrder};
use crate::pool::{RejectionPolicy, ThreadPool};
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

/// Core, maximum and growth of one configuration (CONFIG-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::pool) struct Limits(u64);

impl Limits {
    pub(in crate::pool) fn new(core: usize, max: usize, growth: Growth) -> Self {
        debug_assert!(core <= max && max <= ThreadPool::MAX_WORKERS);
        let first = match growth {
            Growth::QueueFirst => 0,
            Growth::ThreadsFirst => THREADS_FIRST,
        };
        Limits(first | (core as u64) << FIELD_BITS | max as u64)
    }

    /// The same with the bits of this protection against overload.
    fn under(self, overload: &Overload) -> Self {
        let bit = |is_set: bool, bit: u64| if is_set { bit } else { 0 };
        let newest = overload.order == OverloadOrder::NewestFirst;
        Limits(self.0 | bit(overload.sheds(), SHEDS) | bit(newest, NEWEST_FIRST))
    }

    /// Whether tasks may be shed when their turn comes.
    #[inline]
    pub(in crate::pool) fn sheds(self) -> bool {
        self.0 & SHEDS != 0
    }

    /// Whether the newest task is next under overload.
    #[inline]
    pub(in crate::pool) fn is_newest_first(self) -> bool {
        self.0 & NEWEST_FIRST != 0
    }

    #[inline]
    pub(in crate::pool) fn core(self) -> usize {
        (self.0 >> FIELD_BITS & FIELD_MASK) as usize
    }

    #[inline]
    pub(in crate::pool) fn max(self) -> usize {
        (self.0 & FIELD_MASK) as usize
    }

    /// Up to this number of workers a new task starts one of its own, if none is free.
    pub(in crate::pool) fn eager(self) -> usize {
        match self.growth() {
            Growth::QueueFirst => self.core().max(1),
            Growth::ThreadsFirst => self.max(),
        }
    }

    #[inline]
    pub(in crate::pool) fn growth(self) -> Growth {
        if self.0 & THREADS_FIRST != 0 {
            Growth::ThreadsFirst
        } else {
            Growth::QueueFirst
        }
    }
}

/// The parameters of a running pool.
pub(in crate::pool) struct LiveConfig {
    limits: AtomicU64,
    keep_alive: KeepAlive,
    core_may_time_out: AtomicBool,
    /// CONFIG-3
    plain_rejection: AtomicU8,
    cold: Mutex<ColdConfig>,
}

/// The parameters that are read when a thread is started or a task rejected.
pub(in crate::pool) struct ColdConfig {
    /// Written by [`LiveConfig::replace_rejection`] alone (CONFIG-3).
    rejection: RejectionPolicy,
    pub(in crate::pool) factory: Arc<dyn ThreadFactory>,
    /// Patches under way that name the capacity of a queue of the user's.
    pub(super) capacity_patches: CapacityPatches,
}

/// Look under the lock (CONFIG-3).
const NOT_PLAIN: u8 = 0;
const ABORT: u8 = 1;
const CALLER_RUNS: u8 = 2;
const DISCARD: u8 = 3;
const DISCARD_OLDEST: u8 = 4;

fn plain_word(rejection: &RejectionPolicy) -> u8 {
    match rejection {
        RejectionPolicy::Abort => ABORT,
        RejectionPolicy::CallerRuns => CALLER_RUNS,
        RejectionPolicy::Discard => DISCARD,
        RejectionPolicy::DiscardOldest => DISCARD_OLDEST,
        RejectionPolicy::Block(_)
        | RejectionPolicy::NewThread { .. }
        | RejectionPolicy::Report { .. }
        | RejectionPolicy::Custom(_) => NOT_PLAIN,
    }
}

impl LiveConfig {
    pub(in crate::pool) fn new(config: &Config, factory: Arc<dyn ThreadFactory>) -> Self {
        let live = LiveConfig {
            limits: AtomicU64::new(0),
            keep_alive: KeepAlive::default(),
            core_may_time_out: AtomicBool::new(false),
            plain_rejection: AtomicU8::new(plain_word(&config.rejection)),
            cold: Mutex::new(ColdConfig {
                rejection: config.rejection.clone(),
                factory,
                capacity_patches: CapacityPatches::default(),
            }),
        };
        live.write(&live.lock(), config);
        live
    }

    #[inline]
    pub(in crate::pool) fn limits(&self) -> Limits {
        Limits(self.limits.load(Ordering::Relaxed))
    }

    pub(in crate::pool) fn keep_alive(&self) -> Duration {
        self.keep_alive.get()
    }

    pub(in crate::pool) fn core_may_time_out(&self) -> bool {
        self.core_may_time_out.load(Ordering::Relaxed)
    }

    /// The rejection policy, without a lock if possible (CONFIG-3).
    pub(in crate::pool) fn rejection(&self) -> RejectionPolicy {
        match self.plain_rejection.load(Ordering::Relaxed) {
            ABORT => RejectionPolicy::Abort,
            CALLER_RUNS => RejectionPolicy::CallerRuns,
            DISCARD => RejectionPolicy::Discard,
            DISCARD_OLDEST => RejectionPolicy::DiscardOldest,
            _ => self.lock().rejection.clone(),
        }
    }

    /// Whether callers run rejected tasks.
    #[inline]
    pub(in crate::pool) fn caller_runs(&self) -> bool {
        self.plain_rejection.load(Ordering::Relaxed) == CALLER_RUNS
    }

    /// Changes the rejection policy and returns the former one, which may be a handler of the user's: the
    /// caller drops it outside the lock.
    #[must_use]
    pub(in crate::pool) fn replace_rejection(
        &self,
        turn: &mut MutexGuard<'_, ColdConfig>,
        rejection: RejectionPolicy,
    ) -> RejectionPolicy {
        let word = plain_word(&rejection);
        self.plain_rejection.store(word, Ordering::Relaxed);
        std::mem::replace(&mut turn.rejection, rejection)
    }

    /// Takes the turn of a writer (CONFIG-2).
    pub(in crate::pool) fn lock(&self) -> MutexGuard<'_, ColdConfig> {
        self.cold.lock()
    }

    /// The values that are here; those of the queue and of the protection against overload are with those.
    pub(in crate::pool) fn read(
        &self,
        turn: &MutexGuard<'_, ColdConfig>,
        queue: (&'static str, Option<usize>),
        overload: Overload,
        task_names: Option<usize>,
        run_warning: Option<RunWarning>,
    ) -> Config {
        let limits = self.limits();
        Config {
            core: limits.core(),
            max: limits.max(),
            keep_alive: self.keep_alive(),
            core_may_time_out: self.core_may_time_out(),
            growth: limits.growth(),
            capacity: queue.1,
            overload,
            rejection: turn.rejection.clone(),
            queue: queue.0,
            run_warning,
            task_names,
        }
    }

    /// Writes limits and times that have been judged. The guard says whose turn it is (CONFIG-2).
    ///
    /// Relaxed: a worker that acts on new parameters is woken after they are written, and reads an epoch
    /// first (`PoolEngine::wake_idle_workers`).
    pub(in crate::pool) fn write(&self, _turn: &MutexGuard<'_, ColdConfig>, config: &Config) {
        let limits = Limits::new(config.core, config.max, config.growth).under(&config.overload);
        self.limits.store(limits.0, Ordering::Relaxed);
        self.keep_alive.set(config.keep_alive);
        let may = config.core_may_time_out;
        self.core_may_time_out.store(may, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DEFAULT_CAPACITY, DEFAULT_TASK_NAMES};
    use super::*;

    fn config(rejection: RejectionPolicy) -> Config {
        Config {
            core: 1,
            max: 1,
            keep_alive: Duration::MAX,
            core_may_time_out: false,
            growth: Growth::QueueFirst,
            capacity: Some(DEFAULT_CAPACITY),
            overload: Overload::default(),
            rejection,
            queue: "fifo",
            run_warning: None,
            task_names: Some(DEFAULT_TASK_NAMES),
        }
    }

    fn live(rejection: RejectionPolicy) -> LiveConfig {
        let factory = Arc::new(crate::thread::Threads::named("mill"));
        LiveConfig::new(&config(rejection), factory)
    }

    fn policies() -> [RejectionPolicy; 8] {
        [
            RejectionPolicy::Abort,
            RejectionPolicy::CallerRuns,
            RejectionPolicy::Discard,
            RejectionPolicy::DiscardOldest,
            RejectionPolicy::Block(Duration::from_secs(7)),
            RejectionPolicy::NewThread { at_most: 3 },
            RejectionPolicy::Report {
                at_most_every: Duration::from_secs(5),
            },
            RejectionPolicy::custom(|task, refusal| refusal.give_back(task)),
        ]
    }

    #[test]
    fn every_policy_that_is_set_is_the_one_that_is_read_whatever_was_there_before() {
        let text = |policy: &RejectionPolicy| format!("{policy:?}");
        for before in policies() {
            for after in policies() {
                let config = live(before.clone());
                assert_eq!(text(&config.rejection()), text(&before));
                let replaced = config.replace_rejection(&mut config.lock(), after.clone());
                assert_eq!(text(&replaced), text(&before));
                assert_eq!(text(&config.rejection()), text(&after));
            }
        }
    }

    #[test]
    fn policies_without_an_argument_are_read_while_a_writer_has_its_turn() {
        for policy in policies().into_iter().take(4) {
            let config = live(RejectionPolicy::Block(Duration::ZERO));
            drop(config.replace_rejection(&mut config.lock(), policy.clone()));
            // Or it would wait for itself here.
            assert_ne!(config.plain_rejection.load(Ordering::Relaxed), NOT_PLAIN);
            let turn = config.lock();
            assert_eq!(format!("{:?}", config.rejection()), format!("{policy:?}"));
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
                (ThreadPool::MAX_WORKERS, ThreadPool::MAX_WORKERS),
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
