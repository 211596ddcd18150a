//! The pool itself, without the handles of its users, and how tasks come into it. The protocol and its invariants are in the [module](super).
//!
//! # Orderings
//!
//! - `[E-line]` One of two fences, for lines of the user's: explained in [`super::line`], where the
//!   other one is.
//! - `[E-epoch]` A nudge counts the epoch and then wakes; a worker looks at the epoch before each
//!   park. The wake carries the order; sequentially consistent all the same, because it is as cheap
//!   here and pairs with the control word, which is read in between. Proof that the look before the
//!   park needs no order of its own, and so that no model can notice if it has none: let a worker park
//!   without having seen the new epoch. If it was on the list of workers when the nudge walked that, the
//!   nudge leaves it a token after it has counted; the worker looks again only when it has taken that
//!   token, which acquires what came before the wake (`[P-tok]`), and so sees the epoch. If it was not, it
//!   has entered the list later, under the same lock, and its first look comes after that.
//! - `[E-stay]` A worker that stays for a task says so before its last look into the queue, which
//!   for a line of the user's is behind the fence in [`super::line`]; whoever takes a task out looks
//!   afterwards, behind a fence, whether somebody stays. One of them sees the other.
//!
//! With threads first a submitter may count on a free worker: that protocol, and `[E-free]`, are in
//! [`super::growing`].

use super::admission::{Situation, Step, decide};
use super::crew::Crew;
use super::ctl::{Ctl, Reading};
use super::dropped::DroppedReports;
use super::figures::Names;
use super::forked;
use super::growing::{Claim, Entry, Growing};
use super::hire::NotAdded;
use super::hooks::Hooks;
use super::identity::Identity;
use super::knobs::Knobs;
use super::line::Line;
use super::notice::{Listener, Reports, Untold};
use super::pacer::Pacer;
use super::refusals::Refusals;
use super::sentry::Posted;
use super::shed::Shedder;
use super::stacks::LongRuns;
use super::stats::RareStats;
use super::watch::{self, Watch};
use crate::executor::{RejectReason, Rejected, Runner, Watched};
use crate::manage::{Growth, Overload};
use crate::queue::BlockingQueue;
use crate::task::{CancelReason, Home, Kind, Task};
use crate::time::{Clock, Owner, Ticker, Work, aside};
use millpond_raw::fork;
use millpond_raw::pad::Padded;
use millpond_raw::quiet;
use millpond_raw::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use millpond_raw::sync::{Mutex, chaos};
use millpond_raw::user_code;
use millpond_raw::waits::Waits;
use std::borrow::Cow;
use std::io;
use std::sync::{Arc, Weak};

/// What its handles and its workers share.
pub(super) struct Engine {
    pub(super) name: Cow<'static, str>,
    /// Itself, for what it does later.
    pub(super) own: Weak<Engine>,
    /// What every submit reads and hardly anybody writes.
    front: Padded<Front>,
    pub(super) line: Line,
    /// How often something has changed that idle workers must hear of; see [`Engine::nudge`].
    pub(super) epoch: Padded<AtomicU64>,
    /// How many workers wait for a task, while threads come first; see [`super::growing`].
    pub(super) free: Padded<AtomicUsize>,
    /// How many workers wait longer than they want to, for a task in the queue; see
    /// [`Engine::one_is_less`].
    pub(super) staying: Padded<AtomicUsize>,
    /// Who counts on one of them.
    pub(super) growing: Growing,
    crew: Mutex<Crew>,
    pub(super) rare: RareStats,
    pub(super) refusals: Refusals,
    /// Who is shed when its turn comes.
    pub(super) shedder: Padded<Shedder>,
    /// How long tasks take, for those who are refused.
    pub(super) pacer: Padded<Pacer>,
    /// Where handles count tasks that they have cancelled in the queue, and how far that was heard. To be
    /// dropped after the line (N2 in `task::home`), so it stands behind it.
    pub(super) home: Home,
    gone_seen: Padded<AtomicUsize>,
    /// Whoever clears cancelled tasks out of the queue does so alone.
    clearing: Mutex<()>,
    /// Submitters who wait for room, to be told of an end or of new limits.
    pub(super) doors: Waits,
    /// Those who wait for the end.
    pub(super) end: Watched<()>,
    pub(super) hooks: Option<Box<dyn Hooks>>,
    pub(super) runner: Runner,
    pub(super) clock: Clock,
    pub(super) ticker: Ticker,
    /// The names it keeps figures of; `None` if it keeps none.
    pub(super) names: Option<Names>,
    pub(super) watch: Watch,
    pub(super) listener: Option<Listener>,
    pub(super) reports: Reports,
    pub(super) dropped: DroppedReports,
    pub(super) untold: Untold,
    pub(super) long_runs: LongRuns,
    /// Where an idle worker may stand sentry.
    pub(super) posted: Posted,
}

