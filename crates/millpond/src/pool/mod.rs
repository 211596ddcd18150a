//! The elastic thread pool.
//!
//! ```text
//!                    below core?           room in the queue?      below max?
//!   submit(task) -----> yes: new worker --> yes: wait there  -----> yes: new worker --> rejection
//!                |                     no ^                no ^                    no ^   policy
//!                |
//!                |      queue                     workers
//!                +---> [ t t t t ] <--- take ---  1 2 3 ..   run, look again, rest, leave
//! ```
//!
//! [`ThreadPool`] is everything that Java's `ThreadPoolExecutor` is: a core of workers, a queue, a
//! maximum, a keep-alive, a policy for what is too much, hooks, statistics; and every parameter can
//! change while it runs. What is more: it is bounded unless told otherwise, a refusal gives the
//! closure back, its handles can be awaited, and [`Growth::ThreadsFirst`](crate::manage::Growth) and
//! [`Rejection::Block`] are there.
//!
//! # Who does what
//!
//! | file | what |
//! |---|---|
//! | `admission` | what becomes of a task that comes: a pure function |
//! | `ctl` | the control word: state and number of workers |
//! | `knobs` | the parameters |
//! | `line` | the queue, as the pool knows it |
//! | `engine` | how tasks come in |
//! | `growing` | how a submitter counts on a free worker, if threads come first |
//! | `hire` | how workers come |
//! | `end` | how it ends |
//! | `worker` | what a worker does, and when it leaves |
//! | `crew` | who is there |
//! | `forked` | what is left of it in a child process |
//! | `in_place` | how a worker runs a task that it joins, and how shells are counted |
//! | `identity` | how a submitter knows its own task again |
//! | `as_executor` | what it is to others: an executor that ends and is managed |
//! | `reject`, `refuse`, `asked` | the rejection policies, what they do, and who asks a handler |
//! | `sentry` | how an idle worker waits for a time, too |
//! | `pacer` | how long the queue needs to drain |
//! | `shed` | who is dropped when its turn comes, and whose turn it is under overload |
//! | `dropped` | what it says of tasks without a handle that it has dropped |
//! | `hooks`, `stats`, `snapshot` | what users hear of it, what it counts, and what it shows |
//!
//! # The protocol
//!
//! Workers are takers of the queue, and sleeping and waking is the queue's business. What is left is
//! when workers come and go:
//!
//! - **E1** Who puts a task into the queue looks at the control word *afterwards*. If no worker is
//!   counted, or fewer than it counted on, it starts one. (With threads first it may count on one that is free: see
//!   `growing`. A worker that is counted takes a look at the queue before it leaves;
//!   for one that was counted and could not start, whoever counted it takes that look.)
//! - **E2** Who leaves is uncounted first and looks into the queue *afterwards*. If a task is there
//!   and there are fewer workers than it could count on (nobody; less than the core; with threads
//!   first, less than the maximum), it counts itself in again and stays: no thread needs to be
//!   started for that, so none can fail to be. Who dies of a panic looks as well, and starts another one in its place.
//!   Likewise who waits for room is on the list of the doors first and looks at the count
//!   afterwards; who leaves wakes the list.
//! - **E3** Whoever takes something away that may have been the last, a worker, a task of the queue,
//!   an extra thread, looks afterwards whether it is over.
//! - **E4** A task that is taken out of the queue by a worker is run by it, with its token set if the
//!   pool has been stopped meanwhile; or it was gone before.
//! - **E5** No code of a user's, a factory, a hook, a handler, a queue, a closure or its destructor, runs
//!   under a lock of the pool.
//!
//! with C1 to C3 in `ctl`, G1 to G4 in `growing`, N1 and N2 in `knobs`, O1 to O4 in `shed`, S1 to S3 in `line`, W1 to W4 in
//! `crew`, Y1 in `sentry`.

mod admission;
mod as_executor;
mod asked;
mod builder;
mod crew;
mod ctl;
mod dropped;
mod end;
mod engine;
mod explain;
mod figures;
mod forked;
mod growing;
mod hire;
mod hooks;
mod identity;
mod in_place;
mod knobs;
mod line;
mod notice;
mod pacer;
mod parameters;
mod refusals;
mod refuse;
mod reject;
mod sentry;
mod shed;
mod snapshot;
mod stacks;
mod stats;
mod view;
mod watch;
mod worker;

pub use admission::{Situation, Step, decide};
pub use builder::PoolBuilder;
pub use dropped::DroppedDetached;
pub use explain::{Explanation, Facts, explain};
pub use figures::{Figures, Label, NamedFigures, Usage};
pub use hooks::{Ended, Hooks, TaskInfo};
pub use line::Queue;
pub use notice::{LongRun, Notice, RefusalReport};
pub use reject::{Refusal, Rejection, RejectionHandler};
pub use view::{CurrentTask, WorkerView};
pub use watch::{Health, RunWarning};

