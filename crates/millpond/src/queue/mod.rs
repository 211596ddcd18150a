//! Blocking queues, of every kind.
//!
//! One trait, [`BlockingQueue`], and these flavors:
//!
//! | | flavor | order | bound | Java |
//! |---|---|---|---|---|
//! | 1 | [`ArrayQueue`] | first in, first out | always | `ArrayBlockingQueue` |
//! | 2 | [`LinkedQueue`] | first in, first out | or none | `LinkedBlockingQueue` |
//! | 3 | [`PriorityQueue`] | by comparator, stable, optional aging | or none | `PriorityBlockingQueue` |
//! | 4 | [`DelayQueue`] | by due time | or none | `DelayQueue` |
//! | 5 | [`HandOffQueue`] | fair or not | holds nothing | `SynchronousQueue` |
//! | 6 | [`TransferQueue`] | first in, first out | none | `LinkedTransferQueue` |
//! | 7 | [`DequeQueue`] | both ends | or none | `LinkedBlockingDeque` |
//! | 8 | [`WeighedQueue`] | first in, first out | by weight | none |
//!
//! # One primitive
//!
//! Waiting for room and waiting for an element each come down to one step that threads and futures
//! share: [`poll_offer`](BlockingQueue::poll_offer) and [`poll_take`](BlockingQueue::poll_take) try,
//! and if there is nothing to be had they leave a waker behind, at a [`Place`]. All the rest, `put`,
//! `take`, the timed and interruptible forms, `send().await` and `recv().await`, is written once on
//! top of them, in `wait.rs` and `future.rs`.
//!
//! # Rules of every flavor
//!
//! 1. An element that is not taken in comes back, with the reason ([`Refused`]).
//! 2. Every blocking form looks at the interrupt token when it begins, also when it need not wait,
//!    and while it waits. Reporting an interrupt clears it; success leaves it set.
//! 3. Zero patience tries once; more patience than time can tell is for ever.
//! 4. A capacity can change while the queue is in use. Shrinking below the length keeps the
//!    elements and takes no new ones until there is room again.
//! 5. A panic of users' code leaves the queue whole. Sinks, destructors and wakers run outside its
//!    lock; comparators, predicates and visitors run under it, and must not use the queue.
//! 6. Who gives up a place leaves nothing behind, and passes a wake-up on that it cannot use.

mod array;
mod delay;
mod deque;
mod error;
mod flavor;
mod future;
mod glance;
mod guarded;
mod handoff;
mod heap;
mod line;
mod linked;
mod priority;
mod ranked;
mod ring;
mod store;
mod transfer;
mod twin;
mod wait;
mod weighed;

pub use array::ArrayQueue;
pub use delay::DelayQueue;
pub use deque::{DequeQueue, Reversed};
pub use error::{CapacityError, Reason, Refused};
pub use future::{AsyncQueue, Receiving, Sending};
pub use glance::Glance;
pub use handoff::HandOffQueue;
pub use linked::LinkedQueue;
pub use priority::PriorityQueue;
pub use transfer::TransferQueue;
pub use weighed::WeighedQueue;

use crate::interrupt::Interrupted;
use crate::time::{Clock, Deadline};
use millpond_raw::waits::Ticket;
use std::any::Any;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

/// A queue that one can wait on, for room and for elements.
///
/// The trait is object-safe: `Arc<dyn BlockingQueue<T>>` is a queue. What needs more of the
/// elements than moving them is in [`QueueExt`].
#[doc(alias = "java.util.concurrent.BlockingQueue")]
pub trait BlockingQueue<T>: fmt::Debug + Send + Sync {
    /// Takes the element in if there is room, and does not wait.
    ///
    /// # Errors
    ///
    /// The element, if there is no room.
    fn offer(&self, element: T) -> Result<(), Refused<T>>;

    /// Takes the next element out if there is one, and does not wait.
    fn poll(&self) -> Option<T>;

    /// Takes the element in, or leaves `waker` at `place` to be woken when it is worth trying
    /// again. While it waits a flavor may keep the element itself.
    fn poll_offer(&self, element: &mut Option<T>, place: &mut Place, waker: &Waker) -> Offered;

