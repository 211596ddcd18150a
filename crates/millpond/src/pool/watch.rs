//! The watch: looks at a pool now and then while it works, and sees what nobody inside it can.
//!
//! - A task that runs too long ([`RunWarning`]) is told of while it runs, once, with its stack.
//! - Tasks that wait while workers rest, for longer than any wake-up takes, would mean that a wake-up was
//!   lost. They are woken, and it is counted ([`Health`]). Nothing in a pool relies on that.
//!
//! The watch is an alarm of the pool's clock that is set anew each time it rings. It is set by the first
//! task that comes, and given up when the pool has been idle for a while; so an idle pool is not looked at.
//! Whether it is set is a flag beside what every submit reads anyway.
//!
//! A task is on its way, and neither waits nor runs, between the submit's look at the flag and its place in
//! the queue, or between that and its worker's first step; however short that is, the system may stop a
//! thread there for long. So a pool is idle only if all its workers *rest*: from when one finds nothing
//! to do to when it has a task. And who comes back from a rest, or begins with a task, looks at the flag,
//! too. It is lowered at the second ring in a row at which the pool is idle; at the third, if nobody has
//! raised it and all still rest, the watch is over. Who had not seen that it was lowered is seen then.
//!
//! The alarm rings on the thread of the timer, which has others to serve. What is the user's is not asked
//! there: with a queue of the user's the look is left to another thread ([`aside`]), and so is the end of
//! the pool itself, if the watch is the last to have it. A look that panics, as a user's queue may, is
//! followed by others all the same. Where the timer gets no thread there is no watch, until somebody
//! brings a task [a little later](AFTER_A_REFUSAL) and tries again; it is counted
//! ([`Health::thread_failures`]). A pool with a limit holds the timer's thread from its first alarm until it
//! ends ([`Hold`]), so that a limit that was watched is not lost later.
//!
//! It rings when the first of those that run becomes too old; every second; and, because a task that
//! starts after the look must be seen, too, as often as the shortest limit. Each ring walks the workers.
//!
//! By a manual clock there is a watch only if there is a limit: a clock that stands still cannot tell what
//! takes too long. Models have no other clock, and the same watch, if the pool is built with a limit.

use super::engine::Engine;
use super::figures::Label;
use super::notice::{LongRun, Notice};
use super::stacks::Seen;
use super::{ThreadPool, crew::Worker, stats::Event};
use crate::time::{Alarm, Hold, Owner, Ticker, Unattended, Work, aside, let_go};
use millpond_raw::quiet;
use millpond_raw::sync::Mutex;
use millpond_raw::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use millpond_raw::task::Stop;
use millpond_raw::tick::Tick;
use millpond_raw::user_code;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};
use std::time::Duration;

/// How often it looks for lost wake-ups.
const EVERY: Duration = Duration::from_secs(1);

/// No limit is shorter: the watch looks as often as the shortest limit, and must not do nothing else.
const SHORTEST: Duration = Duration::from_millis(1);

/// How long it leaves a timer alone that could not start its thread, in nanoseconds: otherwise every task
/// that comes would ask for one.
const AFTER_A_REFUSAL: u64 = 100_000_000;

/// After how long a running task is worth a notice, and whether it is interrupted then.
///
/// The timer's thread sees to it. A pool that has any such limit keeps that thread from when it has first got
/// it, with its first task, until the pool ends. If the system refuses the thread then, the pool runs its tasks
/// without the limit, counts that ([`Health::thread_failures`]), and tries again with tasks that come later: a
/// task that was running before is seen then, too.
///
/// ```
/// use millpond::pool::{RunWarning, ThreadPool};
/// use std::time::Duration;
///
/// let pool = ThreadPool::builder("mill")
///     .run_warning(RunWarning::after(Duration::from_secs(30)))
///     .run_warning_for("thumbnail", RunWarning::after(Duration::from_secs(2)).interrupts())
///     .build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunWarning {
    after: Duration,
    interrupts: bool,
}

