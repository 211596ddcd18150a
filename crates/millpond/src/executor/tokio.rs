//! The blocking threads of a tokio runtime as an executor.

use super::runner::{Runner, UncaughtPanic};
use super::{Executor, Rejected, TryExecuteError};
use crate::task::Task;
use tokio::runtime::Handle;

/// Runs tasks with `spawn_blocking` of a tokio runtime.
///
/// The tasks may block, as all tasks of millpond may; they never touch the runtime's async workers.
/// tokio queues without a bound, so nothing is rejected. A task that comes after the runtime has
/// been shut down, or that is still queued then, is dropped by tokio: its handle is cancelled.
///
/// ```
/// use millpond::executor::{ExecutorExt, TokioExecutor};
///
/// let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// let blocking = TokioExecutor::new(runtime.handle().clone());
/// let handle = blocking.submit(|| 6 * 7)?;
/// assert_eq!(runtime.block_on(handle)?, 42);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct TokioExecutor {
    runtime: Handle,
    runner: Runner,
}

impl TokioExecutor {
    /// Runs tasks on the blocking threads of this runtime.
    pub fn new(runtime: Handle) -> Self {
        TokioExecutor {
            runtime,
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

impl Executor for TokioExecutor {
    fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        let runner = self.runner.clone();
        drop(self.runtime.spawn_blocking(move || runner.run(task)));
        Ok(())
    }

    // The submitter neither waits nor runs the task.
    fn try_execute_task(&self, task: Task) -> Result<(), TryExecuteError> {
        self.execute_task(task).map_err(TryExecuteError::Rejected)
    }
}