struct Front {
    ctl: Ctl,
    knobs: Knobs,
    /// Whether the watch is set; see [`super::watch`].
    is_watched: AtomicBool,
    /// The generation of the process that it was built in.
    born: u32,
}

/// What a pool is made of.
pub(super) struct Parts {
    pub(super) name: Cow<'static, str>,
    pub(super) knobs: Knobs,
    pub(super) overload: Overload,
    pub(super) line: Line,
    pub(super) hooks: Option<Box<dyn Hooks>>,
    pub(super) runner: Runner,
    pub(super) clock: Clock,
    /// Of how many names it keeps figures; `None` for no figures at all.
    pub(super) names: Option<usize>,
    pub(super) run_warnings: watch::Limits,
    pub(super) listener: Option<Listener>,
}

/// There was no room, and nobody has asked how little.
const NO_ROOM: RejectReason = RejectReason::saturated(0, 0, 0);

impl Engine {
    /// How many sheets a new worker needs.
    pub(super) fn sheets(&self) -> usize {
        self.names.as_ref().map_or(0, Names::sheets)
    }

    pub(super) fn new(parts: Parts, own: Weak<Engine>) -> Self {
        let home = Home::take(match parts.line.is_foreign() {
            true => Kind::Foreign,
            false => Kind::Ours,
        });
        let ticker = Ticker::of(&parts.clock);
        let names = parts.names.map(Names::new);
        Engine {
            name: parts.name,
            own,
            front: Padded::new(Front {
                ctl: Ctl::new(),
                knobs: parts.knobs,
                is_watched: AtomicBool::new(false),
                born: forked::generation(),
            }),
            line: parts.line,
            epoch: Padded::new(AtomicU64::new(0)),
            free: Padded::new(AtomicUsize::new(0)),
            staying: Padded::new(AtomicUsize::new(0)),
            growing: Growing::default(),
            crew: Mutex::new(Crew::default()),
            rare: RareStats::default(),
            refusals: Refusals::new(names.as_ref().map_or(1, Names::sheets)),
            shedder: Padded::new(Shedder::new(parts.overload, ticker.now())),
            pacer: Padded::new(Pacer::new(ticker.now())),
            gone_seen: Padded::new(AtomicUsize::new(home.gone())),
            home,
            clearing: Mutex::new(()),
            doors: Waits::new(),
            end: Watched::new(()),
            hooks: parts.hooks,
            runner: parts.runner,
            ticker,
            names,
            watch: Watch::new(parts.run_warnings),
            listener: parts.listener,
            reports: Reports::default(),
            dropped: DroppedReports::default(),
            untold: Untold::default(),
            long_runs: LongRuns::default(),
            posted: Posted::default(),
            clock: parts.clock,
        }
    }

    #[inline]
    pub(super) fn ctl(&self) -> &Ctl {
        &self.front.ctl
    }

    /// Whether its threads are in the parent of this process.
    #[inline]
    pub(super) fn is_forked(&self) -> bool {
        self.front.born != fork::generation()
    }

    #[inline]
    pub(super) fn knobs(&self) -> &Knobs {
        &self.front.knobs
    }

    #[inline]
    pub(super) fn is_watched(&self) -> &AtomicBool {
        &self.front.is_watched
    }

