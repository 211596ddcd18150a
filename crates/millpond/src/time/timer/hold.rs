//! Keeping the timer's thread: TIMER-7 in the [module](super).

use super::{Alarms, IDLE_TIMEOUT, REPORTING, ThreadState, Timer, of_process};
use crate::time::{Clock, Deadline};
use std::cell::Cell;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::task::Waker;

/// The error where the factory has not returned one.
const NOT_STARTED: &str = "the timer's thread could not be started";

/// TIMER-5.
const OF_PARENT: &str =
    "the timer's thread is in the parent of this process: make a new clock after fork()";

/// While it exists the timer's thread does not end for lack of alarms (TIMER-7).
pub(crate) struct TimerHold(Option<Arc<Timer>>);

impl TimerHold {
    /// Whether a thread fires the alarms; on a manual clock, advancing it does.
    pub(crate) fn has_thread(&self) -> bool {
        self.0.is_some()
    }
}

impl Clock {
    /// Makes sure that there is a thread to fire the alarms of this clock, until the hold is dropped. A manual
    /// clock needs none.
    ///
    /// # Errors
    ///
    /// The thread cannot be started.
    pub(crate) fn hold_timer(&self) -> io::Result<TimerHold> {
        let own = self.timer().cloned();
        if own.is_none() && self.is_manual() {
            return Ok(TimerHold(None));
        }
        match own.or_else(of_process) {
            Some(timer) => timer.hold(self),
            None => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

impl Timer {
    /// Holds the thread, and starts one if there is none.
    pub(super) fn hold(self: &Arc<Self>, clock: &Clock) -> io::Result<TimerHold> {
        if self.is_of_parent() {
            return Err(io::Error::new(io::ErrorKind::Unsupported, OF_PARENT));
        }
        {
            let mut alarms = self.alarms.lock();
            match alarms.thread {
                ThreadState::Running(..) => {
                    alarms.holds += 1;
                    return Ok(TimerHold(Some(Arc::clone(self))));
                }
                ThreadState::Absent if REPORTING.with(Cell::get) => {
                    return Err(io::Error::new(io::ErrorKind::WouldBlock, NOT_STARTED));
                }
                // A thread that another caller starts may still fail, unknown to this caller: TIMER-7.
                ThreadState::Absent | ThreadState::Starting(_) => alarms.begin_start(),
            }
            alarms.holds += 1;
        }
        let held = TimerHold(Some(Arc::clone(self)));
        let started = self.start_thread(clock.clone());
        let has_thread = match self.alarms.lock().thread {
            ThreadState::Running(..) => true,
            ThreadState::Starting(_) => matches!(started, Some(Ok(_))),
            ThreadState::Absent => false,
        };
        match (has_thread, started) {
            (true, _) => Ok(held),
            (false, Some(Err(why))) => Err(why),
            (false, _) => Err(io::Error::new(io::ErrorKind::WouldBlock, NOT_STARTED)),
        }
    }
}

impl Alarms {
    /// TIMER-7: gives a hold back. Returns the waker of a thread that now sleeps too long.
    fn release(&mut self) -> Option<Waker> {
        self.holds -= 1;
        if self.holds > 0 || self.wheel.len() > 0 {
            return None;
        }
        self.thread
            .wake_for(Deadline::after(self.last_check, IDLE_TIMEOUT))
    }
}

impl Drop for TimerHold {
    fn drop(&mut self) {
        // TIMER-5
        let Some(timer) = self.0.take().filter(|timer| !timer.is_of_parent()) else {
            return;
        };
        let sleeping = timer.alarms.lock().release();
        sleeping.into_iter().for_each(Waker::wake);
    }
}

impl fmt::Debug for TimerHold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TimerHold")
    }
}
