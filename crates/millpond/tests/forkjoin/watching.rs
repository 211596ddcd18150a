//! What a pool shows of its workers and tasks, what hangs, and what its operator is told.

use crate::{TIMEOUT, pool, until};
use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::forkjoin::{self, ForkJoinBuilder, ForkJoinEvent, ForkJoinPool};
use millpond::forkjoin::{RunWarning, WorkerState, WorkerView};
use millpond::interrupt;
use millpond::manage::{Managed, Patch};
use millpond::task::{TaskHandle, TaskSpec};
use millpond::time::ManualClock;
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A pool by a manual clock, and what it has told.
struct Mill {
    pool: ForkJoinPool,
    hand: ManualClock,
    told: Arc<Mutex<Vec<ForkJoinEvent>>>,
}

impl Mill {
    fn new(configure: impl FnOnce(ForkJoinBuilder) -> ForkJoinBuilder) -> Self {
        let (hand, told) = (ManualClock::new(), Arc::default());
        let own: Arc<Mutex<Vec<ForkJoinEvent>>> = Arc::clone(&told);
        let pool = ForkJoinPool::builder("mill")
            .parallelism(2)
            .clock(hand.clock())
            .on_event(move |event| own.lock().unwrap().push(event.clone()));
        let pool = configure(pool).build().unwrap();
        Mill { pool, hand, told }
    }

    /// The names of long runs that were told.
    fn long_runs(&self) -> Vec<String> {
        let told = self.told.lock().unwrap();
        let runs = told.iter().filter_map(|event| match event {
            ForkJoinEvent::LongRunning(run) => Some(run.label.to_string()),
            _ => None,
        });
        runs.collect()
    }
}

/// A task of this name that runs until the gate is dropped. It runs when this returns.
fn hold(pool: &ForkJoinPool, name: &'static str) -> (mpsc::Sender<()>, TaskHandle<()>) {
    let ((gate, wait), (say, hear)) = (mpsc::channel::<()>(), mpsc::channel());
    let held = pool.submit_with(TaskSpec::new().name(name), move || {
        say.send(()).unwrap();
        let _ = wait.recv();
    });
    hear.recv_timeout(TIMEOUT).unwrap();
    (gate, held.unwrap())
}

/// A task of this name that sleeps for an hour of the system clock, if it is not interrupted; whether it was.
fn nap(pool: &ForkJoinPool, name: &'static str) -> TaskHandle<bool> {
    let (say, hear) = mpsc::channel();
    let nap = pool.submit_with(TaskSpec::new().name(name), move || {
        say.send(()).unwrap();
        interrupt::sleep(HOUR).is_err()
    });
    hear.recv_timeout(TIMEOUT).unwrap();
    nap.unwrap()
}

fn only(pool: &ForkJoinPool) -> WorkerView {
    let mut workers = pool.workers();
    assert_eq!(workers.len(), 1);
    workers.remove(0)
}

#[test]
fn a_worker_says_who_it_is_what_it_runs_and_since_when() {
    let mill = Mill::new(|pool| pool.parallelism(1));
    assert!(mill.pool.workers().is_empty());
    let (gate, held) = hold(&mill.pool, "grind");
    mill.hand.advance(ms(1234));
    let worker = only(&mill.pool);
    let task = worker.task.as_ref().unwrap();
    assert_eq!(task.label.to_string(), "grind");
    assert_eq!(task.running_for, ms(1234));
    assert_eq!(worker.state, WorkerState::Running);
    assert_eq!(worker.thread.as_deref(), Some("mill-1"));
    assert!(task.location.unwrap().file().ends_with("watching.rs"));
    let said = worker.to_string();
    assert!(said.contains(": runs grind for 1.2s, made at "), "{said}");
    drop(gate);
    held.join().unwrap();
    until(|| only(&mill.pool).state == WorkerState::Idle);
    let idle = only(&mill.pool);
    assert!(idle.task.is_none() && idle.to_string().contains(": idle"));
    mill.pool.close().unwrap();
    assert!(mill.pool.workers().is_empty());
}

