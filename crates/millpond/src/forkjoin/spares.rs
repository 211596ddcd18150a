//! Spare workers: they keep as many workers computing as the parallelism says, while others are blocked.
//!
//! ```text
//!   workers  =  running  +  sleeping  +  blocked  +  waiting in joins
//!
//!   running < parallelism, and work is visible:   a sleeper is woken
//!                      .. and nobody sleeps:      a spare is started, if workers < parallelism + max_spares
//!                      .. and there are as many:  the work waits, and the operator is told
//!   running > parallelism:                        the next worker that has done its work sleeps
//! ```
//!
//! The pool counts blocked workers, not spares. All workers are equal, and none is marked as a spare. A worker that is no
//! longer needed sleeps. It is the first to be woken when a worker blocks again, and leaves after the keep-alive like any
//! other.
//!
//! # Which waits count
//!
//! | wait | counts | why |
//! |---|---|---|
//! | a call of ours that parks: queue, handle, sleep, scope of threads, `install` in another pool | yes | the core is free, and the wait may be for something that is queued here |
//! | [`blocking`](super::blocking()) | yes | it says so |
//! | a join or a scope whose jobs others run, with nothing to help with | yes | helping is narrow (HELP-3), so the core would idle although tasks are queued |
//! | sleeping without work | no | it runs nothing |
//! | spinning before a park | no | it is over soon |
//!
//! Helping comes first: a job that is published for a waiting worker wakes that worker, and no spare. A thread is started only
//! if work is visible that no other worker takes. So the number of spares follows the work, and no rate limit is needed: a
//! storm of blocking tasks starts at most `max_spares` threads for each keep-alive.
//!
//! # Invariants
//!
//! A worker *runs* if it is counted and neither sleeps, nor is blocked, nor waits in a join.
//!
//! - **SPARE-1** A worker is woken or started only while fewer workers run than the parallelism says. A worker that comes
//!   back from a block goes on at once. Then too many may run, until one of them has done its work.
//! - **SPARE-2** A worker that stops running (it falls asleep, blocks, waits, leaves) has a fence after that step, and then
//!   looks for visible work. If there is some and too few workers run, it goes on itself, or rouses another.
//! - **SPARE-3** There are no more workers than the parallelism and `max_spares` together. At that bound a blocked worker
//!   is not replaced. Nothing fails: queued work waits until a worker comes back.
//! - **SPARE-4** A worker that blocks, or runs another job inside of one, has no private jobs: it publishes them first. So
//!   they do not wait for it. And every job in the private list belongs to what the worker runs now; the marks for
//!   leapfrogging need that (HELP-2).
//! - **SPARE-5** Code that a worker runs in order to be replaced (a thread factory, a listener of events) waits through a
//!   block of its own. So it takes no token that is meant for the wait of the task.
//!
//! # Why no work is forgotten
//!
//! A thread that has made work visible relies on running workers if there are enough of them (FORKJOIN-1). For each step of
//! SPARE-2 either that thread sees the change of the word, or the worker sees the work: both have a fence between their
//! write and their read (`[S-word]` in [`super::sleep`], `[C-all]` in [`crate::engine`]). The step whose fence is last sees
//! the work and all other steps, and its worker acts.
//!
//! If a thread could not be started, the next submit or block tries again. Until then the work waits, as at the bound.

use super::engine::ForkJoinEngine;
use super::events::ForkJoinEvent;
use super::sleep::Idle;
use crate::engine::events::EventSource;
use crate::engine::metrics::Counter;
use crate::engine::{Ctl, WorkerEngine};
use millpond_raw::sync::Mutex;
use millpond_raw::sync::atomic::{AtomicUsize, Ordering};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The default of `max_spares`.
pub(super) const DEFAULT_MAX_SPARES: usize = 16;

/// The most spares that a pool can have.
pub(super) const MAX_SPARES: usize = 256;

/// The least time between two events about missing spares.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// What a pool knows of its spares.
#[derive(Default)]
pub(super) struct Spares {
    /// How many spares stay and sleep when they are not needed. Raised when one is started, lowered when one leaves.
    kept: AtomicUsize,
    /// How often work had to wait because all spares were in use.
    pub(super) exhausted: Counter,
    told_at: Mutex<Option<Instant>>,
}

/// The workers that run something without waiting, that search, or that have been counted and will start.
fn running(ctl: Ctl, idle: Idle) -> usize {
    ctl.workers()
        .saturating_sub(idle.sleeping() + idle.waiting())
}

