use super::*;
use crate::peers::pool::awake::Awake;
use crate::peers::pool::claiming::Claiming;
use crate::peers::pool::hand_rolled::{Crossbeam, Flume, HandRolled, Kanal, StdMpsc};
use crate::peers::pool::millpond::{Millpond, WithoutMetrics};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

const TASKS: usize = 500;

/// How often each task has run.
fn runs() -> Arc<Vec<AtomicU8>> {
    Arc::new((0..TASKS).map(|_| AtomicU8::new(0)).collect())
}

fn each_ran_once(name: &str, queue: Queue, runs: &[AtomicU8]) {
    for (task, times) in runs.iter().enumerate() {
        let times = times.load(Ordering::Relaxed);
        assert_eq!(times, 1, "{name}, {queue:?}: task {task} ran {times} times");
    }
}

/// Waits until all have been counted, without asking the pool; or for so long that they never will.
fn closed<P: Pool>(pool: P, runs: &[AtomicU8]) {
    let start = Instant::now();
    let is_missing = |times: &AtomicU8| times.load(Ordering::Relaxed) == 0;
    while runs.iter().any(is_missing) && start.elapsed() < Duration::from_secs(20) {
        std::thread::yield_now();
    }
    pool.close();
}

fn runs_every_task_once<P: Pool>(queue: Queue) {
    let runs = runs();
    let pool = P::open(queue).unwrap();
    std::thread::scope(|scope| {
        let (pool, runs) = (&pool, &runs);
        for producer in 0..4 {
            scope.spawn(move || {
                for task in (producer..TASKS).step_by(4) {
                    let runs = Arc::clone(runs);
                    pool.run(move || {
                        runs[task].fetch_add(1, Ordering::Relaxed);
                    });
                }
            });
        }
    });
    closed(pool, &runs);
    each_ran_once(P::NAME, queue, &runs);
}

fn returns_every_result_and_runs_every_task_once<P: Pool>(queue: Queue) {
    let runs = runs();
    let pool = P::open(queue).unwrap();
    let submit = |task: usize| {
        let runs = Arc::clone(&runs);
        pool.submit(move || {
            runs[task].fetch_add(1, Ordering::Relaxed);
            task as u64
        })
    };
    let (first, second, all) = (submit(0), submit(1), 2..TASKS);
    let mut handles: Vec<_> = all.clone().map(submit).collect();
    assert_eq!(pool.join(first), 0, "{}", P::NAME);
    assert_eq!(pool.run_or_join(second), 1, "{}", P::NAME);
    let sum = all.map(|task| task as u64).sum::<u64>();
    assert_eq!(pool.join_all(&mut handles), sum, "{}", P::NAME);
    assert!(handles.is_empty());
    closed(pool, &runs);
    each_ran_once(P::NAME, queue, &runs);
}

fn check_pool<P: Pool>(queue: Queue) {
    runs_every_task_once::<P>(queue);
    returns_every_result_and_runs_every_task_once::<P>(queue);
}

#[test]
fn every_pool_runs_every_task_once_and_returns_its_result() {
    check_pool::<Millpond>(Queue::Unbounded);
    check_pool::<WithoutMetrics>(Queue::Unbounded);
    check_pool::<HandRolled<Crossbeam>>(Queue::Unbounded);
    check_pool::<HandRolled<Flume>>(Queue::Unbounded);
    check_pool::<HandRolled<Kanal>>(Queue::Unbounded);
    check_pool::<HandRolled<StdMpsc>>(Queue::Unbounded);
    check_pool::<Awake<HandRolled<Crossbeam>>>(Queue::Unbounded);
    check_pool::<Awake<HandRolled<Kanal>>>(Queue::Unbounded);
    check_pool::<Awake<tokio::SpawnBlocking>>(Queue::Unbounded);
    check_pool::<Awake<rayon::Rayon>>(Queue::Unbounded);
    check_pool::<Claiming>(Queue::Unbounded);
    check_pool::<rayon::Rayon>(Queue::Unbounded);
    check_pool::<tokio::SpawnBlocking>(Queue::Unbounded);
    check_pool::<tokio::Spawn>(Queue::Unbounded);
    check_pool::<threadpool::Threadpool>(Queue::Unbounded);
    check_pool::<rusty_pool::RustyPool>(Queue::Unbounded);
    check_pool::<threadfin::Threadfin>(Queue::Unbounded);
    check_pool::<executors::Executors>(Queue::Unbounded);
    check_pool::<futures::Futures>(Queue::Unbounded);
    check_pool::<async_executor::AsyncExecutor>(Queue::Unbounded);
    check_pool::<blocking::Blocking>(Queue::Unbounded);
    check_pool::<thread_per_task::ThreadPerTask>(Queue::Unbounded);
}

