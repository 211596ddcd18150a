//! The events of a pool: what happened, and what is needed to see why.
//!
//! They are queued and delivered by [`crate::engine::events`], to the listener that
//! [`PoolBuilder::on_event`](super::PoolBuilder::on_event) sets.

use super::PoolSnapshot;
use super::engine::PoolEngine;
use crate::engine::dropped::{DropSource, DroppedDetached, Drops};
#[cfg(feature = "tracing")]
use crate::engine::events::LogFields;
use crate::engine::events::{EventSource, Events, LogEvent};
use crate::engine::long_run::{LongRun, indented};
use crate::engine::stacks::{self, Seen};
use crate::engine::view::WorkerView;
use crate::engine::watchdog::Supervised;
use crate::executor::RejectReason;
use crate::task::Cycle;
use crate::time::Clock;
use millpond_raw::sync::Mutex;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// An event that the operator of a pool should know of.
///
/// ```
/// use millpond::pool::{PoolEvent, ThreadPool};
///
/// let pool = ThreadPool::builder("mill")
///     .on_event(|event: &PoolEvent| eprintln!("{event}"))
///     .build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum PoolEvent {
    /// Tasks are rejected ([`RejectionPolicy::Report`](super::RejectionPolicy::Report)).
    Rejected(Box<RejectionReport>),
    /// A task runs longer than it should ([`RunWarning`](super::RunWarning)).
    LongRunning(Box<LongRun>),
    /// Accepted tasks without a handle were dropped before they ran.
    DroppedDetached(Box<DroppedDetached>),
    /// Tasks waited for each other in a cycle. The join that closed it returned an error.
    Deadlock {
        /// The name of the pool that runs the task whose join failed.
        pool: String,
        /// The tasks, each of which waited for the next.
        cycle: Cycle,
    },
    /// Tasks waited although workers were idle, and the watchdog woke the workers. This must not happen: it is a
    /// bug of the queue, which may be the user's, or of millpond.
    LostWakeup {
        /// The name of the pool.
        pool: String,
        /// The number of tasks that waited.
        queued: usize,
    },
    /// Events were dropped, because the listener did not keep up with them, or because there is none and they would
    /// have flooded the log.
    Dropped {
        /// The name of the pool.
        pool: String,
        /// The number dropped since the last event of this kind.
        events: u64,
    },
}

/// Why tasks are rejected: a snapshot of the pool, what its workers do, and their stacks.
///
/// ```
/// use millpond::executor::{ExecutorExt, Lifecycle};
/// use millpond::pool::{PoolEvent, Queue, RejectionPolicy, ThreadPool};
/// use std::sync::mpsc;
/// use std::time::Duration;
///
/// let (tell, told) = mpsc::channel();
/// let at_most_every = Duration::from_secs(60);
/// let pool = ThreadPool::builder("mill").core(1).max(1).queue(Queue::hand_off());
/// let pool = pool.rejection(RejectionPolicy::Report { at_most_every });
/// let pool = pool.on_event(move |event| drop(tell.send(event.clone()))).build()?;
/// let (say, hear) = mpsc::channel::<()>();
/// pool.execute(move || drop(hear.recv()))?;
/// assert!(pool.execute(|| ()).is_err());
/// let PoolEvent::Rejected(report) = told.recv()? else { panic!("nothing else has happened") };
/// assert_eq!((report.rejections, report.snapshot.workers), (1, 1));
/// drop(say);
/// pool.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RejectionReport {
    /// Why the last task was rejected.
    pub reason: String,
    /// The name of the last task, or the location where it was created.
    pub label: String,
    /// The number of rejections since the last report, this one included.
    pub rejections: u64,
    /// The pool.
    pub snapshot: PoolSnapshot,
    /// What its workers do.
    pub workers: Vec<WorkerView>,
    /// The stacks of the workers, in the same order. Needs the feature `stack-dump`; otherwise each text says so, as
    /// does that of a worker that went on to another task before its stack could be taken.
    pub stacks: Vec<String>,
}

