//! The transfer queue: an unbounded queue in which a producer may wait until its element was taken.
//!
//! It is a fair [`HandOffQueue`] in which elements may be without a producer. Consumers are the same in both.
//! [`transfer`](TransferQueue::transfer) *is* the hand-off queue's `put`; the transfer queue's own `put` adds the
//! element to the same line and returns. So there is one line, one order and one protocol (`rendezvous/mod.rs`).
//!
//! # Rules
//!
//! 1. Elements come out in the order in which they were put or transferred.
//! 2. An element that was put and not taken is in the queue, for the next poll.
//! 3. Removing the element of a waiting transfer counts as taking it: the transfer succeeds.
//! 4. A transfer that is given up removes its element, wherever it is in the line.

use super::{
    AsyncQueue, BlockingQueue, CapacityError, HandOffQueue, OfferError, Offered, SendFuture, Taken,
    WaitSlot,
};
use crate::time::Clock;
use std::fmt;
use std::ops::ControlFlow;
use std::task::Waker;
use std::time::Duration;

/// An unbounded first-in-first-out queue in which a producer may wait until its element was taken.
///
/// ```
/// use millpond::queue::{BlockingQueue, TransferQueue};
/// use std::sync::Arc;
///
/// let queue = Arc::new(TransferQueue::unbounded());
/// queue.put("first")?;
/// let shared = Arc::clone(&queue);
/// let consumer = std::thread::spawn(move || [shared.take(), shared.take()]);
/// queue.transfer("second")?;
/// // Now the consumer has it, and everything before it.
/// assert!(queue.is_empty());
/// assert_eq!(consumer.join().unwrap(), [Ok("first"), Ok("second")]);
/// # Ok::<(), millpond::queue::OfferError<&str>>(())
/// ```
#[doc(alias = "java.util.concurrent.LinkedTransferQueue")]
#[doc(alias = "LinkedTransferQueue")]
pub struct TransferQueue<T> {
    handoff: HandOffQueue<T>,
}

impl<T> TransferQueue<T> {
    /// An empty queue. A transfer queue has no bound.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, TransferQueue};
    ///
    /// let queue = TransferQueue::unbounded();
    /// queue.put("sack")?;
    /// assert_eq!(queue.take()?, "sack");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn unbounded() -> Self {
        TransferQueue {
            handoff: HandOffQueue::fair(),
        }
    }

    /// The same queue with timeouts by another clock.
    ///
    /// ```
    /// use millpond::queue::{Reason, TransferQueue};
    /// use millpond::time::ManualClock;
    /// use std::time::Duration;
    ///
    /// let hand = ManualClock::new();
    /// let queue = TransferQueue::unbounded().with_clock(hand.clock());
    /// let refused = queue.transfer_timeout("sack", Duration::ZERO).unwrap_err();
    /// assert_eq!((refused.element, refused.reason), ("sack", Reason::TimedOut));
    /// ```
    #[must_use]
    pub fn with_clock(mut self, clock: Clock) -> Self {
        self.handoff = self.handoff.with_clock(clock);
        self
    }

    /// Whether a consumer waits for an element.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, TransferQueue};
    /// use std::thread;
    ///
    /// let queue = TransferQueue::unbounded();
    /// assert!(!queue.has_waiting_consumer());
    /// thread::scope(|scope| {
    ///     scope.spawn(|| assert_eq!(queue.take().ok(), Some("sack")));
    ///     while !queue.has_waiting_consumer() {
    ///         thread::yield_now();
    ///     }
    ///     assert!(queue.try_transfer("sack").is_ok(), "directly to the consumer");
    /// });
    /// ```
    pub fn has_waiting_consumer(&self) -> bool {
        self.waiting_consumers() > 0
    }

    /// The number of consumers that wait for an element.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, TransferQueue};
    /// use std::thread;
    ///
    /// let queue = TransferQueue::unbounded();
    /// thread::scope(|scope| {
    ///     (0..2).for_each(|_| drop(scope.spawn(|| queue.take())));
    ///     while queue.waiting_consumers() < 2 {
    ///         thread::yield_now();
    ///     }
    ///     (0..2).for_each(|sack| assert!(queue.offer(sack).is_ok()));
    /// });
    /// ```
    #[doc(alias = "getWaitingConsumerCount")]
    pub fn waiting_consumers(&self) -> usize {
        self.handoff.waiting_consumers()
    }

    /// Puts back an element that a consumer cannot use. It goes to a waiting consumer, or before all others to the
    /// next one.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, QueueExt, TransferQueue};
    ///
    /// let queue = TransferQueue::unbounded();
    /// queue.put(1)?;
    /// queue.put(2)?;
    /// let first = queue.poll().expect("there are two");
    /// queue.put_back(first);
    /// assert_eq!(queue.snapshot(), [1, 2]);
    /// # Ok::<(), millpond::queue::OfferError<i32>>(())
    /// ```
    pub fn put_back(&self, element: T) {
        self.handoff.put_back(element);
    }
}

