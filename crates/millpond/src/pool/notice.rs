//! What a pool has to tell the people who run it, without being asked.
//!
//! Notices are rare, and they are for eyes: each is a line that says what happened, and more lines with
//! what is needed to see why. Who hears them says [`PoolBuilder::on_notice`](super::PoolBuilder::on_notice);
//! if nobody does, they go to the standard error, or, with the feature `tracing`, become events.
//!
//! A handler may be slow, and making a stack dump takes a while. So notices are handed over on a thread
//! of their own, started for that, and neither a submitter nor the timer waits for them. By a manual clock
//! they are handed over on the spot; and so they are where no thread can be had, but never on the thread of
//! the timer.
//!
//! A pool has one *teller* at a time: that thread, which goes when nothing is left to tell, or whoever tells
//! on the spot. What comes meanwhile waits for the teller, in order, also what its listener causes; so a
//! listener is never called inside itself. Beyond [`MOST_WAITING`] notices are dropped, and how many they
//! were is a notice, too.
//!
//! Who tells on the spot has something else to do, and a listener may cause a notice for each that it hears.
//! So it tells what was there when it began (by a manual clock also what comes meanwhile, but no more than
//! [`MOST_WAITING`]); what is left is told with the next notice, or when an alarm rings, [a little
//! later](AGAIN).

use super::dropped::DroppedDetached;
use super::engine::Engine;
use super::figures::Label;
use super::stacks::Seen;
use super::view::WorkerView;
use crate::executor::RejectReason;
use crate::manage::PoolSnapshot;
use crate::task::Cycle;
use crate::thread::{ThreadFactory, Threads};
use crate::time::{Alarm, Owner, Unattended, Work, aside, let_go};
use millpond_raw::quiet;
use millpond_raw::sync::Mutex;
use millpond_raw::user_code::{self, Kind};
use std::collections::VecDeque;
use std::fmt;
use std::panic::Location;
use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};
use std::time::Duration;

/// Who hears notices.
pub(super) type Listener = Arc<dyn Fn(&Notice) + Send + Sync>;

/// Something that the people who run a pool should know.
///
/// ```
/// use millpond::pool::{Notice, ThreadPool};
///
/// let pool = ThreadPool::builder("mill")
///     .on_notice(|notice: &Notice| eprintln!("{notice}"))
///     .build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Notice {
    /// Tasks are refused ([`Rejection::Report`](super::Rejection::Report)).
    Refused(Box<RefusalReport>),
    /// A task runs longer than it should ([`RunWarning`](super::RunWarning)).
    RunsLong(Box<LongRun>),
    /// Tasks that had been accepted, and whose handle nobody holds, were dropped unrun.
    DroppedDetached(Box<DroppedDetached>),
    /// Tasks waited for each other in a ring. The last of them was told, by an error of its join.
    Deadlock {
        /// What the pool is called that runs the one who was told.
        pool: String,
        /// Who waited for whom.
        cycle: Cycle,
    },
    /// Tasks waited although workers rested. They have been woken. This must not happen: it is a bug of
    /// the queue, which may be the user's, or of millpond.
    Healed {
        /// What the pool is called.
        pool: String,
        /// How many tasks waited.
        queued: usize,
    },
    /// Notices were dropped: there were more than whoever hears them could keep up with.
    Dropped {
        /// What the pool is called.
        pool: String,
        /// How many were dropped since the last notice of this kind.
        notices: u64,
    },
}

/// Why tasks are refused: the figures of the pool, what its workers do, and their stacks.
///
/// ```
/// use millpond::executor::{ExecutorExt, Lifecycle};
/// use millpond::pool::{Notice, Queue, Rejection, ThreadPool};
/// use std::sync::mpsc;
/// use std::time::Duration;
///
/// let (tell, told) = mpsc::channel();
/// let at_most_every = Duration::from_secs(60);
/// let pool = ThreadPool::builder("mill").core(1).max(1).queue(Queue::hand_off());
/// let pool = pool.rejection(Rejection::Report { at_most_every });
/// let pool = pool.on_notice(move |notice| drop(tell.send(notice.clone()))).build()?;
/// let (say, hear) = mpsc::channel::<()>();
/// pool.run(move || drop(hear.recv()))?;
/// assert!(pool.run(|| ()).is_err());
/// let Notice::Refused(report) = told.recv()? else { panic!("nothing else has happened") };
/// assert_eq!((report.refusals, report.snapshot.workers), (1, 1));
/// drop(say);
/// pool.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RefusalReport {
    /// Why the last one was refused.
    pub reason: String,
    /// What the last one is called, or where it was made.
    pub label: String,
    /// How many refusals there were since the last report, this one included.
    pub refusals: u64,
    /// The pool.
    pub snapshot: PoolSnapshot,
    /// What its workers do.
    pub workers: Vec<WorkerView>,
    /// Where they are, in the same order. Needs the feature `stack-dump`; otherwise each says so, as does that
    /// of a worker that went on to another task before its stack could be taken.
    pub stacks: Vec<String>,
}

