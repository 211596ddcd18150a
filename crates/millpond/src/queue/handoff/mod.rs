//! The hand-off queue: it holds nothing, and whoever puts waits for whoever takes.
//!
//! It is a [`Meeting`] of which both sides may wait; `meeting.rs` has the protocol and its
//! invariants. What this file adds is the trait, and what the trait means for a queue without room:
//!
//! 1. Its length and its capacity are 0, whoever waits. Nothing can be seen, searched or removed.
//! 2. [`offer`](BlockingQueue::offer) needs a taker who waits now, [`poll`](BlockingQueue::poll) a
//!    putter who waits now.
//! 3. [`put`](BlockingQueue::put) and [`send`](AsyncQueue::send) are done when the element has
//!    changed hands. Whoever gives up before that gets it back.
//! 4. A taker who gives up at the moment of the match has the element: the take has succeeded. A
//!    future that is dropped at that moment cannot keep it and puts it back, for the next who comes.

mod meeting;
mod room;

use super::{AsyncQueue, BlockingQueue, CapacityError, Offered, Place, Reason, Refused, Taken};
use crate::time::{Clock, Deadline};
use meeting::{Meeting, Order};
use std::fmt;
use std::ops::ControlFlow;
use std::task::Waker;

/// A queue without room: an element goes from hand to hand.
///
/// A [`fair`](HandOffQueue::fair) one serves those who wait in the order in which they came, also
/// when some of them give up in between. An [`unfair`](HandOffQueue::unfair) one serves the last
/// first: it has the warmest cache, and the others get the time to time out. That is what a pool of
/// workers wants.
///
/// ```
/// use millpond::queue::{BlockingQueue, HandOffQueue, Reason};
/// use std::sync::Arc;
///
/// let queue = Arc::new(HandOffQueue::fair());
/// let refused = queue.offer("sack").unwrap_err();
/// assert_eq!(refused.reason, Reason::Full, "nobody is there to take it");
///
/// let hands = Arc::clone(&queue);
/// let miller = std::thread::spawn(move || hands.take());
/// queue.put(refused.element)?;
/// assert_eq!(miller.join().unwrap(), Ok("sack"));
/// # Ok::<(), millpond::queue::Refused<&str>>(())
/// ```
#[doc(alias = "java.util.concurrent.SynchronousQueue")]
#[doc(alias = "SynchronousQueue")]
#[doc(alias = "rendezvous")]
pub struct HandOffQueue<T> {
    meeting: Meeting<T>,
    clock: Clock,
}

impl<T> HandOffQueue<T> {
    /// Whoever waits longest is served first.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, HandOffQueue};
    ///
    /// let queue = HandOffQueue::<u8>::fair();
    /// assert!(queue.is_fair());
    /// assert!(queue.offer(7).is_err(), "nobody is there to take it");
    /// ```
    pub fn fair() -> Self {
        Self::new(Order::Fair)
    }

    /// Whoever came last is served first.
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
            meeting: Meeting::new(order),
            clock: Clock::system(),
        }
    }

    /// The same, with time-outs that run by `clock`.
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

    /// Whether whoever waits longest is served first.
    ///
    /// ```
    /// use millpond::queue::HandOffQueue;
    ///
    /// assert!(HandOffQueue::<u8>::fair().is_fair());
    /// ```
    pub fn is_fair(&self) -> bool {
        self.meeting.order() == Order::Fair
    }

    /// How many wait for an element now.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, HandOffQueue};
    /// use std::thread;
    ///
    /// let queue = HandOffQueue::fair();
    /// thread::scope(|scope| {
    ///     scope.spawn(|| assert_eq!(queue.take().ok(), Some("sack")));
    ///     while queue.waiting_takers() == 0 {
    ///         thread::yield_now();
    ///     }
    ///     assert!(queue.offer("sack").is_ok());
    /// });
    /// ```
    pub fn waiting_takers(&self) -> usize {
        self.meeting.wanted()
    }

    /// How many elements wait for a taker now.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, HandOffQueue};
    /// use std::thread;
    ///
    /// let queue = HandOffQueue::fair();
    /// thread::scope(|scope| {
    ///     scope.spawn(|| assert!(queue.put("sack").is_ok()));
    ///     while queue.waiting_putters() == 0 {
    ///         thread::yield_now();
    ///     }
    ///     assert_eq!(queue.poll(), Some("sack"));
    /// });
    /// ```
    pub fn waiting_putters(&self) -> usize {
        self.meeting.offered()
    }

    /// Takes back an element that somebody took and cannot use. It goes to a taker who waits, or to
    /// the next who comes, as if its putter were still waiting.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, HandOffQueue};
    ///
    /// let queue = HandOffQueue::fair();
    /// queue.put_back("sack");
    /// assert_eq!(queue.poll(), Some("sack"));
    /// ```
    pub fn put_back(&self, element: T) {
        self.meeting.put_back(element);
    }

    pub(super) fn meeting(&self) -> &Meeting<T> {
        &self.meeting
    }
}

impl<T: Send> BlockingQueue<T> for HandOffQueue<T> {
    fn hand_back(&self, element: T) {
        self.put_back(element);
    }

    fn offer(&self, element: T) -> Result<(), Refused<T>> {
        self.meeting.give_now(element).map_err(|element| Refused {
            element,
            reason: Reason::Full,
        })
    }

    fn poll(&self) -> Option<T> {
        self.meeting.take_now()
    }

    fn poll_offer(&self, element: &mut Option<T>, place: &mut Place, waker: &Waker) -> Offered {
        match self.meeting.poll_give(element, place, waker) {
            true => Offered::In,
            false => Offered::Wait,
        }
    }

    fn poll_take(&self, place: &mut Place, waker: &Waker) -> Taken<T> {
        match self.meeting.poll_take(place, waker) {
            Some(element) => Taken::Got(element),
            None => Taken::Wait(Deadline::NEVER),
        }
    }

    fn leave_offer(&self, element: &mut Option<T>, place: &mut Place) {
        self.meeting.leave_give(element, place);
    }

    fn leave_take(&self, place: &mut Place) -> Option<T> {
        self.meeting.leave_take(place)
    }

    /// Always 0: an element in the hands of a putter who waits is not in the queue.
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

    /// Takes from those who wait to put now, one by one.
    fn drain_to(&self, max: usize, sink: &mut dyn FnMut(T)) -> usize {
        // Putters who come while the sink works are for the next call; else this may never end.
        let max = max.min(self.waiting_putters());
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
            .field("waiting_putters", &self.waiting_putters())
            .field("waiting_takers", &self.waiting_takers())
            .finish_non_exhaustive()
    }
}
