//! The queue that need not have a bound.

use super::flavor::flavor;
use super::ring::Ring;
use super::twin::Twin;
use super::{AsyncQueue, CapacityError};

/// A queue with a bound or none, first in, first out.
///
/// It grows with what comes. When it has been emptied, the memory that a burst took goes back; what a
/// few thousand elements need is kept, so that a queue in use does not allocate.
///
/// ```
/// use millpond::queue::{BlockingQueue, LinkedQueue, QueueExt};
///
/// let queue = LinkedQueue::unbounded();
/// for number in 0..10_000 {
///     queue.offer(number).unwrap();
/// }
/// assert_eq!(queue.capacity(), None);
/// assert_eq!(queue.peek(), Some(0));
/// ```
#[doc(alias = "java.util.concurrent.LinkedBlockingQueue")]
#[doc(alias = "LinkedBlockingQueue")]
pub struct LinkedQueue<T: Send> {
    engine: Twin<T>,
}

impl<T: Send> LinkedQueue<T> {
    /// A queue that takes in whatever comes, as long as there is memory.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, LinkedQueue};
    ///
    /// let queue = LinkedQueue::unbounded();
    /// for sack in 0..1000 {
    ///     assert!(queue.offer(sack).is_ok());
    /// }
    /// assert_eq!(queue.poll(), Some(0));
    /// ```
    pub fn unbounded() -> Self {
        LinkedQueue {
            engine: Twin::new(Ring::growing(), Ring::growing(), None),
        }
    }

    /// A queue for at most `capacity` elements.
    ///
    /// # Errors
    ///
    /// [`CapacityError::Zero`] for 0.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, LinkedQueue};
    ///
    /// let queue = LinkedQueue::bounded(1)?;
    /// assert!(queue.offer("sack").is_ok());
    /// assert_eq!(queue.offer("another").unwrap_err().element, "another", "it comes back");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn bounded(capacity: usize) -> Result<Self, CapacityError> {
        if capacity == 0 {
            return Err(CapacityError::Zero);
        }
        Ok(LinkedQueue {
            engine: Twin::new(Ring::growing(), Ring::growing(), Some(capacity)),
        })
    }
}

impl<T: Send> LinkedQueue<T> {
    /// The same queue, which calls its takers one at a time, the one that has rested least first. For
    /// takers who come when they are called: the workers of a pool.
    pub(crate) fn thrifty(self) -> Self {
        LinkedQueue {
            engine: self.engine.thrifty(),
        }
    }

    /// Looks out for an element for a moment, as a taker who is about to rest; see `twin.rs`. `takes`
    /// hears when it is about to try, and when it has tried in vain.
    pub(crate) fn seek(&self, takes: impl Fn(bool)) -> Option<T> {
        self.engine.seek(super::store::End::First, takes)
    }

    /// Counts as one who looks out for an element while `looks` does so in its own way. It must not panic.
    pub(crate) fn as_seeker(&self, looks: impl FnOnce() -> Option<T>) -> Option<T> {
        self.engine.as_seeker(looks)
    }

    /// Takes out the newest element if `takes_newest` says so of the oldest, and else that one; see
    /// `twin/newest.rs`.
    pub(crate) fn poll_by(&self, takes_newest: impl FnOnce(&T) -> bool) -> Option<T> {
        self.engine.poll_by(|oldest| match takes_newest(oldest) {
            true => super::store::End::Last,
            false => super::store::End::First,
        })
    }

    /// Whether it is full for sure: an offer would find no room. Without a lock; see B8 in `twin.rs`.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.engine.is_full()
    }

    /// Takes nothing more in, ever: every offer finds no room. For a pool that shuts down.
    pub(crate) fn seal(&self) {
        self.engine.seal();
    }

    pub(crate) fn is_sealed(&self) -> bool {
        self.engine.is_sealed()
    }
}

flavor! { LinkedQueue, with {} }

impl<T: Send> AsyncQueue<T> for LinkedQueue<T> {}

impl<T: Send> FromIterator<T> for LinkedQueue<T> {
    /// A queue without a bound, with these elements in it.
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        LinkedQueue {
            engine: Twin::new(Ring::growing(), elements.into_iter().collect(), None),
        }
    }
}
