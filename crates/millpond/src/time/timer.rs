//! The timer: alarms, and the thread that fires them.
//!
//! Alarms wait in a [wheel](super::wheel). One thread sleeps until the next of them is due. It is started with
//! the first alarm, and ends when there has been no alarm for a while and no [hold](TimerHold). One timer serves
//! the whole process, for everything that waits by the system's clock.
//!
//! ```text
//!             an alarm or a hold               begins
//!   absent --------------------> starting  ------------> running
//!     ^                             |                       |
//!     |   start failed, or body     |     no alarm for a    |
//!     |   dropped before it ran     |   while, and no hold  |
//!     +-----------------------------+-----------------------+
//! ```
//!
//! # Invariants
//!
//! - **TIMER-1** The alarms and the state of the thread are under one lock. A caller that sets an alarm while
//!   there is no thread changes the state to starting, and starts one; a thread that ends because there is no
//!   alarm changes it to absent in the same critical section.
//! - **TIMER-2** A thread that finds no due alarm records until when it sleeps, in the same critical section. An
//!   alarm that is due before that wakes it. A thread that is awake, woken or starting needs no wake-up: it
//!   checks before it sleeps. So an alarm that is set from inside a fired waker wakes no thread.
//! - **TIMER-3** Users' wakers are cloned, called and dropped outside the lock, and the factory is called
//!   outside it.
//! - **TIMER-4** Setting an alarm never fires it. If no thread can be started the setter is told so
//!   ([`NoThread`]) and decides what that means; see the table. The alarm stays in the wheel all the same, and
//!   the next thread fires it in time. Whether there is a thread depends on the thread's body, not on the result
//!   of the factory: the body owns a [`ThreadGuard`], and if that is dropped before the thread has ended
//!   regularly (the start failed, the body never ran, the factory panicked) there is none. Alarms that were set
//!   in the meantime, by callers that were promised a thread, are then fired early, so that their owners check
//!   again and learn it, too. If such an owner sets an alarm from inside its waker it is told at once, and no
//!   thread is started ([`REPORTING`]): so the stack does not grow with the number of failures.
//! - **TIMER-5** A child process has the alarms of its parent, perhaps locked, and not the thread. It leaves
//!   them alone: the process's timer is another one there, and setting an alarm of any other fails.
//! - **TIMER-6** No user code runs on the thread, with one exception: the wakers of futures, for there is no
//!   other thread to call them. They belong to the user's async runtime, and are expected to be cheap; a panic of
//!   one is contained. Our own wakers do what is cheap and ours at once, and move the rest to another thread
//!   ([`super::deferred`]).
//! - **TIMER-7** An accepted task must not depend on a thread that may fail to start later. So a pool that
//!   accepts a task that needs the timer [holds](TimerHold) the thread until the pool ends. The number of
//!   holds is under the lock, too: while it is not zero the thread does not end, and without an alarm it sleeps
//!   without a time-out. Dropping the last hold wakes a thread that would sleep longer than [`IDLE_TIMEOUT`]. A
//!   hold is granted if the thread runs, or if the caller's own start succeeded: a thread that another caller
//!   starts may still fail. So several may be starting; the first that begins is the timer's thread, and the
//!   others end at once. If the thread of a timer dies although it is held, TIMER-4 applies: the owners of alarms
//!   learn it, and the next alarm or hold starts another.
//!
//! | setter of the alarm | without a thread |
//! |---|---|
//! | a future, for a deadline or an element that is due later | wakes itself after a short pause ([`Clock::alarm_for_future`]): slow, but never forgotten |
//! | the watchdog of a pool | is off for a moment; a later submission tries again. A pool with a run limit holds the thread from its first alarm on (TIMER-7) |
//! | a scheduled pool, for the first task that needs the timer | rejects it, and the closure comes back; otherwise the pool holds the thread from then on (TIMER-7), and the thread in reserve (DEFER-4 in `deferred.rs`) |
//! | a scheduled pool, for an accepted task | only if the thread has died: leaves it to the next thread, to a worker that becomes idle, and to the next call |
//!
//! The thread runs with the smallest [timer slack](timer_slack), and on a machine whose CPUs are all in use it is let in
//! [at once](time_slice). It sleeps until the first alarm, and
//! [not too briefly](Clock::sleep_until): it wakes up once for alarms that are close together.

