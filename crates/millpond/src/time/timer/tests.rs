//! The rules of the timer, without a thread.

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
    let Err(Unattended(key)) = set else {
        panic!("nobody can be had");
    };
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

#[test]
fn a_thread_that_is_held_stays_without_alarms_and_ends_when_the_last_hold_is_gone() {
    let hand = ManualClock::new();
    let clock = hand.clock();
    let timer = Arc::new(Timer::new(clock.now(), Kept::default()));
    let mut duty = Duty {
        timer: Arc::clone(&timer),
        has_begun: false,
        is_over: false,
    };
    let thread = Arc::new(Bell::default());
    assert!(duty.begins(Waker::from(Arc::clone(&thread))));
    let mut look = |woken| {
        let next = duty.look(&clock, woken, Lead::default(), &mut Vec::new());
        match next {
            Next::Sleep(until) => Some(until),
            Next::End => None,
            Next::Ring | Next::WaitAwake(_) => panic!("there is no alarm"),
        }
    };
    let (one, other) = (timer.hold(&clock).unwrap(), timer.hold(&clock).unwrap());
    assert_eq!(look(Woken::TimedOut), Some(Deadline::NEVER));
    drop(one);
    assert_eq!(look(Woken::TimedOut), Some(Deadline::NEVER));
    assert_eq!(thread.rung(), 0);
    drop(other);
    assert_eq!(thread.rung(), 1, "it would sleep for ever");
    assert_eq!(look(Woken::Maybe), Some(clock.deadline(PATIENCE)));
    drop(timer.hold(&clock));
    assert_eq!(thread.rung(), 1, "it gets up by itself");
    assert_eq!(look(Woken::TimedOut), None);
}

#[test]
fn a_hold_does_not_count_on_a_thread_that_another_has_asked_for() {
    let hand = ManualClock::new();
    let (clock, threads) = (hand.clock(), Refuses::default());
    let timer = Arc::new(Timer::new(clock.now(), threads.clone()));
    let (own, by) = (Arc::clone(&timer), clock.clone());
    *threads.meanwhile.lock() = Some(Box::new(move || {
        let held = own.hold(&by);
        assert_eq!(held.unwrap_err().raw_os_error(), Some(11));
    }));
    assert!(timer.hold(&clock).is_err());
    assert_eq!(threads.asked.load(Ordering::Relaxed), 2);
    let alarms = timer.alarms.lock();
    assert!(matches!(alarms.duty, OnDuty::Nobody));
    assert_eq!(alarms.holds, 0);
}

#[test]
fn of_two_threads_that_were_asked_for_at_a_time_one_is_on_duty() {
    let hand = ManualClock::new();
    let (clock, threads) = (hand.clock(), Kept::default());
    let timer = Arc::new(Timer::new(clock.now(), threads.clone()));
    let held = (timer.hold(&clock).unwrap(), timer.hold(&clock).unwrap());
    let bodies = std::mem::take(&mut *threads.0.lock());
    assert_eq!(bodies.len(), 2);
    let mut bodies = bodies.into_iter();
    drop(bodies.next());
    assert!(matches!(timer.alarms.lock().duty, OnDuty::Expected(1)));
    // There is one already.
    let waker = Waker::noop().clone();
    timer.alarms.lock().duty = OnDuty::Thread(waker, None);
    bodies.next().unwrap()();
    assert!(matches!(timer.alarms.lock().duty, OnDuty::Thread(..)));
    drop(held);
    assert_eq!(timer.alarms.lock().holds, 0);
}

/// The thread is the factory's, which may have something else for it to do.
#[cfg(not(any(millpond_loom, millpond_shuttle)))]
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
