//! Tasks that panic on the threads that join them.

use millpond::executor::{Executor, ExecutorExt, Lifecycle};
use millpond::forkjoin::ForkJoinPool;
use millpond::manage::Managed;
use millpond::pool::ThreadPool;
use std::panic::resume_unwind;
use std::sync::mpsc::channel;
use std::thread;

/// A task that panics on the thread that joins it, before the only worker of the engine has met its tombstone, and one
/// whose tombstone is met while it still runs.
fn fail_on_joining_threads<E: Executor + Lifecycle + Managed + Sync>(case: &str, engine: &E) {
    let (hold, gate) = channel::<()>();
    let held = engine.submit(move || for () in gate {}).unwrap();
    let early = engine.submit(|| -> () { resume_unwind(Box::new("dry")) });
    assert!(early.unwrap().run_or_join().unwrap_err().is_panicked());
    let ((begun, begins), (open, gate)) = (channel(), channel::<()>());
    let late = engine.submit(move || -> () {
        begun.send(()).unwrap();
        for () in gate {}
        resume_unwind(Box::new("dry"))
    });
    let late = late.unwrap();
    thread::scope(|scope| {
        let joins = scope.spawn(move || late.run_or_join());
        begins.recv().unwrap();
        drop(hold);
        held.join().unwrap();
        // Behind the tombstone.
        engine.submit(|| ()).unwrap().join().unwrap();
        drop(open);
        assert!(joins.join().unwrap().unwrap_err().is_panicked());
    });
    engine.close().unwrap();
    let end = engine.engine_snapshot();
    let seen = (end.submitted, end.completed, end.failed, end.cancelled);
    assert_eq!(seen, (4, 4, 2, 0), "{case}");
}

#[test]
fn what_panics_on_the_thread_that_joins_it_has_failed() {
    let pool = ThreadPool::builder("mill").core(1).max(1).build().unwrap();
    fail_on_joining_threads("thread pool", &pool);
    let now = pool.snapshot();
    assert_eq!((now.panicked, now.panicked_outside), (2, 2));
    let pool = ForkJoinPool::builder("mill").parallelism(1).max_spares(0);
    let pool = pool.build().unwrap();
    fail_on_joining_threads("fork-join pool", &pool);
    assert_eq!(pool.snapshot().panicked, 2);
    // An engine that takes over the number of one that is gone takes over none of its panics.
    drop(pool);
    for _ in 0..3 {
        let pool = ThreadPool::builder("mill").core(1).max(1).build().unwrap();
        assert_eq!(pool.engine_snapshot().failed, 0);
    }
}
