//! Hooks and events of a pool, and that a panic in one of them is contained.

use super::pond::{Make, Pond};
use crate::kit::{FailureSink, Gate, until};
use millpond::executor::{Executor, ExecutorExt, Lifecycle};
use millpond::interrupt;
use millpond::pool::{Ended, Hooks, TaskInfo, ThreadPool};
use millpond::task::{self, CancelReason, TaskHandle, TaskSpec};
use millpond::time::{Clock, Deadline};
use std::panic::panic_any;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::Duration;

/// Tests of the hooks of a pool that is described by a [`Make`].
#[macro_export]
macro_rules! pool_hooks_suite {
    ($make:expr) => {
        $crate::bodies! { pool_hooks, ($make as $crate::suites::pond::Make);
            before_and_after_stand_around_each_task_on_its_worker
            they_hear_of_every_task_however_it_came
            they_are_told_what_became_of_the_task
            the_end_is_told_once_and_within_the_shutdown_of_an_idle_pool
            within_the_hook_of_the_end_it_is_not_over_yet
            failing_tasks_and_failing_hooks_cost_nothing_but_themselves
            hooks_are_not_interrupted
            hooks_may_use_the_pool
            a_panic_that_no_caller_joins_is_told
        }
    };
}

fn panicked(message: &str) -> Ended {
    let message = Some(message.to_owned());
    Ended::Panicked { message }
}

/// What hooks were told.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Told {
    Before(String, ThreadId),
    Ran(String, ThreadId),
    After(String, Ended, ThreadId),
    Terminated,
}

/// Notes what it is told, and panics where it is asked to.
#[derive(Clone, Default)]
struct Log {
    told: Arc<Mutex<Vec<Told>>>,
    before_panics: bool,
    after_panics: bool,
    end_panics: bool,
}

fn here() -> ThreadId {
    std::thread::current().id()
}

impl Log {
    fn note(&self, told: Told) {
        self.told.lock().unwrap().push(told);
    }

    fn all(&self) -> Vec<Told> {
        self.told.lock().unwrap().clone()
    }

    fn count(&self, is_it: impl Fn(&Told) -> bool) -> usize {
        self.all().iter().filter(|told| is_it(told)).count()
    }

    fn endings(&self) -> usize {
        self.count(|told| *told == Told::Terminated)
    }
}

impl Hooks for Log {
    fn before(&self, task: &TaskInfo) {
        self.note(Told::Before(task.name().unwrap_or("").into(), here()));
        if self.before_panics {
            panic_any("before");
        }
    }

    fn after(&self, task: &TaskInfo, ended: Ended) {
        self.note(Told::After(task.name().unwrap_or("").into(), ended, here()));
        if self.after_panics {
            panic_any("after");
        }
    }

    fn terminated(&self) {
        self.note(Told::Terminated);
        if self.end_panics {
            panic_any("terminated");
        }
    }
}

/// Holds: ThreadPoolExecutorTest.testBeforeAfter
pub fn before_and_after_stand_around_each_task_on_its_worker(make: &Make) {
    let log = Log::default();
    let pond = Pond::new(make, 8, |pool| pool.core(1).max(1).hooks(log.clone()));
    let mut expected = Vec::new();
    for name in ["one", "two", "three"] {
        let own = log.clone();
        let body = move || {
            own.note(Told::Ran(name.into(), here()));
            here()
        };
        let handle = pond.submit_with(TaskSpec::new().name(name), body);
        let worker = handle.unwrap().join().unwrap();
        assert_ne!(worker, here());
        expected.push(Told::Before(name.into(), worker));
        expected.push(Told::Ran(name.into(), worker));
        expected.push(Told::After(name.into(), Ended::Completed, worker));
        pond.await_idle(1);
    }
    assert_eq!(log.all(), expected);
}

