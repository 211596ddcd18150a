//! Blocking queues: producers wait for room, consumers for elements, as threads or in async code.
//!
//! Take one to pass elements from some threads or async tasks to others with a bound on memory. A pool brings a queue for
//! its tasks along; [`Queue::custom`](crate::pool::Queue::custom) makes it use another.
//!
//! ```
//! use millpond::queue::{BlockingQueue, FifoQueue};
//!
//! let sacks = FifoQueue::bounded(2)?;
//! std::thread::scope(|threads| {
//!     threads.spawn(|| (1..=5).for_each(|sack| sacks.put(sack).unwrap())); // waits for room
//!     for sack in 1..=5 {
//!         assert_eq!(sacks.take().unwrap(), sack); // in async code: sacks.recv().await
//!     }
//! });
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! One trait, [`BlockingQueue`], and these flavors:
//!
//! | | flavor | order | bound | Java |
//! |---|---|---|---|---|
//! | 1 | [`FifoQueue`] | first in, first out | or none | `ArrayBlockingQueue`, `LinkedBlockingQueue` |
//! | 2 | [`PriorityQueue`] | by comparator, stable, optional aging | or none | `PriorityBlockingQueue` |
//! | 3 | [`DelayQueue`] | by due time | or none | `DelayQueue` |
//! | 4 | [`HandOffQueue`] | fair or not | holds nothing | `SynchronousQueue` |
//! | 5 | [`TransferQueue`] | first in, first out | none | `LinkedTransferQueue` |
//! | 6 | [`BlockingDeque`] | both ends | or none | `LinkedBlockingDeque` |
//! | 7 | [`WeightedQueue`] | first in, first out | by weight | none |
//!
//! # One primitive
//!
//! Waiting for room and waiting for an element are one step each, which threads and futures share:
//! [`poll_offer`](BlockingQueue::poll_offer) and [`poll_take`](BlockingQueue::poll_take) try, and on failure leave
//! a waker in the queue, identified by a [`WaitSlot`]. Everything else (`put`, `take`, the timed and interruptible
//! forms, `send().await` and `recv().await`) is written once on top of them. A queue of your own implements these two.
//!
//! # Rules of every flavor
//!
//! 1. A rejected element is returned with the reason ([`OfferError`]).
//! 2. Every blocking form checks the interrupt token when it begins, also when it need not wait, and while it
//!    waits. Reporting an interrupt clears it; success leaves it set.
//! 3. A timeout of zero tries once; a timeout beyond the range of the clock is infinite.
//! 4. The capacity can change while the queue is in use. Elements beyond a smaller capacity stay, and offers fail
//!    until there is room again.
//! 5. A panic of user code leaves the queue intact. Sinks, destructors and wakers run without its lock;
//!    comparators, predicates and visitors run under it, and must not use the queue.
//! 6. A waiter that gives up leaves nothing behind, and passes on a wake-up that it cannot use.

// | file | what |
// |---|---|
// | `error.rs` | errors |
// | `wait.rs` | the blocking forms, for threads |
// | `future.rs` | the async forms |
// | `fifo.rs` | the first-in-first-out queue |
// | `priority.rs` | the priority queue |
// | `delay.rs` | the delay queue |
// | `handoff.rs` | the hand-off queue |
// | `transfer.rs` | the transfer queue |
// | `deque.rs` | the deque |
// | `weighted.rs` | the queue bounded by weight |
// | `flavor.rs` | implements the trait for a flavor on a core |
// | `two_lock` | core of the plain queue: producers and consumers have a lock each |
// | `monitor.rs` | core of priority, delay, deque and weighted: a store under one lock |
// | `rendezvous` | core of hand-off and transfer: producers and consumers meet in two lines |
// | `wake_list.rs` | waiters, wakers to call after unlocking, and backing off from a held lock |
// | `hint.rs` | the state of a queue as seen without its lock |
// | `store.rs` | what the monitor needs of a data structure |
// | `ring.rs` | store: a ring |
// | `ranked.rs` | store: sorted by due time, comparator and age |
// | `heap.rs` | the binary heap of `ranked.rs` |

mod delay;
mod deque;
mod error;
mod fifo;
mod flavor;
mod future;
mod handoff;
mod heap;
mod hint;
mod monitor;
mod priority;
mod ranked;
mod rendezvous;
mod ring;
mod store;
mod transfer;
mod two_lock;
mod wait;
mod wake_list;
mod weighted;

pub use delay::DelayQueue;
pub use deque::{BlockingDeque, Reversed};
pub use error::{CapacityError, OfferError, Reason};
pub use fifo::FifoQueue;
pub use future::{AsyncQueue, RecvFuture, SendFuture};
pub use handoff::HandOffQueue;
pub use hint::QueueHint;
pub use priority::PriorityQueue;
pub use transfer::TransferQueue;

pub(crate) use two_lock::search::{end_push_for_self, pushing_for_self};
pub use weighted::WeightedQueue;

