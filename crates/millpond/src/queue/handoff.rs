//! The hand-off queue: it holds nothing, and each put waits for a take.
//!
//! It is a [`Rendezvous`] in which both sides may wait; `rendezvous/mod.rs` has the protocol. This file adds the
//! trait, with these rules for a queue without room:
//!
//! 1. Its length and its capacity are always 0. Nothing can be seen, searched or removed.
//! 2. [`offer`](BlockingQueue::offer) needs a waiting consumer, [`poll`](BlockingQueue::poll) a waiting producer.
//! 3. [`put`](BlockingQueue::put) and [`send`](AsyncQueue::send) are done when a consumer has the element. A
//!    producer that gives up before gets it back.
//! 4. A consumer that gives up at the moment of the match has the element: the take has succeeded. A future that
//!    is dropped at that moment puts the element back for the next consumer.

use super::rendezvous::{Order, Rendezvous};
use super::{
    AsyncQueue, BlockingQueue, CapacityError, OfferError, Offered, Reason, Taken, WaitSlot,
};
use crate::time::{Clock, Deadline};
use std::fmt;
use std::ops::ControlFlow;
use std::task::Waker;

/// A queue without room: each element goes directly from a producer to a consumer.
///
/// A [`fair`](HandOffQueue::fair) queue serves waiters in order of arrival, also if some of them give up in
/// between. An [`unfair`](HandOffQueue::unfair) queue serves the latest first: its cache is the warmest, and the
/// others get a chance to time out. That suits the workers of a pool.
///
/// ```
/// use millpond::queue::{BlockingQueue, HandOffQueue, Reason};
/// use std::sync::Arc;
///
/// let queue = Arc::new(HandOffQueue::fair());
/// let refused = queue.offer("sack").unwrap_err();
/// assert_eq!(refused.reason, Reason::Full, "no consumer waits");
///
/// let shared = Arc::clone(&queue);
/// let miller = std::thread::spawn(move || shared.take());
/// queue.put(refused.element)?;
/// assert_eq!(miller.join().unwrap(), Ok("sack"));
/// # Ok::<(), millpond::queue::OfferError<&str>>(())
/// ```
#[doc(alias = "java.util.concurrent.SynchronousQueue")]
#[doc(alias = "SynchronousQueue")]
#[doc(alias = "rendezvous")]
pub struct HandOffQueue<T> {
    rendezvous: Rendezvous<T>,
    clock: Clock,
}

impl<T> HandOffQueue<T> {
    /// A queue that serves the longest waiting first.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, HandOffQueue};
    ///
    /// let queue = HandOffQueue::<u8>::fair();
    /// assert!(queue.is_fair());
    /// assert!(queue.offer(7).is_err(), "no consumer waits");
    /// ```
    pub fn fair() -> Self {
        Self::new(Order::Fair)
    }

    /// A queue that serves the latest first.
    ///
    /// ```
    /// use millpond::queue::HandOffQueue;
    ///
    /// assert!(!HandOffQueue::<u8>::unfair().is_fair());
    /// ```
    pub fn unfair() -> Self {
        Self::new(Order::Unfair)
    }

    fn new(order: Order) -> Self {
        HandOffQueue {
            rendezvous: Rendezvous::new(order),
            clock: Clock::system(),
        }
    }

    /// The same queue with timeouts by another clock.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, HandOffQueue};
    /// use millpond::time::ManualClock;
    /// use std::time::Duration;
    ///
    /// let hand = ManualClock::new();
    /// let queue = HandOffQueue::<u8>::fair().with_clock(hand.clock());
    /// assert_eq!(queue.poll_timeout(Duration::ZERO), Ok(None));
    /// ```
    #[must_use]
    pub fn with_clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Whether the longest waiting is served first.
    ///
    /// ```
    /// use millpond::queue::HandOffQueue;
    ///
    /// assert!(HandOffQueue::<u8>::fair().is_fair());
    /// ```
    pub fn is_fair(&self) -> bool {
        self.rendezvous.order() == Order::Fair
    }

