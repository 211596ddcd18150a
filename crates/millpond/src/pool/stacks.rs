//! Where workers are: when somebody asks, in a notice of a long run, and in a report of refusals.
//!
//! A notice is told when its turn comes, which may be long after what it tells of: the listener may be slow,
//! and the first look-up of names takes hundreds of milliseconds. Meanwhile a worker goes on to other
//! tasks. So the stack of a long run is copied at once, and only the names are looked up when the notice is
//! told. The copy takes microseconds, but a thread that does not answer is given [`PATIENCE`]; so the
//! timer's thread, which finds the long run, leaves it to a thread that a pool has for that while there is
//! something to copy. Where no thread can be had, it is done [`aside`].
//!
//! A worker's number of the task that it runs is compared before and after the copy: a stack is that of the
//! task it is shown with, or there is none. The copy is ordered between the two looks: the handler's answer
//! publishes all that the worker did before it, and the question follows the first look.

use super::crew::Worker;
use super::engine::Engine;
use super::notice::{LongRun, Notice};
use crate::stack::{self, PATIENCE, Snapshot};
use crate::thread::{ThreadFactory, Threads};
use crate::time::{Owner, Work, aside};
use millpond_raw::quiet;
use millpond_raw::sync::Mutex;
use std::sync::Arc;

/// How many long runs wait for their stacks to be copied. What is more is told without one.
const MOST_WAITING: usize = 64;

const ENDED: &str = "no stack: the task ended before it could be taken";
const BEGUN: &str = "no stack: the worker began a task before it could be taken";
const TOO_MANY: &str = "no stack: too many were to be taken at once";
const NO_THREAD: &str = "no stack: its thread has not begun";

/// A worker, and the task that it was seen to run.
pub(super) struct Seen {
    worker: Arc<Worker>,
    /// The how manieth of its worker that is; `None` if it ran none.
    turn: Option<u64>,
}

impl Seen {
    pub(super) fn now(worker: &Arc<Worker>) -> Self {
        let running = worker.ledger.now_running();
        Seen::at(worker, running.map(|running| running.turn))
    }

    pub(super) fn at(worker: &Arc<Worker>, turn: Option<u64>) -> Self {
        Seen {
            worker: Arc::clone(worker),
            turn,
        }
    }

    /// Says why there is no stack, if the worker has gone on to something else.
    fn check(&self) -> Result<(), &'static str> {
        if !stack::IS_BUILT {
            // That is what is said then.
            return Ok(());
        }
        let turn = self.worker.ledger.now_running().map(|now| now.turn);
        match self.turn {
            _ if turn == self.turn => Ok(()),
            Some(_) => Err(ENDED),
            None => Err(BEGUN),
        }
    }
}

/// A stack that has been copied, or why there is none.
type Copied = Result<Snapshot, String>;

/// Long runs whose stacks are to be copied.
#[derive(Default)]
pub(super) struct LongRuns {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: Vec<(Seen, LongRun)>,
    /// Whether a thread copies them.
    is_copier_there: bool,
    #[cfg(test)]
    copied: u64,
}

impl LongRuns {
    /// All that wait. If there are none, their copier goes.
    fn take(&self) -> Option<Vec<(Seen, LongRun)>> {
        let mut state = self.state.lock();
        if state.waiting.is_empty() {
            state.is_copier_there = false;
            return None;
        }
        Some(std::mem::take(&mut state.waiting))
    }

    #[cfg(all(test, not(any(millpond_loom, millpond_shuttle, millpond_plain_memory))))]
    fn copied(&self) -> u64 {
        self.state.lock().copied
    }
}

impl Engine {
    /// Where workers are, one text each.
    pub(super) fn stacks_of(&self, workers: &[Arc<Worker>]) -> Vec<String> {
        texts_of(copy(workers.iter()))
    }

    /// The same; but those that have gone on to another task say so.
    pub(super) fn stacks_of_seen(&self, seen: &[Seen]) -> Vec<String> {
        texts_of(copy_seen(seen))
    }

