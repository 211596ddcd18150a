//! A new thread for every task, up to a bound.
//!
//! # Life of a thread
//!
//! ```text
//!   execute: 1 reserve (bound and phase, one step)   2 the task goes into a slot, on the list
//!            3 the factory starts the thread         4 refused? the task comes back out of the slot
//!   thread:  5 takes the task out of its slot        6 runs it within the slot's stop
//!            7 leaves: off the list, the place is free
//! ```
//!
//! # Rules
//!
//! - **E1** A place is taken before the thread starts and given back when its *body* is gone:
//!   run to the end, or dropped by a factory that never ran it. A handle that is cancelled while its
//!   body runs does not give the place back.
//! - **E2** The task is in its slot until exactly one takes it out: the thread, to run it; the
//!   submitter, if the thread could not be started; or `shutdown_now`, to hand it back.
//! - **E3** A slot is on the list before its thread starts, and `shutdown_now` sets the stop of
//!   every slot on the list. So a body that has not begun by then begins interrupted.

use super::error::{BuildError, NotTaken, RejectReason, Rejected};
use super::termination::{self, Inside, TerminationError};
use super::traits::{Executor, Lifecycle};
use super::uncaught::{Runner, UncaughtPanic};
use super::watched::Watched;
use crate::interrupt::WaitError;
use crate::task::Task;
use crate::thread::{Body, ThreadFactory, Threads};
use crate::time::{Clock, Deadline, is_timer_thread};
use millpond_raw::fork;
use millpond_raw::park::Site;
use millpond_raw::quiet;
use millpond_raw::sync::Mutex;
use millpond_raw::task::Stop;
use millpond_raw::user_code::{self, Kind};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// What to do with a task that comes when all threads are there that may be.
///
/// ```
/// use millpond::executor::{AtBound, ExecutorExt, ThreadPerTask};
///
/// // One thread at a time, and nothing is refused.
/// let threads = ThreadPerTask::builder("mill", 1).at_bound(AtBound::Block).build()?;
/// let sacks: Vec<_> = (1..=3).map(|sack| threads.submit(move || sack)).collect::<Result<_, _>>()?;
/// for (sack, n) in sacks.into_iter().zip(1..) {
///     assert_eq!(sack.join()?, n);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtBound {
    /// Give it back.
    Refuse,
    /// Let its bringer wait until a thread ends.
    Block,
    /// Let its bringer wait, but not longer than this; then give it back.
    BlockFor(Duration),
}

/// Starts a thread for every task, and never more than its bound at a time.
///
/// For tasks that block for long, are few, or must not share a thread. Dropping it shuts it down in
/// order and does not wait: what runs goes on.
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
    crew: Watched<Crew>,
    at_bound: AtBound,
    max_threads: usize,
    factory: Box<dyn ThreadFactory>,
    runner: Runner,
    clock: Clock,
    /// The generation of the process that it was built in.
    born: u32,
}

struct Crew {
    shut_down: bool,
    next: u64,
    /// E1: as many as there are places taken.
    slots: BTreeMap<u64, Arc<Slot>>,
}

