//! An executor that submits to another one after a delay.

use super::timeout::off_timer;
use crate::executor::{Executor, RejectReason, Rejected};
use crate::task::Task;
use crate::time::{Alarm, Clock};
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
    alarm: Mutex<Option<Alarm>>,
}

impl<X: Executor + 'static> Wake for Waiting<X> {
    fn wake(self: Arc<Self>) {
        let task = self.task.lock().take();
        if let Some(task) = task {
            off_timer(move || {
                let _ = self.inner.execute_task(task);
                let alarm = self.alarm.lock().take();
                drop(alarm);
            });
        }
    }
}

impl<X: Executor + Clone + 'static> Executor for DelayedExecutor<X> {
    fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        let waiting = Arc::new(Waiting {
            inner: self.inner.clone(),
            task: Mutex::new(Some(task)),
            alarm: Mutex::new(None),
        });
        let deadline = self.clock.deadline(self.delay);
        match self.clock.alarm(deadline, &Waker::from(Arc::clone(&waiting))) {
            Ok(alarm) => {
                let is_pending = waiting.task.lock().is_some();
                if is_pending {
                    *waiting.alarm.lock() = Some(alarm);
                }
                Ok(())
            }
            Err(_) => {
                let task = waiting.task.lock().take();
                let missing = io::Error::other("the timer's thread could not be started");
                match task {
                    Some(task) => Err(Rejected::new(task, RejectReason::SpawnFailed(missing))),
                    None => Ok(()),
                }
            }
        }
    }

    fn clock(&self) -> Clock {
        self.clock.clone()
    }
}
