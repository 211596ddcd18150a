//! The pool itself, without the handles of its users: how tasks come in, how workers come and go,
//! how it ends. The protocol and its invariants are in the [module](super).
//!
//! # Orderings
//!
//! - `[E-line]` The two fences of E1 and E2: a submitter puts a task in and then looks for workers, a
//!   worker that leaves is uncounted and then looks for tasks; one of them sees the other. Lines of
//!   ours need none: both sides go through the line's lock, and who is second there sees what the
//!   first did before. A line of the user's may be made of anything.
//! - `[E-epoch]` A nudge counts the epoch and then wakes; a worker looks at the epoch before each
//!   park. The wake carries the order; sequentially consistent all the same, because it is as cheap
//!   here and pairs with the control word, which is read in between.
//! - `[E-free]` A worker is no longer free before it takes a task out; a submitter reads how many
//!   tasks wait before how many workers are free. So who sees that a task has been taken does not see
//!   its worker free.
//! - `[E-stay]` A worker that stays for a task says so before its last look into the queue; whoever
//!   takes a task out looks afterwards whether somebody stays. One of them sees the other.

use super::admission::{Situation, Step, decide};
use super::crew::{Crew, Worker};
use super::ctl::{Ctl, Reading};
use super::hooks::Hooks;
use super::identity::Identity;
use super::knobs::Knobs;
use super::line::Line;
use super::stats::RareStats;
use super::worker::Shift;
use crate::executor::{RejectReason, Rejected, Runner, Watched};
use crate::manage::{Growth, RunState};
use crate::task::{CancelReason, Home, Task};
use crate::thread::Body;
use crate::time::Clock;
use millpond_raw::pad::Padded;
use millpond_raw::quiet;
use millpond_raw::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use millpond_raw::sync::{Mutex, MutexGuard, chaos};
use millpond_raw::waits::Waits;
use std::borrow::Cow;
use std::io;
use std::sync::Arc;

/// What its handles and its workers share.
pub(super) struct Engine {
    pub(super) name: Cow<'static, str>,
    /// What every submit reads and hardly anybody writes.
    front: Padded<Front>,
    pub(super) line: Line,
    /// How often something has changed that idle workers must hear of; see [`Engine::nudge`].
    pub(super) epoch: Padded<AtomicU64>,
    /// How many workers wait for a task, while threads come first; see [`Engine::one_is_free`].
    pub(super) free: Padded<AtomicUsize>,
    /// How many workers wait longer than they want to, for a task in the queue; see
    /// [`Engine::one_is_less`].
    pub(super) staying: Padded<AtomicUsize>,
    /// Whoever decides between a free worker and a new one does so alone.
    growing: Mutex<()>,
    crew: Mutex<Crew>,
    pub(super) rare: RareStats,
    /// Where handles count tasks that they have cancelled in the queue, and how far that was heard.
    home: &'static Home,
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
}

struct Front {
    ctl: Ctl,
    knobs: Knobs,
}

/// What a pool is made of.
pub(super) struct Parts {
    pub(super) name: Cow<'static, str>,
    pub(super) knobs: Knobs,
    pub(super) line: Line,
    pub(super) hooks: Option<Box<dyn Hooks>>,
    pub(super) runner: Runner,
    pub(super) clock: Clock,
}

const UNRUN: &str = "the thread factory said yes, and dropped what the thread was to run";

/// Why there is no new worker.
enum NotAdded {
    /// There are enough by now, or it is over: judge again.
    Judge,
    Failed(io::Error),
}

impl Engine {
    pub(super) fn new(parts: Parts) -> Self {
        let home = Home::take();
        Engine {
            name: parts.name,
            front: Padded::new(Front {
                ctl: Ctl::new(),
                knobs: parts.knobs,
            }),
            line: parts.line,
            epoch: Padded::new(AtomicU64::new(0)),
            free: Padded::new(AtomicUsize::new(0)),
            staying: Padded::new(AtomicUsize::new(0)),
            growing: Mutex::new(()),
            crew: Mutex::new(Crew::default()),
            rare: RareStats::default(),
            home,
            gone_seen: Padded::new(AtomicUsize::new(home.gone())),
            clearing: Mutex::new(()),
            doors: Waits::new(),
            end: Watched::new(()),
            hooks: parts.hooks,
            runner: parts.runner,
            clock: parts.clock,
        }
    }