/// Where a task waits for its thread, and how its body is stopped.
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
    /// An executor whose threads are called `name-1`, `name-2` and so on, at most `max_threads` at a
    /// time. Left alone it refuses what is too much.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, ThreadPerTask};
    /// use std::sync::mpsc;
    ///
    /// let threads = ThreadPerTask::builder("mill", 1).build()?;
    /// let (go, may_go) = mpsc::channel();
    /// let first = threads.submit(move || may_go.recv())?;
    /// let refused = threads.submit(|| "flour").unwrap_err();
    /// assert!(refused.reason.is_saturated());
    /// go.send("rye")?;
    /// assert_eq!(first.join()?, Ok("rye"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder(name: impl Into<Cow<'static, str>>, max_threads: usize) -> ThreadPerTaskBuilder {
        ThreadPerTaskBuilder {
            max_threads,
            at_bound: AtBound::Refuse,
            factory: Box::new(Threads::named(name)),
            runner: Runner::default(),
            clock: Clock::system(),
        }
    }

    /// How many threads there are, those that are being started included.
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
        match self.engine.is_forked() {
            false => self.engine.crew.with(|crew| crew.slots.len()),
            true => 0,
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
    /// E1, E3: takes a place and puts the slot on the list, in one step; waits for it if it may, but not
    /// longer than `until`.
    fn reserve(&self, slot: &Arc<Slot>, until: Deadline) -> Result<u64, RejectReason> {
        let take_place = |crew: &mut Crew| -> Option<Result<u64, RejectReason>> {
            if crew.shut_down {
                return Some(Err(RejectReason::ShutDown));
            }
            (crew.slots.len() < self.max_threads).then(|| {
                crew.next += 1;
                crew.slots.insert(crew.next, Arc::clone(slot));
                Ok(crew.next)
            })
        };
        let saturated = RejectReason::saturated(0, 0, self.max_threads);
        let deadline = match self.at_bound {
            AtBound::Refuse => {
                return self.crew.with(take_place).unwrap_or(Err(saturated));
            }
            AtBound::Block => Deadline::NEVER,
            AtBound::BlockFor(patience) => self.clock.deadline(patience),
        };
        let site = Site::new("thread_per_task.execute");
        let deadline = deadline.min(until);
        match self.crew.wait(site, &self.clock, deadline, take_place) {
            Ok(reserved) => reserved,
            Err(WaitError::Interrupted) => Err(RejectReason::Interrupted),
            Err(WaitError::TimedOut) => Err(saturated),
        }
    }

    fn start(&self, body: Body) -> io::Result<()> {
        // The factory is the user's: its panic is a refusal like any other.
        user_code::check(Kind::Factory);
        match quiet::call(|| self.factory.start(body)) {
            Some(started) => started.map(drop),
            None => Err(io::Error::other("the thread factory panicked")),
        }
    }

    /// Whether its threads are in the parent of this process. Then one of those may have its lock.
    fn is_forked(&self) -> bool {
        self.born != fork::generation()
    }

    fn shut_down(&self) {
        if self.is_forked() {
            return;
        }
        self.crew.change(|crew| crew.shut_down = true);
    }
}

/// A taken place; dropping it gives the place back (E1).
struct Place {
    engine: Arc<Engine>,
    number: u64,
    slot: Arc<Slot>,
}

impl Place {
    fn work(&self) {
        let _inside = Inside::of(&*self.engine);
        self.slot.stop.enter(|| {
            if let Some(task) = self.slot.take() {
                self.engine.runner.run(task);
            }
        });
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let slot = self
            .engine
            .crew
            .change(|crew| crew.slots.remove(&self.number));
        drop(slot);
    }
}

impl Executor for ThreadPerTask {
    fn execute(&self, task: Task) -> Result<(), Rejected<Task>> {
        self.execute_until(task, Deadline::NEVER)
    }

