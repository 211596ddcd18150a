//! The priority of a task.

use std::fmt;

/// The priority of a task, for queues that order by it ([`Queue::by_priority`](crate::pool::Queue::by_priority)). All
/// others are first in, first out.
///
/// ```
/// use millpond::task::{self, Priority, TaskSpec};
///
/// let (task, handle) = TaskSpec::new().priority(Priority::High).build(|| task::new(|| ()).0);
/// assert_eq!(task.priority(), Priority::High);
/// task.run();
/// // A task that it creates has the same priority, unless it is given another.
/// assert_eq!(handle.join()?.priority(), Priority::High);
/// # Ok::<(), task::TaskError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Priority {
    /// Before all others: a caller waits for it now.
    High,
    /// The priority of most tasks.
    #[default]
    Normal,
    /// When there is time: nobody waits for it.
    Low,
}

impl Priority {
    /// All priorities, the highest first.
    pub const ALL: [Priority; 3] = [Priority::High, Priority::Normal, Priority::Low];

    /// Its level: 0 is the highest.
    pub fn level(self) -> u32 {
        self as u32
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Priority::High => "high",
            Priority::Normal => "normal",
            Priority::Low => "low",
        })
    }
}
