//! Tasks without a handle that are dropped unrun after all.
//!
//! An executor that drops a task it had accepted, because its deadline has passed or because it has waited
//! for too long, tells the task's handle. A task without a handle has nobody to tell, so its executor is
//! told instead: a pool counts it and gives notice; the others write a line, at most one in ten seconds
//! each process, to the log (feature `tracing`) or to the standard error.
//!
//! # Who listens to a task
//!
//! Whoever else refers to its cell: its handles. Three cases are different, and are settled while the
//! closure is dropped, on the thread that gives the task up:
//!
//! - a *witness* of a scheduled pool refers to the cell as well, and is no handle ([`discount_witness`]);
//! - the first poll of a future is a task without a handle, and the future may have one;
//! - the task of a job in a scope has a handle, which is the scope's, and the job may have none
//!   ([`has_listener`], for both).

use crate::task::{CancelReason, Name, Task};
use millpond_raw::sync::local;
use std::cell::Cell;
use std::panic::Location;

/// A task without a handle that was accepted and dropped unrun.
#[derive(Debug)]
pub(crate) struct DroppedTask {
    pub(crate) name: Option<Name>,
    pub(crate) made_at: &'static Location<'static>,
    pub(crate) reason: CancelReason,
}

/// What the present thread gives up.
#[derive(Clone, Copy)]
struct GivingUp {
    reason: CancelReason,
    listeners: usize,
}

local! {
    static GIVING_UP: Cell<Option<GivingUp>> = Cell::new(None);
}

/// Why a closure is dropped unrun, for one that has a handle to tell: a task of its own stands behind
/// it.
pub(super) fn why_dropped() -> CancelReason {
    let given_up = GIVING_UP.try_with(Cell::get).ok().flatten();
    given_up.map_or(CancelReason::Dropped, |given_up| given_up.reason)
}

/// Whether somebody listens to what the closure stands for that is dropped here and now.
pub(super) fn has_listener(has_one: bool) {
    change(|_| usize::from(has_one));
}

/// One of those who refer to the task that is given up here and now is no handle of it.
pub(crate) fn discount_witness() {
    change(|listeners| listeners.saturating_sub(1));
}

fn change(f: impl FnOnce(usize) -> usize) {
    let _ = GIVING_UP.try_with(|cell| {
        if let Some(given_up) = cell.get() {
            let listeners = f(given_up.listeners);
            cell.set(Some(GivingUp {
                listeners,
                ..given_up
            }));
        }
    });
}

/// Gives the task up. Returns what there is of it if it was gone before; and the task, if nobody was
/// listening to it.
pub(super) fn give_up(task: Task, reason: CancelReason) -> Result<Option<DroppedTask>, Task> {
    let about = DroppedTask {
        name: task.shared_name(),
        made_at: task.made_at(),
        reason,
    };
    let mut listeners = task.others();
    let inside = Some(GivingUp { reason, listeners });
    // A closure that is dropped may give up a task of its own.
    let outside = GIVING_UP.try_with(|cell| cell.replace(inside));
    let ended = task.give_up(reason);
    if let Ok(outside) = outside {
        let inside = GIVING_UP.try_with(|cell| cell.replace(outside));
        if let Ok(Some(inside)) = inside {
            listeners = inside.listeners;
        }
    }
    match ended {
        true => Ok((listeners == 0).then_some(about)),
        false => Err(task),
    }
}

/// Writes a line about it, for executors that have nobody to tell.
#[cfg(not(any(millpond_loom, millpond_shuttle)))]
pub(super) fn write_down(task: DroppedTask) {
    #![allow(
        clippy::disallowed_types,
        reason = "a static outlives every model; this one only says how long ago a line was written"
    )]
    use crate::time::Clock;
    use std::sync::Mutex;
    use std::time::{Duration, Instant};

    const EVERY: Duration = Duration::from_secs(10);
    static LAST: Mutex<(Option<Instant>, u64)> = Mutex::new((None, 0));

    let now = Clock::system().now();
    let dropped = {
        // Somebody else is at it in this very moment: one line says enough.
        let Ok(mut last) = LAST.try_lock() else {
            return;
        };
        last.1 += 1;
        if last.0.is_some_and(|last| now.duration_since(last) < EVERY) {
            return;
        }
        last.0 = Some(now);
        std::mem::take(&mut last.1)
    };
    let DroppedTask {
        name,
        made_at,
        reason,
    } = task;
    let label = name.as_ref().map_or("a task", Name::as_str);
    let line = format!(
        "{label} (made at {made_at}) was accepted without a handle and dropped: {reason}; {dropped} of \
         that kind since the last line. Submit it with a handle to hear of it where it is submitted"
    );
    #[cfg(feature = "tracing")]
    tracing::warn!(target: "millpond", "{line}");
    #[cfg(not(feature = "tracing"))]
    eprintln!("millpond: {line}");
}

/// A model has no clock that such a line could go by.
#[cfg(any(millpond_loom, millpond_shuttle))]
pub(super) fn write_down(_: DroppedTask) {}
