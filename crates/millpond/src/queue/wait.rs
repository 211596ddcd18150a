//! Waiting for room and for elements in threads: the blocking forms of every flavor.
//!
//! A wait has three steps, each more expensive than the one before: try once; back off and poll the
//! [`QueueHint`](super::QueueHint) for a moment, if the queue has one ([`backoff`]); enter a wait list and park.

use super::{BlockingQueue, OfferError, Offered, Reason, Taken, WaitSlot};
use crate::interrupt::{self, Interrupted, Look, WaitError, backoff};
use crate::time::Deadline;
use millpond_raw::park::Site;

/// Whether the deadline has passed before the caller waits, as with a timeout of zero.
fn is_over<T, Q: BlockingQueue<T> + ?Sized>(queue: &Q, deadline: Deadline) -> bool {
    deadline != Deadline::NEVER && deadline.has_passed(queue.clock().now())
}

/// Puts `element`, and waits for room until `deadline`.
pub(super) fn put<T, Q: BlockingQueue<T> + ?Sized>(
    queue: &Q,
    element: T,
    deadline: Deadline,
) -> Result<(), OfferError<T>> {
    let reject = |element, reason| Err(OfferError { element, reason });
    if interrupt::check().is_err() {
        return reject(element, Reason::Interrupted);
    }
    let mut element = match queue.offer(element) {
        Err(error) if error.reason == Reason::Full => Some(error.element),
        done => return done,
    };
    if is_over(queue, deadline) {
        return reject(element.expect("it was rejected"), Reason::TimedOut);
    }
    if queue.hint().is_some() {
        let done = backoff(
            || queue.hint().is_some_and(|hint| hint.has_room),
            || match queue.offer(element.take()?) {
                Err(error) if error.reason == Reason::Full => {
                    element = Some(error.element);
                    None
                }
                done => Some(done),
            },
        );
        if let Some(done) = done {
            return done;
        }
    }
    wait_for_room(queue, element, deadline)
}

fn wait_for_room<T, Q: BlockingQueue<T> + ?Sized>(
    queue: &Q,
    element: Option<T>,
    deadline: Deadline,
) -> Result<(), OfferError<T>> {
    let mut producer = WaitingProducer {
        queue,
        element,
        slot: WaitSlot::default(),
        is_done: false,
    };
    let mut never = None;
    let site = Site::new("queue.put").on(queue);
    let waited = interrupt::wait(site, queue.clock(), deadline, |waker| {
        match queue.poll_offer(&mut producer.element, &mut producer.slot, waker) {
            Offered::In => Look::Done,
            Offered::Wait => Look::RecheckAt(Deadline::NEVER),
            Offered::Never(reason) => {
                never = Some(reason);
                Look::Done
            }
        }
    });
    producer.is_done = waited.is_ok();
    let Some(element) = producer.end() else {
        interrupt::restore(waited);
        return Ok(());
    };
    let reason = match waited {
        Err(WaitError::Interrupted) => Reason::Interrupted,
        Err(WaitError::TimedOut) => Reason::TimedOut,
        Ok(()) => never.expect("an element that is still here was rejected"),
    };
    Err(OfferError { element, reason })
}

/// Takes an element, and waits for one until `deadline`.
pub(super) fn take<T, Q: BlockingQueue<T> + ?Sized>(
    queue: &Q,
    deadline: Deadline,
) -> Result<Option<T>, Interrupted> {
    interrupt::check()?;
    let got = queue.poll();
    if got.is_some() || is_over(queue, deadline) {
        return Ok(got);
    }
    if queue.hint().is_some() {
        let ready = || queue.hint().is_some_and(|hint| hint.is_ready);
        let got = backoff(ready, || queue.poll());
        if got.is_some() {
            return Ok(got);
        }
    }
    wait_for_element(queue, deadline)
}

fn wait_for_element<T, Q: BlockingQueue<T> + ?Sized>(
    queue: &Q,
    deadline: Deadline,
) -> Result<Option<T>, Interrupted> {
    let mut consumer = WaitingConsumer {
        queue,
        element: None,
        slot: WaitSlot::default(),
        is_done: false,
    };
    let site = Site::new("queue.take").on(queue);
    let waited = interrupt::wait(site, queue.clock(), deadline, |waker| {
        match queue.poll_take(&mut consumer.slot, waker) {
            Taken::Got(got) => {
                consumer.element = Some(got);
                Look::Done
            }
            Taken::Wait(again) => Look::RecheckAt(again),
        }
    });
    consumer.is_done = waited.is_ok();
    match (consumer.end(), waited) {
        (Some(element), waited) => {
            interrupt::restore(waited);
            Ok(Some(element))
        }
        (None, Err(WaitError::Interrupted)) => Err(Interrupted),
        (None, _) => Ok(None),
    }
}

/// A producer that waits for room. It leaves its slot however the wait ends, also by a panic of the queue's
/// comparator.
struct WaitingProducer<'a, T, Q: BlockingQueue<T> + ?Sized> {
    queue: &'a Q,
    element: Option<T>,
    slot: WaitSlot,
    is_done: bool,
}

impl<T, Q: BlockingQueue<T> + ?Sized> WaitingProducer<'_, T, Q> {
    /// Leaves unless it is done; returns the element unless it is in the queue.
    fn end(&mut self) -> Option<T> {
        if !std::mem::replace(&mut self.is_done, true) {
            self.queue.leave_offer(&mut self.element, &mut self.slot);
        }
        self.element.take()
    }
}

impl<T, Q: BlockingQueue<T> + ?Sized> Drop for WaitingProducer<'_, T, Q> {
    fn drop(&mut self) {
        drop(self.end());
    }
}

/// A consumer that waits for an element. It leaves its slot however the wait ends.
struct WaitingConsumer<'a, T, Q: BlockingQueue<T> + ?Sized> {
    queue: &'a Q,
    element: Option<T>,
    slot: WaitSlot,
    is_done: bool,
}

impl<T, Q: BlockingQueue<T> + ?Sized> WaitingConsumer<'_, T, Q> {
    /// Leaves unless it is done; returns the element that it has got.
    fn end(&mut self) -> Option<T> {
        if !std::mem::replace(&mut self.is_done, true) {
            self.element = self.queue.leave_take(&mut self.slot);
        }
        self.element.take()
    }
}

impl<T, Q: BlockingQueue<T> + ?Sized> Drop for WaitingConsumer<'_, T, Q> {
    fn drop(&mut self) {
        // There is an element only after a panic: it goes back instead of being lost.
        if let Some(element) = self.end() {
            self.queue.hand_back(element);
        }
    }
}
