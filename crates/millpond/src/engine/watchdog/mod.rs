//! The watchdog: looks at an engine now and then while it works, and sees what its own threads cannot.
//!
//! - A task that runs too long ([`RunWarning`]) is reported while it runs, once, and interrupted if asked for.
//! - Tasks that wait while workers are idle, for longer than any wake-up takes, would mean that a wake-up was lost. The
//!   workers are woken, and it is counted and reported. Nothing in an engine relies on that.
//!
//! It sees an engine through one trait, [`Supervised`].
//!
//! | file | what |
//! |---|---|
//! | `supervised` | an engine and its workers, as the watchdog sees them; looking into an engine |
//! | `limits` | limits on the run time of tasks |
//! | `interrupt` | interrupting the very task that runs too long |
//!
//! # When it looks
//!
//! The watchdog is an alarm of the engine's clock that is set again each time it rings. The first task arms it, and it is
//! disarmed when the engine has been idle for a while; so nothing looks at an idle engine. Whether it is armed is a flag
//! beside what every submit reads anyway.
//!
//! It rings when the first of the running tasks exceeds its limit; every second; and, because a task that starts after the
//! look must be seen, too, as often as the shortest limit. Each look walks the workers.
//!
//! It also tries again to start a worker that was refused a thread, if work waits for it: no other worker may ever come to
//! that work, and no submit may follow that would try.
//!
//! By a manual clock there is a watchdog only if there is a limit: a clock that stands still cannot tell what takes too
//! long. Models have no other clock, and the same watchdog, if the engine is built with a limit.
//!
//! # Invariants
//!
//! - **WATCHDOG-1** A task that comes while the watchdog is disarmed arms it. A task is on its way, and neither waits nor
//!   runs, between the submit's look at the flag and its place in the queue, or between that and its worker's first step;
//!   and the system may stop a thread there for long. So an engine is idle only if all its workers *rest*: from when one
//!   finds nothing to do to when it has a task. A worker that ends its rest, or begins with a task, looks at the flag,
//!   too. The flag is lowered at the second look in a row that finds the engine idle; at the third, if no thread has raised it
//!   and all still rest, no alarm is set. A submitter that had not seen the flag lowered is seen by then.
//! - **WATCHDOG-2** The task that is found to run too long is the one that is reported and interrupted: its number is
//!   compared ([`InterruptTarget`], METRICS-2). It is reported once, and interrupted at that look or, if its body has not
//!   begun by then, at a later one.
//! - **WATCHDOG-3** No user code on the timer's thread, where the alarm rings: with a user's queue the look is left to
//!   another thread ([`run_off_timer`]), and so is the destructor of the engine, if the watchdog is the last to have it.
//! - **WATCHDOG-4** A look that panics, as a user's queue may, is followed by others all the same.
//! - **WATCHDOG-5** Where the timer gets no thread there is no watchdog, until a later task tries again, after
//!   [`REFUSAL_PAUSE`]; it is counted. An engine with a limit holds the timer's thread from its first alarm until it ends
//!   ([`TimerHold`]), so that a limit that was watched is not lost later.

mod interrupt;
mod limits;
mod supervised;

pub use limits::RunWarning;

pub(crate) use interrupt::InterruptTarget;
pub(crate) use limits::{Limits, SHORTEST as SHORTEST_LIMIT};
pub(crate) use supervised::{Supervised, SupervisedPart, SupervisedWorker};

use super::long_run;
use super::metrics::{Counter, Label, RunningTask};
use super::workers::Worker;
use crate::time::{
    Alarm, NoTimerThread, Owner, TimerHold, TimestampClock, Work, drop_off_timer, run_off_timer,
};
use millpond_raw::catch_panic;
use millpond_raw::sync::Mutex;
use millpond_raw::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use millpond_raw::timestamp::Timestamp;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};
use std::time::Duration;

/// The time between two looks for lost wake-ups.
const INTERVAL: Duration = Duration::from_secs(1);

/// How long nothing must move before it is a lost wake-up, however short the limits are, and the pauses between looks with
/// them: on a busy machine a woken worker may wait that long for a CPU. A little less than the interval, because looks
/// follow another clock than the one that measures it.
const STUCK: Duration = Duration::from_millis(990);

