//! How the suites of scheduled pools get their pools: on a thread pool, by a manual clock.

use super::pond::fresh_name;
use crate::kit::{DropToken, Gate, Guard, Latch, Lifecycle, OpenAtEnd, comes_true, until};
use millpond::executor;
use millpond::pool::ThreadPool;
use millpond::schedule::{ScheduledBuilder, ScheduledPool};
use millpond::time::{Clock, ManualClock};
use std::ops::Deref;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Describes a scheduled pool under test, by this clock: over a pool of its own, of this name and with
/// so many workers. The suites choose policies, decorators and listeners.
pub type Make = fn(String, usize, Clock) -> ScheduledBuilder<ThreadPool>;

/// No delay.
pub const NOW: Duration = Duration::ZERO;

/// A second of the manual clock.
pub const SECOND: Duration = Duration::from_secs(1);

/// Far away.
pub const HOUR: Duration = Duration::from_secs(3600);

/// A scheduled pool under test, and its manual clock. It is sure to end with its test.
#[derive(Debug)]
pub struct Timers {
    /// Moves its clock.
    pub manual: ManualClock,
    guard: Guard<Ending>,
}

/// A scheduled pool as [`Guard`] sees it. Pending tasks would wait for ever when the
/// clock is not advanced any more, so they are not to run after the shutdown.
#[derive(Debug)]
struct Ending(ScheduledPool<ThreadPool>);

impl Lifecycle for Ending {
    fn begin_end(&self) {
        executor::Lifecycle::shutdown(&self.0);
        self.0.set_run_delayed_after_shutdown(false);
        self.0.set_run_series_after_shutdown(false);
    }

    fn force_end(&self) {
        drop(executor::Lifecycle::shutdown_now(&self.0));
    }

    fn await_end(&self, timeout: Duration) -> bool {
        comes_true(timeout, || executor::Lifecycle::is_terminated(&self.0))
    }

    fn is_busy(&self) -> bool {
        self.0.executor().snapshot().active > 0
    }
}

impl Timers {
    /// The scheduled pool that is described, with so many workers.
    pub fn new(
        make: &Make,
        workers: usize,
        shape: impl FnOnce(ScheduledBuilder<ThreadPool>) -> ScheduledBuilder<ThreadPool>,
    ) -> Self {
        let manual = ManualClock::new();
        let timers = shape(make(fresh_name(), workers, manual.clock())).build();
        Timers {
            manual,
            guard: Guard::new(Ending(timers)),
        }
    }

    /// The same without any wishes.
    pub fn plain(make: &Make, workers: usize) -> Self {
        Timers::new(make, workers, |timers| timers)
    }

    /// Another handle to it.
    pub fn share(&self) -> ScheduledPool<ThreadPool> {
        self.guard.0.clone()
    }

    /// The pool below.
    pub fn below(&self) -> &ThreadPool {
        self.guard.0.executor()
    }

    /// How many wait for their time.
    pub fn pending(&self) -> usize {
        self.guard.0.snapshot().pending
    }

    /// A diary by its clock.
    pub fn diary(&self) -> Diary {
        let clock = self.manual.clock();
        Diary {
            start: clock.now(),
            clock,
            pages: Arc::default(),
        }
    }

    /// Waits until nothing runs and nothing waits for a worker.
    #[track_caller]
    pub fn await_rest(&self) {
        until("all that was due has run", || {
            let below = self.below().snapshot();
            below.task_count() == below.completed && self.below_is_idle(below.workers)
        });
    }

    fn below_is_idle(&self, workers: usize) -> bool {
        super::pond::idle(self.below().name()) == workers
    }

    /// Lets so much time pass, and what becomes due run, second by second.
    #[track_caller]
    pub fn pass(&self, seconds: u32) {
        for _ in 0..seconds {
            self.manual.advance(SECOND);
            self.await_rest();
        }
    }

    /// Holds every worker in the middle of a task, until the gate is opened or dropped.
    #[track_caller]
    pub fn hold(&self, workers: usize) -> OpenAtEnd {
        use millpond::executor::ExecutorExt;
        let (gate, started) = (Gate::new(), Latch::new(workers));
        let open = gate.open_at_end();
        for _ in 0..workers {
            let (held, begun) = (gate.clone(), started.clone());
            let body = move || {
                begun.arrive();
                held.wait();
            };
            self.below().execute(body).expect("there is room");
        }
        started.wait();
        open
    }

    /// Waits for the end.
    #[track_caller]
    pub fn await_end(&self) {
        until("it has ended", || {
            executor::Lifecycle::is_terminated(&self.guard.0)
        });
    }
}

impl Deref for Timers {
    type Target = ScheduledPool<ThreadPool>;

    fn deref(&self) -> &ScheduledPool<ThreadPool> {
        &self.guard.0
    }
}

/// The seconds in which runs began, by the manual clock.
#[derive(Clone, Debug)]
pub struct Diary {
    clock: Clock,
    start: Instant,
    pages: Arc<Mutex<Vec<u64>>>,
}

impl Diary {
    /// Notes the second.
    pub fn note(&self) {
        let second = (self.clock.now() - self.start).as_secs();
        self.pages.lock().unwrap().push(second);
    }

    /// All that were noted.
    pub fn seconds(&self) -> Vec<u64> {
        self.pages.lock().unwrap().clone()
    }

    /// A run that does nothing but note.
    pub fn run(&self) -> impl FnMut() + Send + use<> {
        let own = self.clone();
        move || own.note()
    }
}

/// A run that does nothing but keep a token alive.
pub fn keeping(token: DropToken) -> impl FnMut() + Send {
    move || {
        let _ = &token;
    }
}
