//! The books of a scheduled pool: what was submitted is completed, cancelled or pending.
//!
//! After every step of a random program:
//!
//! ```text
//!   submitted >= completed + cancelled,   completed >= failed,   submitted has not fallen
//! ```
//!
//! and at rest, when the executor has nothing of the pool's and what was handed back has been run or dropped:
//!
//! ```text
//!   submitted = completed + cancelled + pending
//!   completed, failed = bodies that have ended, bodies that have panicked or returned an error
//!   rejected, executed = calls that returned an error, calls of `submit` that returned a handle
//! ```

use crate::kit::{HOUR, SECOND, workers};
use crate::proptest_kit::ask;
use millpond::executor::{
    Executor, ExecutorExt, Lifecycle, RejectReason, Rejected, TerminationError, TryExecuteError,
};
use millpond::manage::Managed;
use millpond::pool::{Queue, RejectionPolicy, ThreadPool};
use millpond::schedule::{Backoff, Every, OnFailure, Overlap, ScheduleSnapshot, ScheduledPool};
use millpond::task::{CancelReason, Task, TaskSpec};
use millpond::time::{Clock, Deadline, ManualClock};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Keeps a few tasks until the test runs them, and rejects more.
#[derive(Clone, Debug)]
struct Shelf {
    tasks: Arc<Mutex<VecDeque<Task>>>,
    is_shut_down: Arc<Mutex<bool>>,
    clock: Clock,
}

/// How many tasks a shelf keeps.
const ROOM: usize = 3;

impl Shelf {
    fn new(clock: &ManualClock) -> Self {
        Shelf {
            tasks: Arc::default(),
            is_shut_down: Arc::default(),
            clock: clock.clock(),
        }
    }

    /// Runs the first task. Returns false if there is none.
    fn run_one(&self) -> bool {
        let first = self.tasks.lock().unwrap().pop_front();
        first.map(|task| drop(task.run())).is_some()
    }
}

impl Executor for Shelf {
    fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        if *self.is_shut_down.lock().unwrap() {
            return Err(Rejected::new(task, RejectReason::ShutDown));
        }
        let mut tasks = self.tasks.lock().unwrap();
        if tasks.len() == ROOM {
            drop(tasks);
            return Err(Rejected::new(task, RejectReason::Interrupted));
        }
        tasks.push_back(task);
        Ok(())
    }

    fn try_execute_task(&self, task: Task) -> Result<(), TryExecuteError> {
        self.execute_task(task).map_err(TryExecuteError::Rejected)
    }

    fn clock(&self) -> Clock {
        self.clock.clone()
    }
}

impl Lifecycle for Shelf {
    fn shutdown(&self) {
        *self.is_shut_down.lock().unwrap() = true;
    }

    fn shutdown_now(&self) -> Vec<Task> {
        self.shutdown();
        self.tasks.lock().unwrap().drain(..).collect()
    }

    fn is_shutdown(&self) -> bool {
        *self.is_shut_down.lock().unwrap()
    }

    fn is_terminated(&self) -> bool {
        self.is_shutdown() && self.tasks.lock().unwrap().is_empty()
    }

    fn await_termination_until(&self, _: Deadline) -> Result<bool, TerminationError> {
        Ok(self.is_terminated())
    }

    fn await_termination_timeout(&self, _: Duration) -> Result<bool, TerminationError> {
        Ok(self.is_terminated())
    }
}

/// What the bodies of a program have done.
#[derive(Clone, Debug, Default)]
struct Bodies {
    ended: Arc<AtomicU64>,
    failed: Arc<AtomicU64>,
}

/// How a body ends.
#[derive(Clone, Copy, Debug)]
enum Ends {
    Well,
    /// With an error; a task that runs once cannot.
    WithError,
    ByPanic,
    /// Ends its series; a task that runs once ends well.
    WithBreak,
}

