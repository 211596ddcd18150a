//! A queue as a user might write one: a lock, a deque, and everyone is woken by everything.
//!
//! It is here to stand for all queues that are none of ours. A test may watch its steps, and the
//! watcher may do what users' code does: count, take its time at a gate, panic.

use millpond::queue::{
    BlockingQueue, CapacityError, OfferError, Offered, QueueHint, Reason, Taken, WaitSlot,
};
use millpond::time::{Clock, Deadline};
use millpond_raw::user_code::{self, Kind};
use std::collections::VecDeque;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// A step of a caller on an [`OwnQueue`], reported before or after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// About to offer, without waiting.
    Offer,
    /// An offer has just gone in.
    Offered,
    /// About to poll.
    Poll,
    /// About to offer, or to wait for room.
    WaitForRoom,
    /// About to take, or to wait for an element.
    WaitForElement,
    /// About to ask for the length.
    Len,
    /// About to take out what is unwanted.
    RemoveWhere,
    /// About to change the capacity.
    SetCapacity,
    /// About to give up waiting, for room or for an element.
    Leave,
}

type Watcher = Arc<dyn Fn(Step) + Send + Sync>;

/// A bounded queue, first in, first out.
pub struct OwnQueue<T> {
    inside: Mutex<Inside<T>>,
    watcher: Option<Watcher>,
    /// Whether an offer forgets to wake the waiters, once; `None` if it never does.
    forgets: Option<AtomicBool>,
    clock: Clock,
}

struct Inside<T> {
    elements: VecDeque<T>,
    capacity: usize,
    waiters: Vec<Waker>,
}

impl<T> Inside<T> {
    /// All wakers of waiters, to be woken outside the lock.
    fn all(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.waiters)
    }

    fn wait(&mut self, waker: &Waker) {
        if !self.waiters.iter().any(|known| known.will_wake(waker)) {
            self.waiters.push(waker.clone());
        }
    }
}

impl<T> OwnQueue<T> {
    /// A queue for at most `capacity` elements.
    pub fn bounded(capacity: usize) -> Self {
        OwnQueue {
            inside: Mutex::new(Inside {
                elements: VecDeque::new(),
                capacity,
                waiters: Vec::new(),
            }),
            watcher: None,
            forgets: None,
            clock: Clock::system(),
        }
    }

    /// The same, and `watcher` is called with every step, outside the queue's lock.
    #[must_use]
    pub fn watched(mut self, watcher: impl Fn(Step) + Send + Sync + 'static) -> Self {
        self.watcher = Some(Arc::new(watcher));
        self
    }

    /// The same with a bug: the first offer wakes no waiter.
    #[must_use]
    pub fn that_forgets_a_wake_up(mut self) -> Self {
        self.forgets = Some(AtomicBool::new(true));
        self
    }

    fn lock(&self) -> MutexGuard<'_, Inside<T>> {
        user_code::check(Kind::Queue);
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, step: Step) {
        if let Some(watcher) = &self.watcher {
            watcher(step);
        }
    }

    fn try_offer(&self, element: T) -> Result<(), T> {
        let mut inside = self.lock();
        if inside.elements.len() >= inside.capacity {
            return Err(element);
        }
        inside.elements.push_back(element);
        let forgets = self.forgets.as_ref();
        if forgets.is_some_and(|forgets| forgets.swap(false, Ordering::Relaxed)) {
            return Ok(());
        }
        let waiters = inside.all();
        drop(inside);
        waiters.into_iter().for_each(Waker::wake);
        Ok(())
    }

    fn try_poll(&self) -> Option<T> {
        let mut inside = self.lock();
        let element = inside.elements.pop_front()?;
        let waiters = inside.all();
        drop(inside);
        waiters.into_iter().for_each(Waker::wake);
        Some(element)
    }
}

impl<T: Send> BlockingQueue<T> for OwnQueue<T> {
    fn hint(&self) -> Option<QueueHint> {
        // A step is reported only if there is a watcher.
        self.forgets.as_ref()?;
        let inside = self.lock();
        Some(QueueHint {
            is_ready: !inside.elements.is_empty(),
            has_room: inside.elements.len() < inside.capacity,
        })
    }

