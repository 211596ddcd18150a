//! Waiting for room and for elements, in threads: the blocking forms of every flavor.
//!
//! A wait has three parts, each dearer than the one before: try; look again for a moment, if the
//! queue can be seen in passing ([`Glance`](super::Glance), [`linger`]); take a place and park.

use super::{BlockingQueue, Offered, Place, Reason, Refused, Taken};
use crate::interrupt::{self, Interrupted, Look, WaitError, linger};
use crate::time::Deadline;
use millpond_raw::park::Site;

/// Whether zero patience is over before a place is taken.
fn is_over<T, Q: BlockingQueue<T> + ?Sized>(queue: &Q, deadline: Deadline) -> bool {
    deadline != Deadline::NEVER && deadline.has_passed(queue.clock().now())
}

/// Puts `element` into the queue, and waits for room until `deadline`.
pub(super) fn put<T, Q: BlockingQueue<T> + ?Sized>(
    queue: &Q,
    element: T,
    deadline: Deadline,
) -> Result<(), Refused<T>> {
    let refuse = |element, reason| Err(Refused { element, reason });
    if interrupt::check().is_err() {
        return refuse(element, Reason::Interrupted);
    }
    let mut element = match queue.offer(element) {
        Err(refused) if refused.reason == Reason::Full => Some(refused.element),
        done => return done,
    };
    if is_over(queue, deadline) {
        return refuse(element.expect("it was refused"), Reason::TimedOut);
    }
    if queue.glance().is_some() {
        let done = linger(
            || queue.glance().is_some_and(|glance| glance.has_room),
            || match queue.offer(element.take()?) {
                Err(refused) if refused.reason == Reason::Full => {
                    element = Some(refused.element);
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
) -> Result<(), Refused<T>> {
    let mut putter = Putter {
        queue,
        element,
        place: Place::default(),
        is_done: false,
    };
    let mut never = None;
    let site = Site::new("queue.put").on(queue);
    let waited = interrupt::wait(site, queue.clock(), deadline, |waker| {
        match queue.poll_offer(&mut putter.element, &mut putter.place, waker) {
            Offered::In => Look::Done,
            Offered::Wait => Look::AgainAt(Deadline::NEVER),
            Offered::Never(reason) => {
                never = Some(reason);
                Look::Done
            }
        }
    });
    putter.is_done = waited.is_ok();
    let Some(element) = putter.end() else {
        interrupt::put_back(waited);
        return Ok(());
    };
    let reason = match waited {
        Err(WaitError::Interrupted) => Reason::Interrupted,
        Err(WaitError::TimedOut) => Reason::TimedOut,
        Ok(()) => never.expect("an element that is still here was refused"),
    };
    Err(Refused { element, reason })
}

/// Takes an element out of the queue, and waits for one until `deadline`.
pub(super) fn take<T, Q: BlockingQueue<T> + ?Sized>(
    queue: &Q,
    deadline: Deadline,
) -> Result<Option<T>, Interrupted> {
    interrupt::check()?;
    let got = queue.poll();
    if got.is_some() || is_over(queue, deadline) {
        return Ok(got);
    }
    if queue.glance().is_some() {
        let ready = || queue.glance().is_some_and(|glance| glance.is_ready);
        let got = linger(ready, || queue.poll());
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
    let mut taker = Taker {
        queue,
        element: None,
        place: Place::default(),
        is_done: false,
    };
    let site = Site::new("queue.take").on(queue);
    let waited = interrupt::wait(site, queue.clock(), deadline, |waker| {
        match queue.poll_take(&mut taker.place, waker) {
            Taken::Got(got) => {
                taker.element = Some(got);
                Look::Done
            }
            Taken::Wait(again) => Look::AgainAt(again),
        }
    });
    taker.is_done = waited.is_ok();
    match (taker.end(), waited) {
        (Some(element), waited) => {
            interrupt::put_back(waited);
            Ok(Some(element))
        }
        (None, Err(WaitError::Interrupted)) => Err(Interrupted),
        (None, _) => Ok(None),
    }
}

/// One who waits for room. However the wait ends, by a panic of the queue's comparator too, it
/// leaves its place.
struct Putter<'a, T, Q: BlockingQueue<T> + ?Sized> {
    queue: &'a Q,
    element: Option<T>,
    place: Place,
    is_done: bool,
}

impl<T, Q: BlockingQueue<T> + ?Sized> Putter<'_, T, Q> {
    /// Leaves, unless it is done; returns the element unless it is in.
    fn end(&mut self) -> Option<T> {
        if !std::mem::replace(&mut self.is_done, true) {
            self.queue.leave_offer(&mut self.element, &mut self.place);
        }
        self.element.take()
    }
}

impl<T, Q: BlockingQueue<T> + ?Sized> Drop for Putter<'_, T, Q> {
    fn drop(&mut self) {
        drop(self.end());
    }
}

/// One who waits for an element. However the wait ends, it leaves its place.
struct Taker<'a, T, Q: BlockingQueue<T> + ?Sized> {
    queue: &'a Q,
    element: Option<T>,
    place: Place,
    is_done: bool,
}

impl<T, Q: BlockingQueue<T> + ?Sized> Taker<'_, T, Q> {
    /// Leaves, unless it is done; returns the element that it has got.
    fn end(&mut self) -> Option<T> {
        if !std::mem::replace(&mut self.is_done, true) {
            self.element = self.queue.leave_take(&mut self.place);
        }
        self.element.take()
    }
}

impl<T, Q: BlockingQueue<T> + ?Sized> Drop for Taker<'_, T, Q> {
    fn drop(&mut self) {
        // Only a panic comes here with an element: it goes back rather than away.
        if let Some(element) = self.end() {
            self.queue.hand_back(element);
        }
    }
}