impl RunWarning {
    /// A notice for each task that runs longer than this; less than a millisecond counts as a millisecond.
    ///
    /// ```
    /// use millpond::executor::ExecutorExt;
    /// use millpond::pool::{RunWarning, ThreadPool};
    /// use millpond::time::ManualClock;
    /// use std::sync::mpsc::sync_channel;
    /// use std::time::Duration;
    ///
    /// let (hand, minute) = (ManualClock::new(), Duration::from_secs(60));
    /// let mill = ThreadPool::builder("mill").clock(hand.clock()).on_notice(|_| ());
    /// let pool = mill.run_warning(RunWarning::after(minute)).build()?;
    /// let (meet, wait) = sync_channel(0);
    /// pool.run(move || for () in wait {})?;
    /// meet.send(())?; // now it runs
    /// hand.advance(minute);
    /// assert_eq!(pool.health().long_runs, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn after(limit: Duration) -> Self {
        RunWarning {
            after: limit.max(SHORTEST),
            interrupts: false,
        }
    }

    /// Interrupts it, too. It ends when it heeds that; see [`crate::interrupt`].
    ///
    /// To aim at one task and not at the next, a worker takes a lock for each task of a pool that has any
    /// such limit: some twenty nanoseconds.
    ///
    /// ```
    /// use millpond::executor::ExecutorExt;
    /// use millpond::interrupt;
    /// use millpond::pool::{RunWarning, ThreadPool};
    /// use millpond::time::ManualClock;
    /// use std::sync::mpsc::sync_channel;
    /// use std::time::Duration;
    ///
    /// let (hand, minute) = (ManualClock::new(), Duration::from_secs(60));
    /// let mill = ThreadPool::builder("mill").clock(hand.clock()).on_notice(|_| ());
    /// let pool = mill.run_warning(RunWarning::after(minute).interrupts()).build()?;
    /// let (meet, wait) = sync_channel(0);
    /// let hour = Duration::from_secs(3600);
    /// let nap = pool.submit(move || wait.recv().is_ok() && interrupt::sleep(hour).is_err())?;
    /// meet.send(())?; // now it runs
    /// hand.advance(minute);
    /// assert!(nap.join()?); // long before the hour is over
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn interrupts(mut self) -> Self {
        self.interrupts = true;
        self
    }
}

/// What runs too long.
#[derive(Clone, Debug, Default)]
pub(super) struct Limits {
    pub(super) of_all: Option<RunWarning>,
    pub(super) by_name: HashMap<Box<str>, RunWarning>,
}

impl Limits {
    fn of(&self, label: &Label) -> Option<RunWarning> {
        let own = match label {
            Label::Name(name) => self.by_name.get(&**name),
            Label::Place(_) | Label::Others => None,
        };
        own.copied().or(self.of_all)
    }

    fn all(&self) -> impl Iterator<Item = &RunWarning> {
        self.of_all.iter().chain(self.by_name.values())
    }

    fn interrupt(&self) -> bool {
        self.all().any(|warning| warning.interrupts)
    }

    fn shortest(&self) -> Option<Duration> {
        self.all().map(|warning| warning.after).min()
    }
}

/// How a pool is: counts that should be 0.
///
/// ```
/// use millpond::executor::ExecutorExt;
/// use millpond::pool::ThreadPool;
/// use millpond::thread::{Body, JoinHandle, ThreadFactory};
///
/// #[derive(Debug)]
/// struct Exhausted;
///
/// impl ThreadFactory for Exhausted {
///     fn start(&self, _body: Body) -> std::io::Result<JoinHandle<()>> {
///         Err(std::io::ErrorKind::WouldBlock.into())
///     }
/// }
///
/// let pool = ThreadPool::builder("mill").threads(Exhausted).build()?;
/// assert!(pool.run(|| ()).is_err());
/// assert_eq!(pool.health().thread_failures, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// How often tasks waited although workers rested, and had to be woken by the watch. Each one is a bug.
    pub lost_wake_ups: u64,
    /// How many tasks ran longer than their [`RunWarning`] says.
    pub long_runs: u64,
    /// How often a task of this pool closed a ring of tasks that waited for each other, and was told.
    pub deadlocks: u64,
    /// How often a thread could not be started, the timer's for the watch included.
    pub thread_failures: u64,
    /// How many attempts to start a worker have failed since the last one that did not: if it is not 0 the pool
    /// has fewer workers than it would like.
    pub failed_starts_in_a_row: u64,
    /// How many more workers there are than there may be. They leave when they are idle.
    pub surplus_workers: usize,
}

