//! Tasks without a handle that are dropped unrun after all.
//!
//! An executor that drops a task it had accepted, because its deadline has passed or because it has waited
//! for too long, tells the task's handle. A task without a handle has nobody to tell, so its executor is
//! told instead ([`Executor::report_dropped`](super::Executor::report_dropped)): a pool counts it and gives
//! notice; a wrapper tells the executor below; the others write a line, with the number of those that were
//! dropped since the last one, to the log (feature `tracing`) or to the standard error. One process
//! writes at most one such line in ten seconds.
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

#[cfg(not(any(millpond_loom, millpond_shuttle)))]
mod line;
mod tally;

use crate::task::{CancelReason, Name, Task};
use millpond_raw::sync::local;
use std::cell::Cell;
use std::panic::Location;

#[cfg(not(any(millpond_loom, millpond_shuttle)))]
pub(super) use line::write_down;
pub(crate) use tally::{DropTally, Step};

/// A task without a handle that was accepted and dropped unrun.
#[doc(hidden)]
#[derive(Debug)]
pub struct DroppedTask {
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
pub(crate) fn give_up(task: Task, reason: CancelReason) -> Result<Option<DroppedTask>, Task> {
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

/// Why a task was dropped, inside a sentence about it.
pub(crate) fn why(reason: CancelReason) -> String {
    let why = match reason {
        CancelReason::Expired => "its deadline had passed",
        CancelReason::WaitedTooLong => "it waited longer than max_queue_wait",
        CancelReason::Shed => {
            "it was shed, because its pool was overloaded and it had waited too long"
        }
        CancelReason::Refused => "no thread could be started to run it",
        other => return other.to_string(),
    };
    why.to_owned()
}

/// A model has no clock that a line could go by.
#[cfg(any(millpond_loom, millpond_shuttle))]
pub(super) fn write_down(_: DroppedTask) {}