#[test]
fn a_worker_that_is_blocked_waits_in_a_join_or_helps_says_so() {
    let pool = pool(2);
    let count = |state| {
        let workers = pool.workers();
        workers.iter().filter(|each| each.state == state).count()
    };
    let (gate, wait) = mpsc::channel::<()>();
    let ((say, hear), both) = (mpsc::channel(), Arc::new(Barrier::new(2)));
    let task = pool.submit_with(TaskSpec::new().name("grind"), move || {
        let both = &both;
        forkjoin::join(
            || both.wait(),
            move || {
                both.wait();
                say.send(()).unwrap();
                _ = forkjoin::blocking(|| wait.recv());
            },
        );
    });
    hear.recv_timeout(TIMEOUT).unwrap();
    // The one waits for the part of the other.
    until(|| count(WorkerState::Joining) == 1 && count(WorkerState::Blocked) == 1);
    let workers = pool.workers();
    let find = |state| workers.iter().find(|each| each.state == state).unwrap();
    let joins = find(WorkerState::Joining).to_string();
    assert!(joins.contains("runs grind for"), "{joins}");
    assert!(joins.contains("waits for parts that others run"), "{joins}");
    let blocked = find(WorkerState::Blocked);
    assert!(blocked.task.is_none(), "a part is no task: {blocked}");
    assert!(blocked.to_string().contains(": busy, blocked"), "{blocked}");
    drop(gate);
    task.unwrap().join().unwrap();
    until(|| count(WorkerState::Idle) == pool.workers().len());

    // A worker runs the jobs of its scope while it waits for that.
    let single = crate::pool(1);
    let ((say, hear), (gate, wait)) = (mpsc::channel(), mpsc::channel::<()>());
    let task = single.submit(move || {
        forkjoin::scope(|scope| {
            scope.spawn(move |_| {
                say.send(()).unwrap();
                let _ = wait.recv();
            });
        });
    });
    hear.recv_timeout(TIMEOUT).unwrap();
    let helps = only(&single);
    assert_eq!(helps.state, WorkerState::Helping);
    assert!(helps.task.is_some(), "{helps}");
    drop(gate);
    task.unwrap().join().unwrap();
    until(|| only(&single).state == WorkerState::Idle);
}

#[test]
fn there_is_a_stack_of_each_worker_or_the_reason_why_there_is_none() {
    let pool = pool(1);
    assert!(pool.stacks().is_empty());
    let (gate, held) = hold(&pool, "grind");
    let stacks = pool.stacks();
    assert_eq!(stacks.len(), 1);
    let is_told = stacks[0].contains("watching.rs") || stacks[0].starts_with("no stack: ");
    assert!(
        is_told || stacks[0].contains("did not answer"),
        "{}",
        stacks[0]
    );
    drop(gate);
    held.join().unwrap();
}

#[test]
fn a_task_that_runs_too_long_is_told_of_once_while_it_runs() {
    let mill = Mill::new(|pool| pool.run_warning(RunWarning::after(ms(100))));
    let (gate, held) = hold(&mill.pool, "grind");
    mill.hand.advance(ms(99));
    assert!(mill.long_runs().is_empty());
    mill.hand.advance(ms(2));
    until(|| !mill.long_runs().is_empty());
    let first = mill.told.lock().unwrap()[0].to_string();
    let expected = "mill: grind has been running for 101.0ms, its limit is 100.0ms";
    assert!(first.starts_with(expected), "{first}");
    let health = mill.pool.health();
    assert!(health.long_running == 1 && !health.is_healthy());
    let said = mill.pool.explain();
    assert!(
        said.contains("1 task runs longer than its limit; grind has run for 101.0ms"),
        "{said}"
    );
    assert!(!mill.pool.engine_snapshot().is_healthy());
    for _ in 0..10 {
        mill.hand.advance(ms(100));
    }
    drop(gate);
    held.join().unwrap();
    until(|| mill.pool.health().is_healthy());
    assert_eq!(
        (mill.pool.health().long_runs, mill.long_runs().len()),
        (1, 1),
        "once"
    );
    // The next one has its own time, and its own notice.
    let (gate, held) = hold(&mill.pool, "bake");
    mill.hand.advance(ms(100));
    until(|| mill.long_runs() == ["grind", "bake"]);
    drop(gate);
    held.join().unwrap();
    mill.pool.close().unwrap();
}

