//! Results in the order in which they come.
//!
//! The service does not wrap the closures: it puts a waker of its own on each handle before the task
//! goes out. Whatever ends the task, a value, a panic, a cancellation, an executor that drops it,
//! calls the waker; so everything that was submitted arrives, once.
//!
//! ```text
//!   submit -> pending { id: handle } --its waker is called--> arrived [ (id, result), ... ] -> take
//! ```
//!
//! A task with a deadline that nobody has started by then is cancelled by whoever takes or polls, as a join or
//! a future would do, and arrives. Who waits sleeps no longer than until the first of these deadlines. They
//! count when the executor has said yes: a refusal gives the closure back, be it as late as it may, so nothing
//! must cancel the task before.
//!
//! Who takes in a worker of the very pool that has the pending tasks in its queue, and finds none that
//! has arrived, runs one of them in place, the oldest, before it waits; as whoever joins there does.

use super::watched::Watched;
use super::{Executor, Rejected};
use crate::interrupt::{self, Interrupted, Look, WaitError};
use crate::task::{self, Expiry, Queued, TaskError, TaskHandle, TaskSpec};
use crate::time::{Clock, Deadline};
use millpond_raw::park::Site;
use millpond_raw::user_code::{self, Kind};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Weak};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

/// Which task of a [`CompletionService`]: what `submit` returned is what the result carries.
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
/// let arrived = results.take()?;
/// // Which grain has been weighed?
/// assert_eq!(sacks[&arrived.id].len(), arrived.result?);
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
/// // What has failed arrives as well.
/// let arrived = results.take()?;
/// assert_eq!(arrived.id, broken);
/// assert!(arrived.result.unwrap_err().is_panicked());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Arrived<T> {
    /// Which one.
    pub id: TaskId,
    /// What came of it.
    pub result: Result<T, TaskError>,
}

/// The tasks that are out, and the results that are in.
pub(super) struct Arrivals<T: Send + 'static> {
    lists: Watched<Lists<T>>,
    /// What the wakers hold on to: weakly, because the handles hold the wakers.
    this: Weak<Self>,
}

struct Lists<T> {
    next: u64,
    pending: HashMap<TaskId, Pending<T>>,
    /// The deadlines of those that are pending, by the executor's clock.
    deadlines: BTreeSet<(Deadline, TaskId)>,
    /// Those that are pending and have a deadline by another clock.
    by_other_clocks: BTreeMap<TaskId, Arc<Expiry>>,
    arrived: VecDeque<Arrived<T>>,
}

struct Pending<T> {
    handle: TaskHandle<T>,
    /// The executor has said yes: it will not give the task back, so a waiter may run it.
    is_accepted: bool,
    /// Cancels it at its deadline, if it has one.
    expiry: Option<Arc<Expiry>>,
}

impl<T> Lists<T> {
    /// Takes it out; what this returns is to be dropped without the lock.
    fn remove(&mut self, id: TaskId) -> Option<(Pending<T>, Option<Arc<Expiry>>)> {
        let pending = self.pending.remove(&id)?;
        if pending.expiry.is_some() {
            self.deadlines.remove(&(pending.handle.deadline(), id));
        }
        Some((pending, self.by_other_clocks.remove(&id)))
    }

    /// The deadlines that have passed by now. Each is found once.
    fn late(&mut self, clock: &Clock) -> Vec<Arc<Expiry>> {
        let mut late = Vec::new();
        if self.deadlines.is_empty() {
            return late;
        }
        let now = clock.now();
        while let Some((deadline, id)) = self.deadlines.first().copied() {
            if !deadline.has_passed(now) {
                break;
            }
            self.deadlines.pop_first();
            let expiry = self.pending.get(&id).and_then(|one| one.expiry.clone());
            late.extend(expiry);
        }
        late
    }

    /// When the next deadline comes.
    fn next_deadline(&self) -> Deadline {
        let next = self.deadlines.first();
        next.map_or(Deadline::NEVER, |(deadline, _)| *deadline)
    }
}