/// A task that runs longer than it should.
///
/// ```
/// use millpond::executor::{ExecutorExt, Lifecycle};
/// use millpond::pool::{Notice, RunWarning, ThreadPool};
/// use std::sync::mpsc;
/// use std::time::Duration;
///
/// let (tell, told) = mpsc::channel();
/// let limit = Duration::from_millis(20);
/// let pool = ThreadPool::builder("mill").core(1).run_warning(RunWarning::after(limit));
/// let pool = pool.on_notice(move |notice| drop(tell.send(notice.clone()))).build()?;
/// let (say, hear) = mpsc::channel::<()>();
/// pool.run(move || drop(hear.recv()))?;
/// let Notice::RunsLong(run) = told.recv()? else { panic!("nothing else has happened") };
/// assert!(run.running_for >= limit && !run.is_interrupted);
/// drop(say);
/// pool.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LongRun {
    /// What the pool is called.
    pub pool: String,
    /// What the task is called, or where it was made.
    pub label: Label,
    /// Where it was made.
    pub made_at: Option<&'static Location<'static>>,
    /// For how long it has been running.
    pub running_for: Duration,
    /// After how long that is worth a notice.
    pub limit: Duration,
    /// Whether it has been interrupted for that.
    pub is_interrupted: bool,
    /// Who runs it.
    pub worker: WorkerView,
    /// Where it was when it was found to run too long. Needs the feature `stack-dump`; otherwise it says so,
    /// and so it does if the task ended before its stack could be taken.
    pub stack: String,
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::Refused(report) => report.fmt(f),
            Notice::RunsLong(run) => run.fmt(f),
            Notice::DroppedDetached(report) => report.fmt(f),
            Notice::Deadlock { pool, cycle } => write!(
                f,
                "{pool}: deadlock: {cycle}. The first of them got an error instead of waiting for ever"
            ),
            Notice::Healed { pool, queued } => write!(
                f,
                "{pool}: {queued} tasks waited although workers rested; they have been woken. If \
                 the queue is not your own, please report this as a bug of millpond"
            ),
            Notice::Dropped { pool, notices } => write!(
                f,
                "{pool}: {notices} notices were dropped, because too many waited to be heard"
            ),
        }
    }
}

impl fmt::Display for RefusalReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RefusalReport {
            reason,
            label,
            refusals,
            snapshot,
            workers,
            ..
        } = self;
        write!(f, "{snapshot}: refused {label}: {reason}")?;
        if *refusals > 1 {
            write!(f, " ({refusals} refusals since the last report)")?;
        }
        let mut stacks = self.stacks.iter();
        for worker in workers {
            write!(f, "\n  {worker}")?;
            if let Some(stack) = stacks.next() {
                indented(f, stack)?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for LongRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} has been running for {:.1?}, longer than {:.1?}{}\n  {}",
            self.pool,
            self.label,
            self.running_for,
            self.limit,
            match self.is_interrupted {
                true => ", and has been interrupted",
                false => "",
            },
            self.worker,
        )?;
        indented(f, &self.stack)
    }
}

fn indented(f: &mut fmt::Formatter<'_>, lines: &str) -> fmt::Result {
    for line in lines.lines() {
        write!(f, "\n      {line}")?;
    }
    Ok(())
}

/// How often refusals are reported, and how many were not.
#[derive(Debug, Default)]
pub(super) struct Reports {
    state: Mutex<ReportState>,
}

#[derive(Debug, Default)]
struct ReportState {
    /// The tick of the last one.
    last: Option<u64>,
    refusals: u64,
}

/// How many notices of a pool wait to be told; what is more is dropped.
const MOST_WAITING: usize = 64;

/// After how long a teller is looked for, for what the last one has left.
const AGAIN: Duration = Duration::from_millis(100);

/// Makes a notice when its turn comes: a stack dump takes a while.
type Make = Box<dyn FnOnce(&Engine) -> Notice + Send>;

/// What is to be told.
#[derive(Default)]
pub(super) struct Untold {
    state: Mutex<UntoldState>,
}

#[derive(Default)]
struct UntoldState {
    waiting: VecDeque<Make>,
    /// Whether somebody tells them.
    is_teller_there: bool,
    dropped: u64,
    /// For what a teller has left.
    alarm: Option<Alarm>,
}

