//! Interruption: asking a running task to stop.
//!
//! Every task has a token. `TaskHandle::interrupt` sets it; the task
//! notices at its next blocking call of millpond, which returns [`Interrupted`], or at its next
//! [`check`]:
//!
//! ```
//! use millpond::{interrupt, task};
//!
//! let (task, handle) = task::new(|| {
//!     let mut rounds = 0_u64;
//!     while interrupt::check().is_ok() {
//!         rounds += 1;
//!     }
//!     rounds
//! });
//! let runner = std::thread::spawn(move || task.run());
//! while !handle.is_started() {
//!     std::thread::yield_now();
//! }
//! handle.interrupt();
//! runner.join().unwrap();
//! assert!(handle.join().unwrap_err().is_cancelled());
//! ```
//!
//! # Rules
//!
//! 1. The token belongs to the task. An interrupt that comes after the end of the task has no effect.
//! 2. A call that reports an interrupt clears the token. A call that succeeds leaves it set.
//! 3. Every blocking call checks the token when it begins and while it waits.
//! 4. Code outside tasks is never interrupted.
//! 5. A task that ignores its token runs on: no thread is killed, no destructor is skipped.
//! 6. An executor that is stopped (`shutdown_now`) interrupts every task that it runs, once, as
//!    if by its token. Interrupts that come before the task notices count as one.
//! 7. A task and another one that it runs inline (`run_or_join`, `DirectExecutor`) are each interrupted
//!    through their own handles only. Stopping the executor whose thread they run on interrupts both;
//!    but a task that has reported that, and cleans up, may run others inline without interruption.
//! 8. Parts of a task that other workers run (`forkjoin::join`, `scope`, `install`) are interrupted with the task: each
//!    of them reports that once, and leaves it for the task and the other parts.

// | file | what |
// |---|---|
// | `backoff` | spinning and yielding before a wait parks |
// | `runtime_guard` | blocking calls on the threads of an async runtime |

mod backoff;
#[cfg(feature = "tokio")]
mod runtime_guard;

#[cfg(feature = "tokio")]
pub(crate) use runtime_guard::check_runtime;
#[cfg(feature = "tokio")]
pub use runtime_guard::{BlockedRuntime, blocked_runtime_threads};

pub(crate) use backoff::{Search, backoff, poll_tight};

use crate::time::{Clock, Deadline};
use millpond_raw::park::{self, Site};
use millpond_raw::task::current;
use std::error::Error;
use std::fmt;
use std::task::Waker;
use std::time::Duration;

/// The running task was asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted: the running task was asked to stop")
    }
}

impl Error for Interrupted {}

/// Reports an interrupt of the running task, and clears it. For loops that do not block.
///
/// # Errors
///
/// [`Interrupted`], if the task was interrupted.
///
/// ```
/// use millpond::executor::{ExecutorExt, Lifecycle};
/// use millpond::{interrupt, preset};
///
/// let pool = preset::single("mill").build()?;
/// let turns = pool.submit(|| while interrupt::check().is_ok() {})?;
/// while !turns.is_started() {
///     std::thread::yield_now();
/// }
/// assert!(turns.interrupt());
/// pool.close()?; // It waits for the end, which comes.
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "Thread.interrupted")]
#[inline]
pub fn check() -> Result<(), Interrupted> {
    if current::take() {
        Err(Interrupted)
    } else {
        Ok(())
    }
}

/// The caller is about to block the thread, by this call. Without the feature `tokio` nobody looks.
#[cfg(not(feature = "tokio"))]
#[inline]
pub(crate) fn check_runtime(
    _call: &'static str,
    _location: &'static std::panic::Location<'static>,
    _instead: &'static str,
) {
}

/// Whether the running task has been interrupted. Does not clear the interrupt.
///
/// ```
/// use millpond::executor::{ExecutorExt, Lifecycle};
/// use millpond::{interrupt, preset};
///
/// let pool = preset::single("mill").build()?;
/// assert!(!interrupt::is_interrupted(), "code outside tasks is never interrupted");
/// let turns = pool.submit(|| while !interrupt::is_interrupted() {})?;
/// while !turns.is_started() {
///     std::thread::yield_now();
/// }
/// assert!(turns.interrupt());
/// pool.close()?; // It waits for the end, which comes.
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "Thread.isInterrupted")]
pub fn is_interrupted() -> bool {
    current::is_set()
}

