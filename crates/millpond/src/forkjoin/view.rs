//! Looking into a pool: its metrics, and what each worker does now.

use super::ForkJoinPool;
use crate::engine::metrics::{Metrics, TaskMetrics};
use crate::engine::view::WorkerView;
use crate::engine::watchdog::Supervised;

impl ForkJoinPool {
    /// What each worker does now: its thread, its task, for how long, whether it waits, and the CPU time it has used.
    ///
    /// ```
    /// use millpond::executor::ExecutorExt;
    /// use millpond::forkjoin::{ForkJoinPool, WorkerState};
    /// use millpond::task::TaskSpec;
    /// use std::sync::mpsc;
    ///
    /// let pool = ForkJoinPool::builder("mill").parallelism(1).build()?;
    /// let ((say, hear), (begin, begun)) = (mpsc::channel::<()>(), mpsc::channel());
    /// let grind = pool.submit_with(TaskSpec::new().name("grind"), move || {
    ///     begin.send(()).ok();
    ///     hear.recv().ok();
    /// })?;
    /// begun.recv()?;
    /// let worker = &pool.workers()[0];
    /// assert_eq!(worker.state, WorkerState::Running);
    /// assert!(worker.to_string().contains("runs grind for"), "{worker}");
    /// drop(say);
    /// grind.join()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn workers(&self) -> Vec<WorkerView> {
        self.engine.views()
    }

    /// The stack of each worker, by function and line, in the order of [`workers`](ForkJoinPool::workers). No thread is
    /// stopped. Needs the feature `stack-dump`; otherwise, or if a thread does not answer, the text says why there is none.
    ///
    /// ```
    /// use millpond::executor::ExecutorExt;
    /// use millpond::forkjoin::ForkJoinPool;
    ///
    /// let pool = ForkJoinPool::builder("mill").parallelism(1).build()?;
    /// pool.submit(|| 7)?.join()?;
    /// assert_eq!(pool.stacks().len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stacks(&self) -> Vec<String> {
        self.engine.stacks()
    }

    /// Metrics of all tasks together. Readers reset nothing.
    ///
    /// A task is counted when its worker is done with it, which is a moment after its handle is. Jobs of
    /// [`install`](ForkJoinPool::install), joins and scopes are parts of what has made them, and are in no metrics.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::forkjoin::ForkJoinPool;
    ///
    /// let pool = ForkJoinPool::builder("mill").build()?;
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
    /// use millpond::forkjoin::ForkJoinPool;
    /// use millpond::task::TaskSpec;
    ///
    /// let pool = ForkJoinPool::builder("mill").build()?;
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
}