/// What to do for one who has something to tell.
enum Turn {
    /// Somebody else tells it.
    Waits,
    /// It tells it, or has it told.
    Ours,
    /// Nobody does.
    Dropped(Make),
}

impl Untold {
    fn add(&self, make: Make, bound: usize) -> Turn {
        let mut state = self.state.lock();
        if state.waiting.len() >= bound {
            state.dropped += 1;
            return Turn::Dropped(make);
        }
        state.waiting.push_back(make);
        match std::mem::replace(&mut state.is_teller_there, true) {
            true => Turn::Waits,
            false => Turn::Ours,
        }
    }

    /// The next one to be told. If there is none its teller goes.
    fn next(&self, pool: &str) -> Option<Make> {
        let mut state = self.state.lock();
        if let Some(make) = state.waiting.pop_front() {
            return Some(make);
        }
        let notices = std::mem::take(&mut state.dropped);
        if notices == 0 {
            state.is_teller_there = false;
            return None;
        }
        drop(state);
        let pool = pool.to_owned();
        Some(Box::new(move |_| Notice::Dropped { pool, notices }))
    }

    fn waiting(&self) -> usize {
        self.state.lock().waiting.len()
    }

    /// The teller goes. Returns whether something is left.
    fn leave(&self) -> bool {
        let mut state = self.state.lock();
        state.is_teller_there = false;
        state.is_something_left()
    }

    /// Takes the place of a teller that has left something.
    fn take_over(&self) -> bool {
        let mut state = self.state.lock();
        let is_ours = !state.is_teller_there && state.is_something_left();
        state.is_teller_there |= is_ours;
        is_ours
    }
}

impl UntoldState {
    fn is_something_left(&self) -> bool {
        !self.waiting.is_empty() || self.dropped > 0
    }
}

/// What rings when something is to be told that was not told at once.
struct Bell(Weak<Engine>);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        let Some(engine) = self.0.upgrade() else {
            return;
        };
        engine.tell_the_rest_of_dropped();
        if engine.untold.take_over() {
            engine.find_teller();
        }
        let_go(Owner::of(&*engine, Work::Drop), engine);
    }
}

impl Engine {
    /// A task was refused, and that is to be reported, at most once in `every`.
    pub(super) fn report_refusal(
        self: &Arc<Self>,
        reason: &RejectReason,
        label: &dyn Fn() -> String,
        every: Duration,
    ) {
        let now = self.ticker.now();
        let refusals = {
            let mut state = self.reports.state.lock();
            state.refusals += 1;
            let pause = self.ticker.ticks(every);
            if state
                .last
                .is_some_and(|last| now.count() >= last && now.count() - last < pause)
            {
                return;
            }
            state.last = Some(now.count());
            std::mem::take(&mut state.refusals)
        };
        let workers = self.with_crew(|crew| crew.workers());
        let seen: Vec<Seen> = workers.iter().map(Seen::now).collect();
        let report = RefusalReport {
            reason: reason.to_string(),
            label: label(),
            refusals,
            snapshot: self.snapshot(),
            workers: workers
                .iter()
                .map(|worker| self.view(worker, now))
                .collect(),
            stacks: Vec::new(),
        };
        self.tell(move |engine| {
            let stacks = engine.stacks_of_seen(&seen);
            Notice::Refused(Box::new(RefusalReport { stacks, ..report }))
        });
    }

    /// Makes a notice and hands it over, on a thread of its own if one can be had.
    pub(super) fn tell(self: &Arc<Self>, make: impl FnOnce(&Engine) -> Notice + Send + 'static) {
        match self.untold.add(Box::new(make), MOST_WAITING) {
            Turn::Waits => {}
            Turn::Dropped(make) => drop(make),
            Turn::Ours => self.find_teller(),
        }
    }

    /// The same, however many wait: for one of a kind of which no two wait.
    pub(super) fn tell_in_any_case(&self, make: impl FnOnce(&Engine) -> Notice + Send + 'static) {
        match (
            self.untold.add(Box::new(make), usize::MAX),
            self.own.upgrade(),
        ) {
            (Turn::Ours, Some(own)) => {
                own.find_teller();
                let_go(Owner::of(&*own, Work::Drop), own);
            }
            // It is being dropped, and nobody else is there.
            (Turn::Ours, None) => self.tell_all(),
            (Turn::Waits | Turn::Dropped(_), Some(own)) => {
                let_go(Owner::of(&*own, Work::Drop), own);
            }
            (Turn::Waits | Turn::Dropped(_), None) => {}
        }
    }

