//! Tasks from outside and from inside.

use crate::{fib, pool};
use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::forkjoin::ForkJoinPool;
use millpond::manage::Managed;
use millpond::task::TaskHandle;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::Duration;

#[test]
fn every_task_from_outside_runs_although_workers_fall_asleep_all_the_time() {
    let pool = pool(1);
    for round in 0..30_000_u64 {
        assert_eq!(pool.submit(move || round).unwrap().join().unwrap(), round);
    }
}

#[test]
fn tasks_that_make_tasks_all_run() {
    for is_fifo in [false, true] {
        let pool = ForkJoinPool::builder("mill").parallelism(3).fifo(is_fifo);
        let pool = pool.build().unwrap();
        let count = Arc::new(AtomicUsize::new(0));
        fn make(pool: &ForkJoinPool, depth: u32, count: &Arc<AtomicUsize>) {
            count.fetch_add(1, Ordering::Relaxed);
            for _ in 0..if depth > 0 { 2 } else { 0 } {
                let (inner, count) = (pool.clone(), Arc::clone(count));
                pool.execute(move || make(&inner, depth - 1, &count))
                    .unwrap();
            }
        }
        let (inner, own) = (pool.clone(), Arc::clone(&count));
        pool.execute(move || make(&inner, 12, &own)).unwrap();
        assert!(pool.await_quiescence(Duration::from_secs(60)).unwrap());
        assert_eq!(count.load(Ordering::Relaxed), (1 << 13) - 1);
        pool.close().unwrap();
    }
}

#[test]
fn a_worker_that_joins_a_queued_task_runs_it_itself() {
    let pool = pool(1);
    let inner = pool.clone();
    let outer = pool.submit(move || inner.submit(|| fib(10)).unwrap().join().unwrap());
    assert_eq!(outer.unwrap().join().unwrap(), 55);
}

#[test]
fn many_producers_lose_nothing() {
    let pool = pool(2);
    let count = AtomicUsize::new(0);
    let total = Arc::new(AtomicUsize::new(0));
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                for _ in 0..5_000 {
                    let total = Arc::clone(&total);
                    pool.execute(move || _ = total.fetch_add(1, Ordering::Relaxed))
                        .unwrap();
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    pool.close().unwrap();
    assert_eq!(count.load(Ordering::Relaxed), total.load(Ordering::Relaxed));
}

/// A pool whose workers all run tasks that wait, with more of them queued.
struct Held {
    pool: ForkJoinPool,
    gate: Arc<(Mutex<usize>, Condvar)>,
    begun: mpsc::Receiver<()>,
}

impl Held {
    fn new(parallelism: usize, tasks: usize) -> Self {
        let pool = pool(parallelism);
        let gate = Arc::new((Mutex::new(0), Condvar::new()));
        let (begins, begun) = mpsc::channel();
        for _ in 0..tasks {
            let (gate, begins) = (Arc::clone(&gate), begins.clone());
            pool.execute(move || {
                begins.send(()).unwrap();
                let (open, changed) = &*gate;
                let mut open = open.lock().unwrap();
                while *open == 0 {
                    open = changed.wait(open).unwrap();
                }
                *open -= 1;
            })
            .unwrap();
        }
        Held { pool, gate, begun }
    }

    /// Lets so many tasks end.
    fn release(&self, tasks: usize) {
        *self.gate.0.lock().unwrap() += tasks;
        self.gate.1.notify_all();
    }

    fn wait_begun(&self, tasks: usize) {
        for _ in 0..tasks {
            self.begun.recv_timeout(Duration::from_secs(60)).unwrap();
        }
    }
}

#[test]
fn a_higher_parallelism_starts_workers_for_what_is_queued() {
    let held = Held::new(1, 4);
    held.wait_begun(1);
    held.pool.set_parallelism(4).unwrap();
    held.wait_begun(3);
    held.release(4);
    held.pool.close().unwrap();
}

#[test]
fn a_lower_parallelism_takes_workers_away_although_tasks_are_queued() {
    let held = Held::new(4, 40);
    held.wait_begun(4);
    held.pool.set_parallelism(1).unwrap();
    // Of the four that run one goes on, with one task after another; no other begins.
    held.release(4);
    held.wait_begun(1);
    for _ in 0..20 {
        held.release(1);
        held.wait_begun(1);
    }
    assert!(held.begun.try_recv().is_err());
    held.release(40);
    held.pool.close().unwrap();
}

#[test]
fn a_pool_is_quiescent_only_when_what_was_submitted_is_over() {
    for parallelism in [1, 2, 4] {
        let builder = ForkJoinPool::builder("mill").parallelism(parallelism);
        let pool = builder.keep_alive(Duration::from_micros(100)).build();
        let pool = pool.unwrap();
        for _ in 0..5_000 {
            let done = pool.submit(|| 7).unwrap();
            assert!(pool.await_quiescence(Duration::from_secs(60)).unwrap());
            assert!(done.is_finished());
        }
    }
}

#[test]
fn a_task_that_a_thread_outside_joins_and_runs_itself_counts_as_completed() {
    let pool = ForkJoinPool::builder("mill").parallelism(1).max_spares(0);
    let pool = pool.build().unwrap();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let first = pool.submit(move || released.recv().is_err()).unwrap();
    let second = pool.submit(|| 7).unwrap();
    assert_eq!(second.run_or_join().unwrap(), 7);
    drop(release);
    assert!(first.join().unwrap());
    pool.close().unwrap();
    let now = pool.snapshot();
    assert_eq!((now.submitted, now.completed, now.cancelled), (2, 2, 0));
    assert_eq!(now.ran_elsewhere, 1);
}

#[test]
fn a_task_that_was_joined_before_its_turn_is_completed_and_not_queued() {
    let pool = ForkJoinPool::builder("mill").parallelism(1).max_spares(0);
    let pool = pool.build().unwrap();
    let (give, take) = mpsc::channel::<TaskHandle<u32>>();
    let (joined, has_joined) = mpsc::channel();
    let (let_go, go_on) = mpsc::channel();
    let joins = pool.submit(move || {
        assert_eq!(take.recv().unwrap().join().unwrap(), 5);
        joined.send(()).unwrap();
        go_on.recv().unwrap();
    });
    give.send(pool.submit(|| 5).unwrap()).unwrap();
    has_joined.recv().unwrap();
    let books = pool.engine_snapshot();
    assert_eq!((books.submitted, books.completed), (2, 1), "{books}");
    assert_eq!(books.queued, 0, "{books}");
    assert_eq!(pool.snapshot().queued_joined, 1);
    let_go.send(()).unwrap();
    joins.unwrap().join().unwrap();
    pool.close().unwrap();
    let books = pool.engine_snapshot();
    assert_eq!((books.completed, books.queued), (2, 0), "{books}");
    assert_eq!(pool.snapshot().queued_joined, 0);
}
