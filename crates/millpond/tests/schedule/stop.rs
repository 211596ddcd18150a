//! What a stop leaves behind.

use crate::kit::{Bench, HOUR, SECOND};
use millpond::executor::{Executor, Lifecycle, NotTaken, Rejected};
use millpond::schedule::ScheduledPool;
use millpond::task::{CancelReason, Task, TaskError};
use millpond::thread::{Body, JoinHandle, ThreadFactory, Threads};
use millpond::time::{Clock, ManualClock};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[test]
fn a_pool_that_was_stopped_is_over_whoever_keeps_what_it_handed_back() {
    let bench = Bench::new();
    let task = bench.timers.schedule(HOUR, || 7).unwrap();
    let diary = bench.diary.clone();
    let series = bench
        .timers
        .schedule_at_fixed_rate(HOUR, HOUR, move || diary.note("beat"))
        .unwrap();
    let back = bench.timers.shutdown_now();
    assert_eq!(back.len(), 2);
    assert!(bench.timers.is_terminated());
    bench.timers.await_termination().unwrap();
    assert!(!task.is_finished() && !series.is_finished());
    for task in back {
        task.run();
    }
    assert_eq!((task.join().unwrap(), series.runs()), (7, 1));
    assert!(series.is_cancelled() && bench.timers.is_terminated());
}

#[test]
fn a_pool_that_was_stopped_waits_for_what_runs() {
    let bench = Bench::new();
    let timers = bench.timers.clone();
    let body = move || {
        let back = timers.shutdown_now();
        (back.len(), timers.is_shutdown(), timers.is_terminated())
    };
    let task = bench.timers.schedule(SECOND, body).unwrap();
    let other = bench.timers.schedule(HOUR, || ()).unwrap();
    bench.pass(1);
    assert_eq!(task.join().unwrap(), (1, true, false));
    assert!(bench.timers.is_terminated() && other.is_cancelled());
}

/// Keeps the tasks that it takes; the first one makes it stop the pool that brings them.
#[derive(Clone, Debug, Default)]
struct Keeper {
    timers: Arc<Mutex<Option<ScheduledPool<Keeper>>>>,
    kept: Arc<Mutex<Vec<Task>>>,
    clock: Clock,
}

impl Executor for Keeper {
    fn execute(&self, task: Task) -> Result<(), Rejected<Task>> {
        self.kept.lock().unwrap().push(task);
        Ok(())
    }

    fn try_execute(&self, task: Task) -> Result<(), NotTaken> {
        self.kept.lock().unwrap().push(task);
        let timers = self.timers.lock().unwrap().take();
        if let Some(timers) = timers {
            assert!(timers.shutdown_now().is_empty(), "nothing waits any more");
        }
        Ok(())
    }

    fn clock(&self) -> Clock {
        self.clock.clone()
    }
}

#[test]
fn what_was_on_its_way_to_an_executor_of_others_when_it_was_stopped_does_not_arrive() {
    let hand = ManualClock::new();
    let keeper = Keeper {
        clock: hand.clock(),
        ..Keeper::default()
    };
    let timers = ScheduledPool::on(keeper.clone()).on_notice(|_| ()).build();
    *keeper.timers.lock().unwrap() = Some(timers.clone());
    let first = timers.schedule(SECOND, || 1).unwrap();
    let second = timers.schedule(SECOND, || 2).unwrap();
    let series = timers
        .schedule_at_fixed_rate(SECOND, SECOND, || ())
        .unwrap();
    hand.advance(SECOND);
    assert_eq!(keeper.kept.lock().unwrap().len(), 1);
    for handle in [first, second] {
        let error = handle.join().unwrap_err();
        assert!(matches!(
            error,
            TaskError::Cancelled(CancelReason::ShutDown)
        ));
    }
    assert!(series.is_cancelled() && timers.is_terminated());
}

/// Panics a few times before it starts a thread.
#[derive(Debug)]
struct Moody(AtomicU32);

impl ThreadFactory for Moody {
    fn start(&self, body: Body) -> std::io::Result<JoinHandle<()>> {
        let asked = self.0.fetch_add(1, Ordering::Relaxed);
        assert!(asked >= 3, "the factory is moody");
        Threads::named("moody").start(body)
    }
}

#[test]
fn a_timer_whose_factory_panics_costs_no_task() {
    let clock = Clock::system().with_timer(Moody(AtomicU32::new(0)));
    let pool = millpond::pool::ThreadPool::builder("moody").core(1).max(1);
    let pool = pool.clock(clock).build().unwrap();
    let timers = ScheduledPool::owning(pool).build();
    for number in 0..3 {
        let task = timers.schedule(Duration::from_millis(2), move || number);
        assert_eq!(task.unwrap().join().unwrap(), number);
    }
    timers.close();
}
