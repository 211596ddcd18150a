//! The timer: alarms, and the thread that rings them.
//!
//! Alarms wait in a [wheel](super::wheel). One thread sleeps until the next of them. It is started with
//! the first alarm, and ends when it has had none for a while. One timer serves the whole process, for
//! everything that waits by the system's clock.
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
//! - **R1** The alarms, and whether there is a thread, are under one lock. Who sets an alarm and finds
//!   no thread expects one from then on, and starts it; a thread that finds no alarm and ends says so
//!   in the same step.
//! - **R2** A thread that finds nothing due says in the same step until when it sleeps. An alarm that is
//!   due before that wakes it. One that is awake, woken or expected needs no waking: it looks before it
//!   sleeps. So an alarm that is set from inside a waker that is being rung wakes nobody.
//! - **R3** Users' wakers are cloned, called and dropped outside the lock, and the factory is asked
//!   outside it.
//! - **R4** No alarm waits for a thread that will not come. The thread's body carries a [`Duty`]. If it
//!   is dropped before the thread has ended as it should (it was refused, the body never ran, the
//!   factory panicked), every alarm that is set rings at once, and the next one tries to start another
//!   thread. The futures look, find that they are early, and set their alarms again: that is busy, as
//!   busy as their executor lets them be, until a thread can be had or the time comes. But nobody is
//!   forgotten.
//! - **R5** A child process has the alarms of its parent, perhaps locked, and not the thread. It leaves
//!   them alone: the process's timer is another one there, and an alarm of any other rings at once.
//!
//! The thread is woken in time ([`slack`]), and gets up a little before it ([`Lead`]). While it waits awake it
//! lets others run.

use super::lead::{Lead, Rest};
use super::wheel::{Key, Wheel};
use super::{Clock, Deadline};
use crate::thread::ThreadFactory;
use millpond_raw::park::{self, Site, Woken};
use millpond_raw::sync::{Mutex, thread};
use millpond_raw::user_code::{self, Kind};
use millpond_raw::{fork, quiet, slack};
use std::fmt;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

/// How long the thread stays without an alarm.
const PATIENCE: Duration = Duration::from_secs(1);

/// How many ring between two looks. The more, the less the lock is taken; and the longer one that is set
/// meanwhile and due at once has to wait.
const AT_ONCE: usize = 32;

/// Alarms by one clock, and the thread that rings them.
pub(super) struct Timer {
    threads: Box<dyn ThreadFactory>,
    /// R5: of the process that has the thread.
    generation: u32,
    alarms: Mutex<Alarms>,
}

struct Alarms {
    wheel: Wheel<Waker>,
    /// When the thread last looked: time enough to set an alarm by.
    looked: Instant,
    duty: OnDuty,
}

/// R1: who rings.
enum OnDuty {
    Nobody,
    /// A thread that is being started.
    Expected,
    /// A thread, what wakes it, and until when it sleeps, unless it is awake or about to be (R2).
    Thread(Waker, Option<Deadline>),
}

impl OnDuty {
    /// R2: whom to wake for an alarm, if anybody.
    fn called(&mut self, due: Deadline) -> Option<Waker> {
        match self {
            OnDuty::Thread(thread, sleeps) if sleeps.is_some_and(|until| due < until) => {
                *sleeps = None;
                Some(thread.clone())
            }
            OnDuty::Nobody | OnDuty::Expected | OnDuty::Thread(..) => None,
        }
    }
}

impl Timer {
    pub(super) fn new(now: Instant, threads: impl ThreadFactory) -> Self {
        fork::watch();
        Timer {
            threads: Box::new(threads),
            generation: fork::generation(),
            alarms: Mutex::new(Alarms {
                wheel: Wheel::new(now),
                looked: now,
                duty: OnDuty::Nobody,
            }),
        }
    }

    fn is_of_parent(&self) -> bool {
        self.generation != fork::generation()
    }