use crate::executor::give_up;
use crate::manage::{PoolSnapshot, RunState};
use crate::task::{CancelReason, Task, TaskHandle};
use engine::Engine;
use std::borrow::Cow;
use std::fmt;
use std::io;
use std::sync::Arc;

/// An elastic, bounded pool of threads.
///
/// Tasks come in through [`ExecutorExt`](crate::executor::ExecutorExt), the end through
/// [`Lifecycle`](crate::executor::Lifecycle). Clones are handles to one pool; dropping the last of them is an orderly shutdown
/// that does not block: what has been accepted still runs.
///
/// In a child that `fork()` makes of this process it has no threads. There it refuses tasks, with
/// [`RejectReason::Forked`](crate::executor::RejectReason::Forked), and never hangs; build a new one there. (Linux.)
///
/// ```
/// use millpond::executor::{ExecutorExt, Lifecycle};
/// use millpond::pool::{Queue, ThreadPool};
///
/// let pool = ThreadPool::builder("mill").core(2).max(4).queue(Queue::bounded(100)).build()?;
/// let flour = pool.submit(|| "flour")?;
/// assert_eq!(flour.join()?, "flour");
///
/// // Every parameter can change while it runs.
/// pool.set_max(8)?;
/// pool.set_capacity(1000)?;
/// println!("{}", pool.snapshot());
/// pool.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "ThreadPoolExecutor")]
#[derive(Clone)]
pub struct ThreadPool {
    engine: Arc<Engine>,
    _owner: Arc<Owner>,
}

/// What the handles share and the workers do not: when it drops, no handle is left.
struct Owner {
    engine: Arc<Engine>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.engine.shut_down();
    }
}

impl ThreadPool {
    /// Describes a pool whose threads are called `name-1`, `name-2` and so on.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::pool::ThreadPool;
    ///
    /// let pool = ThreadPool::builder("mill").core(1).max(1).build()?;
    /// let name = pool.submit(|| std::thread::current().name().map(String::from))?.join()?;
    /// assert_eq!(name.as_deref(), Some("mill-1"));
    /// pool.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder(name: impl Into<Cow<'static, str>>) -> PoolBuilder {
        PoolBuilder::new(name.into())
    }

    /// What it is called.
    ///
    /// ```
    /// use millpond::pool::ThreadPool;
    ///
    /// let pool = ThreadPool::builder("mill").build()?;
    /// assert_eq!(pool.name(), "mill");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn name(&self) -> &str {
        &self.engine.name
    }

    /// Its parameters and figures at one moment.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::preset;
    ///
    /// let pool = preset::fixed("mill", 2).build()?;
    /// for _ in 0..10 {
    ///     pool.run(|| ())?;
    /// }
    /// pool.close()?;
    /// let snapshot = pool.snapshot();
    /// assert_eq!((snapshot.completed, snapshot.queued, snapshot.workers), (10, 0, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn snapshot(&self) -> PoolSnapshot {
        match self.engine.is_forked() {
            false => self.engine.snapshot(),
            true => self.engine.snapshot_of_a_fork(),
        }
    }

    /// Starts one worker of the core that waits for tasks; false if none is missing.
    ///
    /// # Errors
    ///
    /// A thread could not be started.
    ///
    /// ```
    /// use millpond::preset;
    ///
    /// let pool = preset::fixed("mill", 1).build()?;
    /// assert!(pool.prestart_core()?);
    /// assert!(!pool.prestart_core()?, "there is none missing");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "prestartCoreThread")]
    pub fn prestart_core(&self) -> io::Result<bool> {
        self.engine.prestart()
    }

    /// Starts all workers of the core that are missing, and returns how many they were.
    ///
    /// # Errors
    ///
    /// A thread could not be started. Those that were stay.
    ///
    /// ```
    /// use millpond::preset;
    ///
    /// let pool = preset::fixed("mill", 3).build()?;
    /// assert_eq!(pool.snapshot().workers, 0);
    /// assert_eq!(pool.prestart_all_core()?, 3);
    /// assert_eq!(pool.snapshot().workers, 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "prestartAllCoreThreads")]
    pub fn prestart_all_core(&self) -> io::Result<usize> {
        let mut started = 0;
        while self.engine.prestart()? {
            started += 1;
        }
        Ok(started)
    }

    /// Takes a task out of the queue that has not started, and cancels it. False if it is not there:
    /// it runs, has run, was cancelled, or is another pool's.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::preset;
    /// use std::sync::mpsc;
    ///
    /// let pool = preset::single("mill").build()?;
    /// let (say, hear) = mpsc::channel::<()>();
    /// let busy = pool.submit(move || hear.recv().is_err())?;
    /// let waits = pool.submit(|| "flour")?;
    /// assert!(pool.remove(&waits));
    /// assert!(waits.join().unwrap_err().is_cancelled());
    /// drop(say);
    /// assert!(busy.join()?);
    /// pool.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn remove<T>(&self, handle: &TaskHandle<T>) -> bool {
        let (engine, address) = (&self.engine, handle.address());
        if engine.is_forked() {
            return false;
        }
        let found = engine
            .line
            .remove_where(1, &mut |task| task.address() == address);
        // Whoever is not cancelled by this was cancelled before, or runs in place at its waiter's.
        engine.give_up(found, CancelReason::Removed) > 0
    }

    /// Takes tasks that have been cancelled out of the queue, and returns how many they were. They
    /// take no room from others in any case; this frees the little that is left of them.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::preset;
    /// use std::sync::mpsc;
    ///
    /// let pool = preset::single("mill").build()?;
    /// let (say, hear) = mpsc::channel::<()>();
    /// let busy = pool.submit(move || hear.recv().is_err())?;
    /// let waits = pool.submit(|| "flour")?;
    /// assert!(waits.cancel());
    /// assert_eq!(pool.purge(), 1);
    /// drop(say);
    /// assert!(busy.join()?);
    /// pool.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn purge(&self) -> usize {
        match self.engine.is_forked() {
            false => self.engine.purge(),
            true => 0,
        }
    }

    /// The tasks that wait, in the order in which they will be taken, as they are at one moment.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::preset;
    /// use millpond::task::TaskSpec;
    /// use std::sync::mpsc;
    ///
    /// let pool = preset::single("mill").build()?;
    /// let (say, hear) = mpsc::channel::<()>();
    /// let busy = pool.submit(move || hear.recv().is_err())?;
    /// while !busy.is_started() {
    ///     std::thread::yield_now();
    /// }
    /// pool.submit_spec(TaskSpec::new().name("grind"), || ())?;
    /// pool.submit_spec(TaskSpec::new().name("sift"), || ())?;
    /// let names: Vec<_> = pool.queued_tasks().iter().filter_map(|task| task.name().map(String::from)).collect();
    /// assert_eq!(names, ["grind", "sift"]);
    /// drop(say);
    /// pool.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "getQueue")]
    pub fn queued_tasks(&self) -> Vec<TaskInfo> {
        let mut all = Vec::new();
        if self.engine.is_forked() {
            return all;
        }
        self.engine
            .line
            .visit(&mut |task| all.push(TaskInfo::of(task)));
        all
    }

    /// Whether it takes no more tasks and has not ended.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::preset;
    /// use std::sync::mpsc;
    ///
    /// let pool = preset::single("mill").build()?;
    /// let (say, hear) = mpsc::channel::<()>();
    /// pool.run(move || drop(hear.recv()))?;
    /// pool.shutdown();
    /// assert!(pool.is_terminating(), "one task still runs");
    /// drop(say);
    /// pool.close()?;
    /// assert!(!pool.is_terminating());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "isTerminating")]
    pub fn is_terminating(&self) -> bool {
        let state = self.engine.ctl().read().state();
        state != RunState::Running && state != RunState::Terminated
    }
}