impl Health {
    /// Whether all is as it should be.
    ///
    /// ```
    /// use millpond::pool::Health;
    ///
    /// let mut health = Health::default();
    /// assert!(health.is_well());
    /// health.deadlocks = 1;
    /// assert!(!health.is_well());
    /// ```
    pub fn is_well(&self) -> bool {
        *self == Health::default()
    }
}

/// The watch of a pool.
pub(super) struct Watch {
    limits: Mutex<Limits>,
    /// Models have fewer steps where there is nothing to watch for.
    is_there: bool,
    /// The tick at which nobody could be had to ring the alarm; 0 if that was never so.
    refused_at: AtomicU64,
    interrupts: AtomicBool,
    state: Mutex<State>,
    healed: Event,
    long_runs: Event,
    pub(super) deadlocks: Event,
}

#[derive(Default)]
struct State {
    alarm: Option<Alarm>,
    /// Keeps the timer's thread, if there is a limit.
    hold: Option<Hold>,
    /// The pool has ended: nothing is held any more.
    is_over: bool,
    /// Counts the alarms, so that one that was set meanwhile is not taken back for an older one.
    alarms: u64,
    /// Whose notice has been given: which task of its worker it was, by worker.
    told: HashMap<u64, u64>,
    /// What had been done when tasks waited and workers rested.
    stuck_at: Option<u64>,
    /// At how many rings in a row the pool was idle.
    idle_rings: u64,
}

/// Aims at one task: the how manieth of its worker it is, and what stops it.
pub(super) struct Aim {
    turn: Option<u64>,
    stop: Arc<Stop>,
}

impl Aim {
    pub(super) fn new() -> Self {
        Aim {
            turn: None,
            stop: Arc::new(Stop::new()),
        }
    }

    /// A task starts: what stops it, and none before or after it.
    pub(super) fn at(aim: &Mutex<Aim>, turn: u64) -> Arc<Stop> {
        let mut aim = aim.lock();
        aim.turn = Some(turn);
        if aim.stop.is_set() {
            aim.stop = Arc::new(Stop::new());
        }
        Arc::clone(&aim.stop)
    }

    /// It has ended.
    pub(super) fn off(aim: &Mutex<Aim>) {
        aim.lock().turn = None;
    }

    /// Interrupts that task, if it still runs.
    fn fire(aim: &Mutex<Aim>, turn: u64) -> bool {
        let aim = aim.lock();
        let is_it = aim.turn == Some(turn);
        if is_it {
            // Under the lock, or it would meet the next task. Who blocks under a stop is a thread of ours, and its
            // waker no code of the user's.
            user_code::except_locks(|| aim.stop.set());
        }
        is_it
    }
}

/// What an alarm rings.
struct Bell(Weak<Engine>);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        let Some(engine) = self.0.upgrade() else {
            return;
        };
        match engine.line.is_foreign() {
            // It asks the queue, which is the user's: not on the thread of the timer.
            true => aside(Owner::of(&*engine, Work::Look), move || {
                engine.looks_round();
            }),
            false => {
                engine.looks_round();
                let_go(Owner::of(&*engine, Work::Drop), engine);
            }
        }
    }
}

impl Watch {
    pub(super) fn new(limits: Limits) -> Self {
        Watch {
            interrupts: AtomicBool::new(limits.interrupt()),
            is_there: !cfg!(any(millpond_loom, millpond_shuttle)) || limits.shortest().is_some(),
            limits: Mutex::new(limits),
            refused_at: AtomicU64::new(0),
            state: Mutex::new(State::default()),
            healed: Event::default(),
            long_runs: Event::default(),
            deadlocks: Event::default(),
        }
    }

    /// Whether it is too early to ask for a timer again.
    fn was_just_refused(&self, ticker: &Ticker) -> bool {
        match self.refused_at.load(Ordering::Relaxed) {
            0 => false,
            at => {
                let (at, now) = (Tick::from_count(at), ticker.now());
                // A counter may have gone back.
                now >= at && ticker.nanos(at, now) < AFTER_A_REFUSAL
            }
        }
    }

