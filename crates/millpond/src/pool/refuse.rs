//! Asking the rejection policy, and doing what it says.

use super::ThreadPool;
use super::asked::{Asked, Entry};
use super::crew::Worker;
use super::engine::Engine;
use super::figures::Id;
use super::identity::Identity;
use super::refusals::Turned;
use super::reject::{Refusal, Rejection};
use crate::executor::{Inside, Listed, RejectReason, Rejected, TurnedBack};
use crate::interrupt::{self, Look, WaitError};
use crate::manage::RunState;
use crate::queue::{Offered, Place};
use crate::task::{self, CancelReason, Task};
use crate::time::Deadline;
use millpond_raw::park::Site;
use millpond_raw::quiet;
use millpond_raw::user_code::{self, Kind};
use std::panic::Location;
use std::sync::Arc;

impl ThreadPool {
    /// A task that was not admitted: what the policy makes of it.
    #[cold]
    pub(super) fn refuse(&self, refused: Rejected<Task>) -> Result<(), Rejected<Task>> {
        self.refuse_until(refused, Deadline::NEVER)
    }

    /// The same for a caller that waits for room no longer than `until`, if the policy lets it wait.
    #[cold]
    pub(super) fn refuse_until(
        &self,
        refused: Rejected<Task>,
        until: Deadline,
    ) -> Result<(), Rejected<Task>> {
        let engine = &self.engine;
        refused.task.leave_home();
        let policy = engine.knobs().rejection();
        match policy {
            Rejection::Block(_) => engine.rare.blocked.happened(1),
            Rejection::CallerRuns if !engine.is_shut_down() => {
                engine.run_here(refused.task);
                return Ok(());
            }
            // The handler may be what brings it; see below.
            Rejection::Custom(_) => {}
            _ => engine.count_refused(&refused.task, Turned::Away),
        }
        let Rejected { task, reason, .. } = engine.with_figures(refused);
        match policy {
            Rejection::Abort => Err(Rejected::new(task, reason)),
            // It is shut down, or its caller would have run it.
            Rejection::CallerRuns => Err(Rejected::new(task, RejectReason::ShutDown)),
            Rejection::Discard => {
                engine.discard(task);
                Ok(())
            }
            Rejection::DiscardOldest => engine
                .replace_oldest(Rejected::new(task, reason))
                .inspect_err(|refused| {
                    refused.task.leave_home();
                }),
            Rejection::Block(patience) => {
                let deadline = engine.clock.deadline(patience).min(until);
                engine
                    .admit_when_there_is_room(Rejected::new(task, reason), deadline)
                    .inspect_err(|refused| {
                        refused.task.leave_home();
                        engine.count_refused(&refused.task, Turned::Away);
                    })
            }
            Rejection::NewThread { at_most } => {
                engine.run_outside(Rejected::new(task, reason), at_most)
            }
            Rejection::Report { at_most_every } => {
                let label = || engine.label_of(&task).to_string();
                engine.report_refusal(&reason, &label, at_most_every);
                Err(Rejected::new(task, reason))
            }
            Rejection::Custom(handler) => match Asked::enter(engine, &task) {
                Entry::Asked(_asked) => {
                    engine.count_refused(&task, Turned::Away);
                    let pool = self;
                    user_code::check(Kind::Handler);
                    handler.reject(task, Refusal { reason, pool })
                }
                Entry::Inside { is_same_task } => {
                    if !is_same_task {
                        engine.count_refused(&task, Turned::Away);
                    }
                    Err(Rejected::new(task, reason))
                }
            },
        }
    }
}

impl Engine {
    /// Whether a task would be refused now and its caller had to run it. Refusals of this kind come in
    /// crowds and cost the caller's time, so this is asked first, and is no more than a few looks.
    #[inline]
    pub(super) fn caller_is_to_run(&self) -> bool {
        self.knobs().caller_runs()
            && self.line.is_full()
            && self.refuses()
            && self.is_watched_over()
    }

    /// Lets the caller run a task that was refused.
    #[inline(never)]
    pub(super) fn run_here(self: &Arc<Self>, task: Task) {
        task.leave_home();
        self.count_refused(&task, Turned::Here);
        let on_drop = |dropped| self.dropped_detached(dropped);
        self.runner.run_with(task, on_drop, |_| ());
    }

