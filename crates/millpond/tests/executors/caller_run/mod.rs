//! A full pool leaves a closure or a task to its caller: the two cannot be told apart.

use crate::executor_kit::{LONG, gate, quiet_panic, signal};
use millpond::executor::{CallerRun, Executor, ExecutorExt, Lifecycle, Rejected};
use millpond::interrupt;
use millpond::pool::{Ended, Hooks, PoolBuilder, Queue, RejectionPolicy, TaskInfo, ThreadPool};
use millpond::task::{Task, TaskSpec};
use millpond_raw::task::current;
use millpond_testkit::{DropCount, watch};
use std::panic::Location;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};

mod around;

/// A pool whose worker is held and whose queue is full: whatever comes, its caller runs.
#[derive(Debug)]
struct Full {
    pool: ThreadPool,
    open: Sender<()>,
}

impl Full {
    fn new() -> Self {
        Self::with(|pool| pool)
    }

    fn with(more: impl FnOnce(PoolBuilder) -> PoolBuilder) -> Self {
        let pool = ThreadPool::builder("full").core(1).max(1);
        let pool = pool
            .queue(Queue::bounded(1))
            .rejection(RejectionPolicy::CallerRuns);
        let pool = more(pool).build().unwrap();
        let ((open, held), (say, hear)) = (gate(), signal());
        pool.execute(move || {
            say.send(()).unwrap();
            held();
        })
        .unwrap();
        hear.wait();
        pool.execute(|| ()).unwrap();
        assert_eq!(pool.snapshot().left_to_policy, 0);
        Full { pool, open }
    }

    /// How many were rejected, how many of them their callers ran, and what else has been run.
    fn counts(&self) -> (u64, u64, u64) {
        let now = self.pool.snapshot();
        (
            now.left_to_policy,
            now.caller_ran,
            now.completed_by_workers(),
        )
    }
}

impl Drop for Full {
    fn drop(&mut self) {
        let _ = self.open.send(());
        self.pool.close().unwrap();
    }
}

/// How something comes to a pool without a handle.
#[derive(Clone, Copy, Debug)]
enum Way {
    Closure,
    Task,
}

impl Way {
    const BOTH: [Way; 2] = [Way::Closure, Way::Task];

    #[track_caller]
    fn submit(self, pool: &ThreadPool, f: impl FnOnce() + Send + 'static) {
        let taken = match self {
            Way::Closure => pool.execute(f).is_ok(),
            Way::Task => pool.execute_task(TaskSpec::new().build_detached(f)).is_ok(),
        };
        assert!(taken, "{self:?}");
    }

    /// Runs `f` as caller-runs does, and returns its value.
    #[track_caller]
    fn ask<T: Send + 'static>(
        self,
        pool: &ThreadPool,
        f: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        let (send, receive) = mpsc::channel();
        let here = std::thread::current().id();
        self.submit(pool, move || {
            assert_eq!(std::thread::current().id(), here);
            send.send(f()).unwrap();
        });
        receive.try_recv().expect("it has run when it is taken")
    }
}

/// Counts the tasks that reach a pool.
#[derive(Debug)]
struct Sees(ThreadPool, AtomicUsize);

impl Executor for Sees {
    fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.execute_task(task)
    }

    fn try_caller_run(&self, location: &'static Location<'static>) -> Option<CallerRun<'_>> {
        self.0.try_caller_run(location)
    }
}

#[test]
fn no_task_is_allocated_for_a_closure_that_its_caller_runs_however_it_is_submitted() {
    let _watch = watch();
    let full = Full::new();
    let sees = Arc::new(Sees(full.pool.clone(), AtomicUsize::new(0)));
    let ran = Arc::new(AtomicUsize::new(0));
    let body = || {
        let ran = Arc::clone(&ran);
        move || _ = ran.fetch_add(1, Ordering::SeqCst)
    };
    sees.execute(body()).unwrap();
    let reference: &dyn Executor = &&*sees;
    reference.execute(body()).unwrap();
    Box::new(Arc::clone(&sees)).execute(body()).unwrap();
    let dynamic: Arc<dyn Executor> = Arc::clone(&sees) as _;
    dynamic.execute(body()).unwrap();
    assert_eq!(ran.load(Ordering::SeqCst), 4);
    assert_eq!(sees.1.load(Ordering::SeqCst), 0, "tasks");
    assert_eq!(full.counts(), (4, 4, 0));
}

