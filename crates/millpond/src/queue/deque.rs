//! The queue with two ends.
//!
//! Each direction alone is an ordinary queue, so the reverse direction is a view, [`Reversed`], with all the methods
//! of a queue. The methods of [`BlockingDeque`] that name an end delegate to one of the two.

use super::flavor::flavor;
use super::monitor::{Monitor, bound};
use super::ring::Ring;
use super::{AsyncQueue, BlockingQueue, CapacityError, OfferError, QueueExt};
use crate::interrupt::Interrupted;
use std::time::Duration;

/// A queue with two ends, bounded or unbounded.
///
/// As a [`BlockingQueue`] it is first in, first out: it adds last and removes first.
///
/// ```
/// use millpond::queue::{BlockingQueue, BlockingDeque, QueueExt};
///
/// let queue = BlockingDeque::unbounded();
/// queue.offer("second").unwrap();
/// queue.offer_first("first").unwrap();
/// queue.offer_last("third").unwrap();
/// assert_eq!(queue.snapshot(), ["first", "second", "third"]);
/// assert_eq!(queue.poll_last(), Some("third"));
/// assert_eq!(queue.poll(), Some("first"));
/// ```
#[doc(alias = "java.util.concurrent.LinkedBlockingDeque")]
#[doc(alias = "LinkedBlockingDeque")]
pub struct BlockingDeque<T: Send> {
    core: Monitor<Ring<T>>,
}

impl<T: Send> BlockingDeque<T> {
    /// A queue that accepts every element, as long as there is memory.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, BlockingDeque};
    ///
    /// let queue = BlockingDeque::unbounded();
    /// for sack in 0..1000 {
    ///     queue.offer_last(sack)?;
    /// }
    /// assert_eq!(queue.len(), 1000);
    /// # Ok::<(), millpond::queue::OfferError<i32>>(())
    /// ```
    pub fn unbounded() -> Self {
        BlockingDeque {
            core: Monitor::new(Ring::growing(), None, ()),
        }
    }

    /// A queue for at most `capacity` elements.
    ///
    /// # Errors
    ///
    /// [`CapacityError::Zero`] for 0.
    ///
    /// ```
    /// use millpond::queue::{CapacityError, BlockingDeque, Reason};
    ///
    /// let queue = BlockingDeque::bounded(1)?;
    /// queue.offer_last("rye").unwrap();
    /// // The bound holds at both ends.
    /// assert_eq!(queue.offer_first("oats").unwrap_err().reason, Reason::Full);
    /// assert_eq!(BlockingDeque::<()>::bounded(0).unwrap_err(), CapacityError::Zero);
    /// # Ok::<(), CapacityError>(())
    /// ```
    pub fn bounded(capacity: usize) -> Result<Self, CapacityError> {
        Ok(BlockingDeque {
            core: Monitor::new(Ring::growing(), Some(bound(capacity)?), ()),
        })
    }

