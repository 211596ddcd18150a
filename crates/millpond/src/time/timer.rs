//! The timer: alarms, and the thread that rings them.
//!
//! Alarms wait in a [wheel](super::wheel). One thread sleeps until the next of them. It is started with
//! the first alarm, and ends when it has had none for a while and nobody [holds](Hold) it. One timer serves the whole process, for
//! everything that waits by the system's clock.
//!
//! ```text
//!             set: none on duty               begins
//!   nobody --------------------> expected  ------------> on duty
//!     ^                             |                       |
//!     |    refused, or never ran    |     no alarm for long |
//!     |                             |           and no hold |
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
//! - **R4** Setting an alarm never rings it. If no thread can be had, the setter is told so
//!   ([`Unattended`]) and decides what that means; see the table. The alarm stays in the wheel all the
//!   same, marked as unattended: the next thread, whoever gets it, rings it in time. Whether there is a
//!   thread is a question of the thread's body, not of what the factory says: the body carries a [`Duty`],
//!   and if that is dropped before the thread has ended as it should (it was refused, the body never ran,
//!   the factory panicked) there is none. Others who have set alarms meanwhile, and were told that a
//!   thread is expected, are rung then, early, so that they look again and hear it, too. Who
//!   is rung for that, and sets an alarm in there, is told at once, and no thread is asked for
//!   ([`TELLING`]): so the stack never grows with the number of refusals.
//! - **R5** A child process has the alarms of its parent, perhaps locked, and not the thread. It leaves
//!   them alone: the process's timer is another one there, and an alarm of any other is refused.
//! - **R6** No code of a user's runs on the thread, with one exception: the wakers of futures, which are
//!   called here because there is nobody else. They belong to the user's async runtime, and are to be
//!   cheap; a panic of one is contained. Wakers of ours do what is cheap and ours at once, and leave the
//!   rest to a thread of their own ([`super::aside`]).
//! - **R7** What has been accepted must not depend on a thread that may not be had later. So a pool that has
//!   accepted something that will need the timer [holds](Hold) the thread until the pool ends. How many
//!   hold it is under the lock, too: while there are any, the thread does not end, and without an alarm it
//!   sleeps without a time-out. The last hold that goes wakes it if it sleeps for longer than it stays
//!   without an alarm. A hold is granted if there is a thread, or if the caller's own request for one was
//!   granted: a thread that another has asked for may still be refused. So several may be expected; the
//!   first that begins is on duty, and the others end at once. If the thread of a timer that is held dies all
//!   the same, R4 holds: those who have set alarms hear it, and the next alarm or hold starts another.
//!
//! | who sets an alarm | without a thread |
//! |---|---|
//! | a future, for a deadline or an element that is due later | wakes itself, after a short rest ([`Clock::alarm_for_future`]): slow, but nobody is forgotten |
//! | the watch of a pool | there is no watch for a moment; whoever brings a task a little later tries again. If the pool has a run limit it holds the thread from its first alarm on (R7) |
//! | a scheduled pool, for the first that needs the timer | refuses it, and the closure comes back; otherwise it holds the thread from then on (R7) |
//! | a scheduled pool, for what it has accepted | only if the thread has died: leaves it to whoever gets a thread next, to a worker that becomes idle, and to the next call |
//!
//! The thread is woken in time ([`slack`]), and gets up a little before it ([`Lead`]). While it waits awake it
//! lets others run.

mod hold;

pub(crate) use hold::Hold;

use super::lead::{Lead, Rest};
use super::wheel::{Key, Wheel};
use super::{Clock, Deadline};
use crate::thread::{JoinHandle, ThreadFactory};
use millpond_raw::park::{self, Site, Woken};
use millpond_raw::sync::{Mutex, local, thread};
use millpond_raw::user_code::{self, Kind};
use millpond_raw::{fork, quiet, slack};
use std::cell::Cell;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

/// How long the thread stays without an alarm.
const PATIENCE: Duration = Duration::from_secs(1);

/// How many ring between two looks. The more, the less the lock is taken; and the longer one that is set
/// meanwhile and due at once has to wait.
const AT_ONCE: usize = 32;

local! {
    /// R4: whether this thread is telling others that there is no thread.
    static TELLING: Cell<bool> = const { Cell::new(false) };
}

/// R6: the mark of the thread is that of the guard which checks the rule in tests.
pub(crate) use millpond_raw::user_code::is_timer_thread;

/// Alarms by one clock, and the thread that rings them.
pub(super) struct Timer {
    threads: Box<dyn ThreadFactory>,
    /// R5: of the process that has the thread.
    generation: u32,
    alarms: Mutex<Alarms>,
}

/// Nobody rings the alarm, for the time being. It has no key if it is not set at all (R5).
pub(super) struct Unattended(pub(super) Option<Key>);

struct Waiting {
    waker: Waker,
    /// R4: whether who set it counts on somebody to ring it.
    is_attended: bool,
}

struct Alarms {
    wheel: Wheel<Waiting>,
    /// When the thread last looked: time enough to set an alarm by.
    looked: Instant,
    duty: OnDuty,
    /// R7: how many hold the thread.
    holds: usize,
}

impl Alarms {
    /// R1: somebody is about to ask for a thread.
    fn expect_one(&mut self) {
        self.duty = match self.duty {
            OnDuty::Expected(others) => OnDuty::Expected(others + 1),
            _ => OnDuty::Expected(1),
        };
    }
}

