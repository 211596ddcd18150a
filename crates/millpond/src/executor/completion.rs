//! Results in the order of completion.
//!
//! The service does not wrap the closures: it registers a waker on each handle before it submits the task. Whatever ends
//! the task, a value, a panic, a cancellation, an executor that drops it, calls the waker; so every submitted task
//! completes here, once.
//!
//! ```text
//!   submit -> pending { id: handle } --its waker is called--> ready [ (id, result), ... ] -> take
//! ```
//!
//! A task that is unstarted at its deadline is cancelled by the next caller that takes or polls, as a join or a future
//! would do, and completes. A waiting caller sleeps no longer than until the first of these deadlines. They apply once
//! the executor has accepted the task: a rejection gives the closure back, however late, so the task must not be
//! cancelled before.
//!
//! A caller that takes on a worker of the very pool that has the pending tasks in its queue, and finds none that is ready,
//! runs the oldest of them inline before it waits, as a join does there.

use super::waitable::Waitable;
use super::{Executor, Rejected};
use crate::interrupt::{self, Interrupted, Look, WaitError};
use crate::task::{self, Expiry, InlineCandidate, TaskError, TaskHandle, TaskSpec};
use crate::time::{Clock, Deadline};
use millpond_raw::park::Site;
use millpond_raw::user_code::{self, Kind};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Weak};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

/// Identifies a task of a [`CompletionService`]: `submit` returns it, and the result carries it.
///
/// ```
/// use millpond::executor::{CompletionService, DirectExecutor};
/// use std::collections::HashMap;
///
/// let results = CompletionService::new(DirectExecutor::new());
/// let mut sacks = HashMap::new();
/// for grain in ["rye", "oats"] {
///     sacks.insert(results.submit(|| grain.len())?, grain);
/// }
/// let completed = results.take()?;
/// // Which grain has been weighed?
/// assert_eq!(sacks[&completed.id].len(), completed.result?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId(u64);

/// A task that has ended.
///
/// ```
/// use millpond::executor::{CompletionService, DirectExecutor};
///
/// let results = CompletionService::new(DirectExecutor::new());
/// let broken = results.submit(|| -> u32 { panic!("the dam broke") })?;
/// // A failure is a completion as well.
/// let completed = results.take()?;
/// assert_eq!(completed.id, broken);
/// assert!(completed.result.unwrap_err().is_panicked());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Completion<T> {
    /// The task.
    pub id: TaskId,
    /// Its result.
    pub result: Result<T, TaskError>,
}

/// The pending tasks, and the results that are ready.
pub(super) struct Completions<T: Send + 'static> {
    state: Waitable<State<T>>,
    /// For the wakers, which the handles own.
    this: Weak<Self>,
}

struct State<T> {
    next: u64,
    pending: HashMap<TaskId, Pending<T>>,
    /// The deadlines of pending tasks, by the executor's clock.
    deadlines: BTreeSet<(Deadline, TaskId)>,
    /// Pending tasks that have a deadline by another clock.
    by_other_clocks: BTreeMap<TaskId, Arc<Expiry>>,
    ready: VecDeque<Completion<T>>,
}

struct Pending<T> {
    handle: TaskHandle<T>,
    /// The executor has accepted it and will not return it, so a waiter may run it.
    is_accepted: bool,
    /// For cancelling it at its deadline, if it has one.
    expiry: Option<Arc<Expiry>>,
}

impl<T> State<T> {
    /// Removes it. The result must be dropped outside the lock.
    fn remove(&mut self, id: TaskId) -> Option<(Pending<T>, Option<Arc<Expiry>>)> {
        let pending = self.pending.remove(&id)?;
        if pending.expiry.is_some() {
            self.deadlines.remove(&(pending.handle.deadline(), id));
        }
        Some((pending, self.by_other_clocks.remove(&id)))
    }

    /// The tasks whose deadlines have passed by now. Each is returned once.
    fn take_expired(&mut self, clock: &Clock) -> Vec<Arc<Expiry>> {
        let mut expired = Vec::new();
        if self.deadlines.is_empty() {
            return expired;
        }
        let now = clock.now();
        while let Some((deadline, id)) = self.deadlines.first().copied() {
            if !deadline.has_passed(now) {
                break;
            }
            self.deadlines.pop_first();
            let expiry = self.pending.get(&id).and_then(|one| one.expiry.clone());
            expired.extend(expiry);
        }
        expired
    }

