//! A worker: takes tasks, runs them, and leaves when it is not needed.
//!
//! # When it leaves
//!
//! | state | it leaves when |
//! |---|---|
//! | running | there are more workers than the maximum; or it has been idle for the keep-alive, and there are more than the core or the core may time out |
//! | shut down | nothing waits |
//! | stopped | at once |
//!
//! No worker leaves for lack of work while a task waits for which one would be started if it came
//! now: the last one never does, nor one of the core, nor, if threads come first, one below the
//! maximum. It waits for the task then, and when that is gone its time runs anew.
//!
//! It dies of no panic of the user's: of a task, of a hook, of the user's own queue. If it dies all the same, by
//! a mistake of ours, it is uncounted, looks into the queue, and another one comes in its place
//! ([`Engine::succeed`]).
//!
//! # Orderings
//!
//! `[E-epoch]` is explained in [`super::engine`], and `[E-free]` in [`super::growing`], where their other ends are.

use super::crew::Worker;
use super::engine::Engine;
use super::figures::{AtDesk, Clerk, Desk, Pen, WithoutFigures};
use super::hooks::{Ended, TaskInfo};
use super::in_place;
use super::line::Line;
use super::shed::Turn;
use super::watch::Aim;
use crate::executor::{DroppedTask, Fate};
use crate::interrupt::{self, Look, WaitError};
use crate::manage::{Growth, RunState};
use crate::queue::{BlockingQueue, Place, Taken};
use crate::task::{CancelReason, Panic, Task};
use crate::time::Deadline;
use millpond_raw::park::{self, Site};
use millpond_raw::quiet;
use millpond_raw::sync::atomic::Ordering;
use millpond_raw::sync::chaos;
use millpond_raw::user_code::{self, Kind};
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

/// How long a worker pauses after a panic of the user's own queue, before it tries again.
const AFTER_A_PANIC: Duration = Duration::from_millis(10);

/// What the thread of a worker holds, from before it starts until it ends. Dropping it, in
/// whatever way, takes the worker off the books.
pub(super) struct Shift {
    engine: Arc<Engine>,
    worker: Arc<Worker>,
    /// How many workers there were when this one was counted, itself included.
    count: usize,
    is_counted: Cell<bool>,
}

/// What a wait for a task came to.
enum Wait {
    Got(Task),
    TimedOut,
    /// Something has changed: judge again.
    Changed,
}

impl Shift {
    /// The shift of a worker that has been counted.
    pub(super) fn new(engine: Arc<Engine>, worker: Arc<Worker>, count: usize) -> Self {
        Shift {
            engine,
            worker,
            count,
            is_counted: Cell::new(true),
        }
    }

    /// The life of a worker.
    pub(super) fn work(self) {
        let worker = Arc::clone(&self.worker);
        worker.begins(self.engine.ticker.now());
        self.engine.with_crew(|crew| crew.has_started(self.count));
        worker.is_woken_by(park::current().waker());
        let engine = &self.engine;
        let live = || match &engine.names {
            None => self.live(&worker, &WithoutFigures),
            Some(names) => {
                let pen = &Pen::new(&engine.ticker);
                let desk = Desk {
                    ledger: &worker.ledger,
                    names,
                    ticker: &engine.ticker,
                };
                self.live(&worker, &AtDesk { pen, desk });
            }
        };
        in_place::as_worker(engine, &worker, || worker.stop.enter(live));
    }

    fn live(&self, worker: &Worker, clerk: &impl Clerk) {
        self.is_at_work();
        if let Some(first) = worker.take_first() {
            self.run_first(first, clerk);
        }
        while let Some((task, turn)) = self.next(clerk) {
            self.run(task, Some(turn), clerk);
        }
    }

    #[cold]
    fn run_first(&self, first: Task, clerk: &impl Clerk) {
        self.run(first, None, clerk);
    }

    /// Runs the task, or drops it; what has waited for its turn may have waited too long.
    #[inline(always)]
    fn run(&self, task: Task, turn: Option<Turn>, clerk: &impl Clerk) {
        let (engine, worker) = (&*self.engine, &*self.worker);
        worker.stats.begin();
        worker.ledger.begins();
        let start = clerk.starts(&task);
        let shed = turn.and_then(|turn| engine.shed(&task, turn, start));
        let is_usual = shed.is_none() && engine.hooks.is_none() && !engine.watch.interrupts();
        let fate = match is_usual {
            true => engine
                .runner
                .run_with(task, |dropped| self.dropped(dropped), |_| ()),
            false => self.run_unusually(task, shed),
        };
        worker.stats.end(fate, clerk.ended(start, fate));
    }