impl ForkJoinEngine {
    /// How many workers there may be at the moment (SPARE-3).
    pub(super) fn places(&self, idle: Idle) -> usize {
        self.parallelism() + idle.waiting().min(self.config.max_spares())
    }

    /// The same, plus the spares that sleep for the keep-alive.
    pub(super) fn places_to_stay(&self) -> usize {
        // Relaxed: a worker that reads an old number leaves early, or after the keep-alive.
        let kept = self.spares.kept.load(Ordering::Relaxed);
        let most = self.config.max_spares();
        self.parallelism() + self.sleep.read().waiting().max(kept).min(most)
    }

    /// Whether fewer workers run than the parallelism says, and another one can be had.
    pub(super) fn has_room(&self, idle: Idle) -> bool {
        let ctl = self.ctl().read();
        running(ctl, idle) < self.parallelism()
            && (idle.sleeping() > 0 || ctl.workers() < self.places(idle))
    }

    /// How many workers run something without waiting, or search.
    pub(super) fn running(&self) -> usize {
        running(self.ctl().read(), self.sleep.read())
    }

    /// Whether fewer workers run than the parallelism says.
    pub(super) fn lacks_runners(&self) -> bool {
        self.running() < self.parallelism()
    }

    /// Whether another worker is idle, or could be started, if the calling one waited.
    pub(super) fn has_successor(&self) -> bool {
        let (idle, ctl) = (self.sleep.read(), self.ctl().read());
        let spares = (idle.waiting() + 1).min(self.config.max_spares());
        idle.count() > 0 || ctl.workers() < self.parallelism() + spares
    }

    /// Whether more workers run than the parallelism says. Costs nothing if there are no spares.
    #[inline]
    pub(super) fn has_surplus(&self, ctl: Ctl) -> bool {
        ctl.workers() > self.parallelism()
            && ctl.is_running()
            && running(ctl, self.sleep.read()) > self.parallelism()
    }

    /// Wakes or starts a worker for visible work, unless enough run (SPARE-1). `coming` workers have just been woken by other
    /// means, and count as running. Returns whether it did. An error says that there is no worker, and none could be started.
    pub(super) fn rouse(self: &Arc<Self>, coming: usize) -> io::Result<bool> {
        let (idle, ctl) = (self.sleep.read(), self.ctl().read());
        if running(ctl, idle) + coming >= self.parallelism() {
            return Ok(false);
        }
        if idle.sleeping() > 0 && self.wake_one() {
            return Ok(true);
        }
        if ctl.workers() < self.places(idle) {
            self.start_worker()?;
            return Ok(true);
        }
        if idle.blocked() > 0 {
            self.report_exhausted(idle.blocked());
        }
        Ok(false)
    }

    /// A worker is about to be started, up to so many. If it is a spare, it may stay when it is no longer needed. The number is
    /// raised before the start, because the spare may be done before its starter goes on.
    pub(super) fn keep_spares(&self, places: usize) {
        let spares = places.saturating_sub(self.parallelism());
        self.spares.kept.fetch_max(spares, Ordering::Relaxed);
    }

    /// A worker has left. If it was a spare, one less stays.
    pub(super) fn forget_spare(&self) {
        let spares = self
            .ctl()
            .read()
            .workers()
            .saturating_sub(self.parallelism());
        // A spare that is started at this moment leaves early at worst.
        if self.spares.kept.load(Ordering::Relaxed) > spares {
            self.spares.kept.store(spares, Ordering::Relaxed);
        }
    }

    /// The limits have changed. Spares that are not needed leave at once.
    pub(super) fn release_spares(&self) {
        self.spares.kept.store(0, Ordering::Relaxed);
    }

    /// Work is visible, too few workers run, and all spares are in use.
    #[cold]
    fn report_exhausted(self: &Arc<Self>, blocked: usize) {
        self.spares.exhausted.add(1);
        let now = self.clock.now();
        {
            let mut told_at = self.spares.told_at.lock();
            let is_early = |told: Instant| now.saturating_duration_since(told) < TELL_EVERY;
            if told_at.is_some_and(is_early) {
                return;
            }
            *told_at = Some(now);
        }
        let (pool, max_spares) = (self.name.to_string(), self.config.max_spares());
        self.emit(move |_| ForkJoinEvent::SparesExhausted {
            pool,
            blocked,
            max_spares,
        });
    }
}