impl Engine {
    pub(in crate::pool) fn purge(&self) -> usize {
        let shells = self.take_shells();
        let purged = shells.len();
        self.give_up(shells, CancelReason::Dropped);
        purged
    }

    /// Takes out of the queue what is there and gone. To be [given up](Engine::give_up), under no lock.
    pub(in crate::pool) fn take_shells(&self) -> Vec<Task> {
        self.line
            .remove_where(usize::MAX, &mut |task| task.is_gone())
    }

    /// Gives up tasks that have been taken out of the queue, and counts them. Returns how many of them
    /// had not been gone before.
    pub(in crate::pool) fn give_up(&self, tasks: Vec<Task>, reason: CancelReason) -> usize {
        if tasks.is_empty() {
            return 0;
        }
        let (mut given_up, mut unheard) = (0, Vec::new());
        for task in tasks {
            let shell = match reason {
                // It was accepted, and nobody has asked for this.
                CancelReason::Refused => match give_up(task, reason) {
                    Ok(dropped) => {
                        unheard.extend(dropped);
                        None
                    }
                    Err(task) => Some(task.shell()),
                },
                _ => task.end(reason),
            };
            match shell {
                None => given_up += 1,
                Some(shell) => self.count_shell(shell),
            }
        }
        self.rare.cancelled.happened(given_up);
        for dropped in unheard {
            self.dropped_detached(dropped);
        }
        self.line_is_shorter();
        given_up
    }

    /// Somebody else than a worker has taken tasks out of the queue: those may have been the last
    /// that workers waited for, also after a shutdown (E3).
    pub(in crate::pool) fn line_is_shorter(&self) {
        if self.is_shut_down() {
            self.nudge();
            self.may_be_over();
        } else if self.line.is_foreign() {
            self.one_is_less();
        }
    }
}

impl fmt::Debug for ThreadPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ThreadPool")
            .field(&format_args!("{}", self.snapshot()))
            .finish()
    }
}
