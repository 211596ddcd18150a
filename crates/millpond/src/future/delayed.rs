//! An executor that submits to another one after a delay.

use super::timeout::{HeldAlarm, off_timer};
use crate::executor::{Executor, RejectReason, Rejected};
use crate::task::Task;
use crate::time::{Clock, Deadline};
use millpond_raw::catch_panic;
use millpond_raw::sync::Mutex;
use std::io;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Duration;

/// Submits each task to another executor, a while after it came; see [`delayed`].
#[derive(Clone, Debug)]
pub struct DelayedExecutor<X> {
    inner: X,
    clock: Clock,
    delay: Duration,
}

/// An executor that submits each task to that one, a while after it came. If that rejects it then, its handle is cancelled.
///
/// ```
/// use millpond::future::{self, Completable, DefaultExecutor};
/// use std::time::Duration;
///
/// let later = future::delayed(&DefaultExecutor, Duration::from_millis(1));
/// assert_eq!(Completable::supply_on(&later, || "flour")?.join()?, "flour");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "delayedExecutor")]
pub fn delayed<X: Executor + Clone>(executor: &X, delay: Duration) -> DelayedExecutor<X> {
    DelayedExecutor {
        inner: executor.clone(),
        clock: Clock::system(),
        delay,
    }
}

impl<X> DelayedExecutor<X> {
    /// By this clock.
    #[must_use]
    pub fn clock(self, clock: Clock) -> Self {
        DelayedExecutor { clock, ..self }
    }
}

/// A task that waits for its time. The alarm and this hold each other until it fires.
struct Waiting<X> {
    inner: X,
    task: Mutex<Option<Task>>,
    alarm: Mutex<Option<HeldAlarm>>,
    clock: Clock,
    deadline: Deadline,
}

impl<X: Executor + 'static> Waiting<X> {
    /// Sets the alarm.
    ///
    /// # Errors
    ///
    /// Nobody would fire it, or nobody could submit the task then.
    fn arm(self: &Arc<Self>) -> io::Result<()> {
        let alarm = HeldAlarm::new(&self.clock, self.deadline, &Waker::from(Arc::clone(self)))?;
        let former = self.alarm.lock().replace(alarm);
        drop(former);
        if self.task.lock().is_none() {
            // It is over.
            self.disarm();
        }
        Ok(())
    }

    fn disarm(&self) {
        let alarm = self.alarm.lock().take();
        drop(alarm);
    }

    fn submit(self: &Arc<Self>) {
        let is_early = !self.deadline.has_passed(self.clock.now());
        if is_early && self.arm().is_ok() {
            // Alarms may fire early: for their owners to look again.
            return;
        }
        let task = self.task.lock().take();
        if let Some(task) = task {
            self.disarm();
            // A task that is rejected now is dropped, which completes its handle.
            let _ = catch_panic::call(|| self.inner.execute_task(task).map_err(drop));
        }
    }
}

impl<X: Executor + 'static> Wake for Waiting<X> {
    fn wake(self: Arc<Self>) {
        off_timer(move || self.submit());
    }
}

impl<X: Executor + Clone + 'static> Executor for DelayedExecutor<X> {
    fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        let waiting = Arc::new(Waiting {
            inner: self.inner.clone(),
            task: Mutex::new(Some(task)),
            alarm: Mutex::new(None),
            clock: self.clock.clone(),
            deadline: self.clock.deadline(self.delay),
        });
        let Err(missing) = waiting.arm() else {
            return Ok(());
        };
        let task = waiting.task.lock().take();
        match task {
            Some(task) => Err(Rejected::new(task, RejectReason::SpawnFailed(missing))),
            None => Ok(()),
        }
    }

    fn clock(&self) -> Clock {
        self.clock.clone()
    }
}
