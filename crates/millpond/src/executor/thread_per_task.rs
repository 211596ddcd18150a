//! A new thread for every task, up to a bound.
//!
//! # Life of a thread
//!
//! ```text
//!   execute: 1 reserve a place (bound and run state, one step)  2 the task goes into a slot, which is registered
//!            3 the factory starts the thread                    4 failed? the task is taken out of the slot
//!   thread:  5 takes the task out of its slot                   6 runs it within the slot's stop
//!            7 is unregistered, which frees the place
//! ```
//!
//! # Rules
//!
//! - **THREADS-1** A place is reserved before the thread starts and freed when its *body* is gone: run to the end, or
//!   dropped by a factory that never ran it. A handle that is cancelled while its body runs does not free the place.
//! - **THREADS-2** The task is in its slot until exactly one thread takes it out: its own, to run it; the submitter, if the
//!   thread could not be started; or `shutdown_now`, to return it.
//! - **THREADS-3** A slot is registered before its thread starts, and `shutdown_now` sets the stop of every registered
//!   slot. So a body that has not started by then starts interrupted.

use super::error::{BuildError, RejectReason, Rejected, TryExecuteError};
use super::internals::Internals;
use super::runner::{Runner, UncaughtPanic};
use super::terminated::EndWaiters;
use super::termination::{self, Inside, TerminationError};
use super::traits::{Executor, Lifecycle};
use super::waitable::Waitable;
use crate::interrupt::WaitError;
use crate::task::Task;
use crate::thread::{Body, ThreadFactory, Threads};
use crate::time::{Clock, Deadline, is_timer_thread};
use millpond_raw::catch_panic;
use millpond_raw::fork;
use millpond_raw::park::Site;
use millpond_raw::sync::Mutex;
use millpond_raw::task::Stop;
use millpond_raw::user_code::{self, Kind};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// What to do with a task when the maximum of threads is running.
///
/// ```
/// use millpond::executor::{SaturationPolicy, ExecutorExt, ThreadPerTask};
///
/// // One thread at a time, and nothing is rejected.
/// let threads = ThreadPerTask::builder("mill", 1).at_bound(SaturationPolicy::Block).build()?;
/// let sacks: Vec<_> = (1..=3).map(|sack| threads.submit(move || sack)).collect::<Result<_, _>>()?;
/// for (sack, n) in sacks.into_iter().zip(1..) {
///     assert_eq!(sack.join()?, n);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaturationPolicy {
    /// Reject it.
    Reject,
    /// Block the submitter until a thread ends.
    Block,
    /// Block the submitter, but not longer than this; then reject the task.
    BlockFor(Duration),
}

/// Starts a thread for every task, and never more than its bound at a time.
///
/// For tasks that block for long, are few, or must not share a thread. Dropping it shuts it down and does not wait: running
/// tasks go on.
///
/// ```
/// use millpond::executor::{ExecutorExt, Lifecycle, ThreadPerTask};
///
/// let threads = ThreadPerTask::builder("uploads", 16).build()?;
/// let handle = threads.submit(|| std::thread::current().name().map(str::to_owned))?;
/// assert_eq!(handle.join()?.as_deref(), Some("uploads-1"));
/// threads.close()?;
/// assert!(threads.is_terminated());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "newThreadPerTaskExecutor")]
pub struct ThreadPerTask {
    engine: Arc<Engine>,
}

struct Engine {
    threads: Waitable<ThreadTable>,
    at_bound: SaturationPolicy,
    max_threads: usize,
    factory: Box<dyn ThreadFactory>,
    runner: Runner,
    clock: Clock,
    /// The fork generation that it was built in.
    born: u32,
}

struct ThreadTable {
    shut_down: bool,
    next: u64,
    /// THREADS-1: one for each reserved place.
    slots: BTreeMap<u64, Arc<Slot>>,
}

/// A task that waits for its thread, and the stop of its body.
struct Slot {
    task: Mutex<Option<Task>>,
    stop: Stop,
}

impl Slot {
    fn take(&self) -> Option<Task> {
        self.task.lock().take()
    }
}