/// All forms of submission go one way, and surplus workers leave when the work is done.
///
/// Holds: jtreg ThreadPoolExecutor.Custom
pub fn they_hear_of_every_task_however_it_came(make: &Make) {
    let log = Log::default();
    let pond = Pond::new(make, 8, |pool| {
        let pool = pool.core(3).max(3).hooks(log.clone());
        pool.keep_alive(Duration::ZERO)
    });
    let told = |so_far: usize| {
        let after = |told: &Told| matches!(told, Told::After(_, Ended::Completed, _));
        until("all were told", || log.count(after) == so_far);
        assert_eq!(log.count(|told| matches!(told, Told::Before(..))), so_far);
        pond.await_idle(pond.snapshot().workers);
    };
    pond.execute(|| ()).unwrap();
    told(1);
    pond.submit(|| 7).unwrap().join().unwrap();
    told(2);
    let named = TaskSpec::new().name("named");
    pond.submit_with(named, || 7).unwrap().join().unwrap();
    told(3);
    pond.execute_task(task::new(|| 7).0).unwrap();
    told(4);
    assert_eq!(pond.invoke_all([|| 7, || 8]).unwrap().len(), 2);
    told(6);
    assert_eq!(pond.invoke_any([|| Ok::<_, ()>(7)]).unwrap(), 7);
    told(7);
    pond.set_core(0).unwrap();
    pond.await_workers(0);
}

/// Value, panic, cancelled before its turn, too late.
pub fn they_are_told_what_became_of_the_task(make: &Make) {
    let log = Log::default();
    let pond = Pond::new(make, 8, |pool| pool.core(1).max(1).hooks(log.clone()));
    let spec = |name: &'static str| TaskSpec::new().name(name);
    let after = |told: &Told| matches!(told, Told::After(..));
    let run = |task| {
        let before = log.count(after);
        pond.execute_task(task).unwrap();
        until("it is told", || log.count(after) > before);
        pond.await_idle(1);
    };
    run(spec("value").build(|| 7).0);
    run(spec("panic").build(|| panic_any("no grain")).0);
    run(spec("detached").build_detached(|| panic_any("no grain")));
    // A client that goes away while the body runs.
    for (name, panics) in [("gave up", false), ("gave up and panicked", true)] {
        let (tell, own) = std::sync::mpsc::channel::<TaskHandle<()>>();
        let (task, handle) = spec(name).build(move || {
            let own = own.recv().unwrap();
            assert!(own.cancel(), "it runs");
            if panics {
                panic!("no {}", "water");
            }
        });
        tell.send(handle).unwrap();
        run(task);
    }
    let (cancelled, handle) = spec("cancelled").build(|| 7);
    handle.cancel();
    run(cancelled);
    let late = Deadline::at(Clock::system().now());
    run(spec("late").deadline(late).build(|| 7).0);
    let told = log.all().into_iter().filter_map(|told| match told {
        Told::After(name, ended, _) => Some((name, ended)),
        _ => None,
    });
    let expected = [
        ("value", Ended::Completed),
        ("panic", panicked("no grain")),
        ("detached", panicked("no grain")),
        ("gave up", Ended::Cancelled),
        ("gave up and panicked", panicked("no water")),
        ("cancelled", Ended::Gone),
        ("late", Ended::Gone),
    ]
    .map(|(name, ended)| (name.to_owned(), ended));
    assert_eq!(told.collect::<Vec<_>>(), expected);
    let now = pond.snapshot();
    assert_eq!((now.completed, now.panicked), (5, 3));
    assert_eq!(now.cancelled_while_running, 1);
    assert_eq!((now.cancelled, now.expired), (2, 1));
    let metrics = pond.metrics();
    assert_eq!((metrics.completed, metrics.cancelled_while_running), (5, 1));
}

/// Holds: ThreadPoolExecutorTest.testTerminated, ThreadPoolExecutorSubclassTest.testTerminated
pub fn the_end_is_told_once_and_within_the_shutdown_of_an_idle_pool(make: &Make) {
    type End = fn(&ThreadPool);
    let ends: [End; 3] = [
        |pool| pool.shutdown(),
        |pool| drop(pool.shutdown_now()),
        |pool| pool.close().unwrap(),
    ];
    for end in ends {
        let log = Log::default();
        let pond = Pond::new(make, 1, |pool| pool.core(1).max(1).hooks(log.clone()));
        assert_eq!(log.endings(), 0);
        end(&pond);
        assert_eq!(log.endings(), 1, "it had no worker, so it ended at once");
        assert!(pond.is_terminated());
        end(&pond);
        assert_eq!(log.endings(), 1);
        let log = Log::default();
        let busy = Pond::new(make, 1, |pool| pool.core(1).max(1).hooks(log.clone()));
        let held = busy.hold(1);
        busy.shutdown();
        assert_eq!(log.endings(), 0);
        held.release();
        busy.await_end();
        assert_eq!(log.endings(), 1);
    }
}

