//! Tasks that must have ended by a time: dropped when they would be too late, interrupted when they are.

use millpond::executor::{
    DirectExecutor, Executor, ExecutorExt, Lifecycle, SerialExecutor, SpawnFuture, ThreadPerTask,
};
use millpond::forkjoin::ForkJoinPool;
use millpond::interrupt;
use millpond::pool::{PoolBuilder, ThreadPool};
use millpond::schedule::ScheduledPool;
use millpond::task::{self, CancelReason, TaskError, TaskHandle, TaskSpec};
use millpond::time::{Deadline, ManualClock};
use std::fmt::Debug;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

struct Mill {
    hand: ManualClock,
    pool: ThreadPool,
}

impl Mill {
    fn new(change: impl FnOnce(PoolBuilder) -> PoolBuilder) -> Self {
        let hand = ManualClock::new();
        let pool = ThreadPool::builder("mill").core(1).max(1);
        let pool = change(pool.clock(hand.clock())).build().unwrap();
        Mill { hand, pool }
    }

    /// A task that must have ended after so long.
    fn within(&self, time: Duration) -> TaskSpec {
        let by = self.hand.clock().deadline(time);
        TaskSpec::new().name("bake").finish_by(by)
    }

    /// A task that is given so much time, and takes so long.
    fn bake(&self, given: Duration, takes: Duration) -> Result<(), TaskError> {
        let (started, go) = (channel(), channel::<()>());
        let spec = self.within(given);
        let handle = self.pool.submit_with(spec, move || {
            started.0.send(()).unwrap();
            let _ = go.1.recv();
        });
        let handle = handle.unwrap();
        if started.1.recv().is_ok() {
            self.hand.advance(takes);
        }
        drop(go.0);
        handle.join()
    }
}

fn is_too_late<T: Debug>(outcome: &Result<T, TaskError>) -> bool {
    matches!(outcome, Err(TaskError::Cancelled(CancelReason::TooLate)))
}

/// A task that says that it has started, and sleeps for an hour.
fn sleeper(
    executor: &impl Executor,
    spec: TaskSpec,
) -> (Receiver<()>, TaskHandle<Result<(), interrupt::Interrupted>>) {
    let (tell, told) = channel();
    let body = move || {
        tell.send(()).unwrap();
        interrupt::sleep(HOUR)
    };
    (told, executor.submit_with(spec, body).unwrap())
}

#[test]
fn a_task_that_runs_is_interrupted_when_its_time_comes_and_not_before() {
    let mill = Mill::new(|pool| pool);
    let spec = mill.within(2 * SECOND).clock(mill.hand.clock());
    let (started, handle) = sleeper(&mill.pool, spec);
    started.recv().unwrap();
    mill.hand.advance(SECOND);
    assert!(!handle.is_finished());
    mill.hand.advance(SECOND);
    assert!(handle.join().unwrap().is_err());
    mill.pool.submit(|| ()).unwrap().join().unwrap();
    mill.pool.close().unwrap();
    let now = mill.pool.snapshot();
    assert_eq!((now.completed, now.finished_late, now.too_late), (2, 1, 0));
    let named = mill.pool.metrics_by_name();
    let late = |name: &str| {
        let mut named = named.iter();
        named
            .find(|each| each.label.to_string() == name)
            .map(|each| each.metrics.finished_late)
    };
    assert_eq!(late("bake"), Some(1));
    assert_eq!(mill.hand.sleepers(), 0, "no alarm is left");
}

#[test]
fn the_task_after_it_is_not_interrupted() {
    let mill = Mill::new(|pool| pool);
    let by = mill.within(SECOND);
    let quick = mill.pool.submit_with(by, || ()).unwrap();
    quick.join().unwrap();
    let (tell, told) = channel();
    let (go, may_go) = channel::<()>();
    let next = mill.pool.submit(move || {
        tell.send(()).unwrap();
        let _ = may_go.recv();
        interrupt::is_interrupted()
    });
    told.recv().unwrap();
    mill.hand.advance(HOUR);
    drop(go);
    assert!(!next.unwrap().join().unwrap());
}