    /// Starts a thread that tells, or has it told on the spot.
    fn find_teller(self: &Arc<Self>) {
        if !self.ticker.stands_still() {
            let engine = Arc::clone(self);
            let tell = move || engine.tell_all();
            let started = Threads::named("millpond-notice").start(Box::new(tell));
            if started.is_ok() {
                return;
            }
        }
        // A listener is not for the thread of the timer.
        let engine = Arc::clone(self);
        aside(Owner::of(&**self, Work::Tell), move || {
            engine.tell_on_the_spot()
        });
    }

    /// Tells what is to be told, as its one teller.
    fn tell_all(&self) {
        while let Some(make) = self.untold.next(&self.name) {
            self.tell_here(make);
        }
    }

    /// Tells some of it, as its one teller, and leaves the rest to others.
    fn tell_on_the_spot(&self) {
        let at_most = match self.ticker.stands_still() {
            true => MOST_WAITING,
            false => self.untold.waiting(),
        };
        for _ in 0..at_most {
            match self.untold.next(&self.name) {
                Some(make) => self.tell_here(make),
                None => return,
            }
        }
        if self.untold.leave() {
            // If nobody can be had to ring it, the next notice is the occasion.
            let alarm = self.notice_alarm(AGAIN);
            let alarm = alarm.unwrap_or_else(|unattended| unattended.alarm);
            let former = self.untold.state.lock().alarm.replace(alarm);
            drop(former);
        }
    }

    /// An alarm that has it told what was not told at once.
    pub(super) fn notice_alarm(&self, pause: Duration) -> Result<Alarm, Unattended> {
        let bell = Waker::from(Arc::new(Bell(Weak::clone(&self.own))));
        self.clock.alarm(self.clock.deadline(pause), &bell)
    }

    fn tell_here(&self, make: Make) {
        user_code::check(Kind::Listener);
        let _ = quiet::call(|| {
            let notice = make(self);
            match &self.listener {
                Some(listener) => listener(&notice),
                None => to_nobody_in_particular(&notice),
            }
        });
    }
}

#[cfg(feature = "tracing")]
fn to_nobody_in_particular(notice: &Notice) {
    tracing::warn!(target: "millpond", "{notice}");
}

#[cfg(not(feature = "tracing"))]
fn to_nobody_in_particular(notice: &Notice) {
    eprintln!("millpond: {notice}");
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    #![allow(
        clippy::disallowed_types,
        reason = "a test stands outside: it uses std's channels beside what it tests"
    )]

    use super::*;
    use crate::pool::ThreadPool;
    use millpond_raw::sync::thread;
    use std::sync::mpsc;

    fn make(_: &Engine) -> Notice {
        let (pool, queued) = (String::from("mill"), 0);
        Notice::Healed { pool, queued }
    }

    /// As it is where no thread can be had.
    #[test]
    fn who_tells_on_the_spot_tells_what_was_there_and_the_rest_is_told_a_little_later() {
        const NOTICES: usize = 4;
        let own: Arc<Mutex<Option<ThreadPool>>> = Arc::new(Mutex::new(None));
        let inner = Arc::clone(&own);
        let (tell, told) = mpsc::channel();
        let left = Mutex::new(NOTICES - 2);
        let listener = move |_: &Notice| {
            let here = thread::current().id();
            tell.send(here).expect("the test listens");
            let causes_another = {
                let mut left = left.lock();
                let was = *left;
                *left = was.saturating_sub(1);
                was > 0
            };
            let pool = inner.lock().clone();
            if let (true, Some(pool)) = (causes_another, pool) {
                pool.engine.tell(make);
            }
        };
        let pool = ThreadPool::builder("mill").on_notice(listener);
        let pool = pool.build().expect("nothing is wrong with it");
        *own.lock() = Some(pool.clone());
        let untold = &pool.engine.untold;
        let add = || untold.add(Box::new(make), MOST_WAITING);
        assert!(matches!(add(), Turn::Ours));
        assert!(matches!(add(), Turn::Waits));
        pool.engine.tell_on_the_spot();
        // The alarm may have rung by now, or rings in a moment; but not on this thread.
        let patience = Duration::from_secs(60);
        let tellers: Vec<_> = (0..NOTICES)
            .map(|_| told.recv_timeout(patience).expect("somebody tells it"))
            .collect();
        let here = thread::current().id();
        let told_here = tellers.iter().filter(|teller| **teller == here).count();
        assert_eq!((told_here, tellers[1] == here), (2, true));
        // The listener has the pool, which has the listener.
        let last = own.lock().take();
        drop(last);
    }
}
