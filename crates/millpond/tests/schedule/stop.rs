//! What a stop leaves behind.

use crate::kit::{Bench, HOUR, SECOND, occupy, schedule_on, workers};
use millpond::executor::{
    DirectExecutor, Executor, ExecutorExt, Lifecycle, RejectReason, Rejected, TryExecuteError,
};
use millpond::pool::ThreadPool;
use millpond::schedule::{Every, Overlap, ScheduledPool};
use millpond::task::{CancelReason, Task, TaskError};
use millpond::thread::{Body, JoinHandle, ThreadFactory, Threads};
use millpond::time::{Clock, ManualClock};
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[test]
fn a_pool_that_was_stopped_is_over_whoever_keeps_what_it_handed_back() {
    let bench = Bench::new();
    let task = bench.timers.schedule(HOUR, || 7).unwrap();
    let diary = bench.diary.clone();
    let series = bench
        .timers
        .schedule_at_fixed_rate(HOUR, HOUR, move || diary.note("beat"))
        .unwrap();
    let back = bench.timers.shutdown_now();
    assert_eq!(back.len(), 2);
    assert!(bench.timers.is_terminated());
    bench.timers.await_termination().unwrap();
    assert!(!task.is_finished() && !series.is_finished());
    for task in back {
        task.run();
    }
    assert_eq!((task.join().unwrap(), series.runs()), (7, 1));
    assert!(series.is_cancelled() && bench.timers.is_terminated());
}

#[test]
fn a_pool_that_was_stopped_waits_for_what_runs() {
    let bench = Bench::new();
    let timers = bench.timers.clone();
    let body = move || {
        let back = timers.shutdown_now();
        (back.len(), timers.is_shutdown(), timers.is_terminated())
    };
    let task = bench.timers.schedule(SECOND, body).unwrap();
    let other = bench.timers.schedule(HOUR, || ()).unwrap();
    bench.pass(1);
    assert_eq!(task.join().unwrap(), (1, true, false));
    assert!(bench.timers.is_terminated() && other.is_cancelled());
}

type Meddle = Box<dyn FnOnce() + Send>;

/// Keeps the tasks that it takes, or takes none at once. With the first one it does something else, too.
#[derive(Clone)]
struct Keeper {
    meddles: Arc<Mutex<Option<Meddle>>>,
    kept: Arc<Mutex<Vec<Task>>>,
    takes: bool,
    clock: Clock,
}

impl Keeper {
    fn new(manual: &ManualClock, takes: bool) -> Self {
        Keeper {
            meddles: Arc::default(),
            kept: Arc::default(),
            takes,
            clock: manual.clock(),
        }
    }

    fn meddle(&self, how: impl FnOnce() + Send + 'static) {
        *self.meddles.lock().unwrap() = Some(Box::new(how));
    }
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper").finish_non_exhaustive()
    }
}

impl Executor for Keeper {
    fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        self.kept.lock().unwrap().push(task);
        Ok(())
    }

    fn try_execute_task(&self, task: Task) -> Result<(), TryExecuteError> {
        let not_taken = if self.takes {
            self.kept.lock().unwrap().push(task);
            Ok(())
        } else {
            Err(TryExecuteError::WouldBlock(task))
        };
        let meddles = self.meddles.lock().unwrap().take();
        if let Some(meddle) = meddles {
            meddle();
        }
        not_taken
    }

    fn clock(&self) -> Clock {
        self.clock.clone()
    }
}

#[test]
fn a_task_on_its_way_to_a_shared_executor_is_cancelled_by_a_stop() {
    let manual = ManualClock::new();
    let keeper = Keeper::new(&manual, true);
    let timers = ScheduledPool::on(keeper.clone());
    let timers = timers.on_event(|_| ()).build();
    let own = timers.clone();
    keeper.meddle(move || assert!(own.shutdown_now().is_empty(), "nothing waits any more"));
    let first = timers.schedule(SECOND, || 1).unwrap();
    let second = timers.schedule(SECOND, || 2).unwrap();
    let series = timers
        .schedule_at_fixed_rate(SECOND, SECOND, || ())
        .unwrap();
    manual.advance(SECOND);
    assert_eq!(keeper.kept.lock().unwrap().len(), 1);
    for handle in [first, second] {
        let error = handle.join().unwrap_err();
        assert!(matches!(
            error,
            TaskError::Cancelled(CancelReason::ShutDown)
        ));
    }
    assert!(series.is_cancelled() && timers.is_terminated());
}