    #[inline]
    pub(super) fn ctl(&self) -> &Ctl {
        &self.front.ctl
    }

    #[inline]
    pub(super) fn knobs(&self) -> &Knobs {
        &self.front.knobs
    }

    /// Looks at the crew, or changes it.
    pub(super) fn with_crew<R>(&self, f: impl FnOnce(&mut Crew) -> R) -> R {
        f(&mut self.crew.lock())
    }

    // ------------------------------------------------------------------ how tasks come in

    /// Takes the task in, without asking the rejection policy.
    #[inline]
    pub(super) fn admit(self: &Arc<Self>, task: Task) -> Result<(), Rejected<Task>> {
        let (word, limits) = (self.ctl().read(), self.knobs().limits());
        let usual = word.is_running()
            && word.workers() >= limits.core()
            && limits.growth() == Growth::QueueFirst;
        if usual {
            // What `decide` says of this situation, on the short way.
            return match self.enqueue(task, word, None) {
                Ok(taken) => taken,
                Err(task) => self.admit_slowly(task, self.makes_room()),
            };
        }
        self.admit_slowly(task, true)
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
            let eager = limits.growth() == Growth::ThreadsFirst && word.workers() < limits.max();
            let growing = eager.then(|| self.growing.lock());
            let now = Situation {
                is_running: word.is_running(),
                workers: word.workers(),
                core: limits.core(),
                max: limits.max(),
                growth: limits.growth(),
                one_is_free: eager && self.one_is_free(),
                has_room,
            };
            match decide(&now) {
                Step::ShutDown => return Err(Rejected::new(task, RejectReason::ShutDown)),
                Step::Refuse => return Err(Rejected::new(task, self.why_refused())),
                Step::Enqueue => match self.enqueue(task, word, growing) {
                    Ok(taken) => return taken,
                    Err(back) => (task, has_room) = (back, self.makes_room()),
                },
                Step::Start { below } => {
                    drop(growing);
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
    /// instead of being refused. A queue of the user's is walked without a lock around it (E5).
    fn makes_room(&self) -> bool {
        let seen = self.gone_seen.load(Ordering::Relaxed);
        if self.home.gone() == seen {
            return false;
        }
        let _turn = (!self.line.is_foreign()).then(|| self.clearing.lock());
        let gone = self.home.gone();
        if self.gone_seen.load(Ordering::Relaxed) != gone {
            self.purge();
            self.gone_seen.store(gone, Ordering::Relaxed);
        }
        true
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
            match self.enqueue(task, word, None) {
                Ok(taken) => return taken,
                Err(back) => (task, has_room) = (back, self.makes_room()),
            }
        }
        self.stand_in();
        Err(Rejected::new(task, RejectReason::SpawnFailed(error)))
    }

    /// Whether a worker waits for whom there is no task yet. Asked under the lock `growing`, under
    /// which tasks come in while it matters, so that two of them cannot count on one worker.
    ///
    /// A worker that waits is counted until just before it takes a task, so this may say no when it
    /// was yes a moment ago, and never the other way round.
    fn one_is_free(&self) -> bool {
        let tasks = self.line.len();
        // [E-free]
        self.free.load(Ordering::SeqCst) > tasks
    }

    /// Whether for each task that waits there is a worker that waits, too. Asked under the lock
    /// `growing`: one who counts on a free worker puts its task in under it.
    fn is_served(&self) -> bool {
        let _turn = self.growing.lock();
        let tasks = self.line.len();
        // [E-free]
        tasks == 0 || self.free.load(Ordering::SeqCst) >= tasks
    }

    pub(super) fn why_refused(&self) -> RejectReason {
        let word = self.ctl().read();
        if !word.is_running() || self.line.is_sealed() {
            return RejectReason::ShutDown;
        }
        RejectReason::Saturated {
            queued: self.line.len(),
            capacity: self.line.capacity().unwrap_or(usize::MAX),
            workers: word.workers(),
        }
    }

    /// Puts the task into the queue, and sees to it that the workers are there that were counted on
    /// when it was judged (E1): as many, or, under the lock `growing`, one that is free. The outer
    /// error is the task, if there is no room.
    #[inline]
    fn enqueue(
        self: &Arc<Self>,
        task: Task,
        judged: Reading,
        growing: Option<MutexGuard<'_, ()>>,
    ) -> Result<Result<(), Rejected<Task>>, Task> {
        task.set_home(self.home);
        let identity = Identity::give(&task);
        match self.line.is_foreign() {
            true => self.offer_to_foreign(task)?,
            false => self.line.offer(task)?,
        }
        let counts_on_one = growing.is_some();
        // E5: a thread may be started now.
        drop(growing);
        chaos::point("pool.enqueued");
        let is_foreign = self.line.is_foreign();
        if is_foreign {
            // [E-line]
            fence(Ordering::SeqCst);
        }
        let workers = self.ctl().read().workers();
        let has_lost = workers == 0 || workers < judged.workers();
        if has_lost || counts_on_one || is_foreign {
            return Ok(self.look_again(identity));
        }
        Ok(Ok(()))
    }

    /// A queue of the user's may panic when the task is in already. The panic is the submitter's, and
    /// the second look of E1 must not be left out for it.
    #[cold]
    fn offer_to_foreign(self: &Arc<Self>, task: Task) -> Result<(), Task> {
        struct OnPanic<'a>(&'a Arc<Engine>);

        impl Drop for OnPanic<'_> {
            fn drop(&mut self) {
                let _ = quiet::call(|| self.0.stand_in());
            }
        }

        let on_panic = OnPanic(self);
        let offered = self.line.offer(task);
        std::mem::forget(on_panic);
        offered
    }

