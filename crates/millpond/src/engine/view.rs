//! What each worker of an engine does, at one moment.

use super::metrics::{Label, LabelId};
use super::watchdog::SupervisedWorker;
use crate::time::TimestampClock;
use millpond_raw::cpu_time;
use millpond_raw::timestamp::Timestamp;
use std::fmt;
use std::panic::Location;
use std::time::Duration;

/// A worker and what it does, at one moment.
///
/// ```
/// use millpond::preset;
///
/// let pool = preset::fixed("mill", 1).build()?;
/// pool.prestart_all_core()?;
/// let worker = &pool.workers()[0];
/// assert_eq!(worker.number, 1);
/// assert!(worker.task.is_none(), "{worker}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WorkerView {
    /// The number of the worker; counts from 1 in each pool.
    pub number: u64,
    /// The name of its thread; `None` if the thread has no name, or has not begun.
    pub thread: Option<String>,
    /// The id of its thread, as `top -H` and a debugger show it. Linux only.
    pub tid: Option<u32>,
    /// The time since its thread began.
    pub age: Duration,
    /// Whether it is idle, runs or waits.
    pub state: WorkerState,
    /// The task that it runs; `None` if it is idle, or runs a part of a task of another worker, or if its pool measures no
    /// tasks.
    pub task: Option<CurrentTask>,
    /// The time that it has spent on a CPU. Linux only.
    pub cpu: Option<Duration>,
    /// The time that it was ready to run and had no CPU. Linux only, and only if the kernel counts that.
    pub waited_for_cpu: Option<Duration>,
}

/// What a worker does.
///
/// Workers of a [`ThreadPool`](crate::pool::ThreadPool) are idle or run something; that a task blocks is seen in a
/// [`ForkJoinPool`](crate::forkjoin::ForkJoinPool) only.
///
/// ```
/// use millpond::executor::ExecutorExt;
/// use millpond::forkjoin::{self, ForkJoinPool, WorkerState};
/// use std::sync::mpsc;
///
/// let pool = ForkJoinPool::builder("mill").build()?;
/// let ((say, hear), (begin, begun)) = (mpsc::channel::<()>(), mpsc::channel());
/// let waits = pool.submit(move || {
///     forkjoin::blocking(|| {
///         begin.send(()).ok();
///         hear.recv().ok();
///     });
/// })?;
/// begun.recv()?;
/// assert_eq!(pool.workers()[0].state, WorkerState::Blocked);
/// drop(say);
/// waits.join()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WorkerState {
    /// It has nothing to run.
    Idle,
    /// It runs a task, or a part of one.
    Running,
    /// What it runs is blocked, by a wait of millpond or inside of [`blocking`](crate::forkjoin::blocking()).
    Blocked,
    /// It waits in a join or scope for parts that others run, and has nothing to help with.
    Joining,
    /// It waits in a join or scope, and meanwhile runs parts of what it waits for.
    Helping,
}

/// The task that a worker runs.
///
/// ```
/// use millpond::executor::{ExecutorExt, Lifecycle};
/// use millpond::preset;
/// use millpond::task::TaskSpec;
/// use std::sync::mpsc;
///
/// let pool = preset::single("mill").build()?;
/// let ((say, hear), (begin, begun)) = (mpsc::channel::<()>(), mpsc::channel());
/// let grind = pool.submit_with(TaskSpec::new().name("grind"), move || {
///     begin.send(()).ok();
///     hear.recv().ok();
/// })?;
/// begun.recv()?;
/// let task = pool.workers()[0].task.clone();
/// assert_eq!(task.map(|task| task.label.to_string()).as_deref(), Some("grind"));
/// drop(say);
/// grind.join()?;
/// pool.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CurrentTask {
    /// Its name, or the place where it was made.
    pub label: Label,
    /// Where it was made.
    pub location: Option<&'static Location<'static>>,
    /// The time since it started.
    pub running_for: Duration,
}

impl fmt::Display for WorkerView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.thread {
            Some(thread) => f.write_str(thread)?,
            None => write!(f, "worker {}", self.number)?,
        }
        if let Some(tid) = self.tid {
            write!(f, " (tid {tid})")?;
        }
        match &self.task {
            None if self.state == WorkerState::Idle => f.write_str(": idle")?,
            None => f.write_str(": busy")?,
            Some(task) => {
                write!(f, ": runs {} for {:.1?}", task.label, task.running_for)?;
                if let (Label::Name(_), Some(place)) = (&task.label, task.location) {
                    write!(f, ", made at {place}")?;
                }
            }
        }
        f.write_str(match self.state {
            WorkerState::Idle | WorkerState::Running => "",
            WorkerState::Blocked => ", blocked",
            WorkerState::Joining => ", waits for parts that others run",
            WorkerState::Helping => ", runs parts of what it waits for",
        })?;
        if let Some(cpu) = self.cpu {
            write!(f, "; {cpu:.1?} of CPU in {:.1?}", self.age)?;
        }
        Ok(())
    }
}

impl WorkerView {
    pub(super) fn of<W: SupervisedWorker>(
        worker: &W,
        timestamps: &TimestampClock,
        label: impl FnOnce(LabelId) -> Label,
        now: Timestamp,
    ) -> Self {
        let thread = worker.thread();
        let tid = thread.and_then(|thread| thread.tid);
        let since = |tick| Duration::from_nanos(timestamps.nanos(tick, now));
        let (state, running) = (worker.state(), worker.running());
        let task = running.map(|running| CurrentTask {
            label: label(running.id),
            location: running.location,
            running_for: since(running.since),
        });
        WorkerView {
            number: worker.number(),
            thread: thread.and_then(|thread| thread.name.clone()),
            tid,
            age: thread.map_or(Duration::ZERO, |thread| since(thread.started)),
            state: match state {
                WorkerState::Idle if task.is_some() => WorkerState::Running,
                state => state,
            },
            task,
            cpu: tid.and_then(cpu_time::cpu_time_of),
            waited_for_cpu: tid
                .and_then(cpu_time::schedstat_of)
                .map(|had| had.waiting_for_cpu),
        }
    }
}