    /// Whether there is one at all.
    pub(super) fn is_there(&self) -> bool {
        self.is_there
    }

    fn has_limits(&self) -> bool {
        self.limits.lock().all().next().is_some()
    }

    /// Whether tasks must be aimed at.
    #[inline]
    pub(super) fn interrupts(&self) -> bool {
        self.interrupts.load(Ordering::Relaxed)
    }
}

impl Engine {
    /// Sets the alarm for the first time, or again after a rest.
    #[cold]
    pub(super) fn watch_over(self: &Arc<Self>) {
        if !self.is_to_be_watched() {
            return;
        }
        if self.watch.was_just_refused(&self.ticker) {
            return;
        }
        if !self.is_watched().swap(true, Ordering::Relaxed) {
            self.watch.state.lock().idle_rings = 0;
            let shortest = self.watch.limits.lock().shortest();
            self.look_again_in(shortest.unwrap_or(EVERY).min(EVERY));
        }
    }

    /// Whether one who comes need not [set the alarm](Engine::watch_over): it is set, or there is none.
    #[inline]
    pub(super) fn is_watched_over(&self) -> bool {
        !self.watch.is_there()
            || self.is_watched().load(Ordering::Relaxed)
            || !self.is_to_be_watched()
    }

    #[cold]
    fn is_to_be_watched(&self) -> bool {
        // A manual clock may stand still for ever: nothing can be told from a wait by it.
        self.watch.is_there() && (!self.ticker.stands_still() || self.watch.has_limits())
    }

    fn look_again_in(self: &Arc<Self>, pause: Duration) {
        let turn = {
            let mut state = self.watch.state.lock();
            state.alarms += 1;
            state.alarms
        };
        // At least a nanosecond, or a manual clock that stands still rings for ever.
        let deadline = self.clock.deadline(pause.max(Duration::from_nanos(1)));
        let bell = Waker::from(Arc::new(Bell(Arc::downgrade(self))));
        // Before the alarm, which would not wait for the answer to a request of its own.
        self.hold_timer();
        // It may ring before this returns, and set the next one.
        let alarm = self.clock.alarm(deadline, &bell);
        let alarm = alarm.unwrap_or_else(|unattended| self.nobody_rings(unattended));
        let mut state = self.watch.state.lock();
        let former = match state.alarms == turn {
            true => state.alarm.replace(alarm),
            false => Some(alarm),
        };
        drop(state);
        drop(former);
    }

    /// Keeps the timer's thread, if the pool has a limit and the thread can be had.
    fn hold_timer(&self) {
        let wants_it = |state: &State| state.hold.is_none() && !state.is_over;
        if !self.watch.has_limits() || !wants_it(&self.watch.state.lock()) {
            return;
        }
        let mut hold = self.clock.hold_timer().ok();
        let mut state = self.watch.state.lock();
        if wants_it(&state) {
            state.hold = hold.take();
        }
        drop(state);
        drop(hold);
    }

    /// The pool has ended, and nothing is left to be watched.
    pub(super) fn let_timer_go(&self) {
        let hold = {
            let mut state = self.watch.state.lock();
            state.is_over = true;
            state.hold.take()
        };
        drop(hold);
    }

    /// There is no watch for a moment: whoever brings a task later tries again.
    #[cold]
    fn nobody_rings(&self, unattended: Unattended) -> Alarm {
        let now = self.ticker.now().count();
        self.watch.refused_at.store(now, Ordering::Relaxed);
        self.is_watched().store(false, Ordering::Relaxed);
        self.rare.thread_failures.happened(1);
        unattended.alarm
    }

    /// The alarm rings. Whatever happens to the look, there is another one.
    fn looks_round(self: &Arc<Self>) {
        let looked = quiet::call(|| self.look_at_all());
        if let Some(pause) = looked.unwrap_or(Some(EVERY)) {
            self.look_again_in(pause);
        }
    }