#[test]
fn without_caller_runs_every_closure_becomes_a_task() {
    let _watch = watch();
    let full = Full::with(|pool| pool.rejection(RejectionPolicy::Abort));
    let sees = Sees(full.pool.clone(), AtomicUsize::new(0));
    let rejected = sees.execute(|| ()).unwrap_err();
    assert!(rejected.reason.is_saturated());
    assert_eq!(sees.1.load(Ordering::SeqCst), 1);
    // The policy may change at any time.
    full.pool.set_rejection(RejectionPolicy::CallerRuns);
    sees.execute(|| ()).unwrap();
    full.pool.set_rejection(RejectionPolicy::Discard);
    sees.execute(|| panic!("it ran")).unwrap();
    assert_eq!(sees.1.load(Ordering::SeqCst), 2);
    assert_eq!(full.counts(), (3, 1, 0));
}

#[test]
fn its_panic_goes_to_the_hook_with_its_location_and_no_further() {
    let _watch = watch();
    let (send, receive) = mpsc::channel();
    let full = Full::with(|pool| {
        pool.on_panic(move |uncaught| {
            assert!(!current::set(), "the hook is in no task");
            let text = uncaught.panic().message().map(str::to_owned);
            let name = uncaught.name().map(str::to_owned);
            send.send((text, name, uncaught.location().line())).unwrap();
            quiet_panic("the hook, too");
        })
    });
    for way in Way::BOTH {
        let line = line!() + 1;
        way.submit(&full.pool, || quiet_panic("no water"));
        let expected = (Some("no water".to_owned()), None, line);
        assert_eq!(receive.try_recv(), Ok(expected), "{way:?}");
    }
    assert_eq!(full.counts(), (2, 2, 0));
    let now = full.pool.snapshot();
    assert_eq!((now.panicked, now.panicked_outside), (2, 2));
}

/// Panics when it is dropped, so many times.
struct Grenade(u32);

impl Drop for Grenade {
    fn drop(&mut self) {
        if self.0 > 0 {
            std::panic::resume_unwind(Box::new(Grenade(self.0 - 1)));
        }
    }
}

#[test]
fn nothing_that_it_owns_or_panics_with_panics_out_of_it() {
    let _watch = watch();
    let full = Full::new();
    for way in Way::BOTH {
        let owned = Grenade(2);
        way.submit(&full.pool, move || drop(owned));
        let owned = Grenade(1);
        way.submit(&full.pool, move || {
            let _kept = &owned;
        });
        way.submit(&full.pool, || {
            std::panic::resume_unwind(Box::new(Grenade(3)));
        });
    }
    assert_eq!(full.counts(), (6, 6, 0));
}

#[test]
fn what_it_owns_is_dropped_once_before_its_caller_goes_on() {
    let _watch = watch();
    let full = Full::new();
    for way in Way::BOTH {
        let drops = DropCount::new();
        let token = drops.token();
        way.submit(&full.pool, move || drop(token));
        assert_eq!(drops.dropped(), 1, "{way:?}");
        let token = drops.token();
        way.submit(&full.pool, move || {
            let _token = token;
            quiet_panic("over");
        });
        assert_eq!(drops.dropped(), 2, "{way:?}");
    }
}