mod hold;

pub(crate) use hold::TimerHold;

use super::wheel::{Key, Wheel};
use super::{Clock, Deadline};
use crate::thread::{JoinHandle, ThreadFactory};
use millpond_raw::park::{self, Site, Woken};
use millpond_raw::sync::{Mutex, local};
use millpond_raw::user_code::{self, Kind};
use millpond_raw::{catch_panic, fork, time_slice, timer_slack};
use std::cell::Cell;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

/// How long the thread stays without an alarm.
const IDLE_TIMEOUT: Duration = Duration::from_secs(1);

/// The number of alarms that fire per critical section. A larger batch takes the lock less often, and delays an
/// alarm that is set meanwhile and due at once.
const BATCH: usize = 32;

local! {
    /// TIMER-4: whether the current thread fires alarms early, to report that there is no timer's thread.
    static REPORTING: Cell<bool> = const { Cell::new(false) };
}

/// TIMER-6: the guard that checks the rule in tests marks the thread.
pub(crate) use millpond_raw::user_code::is_timer_thread;

/// The alarms of one clock, and the thread that fires them.
pub(super) struct Timer {
    threads: Box<dyn ThreadFactory>,
    /// TIMER-5: the fork generation of the process that has the thread.
    generation: u32,
    alarms: Mutex<Alarms>,
}

/// Nothing fires the alarm for now. It has no key if it is not set at all (TIMER-5).
pub(super) struct NoThread(pub(super) Option<Key>);

struct PendingAlarm {
    waker: Waker,
    /// TIMER-4: whether its setter was promised a thread.
    expects_thread: bool,
}

struct Alarms {
    wheel: Wheel<PendingAlarm>,
    /// When the thread last checked the wheel: recent enough to insert an alarm by.
    last_check: Instant,
    thread: ThreadState,
    /// TIMER-7: the number of holds.
    holds: usize,
}

impl Alarms {
    /// TIMER-1: the caller is about to start a thread.
    fn begin_start(&mut self) {
        self.thread = match self.thread {
            ThreadState::Starting(others) => ThreadState::Starting(others + 1),
            _ => ThreadState::Starting(1),
        };
    }
}

/// TIMER-1: the state of the timer's thread.
enum ThreadState {
    Absent,
    /// The number of threads that are being started: mostly one, but see TIMER-7.
    Starting(usize),
    /// Its waker, and until when it sleeps, unless it is awake or about to wake up (TIMER-2).
    Running(Waker, Option<Deadline>),
}

impl ThreadState {
    /// TIMER-2: the waker of the thread if it sleeps beyond `due`. It counts as awake from now on.
    fn wake_for(&mut self, due: Deadline) -> Option<Waker> {
        match self {
            ThreadState::Running(waker, sleeps) if sleeps.is_some_and(|until| due < until) => {
                *sleeps = None;
                Some(waker.clone())
            }
            ThreadState::Absent | ThreadState::Starting(_) | ThreadState::Running(..) => None,
        }
    }
}

impl Timer {
    pub(super) fn new(now: Instant, threads: impl ThreadFactory) -> Self {
        fork::install_handlers();
        Timer {
            threads: Box::new(threads),
            generation: fork::generation(),
            alarms: Mutex::new(Alarms {
                wheel: Wheel::new(now),
                last_check: now,
                thread: ThreadState::Absent,
                holds: 0,
            }),
        }
    }

    fn is_of_parent(&self) -> bool {
        self.generation != fork::generation()
    }