    /// As [`run_here`](Engine::run_here), for a closure of which no task was made.
    ///
    /// A shutdown that comes after [`caller_is_to_run`](Engine::caller_is_to_run) comes too late for it, as
    /// for a task: the closure was refused while the pool ran, and neither its way nor its end is the pool's.
    #[inline(never)]
    pub(super) fn turn_back(&self, made_at: &'static Location<'static>) -> Option<TurnedBack<'_>> {
        if self.is_forked() || !self.caller_is_to_run() || !task::inherits_nothing() {
            return None;
        }
        let names = self.names.as_ref();
        let label = names.map_or(Id::OTHERS, |names| names.id_of_refused_place(made_at));
        self.refusals.count(label, Turned::Here);
        Some(TurnedBack::new(&self.runner, made_at))
    }

    #[inline]
    fn count_refused(&self, task: &Task, turned: Turned) {
        let names = self.names.as_ref();
        let label = names.map_or(Id::OTHERS, |names| names.id_of_refused(task));
        self.refusals.count(label, turned);
    }

    pub(super) fn is_shut_down(&self) -> bool {
        !self.ctl().read().is_running()
    }

    /// Drops a task for good; its handle hears why.
    fn discard(&self, task: Task) {
        let reason = match self.is_shut_down() {
            true => CancelReason::ShutDown,
            false => CancelReason::Discarded,
        };
        match task.end(reason) {
            None => self.rare.discarded.happened(1),
            // It was gone before, so nobody threw it away.
            Some(shell) => self.count_shell(shell),
        }
    }

    fn replace_oldest(self: &Arc<Self>, refused: Rejected<Task>) -> Result<(), Rejected<Task>> {
        let mut refused = refused;
        loop {
            // A queue that is sealed refuses while the pool still runs: those in it stay.
            if self.is_shut_down() || refused.reason.is_shut_down() {
                self.discard(refused.task);
                return Ok(());
            }
            let oldest = self.line.poll();
            let found = oldest.is_some();
            if let Some(oldest) = oldest {
                self.discard(oldest);
                self.line_is_shorter();
            }
            let admitted = self.admit(refused.task);
            refused = match admitted.map_err(|refused| self.with_figures(refused)) {
                Ok(()) => return Ok(()),
                Err(refused) if found || self.is_no_last_word(&refused.reason) => refused,
                Err(refused) => return Err(refused),
            };
        }
    }

    /// Whether a refusal when there was nothing to discard is no last word: it has been shut down
    /// meanwhile; or a plain line was full and empty within a moment, so others are at work.
    fn is_no_last_word(&self, reason: &RejectReason) -> bool {
        reason.is_shut_down() || reason.is_saturated() && self.line.is_plain()
    }

    /// Lets the caller wait for room.
    fn admit_when_there_is_room(
        self: &Arc<Self>,
        refused: Rejected<Task>,
        deadline: Deadline,
    ) -> Result<(), Rejected<Task>> {
        let mut refused = refused;
        loop {
            // Waiting is no help against a shutdown, nor against a thread that cannot be started.
            if !refused.reason.is_saturated() {
                return Err(refused);
            }
            if interrupt::check().is_err() {
                return Err(Rejected::new(refused.task, RejectReason::Interrupted));
            }
            let identity = Identity::give(&refused.task, Some(&self.home), &self.ticker);
            let mut task = Some(refused.task);
            if self.linger_for_room(&mut task) {
                return self.look_again(identity);
            }
            let waited = self.wait_for_room(&mut task, deadline);
            let Some(task) = task else {
                interrupt::put_back(waited.map(drop));
                return self.look_again(identity);
            };
            refused = match waited {
                Ok(Room::Maybe) => match self.admit(task) {
                    Ok(()) => return Ok(()),
                    Err(refused) => self.with_figures(refused),
                },
                Ok(Room::Never) => return Err(Rejected::new(task, refused.reason)),
                Err(WaitError::Interrupted) => {
                    return Err(Rejected::new(task, RejectReason::Interrupted));
                }
                Err(WaitError::TimedOut) => return Err(Rejected::new(task, self.why_refused())),
            };
        }
    }

    /// Looks for room for a moment before it is worth to sleep. Returns whether the queue has the
    /// task.
    fn linger_for_room(&self, task: &mut Option<Task>) -> bool {
        let has_room = || self.line.glance().is_some_and(|glance| glance.has_room);
        let put = || match self.line.offer(task.take()?) {
            Ok(()) => Some(()),
            Err(back) => {
                *task = Some(back);
                None
            }
        };
        self.line.glance().is_some() && interrupt::linger(has_room, put).is_some()
    }

    /// Waits in the queue for room. `task` is empty afterwards if the queue has it.
    fn wait_for_room(
        &self,
        task: &mut Option<Task>,
        deadline: Deadline,
    ) -> Result<Room, WaitError> {
        let mut door = Listed::new(&self.doors);
        let mut putter = Putter {
            engine: self,
            task,
            place: Place::default(),
        };
        let mut room = Room::Maybe;
        let site = Site::new("pool.room").on(self);
        let waited = interrupt::wait(site, &self.clock, deadline, |waker| {
            // On the list before the look at the state and the limits: a change after it wakes us.
            door.take(waker);
            let word = self.ctl().read();
            if !word.is_running() || word.workers() < self.knobs().limits().max() {
                return Look::Done;
            }
            let Putter { task, place, .. } = &mut putter;
            match self.line.poll_offer(task, place, waker) {
                Offered::In => Look::Done,
                Offered::Wait => Look::AgainAt(Deadline::NEVER),
                Offered::Never(_) => {
                    room = Room::Never;
                    Look::Done
                }
            }
        });
        drop(putter);
        waited.map(|()| room)
    }

    /// Runs the task in a thread outside the pool, if there are fewer than `at_most`.
    fn run_outside(
        self: &Arc<Self>,
        refused: Rejected<Task>,
        at_most: usize,
    ) -> Result<(), Rejected<Task>> {
        let Rejected { task, reason, .. } = refused;
        let mut task = Some(task);
        let extra = self.with_crew(|crew| {
            // W1: under the lock that a stop takes.
            let may = self.ctl().read().state() == RunState::Running && crew.extras() < at_most;
            may.then(|| {
                let extra = Arc::new(Worker::new(crew.number(), task.take(), 0));
                crew.add_extra(&extra);
                extra
            })
        });
        let Some(extra) = extra else {
            let task = task.expect("it is only taken for an extra thread");
            return Err(Rejected::new(task, reason));
        };
        let outing = Outing {
            engine: Arc::clone(self),
            extra: Arc::clone(&extra),
        };
        match self.start_thread(&extra, Box::new(move || outing.run())) {
            Ok(()) => Ok(()),
            Err(error) => match extra.take_first() {
                Some(task) => Err(Rejected::new(task, RejectReason::SpawnFailed(error))),
                // A stop has handed it back.
                None => Ok(()),
            },
        }
    }
}