    /// Looks at the crew, if nobody else does at this moment.
    pub(super) fn try_with_crew<R>(&self, f: impl FnOnce(&mut Crew) -> R) -> Option<R> {
        self.crew.try_lock().map(|mut crew| f(&mut crew))
    }

    /// Looks at the crew, or changes it.
    pub(super) fn with_crew<R>(&self, f: impl FnOnce(&mut Crew) -> R) -> R {
        f(&mut self.crew.lock())
    }

    /// Takes the task in, without asking the rejection policy. If there is no room it says just that, and
    /// no figures: [`with_figures`](Engine::with_figures) finds them, for those who want them.
    #[inline]
    pub(super) fn admit(self: &Arc<Self>, task: Task) -> Result<(), Rejected<Task>> {
        if !self.is_watched().load(Ordering::Relaxed) {
            self.watch_over();
        }
        let (word, limits) = (self.ctl().read(), self.knobs().limits());
        let usual = word.is_running()
            && word.workers() >= limits.core()
            && limits.growth() == Growth::QueueFirst;
        let queue = match &self.line {
            Line::Plain(queue) if usual => queue,
            _ => return self.admit_slowly(task, true),
        };
        // What `decide` says of this situation, and `enqueue` does then, on the short way.
        if queue.is_full() && self.refuses() {
            return Err(Rejected::new(task, NO_ROOM));
        }
        let identity = Identity::give(&task, Some(&self.home), &self.ticker);
        if let Err(refused) = queue.offer(task) {
            return self.admit_slowly(refused.element, self.makes_room());
        }
        chaos::point("pool.enqueued");
        if self.has_lost_workers(word) {
            return self.look_again(identity);
        }
        Ok(())
    }

    /// Takes the task in on the thread of a timer, if that takes no code of the user's: no queue of theirs, no
    /// thread factory, and no destructor of a task that is refused. Otherwise somebody else has to bring it.
    #[cold]
    pub(super) fn admit_from_timer(self: &Arc<Self>, task: Task) -> Result<(), Task> {
        let (word, limits) = (self.ctl().read(), self.knobs().limits());
        let usual = word.is_running()
            && word.workers() >= limits.core().max(1)
            && limits.growth() == Growth::QueueFirst;
        let queue = match &self.line {
            Line::Plain(queue) if usual && !queue.is_full() => queue,
            _ => return Err(task),
        };
        if !self.is_watched().load(Ordering::Relaxed) {
            self.watch_over();
        }
        let identity = Identity::give(&task, Some(&self.home), &self.ticker);
        if let Err(refused) = queue.offer(task) {
            refused.element.leave_home();
            return Err(refused.element);
        }
        chaos::point("pool.enqueued");
        if self.has_lost_workers(word) {
            // It may take a thread.
            let engine = Arc::clone(self);
            aside(Owner::of(&**self, Work::Start), move || {
                if let Err(refused) = engine.look_again(identity) {
                    // Whoever brought it has heard that it was accepted.
                    engine.give_up(vec![refused.task], CancelReason::Refused);
                }
            });
        }
        Ok(())
    }

    /// Whether a task that has just found the queue full is refused. Refusals come in crowds; so what
    /// `decide` says of this situation is had on the short way, too.
    #[inline]
    pub(super) fn refuses(&self) -> bool {
        let (word, limits) = (self.ctl().read(), self.knobs().limits());
        word.is_running() && word.workers() >= limits.max() && !self.has_gone()
    }