    /// The next deadline.
    fn next_deadline(&self) -> Deadline {
        let next = self.deadlines.first();
        next.map_or(Deadline::NEVER, |(deadline, _)| *deadline)
    }
}

impl<T: Send + 'static> Completions<T> {
    pub(super) fn new() -> Arc<Self> {
        Arc::new_cyclic(|this| Completions {
            state: Waitable::new(State {
                next: 0,
                pending: HashMap::new(),
                deadlines: BTreeSet::new(),
                by_other_clocks: BTreeMap::new(),
                ready: VecDeque::new(),
            }),
            this: this.clone(),
        })
    }

    /// Submits a task to the executor, and waits for room there no longer than `deadline`.
    pub(super) fn submit<E, F>(
        &self,
        executor: &E,
        spec: TaskSpec,
        f: F,
        deadline: Deadline,
    ) -> Result<TaskId, Rejected<F>>
    where
        E: Executor + ?Sized,
        F: FnOnce() -> T + Send + 'static,
    {
        let (task, mut handle) = spec.clock_by_default(executor.clock()).build(f);
        let id = self.state.with(|state| {
            state.next += 1;
            TaskId(state.next)
        });
        let waker = Waker::from(Arc::new(CompletionWaker {
            completions: self.this.clone(),
            id,
        }));
        // The task has not been submitted, so it has not ended: the waker is registered before anything happens.
        let polled = handle.poll_end(&mut Context::from_waker(&waker));
        debug_assert!(polled.is_pending());
        let has_deadline = handle.deadline() != Deadline::NEVER;
        let pending = Pending {
            handle,
            is_accepted: false,
            expiry: None,
        };
        self.state.with(|state| state.pending.insert(id, pending));
        user_code::check(Kind::Executor);
        if let Err(rejected) = executor.execute_task_until(task, deadline) {
            // Before the closure is reclaimed, which ends the task: a rejection is no completion.
            drop(self.state.with(|state| state.remove(id)));
            return Err(rejected.reclaim());
        }
        let accepted = |state: &mut State<T>| {
            if let Some(pending) = state.pending.get_mut(&id) {
                pending.is_accepted = true;
            }
        };
        self.state.with(accepted);
        if has_deadline {
            self.watch_deadline(id, &executor.clock());
        }
        Ok(id)
    }

    /// From now on callers of `take` enforce the deadline of this task. Waiting ones are woken to see it.
    #[cold]
    fn watch_deadline(&self, id: TaskId, clock: &Clock) {
        self.state.change(|state| {
            let Some(pending) = state.pending.get_mut(&id) else {
                return;
            };
            let expiry = Arc::new(pending.handle.expiry());
            pending.expiry = Some(Arc::clone(&expiry));
            if expiry.clock().agrees_with(clock) {
                state.deadlines.insert((pending.handle.deadline(), id));
            } else {
                state.by_other_clocks.insert(id, expiry);
            }
        });
    }

    /// Moves an ended task from the pending tasks to the ready results, in one step: it is always in one of them.
    fn complete(&self, id: TaskId) {
        let ended = self.state.change(|state| {
            let result = state.pending.get_mut(&id)?.handle.try_join()?;
            state.ready.push_back(Completion { id, result });
            state.remove(id)
        });
        // Not under the lock.
        drop(ended);
    }

    pub(super) fn poll(&self) -> Option<Completion<T>> {
        self.state.with(|state| state.ready.pop_front())
    }

    /// As `poll`, but if nothing is ready it first cancels tasks that have expired, which then are.
    fn poll_or_expire(&self, clock: &Clock) -> Option<Completion<T>> {
        self.poll().or_else(|| {
            self.expire(clock);
            self.poll()
        })
    }

    /// Cancels unstarted tasks whose deadlines have passed, which completes them.
    fn expire(&self, clock: &Clock) {
        let expired = self.state.with(|state| {
            let mut expired = state.take_expired(clock);
            expired.extend(state.by_other_clocks.values().cloned());
            expired
        });
        // Not under the lock: this drops closures, and calls wakers.
        for expiry in expired {
            expiry.check();
        }
    }

    pub(super) fn wait(
        &self,
        site: &'static str,
        clock: &Clock,
        deadline: Deadline,
    ) -> Result<Completion<T>, WaitError> {
        while let Some(candidate) = self.inline_candidate() {
            // An expired one, or one that another thread has claimed meanwhile, is not found again.
            if !candidate.self_join(deadline) && candidate.is_unstarted() {
                break;
            }
        }
        let (mut found, mut alarms) = (self.poll_or_expire(clock), Vec::new());
        if let Some(found) = found {
            return Ok(found);
        }
        let mut registration = self.state.registration();
        let site = Site::new(site).on(&self.state);
        interrupt::wait(site, clock, deadline, |waker| {
            registration.register(waker);
            found = self.poll_or_expire(clock);
            if found.is_some() {
                return Look::Done;
            }
            let (next, others) = self.state.with(|state| {
                let others: Vec<_> = state.by_other_clocks.values().cloned().collect();
                (state.next_deadline(), others)
            });
            // Without a timer they are left to the executor, which cancels them when their turn comes.
            let alarm = |expiry: Arc<Expiry>| {
                let alarm = expiry.clock().alarm(expiry.check(), waker);
                alarm.unwrap_or_else(|no_thread| no_thread.alarm)
            };
            alarms = others.into_iter().map(alarm).collect();
            Look::RecheckAt(next)
        })?;
        Ok(found.expect("the wait succeeds only if something is found"))
    }

    /// The oldest task that this thread may run inline, if nothing is ready.
    fn inline_candidate(&self) -> Option<InlineCandidate> {
        if !task::on_engine_worker() {
            return None;
        }
        self.state.with(|state| {
            if !state.ready.is_empty() {
                return None;
            }
            let may = |one: &Pending<T>| one.is_accepted && !one.handle.is_started();
            let unstarted = state.pending.iter().filter(|(_, one)| may(one));
            let (_, oldest) = unstarted.min_by_key(|(id, _)| **id)?;
            oldest.handle.inline_candidate()
        })
    }

    /// Removes all pending tasks, and returns their handles.
    pub(super) fn take_pending(&self) -> Vec<TaskHandle<T>> {
        let (pending, others) = self.state.with(|state| {
            state.deadlines.clear();
            let others = std::mem::take(&mut state.by_other_clocks);
            (std::mem::take(&mut state.pending), others)
        });
        drop(others);
        pending.into_values().map(|one| one.handle).collect()
    }

    /// Cancels one. Not under the lock: cancelling drops a closure and calls a waker.
    fn interrupt(&self, id: TaskId) -> bool {
        let Some((Pending { mut handle, .. }, _expiry)) = self.state.with(|state| state.remove(id))
        else {
            return false;
        };
        let cancelled = handle.interrupt();
        // The task has ended, by this call or before.
        if let Some(result) = handle.try_join() {
            self.state
                .change(|state| state.ready.push_back(Completion { id, result }));
        }
        cancelled
    }
}

