//! Idle workers that wait for what is due, instead of the timer.

use crate::kit::{HOUR, SECOND};
use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::pool::ThreadPool;
use millpond::schedule::ScheduledPool;
use millpond::thread::{Body, JoinHandle, ThreadFactory, Threads};
use millpond::time::{Clock, Deadline, ManualClock};
use millpond_raw::park::probe;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, channel, sync_channel};
use std::sync::{Arc, Barrier};
use std::time::Duration;

/// Longer than anything takes that works.
const LONG: Duration = Duration::from_secs(20);

const MS: Duration = Duration::from_millis(1);

/// Counts how often a timer was asked for.
#[derive(Clone, Debug, Default)]
struct Asked(Arc<AtomicUsize>);

impl ThreadFactory for Asked {
    fn start(&self, body: Body) -> std::io::Result<JoinHandle<()>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Threads::named("test-timer").start(body)
    }
}

/// A pool whose workers have started, by the system's clock with a timer of its own.
fn with_a_timer(workers: usize, leaders: bool) -> (ScheduledPool<ThreadPool>, Asked) {
    let asked = Asked::default();
    let clock = Clock::system().with_timer(asked.clone());
    let pool = ThreadPool::builder("mill").core(workers).clock(clock);
    let pool = pool.build().unwrap();
    pool.prestart_all_core().unwrap();
    let timers = ScheduledPool::owning(pool).worker_timers(leaders).build();
    (timers, asked)
}

#[test]
fn a_worker_that_is_idle_runs_what_is_due_and_no_timer_is_needed() {
    let (timers, asked) = with_a_timer(1, true);
    // Once it has run something it has been idle.
    timers.executor().submit(|| ()).unwrap().join().unwrap();
    for _ in 0..3 {
        let name = || std::thread::current().name().map(str::to_owned);
        let ran_by = timers.schedule(5 * MS, name).unwrap().join().unwrap();
        assert_eq!(ran_by.as_deref(), Some("mill-1"));
    }
    timers.close().unwrap();
    // The watchdog and the schedule may ask at once; no other thread asks.
    assert!(asked.0.load(Ordering::SeqCst) <= 2);
}

#[test]
fn without_leaders_the_alarm_fires() {
    let (timers, asked) = with_a_timer(1, false);
    timers.schedule(MS, || ()).unwrap().join().unwrap();
    timers.close().unwrap();
    // The watchdog of the pool and the schedule may ask at once, and each asks for its own.
    assert!((1..=2).contains(&asked.0.load(Ordering::SeqCst)));
}

#[test]
fn what_becomes_due_while_the_leader_is_busy_is_run_by_another_worker() {
    let (timers, _) = with_a_timer(2, true);
    let (send, receive) = channel();
    let first = timers.schedule(MS, move || receive.recv()).unwrap();
    let second = timers.schedule(5 * MS, move || send.send("flour")).unwrap();
    assert_eq!(first.join().unwrap(), Ok("flour"));
    second.join().unwrap().unwrap();
    timers.close().unwrap();
}

#[test]
fn a_leader_that_sleeps_for_an_hour_gets_up_for_what_is_scheduled_for_now() {
    let (timers, _) = with_a_timer(1, true);
    let later = timers.schedule(HOUR, || ()).unwrap();
    for after in [Duration::ZERO, MS, 3 * MS] {
        timers.schedule(after, || ()).unwrap().join().unwrap();
    }
    assert!(later.cancel());
    timers.close().unwrap();
}

#[test]
fn a_leader_that_has_much_to_do_hears_that_its_pool_is_shut_down() {
    let pool = ThreadPool::builder("mill").core(2).build().unwrap();
    let timers = ScheduledPool::owning(pool.clone()).on_event(|_| ());
    let timers = timers.build();
    let micros = |after| Duration::from_micros(20 * after);
    let soon: Vec<_> = (0..3000_u64)
        .map(|after| timers.schedule(micros(after), || ()).unwrap())
        .collect();
    while timers.snapshot().lateness.count() < 100 {
        millpond_raw::sync::thread::yield_now();
    }
    pool.shutdown();
    let ended = pool.await_termination_timeout(Duration::from_secs(30));
    assert_eq!(ended, Ok(true), "its workers go on");
    for task in soon {
        let result = task.join();
        assert!(result.is_ok() || result.unwrap_err().is_cancelled());
    }
    timers.close().unwrap();
}