impl<T: Send> TransferQueue<T> {
    /// Puts the element, and waits until a consumer has it.
    ///
    /// # Errors
    ///
    /// The element, if the running task was interrupted before a consumer took it.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, TransferQueue};
    /// use std::thread;
    ///
    /// let queue = TransferQueue::unbounded();
    /// thread::scope(|scope| {
    ///     scope.spawn(|| assert_eq!(queue.take().ok(), Some("sack")));
    ///     // Returns when the consumer has it.
    ///     assert!(queue.transfer("sack").is_ok());
    ///     assert!(queue.is_empty());
    /// });
    /// ```
    pub fn transfer(&self, element: T) -> Result<(), OfferError<T>> {
        self.handoff.put(element)
    }

    /// Puts the element, and waits until a consumer has it, at most for `timeout`.
    ///
    /// # Errors
    ///
    /// The element, if the timeout elapsed or the running task was interrupted before a consumer took it.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, TransferQueue};
    /// use std::time::Duration;
    ///
    /// let queue = TransferQueue::unbounded();
    /// let refused = queue.transfer_timeout("sack", Duration::from_millis(1)).unwrap_err();
    /// assert_eq!(refused.element, "sack", "no consumer came");
    /// assert!(queue.is_empty());
    /// ```
    #[doc(alias = "tryTransfer")]
    pub fn transfer_timeout(&self, element: T, timeout: Duration) -> Result<(), OfferError<T>> {
        self.handoff.offer_timeout(element, timeout)
    }

    /// Hands the element to a waiting consumer, or fails.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, Reason, TransferQueue};
    ///
    /// let queue = TransferQueue::unbounded();
    /// let refused = queue.try_transfer("sack").unwrap_err();
    /// assert_eq!(refused.reason, Reason::Full, "no consumer waits");
    /// assert!(queue.is_empty());
    /// ```
    ///
    /// # Errors
    ///
    /// The element, if no consumer waits.
    pub fn try_transfer(&self, element: T) -> Result<(), OfferError<T>> {
        self.handoff.offer(element)
    }

    /// Puts the element; the future is ready when a consumer has it. This is
    /// [`transfer`](TransferQueue::transfer) for async code.
    ///
    /// The future is cancel-safe: dropped before it is ready, it removes the element and drops it;
    /// [`SendFuture::into_element`] returns it instead. The element is in the queue from the first poll on.
    ///
    /// ```
    /// # use std::{future::Future, pin::pin, task::{Context, Poll, Waker}};
    /// use millpond::queue::{BlockingQueue, TransferQueue};
    ///
    /// # let mut context = Context::from_waker(Waker::noop());
    /// let queue = TransferQueue::unbounded();
    /// let mut delivery = pin!(queue.deliver("sack"));
    /// assert!(delivery.as_mut().poll(&mut context).is_pending());
    /// assert_eq!(queue.poll(), Some("sack"));
    /// assert!(matches!(delivery.as_mut().poll(&mut context), Poll::Ready(Ok(()))));
    /// ```
    pub fn deliver(&self, element: T) -> SendFuture<'_, T, HandOffQueue<T>> {
        self.handoff.send(element)
    }
}

impl<T> Default for TransferQueue<T> {
    fn default() -> Self {
        Self::unbounded()
    }
}

impl<T: Send> BlockingQueue<T> for TransferQueue<T> {
    fn hand_back(&self, element: T) {
        self.put_back(element);
    }

    fn offer(&self, element: T) -> Result<(), OfferError<T>> {
        self.handoff.rendezvous().enqueue(element);
        Ok(())
    }

    fn poll(&self) -> Option<T> {
        self.handoff.poll()
    }

    fn poll_offer(
        &self,
        element: &mut Option<T>,
        _place: &mut WaitSlot,
        _waker: &Waker,
    ) -> Offered {
        let element = element.take().expect("there is an element to put");
        self.handoff.rendezvous().enqueue(element);
        Offered::In
    }

    fn poll_take(&self, slot: &mut WaitSlot, waker: &Waker) -> Taken<T> {
        self.handoff.poll_take(slot, waker)
    }

    /// Does nothing: an offer never waits.
    fn leave_offer(&self, _element: &mut Option<T>, _place: &mut WaitSlot) {}

    fn leave_take(&self, slot: &mut WaitSlot) -> Option<T> {
        self.handoff.leave_take(slot)
    }

    fn len(&self) -> usize {
        self.handoff.rendezvous().waiting_producers()
    }

    fn capacity(&self) -> Option<usize> {
        None
    }

    fn set_capacity(&self, _capacity: usize) -> Result<(), CapacityError> {
        Err(CapacityError::Fixed)
    }

    fn visit(&self, see: &mut dyn FnMut(&T) -> ControlFlow<()>) {
        self.handoff.rendezvous().visit(see);
    }

    /// Waiting transfers of removed elements succeed.
    fn remove_where(&self, limit: usize, unwanted: &mut dyn FnMut(&T) -> bool) -> Vec<T> {
        self.handoff.rendezvous().remove_where(limit, unwanted)
    }

    fn clock(&self) -> &Clock {
        self.handoff.clock()
    }
}

impl<T: Send> AsyncQueue<T> for TransferQueue<T> {}

impl<T> fmt::Debug for TransferQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransferQueue")
            .field("len", &self.handoff.rendezvous().waiting_producers())
            .field("waiting_consumers", &self.waiting_consumers())
            .finish_non_exhaustive()
    }
}
