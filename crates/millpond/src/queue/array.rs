//! The bounded queue on a ring.

use super::flavor::flavor;
use super::ring::Ring;
use super::twin::Twin;
use super::{AsyncQueue, CapacityError};

/// A bounded queue, first in, first out.
///
/// Its memory grows up to what has been in it at one time, and stays; a queue in use does not
/// allocate.
///
/// Who waits is served in the order of coming, but somebody who comes at the right moment need not
/// wait at all: the order of *elements* is strict, the order of threads is not.
///
/// ```
/// use millpond::queue::{ArrayQueue, BlockingQueue};
///
/// let queue = ArrayQueue::bounded(2)?;
/// queue.offer("rye").unwrap();
/// queue.offer("oats").unwrap();
/// assert!(queue.offer("spelt").is_err(), "it is full");
/// assert_eq!(queue.poll(), Some("rye"));
/// assert_eq!(queue.remaining_capacity(), 1);
/// # Ok::<(), millpond::queue::CapacityError>(())
/// ```
#[doc(alias = "java.util.concurrent.ArrayBlockingQueue")]
#[doc(alias = "ArrayBlockingQueue")]
pub struct ArrayQueue<T: Send> {
    engine: Twin<T>,
}

impl<T: Send> ArrayQueue<T> {
    /// A queue for at most `capacity` elements.
    ///
    /// # Errors
    ///
    /// [`CapacityError::Zero`] for 0.
    ///
    /// ```
    /// use millpond::queue::{ArrayQueue, BlockingQueue};
    ///
    /// let queue = ArrayQueue::bounded(1)?;
    /// assert!(queue.offer("sack").is_ok());
    /// assert_eq!(queue.offer("another").unwrap_err().element, "another", "it comes back");
    /// assert!(ArrayQueue::<u8>::bounded(0).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn bounded(capacity: usize) -> Result<Self, CapacityError> {
        if capacity == 0 {
            return Err(CapacityError::Zero);
        }
        let ring = || Ring::for_about(capacity);
        Ok(ArrayQueue {
            engine: Twin::new(ring(), ring(), Some(capacity)),
        })
    }
}

flavor! { ArrayQueue, with {} }

impl<T: Send> AsyncQueue<T> for ArrayQueue<T> {}
