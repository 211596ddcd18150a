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
//! 1. The token belongs to the task. An interrupt that comes when the task has ended reaches
//!    nobody else.
//! 2. A call that reports an interrupt clears the token. A call that succeeds leaves it set.
//! 3. Every blocking call looks at the token when it begins and while it waits.
//! 4. Code that runs in no task is never interrupted.
//! 5. A task that ignores its token goes on: nothing is killed, no destructor is skipped.
//! 6. An executor that is stopped (`shutdown_now`) interrupts every task that it runs, once, and as
//!    if by its token. What has come before the task notices is one interrupt.
//! 7. Of a task and one that it runs in place (`join_here`, `DirectExecutor`) each is interrupted
//!    through its own handle only. Stopping the executor whose thread they run on interrupts both;
//!    but a task that has reported that, and cleans up, may run others in place in peace.

mod linger;

pub(crate) use linger::{called_after_seeking, linger, linger_closely, seek};

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
    match current::take() {
        true => Err(Interrupted),
        false => Ok(()),
    }
}

/// Whether the running task has been interrupted. Changes nothing.
///
/// ```
/// use millpond::executor::{ExecutorExt, Lifecycle};
/// use millpond::{interrupt, preset};
///
/// let pool = preset::single("mill").build()?;
/// assert!(!interrupt::is_interrupted(), "nobody interrupts what is no task");
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

/// Runs `f` as if nobody interrupted: what it blocks on, it waits for. An interrupt that comes
/// meanwhile is noticed afterwards.
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

/// Why a wait ended without what it waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitError {
    Interrupted,
    TimedOut,
}

/// What a look at the thing that is waited for came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// There is nothing left to wait for.
    Done,
    /// Wait to be woken; and at this time it is worth looking again without that.
    AgainAt(Deadline),
}

impl Look {
    /// Done if it is so, otherwise wait to be woken.
    pub(crate) fn done_if(done: bool) -> Self {
        if done {
            Look::Done
        } else {
            Look::AgainAt(Deadline::NEVER)
        }
    }
}

/// Waits until a look says that it is done: the one loop in which everything of millpond blocks.
///
/// `look` is given the waker that ends the wait, and sees to it that it will be called. It is asked
/// before the interrupt is looked at, and that before the time: what is done is done.
pub(crate) fn wait(
    site: Site,
    clock: &Clock,
    deadline: Deadline,
    mut look: impl FnMut(&Waker) -> Look,
) -> Result<(), WaitError> {
    let here = park::current();
    let waker = here.waker();
    current::listed(&waker, || {
        let mut timed_out = false;
        loop {
            let Look::AgainAt(again) = look(&waker) else {
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

/// Puts an interrupt back that a wait has reported and cleared, because the call that waited got
/// what it wanted at the last moment, or had to go on: success leaves the token set (rule 2).
pub(crate) fn put_back(waited: Result<(), WaitError>) {
    if waited == Err(WaitError::Interrupted) {
        // In no task nothing is reported.
        let _ = current::set();
    }
}

/// Runs `f`, and wakes what `bell` makes if the running task is interrupted meanwhile or has been
/// before. Nothing is reported: the interrupt stays where it is.
pub(crate) fn forwarded<R>(bell: impl FnOnce() -> Waker, f: impl FnOnce() -> R) -> R {
    let bell = bell();
    current::listed(&bell, || {
        // What has come before wakes nobody.
        if current::is_set() {
            bell.wake_by_ref();
        }
        f()
    })
}