    /// Takes the next element out, or leaves `waker` at `place` to be woken when it is worth trying
    /// again.
    fn poll_take(&self, place: &mut Place, waker: &Waker) -> Taken<T>;

    /// Gives up a place that [`poll_offer`](BlockingQueue::poll_offer) took, and gets the element
    /// back. `element` stays empty if it was taken in at the last moment: then the offer has
    /// succeeded.
    fn leave_offer(&self, element: &mut Option<T>, place: &mut Place);

    /// Gives up a place that [`poll_take`](BlockingQueue::poll_take) took. Returns the element that
    /// was handed over at the last moment, if one was: then the take has succeeded.
    fn leave_take(&self, place: &mut Place) -> Option<T>;

    /// Takes an element back that [`leave_take`](BlockingQueue::leave_take) has returned to one who
    /// no longer wants it: a `recv()` that is dropped at the last moment. A flavor that hands
    /// elements over puts it in front of all others; one whose `leave_take` returns none needs
    /// nothing here.
    fn hand_back(&self, element: T) {
        drop(self.offer(element));
    }

    /// How many elements are in it.
    fn len(&self) -> usize;

    /// How many elements it may hold; `None` if it has no bound, 0 if it only hands over.
    fn capacity(&self) -> Option<usize>;

    /// Changes the bound. Elements beyond it stay, and new ones find no room until they are gone.
    ///
    /// # Errors
    ///
    /// A capacity that it cannot have; the old one stays.
    fn set_capacity(&self, capacity: usize) -> Result<(), CapacityError>;

    /// Shows the elements one by one, in the order in which they would come out, as they are at
    /// one moment; until `see` breaks. The flavors call it while they are locked: it must not use the
    /// queue.
    fn visit(&self, see: &mut dyn FnMut(&T) -> ControlFlow<()>);

    /// Takes out the elements that `unwanted` chooses, at most `limit`, and returns them in order.
    /// If `unwanted` panics, nothing is taken out. The flavors call it while they are locked: it must not use
    /// the queue.
    fn remove_where(&self, limit: usize, unwanted: &mut dyn FnMut(&T) -> bool) -> Vec<T>;

    /// The clock by which its time-outs run.
    fn clock(&self) -> &Clock;

    /// What can be seen of it without its lock, by those who look again for a moment before they
    /// wait. A flavor whose takers and putters must find each other waiting shows nothing.
    fn glance(&self) -> Option<Glance> {
        None
    }

    /// Whether an element that is in it may have to wait for its time, as in a
    /// [`DelayQueue`]. Then it is not to be had before, by whatever way round the queue: a pool runs no
    /// task in place that such a queue holds back.
    fn holds_back(&self) -> bool {
        false
    }

    /// Takes the element in, and waits for room as long as it takes.
    ///
    /// # Errors
    ///
    /// The element, if the running task was interrupted, or if it can never fit.
    fn put(&self, element: T) -> Result<(), Refused<T>> {
        wait::put(self, element, Deadline::NEVER)
    }

    /// Takes the element in, and waits for room, but not longer than `patience`.
    ///
    /// # Errors
    ///
    /// The element, if the time was up, the running task was interrupted, or it can never fit.
    fn offer_timeout(&self, element: T, patience: Duration) -> Result<(), Refused<T>> {
        let deadline = self.clock().deadline(patience);
        wait::put(self, element, deadline)
    }

    /// Takes the next element out, and waits for one as long as it takes.
    ///
    /// # Errors
    ///
    /// The running task was interrupted.
    fn take(&self) -> Result<T, Interrupted> {
        wait::take(self, Deadline::NEVER).map(|element| element.expect("it waits for ever"))
    }

    /// Takes the next element out, and waits for one, but not longer than `patience`; `None` if the
    /// time was up.
    ///
    /// # Errors
    ///
    /// The running task was interrupted.
    fn poll_timeout(&self, patience: Duration) -> Result<Option<T>, Interrupted> {
        let deadline = self.clock().deadline(patience);
        wait::take(self, deadline)
    }