/// Moves its task to the ready results when the task ends.
struct CompletionWaker<T: Send + 'static> {
    completions: Weak<Completions<T>>,
    id: TaskId,
}

impl<T: Send + 'static> Wake for CompletionWaker<T> {
    fn wake(self: Arc<Self>) {
        if let Some(completions) = self.completions.upgrade() {
            completions.complete(self.id);
        }
    }
}

/// Submits tasks to an executor and returns their results in the order of completion.
///
/// It can be shared: any number of threads may submit and take. Dropping it lets the tasks go on.
///
/// ```
/// use millpond::executor::{CompletionService, ThreadPerTask};
/// use std::sync::mpsc;
///
/// let results = CompletionService::new(ThreadPerTask::builder("mill", 4).build()?);
/// let (go, may_go) = mpsc::channel();
/// let slow = results.submit(move || { may_go.recv().unwrap(); "slow" })?;
/// let quick = results.submit(|| "quick")?;
/// assert_eq!(results.take()?.id, quick);
/// go.send(())?;
/// let last = results.take()?;
/// assert_eq!((last.id, last.result?), (slow, "slow"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "ExecutorCompletionService")]
pub struct CompletionService<T: Send + 'static, E> {
    executor: E,
    completions: Arc<Completions<T>>,
}

impl<T: Send + 'static, E: Executor> CompletionService<T, E> {
    /// A service over this executor.
    ///
    /// ```
    /// use millpond::executor::{CompletionService, Lifecycle, ThreadPerTask};
    ///
    /// let threads = ThreadPerTask::builder("mill", 4).build()?;
    /// // A reference to an executor is an executor.
    /// let results = CompletionService::new(&threads);
    /// results.submit(|| "flour")?;
    /// assert_eq!(results.take()?.result?, "flour");
    /// threads.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(executor: E) -> Self {
        CompletionService {
            executor,
            completions: Completions::new(),
        }
    }

    /// The executor.
    ///
    /// ```
    /// use millpond::executor::{CompletionService, Lifecycle, ThreadPerTask};
    ///
    /// let results = CompletionService::new(ThreadPerTask::builder("mill", 4).build()?);
    /// results.submit(|| "flour")?;
    /// results.executor().close()?;
    /// // All accepted tasks have run, and their results wait to be taken.
    /// assert_eq!(results.take()?.result?, "flour");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn executor(&self) -> &E {
        &self.executor
    }

    /// Runs the closure; its result will have the id that is returned.
    ///
    /// # Errors
    ///
    /// The closure, if the executor rejects it; then there is no completion.
    ///
    /// ```
    /// use millpond::executor::{CompletionService, Lifecycle, ThreadPerTask};
    ///
    /// let results = CompletionService::new(ThreadPerTask::builder("mill", 4).build()?);
    /// let id = results.submit(|| "flour")?;
    /// assert_eq!(results.take()?.id, id);
    ///
    /// results.executor().shutdown();
    /// let rejected = results.submit(|| "flour").unwrap_err();
    /// assert!(rejected.reason.is_shut_down());
    /// assert_eq!(results.pending() + results.ready_len(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn submit<F>(&self, f: F) -> Result<TaskId, Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'static,
    {
        self.submit_with(TaskSpec::new(), f)
    }

    /// As [`submit`](CompletionService::submit), for a task that is described.
    ///
    /// # Errors
    ///
    /// As [`submit`](CompletionService::submit).
    ///
    /// ```
    /// use millpond::executor::{CompletionService, DirectExecutor};
    /// use millpond::task::{self, TaskSpec};
    ///
    /// let results = CompletionService::new(DirectExecutor::new());
    /// results.submit_with(TaskSpec::new().name("grind"), || task::new(|| "flour").1)?;
    /// // A task that it creates has its name.
    /// assert_eq!(results.take()?.result?.name(), Some("grind"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn submit_with<F>(&self, spec: TaskSpec, f: F) -> Result<TaskId, Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'static,
    {
        self.completions
            .submit(&self.executor, spec, f, Deadline::NEVER)
    }

    /// Waits for the next result. If nothing is [pending](CompletionService::pending), it waits until another thread
    /// submits.
    ///
    /// # Errors
    ///
    /// The caller, itself a task, was interrupted.
    ///
    /// ```
    /// use millpond::executor::{CompletionService, ThreadPerTask};
    ///
    /// let results = CompletionService::new(ThreadPerTask::builder("mill", 4).build()?);
    /// for sack in 1..=3 {
    ///     results.submit(move || sack * 10)?;
    /// }
    /// let mut flour = 0;
    /// for _ in 1..=3 {
    ///     flour += results.take()?.result?;
    /// }
    /// assert_eq!(flour, 60);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn take(&self) -> Result<Completion<T>, Interrupted> {
        let completed = self.next(Deadline::NEVER)?;
        Ok(completed.expect("a wait without a deadline ends with a result"))
    }

    /// The next result, if it is ready.
    ///
    /// ```
    /// use millpond::executor::{CompletionService, DirectExecutor};
    ///
    /// let results = CompletionService::new(DirectExecutor::new());
    /// assert!(results.poll().is_none());
    /// let id = results.submit(|| "flour")?;
    /// assert_eq!(results.poll().map(|completed| completed.id), Some(id));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn poll(&self) -> Option<Completion<T>> {
        self.completions.poll_or_expire(&self.executor.clock())
    }

    /// Waits for the next result, but not longer than `timeout`, after which it returns `None`.
    ///
    /// # Errors
    ///
    /// The caller, itself a task, was interrupted.
    ///
    /// ```
    /// use millpond::executor::{CompletionService, ThreadPerTask};
    /// use std::{sync::mpsc, time::Duration};
    ///
    /// let results = CompletionService::new(ThreadPerTask::builder("mill", 4).build()?);
    /// let (go, may_go) = mpsc::channel();
    /// let id = results.submit(move || may_go.recv())?;
    /// assert!(results.poll_timeout(Duration::from_millis(1))?.is_none());
    /// go.send("rye")?;
    /// assert!(results.poll_timeout(Duration::MAX)?.is_some_and(|completed| completed.id == id));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "poll")]
    pub fn poll_timeout(&self, timeout: Duration) -> Result<Option<Completion<T>>, Interrupted> {
        self.next(self.executor.clock().deadline(timeout))
    }

    fn next(&self, deadline: Deadline) -> Result<Option<Completion<T>>, Interrupted> {
        crate::interrupt::check()?;
        let clock = self.executor.clock();
        match self.completions.wait("completion.take", &clock, deadline) {
            Ok(completed) => Ok(Some(completed)),
            Err(WaitError::TimedOut) => Ok(None),
            Err(WaitError::Interrupted) => Err(Interrupted),
        }
    }

    /// How many tasks have been submitted and have not completed.
    ///
    /// ```
    /// use millpond::executor::{CompletionService, ThreadPerTask};
    /// use std::sync::mpsc;
    ///
    /// let results = CompletionService::new(ThreadPerTask::builder("mill", 4).build()?);
    /// let (go, may_go) = mpsc::channel();
    /// results.submit(move || may_go.recv())?;
    /// assert_eq!(results.pending(), 1);
    /// go.send("rye")?;
    /// results.take()?;
    /// assert_eq!(results.pending(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pending(&self) -> usize {
        self.completions.expire(&self.executor.clock());
        self.completions.state.with(|state| state.pending.len())
    }

    /// How many results are ready and have not been taken.
    ///
    /// ```
    /// use millpond::executor::{CompletionService, DirectExecutor};
    ///
    /// let results = CompletionService::new(DirectExecutor::new());
    /// results.submit(|| "rye")?;
    /// results.submit(|| "oats")?;
    /// assert_eq!(results.ready_len(), 2);
    /// results.take()?;
    /// assert_eq!(results.ready_len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn ready_len(&self) -> usize {
        self.completions.expire(&self.executor.clock());
        self.completions.state.with(|state| state.ready.len())
    }

    /// Cancels a task and, if it runs, asks it to stop. It completes at once, as cancelled. Returns false if it had ended
    /// before.
    ///
    /// ```
    /// use millpond::executor::{CompletionService, ThreadPerTask};
    /// use millpond::interrupt;
    /// use std::time::Duration;
    ///
    /// let results = CompletionService::new(ThreadPerTask::builder("mill", 4).build()?);
    /// let nap = results.submit(|| interrupt::sleep(Duration::from_secs(3600)))?;
    /// assert!(results.interrupt(nap));
    /// assert!(results.take()?.result.unwrap_err().is_cancelled());
    /// assert!(!results.interrupt(nap));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn interrupt(&self, id: TaskId) -> bool {
        self.completions.interrupt(id)
    }

    /// Cancels all pending tasks, and asks running ones to stop. All of them complete at once.
    ///
    /// ```
    /// use millpond::executor::{CompletionService, Lifecycle, ThreadPerTask};
    /// use millpond::interrupt;
    /// use std::time::Duration;
    ///
    /// let results = CompletionService::new(ThreadPerTask::builder("mill", 4).build()?);
    /// let hour = Duration::from_secs(3600);
    /// results.submit(move || interrupt::sleep(hour).map(|()| "rye"))?;
    /// results.submit(|| Ok("oats"))?;
    /// // One is enough: the rest can stop.
    /// assert!(matches!(results.take()?.result?, Ok("oats")));
    /// results.interrupt_all();
    /// assert_eq!((results.pending(), results.ready_len()), (0, 1));
    /// results.executor().close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn interrupt_all(&self) {
        let pending: Vec<TaskId> = self
            .completions
            .state
            .with(|state| state.pending.keys().copied().collect());
        for id in pending {
            self.completions.interrupt(id);
        }
    }
}

impl<T: Send + 'static, E: fmt::Debug> fmt::Debug for CompletionService<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (pending, ready) = self
            .completions
            .state
            .with(|state| (state.pending.len(), state.ready.len()));
        f.debug_struct("CompletionService")
            .field("executor", &self.executor)
            .field("pending", &pending)
            .field("ready", &ready)
            .finish()
    }
}