#[test]
fn a_task_whose_time_has_come_at_its_turn_is_dropped_and_says_why() {
    let mill = Mill::new(|pool| pool);
    let (go, may_go) = channel::<()>();
    let busy = mill.pool.submit(move || may_go.recv().is_err()).unwrap();
    let late = mill.pool.submit_with(mill.within(SECOND), || ()).unwrap();
    let both = mill
        .within(2 * SECOND)
        .deadline(mill.hand.clock().deadline(SECOND));
    let both = mill.pool.submit_with(both, || ()).unwrap();
    mill.hand.advance(SECOND);
    drop(go);
    assert!(busy.join().unwrap());
    let late = late.join();
    assert!(is_too_late(&late), "{late:?}");
    assert_eq!(
        late.unwrap_err().to_string(),
        "the task was cancelled: it could not have been finished in time"
    );
    assert!(matches!(
        both.join(),
        Err(TaskError::Cancelled(CancelReason::Expired))
    ));
    mill.pool.close().unwrap();
    let now = mill.pool.snapshot();
    assert_eq!((now.completed, now.expired, now.too_late), (1, 2, 1));
    assert_eq!(mill.pool.metrics().too_late, 1);
}

#[test]
fn a_caller_that_waits_hears_at_that_time_that_it_has_not_started() {
    let hand = ManualClock::new();
    let by = hand.clock().deadline(SECOND);
    let spec = TaskSpec::new().clock(hand.clock()).finish_by(by);
    let (_task, handle) = spec.build(|| ());
    hand.advance(SECOND);
    assert!(is_too_late(&handle.join()));
}

#[test]
fn a_task_is_dropped_if_less_is_left_than_its_name_usually_takes() {
    let mill = Mill::new(|pool| pool);
    for _ in 0..8 {
        mill.bake(HOUR, 10 * SECOND).unwrap();
    }
    let nine = mill.bake(9 * SECOND, SECOND);
    assert!(is_too_late(&nine), "{nine:?}");
    mill.bake(10 * SECOND, 5 * SECOND).unwrap();
    let other = mill.within(SECOND).name("sweep");
    mill.pool.submit_with(other, || ()).unwrap().join().unwrap();
    // By the clock of the pool the first was dropped five seconds ago: one is tried.
    mill.bake(9 * SECOND, Duration::ZERO).unwrap();
    // It was in time, so what was known is forgotten.
    mill.bake(SECOND, Duration::ZERO).unwrap();
    mill.pool.close().unwrap();
    assert_eq!(mill.pool.snapshot().too_late, 1);
}

#[test]
fn the_percentile_says_how_sure_it_must_be_and_changes_while_the_pool_runs() {
    let mill = Mill::new(|pool| pool.finish_percentile(90));
    for seconds in 1..=10 {
        mill.bake(HOUR, SECOND * seconds).unwrap();
    }
    assert!(is_too_late(&mill.bake(8 * SECOND, Duration::ZERO)));
    mill.pool.set_finish_percentile(50).unwrap();
    mill.bake(8 * SECOND, Duration::ZERO).unwrap();
    mill.pool.set_finish_percentile(100).unwrap();
    assert!(is_too_late(&mill.bake(9 * SECOND, Duration::ZERO)));
    mill.pool.set_finish_percentile(0).unwrap();
    mill.bake(SECOND, Duration::ZERO).unwrap();
}

/// Otherwise each would be started, and interrupted when its time is up, and the pool would do nothing but that.
#[test]
fn tasks_that_never_end_in_time_are_not_started_for_ever() {
    let mill = Mill::new(|pool| pool);
    for _ in 0..8 {
        mill.bake(SECOND, 2 * SECOND).unwrap();
    }
    assert!(is_too_late(&mill.bake(SECOND, SECOND)));
    mill.hand.advance(SECOND);
    mill.bake(SECOND, 2 * SECOND).unwrap();
    assert!(is_too_late(&mill.bake(SECOND, SECOND)), "one was tried");
}

#[test]
fn without_metrics_only_the_time_itself_counts() {
    let mill = Mill::new(PoolBuilder::without_metrics);
    for _ in 0..8 {
        mill.bake(HOUR, 10 * SECOND).unwrap();
    }
    mill.bake(SECOND, Duration::ZERO).unwrap();
    mill.bake(SECOND, SECOND).unwrap();
    mill.pool.close().unwrap();
    assert_eq!(mill.pool.snapshot().finished_late, 1);
}