impl ThreadPerTask {
    /// An executor whose threads are called `name-1`, `name-2` and so on, at most `max_threads` at a time. By default it
    /// rejects tasks beyond that.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, ThreadPerTask};
    /// use std::sync::mpsc;
    ///
    /// let threads = ThreadPerTask::builder("mill", 1).build()?;
    /// let (go, may_go) = mpsc::channel();
    /// let first = threads.submit(move || may_go.recv())?;
    /// let rejected = threads.submit(|| "flour").unwrap_err();
    /// assert!(rejected.reason.is_saturated());
    /// go.send("rye")?;
    /// assert_eq!(first.join()?, Ok("rye"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder(name: impl Into<Cow<'static, str>>, max_threads: usize) -> ThreadPerTaskBuilder {
        ThreadPerTaskBuilder {
            max_threads,
            at_bound: SaturationPolicy::Reject,
            factory: Box::new(Threads::named(name)),
            runner: Runner::default(),
            clock: Clock::system(),
        }
    }

    /// How many threads there are, including those that are being started.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle, ThreadPerTask};
    /// use std::sync::mpsc;
    ///
    /// let threads = ThreadPerTask::builder("mill", 4).build()?;
    /// let (go, may_go) = mpsc::channel::<()>();
    /// threads.submit(move || may_go.recv())?;
    /// assert_eq!(threads.threads(), 1);
    /// drop(go);
    /// threads.close()?;
    /// assert_eq!(threads.threads(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn threads(&self) -> usize {
        if self.engine.is_forked() {
            0
        } else {
            self.engine.threads.with(|table| table.slots.len())
        }
    }

    /// How many threads there may be.
    ///
    /// ```
    /// use millpond::executor::ThreadPerTask;
    ///
    /// let threads = ThreadPerTask::builder("mill", 4).build()?;
    /// assert_eq!(threads.max_threads(), 4);
    /// # Ok::<(), millpond::executor::BuildError>(())
    /// ```
    pub fn max_threads(&self) -> usize {
        self.engine.max_threads
    }
}

impl Engine {
    /// Reserves a place and registers the slot, in one step (THREADS-1, THREADS-3); waits for a place if the policy says so,
    /// but not longer than `until`.
    fn reserve(&self, slot: &Arc<Slot>, until: Deadline) -> Result<u64, RejectReason> {
        let reserve_place = |table: &mut ThreadTable| -> Option<Result<u64, RejectReason>> {
            if table.shut_down {
                return Some(Err(RejectReason::ShutDown));
            }
            (table.slots.len() < self.max_threads).then(|| {
                table.next += 1;
                table.slots.insert(table.next, Arc::clone(slot));
                Ok(table.next)
            })
        };
        let saturated = RejectReason::saturated(0, 0, self.max_threads);
        let deadline = match self.at_bound {
            SaturationPolicy::Reject => {
                return self.threads.with(reserve_place).unwrap_or(Err(saturated));
            }
            SaturationPolicy::Block => Deadline::NEVER,
            SaturationPolicy::BlockFor(timeout) => self.clock.deadline(timeout),
        };
        let site = Site::new("thread_per_task.execute");
        let deadline = deadline.min(until);
        match self
            .threads
            .wait(site, &self.clock, deadline, reserve_place)
        {
            Ok(reserved) => reserved,
            Err(WaitError::Interrupted) => Err(RejectReason::Interrupted),
            Err(WaitError::TimedOut) => Err(saturated),
        }
    }

    fn start(&self, body: Body) -> io::Result<()> {
        // The factory is the user's: its panic is a failed start.
        user_code::check(Kind::Factory);
        match catch_panic::call(|| self.factory.start(body)) {
            Some(started) => started.map(drop),
            None => Err(io::Error::other("the thread factory panicked")),
        }
    }

    /// Whether its threads are in the parent of this process. Then one of those may hold its lock.
    fn is_forked(&self) -> bool {
        self.born != fork::generation()
    }

    fn shut_down(&self) {
        if self.is_forked() {
            return;
        }
        self.threads.change(|table| table.shut_down = true);
    }
}

/// A reserved place; dropping it frees the place (THREADS-1).
struct ReservedPlace {
    engine: Arc<Engine>,
    number: u64,
    slot: Arc<Slot>,
}

impl ReservedPlace {
    fn work(&self) {
        let _inside = Inside::of(&*self.engine);
        self.slot.stop.enter(|| {
            if let Some(task) = self.slot.take() {
                self.engine.runner.run(task);
            }
        });
    }
}

impl Drop for ReservedPlace {
    fn drop(&mut self) {
        let slot = self
            .engine
            .threads
            .change(|table| table.slots.remove(&self.number));
        drop(slot);
    }
}

