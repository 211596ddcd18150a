//! What the tests of the hand-off and transfer queues share.

#![allow(
    dead_code,
    reason = "each test program is a crate of its own and uses what it needs"
)]

use millpond::queue::{BlockingQueue, HandOffQueue, TransferQueue};
use millpond::task::{self, TaskHandle};
use millpond_raw::park::probe;
use std::sync::{Arc, mpsc};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

/// How long a test waits for what must come. Nothing waits as long as that unless it is broken.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// Returns when the thread is really parked in a queue.
pub(crate) fn await_parked(thread: &Thread) {
    probe::await_wait(TIMEOUT, |wait| {
        wait.thread == thread.id() && wait.site.name().starts_with("queue.")
    })
    .expect("the thread comes to wait in a queue");
}

/// A thread that is parked in a queue when this returns.
pub(crate) fn parked<R: Send + 'static>(
    body: impl FnOnce() -> R + Send + 'static,
) -> JoinHandle<R> {
    let thread = std::thread::spawn(body);
    await_parked(thread.thread());
    thread
}

/// A task that is parked in a queue, and what its body returns, which its handle does not tell once
/// it was interrupted.
pub(crate) struct ParkedTask<R> {
    pub(crate) handle: TaskHandle<()>,
    result: mpsc::Receiver<R>,
    thread: JoinHandle<()>,
}

impl<R: Send + 'static> ParkedTask<R> {
    pub(crate) fn new(body: impl FnOnce() -> R + Send + 'static) -> Self {
        let (send, result) = mpsc::channel();
        let (task, handle) = task::new(move || send.send(body()).expect("the test listens"));
        let thread = parked(move || drop(task.run()));
        ParkedTask {
            handle,
            result,
            thread,
        }
    }

    pub(crate) fn interrupt(self) -> R {
        self.handle.interrupt();
        self.result()
    }

    pub(crate) fn result(self) -> R {
        self.thread.join().expect("the thread ends well");
        self.result.recv().expect("the body has returned")
    }
}

/// Both hand-off queues.
pub(crate) fn hand_offs<T: Send + 'static>() -> [Arc<HandOffQueue<T>>; 2] {
    [
        Arc::new(HandOffQueue::fair()),
        Arc::new(HandOffQueue::unfair()),
    ]
}

/// All queues in which consumers are handed their elements.
pub(crate) fn all<T: Send + 'static>() -> [Arc<dyn BlockingQueue<T>>; 3] {
    [
        Arc::new(HandOffQueue::fair()),
        Arc::new(HandOffQueue::unfair()),
        Arc::new(TransferQueue::unbounded()),
    ]
}
