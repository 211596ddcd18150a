//! The executor that runs everything at once, in the caller.

use super::uncaught::{Runner, UncaughtPanic};
use super::{Executor, Rejected};
use crate::task::Task;
use crate::time::Clock;

/// Runs each task in the thread that brings it, before `execute` returns.
///
/// It never refuses. It is for tests, for callers that must not hand work on, and as the simplest
/// executor there is. A task that brings another one runs it inside itself.
///
/// ```
/// use millpond::executor::{DirectExecutor, ExecutorExt};
///
/// let here = std::thread::current().id();
/// let handle = DirectExecutor::new().submit(move || std::thread::current().id() == here)?;
/// assert!(handle.is_finished());
/// assert!(handle.join()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct DirectExecutor {
    runner: Runner,
    clock: Clock,
}

impl DirectExecutor {
    /// Runs tasks in their callers.
    pub fn new() -> Self {
        Self::default()
    }

    /// The clock by which its time-outs run.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// What to do with the panic of a task that has no handle. Left alone it goes no further than
    /// the program's panic hook.
    #[must_use]
    pub fn on_panic(mut self, hook: impl Fn(UncaughtPanic) + Send + Sync + 'static) -> Self {
        self.runner = Runner::with_hook(hook);
        self
    }
}

impl Executor for DirectExecutor {
    fn execute(&self, task: Task) -> Result<(), Rejected<Task>> {
        self.runner.run(task);
        Ok(())
    }

    fn clock(&self) -> Clock {
        self.clock.clone()
    }
}
