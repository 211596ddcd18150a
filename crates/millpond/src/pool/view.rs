//! Looking into a pool: its metrics, and what each worker does now.

use super::ThreadPool;
use super::engine::PoolEngine;
use super::worker::Worker;
use crate::engine::metrics::{Label, LabelId, Metrics, TaskMetrics};
use crate::task::Task;
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
    /// The task that it runs; `None` if it is idle.
    pub task: Option<CurrentTask>,
    /// The time that it has spent on a CPU. Linux only.
    pub cpu: Option<Duration>,
    /// The time that it was ready to run and had no CPU. Linux only, and only if the kernel counts that.
    pub waited_for_cpu: Option<Duration>,
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
            None => f.write_str(": idle")?,
            Some(task) => {
                write!(f, ": runs {} for {:.1?}", task.label, task.running_for)?;
                if let (Label::Name(_), Some(place)) = (&task.label, task.location) {
                    write!(f, ", made at {place}")?;
                }
            }
        }
        if let Some(cpu) = self.cpu {
            write!(f, "; {cpu:.1?} of CPU in {:.1?}", self.age)?;
        }
        Ok(())
    }
}

impl ThreadPool {
    /// Metrics of all tasks together. Readers reset nothing.
    ///
    /// A task is counted when its worker is done with it, which is a moment after its handle is.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::pool::ThreadPool;
    ///
    /// let pool = ThreadPool::builder("mill").core(1).build()?;
    /// for _ in 0..10 {
    ///     pool.execute(|| ())?;
    /// }
    /// pool.close()?;
    /// let metrics = pool.metrics();
    /// assert_eq!(metrics.completed, 10);
    /// println!("waited {:?}, ran {:?}", metrics.wait, metrics.run);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn metrics(&self) -> Metrics {
        let mut sum = Metrics::default();
        for named in self.metrics_by_name() {
            sum.merge(&named.metrics);
        }
        sum
    }

    /// Metrics of each name by itself; tasks without a name are counted under the source location where they were made.
    /// Names whose tasks ran longest in total come first.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::pool::ThreadPool;
    /// use millpond::task::TaskSpec;
    ///
    /// let pool = ThreadPool::builder("mill").core(1).build()?;
    /// pool.submit_with(TaskSpec::new().name("grind"), || 7)?.join()?;
    /// pool.close()?;
    /// let all = pool.metrics_by_name();
    /// assert_eq!(all[0].label.to_string(), "grind");
    /// assert_eq!(all[0].metrics.completed, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn metrics_by_name(&self) -> Vec<TaskMetrics> {
        self.engine.metrics_by_name()
    }

    /// The stack of each worker, by function and line, in the order of [`workers`](ThreadPool::workers). No thread is
    /// stopped. Needs the feature `stack-dump`; otherwise, or if a thread does not answer, the text says why there is none.
    ///
    /// ```
    /// use millpond::preset;
    ///
    /// let pool = preset::fixed("mill", 2).build()?;
    /// pool.prestart_all_core()?;
    /// assert_eq!(pool.stacks().len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stacks(&self) -> Vec<String> {
        if self.engine.is_forked() {
            return Vec::new();
        }
        let workers = self.engine.with_workers(|workers| workers.list());
        self.engine.stacks_of(&workers)
    }

    /// What each worker does now: its thread, its task, for how long, and the CPU time it has used.
    ///
    /// ```
    /// use millpond::preset;
    ///
    /// let pool = preset::fixed("mill", 2).build()?;
    /// pool.prestart_all_core()?;
    /// for worker in pool.workers() {
    ///     assert!(worker.to_string().contains("idle"), "{worker}");
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn workers(&self) -> Vec<WorkerView> {
        let engine = &*self.engine;
        if engine.is_forked() {
            return Vec::new();
        }
        let workers = engine.with_workers(|workers| workers.list());
        let now = engine.timestamps.now();
        let views = workers.iter().map(|worker| engine.view(worker, now));
        views.collect()
    }
}

impl PoolEngine {
    pub(super) fn metrics_by_name(&self) -> Vec<TaskMetrics> {
        let names = self.labels.as_ref().filter(|_| !self.is_forked());
        let Some(names) = names else {
            return Vec::new();
        };
        self.renew_labels();
        // The sums first: a label is in the table before anything is counted under it.
        let mut sums = self.with_workers(|workers| workers.metrics());
        let named = names.all().into_iter().map(|known| {
            let rejected = self.rejections.of(known.id).all() + known.rejected_more;
            let metrics = Metrics {
                rejected: rejected.saturating_sub(known.rejected_less),
                ..sums.take(known.id)
            };
            TaskMetrics {
                label: known.label,
                labels: known.labels,
                metrics,
            }
        });
        let mut all: Vec<_> = named.collect();
        // The others come first, and get what belongs to no label any more.
        all[0].metrics.merge(&sums.rest());
        all.retain(|named| named.metrics != Metrics::default());
        all.sort_by_key(|named| std::cmp::Reverse(named.metrics.run.total()));
        all
    }

    /// Lets idle labels make room for others.
    pub(super) fn renew_labels(&self) {
        let Some(names) = &self.labels else { return };
        if !names.may_renew() {
            return;
        }
        let workers = self.with_workers(|workers| workers.list());
        let running = workers.iter().filter_map(|one| one.metrics.running());
        let running: Vec<LabelId> = running.map(|running| running.id).collect();
        let rejected = |id| self.rejections.of(id).all();
        names.renew(self.clock.now(), &running, rejected);
    }

    pub(super) fn view(&self, worker: &Worker, now: Timestamp) -> WorkerView {
        let thread = worker.thread();
        let tid = thread.and_then(|thread| thread.tid);
        let since = |tick| Duration::from_nanos(self.timestamps.nanos(tick, now));
        let task = worker.metrics.running().map(|running| CurrentTask {
            label: self.label(running.id),
            location: running.location,
            running_for: since(running.since),
        });
        WorkerView {
            number: worker.number(),
            thread: thread.and_then(|thread| thread.name.clone()),
            tid,
            age: thread.map_or(Duration::ZERO, |thread| since(thread.started)),
            task,
            cpu: tid.and_then(cpu_time::cpu_time_of),
            waited_for_cpu: tid
                .and_then(cpu_time::schedstat_of)
                .map(|had| had.waiting_for_cpu),
        }
    }

    /// The label that a task is counted under.
    pub(super) fn label_of(&self, task: &Task) -> Label {
        match task.name() {
            Some(name) => Label::Name(name.into()),
            None => Label::Place(task.location()),
        }
    }

    pub(super) fn label(&self, id: LabelId) -> Label {
        let names = self.labels.as_ref();
        names.map_or(Label::Others, |names| names.label(id))
    }
}
