//! A hold on the threads that something depends on which was accepted and waits for its time.
//!
//! The timer's thread wakes it up (TIMER-7 in `timer.rs`). What must not run on that thread is left to others; and if
//! none of them can be started then, the thread in reserve does it (DEFER-4 in `deferred.rs`). If one of the two cannot be had,
//! nothing should be accepted.

use super::{Clock, ReserveHold, TimerHold, hold_reserve};
use std::io;

/// Keeps the timer's thread and the one in reserve.
#[derive(Debug)]
pub(crate) struct ThreadHold {
    _timer: TimerHold,
    /// `None` if the alarms fire on the thread that moves the clock.
    _reserve: Option<ReserveHold>,
}

impl ThreadHold {
    /// # Errors
    ///
    /// A thread is needed and cannot be started.
    pub(crate) fn new(clock: &Clock) -> io::Result<Self> {
        let timer = clock.hold_timer()?;
        let reserve = timer.has_thread().then(hold_reserve).transpose()?;
        Ok(ThreadHold {
            _timer: timer,
            _reserve: reserve,
        })
    }
}
