//! The rules of the timer, without a thread.

use super::*;
use crate::thread::{Body, JoinHandle};
use crate::time::ManualClock;
use millpond_raw::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

const SECOND: Duration = Duration::from_secs(1);

#[derive(Default)]
struct CountingWaker(AtomicUsize);

impl CountingWaker {
    fn fired(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Wake for CountingWaker {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A factory that keeps the bodies and starts no thread.
#[derive(Clone, Default)]
struct KeepsBodies(Arc<Mutex<Vec<Body>>>);

impl fmt::Debug for KeepsBodies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeepsBodies")
    }
}

impl ThreadFactory for KeepsBodies {
    fn start(&self, body: Body) -> std::io::Result<JoinHandle<()>> {
        self.0.lock().push(body);
        Ok(millpond_raw::sync::thread::spawn(|| ()))
    }
}

#[test]
fn only_an_alarm_before_its_time_wakes_a_thread_that_sleeps_and_none_one_that_is_awake() {
    let manual = ManualClock::new();
    let clock = manual.clock();
    let timer = Arc::new(Timer::new(clock.now(), KeepsBodies::default()));
    let thread = Arc::new(CountingWaker::default());
    let set = |after: u32| {
        let due = clock.deadline(SECOND * after);
        timer.set(&clock, due, Waker::noop().clone()).ok()
    };
    let sleeps = |until: Option<u32>| {
        let until = until.map(|after| clock.deadline(SECOND * after));
        let waker = Waker::from(Arc::clone(&thread));
        timer.alarms.lock().thread = ThreadState::Running(waker, until);
    };

    sleeps(None);
    set(1);
    assert_eq!(thread.fired(), 0, "it is awake");
    sleeps(Some(10));
    set(11);
    set(10);
    assert_eq!(thread.fired(), 0, "it comes in time");
    set(9);
    assert_eq!(thread.fired(), 1);
    set(8);
    assert_eq!(thread.fired(), 1, "it is awake again");
}

#[test]
fn a_body_that_never_runs_fires_all_alarms_that_were_promised_a_thread() {
    let manual = ManualClock::new();
    let (clock, threads) = (manual.clock(), KeepsBodies::default());
    let timer = Arc::new(Timer::new(clock.now(), threads.clone()));
    let waker_count = Arc::new(CountingWaker::default());
    let set = || {
        let due = clock.deadline(SECOND);
        timer
            .set(&clock, due, Waker::from(Arc::clone(&waker_count)))
            .ok()
    };
    let cancelled = set();
    set();
    set();
    timer.cancel(cancelled.expect("a thread is starting"));
    assert_eq!(
        (waker_count.fired(), threads.0.lock().len()),
        (0, 1),
        "one is starting"
    );
    let body = threads.0.lock().pop();
    drop(body);
    assert_eq!(waker_count.fired(), 2);
    set();
    // Breaks the cycle: the body owns the timer, which owns the factory, which owns the body.
    let last = threads.0.lock().pop();
    assert!(last.is_some(), "the next alarm starts another");
}

/// A factory that fails, and runs a closure in the meantime that sets an alarm.
#[derive(Clone, Default)]
struct FailsToStart {
    meanwhile: Arc<Mutex<Option<Body>>>,
    asked: Arc<AtomicUsize>,
}

impl fmt::Debug for FailsToStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FailsToStart")
    }
}