    /// Sets an alarm by `clock`, which must be the same for all alarms of a timer. If nobody can be had
    /// to ring it, it has rung when this returns.
    pub(super) fn set(self: &Arc<Self>, clock: &Clock, due: Deadline, waker: Waker) -> Option<Key> {
        if self.is_of_parent() {
            quiet::wake(waker);
            return None;
        }
        let mut alarms = self.alarms.lock();
        let looked = alarms.looked;
        let key = alarms.wheel.insert(looked, due, waker);
        if let OnDuty::Nobody = alarms.duty {
            alarms.duty = OnDuty::Expected;
            drop(alarms);
            self.start(clock.clone());
        } else if let Some(thread) = alarms.duty.called(due) {
            drop(alarms);
            thread.wake();
        }
        Some(key)
    }

    /// Takes an alarm back, unless it has rung.
    pub(super) fn take_back(&self, key: Key) {
        if !self.is_of_parent() {
            let waker = self.alarms.lock().wheel.remove(key);
            quiet::drop_waker(waker);
        }
    }

    fn start(self: &Arc<Self>, clock: Clock) {
        let duty = Duty {
            timer: Arc::clone(self),
            is_over: false,
        };
        // A refusal drops the body, and with it the duty: R4. So does a panic, which is not for whoever
        // happens to set an alarm: a pool, a task that waits for a value.
        user_code::check(Kind::Factory);
        let _ = quiet::call(|| self.threads.start(Box::new(move || duty.ring(&clock))));
    }
}

/// What the thread does after a look.
enum Next {
    /// There is something to ring.
    Ring,
    WaitAwake(Deadline),
    Sleep(Deadline),
    End,
}

/// Being the thread that rings, or about to become it.
struct Duty {
    timer: Arc<Timer>,
    /// Whether the table says already that it has ended.
    is_over: bool,
}

impl Duty {
    fn ring(mut self, clock: &Clock) {
        let _punctual = slack::punctual();
        let _marked = user_code::timer_thread();
        let here = park::current();
        let on_duty = OnDuty::Thread(here.waker(), None);
        self.timer.alarms.lock().duty = on_duty;
        let mut due = Vec::with_capacity(AT_ONCE);
        let mut woken = Woken::Maybe;
        let mut lead = Lead::default();
        loop {
            match self.look(clock, woken, lead, &mut due) {
                Next::Ring => due.drain(..).for_each(quiet::wake),
                Next::WaitAwake(until) => {
                    // Those who are to run what is due may wait for this very CPU: a thread that only spun
                    // would let them wait for the rest of its slice, milliseconds.
                    while !until.has_passed(clock.now()) {
                        thread::yield_now();
                    }
                }
                Next::Sleep(until) => {
                    woken = clock.park_until(&here, Site::new("timer.sleep"), until);
                    if woken == Woken::TimedOut {
                        lead.learn(clock, until, clock.now());
                    }
                    continue;
                }
                Next::End => return,
            }
            woken = Woken::Maybe;
        }
    }

    /// Takes out the first alarms that are due.
    fn look(&mut self, clock: &Clock, woken: Woken, lead: Lead, due: &mut Vec<Waker>) -> Next {
        let now = clock.now();
        let mut alarms = self.timer.alarms.lock();
        let Alarms {
            wheel,
            looked,
            duty,
        } = &mut *alarms;
        *looked = now;
        let mut sleeps = None;
        due.extend(std::iter::from_fn(|| Some(wheel.pop_due(now)?.1)).take(AT_ONCE));
        let next = if !due.is_empty() {
            Next::Ring
        } else if wheel.len() > 0 {
            let next = wheel.next();
            match lead.rest(clock, next, now) {
                Rest::Awake => Next::WaitAwake(next),
                Rest::Asleep(up) => {
                    sleeps = Some(up);
                    Next::Sleep(up)
                }
            }
        } else if woken == Woken::TimedOut {
            // R1
            let own = std::mem::replace(duty, OnDuty::Nobody);
            self.is_over = true;
            drop(alarms);
            drop(own);
            return Next::End;
        } else {
            let next = Deadline::after(now, PATIENCE);
            sleeps = Some(next);
            Next::Sleep(next)
        };
        if let OnDuty::Thread(_, said) = duty {
            *said = sleeps;
        }
        next
    }
}