impl<T: Send + 'static> Arrivals<T> {
    pub(super) fn new() -> Arc<Self> {
        Arc::new_cyclic(|this| Arrivals {
            lists: Watched::new(Lists {
                next: 0,
                pending: HashMap::new(),
                deadlines: BTreeSet::new(),
                by_other_clocks: BTreeMap::new(),
                arrived: VecDeque::new(),
            }),
            this: this.clone(),
        })
    }

    /// Brings a task to the executor, and waits for room there no longer than `deadline`.
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
        let id = self.lists.with(|lists| {
            lists.next += 1;
            TaskId(lists.next)
        });
        let bell = Waker::from(Arc::new(Bell {
            arrivals: self.this.clone(),
            id,
        }));
        // Nobody has the task yet, so it has not ended: the waker is on before anything happens.
        let polled = handle.poll_end(&mut Context::from_waker(&bell));
        debug_assert!(polled.is_pending());
        let has_deadline = handle.deadline() != Deadline::NEVER;
        let pending = Pending {
            handle,
            is_accepted: false,
            expiry: None,
        };
        self.lists.with(|lists| lists.pending.insert(id, pending));
        user_code::check(Kind::Executor);
        if let Err(refused) = executor.execute_until(task, deadline) {
            // Before the closure is taken back, which ends the task: a refusal is no arrival.
            drop(self.lists.with(|lists| lists.remove(id)));
            return Err(refused.reclaim());
        }
        let accepted = |lists: &mut Lists<T>| {
            if let Some(pending) = lists.pending.get_mut(&id) {
                pending.is_accepted = true;
            }
        };
        self.lists.with(accepted);
        if has_deadline {
            self.watches_deadline(id, &executor.clock());
        }
        Ok(id)
    }

    /// From now on whoever takes sees to the deadline of this task. Who waits already is told.
    #[cold]
    fn watches_deadline(&self, id: TaskId, clock: &Clock) {
        self.lists.change(|lists| {
            let Some(pending) = lists.pending.get_mut(&id) else {
                return;
            };
            let expiry = Arc::new(pending.handle.expiry());
            pending.expiry = Some(Arc::clone(&expiry));
            match expiry.clock().is(clock) {
                true => {
                    lists.deadlines.insert((pending.handle.deadline(), id));
                }
                false => {
                    lists.by_other_clocks.insert(id, expiry);
                }
            }
        });
    }

    /// Moves a task that has ended to the results, in one step: it is always in one of the lists.
    fn arrive(&self, id: TaskId) {
        let ended = self.lists.change(|lists| {
            let result = lists.pending.get_mut(&id)?.handle.try_join()?;
            lists.arrived.push_back(Arrived { id, result });
            lists.remove(id)
        });
        // Not under the lock.
        drop(ended);
    }

    pub(super) fn poll(&self) -> Option<Arrived<T>> {
        self.lists.with(|lists| lists.arrived.pop_front())
    }

    /// The same; if nothing has arrived, what is too late by now is cancelled first, and arrives.
    fn poll_or_expire(&self, clock: &Clock) -> Option<Arrived<T>> {
        self.poll().or_else(|| {
            self.expire(clock);
            self.poll()
        })
    }

    /// Cancels what is too late by now, and has not begun; it arrives.
    fn expire(&self, clock: &Clock) {
        let late = self.lists.with(|lists| {
            let mut late = lists.late(clock);
            late.extend(lists.by_other_clocks.values().cloned());
            late
        });
        // Not under the lock: this drops closures, and calls wakers.
        for expiry in late {
            expiry.look();
        }
    }

    pub(super) fn wait(
        &self,
        site: &'static str,
        clock: &Clock,
        deadline: Deadline,
    ) -> Result<Arrived<T>, WaitError> {
        while let Some(queued) = self.queued_at_home() {
            // One that is too late, or that another has claimed meanwhile, is not found again.
            if !queued.self_join(deadline) && queued.is_unstarted() {
                break;
            }
        }
        let (mut found, mut alarms) = (self.poll_or_expire(clock), Vec::new());
        if let Some(found) = found {
            return Ok(found);
        }
        let mut place = self.lists.listed();
        let site = Site::new(site).on(&self.lists);
        interrupt::wait(site, clock, deadline, |waker| {
            place.take(waker);
            found = self.poll_or_expire(clock);
            if found.is_some() {
                return Look::Done;
            }
            let (next, others) = self.lists.with(|lists| {
                let others: Vec<_> = lists.by_other_clocks.values().cloned().collect();
                (lists.next_deadline(), others)
            });
            // Without a timer they are left to the executor, which drops them when their turn comes.
            let alarm = |expiry: Arc<Expiry>| {
                let alarm = expiry.clock().alarm(expiry.look(), waker);
                alarm.unwrap_or_else(|unattended| unattended.alarm)
            };
            alarms = others.into_iter().map(alarm).collect();
            Look::AgainAt(next)
        })?;
        Ok(found.expect("the wait ends well when something is found"))
    }

    /// The oldest task that this thread may run in place, if nothing has arrived.
    fn queued_at_home(&self) -> Option<Queued> {
        if !task::is_at_home() {
            return None;
        }
        self.lists.with(|lists| {
            if !lists.arrived.is_empty() {
                return None;
            }
            let may = |one: &Pending<T>| one.is_accepted && !one.handle.is_started();
            let unstarted = lists.pending.iter().filter(|(_, one)| may(one));
            let (_, oldest) = unstarted.min_by_key(|(id, _)| **id)?;
            oldest.handle.queued_at_home()
        })
    }

    /// Forgets all that is pending, and returns the handles.
    pub(super) fn give_up(&self) -> Vec<TaskHandle<T>> {
        let (pending, others) = self.lists.with(|lists| {
            lists.deadlines.clear();
            let others = std::mem::take(&mut lists.by_other_clocks);
            (std::mem::take(&mut lists.pending), others)
        });
        drop(others);
        pending.into_values().map(|one| one.handle).collect()
    }

    /// Cancels one. Not under the lock: cancelling drops a closure and calls a waker.
    fn interrupt(&self, id: TaskId) -> bool {
        let Some((Pending { mut handle, .. }, _expiry)) = self.lists.with(|lists| lists.remove(id))
        else {
            return false;
        };
        let cancelled = handle.interrupt();
        // It has ended, by this or before.
        if let Some(result) = handle.try_join() {
            self.lists
                .change(|lists| lists.arrived.push_back(Arrived { id, result }));
        }
        cancelled
    }
}