impl Executor for ThreadPerTask {
    fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        self.execute_task_until(task, Deadline::NEVER)
    }

    fn execute_task_until(&self, task: Task, deadline: Deadline) -> Result<(), Rejected<Task>> {
        let engine = &self.engine;
        if engine.is_forked() {
            return Err(Rejected::new(task, RejectReason::Forked));
        }
        let slot = Arc::new(Slot {
            task: Mutex::new(Some(task)),
            stop: Stop::new(),
        });
        let rejected = match engine.reserve(&slot, deadline) {
            Err(reason) => reason,
            Ok(number) => {
                let place = ReservedPlace {
                    engine: Arc::clone(engine),
                    number,
                    slot: Arc::clone(&slot),
                };
                match engine.start(Box::new(move || place.work())) {
                    Ok(()) => return Ok(()),
                    Err(error) => RejectReason::SpawnFailed(error),
                }
            }
        };
        // THREADS-2: it is gone if a shutdown has returned it meanwhile, or if the factory has run it after all. Either way
        // it is accounted for.
        match slot.take() {
            Some(task) => Err(Rejected::new(task, rejected)),
            None => Ok(()),
        }
    }

    fn internals(&self) -> Internals<'_> {
        Internals::at(Arc::as_ptr(&self.engine).addr())
    }

    fn try_execute_task(&self, task: Task) -> Result<(), TryExecuteError> {
        match self.engine.at_bound {
            // The factory is the user's, so it is not called on the timer's thread.
            SaturationPolicy::Reject if is_timer_thread() => Err(TryExecuteError::WouldBlock(task)),
            SaturationPolicy::Reject => self.execute_task(task).map_err(TryExecuteError::Rejected),
            SaturationPolicy::Block | SaturationPolicy::BlockFor(_) => {
                Err(TryExecuteError::WouldBlock(task))
            }
        }
    }

    fn clock(&self) -> Clock {
        self.engine.clock.clone()
    }
}

impl Lifecycle for ThreadPerTask {
    fn shutdown(&self) {
        self.engine.shut_down();
    }

    fn shutdown_now(&self) -> Vec<Task> {
        if self.engine.is_forked() {
            return Vec::new();
        }
        let slots: Vec<Arc<Slot>> = self.engine.threads.change(|table| {
            table.shut_down = true;
            table.slots.values().cloned().collect()
        });
        let mut unstarted = Vec::new();
        for slot in slots {
            unstarted.extend(slot.take());
            slot.stop.set();
        }
        unstarted
    }

    fn is_shutdown(&self) -> bool {
        self.engine.is_forked() || self.engine.threads.with(|table| table.shut_down)
    }

    fn is_terminated(&self) -> bool {
        self.engine.is_forked() || self.engine.threads.with(|table| table.is_over())
    }

    fn await_termination_until(&self, deadline: Deadline) -> Result<bool, TerminationError> {
        crate::interrupt::check()?;
        let engine = &self.engine;
        if engine.is_forked() {
            return Ok(true);
        }
        Inside::check(&**engine, deadline)?;
        let site = Site::new("thread_per_task.await_termination");
        let over = |table: &mut ThreadTable| table.is_over().then_some(());
        termination::ended(engine.threads.wait(site, &engine.clock, deadline, over))
    }

    fn await_termination_timeout(&self, timeout: Duration) -> Result<bool, TerminationError> {
        self.await_termination_until(self.engine.clock.deadline(timeout))
    }

    fn is_caller_inside(&self) -> bool {
        !self.engine.is_forked() && Inside::is(&*self.engine)
    }

    fn end_waiters(&self) -> Option<EndWaiters<'_>> {
        Some(EndWaiters::new(self.engine.threads.registration()))
    }
}

impl ThreadTable {
    fn is_over(&self) -> bool {
        self.shut_down && self.slots.is_empty()
    }
}

impl Drop for ThreadPerTask {
    fn drop(&mut self) {
        self.engine.shut_down();
    }
}

impl fmt::Debug for ThreadPerTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadPerTask")
            .field("threads", &self.threads())
            .field("max_threads", &self.engine.max_threads)
            .field("at_bound", &self.engine.at_bound)
            .field("shut_down", &self.is_shutdown())
            .finish_non_exhaustive()
    }
}

/// Describes a [`ThreadPerTask`].
///
/// ```
/// use millpond::executor::{SaturationPolicy, ExecutorExt, ThreadPerTask};
/// use millpond::thread::Threads;
/// use std::{thread, time::Duration};
///
/// let threads = ThreadPerTask::builder("mill", 4)
///     .at_bound(SaturationPolicy::BlockFor(Duration::from_secs(1)))
///     .threads(Threads::named("miller").stack_size(256 * 1024))
///     .build()?;
/// let miller = threads.submit(|| thread::current().name().map(str::to_owned))?;
/// assert_eq!(miller.join()?.as_deref(), Some("miller-1"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "a description does nothing until it is built"]
pub struct ThreadPerTaskBuilder {
    max_threads: usize,
    at_bound: SaturationPolicy,
    factory: Box<dyn ThreadFactory>,
    runner: Runner,
    clock: Clock,
}

