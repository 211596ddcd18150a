//! How workers come: they are counted, listed and started, or it is seen to that nobody counts on them.
//! The protocol and its invariants are in the [module](super).
//!
//! # Orderings
//!
//! `[E-epoch]` and `[E-stay]` are explained in [`super::engine`].

use super::crew::Worker;
use super::engine::Engine;
use super::forked;
use super::worker::Shift;
use crate::manage::RunState;
use crate::task::{CancelReason, Task};
use crate::thread::Body;
use millpond_raw::quiet;
use millpond_raw::sync::atomic::{Ordering, fence};
use millpond_raw::sync::chaos;
use millpond_raw::user_code::{self, Kind};
use std::io;
use std::sync::Arc;

const UNRUN: &str = "the thread factory said yes, and dropped what the thread was to run";

/// Why there is no new worker.
pub(super) enum NotAdded {
    /// There are enough by now, or it is over: judge again.
    Judge,
    Failed(io::Error),
}

impl Engine {
    /// Starts a worker with a first task or none, if there are fewer than `below`.
    ///
    /// The error gives the task back; `None` if a stop has it.
    pub(super) fn add_worker(
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
            let worker = Arc::new(Worker::new(crew.number(), first, self.sheets()));
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
    pub(super) fn stand_in(self: &Arc<Self>) {
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
                self.give_up(refused, CancelReason::Refused);
            }
        }
    }

    /// A worker has died of a panic, and is uncounted. It takes the last look of E2 like one that leaves; but it cannot
    /// stay, so another one is started.
    #[cold]
    pub(super) fn succeed(self: &Arc<Self>) {
        let (word, eager) = (self.ctl().read(), self.knobs().limits().eager());
        if word.workers() < eager && !self.line.is_empty() {
            let _ = self.add_worker(None, eager);
        }
        // If that was in vain.
        self.stand_in();
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
        self.give_up(lost, CancelReason::Refused);
        self.stand_in();
    }

    /// Starts the thread of a worker, or an extra one. An error if its body has been dropped unrun,
    /// whatever the factory says.
    pub(super) fn start_thread(&self, worker: &Worker, body: Body) -> io::Result<()> {
        let factory = Arc::clone(&self.knobs().lock().factory);
        // The factory is the user's: its panic is a refusal like any other.
        user_code::check(Kind::Factory);
        let started = match quiet::call(|| factory.start(body)) {
            Some(started) => started.map(drop),
            None => Err(io::Error::other("the thread factory panicked")),
        };
        let started = match worker.is_left_alone() {
            true => started,
            false => started.and_then(|()| Err(io::Error::other(UNRUN))),
        };
        match started {
            Ok(()) => {
                self.rare.threads_started.happened(1);
                self.rare.failed_starts_in_a_row.reset();
            }
            Err(_) => {
                self.rare.thread_failures.happened(1);
                self.rare.failed_starts_in_a_row.happened(1);
            }
        }
        started
    }

    /// Starts one worker of the core, if one is missing.
    pub(super) fn prestart(self: &Arc<Self>) -> io::Result<bool> {
        if self.is_forked() {
            return Err(forked::error());
        }
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
}
