//! Waiting for room and for elements in async code: the same steps, with the task's waker.

use super::{BlockingQueue, OfferError, Offered, Taken, WaitSlot};
use crate::time::Alarm;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A queue in which async code can wait. Threads and futures may wait in one queue together.
///
/// ```
/// # use std::{future::Future, pin::pin, task::{Context, Poll, Waker}};
/// use millpond::queue::{FifoQueue, AsyncQueue, BlockingQueue};
///
/// let queue = FifoQueue::bounded(4)?;
/// let work = async {
///     queue.send("flour").await?;
///     Ok::<_, millpond::queue::OfferError<_>>(queue.recv().await)
/// };
/// # let done = pin!(work).poll(&mut Context::from_waker(Waker::noop()));
/// # assert!(matches!(done, Poll::Ready(Ok("flour"))));
/// # Ok::<(), millpond::queue::CapacityError>(())
/// ```
pub trait AsyncQueue<T>: BlockingQueue<T> {
    /// Adds the element when there is room.
    ///
    /// The future is cancel-safe: dropped before it is ready, it has not added the element, and drops it;
    /// [`SendFuture::into_element`] returns it instead.
    fn send(&self, element: T) -> SendFuture<'_, T, Self> {
        SendFuture {
            queue: self,
            element: Some(element),
            slot: WaitSlot::default(),
        }
    }

    /// Removes the next element when there is one.
    ///
    /// The future is cancel-safe: dropped before it is ready, it takes nothing. An element that was handed to it at
    /// the last moment goes back, before all others.
    fn recv(&self) -> RecvFuture<'_, T, Self> {
        RecvFuture {
            queue: self,
            slot: WaitSlot::default(),
            alarm: None,
            _element: std::marker::PhantomData,
        }
    }
}

/// The future of [`AsyncQueue::send`].
#[must_use = "futures do nothing unless they are awaited"]
pub struct SendFuture<'a, T, Q: BlockingQueue<T> + ?Sized> {
    queue: &'a Q,
    element: Option<T>,
    slot: WaitSlot,
}

impl<T, Q: BlockingQueue<T> + ?Sized> SendFuture<'_, T, Q> {
    /// Gives up, and returns the element; `None` if it is in the queue.
    pub fn into_element(mut self) -> Option<T> {
        self.queue.leave_offer(&mut self.element, &mut self.slot);
        self.element.take()
    }
}

// Nothing is pinned: the queue holds a waker, not a pointer into the future.
impl<T, Q: BlockingQueue<T> + ?Sized> Unpin for SendFuture<'_, T, Q> {}

impl<T, Q: BlockingQueue<T> + ?Sized> Future for SendFuture<'_, T, Q> {
    type Output = Result<(), OfferError<T>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        match this
            .queue
            .poll_offer(&mut this.element, &mut this.slot, context.waker())
        {
            Offered::In => Poll::Ready(Ok(())),
            Offered::Wait => Poll::Pending,
            Offered::Never(reason) => {
                let element = this
                    .element
                    .take()
                    .expect("a rejected element is still here");
                Poll::Ready(Err(OfferError { element, reason }))
            }
        }
    }
}

impl<T, Q: BlockingQueue<T> + ?Sized> Drop for SendFuture<'_, T, Q> {
    fn drop(&mut self) {
        self.queue.leave_offer(&mut self.element, &mut self.slot);
    }
}

impl<T, Q: BlockingQueue<T> + ?Sized> fmt::Debug for SendFuture<'_, T, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendFuture")
            .field("queue", &self.queue)
            .finish_non_exhaustive()
    }
}

/// The future of [`AsyncQueue::recv`].
#[must_use = "futures do nothing unless they are awaited"]
pub struct RecvFuture<'a, T, Q: BlockingQueue<T> + ?Sized> {
    queue: &'a Q,
    slot: WaitSlot,
    /// Wakes the future when an element of the queue becomes due.
    alarm: Option<Alarm>,
    _element: std::marker::PhantomData<fn() -> T>,
}

impl<T, Q: BlockingQueue<T> + ?Sized> Future for RecvFuture<'_, T, Q> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let this = self.get_mut();
        this.alarm = None;
        match this.queue.poll_take(&mut this.slot, context.waker()) {
            Taken::Got(element) => Poll::Ready(element),
            Taken::Wait(again) => {
                this.alarm = Some(this.queue.clock().alarm_for_future(again, context.waker()));
                Poll::Pending
            }
        }
    }
}

impl<T, Q: BlockingQueue<T> + ?Sized> Drop for RecvFuture<'_, T, Q> {
    fn drop(&mut self) {
        if let Some(element) = self.queue.leave_take(&mut self.slot) {
            self.queue.hand_back(element);
        }
    }
}

impl<T, Q: BlockingQueue<T> + ?Sized> fmt::Debug for RecvFuture<'_, T, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecvFuture")
            .field("queue", &self.queue)
            .finish_non_exhaustive()
    }
}
