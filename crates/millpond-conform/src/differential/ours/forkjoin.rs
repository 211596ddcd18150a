//! Runs one script on our fork-join pool and writes a line for each step, in the format of `docs/differential.md`. The
//! counterpart of `java/ForkJoinPlayer.java`.

use super::super::script::{Computation, ForkJoinSetup, Number, Step, Submission, yes_or_no};
use super::computation::{Part, Trace, joined};
use super::ledger::{Fate, Ledger, Order};
use super::parts::WatchedThreads;
use crate::kit::{Stillness, delays};
use millpond::executor::{Executor, Lifecycle};
use millpond::forkjoin::{ForkJoinPool, RecursiveTask};
use millpond::manage::{PatchError, RunState};
use millpond::task::{Task, TaskHandle, TaskSpec};
use millpond::time::ManualClock;
use millpond_raw::park::probe;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Why a player cannot go on.
type Stuck = String;

/// One script's pool, and all that goes with it.
#[derive(Debug)]
pub(super) struct ForkJoinPlayer {
    pool: ForkJoinPool,
    setup: ForkJoinSetup,
    ledger: Arc<Ledger>,
    trace: Trace,
    stillness: Stillness,
    timeout: Duration,
    handles: BTreeMap<Number, TaskHandle<i64>>,
    /// The computations of which nothing has been told.
    open: Vec<Number>,
    /// Java then calls itself quiescent, whatever still runs (DIFF-17).
    is_stopped: bool,
}

impl ForkJoinPlayer {
    pub(super) fn build(setup: ForkJoinSetup, timeout: Duration) -> Result<Self, PatchError> {
        let stillness = Stillness::default();
        let threads = WatchedThreads::new(Stillness::clone(&stillness), Arc::default());
        let pool = ForkJoinPool::builder("ours")
            .parallelism(setup.parallelism)
            .fifo(setup.is_fifo)
            // A body that waits keeps its worker: Java knows nothing of it either.
            .max_spares(0)
            .threads(threads)
            .on_panic(drop)
            .on_event(|_| ())
            .clock(ManualClock::default().clock())
            .build()?;
        Ok(ForkJoinPlayer {
            pool,
            setup,
            ledger: Arc::default(),
            trace: Trace::default(),
            stillness,
            timeout,
            handles: BTreeMap::new(),
            open: Vec::new(),
            is_stopped: false,
        })
    }

    /// The line of the pool itself.
    pub(super) fn opening(&mut self) -> Result<String, Stuck> {
        Ok(format!("ok; ; {}", self.readings()))
    }

    /// Plays a step, or the end.
    pub(super) fn play(&mut self, step: Option<&Step>) -> Result<String, Stuck> {
        let Some(step) = step else {
            return self.end();
        };
        let outcome = match step {
            Step::Submission(submission) => self.submit(*submission),
            Step::Compute(computation) => self.compute(computation),
            Step::Release(numbers) => {
                let gated = numbers.iter().copied().filter(|it| self.is_gated(*it));
                let gated: Vec<Number> = gated.collect();
                let mut done = self.ledger.order(&gated, Order::Return).into_iter();
                let released = numbers.iter().map(|number| {
                    let is_done = gated.contains(number) && done.next().unwrap_or(false);
                    yes_or_no(is_done)
                });
                released.collect::<Vec<_>>().join(" ")
            }
            Step::Fail(number) if self.is_gated(*number) => {
                yes_or_no(self.ledger.order(&[*number], Order::Fail)[0]).into()
            }
            Step::Fail(_) => "no".into(),
            Step::Cancel(number) => self.cancel(*number),
            Step::Quiescence => self.quiescence()?,
            Step::Shutdown => {
                self.pool.shutdown();
                "ok".into()
            }
            // What Java cancels comes back here (DIFF-10).
            Step::ShutdownNow => {
                self.is_stopped = true;
                for task in self.pool.shutdown_now() {
                    if let Some(number) = number_of(&task).filter(|it| self.is_gated(*it)) {
                        self.ledger.settle(number, Fate::Cancelled);
                    }
                }
                "ok".into()
            }
            _ => unreachable!("a script that was checked has only steps for its pool"),
        };
        self.rest()?;
        let events = self.events();
        Ok(format!("{outcome}; {events}; {}", self.readings()))
    }

    fn end(&mut self) -> Result<String, Stuck> {
        self.ledger.open_all();
        self.rest()?; // DIFF-13
        self.pool.shutdown();
        self.rest()?;
        if !self.pool.is_terminated() {
            return Err(self.complaint("it does not end"));
        }
        let (events, fates) = (self.events(), self.ledger.fates());
        Ok(format!("end; {events}; {fates}; {}", self.readings()))
    }

    /// Releases all waiting threads.
    pub(super) fn let_go(&self) {
        self.ledger.open_all();
        drop(self.pool.shutdown_now());
    }