#[test]
fn by_a_manual_clock_leaders_get_up_when_the_hand_is_moved() {
    let manual = ManualClock::new();
    let pool = ThreadPool::builder("mill").core(2).clock(manual.clock());
    let pool = pool.build().unwrap();
    pool.prestart_all_core().unwrap();
    let timers = ScheduledPool::owning(pool).worker_timers(true).build();
    let tasks: Vec<_> = (1..=50_u32)
        .map(|second| timers.schedule(SECOND * second, move || second).unwrap())
        .collect();
    for (task, second) in tasks.into_iter().zip(1..) {
        manual.advance(SECOND);
        assert_eq!(task.join().unwrap(), second);
    }
    timers.close().unwrap();
}

/// Workers rest by the clock of their pool. If that is another than the one that says what is due, no leader
/// would hear that the time has come.
#[test]
fn a_pool_by_another_clock_than_its_executor_has_no_leaders_and_runs_what_is_due() {
    let hands = [ManualClock::new(), ManualClock::new()];
    let clocks = [Clock::system(), hands[1].clock()];
    for clock in clocks {
        let pool = ThreadPool::builder("clocks").core(1).clock(clock);
        let pool = pool.build().unwrap();
        let timers = ScheduledPool::owning(pool).clock(hands[0].clock());
        let timers = timers.worker_timers(true).build();
        for round in 0..20 {
            let mut task = timers.schedule(SECOND, move || round).unwrap();
            // Once it has run something its worker is on its way to a rest.
            timers.executor().submit(|| ()).unwrap().join().unwrap();
            let rests = probe::await_wait(LONG, |wait| wait.name.as_deref() == Some("clocks-1"));
            rests.expect("an idle worker rests");
            hands[0].advance(SECOND);
            // The handle goes by the clock that stands still now, so another thread guards against a hang.
            let (tell, told) = channel();
            millpond_raw::sync::thread::spawn(move || {
                tell.send(task.join_until(Deadline::NEVER).ok())
            });
            let result = told.recv_timeout(LONG);
            assert_eq!(result, Ok(Some(round)), "the timer was lost");
        }
        timers.close().unwrap();
    }
}

#[test]
fn a_pool_with_another_queue_has_no_leaders_and_runs_what_is_due_all_the_same() {
    use millpond::pool::Queue;
    let queues = [
        Queue::hand_off(),
        Queue::by_priority(10, SECOND),
        Queue::custom(millpond::queue::FifoQueue::unbounded()),
    ];
    for queue in queues {
        let pool = ThreadPool::builder("mill").core(1).queue(queue).build();
        let timers = ScheduledPool::owning(pool.unwrap())
            .worker_timers(true)
            .build();
        for _ in 0..3 {
            assert_eq!(timers.schedule(MS, || 7).unwrap().join().unwrap(), 7);
        }
        timers.close().unwrap();
    }
}

/// Starts the first threads at once, and holds up those that come later until the gate is open.
#[derive(Debug)]
struct SlowStarts {
    quick: usize,
    started: AtomicUsize,
    /// Tells that a start is held up.
    held_up: SyncSender<()>,
    gate: Arc<Barrier>,
}

impl ThreadFactory for SlowStarts {
    fn start(&self, body: Body) -> std::io::Result<JoinHandle<()>> {
        if self.started.fetch_add(1, Ordering::SeqCst) >= self.quick {
            self.held_up.send(()).expect("the test waits for it");
            self.gate.wait();
        }
        Threads::named("mill").start(body)
    }
}

/// FIFO-7: a thread that is held up in user code does not count as searching.
#[test]
fn while_the_leader_is_held_up_in_a_thread_factory_other_workers_are_woken_for_tasks() {
    let (held_up, is_held_up) = sync_channel(1);
    let gate = Arc::new(Barrier::new(2));
    let factory = SlowStarts {
        quick: 2,
        started: AtomicUsize::new(0),
        held_up,
        gate: Arc::clone(&gate),
    };
    let pool = ThreadPool::builder("mill").core(3).max(3).threads(factory);
    let pool = pool.build().unwrap();
    let timers = ScheduledPool::owning(pool.clone()).build();
    for _ in 0..2 {
        pool.submit(|| ()).unwrap().join().unwrap();
    }
    // The leader dispatches it, and starts the third worker for it.
    let due = timers.schedule(MS, || ()).unwrap();
    is_held_up.recv_timeout(LONG).unwrap();
    let mut task = pool.submit(|| 7).unwrap();
    assert_eq!(task.join_timeout(LONG).unwrap(), 7);
    assert_eq!(pool.health().lost_wakeups, 0, "nobody had to repair it");
    gate.wait();
    due.join().unwrap();
    timers.close().unwrap();
}