    /// Sets an alarm by `clock`, which must be the same for all alarms of a timer. Never fires it (TIMER-4).
    pub(super) fn set(
        self: &Arc<Self>,
        clock: &Clock,
        due: Deadline,
        waker: Waker,
    ) -> Result<Key, NoThread> {
        if self.is_of_parent() {
            return Err(NoThread(None));
        }
        let mut alarms = self.alarms.lock();
        let last_check = alarms.last_check;
        let expects_thread = matches!(
            alarms.thread,
            ThreadState::Starting(_) | ThreadState::Running(..)
        );
        let alarm = PendingAlarm {
            waker,
            expects_thread,
        };
        let key = alarms.wheel.insert(last_check, due, alarm);
        match alarms.thread {
            ThreadState::Absent if REPORTING.with(Cell::get) => Err(NoThread(Some(key))),
            ThreadState::Absent => {
                alarms.begin_start();
                drop(alarms);
                self.start(clock.clone(), key)
            }
            ThreadState::Starting(_) | ThreadState::Running(..) => {
                let sleeping = alarms.thread.wake_for(due);
                drop(alarms);
                sleeping.into_iter().for_each(Waker::wake);
                Ok(key)
            }
        }
    }

    /// Removes an alarm, unless it has fired.
    pub(super) fn cancel(&self, key: Key) {
        if !self.is_of_parent() {
            let cancelled = self.alarms.lock().wheel.remove(key);
            catch_panic::drop_waker(cancelled.map(|alarm| alarm.waker));
        }
    }

    /// Starts a thread, for the alarm of this key.
    #[cold]
    fn start(self: &Arc<Self>, clock: Clock, key: Key) -> Result<Key, NoThread> {
        // Whether there is a thread is another question than this result: TIMER-4.
        let _ = self.start_thread(clock);
        let mut alarms = self.alarms.lock();
        let Alarms { wheel, thread, .. } = &mut *alarms;
        let Some(alarm) = wheel.get_mut(key) else {
            // It has fired.
            return Ok(key);
        };
        alarm.expects_thread =
            matches!(thread, ThreadState::Starting(_) | ThreadState::Running(..));
        if alarm.expects_thread {
            Ok(key)
        } else {
            Err(NoThread(Some(key)))
        }
    }

    /// Starts the thread that was [announced](Alarms::begin_start). `None` if the factory panicked.
    #[cold]
    fn start_thread(self: &Arc<Self>, clock: Clock) -> Option<io::Result<JoinHandle<()>>> {
        let guard = ThreadGuard {
            timer: Arc::clone(self),
            has_begun: false,
            is_over: false,
        };
        // A failure drops the body, and with it the guard (TIMER-4). So does a panic, which must not reach the
        // caller that happens to set an alarm: a pool, a task that waits for a value.
        if !clock.is_system() {
            // The timer of the process has a factory of ours.
            user_code::check(Kind::Factory);
        }
        catch_panic::call(|| self.threads.start(Box::new(move || guard.run(&clock))))
    }
}

/// The next step of the thread.
enum Next {
    Fire,
    Sleep(Deadline),
    End,
}

/// Owned by the body of the timer's thread, from its start on.
struct ThreadGuard {
    timer: Arc<Timer>,
    /// Whether this is the timer's thread.
    has_begun: bool,
    /// Whether the state no longer counts this thread.
    is_over: bool,
}

impl ThreadGuard {
    /// The loop of the thread.
    fn run(mut self, clock: &Clock) {
        let _slack = timer_slack::minimize();
        let _slice = time_slice::shorten();
        let _marked = user_code::mark_timer_thread();
        let here = park::current();
        if !self.try_begin(here.waker()) {
            return;
        }
        let mut due = Vec::with_capacity(BATCH);
        let mut woken = Woken::Maybe;
        loop {
            match self.next(clock, woken, &mut due) {
                Next::Fire => due.drain(..).for_each(catch_panic::wake),
                Next::Sleep(until) => {
                    woken = clock.park_until(&here, Site::new("timer.sleep"), until);
                    continue;
                }
                Next::End => return,
            }
            woken = Woken::Maybe;
        }
    }

