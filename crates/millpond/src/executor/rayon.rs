//! A rayon pool as an executor.

use super::runner::{Runner, UncaughtPanic};
use super::{Executor, Rejected, TryExecuteError};
use crate::task::Task;
use rayon_core::ThreadPool;
use std::sync::Arc;

/// Runs tasks with `spawn` of a rayon pool.
///
/// rayon's workers are few and its queue has no bound: nothing is rejected, and tasks that block keep
/// its other work waiting.
///
/// ```
/// use millpond::executor::{ExecutorExt, RayonExecutor};
/// use std::sync::Arc;
///
/// let pool = Arc::new(rayon_core::ThreadPoolBuilder::new().num_threads(2).build()?);
/// let sum = RayonExecutor::new(Arc::clone(&pool)).submit(|| (1..=100).sum::<u32>())?;
/// assert_eq!(sum.join()?, 5050);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct RayonExecutor {
    pool: Arc<ThreadPool>,
    runner: Runner,
}

impl RayonExecutor {
    /// Runs tasks on this pool.
    pub fn new(pool: Arc<ThreadPool>) -> Self {
        RayonExecutor {
            pool,
            runner: Runner::default(),
        }
    }

    /// The hook for panics of tasks without a handle. Default: only the program's panic hook sees them.
    #[must_use]
    pub fn on_panic(mut self, hook: impl Fn(UncaughtPanic) + Send + Sync + 'static) -> Self {
        self.runner = Runner::with_hook(hook);
        self
    }
}

impl Executor for RayonExecutor {
    fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        let runner = self.runner.clone();
        self.pool.spawn(move || {
            runner.run(task);
        });
        Ok(())
    }

    // The submitter neither waits nor runs the task.
    fn try_execute_task(&self, task: Task) -> Result<(), TryExecuteError> {
        self.execute_task(task).map_err(TryExecuteError::Rejected)
    }
}
