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
//! A pool has one such thread at a time, which goes when nothing is left to tell. What comes meanwhile waits
//! for it, in order; beyond [`MOST_WAITING`] notices are dropped, and how many they were is a notice, too.

use super::dropped::DroppedDetached;
use super::engine::Engine;
use super::figures::Label;
use super::stacks::Seen;
use super::view::WorkerView;
use crate::executor::RejectReason;
use crate::manage::PoolSnapshot;
use crate::task::Cycle;
use crate::thread::{ThreadFactory, Threads};
use crate::time::aside;
use millpond_raw::quiet;
use millpond_raw::sync::Mutex;
use millpond_raw::user_code::{self, Kind};
use std::collections::VecDeque;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;
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
    /// Tasks that had been accepted without a handle were dropped when their turn came.
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
    fn add(&self, make: Make) -> Turn {
        let mut state = self.state.lock();
        if state.waiting.len() == MOST_WAITING {
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
        if self.ticker.stands_still() {
            let engine = Arc::clone(self);
            return aside(move || engine.tell_here(Box::new(make)));
        }
        match self.untold.add(Box::new(make)) {
            Turn::Waits => return,
            Turn::Dropped(make) => return drop(make),
            Turn::Ours => {}
        }
        let engine = Arc::clone(self);
        let tell = move || engine.tell_all();
        let started = Threads::named("millpond-notice").start(Box::new(tell));
        if started.is_err() {
            // A listener is not for the thread of the timer.
            let engine = Arc::clone(self);
            aside(move || engine.tell_all());
        }
    }

    /// Tells what is to be told, as its one teller.
    fn tell_all(&self) {
        while let Some(make) = self.untold.next(&self.name) {
            self.tell_here(make);
        }
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