#[test]
fn it_is_counted_under_the_location_of_its_submission() {
    let _watch = watch();
    for way in Way::BOTH {
        let full = Full::new();
        let line = line!() + 2;
        for _ in 0..3 {
            way.submit(&full.pool, || ());
        }
        way.submit(&full.pool, || ());
        assert_eq!(full.counts(), (4, 4, 0), "{way:?}");
        let all = full.pool.metrics_by_name();
        let rejected = |line: u32| {
            let place = format!("caller_run/mod.rs:{line}");
            let mut found = all.iter().filter(|one| one.label.to_string() == place);
            found.next().map(|one| one.metrics.rejected)
        };
        assert_eq!(rejected(line), Some(3), "{way:?}: {all:?}");
        assert_eq!(rejected(line + 2), Some(1), "{way:?}: {all:?}");
    }
    let without = Full::with(PoolBuilder::without_metrics);
    Way::Closure.submit(&without.pool, || ());
    assert_eq!(without.counts(), (1, 1, 0));
}

#[test]
fn hooks_are_called_for_tasks_of_workers_and_not_for_it() {
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u32>>>);
    impl Hooks for Log {
        fn before(&self, task: &TaskInfo) {
            self.0.lock().unwrap().push(task.location().line());
        }
        fn after(&self, task: &TaskInfo, _ended: Ended) {
            self.0.lock().unwrap().push(task.location().line());
        }
    }
    let _watch = watch();
    let log = Log::default();
    let full = Full::with(|pool| pool.hooks(log.clone()));
    let line = line!();
    for way in Way::BOTH {
        way.submit(&full.pool, || ());
    }
    drop(full);
    let heard = log.0.lock().unwrap();
    assert_eq!(heard.len(), 4, "two tasks of workers: {heard:?}");
    assert!(heard.iter().all(|location| *location < line), "{heard:?}");
}

#[test]
fn it_may_submit_more_of_its_kind() {
    fn dig(pool: &ThreadPool, way: Way, depth: u32, reached: &Arc<AtomicUsize>) {
        reached.fetch_add(1, Ordering::SeqCst);
        if depth > 0 {
            let (own, reached) = (pool.clone(), Arc::clone(reached));
            way.submit(pool, move || dig(&own, way, depth - 1, &reached));
        }
    }
    let _watch = watch();
    for way in Way::BOTH {
        let (full, reached) = (Full::new(), Arc::default());
        dig(&full.pool, way, 50, &reached);
        assert_eq!(reached.load(Ordering::SeqCst), 51, "{way:?}");
        assert_eq!(full.counts(), (50, 50, 0), "{way:?}");
    }
}

#[test]
fn a_closure_that_shuts_the_pool_down_runs_to_its_end_and_the_next_is_returned_whole() {
    let _watch = watch();
    for way in Way::BOTH {
        let full = Full::new();
        let pool = full.pool.clone();
        let ended = way.ask(&full.pool, move || {
            pool.shutdown();
            interrupt::check()
        });
        assert_eq!(ended, Ok(()), "{way:?}: a shutdown interrupts nobody");
        let drops = DropCount::new();
        let token = drops.token();
        let rejected = full.pool.execute(move || drop(token)).unwrap_err();
        assert!(rejected.reason.is_shut_down(), "{way:?}");
        assert_eq!(drops.dropped(), 0, "{way:?}");
        (rejected.task)();
        assert_eq!(drops.dropped(), 1, "{way:?}");
        assert_eq!(full.counts(), (2, 1, 0), "{way:?}");
    }
}

#[test]
fn a_closure_for_which_there_is_room_is_run_by_a_worker() {
    let _watch = watch();
    let full = Full::new();
    Way::Closure.submit(&full.pool, || ());
    full.open.send(()).unwrap();
    while full.counts().2 < 2 {
        std::thread::yield_now();
    }
    let here = std::thread::current().id();
    let (send, receive) = mpsc::channel();
    full.pool
        .execute(move || send.send(std::thread::current().id()).unwrap())
        .unwrap();
    assert_ne!(receive.recv_timeout(LONG).unwrap(), here);
    assert_eq!(full.pool.snapshot().caller_ran, 1);
}