    /// The second look of E1, after a task has come in: it may be too late, or too few there.
    #[cold]
    pub(super) fn look_again(self: &Arc<Self>, identity: Identity) -> Result<(), Rejected<Task>> {
        let word = self.ctl().read();
        if self.line.is_foreign() && !word.is_running() {
            return match self.take_back(identity) {
                Some(task) => Err(Rejected::new(task, RejectReason::ShutDown)),
                None => Ok(()),
            };
        }
        let eager = self.knobs().limits().eager();
        if word.workers() >= eager || word.workers() > 0 && self.is_served() {
            return Ok(());
        }
        match self.add_worker(None, eager) {
            Ok(()) | Err((_, NotAdded::Judge)) => Ok(()),
            // It waits for those who are there.
            Err((_, NotAdded::Failed(_))) if self.ctl().read().workers() > 0 => Ok(()),
            Err((_, NotAdded::Failed(error))) => {
                let own = self.take_back(identity);
                self.stand_in();
                match own {
                    Some(task) => Err(Rejected::new(task, RejectReason::SpawnFailed(error))),
                    None => Ok(()),
                }
            }
        }
    }

    /// Takes that very task out of the queue again, if nobody has.
    fn take_back(&self, identity: Identity) -> Option<Task> {
        let mut found = self.line.remove_where(1, &mut |task| identity.is(task));
        if !found.is_empty() {
            self.line_is_shorter();
        }
        found.pop()
    }

    // ------------------------------------------------------------------ how workers come