impl Drop for Duty {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        // R4
        let mut alarms = self.timer.alarms.lock();
        let own = std::mem::replace(&mut alarms.duty, OnDuty::Nobody);
        let orphans = alarms.wheel.take_where(|_| true);
        drop(alarms);
        drop(own);
        orphans.into_iter().for_each(quiet::wake);
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let alarms = self.alarms.lock();
        f.debug_struct("Timer")
            .field("alarms", &alarms.wheel.len())
            .field("on_duty", &!matches!(alarms.duty, OnDuty::Nobody))
            .finish_non_exhaustive()
    }
}

/// The timer of the process, by the system's clock. A model has none: it has no such clock.
#[cfg(not(any(millpond_loom, millpond_shuttle)))]
pub(super) fn of_process() -> Option<Arc<Timer>> {
    static TIMER: Mutex<Option<Arc<Timer>>> = Mutex::new(None);
    fork::watch();
    fork::keep(&TIMER);
    let mut timer = TIMER.lock();
    // R5: that of the parent is left where it is.
    if timer.as_ref().is_some_and(|timer| timer.is_of_parent()) {
        std::mem::forget(timer.take());
    }
    let timer = timer.get_or_insert_with(|| {
        let threads = crate::thread::Threads::named("millpond-timer");
        Arc::new(Timer::new(Clock::system().now(), threads))
    });
    Some(Arc::clone(timer))
}

/// See above.
#[cfg(any(millpond_loom, millpond_shuttle))]
pub(super) fn of_process() -> Option<Arc<Timer>> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::{Body, JoinHandle};
    use crate::time::ManualClock;
    use millpond_raw::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    const SECOND: Duration = Duration::from_secs(1);

    #[derive(Default)]
    struct Bell(AtomicUsize);

    impl Bell {
        fn rung(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }
    }

    impl Wake for Bell {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Keeps the bodies that it was to start.
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<Body>>>);

    impl fmt::Debug for Kept {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("Kept")
        }
    }

    impl ThreadFactory for Kept {
        fn start(&self, body: Body) -> std::io::Result<JoinHandle<()>> {
            self.0.lock().push(body);
            Ok(millpond_raw::sync::thread::spawn(|| ()))
        }
    }

    #[test]
    fn only_an_alarm_before_its_time_wakes_a_thread_that_sleeps_and_none_one_that_is_awake() {
        let hand = ManualClock::new();
        let clock = hand.clock();
        let timer = Arc::new(Timer::new(clock.now(), Kept::default()));
        let thread = Arc::new(Bell::default());
        let set = |after: u32| {
            let due = clock.deadline(SECOND * after);
            timer.set(&clock, due, Waker::noop().clone())
        };
        let sleeps = |until: Option<u32>| {
            let until = until.map(|after| clock.deadline(SECOND * after));
            let waker = Waker::from(Arc::clone(&thread));
            timer.alarms.lock().duty = OnDuty::Thread(waker, until);
        };

        sleeps(None);
        set(1);
        assert_eq!(thread.rung(), 0, "it is awake");
        sleeps(Some(10));
        set(11);
        set(10);
        assert_eq!(thread.rung(), 0, "it comes in time");
        set(9);
        assert_eq!(thread.rung(), 1);
        set(8);
        assert_eq!(thread.rung(), 1, "it is awake again");
    }

    #[test]
    fn a_body_that_never_runs_rings_all_alarms_that_wait_for_it() {
        let hand = ManualClock::new();
        let (clock, threads) = (hand.clock(), Kept::default());
        let timer = Arc::new(Timer::new(clock.now(), threads.clone()));
        let bell = Arc::new(Bell::default());
        let set = || {
            let due = clock.deadline(SECOND);
            timer.set(&clock, due, Waker::from(Arc::clone(&bell)))
        };
        let taken_back = set();
        set();
        set();
        timer.take_back(taken_back.expect("there is somebody to ring it"));
        assert_eq!(
            (bell.rung(), threads.0.lock().len()),
            (0, 1),
            "one is expected"
        );
        let body = threads.0.lock().pop();
        drop(body);
        assert_eq!(bell.rung(), 2);
        set();
        // It has the timer, which has the factory, which has it.
        let last = threads.0.lock().pop();
        assert!(last.is_some(), "the next one asks again");
    }
}