    /// Judges, tries, and judges again.
    #[cold]
    fn admit_slowly(
        self: &Arc<Self>,
        mut task: Task,
        mut has_room: bool,
    ) -> Result<(), Rejected<Task>> {
        loop {
            let (word, limits) = (self.ctl().read(), self.knobs().limits());
            // Where that decides.
            let eager = limits.growth() == Growth::ThreadsFirst && word.is_running() && has_room;
            let eager = eager && (limits.core()..limits.max()).contains(&word.workers());
            let claim = match eager {
                true => self.claim_free_worker(),
                false => None,
            };
            let now = Situation {
                is_running: word.is_running(),
                workers: word.workers(),
                core: limits.core(),
                max: limits.max(),
                growth: limits.growth(),
                one_is_free: claim.is_some(),
                has_room,
            };
            match decide(&now) {
                Step::ShutDown => return Err(Rejected::new(task, RejectReason::ShutDown)),
                Step::Refuse => return Err(Rejected::new(task, NO_ROOM)),
                Step::Enqueue => match self.enqueue(task, word, claim) {
                    Ok(taken) => return taken,
                    Err(back) => (task, has_room) = (back, self.makes_room()),
                },
                Step::Start { below } => {
                    drop(claim);
                    Identity::give(&task, None, &self.ticker);
                    match self.add_worker(Some(task), below) {
                        Ok(()) => return Ok(()),
                        Err((None, _)) => return Ok(()),
                        Err((Some(back), NotAdded::Judge)) => (task, has_room) = (back, true),
                        Err((Some(back), NotAdded::Failed(error))) => {
                            return self.without_thread(back, error, has_room);
                        }
                    }
                }
            }
        }
    }

    /// The queue is full: perhaps of tasks that have been cancelled. They give their places back.
    ///
    /// H1: the count is read before the walk, so whoever is cancelled during it is a reason for the
    /// next one; and it is noted after the walk, so whoever comes meanwhile waits for the walk
    /// instead of being refused. A queue of the user's is walked without a lock around it, and shells are
    /// dropped without it, with all that they carry; the last one may end the pool (E5).
    fn makes_room(&self) -> bool {
        if !self.has_gone() {
            return false;
        }
        let shells = {
            let _turn = (!self.line.is_foreign()).then(|| self.clearing.lock());
            let gone = self.home.gone();
            match self.gone_seen.load(Ordering::Relaxed) != gone {
                true => {
                    let shells = self.take_shells();
                    self.gone_seen.store(gone, Ordering::Relaxed);
                    shells
                }
                false => Vec::new(),
            }
        };
        self.give_up(shells, CancelReason::Dropped);
        true
    }

    /// Whether tasks may have been cancelled in the queue since it was last cleared.
    #[inline]
    fn has_gone(&self) -> bool {
        let seen = self.gone_seen.load(Ordering::Relaxed);
        self.home.gone() != seen
    }

    /// A thread could not be started: the task waits for a worker that is there, if one is.
    fn without_thread(
        self: &Arc<Self>,
        mut task: Task,
        error: io::Error,
        mut has_room: bool,
    ) -> Result<(), Rejected<Task>> {
        while has_room {
            let word = self.ctl().read();
            if word.workers() == 0 {
                break;
            }
            match self.enqueue(task, word, self.enter_without_claim()) {
                Ok(taken) => return taken,
                Err(back) => (task, has_room) = (back, self.makes_room()),
            }
        }
        self.stand_in();
        Err(Rejected::new(task, RejectReason::SpawnFailed(error)))
    }

    /// A refusal, with the figures that its reader wants to see.
    pub(super) fn with_figures(&self, refused: Rejected<Task>) -> Rejected<Task> {
        match refused.reason.is_saturated() {
            true => Rejected::new(refused.task, self.why_refused()),
            false => refused,
        }
    }

    pub(super) fn why_refused(&self) -> RejectReason {
        let word = self.ctl().read();
        if !word.is_running() || self.line.is_sealed() {
            return RejectReason::ShutDown;
        }
        let (queued, workers) = (self.line.len(), word.workers());
        RejectReason::Saturated {
            queued,
            capacity: self.line.capacity().unwrap_or(usize::MAX),
            workers,
            drains_in: self.drains_in(queued, workers),
        }
    }