    /// Starts a worker with a first task or none, if there are fewer than `below`.
    ///
    /// The error gives the task back; `None` if a stop has it.
    fn add_worker(
        self: &Arc<Self>,
        first: Option<Task>,
        below: usize,
    ) -> Result<(), (Option<Task>, NotAdded)> {
        let count = loop {
            let word = self.ctl().read();
            let too_late = match word.state() {
                RunState::Running => false,
                // Those that wait must still be run.
                RunState::ShutDown => first.is_some() || self.line.is_empty(),
                _ => true,
            };
            if too_late || word.workers() >= below {
                return Err((first, NotAdded::Judge));
            }
            if self.ctl().count_in(word) {
                break word.workers() + 1;
            }
        };
        chaos::point("pool.counted");
        let (worker, is_listed) = self.with_crew(|crew| {
            let worker = Arc::new(Worker::new(crew.number(), first));
            // W1: under the lock that a stop takes. A shutdown since the count is no reason to turn
            // back: the task came before it, and others have seen this worker counted (E1).
            let may = self.ctl().read().state() <= RunState::ShutDown;
            if may {
                crew.add(&worker);
            }
            (worker, may)
        });
        let shift = Shift::new(Arc::clone(self), Arc::clone(&worker), count);
        if !is_listed {
            drop(shift);
            return Err((worker.take_first(), NotAdded::Judge));
        }
        match self.start_thread(&worker, Box::new(move || shift.work())) {
            Ok(()) => {
                self.with_crew(|crew| crew.has_started(count));
                Ok(())
            }
            // The body was dropped, and the worker with it uncounted and off the list.
            Err(error) => Err((worker.take_first(), NotAdded::Failed(error))),
        }
    }

    /// A worker was counted and could not come. Those who saw it counted have put their tasks in and
    /// gone (E1). Each of these gets a try of its own, as if it came now; for whom there is no thread
    /// is refused after the fact.
    #[cold]
    fn stand_in(self: &Arc<Self>) {
        loop {
            let word = self.ctl().read();
            let is_over = word.state() > RunState::ShutDown;
            if is_over || word.workers() > 0 || self.line.is_empty() {
                return;
            }
            if let Err((_, NotAdded::Failed(_))) = self.add_worker(None, 1) {
                let refused = self.line.remove_where(1, &mut |_| true);
                if refused.is_empty() {
                    // Another has it, or a queue of the user's does not give it out.
                    return;
                }
                self.taken_out(&refused);
                for task in refused {
                    task.cancel(CancelReason::Refused);
                }
            }
        }
    }

    /// A thread has died before its first step, after its factory had said yes. The task that it was
    /// started for goes with it, and those that counted on it get a try of their own: so a factory
    /// whose threads all die costs as many threads as tasks, and no more.
    #[cold]
    pub(super) fn stillborn(self: &Arc<Self>, worker: &Worker) {
        let own = worker.take_first().map(|task| vec![task]);
        let lost = own.unwrap_or_else(|| match self.ctl().read().workers() {
            0 => self.line.remove_where(1, &mut |_| true),
            _ => Vec::new(),
        });
        self.taken_out(&lost);
        for task in lost {
            task.cancel(CancelReason::Refused);
        }
        self.stand_in();
    }

    /// Starts the thread of a worker, or an extra one. An error if its body has been dropped unrun,
    /// whatever the factory says.
    pub(super) fn start_thread(&self, worker: &Worker, body: Body) -> io::Result<()> {
        let factory = Arc::clone(&self.knobs().lock().factory);
        // The factory is the user's: its panic is a refusal like any other.
        let started = match quiet::call(|| factory.start(body)) {
            Some(started) => started.map(drop),
            None => Err(io::Error::other("the thread factory panicked")),
        };
        let started = match worker.is_left_alone() {
            true => started,
            false => started.and_then(|()| Err(io::Error::other(UNRUN))),
        };
        match started {
            Ok(()) => self.rare.threads_started.happened(1),
            Err(_) => self.rare.thread_failures.happened(1),
        }
        started
    }

    /// Starts one worker of the core, if one is missing.
    pub(super) fn prestart(self: &Arc<Self>) -> io::Result<bool> {
        match self.add_worker(None, self.knobs().limits().core()) {
            Ok(()) => Ok(true),
            Err((_, NotAdded::Judge)) => Ok(false),
            Err((_, NotAdded::Failed(error))) => {
                self.stand_in();
                Err(error)
            }
        }
    }

