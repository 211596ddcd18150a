//! Waiting for room and for elements, in async code: the same steps, with the task's waker.

use super::{BlockingQueue, Offered, Place, Refused, Taken};
use crate::time::Alarm;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A queue that async code can wait on too. Threads and futures may wait on one queue together.
///
/// ```
/// # use std::{future::Future, pin::pin, task::{Context, Poll, Waker}};
/// use millpond::queue::{ArrayQueue, AsyncQueue, BlockingQueue};
///
/// let queue = ArrayQueue::bounded(4)?;
/// let work = async {
///     queue.send("flour").await?;
///     Ok::<_, millpond::queue::Refused<_>>(queue.recv().await)
/// };
/// # let done = pin!(work).poll(&mut Context::from_waker(Waker::noop()));
/// # assert!(matches!(done, Poll::Ready(Ok("flour"))));
/// # Ok::<(), millpond::queue::CapacityError>(())
/// ```
pub trait AsyncQueue<T>: BlockingQueue<T> {
    /// Takes the element in, when there is room.
    ///
    /// The future is cancel-safe: dropped before it is ready, it has not put the element in, and
    /// drops it; [`Sending::into_element`] gets it back instead.
    fn send(&self, element: T) -> Sending<'_, T, Self> {
        Sending {
            queue: self,
            element: Some(element),
            place: Place::default(),
        }
    }

    /// Takes the next element out, when there is one.
    ///
    /// The future is cancel-safe: dropped before it is ready, it takes nothing. An element that was
    /// handed to it at the last moment goes back, to be taken before all others.
    fn recv(&self) -> Receiving<'_, T, Self> {
        Receiving {
            queue: self,
            place: Place::default(),
            alarm: None,
            _element: std::marker::PhantomData,
        }
    }
}

/// An element on its way into a queue.
#[must_use = "futures do nothing unless they are awaited"]
pub struct Sending<'a, T, Q: BlockingQueue<T> + ?Sized> {
    queue: &'a Q,
    element: Option<T>,
    place: Place,
}

impl<T, Q: BlockingQueue<T> + ?Sized> Sending<'_, T, Q> {
    /// Gives up, and gets the element back; `None` if it is in the queue.
    pub fn into_element(mut self) -> Option<T> {
        self.queue.leave_offer(&mut self.element, &mut self.place);
        self.element.take()
    }
}

// Nothing in it is pinned: the queue holds a waker, not a pointer into the future.
impl<T, Q: BlockingQueue<T> + ?Sized> Unpin for Sending<'_, T, Q> {}

impl<T, Q: BlockingQueue<T> + ?Sized> Future for Sending<'_, T, Q> {
    type Output = Result<(), Refused<T>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        match this
            .queue
            .poll_offer(&mut this.element, &mut this.place, context.waker())
        {
            Offered::In => Poll::Ready(Ok(())),
            Offered::Wait => Poll::Pending,
            Offered::Never(reason) => {
                let element = this
                    .element
                    .take()
                    .expect("a refused element is still here");
                Poll::Ready(Err(Refused { element, reason }))
            }
        }
    }
}

impl<T, Q: BlockingQueue<T> + ?Sized> Drop for Sending<'_, T, Q> {
    fn drop(&mut self) {
        self.queue.leave_offer(&mut self.element, &mut self.place);
    }
}

impl<T, Q: BlockingQueue<T> + ?Sized> fmt::Debug for Sending<'_, T, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sending")
            .field("queue", &self.queue)
            .finish_non_exhaustive()
    }
}

/// An element on its way out of a queue.
#[must_use = "futures do nothing unless they are awaited"]
pub struct Receiving<'a, T, Q: BlockingQueue<T> + ?Sized> {
    queue: &'a Q,
    place: Place,
    /// Wakes it when an element that is in the queue becomes due.
    alarm: Option<Alarm>,
    _element: std::marker::PhantomData<fn() -> T>,
}

impl<T, Q: BlockingQueue<T> + ?Sized> Future for Receiving<'_, T, Q> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let this = self.get_mut();
        this.alarm = None;
        match this.queue.poll_take(&mut this.place, context.waker()) {
            Taken::Got(element) => Poll::Ready(element),
            Taken::Wait(again) => {
                this.alarm = Some(this.queue.clock().alarm_for_future(again, context.waker()));
                Poll::Pending
            }
        }
    }
}

impl<T, Q: BlockingQueue<T> + ?Sized> Drop for Receiving<'_, T, Q> {
    fn drop(&mut self) {
        if let Some(element) = self.queue.leave_take(&mut self.place) {
            self.queue.hand_back(element);
        }
    }
}

impl<T, Q: BlockingQueue<T> + ?Sized> fmt::Debug for Receiving<'_, T, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiving")
            .field("queue", &self.queue)
            .finish_non_exhaustive()
    }
}
