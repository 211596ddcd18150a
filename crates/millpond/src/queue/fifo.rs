//! The plain first-in-first-out queue, on the core with two locks.
//!
//! A bounded queue keeps its memory: its bound limits that memory, and a queue that filled once fills again. A
//! queue without a bound, and one whose bound is only a safety limit, give memory back after a burst.

use super::flavor::flavor;
use super::ring::Ring;
use super::two_lock::TwoLock;
use super::{AsyncQueue, CapacityError};

/// A first-in-first-out queue, bounded or unbounded.
///
/// The order of *elements* is strict. Waiting threads are served in order of arrival, but a thread that arrives
/// at the right moment need not wait at all, so the order of *threads* is not strict.
///
/// | constructor | bound | memory |
/// |---|---|---|
/// | [`bounded`](FifoQueue::bounded) | yes | preallocated for up to 64 elements, grows with use, is kept |
/// | [`bounded_growing`](FifoQueue::bounded_growing) | yes | grows with use; a burst's memory is freed |
/// | [`unbounded`](FifoQueue::unbounded) | no | grows with use; a burst's memory is freed |
///
/// Memory for a few thousand elements is always kept, so a queue in steady use does not allocate.
///
/// ```
/// use millpond::queue::{BlockingQueue, FifoQueue};
///
/// let queue = FifoQueue::bounded(2)?;
/// queue.offer("rye").unwrap();
/// queue.offer("oats").unwrap();
/// assert!(queue.offer("spelt").is_err(), "it is full");
/// assert_eq!(queue.poll(), Some("rye"));
/// assert_eq!(queue.remaining_capacity(), 1);
/// # Ok::<(), millpond::queue::CapacityError>(())
/// ```
#[doc(alias = "java.util.concurrent.ArrayBlockingQueue")]
#[doc(alias = "ArrayBlockingQueue")]
#[doc(alias = "java.util.concurrent.LinkedBlockingQueue")]
#[doc(alias = "LinkedBlockingQueue")]
pub struct FifoQueue<T: Send> {
    core: TwoLock<T>,
}

impl<T: Send> FifoQueue<T> {
    /// A queue for at most `capacity` elements, which keeps its memory.
    ///
    /// # Errors
    ///
    /// [`CapacityError::Zero`] for 0.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, FifoQueue};
    ///
    /// let queue = FifoQueue::bounded(1)?;
    /// assert!(queue.offer("sack").is_ok());
    /// assert_eq!(queue.offer("another").unwrap_err().element, "another", "it comes back");
    /// assert!(FifoQueue::<u8>::bounded(0).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "ArrayBlockingQueue")]
    pub fn bounded(capacity: usize) -> Result<Self, CapacityError> {
        Self::with_rings(capacity, || Ring::preallocated(capacity))
    }

    /// A queue for at most `capacity` elements, which frees the memory of a burst. For a bound that is a safety
    /// limit far above the usual length.
    ///
    /// # Errors
    ///
    /// [`CapacityError::Zero`] for 0.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, FifoQueue};
    ///
    /// let queue = FifoQueue::bounded_growing(1_000_000)?;
    /// queue.put("sack")?;
    /// assert_eq!(queue.remaining_capacity(), 999_999);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "LinkedBlockingQueue")]
    pub fn bounded_growing(capacity: usize) -> Result<Self, CapacityError> {
        Self::with_rings(capacity, Ring::growing)
    }

    fn with_rings(capacity: usize, ring: impl Fn() -> Ring<T>) -> Result<Self, CapacityError> {
        if capacity == 0 {
            return Err(CapacityError::Zero);
        }
        Ok(FifoQueue {
            core: TwoLock::new(ring(), ring(), Some(capacity)),
        })
    }

    /// A queue that accepts every element, as long as there is memory.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, FifoQueue, QueueExt};
    ///
    /// let queue = FifoQueue::unbounded();
    /// for number in 0..10_000 {
    ///     queue.offer(number).unwrap();
    /// }
    /// assert_eq!(queue.capacity(), None);
    /// assert_eq!(queue.peek(), Some(0));
    /// ```
    #[doc(alias = "LinkedBlockingQueue")]
    pub fn unbounded() -> Self {
        FifoQueue {
            core: TwoLock::new(Ring::growing(), Ring::growing(), None),
        }
    }
}

impl<T: Send> FifoQueue<T> {
    /// The same queue with throttled wake-ups: it wakes one consumer at a time, the one that parked last (FIFO-6).
    /// For consumers that arrive promptly when they are woken: the workers of a pool.
    pub(crate) fn throttle_wakeups(self) -> Self {
        FifoQueue {
            core: self.core.throttle_wakeups(),
        }
    }

    /// Whether bursts have left memory in it.
    pub(crate) fn has_surplus(&self) -> bool {
        self.core.has_surplus()
    }

    /// Frees the memory that bursts have left, if the queue is empty. For an engine that has become idle.
    pub(crate) fn trim(&self) {
        self.core.trim();
    }

    /// Searches for an element for a moment, before the caller parks (FIFO-7). Calls `takes(true)` before each
    /// attempt to take one, and `takes(false)` after an attempt that failed.
    pub(crate) fn search(&self, takes: impl Fn(bool)) -> Option<T> {
        self.core.search(super::store::End::First, takes)
    }

    /// Counts the caller as a searching consumer while `search` runs (FIFO-7), which must not panic.
    pub(crate) fn as_searching(&self, search: impl FnOnce() -> Option<T>) -> Option<T> {
        self.core.as_searching(search)
    }

    /// Runs `work`, in which the calling consumer may push one element for itself and wakes nobody for it (FIFO-9). It
    /// searches next. `work` must not panic.
    pub(crate) fn push_for_self<R>(&self, work: impl FnOnce() -> R) -> R {
        self.core.push_for_self(work)
    }

    /// Takes the newest element if `takes_newest` returns true for the oldest, and the oldest otherwise.
    pub(crate) fn poll_by(&self, takes_newest: impl FnOnce(&T) -> bool) -> Option<T> {
        self.core.poll_by(|oldest| {
            if takes_newest(oldest) {
                super::store::End::Last
            } else {
                super::store::End::First
            }
        })
    }

    /// Whether it is certainly full, without a lock (FIFO-8).
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.core.is_full()
    }

    /// Accepts nothing more, ever: every offer fails as if the queue were full. For a pool that shuts down.
    pub(crate) fn seal(&self) {
        self.core.seal();
    }

    pub(crate) fn is_sealed(&self) -> bool {
        self.core.is_sealed()
    }
}

flavor! { FifoQueue, with {} }

impl<T: Send> AsyncQueue<T> for FifoQueue<T> {}

impl<T: Send> FromIterator<T> for FifoQueue<T> {
    /// An unbounded queue that holds these elements.
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        FifoQueue {
            core: TwoLock::new(Ring::growing(), elements.into_iter().collect(), None),
        }
    }
}
