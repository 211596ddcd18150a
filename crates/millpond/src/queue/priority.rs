//! The queue that serves the least element first.
//!
//! # Aging
//!
//! A queue that always serves the most urgent element starves the others while urgent ones keep coming. With
//! [aging](PriorityQueue::aging) an element of level `n` counts as if it had arrived `n` steps later, and the order
//! is by arrival. So an urgent element overtakes only those that have not waited long enough. The order of two
//! elements never changes while they wait, so aging costs no more than one reading of the clock for each element.

use super::flavor::flavor;
use super::monitor::{Monitor, bound};
use super::ranked::{Order, Ranked};
use super::{AsyncQueue, CapacityError};
use crate::time::Deadline;
use std::cmp::Ordering;
use std::time::Duration;

/// A priority queue: the least element first, and among equals the oldest.
///
/// ```
/// use millpond::queue::{BlockingQueue, PriorityQueue};
///
/// let queue = PriorityQueue::new();
/// for number in [3, 1, 2] {
///     queue.offer(number).unwrap();
/// }
/// assert_eq!(queue.poll(), Some(1));
///
/// let longest_first = PriorityQueue::by(|one: &&str, other: &&str| other.len().cmp(&one.len()));
/// for grain in ["rye", "barley", "oats", "millet"] {
///     longest_first.offer(grain).unwrap();
/// }
/// assert_eq!(longest_first.poll(), Some("barley"));
/// assert_eq!(longest_first.poll(), Some("millet"), "as long, but it came later");
/// ```
///
/// The comparator runs under the queue's lock: it must not use the queue. If it panics, the panic reaches the
/// caller, and the queue is unchanged.
#[doc(alias = "java.util.concurrent.PriorityBlockingQueue")]
#[doc(alias = "PriorityBlockingQueue")]
pub struct PriorityQueue<T: Send> {
    core: Monitor<Ranked<T, false>>,
}

impl<T: Send + Ord> PriorityQueue<T> {
    /// An unbounded queue. [`std::cmp::Reverse`] reverses its order.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, PriorityQueue};
    ///
    /// let queue = PriorityQueue::new();
    /// for sack in [3, 1, 2] {
    ///     queue.offer(sack)?;
    /// }
    /// assert_eq!(queue.poll(), Some(1), "the least first");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new() -> Self {
        Self::ordered(Order::Natural(T::cmp))
    }

    /// A queue for at most `capacity` elements.
    ///
    /// # Errors
    ///
    /// [`CapacityError::Zero`] for 0.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, PriorityQueue};
    ///
    /// let queue = PriorityQueue::bounded(2)?;
    /// queue.offer(2)?;
    /// queue.offer(1)?;
    /// assert!(queue.offer(0).is_err(), "urgent or not, there is no room");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn bounded(capacity: usize) -> Result<Self, CapacityError> {
        Self::new().with_bound(capacity)
    }
}

impl<T: Send> PriorityQueue<T> {
    /// An unbounded queue in the order of a comparator.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, PriorityQueue};
    ///
    /// let longest = PriorityQueue::by(|one: &&str, other: &&str| other.len().cmp(&one.len()));
    /// longest.offer("rye")?;
    /// longest.offer("barley")?;
    /// assert_eq!(longest.poll(), Some("barley"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn by(compare: impl Fn(&T, &T) -> Ordering + Send + Sync + 'static) -> Self {
        Self::ordered(Order::By(Box::new(compare)))
    }

    fn ordered(order: Order<T>) -> Self {
        PriorityQueue {
            core: Monitor::new(Ranked::new(order), None, None),
        }
    }

    /// The same queue with a bound.
    ///
    /// # Errors
    ///
    /// [`CapacityError::Zero`] for 0.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, PriorityQueue};
    ///
    /// let queue = PriorityQueue::by(|one: &f64, other| one.total_cmp(other)).with_bound(1)?;
    /// queue.offer(0.5)?;
    /// assert!(queue.offer(0.1).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_bound(self, capacity: usize) -> Result<Self, CapacityError> {
        self.core.set_bound(bound(capacity)?)?;
        Ok(self)
    }

    /// The same queue with aging: an element of level `n` precedes every element that arrives more than
    /// `n * per_level` after it. Level 0 is the most urgent. Elements of equal rank are ordered by the comparator.
    ///
    /// So the wait is bounded: an element of level `n` waits for the elements that precede it on arrival, and for
    /// more urgent ones that arrive during the next `n * per_level`, and for nothing else.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, PriorityQueue};
    /// use millpond::time::ManualClock;
    /// use std::time::Duration;
    ///
    /// let hand = ManualClock::new();
    /// let queue = PriorityQueue::new()
    ///     .aging(Duration::from_secs(1), |(level, _)| *level)
    ///     .with_clock(hand.clock());
    /// queue.offer((3, "patient")).unwrap();
    /// hand.advance(Duration::from_secs(2));
    /// queue.offer((0, "urgent")).unwrap();
    /// hand.advance(Duration::from_secs(2));
    /// queue.offer((0, "too late")).unwrap();
    ///
    /// assert_eq!(queue.poll(), Some((0, "urgent")));
    /// assert_eq!(queue.poll(), Some((3, "patient")));
    /// assert_eq!(queue.poll(), Some((0, "too late")));
    /// ```
    ///
    /// Builder-style: call it while the queue is empty.
    #[must_use]
    pub fn aging(
        self,
        per_level: Duration,
        level: impl Fn(&T) -> u32 + Send + Sync + 'static,
    ) -> Self {
        let core = self.core.with_stamper(Some(Box::new(move |clock, element| {
            match per_level.checked_mul(level(element)) {
                Some(handicap) => clock.deadline(handicap),
                None => Deadline::NEVER,
            }
        })));
        PriorityQueue { core }
    }
}

impl<T: Send> PriorityQueue<T> {
    /// Accepts nothing more, ever: every offer fails as if the queue were full. For a pool that shuts down.
    pub(crate) fn seal(&self) {
        self.core.seal();
    }

    pub(crate) fn is_sealed(&self) -> bool {
        self.core.is_sealed()
    }
}

flavor! { PriorityQueue, with {} }

impl<T: Send> AsyncQueue<T> for PriorityQueue<T> {}

impl<T: Send + Ord> Default for PriorityQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}
