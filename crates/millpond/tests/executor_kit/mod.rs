//! What the tests of executors share.

#![allow(
    dead_code,
    reason = "each test program is a crate of its own and takes what it needs"
)]

use millpond::executor::{Executor, ExecutorExt, Lifecycle, RejectReason, Rejected, ThreadPerTask};
use millpond::interrupt::{self, Interrupted};
use millpond::task::{Task, TaskHandle};
use millpond_testkit::Actor;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Longer than anything takes that works.
pub(crate) const LONG: Duration = Duration::from_secs(20);

/// Rejects everything.
#[derive(Debug)]
pub(crate) struct Rejecting;

impl Executor for Rejecting {
    fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        let reason = RejectReason::saturated(7, 7, 2);
        Err(Rejected::new(task, reason))
    }
}

/// Takes tasks and keeps them, until the test runs or drops them.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    tasks: Mutex<Vec<Task>>,
    /// How many it accepts before it rejects.
    pub(crate) room: AtomicUsize,
}

impl Shelf {
    pub(crate) fn with_room(room: usize) -> Arc<Self> {
        Arc::new(Shelf {
            tasks: Mutex::default(),
            room: AtomicUsize::new(room),
        })
    }

    pub(crate) fn take(&self) -> Vec<Task> {
        std::mem::take(&mut self.tasks.lock().unwrap())
    }

    /// Runs what is there, and what comes meanwhile.
    pub(crate) fn run_all(&self) {
        loop {
            let tasks = self.take();
            if tasks.is_empty() {
                return;
            }
            for task in tasks {
                drop(task.run());
            }
        }
    }
}

impl Executor for Shelf {
    fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        let took = self
            .room
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |room| {
                room.checked_sub(1)
            });
        if took.is_err() {
            return Rejecting.execute_task(task);
        }
        self.tasks.lock().unwrap().push(task);
        Ok(())
    }
}

/// Somewhere a body waits until the test lets it go, with a limit to its timeout.
pub(crate) fn gate() -> (Sender<()>, impl FnOnce() + Send + 'static) {
    let (open, opened) = mpsc::channel::<()>();
    (open, move || {
        opened
            .recv_timeout(LONG)
            .expect("the test opens the gate in time");
    })
}

/// A signal whose wait has a timeout.
pub(crate) fn signal() -> (Sender<()>, Expect) {
    let (send, receive) = mpsc::channel();
    (send, Expect(receive))
}

pub(crate) struct Expect(Receiver<()>);

impl Expect {
    #[track_caller]
    pub(crate) fn wait(&self) {
        self.0.recv_timeout(LONG).expect("the signal comes in time");
    }

    pub(crate) fn has_come(&self) -> bool {
        self.0.try_recv().is_ok()
    }
}

/// Submits a task and returns when it has started.
pub(crate) fn start_on<T: Send + 'static>(
    executor: &ThreadPerTask,
    body: impl FnOnce() -> T + Send + 'static,
) -> TaskHandle<T> {
    let (started, start) = signal();
    let handle = executor.submit(move || {
        started.send(()).unwrap();
        body()
    });
    start.wait();
    handle.unwrap()
}

/// Submits a task that sleeps until it is interrupted, and returns when it has started.
pub(crate) fn start_sleeper(executor: &ThreadPerTask) -> TaskHandle<Result<(), Interrupted>> {
    start_on(executor, || interrupt::sleep(LONG))
}

/// A thread for each task of a test, whose termination is part of the test.
pub(crate) struct PerTask(pub(crate) Arc<ThreadPerTask>);

impl PerTask {
    pub(crate) fn of(threads: usize) -> Self {
        PerTask(Arc::new(
            ThreadPerTask::builder("per-task", threads).build().unwrap(),
        ))
    }
}

impl Drop for PerTask {
    fn drop(&mut self) {
        self.0.shutdown();
        let over = self.0.await_termination_timeout(LONG);
        if !std::thread::panicking() {
            assert_eq!(over, Ok(true), "every task of the test ends");
        }
    }
}

/// Runs `body` with an interrupt set before its first step.
pub(crate) fn interrupted_before<T: Send + 'static>(
    body: impl FnOnce() -> T + Send + 'static,
) -> T {
    Actor::start_interrupted("interrupted", body).finish()
}

/// As `mem::forget`, but where a leak checker finds it: this one was leaked on purpose.
pub(crate) fn forget<T>(value: T) {
    static FORGOTTEN: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    let place = Box::into_raw(Box::new(value));
    FORGOTTEN.lock().unwrap().push(place.expose_provenance());
}

/// Panics without a line on the terminal.
pub(crate) fn quiet_panic(text: &'static str) -> ! {
    std::panic::resume_unwind(Box::new(text))
}