#[test]
fn every_pool_with_a_bound_does_the_same_when_it_is_full() {
    for when_full in [WhenFull::Wait, WhenFull::CallerRuns] {
        let queue = Queue::Bounded(3, when_full);
        check_pool::<Millpond>(queue);
        check_pool::<HandRolled<Crossbeam>>(queue);
        check_pool::<HandRolled<Flume>>(queue);
        check_pool::<HandRolled<Kanal>>(queue);
        check_pool::<HandRolled<StdMpsc>>(queue);
        check_pool::<Claiming>(queue);
        check_pool::<threadfin::Threadfin>(queue);
    }
}

/// Keeps all workers busy until the guard is dropped; or for so long that a test that waits for one
/// of them has failed, and should report that.
fn keep_busy<P: Pool>(pool: &P) -> mpsc::Sender<()> {
    let (open, gate) = mpsc::channel::<()>();
    let gate = Arc::new(Mutex::new(gate));
    let (begun, has_begun) = mpsc::channel();
    for _ in 0..WORKERS {
        let (gate, begun) = (Arc::clone(&gate), begun.clone());
        pool.run(move || {
            begun.send(()).unwrap();
            let _ = gate.lock().unwrap().recv_timeout(Duration::from_secs(10));
        });
    }
    (0..WORKERS).for_each(|_| has_begun.recv().unwrap());
    open
}

fn caller_runs_what_does_not_fit<P: Pool>() {
    const ROOM: usize = 3;
    let pool = P::open(Queue::Bounded(ROOM, WhenFull::CallerRuns)).unwrap();
    let busy = keep_busy(&pool);
    (0..ROOM).for_each(|_| pool.run(|| ()));
    let (ran_on, on) = mpsc::channel();
    pool.run(move || ran_on.send(std::thread::current().id()).unwrap());
    let caller = std::thread::current().id();
    assert_eq!(on.try_recv(), Ok(caller), "{}", P::NAME);
    drop(busy);
    pool.close();
}

#[test]
fn the_caller_runs_exactly_what_does_not_fit() {
    caller_runs_what_does_not_fit::<Millpond>();
    caller_runs_what_does_not_fit::<HandRolled<Crossbeam>>();
    caller_runs_what_does_not_fit::<HandRolled<Flume>>();
    caller_runs_what_does_not_fit::<HandRolled<Kanal>>();
    caller_runs_what_does_not_fit::<HandRolled<StdMpsc>>();
    caller_runs_what_does_not_fit::<threadfin::Threadfin>();
}

#[test]
fn a_joiner_runs_a_task_that_no_worker_has_started() {
    waiter_runs_what_nobody_has_begun::<Millpond>();
    waiter_runs_what_nobody_has_begun::<Claiming>();
}

fn waiter_runs_what_nobody_has_begun<P: Pool>() {
    let pool = P::open(Queue::Unbounded).unwrap();
    let busy = keep_busy(&pool);
    let waiter = std::thread::current().id();
    let handle = pool.submit(move || u64::from(std::thread::current().id() == waiter));
    assert_eq!(pool.run_or_join(handle), 1, "{}: a worker ran it", P::NAME);
    drop(busy);
    pool.close();
}