    /// Whether there is no element in it.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many elements there is room for; `usize::MAX` if it has no bound.
    fn remaining_capacity(&self) -> usize {
        match self.capacity() {
            Some(capacity) => capacity.saturating_sub(self.len()),
            None => usize::MAX,
        }
    }

    /// Moves the elements that are there into `sink`, in order, at most `max`, and returns how many
    /// they were. If the sink panics, the element it was given is gone with it, and all others are
    /// where they belong.
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

/// What queues of elements that can be copied or compared can do besides. Elements are copied and compared
/// while the queue is locked: their `clone` and `eq` must not use it.
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

    /// Copies of all elements, as they are at one moment, in the order in which they would come
    /// out.
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

    /// Whether an equal element is in it.
    fn contains(&self, wanted: &T) -> bool
    where
        T: PartialEq,
    {
        let mut found = false;
        self.visit(&mut |element| match element == wanted {
            true => {
                found = true;
                ControlFlow::Break(())
            }
            false => ControlFlow::Continue(()),
        });
        found
    }

    /// Takes the first equal element out. Returns whether there was one.
    fn remove(&self, unwanted: &T) -> bool
    where
        T: PartialEq,
    {
        !self
            .remove_where(1, &mut |element| element == unwanted)
            .is_empty()
    }

    /// Takes everything out and drops it.
    fn clear(&self) {
        drop(self.remove_where(usize::MAX, &mut |_| true));
    }

    /// Keeps the elements that `wanted` chooses, and drops the others. Returns how many those were.
    #[doc(alias = "retainAll")]
    #[doc(alias = "removeIf")]
    fn retain(&self, wanted: impl Fn(&T) -> bool) -> usize {
        self.remove_where(usize::MAX, &mut |element| !wanted(element))
            .len()
    }

    /// Takes the elements in one after the other, as far as there is room, and does not wait.
    ///
    /// ```
    /// use millpond::queue::{ArrayQueue, BlockingQueue, QueueExt};
    ///
    /// let queue = ArrayQueue::bounded(2)?;
    /// let refused = queue.offer_all(1..=4).unwrap_err();
    /// assert_eq!(refused.element, [3, 4]);
    /// assert_eq!(queue.snapshot(), [1, 2]);
    /// # Ok::<(), millpond::queue::CapacityError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The elements from the first that was refused, and why that one was.
    #[doc(alias = "addAll")]
    fn offer_all(&self, elements: impl IntoIterator<Item = T>) -> Result<(), Refused<Vec<T>>> {
        let mut elements = elements.into_iter();
        while let Some(element) = elements.next() {
            if let Err(Refused { element, reason }) = self.offer(element) {
                let mut rest = vec![element];
                rest.extend(elements);
                return Err(Refused {
                    element: rest,
                    reason,
                });
            }
        }
        Ok(())
    }

    /// Moves all elements that are there into a collection.
    fn drain_into(&self, sink: &mut impl Extend<T>) -> usize {
        self.drain_to(usize::MAX, &mut |element| sink.extend([element]))
    }
}

impl<T, Q: BlockingQueue<T> + ?Sized> QueueExt<T> for Q {}

/// What became of an offer that may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "an offer that waits must be tried again when it is woken"]
pub enum Offered {
    /// The element is in.
    In,
    /// There is no room; the waker is called when there may be.
    Wait,
    /// It will never fit.
    Never(Reason),
}

/// What became of a take that may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "an element may be in here"]
pub enum Taken<T> {
    /// Here it is.
    Got(T),
    /// There is none. The waker is called when there may be, and at this time it is worth looking
    /// again without a call.
    Wait(Deadline),
}

/// Where somebody waits in a queue. It belongs to one offer or one take, and to one queue.
#[derive(Debug, Default)]
pub struct Place {
    /// The place in a list of waiters.
    pub ticket: Option<Ticket>,
    /// What a flavor keeps for a waiter besides.
    pub node: Option<Arc<dyn Any + Send + Sync>>,
}