#[test]
fn a_name_has_a_limit_of_its_own_and_limits_change_while_tasks_run() {
    let mill = Mill::new(|pool| {
        pool.run_warning(RunWarning::after(ms(1000)))
            .run_warning_for("quick", RunWarning::after(ms(10)))
    });
    let (slow, first) = hold(&mill.pool, "slow");
    let (quick, second) = hold(&mill.pool, "quick");
    mill.hand.advance(ms(10));
    until(|| mill.long_runs() == ["quick"]);
    mill.pool
        .apply(&Patch::new().set("run_warning", "20ms"))
        .unwrap();
    assert_eq!(mill.pool.run_warning(), Some(RunWarning::after(ms(20))));
    mill.hand.advance(ms(10));
    until(|| mill.long_runs() == ["quick", "slow"]);
    mill.pool.set_run_warning(None);
    mill.pool.set_run_warning_for("quick", None);
    drop((slow, quick));
    first.join().unwrap();
    second.join().unwrap();
    let (gate, held) = hold(&mill.pool, "quick");
    mill.hand.advance(ms(10_000));
    assert_eq!(
        mill.pool.health().long_runs,
        2,
        "there is no limit any more"
    );
    drop(gate);
    held.join().unwrap();
    mill.pool.close().unwrap();
}

#[test]
fn a_limit_may_interrupt_that_task_and_no_other() {
    let warning = RunWarning::after(ms(100)).interrupts();
    let mill = Mill::new(|pool| pool.run_warning_for("hangs", warning));
    let hangs = nap(&mill.pool, "hangs");
    let other = nap(&mill.pool, "other");
    mill.hand.advance(ms(100));
    assert!(hangs.join().unwrap(), "it was interrupted");
    until(|| mill.long_runs() == ["hangs"]);
    assert!(!other.is_finished());
    other.interrupt();
    // Whoever comes next is not interrupted.
    for _ in 0..8 {
        let spec = TaskSpec::new().name("hangs");
        let next = mill
            .pool
            .submit_with(spec, interrupt::is_interrupted)
            .unwrap();
        assert!(!next.join().unwrap());
    }
    mill.pool.close().unwrap();
}

#[test]
fn a_task_is_interrupted_with_all_its_parts_whoever_runs_them() {
    let warning = RunWarning::after(ms(100)).interrupts();
    let mill = Mill::new(|pool| pool.parallelism(3).run_warning(warning));
    let (say, hear) = mpsc::channel();
    let all = Arc::new(Barrier::new(3));
    let sleep = move |say: mpsc::Sender<()>| {
        // Each of the three is on a worker of its own.
        all.wait();
        say.send(()).unwrap();
        interrupt::sleep(HOUR).is_err()
    };
    let task = mill.pool.submit(move || {
        let [one, two, three] = [(); 3].map(|()| say.clone());
        let part = &sleep;
        let inner = || forkjoin::join(|| part(two), || part(three));
        forkjoin::join(|| part(one), inner)
    });
    for _ in 0..3 {
        hear.recv_timeout(TIMEOUT).unwrap();
    }
    mill.hand.advance(ms(100));
    assert_eq!(task.unwrap().join().unwrap(), (true, (true, true)));
    // Parts of the next task are not.
    let next = mill
        .pool
        .submit(|| forkjoin::join(interrupt::is_interrupted, interrupt::is_interrupted));
    assert_eq!(next.unwrap().join().unwrap(), (false, false));
    mill.pool.close().unwrap();
}

#[test]
fn jobs_of_a_scope_are_interrupted_with_their_task() {
    let warning = RunWarning::after(ms(100)).interrupts();
    let mill = Mill::new(|pool| pool.run_warning(warning));
    let ((say, hear), (tell, told)) = (mpsc::channel(), mpsc::channel());
    let task = mill.pool.submit(move || {
        forkjoin::scope(|scope| {
            for _ in 0..2 {
                let (say, tell) = (say.clone(), tell.clone());
                scope.spawn(move |_| {
                    say.send(()).unwrap();
                    tell.send(interrupt::sleep(HOUR).is_err()).unwrap();
                });
            }
        });
    });
    for _ in 0..2 {
        hear.recv_timeout(TIMEOUT).unwrap();
    }
    mill.hand.advance(ms(100));
    for _ in 0..2 {
        assert!(told.recv_timeout(TIMEOUT).unwrap());
    }
    task.unwrap().join().unwrap();
    mill.pool.close().unwrap();
}