    fn rest(&self) -> Result<(), Stuck> {
        let rest = self.stillness.wait(self.timeout);
        rest.map_err(|problem| self.complaint(&problem))
    }

    fn complaint(&self, problem: &str) -> Stuck {
        let waits: Vec<String> = probe::waits().iter().map(ToString::to_string).collect();
        format!("{problem}; {}; {}", self.pool.snapshot(), waits.join(", "))
    }

    /// Whether its body stays until it is released; otherwise it is a computation.
    fn is_gated(&self, number: Number) -> bool {
        self.ledger.knows(number)
    }

    fn submit(&mut self, submission: Submission) -> String {
        let number = submission.number;
        let body = self.ledger.body(submission);
        let trace = self.trace.clone();
        let run = move || {
            for index in 0..submission.forks {
                let trace = trace.clone();
                let leaf = Leaf(move || trace.visit(format!("{number}.{index}")));
                drop(leaf.fork());
            }
            body();
            0
        };
        let spec = TaskSpec::new().name(number.to_string());
        let task = if submission.has_handle {
            let (task, handle) = spec.clock(self.pool.clock()).build(run);
            self.handles.insert(number, handle);
            task
        } else {
            spec.build_detached(move || assert_eq!(run(), 0))
        };
        match self.pool.execute_task(task) {
            Ok(()) => "taken".into(),
            Err(refused) => {
                self.ledger.settle(number, Fate::Refused);
                self.handles.remove(&number);
                drop(refused);
                "refused".into()
            }
        }
    }

    fn compute(&mut self, computation: &Computation) -> String {
        let number = computation.number;
        let part = Part {
            tree: computation.tree.clone(),
            pool: self.pool.clone(),
            trace: computation.is_traced.then(|| self.trace.clone()),
        };
        let spec = TaskSpec::new().name(number.to_string());
        let (task, handle) = spec.clock(self.pool.clock()).build(|| part.compute());
        if self.pool.execute_task(task).is_err() {
            return "refused".into();
        }
        self.handles.insert(number, handle);
        self.open.push(number);
        "taken".into()
    }

    fn cancel(&mut self, number: Number) -> String {
        let Some(handle) = self.handles.get(&number) else {
            return "no-handle".into();
        };
        if self.is_gated(number) {
            self.ledger.settle(number, Fate::Cancelled);
        }
        yes_or_no(handle.cancel()).into()
    }

    /// Java's caller helps while it waits and may run into a gate, so only a pool that is quiescent is waited for.
    fn quiescence(&mut self) -> Result<String, Stuck> {
        self.rest()?;
        if self.is_stopped {
            return Ok("*".into());
        }
        let is_quiescent =
            self.pool.is_quiescent() && self.pool.await_quiescence(delays::long()).unwrap_or(false);
        Ok(yes_or_no(is_quiescent).into())
    }

    /// All events of the step: of gates, of computations that are over, and which parts ran.
    fn events(&mut self) -> String {
        let mut events = vec![self.ledger.events()];
        let handles = &mut self.handles;
        self.open.retain(|number| {
            let handle = handles.get_mut(number);
            let Some(result) = handle.and_then(TaskHandle::try_join) else {
                return true;
            };
            events.push(match joined(result) {
                Ok(value) => format!("value {number} {value}"),
                Err(code) => format!("error {number} {code}"),
            });
            false
        });
        let mut visited = self.trace.take();
        if self.setup.parallelism > 1 {
            // Neither the order is determined, nor which part is the last of a node.
            let names = visited
                .iter()
                .map(|name| name.split('<').next().unwrap_or_default());
            visited = names.map(str::to_owned).collect();
            visited.sort_unstable();
        }
        if !visited.is_empty() {
            events.push(format!("visited {}", visited.join(" ")));
        }
        events.retain(|event| !event.is_empty());
        events.join(", ")
    }

    fn readings(&self) -> String {
        let now = self.pool.snapshot();
        let state = match now.state {
            RunState::Running => "running",
            RunState::ShutDown | RunState::Stopped | RunState::Tidying => "shut-down",
            RunState::Terminated => "terminated",
        };
        // With several workers it depends on chance how many were started.
        let size = match self.setup.parallelism {
            1 => now.workers.to_string(),
            _ => "*".into(),
        };
        let quiescent = match self.is_stopped {
            true => "*",
            false => yes_or_no(self.pool.is_quiescent()),
        };
        format!(
            "parallelism={} size={size} active={} queued={} inside={} quiescent={quiescent} state={state}",
            now.parallelism,
            // A body that waits is blocked, which Java does not see.
            now.active + now.blocked,
            now.queued_outside,
            now.queued_by_worker.iter().sum::<usize>(),
        )
    }
}

/// A task that a body forks.
struct Leaf<F>(F);

impl<F: FnOnce() + Send> RecursiveTask for Leaf<F> {
    type Output = ();

    fn compute(self) {
        (self.0)();
    }
}

fn number_of(task: &Task) -> Option<Number> {
    task.name()?.parse().ok()
}
