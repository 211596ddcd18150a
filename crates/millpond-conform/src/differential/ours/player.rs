//! Runs one script on our pool and writes a line for each step, in the format of
//! `docs/differential.md`. The counterpart of `java/Player.java`.

use super::super::script::{Flavor, Number, Policy, PoolSetup, Step, Submission, yes_or_no};
use super::ledger::{Fate, Ledger, Order};
use super::parts::{Counts, WatchedThreads};
use crate::kit::Stillness;
use millpond::executor::{Executor, Lifecycle};
use millpond::manage::{Growth, PatchError, RunState};
use millpond::pool::{Queue, RejectionPolicy, ThreadPool};
use millpond::queue::FifoQueue;
use millpond::task::{Task, TaskHandle, TaskSpec};
use millpond::time::{Clock, ManualClock};
use millpond_raw::park::probe;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Why a player cannot go on.
type Stuck = String;

/// One script's pool, and all that goes with it.
#[derive(Debug)]
pub(super) struct Player {
    pool: ThreadPool,
    ledger: Arc<Ledger>,
    stillness: Stillness,
    timeout: Duration,
    hand: ManualClock,
    refuses_threads: Arc<AtomicBool>,
    counts: Counts,
    handles: BTreeMap<Number, TaskHandle<()>>,
    policy: Policy,
    /// A task without a handle has failed: Java's worker died of it (DIFF-5).
    has_died: bool,
}

