//! The queue with two ends.
//!
//! One end at a time is an ordinary queue, so the other direction is a view, [`Reversed`], with all
//! the forms that every queue has. The methods of [`DequeQueue`] that name an end are short names for
//! those of the one or the other.

use super::flavor::flavor;
use super::guarded::{Guarded, bound};
use super::ring::Ring;
use super::{AsyncQueue, BlockingQueue, CapacityError, QueueExt, Refused};
use crate::interrupt::Interrupted;
use std::time::Duration;

/// A queue with two ends, with a bound or none.
///
/// As a [`BlockingQueue`] it is first in, first out: it puts in last and takes out first.
///
/// ```
/// use millpond::queue::{BlockingQueue, DequeQueue, QueueExt};
///
/// let queue = DequeQueue::unbounded();
/// queue.offer("second").unwrap();
/// queue.offer_first("first").unwrap();
/// queue.offer_last("third").unwrap();
/// assert_eq!(queue.snapshot(), ["first", "second", "third"]);
/// assert_eq!(queue.poll_last(), Some("third"));
/// assert_eq!(queue.poll(), Some("first"));
/// ```
#[doc(alias = "java.util.concurrent.LinkedBlockingDeque")]
#[doc(alias = "LinkedBlockingDeque")]
pub struct DequeQueue<T: Send> {
    engine: Guarded<Ring<T>>,
}

impl<T: Send> DequeQueue<T> {
    /// A queue that takes in whatever comes, as long as there is memory.
    pub fn unbounded() -> Self {
        DequeQueue {
            engine: Guarded::new(Ring::growing(), None, ()),
        }
    }

    /// A queue for at most `capacity` elements.
    ///
    /// # Errors
    ///
    /// [`CapacityError::Zero`] for 0.
    pub fn bounded(capacity: usize) -> Result<Self, CapacityError> {
        Ok(DequeQueue {
            engine: Guarded::new(Ring::growing(), Some(bound(capacity)?), ()),
        })
    }

    /// The same queue the other way round: it puts in first and takes out last.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, DequeQueue, QueueExt};
    ///
    /// let queue: DequeQueue<_> = [3, 1, 2, 1].into_iter().collect();
    /// // The last of the equal ones.
    /// assert!(queue.reversed().remove(&1));
    /// assert_eq!(queue.snapshot(), [3, 1, 2]);
    /// ```
    #[doc(alias = "descendingIterator")]
    #[doc(alias = "removeLastOccurrence")]
    pub fn reversed(&self) -> Reversed<'_, T> {
        Reversed {
            engine: &self.engine,
        }
    }

    /// Puts it in first if there is room, and does not wait.
    ///
    /// # Errors
    ///
    /// The element, if there is no room.
    #[doc(alias = "offerFirst")]
    #[doc(alias = "push")]
    pub fn offer_first(&self, element: T) -> Result<(), Refused<T>> {
        self.reversed().offer(element)
    }

    /// Puts it in last if there is room, and does not wait.
    ///
    /// # Errors
    ///
    /// The element, if there is no room.
    #[doc(alias = "offerLast")]
    pub fn offer_last(&self, element: T) -> Result<(), Refused<T>> {
        self.offer(element)
    }

    /// Puts it in first, and waits for room as long as it takes.
    ///
    /// # Errors
    ///
    /// The element, if the running task was interrupted.
    #[doc(alias = "putFirst")]
    pub fn put_first(&self, element: T) -> Result<(), Refused<T>> {
        self.reversed().put(element)
    }

    /// Puts it in last, and waits for room as long as it takes.
    ///
    /// # Errors
    ///
    /// The element, if the running task was interrupted.
    #[doc(alias = "putLast")]
    pub fn put_last(&self, element: T) -> Result<(), Refused<T>> {
        self.put(element)
    }

    /// Puts it in first, and waits for room, but not longer than `patience`.
    ///
    /// # Errors
    ///
    /// The element, if the time was up or the running task was interrupted.
    pub fn offer_first_timeout(&self, element: T, patience: Duration) -> Result<(), Refused<T>> {
        self.reversed().offer_timeout(element, patience)
    }

    /// Puts it in last, and waits for room, but not longer than `patience`.
    ///
    /// # Errors
    ///
    /// The element, if the time was up or the running task was interrupted.
    pub fn offer_last_timeout(&self, element: T, patience: Duration) -> Result<(), Refused<T>> {
        self.offer_timeout(element, patience)
    }

    /// Takes the first out if there is one, and does not wait.
    #[doc(alias = "pollFirst")]
    #[doc(alias = "pop")]
    pub fn poll_first(&self) -> Option<T> {
        self.poll()
    }

    /// Takes the last out if there is one, and does not wait.
    #[doc(alias = "pollLast")]
    pub fn poll_last(&self) -> Option<T> {
        self.reversed().poll()
    }

    /// Takes the first out, and waits for one as long as it takes.
    ///
    /// # Errors
    ///
    /// The running task was interrupted.
    #[doc(alias = "takeFirst")]
    pub fn take_first(&self) -> Result<T, Interrupted> {
        self.take()
    }

    /// Takes the last out, and waits for one as long as it takes.
    ///
    /// # Errors
    ///
    /// The running task was interrupted.
    #[doc(alias = "takeLast")]
    pub fn take_last(&self) -> Result<T, Interrupted> {
        self.reversed().take()
    }

    /// Takes the first out, and waits for one, but not longer than `patience`.
    ///
    /// # Errors
    ///
    /// The running task was interrupted.
    pub fn poll_first_timeout(&self, patience: Duration) -> Result<Option<T>, Interrupted> {
        self.poll_timeout(patience)
    }

    /// Takes the last out, and waits for one, but not longer than `patience`.
    ///
    /// # Errors
    ///
    /// The running task was interrupted.
    pub fn poll_last_timeout(&self, patience: Duration) -> Result<Option<T>, Interrupted> {
        self.reversed().poll_timeout(patience)
    }

    /// A copy of the first; it stays in the queue.
    #[doc(alias = "peekFirst")]
    pub fn peek_first(&self) -> Option<T>
    where
        T: Clone,
    {
        self.peek()
    }

    /// A copy of the last; it stays in the queue.
    #[doc(alias = "peekLast")]
    pub fn peek_last(&self) -> Option<T>
    where
        T: Clone,
    {
        self.reversed().peek()
    }
}

flavor! { DequeQueue, with {} }

impl<T: Send> AsyncQueue<T> for DequeQueue<T> {}

impl<T: Send> FromIterator<T> for DequeQueue<T> {
    /// A queue without a bound, with these elements in it.
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        DequeQueue {
            engine: Guarded::new(elements.into_iter().collect(), None, ()),
        }
    }
}

/// A [`DequeQueue`] the other way round: it puts in first and takes out last.
///
/// ```
/// use millpond::queue::{BlockingQueue, DequeQueue};
///
/// let queue: DequeQueue<_> = (1..=3).collect();
/// let reversed = queue.reversed();
/// assert_eq!(reversed.poll(), Some(3));
/// reversed.put(0)?;
/// assert_eq!(queue.poll(), Some(0));
/// # Ok::<(), millpond::queue::Refused<i32>>(())
/// ```
pub struct Reversed<'a, T: Send> {
    engine: &'a Guarded<Ring<T>>,
}

flavor! { @queue ['a, T] Reversed<'a, T>, Last, First, with {} }

impl<T: Send> AsyncQueue<T> for Reversed<'_, T> {}
