//! Every submitted task is completed, cancelled, queued or running, for a reader that does not know the kind of the engine.

use millpond::executor::{Executor, ExecutorExt, Lifecycle};
use millpond::forkjoin::{ForkJoinPool, HelpPolicy};
use millpond::manage::{EngineSnapshot, Managed};
use millpond::pool::{Queue, RejectionPolicy, ThreadPool};
use millpond::schedule::{Every, ScheduledPool};
use millpond::task::TaskSpec;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

/// Queued and running, if the books balance.
fn balanced(case: &str, now: &EngineSnapshot) -> (usize, usize) {
    let unfinished = (now.queued + now.running) as u64;
    assert_eq!(
        now.submitted,
        now.completed + now.cancelled + unfinished,
        "{case}: {now}"
    );
    (now.queued, now.running)
}

/// A body that says that it has begun and runs until the sender is dropped.
fn gated(begun: &Sender<()>) -> (Sender<()>, impl FnOnce() + Send + use<>) {
    let (open, gate) = channel::<()>();
    let begun = begun.clone();
    let body = move || {
        begun.send(()).unwrap();
        for () in gate {}
    };
    (open, body)
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..10_000_000 {
        if is_so() {
            return;
        }
        thread::yield_now();
    }
    panic!("not in time: {what}");
}

fn hold_and_balance<E: Executor + Lifecycle + Managed + Clone + 'static>(case: &str, engine: &E) {
    assert_eq!(balanced(case, &engine.engine_snapshot()), (0, 0));
    let (begun, begins) = channel();
    let mut gates = Vec::new();
    for _ in 0..2 {
        let (open, body) = gated(&begun);
        engine.execute(body).unwrap();
        begins.recv().unwrap();
        gates.push(open);
    }
    let waiting: Vec<_> = (0..4).map(|_| engine.submit(|| ()).unwrap()).collect();
    assert_eq!(balanced(case, &engine.engine_snapshot()), (4, 2), "{case}");
    waiting[0].cancel();
    balanced(case, &engine.engine_snapshot());
    drop(gates);
    for each in waiting.into_iter().skip(1) {
        each.join().unwrap();
    }
    // One of these joins the other, which waits behind it, and runs it inline.
    let (open, inner) = gated(&begun);
    let own = engine.clone();
    let outer = engine.submit(move || own.submit(inner).unwrap().join().unwrap());
    begins.recv().unwrap();
    until("both run", || engine.engine_snapshot().running == 2);
    until("no more moves", || {
        let now = engine.engine_snapshot();
        now.submitted == now.completed + now.cancelled + 2 && now.queued == 0
    });
    assert_eq!(balanced(case, &engine.engine_snapshot()), (0, 2), "{case}");
    drop(open);
    outer.unwrap().join().unwrap();
    engine.close().unwrap();
    let end = engine.engine_snapshot();
    assert_eq!(balanced(case, &end), (0, 0), "{case}");
    assert_eq!((end.submitted, end.cancelled), (8, 1), "{case}");
}

#[test]
fn held_tasks_run_and_those_behind_them_are_queued_in_any_pool() {
    for queue in [Queue::bounded(9), Queue::unbounded()] {
        let pool = ThreadPool::builder("mill").core(2).max(2).queue(queue);
        hold_and_balance("thread pool", &pool.build().unwrap());
    }
    for help in [HelpPolicy::Descendants, HelpPolicy::Any] {
        let pool = ForkJoinPool::builder("mill").parallelism(2).max_spares(0);
        hold_and_balance("fork-join pool", &pool.help(help).build().unwrap());
    }
}

#[test]
fn a_task_on_an_extra_thread_runs() {
    let pool = ThreadPool::builder("mill").core(1).max(1);
    let pool = pool.queue(Queue::bounded(1)).on_event(|_| ());
    let pool = pool.rejection(RejectionPolicy::NewThread { at_most: 1 });
    let pool = pool.build().unwrap();
    let (begun, begins) = channel();
    let mut gates = Vec::new();
    for place in 0..3 {
        let (open, body) = gated(&begun);
        pool.execute(body).unwrap();
        if place != 1 {
            begins.recv().unwrap();
        }
        gates.push(open);
    }
    assert_eq!(balanced("extra", &pool.engine_snapshot()), (1, 2));
    drop(gates);
    pool.close().unwrap();
    assert_eq!(balanced("extra", &pool.engine_snapshot()), (0, 0));
}

#[test]
fn jobs_of_a_fork_join_pool_are_no_queued_tasks() {
    let pool = ForkJoinPool::builder("mill").parallelism(1).max_spares(0);
    let pool = pool.build().unwrap();
    let own = pool.clone();
    let inside = pool.submit(move || {
        for _ in 0..3 {
            own.execute(|| ()).unwrap();
        }
        let seen = own.scope(|scope| {
            for _ in 0..5 {
                scope.spawn(|_| ());
            }
            own.engine_snapshot()
        });
        // The submit of the task itself may not have returned yet.
        (seen.running, seen.queued)
    });
    let inside = inside.unwrap().join().unwrap();
    assert!(inside == (1, 3) || inside == (1, 2), "{inside:?}");
    pool.close().unwrap();
    assert_eq!(balanced("jobs", &pool.engine_snapshot()), (0, 0));
}

#[test]
fn what_a_scheduled_pool_has_handed_to_a_full_executor_is_queued() {
    let below = ThreadPool::builder("below").core(1).max(1).build().unwrap();
    let timers = ScheduledPool::owning(below).build();
    assert_eq!(balanced("rest", &timers.engine_snapshot()), (0, 0));
    let (begun, begins) = channel();
    let (open, body) = gated(&begun);
    timers.schedule(Duration::ZERO, body).unwrap();
    begins.recv().unwrap();
    for _ in 0..3 {
        timers.schedule(Duration::ZERO, || ()).unwrap();
    }
    let hour = Duration::from_secs(3600);
    let later = timers.schedule(hour, || ()).unwrap();
    let series = timers.series(Every::rate(hour)).start(|| ()).unwrap();
    until("they are handed over", || {
        timers.executor().snapshot().queued >= 3 && timers.snapshot().pending <= 2
    });
    let now = timers.engine_snapshot();
    assert_eq!(balanced("overload", &now), (now.submitted as usize - 1, 1));
    assert!(now.queued >= 5, "{now}");
    later.cancel();
    series.cancel();
    drop(open);
    timers.close().unwrap();
    assert_eq!(balanced("end", &timers.engine_snapshot()), (0, 0));
}

#[test]
fn no_engine_lists_a_name_under_which_nothing_ran() {
    let pool = ThreadPool::builder("mill").core(1).build().unwrap();
    let mill = ForkJoinPool::builder("mill").parallelism(1);
    let mill = mill.build().unwrap();
    let named = || TaskSpec::new().name("grind");
    pool.submit_with(named(), || ()).unwrap().join().unwrap();
    mill.submit_with(named(), || ()).unwrap().join().unwrap();
    pool.close().unwrap();
    mill.close().unwrap();
    for engine in [&pool as &dyn Managed, &mill] {
        let all = engine.engine_snapshot().latencies;
        let names: Vec<_> = all.iter().map(|each| &*each.task).collect();
        assert_eq!(names, ["grind"], "{engine:?}");
    }
}
