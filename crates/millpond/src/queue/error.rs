//! Errors of queues.

use std::error::Error;
use std::fmt;

/// An element that a queue rejected, with the reason.
///
/// ```
/// use millpond::queue::{FifoQueue, BlockingQueue, Reason};
///
/// let queue = FifoQueue::bounded(1)?;
/// queue.offer("first").unwrap();
/// let error = queue.offer("second").unwrap_err();
/// assert_eq!(error.reason, Reason::Full);
/// assert_eq!(error.element, "second");
/// # Ok::<(), millpond::queue::CapacityError>(())
/// ```
#[must_use = "the element is in here"]
pub struct OfferError<T> {
    /// The element.
    pub element: T,
    /// Why it was rejected.
    pub reason: Reason,
}

/// Why a queue rejected an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// There is no room or, in a hand-off queue, no waiting consumer.
    Full,
    /// There was no room before the timeout elapsed.
    TimedOut,
    /// The running task was interrupted while it waited for room.
    Interrupted,
    /// It weighs more than the bound of the queue.
    TooHeavy {
        /// The weight of the element.
        weight: u64,
        /// The bound of the queue.
        bound: u64,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Full => f.write_str("the queue has no room now"),
            Reason::TimedOut => {
                f.write_str("the timeout elapsed while waiting for room in the queue")
            }
            Reason::Interrupted => f.write_str("interrupted while waiting for room in the queue"),
            Reason::TooHeavy { weight, bound } => write!(
                f,
                "an element of weight {weight} can never fit into a queue bounded by {bound}: \
                 split it or raise the bound"
            ),
        }
    }
}

impl<T> fmt::Display for OfferError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl<T> fmt::Debug for OfferError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OfferError")
            .field("reason", &self.reason)
            .finish_non_exhaustive()
    }
}

impl<T> Error for OfferError<T> {}

/// A capacity that a queue cannot have. The old one stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CapacityError {
    /// A capacity of 0.
    Zero,
    /// A capacity that cannot be counted or allocated.
    TooLarge {
        /// The requested capacity.
        asked: usize,
        /// The largest possible capacity.
        most: usize,
    },
    /// The capacity of this flavor cannot change.
    Fixed,
}

impl fmt::Display for CapacityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CapacityError::Zero => f.write_str(
                "a queue of capacity 0 holds nothing: use a capacity of at least 1, or a hand-off queue",
            ),
            CapacityError::TooLarge { asked, most } => {
                write!(
                    f,
                    "capacity {asked} exceeds the largest possible capacity, {most}"
                )
            }
            CapacityError::Fixed => f.write_str("the capacity of this flavor of queue cannot change"),
        }
    }
}

impl Error for CapacityError {}