    /// Becomes the timer's thread, unless there is one (TIMER-7).
    fn try_begin(&mut self, waker: Waker) -> bool {
        let mut alarms = self.timer.alarms.lock();
        match alarms.thread {
            ThreadState::Running(..) => self.is_over = true,
            ThreadState::Absent | ThreadState::Starting(_) => {
                alarms.thread = ThreadState::Running(waker, None);
                self.has_begun = true;
            }
        }
        self.has_begun
    }

    /// Moves due alarms to `due`, up to a batch, and decides what to do next.
    fn next(&mut self, clock: &Clock, woken: Woken, due: &mut Vec<Waker>) -> Next {
        let now = clock.now();
        let mut alarms = self.timer.alarms.lock();
        let Alarms {
            wheel,
            last_check,
            thread,
            holds,
        } = &mut *alarms;
        *last_check = now;
        let mut sleeps = None;
        due.extend(std::iter::from_fn(|| Some(wheel.pop_due(now)?.1.waker)).take(BATCH));
        let next = if !due.is_empty() {
            Next::Fire
        } else if wheel.len() > 0 {
            let until = clock.sleep_until(wheel.next(), now);
            sleeps = Some(until);
            Next::Sleep(until)
        } else if *holds > 0 {
            // TIMER-7
            sleeps = Some(Deadline::NEVER);
            Next::Sleep(Deadline::NEVER)
        } else if woken == Woken::TimedOut {
            // TIMER-1
            let own = std::mem::replace(thread, ThreadState::Absent);
            self.is_over = true;
            drop(alarms);
            drop(own);
            return Next::End;
        } else {
            let next = Deadline::after(now, IDLE_TIMEOUT);
            sleeps = Some(next);
            Next::Sleep(next)
        };
        if let ThreadState::Running(_, until) = thread {
            *until = sleeps;
        }
        next
    }
}

impl Drop for ThreadGuard {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        // TIMER-4
        let mut alarms = self.timer.alarms.lock();
        match &mut alarms.thread {
            // TIMER-7: other threads are being started.
            ThreadState::Starting(others) if !self.has_begun && *others > 1 => {
                *others -= 1;
                return;
            }
            // Another thread has begun.
            ThreadState::Running(..) if !self.has_begun => return,
            _ => {}
        }
        let own = std::mem::replace(&mut alarms.thread, ThreadState::Absent);
        let promised = alarms.wheel.take_where(|alarm| alarm.expects_thread);
        drop(alarms);
        drop(own);
        let before = REPORTING.with(|reporting| reporting.replace(true));
        for alarm in promised {
            catch_panic::wake(alarm.waker);
        }
        REPORTING.with(|reporting| reporting.set(before));
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let alarms = self.alarms.lock();
        f.debug_struct("Timer")
            .field("alarms", &alarms.wheel.len())
            .field(
                "has_thread",
                &matches!(alarms.thread, ThreadState::Running(..)),
            )
            .field("holds", &alarms.holds)
            .finish_non_exhaustive()
    }
}

/// The timer of the process, by the system's clock. A model has none: it has no such clock.
#[cfg(not(any(millpond_loom, millpond_shuttle)))]
pub(super) fn of_process() -> Option<Arc<Timer>> {
    static TIMER: Mutex<Option<Arc<Timer>>> = Mutex::new(None);
    fork::install_handlers();
    fork::register_lock(&TIMER);
    let mut timer = TIMER.lock();
    // TIMER-5: the parent's is leaked.
    if timer.as_ref().is_some_and(|timer| timer.is_of_parent()) {
        std::mem::forget(timer.take());
    }
    let timer = timer.get_or_insert_with(|| {
        let threads = crate::thread::Threads::named("millpond-timer");
        Arc::new(Timer::new(Clock::system().now(), threads))
    });
    Some(Arc::clone(timer))
}

/// A model has no system clock.
#[cfg(any(millpond_loom, millpond_shuttle))]
pub(super) fn of_process() -> Option<Arc<Timer>> {
    None
}

#[cfg(test)]
mod tests;