/// A pool with one worker, which is occupied until what comes with it is dropped.
fn busy_pool(manual: &ManualClock) -> (ThreadPool, Sender<()>) {
    let pool = workers(manual, 1).build().unwrap();
    let go = occupy(&pool);
    (pool, go)
}

/// With an owned executor as with a shared one.
#[test]
fn due_tasks_that_wait_for_a_worker_are_handed_back_by_a_stop_on_an_owned_and_on_a_shared_executor()
{
    for owns in [true, false] {
        let manual = ManualClock::new();
        let (pool, go) = busy_pool(&manual);
        let timers = schedule_on(&pool, owns).build();
        let task = timers.schedule(SECOND, || 7).unwrap();
        let diary = Arc::new(AtomicU32::new(0));
        let runs = Arc::clone(&diary);
        let series = timers.series(Every::rate(SECOND)).name("beat");
        let series = series.start(move || {
            runs.fetch_add(1, Ordering::SeqCst);
        });
        let series = series.unwrap();
        manual.advance(SECOND);
        assert_eq!((timers.snapshot().pending, pool.snapshot().queued), (0, 2));
        // One of another's, which a stop of the timers is not about.
        let other = (!owns).then(|| pool.submit(|| 8).unwrap());
        let back = timers.shutdown_now();
        assert_eq!(back.len(), 2, "owns: {owns}");
        assert!(!task.is_finished() && !series.is_finished());
        for task in back {
            task.run();
        }
        assert_eq!(task.join().unwrap(), 7);
        assert_eq!(diary.load(Ordering::SeqCst), 1);
        assert!(series.is_cancelled() && timers.snapshot().pending == 0);
        drop(go);
        if let Some(other) = other {
            assert_eq!(other.join().unwrap(), 8);
        }
        timers.await_termination().unwrap();
        pool.close().unwrap();
        let books = pool.snapshot();
        assert_eq!((books.handed_back, books.cancelled), (2, 2), "owns: {owns}");
    }
}

/// A series whose next run is planned before the run before has ended: a run of it waits for a worker, another one for
/// its time.
#[test]
fn a_series_whose_runs_wait_for_a_worker_is_handed_back_as_one_last_run() {
    for (overlap, waiting) in [(Overlap::Skip, 1), (Overlap::Concurrent, 3)] {
        for (owns, runs_it) in [(true, true), (true, false), (false, true), (false, false)] {
            let clock = ManualClock::new();
            let (pool, go) = busy_pool(&clock);
            let timers = schedule_on(&pool, owns).build();
            let runs = Arc::new(AtomicU32::new(0));
            let counted = Arc::clone(&runs);
            let series = timers.series(Every::rate(SECOND)).overlap(overlap);
            let series = series.start_shared(move || {
                counted.fetch_add(1, Ordering::SeqCst);
            });
            let series = series.unwrap();
            for _ in 0..waiting {
                clock.advance(SECOND);
            }
            assert_eq!(pool.snapshot().queued, waiting);
            assert_eq!(timers.snapshot().pending, 1, "the next run is planned");
            let back = timers.shutdown_now();
            let case = format!("{overlap:?}, owns: {owns}, runs it: {runs_it}");
            assert_eq!(back.len(), 1, "{case}");
            assert!(!series.is_finished(), "it is handed back: {case}");
            for task in back {
                if runs_it {
                    task.run();
                }
            }
            assert_eq!(runs.load(Ordering::SeqCst), u32::from(runs_it), "{case}");
            assert!(series.is_cancelled(), "{case}");
            assert_eq!(series.rejected(), 0, "{case}");
            drop(go);
            timers.await_termination().unwrap();
            pool.close().unwrap();
        }
    }
}