    /// With hooks around it, or so that it can be interrupted; or not at all.
    #[inline(never)]
    fn run_unusually(&self, task: Task, shed: Option<CancelReason>) -> Fate {
        let engine = &self.engine;
        let run = |task: Task, panicked: &mut dyn FnMut(&Panic)| match shed {
            Some(reason) => engine
                .runner
                .shed(task, reason, |dropped| self.dropped(dropped)),
            None if engine.watch.interrupts() => self.run_aimed(task, panicked),
            None => engine
                .runner
                .run_with(task, |dropped| self.dropped(dropped), panicked),
        };
        let Some(hooks) = &engine.hooks else {
            return run(task, &mut |_| ());
        };
        let info = TaskInfo::of(&task);
        user_code::check(Kind::Hook);
        let _ = quiet::call(|| hooks.before(&info));
        let mut message = None;
        let fate = run(task, &mut |panic| {
            message = panic.message().map(str::to_owned);
        });
        let ended = Ended::of(fate, message);
        user_code::check(Kind::Hook);
        let _ = quiet::call(|| hooks.after(&info, ended));
        fate
    }

    /// Runs a task so that the watch can interrupt it, and no other.
    #[cold]
    fn run_aimed(&self, task: Task, panicked: impl FnOnce(&Panic)) -> Fate {
        let turn = self.worker.ledger.turn();
        let stop = Aim::at(&self.worker.aim, turn);
        let runner = &self.engine.runner;
        let fate = stop.enter(|| runner.run_with(task, |dropped| self.dropped(dropped), panicked));
        Aim::off(&self.worker.aim);
        fate
    }

    /// A task without a handle was dropped instead of being run.
    #[cold]
    fn dropped(&self, task: DroppedTask) {
        self.engine.dropped_detached(task);
    }

    /// The next task; none, if it is time to leave. Then it is no longer counted.
    #[inline(always)]
    fn next(&self, clerk: &impl Clerk) -> Option<(Task, Turn)> {
        let engine = &*self.engine;
        let (word, limits) = (engine.ctl().read(), engine.knobs().limits());
        // After a shutdown what is left in a line of ours is run all the same. What waits at a hand-off, or slips
        // into a line of the user's, is too late: that is judged.
        let runs = word.is_running() || word.runs_what_waits() && engine.line.is_plain();
        if runs && word.workers() <= limits.max() {
            let found = match &engine.line {
                Line::Plain(queue) if !limits.is_newest_first() => {
                    queue.poll().map(|task| (task, Turn::Oldest))
                }
                _ => engine.poll_unusually(limits.is_newest_first()),
            };
            if found.is_some() {
                return found;
            }
            if limits.sheds() {
                engine.shedder.ran_empty();
            }
        }
        clerk.looks_out();
        let task = self.next_slowly(clerk)?;
        if engine.line.is_foreign() {
            engine.one_is_less();
        }
        Some((task, Turn::Oldest))
    }

    /// It begins, or has found something to do after all: the watch may be over by now.
    fn is_at_work(&self) {
        if self.engine.watch.is_there() {
            self.worker.set_rests(false);
        }
        if !self.engine.is_watched_over() {
            self.engine.watch_over();
        }
    }

