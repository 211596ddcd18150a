//! The thread in reserve: DEFER-4 in the [module](super).

use super::{Jobs, JobsOf, Owner, with};
use crate::thread::on_demand::Drainer;
#[cfg(not(millpond_loom))]
use crate::thread::{ThreadFactory, Threads};
use crate::time::{Clock, Deadline};
use millpond_raw::fork;
use millpond_raw::park::{self, Site, Woken};
use std::fmt;
use std::io;
use std::task::Waker;
use std::time::Duration;

/// How long the thread stays when nothing holds it.
const IDLE_TIMEOUT: Duration = Duration::from_secs(1);

/// The state of the thread in reserve.
#[derive(Default)]
pub(super) enum Standby {
    #[default]
    Absent,
    Running,
    /// The thread is parked; this wakes it.
    Parked(Waker),
}

impl Standby {
    /// The waker of a parked thread, which counts as running from now on.
    fn unpark(&mut self) -> Option<Waker> {
        match std::mem::replace(self, Standby::Running) {
            Standby::Parked(waker) => Some(waker),
            other => {
                *self = other;
                None
            }
        }
    }
}

/// Keeps the thread in reserve alive.
pub(crate) struct ReserveHold {
    /// DEFER-3: the process that has the thread.
    generation: u32,
}

/// Makes sure that there is a thread in reserve until the result is dropped.
///
/// # Errors
///
/// There is none, and it cannot be started.
#[cfg(not(millpond_loom))]
pub(crate) fn hold_reserve() -> io::Result<ReserveHold> {
    fork::install_handlers();
    let is_present = |jobs: &mut Jobs| !matches!(jobs.reserve, Standby::Absent);
    let is_held = with(|jobs| {
        jobs.holds += 1;
        is_present(jobs)
    });
    let reserve = ReserveHold {
        generation: fork::generation(),
    };
    if is_held || !is_needed() {
        return Ok(reserve);
    }
    // If two callers start a thread at once, the second thread ends at once.
    match Threads::named("millpond-reserve").start(Box::new(run)) {
        Err(_) if with(is_present) => Ok(reserve),
        Err(why) => Err(why),
        Ok(_) => Ok(reserve),
    }
}

#[cfg(not(any(millpond_loom, millpond_shuttle)))]
fn is_needed() -> bool {
    true
}

/// In a model no thread is refused unless the model says so.
#[cfg(millpond_shuttle)]
fn is_needed() -> bool {
    millpond_raw::sync::thread::is_any_refused()
}

/// A model of loom has no thread in reserve: there no thread is refused.
#[cfg(millpond_loom)]
pub(crate) fn hold_reserve() -> io::Result<ReserveHold> {
    with(|jobs| jobs.holds += 1);
    Ok(ReserveHold {
        generation: fork::generation(),
    })
}

/// Wakes the thread in reserve: jobs have been left without a thread.
pub(super) fn wake() {
    let parked = with(|jobs| jobs.reserve.unpark());
    parked.into_iter().for_each(Waker::wake);
}

/// The loop of the thread.
#[cfg_attr(
    millpond_loom,
    expect(dead_code, reason = "a model of loom has no thread in reserve")
)]
fn run() {
    let (here, clock) = (park::current(), Clock::system());
    let is_second = with(|jobs| match jobs.reserve {
        Standby::Absent => {
            jobs.reserve = Standby::Running;
            false
        }
        Standby::Running | Standby::Parked(_) => true,
    });
    if is_second {
        return;
    }
    let mut woken = Woken::Maybe;
    loop {
        let next = with(|jobs| jobs.next_of_reserve(woken, here.waker(), &clock));
        match next {
            Next::Run(owner) => {
                Drainer::new(JobsOf(owner)).run();
                woken = Woken::Maybe;
            }
            Next::Park(until) => {
                woken = clock.park_until(&here, Site::new("deferred.reserve"), until);
            }
            Next::End => return,
        }
    }
}

/// The next step of the thread.
enum Next {
    Run(Owner),
    Park(Deadline),
    End,
}

impl Jobs {
    /// Decides under the lock, so that a caller that leaves a job afterwards, or holds the thread, finds its state.
    fn next_of_reserve(&mut self, woken: Woken, waker: Waker, clock: &Clock) -> Next {
        if let Some(owner) = self.claim() {
            self.reserve = Standby::Running;
            return Next::Run(owner);
        }
        // The time of a model does not pass by itself.
        let is_idle = woken == Woken::TimedOut || cfg!(millpond_shuttle);
        if self.holds == 0 && is_idle {
            self.reserve = Standby::Absent;
            return Next::End;
        }
        self.reserve = Standby::Parked(waker);
        Next::Park(if self.holds == 0 {
            clock.deadline(IDLE_TIMEOUT)
        } else {
            Deadline::NEVER
        })
    }
}

impl Drop for ReserveHold {
    fn drop(&mut self) {
        if self.generation != fork::generation() {
            return;
        }
        let parked = with(|jobs| {
            jobs.holds -= 1;
            if jobs.holds == 0 {
                jobs.reserve.unpark()
            } else {
                None
            }
        });
        parked.into_iter().for_each(Waker::wake);
    }
}

impl fmt::Debug for ReserveHold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReserveHold")
    }
}
