//! What queues answer when they cannot do what they are asked.

use std::error::Error;
use std::fmt;

/// An element that a queue did not take in, and why. The element is the caller's again.
///
/// ```
/// use millpond::queue::{ArrayQueue, BlockingQueue, Reason};
///
/// let queue = ArrayQueue::bounded(1)?;
/// queue.offer("first").unwrap();
/// let refused = queue.offer("second").unwrap_err();
/// assert_eq!(refused.reason, Reason::Full);
/// assert_eq!(refused.element, "second");
/// # Ok::<(), millpond::queue::CapacityError>(())
/// ```
#[must_use = "the element is in here"]
pub struct Refused<T> {
    /// The element.
    pub element: T,
    /// Why it was not taken in.
    pub reason: Reason,
}

/// Why a queue did not take an element in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// There is no room, or, in a hand-off queue, nobody to hand it to.
    Full,
    /// There was no room in time.
    TimedOut,
    /// The running task was interrupted while it waited for room.
    Interrupted,
    /// It weighs more than the queue may ever hold.
    TooHeavy {
        /// What it weighs.
        weight: u64,
        /// What the queue may hold.
        bound: u64,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Full => f.write_str("the queue has no room now"),
            Reason::TimedOut => f.write_str("the queue had no room in time"),
            Reason::Interrupted => f.write_str("interrupted while waiting for room in the queue"),
            Reason::TooHeavy { weight, bound } => write!(
                f,
                "an element of weight {weight} can never fit into a queue bounded by {bound}: \
                 split it or raise the bound"
            ),
        }
    }
}

impl<T> fmt::Display for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl<T> fmt::Debug for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refused")
            .field("reason", &self.reason)
            .finish_non_exhaustive()
    }
}

impl<T> Error for Refused<T> {}

/// A capacity that a queue cannot have. The old one stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CapacityError {
    /// Capacity 0 was asked for.
    Zero,
    /// More was asked for than can be counted or allocated.
    TooLarge {
        /// What was asked for.
        asked: usize,
        /// The most that can be had.
        most: usize,
    },
    /// This flavor has no capacity to change.
    Fixed,
}

impl fmt::Display for CapacityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CapacityError::Zero => f.write_str(
                "a queue of capacity 0 holds nothing: ask for at least 1, or for a hand-off queue",
            ),
            CapacityError::TooLarge { asked, most } => {
                write!(
                    f,
                    "capacity {asked} is above the most that can be had, {most}"
                )
            }
            CapacityError::Fixed => f.write_str("this flavor of queue has no capacity to change"),
        }
    }
}

impl Error for CapacityError {}
