//! Why a join has no value.

use super::{CancelReason, Cycle, Panic};
use std::error::Error;
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};

/// Why a join has no value.
///
/// ```
/// use millpond::task;
///
/// let (task, handle) = task::new(|| -> u32 { panic!("the dam broke") });
/// task.run();
/// let error = handle.join().unwrap_err();
/// assert!(error.is_panicked());
/// assert_eq!(error.to_string(), "the task panicked: the dam broke");
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum TaskError {
    /// The task panicked, with this.
    Panicked(Panic),
    /// The task will have no value, for this reason.
    Cancelled(CancelReason),
    /// The *caller* was interrupted while it waited. The task goes on.
    Interrupted,
    /// The caller's timeout ended before the task did. The task goes on.
    TimedOut,
    /// The caller, itself a task, is waited for by the very task that it wanted to wait for, directly or
    /// through others. The task goes on, and waits for the caller.
    Deadlock(Cycle),
    /// A run of a series returned this, and that was the end of the series.
    Failed(Box<dyn Error + Send + Sync>),
    /// The task was created before this process was forked, and was not finished by then. Its executor's threads are in
    /// the parent process; here it will never end.
    Forked,
}

// The caller decides what to do with the error of a run, as with the payload of a panic.
impl UnwindSafe for TaskError {}
impl RefUnwindSafe for TaskError {}

impl TaskError {
    /// Whether the task panicked.
    ///
    /// ```
    /// let (task, flour) = millpond::task::new(|| -> u32 { "rye".parse().unwrap() });
    /// task.run();
    /// assert!(flour.join().unwrap_err().is_panicked());
    /// ```
    pub fn is_panicked(&self) -> bool {
        matches!(self, TaskError::Panicked(_))
    }

    /// Whether a run of a series returned an error that has ended it.
    ///
    /// ```
    /// use millpond::preset;
    /// use std::time::Duration;
    ///
    /// let timers = preset::scheduled("mill", 1)?;
    /// let (now, hour) = (Duration::ZERO, Duration::from_secs(3600));
    /// let pump = timers.schedule_at_fixed_rate(now, hour, || Err::<(), _>("no water"))?;
    /// let error = pump.join().unwrap_err();
    /// assert!(error.is_failed());
    /// assert_eq!(error.to_string(), "a run failed: no water");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_failed(&self) -> bool {
        matches!(self, TaskError::Failed(_))
    }

    /// Whether the task was cancelled.
    ///
    /// ```
    /// let (_task, flour) = millpond::task::new(|| "flour");
    /// flour.cancel();
    /// assert!(flour.join().unwrap_err().is_cancelled());
    /// ```
    pub fn is_cancelled(&self) -> bool {
        matches!(self, TaskError::Cancelled(_))
    }

    /// Whether the caller was interrupted.
    ///
    /// ```
    /// use millpond::task;
    /// use std::sync::mpsc;
    ///
    /// let (_unground, flour) = task::new(|| "flour");
    /// let (tell, told) = mpsc::channel();
    /// let (task, baker) = task::new(move || {
    ///     tell.send(None).unwrap();
    ///     tell.send(flour.join().err()).unwrap();
    /// });
    /// let thread = std::thread::spawn(move || task.run());
    /// assert!(told.recv()?.is_none()); // the baker has started
    /// baker.interrupt();
    /// assert!(told.recv()?.is_some_and(|error| error.is_interrupted()));
    /// # thread.join().unwrap();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_interrupted(&self) -> bool {
        matches!(self, TaskError::Interrupted)
    }

    /// Whether the caller's timeout was over.
    ///
    /// ```
    /// use millpond::task;
    /// use std::time::Duration;
    ///
    /// let (_unground, mut flour) = task::new(|| "flour");
    /// assert!(flour.join_timeout(Duration::from_millis(1)).unwrap_err().is_timed_out());
    /// ```
    pub fn is_timed_out(&self) -> bool {
        matches!(self, TaskError::TimedOut)
    }

    /// Whether the task belongs to the parent process.
    ///
    /// ```
    /// use millpond::task::TaskError;
    ///
    /// /// Whether another try, with an executor of this process, may succeed.
    /// fn is_worth_another_try(error: &TaskError) -> bool {
    ///     error.is_forked() || error.is_timed_out()
    /// }
    /// assert!(is_worth_another_try(&TaskError::Forked));
    /// assert!(!is_worth_another_try(&TaskError::Interrupted));
    /// ```
    pub fn is_forked(&self) -> bool {
        matches!(self, TaskError::Forked)
    }

    /// Whether the join would have waited for itself.
    ///
    /// ```
    /// use millpond::task::{self, SharedHandle};
    /// use std::sync::mpsc;
    ///
    /// let (give, given) = mpsc::channel::<SharedHandle<bool>>();
    /// // A task that is given its own handle, and joins it.
    /// let (task, handle) = task::new(move || {
    ///     let own = given.recv().unwrap();
    ///     own.join().is_err_and(|error| error.is_deadlock())
    /// });
    /// let wheel = handle.shared();
    /// give.send(wheel.clone())?;
    /// task.run();
    /// assert!(*wheel.join()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_deadlock(&self) -> bool {
        matches!(self, TaskError::Deadlock(_))
    }

    /// What the task panicked with.
    ///
    /// # Errors
    ///
    /// The error itself, if it is no panic.
    ///
    /// ```
    /// use millpond::task;
    /// use std::panic::panic_any;
    ///
    /// let (task, flour) = task::new(|| -> u32 { panic_any(1755) });
    /// task.run();
    /// let panic = flour.join().unwrap_err().into_panic()?;
    /// assert_eq!(*panic.into_payload().downcast::<i32>().unwrap(), 1755);
    /// # Ok::<(), task::TaskError>(())
    /// ```
    pub fn into_panic(self) -> Result<Panic, Self> {
        match self {
            TaskError::Panicked(panic) => Ok(panic),
            other => Err(other),
        }
    }

    /// Resumes the task's panic on the current thread; returns the error if it is none.
    ///
    /// ```should_panic
    /// use millpond::task;
    ///
    /// let (task, handle) = task::new(|| panic!("the dam broke"));
    /// task.run();
    /// if let Err(error) = handle.join() {
    ///     panic!("not a panic: {}", error.resume());
    /// }
    /// ```
    #[must_use = "an error that is no panic comes back"]
    pub fn resume(self) -> Self {
        match self {
            TaskError::Panicked(panic) => panic.resume(),
            other => other,
        }
    }
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TaskError::Panicked(panic) => match panic.message() {
                Some(text) => write!(f, "the task panicked: {text}"),
                None => f.write_str("the task panicked with a payload that is no text"),
            },
            TaskError::Cancelled(reason) => write!(f, "the task was cancelled: {reason}"),
            TaskError::Interrupted => f.write_str("the caller was interrupted while it waited for a task"),
            TaskError::TimedOut => f.write_str("the task was not finished within the timeout"),
            TaskError::Deadlock(cycle) => write!(
                f,
                "deadlock: {cycle}. This join would never end: let one of them return before the \
                 other needs it, or join with a timeout"
            ),
            TaskError::Failed(error) => write!(f, "a run failed: {error}"),
            TaskError::Forked => f.write_str(
                "this process was forked while the task was unfinished, and its executor's threads stayed in \
                 the parent: submit it again, to an executor that was built after fork()",
            ),
        }
    }
}

impl Error for TaskError {}
