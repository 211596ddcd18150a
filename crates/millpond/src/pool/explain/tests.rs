//! One situation each, from facts made by hand, and what is said of it: all of it, word for word.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test uses std's atomics, locks and channels beside what it tests"
)]

mod by_hand;

use crate::executor::{ExecutorExt, Lifecycle};
use crate::manage::{Growth, OverloadOrder, RunState};
use crate::pool::{PoolSnapshot, Queue, RejectionPolicy, ThreadPool};
use crate::thread::{Body, JoinHandle, ThreadFactory, Threads};
use by_hand::{busy, ms, new};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

const FULL: &str =
    "mill is running: 4 of 4 workers busy, 7 tasks in the queue, which has room for 100.";
const NO_MORE: &str = "Tasks wait because all 4 workers are busy, and there may be no more than 4.";
const RAN_TWO: &str = "Half of its tasks waited for up to about 0 s (99 %: 0 s) and ran for up to about \
                       10 ms (99 %: 10 ms).";

#[test]
fn an_idle_pool_has_nothing_to_do() {
    let idle = "mill is running and has nothing to do.";
    new().says(&[idle]);
    busy(2, 0, 0).says(&[idle]);
}

#[test]
fn a_busy_pool_says_how_busy_and_nothing_of_waits_that_there_are_not() {
    let said =
        "mill is running: 1 of 2 workers busy, 0 tasks in the queue, which has room for 100.";
    busy(2, 1, 0).says(&[said]);
    let handed = busy(1, 1, 0).but(|now| now.capacity = Some(0));
    handed.says(&["mill is running: 1 of 1 worker busy, 0 tasks in the queue."]);
}

#[test]
fn tasks_wait_because_there_may_be_no_more_workers() {
    busy(4, 4, 7).says(&[FULL, NO_MORE]);
    busy(1, 1, 1).but(|now| now.max = 1).says(&[
        "mill is running: 1 of 1 worker busy, 1 task in the queue, which has room for 100.",
        "A task waits because its only worker is busy, and there may be no more than 1.",
    ]);
}

#[test]
fn tasks_wait_because_the_queue_comes_first() {
    busy(2, 2, 7).says(&[
        "mill is running: 2 of 2 workers busy, 7 tasks in the queue, which has room for 100.",
        "Tasks wait because all 2 workers are busy: up to 4 are allowed, but the queue comes first, so \
         more start only when it is full; a larger core, or threads first, would start them now.",
    ]);
    busy(2, 2, 7).but(|now| now.capacity = None).says(&[
        "mill is running: 2 of 2 workers busy, 7 tasks in the queue.",
        "Tasks wait because all 2 workers are busy: up to 4 are allowed, but the queue comes first, and \
         has no bound, so no more will ever start; a larger core, or threads first, would start them \
         now.",
    ]);
}

#[test]
fn tasks_wait_because_threads_could_not_be_started() {
    let total = "3 attempts to start a thread failed: use fewer threads, or raise the limit of the \
                 process.";
    let failing = |facts: crate::pool::Facts, in_a_row| {
        facts.of_health(|health| {
            (health.thread_failures, health.failed_starts_in_a_row) = (3, in_a_row);
        })
    };
    failing(busy(2, 2, 7), 3).says(&[
        "mill is running: 2 of 2 workers busy, 7 tasks in the queue, which has room for 100.",
        "Tasks wait because all 2 workers are busy: up to 4 are allowed, but the last 3 attempts to start a \
         thread failed.",
        total,
    ]);
    let first = busy(1, 1, 1).but(|now| now.growth = Growth::ThreadsFirst);
    failing(first, 1).says(&[
        "mill is running: 1 of 1 worker busy, 1 task in the queue, which has room for 100.",
        "A task waits because its only worker is busy: up to 4 are allowed, but the last attempt to start a \
         thread failed.",
        total,
    ]);
    failing(busy(0, 0, 1), 2).says(&[
        "mill is running: 0 of 0 workers busy, 1 task in the queue, which has room for 100.",
        "A task waits because there is no worker: the last 2 attempts to start a thread failed.",
        total,
    ]);
    // They are not to blame where no more would be started, or one has been since.
    failing(busy(4, 4, 7), 3).says(&[FULL, NO_MORE, total]);
    failing(busy(2, 2, 7), 0).says(&[
        "mill is running: 2 of 2 workers busy, 7 tasks in the queue, which has room for 100.",
        "Tasks wait because all 2 workers are busy: up to 4 are allowed, but the queue comes first, so \
         more start only when it is full; a larger core, or threads first, would start them now.",
        total,
    ]);
}