    fn execute_until(&self, task: Task, deadline: Deadline) -> Result<(), Rejected<Task>> {
        let engine = &self.engine;
        if engine.is_forked() {
            return Err(Rejected::new(task, RejectReason::Forked));
        }
        let slot = Arc::new(Slot {
            task: Mutex::new(Some(task)),
            stop: Stop::new(),
        });
        let refused = match engine.reserve(&slot, deadline) {
            Err(reason) => reason,
            Ok(number) => {
                let place = Place {
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
        // E2: gone, if a shutdown has handed it back meanwhile, or if the factory has run it after
        // all. Either way it is taken care of.
        match slot.take() {
            Some(task) => Err(Rejected::new(task, refused)),
            None => Ok(()),
        }
    }

    fn address(&self) -> usize {
        Arc::as_ptr(&self.engine) as usize
    }

    fn try_execute(&self, task: Task) -> Result<(), NotTaken> {
        match self.engine.at_bound {
            // The factory is the user's, and not for the thread of the timer.
            AtBound::Refuse if is_timer_thread() => Err(NotTaken::NotAtOnce(task)),
            AtBound::Refuse => self.execute(task).map_err(NotTaken::Refused),
            AtBound::Block | AtBound::BlockFor(_) => Err(NotTaken::NotAtOnce(task)),
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
        let slots: Vec<Arc<Slot>> = self.engine.crew.change(|crew| {
            crew.shut_down = true;
            crew.slots.values().cloned().collect()
        });
        let mut unstarted = Vec::new();
        for slot in slots {
            unstarted.extend(slot.take());
            slot.stop.set();
        }
        unstarted
    }

    fn is_shutdown(&self) -> bool {
        self.engine.is_forked() || self.engine.crew.with(|crew| crew.shut_down)
    }

    fn is_terminated(&self) -> bool {
        self.engine.is_forked() || self.engine.crew.with(|crew| crew.is_over())
    }

    fn await_termination_until(&self, deadline: Deadline) -> Result<bool, TerminationError> {
        crate::interrupt::check()?;
        let engine = &self.engine;
        if engine.is_forked() {
            return Ok(true);
        }
        Inside::check(&**engine, deadline)?;
        let site = Site::new("thread_per_task.await_termination");
        let over = |crew: &mut Crew| crew.is_over().then_some(());
        termination::ended(engine.crew.wait(site, &engine.clock, deadline, over))
    }

    fn await_termination_timeout(&self, patience: Duration) -> Result<bool, TerminationError> {
        self.await_termination_until(self.engine.clock.deadline(patience))
    }

    fn is_caller_inside(&self) -> bool {
        !self.engine.is_forked() && Inside::is(&*self.engine)
    }
}

impl Crew {
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
/// use millpond::executor::{AtBound, ExecutorExt, ThreadPerTask};
/// use millpond::thread::Threads;
/// use std::{thread, time::Duration};
///
/// let threads = ThreadPerTask::builder("mill", 4)
///     .at_bound(AtBound::BlockFor(Duration::from_secs(1)))
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
    at_bound: AtBound,
    factory: Box<dyn ThreadFactory>,
    runner: Runner,
    clock: Clock,
}

impl ThreadPerTaskBuilder {
    /// What to do with a task that comes when all threads are there. Default:
    /// [`AtBound::Refuse`].
    ///
    /// ```
    /// use millpond::executor::{AtBound, ExecutorExt, ThreadPerTask};
    /// use std::{sync::mpsc, time::Duration};
    ///
    /// let patience = AtBound::BlockFor(Duration::from_millis(1));
    /// let threads = ThreadPerTask::builder("mill", 1).at_bound(patience).build()?;
    /// let (go, may_go) = mpsc::channel::<()>();
    /// threads.submit(move || may_go.recv())?;
    /// // No thread has ended in time.
    /// assert!(threads.submit(|| "flour").unwrap_err().reason.is_saturated());
    /// # drop(go);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn at_bound(mut self, at_bound: AtBound) -> Self {
        self.at_bound = at_bound;
        self
    }

    /// Who starts the threads. Default: [`Threads`] of the executor's name.
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
    /// assert_eq!(factory.asked(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn threads(mut self, factory: impl ThreadFactory) -> Self {
        self.factory = Box::new(factory);
        self
    }

    /// The clock by which its time-outs run. Default: the system's.
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

    /// What to do with the panic of a task that has no handle. Default: it goes no further than the
    /// program's panic hook.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, ThreadPerTask};
    /// use std::sync::mpsc;
    ///
    /// let (tell, told) = mpsc::channel();
    /// let threads = ThreadPerTask::builder("mill", 1)
    ///     .on_panic(move |uncaught| tell.send(uncaught.into_panic()).unwrap())
    ///     .build()?;
    /// threads.run(|| panic!("the dam broke"))?;
    /// assert_eq!(told.recv()?.message(), Some("the dam broke"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on_panic(mut self, hook: impl Fn(UncaughtPanic) + Send + Sync + 'static) -> Self {
        self.runner = Runner::with_hook(hook);
        self
    }

    /// Builds it. Threads start with the first tasks.
    ///
    /// # Errors
    ///
    /// A bound of no threads at all.
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
                crew: Watched::new(Crew {
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
                    fork::watch();
                    fork::generation()
                },
            }),
        })
    }
}