/// What a wait for room came to.
#[derive(Clone, Copy)]
enum Room {
    Maybe,
    /// It will never fit.
    Never,
}

/// A place among the putters of the line. However the wait ends, the task is in or back.
struct Putter<'a> {
    engine: &'a Engine,
    task: &'a mut Option<Task>,
    place: Place,
}

impl Drop for Putter<'_> {
    fn drop(&mut self) {
        // As with takers: the queue may be the user's, and this a panic of it already.
        let _ = quiet::call(|| self.engine.line.leave_offer(self.task, &mut self.place));
    }
}

/// What an extra thread holds. Dropping it takes it off the books (W4).
struct Outing {
    engine: Arc<Engine>,
    extra: Arc<Worker>,
}

impl Outing {
    fn run(self) {
        let _inside = Inside::of(&*self.engine);
        self.extra.begins(self.engine.ticker.now());
        if let Some(task) = self.extra.take_first() {
            let engine = &self.engine;
            let on_drop = |dropped| engine.dropped_detached(dropped);
            self.extra
                .stop
                .enter(|| engine.runner.run_with(task, on_drop, |_| ()));
        }
    }
}

impl Drop for Outing {
    fn drop(&mut self) {
        // If it never began, its task is dropped with it, or given back by who started it.
        self.extra.dies_alone();
        let removed = self.engine.with_crew(|crew| crew.remove_extra(&self.extra));
        drop(removed);
        self.engine.may_be_over();
    }
}