#[test]
fn tasks_wait_for_a_moment() {
    busy(2, 2, 7).but(|now| now.growth = Growth::ThreadsFirst).says(&[
        "mill is running: 2 of 2 workers busy, 7 tasks in the queue, which has room for 100.",
        "Tasks wait because all 2 workers are busy; up to 4 are allowed, and start as tasks come.",
    ]);
    busy(2, 1, 7).says(&[
        "mill is running: 1 of 2 workers busy, 7 tasks in the queue, which has room for 100.",
        "Tasks wait although 1 worker is idle: they are on the way, or not yet due.",
    ]);
    busy(2, 0, 1).says(&[
        "mill is running: 0 of 2 workers busy, 1 task in the queue, which has room for 100.",
        "A task waits although 2 workers are idle: it is on the way, or not yet due.",
    ]);
    busy(0, 0, 1).says(&[
        "mill is running: 0 of 0 workers busy, 1 task in the queue, which has room for 100.",
        "A task waits although there is no worker: one is about to start, or could not be started.",
    ]);
}

#[test]
fn an_overload_and_the_time_to_drain_are_said_while_tasks_wait() {
    let drains = "At this pace the queue drains in about 120 ms.";
    let overloaded = |now: &mut PoolSnapshot| {
        now.drains_in = Some(ms(120));
        now.is_overloaded = true;
    };
    busy(4, 4, 7).but(overloaded).says(&[
        FULL,
        NO_MORE,
        "It is overloaded: it sheds what has waited too long.",
        drains,
    ]);
    busy(4, 4, 7)
        .but(overloaded)
        .but(|now| now.overload_order = OverloadOrder::NewestFirst)
        .says(&[
            FULL,
            NO_MORE,
            "It is overloaded: it sheds what has waited too long, and takes the newest first.",
            drains,
        ]);
    let empty = busy(4, 4, 0).but(|now| now.drains_in = Some(Duration::ZERO));
    empty.says(&[
        "mill is running: 4 of 4 workers busy, 0 tasks in the queue, which has room for 100.",
    ]);
    let over = |now: &mut PoolSnapshot| {
        overloaded(now);
        now.state = RunState::Terminated;
    };
    busy(0, 0, 0).but(over).says(&["mill has ended."]);
}

#[test]
fn times_are_those_of_all_names_together() {
    busy(1, 0, 0).ran("grind", &[(20, 1000)]).says(&[
        "mill is running and has nothing to do.",
        "The only task that it has run so far waited for 20 ms and ran for 1.0 s.",
    ]);
    let both = busy(1, 0, 0)
        .ran("grind", &[(1, 2), (1, 2)])
        .ran("bake", &[(1, 2), (500, 30)]);
    both.says(&[
        "mill is running and has nothing to do.",
        "Half of its tasks waited for up to about 1.0 ms (99 %: 490 ms) and ran for up to about 2.0 ms \
         (99 %: 30 ms).",
    ]);
}

#[test]
fn those_who_fill_it_are_named_the_three_largest() {
    let three = busy(4, 4, 0)
        .ran("grind", &[(0, 10), (0, 10), (0, 10)])
        .ran("bake", &[(0, 10)])
        .runs("bake", ms(1))
        .runs("grind", ms(1))
        .runs("grind", ms(1))
        .runs("sieve", ms(1));
    let busy_four =
        "mill is running: 4 of 4 workers busy, 0 tasks in the queue, which has room for 100.";
    three.says(&[
        busy_four,
        RAN_TWO,
        "grind is on 2 workers (and had 75 % of all running time so far), bake on 1, sieve on 1.",
    ]);
    let four = ["a", "b", "c", "d"]
        .iter()
        .fold(busy(4, 4, 0), |facts, name| facts.runs(name, ms(1)));
    four.says(&[busy_four, "a is on 1 worker, b on 1, c on 1, and so on."]);
}

#[test]
fn a_task_that_hangs_is_named() {
    let one = "mill is running: 1 of 1 worker busy, 0 tasks in the queue, which has room for 100.";
    let first = busy(1, 1, 0).runs("grind", Duration::from_secs(12));
    first.says(&[
        one,
        "grind is on 1 worker.",
        "mill-1 has been running grind for 12 s, and no other of its kind has ended.",
    ]);
    let ran = |running_for| {
        busy(1, 1, 0)
            .ran("grind", &[(0, 10), (0, 10)])
            .runs("grind", running_for)
    };
    let fills = "grind is on 1 worker (and had 100 % of all running time so far).";
    ran(Duration::from_secs(200)).says(&[
        one,
        RAN_TWO,
        fills,
        "mill-1 has been running grind for 200 s, while 99 % of its kind ended within 10 ms.",
    ]);
    // Long for its kind, but too short to matter; and long, but so are the others.
    ran(ms(999)).says(&[one, RAN_TWO, fills]);
    let usual = busy(1, 1, 0)
        .ran("grind", &[(0, 2000)])
        .runs("grind", Duration::from_secs(12));
    usual.says(&[
        one,
        "The only task that it has run so far waited for 0 s and ran for 2.0 s.",
        fills,
    ]);
}