/// Looks at its pool from within the hook of the end.
#[derive(Default)]
struct Witness {
    pool: Mutex<Option<ThreadPool>>,
    sink: FailureSink,
    saw: Gate,
}

impl Hooks for Witness {
    fn terminated(&self) {
        let pool = self.pool.lock().unwrap().take().unwrap();
        let look = self.sink.checked(|| {
            assert!(pool.is_terminating() && pool.is_shutdown() && !pool.is_terminated());
            assert_eq!(pool.await_termination_timeout(Duration::ZERO), Ok(false));
            assert_eq!(pool.snapshot().workers, 0);
            assert!(pool.submit(|| ()).unwrap_err().reason.is_shut_down());
            pool.shutdown();
            assert!(pool.shutdown_now().is_empty());
            assert!(!pool.is_terminated());
        });
        look();
        self.saw.open();
    }
}

/// The order is: tidying, the hook, terminated, waiting callers.
pub fn within_the_hook_of_the_end_it_is_not_over_yet(make: &Make) {
    for workers in [0, 1] {
        let witness = Arc::new(Witness::default());
        let pond = Pond::new(make, 1, |pool| {
            pool.core(1).max(1).hooks(Arc::clone(&witness))
        });
        *witness.pool.lock().unwrap() = Some(pond.pool());
        if workers == 1 {
            pond.submit(|| ()).unwrap().join().unwrap();
        }
        pond.shutdown();
        pond.await_termination().unwrap();
        assert!(
            witness.saw.is_open(),
            "a waiting caller is told after the hook"
        );
        assert!(pond.is_terminated() && !pond.is_terminating());
        witness.sink.verify();
    }
}

/// All combinations of panics in tasks and hooks.
///
/// Holds: jtreg ThreadPoolExecutor.ThrowingTasks
pub fn failing_tasks_and_failing_hooks_cost_nothing_but_themselves(make: &Make) {
    for bits in 0..8_u8 {
        let log = Log {
            before_panics: bits & 1 != 0,
            after_panics: bits & 2 != 0,
            end_panics: bits & 4 != 0,
            ..Log::default()
        };
        let uncaught = Arc::new(AtomicUsize::new(0));
        let hook = Arc::clone(&uncaught);
        let pond = Pond::new(make, 8, |pool| {
            let pool = pool.core(2).max(2).hooks(log.clone());
            pool.on_panic(move |_| {
                hook.fetch_add(1, Ordering::SeqCst);
                panic_any("and the hook for panics, too");
            })
        });
        for round in 0..3 {
            assert_eq!(pond.submit(|| 7).unwrap().join().unwrap(), 7);
            pond.await_idle(pond.snapshot().workers);
            let failed = pond.submit(|| panic_any("no grain")).unwrap().join();
            assert!(failed.unwrap_err().is_panicked());
            pond.await_idle(2);
            pond.execute(|| panic_any("no caller joins it")).unwrap();
            pond.await_completed(3 * round + 3);
            pond.await_idle(2);
        }
        let now = pond.snapshot();
        assert_eq!((now.completed, now.panicked), (9, 6), "bits {bits}");
        assert_eq!((now.workers, now.threads_started), (2, 2), "no worker died");
        assert_eq!(uncaught.load(Ordering::SeqCst), 3);
        assert_eq!(log.count(|told| matches!(told, Told::Before(..))), 9);
        let panicked = |told: &Told| matches!(told, Told::After(_, Ended::Panicked { .. }, _));
        assert_eq!(log.count(panicked), 6);
        pond.close().unwrap();
        assert_eq!(log.endings(), 1);
        assert!(pond.is_terminated());
    }
}

/// Notes whether it was interrupted.
#[derive(Default)]
struct Calm {
    before: Mutex<Vec<bool>>,
    after: Mutex<Vec<bool>>,
    end: Mutex<Vec<bool>>,
}

impl Hooks for Calm {
    fn before(&self, _: &TaskInfo) {
        self.before
            .lock()
            .unwrap()
            .push(interrupt::is_interrupted());
    }

