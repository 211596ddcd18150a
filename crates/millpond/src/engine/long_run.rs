//! Tasks that run longer than they should, as their operator hears of them.

use super::metrics::Label;
use super::stacks::{self, Seen};
use super::view::WorkerView;
use super::watchdog::{Overrun, Supervised};
use super::workers::Worker;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

/// A task that runs longer than it should.
///
/// ```
/// use millpond::executor::{ExecutorExt, Lifecycle};
/// use millpond::pool::{PoolEvent, RunWarning, ThreadPool};
/// use std::sync::mpsc;
/// use std::time::Duration;
///
/// let (tell, told) = mpsc::channel();
/// let limit = Duration::from_millis(20);
/// let pool = ThreadPool::builder("mill").core(1).run_warning(RunWarning::after(limit));
/// let pool = pool.on_event(move |event| drop(tell.send(event.clone()))).build()?;
/// let (say, hear) = mpsc::channel::<()>();
/// pool.execute(move || drop(hear.recv()))?;
/// let PoolEvent::LongRunning(run) = told.recv()? else { panic!("nothing else has happened") };
/// assert!(run.running_for >= limit && !run.is_interrupted);
/// drop(say);
/// pool.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LongRun {
    /// The name of the pool.
    pub pool: String,
    /// The name of the task, or the location where it was created.
    pub label: Label,
    /// The location where it was created.
    pub location: Option<&'static Location<'static>>,
    /// How long it has been running.
    pub running_for: Duration,
    /// The limit that it exceeds.
    pub limit: Duration,
    /// True if it has been interrupted for that.
    pub is_interrupted: bool,
    /// The worker that runs it.
    pub worker: WorkerView,
    /// The stack when the task was found to run too long. Needs the feature `stack-dump`; otherwise it says so, and
    /// so it does if the task ended before its stack could be taken.
    pub stack: String,
}

impl fmt::Display for LongRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} has been running for {:.1?}, its limit is {:.1?}{}\n  {}",
            self.pool,
            self.label,
            self.running_for,
            self.limit,
            if self.is_interrupted {
                ", and has been interrupted"
            } else {
                ""
            },
            self.worker,
        )?;
        indented(f, &self.stack)
    }
}

/// Lines below the one before.
pub(crate) fn indented(f: &mut fmt::Formatter<'_>, lines: &str) -> fmt::Result {
    for line in lines.lines() {
        write!(f, "\n      {line}")?;
    }
    Ok(())
}

/// Reports a task that runs too long. It does not take long: this may be the timer's thread.
pub(super) fn report<E: Supervised>(
    engine: &Arc<E>,
    worker: &Arc<Worker<E::Part>>,
    overrun: Overrun,
) {
    let Overrun {
        running,
        label,
        running_for,
        limit,
        is_interrupted,
        now,
    } = overrun;
    let run = LongRun {
        pool: engine.name().to_owned(),
        label,
        location: running.location,
        running_for,
        limit,
        is_interrupted,
        worker: engine.view(worker, now),
        stack: String::new(),
    };
    stacks::emit_long_run(engine, Seen::at(worker, Some(running.turn)), run);
}
