//! Stacks as a pool shows them: when asked, in a run warning and in a report of rejections. With the feature
//! they name what its workers do; without, each says which feature to switch on.

#![cfg(not(any(millpond_loom, millpond_shuttle)))]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test stands outside: it uses std's threads and channels beside what it tests"
)]

use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::pool::{PoolEvent, Queue, RejectionPolicy, RunWarning, ThreadPool};
use millpond::preset;
use millpond::task::TaskSpec;
use millpond_testkit::watch;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(20);

const IS_BUILT: bool = cfg!(all(
    feature = "stack-dump",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(millpond_portable)
));

/// A stack names its function where it can be captured, and says elsewhere why it cannot.
#[track_caller]
fn names(stack: &str, function: &str) {
    if IS_BUILT {
        assert!(stack.contains(function), "{stack}");
    } else if cfg!(feature = "stack-dump") {
        assert!(stack.contains("platform"), "{stack}");
    } else {
        assert_eq!(
            stack,
            "no stack: switch on the feature `stack-dump` of millpond (Linux on x86-64 or AArch64)"
        );
    }
}

#[inline(never)]
fn sleeps_until_told(say: &mpsc::Sender<()>, stay: &mpsc::Receiver<()>) {
    say.send(()).unwrap();
    let _ = std::hint::black_box(stay.recv());
}

#[inline(never)]
fn computes_until_told(over: &AtomicBool) -> u64 {
    let mut sum = 1_u64;
    while !over.load(Ordering::Relaxed) {
        for step in 0..1_000 {
            sum = std::hint::black_box(sum.wrapping_mul(6_364_136_223_846_793_005) ^ step);
        }
    }
    sum
}

/// Asks the pool until all of its workers are where they are going, and returns their stacks.
fn stacks_when(pool: &ThreadPool, are_there: impl Fn(&[String]) -> bool) -> Vec<String> {
    let start = Instant::now();
    loop {
        let stacks = pool.stacks();
        // A thread that has not begun says so, whatever was built.
        let begun = stacks.iter().all(|stack| !stack.contains("not begun"));
        if begun && (!IS_BUILT || are_there(&stacks)) {
            return stacks;
        }
        assert!(start.elapsed() < LONG, "{}", stacks.join("\n\n"));
        thread::yield_now();
    }
}

#[test]
fn each_worker_is_named_by_what_it_does_asleep_or_at_work() {
    let _watch = watch();
    let pool = preset::fixed("mill", 2).build().unwrap();
    let ((leave, stay), (say, _hear)) = (mpsc::channel(), mpsc::channel());
    let over = Arc::new(AtomicBool::new(false));
    let inside = Arc::clone(&over);
    let sleeper = TaskSpec::new().name("sleeper");
    let sleeper = pool
        .submit_with(sleeper, move || sleeps_until_told(&say, &stay))
        .unwrap();
    let computer = TaskSpec::new().name("computer");
    let computer = pool
        .submit_with(computer, move || computes_until_told(&inside))
        .unwrap();
    let stacks = stacks_when(&pool, |stacks| {
        let has = |name| stacks.iter().any(|stack| stack.contains(name));
        stacks.len() == 2 && has("sleeps_until_told") && has("computes_until_told")
    });
    // In the order of the workers.
    let workers = pool.workers();
    assert_eq!((workers.len(), stacks.len()), (2, 2));
    for (worker, stack) in workers.iter().zip(&stacks) {
        let Some(task) = &worker.task else { continue };
        match task.label.to_string().as_str() {
            "sleeper" => names(stack, "sleeps_until_told"),
            "computer" => names(stack, "computes_until_told"),
            other => panic!("{other}"),
        }
    }
    over.store(true, Ordering::Relaxed);
    drop(leave);
    sleeper.join().unwrap();
    computer.join().unwrap();
    // A worker that rests has a stack, too.
    let resting = stacks_when(&pool, |stacks| {
        stacks.iter().all(|stack| !stack.contains("_until_told"))
    });
    assert_eq!(resting.len(), 2);
    assert!(resting.iter().all(|stack| !stack.is_empty()));
    pool.close().unwrap();
    assert_eq!(pool.stacks(), [""; 0], "no worker is left");
}

