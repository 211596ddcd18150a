//! Code of the user's that a pool calls, and that calls the pool.

#![cfg(not(any(millpond_loom, millpond_shuttle)))]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test stands outside: it uses std's threads and channels beside what it tests"
)]

mod watch_kit;

use millpond::executor::{Executor, ExecutorExt, Lifecycle};
use millpond::pool::{PoolBuilder, Queue, Refusal, Rejection, ThreadPool};
use millpond::task::{Carried, Task};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use watch_kit::watch;

fn mill(capacity: usize) -> PoolBuilder {
    let mill = ThreadPool::builder("mill").core(1).max(1);
    mill.queue(Queue::bounded(capacity))
}

/// Keeps the only worker busy until the sender is dropped.
fn hold(pool: &ThreadPool) -> mpsc::Sender<()> {
    let (go, may_go) = mpsc::channel::<()>();
    let busy = pool.submit(move || may_go.recv().is_err()).unwrap();
    while !busy.is_started() {
        std::thread::yield_now();
    }
    go
}

/// Calls a closure when it is dropped.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

type Submits = Arc<OnDrop<Box<dyn FnMut() + Send + Sync>>>;

#[test]
fn what_a_cancelled_task_carried_may_submit_to_the_pool_that_clears_it_out() {
    let _watch = watch();
    static CARRIED: Carried<Submits> = Carried::new();
    let pool = mill(2).build().unwrap();
    let go = hold(&pool);
    let (tell, told) = mpsc::channel();
    let submits: Submits = {
        let pool = pool.clone();
        Arc::new(OnDrop(Box::new(move || {
            // More than there is room for.
            let taken = [(); 3].map(|()| pool.run(|| ()).is_ok());
            let _ = tell.send(taken);
        })))
    };
    let cancelled = CARRIED.scope(submits, || pool.submit(|| ()).unwrap());
    assert!(cancelled.cancel());
    drop(cancelled);
    pool.run(|| ()).unwrap();
    // Full: the shell makes room, and what it carried is dropped by that. Who gets the room is open.
    let taken = pool.run(|| ()).is_ok();
    let inside = told.recv().unwrap();
    let all = inside.into_iter().chain([taken]);
    assert_eq!(
        all.filter(|taken| *taken).count(),
        1,
        "there was room for one"
    );
    // And the pool takes tasks as ever.
    drop(go);
    while pool.snapshot().queued > 0 {
        std::thread::yield_now();
    }
    pool.submit(|| ()).unwrap().join().unwrap();
    pool.shutdown();
    pool.await_termination().unwrap();
}

#[test]
fn a_handler_that_brings_the_task_to_its_own_pool_again_is_asked_once() {
    let _watch = watch();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let again = move |task: Task, refusal: Refusal<'_>| {
        count.fetch_add(1, Ordering::Relaxed);
        refusal.pool.execute(task)
    };
    let pool = mill(1).rejection(Rejection::custom(again)).build().unwrap();
    let go = hold(&pool);
    pool.run(|| ()).unwrap();
    let refused = pool.submit(|| "flour").unwrap_err();
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    assert!(refused.reason.is_saturated(), "{}", refused.reason);
    assert_eq!((refused.task)(), "flour");
    drop(go);
}

/// Two pools whose handlers bring to each other what they refuse.
#[test]
fn handlers_that_bring_tasks_to_each_others_pools_are_asked_once_each() {
    let _watch = watch();
    let other: Arc<std::sync::OnceLock<ThreadPool>> = Arc::default();
    let to_other = Arc::clone(&other);
    let handler = move |task: Task, refusal: Refusal<'_>| match to_other.get() {
        Some(other) => other.execute(task),
        None => refusal.give_back(task),
    };
    let one = mill(1)
        .rejection(Rejection::custom(handler))
        .build()
        .unwrap();
    let back = one.clone();
    let handler = move |task: Task, _: Refusal<'_>| back.execute(task);
    let two = mill(1)
        .rejection(Rejection::custom(handler))
        .build()
        .unwrap();
    let held = (hold(&one), hold(&two));
    one.run(|| ()).unwrap();
    two.run(|| ()).unwrap();
    assert!(other.set(two.clone()).is_ok());
    let refused = one.submit(|| "flour").unwrap_err();
    assert_eq!((refused.task)(), "flour");
    drop(held);
    one.shutdown();
    two.shutdown();
}

/// What runs then is no longer the handler.
#[test]
fn a_handler_that_runs_the_task_is_asked_about_what_its_body_brings() {
    let _watch = watch();
    let runs = |task: Task, _: Refusal<'_>| {
        let _ = task.run();
        Ok(())
    };
    let pool = mill(1).rejection(Rejection::custom(runs)).build().unwrap();
    let go = hold(&pool);
    pool.run(|| ()).unwrap();
    let inner = pool.clone();
    let outer = pool.submit(move || inner.submit(|| "flour").unwrap().join());
    assert_eq!(outer.unwrap().join().unwrap().unwrap(), "flour");
    drop(go);
}
