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
//!
//! | who sets an alarm | without a thread |
//! |---|---|
//! | a future, for a deadline or an element that is due later | wakes itself, after a short rest ([`Clock::alarm_for_future`]): slow, but nobody is forgotten |
//! | the watch of a pool | there is no watch for a moment; whoever brings a task a little later tries again |
//! | a scheduled pool, for what is being scheduled | refuses it, and the closure comes back |
//! | a scheduled pool, for what it has accepted | leaves it to whoever gets a thread next, to a worker that becomes idle, and to the next call |
//!
//! The thread is woken in time ([`slack`]), and gets up a little before it ([`Lead`]). While it waits awake it
//! lets others run.

use super::lead::{Lead, Rest};
use super::wheel::{Key, Wheel};
use super::{Clock, Deadline};
use crate::thread::ThreadFactory;
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

/// Nobody rings the alarm, for the time being, and why.
pub(super) struct Unattended {
    /// `None` if it is not set at all (R5).
    pub(super) key: Option<Key>,
    pub(super) why: io::Error,
}

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

    /// Sets an alarm by `clock`, which must be the same for all alarms of a timer. Never rings it itself: R4.
    pub(super) fn set(
        self: &Arc<Self>,
        clock: &Clock,
        due: Deadline,
        waker: Waker,
    ) -> Result<Key, Unattended> {
        if self.is_of_parent() {
            let why = io::Error::new(io::ErrorKind::Unsupported, OF_PARENT);
            return Err(Unattended { key: None, why });
        }
        let mut alarms = self.alarms.lock();
        let looked = alarms.looked;
        let is_attended = matches!(alarms.duty, OnDuty::Expected | OnDuty::Thread(..));
        let waiting = Waiting { waker, is_attended };
        let key = alarms.wheel.insert(looked, due, waiting);
        match alarms.duty {
            OnDuty::Nobody if TELLING.with(Cell::get) => Err(Unattended {
                key: Some(key),
                why: io::Error::new(io::ErrorKind::WouldBlock, REFUSED),
            }),
            OnDuty::Nobody => {
                alarms.duty = OnDuty::Expected;
                drop(alarms);
                self.start(clock.clone(), key)
            }
            OnDuty::Expected | OnDuty::Thread(..) => {
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
        let duty = Duty {
            timer: Arc::clone(self),
            is_over: false,
        };
        // A refusal drops the body, and with it the duty: R4. So does a panic, which is not for whoever
        // happens to set an alarm: a pool, a task that waits for a value.
        user_code::check(Kind::Factory);
        let started = quiet::call(|| self.threads.start(Box::new(move || duty.ring(&clock))));
        let mut alarms = self.alarms.lock();
        let Alarms { wheel, duty, .. } = &mut *alarms;
        let Some(waiting) = wheel.get_mut(key) else {
            // It has rung.
            return Ok(key);
        };
        waiting.is_attended = matches!(duty, OnDuty::Expected | OnDuty::Thread(..));
        if waiting.is_attended {
            return Ok(key);
        }
        let why = match started {
            Some(Err(why)) => why,
            Some(Ok(_)) | None => io::Error::new(io::ErrorKind::WouldBlock, REFUSED),
        };
        let key = Some(key);
        Err(Unattended { key, why })
    }
}

/// R4, where the factory has not said why.
const REFUSED: &str = "the timer's thread could not be started";

/// R5.
const OF_PARENT: &str =
    "the timer's thread is in the parent of this process: make a new clock after fork()";

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
            timer.set(&clock, due, Waker::noop().clone()).ok()
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
    fn a_body_that_never_runs_rings_all_alarms_that_counted_on_it() {
        let hand = ManualClock::new();
        let (clock, threads) = (hand.clock(), Kept::default());
        let timer = Arc::new(Timer::new(clock.now(), threads.clone()));
        let bell = Arc::new(Bell::default());
        let set = || {
            let due = clock.deadline(SECOND);
            timer.set(&clock, due, Waker::from(Arc::clone(&bell))).ok()
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

    /// Refuses, and lets somebody else set an alarm meanwhile.
    #[derive(Clone, Default)]
    struct Refuses {
        meanwhile: Arc<Mutex<Option<Body>>>,
        asked: Arc<AtomicUsize>,
    }

    impl fmt::Debug for Refuses {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("Refuses")
        }
    }

    impl ThreadFactory for Refuses {
        fn start(&self, body: Body) -> io::Result<JoinHandle<()>> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            let meanwhile = self.meanwhile.lock().take();
            if let Some(meanwhile) = meanwhile {
                meanwhile();
            }
            drop(body);
            Err(io::Error::from_raw_os_error(11))
        }
    }

    /// Sets an alarm for itself whenever it is rung.
    struct Insists {
        timer: Arc<Timer>,
        clock: Clock,
        rung: AtomicUsize,
        depth: AtomicUsize,
    }

    impl Wake for Insists {
        fn wake(self: Arc<Self>) {
            self.rung.fetch_add(1, Ordering::Relaxed);
            let depth = self.depth.fetch_add(1, Ordering::Relaxed);
            assert!(depth < 4, "the stack grows with the refusals");
            let due = self.clock.deadline(SECOND);
            let set = self
                .timer
                .set(&self.clock, due, Waker::from(Arc::clone(&self)));
            assert!(set.is_err(), "nobody can be had");
            self.depth.fetch_sub(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn who_sets_an_alarm_is_told_that_nobody_rings_it_and_is_not_rung() {
        let hand = ManualClock::new();
        let (clock, threads) = (hand.clock(), Refuses::default());
        let timer = Arc::new(Timer::new(clock.now(), threads.clone()));
        let insists = || {
            Arc::new(Insists {
                timer: Arc::clone(&timer),
                clock: clock.clone(),
                rung: AtomicUsize::new(0),
                depth: AtomicUsize::new(0),
            })
        };
        let (first, meanwhile) = (insists(), insists());
        // The second one is set while the thread is expected, so it counts on it.
        let (own, other) = (Arc::clone(&timer), Waker::from(Arc::clone(&meanwhile)));
        let by = clock.clone();
        *threads.meanwhile.lock() = Some(Box::new(move || {
            assert!(own.set(&by, by.deadline(SECOND), other).is_ok());
        }));
        let waker = Waker::from(Arc::clone(&first));
        let set = timer.set(&clock, clock.deadline(SECOND), waker);
        let Err(Unattended { key, why }) = set else {
            panic!("nobody can be had");
        };
        assert_eq!(why.raw_os_error(), Some(11));
        let rung = |bell: &Insists| bell.rung.load(Ordering::Relaxed);
        assert_eq!((rung(&first), rung(&meanwhile)), (0, 1));
        let asked = || threads.asked.load(Ordering::Relaxed);
        assert_eq!(asked(), 1, "who is rung for that asks for none");
        // All of them are still set, and the next one tries again.
        assert_eq!(timer.alarms.lock().wheel.len(), 2);
        timer.take_back(key.expect("it is set"));
        assert!(
            timer
                .set(&clock, clock.deadline(SECOND), Waker::noop().clone())
                .is_err()
        );
        assert_eq!((asked(), rung(&meanwhile)), (2, 1), "it knows already");
        drop(timer.alarms.lock().wheel.take_where(|_| true));
    }

    /// The thread is the factory's, which may have something else for it to do.
    #[test]
    fn a_thread_is_a_timers_no_longer_than_it_rings() {
        let hand = ManualClock::new();
        let (clock, threads) = (hand.clock(), Kept::default());
        let timer = Arc::new(Timer::new(clock.now(), threads.clone()));
        let due = clock.deadline(SECOND);
        let bell = Arc::new(Bell::default());
        let waker = Waker::from(Arc::clone(&bell));
        let _key = timer.set(&clock, due, waker).ok();
        let body = threads.0.lock().pop().expect("it was asked for a thread");
        let thread = thread::spawn(move || {
            body();
            is_timer_thread()
        });
        while !thread.is_finished() {
            hand.advance(SECOND);
            thread::yield_now();
        }
        assert_eq!(bell.rung(), 1);
        assert!(!thread.join().unwrap());
    }
}
