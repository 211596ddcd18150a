//! The thread that rings alarms.
//!
//! Alarms wait in a table, sorted by time. One thread, the ringer, sleeps until the next of them. It is
//! started with the first alarm, and ends when it has had none for a while.
//!
//! ```text
//!             set: none on duty               begins
//!   nobody --------------------> expected  ------------> on duty
//!     ^                             |                       |
//!     |    refused, or never ran    |     no alarm for long |
//!     +-----------------------------+-----------------------+
//! ```
//!
//! # Rules
//!
//! - **R1** The alarms, and whether there is a ringer, are under one lock. Who sets an alarm and finds
//!   no ringer expects one from then on, and starts it; a ringer that finds no alarm and ends says so
//!   in the same step.
//! - **R2** An alarm that becomes the next one wakes the ringer, which looks again. One that is expected
//!   needs no waking: it looks when it begins.
//! - **R3** Users' wakers are cloned, called and dropped outside the lock, and the factory is asked
//!   outside it.
//! - **R4** No alarm waits for a ringer that will not come. The thread's body carries a [`Duty`]. If it
//!   is dropped before the ringer has ended as it should (the thread was refused, the body never ran,
//!   the factory panicked), every alarm that is set rings at once, and the next one tries to start
//!   another ringer. The futures look, find that they are early, and set their alarms again: that is
//!   busy, as busy as their executor lets them be, until a thread can be had or the time comes. But
//!   nobody is forgotten.

use super::{Clock, Deadline};
use crate::thread::ThreadFactory;
#[cfg(not(any(millpond_loom, millpond_shuttle)))]
use millpond_raw::fork;
use millpond_raw::park::{self, Site, Woken};
use millpond_raw::quiet;
use millpond_raw::sync::Mutex;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

/// How long the ringer stays without an alarm.
const PATIENCE: Duration = Duration::from_secs(1);

/// Where an alarm stands: at its time, behind those of the same time that were set before.
pub(super) type Spot = (Instant, u64);

/// Alarms by one clock, and the thread that rings them.
pub(super) struct Ringer {
    threads: Box<dyn ThreadFactory>,
    alarms: Mutex<Alarms>,
}

struct Alarms {
    next_number: u64,
    set: BTreeMap<Spot, Waker>,
    duty: OnDuty,
}

/// R1: who rings.
enum OnDuty {
    Nobody,
    /// A thread that is being started.
    Expected,
    /// The ringer, and what wakes it (R2).
    Ringer(Waker),
}

impl Ringer {
    pub(super) fn new(threads: impl ThreadFactory) -> Self {
        Ringer {
            threads: Box::new(threads),
            alarms: Mutex::new(Alarms {
                next_number: 0,
                set: BTreeMap::new(),
                duty: OnDuty::Nobody,
            }),
        }
    }

    /// Sets an alarm by `clock`, which must be the same for all alarms of a ringer. If nobody can be
    /// had to ring it, it has rung when this returns.
    pub(super) fn set(self: &Arc<Self>, clock: &Clock, instant: Instant, waker: Waker) -> Spot {
        let mut alarms = self.alarms.lock();
        let spot = (instant, alarms.next_number);
        alarms.next_number += 1;
        alarms.set.insert(spot, waker);
        let is_next = alarms.set.keys().next() == Some(&spot);
        match &alarms.duty {
            OnDuty::Nobody => {
                alarms.duty = OnDuty::Expected;
                drop(alarms);
                self.start(clock.clone());
            }
            OnDuty::Ringer(ringer) if is_next => {
                let ringer = ringer.clone();
                drop(alarms);
                ringer.wake();
            }
            OnDuty::Expected | OnDuty::Ringer(_) => {}
        }
        spot
    }

    /// Takes an alarm back, unless it has rung.
    pub(super) fn take_back(&self, spot: Spot) {
        let waker = self.alarms.lock().set.remove(&spot);
        quiet::drop(waker);
    }

    fn start(self: &Arc<Self>, clock: Clock) {
        let duty = Duty {
            ringer: Arc::clone(self),
            is_over: false,
        };
        // A refusal drops the body, and with it the duty: R4.
        let _ = self.threads.start(Box::new(move || duty.ring(&clock)));
    }

    /// Takes out the alarms that are due at `now`; and when the next one is.
    fn due(alarms: &mut Alarms, now: Instant) -> (BTreeMap<Spot, Waker>, Option<Instant>) {
        let later = alarms.set.split_off(&(now, u64::MAX));
        let due = std::mem::replace(&mut alarms.set, later);
        let next = alarms.set.keys().next().map(|(instant, _)| *instant);
        (due, next)
    }
}

/// Being the ringer, or about to become it.
struct Duty {
    ringer: Arc<Ringer>,
    /// Whether the table says already that it has ended.
    is_over: bool,
}

impl Duty {
    fn ring(mut self, clock: &Clock) {
        let here = park::current();
        let on_duty = OnDuty::Ringer(here.waker());
        self.ringer.alarms.lock().duty = on_duty;
        let mut woken = Woken::Maybe;
        loop {
            let now = clock.now();
            let mut alarms = self.ringer.alarms.lock();
            let (due, next) = Ringer::due(&mut alarms, now);
            if due.is_empty() && next.is_none() && woken == Woken::TimedOut {
                // R1
                let own = std::mem::replace(&mut alarms.duty, OnDuty::Nobody);
                self.is_over = true;
                drop(alarms);
                drop(own);
                return;
            }
            drop(alarms);
            due.into_values().for_each(quiet::wake);
            let deadline = next.map_or_else(|| clock.deadline(PATIENCE), Deadline::at);
            woken = clock.park_until(&here, Site::new("alarm.ring"), deadline);
        }
    }
}

impl Drop for Duty {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        // R4
        let mut alarms = self.ringer.alarms.lock();
        let own = std::mem::replace(&mut alarms.duty, OnDuty::Nobody);
        let orphans = std::mem::take(&mut alarms.set);
        drop(alarms);
        drop(own);
        orphans.into_values().for_each(quiet::wake);
    }
}

impl fmt::Debug for Ringer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let alarms = self.alarms.lock();
        f.debug_struct("Ringer")
            .field("alarms", &alarms.set.len())
            .field("on_duty", &!matches!(alarms.duty, OnDuty::Nobody))
            .finish_non_exhaustive()
    }
}

/// The ringer of the system's clock, for all of the process. A model has none: it has no such clock.
#[cfg(not(any(millpond_loom, millpond_shuttle)))]
pub(super) fn of_process() -> Option<Arc<Ringer>> {
    static RINGER: Mutex<Option<(u32, Arc<Ringer>)>> = Mutex::new(None);
    fork::watch();
    fork::keep(&RINGER);
    let mut ringer = RINGER.lock();
    let generation = fork::generation();
    // That of the parent process has its thread there, and perhaps its lock. It is left where it is.
    if ringer.as_ref().is_some_and(|(own, _)| *own != generation) {
        std::mem::forget(ringer.take());
    }
    let (_, ringer) = ringer.get_or_insert_with(|| {
        let threads = crate::thread::Threads::named("millpond-alarm");
        (generation, Arc::new(Ringer::new(threads)))
    });
    Some(Arc::clone(ringer))
}

/// See above.
#[cfg(any(millpond_loom, millpond_shuttle))]
pub(super) fn of_process() -> Option<Arc<Ringer>> {
    None
}