#[inline(never)]
fn the_body_of_a_task(say: &mpsc::Sender<()>, stay: &mpsc::Receiver<()>) {
    sleeps_until_told(say, stay);
    std::hint::black_box(0);
}

/// `millpond-stack` knows the worker loop by its path: this fails if that has moved.
#[test]
fn a_workers_stack_is_printed_down_to_its_tasks_body() {
    let _watch = watch();
    let pool = preset::fixed("mill", 1).build().unwrap();
    let ((leave, stay), (say, _hear)) = (mpsc::channel(), mpsc::channel());
    let handle = pool
        .submit(move || the_body_of_a_task(&say, &stay))
        .unwrap();
    let stacks = stacks_when(&pool, |stacks| stacks[0].contains("sleeps_until_told"));
    names(&stacks[0], "the_body_of_a_task");
    if IS_BUILT {
        let text = &stacks[0];
        let lines: Vec<&str> = text.lines().collect();
        let body = lines
            .iter()
            .position(|line| line.contains("the_body_of_a_task"))
            .unwrap();
        // Below it: the closure that called it, and one line for all the rest.
        assert_eq!(lines.len() - body, 3, "{text}");
        assert!(lines[body + 1].contains("closure"), "{text}");
        assert!(lines[body + 2].contains("of the runtime"), "{text}");
        assert!(!text.contains("pool/worker.rs"), "{text}");
        // Names as in the source: no hash behind them.
        let is_hash =
            |part: &str| part.len() == 17 && part[1..].bytes().all(|c| c.is_ascii_hexdigit());
        assert!(!text.split([':', ' ']).any(is_hash), "{text}");
    }
    drop(leave);
    handle.join().unwrap();
}

/// A pool with one worker that is busy, and its events.
fn busy(
    shape: impl FnOnce(millpond::pool::PoolBuilder) -> millpond::pool::PoolBuilder,
) -> (ThreadPool, mpsc::Receiver<PoolEvent>, mpsc::Sender<()>) {
    let (tell, told) = mpsc::channel();
    let pool = preset::fixed("mill", 1).on_event(move |event| tell.send(event.clone()).unwrap());
    let pool = shape(pool).build().unwrap();
    let ((leave, stay), (say, hear)) = (mpsc::channel(), mpsc::channel());
    let body = move || sleeps_until_told(&say, &stay);
    pool.submit_with(TaskSpec::new().name("sleeper"), body)
        .unwrap();
    hear.recv_timeout(LONG).unwrap();
    (pool, told, leave)
}

#[test]
fn a_run_warning_has_the_stack_of_its_task() {
    let _watch = watch();
    let limit = RunWarning::after(Duration::from_millis(50));
    let (pool, told, leave) = busy(|pool| pool.run_warning(limit));
    let event = told.recv_timeout(LONG).unwrap();
    let PoolEvent::LongRunning(run) = &event else {
        panic!("{event}");
    };
    assert_eq!(run.label.to_string(), "sleeper");
    names(&run.stack, "sleeps_until_told");
    let text = event.to_string();
    let first = run.stack.lines().next().unwrap();
    assert!(text.contains(&format!("\n      {first}")), "{text}");
    drop(leave);
    pool.close().unwrap();
}

/// What a task does from when it has begun until it is told to end; of each task in a function of its own.
type Stay = fn(&mpsc::Sender<()>, &mpsc::Receiver<()>);

#[inline(never)]
fn run_in_flour(say: &mpsc::Sender<()>, stay: &mpsc::Receiver<()>) {
    sleeps_until_told(say, stay);
    std::hint::black_box(1);
}

#[inline(never)]
fn run_in_dough(say: &mpsc::Sender<()>, stay: &mpsc::Receiver<()>) {
    sleeps_until_told(say, stay);
    std::hint::black_box(2);
}

