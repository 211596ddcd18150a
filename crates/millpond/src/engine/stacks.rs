//! The stacks of workers: on demand, in events of long runs, and in reports of rejections.
//!
//! An event is delivered in its turn, which may be long after what it reports: the listener may be slow, and the first
//! look-up of symbols takes hundreds of milliseconds. Meanwhile a worker goes on to other tasks. So the stack of a long run
//! is copied at once, and only the symbols are looked up when the event is delivered. The copy takes microseconds, but a
//! thread that does not answer is given [`DEFAULT_TIMEOUT`]; so the timer's thread, which finds the long run, leaves the copy to a
//! thread [on demand](crate::thread::on_demand). Where no thread can be started, it is copied by deferred work
//! ([`run_off_timer`]).
//!
//! The number of a worker's task is compared before and after the copy: a stack is that of the task it is shown with, or
//! there is none. The copy is ordered between the two readings: the handler's answer publishes all that the worker did
//! before it, and the question follows the first reading.

use super::long_run::LongRun;
use super::watchdog::{Supervised, SupervisedWorker};
use super::workers::Worker;
use crate::stack::{self, DEFAULT_TIMEOUT, StackSnapshot, Symbolizer};
use crate::thread::Threads;
use crate::thread::on_demand::{Demand, Drain, Drainer, Next, OnDemand};
use crate::time::{Owner, Work, run_off_timer};
use millpond_raw::sync::Mutex;
use std::sync::Arc;
use std::time::Instant;

/// The maximum of long runs that wait for their stacks to be copied. Further ones are reported without.
const MAX_QUEUED: usize = 64;

pub(crate) const ENDED: &str = "no stack: the task ended before it could be taken";
const BEGUN: &str = "no stack: the worker began a task before it could be taken";
const TOO_MANY: &str = "no stack: too many were to be taken at once";
const NO_THREAD: &str = "no stack: its thread has not begun";

/// A worker, and the task that it was seen to run.
pub(crate) struct Seen<W> {
    worker: Arc<W>,
    /// The number of the task, counted by the worker; `None` if it ran none.
    turn: Option<u64>,
}

impl<W: SupervisedWorker> Seen<W> {
    pub(crate) fn now(worker: &Arc<W>) -> Self {
        let running = worker.running();
        Seen::at(worker, running.map(|running| running.turn))
    }

    pub(crate) fn at(worker: &Arc<W>, turn: Option<u64>) -> Self {
        Seen {
            worker: Arc::clone(worker),
            turn,
        }
    }

    /// The reason why there is no stack, if the worker has gone on to something else.
    fn check(&self) -> Result<(), &'static str> {
        if !stack::IS_SUPPORTED {
            // The copy says so.
            return Ok(());
        }
        let turn = self.worker.running().map(|now| now.turn);
        match self.turn {
            _ if turn == self.turn => Ok(()),
            Some(_) => Err(ENDED),
            None => Err(BEGUN),
        }
    }
}

/// A copied stack, or the reason why there is none.
type Copied = Result<StackSnapshot, String>;

/// Long runs whose stacks are to be copied.
pub(crate) struct LongRuns<W> {
    state: Mutex<State<W>>,
}

struct State<W> {
    queue: Vec<(Seen<W>, LongRun)>,
    thread: OnDemand,
    #[cfg(test)]
    copied: u64,
}

impl<W> Default for LongRuns<W> {
    fn default() -> Self {
        LongRuns {
            state: Mutex::new(State {
                queue: Vec::new(),
                thread: OnDemand::default(),
                #[cfg(test)]
                copied: 0,
            }),
        }
    }
}

impl<W> LongRuns<W> {
    fn push(&self, seen: Seen<W>, run: LongRun) -> Result<Demand, Box<LongRun>> {
        let mut state = self.state.lock();
        if state.queue.len() >= MAX_QUEUED {
            return Err(Box::new(run));
        }
        state.queue.push((seen, run));
        Ok(state.thread.demand())
    }

    fn demand_rest(&self) -> bool {
        let mut state = self.state.lock();
        !state.queue.is_empty() && matches!(state.thread.demand(), Demand::Start)
    }

    #[cfg(all(test, not(any(millpond_loom, millpond_shuttle, millpond_plain_memory))))]
    pub(crate) fn copied(&self) -> u64 {
        self.state.lock().copied
    }
}

/// The stacks of workers, one text each.
pub(crate) fn of<W: SupervisedWorker>(workers: &[Arc<W>]) -> Vec<String> {
    texts_of(copy(workers.iter()))
}

/// The same; the text of a worker that has gone on to another task says so.
pub(crate) fn of_seen<W: SupervisedWorker>(seen: &[Seen<W>]) -> Vec<String> {
    texts_of(copy_seen(seen))
}