/// The pause after the timer's thread could not be started, in nanoseconds: otherwise every task would try (WATCHDOG-5).
const REFUSAL_PAUSE: u64 = 100_000_000;

/// The watchdog of an engine.
pub(crate) struct Watchdog {
    limits: Mutex<Limits>,
    /// False in models without a limit, which then have fewer steps.
    is_enabled: bool,
    /// The tick at which the timer got no thread; 0 if that never happened.
    refused_at: AtomicU64,
    interrupts: AtomicBool,
    state: Mutex<State>,
    pub(crate) lost_wakeups: Counter,
    pub(crate) long_runs: Counter,
    pub(crate) deadlocks: Counter,
}

#[derive(Default)]
struct State {
    alarm: Option<Alarm>,
    /// Keeps the timer's thread, if there is a limit.
    hold: Option<TimerHold>,
    /// The engine has ended: nothing is held any more.
    is_over: bool,
    /// Counts alarms, so that one that was set meanwhile is not replaced by an older one.
    alarms: u64,
    /// The number of the task that was reported last, by worker (WATCHDOG-2).
    reported: HashMap<u64, u64>,
    /// The number of tasks taken, when tasks waited while workers were idle, and when that was first seen or last reported.
    stuck: Option<(u64, Timestamp)>,
    /// When the last lost wake-up was found.
    lost_wakeup_at: Option<Timestamp>,
    /// The number of looks in a row that found the engine idle.
    idle_looks: u64,
}

/// A task that has exceeded its limit.
pub(crate) struct Overrun {
    pub(crate) running: RunningTask,
    pub(crate) label: Label,
    pub(crate) running_for: Duration,
    pub(crate) limit: Duration,
    pub(crate) is_interrupted: bool,
    /// When it was found.
    pub(crate) now: Timestamp,
}

impl Watchdog {
    pub(crate) fn new(limits: Limits) -> Self {
        Watchdog {
            interrupts: AtomicBool::new(limits.any_interrupts()),
            is_enabled: !cfg!(any(millpond_loom, millpond_shuttle)) || limits.shortest().is_some(),
            limits: Mutex::new(limits),
            refused_at: AtomicU64::new(0),
            state: Mutex::new(State::default()),
            lost_wakeups: Counter::default(),
            long_runs: Counter::default(),
            deadlocks: Counter::default(),
        }
    }

    /// True if there is one at all.
    #[inline]
    pub(crate) fn is_enabled(&self) -> bool {
        self.is_enabled
    }

    /// True if tasks must run under an [`InterruptTarget`].
    #[inline]
    pub(crate) fn interrupts(&self) -> bool {
        self.interrupts.load(Ordering::Relaxed)
    }

    /// The engine has ended: lets the timer's thread go.
    pub(crate) fn release_timer(&self) {
        let hold = {
            let mut state = self.state.lock();
            state.is_over = true;
            state.hold.take()
        };
        drop(hold);
    }

    /// Writes the limits; [`Supervised::heed_limits`] is to follow.
    pub(crate) fn write_limits(&self, change: impl FnOnce(&mut Limits)) {
        let mut limits = self.limits.lock();
        change(&mut limits);
        let interrupts = limits.any_interrupts();
        self.interrupts.store(interrupts, Ordering::Relaxed);
    }

    /// The limit of tasks that have none of their own.
    pub(crate) fn limit_of_all(&self) -> Option<RunWarning> {
        self.limits.lock().of_all
    }

    fn has_limits(&self) -> bool {
        self.limits.lock().shortest().is_some()
    }

    /// True if it is too early to ask for the timer's thread again.
    fn was_just_refused(&self, timestamps: &TimestampClock) -> bool {
        match self.refused_at.load(Ordering::Relaxed) {
            0 => false,
            at => {
                let (at, now) = (Timestamp::from_count(at), timestamps.now());
                // A counter may have gone back.
                now >= at && timestamps.nanos(at, now) < REFUSAL_PAUSE
            }
        }
    }
}

/// Rings when the watchdog is to look.
struct Bell<E>(Weak<E>);