/// A run that goes on when the pool is stopped does not take the last run away from the caller that got it back.
#[test]
fn a_last_run_that_was_handed_back_runs_although_the_run_before_it_ends_first() {
    for owns in [true, false] {
        let clock = ManualClock::new();
        let pool = ThreadPool::builder("mill").max(1).clock(clock.clock());
        let pool = pool.build().unwrap();
        let timers = schedule_on(&pool, owns).build();
        let ((begun, begins), (open, gate)) = (channel(), channel::<()>());
        let series = timers.series(Every::rate(SECOND)).overlap(Overlap::Skip);
        let series = series.start(move || {
            begun.send(()).unwrap();
            let _ = gate.recv();
        });
        let series = series.unwrap();
        clock.advance(SECOND);
        begins.recv().unwrap();
        let back = timers.shutdown_now();
        assert_eq!(back.len(), 1, "the run that is planned");
        drop(open);
        timers.await_termination().unwrap();
        assert!(!series.is_finished(), "owns: {owns}");
        for task in back {
            task.run();
        }
        begins.recv().unwrap();
        assert_eq!(series.runs(), 2);
        assert!(series.is_cancelled(), "owns: {owns}");
        pool.close().unwrap();
    }
}

#[test]
fn runs_on_a_shared_executor_are_interrupted_by_a_stop() {
    let manual = ManualClock::new();
    let pool = ThreadPool::builder("shared").core(1).max(1);
    let pool = pool.clock(manual.clock()).build().unwrap();
    let timers = ScheduledPool::on(pool.clone()).build();
    let (tell, told) = channel();
    let runs = move || {
        tell.send(true).unwrap();
        tell.send(millpond::interrupt::sleep(HOUR).is_err())
            .unwrap();
    };
    let task = timers.schedule(Duration::ZERO, runs).unwrap();
    assert!(told.recv().unwrap());
    assert!(timers.shutdown_now().is_empty());
    assert!(told.recv().unwrap(), "it was interrupted");
    task.join().unwrap();
    timers.await_termination().unwrap();
    pool.close().unwrap();
}

/// Starts nothing.
#[derive(Debug)]
struct Exhausted;

impl ThreadFactory for Exhausted {
    fn start(&self, _: Body) -> std::io::Result<JoinHandle<()>> {
        Err(std::io::ErrorKind::WouldBlock.into())
    }
}

#[test]
fn what_is_left_of_tasks_that_were_cancelled_on_their_way_goes_with_the_pool() {
    let manual = ManualClock::new();
    let timers = ScheduledPool::on(DirectExecutor::new())
        .clock(manual.clock())
        .dispatcher_threads(Exhausted)
        .build();
    let task = timers.schedule(SECOND, || ()).unwrap();
    manual.advance(SECOND);
    assert_eq!(timers.snapshot().pending, 1, "nobody brings it");
    assert!(task.cancel());
    timers.shutdown();
    assert!(timers.is_terminated());
    assert_eq!((timers.snapshot().pending, manual.sleepers()), (0, 0));
}

#[test]
fn a_pool_that_ends_while_somebody_brings_a_task_is_left_with_nothing() {
    let manual = ManualClock::new();
    let keeper = Keeper::new(&manual, false);
    let timers = ScheduledPool::on(keeper.clone())
        .dispatcher_threads(Exhausted)
        .build();
    let task = timers.schedule(SECOND, || ()).unwrap();
    let own = timers.clone();
    keeper.meddle(move || {
        assert!(task.cancel());
        own.shutdown();
        assert!(own.is_terminated());
    });
    manual.advance(SECOND);
    assert_eq!((timers.snapshot().pending, manual.sleepers()), (0, 0));
}

/// Panics a few times before it starts a thread.
#[derive(Debug)]
struct Moody(AtomicU32);

impl ThreadFactory for Moody {
    fn start(&self, body: Body) -> std::io::Result<JoinHandle<()>> {
        let asked = self.0.fetch_add(1, Ordering::Relaxed);
        assert!(asked >= 3, "the factory is moody");
        Threads::named("moody").start(body)
    }
}

#[test]
fn a_timer_whose_factory_panics_costs_no_task() {
    let clock = Clock::system().with_timer(Moody(AtomicU32::new(0)));
    let pool = millpond::pool::ThreadPool::builder("moody").core(1).max(1);
    let pool = pool.clock(clock).build().unwrap();
    let timers = ScheduledPool::owning(pool).build();
    let mut grind: Box<dyn FnOnce() -> u32 + Send> = Box::new(|| 7);
    // A task that no thread could wait for comes back, and can be scheduled again.
    let task = loop {
        match timers.schedule(Duration::from_millis(2), grind) {
            Ok(task) => break task,
            Err(rejected) => {
                assert!(matches!(rejected.reason, RejectReason::SpawnFailed(_)));
                grind = rejected.task;
            }
        }
    };
    assert_eq!(task.join().unwrap(), 7);
    timers.close().unwrap();
}