/// Runs `f` without interruption: its blocking calls wait. An interrupt that comes meanwhile is reported
/// afterwards.
///
/// ```
/// use millpond::interrupt;
/// use std::time::Duration;
///
/// // Flushing a file must not be cut short.
/// interrupt::uninterruptible(|| interrupt::sleep(Duration::from_millis(1)))?;
/// # Ok::<(), interrupt::Interrupted>(())
/// ```
pub fn uninterruptible<R>(f: impl FnOnce() -> R) -> R {
    current::masked(f)
}

/// Sleeps, unless the running task is interrupted.
///
/// # Errors
///
/// [`Interrupted`], if the task was interrupted before or while it slept.
///
/// ```
/// use millpond::executor::{ExecutorExt, Lifecycle};
/// use millpond::{interrupt, preset};
/// use std::time::Duration;
///
/// let pool = preset::single("mill").build()?;
/// let (tell, told) = std::sync::mpsc::channel();
/// let nap = pool.submit(move || tell.send(interrupt::sleep(Duration::from_secs(3600))))?;
/// while !nap.is_started() {
///     std::thread::yield_now();
/// }
/// assert!(nap.interrupt());
/// assert!(told.recv()?.is_err(), "it was woken");
/// pool.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "Thread.sleep")]
pub fn sleep(time: Duration) -> Result<(), Interrupted> {
    let clock = Clock::system();
    let deadline = clock.deadline(time);
    check()?;
    match wait(Site::new("interrupt.sleep"), &clock, deadline, |_| {
        Look::done_if(false)
    }) {
        Ok(()) | Err(WaitError::TimedOut) => Ok(()),
        Err(WaitError::Interrupted) => Err(Interrupted),
    }
}

/// Why a wait ended without success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitError {
    Interrupted,
    TimedOut,
}

/// The result of a check for the condition that is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// The condition holds.
    Done,
    /// Wait to be woken, and check again at this time even without that.
    RecheckAt(Deadline),
}

impl Look {
    /// [`Done`](Look::Done) if `done`, otherwise wait to be woken.
    pub(crate) fn done_if(done: bool) -> Self {
        if done {
            Look::Done
        } else {
            Look::RecheckAt(Deadline::NEVER)
        }
    }
}

/// Waits until `look` returns [`Look::Done`]: the one loop in which all of millpond blocks.
///
/// `look` gets the waker that ends the wait, and registers it where it will be called. It is called
/// before the interrupt is checked, and that before the deadline: success wins over both.
pub(crate) fn wait(
    site: Site,
    clock: &Clock,
    deadline: Deadline,
    mut look: impl FnMut(&Waker) -> Look,
) -> Result<(), WaitError> {
    let here = park::current();
    let waker = here.waker();
    current::with_interrupt_waker(&waker, || {
        let mut timed_out = false;
        loop {
            let Look::RecheckAt(again) = look(&waker) else {
                backoff::record_wakeup();
                return Ok(());
            };
            if current::take() {
                return Err(WaitError::Interrupted);
            }
            if timed_out {
                return Err(WaitError::TimedOut);
            }
            let woken = clock.park_until(&here, site, deadline.min(again));
            timed_out = woken == park::Woken::TimedOut && deadline <= again;
        }
    })
}

/// Sets an interrupt again that a wait has reported and cleared, because the waiting call succeeded at the
/// last moment, or had to go on: success leaves the token set (rule 2).
pub(crate) fn restore(waited: Result<(), WaitError>) {
    if waited == Err(WaitError::Interrupted) {
        // Outside tasks there is no token.
        let _ = current::set();
    }
}

/// Runs `f`, and wakes the waker that `waker` makes if the running task is interrupted meanwhile or has been
/// before. The interrupt is not reported and stays set.
pub(crate) fn forward_to<R>(waker: impl FnOnce() -> Waker, f: impl FnOnce() -> R) -> R {
    let waker = waker();
    current::with_interrupt_waker(&waker, || {
        // An interrupt that has come before wakes no waker that is listed now.
        if current::is_set() {
            waker.wake_by_ref();
        }
        f()
    })
}
