//! Events of a pool, for its operator.

use super::engine::ForkJoinEngine;
use crate::engine::dropped::{DropSource, DroppedDetached, Drops};
#[cfg(feature = "tracing")]
use crate::engine::events::LogFields;
use crate::engine::events::{EventSource, Events, LogEvent};
use crate::engine::long_run::LongRun;
use crate::task::Cycle;
use crate::time::Clock;
use std::fmt;
use std::sync::Arc;

/// What an operator of a pool should know: see [`ForkJoinBuilder::on_event`](super::ForkJoinBuilder::on_event).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ForkJoinEvent {
    /// A task runs longer than it should ([`RunWarning`](super::RunWarning)).
    LongRunning(Box<LongRun>),
    /// Detached tasks were accepted and dropped before they ran.
    DroppedDetached(Box<DroppedDetached>),
    /// Tasks joined each other in a cycle. One of them got an error instead of waiting for ever.
    #[non_exhaustive]
    Deadlock {
        /// The name of the pool.
        pool: String,
        /// The tasks of the cycle, each with the one that it joins.
        cycle: Cycle,
    },
    /// Workers are blocked, work waits, and there are as many spares as there may be. It is told at most every ten
    /// seconds.
    #[non_exhaustive]
    SparesExhausted {
        /// The name of the pool.
        pool: String,
        /// Workers that are blocked.
        blocked: usize,
        /// How many spares there may be.
        max_spares: usize,
    },
    /// Tasks waited although workers were idle, and the watchdog woke the workers. This must not happen: it is a bug of
    /// millpond.
    #[non_exhaustive]
    LostWakeup {
        /// The name of the pool.
        pool: String,
        /// The number of tasks and jobs that waited.
        queued: usize,
    },
    /// Events were dropped, because they came too fast.
    #[non_exhaustive]
    Dropped {
        /// The name of the pool.
        pool: String,
        /// The number dropped since the last event of this kind.
        events: u64,
    },
}

impl fmt::Display for ForkJoinEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ForkJoinEvent::LongRunning(run) => run.fmt(f),
            ForkJoinEvent::DroppedDetached(report) => report.fmt(f),
            ForkJoinEvent::Deadlock { pool, cycle } => write!(
                f,
                "{pool}: deadlock: {cycle}. The first of them got an error instead of waiting for ever"
            ),
            ForkJoinEvent::SparesExhausted {
                pool,
                blocked,
                max_spares,
            } => write!(
                f,
                "{pool}: {blocked} {} blocked and work waits, but there are no more than {max_spares} spares. \
                 It waits until a worker comes back: raise max_spares, or block less in this pool",
                if *blocked == 1 {
                    "worker is"
                } else {
                    "workers are"
                }
            ),
            ForkJoinEvent::LostWakeup { pool, queued } => write!(
                f,
                "{pool}: {queued} tasks and jobs waited although workers were idle; the workers have been woken. Please \
                 report this as a bug of millpond"
            ),
            ForkJoinEvent::Dropped { pool, events } => write!(
                f,
                "{pool}: {events} more events were dropped, because they came too fast"
            ),
        }
    }
}

impl LogEvent for ForkJoinEvent {
    #[cfg(feature = "tracing")]
    fn fields(&self) -> LogFields {
        match self {
            ForkJoinEvent::LongRunning(run) => LogFields::of_long_run(run),
            ForkJoinEvent::DroppedDetached(report) => LogFields::of_dropped(report),
            ForkJoinEvent::Deadlock { pool, cycle } => {
                LogFields::new("deadlock", pool).reason(cycle)
            }
            ForkJoinEvent::SparesExhausted { pool, blocked, .. } => {
                LogFields::new("spares_exhausted", pool).count(*blocked as u64)
            }
            ForkJoinEvent::LostWakeup { pool, queued } => {
                LogFields::new("lost_wakeup", pool).count(*queued as u64)
            }
            ForkJoinEvent::Dropped { pool, events } => {
                LogFields::new("events_dropped", pool).count(*events)
            }
        }
    }
}

impl EventSource for ForkJoinEngine {
    type Event = ForkJoinEvent;

    fn events(&self) -> &Events<Self> {
        &self.events
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }

    fn dropped_events(&self, events: u64) -> ForkJoinEvent {
        let pool = self.name.to_string();
        ForkJoinEvent::Dropped { pool, events }
    }
}

impl DropSource for ForkJoinEngine {
    fn name(&self) -> &str {
        &self.name
    }

    fn drops(&self) -> &Drops {
        &self.dropped
    }

    fn dropped_detached(report: DroppedDetached) -> ForkJoinEvent {
        ForkJoinEvent::DroppedDetached(Box::new(report))
    }
}

impl ForkJoinEngine {
    /// A task of a worker was the last of a cycle of joins, and has been told.
    pub(super) fn report_deadlock(self: &Arc<Self>, cycle: &Cycle) {
        let (pool, cycle) = (self.name.to_string(), cycle.clone());
        self.watchdog.deadlocks.add(1);
        self.emit(move |_| ForkJoinEvent::Deadlock { pool, cycle });
    }
}
