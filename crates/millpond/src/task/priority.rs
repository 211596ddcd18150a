//! How urgent a task is.

use std::fmt;

/// How urgent a task is, for queues that ask ([`Queue::by_priority`](crate::pool::Queue::by_priority)).
/// All others take tasks as they come.
///
/// ```
/// use millpond::task::{self, Priority, TaskSpec};
///
/// let (task, handle) = TaskSpec::new().priority(Priority::High).build(|| task::new(|| ()).0);
/// assert_eq!(task.priority(), Priority::High);
/// task.run();
/// // What a task makes is as urgent as itself, unless it is told otherwise.
/// assert_eq!(handle.join()?.priority(), Priority::High);
/// # Ok::<(), task::TaskError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Priority {
    /// Before all others: somebody waits for it now.
    High,
    /// What most tasks are.
    #[default]
    Normal,
    /// When there is time: nobody waits for it.
    Low,
}

impl Priority {
    /// Every one of them, the most urgent first.
    pub const ALL: [Priority; 3] = [Priority::High, Priority::Normal, Priority::Low];

    /// Its level: 0 is the most urgent.
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
