//! The transfer queue: an unbounded queue in which one may also wait until one's element was taken.
//!
//! It is a fair [`HandOffQueue`] in which elements may stay behind without their putter. Takers are
//! the same in both. [`transfer`](TransferQueue::transfer) *is* the hand-off queue's `put`; the
//! transfer queue's own `put` leaves the element in the same line and goes. So there is one line,
//! one order and one protocol (`handoff/meeting.rs`), and nothing to prove twice.
//!
//! # Rules
//!
//! 1. Elements come out in the order in which they were put or transferred, together.
//! 2. An element is in the queue or in somebody's hands. What was put and not taken is found by the
//!    next who polls.
//! 3. Whoever removes the element of a waiting transfer has received it: the transfer succeeds.
//! 4. A transfer that is given up takes its element out again, wherever it stands in the line.

use super::{
    AsyncQueue, BlockingQueue, CapacityError, HandOffQueue, Offered, Place, Refused, Sending, Taken,
};
use crate::time::Clock;
use std::fmt;
use std::ops::ControlFlow;
use std::task::Waker;
use std::time::Duration;

/// An unbounded queue, first in, first out, in which a producer may wait until its element was
/// taken.
///
/// ```
/// use millpond::queue::{BlockingQueue, TransferQueue};
/// use std::sync::Arc;
///
/// let queue = Arc::new(TransferQueue::unbounded());
/// queue.put("first")?;
/// let line = Arc::clone(&queue);
/// let consumer = std::thread::spawn(move || [line.take(), line.take()]);
/// queue.transfer("second")?;
/// // Now it is in the consumer's hands, and so is everything before it.
/// assert!(queue.is_empty());
/// assert_eq!(consumer.join().unwrap(), [Ok("first"), Ok("second")]);
/// # Ok::<(), millpond::queue::Refused<&str>>(())
/// ```
#[doc(alias = "java.util.concurrent.LinkedTransferQueue")]
#[doc(alias = "LinkedTransferQueue")]
pub struct TransferQueue<T> {
    hands: HandOffQueue<T>,
}

impl<T> TransferQueue<T> {
    /// An empty queue. No transfer queue has a bound.
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
            hands: HandOffQueue::fair(),
        }
    }

    /// The same, with time-outs that run by `clock`.
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
        self.hands = self.hands.with_clock(clock);
        self
    }

    /// Whether somebody waits for an element now.
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
    ///     assert!(queue.try_transfer("sack").is_ok(), "straight into somebody's hands");
    /// });
    /// ```
    pub fn has_waiting_consumer(&self) -> bool {
        self.waiting_consumers() > 0
    }

    /// How many wait for an element now.
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
        self.hands.waiting_takers()
    }

    /// Takes back an element that somebody took and cannot use. It goes to a consumer who waits, or
    /// to the next who comes, before all others.
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
    /// # Ok::<(), millpond::queue::Refused<i32>>(())
    /// ```
    pub fn put_back(&self, element: T) {
        self.hands.put_back(element);
    }
}

impl<T: Send> TransferQueue<T> {
    /// Puts the element in and waits until a consumer has it.
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
    ///     // Returns when the other one has it.
    ///     assert!(queue.transfer("sack").is_ok());
    ///     assert!(queue.is_empty());
    /// });
    /// ```
    pub fn transfer(&self, element: T) -> Result<(), Refused<T>> {
        self.hands.put(element)
    }

    /// Puts the element in and waits until a consumer has it, but not longer than `patience`.
    ///
    /// # Errors
    ///
    /// The element, if the time was up or the running task was interrupted before a consumer took
    /// it.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, TransferQueue};
    /// use std::time::Duration;
    ///
    /// let queue = TransferQueue::unbounded();
    /// let refused = queue.transfer_timeout("sack", Duration::from_millis(1)).unwrap_err();
    /// assert_eq!(refused.element, "sack", "nobody came");
    /// assert!(queue.is_empty());
    /// ```
    #[doc(alias = "tryTransfer")]
    pub fn transfer_timeout(&self, element: T, patience: Duration) -> Result<(), Refused<T>> {
        self.hands.offer_timeout(element, patience)
    }

    /// Gives the element to a consumer who waits now, and does not put it in otherwise.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, Reason, TransferQueue};
    ///
    /// let queue = TransferQueue::unbounded();
    /// let refused = queue.try_transfer("sack").unwrap_err();
    /// assert_eq!(refused.reason, Reason::Full, "nobody waits");
    /// assert!(queue.is_empty());
    /// ```
    ///
    /// # Errors
    ///
    /// The element, if nobody waits for one.
    pub fn try_transfer(&self, element: T) -> Result<(), Refused<T>> {
        self.hands.offer(element)
    }

    /// Puts the element in; the future is ready when a consumer has it. This is
    /// [`transfer`](TransferQueue::transfer) for async code.
    ///
    /// The future is cancel-safe: dropped before it is ready, it takes the element out again, and
    /// drops it; [`Sending::into_element`] gets it back instead. The element is in the queue from
    /// the first poll on.
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
    pub fn deliver(&self, element: T) -> Sending<'_, T, HandOffQueue<T>> {
        self.hands.send(element)
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

    fn offer(&self, element: T) -> Result<(), Refused<T>> {
        self.hands.meeting().leave_behind(element);
        Ok(())
    }

    fn poll(&self) -> Option<T> {
        self.hands.poll()
    }

    fn poll_offer(&self, element: &mut Option<T>, _place: &mut Place, _waker: &Waker) -> Offered {
        let element = element.take().expect("there is an element to put");
        self.hands.meeting().leave_behind(element);
        Offered::In
    }

    fn poll_take(&self, place: &mut Place, waker: &Waker) -> Taken<T> {
        self.hands.poll_take(place, waker)
    }

    /// Nothing to do: an offer never waits here.
    fn leave_offer(&self, _element: &mut Option<T>, _place: &mut Place) {}

    fn leave_take(&self, place: &mut Place) -> Option<T> {
        self.hands.leave_take(place)
    }

    fn len(&self) -> usize {
        self.hands.meeting().offered()
    }

    fn capacity(&self) -> Option<usize> {
        None
    }

    fn set_capacity(&self, _capacity: usize) -> Result<(), CapacityError> {
        Err(CapacityError::Fixed)
    }

    fn visit(&self, see: &mut dyn FnMut(&T) -> ControlFlow<()>) {
        self.hands.meeting().visit(see);
    }

    /// Who waits in a transfer of one of them is told that it was received.
    fn remove_where(&self, limit: usize, unwanted: &mut dyn FnMut(&T) -> bool) -> Vec<T> {
        self.hands.meeting().remove_where(limit, unwanted)
    }

    fn clock(&self) -> &Clock {
        self.hands.clock()
    }
}

impl<T: Send> AsyncQueue<T> for TransferQueue<T> {}

impl<T> fmt::Debug for TransferQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransferQueue")
            .field("len", &self.hands.meeting().offered())
            .field("waiting_consumers", &self.waiting_consumers())
            .finish_non_exhaustive()
    }
}
