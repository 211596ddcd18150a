//! Tasks of the queue that are run out of turn, by those who wait for them; and the shells that they
//! leave there.
//!
//! What a worker joins it runs in place, under the rules of `task::in_place`. To the pool that is a
//! task like any other: hooks hear of it before and after, and it is counted as completed. It is
//! *nested*, though: the worker runs two at once, or more. `active` counts workers, so the inner ones
//! have a figure of their own, `in_place`.
//!
//! A shell is counted when it leaves the queue, in whatever way, for what it is the shell of. The one
//! exception is the shell of a task that a worker ran in place: that one has been counted. So that it
//! does not show as a task that waits, shells of this kind are counted twice, when they come to be
//! and when they leave, and the difference is taken off the length of the queue.

use super::crew::Worker;
use super::engine::Engine;
use super::hooks::{Ended, TaskInfo};
use super::notice::Notice;
use crate::executor::{Fate, Inside};
use crate::task::{self, About, Cycle, Host, Name, Shell};
use millpond_raw::quiet;
use millpond_raw::sync::Mutex;
use millpond_raw::task::BodyEnd;
use millpond_raw::tick::Tick;
use millpond_raw::user_code::{self, Kind};
use std::sync::Arc;

/// A worker at its place.
struct Seat {
    engine: Arc<Engine>,
    worker: Arc<Worker>,
    /// When those started that run in place, the innermost last. Only the worker itself comes here; the
    /// lock is for the compiler.
    starts: Mutex<Vec<Tick>>,
}

/// Runs `f` as the life of this worker: what it joins of its own pool's queue runs in place, unless the
/// queue keeps it until its time has come.
pub(super) fn as_worker<R>(engine: &Arc<Engine>, worker: &Arc<Worker>, f: impl FnOnce() -> R) -> R {
    let _inside = Inside::of(&**engine);
    if engine.line.holds_back() {
        return f();
    }
    let seat = Seat {
        engine: Arc::clone(engine),
        worker: Arc::clone(worker),
        starts: Mutex::new(Vec::new()),
    };
    task::at_home(&engine.home, Arc::new(seat), f)
}

impl Host for Seat {
    fn holds(&self, mark: usize) -> bool {
        let mut is_there = false;
        // A queue of the user's may panic, and then nobody knows: the task had better wait.
        let looked = quiet::call(|| {
            self.engine.line.visit_until(&mut |task| {
                is_there = task.mark() == mark;
                is_there
            })
        });
        looked.is_some() && is_there
    }

    fn begins(&self, task: About<'_>) {
        self.worker.stats.begin_in_place();
        self.starts.lock().push(self.engine.ticker.now());
        if let Some(hooks) = &self.engine.hooks {
            let info = TaskInfo::about(task);
            user_code::check(Kind::Hook);
            let _ = quiet::call(|| hooks.before(&info));
        }
    }

    fn deadlocked(&self, cycle: &Cycle) {
        let (pool, cycle) = (self.engine.name.to_string(), cycle.clone());
        self.engine.watch.deadlocks.happened(1);
        self.engine.tell(move |_| Notice::Deadlock { pool, cycle });
    }

    fn has_ended(&self, task: About<'_>, end: BodyEnd, message: Option<String>) {
        let fate = match end {
            BodyEnd::Returned => Fate::Completed,
            BodyEnd::Panicked => Fate::Panicked,
            BodyEnd::Unwanted => Fate::Unwanted,
        };
        if let Some(hooks) = &self.engine.hooks {
            let info = TaskInfo::about(task);
            let ended = Ended::of(fate, message);
            user_code::check(Kind::Hook);
            let _ = quiet::call(|| hooks.after(&info, ended));
        }
        let start = self.starts.lock().pop();
        self.note(task, start, fate);
        self.worker.stats.end_in_place(fate);
    }
}

impl Seat {
    /// Its time is in the figures of its own name, and in that of whoever waits for it.
    fn note(&self, task: About<'_>, start: Option<Tick>, fate: Fate) {
        let engine = &*self.engine;
        let (Some(names), Some(start)) = (&engine.names, start) else {
            return;
        };
        let waited = task
            .waits_since()
            .map_or(0, |stamp| engine.ticker.nanos_from(stamp, start));
        let ran = engine.ticker.nanos(start, engine.ticker.now());
        let name = task.shared_name();
        let id = names.id_of(name.as_ref().map(Name::as_str), task.made_at());
        self.worker.ledger.note_nested(id, fate, waited, ran);
    }
}

impl Engine {
    /// Counts a shell that has left the queue, and that no worker will meet.
    pub(super) fn count_shell(&self, shell: Shell) {
        let figure = match Fate::of(shell) {
            Fate::RanAtHome => &self.rare.shells,
            Fate::RanElsewhere => &self.rare.elsewhere,
            Fate::Expired => &self.rare.expired,
            Fate::Cancelled | Fate::Shed | Fate::Completed | Fate::Panicked | Fate::Unwanted => {
                &self.rare.cancelled
            }
        };
        figure.happened(1);
    }
}
