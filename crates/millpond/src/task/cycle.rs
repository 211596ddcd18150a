//! What a wait cycle is, to those who hear of one.

use super::name::Name;
use std::fmt;
use std::panic::Location;
use std::time::Instant;

/// How a task is told from others in a report: its name, if it has one, and where it was made.
#[derive(Clone)]
pub struct TaskLabel {
    pub(super) name: Option<Name>,
    pub(super) made_at: &'static Location<'static>,
}

impl TaskLabel {
    /// What the task is called.
    pub fn name(&self) -> Option<&str> {
        self.name.as_ref().map(Name::as_str)
    }

    /// Where the task was made.
    pub fn made_at(&self) -> &'static Location<'static> {
        self.made_at
    }
}

/// The name and the place, or the place alone.
impl fmt::Display for TaskLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "`{name}` (made at {})", self.made_at),
            None => write!(f, "the task made at {}", self.made_at),
        }
    }
}

impl fmt::Debug for TaskLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Tasks that wait for each other: each for the next one, and the last for the first. Left alone, none
/// of them would ever end.
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
/// let wheel = pool.submit_spec(TaskSpec::new().name("wheel"), move || {
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
    /// The tasks, in the order in which they wait for each other. The first one is that of the waiter
    /// who was told.
    pub fn tasks(&self) -> &[TaskLabel] {
        &self.tasks
    }
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((first, rest)) = self.tasks.split_first() else {
            return f.write_str("nobody waits");
        };
        if rest.is_empty() {
            return write!(f, "{first} waits for itself");
        }
        write!(f, "{first}")?;
        for task in rest {
            let link = match std::ptr::eq(task, &rest[0]) {
                true => " waits for ",
                false => ", which waits for ",
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

/// A cycle that was found, and when.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FoundCycle {
    /// The tasks.
    pub cycle: Cycle,
    /// When it was found, by the system's clock.
    pub at: Instant,
}

/// Somebody who waits for a task inside a task.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Waiting {
    /// The name of the thread that waits, if it has one.
    pub thread: Option<String>,
    /// What it waits for.
    pub task: TaskLabel,
}