use crate::interrupt::Interrupted;
use crate::time::{Clock, Deadline};
use millpond_raw::wait_queue::Ticket;
use std::any::Any;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

/// A queue in which threads and futures can wait for room and for elements.
///
/// The trait is object-safe: `Arc<dyn BlockingQueue<T>>` is a queue. Methods that copy or compare elements are in
/// [`QueueExt`].
#[doc(alias = "java.util.concurrent.BlockingQueue")]
pub trait BlockingQueue<T>: fmt::Debug + Send + Sync {
    /// Adds the element if there is room, without waiting.
    ///
    /// # Errors
    ///
    /// The element, if there is no room.
    fn offer(&self, element: T) -> Result<(), OfferError<T>>;

    /// Removes the next element if there is one, without waiting.
    fn poll(&self) -> Option<T>;

    /// Adds the element, or stores `waker`, to be called when it is worth trying again. `slot` identifies the
    /// waiter. A flavor may keep the element while the producer waits.
    fn poll_offer(&self, element: &mut Option<T>, slot: &mut WaitSlot, waker: &Waker) -> Offered;

    /// Removes the next element, or stores `waker`, to be called when it is worth trying again. `slot` identifies
    /// the waiter.
    fn poll_take(&self, slot: &mut WaitSlot, waker: &Waker) -> Taken<T>;

    /// Ends a wait that [`poll_offer`](BlockingQueue::poll_offer) began, and gets the element back. `element`
    /// stays empty if it was accepted at the last moment: then the offer has succeeded.
    fn leave_offer(&self, element: &mut Option<T>, slot: &mut WaitSlot);

    /// Ends a wait that [`poll_take`](BlockingQueue::poll_take) began. Returns an element that was handed over at
    /// the last moment: then the take has succeeded.
    fn leave_take(&self, slot: &mut WaitSlot) -> Option<T>;

    /// Takes an element back that [`leave_take`](BlockingQueue::leave_take) has returned to a consumer that no
    /// longer wants it: a `recv()` that is dropped at the last moment. A flavor that hands elements over puts it
    /// before all others; one whose `leave_take` returns none need not implement this.
    fn hand_back(&self, element: T) {
        drop(self.offer(element));
    }

    /// The number of elements.
    fn len(&self) -> usize;

    /// The largest number of elements; `None` if there is no bound, 0 if it only hands over.
    fn capacity(&self) -> Option<usize>;

    /// Changes the bound. Elements beyond it stay, and offers fail until there is room again.
    ///
    /// # Errors
    ///
    /// The queue cannot have this capacity; the old one stays.
    fn set_capacity(&self, capacity: usize) -> Result<(), CapacityError>;

    /// Calls `see` for each element in the order in which they would come out, until it breaks; a consistent
    /// snapshot. The flavors call it under their lock: it must not use the queue.
    fn visit(&self, see: &mut dyn FnMut(&T) -> ControlFlow<()>);

    /// Removes the elements for which `unwanted` returns true, at most `limit`, and returns them in order. If
    /// `unwanted` panics nothing is removed. The flavors call it under their lock: it must not use the queue.
    fn remove_where(&self, limit: usize, unwanted: &mut dyn FnMut(&T) -> bool) -> Vec<T>;

    /// The clock of its timeouts.
    fn clock(&self) -> &Clock;

    /// The state as seen without the lock, for threads that poll for a moment before they park. Flavors that hand
    /// over have none: their producers and consumers must find each other waiting.
    fn hint(&self) -> Option<QueueHint> {
        None
    }

    /// Whether an element may be held back until it is due, as in a [`DelayQueue`]. A pool does not run a task
    /// inline that such a queue holds back.
    fn holds_back(&self) -> bool {
        false
    }

    /// Adds the element, and waits for room.
    ///
    /// # Errors
    ///
    /// The element, if the running task was interrupted or the element can never fit.
    fn put(&self, element: T) -> Result<(), OfferError<T>> {
        wait::put(self, element, Deadline::NEVER)
    }

    /// Adds the element, and waits for room, at most for `timeout`.
    ///
    /// # Errors
    ///
    /// The element, if the timeout elapsed, the running task was interrupted, or the element can never fit.
    fn offer_timeout(&self, element: T, timeout: Duration) -> Result<(), OfferError<T>> {
        let deadline = self.clock().deadline(timeout);
        wait::put(self, element, deadline)
    }

    /// Removes the next element, and waits for one.
    ///
    /// # Errors
    ///
    /// The running task was interrupted.
    fn take(&self) -> Result<T, Interrupted> {
        wait::take(self, Deadline::NEVER)
            .map(|element| element.expect("a take without a deadline does not time out"))
    }

