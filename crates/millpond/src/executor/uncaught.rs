//! Where the panics of tasks without a handle go.
//!
//! A panic belongs to the task's handle. A fire-and-forget task has none, so its executor reports
//! it: by then the program's panic hook has printed it, and the executor's own hook, if it has one,
//! is given the payload. A panic of that hook costs nothing but itself.

use super::dropped::{self, DroppedTask};
use crate::task::{CancelReason, Name, Panic, Place, Ran, Shell, Task};
use millpond_raw::quiet;
use millpond_raw::task::Token;
use millpond_raw::user_code::{self, Kind};
use std::fmt;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::Arc;

/// The panic of a task that has no handle.
pub struct UncaughtPanic {
    name: Option<Name>,
    made_at: &'static Location<'static>,
    panic: Panic,
}

impl UncaughtPanic {
    /// What the task is called.
    pub fn name(&self) -> Option<&str> {
        self.name.as_ref().map(Name::as_str)
    }

    /// Where the task was made.
    pub fn made_at(&self) -> &'static Location<'static> {
        self.made_at
    }

    /// What it panicked with.
    pub fn panic(&self) -> &Panic {
        &self.panic
    }

    /// What it panicked with, to keep.
    pub fn into_panic(self) -> Panic {
        self.panic
    }
}

impl fmt::Debug for UncaughtPanic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UncaughtPanic")
            .field("name", &self.name)
            .field("made_at", &format_args!("{}", self.made_at))
            .field("panic", &self.panic)
            .finish()
    }
}

/// Runs the tasks of an executor, and knows where their uncaught panics go.
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

    /// Runs the task, unless its deadline has passed. Nothing of it panics out of here. If it is dropped and
    /// has no handle, a line is written about it.
    pub(crate) fn run(&self, task: Task) -> Fate {
        self.run_with(task, dropped::write_down, |_| ())
    }

    /// As [`run`](Runner::run), and tells `on_drop` of a task without a handle that is dropped, and `on_panic`
    /// what the body panics with, before that goes where it belongs. `on_panic` must not panic.
    #[inline(always)]
    pub(crate) fn run_with(
        &self,
        task: Task,
        on_drop: impl FnOnce(DroppedTask),
        on_panic: impl FnOnce(&Panic),
    ) -> Fate {
        if task.is_expired() {
            return self.shed(task, CancelReason::Expired, on_drop);
        }
        if let Some(hook) = &self.hook {
            return run_hooked(&**hook, task, on_panic);
        }
        match task.run_seeing(on_panic) {
            Ran::Completed => Fate::Completed,
            Ran::Unwanted => Fate::Unwanted,
            Ran::Gone(shell) => Fate::of(shell),
            Ran::Panicked(payload) => {
                quiet::drop(payload);
                Fate::Panicked
            }
        }
    }

    /// Runs a closure as the body of a task that was made there and that inherits nothing, without making
    /// one. Nothing of it panics out of here.
    #[inline]
    pub(super) fn run_closure(&self, made_at: &'static Location<'static>, f: impl FnOnce()) {
        // As in a task's cell: what the closure owns is dropped inside the catch, and the token is gone
        // before the hook hears.
        user_code::check(Kind::Closure);
        let outcome = Token::new().enter(|| catch_unwind(AssertUnwindSafe(f)));
        if let Err(payload) = outcome {
            self.closure_panicked(made_at, Panic::new(payload));
        }
    }

    #[cold]
    fn closure_panicked(&self, made_at: &'static Location<'static>, panic: Panic) {
        match &self.hook {
            Some(hook) => tell(&**hook, None, made_at, panic),
            None => quiet::drop(panic),
        }
    }
}

/// Runs the task, and tells the hook of its panic.
#[inline(never)]
fn run_hooked(hook: &Hook, task: Task, on_panic: impl FnOnce(&Panic)) -> Fate {
    let (name, made_at) = (task.shared_name(), task.made_at());
    match task.run_seeing(on_panic) {
        Ran::Completed => Fate::Completed,
        Ran::Unwanted => Fate::Unwanted,
        Ran::Gone(shell) => Fate::of(shell),
        Ran::Panicked(None) => Fate::Panicked,
        Ran::Panicked(Some(panic)) => {
            tell(hook, name, made_at, panic);
            Fate::Panicked
        }
    }
}

fn tell(hook: &Hook, name: Option<Name>, made_at: &'static Location<'static>, panic: Panic) {
    let report = UncaughtPanic {
        name,
        made_at,
        panic,
    };
    user_code::check(Kind::Hook);
    let _ = quiet::call(|| hook(report));
}

impl Runner {
    /// Gives the task up instead of running it, and tells `on_drop` if it has no handle.
    #[cold]
    pub(crate) fn shed(
        &self,
        task: Task,
        reason: CancelReason,
        on_drop: impl FnOnce(DroppedTask),
    ) -> Fate {
        match dropped::give_up(task, reason) {
            Err(task) => return Fate::of(task.shell()),
            Ok(None) => {}
            Ok(Some(dropped)) => on_drop(dropped),
        }
        match reason {
            CancelReason::Expired => Fate::Expired,
            _ => Fate::Shed,
        }
    }
}

/// What became of a task that was to be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Completed,
    Panicked,
    /// It ran, and had been cancelled meanwhile: nobody wanted its value.
    Unwanted,
    /// It was cancelled before.
    Cancelled,
    Expired,
    Shed,
    /// A waiter has run it, or runs it, and not a worker of this executor.
    RanElsewhere,
    /// A worker of this very executor has run it in place, and counts it.
    RanAtHome,
}

impl Fate {
    /// What has become of a task of which only the shell is left.
    pub(crate) fn of(shell: Shell) -> Self {
        match shell {
            Shell::InPlace(Place::AtHome) => Fate::RanAtHome,
            Shell::InPlace(Place::Elsewhere) | Shell::Cancelled(Some(CancelReason::RunInPlace)) => {
                Fate::RanElsewhere
            }
            Shell::Cancelled(Some(CancelReason::Expired)) => Fate::Expired,
            Shell::Cancelled(_) => Fate::Cancelled,
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