/// R1: who rings.
enum OnDuty {
    Nobody,
    /// So many threads that are being started: mostly one, but see R7.
    Expected(usize),
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
            OnDuty::Nobody | OnDuty::Expected(_) | OnDuty::Thread(..) => None,
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
                holds: 0,
            }),
        }
    }

    fn is_of_parent(&self) -> bool {
        self.generation != fork::generation()
    }

    /// Sets an alarm by `clock`, which must be the same for all alarms of a timer. Never rings it itself: R4.
    pub(super) fn set(
        self: &Arc<Self>,
        clock: &Clock,
        due: Deadline,
        waker: Waker,
    ) -> Result<Key, Unattended> {
        if self.is_of_parent() {
            return Err(Unattended(None));
        }
        let mut alarms = self.alarms.lock();
        let looked = alarms.looked;
        let is_attended = matches!(alarms.duty, OnDuty::Expected(_) | OnDuty::Thread(..));
        let waiting = Waiting { waker, is_attended };
        let key = alarms.wheel.insert(looked, due, waiting);
        match alarms.duty {
            OnDuty::Nobody if TELLING.with(Cell::get) => Err(Unattended(Some(key))),
            OnDuty::Nobody => {
                alarms.expect_one();
                drop(alarms);
                self.start(clock.clone(), key)
            }
            OnDuty::Expected(_) | OnDuty::Thread(..) => {
                let thread = alarms.duty.called(due);
                drop(alarms);
                thread.into_iter().for_each(Waker::wake);
                Ok(key)
            }
        }
    }

    /// Takes an alarm back, unless it has rung.
    pub(super) fn take_back(&self, key: Key) {
        if !self.is_of_parent() {
            let waiting = self.alarms.lock().wheel.remove(key);
            quiet::drop_waker(waiting.map(|waiting| waiting.waker));
        }
    }

    /// Starts a thread, for the alarm of this key.
    #[cold]
    fn start(self: &Arc<Self>, clock: Clock, key: Key) -> Result<Key, Unattended> {
        // What it says is one thing, and whether there is a thread is another: R4.
        let _ = self.ask_for_thread(clock);
        let mut alarms = self.alarms.lock();
        let Alarms { wheel, duty, .. } = &mut *alarms;
        let Some(waiting) = wheel.get_mut(key) else {
            // It has rung.
            return Ok(key);
        };
        waiting.is_attended = matches!(duty, OnDuty::Expected(_) | OnDuty::Thread(..));
        match waiting.is_attended {
            true => Ok(key),
            false => Err(Unattended(Some(key))),
        }
    }

    /// Asks the factory for a thread that [is expected](Alarms::expect_one). Returns what it said, if it did
    /// not panic.
    #[cold]
    fn ask_for_thread(self: &Arc<Self>, clock: Clock) -> Option<io::Result<JoinHandle<()>>> {
        let duty = Duty {
            timer: Arc::clone(self),
            has_begun: false,
            is_over: false,
        };
        // A refusal drops the body, and with it the duty: R4. So does a panic, which is not for whoever
        // happens to set an alarm: a pool, a task that waits for a value.
        if !clock.is_system() {
            // That of the process has a factory of ours.
            user_code::check(Kind::Factory);
        }
        quiet::call(|| self.threads.start(Box::new(move || duty.ring(&clock))))
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
    /// Whether it is the thread that rings.
    has_begun: bool,
    /// Whether the table says already that it has ended.
    is_over: bool,
}

impl Duty {
    fn ring(mut self, clock: &Clock) {
        let _punctual = slack::punctual();
        let _marked = user_code::timer_thread();
        let here = park::current();
        if !self.begins(here.waker()) {
            return;
        }
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

    /// Comes on duty, unless another one is (R7).
    fn begins(&mut self, waker: Waker) -> bool {
        let mut alarms = self.timer.alarms.lock();
        match alarms.duty {
            OnDuty::Thread(..) => self.is_over = true,
            OnDuty::Nobody | OnDuty::Expected(_) => {
                alarms.duty = OnDuty::Thread(waker, None);
                self.has_begun = true;
            }
        }
        self.has_begun
    }

    /// Takes out the first alarms that are due.
    fn look(&mut self, clock: &Clock, woken: Woken, lead: Lead, due: &mut Vec<Waker>) -> Next {
        let now = clock.now();
        let mut alarms = self.timer.alarms.lock();
        let Alarms {
            wheel,
            looked,
            duty,
            holds,
        } = &mut *alarms;
        *looked = now;
        let mut sleeps = None;
        due.extend(std::iter::from_fn(|| Some(wheel.pop_due(now)?.1.waker)).take(AT_ONCE));
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
        } else if *holds > 0 {
            // R7
            sleeps = Some(Deadline::NEVER);
            Next::Sleep(Deadline::NEVER)
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
        match &mut alarms.duty {
            // R7: others are on their way.
            OnDuty::Expected(others) if !self.has_begun && *others > 1 => {
                *others -= 1;
                return;
            }
            // Another one is on duty.
            OnDuty::Thread(..) if !self.has_begun => return,
            _ => {}
        }
        let own = std::mem::replace(&mut alarms.duty, OnDuty::Nobody);
        let counted_on_it = alarms.wheel.take_where(|waiting| waiting.is_attended);
        drop(alarms);
        drop(own);
        let before = TELLING.with(|telling| telling.replace(true));
        for waiting in counted_on_it {
            quiet::wake(waiting.waker);
        }
        TELLING.with(|telling| telling.set(before));
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let alarms = self.alarms.lock();
        f.debug_struct("Timer")
            .field("alarms", &alarms.wheel.len())
            .field("on_duty", &matches!(alarms.duty, OnDuty::Thread(..)))
            .field("holds", &alarms.holds)
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
mod tests;