    #[cold]
    fn next_slowly(&self, clerk: &impl Clerk) -> Option<Task> {
        let engine = &*self.engine;
        let mut timed_out = false;
        if engine.watch.is_there() {
            self.worker.set_rests(true);
        }
        loop {
            // [E-epoch]
            let epoch = engine.epoch.load(Ordering::SeqCst);
            let (word, limits) = (engine.ctl().read(), engine.knobs().limits());
            let shut_down = match word.state() {
                RunState::Running => false,
                RunState::ShutDown if !engine.line.is_empty() => true,
                _ => {
                    self.is_counted.set(false);
                    engine.ctl().uncount();
                    if engine.line.is_foreign() {
                        // Others may wait in it for what was there, as for what is not yet due.
                        engine.nudge();
                    }
                    return None;
                }
            };
            let may_time_out = engine.knobs().core_may_time_out() || word.workers() > limits.core();
            let is_surplus =
                word.workers() > limits.max() || may_time_out && timed_out && !shut_down;
            let stays = is_surplus && word.workers() <= limits.eager() && !engine.line.is_empty();
            if is_surplus && !stays {
                if !engine.ctl().count_out(word) {
                    continue;
                }
                self.is_counted.set(false);
                if self.leaves() {
                    return None;
                }
                timed_out = false;
                continue;
            }
            let deadline = match may_time_out && !timed_out && !shut_down {
                true => engine.clock.deadline(engine.knobs().keep_alive()),
                false => Deadline::NEVER,
            };
            let counts = limits.growth() == Growth::ThreadsFirst;
            let drains = shut_down || stays;
            let _staying = stays.then(|| Staying::new(engine));
            let rests = || clerk.rests();
            let waits = || engine.wait_for_task(epoch, deadline, drains, counts, rests);
            let waited = quiet::call(waits);
            match waited {
                Some(Wait::Got(task)) => {
                    self.is_at_work();
                    return Some(task);
                }
                Some(Wait::TimedOut) => timed_out = true,
                Some(Wait::Changed) => timed_out = false,
                // The queue is the user's own, and panicked. It may do so again and again.
                None => self.pause(),
            }
        }
    }

    /// The last look of a worker that is no longer counted (E2): if a task has come meanwhile that
    /// has counted on it, it stays.
    fn leaves(&self) -> bool {
        let engine = &self.engine;
        // G3
        engine.growing.has_lost_one();
        chaos::point("pool.leaving");
        loop {
            let word = engine.ctl().read();
            let is_needed = word.workers() < engine.knobs().limits().eager()
                && word.state() <= RunState::ShutDown
                && !engine.line.is_empty();
            if !is_needed {
                return true;
            }
            if engine.ctl().count_in(word) {
                self.is_counted.set(true);
                return false;
            }
        }
    }

    fn pause(&self) {
        let clock = &self.engine.clock;
        let deadline = clock.deadline(AFTER_A_PANIC);
        let site = Site::new("pool.pause").on(&*self.engine);
        let _ = interrupt::wait(site, clock, deadline, |_| Look::done_if(false));
    }
}

impl Drop for Shift {
    fn drop(&mut self) {
        let engine = &self.engine;
        let is_cut_short = self.is_counted.get();
        if is_cut_short {
            engine.ctl().uncount();
            // G3
            engine.growing.has_lost_one();
        }
        let removed = engine.with_crew(|crew| crew.remove(&self.worker));
        drop(removed);
        if self.worker.dies_alone() {
            let _ = quiet::call(|| engine.stillborn(&self.worker));
        } else if is_cut_short && self.worker.has_begun() {
            let _ = quiet::call(|| engine.succeed());
        }
        // Who waits for room, or for a hand, may start a worker now.
        engine.doors.wake_all();
        engine.may_be_over();
    }
}

impl Engine {
    /// The next task of a line of another kind, or where the newest may come first.
    #[cold]
    fn poll_unusually(&self, is_newest_first: bool) -> Option<(Task, Turn)> {
        if self.line.is_foreign() {
            let task = quiet::call(|| self.line.poll()).flatten()?;
            self.one_is_less();
            return Some((task, Turn::Oldest));
        }
        match is_newest_first {
            true => self.poll_by_turn(),
            false => self.line.poll().map(|task| (task, Turn::Oldest)),
        }
    }

    /// Waits for a task, until `deadline`, or until the epoch changes. Who `drains` the line waits for
    /// what is in it only.
    ///
    /// `rests` is called if it does not find one within a moment.
    fn wait_for_task(
        &self,
        epoch: u64,
        deadline: Deadline,
        drains: bool,
        counts: bool,
        rests: impl FnOnce(),
    ) -> Wait {
        let free = Free::new(self, counts);
        free.set(true);
        if drains {
            // Nothing more comes, so there is nothing to look out for: what is there the rest finds at once.
            rests();
            return self.rest(epoch, deadline, drains, &free, || false).0;
        }
        let Some(sentry) = self.stand_sentry() else {
            if let Some(task) = self.line.seek(|takes| free.set(!takes)) {
                return Wait::Got(task);
            }
            rests();
            return self.rest(epoch, deadline, drains, &free, || false).0;
        };
        let mut rests = Some(rests);
        loop {
            // A hint: the rest looks again.
            let has_changed = || self.epoch.load(Ordering::Relaxed) != epoch;
            let until = match sentry.seek(&self.line, |takes| free.set(!takes), has_changed) {
                Ok(task) => return Wait::Got(task),
                Err(until) => until,
            };
            if let Some(rests) = rests.take() {
                rests();
            }
            let is_called = || sentry.is_called();
            match self.rest(epoch, deadline.min(until), drains, &free, is_called) {
                (Wait::TimedOut, Some(WaitError::TimedOut)) if until < deadline => {}
                (Wait::Changed, _) if is_called() && !has_changed() => {}
                (wait, _) => {
                    if matches!(wait, Wait::Changed) {
                        sentry.comes_back();
                    }
                    return wait;
                }
            }
        }
    }

