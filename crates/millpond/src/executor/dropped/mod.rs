//! Detached tasks that are dropped before they run, and the reports of them. (An engine's events: `engine/dropped`.)
//!
//! An executor that drops a task it had accepted, because its deadline has passed or because it has waited for too
//! long, tells the task's handle. A task without a handle has nobody to tell, so its executor is told instead
//! (`Internals::report_dropped`): a pool counts it and emits an event
//! (`engine/dropped.rs`); a wrapper tells the executor below; the others log a line, with the number of tasks dropped
//! since the last one (feature `tracing`), or write it to the standard error. A process logs at most one such line in
//! ten seconds.
//!
//! | file | what |
//! |---|---|
//! | `tally` | counts, and decides when to report |
//! | `reports` | obeys the tally: sets alarms and reports, for an engine or for the process |
//! | `process_log` | the line of the process |
//!
//! # What counts as a listener of a task
//!
//! Everything else that refers to its cell: its handles. Three cases are different, and are settled while the closure
//! is dropped, on the thread that cancels the task:
//!
//! - a *witness* of a scheduled pool refers to the cell as well, and is no handle ([`discount_witness`]);
//! - the first poll of a future is a task without a handle, and the future may have one;
//! - the task of a job in a scope has a handle, which is the scope's, and the job may have none
//!   ([`set_listener`], for both).

#[cfg(not(any(millpond_loom, millpond_shuttle)))]
mod process_log;
mod reports;
mod tally;

use crate::task::{CancelReason, Name, Task};
use millpond_raw::sync::local;
use std::cell::Cell;
use std::panic::Location;

#[cfg(not(any(millpond_loom, millpond_shuttle)))]
pub(super) use process_log::log_dropped;
pub(crate) use reports::{DropReports, ReportDrops};

/// A task without a handle that was accepted and dropped before it ran.
#[derive(Debug)]
pub(crate) struct DroppedTask {
    pub(crate) name: Option<Name>,
    pub(crate) location: &'static Location<'static>,
    pub(crate) reason: CancelReason,
}

/// The task that this thread is cancelling.
#[derive(Clone, Copy)]
struct Cancelling {
    reason: CancelReason,
    listeners: usize,
}

local! {
    static CANCELLING: Cell<Option<Cancelling>> = Cell::new(None);
}

/// Why this thread drops a closure before it ran: for a closure that stands for a task with a handle of its own.
pub(crate) fn why_dropped() -> CancelReason {
    let cancelling = CANCELLING.try_with(Cell::get).ok().flatten();
    cancelling.map_or(CancelReason::Dropped, |cancelling| cancelling.reason)
}

/// Sets whether the task has a handle for which the closure stands that this thread drops.
pub(super) fn set_listener(has_one: bool) {
    change(|_| usize::from(has_one));
}

/// One reference to the task that this thread is cancelling is no handle.
pub(crate) fn discount_witness() {
    change(|listeners| listeners.saturating_sub(1));
}

fn change(f: impl FnOnce(usize) -> usize) {
    let _ = CANCELLING.try_with(|cell| {
        if let Some(cancelling) = cell.get() {
            let listeners = f(cancelling.listeners);
            cell.set(Some(Cancelling {
                listeners,
                ..cancelling
            }));
        }
    });
}

/// Cancels an accepted task. Returns the task if it was gone before; otherwise what to report if it had no handle.
pub(crate) fn cancel_dropped(
    task: Task,
    reason: CancelReason,
) -> Result<Option<DroppedTask>, Task> {
    let about = DroppedTask {
        name: task.shared_name(),
        location: task.location(),
        reason,
    };
    let mut listeners = task.others();
    let inside = Some(Cancelling { reason, listeners });
    // The destructor of the closure may cancel another task.
    let outside = CANCELLING.try_with(|cell| cell.replace(inside));
    let ended = task.cancel_by_ref(reason);
    if let Ok(outside) = outside {
        let inside = CANCELLING.try_with(|cell| cell.replace(outside));
        if let Ok(Some(inside)) = inside {
            listeners = inside.listeners;
        }
    }
    if ended {
        Ok((listeners == 0).then_some(about))
    } else {
        Err(task)
    }
}

/// Why a task was dropped, inside a sentence about it.
pub(crate) fn why(reason: CancelReason) -> String {
    let why = match reason {
        CancelReason::Expired => "its deadline had passed",
        CancelReason::TooLate => "it could not have been finished by its finish_by",
        CancelReason::WaitedTooLong => "it waited longer than max_queue_wait",
        CancelReason::Shed => {
            "it was shed, because its pool was overloaded and it had waited too long"
        }
        CancelReason::Rejected => "no thread could be started to run it",
        other => return other.to_string(),
    };
    why.to_owned()
}

/// A model has no clock that the log could go by.
#[cfg(any(millpond_loom, millpond_shuttle))]
pub(super) fn log_dropped(_: DroppedTask) {}