    /// Puts the task into the queue, and sees to it that the workers are there that were counted on
    /// when it was judged (E1): as many, or, with a claim, one that is free. The outer error is the task, if
    /// there is no room.
    fn enqueue(
        self: &Arc<Self>,
        task: Task,
        judged: Reading,
        entry: Option<Entry<'_>>,
    ) -> Result<Result<(), Rejected<Task>>, Task> {
        let identity = Identity::give(&task, Some(&self.home), &self.ticker);
        let is_foreign = self.line.is_foreign();
        match is_foreign {
            true => self.offer_to_foreign(task)?,
            false => self.line.offer(task)?,
        }
        // E5: a thread may be started now.
        let claim = entry.map_or(Claim::None, Entry::end);
        chaos::point("pool.enqueued");
        let looks_again = match claim {
            Claim::Stood => self.ctl().read().workers() == 0,
            Claim::Lost => true,
            Claim::None => is_foreign || self.has_lost_workers(judged),
        };
        Ok(match looks_again {
            true => self.judge_again(identity, claim),
            false => self.too_late(&identity).unwrap_or(Ok(())),
        })
    }

    /// Whether there are fewer workers than a task was judged by, or none.
    #[inline]
    fn has_lost_workers(&self, judged: Reading) -> bool {
        let workers = self.ctl().read().workers();
        workers == 0 || workers < judged.workers()
    }

    /// A queue of the user's may panic when the task is in already. The panic is the submitter's, and
    /// the second look of E1 must not be left out for it.
    #[cold]
    fn offer_to_foreign(self: &Arc<Self>, task: Task) -> Result<(), Task> {
        struct OnPanic<'a>(&'a Arc<Engine>);

        impl Drop for OnPanic<'_> {
            fn drop(&mut self) {
                let engine = self.0;
                let _ = quiet::call(|| {
                    let eager = engine.knobs().limits().eager();
                    if !engine.is_staffed(eager, Claim::None) {
                        let _ = engine.add_worker(None, eager);
                    }
                    engine.stand_in();
                });
            }
        }

        let on_panic = OnPanic(self);
        let offered = self.line.offer(task);
        std::mem::forget(on_panic);
        offered
    }

    /// The second look of E1, after a task has come in without a claim: it may be too late, or too few there.
    #[cold]
    pub(super) fn look_again(self: &Arc<Self>, identity: Identity) -> Result<(), Rejected<Task>> {
        self.judge_again(identity, Claim::None)
    }

    #[cold]
    fn judge_again(
        self: &Arc<Self>,
        identity: Identity,
        claim: Claim,
    ) -> Result<(), Rejected<Task>> {
        if let Some(late) = self.too_late(&identity) {
            return late;
        }
        let eager = self.knobs().limits().eager();
        if self.is_staffed(eager, claim) {
            return Ok(());
        }
        match self.add_worker(None, eager) {
            Ok(()) | Err((_, NotAdded::Judge)) => Ok(()),
            // It waits for those who are there.
            Err((_, NotAdded::Failed(_))) if self.ctl().read().workers() > 0 => Ok(()),
            Err((_, NotAdded::Failed(error))) => {
                let own = self.take_back(&identity);
                self.stand_in();
                match own {
                    Some(task) => Err(Rejected::new(task, RejectReason::SpawnFailed(error))),
                    None => Ok(()),
                }
            }
        }
    }

    /// Whether there are so many workers, or enough for those that wait.
    fn is_staffed(&self, eager: usize, claim: Claim) -> bool {
        let workers = self.ctl().read().workers();
        if workers >= eager {
            return true;
        }
        if claim == Claim::None {
            // G4
            self.growing.has_lost_one();
        }
        workers > 0 && self.is_served()
    }

    /// Whether a task has slipped into a line of the user's when it was too late (S3), and what becomes of it then.
    fn too_late(&self, identity: &Identity) -> Option<Result<(), Rejected<Task>>> {
        if !self.line.is_foreign() {
            return None;
        }
        // [E-line]
        fence(Ordering::SeqCst);
        if self.ctl().read().is_running() {
            return None;
        }
        Some(match self.take_back(identity) {
            Some(task) => Err(Rejected::new(task, RejectReason::ShutDown)),
            None => Ok(()),
        })
    }

    /// Takes that very task out of the queue again, if nobody has.
    fn take_back(&self, identity: &Identity) -> Option<Task> {
        let mut found = self.line.remove_where(1, &mut |task| identity.is(task));
        if !found.is_empty() {
            self.line_is_shorter();
        }
        found.pop()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Its hooks, its factory and its queue are the user's.
        user_code::check(user_code::Kind::Destructor);
    }
}