impl<E: Supervised> Wake for Bell<E> {
    fn wake(self: Arc<Self>) {
        let Some(engine) = self.0.upgrade() else {
            return;
        };
        // WATCHDOG-3
        if engine.has_foreign_queue() {
            run_off_timer(Owner::of(&*engine, Work::Inspect), move || look(&engine));
        } else {
            look(&engine);
            drop_off_timer(Owner::of(&*engine, Work::Drop), engine);
        }
    }
}

#[cold]
fn needs_watchdog<E: Supervised>(engine: &E) -> bool {
    let watchdog = engine.watchdog();
    // A manual clock may stand still for ever: nothing can be told from a wait by it.
    watchdog.is_enabled && (!engine.timestamps().stands_still() || watchdog.has_limits())
}

/// Sets the alarm.
fn look_after<E: Supervised>(engine: &Arc<E>, pause: Duration) {
    let watchdog = engine.watchdog();
    let number = {
        let mut state = watchdog.state.lock();
        state.alarms += 1;
        state.alarms
    };
    let clock = engine.clock();
    // At least a nanosecond, or a manual clock that stands still rings for ever.
    let deadline = clock.deadline(pause.max(Duration::from_nanos(1)));
    let bell = Waker::from(Arc::new(Bell(Arc::downgrade(engine))));
    // Before the alarm, which would not wait for the answer to a request of its own.
    hold_timer(&**engine);
    // It may ring before this returns, and set the next one.
    let alarm = clock.alarm(deadline, &bell);
    let alarm = alarm.unwrap_or_else(|no_thread| timer_unavailable(&**engine, no_thread));
    let mut state = watchdog.state.lock();
    let former = if state.alarms == number {
        state.alarm.replace(alarm)
    } else {
        Some(alarm)
    };
    drop(state);
    drop(former);
}

/// Keeps the timer's thread, if the engine has a limit and the thread can be had (WATCHDOG-5).
fn hold_timer<E: Supervised>(engine: &E) {
    let watchdog = engine.watchdog();
    let wants_it = |state: &State| state.hold.is_none() && !state.is_over;
    if !watchdog.has_limits() || !wants_it(&watchdog.state.lock()) {
        return;
    }
    let mut hold = engine.clock().hold_timer().ok();
    let mut state = watchdog.state.lock();
    // The limits again: one may have been removed meanwhile, and the thread that removes it drops the hold that it finds.
    if wants_it(&state) && watchdog.has_limits() {
        state.hold = hold.take();
    }
    drop(state);
    drop(hold);
}

/// WATCHDOG-5
#[cold]
fn timer_unavailable<E: Supervised>(engine: &E, no_thread: NoTimerThread) -> Alarm {
    let now = engine.timestamps().now().count();
    engine.watchdog().refused_at.store(now, Ordering::Relaxed);
    engine.is_watched().store(false, Ordering::Relaxed);
    engine.starts().failures.add(1);
    no_thread.alarm
}

/// Looks, and sets the next alarm.
fn look<E: Supervised>(engine: &Arc<E>) {
    // WATCHDOG-4
    let checked = catch_panic::call(|| look_at_all(engine));
    if let Some(pause) = checked.unwrap_or(Some(INTERVAL)) {
        look_after(engine, pause);
    }
}

/// Returns when to look again, if at all.
fn look_at_all<E: Supervised>(engine: &Arc<E>) -> Option<Duration> {
    let watchdog = engine.watchdog();
    let now = engine.timestamps().now();
    let workers = engine.workers();
    let mut next = INTERVAL;
    for worker in &workers {
        if let Some(pause) = look_at(engine, worker, now) {
            next = next.min(pause);
        }
    }
    find_lost_wakeup(engine, &workers);
    if engine.lacks_refused_worker() {
        let own = Arc::clone(engine);
        // WATCHDOG-3
        run_off_timer(Owner::of(&**engine, Work::StartThread), move || {
            own.start_missing_workers();
        });
    }
    engine.renew_labels();
    // WATCHDOG-1
    let is_idle = engine.is_queue_empty() && workers.iter().all(|worker| worker.is_flagged_idle());
    let idle_looks = {
        let mut state = watchdog.state.lock();
        let here: Vec<u64> = workers.iter().map(|worker| worker.number()).collect();
        state.reported.retain(|number, _| here.contains(number));
        state.idle_looks = if is_idle { state.idle_looks + 1 } else { 0 };
        state.idle_looks
    };
    match idle_looks {
        0 => engine.is_watched().store(true, Ordering::Relaxed),
        1 => {}
        2 => {
            engine.is_watched().store(false, Ordering::Relaxed);
            trim_off_timer(engine);
        }
        // A thread that has raised the flag meanwhile has set an alarm of its own.
        _ => return None,
    }
    let shortest = watchdog.limits.lock().shortest();
    Some(next.min(shortest.unwrap_or(INTERVAL)))
}

