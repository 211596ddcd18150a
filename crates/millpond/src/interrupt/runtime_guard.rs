//! Blocking calls of this library on the threads of an async runtime (feature `tokio`).
//!
//! A thread that polls futures must not block: all that it should poll waits with it, and where the task that it waits for
//! needs that very thread, it waits for ever. Such a call is logged once for each place in the program that makes it, with
//! what to use instead, and listed in [`blocked_runtime_threads`]. It blocks all the same.
//!
//! tokio does not tell whether a thread polls a future. It does give each poll a budget, which threads of
//! `spawn_blocking`, code inside `block_in_place` and threads outside of the runtime do not have: there a thread may block.
//! The budget is only to be seen by using it up. That does no harm: a poll that blocks should yield soon, anyway. A future
//! that is `unconstrained` goes unnoticed.

use millpond_raw::sync::{Mutex, global};
use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::pin;
use std::task::{Context, Waker};
use tokio::runtime::Handle;
use tokio::task::coop::consume_budget;

/// More than the budget of any poll, which is 128.
const BUDGET: usize = 1024;

/// So many places are remembered; in others such calls are not noticed.
const MAX_PLACES: usize = 1000;

global! {
    static PLACES: Mutex<Vec<BlockedRuntime>> = Mutex::new(Vec::new());
}

/// A place that has blocked a thread of an async runtime. See [`blocked_runtime_threads`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockedRuntime {
    /// The call that blocked, such as `TaskHandle::join`.
    pub call: &'static str,
    /// Where the program made it.
    pub location: &'static Location<'static>,
    /// What to use there.
    pub instead: &'static str,
}

impl fmt::Display for BlockedRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BlockedRuntime {
            call,
            location,
            instead,
        } = self;
        write!(
            f,
            "{call} at {location} blocked a thread of a tokio runtime, and every future that waits for that thread: \
             {instead}, or call it in `tokio::task::spawn_blocking`"
        )
    }
}

/// The places in this process where blocking calls of this library have blocked a thread that polls futures of a tokio
/// runtime: [`TaskHandle::join`](crate::task::TaskHandle::join) and its kin,
/// [`RejectionPolicy::Block`](crate::pool::RejectionPolicy::Block),
/// [`Lifecycle::close`](crate::executor::Lifecycle::close) and `await_termination`. Each was logged when it was first
/// seen. A test of a service asserts that there are none. Feature `tokio`.
///
/// ```
/// use millpond::executor::ExecutorExt;
/// use millpond::{interrupt, preset};
/// use std::time::Duration;
///
/// let pool = preset::single("mill").build()?;
/// let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// let nap = || interrupt::sleep(Duration::from_millis(20));
/// runtime.block_on(async {
///     pool.submit(nap)?.await??; // as it should be
///     assert!(interrupt::blocked_runtime_threads().is_empty());
///
///     pool.submit(nap)?.join()??; // the runtime stands still
///     let seen = interrupt::blocked_runtime_threads();
///     assert_eq!((seen.len(), seen[0].call), (1, "TaskHandle::join"));
///     assert_eq!(seen[0].location.file(), file!());
///     Ok::<_, Box<dyn std::error::Error>>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn blocked_runtime_threads() -> Vec<BlockedRuntime> {
    PLACES.lock().clone()
}

/// The caller is about to block the thread.
#[cold]
pub(crate) fn check_runtime(
    call: &'static str,
    location: &'static Location<'static>,
    instead: &'static str,
) {
    if Handle::try_current().is_err() {
        return;
    }
    let is_known = |places: &[BlockedRuntime]| {
        let mut places = places.iter();
        places.any(|place| place.location == location && place.call == call)
    };
    if is_known(&PLACES.lock()) || !polls_a_future() {
        return;
    }
    let place = BlockedRuntime {
        call,
        location,
        instead,
    };
    {
        let mut places = PLACES.lock();
        if is_known(&places) || places.len() >= MAX_PLACES {
            return;
        }
        places.push(place);
    }
    #[cfg(feature = "tracing")]
    tracing::warn!(target: "millpond", event = "runtime_blocked", call, %location, instead, "{place}");
    #[cfg(not(feature = "tracing"))]
    eprintln!("millpond: {place}");
}

fn polls_a_future() -> bool {
    let mut context = Context::from_waker(Waker::noop());
    (0..BUDGET).any(|_| pin!(consume_budget()).poll(&mut context).is_pending())
}