/// Emits an event about a long run, with its stack. On the timer's thread it does not take long.
pub(super) fn emit_long_run<E: Supervised>(
    engine: &Arc<E>,
    seen: Seen<Worker<E::Part>>,
    run: LongRun,
) {
    if !stack::IS_SUPPORTED {
        // Nothing is copied, so it takes no time.
        return copy_and_emit(engine, vec![(seen, run)]);
    }
    if engine.timestamps().stands_still() {
        let (own, owner) = (Arc::clone(engine), Owner::of(&**engine, Work::Notify));
        return run_off_timer(owner, move || copy_and_emit(&own, vec![(seen, run)]));
    }
    match engine.long_runs().push(seen, run) {
        Ok(Demand::Start) => {
            let copier = Drainer::new(Copier(Arc::clone(engine)));
            if copier.start(&Threads::named("millpond-stack")).is_err() {
                copy_aside(engine);
            }
        }
        Ok(Demand::Served | Demand::Wake(_)) => {}
        Err(mut run) => {
            TOO_MANY.clone_into(&mut run.stack);
            engine.emit(move |engine| engine.long_running_event(run));
        }
    }
}

/// Copies what is left without a thread of its own.
fn copy_aside<E: Supervised>(engine: &Arc<E>) {
    if engine.long_runs().demand_rest() {
        let copier = Drainer::new(Copier(Arc::clone(engine)));
        run_off_timer(Owner::of(&**engine, Work::Inspect), move || copier.run());
    }
}

fn copy_and_emit<E: Supervised>(engine: &Arc<E>, runs: Vec<(Seen<Worker<E::Part>>, LongRun)>) {
    let (seen, runs): (Vec<_>, Vec<LongRun>) = runs.into_iter().unzip();
    let copied = copy_seen(&seen);
    #[cfg(test)]
    {
        engine.long_runs().state.lock().copied += copied.len() as u64;
    }
    for (run, copied) in runs.into_iter().zip(copied) {
        engine.emit(move |engine| {
            let stack = texts_of([copied]).pop().unwrap_or_default();
            engine.long_running_event(Box::new(LongRun { stack, ..run }))
        });
    }
}

/// Copies the stacks of long runs.
struct Copier<E>(Arc<E>);

impl<E> Clone for Copier<E> {
    fn clone(&self) -> Self {
        Copier(Arc::clone(&self.0))
    }
}

impl<E: Supervised> Drain for Copier<E> {
    type Job = Vec<(Seen<Worker<E::Part>>, LongRun)>;

    fn with<R>(&self, f: impl FnOnce(&mut OnDemand) -> R) -> R {
        f(&mut self.0.long_runs().state.lock().thread)
    }

    fn now(&self) -> Option<Instant> {
        self.0.clock().system_now()
    }

    fn next(&mut self) -> Next<Self::Job> {
        let mut state = self.0.long_runs().state.lock();
        if state.queue.is_empty() {
            state.thread.leave();
            return Next::Leave;
        }
        Next::Run(std::mem::take(&mut state.queue))
    }

    fn run(&mut self, runs: Self::Job) {
        copy_and_emit(&self.0, runs);
    }

    fn abandoned(&self) {
        copy_aside(&self.0);
    }
}

/// Copies the stacks of those that still run what they were seen to run.
fn copy_seen<W: SupervisedWorker>(seen: &[Seen<W>]) -> Vec<Copied> {
    let before: Vec<_> = seen.iter().map(Seen::check).collect();
    let still = seen.iter().zip(&before).filter(|(_, check)| check.is_ok());
    let mut copied = copy(still.map(|(one, _)| &one.worker)).into_iter();
    let answer = |(one, check): (&Seen<W>, Result<(), &str>)| {
        check.map_err(str::to_owned)?;
        let copied = copied.next().unwrap_or_else(|| Err(ENDED.to_owned()));
        one.check().map_err(str::to_owned)?;
        copied
    };
    seen.iter().zip(before).map(answer).collect()
}

fn copy<'a, W: SupervisedWorker + 'a>(workers: impl Iterator<Item = &'a Arc<W>>) -> Vec<Copied> {
    let threads: Vec<_> = workers.map(|worker| worker.thread()).collect();
    let begun = threads
        .iter()
        .flatten()
        .map(|thread| thread.thread_ref.clone());
    let mut answers = stack::snapshot(&begun.collect::<Vec<_>>(), DEFAULT_TIMEOUT).into_iter();
    let answer = |thread: &Option<_>| match thread.and_then(|_| answers.next()) {
        Some(answer) => answer.map_err(|error| error.to_string()),
        None => Err(NO_THREAD.to_owned()),
    };
    threads.iter().map(answer).collect()
}

/// Looks up the symbols.
fn texts_of(copied: impl IntoIterator<Item = Copied>) -> Vec<String> {
    let mut symbolizer = Symbolizer::new();
    let text = |copied: Copied| match copied {
        Ok(snapshot) => symbolizer.resolve(&snapshot).to_string(),
        Err(why) => why,
    };
    copied.into_iter().map(text).collect()
}
