//! The executor that runs every task at once, in the caller.

use super::runner::{Runner, UncaughtPanic};
use super::{Executor, Rejected};
use crate::task::Task;
use crate::time::Clock;

/// Runs each task on the thread that submits it, before `execute` returns.
///
/// It never rejects. It is for tests, for callers that must not hand work on, and as the simplest executor there is. A
/// task that submits another one runs it inside itself.
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
    ///
    /// ```
    /// use millpond::executor::{DirectExecutor, ExecutorExt};
    /// use std::thread;
    ///
    /// let here = thread::current().id();
    /// assert_eq!(DirectExecutor::new().submit(|| thread::current().id())?.join()?, here);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// The clock of its timeouts.
    ///
    /// ```
    /// use millpond::executor::{DirectExecutor, Executor};
    /// use millpond::time::ManualClock;
    ///
    /// let hand = ManualClock::new();
    /// let direct = DirectExecutor::new().clock(hand.clock());
    /// assert_eq!(Executor::clock(&direct).now(), hand.clock().now());
    /// ```
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// The hook for panics of tasks without a handle. Default: only the program's panic hook sees them.
    ///
    /// ```
    /// use millpond::executor::{DirectExecutor, ExecutorExt};
    /// use std::sync::mpsc;
    ///
    /// let (tell, told) = mpsc::channel();
    /// let direct = DirectExecutor::new().on_panic(move |panic| drop(tell.send(panic.into_panic())));
    /// direct.execute(|| panic!("the dam broke"))?;
    /// assert_eq!(told.recv()?.message(), Some("the dam broke"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn on_panic(mut self, hook: impl Fn(UncaughtPanic) + Send + Sync + 'static) -> Self {
        self.runner = Runner::with_hook(hook);
        self
    }
}

impl Executor for DirectExecutor {
    fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        self.runner.run(task);
        Ok(())
    }

    fn clock(&self) -> Clock {
        self.clock.clone()
    }
}