    /// Returns when to look again, if at all.
    fn look_at_all(self: &Arc<Self>) -> Option<Duration> {
        let now = self.ticker.now();
        let workers = self.with_crew(|crew| crew.workers());
        let mut next = EVERY;
        for worker in &workers {
            if let Some(pause) = self.looks_at(worker, now) {
                next = next.min(pause);
            }
        }
        self.heals(&workers);
        self.renew_labels();
        let is_idle = self.line.is_empty() && workers.iter().all(|worker| worker.rests());
        let idle_rings = {
            let mut state = self.watch.state.lock();
            let here = workers.iter().map(|worker| worker.number());
            let here: Vec<u64> = here.collect();
            state.told.retain(|number, _| here.contains(number));
            state.idle_rings = if is_idle { state.idle_rings + 1 } else { 0 };
            state.idle_rings
        };
        match idle_rings {
            0 => self.is_watched().store(true, Ordering::Relaxed),
            1 => {}
            2 => self.is_watched().store(false, Ordering::Relaxed),
            // Who has raised the flag meanwhile has set an alarm of his own.
            _ => return None,
        }
        let shortest = self.watch.limits.lock().shortest();
        Some(next.min(shortest.unwrap_or(EVERY)))
    }

    /// Looks at a worker. Returns when to look again, if what it runs has a limit.
    fn looks_at(self: &Arc<Self>, worker: &Arc<Worker>, now: Tick) -> Option<Duration> {
        // All of one task: it must not be that one is old, and another one interrupted for it.
        let running = worker.ledger.now_running()?;
        let turn = running.turn;
        let label = self.label(running.id);
        let limit = self.watch.limits.lock().of(&label)?;
        let running_for = Duration::from_nanos(self.ticker.nanos(running.since, now));
        if running_for < limit.after {
            return Some(limit.after - running_for);
        }
        let before = self.watch.state.lock().told.insert(worker.number(), turn);
        if before == Some(turn) {
            return None;
        }
        self.watch.long_runs.happened(1);
        let is_interrupted = limit.interrupts && Aim::fire(&worker.aim, turn);
        let run = LongRun {
            pool: self.name.to_string(),
            label,
            made_at: running.made_at,
            running_for,
            limit: limit.after,
            is_interrupted,
            worker: self.view(worker, now),
            stack: String::new(),
        };
        self.tell_of_long_run(Seen::at(worker, Some(turn)), run);
        None
    }

    /// Whether tasks wait and workers rest, now and at the last ring, and nothing has been done between:
    /// then a wake-up was lost.
    fn heals(self: &Arc<Self>, workers: &[Arc<Worker>]) {
        let is_ready = self.line.glance().is_some_and(|glance| glance.is_ready);
        // One whose thread has not begun does not rest: the system takes its time.
        let rests = |worker: &Arc<Worker>| worker.face.get().is_some() && !worker.stats.is_busy();
        let one_rests = workers.iter().any(rests);
        let done = self.with_crew(|crew| crew.counts().done());
        let stuck_at = (is_ready && one_rests).then_some(done);
        let before = std::mem::replace(&mut self.watch.state.lock().stuck_at, stuck_at);
        if stuck_at.is_none() || before != stuck_at {
            return;
        }
        let queued = self.line.len();
        if queued == 0 {
            return;
        }
        self.watch.healed.happened(1);
        self.nudge();
        let pool = self.name.to_string();
        self.tell(move |_| Notice::Healed { pool, queued });
    }

    fn set_limits(self: &Arc<Self>, change: impl FnOnce(&mut Limits)) {
        if self.is_forked() {
            return;
        }
        {
            let mut limits = self.watch.limits.lock();
            change(&mut limits);
            self.watch
                .interrupts
                .store(limits.interrupt(), Ordering::Relaxed);
        }
        if !self.watch.has_limits() {
            let hold = self.watch.state.lock().hold.take();
            drop(hold);
        }
        // A shorter one must not wait for the next ring; and the first one finds no watch by a manual clock.
        match self.is_watched().load(Ordering::Relaxed) {
            true => self.look_again_in(Duration::ZERO),
            false => self.watch_over(),
        }
    }
}

