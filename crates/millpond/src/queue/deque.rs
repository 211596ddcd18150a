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
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, DequeQueue};
    ///
    /// let queue = DequeQueue::unbounded();
    /// for sack in 0..1000 {
    ///     queue.offer_last(sack)?;
    /// }
    /// assert_eq!(queue.len(), 1000);
    /// # Ok::<(), millpond::queue::Refused<i32>>(())
    /// ```
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
    ///
    /// ```
    /// use millpond::queue::{CapacityError, DequeQueue, Reason};
    ///
    /// let queue = DequeQueue::bounded(1)?;
    /// queue.offer_last("rye").unwrap();
    /// // The bound holds at both ends.
    /// assert_eq!(queue.offer_first("oats").unwrap_err().reason, Reason::Full);
    /// assert_eq!(DequeQueue::<()>::bounded(0).unwrap_err(), CapacityError::Zero);
    /// # Ok::<(), CapacityError>(())
    /// ```
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
    ///
    /// ```
    /// use millpond::queue::DequeQueue;
    ///
    /// let queue = DequeQueue::bounded(2)?;
    /// queue.offer_last("rye")?;
    /// queue.offer_first("urgent oats")?;
    /// assert_eq!(queue.poll_first(), Some("urgent oats"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
    ///
    /// ```
    /// use millpond::queue::DequeQueue;
    ///
    /// let queue = DequeQueue::bounded(2)?;
    /// queue.offer_last("rye")?;
    /// queue.offer_last("oats")?;
    /// assert_eq!(queue.offer_last("barley").unwrap_err().element, "barley");
    /// assert_eq!(queue.poll_first(), Some("rye"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "offerLast")]
    pub fn offer_last(&self, element: T) -> Result<(), Refused<T>> {
        self.offer(element)
    }

    /// Puts it in first, and waits for room as long as it takes.
    ///
    /// # Errors
    ///
    /// The element, if the running task was interrupted.
    ///
    /// ```
    /// use millpond::queue::DequeQueue;
    /// use std::thread;
    ///
    /// let queue = DequeQueue::bounded(1)?;
    /// queue.put_first("rye")?;
    /// thread::scope(|s| {
    ///     // There is no room until somebody takes.
    ///     let putter = s.spawn(|| queue.put_first("oats"));
    ///     assert_eq!(queue.take_first(), Ok("rye"));
    ///     assert!(putter.join().unwrap().is_ok());
    /// });
    /// assert_eq!(queue.poll_first(), Some("oats"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "putFirst")]
    pub fn put_first(&self, element: T) -> Result<(), Refused<T>> {
        self.reversed().put(element)
    }

    /// Puts it in last, and waits for room as long as it takes.
    ///
    /// # Errors
    ///
    /// The element, if the running task was interrupted.
    ///
    /// ```
    /// use millpond::queue::DequeQueue;
    /// use std::thread;
    ///
    /// let queue = DequeQueue::bounded(1)?;
    /// thread::scope(|s| {
    ///     s.spawn(|| ["rye", "oats", "barley"].map(|grain| queue.put_last(grain).unwrap()));
    ///     // One after the other goes through the only place.
    ///     assert_eq!([(); 3].map(|()| queue.take_first().unwrap()), ["rye", "oats", "barley"]);
    /// });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "putLast")]
    pub fn put_last(&self, element: T) -> Result<(), Refused<T>> {
        self.put(element)
    }

    /// Puts it in first, and waits for room, but not longer than `patience`.
    ///
    /// # Errors
    ///
    /// The element, if the time was up or the running task was interrupted.
    ///
    /// ```
    /// use millpond::queue::{DequeQueue, Reason};
    /// use std::time::Duration;
    ///
    /// let queue = DequeQueue::bounded(1)?;
    /// let patience = Duration::from_millis(1);
    /// queue.offer_first_timeout("rye", patience)?;
    /// let refused = queue.offer_first_timeout("oats", patience).unwrap_err();
    /// assert_eq!((refused.element, refused.reason), ("oats", Reason::TimedOut));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn offer_first_timeout(&self, element: T, patience: Duration) -> Result<(), Refused<T>> {
        self.reversed().offer_timeout(element, patience)
    }

    /// Puts it in last, and waits for room, but not longer than `patience`.
    ///
    /// # Errors
    ///
    /// The element, if the time was up or the running task was interrupted.
    ///
    /// ```
    /// use millpond::queue::{DequeQueue, Reason};
    /// use std::time::Duration;
    ///
    /// let queue = DequeQueue::bounded(2)?;
    /// let patience = Duration::from_millis(1);
    /// queue.offer_last_timeout("rye", patience)?;
    /// queue.offer_last_timeout("oats", patience)?;
    /// assert_eq!(queue.peek_last(), Some("oats"));
    /// let refused = queue.offer_last_timeout("barley", patience).unwrap_err();
    /// assert_eq!(refused.reason, Reason::TimedOut);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn offer_last_timeout(&self, element: T, patience: Duration) -> Result<(), Refused<T>> {
        self.offer_timeout(element, patience)
    }

    /// Takes the first out if there is one, and does not wait.
    ///
    /// ```
    /// use millpond::queue::DequeQueue;
    ///
    /// let queue: DequeQueue<_> = ["rye", "oats"].into_iter().collect();
    /// assert_eq!(queue.poll_first(), Some("rye"));
    /// assert_eq!(queue.poll_first(), Some("oats"));
    /// assert_eq!(queue.poll_first(), None);
    /// ```
    #[doc(alias = "pollFirst")]
    #[doc(alias = "pop")]
    pub fn poll_first(&self) -> Option<T> {
        self.poll()
    }

    /// Takes the last out if there is one, and does not wait.
    ///
    /// ```
    /// use millpond::queue::DequeQueue;
    ///
    /// let queue: DequeQueue<_> = ["rye", "oats"].into_iter().collect();
    /// assert_eq!(queue.poll_last(), Some("oats"));
    /// assert_eq!(queue.poll_last(), Some("rye"));
    /// assert_eq!(queue.poll_last(), None);
    /// ```
    #[doc(alias = "pollLast")]
    pub fn poll_last(&self) -> Option<T> {
        self.reversed().poll()
    }

    /// Takes the first out, and waits for one as long as it takes.
    ///
    /// # Errors
    ///
    /// The running task was interrupted.
    ///
    /// ```
    /// use millpond::queue::DequeQueue;
    /// use std::thread;
    ///
    /// let queue = DequeQueue::unbounded();
    /// thread::scope(|s| {
    ///     let miller = s.spawn(|| queue.take_first());
    ///     queue.offer_last("rye").unwrap();
    ///     assert_eq!(miller.join().unwrap(), Ok("rye"));
    /// });
    /// ```
    #[doc(alias = "takeFirst")]
    pub fn take_first(&self) -> Result<T, Interrupted> {
        self.take()
    }

    /// Takes the last out, and waits for one as long as it takes.
    ///
    /// # Errors
    ///
    /// The running task was interrupted.
    ///
    /// ```
    /// use millpond::queue::DequeQueue;
    ///
    /// let stack = DequeQueue::unbounded();
    /// stack.put_last("rye")?;
    /// stack.put_last("oats")?;
    /// // The sack on top.
    /// assert_eq!(stack.take_last()?, "oats");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "takeLast")]
    pub fn take_last(&self) -> Result<T, Interrupted> {
        self.reversed().take()
    }

    /// Takes the first out, and waits for one, but not longer than `patience`.
    ///
    /// # Errors
    ///
    /// The running task was interrupted.
    ///
    /// ```
    /// use millpond::queue::DequeQueue;
    /// use std::time::Duration;
    ///
    /// let queue: DequeQueue<_> = ["rye", "oats"].into_iter().collect();
    /// let patience = Duration::from_millis(1);
    /// assert_eq!(queue.poll_first_timeout(patience)?, Some("rye"));
    /// assert_eq!(queue.poll_first_timeout(patience)?, Some("oats"));
    /// assert_eq!(queue.poll_first_timeout(patience)?, None);
    /// # Ok::<(), millpond::interrupt::Interrupted>(())
    /// ```
    pub fn poll_first_timeout(&self, patience: Duration) -> Result<Option<T>, Interrupted> {
        self.poll_timeout(patience)
    }

    /// Takes the last out, and waits for one, but not longer than `patience`.
    ///
    /// # Errors
    ///
    /// The running task was interrupted.
    ///
    /// ```
    /// use millpond::queue::DequeQueue;
    /// use std::time::Duration;
    ///
    /// let queue: DequeQueue<_> = ["rye", "oats"].into_iter().collect();
    /// let patience = Duration::from_millis(1);
    /// assert_eq!(queue.poll_last_timeout(patience)?, Some("oats"));
    /// assert_eq!(queue.poll_last_timeout(patience)?, Some("rye"));
    /// assert_eq!(queue.poll_last_timeout(patience)?, None);
    /// # Ok::<(), millpond::interrupt::Interrupted>(())
    /// ```
    pub fn poll_last_timeout(&self, patience: Duration) -> Result<Option<T>, Interrupted> {
        self.reversed().poll_timeout(patience)
    }

    /// A copy of the first; it stays in the queue.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, DequeQueue};
    ///
    /// let queue: DequeQueue<_> = ["rye", "oats"].into_iter().collect();
    /// assert_eq!(queue.peek_first(), Some("rye"));
    /// assert_eq!(queue.len(), 2);
    /// ```
    #[doc(alias = "peekFirst")]
    pub fn peek_first(&self) -> Option<T>
    where
        T: Clone,
    {
        self.peek()
    }

    /// A copy of the last; it stays in the queue.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, DequeQueue};
    ///
    /// let queue: DequeQueue<_> = ["rye", "oats"].into_iter().collect();
    /// assert_eq!(queue.peek_last(), Some("oats"));
    /// assert_eq!(queue.len(), 2);
    /// ```
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
