//! Looking into a pool: its figures, and what each worker does now.

use super::ThreadPool;
use super::crew::Worker;
use super::engine::Engine;
use super::figures::{Figures, Id, Label, NamedFigures};
use crate::task::Task;
use millpond_raw::tick::Tick;
use millpond_raw::usage;
use std::fmt;
use std::panic::Location;
use std::time::Duration;

/// What a worker does, as it was at one moment.
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
    /// Counts up from 1 in each pool.
    pub number: u64,
    /// What its thread is called; `None` if it has no name, or has not begun.
    pub thread: Option<String>,
    /// The number of its thread, as `top -H` and a debugger show it. Linux only.
    pub tid: Option<u32>,
    /// For how long it has been there.
    pub age: Duration,
    /// What it runs; `None` if it rests.
    pub task: Option<CurrentTask>,
    /// How much time it has spent on a CPU. Linux only.
    pub cpu: Option<Duration>,
    /// How long it has waited for a CPU although it wanted to run. Linux only, and only if the kernel
    /// keeps that figure.
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
/// let grind = pool.submit_spec(TaskSpec::new().name("grind"), move || {
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
    pub made_at: Option<&'static Location<'static>>,
    /// For how long it has been running.
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
                if let (Label::Name(_), Some(place)) = (&task.label, task.made_at) {
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
    /// What has been counted and measured of all tasks together. Readers reset nothing.
    ///
    /// A task is in here when its worker is done with it, which is a moment after its handle is.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::pool::ThreadPool;
    ///
    /// let pool = ThreadPool::builder("mill").core(1).build()?;
    /// for _ in 0..10 {
    ///     pool.run(|| ())?;
    /// }
    /// pool.close()?;
    /// let figures = pool.figures();
    /// assert_eq!(figures.completed, 10);
    /// println!("waited {:?}, ran {:?}", figures.wait, figures.run);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn figures(&self) -> Figures {
        let mut sum = Figures::default();
        for named in self.figures_by_name() {
            sum.merge(&named.figures);
        }
        sum
    }

    /// The same, of each name by itself; tasks without a name count under the place where they were
    /// made. Those that ran longest altogether come first.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::pool::ThreadPool;
    /// use millpond::task::TaskSpec;
    ///
    /// let pool = ThreadPool::builder("mill").core(1).build()?;
    /// pool.submit_spec(TaskSpec::new().name("grind"), || 7)?.join()?;
    /// pool.close()?;
    /// let all = pool.figures_by_name();
    /// assert_eq!(all[0].label.to_string(), "grind");
    /// assert_eq!(all[0].figures.completed, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn figures_by_name(&self) -> Vec<NamedFigures> {
        self.engine.figures_by_name()
    }

    /// Where each worker is now: its stack, by function and line, in the order of
    /// [`workers`](ThreadPool::workers). Nobody is stopped. Needs the feature `stack-dump`; otherwise, or if
    /// a thread does not answer, each text says why there is nothing.
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
        let workers = self.engine.with_crew(|crew| crew.workers());
        self.engine.stacks_of(&workers)
    }

    /// What each worker does now: its thread, its task and since when, and what it has used of the CPU.
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
        let workers = engine.with_crew(|crew| crew.workers());
        let now = engine.ticker.now();
        let views = workers.iter().map(|worker| engine.view(worker, now));
        views.collect()
    }
}

impl Engine {
    pub(super) fn figures_by_name(&self) -> Vec<NamedFigures> {
        let names = self.names.as_ref().filter(|_| !self.is_forked());
        let Some(names) = names else {
            return Vec::new();
        };
        // The sums first: a label is known before anything is counted under it.
        let mut sums = self.with_crew(|crew| crew.figures());
        let labels = names.all();
        sums.resize_with(labels.len(), Figures::default);
        let all = labels.into_iter().zip(sums).map(|((id, label), sum)| {
            let refused = self.refusals.of(id).all();
            let figures = Figures { refused, ..sum };
            NamedFigures { label, figures }
        });
        let mut all: Vec<_> = all
            .filter(|named| named.figures != Figures::default())
            .collect();
        all.sort_by_key(|named| std::cmp::Reverse(named.figures.run.total()));
        all
    }

    pub(super) fn view(&self, worker: &Worker, now: Tick) -> WorkerView {
        let face = worker.face.get();
        let tid = face.and_then(|face| face.tid);
        let since = |tick| Duration::from_nanos(self.ticker.nanos(tick, now));
        let task = worker.ledger.now_running().map(|running| CurrentTask {
            label: self.label(running.id),
            made_at: running.made_at,
            running_for: since(running.since),
        });
        WorkerView {
            number: worker.number(),
            thread: face.and_then(|face| face.thread.clone()),
            tid,
            age: face.map_or(Duration::ZERO, |face| since(face.began)),
            task,
            cpu: tid.and_then(usage::cpu_time_of),
            waited_for_cpu: tid
                .and_then(usage::schedstat_of)
                .map(|had| had.waiting_for_cpu),
        }
    }

    /// What a task counts under.
    pub(super) fn label_of(&self, task: &Task) -> Label {
        match task.name() {
            Some(name) => Label::Name(name.into()),
            None => Label::Place(task.made_at()),
        }
    }

    pub(super) fn label(&self, id: Id) -> Label {
        let names = self.names.as_ref();
        names.map_or(Label::Others, |names| names.label(id))
    }
}