/// Rings when a task ends.
struct Bell<T: Send + 'static> {
    arrivals: Weak<Arrivals<T>>,
    id: TaskId,
}

impl<T: Send + 'static> Wake for Bell<T> {
    fn wake(self: Arc<Self>) {
        if let Some(arrivals) = self.arrivals.upgrade() {
            arrivals.arrive(self.id);
        }
    }
}

/// Brings tasks to an executor and gives their results in the order in which they come.
///
/// It can be shared: any number may submit and take. Dropping it lets the tasks go on.
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
    arrivals: Arc<Arrivals<T>>,
}

impl<T: Send + 'static, E: Executor> CompletionService<T, E> {
    /// A service over this executor.
    ///
    /// ```
    /// use millpond::executor::{CompletionService, Lifecycle, ThreadPerTask};
    ///
    /// let threads = ThreadPerTask::builder("mill", 4).build()?;
    /// // A reference to an executor is one, so others can use it, too.
    /// let results = CompletionService::new(&threads);
    /// results.submit(|| "flour")?;
    /// assert_eq!(results.take()?.result?, "flour");
    /// threads.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(executor: E) -> Self {
        CompletionService {
            executor,
            arrivals: Arrivals::new(),
        }
    }

    /// The executor below.
    ///
    /// ```
    /// use millpond::executor::{CompletionService, Lifecycle, ThreadPerTask};
    ///
    /// let results = CompletionService::new(ThreadPerTask::builder("mill", 4).build()?);
    /// results.submit(|| "flour")?;
    /// results.executor().close()?;
    /// // All that was accepted has run, and waits to be taken.
    /// assert_eq!(results.take()?.result?, "flour");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn executor(&self) -> &E {
        &self.executor
    }

    /// Runs the closure; its result will arrive under the id that is returned.
    ///
    /// # Errors
    ///
    /// The closure, if the executor refuses it; then nothing arrives.
    ///
    /// ```
    /// use millpond::executor::{CompletionService, Lifecycle, ThreadPerTask};
    ///
    /// let results = CompletionService::new(ThreadPerTask::builder("mill", 4).build()?);
    /// let id = results.submit(|| "flour")?;
    /// assert_eq!(results.take()?.id, id);
    ///
    /// results.executor().shutdown();
    /// let refused = results.submit(|| "flour").unwrap_err();
    /// assert!(refused.reason.is_shut_down());
    /// assert_eq!(results.pending() + results.arrived(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn submit<F>(&self, f: F) -> Result<TaskId, Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'static,
    {
        self.submit_spec(TaskSpec::new(), f)
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
    /// results.submit_spec(TaskSpec::new().name("grind"), || task::new(|| "flour").1)?;
    /// // What a task makes has its name.
    /// assert_eq!(results.take()?.result?.name(), Some("grind"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn submit_spec<F>(&self, spec: TaskSpec, f: F) -> Result<TaskId, Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'static,
    {
        self.arrivals
            .submit(&self.executor, spec, f, Deadline::NEVER)
    }

    /// Waits for the next result. If nothing is [pending](CompletionService::pending) that means:
    /// until somebody else submits.
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
    pub fn take(&self) -> Result<Arrived<T>, Interrupted> {
        let arrived = self.next(Deadline::NEVER)?;
        Ok(arrived.expect("a wait without a deadline ends with a result"))
    }

    /// The next result, if it is there.
    ///
    /// ```
    /// use millpond::executor::{CompletionService, DirectExecutor};
    ///
    /// let results = CompletionService::new(DirectExecutor::new());
    /// assert!(results.poll().is_none());
    /// let id = results.submit(|| "flour")?;
    /// assert_eq!(results.poll().map(|arrived| arrived.id), Some(id));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn poll(&self) -> Option<Arrived<T>> {
        self.arrivals.poll_or_expire(&self.executor.clock())
    }

    /// Waits for the next result, but not longer than `patience`; `None` if the time was up.
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
    /// assert!(results.poll_timeout(Duration::MAX)?.is_some_and(|arrived| arrived.id == id));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "poll")]
    pub fn poll_timeout(&self, patience: Duration) -> Result<Option<Arrived<T>>, Interrupted> {
        self.next(self.executor.clock().deadline(patience))
    }

    fn next(&self, deadline: Deadline) -> Result<Option<Arrived<T>>, Interrupted> {
        crate::interrupt::check()?;
        let clock = self.executor.clock();
        match self.arrivals.wait("completion.take", &clock, deadline) {
            Ok(arrived) => Ok(Some(arrived)),
            Err(WaitError::TimedOut) => Ok(None),
            Err(WaitError::Interrupted) => Err(Interrupted),
        }
    }

    /// How many tasks have been submitted and have not arrived.
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
        self.arrivals.expire(&self.executor.clock());
        self.arrivals.lists.with(|lists| lists.pending.len())
    }

    /// How many results have arrived and have not been taken.
    ///
    /// ```
    /// use millpond::executor::{CompletionService, DirectExecutor};
    ///
    /// let results = CompletionService::new(DirectExecutor::new());
    /// results.submit(|| "rye")?;
    /// results.submit(|| "oats")?;
    /// assert_eq!(results.arrived(), 2);
    /// results.take()?;
    /// assert_eq!(results.arrived(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn arrived(&self) -> usize {
        self.arrivals.expire(&self.executor.clock());
        self.arrivals.lists.with(|lists| lists.arrived.len())
    }

    /// Cancels a task and, if it runs, asks it to stop. It arrives at once, as cancelled. Returns
    /// false if it has ended before.
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
        self.arrivals.interrupt(id)
    }

    /// Cancels all that is pending, and asks what runs to stop. All of it arrives at once.
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
    /// assert_eq!((results.pending(), results.arrived()), (0, 1));
    /// results.executor().close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn interrupt_all(&self) {
        let pending: Vec<TaskId> = self
            .arrivals
            .lists
            .with(|lists| lists.pending.keys().copied().collect());
        for id in pending {
            self.arrivals.interrupt(id);
        }
    }
}

impl<T: Send + 'static, E: fmt::Debug> fmt::Debug for CompletionService<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (pending, arrived) = self
            .arrivals
            .lists
            .with(|lists| (lists.pending.len(), lists.arrived.len()));
        f.debug_struct("CompletionService")
            .field("executor", &self.executor)
            .field("pending", &pending)
            .field("arrived", &arrived)
            .finish()
    }
}