    fn offer(&self, element: T) -> Result<(), OfferError<T>> {
        self.tell(Step::Offer);
        let offered = self.try_offer(element).map_err(|element| OfferError {
            element,
            reason: Reason::Full,
        });
        if offered.is_ok() {
            self.tell(Step::Offered);
        }
        offered
    }

    fn poll(&self) -> Option<T> {
        self.tell(Step::Poll);
        self.try_poll()
    }

    fn poll_offer(&self, element: &mut Option<T>, _: &mut WaitSlot, waker: &Waker) -> Offered {
        self.tell(Step::WaitForRoom);
        let Some(offered) = element.take() else {
            return Offered::In;
        };
        // On the list before the try: room that comes in between wakes us.
        self.lock().wait(waker);
        match self.try_offer(offered) {
            Ok(()) => Offered::In,
            Err(back) => {
                *element = Some(back);
                Offered::Wait
            }
        }
    }

    fn poll_take(&self, _: &mut WaitSlot, waker: &Waker) -> Taken<T> {
        self.tell(Step::WaitForElement);
        self.lock().wait(waker);
        match self.try_poll() {
            Some(element) => Taken::Got(element),
            None => Taken::Wait(Deadline::NEVER),
        }
    }

    fn leave_offer(&self, _: &mut Option<T>, _: &mut WaitSlot) {
        self.tell(Step::Leave);
    }

    fn leave_take(&self, _: &mut WaitSlot) -> Option<T> {
        self.tell(Step::Leave);
        None
    }

    fn len(&self) -> usize {
        self.tell(Step::Len);
        self.lock().elements.len()
    }

    fn capacity(&self) -> Option<usize> {
        Some(self.lock().capacity)
    }

    fn set_capacity(&self, capacity: usize) -> Result<(), CapacityError> {
        self.tell(Step::SetCapacity);
        if capacity == 0 {
            return Err(CapacityError::Zero);
        }
        let mut inside = self.lock();
        inside.capacity = capacity;
        let waiters = inside.all();
        drop(inside);
        waiters.into_iter().for_each(Waker::wake);
        Ok(())
    }

    fn visit(&self, see: &mut dyn FnMut(&T) -> ControlFlow<()>) {
        for element in &self.lock().elements {
            if see(element).is_break() {
                break;
            }
        }
    }

    fn remove_where(&self, limit: usize, unwanted: &mut dyn FnMut(&T) -> bool) -> Vec<T> {
        self.tell(Step::RemoveWhere);
        let mut inside = self.lock();
        let (mut removed, mut at) = (Vec::new(), 0);
        while at < inside.elements.len() && removed.len() < limit {
            if unwanted(&inside.elements[at]) {
                removed.extend(inside.elements.remove(at))
            } else {
                at += 1
            }
        }
        let waiters = inside.all();
        drop(inside);
        waiters.into_iter().for_each(Waker::wake);
        removed
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }
}

impl<T> fmt::Debug for OwnQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inside = self.lock();
        f.debug_struct("OwnQueue")
            .field("len", &inside.elements.len())
            .field("capacity", &inside.capacity)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};

    #[test]
    fn a_watcher_hears_of_every_step_and_may_spoil_it() {
        let steps = Arc::new(Mutex::new(Vec::new()));
        let own = Arc::clone(&steps);
        let queue = OwnQueue::bounded(1).watched(move |step| {
            own.lock().unwrap().push(step);
            if step == Step::SetCapacity {
                panic_any("no");
            }
        });
        queue.offer(1).unwrap();
        assert!(queue.offer(2).is_err());
        assert_eq!(queue.poll(), Some(1));
        assert!(catch_unwind(AssertUnwindSafe(|| queue.set_capacity(2))).is_err());
        let expected = [
            Step::Offer,
            Step::Offered,
            Step::Offer,
            Step::Poll,
            Step::SetCapacity,
        ];
        assert_eq!(*steps.lock().unwrap(), expected);
        assert_eq!(queue.capacity(), Some(1));
    }
}
