//! Keeping the timer's thread: R7 in the [module](super).

use super::{Alarms, OnDuty, PATIENCE, TELLING, Timer, of_process};
use crate::time::{Clock, Deadline};
use std::cell::Cell;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::task::Waker;

/// Why there is no thread, where the factory has not said it.
const REFUSED: &str = "the timer's thread could not be started";

/// R5.
const OF_PARENT: &str =
    "the timer's thread is in the parent of this process: make a new clock after fork()";

/// As long as it is there the timer's thread does not end for lack of alarms (R7).
pub(crate) struct Hold(Option<Arc<Timer>>);

impl Clock {
    /// Makes sure that there is somebody to ring the alarms of this clock, until what this returns is dropped.
    /// By a manual clock that is whoever moves the hand.
    ///
    /// # Errors
    ///
    /// The thread cannot be had.
    pub(crate) fn hold_timer(&self) -> io::Result<Hold> {
        let own = self.timer().cloned();
        if own.is_none() && self.is_manual() {
            return Ok(Hold(None));
        }
        match own.or_else(of_process) {
            Some(timer) => timer.hold(self),
            None => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

impl Timer {
    /// Keeps the thread, and starts one if there is none.
    pub(super) fn hold(self: &Arc<Self>, clock: &Clock) -> io::Result<Hold> {
        if self.is_of_parent() {
            return Err(io::Error::new(io::ErrorKind::Unsupported, OF_PARENT));
        }
        {
            let mut alarms = self.alarms.lock();
            match alarms.duty {
                OnDuty::Thread(..) => {
                    alarms.holds += 1;
                    return Ok(Hold(Some(Arc::clone(self))));
                }
                OnDuty::Nobody if TELLING.with(Cell::get) => {
                    return Err(io::Error::new(io::ErrorKind::WouldBlock, REFUSED));
                }
                // Another's thread may still be refused, and this caller would not hear of it: R7.
                OnDuty::Nobody | OnDuty::Expected(_) => alarms.expect_one(),
            }
            alarms.holds += 1;
        }
        let held = Hold(Some(Arc::clone(self)));
        let started = self.ask_for_thread(clock.clone());
        let is_there = match self.alarms.lock().duty {
            OnDuty::Thread(..) => true,
            OnDuty::Expected(_) => matches!(started, Some(Ok(_))),
            OnDuty::Nobody => false,
        };
        match (is_there, started) {
            (true, _) => Ok(held),
            (false, Some(Err(why))) => Err(why),
            (false, _) => Err(io::Error::new(io::ErrorKind::WouldBlock, REFUSED)),
        }
    }
}

impl Alarms {
    /// R7: a hold is gone. Returns the thread, if it sleeps longer than it may without a reason.
    fn let_go(&mut self) -> Option<Waker> {
        self.holds -= 1;
        if self.holds > 0 || self.wheel.len() > 0 {
            return None;
        }
        self.duty.called(Deadline::after(self.looked, PATIENCE))
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // R5
        let Some(timer) = self.0.take().filter(|timer| !timer.is_of_parent()) else {
            return;
        };
        let thread = timer.alarms.lock().let_go();
        thread.into_iter().for_each(Waker::wake);
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hold")
    }
}