    fn after(&self, _: &TaskInfo, _: Ended) {
        let slept = interrupt::sleep(Duration::from_nanos(1));
        self.after.lock().unwrap().push(slept.is_err());
    }

    fn terminated(&self) {
        let slept = interrupt::sleep(Duration::from_nanos(1));
        self.end.lock().unwrap().push(slept.is_err());
    }
}

/// What is asked to stop is the task, and code that runs in no task is never interrupted.
pub fn hooks_are_not_interrupted(make: &Make) {
    let calm = Arc::new(Calm::default());
    let pond = Pond::new(make, 1, |pool| pool.core(1).max(1).hooks(Arc::clone(&calm)));
    let interrupted = pond.occupy(1).remove(0);
    interrupted.interrupt();
    until("it has ended", || !calm.after.lock().unwrap().is_empty());
    pond.await_idle(1);
    let stopped = pond.occupy(1).remove(0);
    drop(pond.shutdown_now());
    assert!(stopped.join().unwrap());
    pond.await_end();
    assert_eq!(*calm.before.lock().unwrap(), [false, false]);
    assert_eq!(*calm.after.lock().unwrap(), [false, false]);
    assert_eq!(*calm.end.lock().unwrap(), [false]);
}

/// Uses its pool from within all hooks.
#[derive(Default)]
struct Busybody {
    pool: Mutex<Option<ThreadPool>>,
    more: AtomicUsize,
}

impl Busybody {
    fn use_it(&self) {
        let pool = self.pool.lock().unwrap().clone();
        if let Some(pool) = pool {
            let workers = pool.snapshot().workers;
            assert!(workers <= pool.max());
            let _ = (pool.queued_tasks(), pool.purge(), format!("{pool:?}"));
            let (core, max) = (pool.core(), pool.max());
            let _ = (pool.set_core(core), pool.set_max(max), pool.prestart_core());
            pool.set_rejection(pool.rejection());
        }
    }
}

impl Hooks for Busybody {
    fn before(&self, _: &TaskInfo) {
        self.use_it();
    }

    fn after(&self, _: &TaskInfo, _: Ended) {
        self.use_it();
        let pool = self.pool.lock().unwrap().clone();
        if let Some(pool) = pool.filter(|_| self.more.fetch_add(1, Ordering::SeqCst) < 5) {
            let _ = pool.execute(|| ());
        }
    }

    fn terminated(&self) {
        self.use_it();
    }
}

/// No lock of the pool is held while they run.
pub fn hooks_may_use_the_pool(make: &Make) {
    let busybody = Arc::new(Busybody::default());
    let pond = Pond::new(make, 8, |pool| {
        pool.core(2).max(3).hooks(Arc::clone(&busybody))
    });
    *busybody.pool.lock().unwrap() = Some(pond.pool());
    for _ in 0..5 {
        // Where no task can wait, one that the hook has brought may be in the way.
        if let Ok(handle) = pond.submit(|| ()) {
            handle.join().unwrap();
        }
    }
    pond.close().unwrap();
    busybody.pool.lock().unwrap().take();
}

/// With what it was made of, and not if a handle has it.
pub fn a_panic_that_no_caller_joins_is_told(make: &Make) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let own = Arc::clone(&told);
    let pond = Pond::new(make, 8, |pool| {
        pool.core(1).max(1).on_panic(move |uncaught| {
            let text = uncaught.panic().message().map(str::to_owned);
            let name = uncaught.name().map(str::to_owned);
            own.lock()
                .unwrap()
                .push((name, text, uncaught.location().file()));
        })
    });
    let spec = || TaskSpec::new().name("grind");
    let joined = pond.submit_with(spec(), || panic_any("joined")).unwrap();
    assert!(joined.join().unwrap_err().is_panicked());
    pond.await_idle(1);
    pond.execute_task(spec().build_detached(|| panic_any("detached")))
        .unwrap();
    pond.await_completed(2);
    pond.await_idle(1);
    drop(pond.submit(|| panic_any("let go")).unwrap());
    pond.await_completed(3);
    let (gone, _handle) = task::new(|| panic_any("never"));
    gone.cancel(CancelReason::Requested);
    let told = told.lock().unwrap();
    let expected = (Some("grind".into()), Some("detached".into()), file!());
    assert_eq!(told[0], expected);
    assert!(told.len() <= 2, "{told:?}");
}