#[test]
fn a_panic_of_a_task_that_is_watched_goes_where_it_goes_otherwise() {
    let (tell, told) = mpsc::channel();
    let warning = RunWarning::after(ms(100)).interrupts();
    let pool = ForkJoinPool::builder("mill").run_warning(warning);
    let pool = pool.on_panic(move |panic| tell.send(panic.name().map(str::to_owned)).unwrap());
    let pool = pool.build().unwrap();
    pool.execute_with(TaskSpec::new().name("grind"), || panic!("no water"))
        .unwrap();
    assert_eq!(
        told.recv_timeout(TIMEOUT).unwrap().as_deref(),
        Some("grind")
    );
    let joined = pool.submit(|| forkjoin::join(|| 3, || -> u32 { panic!("no wind") }));
    assert!(joined.unwrap().join().is_err());
    assert_eq!(
        pool.submit(|| forkjoin::join(|| 3, || 4))
            .unwrap()
            .join()
            .unwrap(),
        (3, 4)
    );
    pool.close().unwrap();
}

#[test]
fn by_the_machines_clock_a_hung_task_is_told_of_while_it_hangs() {
    let (tell, told) = mpsc::channel();
    let pool = ForkJoinPool::builder("mill")
        .run_warning(RunWarning::after(ms(20)))
        .on_event(move |event| tell.send(event.clone()).unwrap())
        .build()
        .unwrap();
    let (gate, held) = hold(&pool, "hangs");
    let event = told.recv_timeout(TIMEOUT).unwrap();
    let ForkJoinEvent::LongRunning(run) = &event else {
        panic!("{event}");
    };
    assert!(run.running_for >= ms(20) && !run.is_interrupted && !run.stack.is_empty());
    assert_eq!(
        (run.pool.as_str(), run.label.to_string().as_str()),
        ("mill", "hangs")
    );
    drop(gate);
    held.join().unwrap();
    pool.close().unwrap();
}

#[test]
fn metrics_of_all_names_together_are_the_sum_and_further_names_are_others() {
    let pool = ForkJoinPool::builder("mill")
        .max_task_names(2)
        .build()
        .unwrap();
    for name in ["rye", "oat", "wheat", "corn"] {
        let task = pool.submit_with(TaskSpec::new().name(name), || ());
        task.unwrap().join().unwrap();
    }
    pool.close().unwrap();
    assert_eq!(pool.metrics().completed, 4);
    let named = pool.metrics_by_name();
    assert_eq!(named.len(), 3);
    let others = named
        .iter()
        .find(|each| each.label.to_string() == "(others)");
    assert_eq!(others.unwrap().metrics.completed, 2);
}

#[test]
fn computations_from_outside_are_counted_once_each_and_are_no_tasks() {
    let pool = pool(2);
    assert_eq!(pool.install(|| crate::fib(10)), 55);
    assert_eq!(pool.join(|| 3, || 4), (3, 4));
    pool.scope(|scope| scope.spawn(|_| ()));
    // Inside there is nothing to count: these are parts.
    pool.submit({
        let pool = pool.clone();
        move || pool.install(|| crate::fib(10))
    })
    .unwrap()
    .join()
    .unwrap();
    pool.close().unwrap();
    assert_eq!(pool.install(|| 7), 7, "in the caller");
    let now = pool.snapshot();
    assert_eq!((now.installed, now.submitted, now.completed), (3, 1, 1));
}

#[test]
fn every_engine_has_a_name_and_explains_itself() {
    let engine: &dyn Managed = &pool(2);
    assert_eq!(engine.name(), "mill");
    assert!(
        engine
            .explain()
            .starts_with("mill is running and has nothing to do")
    );
}
