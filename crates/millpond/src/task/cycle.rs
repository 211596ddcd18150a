//! Wait cycles, as they are reported.

use super::name::Name;
use std::fmt;
use std::panic::Location;
use std::time::Instant;

/// Identifies a task in a report: its name, if it has one, and the source location where it was created.
#[derive(Clone)]
pub struct TaskLabel {
    pub(super) name: Option<Name>,
    pub(super) location: &'static Location<'static>,
}

impl TaskLabel {
    /// The name of the task.
    pub fn name(&self) -> Option<&str> {
        self.name.as_ref().map(Name::as_str)
    }

    /// The source location where the task was created.
    pub fn location(&self) -> &'static Location<'static> {
        self.location
    }
}

/// The name and the location, or the location alone.
impl fmt::Display for TaskLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "`{name}` (made at {})", self.location),
            None => write!(f, "the task made at {}", self.location),
        }
    }
}

impl fmt::Debug for TaskLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Tasks that wait for each other: each for the next one, and the last for the first. None of them could ever end.
///
/// ```
/// use millpond::executor::ExecutorExt;
/// use millpond::pool::ThreadPool;
/// use millpond::task::{SharedHandle, TaskSpec};
/// use std::sync::mpsc;
///
/// let pool = ThreadPool::builder("mill").build()?;
/// let (send, receive) = mpsc::channel::<SharedHandle<String>>();
/// // A task that is given its own handle, and joins it.
/// let wheel = pool.submit_with(TaskSpec::new().name("wheel"), move || {
///     let own = receive.recv().unwrap();
///     own.join().unwrap_err().to_string()
/// })?;
/// let wheel = wheel.shared();
/// send.send(wheel.clone())?;
/// assert!(wheel.join()?.starts_with("deadlock: `wheel` (made at "));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Cycle {
    pub(super) tasks: Vec<TaskLabel>,
}

impl Cycle {
    /// The tasks, in the order in which they wait for each other. The first one is the caller of the join that failed.
    pub fn tasks(&self) -> &[TaskLabel] {
        &self.tasks
    }
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((first, rest)) = self.tasks.split_first() else {
            return f.write_str("no task waits");
        };
        if rest.is_empty() {
            return write!(f, "{first} waits for itself");
        }
        write!(f, "{first}")?;
        for task in rest {
            let link = if std::ptr::eq(task, &rest[0]) {
                " waits for "
            } else {
                ", which waits for "
            };
            write!(f, "{link}{task}")?;
        }
        write!(f, ", which waits for {first}")
    }
}

impl fmt::Debug for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cycle")
            .field(&format_args!("{self}"))
            .finish()
    }
}

/// A wait cycle that was detected.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DetectedCycle {
    /// The tasks.
    pub cycle: Cycle,
    /// When it was detected, by the system clock.
    pub at: Instant,
}

/// A task that is blocked in a join of another task.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BlockedJoin {
    /// The name of the thread that waits, if it has one.
    pub thread: Option<String>,
    /// The task that it waits for.
    pub task: TaskLabel,
}