#[test]
fn more_workers_help_those_who_are_blocked() {
    busy(4, 4, 7).ran("mail", &[(0, 10), (0, 10)]).that(0.1, 0.0).says(&[
        FULL,
        NO_MORE,
        RAN_TWO,
        "mail is blocked 90 % of its time: more workers would help; the CPUs could serve about 20, if \
         what it waits for can.",
    ]);
    busy(4, 4, 7).ran("mail", &[(0, 10), (0, 10)]).that(0.6, 0.0).says(&[
        FULL,
        NO_MORE,
        RAN_TWO,
        "mail is blocked 40 % of its time, and there are as many workers as the CPUs can serve: what it \
         waits for is the place to look.",
    ]);
}

#[test]
fn more_workers_help_those_who_compute_only_if_there_are_cpus() {
    let computes = || {
        busy(4, 4, 7)
            .ran("grind", &[(0, 10), (0, 10)])
            .that(0.95, 0.0)
    };
    computes().says(&[
        FULL,
        NO_MORE,
        RAN_TWO,
        "grind computes 95 % of its time, with 4 workers on 2 CPUs: more workers would not help; more \
         CPUs, or less to do, would.",
    ]);
    computes().on(8).says(&[
        FULL,
        NO_MORE,
        RAN_TWO,
        "grind computes 95 % of its time, with 4 workers on 8 CPUs: more workers would help, up to one \
         for each CPU.",
    ]);
}

#[test]
fn fewer_workers_help_those_who_wait_for_a_cpu() {
    let waits = || {
        busy(4, 4, 7)
            .ran("grind", &[(0, 10), (0, 10)])
            .that(0.5, 0.5)
    };
    waits().on(1).says(&[
        FULL,
        NO_MORE,
        RAN_TWO,
        "grind waits for a CPU 50 % of its time, with 4 workers on 1 CPU: fewer workers, or more CPUs, \
         would help.",
    ]);
    waits().on(4).says(&[
        FULL,
        NO_MORE,
        RAN_TWO,
        "grind waits for a CPU 50 % of its time, although there is one for each worker (4 workers, 4 \
         CPUs): something else keeps them busy.",
    ]);
}

#[test]
fn there_is_no_advice_for_a_pool_without_a_queue_nor_for_one_that_ends() {
    let idle = busy(4, 0, 0)
        .ran("mail", &[(0, 10), (0, 10)])
        .that(0.1, 0.0);
    idle.says(&["mill is running and has nothing to do.", RAN_TWO]);
    let over = busy(0, 0, 0)
        .ran("mail", &[(0, 10), (0, 10)])
        .that(0.1, 0.5);
    over.but(|now| now.state = RunState::Terminated)
        .says(&["mill has ended.", RAN_TWO]);
}

#[test]
fn losses_are_counted() {
    let idle = "mill is running and has nothing to do.";
    let all = |many| {
        let lost = new().but(|now| {
            now.rejected = many;
            now.caller_ran = many;
            now.expired = many;
            now.shed = many;
            now.discarded = many;
            now.panicked = many;
        });
        lost.of_health(|health| health.long_runs = many)
    };
    all(1).says(&[
        idle,
        "So far: 1 task rejected, 1 task run by the caller instead, 1 task expired before the turn came, \
         1 task shed after too long a wait, 1 task thrown away by the rejection policy, 1 task ended by \
         a panic, 1 task reported for running too long.",
    ]);
    all(2).says(&[
        idle,
        "So far: 2 tasks rejected, 2 tasks run by the caller instead, 2 tasks expired before the turn \
         came, 2 tasks shed after too long a wait, 2 tasks thrown away by the rejection policy, 2 tasks \
         ended by a panic, 2 tasks reported for running too long.",
    ]);
    new()
        .but(|now| now.shed = 3)
        .says(&[idle, "So far: 3 tasks shed after too long a wait."]);
}

#[test]
fn tasks_that_the_policy_ran_or_dropped_are_not_rejected() {
    let left = new().but(|now| (now.left_to_policy, now.caller_ran) = (9, 9));
    left.says(&[
        "mill is running and has nothing to do.",
        "So far: 9 tasks run by the caller instead.",
    ]);
}