#[test]
fn what_a_task_submits_inherits_the_time_unless_nobody_would_hear_of_it() {
    let mill = Mill::new(|pool| pool);
    let by = mill.hand.clock().deadline(SECOND);
    let own = mill.pool.clone();
    let request = mill
        .pool
        .submit_with(TaskSpec::new().finish_by(by), move || {
            let (child, _handle) = task::new(|| ());
            let detached = TaskSpec::new().build_detached(|| ());
            let asked = TaskSpec::new().inherit_deadline().build_detached(|| ());
            let later = Deadline::NEVER;
            let (given, _handle) = TaskSpec::new().finish_by(later).build(|| ());
            drop(own);
            let all = [&child, &detached, &asked, &given].map(|task| task.finish_by());
            (all, task::current_finish_by())
        });
    let (all, inside) = request.unwrap().join().unwrap();
    let never = Deadline::NEVER;
    assert_eq!(all, [by, never, by, never]);
    assert_eq!((inside, task::current_finish_by()), (by, never));
}

#[test]
fn other_executors_interrupt_and_drop_as_well() {
    let hand = ManualClock::new();
    let clock = || hand.clock();
    let threads = ThreadPerTask::builder("mill", 4)
        .clock(clock())
        .build()
        .unwrap();
    let below = ThreadPool::builder("below").clock(clock()).build().unwrap();
    let serial = SerialExecutor::new(below);
    let fork_join = ForkJoinPool::builder("mill")
        .parallelism(1)
        .clock(clock())
        .build()
        .unwrap();
    fn both(hand: &ManualClock, executor: &impl Executor) {
        let by = |time| TaskSpec::new().finish_by(hand.clock().deadline(time));
        let (started, handle) = sleeper(executor, by(SECOND));
        started.recv().unwrap();
        hand.advance(SECOND);
        assert!(handle.join().unwrap().is_err());
        let late = executor.submit_with(by(Duration::ZERO), || ()).unwrap();
        assert!(is_too_late(&late.join()));
    }
    both(&hand, &threads);
    both(&hand, &serial.key(7));
    both(&hand, &fork_join);
    let late = TaskSpec::new().finish_by(hand.clock().deadline(Duration::ZERO));
    let late = DirectExecutor::new().submit_with(late.clock(clock()), || ());
    assert!(is_too_late(&late.unwrap().join()));
}

#[test]
fn a_part_that_another_worker_runs_hears_of_the_time() {
    let hand = ManualClock::new();
    let pool = ForkJoinPool::builder("mill")
        .parallelism(2)
        .clock(hand.clock());
    let pool = pool.build().unwrap();
    let (tell, told) = channel();
    let spec = TaskSpec::new().finish_by(hand.clock().deadline(SECOND));
    let handle = pool.submit_with(spec, move || {
        let other = tell.clone();
        let nap = |tell: std::sync::mpsc::Sender<()>| {
            tell.send(()).unwrap();
            interrupt::sleep(HOUR).is_err()
        };
        millpond::forkjoin::join(|| nap(tell), || nap(other))
    });
    told.recv().unwrap();
    told.recv().unwrap();
    hand.advance(SECOND);
    assert_eq!(handle.unwrap().join().unwrap(), (true, true));
}

#[test]
fn a_scheduled_task_may_have_a_time_of_its_own() {
    let hand = ManualClock::new();
    let below = ThreadPool::builder("below")
        .clock(hand.clock())
        .build()
        .unwrap();
    let pool = ScheduledPool::owning(below).clock(hand.clock()).build();
    let at = hand.clock().deadline(SECOND);
    let in_time = TaskSpec::new().finish_by(hand.clock().deadline(3 * SECOND));
    let (tell, told) = channel();
    let nap = pool.schedule_with(in_time, at, move || {
        tell.send(()).unwrap();
        interrupt::sleep(HOUR).is_err()
    });
    hand.advance(SECOND);
    told.recv().unwrap();
    hand.advance(2 * SECOND);
    assert!(nap.unwrap().join().unwrap());
}

#[test]
fn a_future_that_is_woken_after_its_time_is_dropped() {
    let mill = Mill::new(|pool| pool);
    let (never_made, flour) = task::new(|| ());
    let own = mill.pool.clone();
    let by = mill.hand.clock().deadline(SECOND);
    let spawn = TaskSpec::new().finish_by(by).clock(mill.hand.clock());
    let (spawner, bread) =
        spawn.build(move || own.spawn_future(async move { flour.await.is_ok() }));
    drop(spawner.run());
    let bread = bread.join().unwrap().unwrap();
    mill.hand.advance(SECOND);
    drop(never_made.run());
    assert!(is_too_late(&bread.join()));
}