    /// The reverse view of this queue: it adds first and removes last.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, BlockingDeque, QueueExt};
    ///
    /// let queue: BlockingDeque<_> = [3, 1, 2, 1].into_iter().collect();
    /// // The last of the equal ones.
    /// assert!(queue.reversed().remove(&1));
    /// assert_eq!(queue.snapshot(), [3, 1, 2]);
    /// ```
    #[doc(alias = "descendingIterator")]
    #[doc(alias = "removeLastOccurrence")]
    pub fn reversed(&self) -> Reversed<'_, T> {
        Reversed { core: &self.core }
    }

    /// Adds the element as the first if there is room, without waiting.
    ///
    /// # Errors
    ///
    /// The element, if there is no room.
    ///
    /// ```
    /// use millpond::queue::BlockingDeque;
    ///
    /// let queue = BlockingDeque::bounded(2)?;
    /// queue.offer_last("rye")?;
    /// queue.offer_first("urgent oats")?;
    /// assert_eq!(queue.poll_first(), Some("urgent oats"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "offerFirst")]
    #[doc(alias = "push")]
    pub fn offer_first(&self, element: T) -> Result<(), OfferError<T>> {
        self.reversed().offer(element)
    }

    /// Adds the element as the last if there is room, without waiting.
    ///
    /// # Errors
    ///
    /// The element, if there is no room.
    ///
    /// ```
    /// use millpond::queue::BlockingDeque;
    ///
    /// let queue = BlockingDeque::bounded(2)?;
    /// queue.offer_last("rye")?;
    /// queue.offer_last("oats")?;
    /// assert_eq!(queue.offer_last("barley").unwrap_err().element, "barley");
    /// assert_eq!(queue.poll_first(), Some("rye"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "offerLast")]
    pub fn offer_last(&self, element: T) -> Result<(), OfferError<T>> {
        self.offer(element)
    }

    /// Adds the element as the first, and waits for room.
    ///
    /// # Errors
    ///
    /// The element, if the running task was interrupted.
    ///
    /// ```
    /// use millpond::queue::BlockingDeque;
    /// use std::thread;
    ///
    /// let queue = BlockingDeque::bounded(1)?;
    /// queue.put_first("rye")?;
    /// thread::scope(|s| {
    ///     // There is no room until an element is taken.
    ///     let producer = s.spawn(|| queue.put_first("oats"));
    ///     assert_eq!(queue.take_first(), Ok("rye"));
    ///     assert!(producer.join().unwrap().is_ok());
    /// });
    /// assert_eq!(queue.poll_first(), Some("oats"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "putFirst")]
    pub fn put_first(&self, element: T) -> Result<(), OfferError<T>> {
        self.reversed().put(element)
    }

    /// Adds the element as the last, and waits for room.
    ///
    /// # Errors
    ///
    /// The element, if the running task was interrupted.
    ///
    /// ```
    /// use millpond::queue::BlockingDeque;
    /// use std::thread;
    ///
    /// let queue = BlockingDeque::bounded(1)?;
    /// thread::scope(|s| {
    ///     s.spawn(|| ["rye", "oats", "barley"].map(|grain| queue.put_last(grain).unwrap()));
    ///     // One after the other passes through the only place.
    ///     assert_eq!([(); 3].map(|()| queue.take_first().unwrap()), ["rye", "oats", "barley"]);
    /// });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "putLast")]
    pub fn put_last(&self, element: T) -> Result<(), OfferError<T>> {
        self.put(element)
    }

    /// Adds the element as the first, and waits for room, at most for `timeout`.
    ///
    /// # Errors
    ///
    /// The element, if the timeout elapsed or the running task was interrupted.
    ///
    /// ```
    /// use millpond::queue::{BlockingDeque, Reason};
    /// use std::time::Duration;
    ///
    /// let queue = BlockingDeque::bounded(1)?;
    /// let timeout = Duration::from_millis(1);
    /// queue.offer_first_timeout("rye", timeout)?;
    /// let refused = queue.offer_first_timeout("oats", timeout).unwrap_err();
    /// assert_eq!((refused.element, refused.reason), ("oats", Reason::TimedOut));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn offer_first_timeout(&self, element: T, timeout: Duration) -> Result<(), OfferError<T>> {
        self.reversed().offer_timeout(element, timeout)
    }

    /// Adds the element as the last, and waits for room, at most for `timeout`.
    ///
    /// # Errors
    ///
    /// The element, if the timeout elapsed or the running task was interrupted.
    ///
    /// ```
    /// use millpond::queue::{BlockingDeque, Reason};
    /// use std::time::Duration;
    ///
    /// let queue = BlockingDeque::bounded(2)?;
    /// let timeout = Duration::from_millis(1);
    /// queue.offer_last_timeout("rye", timeout)?;
    /// queue.offer_last_timeout("oats", timeout)?;
    /// assert_eq!(queue.peek_last(), Some("oats"));
    /// let refused = queue.offer_last_timeout("barley", timeout).unwrap_err();
    /// assert_eq!(refused.reason, Reason::TimedOut);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn offer_last_timeout(&self, element: T, timeout: Duration) -> Result<(), OfferError<T>> {
        self.offer_timeout(element, timeout)
    }

    /// Removes the first element if there is one, without waiting.
    ///
    /// ```
    /// use millpond::queue::BlockingDeque;
    ///
    /// let queue: BlockingDeque<_> = ["rye", "oats"].into_iter().collect();
    /// assert_eq!(queue.poll_first(), Some("rye"));
    /// assert_eq!(queue.poll_first(), Some("oats"));
    /// assert_eq!(queue.poll_first(), None);
    /// ```
    #[doc(alias = "pollFirst")]
    #[doc(alias = "pop")]
    pub fn poll_first(&self) -> Option<T> {
        self.poll()
    }

    /// Removes the last element if there is one, without waiting.
    ///
    /// ```
    /// use millpond::queue::BlockingDeque;
    ///
    /// let queue: BlockingDeque<_> = ["rye", "oats"].into_iter().collect();
    /// assert_eq!(queue.poll_last(), Some("oats"));
    /// assert_eq!(queue.poll_last(), Some("rye"));
    /// assert_eq!(queue.poll_last(), None);
    /// ```
    #[doc(alias = "pollLast")]
    pub fn poll_last(&self) -> Option<T> {
        self.reversed().poll()
    }

    /// Removes the first element, and waits for one.
    ///
    /// # Errors
    ///
    /// The running task was interrupted.
    ///
    /// ```
    /// use millpond::queue::BlockingDeque;
    /// use std::thread;
    ///
    /// let queue = BlockingDeque::unbounded();
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

    /// Removes the last element, and waits for one.
    ///
    /// # Errors
    ///
    /// The running task was interrupted.
    ///
    /// ```
    /// use millpond::queue::BlockingDeque;
    ///
    /// let stack = BlockingDeque::unbounded();
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

    /// Removes the first element, and waits for one, at most for `timeout`.
    ///
    /// # Errors
    ///
    /// The running task was interrupted.
    ///
    /// ```
    /// use millpond::queue::BlockingDeque;
    /// use std::time::Duration;
    ///
    /// let queue: BlockingDeque<_> = ["rye", "oats"].into_iter().collect();
    /// let timeout = Duration::from_millis(1);
    /// assert_eq!(queue.poll_first_timeout(timeout)?, Some("rye"));
    /// assert_eq!(queue.poll_first_timeout(timeout)?, Some("oats"));
    /// assert_eq!(queue.poll_first_timeout(timeout)?, None);
    /// # Ok::<(), millpond::interrupt::Interrupted>(())
    /// ```
    pub fn poll_first_timeout(&self, timeout: Duration) -> Result<Option<T>, Interrupted> {
        self.poll_timeout(timeout)
    }

    /// Removes the last element, and waits for one, at most for `timeout`.
    ///
    /// # Errors
    ///
    /// The running task was interrupted.
    ///
    /// ```
    /// use millpond::queue::BlockingDeque;
    /// use std::time::Duration;
    ///
    /// let queue: BlockingDeque<_> = ["rye", "oats"].into_iter().collect();
    /// let timeout = Duration::from_millis(1);
    /// assert_eq!(queue.poll_last_timeout(timeout)?, Some("oats"));
    /// assert_eq!(queue.poll_last_timeout(timeout)?, Some("rye"));
    /// assert_eq!(queue.poll_last_timeout(timeout)?, None);
    /// # Ok::<(), millpond::interrupt::Interrupted>(())
    /// ```
    pub fn poll_last_timeout(&self, timeout: Duration) -> Result<Option<T>, Interrupted> {
        self.reversed().poll_timeout(timeout)
    }

    /// A copy of the first element; it stays in the queue.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, BlockingDeque};
    ///
    /// let queue: BlockingDeque<_> = ["rye", "oats"].into_iter().collect();
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

    /// A copy of the last element; it stays in the queue.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, BlockingDeque};
    ///
    /// let queue: BlockingDeque<_> = ["rye", "oats"].into_iter().collect();
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

flavor! { BlockingDeque, with {} }

impl<T: Send> AsyncQueue<T> for BlockingDeque<T> {}

impl<T: Send> FromIterator<T> for BlockingDeque<T> {
    /// An unbounded queue that holds these elements.
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        BlockingDeque {
            core: Monitor::new(elements.into_iter().collect(), None, ()),
        }
    }
}

/// The reverse view of a [`BlockingDeque`]: it adds first and removes last.
///
/// ```
/// use millpond::queue::{BlockingQueue, BlockingDeque};
///
/// let queue: BlockingDeque<_> = (1..=3).collect();
/// let reversed = queue.reversed();
/// assert_eq!(reversed.poll(), Some(3));
/// reversed.put(0)?;
/// assert_eq!(queue.poll(), Some(0));
/// # Ok::<(), millpond::queue::OfferError<i32>>(())
/// ```
pub struct Reversed<'a, T: Send> {
    core: &'a Monitor<Ring<T>>,
}

flavor! { @queue ['a, T] Reversed<'a, T>, Last, First, with {} }

impl<T: Send> AsyncQueue<T> for Reversed<'_, T> {}
