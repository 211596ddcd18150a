//! Runs the tasks of an executor, and reports the panics of tasks without a handle.
//!
//! A panic belongs to the task's handle. A fire-and-forget task has none, so its executor reports the panic: by then the
//! program's panic hook has printed it, and the executor's own hook, if it has one, gets the payload. A panic of that hook
//! is caught.

use super::dropped::{self, DroppedTask};
use crate::task::{CancelReason, InlineRunner, Name, Panic, Ran, Task, Tombstone};
use millpond_raw::catch_panic;
use millpond_raw::task::Token;
use millpond_raw::user_code::{self, Kind};
use std::fmt;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::Arc;

/// The panic of a task that has no handle.
pub struct UncaughtPanic {
    name: Option<Name>,
    location: &'static Location<'static>,
    panic: Panic,
}

impl UncaughtPanic {
    /// The name of the task.
    pub fn name(&self) -> Option<&str> {
        self.name.as_ref().map(Name::as_str)
    }

    /// The source location where the task was created.
    pub fn location(&self) -> &'static Location<'static> {
        self.location
    }

    /// The payload.
    pub fn panic(&self) -> &Panic {
        &self.panic
    }

    /// The payload, by value.
    pub fn into_panic(self) -> Panic {
        self.panic
    }
}

impl fmt::Debug for UncaughtPanic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UncaughtPanic")
            .field("name", &self.name)
            .field("location", &format_args!("{}", self.location))
            .field("panic", &self.panic)
            .finish()
    }
}

/// Runs the tasks of an executor, and reports their uncaught panics.
#[derive(Clone, Default)]
pub(crate) struct Runner {
    hook: Option<Arc<Hook>>,
}

type Hook = dyn Fn(UncaughtPanic) + Send + Sync;

impl Runner {
    pub(crate) fn with_hook(hook: impl Fn(UncaughtPanic) + Send + Sync + 'static) -> Self {
        Runner {
            hook: Some(Arc::new(hook)),
        }
    }

    /// Runs the task, unless its deadline has passed, and catches its panic. If it is dropped and has no handle, a line is
    /// logged.
    pub(crate) fn run(&self, task: Task) -> TaskOutcome {
        self.run_with(task, dropped::log_dropped, |_| ())
    }

    /// As [`run`](Runner::run), and calls `on_drop` if a task without a handle is dropped, and `on_panic` with the payload
    /// of the body's panic before it is delivered. `on_panic` must not panic.
    #[inline(always)]
    pub(crate) fn run_with(
        &self,
        task: Task,
        on_drop: impl FnOnce(DroppedTask),
        on_panic: impl FnOnce(&Panic),
    ) -> TaskOutcome {
        if let Some(reason) = task.expiry() {
            return self.shed(task, reason, on_drop);
        }
        if let Some(hook) = &self.hook {
            return run_hooked(&**hook, task, on_panic);
        }
        match task.run_with_panic_hook(on_panic) {
            Ran::Completed => TaskOutcome::Completed,
            Ran::Unwanted => TaskOutcome::Unwanted,
            Ran::Gone(tombstone) => TaskOutcome::of(tombstone),
            Ran::Panicked(payload) => {
                catch_panic::drop(payload);
                TaskOutcome::Panicked
            }
        }
    }

    /// Runs a closure as the body of a task that was created at this location and inherits nothing, without creating one.
    /// Catches its panic, and says so.
    #[inline]
    pub(super) fn run_closure(
        &self,
        location: &'static Location<'static>,
        f: impl FnOnce(),
    ) -> Result<(), BodyPanicked> {
        // As in a task's cell: the closure is dropped inside the catch, and the token is gone before the hook is called.
        user_code::check(Kind::Closure);
        let outcome = Token::new().enter(|| catch_unwind(AssertUnwindSafe(f)));
        outcome.map_err(|payload| {
            self.closure_panicked(location, Panic::new(payload));
            BodyPanicked
        })
    }

    #[cold]
    fn closure_panicked(&self, location: &'static Location<'static>, panic: Panic) {
        match &self.hook {
            Some(hook) => call_hook(&**hook, None, location, panic),
            None => catch_panic::drop(panic),
        }
    }
}

/// The body of a closure has panicked, and the hook has heard of it.
pub(super) struct BodyPanicked;

/// Runs the task, and calls the hook with its panic.
#[inline(never)]
fn run_hooked(hook: &Hook, task: Task, on_panic: impl FnOnce(&Panic)) -> TaskOutcome {
    let (name, location) = (task.shared_name(), task.location());
    match task.run_with_panic_hook(on_panic) {
        Ran::Completed => TaskOutcome::Completed,
        Ran::Unwanted => TaskOutcome::Unwanted,
        Ran::Gone(tombstone) => TaskOutcome::of(tombstone),
        Ran::Panicked(None) => TaskOutcome::Panicked,
        Ran::Panicked(Some(panic)) => {
            call_hook(hook, name, location, panic);
            TaskOutcome::Panicked
        }
    }
}

fn call_hook(hook: &Hook, name: Option<Name>, location: &'static Location<'static>, panic: Panic) {
    let report = UncaughtPanic {
        name,
        location,
        panic,
    };
    user_code::check(Kind::Hook);
    let _ = catch_panic::call(|| hook(report));
}

impl Runner {
    /// Cancels the task instead of running it, and calls `on_drop` if it has no handle.
    #[cold]
    pub(crate) fn shed(
        &self,
        task: Task,
        reason: CancelReason,
        on_drop: impl FnOnce(DroppedTask),
    ) -> TaskOutcome {
        match dropped::cancel_dropped(task, reason) {
            Err(task) => return TaskOutcome::of(task.tombstone()),
            Ok(None) => {}
            Ok(Some(dropped)) => on_drop(dropped),
        }
        match reason {
            CancelReason::Expired => TaskOutcome::Expired,
            CancelReason::TooLate => TaskOutcome::TooLate,
            _ => TaskOutcome::Shed,
        }
    }
}

/// What became of a task that an executor was to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskOutcome {
    Completed,
    Panicked,
    /// It was cancelled while it ran.
    Unwanted,
    /// It was cancelled before it ran.
    Cancelled,
    Expired,
    /// It was dropped because it could not have been finished in time.
    TooLate,
    Shed,
    /// A waiter that is no worker of this executor has run it inline, or is running it.
    RanElsewhere,
    /// A worker of this very executor has run it inline, and counts it.
    RanByOwnWorker,
}

impl TaskOutcome {
    /// Of a task that left this tombstone.
    pub(crate) fn of(tombstone: Tombstone) -> Self {
        match tombstone {
            Tombstone::Inline(InlineRunner::OwnWorker) => TaskOutcome::RanByOwnWorker,
            Tombstone::Inline(InlineRunner::OtherThread)
            | Tombstone::Cancelled(Some(CancelReason::RanInline)) => TaskOutcome::RanElsewhere,
            Tombstone::Cancelled(Some(CancelReason::Expired)) => TaskOutcome::Expired,
            Tombstone::Cancelled(Some(CancelReason::TooLate)) => TaskOutcome::TooLate,
            Tombstone::Cancelled(_) => TaskOutcome::Cancelled,
        }
    }
}

impl fmt::Debug for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.hook {
            Some(_) => "Runner(with a panic hook)",
            None => "Runner",
        })
    }
}