impl ThreadFactory for FailsToStart {
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

/// Sets an alarm for itself whenever it is called.
struct SetsAgain {
    timer: Arc<Timer>,
    clock: Clock,
    fired: AtomicUsize,
    depth: AtomicUsize,
}

impl Wake for SetsAgain {
    fn wake(self: Arc<Self>) {
        self.fired.fetch_add(1, Ordering::Relaxed);
        let depth = self.depth.fetch_add(1, Ordering::Relaxed);
        assert!(depth < 4, "the stack grows with the failures");
        let due = self.clock.deadline(SECOND);
        let set = self
            .timer
            .set(&self.clock, due, Waker::from(Arc::clone(&self)));
        assert!(set.is_err(), "no thread can be started");
        self.depth.fetch_sub(1, Ordering::Relaxed);
    }
}

#[test]
fn the_setter_of_an_alarm_is_told_that_there_is_no_thread_and_its_waker_is_not_called() {
    let manual = ManualClock::new();
    let (clock, threads) = (manual.clock(), FailsToStart::default());
    let timer = Arc::new(Timer::new(clock.now(), threads.clone()));
    let sets_again = || {
        Arc::new(SetsAgain {
            timer: Arc::clone(&timer),
            clock: clock.clone(),
            fired: AtomicUsize::new(0),
            depth: AtomicUsize::new(0),
        })
    };
    let (first, meanwhile) = (sets_again(), sets_again());
    // The second is set while the thread is starting, so it is promised one.
    let (own, other) = (Arc::clone(&timer), Waker::from(Arc::clone(&meanwhile)));
    let by = clock.clone();
    *threads.meanwhile.lock() = Some(Box::new(move || {
        assert!(own.set(&by, by.deadline(SECOND), other).is_ok());
    }));
    let waker = Waker::from(Arc::clone(&first));
    let set = timer.set(&clock, clock.deadline(SECOND), waker);
    let Err(NoThread(key)) = set else {
        panic!("no thread can be started");
    };
    let fired = |waker_count: &SetsAgain| waker_count.fired.load(Ordering::Relaxed);
    assert_eq!((fired(&first), fired(&meanwhile)), (0, 1));
    let asked = || threads.asked.load(Ordering::Relaxed);
    assert_eq!(
        asked(),
        1,
        "an alarm that is set from there starts no thread"
    );
    // Both are still set, and the next alarm tries again.
    assert_eq!(timer.alarms.lock().wheel.len(), 2);
    timer.cancel(key.expect("it is set"));
    assert!(
        timer
            .set(&clock, clock.deadline(SECOND), Waker::noop().clone())
            .is_err()
    );
    assert_eq!((asked(), fired(&meanwhile)), (2, 1), "it was told before");
    drop(timer.alarms.lock().wheel.take_where(|_| true));
}

#[test]
fn a_thread_that_is_held_stays_without_alarms_and_ends_when_the_last_hold_is_dropped() {
    let manual = ManualClock::new();
    let clock = manual.clock();
    let timer = Arc::new(Timer::new(clock.now(), KeepsBodies::default()));
    let mut guard = ThreadGuard {
        timer: Arc::clone(&timer),
        has_begun: false,
        is_over: false,
    };
    let thread = Arc::new(CountingWaker::default());
    assert!(guard.try_begin(Waker::from(Arc::clone(&thread))));
    let mut next = |woken| {
        let step = guard.next(&clock, woken, &mut Vec::new());
        match step {
            Next::Sleep(until) => Some(until),
            Next::End => None,
            Next::Fire => panic!("there is no alarm"),
        }
    };
    let (one, other) = (timer.hold(&clock).unwrap(), timer.hold(&clock).unwrap());
    assert_eq!(next(Woken::TimedOut), Some(Deadline::NEVER));
    drop(one);
    assert_eq!(next(Woken::TimedOut), Some(Deadline::NEVER));
    assert_eq!(thread.fired(), 0);
    drop(other);
    assert_eq!(thread.fired(), 1, "it would sleep for ever");
    assert_eq!(next(Woken::Maybe), Some(clock.deadline(IDLE_TIMEOUT)));
    drop(timer.hold(&clock));
    assert_eq!(thread.fired(), 1, "it wakes up by itself");
    assert_eq!(next(Woken::TimedOut), None);
}

#[test]
fn a_hold_does_not_rely_on_a_thread_that_another_caller_starts() {
    let manual = ManualClock::new();
    let (clock, threads) = (manual.clock(), FailsToStart::default());
    let timer = Arc::new(Timer::new(clock.now(), threads.clone()));
    let (own, by) = (Arc::clone(&timer), clock.clone());
    *threads.meanwhile.lock() = Some(Box::new(move || {
        let held = own.hold(&by);
        assert_eq!(held.unwrap_err().raw_os_error(), Some(11));
    }));
    assert!(timer.hold(&clock).is_err());
    assert_eq!(threads.asked.load(Ordering::Relaxed), 2);
    let alarms = timer.alarms.lock();
    assert!(matches!(alarms.thread, ThreadState::Absent));
    assert_eq!(alarms.holds, 0);
}

#[test]
fn of_two_threads_that_start_at_once_one_becomes_the_timers() {
    let manual = ManualClock::new();
    let (clock, threads) = (manual.clock(), KeepsBodies::default());
    let timer = Arc::new(Timer::new(clock.now(), threads.clone()));
    let held = (timer.hold(&clock).unwrap(), timer.hold(&clock).unwrap());
    let bodies = std::mem::take(&mut *threads.0.lock());
    assert_eq!(bodies.len(), 2);
    let mut bodies = bodies.into_iter();
    drop(bodies.next());
    assert!(matches!(
        timer.alarms.lock().thread,
        ThreadState::Starting(1)
    ));
    // There is one already.
    let waker = Waker::noop().clone();
    timer.alarms.lock().thread = ThreadState::Running(waker, None);
    bodies.next().unwrap()();
    assert!(matches!(
        timer.alarms.lock().thread,
        ThreadState::Running(..)
    ));
    drop(held);
    assert_eq!(timer.alarms.lock().holds, 0);
}

/// The thread is the factory's, which may use it for something else afterwards.
#[cfg(not(any(millpond_loom, millpond_shuttle)))]
#[test]
fn a_thread_is_marked_as_the_timers_only_while_it_runs_the_timer() {
    use millpond_raw::sync::thread;

    let manual = ManualClock::new();
    let (clock, threads) = (manual.clock(), KeepsBodies::default());
    let timer = Arc::new(Timer::new(clock.now(), threads.clone()));
    let due = clock.deadline(SECOND);
    let waker_count = Arc::new(CountingWaker::default());
    let waker = Waker::from(Arc::clone(&waker_count));
    let _key = timer.set(&clock, due, waker).ok();
    let body = threads.0.lock().pop().expect("the alarm started a thread");
    let thread = thread::spawn(move || {
        body();
        is_timer_thread()
    });
    while !thread.is_finished() {
        manual.advance(SECOND);
        thread::yield_now();
    }
    assert_eq!(waker_count.fired(), 1);
    assert!(!thread.join().unwrap());
}