impl Bodies {
    /// The body of a task that runs once.
    fn once(&self, ends: Ends) -> impl FnOnce() + Send + 'static {
        let bodies = self.clone();
        move || {
            bodies.ended.fetch_add(1, Ordering::SeqCst);
            if matches!(ends, Ends::ByPanic) {
                bodies.failed.fetch_add(1, Ordering::SeqCst);
                resume_unwind(Box::new("a body panics"));
            }
        }
    }

    /// The body of a series; every other run ends well.
    fn run(
        &self,
        ends: Ends,
    ) -> impl Fn() -> Result<ControlFlow<()>, String> + Send + Sync + 'static {
        let (bodies, runs) = (self.clone(), AtomicU64::new(0));
        move || {
            bodies.ended.fetch_add(1, Ordering::SeqCst);
            if runs.fetch_add(1, Ordering::SeqCst) % 2 == 0 {
                return Ok(ControlFlow::Continue(()));
            }
            match ends {
                Ends::Well => Ok(ControlFlow::Continue(())),
                Ends::WithBreak => Ok(ControlFlow::Break(())),
                Ends::WithError => {
                    bodies.failed.fetch_add(1, Ordering::SeqCst);
                    Err("no water".to_owned())
                }
                Ends::ByPanic => {
                    bodies.failed.fetch_add(1, Ordering::SeqCst);
                    resume_unwind(Box::new("a run panics"))
                }
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Once {
        delay: u32,
        ends: Ends,
    },
    Series {
        is_rate: bool,
        period: u32,
        overlap: Overlap,
        ends: Ends,
        on_failure: OnFailure,
    },
    Cancel(usize),
    Interrupt(usize),
    Submit(Ends),
    Advance(u32),
    /// The executor runs so many tasks.
    RunBelow(usize),
    Shutdown,
    /// Runs what it hands back, or drops it.
    ShutdownNow {
        runs: bool,
    },
}

fn ends() -> impl Strategy<Value = Ends> {
    prop_oneof![
        3 => Just(Ends::Well),
        1 => Just(Ends::WithError),
        1 => Just(Ends::ByPanic),
        1 => Just(Ends::WithBreak),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let overlap = prop_oneof![
        Just(Overlap::Queue),
        Just(Overlap::Skip),
        Just(Overlap::Concurrent)
    ];
    let retry = OnFailure::Retry(Backoff::starting_at(SECOND).tries(2));
    let on_failure = prop_oneof![
        Just(OnFailure::Stop),
        Just(OnFailure::Continue),
        Just(retry)
    ];
    let series = (any::<bool>(), 0..4_u32, overlap, ends(), on_failure);
    let series = series.prop_map(
        |(is_rate, period, overlap, ends, on_failure)| Step::Series {
            is_rate,
            period,
            overlap,
            ends,
            on_failure,
        },
    );
    prop_oneof![
        6 => (0..5_u32, ends()).prop_map(|(delay, ends)| Step::Once { delay, ends }),
        4 => series,
        3 => any::<usize>().prop_map(Step::Cancel),
        2 => any::<usize>().prop_map(Step::Interrupt),
        2 => ends().prop_map(Step::Submit),
        8 => (0..4_u32).prop_map(Step::Advance),
        5 => (0..3_usize).prop_map(Step::RunBelow),
        1 => Just(Step::Shutdown),
        1 => any::<bool>().prop_map(|runs| Step::ShutdownNow { runs }),
    ]
}

#[derive(Clone, Copy, Debug)]
struct Settings {
    owns: bool,
    run_delayed_after_shutdown: bool,
    run_series_after_shutdown: bool,
    has_decorator: bool,
}

fn settings() -> impl Strategy<Value = Settings> {
    let all = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    all.prop_map(|(owns, delayed, series, has_decorator)| Settings {
        owns,
        run_delayed_after_shutdown: delayed,
        run_series_after_shutdown: series,
        has_decorator,
    })
}

/// A pool, its executor, and what the program has seen of it.
struct Program {
    clock: ManualClock,
    shelf: Shelf,
    timers: ScheduledPool<Shelf>,
    bodies: Bodies,
    tasks: Vec<millpond::schedule::Scheduled<()>>,
    /// The bodies of tasks that went straight to the executor: they are in its books.
    submitted: Bodies,
    rejected: u64,
    executed: u64,
    last: u64,
}

impl Program {
    fn new(settings: Settings) -> Self {
        let clock = ManualClock::new();
        let shelf = Shelf::new(&clock);
        let timers = if settings.owns {
            ScheduledPool::owning(shelf.clone())
        } else {
            ScheduledPool::on(shelf.clone())
        };
        let timers = timers
            .max_pending(6)
            .on_event(|_| ())
            .run_delayed_after_shutdown(settings.run_delayed_after_shutdown)
            .run_series_after_shutdown(settings.run_series_after_shutdown);
        let timers = if settings.has_decorator {
            timers.decorator(|_, run| run())
        } else {
            timers
        };
        Program {
            clock,
            shelf,
            timers: timers.build(),
            bodies: Bodies::default(),
            tasks: Vec::new(),
            submitted: Bodies::default(),
            rejected: 0,
            executed: 0,
            last: 0,
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Once { delay, ends } => {
                let task = self.timers.schedule(delay * SECOND, self.bodies.once(ends));
                match task {
                    Ok(task) => self.tasks.push(task),
                    Err(_) => self.rejected += 1,
                }
            }
            Step::Series {
                is_rate,
                period,
                overlap,
                ends,
                on_failure,
            } => {
                // A period of 0 is rejected.
                let every = if is_rate {
                    Every::rate(period * SECOND)
                } else {
                    Every::delay(period * SECOND)
                };
                let series = self.timers.series(every).overlap(overlap);
                let series = series.on_failure(on_failure);
                match series.start_shared(self.bodies.run(ends)) {
                    Ok(series) => self.tasks.push(series),
                    Err(_) => self.rejected += 1,
                }
            }
            Step::Cancel(which) if !self.tasks.is_empty() => {
                self.tasks[which % self.tasks.len()].cancel();
            }
            Step::Interrupt(which) if !self.tasks.is_empty() => {
                self.tasks[which % self.tasks.len()].interrupt();
            }
            Step::Cancel(_) | Step::Interrupt(_) => {}
            Step::Submit(ends) => match self.timers.submit(self.submitted.once(ends)) {
                Ok(_handle) => self.executed += 1,
                Err(_) => self.rejected += 1,
            },
            Step::Advance(seconds) => self.clock.advance(seconds * SECOND),
            Step::RunBelow(tasks) => {
                for _ in 0..tasks {
                    self.shelf.run_one();
                }
            }
            Step::Shutdown => self.timers.shutdown(),
            Step::ShutdownNow { runs } => {
                for task in self.timers.shutdown_now() {
                    if runs {
                        drop(task.run());
                    } else {
                        drop(task);
                    }
                }
            }
        }
    }

    /// What holds always.
    fn check(&mut self) -> ScheduleSnapshot {
        let now = self.timers.snapshot();
        assert!(now.submitted >= self.last, "submitted falls: {now:?}");
        self.last = now.submitted;
        assert!(now.submitted >= now.completed + now.cancelled, "{now:?}");
        assert!(now.completed >= now.failed, "{now:?}");
        assert!(now.cancelled >= now.rejected_when_due, "{now:?}");
        now
    }

    /// What holds at rest.
    fn check_at_rest(&mut self) {
        while self.shelf.run_one() {
            self.check();
        }
        let now = self.check();
        let over = now.completed + now.cancelled;
        assert_eq!(now.submitted, over + now.pending as u64, "{now:?}");
        let counted = |bodies: &AtomicU64| bodies.load(Ordering::SeqCst);
        assert_eq!(now.completed, counted(&self.bodies.ended), "{now:?}");
        assert_eq!(now.failed, counted(&self.bodies.failed), "{now:?}");
        assert_eq!(
            (now.rejected, now.executed),
            (self.rejected, self.executed),
            "{now:?}"
        );
        let engine = self.timers.engine_snapshot();
        assert_eq!(
            (engine.submitted, engine.completed, engine.failed),
            (now.submitted, now.completed, now.failed)
        );
        assert_eq!(
            (engine.rejected, engine.cancelled, engine.queued),
            (now.rejected, now.cancelled, now.pending)
        );
    }
}

#[test]
fn the_books_balance_at_rest_whatever_a_program_does() {
    let program = (
        settings(),
        prop::collection::vec((step(), any::<bool>()), 0..60),
    );
    ask(400, &program, |(settings, steps)| {
        let mut program = Program::new(settings);
        for (step, rests) in steps {
            program.take(step);
            program.check();
            if rests {
                program.check_at_rest();
            }
        }
        program.check_at_rest();
        drop(program.timers.shutdown_now());
        program.check_at_rest();
        assert_eq!(program.timers.snapshot().pending, 0);
    });
}

/// A pool of one worker that the test holds, below a scheduled pool.
fn on_one_worker() -> (ManualClock, ThreadPool, ScheduledPool<ThreadPool>) {
    let clock = ManualClock::new();
    let pool = workers(&clock, 1).queue(Queue::bounded(4));
    let pool = pool.rejection(RejectionPolicy::Abort).build().unwrap();
    let timers = ScheduledPool::owning(pool.clone()).on_event(|_| ()).build();
    (clock, pool, timers)
}

#[test]
fn a_due_task_that_waits_for_a_worker_stays_submitted_and_is_completed_when_its_body_ends() {
    let (clock, _pool, timers) = on_one_worker();
    let ((begun, begins), (open, gate)) = (channel(), channel::<()>());
    let held = timers.schedule(SECOND, move || {
        begun.send(()).unwrap();
        let _ = gate.recv();
    });
    let (held, waits) = (held.unwrap(), timers.schedule(2 * SECOND, || ()).unwrap());
    let counts = || {
        let now = timers.engine_snapshot();
        (now.submitted, now.queued, now.completed)
    };
    assert_eq!(counts(), (2, 2, 0));
    clock.advance(SECOND);
    begins.recv().unwrap();
    assert_eq!(counts(), (2, 1, 0), "a body that runs is not completed");
    clock.advance(SECOND);
    assert_eq!(counts(), (2, 1, 0), "one waits in the pool below");
    drop(open);
    held.join().unwrap();
    waits.join().unwrap();
    assert_eq!(counts(), (2, 0, 2));
    timers.close().unwrap();
}

#[test]
fn a_task_that_panics_and_a_run_that_fails_are_failed() {
    for owns in [true, false] {
        let clock = ManualClock::new();
        let shelf = Shelf::new(&clock);
        let timers = if owns {
            ScheduledPool::owning(shelf.clone())
        } else {
            ScheduledPool::on(shelf.clone())
        };
        let timers = timers.on_event(|_| ()).build();
        let task = timers.schedule(SECOND, || -> () { resume_unwind(Box::new("dry")) });
        let series = timers.schedule_at_fixed_rate(SECOND, SECOND, || Err::<(), _>("dry"));
        let (task, series) = (task.unwrap(), series.unwrap());
        clock.advance(SECOND);
        while shelf.run_one() {}
        assert!(task.join().unwrap_err().is_panicked());
        assert!(series.join().unwrap_err().is_failed());
        let now = timers.engine_snapshot();
        assert_eq!((now.submitted, now.completed, now.failed), (2, 2, 2));
    }
}

#[test]
fn what_is_executed_at_once_is_counted_and_so_is_what_is_rejected() {
    let (clock, pool, timers) = on_one_worker();
    let ((begun, begins), (open, gate)) = (channel(), channel::<()>());
    let held = timers.submit(move || {
        begun.send(()).unwrap();
        let _ = gate.recv();
    });
    begins.recv().unwrap();
    for _ in 0..4 {
        timers.execute(|| ()).unwrap();
    }
    assert!(timers.execute(|| ()).is_err(), "the queue below is full");
    let task = timers.schedule(SECOND, || ()).unwrap();
    clock.advance(SECOND);
    let error = task.join().unwrap_err();
    assert!(error.is_cancelled(), "the executor rejected it: {error}");
    drop(open);
    held.unwrap().join().unwrap();
    timers.shutdown();
    assert!(timers.schedule(HOUR, || ()).is_err());
    assert!(timers.schedule_at_fixed_rate(HOUR, HOUR, || ()).is_err());
    assert!(timers.submit(|| ()).is_err());
    timers.await_termination().unwrap();
    let now = timers.snapshot();
    assert_eq!((now.executed, now.rejected), (5, 4));
    assert_eq!(
        (now.submitted, now.cancelled, now.rejected_when_due),
        (1, 1, 1),
        "what is executed at once is in the books of the pool below"
    );
    assert_eq!(pool.snapshot().completed, 5);
}

/// A task that was cancelled after it was handed over has left the queue, and never runs.
#[test]
fn a_task_that_is_cancelled_on_a_shelf_of_the_executor_is_cancelled_in_the_books() {
    let clock = ManualClock::new();
    let shelf = Shelf::new(&clock);
    let timers = ScheduledPool::on(shelf.clone()).build();
    let spec = TaskSpec::new().name("bread");
    let due = clock.clock().deadline(SECOND);
    let task = timers.schedule_with(spec, due, || ()).unwrap();
    clock.advance(SECOND);
    assert!(task.cancel());
    let now = timers.snapshot();
    assert_eq!((now.submitted, now.completed, now.cancelled), (1, 0, 1));
    let dropped = timers.schedule(Duration::ZERO, || ()).unwrap();
    let on_shelf = shelf.tasks.lock().unwrap().pop_back();
    on_shelf.unwrap().cancel(CancelReason::Discarded);
    assert!(dropped.join().unwrap_err().is_cancelled());
    assert_eq!(timers.snapshot().cancelled, 2);
}