impl ThreadPool {
    /// Changes after how long a running task is worth a notice; `None` for never. Tasks that run already
    /// are seen, too, but only those that start from now on can be interrupted for it.
    ///
    /// ```
    /// use millpond::executor::ExecutorExt;
    /// use millpond::pool::{RunWarning, ThreadPool};
    /// use millpond::time::ManualClock;
    /// use std::sync::mpsc::sync_channel;
    /// use std::time::Duration;
    ///
    /// let (hand, minute) = (ManualClock::new(), Duration::from_secs(60));
    /// let mill = ThreadPool::builder("mill").clock(hand.clock()).on_notice(|_| ());
    /// let pool = mill.build()?;
    /// pool.set_run_warning(Some(RunWarning::after(minute)));
    /// let (meet, wait) = sync_channel(0);
    /// pool.run(move || for () in wait {})?;
    /// meet.send(())?; // now it runs
    /// hand.advance(minute);
    /// assert_eq!(pool.health().long_runs, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_run_warning(&self, warning: Option<RunWarning>) {
        self.engine.set_limits(|limits| limits.of_all = warning);
    }

    /// The same for tasks of one name; `None` for what holds for all.
    ///
    /// ```
    /// use millpond::executor::ExecutorExt;
    /// use millpond::pool::{RunWarning, ThreadPool};
    /// use millpond::task::TaskSpec;
    /// use millpond::time::ManualClock;
    /// use std::sync::mpsc::sync_channel;
    /// use std::time::Duration;
    ///
    /// let (hand, minute) = (ManualClock::new(), Duration::from_secs(60));
    /// let mill = ThreadPool::builder("mill").clock(hand.clock()).on_notice(|_| ());
    /// let pool = mill.build()?;
    /// pool.set_run_warning_for("nap", Some(RunWarning::after(minute)));
    /// let (meet, wait) = sync_channel(0);
    /// let nap = pool.submit_spec(TaskSpec::new().name("nap"), move || for () in wait {})?;
    /// meet.send(())?; // now it runs
    /// hand.advance(minute);
    /// assert_eq!(pool.health().long_runs, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_run_warning_for(&self, name: &str, warning: Option<RunWarning>) {
        self.engine.set_limits(|limits| match warning {
            Some(warning) => {
                limits.by_name.insert(name.into(), warning);
            }
            None => {
                limits.by_name.remove(name);
            }
        });
    }

    /// Counts that should be 0.
    ///
    /// ```
    /// use millpond::executor::ExecutorExt;
    /// use millpond::pool::ThreadPool;
    ///
    /// let pool = ThreadPool::builder("mill").build()?;
    /// pool.submit(|| 7)?.join()?;
    /// assert!(pool.health().is_well());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn health(&self) -> Health {
        let engine = &*self.engine;
        let (word, limits) = (engine.ctl().read(), engine.knobs().limits());
        Health {
            lost_wake_ups: engine.watch.healed.get(),
            long_runs: engine.watch.long_runs.get(),
            deadlocks: engine.watch.deadlocks.get(),
            thread_failures: engine.rare.thread_failures.get(),
            failed_starts_in_a_row: engine.rare.failed_starts_in_a_row.get(),
            surplus_workers: word.workers().saturating_sub(limits.max()),
        }
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn no_limit_is_so_short_that_the_watch_does_nothing_else() {
        let of = |limit| {
            let limits = Limits {
                of_all: Some(RunWarning::after(limit)),
                ..Limits::default()
            };
            limits.shortest()
        };
        assert_eq!(of(Duration::ZERO), Some(SHORTEST));
        assert_eq!(of(Duration::from_nanos(999_999)), Some(SHORTEST));
        assert_eq!(of(EVERY), Some(EVERY));
    }

    #[test]
    fn an_aim_is_at_one_task_and_at_nothing_when_that_is_over() {
        let aim = Mutex::new(Aim::new());
        let first = Aim::at(&aim, 1);
        assert!(!Aim::fire(&aim, 2) && !first.is_set(), "another task");
        assert!(Aim::fire(&aim, 1) && first.is_set());
        Aim::off(&aim);
        assert!(!Aim::fire(&aim, 1), "it has ended");
        let second = Aim::at(&aim, 2);
        assert!(!Aim::fire(&aim, 1) && !second.is_set(), "the one before");
    }
}
