//! What the models of scheduled pools share: pools by a clock that a model moves, tasks with a page in
//! the books, and what must hold when nothing moves any more.
#![allow(
    clippy::disallowed_types,
    reason = "what the models count is std's, so that the checker does not branch on it"
)]

use crate::shuttle_drive;
use crate::shuttle_kit::{Books, pool};
use millpond::executor::{Executor, Lifecycle, Rejected, TryExecuteError};
use millpond::pool::{Queue, ThreadPool};
use millpond::schedule::{Scheduled, ScheduledBuilder, ScheduledPool};
use millpond::task::{Task, TaskSpec};
use millpond::time::{Clock, Deadline, ManualClock};
use millpond_raw::sync::thread::{self, JoinHandle, spawn};
use shuttle::rand::Rng;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// Runs the scenario under 150 schedules for each depth.
pub(crate) fn pct(scenario: fn()) {
    shuttle_drive::pct(150, scenario);
}

/// Runs due tasks in the submitting thread: the one that advances the clock, or one that schedules. So
/// a model has no threads but its own, and when these rest, nothing moves.
#[derive(Debug)]
pub(crate) struct InPlace(Clock);

impl Executor for InPlace {
    fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        let _ = task.run();
        Ok(())
    }

    fn try_execute_task(&self, task: Task) -> Result<(), TryExecuteError> {
        self.execute_task(task).map_err(TryExecuteError::Rejected)
    }

    fn clock(&self) -> Clock {
        self.0.clone()
    }
}

pub(crate) fn in_place() -> (ScheduledBuilder<InPlace>, ManualClock) {
    let hand = ManualClock::new();
    (ScheduledPool::on(InPlace(hand.clock())), hand)
}

/// On so many workers, which end with the pool; every second time with leaders.
pub(crate) fn on_workers(workers: usize) -> (ScheduledBuilder<ThreadPool>, ManualClock) {
    let (builder, hand) = on_called_workers(workers);
    (
        builder.worker_timers(shuttle::rand::thread_rng().r#gen()),
        hand,
    )
}

/// The same without leaders: due tasks are with the executor when the clock has been advanced.
pub(crate) fn on_called_workers(workers: usize) -> (ScheduledBuilder<ThreadPool>, ManualClock) {
    let (builder, hand) = pool(workers, workers, Queue::bounded(8));
    (ScheduledPool::owning(builder.build().unwrap()), hand)
}

/// The same with leaders.
pub(crate) fn on_leaders(workers: usize) -> (ScheduledBuilder<ThreadPool>, ManualClock) {
    let (builder, hand) = on_called_workers(workers);
    (builder.worker_timers(true), hand)
}

/// The number of a task, and its handle if it was taken.
pub(crate) type Held = (usize, Option<Scheduled<()>>);

/// Schedules task `number`, which does this.
pub(crate) fn schedule<E: Executor + 'static>(
    books: &Books,
    timers: &ScheduledPool<E>,
    number: usize,
    delay: Duration,
    body: impl FnOnce() + Send + 'static,
) -> Held {
    let spec = TaskSpec::new().name(number.to_string());
    let due = timers.clock().deadline(delay);
    let (handle, brought) = match timers.schedule_with(spec, due, books.closure(number, body)) {
        Ok(handle) => (Some(handle), Ok(())),
        Err(rejected) => (None, Err(rejected)),
    };
    books.note(number, &brought);
    (number, handle)
}

/// Waits for what becomes of tasks.
pub(crate) fn hear(books: &Books, held: impl IntoIterator<Item = Held>) {
    for (number, handle) in held {
        if let Some(handle) = handle {
            books.heard(number, handle.join());
        }
    }
}

/// Notes the tasks that a stop returned, and drops them; tasks without a name are not in the books.
pub(crate) fn handed_back(books: &Books, tasks: Vec<Task>) {
    let noted = tasks.into_iter().filter(|task| task.name().is_some());
    books.handed_back(noted.collect());
}

/// No thread moves: a task that has not been run is not yet due.
pub(crate) fn at_rest(held: &[Held], hand: &ManualClock) {
    let now = Deadline::at(hand.clock().now());
    for (number, handle) in held {
        if let Some(handle) = handle.as_ref().filter(|handle| !handle.is_finished()) {
            let due = handle.next_run();
            assert!(due > now, "task {number} was due and is forgotten");
        }
    }
}

/// Advances the clock, second by second.
pub(crate) fn mover(hand: &ManualClock, seconds: u32) -> JoinHandle<()> {
    let hand = hand.clone();
    spawn(move || (0..seconds).for_each(|_| hand.advance(SECOND)))
}

/// Advances the clock until the condition holds.
pub(crate) fn move_until(hand: &ManualClock, is_over: impl Fn() -> bool) {
    while !is_over() {
        hand.advance(SECOND);
        thread::yield_now();
    }
}

/// The pool, which has been shut down, terminates and leaves nothing behind: no entry, and no alarm.
pub(crate) fn ends<E: Executor + 'static>(timers: &ScheduledPool<E>, hand: &ManualClock) {
    timers.await_termination().unwrap();
    assert!(timers.is_terminated());
    let last = timers.snapshot();
    assert_eq!((last.pending, last.series), (0, 0), "{last:?}");
    assert_eq!(hand.sleepers(), 0, "an alarm is left behind: {last:?}");
}

/// The calls of a series' closure, and its drop.
#[derive(Default)]
pub(crate) struct CallLog {
    calls: AtomicUsize,
    inside: AtomicUsize,
    drops: AtomicUsize,
}

/// Inside the closure, and gone with it.
pub(crate) struct CallRecorder(Arc<CallLog>);

impl CallRecorder {
    /// Writes a call down, around what the closure does.
    pub(crate) fn call(&self, body: impl FnOnce()) {
        let log = &self.0;
        assert_eq!(log.drops.load(Ordering::SeqCst), 0, "called when gone");
        let before = log.inside.fetch_add(1, Ordering::SeqCst);
        assert_eq!(before, 0, "two are inside");
        log.calls.fetch_add(1, Ordering::SeqCst);
        body();
        log.inside.fetch_sub(1, Ordering::SeqCst);
    }

    pub(crate) fn calls(&self) -> usize {
        self.0.calls()
    }
}

impl Drop for CallRecorder {
    fn drop(&mut self) {
        self.0.drops.fetch_add(1, Ordering::SeqCst);
    }
}

impl CallLog {
    pub(crate) fn new() -> (Arc<Self>, CallRecorder) {
        let log = Arc::new(CallLog::default());
        let recorder = CallRecorder(Arc::clone(&log));
        (log, recorder)
    }

    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    /// The series has ended and no call is under way: its closure is gone.
    pub(crate) fn assert_closed(&self) {
        assert_eq!(self.inside.load(Ordering::SeqCst), 0);
        assert_eq!(self.drops.load(Ordering::SeqCst), 1);
    }
}
