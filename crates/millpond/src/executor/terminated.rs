//! Waiting for the end of an executor in async code, which holds no thread.

use super::termination::TerminationError;
use super::traits::Lifecycle;
use super::waitable::WaiterRegistration;
use crate::time::{Alarm, Clock};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// The pause between two looks at an executor that wakes no futures.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Where a future waits for the end of an executor; see [`Lifecycle::end_waiters`].
pub struct EndWaiters<'a>(Vec<WaiterRegistration<'a>>);

impl<'a> EndWaiters<'a> {
    pub(crate) fn new(registration: WaiterRegistration<'a>) -> Self {
        EndWaiters(vec![registration])
    }

    /// Those of two executors that end together.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }
}

impl fmt::Debug for EndWaiters<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndWaiters").finish_non_exhaustive()
    }
}

/// A future that is ready when an executor has terminated: [`Lifecycle::terminated`], [`Lifecycle::close_async`].
///
/// It may be dropped at any time, and then the executor terminates all the same.
#[must_use = "futures do nothing unless they are awaited"]
pub struct Terminated<'a> {
    lifecycle: &'a (dyn Lifecycle + Sync),
    waiters: Option<EndWaiters<'a>>,
    alarm: Option<Alarm>,
    shuts_down: bool,
}

impl<'a> Terminated<'a> {
    /// Of an executor whose type is not known here; otherwise call its [`terminated`](Lifecycle::terminated).
    ///
    /// ```
    /// # use std::{future::Future, pin::pin, task::{Context, Poll, Waker}};
    /// use millpond::executor::{Lifecycle, Terminated};
    /// use millpond::preset;
    ///
    /// let engines: Vec<Box<dyn Lifecycle + Sync>> = vec![Box::new(preset::single("mill").build()?)];
    /// let end = async {
    ///     for engine in &engines {
    ///         engine.shutdown();
    ///         Terminated::of(&**engine).await;
    ///     }
    /// };
    /// # assert!(pin!(end).poll(&mut Context::from_waker(Waker::noop())).is_ready());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of(lifecycle: &'a (dyn Lifecycle + Sync)) -> Self {
        Terminated {
            waiters: lifecycle.end_waiters(),
            lifecycle,
            alarm: None,
            shuts_down: false,
        }
    }

    pub(super) fn after_shutdown(lifecycle: &'a (dyn Lifecycle + Sync)) -> Self {
        Terminated {
            shuts_down: true,
            ..Terminated::of(lifecycle)
        }
    }

    /// The same for a thread that may block.
    ///
    /// # Errors
    ///
    /// As [`Lifecycle::await_termination`].
    ///
    /// ```
    /// use millpond::executor::Lifecycle;
    /// use millpond::preset;
    ///
    /// preset::single("mill").build()?.close_async().wait()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn wait(self) -> Result<(), TerminationError> {
        if self.shuts_down {
            self.lifecycle.close()
        } else {
            self.lifecycle.await_termination()
        }
    }
}

impl Future for Terminated<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        if std::mem::take(&mut this.shuts_down) {
            this.lifecycle.shutdown();
        }
        this.alarm = None;
        // Registered before the look: an end that comes after that wakes us.
        if let Some(waiters) = &mut this.waiters {
            for each in &mut waiters.0 {
                each.register(context.waker());
            }
        }
        if this.lifecycle.is_terminated() {
            this.waiters = None;
            return Poll::Ready(());
        }
        if this.waiters.is_none() {
            let clock = Clock::system();
            let again = clock.deadline(LOOK_AGAIN);
            this.alarm = Some(clock.alarm_for_future(again, context.waker()));
        }
        Poll::Pending
    }
}

impl fmt::Debug for Terminated<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Terminated").field(&self.lifecycle).finish()
    }
}