/// The engine is idle: it returns the memory that a burst has left, if there is any. That may take milliseconds.
fn trim_off_timer<E: Supervised>(engine: &Arc<E>) {
    if engine.has_surplus() {
        let idle = Arc::clone(engine);
        run_off_timer(Owner::of(&**engine, Work::Drop), move || idle.trim());
    }
}

/// The task that a worker runs, and its limit.
struct LimitedRun {
    running: RunningTask,
    label: Label,
    running_for: Duration,
    limit: RunWarning,
}

impl LimitedRun {
    /// `None` if the worker runs no task, or one without a limit. All of it is about one task: it must not be that one
    /// is old, and another one interrupted for it (WATCHDOG-2).
    fn of<E: Supervised>(engine: &E, worker: &Worker<E::Part>, now: Timestamp) -> Option<Self> {
        let running = worker.running()?;
        let label = engine.label(running.id);
        let limit = engine.watchdog().limits.lock().of(&label)?;
        let running_for = Duration::from_nanos(engine.timestamps().nanos(running.since, now));
        Some(LimitedRun {
            running,
            label,
            running_for,
            limit,
        })
    }

    fn is_too_long(&self) -> bool {
        self.running_for >= self.limit.after
    }
}

/// Looks at a worker. Returns when to look again, if its task has a limit that it has not exceeded.
fn look_at<E: Supervised>(
    engine: &Arc<E>,
    worker: &Arc<Worker<E::Part>>,
    now: Timestamp,
) -> Option<Duration> {
    let watchdog = engine.watchdog();
    let run = LimitedRun::of(&**engine, &**worker, now)?;
    if !run.is_too_long() {
        return Some(run.limit.after - run.running_for);
    }
    let LimitedRun {
        running,
        label,
        running_for,
        limit,
    } = run;
    let turn = running.turn;
    let before = watchdog.state.lock().reported.insert(worker.number(), turn);
    if before == Some(turn) {
        if limit.interrupts {
            // At the first look its body may not have begun: the system may stop a worker before that, for any time.
            InterruptTarget::interrupt(worker.interrupt_target(), turn);
        }
        return None;
    }
    watchdog.long_runs.add(1);
    let is_interrupted =
        limit.interrupts && InterruptTarget::interrupt(worker.interrupt_target(), turn);
    let overrun = Overrun {
        running,
        label,
        running_for,
        limit: limit.after,
        is_interrupted,
        now,
    };
    long_run::report(engine, worker, overrun);
    None
}

/// A wake-up was lost if tasks wait while workers are idle, at looks that are an interval apart, and none was taken in
/// between.
fn find_lost_wakeup<E: Supervised>(engine: &Arc<E>, workers: &[Arc<Worker<E::Part>>]) {
    let is_ready = engine.has_ready_task();
    // A worker whose thread has not begun is not idle: the system takes its time.
    let one_is_idle = workers.iter().any(|worker| worker.has_no_task());
    let taken = engine.taken();
    let watchdog = engine.watchdog();
    let now = engine.timestamps().now();
    {
        let mut state = watchdog.state.lock();
        let before = state.stuck.take();
        if !is_ready || !one_is_idle {
            return;
        }
        let since = before.filter(|(at, _)| *at == taken);
        let since = since.map_or(now, |(_, since)| since);
        let stuck_for = Duration::from_nanos(engine.timestamps().nanos(since, now));
        if stuck_for < STUCK {
            state.stuck = Some((taken, since));
            return;
        }
        state.stuck = Some((taken, now));
    }
    let queued = engine.queued();
    if queued == 0 {
        return;
    }
    watchdog.lost_wakeups.add(1);
    watchdog.state.lock().lost_wakeup_at = Some(now);
    engine.wake_idle_workers();
    engine.emit(move |engine| engine.lost_wakeup_event(queued));
}