impl Player {
    pub(super) fn build(setup: &PoolSetup, timeout: Duration) -> Result<Self, PatchError> {
        let (stillness, hand, counts) = Default::default();
        let refuses_threads = Arc::new(AtomicBool::new(false));
        let threads =
            WatchedThreads::new(Stillness::clone(&stillness), Arc::clone(&refuses_threads));
        let pool = ThreadPool::builder("ours")
            .core(setup.core)
            .max(setup.max)
            .growth(Growth::QueueFirst)
            .queue(queue(setup.queue, &ManualClock::clock(&hand)))
            .rejection(rejection(setup.policy))
            .keep_alive(Duration::from_secs(setup.keep_alive))
            .core_may_time_out(setup.core_may_time_out)
            .threads(threads)
            .hooks(Counts::clone(&counts))
            .on_panic(drop)
            .clock(hand.clock())
            .build()?;
        Ok(Player {
            pool,
            ledger: Arc::default(),
            stillness,
            timeout,
            hand,
            refuses_threads,
            counts,
            handles: BTreeMap::new(),
            policy: setup.policy,
            has_died: false,
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
            Step::Submission(submission) => {
                self.submit(*submission);
                self.rest()?;
                if self.ledger.fate(submission.number) == Fate::Refused {
                    self.handles.remove(&submission.number);
                }
                self.ledger.called(submission.number).to_owned()
            }
            Step::Release(numbers) => {
                let released = self.ledger.order(numbers, Order::Return);
                released
                    .into_iter()
                    .map(yes_or_no)
                    .collect::<Vec<_>>()
                    .join(" ")
            }
            Step::Fail(number) => {
                let done = self.ledger.order(&[*number], Order::Fail)[0];
                self.has_died |= done && !self.handles.contains_key(number);
                yes_or_no(done).into()
            }
            Step::Cancel(number) => {
                self.through_handle(*number, Fate::Cancelled, |_, handle| handle.cancel())
            }
            Step::Interrupt(number) => {
                self.through_handle(*number, Fate::Cancelled, |_, handle| handle.interrupt())
            }
            Step::Remove(number) => {
                self.through_handle(*number, Fate::Removed, |pool, handle| pool.remove(handle))
            }
            Step::Core(size) => validity(self.pool.set_core(*size)),
            Step::Max(size) => validity(self.pool.set_max(*size)),
            Step::Capacity(bound) => validity(self.pool.set_capacity(*bound)),
            Step::KeepAlive(seconds) => {
                validity(self.pool.set_keep_alive(Duration::from_secs(*seconds)))
            }
            Step::CoreMayTimeOut(yes) => validity(self.pool.set_core_may_time_out(*yes)),
            Step::Policy(policy) => {
                self.policy = *policy;
                self.pool.set_rejection(rejection(*policy));
                "ok".into()
            }
            // A thread that cannot be started is an error for us; Java says that none was (DIFF-8).
            Step::Prestart => yes_or_no(self.pool.prestart_core().unwrap_or(false)).into(),
            Step::PrestartAll => self.prestart_all(),
            Step::IdleOut => {
                self.idle_out()?;
                "ok".into()
            }
            Step::Threads(work) => {
                self.refuses_threads.store(!work, Ordering::SeqCst);
                "ok".into()
            }
            Step::Shutdown => {
                self.pool.shutdown();
                "ok".into()
            }
            Step::ShutdownNow => self.shutdown_now(),
            Step::Expect(_) | Step::Compute(_) | Step::Quiescence | Step::Future(_) => {
                unreachable!("only what is played on a thread pool comes here")
            }
        };
        self.rest()?;
        Ok(format!(
            "{outcome}; {}; {}",
            self.ledger.events(),
            self.readings()
        ))
    }

    fn end(&mut self) -> Result<String, Stuck> {
        self.refuses_threads.store(false, Ordering::SeqCst);
        self.ledger.open_all();
        self.pool.shutdown();
        self.rest()?;
        if !self.pool.is_terminated() {
            return Err(self.complaint("it does not end"));
        }
        let (events, fates) = (self.ledger.events(), self.ledger.fates());
        Ok(format!("end; {events}; {fates}; {}", self.readings()))
    }

    /// Releases all waiting threads, so that a script that was stuck costs the next one
    /// nothing.
    pub(super) fn let_go(&self) {
        self.ledger.open_all();
        drop(self.pool.shutdown_now());
    }

    fn rest(&self) -> Result<(), Stuck> {
        self.stillness
            .wait(self.timeout)
            .map_err(|problem| self.complaint(&problem))
    }

    fn complaint(&self, problem: &str) -> Stuck {
        let waits: Vec<String> = probe::waits().iter().map(ToString::to_string).collect();
        format!("{problem}; {}; {}", self.pool.snapshot(), waits.join(", "))
    }

    /// With caller-runs the call may stay for as long as the task does, so it has a thread of its
    /// own.
    fn submit(&mut self, submission: Submission) {
        let number = submission.number;
        let spec = TaskSpec::new()
            .name(number.to_string())
            .clock(self.pool.clock());
        let body = self.ledger.body(submission);
        let task = if submission.has_handle {
            let (task, handle) = spec.build(body);
            self.handles.insert(number, handle);
            task
        } else {
            spec.build_detached(body)
        };
        let (pool, ledger) = (self.pool.clone(), Arc::clone(&self.ledger));
        let call = move || {
            if let Err(refused) = pool.execute_task(task) {
                ledger.settle(number, Fate::Refused);
                drop(refused);
            }
        };
        if self.policy == Policy::CallerRuns {
            thread::spawn(self.stillness.watch(call));
        } else {
            call();
        }
    }

    /// Does something with the handle of a task; if it has not begun, that is what becomes of it.
    fn through_handle(
        &self,
        number: Number,
        fate: Fate,
        act: impl FnOnce(&ThreadPool, &TaskHandle<()>) -> bool,
    ) -> String {
        let Some(handle) = self.handles.get(&number) else {
            return "no-handle".into();
        };
        self.ledger.settle(number, fate);
        yes_or_no(act(&self.pool, handle)).into()
    }

    fn prestart_all(&self) -> String {
        let before = self.pool.snapshot().threads_started;
        let started = match self.pool.prestart_all_core() {
            Ok(started) => started as u64,
            // Java tells how many could be started before one could not (DIFF-8).
            Err(_) => self.pool.snapshot().threads_started - before,
        };
        started.to_string()
    }

    /// The keep-alive of every idle worker that may exit passes. Time advances until none exits any more.
    fn idle_out(&self) -> Result<(), Stuck> {
        loop {
            let before = self.pool.snapshot().workers;
            self.hand.advance(self.pool.keep_alive());
            self.rest()?;
            if self.pool.snapshot().workers == before {
                return Ok(());
            }
        }
    }

    fn shutdown_now(&self) -> String {
        let mut words = vec!["returned".to_owned()];
        for task in self.pool.shutdown_now() {
            if let Some(number) = number_of(&task) {
                self.ledger.settle(number, Fate::Returned);
                words.push(number.to_string());
            }
        }
        words.join(" ")
    }

    fn readings(&self) -> String {
        let now = self.pool.snapshot();
        let tasks = self.pool.queued_tasks();
        // The tombstone of a cancelled task does not count against the capacity; Java's side purges it (DIFF-1).
        let queue: Vec<&str> = tasks
            .iter()
            .filter(|task| !task.is_gone())
            .filter_map(|task| task.name())
            .collect();
        let gone = tasks.len() - queue.len();
        let state = match now.state {
            RunState::Running => "running",
            RunState::ShutDown | RunState::Stopped | RunState::Tidying => "shut-down",
            RunState::Terminated => "terminated",
        };
        let capacity = now
            .capacity
            .map_or("none".to_owned(), |bound| bound.to_string());
        let threads = if self.has_died {
            "*".to_owned()
        } else {
            now.threads_started.to_string()
        };
        let [before, after, terminated] = self.counts.read();
        format!(
            "size={} active={} queued={} queue=[{}] completed={} largest={} tasks={} core={} max={} \
             capacity={capacity} keep-alive={} core-may-time-out={} state={state} threads={threads} \
             before={before} after={after} terminated={terminated}",
            now.workers,
            now.active,
            now.queued - gone,
            queue.join(","),
            now.completed_by_workers(),
            now.largest,
            now.task_count() - gone as u64,
            now.core,
            now.max,
            now.keep_alive.as_secs(),
            yes_or_no(now.core_may_time_out),
        )
    }
}

fn number_of(task: &Task) -> Option<Number> {
    task.name()?.parse().ok()
}

fn validity(changed: Result<(), PatchError>) -> String {
    match changed {
        Ok(()) => "ok".into(),
        Err(_) => "invalid".into(),
    }
}

fn queue(flavor: Flavor, clock: &Clock) -> Queue {
    match flavor {
        Flavor::Linked(bound) => Queue::bounded(bound),
        // The pool takes any queue; this one it does not know from the inside.
        Flavor::Array(capacity) => {
            let queue =
                FifoQueue::bounded(capacity).expect("a script that was read has no queue for 0");
            Queue::custom(queue.with_clock(clock.clone()))
        }
        Flavor::Unbounded => Queue::unbounded(),
        Flavor::HandOff => Queue::hand_off(),
    }
}

fn rejection(policy: Policy) -> RejectionPolicy {
    match policy {
        Policy::Abort => RejectionPolicy::Abort,
        Policy::CallerRuns => RejectionPolicy::CallerRuns,
        Policy::Discard => RejectionPolicy::Discard,
        Policy::DiscardOldest => RejectionPolicy::DiscardOldest,
    }
}