    /// Tells of a long run, with its stack. On the timer's thread it does not take long.
    pub(super) fn tell_of_long_run(self: &Arc<Self>, seen: Seen, run: LongRun) {
        if !stack::IS_BUILT {
            // Nothing is copied, so it takes no time.
            return self.copy_and_tell(vec![(seen, run)]);
        }
        let engine = Arc::clone(self);
        if self.ticker.stands_still() {
            let owner = Owner::of(&**self, Work::Tell);
            return aside(owner, move || engine.copy_and_tell(vec![(seen, run)]));
        }
        let mut state = self.long_runs.state.lock();
        if state.waiting.len() >= MOST_WAITING {
            drop(state);
            let run = LongRun {
                stack: TOO_MANY.to_owned(),
                ..run
            };
            return self.tell(move |_| Notice::RunsLong(Box::new(run)));
        }
        state.waiting.push((seen, run));
        if std::mem::replace(&mut state.is_copier_there, true) {
            return;
        }
        drop(state);
        let copier = move || engine.copy_all();
        if Threads::named("millpond-stack")
            .start(Box::new(copier))
            .is_err()
        {
            let engine = Arc::clone(self);
            aside(Owner::of(&**self, Work::Look), move || engine.copy_all());
        }
    }

    /// Copies what is to be copied, as its one copier.
    fn copy_all(self: &Arc<Self>) {
        while let Some(runs) = self.long_runs.take() {
            let _ = quiet::call(|| self.copy_and_tell(runs));
        }
    }

    fn copy_and_tell(self: &Arc<Self>, runs: Vec<(Seen, LongRun)>) {
        let (seen, runs): (Vec<Seen>, Vec<LongRun>) = runs.into_iter().unzip();
        let copied = copy_seen(&seen);
        #[cfg(test)]
        {
            self.long_runs.state.lock().copied += copied.len() as u64;
        }
        for (run, copied) in runs.into_iter().zip(copied) {
            self.tell(move |_| {
                let stack = texts_of([copied]).pop().unwrap_or_default();
                Notice::RunsLong(Box::new(LongRun { stack, ..run }))
            });
        }
    }
}

/// Copies the stacks of those that still run what they were seen to run.
fn copy_seen(seen: &[Seen]) -> Vec<Copied> {
    let before: Vec<_> = seen.iter().map(Seen::check).collect();
    let still = seen.iter().zip(&before).filter(|(_, check)| check.is_ok());
    let mut copied = copy(still.map(|(one, _)| &one.worker)).into_iter();
    let answer = |(one, check): (&Seen, Result<(), &str>)| {
        check.map_err(str::to_owned)?;
        let copied = copied.next().unwrap_or_else(|| Err(ENDED.to_owned()));
        one.check().map_err(str::to_owned)?;
        copied
    };
    seen.iter().zip(before).map(answer).collect()
}

fn copy<'a>(workers: impl Iterator<Item = &'a Arc<Worker>>) -> Vec<Copied> {
    let faces: Vec<_> = workers.map(|worker| worker.face.get()).collect();
    let begun = faces.iter().flatten().map(|face| face.subject.clone());
    let mut answers = stack::copy(&begun.collect::<Vec<_>>(), PATIENCE).into_iter();
    let answer = |face: &Option<_>| match face.and_then(|_| answers.next()) {
        Some(answer) => answer.map_err(|why| why.to_string()),
        None => Err(NO_THREAD.to_owned()),
    };
    faces.iter().map(answer).collect()
}

/// Looks up the names.
fn texts_of(copied: impl IntoIterator<Item = Copied>) -> Vec<String> {
    let mut names = stack::Names::default();
    let text = |copied: Copied| match copied {
        Ok(snapshot) => names.of(&snapshot).to_string(),
        Err(why) => why,
    };
    copied.into_iter().map(text).collect()
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle, millpond_plain_memory))))]
mod tests;
