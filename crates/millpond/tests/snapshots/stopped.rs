//! The books are closed before the end is announced (END-4).

use millpond::executor::{Executor, ExecutorExt, Lifecycle};
use millpond::forkjoin::ForkJoinPool;
use millpond::manage::Managed;
use millpond::pool::ThreadPool;
use millpond::task::TaskLocal;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Says when its destructor begins, and waits there.
struct SlowToDrop {
    begin: Sender<()>,
    go_on: Mutex<Receiver<()>>,
}

impl Drop for SlowToDrop {
    fn drop(&mut self) {
        self.begin.send(()).unwrap();
        self.go_on.get_mut().unwrap().recv().ok();
    }
}

static CARRIED: TaskLocal<Arc<SlowToDrop>> = TaskLocal::new();

/// While the pool is stopped, what a cancelled task carries takes its time to be dropped. Two more tasks that nobody has
/// cancelled are behind it.
fn ends_with_closed_books<P: Executor + Lifecycle + Managed>(pool: &P) {
    let _watch = millpond_testkit::watch();
    let (hold, held) = channel::<()>();
    let (begin, begun) = channel();
    let busy = pool.submit(move || {
        begin.send(()).unwrap();
        held.recv().is_err()
    });
    let busy = busy.unwrap();
    begun.recv().unwrap();
    let ((begin, begun), (let_go, go_on)) = (channel(), channel::<()>());
    let slow = Arc::new(SlowToDrop {
        begin,
        go_on: Mutex::new(go_on),
    });
    let carries = CARRIED.scope(slow, || pool.submit(|| ()).unwrap());
    for _ in 0..2 {
        pool.execute(|| ()).unwrap();
    }
    carries.cancel();
    drop(carries);
    thread::scope(|threads| {
        let let_go = let_go;
        let taken = threads.spawn(|| pool.shutdown_now().len());
        begun.recv().unwrap();
        drop(hold);
        assert!(busy.join().unwrap());
        let soon = pool.await_termination_timeout(Duration::from_millis(20));
        assert!(!soon.unwrap(), "{}", pool.engine_snapshot());
        let_go.send(()).unwrap();
        pool.await_termination().unwrap();
        let end = pool.engine_snapshot();
        let counts = (end.submitted, end.completed, end.cancelled, end.queued);
        assert_eq!(counts, (4, 1, 3, 0), "{end}");
        assert_eq!(taken.join().unwrap(), 2);
    });
}

fn thread_pool() -> ThreadPool {
    let mill = ThreadPool::builder("mill").core(1).max(1);
    mill.on_event(|_| ()).build().unwrap()
}

fn fork_join_pool() -> ForkJoinPool {
    let mill = ForkJoinPool::builder("mill").parallelism(1);
    mill.on_event(|_| ()).build().unwrap()
}

#[test]
fn a_stopped_pool_ends_when_what_it_handed_back_is_counted() {
    let pool = thread_pool();
    ends_with_closed_books(&pool);
    let pool = fork_join_pool();
    ends_with_closed_books(&pool);
}
