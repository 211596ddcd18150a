//! Looking into a pool: its metrics, and what each worker does now.

use super::ThreadPool;
use super::engine::PoolEngine;
use crate::engine::metrics::{Label, Metrics, TaskMetrics};
use crate::engine::view::WorkerView;
use crate::engine::watchdog::Supervised;
use crate::task::Task;

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
        Metrics::sum(&self.metrics_by_name())
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
        self.engine.stacks()
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
        self.engine.views()
    }
}

impl PoolEngine {
    /// The label that a task is counted under.
    pub(super) fn label_of(&self, task: &Task) -> Label {
        match task.name() {
            Some(name) => Label::Name(name.into()),
            None => Label::Place(task.location()),
        }
    }
}