    /// The number of consumers that wait for an element.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, HandOffQueue};
    /// use std::thread;
    ///
    /// let queue = HandOffQueue::fair();
    /// thread::scope(|scope| {
    ///     scope.spawn(|| assert_eq!(queue.take().ok(), Some("sack")));
    ///     while queue.waiting_consumers() == 0 {
    ///         thread::yield_now();
    ///     }
    ///     assert!(queue.offer("sack").is_ok());
    /// });
    /// ```
    pub fn waiting_consumers(&self) -> usize {
        self.rendezvous.waiting_consumers()
    }

    /// The number of elements that wait for a consumer.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, HandOffQueue};
    /// use std::thread;
    ///
    /// let queue = HandOffQueue::fair();
    /// thread::scope(|scope| {
    ///     scope.spawn(|| assert!(queue.put("sack").is_ok()));
    ///     while queue.waiting_producers() == 0 {
    ///         thread::yield_now();
    ///     }
    ///     assert_eq!(queue.poll(), Some("sack"));
    /// });
    /// ```
    pub fn waiting_producers(&self) -> usize {
        self.rendezvous.waiting_producers()
    }

    /// Puts back an element that a consumer cannot use. It goes to a waiting consumer or to the next one, as if
    /// its producer still waited.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, HandOffQueue};
    ///
    /// let queue = HandOffQueue::fair();
    /// queue.put_back("sack");
    /// assert_eq!(queue.poll(), Some("sack"));
    /// ```
    pub fn put_back(&self, element: T) {
        self.rendezvous.put_back(element);
    }

    pub(super) fn rendezvous(&self) -> &Rendezvous<T> {
        &self.rendezvous
    }
}

impl<T: Send> BlockingQueue<T> for HandOffQueue<T> {
    fn hand_back(&self, element: T) {
        self.put_back(element);
    }

    fn offer(&self, element: T) -> Result<(), OfferError<T>> {
        self.rendezvous
            .try_hand_over(element)
            .map_err(|element| OfferError {
                element,
                reason: Reason::Full,
            })
    }

    fn poll(&self) -> Option<T> {
        self.rendezvous.try_take()
    }

    fn poll_offer(&self, element: &mut Option<T>, slot: &mut WaitSlot, waker: &Waker) -> Offered {
        if self.rendezvous.poll_put(element, slot, waker) {
            Offered::In
        } else {
            Offered::Wait
        }
    }

    fn poll_take(&self, slot: &mut WaitSlot, waker: &Waker) -> Taken<T> {
        match self.rendezvous.poll_take(slot, waker) {
            Some(element) => Taken::Got(element),
            None => Taken::Wait(Deadline::NEVER),
        }
    }

    fn leave_offer(&self, element: &mut Option<T>, slot: &mut WaitSlot) {
        self.rendezvous.leave_put(element, slot);
    }

    fn leave_take(&self, slot: &mut WaitSlot) -> Option<T> {
        self.rendezvous.leave_take(slot)
    }

    /// Always 0: the element of a waiting producer is not in the queue.
    fn len(&self) -> usize {
        0
    }

    fn capacity(&self) -> Option<usize> {
        Some(0)
    }

    fn set_capacity(&self, _capacity: usize) -> Result<(), CapacityError> {
        Err(CapacityError::Fixed)
    }

    /// Shows nothing.
    fn visit(&self, _see: &mut dyn FnMut(&T) -> ControlFlow<()>) {}

    /// Removes nothing.
    fn remove_where(&self, _limit: usize, _unwanted: &mut dyn FnMut(&T) -> bool) -> Vec<T> {
        Vec::new()
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Takes from the waiting producers, one by one.
    fn drain_to(&self, max: usize, sink: &mut dyn FnMut(T)) -> usize {
        // Producers that arrive while the sink runs are for the next call; else this might never end.
        let max = max.min(self.waiting_producers());
        let mut moved = 0;
        while moved < max {
            let Some(element) = self.poll() else { break };
            moved += 1;
            sink(element);
        }
        moved
    }
}

impl<T: Send> AsyncQueue<T> for HandOffQueue<T> {}

impl<T> fmt::Debug for HandOffQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandOffQueue")
            .field("fair", &self.is_fair())
            .field("waiting_producers", &self.waiting_producers())
            .field("waiting_consumers", &self.waiting_consumers())
            .finish_non_exhaustive()
    }
}