impl fmt::Display for PoolEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PoolEvent::Rejected(report) => report.fmt(f),
            PoolEvent::LongRunning(run) => run.fmt(f),
            PoolEvent::DroppedDetached(report) => report.fmt(f),
            PoolEvent::Deadlock { pool, cycle } => write!(
                f,
                "{pool}: deadlock: {cycle}. The first of them got an error instead of waiting for ever"
            ),
            PoolEvent::LostWakeup { pool, queued } => write!(
                f,
                "{pool}: {queued} tasks waited although workers were idle; the workers have been woken. If \
                 the queue is not your own, please report this as a bug of millpond"
            ),
            PoolEvent::Dropped { pool, events } => write!(
                f,
                "{pool}: {events} more events were dropped, because they came too fast"
            ),
        }
    }
}

impl LogEvent for PoolEvent {
    #[cfg(feature = "tracing")]
    fn fields(&self) -> LogFields {
        match self {
            PoolEvent::Rejected(report) => LogFields::new("rejected", &report.snapshot.name)
                .task(&report.label)
                .reason(&report.reason)
                .count(report.rejections),
            PoolEvent::LongRunning(run) => LogFields::of_long_run(run),
            PoolEvent::DroppedDetached(report) => LogFields::of_dropped(report),
            PoolEvent::Deadlock { pool, cycle } => LogFields::new("deadlock", pool).reason(cycle),
            PoolEvent::LostWakeup { pool, queued } => {
                LogFields::new("lost_wakeup", pool).count(*queued as u64)
            }
            PoolEvent::Dropped { pool, events } => {
                LogFields::new("events_dropped", pool).count(*events)
            }
        }
    }
}

impl fmt::Display for RejectionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RejectionReport {
            reason,
            label,
            rejections,
            snapshot,
            workers,
            ..
        } = self;
        write!(f, "{snapshot}: rejected {label}: {reason}")?;
        if *rejections > 1 {
            write!(f, " ({rejections} rejections since the last report)")?;
        }
        let mut stacks = self.stacks.iter();
        for worker in workers {
            write!(f, "\n  {worker}")?;
            if let Some(stack) = stacks.next() {
                indented(f, stack)?;
            }
        }
        Ok(())
    }
}

/// Limits how often rejections are reported, and counts those that were not.
#[derive(Debug, Default)]
pub(super) struct Reports {
    state: Mutex<ReportState>,
}

#[derive(Debug, Default)]
struct ReportState {
    /// The tick of the last report.
    last: Option<u64>,
    rejections: u64,
}

impl EventSource for PoolEngine {
    type Event = PoolEvent;

    fn events(&self) -> &Events<Self> {
        &self.events
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }

    fn dropped_events(&self, events: u64) -> PoolEvent {
        let pool = self.name.to_string();
        PoolEvent::Dropped { pool, events }
    }
}

impl DropSource for PoolEngine {
    fn name(&self) -> &str {
        &self.name
    }

    fn drops(&self) -> &Drops {
        &self.dropped
    }

    fn dropped_detached(report: DroppedDetached) -> PoolEvent {
        PoolEvent::DroppedDetached(Box::new(report))
    }
}

impl PoolEngine {
    /// Reports that a task was rejected, at most once in `every`.
    pub(super) fn report_refusal(
        self: &Arc<Self>,
        reason: &RejectReason,
        label: &dyn Fn() -> String,
        every: Duration,
    ) {
        let now = self.timestamps.now();
        let rejections = {
            let mut state = self.reports.state.lock();
            state.rejections += 1;
            let pause = self.timestamps.ticks(every);
            if state
                .last
                .is_some_and(|last| now.count() >= last && now.count() - last < pause)
            {
                return;
            }
            state.last = Some(now.count());
            std::mem::take(&mut state.rejections)
        };
        let workers = self.with_workers(|workers| workers.list());
        let seen: Vec<_> = workers.iter().map(Seen::now).collect();
        let report = RejectionReport {
            reason: reason.to_string(),
            label: label(),
            rejections,
            snapshot: self.snapshot(),
            workers: workers
                .iter()
                .map(|worker| self.view(worker, now))
                .collect(),
            stacks: Vec::new(),
        };
        self.emit(move |_| {
            let stacks = stacks::of_seen(&seen);
            PoolEvent::Rejected(Box::new(RejectionReport { stacks, ..report }))
        });
    }
}
