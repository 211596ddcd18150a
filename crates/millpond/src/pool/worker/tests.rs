//! A worker that dies between two tasks (SPAWN-3). No user code can do that to it, because panics are contained. So it is
//! killed here by hand.

use super::*;
use crate::executor::{ExecutorExt, Lifecycle};
use crate::pool::worker::WorkerRecord;
use crate::pool::{PoolBuilder, Queue, ThreadPool};
use crate::queue::FifoQueue;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc;

/// Longer than anything takes, unless it hangs.
const LONG: Duration = Duration::from_secs(60);

/// A worker that is counted, registered and started, and takes no task.
fn idle_worker(pool: &ThreadPool) -> WorkerGuard<PoolEngine> {
    let engine = &pool.engine;
    let ctl = engine.ctl().read();
    assert!(engine.ctl().try_increment_workers(ctl));
    let record = WorkerRecord::new(false, engine.max_labels());
    let worker = engine.with_workers(|workers| {
        let worker = Arc::new(Worker::new(workers.next_number(), None, record));
        workers.add(&worker);
        worker
    });
    worker.record_started(engine.timestamps.now());
    WorkerGuard::new(Arc::clone(engine), worker, ctl.workers() + 1)
}

fn die(guard: WorkerGuard<PoolEngine>) {
    let died = catch_unwind(AssertUnwindSafe(move || {
        let _guard = guard;
        resume_unwind(Box::new("a mistake"));
    }));
    assert!(died.is_err());
}

fn mills() -> impl Iterator<Item = PoolBuilder> {
    let own = Queue::custom(FifoQueue::bounded_growing(2).unwrap());
    [Queue::bounded(2), own]
        .into_iter()
        .map(|queue| ThreadPool::builder("mill").queue(queue))
}

#[test]
fn what_waits_for_the_last_worker_is_run_by_another_when_that_dies() {
    for is_shut_down in [false, true] {
        for mill in mills() {
            let pool = mill.core(1).max(1).build().unwrap();
            let guard = idle_worker(&pool);
            let (tell, told) = mpsc::channel();
            pool.execute(move || tell.send(()).unwrap()).unwrap();
            assert_eq!(pool.snapshot().queued, 1);
            if is_shut_down {
                pool.shutdown();
            }
            die(guard);
            told.recv_timeout(LONG).unwrap();
            pool.close().unwrap();
        }
    }
}

#[test]
fn threads_first_what_waits_gets_the_thread_that_a_worker_leaves_when_it_dies() {
    for mill in mills() {
        let mill = mill.core(0).max(2).growth(Growth::ThreadsFirst);
        let pool = mill.build().unwrap();
        let guard = idle_worker(&pool);
        let (go, may_go) = mpsc::channel::<()>();
        let held = pool.submit(move || may_go.recv().is_err()).unwrap();
        let (tell, told) = mpsc::channel();
        pool.execute(move || tell.send(()).unwrap()).unwrap();
        assert_eq!(pool.snapshot().queued, 1, "the maximum is reached");
        die(guard);
        told.recv_timeout(LONG).unwrap();
        drop(go);
        assert!(held.join().unwrap());
        pool.close().unwrap();
    }
}