    /// New limits: idle workers look again, and for tasks that wait, and that would get a worker of
    /// their own if they came now, as many start as are allowed more than before. One that cannot be
    /// started is no harm: the next task asks again.
    pub(super) fn limits_changed(self: &Arc<Self>, eager_before: usize) {
        self.nudge();
        self.doors.wake_all();
        let eager = self.knobs().limits().eager();
        let more = eager.saturating_sub(eager_before);
        if more > 0 {
            // Nobody is started for a task that has been cancelled.
            self.purge();
        }
        for _ in 0..more.min(self.line.len()) {
            if self.add_worker(None, eager).is_err() || self.line.is_empty() {
                self.stand_in();
                break;
            }
        }
    }

    /// Lets every idle worker look again at the state and the limits.
    ///
    /// The epoch counts first, the wakes come second; a worker reads the epoch, judges, and looks at
    /// the epoch again each time before it parks. So it sees the new epoch or finds the wake.
    pub(super) fn nudge(&self) {
        // [E-epoch]
        self.epoch.fetch_add(1, Ordering::SeqCst);
        for worker in self.with_crew(|crew| crew.workers()) {
            worker.wake();
        }
    }

    /// A task has gone out of a queue of the user's. If it was the last, and workers stay for it, as
    /// they do for one that is not yet due, they hear that there is nothing to stay for.
    pub(super) fn one_is_less(&self) {
        // [E-stay]
        fence(Ordering::SeqCst);
        if self.staying.load(Ordering::Relaxed) > 0 && self.line.is_empty() {
            self.nudge();
        }
    }

    // ------------------------------------------------------------------ how it ends

    /// Takes no more tasks.
    pub(super) fn shut_down(&self) {
        // S1: sealed first.
        self.line.seal();
        if self.ctl().advance(RunState::ShutDown) {
            self.nudge();
            self.doors.wake_all();
            self.may_be_over();
        }
    }

    /// Takes no more tasks, stops what runs, and hands back what has not started.
    pub(super) fn stop(&self) -> Vec<Task> {
        self.line.seal();
        let everybody = self.with_crew(|crew| {
            self.ctl().advance(RunState::Stopped);
            crew.everybody()
        });
        let mut unstarted = Vec::new();
        for worker in everybody {
            worker.stop.set();
            unstarted.extend(worker.give_first_back());
        }
        unstarted.extend(self.line.clear_out());
        let before = unstarted.len();
        unstarted.retain(|task| !task.is_gone());
        self.rare.cancelled.happened(before - unstarted.len());
        self.rare.handed_back.happened(unstarted.len());
        self.nudge();
        self.doors.wake_all();
        self.may_be_over();
        unstarted
    }

    /// Ends it, if the last task has ended and the last worker is gone: whoever takes something away
    /// that may have been the last calls this (E3).
    pub(super) fn may_be_over(&self) {
        loop {
            let word = self.ctl().read();
            match word.state() {
                RunState::Running | RunState::Tidying | RunState::Terminated => return,
                RunState::ShutDown if !self.line.is_empty() => return,
                RunState::ShutDown | RunState::Stopped => {}
            }
            if word.workers() > 0 {
                return;
            }
            // C3: under the lock under which extra threads are listed.
            let is_ours = self.with_crew(|crew| match crew.extras() + crew.len() {
                0 => Some(self.ctl().tidy(word)),
                _ => None,
            });
            match is_ours {
                // Whoever is still listed comes here when it leaves.
                None => return,
                Some(false) => continue,
                Some(true) => {}
            }
            if let Some(hooks) = &self.hooks {
                let _ = quiet::call(|| hooks.terminated());
            }
            self.ctl().advance(RunState::Terminated);
            self.end.change(|()| ());
            return;
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.home.give_back();
    }
}
