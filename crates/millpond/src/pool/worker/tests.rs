//! A worker that dies between two tasks. No code of the user's can do that to it: what panics is held up before. So it
//! is made to die here by hand.

use super::*;
use crate::executor::{ExecutorExt, Lifecycle};
use crate::pool::{PoolBuilder, Queue, ThreadPool};
use crate::queue::LinkedQueue;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc;

/// So long nothing takes, unless it hangs.
const LONG: Duration = Duration::from_secs(60);

/// One that is counted and listed and has begun, and takes nothing.
fn idle_worker(pool: &ThreadPool) -> Shift {
    let engine = &pool.engine;
    let word = engine.ctl().read();
    assert!(engine.ctl().count_in(word));
    let worker = engine.with_crew(|crew| {
        let worker = Arc::new(Worker::new(crew.number(), None, engine.sheets()));
        crew.add(&worker);
        worker
    });
    worker.begins(engine.ticker.now());
    Shift::new(Arc::clone(engine), worker, word.workers() + 1)
}

fn die(shift: Shift) {
    let died = catch_unwind(AssertUnwindSafe(move || {
        let _shift = shift;
        resume_unwind(Box::new("a mistake"));
    }));
    assert!(died.is_err());
}

fn mills() -> impl Iterator<Item = PoolBuilder> {
    let own = Queue::own(LinkedQueue::bounded(2).unwrap());
    [Queue::bounded(2), own]
        .into_iter()
        .map(|queue| ThreadPool::builder("mill").queue(queue))
}

#[test]
fn what_waits_for_the_last_worker_is_run_by_another_when_that_dies() {
    for is_shut_down in [false, true] {
        for mill in mills() {
            let pool = mill.core(1).max(1).build().unwrap();
            let shift = idle_worker(&pool);
            let (tell, told) = mpsc::channel();
            pool.run(move || tell.send(()).unwrap()).unwrap();
            assert_eq!(pool.snapshot().queued, 1);
            if is_shut_down {
                pool.shutdown();
            }
            die(shift);
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
        let shift = idle_worker(&pool);
        let (go, may_go) = mpsc::channel::<()>();
        let held = pool.submit(move || may_go.recv().is_err()).unwrap();
        let (tell, told) = mpsc::channel();
        pool.run(move || tell.send(()).unwrap()).unwrap();
        assert_eq!(pool.snapshot().queued, 1, "the maximum is reached");
        die(shift);
        told.recv_timeout(LONG).unwrap();
        drop(go);
        assert!(held.join().unwrap());
        pool.close().unwrap();
    }
}