#[inline(never)]
fn run_in_bread(say: &mpsc::Sender<()>, stay: &mpsc::Receiver<()>) {
    sleeps_until_told(say, stay);
    std::hint::black_box(3);
}

#[test]
fn a_run_warning_that_is_told_late_never_has_the_stack_of_another_task() {
    let _watch = watch();
    let (tell, told) = mpsc::channel();
    let (open, gate) = mpsc::channel::<()>();
    let gate = std::sync::Mutex::new(gate);
    // The first event is not done with before the gate opens.
    let slow = move |event: &PoolEvent| {
        tell.send(event.clone()).unwrap();
        let _ = gate.lock().unwrap().recv();
    };
    let limit = RunWarning::after(Duration::from_millis(20));
    let pool = preset::fixed("mill", 1).run_warning(limit).on_event(slow);
    let pool = pool.build().unwrap();
    let tasks: [(&str, Stay); 3] = [
        ("flour", run_in_flour),
        ("dough", run_in_dough),
        ("bread", run_in_bread),
    ];
    let begun = tasks.map(|(name, function)| {
        let ((leave, stay), (say, hear)) = (mpsc::channel::<()>(), mpsc::channel());
        let spec = TaskSpec::new().name(name);
        let task = pool.submit_with(spec, move || function(&say, &stay));
        (task.unwrap(), leave, hear)
    });
    let mut events = Vec::new();
    let mut last = None;
    for (number, (task, leave, hear)) in begun.into_iter().enumerate() {
        hear.recv_timeout(LONG).unwrap();
        let start = Instant::now();
        while pool.health().long_runs <= number as u64 {
            assert!(start.elapsed() < LONG);
            thread::yield_now();
        }
        match number {
            // It is being told: whatever comes next waits.
            0 => events.push(told.recv_timeout(LONG).unwrap()),
            1 => {}
            // The last one stays.
            _ => {
                last = Some((task, leave));
                break;
            }
        }
        drop(leave);
        task.join().unwrap();
    }
    drop(open);
    while events.len() < tasks.len() {
        events.push(told.recv_timeout(LONG).unwrap());
    }
    for (event, (name, _)) in events.iter().zip(tasks) {
        let PoolEvent::LongRunning(run) = event else {
            panic!("{event}");
        };
        assert_eq!(run.label.to_string(), name);
        match run.stack.as_str() {
            // It was let go before its stack was taken.
            "no stack: the task ended before it could be taken" => assert_eq!(name, "dough"),
            // A busy machine may not let it answer in time.
            stack if stack.contains("did not answer") => {}
            stack => names(stack, &format!("run_in_{name}")),
        }
        let others = tasks.iter().filter(|(other, _)| *other != name);
        for (other, _) in others {
            assert!(!run.stack.contains(&format!("run_in_{other}")), "{event}");
        }
    }
    drop(last);
    pool.close().unwrap();
}

#[test]
fn a_report_of_rejections_has_the_stacks_of_all_workers() {
    let _watch = watch();
    let report = RejectionPolicy::Report {
        at_most_every: LONG,
    };
    let (pool, told, leave) = busy(|pool| pool.queue(Queue::hand_off()).rejection(report));
    let rejected = pool
        .submit_with(TaskSpec::new().name("one more"), || ())
        .unwrap_err();
    assert!(rejected.reason.is_saturated());
    let event = told.recv_timeout(LONG).unwrap();
    let PoolEvent::Rejected(report) = &event else {
        panic!("{event}");
    };
    assert_eq!(report.label, "one more");
    assert_eq!((report.workers.len(), report.stacks.len()), (1, 1));
    names(&report.stacks[0], "sleeps_until_told");
    let text = event.to_string();
    let first = report.stacks[0].lines().next().unwrap();
    assert!(text.contains(&format!("\n      {first}")), "{text}");
    drop(leave);
    pool.close().unwrap();
}
