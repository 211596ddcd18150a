//! Builds the pools for the suites, and prepares them for a test.

use crate::kit::{FailureSink, Gate, Guard, Latch, Lifecycle, comes_true, until};
use millpond::executor::{self, ExecutorExt};
use millpond::interrupt;
use millpond::pool::{PoolBuilder, ThreadPool};
use millpond::task::TaskHandle;
use millpond_raw::park::probe;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Describes a pool under test: of this name, and with a queue for so many tasks, if its queue has
/// a bound. The suites choose sizes, policies, hooks and clocks.
pub type Make = fn(String, usize) -> PoolBuilder;

/// A pool under test. It is sure to end with its test.
#[derive(Debug)]
pub struct Pond {
    guard: Guard<Ending>,
}

/// A pool as [`Guard`] sees it. It is waited for by the machine's time: the pool's own may stand
/// still.
#[derive(Debug)]
pub struct Ending(ThreadPool);

impl Lifecycle for Ending {
    fn begin_end(&self) {
        executor::Lifecycle::shutdown(&self.0);
    }

    fn force_end(&self) {
        drop(executor::Lifecycle::shutdown_now(&self.0));
    }

    fn await_end(&self, timeout: Duration) -> bool {
        comes_true(timeout, || executor::Lifecycle::is_terminated(&self.0))
    }

    fn is_busy(&self) -> bool {
        self.0.snapshot().active > 0
    }
}

impl Pond {
    /// The pool that is described, with a queue for `capacity` tasks.
    pub fn new(
        make: &Make,
        capacity: usize,
        shape: impl FnOnce(PoolBuilder) -> PoolBuilder,
    ) -> Self {
        Pond::of(shape(make(fresh_name(), capacity)))
    }

    /// This very pool.
    pub fn of(builder: PoolBuilder) -> Self {
        let pool = builder.build().expect("the description is right");
        Pond {
            guard: Guard::new(Ending(pool)),
        }
    }

    /// Another handle to the pool.
    pub fn pool(&self) -> ThreadPool {
        self.guard.0.clone()
    }

    /// How many of its workers are parked and wait for a task.
    pub fn idle(&self) -> usize {
        idle(self.name())
    }

    /// How many of its threads are parked at a site of this name.
    pub fn waits_at(&self, site: &str) -> usize {
        parked(self.name(), site)
    }

    /// Waits until so many of its workers are parked and wait for a task.
    #[track_caller]
    pub fn await_idle(&self, count: usize) {
        until(&format!("{count} workers are idle"), || {
            self.idle() == count
        });
    }

    /// Waits until so many workers are left.
    #[track_caller]
    pub fn await_workers(&self, count: usize) {
        until(&format!("there are {count} workers"), || {
            self.snapshot().workers == count
        });
    }

    /// Waits until so many tasks have been completed.
    #[track_caller]
    pub fn await_completed(&self, count: u64) {
        until(&format!("{count} are completed"), || {
            self.snapshot().completed == count
        });
    }

    /// Waits for the end.
    #[track_caller]
    pub fn await_end(&self) {
        until("it has ended", || {
            executor::Lifecycle::is_terminated(&self.guard.0)
        });
    }

    /// Has so many tasks run, and holds them in the middle.
    #[track_caller]
    pub fn hold(&self, count: usize) -> Held {
        let (mut held, started) = (Held::new(), Latch::new(count));
        for _ in 0..count {
            let (gate, arrived) = (held.gate.clone(), started.clone());
            let body = held.sink.checked(move || {
                arrived.arrive();
                gate.wait();
                assert!(!interrupt::is_interrupted(), "it is not interrupted");
            });
            held.handles.push(self.submit(body).expect("there is room"));
        }
        started.wait();
        held
    }

    /// Has so many tasks run that sleep until they are stopped, and then return true.
    #[track_caller]
    pub fn occupy(&self, count: usize) -> Vec<TaskHandle<bool>> {
        let started = Latch::new(count);
        let sleeper = |started: Latch| {
            move || {
                started.arrive();
                interrupt::sleep(Duration::MAX).is_err()
            }
        };
        let all = (0..count)
            .map(|_| {
                self.submit(sleeper(started.clone()))
                    .expect("there is room")
            })
            .collect();
        started.wait();
        all
    }

    /// Has so many tasks wait in its queue.
    #[track_caller]
    pub fn queue_up(&self, count: usize) -> Vec<TaskHandle<usize>> {
        let before = self.snapshot().queued;
        let all = (0..count)
            .map(|number| self.submit(move || number).expect("there is room"))
            .collect();
        assert_eq!(self.snapshot().queued, before + count, "they wait");
        all
    }
}

impl Deref for Pond {
    type Target = ThreadPool;

    fn deref(&self) -> &ThreadPool {
        &self.guard.0
    }
}

/// A name that no other pool of this process has.
pub fn fresh_name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("pool{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// How many workers of the pool of this name are parked and wait for a task.
pub fn idle(name: &str) -> usize {
    parked(name, "pool.idle")
}

/// How many threads of the pool of this name are parked at a site.
fn parked(name: &str, site: &str) -> usize {
    let is_one = |wait: &probe::Wait| {
        let rest = wait.name.as_deref().and_then(|own| own.strip_prefix(name));
        wait.site.name() == site && rest.is_some_and(|rest| rest.starts_with('-'))
    };
    probe::waits().iter().filter(|wait| is_one(wait)).count()
}

/// Tasks that are held in the middle of their bodies, and must not be interrupted there. Dropping it
/// lets them go.
#[derive(Debug)]
pub struct Held {
    gate: Gate,
    sink: FailureSink,
    /// Their handles.
    pub handles: Vec<TaskHandle<()>>,
}

impl Held {
    fn new() -> Self {
        Held {
            gate: Gate::new(),
            sink: FailureSink::new(),
            handles: Vec::new(),
        }
    }

    /// Lets them go, and waits until all have returned.
    #[track_caller]
    pub fn release(mut self) {
        self.gate.open();
        for handle in self.handles.drain(..) {
            handle.join().expect("it is not cancelled");
        }
        self.sink.verify();
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.gate.open();
    }
}