impl ThreadPerTaskBuilder {
    /// What to do with a task when the maximum of threads is running. Default: [`SaturationPolicy::Reject`].
    ///
    /// ```
    /// use millpond::executor::{SaturationPolicy, ExecutorExt, ThreadPerTask};
    /// use std::{sync::mpsc, time::Duration};
    ///
    /// let timeout = SaturationPolicy::BlockFor(Duration::from_millis(1));
    /// let threads = ThreadPerTask::builder("mill", 1).at_bound(timeout).build()?;
    /// let (go, may_go) = mpsc::channel::<()>();
    /// threads.submit(move || may_go.recv())?;
    /// // No thread has ended in time.
    /// assert!(threads.submit(|| "flour").unwrap_err().reason.is_saturated());
    /// # drop(go);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn at_bound(mut self, at_bound: SaturationPolicy) -> Self {
        self.at_bound = at_bound;
        self
    }

    /// The factory that starts the threads. Default: [`Threads`] of the executor's name.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, ThreadPerTask};
    /// use millpond::thread::Threads;
    /// use std::sync::Arc;
    ///
    /// let factory = Arc::new(Threads::named("miller"));
    /// let threads = ThreadPerTask::builder("mill", 4).threads(Arc::clone(&factory)).build()?;
    /// threads.submit(|| "flour")?.join()?;
    /// threads.submit(|| "bread")?.join()?;
    /// assert_eq!(factory.spawn_attempts(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn threads(mut self, factory: impl ThreadFactory) -> Self {
        self.factory = Box::new(factory);
        self
    }

    /// The clock of its timeouts. Default: the system clock.
    ///
    /// ```
    /// use millpond::executor::{Executor, ExecutorExt, ThreadPerTask};
    /// use millpond::time::ManualClock;
    /// use std::time::Duration;
    ///
    /// let (hand, day) = (ManualClock::new(), Duration::from_secs(86_400));
    /// let tomorrow = hand.clock().deadline(day);
    /// let threads = ThreadPerTask::builder("mill", 1).clock(hand.clock()).build()?;
    /// // A task that takes a day, by the clock of its executor.
    /// threads.submit(move || hand.advance(day))?.join()?;
    /// assert!(tomorrow.has_passed(threads.clock().now()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// The hook for panics of tasks without a handle. Default: only the program's panic hook sees them.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, ThreadPerTask};
    /// use std::sync::mpsc;
    ///
    /// let (tell, told) = mpsc::channel();
    /// let threads = ThreadPerTask::builder("mill", 1)
    ///     .on_panic(move |uncaught| tell.send(uncaught.into_panic()).unwrap())
    ///     .build()?;
    /// threads.execute(|| panic!("the dam broke"))?;
    /// assert_eq!(told.recv()?.message(), Some("the dam broke"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on_panic(mut self, hook: impl Fn(UncaughtPanic) + Send + Sync + 'static) -> Self {
        self.runner = Runner::with_hook(hook);
        self
    }

    /// Builds the executor. Threads start with the first tasks.
    ///
    /// # Errors
    ///
    /// `max_threads` is 0.
    ///
    /// ```
    /// use millpond::executor::ThreadPerTask;
    ///
    /// assert_eq!(ThreadPerTask::builder("mill", 4).build()?.threads(), 0);
    /// let error = ThreadPerTask::builder("mill", 0).build().unwrap_err();
    /// assert!(error.to_string().starts_with("max_threads is 0"));
    /// # Ok::<(), millpond::executor::BuildError>(())
    /// ```
    pub fn build(self) -> Result<ThreadPerTask, BuildError> {
        if self.max_threads == 0 {
            return Err(BuildError(
                "max_threads is 0, so no task could ever run: allow at least one".into(),
            ));
        }
        Ok(ThreadPerTask {
            engine: Arc::new(Engine {
                threads: Waitable::new(ThreadTable {
                    shut_down: false,
                    next: 0,
                    slots: BTreeMap::new(),
                }),
                at_bound: self.at_bound,
                max_threads: self.max_threads,
                factory: self.factory,
                runner: self.runner,
                clock: self.clock,
                born: {
                    fork::install_handlers();
                    fork::generation()
                },
            }),
        })
    }
}