    /// Rests in the line. Also says how the rest ended, if not with a task or a change.
    fn rest(
        &self,
        epoch: u64,
        deadline: Deadline,
        drains: bool,
        free: &Free<'_>,
        is_called: impl Fn() -> bool,
    ) -> (Wait, Option<WaitError>) {
        let line = &self.line;
        let mut taker = Taker {
            line,
            place: Place::default(),
        };
        let mut got = None;
        let site = Site::new("pool.idle").on(self);
        let waited = interrupt::wait(site, &self.clock, deadline, |waker| {
            free.set(false);
            // [E-epoch] unmodelled: the wake, which comes second, carries the order (proof in `engine.rs`)
            let has_changed = self.epoch.load(Ordering::SeqCst) != epoch;
            if has_changed || drains && line.is_empty() || is_called() {
                return Look::Done;
            }
            match line.poll_take(&mut taker.place, waker) {
                Taken::Got(task) => {
                    got = Some(task);
                    Look::Done
                }
                // Another has taken the last one since the look above.
                Taken::Wait(_) if drains && line.is_empty() => Look::Done,
                Taken::Wait(again) => {
                    free.set(true);
                    Look::AgainAt(again)
                }
            }
        });
        free.set(false);
        let wait = match got.or_else(|| line.leave_take(&mut taker.place)) {
            Some(task) => {
                interrupt::called_after_seeking();
                Wait::Got(task)
            }
            None if waited.is_err() => Wait::TimedOut,
            None => Wait::Changed,
        };
        (wait, waited.err())
    }
}

/// A place among the takers of the line. However the wait ends, by a panic of the user's queue too,
/// it is given up.
struct Taker<'a> {
    line: &'a Line,
    place: Place,
}

impl Drop for Taker<'_> {
    fn drop(&mut self) {
        // The queue may be the user's, and this a panic of it already: another one would be the end
        // of the process, or, if a task has been taken meanwhile, of that task.
        let _ = quiet::call(|| {
            if let Some(task) = self.line.leave_take(&mut self.place) {
                // Only a panic comes here with a task: it goes back rather than away.
                self.line.hand_back(task);
            }
        });
    }
}

/// That a worker stays for a task in the queue, and wants to hear when that is gone.
struct Staying<'a>(&'a Engine);

impl<'a> Staying<'a> {
    fn new(engine: &'a Engine) -> Self {
        // The look into the line that follows has a fence in front of it ([E-stay]).
        engine.staying.fetch_add(1, Ordering::Relaxed);
        Staying(engine)
    }
}

impl Drop for Staying<'_> {
    fn drop(&mut self) {
        self.0.staying.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether the worker counts among those that are free ([`Engine::claim_free_worker`]).
struct Free<'a> {
    engine: &'a Engine,
    counts: bool,
    is_free: Cell<bool>,
}

impl<'a> Free<'a> {
    fn new(engine: &'a Engine, counts: bool) -> Self {
        Free {
            engine,
            counts,
            is_free: Cell::new(false),
        }
    }

    fn set(&self, is_free: bool) {
        if !self.counts || self.is_free.replace(is_free) == is_free {
            return;
        }
        match is_free {
            // [E-free] unmodelled: the line's lock, taken next, orders the same (proof in `growing.rs`)
            true => self.engine.free.fetch_add(1, Ordering::SeqCst),
            // [E-free] unmodelled: the line's lock, taken next, orders the same (proof in `growing.rs`)
            false => self.engine.free.fetch_sub(1, Ordering::SeqCst),
        };
    }
}

impl Drop for Free<'_> {
    fn drop(&mut self) {
        self.set(false);
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests;
