//! The queue whose elements come out when they are due.
//!
//! Consumers of a delay queue wait for a time as well as for an element. One of them, the leader, sleeps until the
//! first element is due; the followers sleep until they are notified (MONITOR-5, which says why there is only one
//! leader). A new first element wakes the leader, which takes it or sleeps until the new time. So one element wakes
//! one thread.
//!
//! A future that leads sets an alarm of the queue's clock.

use super::flavor::flavor;
use super::monitor::{Monitor, bound};
use super::ranked::{Order, Ranked};
use super::store::End;
use super::{AsyncQueue, CapacityError, OfferError};
use crate::time::Deadline;
use std::time::{Duration, Instant};

/// A queue whose elements come out when they are due, in the order of their due times, and among equal due times in
/// order of arrival.
///
/// An element that is not due yet counts in [`len`](super::BlockingQueue::len), is shown by
/// [`visit`](super::BlockingQueue::visit) and `peek`, and can be removed; only `poll`, `take` and `drain_to` hold it
/// back. An element with a past due time is available at once; a due time beyond the range of the clock never
/// comes.
///
/// ```
/// use millpond::queue::{BlockingQueue, DelayQueue};
/// use millpond::time::ManualClock;
/// use std::time::Duration;
///
/// let hand = ManualClock::new();
/// let queue = DelayQueue::new().with_clock(hand.clock());
/// queue.offer_after("bread", Duration::from_secs(3600)).unwrap();
/// queue.offer_after("dough", Duration::from_secs(600)).unwrap();
/// assert_eq!(queue.poll(), None);
/// hand.advance(Duration::from_secs(600));
/// assert_eq!(queue.poll(), Some("dough"));
/// assert_eq!(queue.poll(), None, "the bread is still in the oven");
/// assert_eq!(queue.len(), 1);
/// ```
#[doc(alias = "java.util.concurrent.DelayQueue")]
pub struct DelayQueue<T: Send> {
    core: Monitor<Ranked<T, true>>,
}

impl<T: Send> DelayQueue<T> {
    /// An unbounded queue. An element without a due time is available at once.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, DelayQueue};
    ///
    /// let queue = DelayQueue::new();
    /// queue.put("at once")?;
    /// assert_eq!(queue.take()?, "at once");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new() -> Self {
        Self::stamped(|clock, _| Deadline::at(clock.now()))
    }

    /// An unbounded queue with the due time as a function of the element.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, DelayQueue};
    /// use millpond::time::Clock;
    ///
    /// let now = Clock::system().now();
    /// let queue = DelayQueue::due_by(|(due, _)| *due);
    /// queue.put((now, "at once"))?;
    /// assert_eq!(queue.poll(), Some((now, "at once")));
    /// # Ok::<(), millpond::queue::OfferError<(std::time::Instant, &str)>>(())
    /// ```
    #[doc(alias = "java.util.concurrent.Delayed")]
    pub fn due_by(due: impl Fn(&T) -> Instant + Send + Sync + 'static) -> Self {
        Self::stamped(move |_, element| Deadline::at(due(element)))
    }

    fn stamped(due: impl Fn(&crate::time::Clock, &T) -> Deadline + Send + Sync + 'static) -> Self {
        DelayQueue {
            core: Monitor::new(Ranked::new(Order::Age), None, Some(Box::new(due))),
        }
    }

    /// The same queue with a bound; elements that are not due yet count, too.
    ///
    /// # Errors
    ///
    /// [`CapacityError::Zero`] for 0.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, DelayQueue};
    /// use std::time::Duration;
    ///
    /// let oven = DelayQueue::new().with_bound(1)?;
    /// oven.offer_after("bread", Duration::from_secs(3600))?;
    /// assert!(oven.offer("cake").is_err(), "an element that is not due takes room, too");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_bound(self, capacity: usize) -> Result<Self, CapacityError> {
        self.core.set_bound(bound(capacity)?)?;
        Ok(self)
    }

    /// Adds the element, which is due after `delay`; never, if that is beyond the range of the clock.
    ///
    /// # Errors
    ///
    /// The element, if there is no room.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, DelayQueue};
    /// use millpond::time::ManualClock;
    /// use std::time::Duration;
    ///
    /// let hand = ManualClock::new();
    /// let oven = DelayQueue::new().with_clock(hand.clock());
    /// oven.offer_after("bread", Duration::from_secs(3600))?;
    /// assert_eq!(oven.poll(), None);
    /// hand.advance(Duration::from_secs(3600));
    /// assert_eq!(oven.poll(), Some("bread"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn offer_after(&self, element: T, delay: Duration) -> Result<(), OfferError<T>> {
        let due = self.core.clock().deadline(delay);
        self.core.offer_stamped(element, due, End::Last)
    }

    /// Adds the element, which is due at `due`.
    ///
    /// # Errors
    ///
    /// The element, if there is no room.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, DelayQueue};
    /// use millpond::time::ManualClock;
    /// use std::time::Duration;
    ///
    /// let hand = ManualClock::new();
    /// let oven = DelayQueue::new().with_clock(hand.clock());
    /// let noon = hand.clock().now() + Duration::from_secs(60);
    /// oven.offer_at("bread", noon)?;
    /// assert_eq!(oven.next_due().instant(), Some(noon));
    /// hand.advance(Duration::from_secs(60));
    /// assert_eq!(oven.poll(), Some("bread"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn offer_at(&self, element: T, due: Instant) -> Result<(), OfferError<T>> {
        let due = Deadline::at(due);
        self.core.offer_stamped(element, due, End::Last)
    }

    /// The due time of the first element; never, if there is none.
    ///
    /// ```
    /// use millpond::queue::DelayQueue;
    /// use millpond::time::Deadline;
    ///
    /// assert_eq!(DelayQueue::<u8>::new().next_due(), Deadline::NEVER);
    /// ```
    pub fn next_due(&self) -> Deadline {
        self.core.ready_at()
    }
}

flavor! { DelayQueue, with {
    fn holds_back(&self) -> bool {
        true
    }
} }

impl<T: Send> AsyncQueue<T> for DelayQueue<T> {}

impl<T: Send> Default for DelayQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}