    /// Removes the next element, and waits for one, at most for `timeout`; `None` if the timeout elapsed.
    ///
    /// # Errors
    ///
    /// The running task was interrupted.
    fn poll_timeout(&self, timeout: Duration) -> Result<Option<T>, Interrupted> {
        let deadline = self.clock().deadline(timeout);
        wait::take(self, deadline)
    }

    /// Whether it has no elements.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of elements that fit; `usize::MAX` if there is no bound.
    fn remaining_capacity(&self) -> usize {
        match self.capacity() {
            Some(capacity) => capacity.saturating_sub(self.len()),
            None => usize::MAX,
        }
    }

    /// Moves the elements to `sink` in order, at most `max`, and returns how many were moved. If the sink panics,
    /// its element is lost, and the others are in the sink or in the queue.
    fn drain_to(&self, max: usize, sink: &mut dyn FnMut(T)) -> usize {
        let max = max.min(self.len());
        let mut moved = 0;
        while moved < max {
            let Some(element) = self.poll() else { break };
            moved += 1;
            sink(element);
        }
        moved
    }
}

/// Methods of every queue that copy, compare or collect elements. Elements are copied and compared under the
/// queue's lock: their `clone` and `eq` must not use the queue.
pub trait QueueExt<T>: BlockingQueue<T> {
    /// A copy of the next element; it stays in the queue.
    fn peek(&self) -> Option<T>
    where
        T: Clone,
    {
        let mut next = None;
        self.visit(&mut |element| {
            next = Some(element.clone());
            ControlFlow::Break(())
        });
        next
    }

    /// Copies of all elements in the order in which they would come out; a consistent snapshot.
    fn snapshot(&self) -> Vec<T>
    where
        T: Clone,
    {
        let mut all = Vec::new();
        self.visit(&mut |element| {
            all.push(element.clone());
            ControlFlow::Continue(())
        });
        all
    }

    /// Whether it has an equal element.
    fn contains(&self, wanted: &T) -> bool
    where
        T: PartialEq,
    {
        let mut found = false;
        self.visit(&mut |element| {
            if element == wanted {
                found = true;
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        found
    }

    /// Removes the first equal element. Returns whether there was one.
    fn remove(&self, unwanted: &T) -> bool
    where
        T: PartialEq,
    {
        !self
            .remove_where(1, &mut |element| element == unwanted)
            .is_empty()
    }

    /// Removes and drops all elements.
    fn clear(&self) {
        drop(self.remove_where(usize::MAX, &mut |_| true));
    }

    /// Drops the elements for which `wanted` returns false. Returns how many those were.
    #[doc(alias = "retainAll")]
    #[doc(alias = "removeIf")]
    fn retain(&self, wanted: impl Fn(&T) -> bool) -> usize {
        self.remove_where(usize::MAX, &mut |element| !wanted(element))
            .len()
    }

    /// Adds the elements one after the other while there is room, without waiting.
    ///
    /// ```
    /// use millpond::queue::{FifoQueue, BlockingQueue, QueueExt};
    ///
    /// let queue = FifoQueue::bounded(2)?;
    /// let error = queue.offer_all(1..=4).unwrap_err();
    /// assert_eq!(error.element, [3, 4]);
    /// assert_eq!(queue.snapshot(), [1, 2]);
    /// # Ok::<(), millpond::queue::CapacityError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The elements from the first rejected one on, and the reason for that one.
    #[doc(alias = "addAll")]
    fn offer_all(&self, elements: impl IntoIterator<Item = T>) -> Result<(), OfferError<Vec<T>>> {
        let mut elements = elements.into_iter();
        while let Some(element) = elements.next() {
            if let Err(OfferError { element, reason }) = self.offer(element) {
                let mut rest = vec![element];
                rest.extend(elements);
                return Err(OfferError {
                    element: rest,
                    reason,
                });
            }
        }
        Ok(())
    }

    /// Moves all elements to a collection.
    fn drain_into(&self, sink: &mut impl Extend<T>) -> usize {
        self.drain_to(usize::MAX, &mut |element| sink.extend([element]))
    }
}

impl<T, Q: BlockingQueue<T> + ?Sized> QueueExt<T> for Q {}

/// The result of [`BlockingQueue::poll_offer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "an offer that waits must be polled again when it is woken"]
pub enum Offered {
    /// The element is in the queue.
    In,
    /// There is no room; the waker is called when there may be.
    Wait,
    /// The element will never fit.
    Never(Reason),
}

/// The result of [`BlockingQueue::poll_take`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "an element may be in here"]
pub enum Taken<T> {
    /// The element.
    Got(T),
    /// There is none. The waker is called when there may be; the caller polls again at this time at the latest.
    Wait(Deadline),
}

/// Identifies a waiter in a queue. It belongs to one queue, and to one offer or one take.
#[derive(Debug, Default)]
pub struct WaitSlot {
    /// The position in a list of waiters.
    pub ticket: Option<Ticket>,
    /// A flavor's own data about the waiter.
    pub node: Option<Arc<dyn Any + Send + Sync>>,
}