/// What the pool says agrees with its snapshot.
#[test]
fn a_pool_whose_callers_run_tasks_says_that_it_has_rejected_none() {
    let (go, wait) = mpsc::channel::<()>();
    let mill = ThreadPool::builder("mill").core(1).max(1);
    let mill = mill
        .queue(Queue::bounded(1))
        .rejection(RejectionPolicy::CallerRuns)
        .build()
        .unwrap();
    mill.execute(move || wait.recv().unwrap_or(())).unwrap();
    for _ in 0..10 {
        mill.execute(|| ()).unwrap();
    }
    let (now, said) = (mill.snapshot(), mill.explain().to_string());
    assert_eq!((now.rejected, now.caller_ran), (0, 9));
    assert!(
        said.contains("So far: 9 tasks run by the caller instead."),
        "{said}"
    );
    drop(go);
    mill.close().unwrap();
}

#[test]
fn what_must_not_be_is_said() {
    let idle = "mill is running and has nothing to do.";
    new().of_health(|health| health.lost_wakeups = 1).says(&[
        idle,
        "Once tasks waited although workers were idle, and the watchdog had to wake them: that is a bug of the \
         queue, or of millpond.",
    ]);
    new().of_health(|health| health.lost_wakeups = 3).says(&[
        idle,
        "3 times tasks waited although workers were idle, and the watchdog had to wake them: that is a bug of \
         the queue, or of millpond.",
    ]);
    new().of_health(|health| health.thread_failures = 1).says(&[
        idle,
        "1 attempt to start a thread failed: use fewer threads, or raise the limit of the process.",
    ]);
    new().of_health(|health| health.surplus_workers = 1).says(&[
        idle,
        "1 worker is more than there may be: it leaves when it is idle.",
    ]);
    new().of_health(|health| health.surplus_workers = 2).says(&[
        idle,
        "2 workers are more than there may be: they leave when they are idle.",
    ]);
    new().of_health(|health| health.deadlocks = 2).says(&[
        idle,
        "2 times its tasks waited for each other in a ring, and one got an error for it.",
    ]);
}

#[test]
fn the_end_of_a_pool_is_told_step_by_step() {
    let at = |state, active, queued| busy(4, active, queued).but(|now| now.state = state);
    at(RunState::ShutDown, 4, 7).says(&[
        "mill has been shut down: it takes no more tasks, and has 4 running and 7 in the queue.",
        "Tasks wait because all 4 workers are busy.",
    ]);
    at(RunState::ShutDown, 1, 0).says(&[
        "mill has been shut down: it takes no more tasks, and has 1 running and none in the queue.",
    ]);
    at(RunState::Stopped, 1, 0)
        .says(&["mill has been stopped: 1 task still runs, although it was interrupted."]);
    at(RunState::Stopped, 2, 0)
        .says(&["mill has been stopped: 2 tasks still run, although they were interrupted."]);
    at(RunState::Stopped, 0, 0).says(&["mill has been stopped, and is about to end."]);
    at(RunState::Tidying, 0, 0).says(&["mill has ended."]);
    at(RunState::Terminated, 0, 0).says(&["mill has ended."]);
}

/// Starts threads unless it is told to fail.
#[derive(Debug)]
struct Sometimes(Arc<AtomicBool>);

impl ThreadFactory for Sometimes {
    fn start(&self, body: Body) -> std::io::Result<JoinHandle<()>> {
        if self.0.load(Ordering::SeqCst) {
            Err(std::io::ErrorKind::WouldBlock.into())
        } else {
            Threads::named("mill").start(body)
        }
    }
}

#[test]
fn a_pool_that_gets_no_threads_says_so_until_it_gets_one() {
    let fails = Arc::new(AtomicBool::new(false));
    let mill = ThreadPool::builder("mill").core(2).max(4);
    let mill = mill.threads(Sometimes(Arc::clone(&fails)));
    let pool = mill.build().unwrap();
    let (open, gate) = mpsc::channel::<()>();
    let gate = Arc::new(Mutex::new(gate));
    let submit = || {
        let gate = Arc::clone(&gate);
        pool.execute(move || gate.lock().unwrap().recv().unwrap_or(()))
            .unwrap();
    };
    submit();
    fails.store(true, Ordering::SeqCst);
    (0..3).for_each(|_| submit());
    // The first one runs as soon as its thread has begun.
    while pool.snapshot().active == 0 {
        std::thread::yield_now();
    }
    let why = "Tasks wait because its only worker is busy: up to 4 are allowed, but the last 3 attempts to \
               start a thread failed.";
    let said = pool.explain();
    assert!(said.sentences().iter().any(|one| one == why), "{said}");
    assert!(!pool.health().is_healthy());
    fails.store(false, Ordering::SeqCst);
    submit();
    let health = pool.health();
    let failures = (health.thread_failures, health.failed_starts_in_a_row);
    assert_eq!(failures, (3, 0));
    assert!(health.is_healthy(), "{health:?}");
    let said = pool.explain().to_string();
    assert!(!said.contains("the last"), "{said}");
    drop(open);
    pool.close().unwrap();
}
