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
//! | `hire` | how workers come |
//! | `end` | how it ends |
//! | `worker` | what a worker does, and when it leaves |
//! | `crew` | who is there |
//! | `forked` | what is left of it in a child process |
//! | `in_place` | how a worker runs a task that it joins, and how shells are counted |
//! | `identity` | how a submitter knows its own task again |
//! | `as_executor` | what it is to others: an executor that ends and is managed |
//! | `reject`, `refuse` | the rejection policies, and what they do |
//! | `sentry` | how an idle worker waits for a time, too |
//! | `pacer` | how long the queue needs to drain |
//! | `shed` | who is dropped when its turn comes, and whose turn it is under overload |
//! | `hooks`, `stats`, `snapshot` | what users hear of it, what it counts, and what it shows |
//!
//! # The protocol
//!
//! Workers are takers of the queue, and sleeping and waking is the queue's business. What is left is
//! when workers come and go:
//!
//! - **E1** Who puts a task into the queue looks at the control word *afterwards*. If no worker is
//!   counted, or fewer than it counted on, it starts one. (A worker that is counted takes a look at the queue before it leaves;
//!   for one that was counted and could not start, whoever counted it takes that look.)
//! - **E2** Who leaves is uncounted first and looks into the queue *afterwards*. If a task is there
//!   and there are fewer workers than it could count on (nobody; less than the core; with threads
//!   first, less than the maximum), it counts itself in again and stays: no thread needs to be
//!   started for that, so none can fail to be.
//!   Likewise who waits for room is on the list of the doors first and looks at the count
//!   afterwards; who leaves wakes the list.
//! - **E3** Whoever takes something away that may have been the last, a worker, a task of the queue,
//!   an extra thread, looks afterwards whether it is over.
//! - **E4** A task that is taken out of the queue by a worker is run by it, with its token set if the
//!   pool has been stopped meanwhile; or it was gone before.
//! - **E5** No code of a user's, a factory, a hook, a handler, a closure or its destructor, runs under
//!   a lock of the pool.
//!
//! with C1 to C3 in `ctl`, N1 and N2 in `knobs`, O1 to O4 in `shed`, S1 to S3 in `line`, W1 to W4 in
//! `crew`, Y1 in `sentry`.

mod admission;
mod as_executor;
mod builder;
mod crew;
mod ctl;
mod end;
mod engine;
mod explain;
mod figures;
mod forked;
mod hire;
mod hooks;
mod identity;
mod in_place;
mod knobs;
mod line;
mod notice;
mod pacer;
mod refusals;
mod refuse;
mod reject;
mod sentry;
mod shed;
mod snapshot;
mod stats;
mod view;
mod watch;
mod worker;

pub use admission::{Situation, Step, decide};
pub use builder::PoolBuilder;
pub use explain::{Explanation, Facts, explain};
pub use figures::{Figures, Label, NamedFigures, Usage};
pub use hooks::{Ended, Hooks, TaskInfo};
pub use line::Queue;
pub use notice::{LongRun, Notice, RefusalReport};
pub use reject::{Refusal, Rejection, RejectionHandler};
pub use view::{CurrentTask, WorkerView};
pub use watch::{Health, RunWarning};

use crate::manage::{CoDel, Growth, Invalid, OverloadOrder, Patch, PatchError};
use crate::manage::{PoolSnapshot, RunState};
use crate::task::{CancelReason, Task, TaskHandle};
use crate::thread::ThreadFactory;
use engine::Engine;
use std::borrow::Cow;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

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
/// pool.close();
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
    pub fn builder(name: impl Into<Cow<'static, str>>) -> PoolBuilder {
        PoolBuilder::new(name.into())
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.engine.name
    }

    /// How many workers are kept.
    #[doc(alias = "getCorePoolSize")]
    pub fn core(&self) -> usize {
        self.engine.knobs().limits().core()
    }

    /// Changes how many workers are kept. Idle ones beyond it may leave; if it is raised, workers
    /// start for tasks that wait.
    ///
    /// # Errors
    ///
    /// More than the maximum.
    #[doc(alias = "setCorePoolSize")]
    pub fn set_core(&self, core: usize) -> Result<(), PatchError> {
        self.apply(&Patch::new().core(core))
    }

    /// How many workers there may be.
    #[doc(alias = "getMaximumPoolSize")]
    pub fn max(&self) -> usize {
        self.engine.knobs().limits().max()
    }

    /// Changes how many workers there may be. Those beyond it leave when they are idle; nobody is
    /// interrupted. If it is raised, and threads come first, workers start for tasks that wait.
    ///
    /// # Errors
    ///
    /// None at all, or less than the core.
    #[doc(alias = "setMaximumPoolSize")]
    pub fn set_max(&self, max: usize) -> Result<(), PatchError> {
        self.apply(&Patch::new().max(max))
    }

    /// How long an idle worker beyond the core stays.
    #[doc(alias = "getKeepAliveTime")]
    pub fn keep_alive(&self) -> Duration {
        self.engine.knobs().keep_alive()
    }

    /// Changes how long an idle worker beyond the core stays. Those that are idle start counting
    /// anew.
    ///
    /// # Errors
    ///
    /// None at all, if the core may time out.
    #[doc(alias = "setKeepAliveTime")]
    pub fn set_keep_alive(&self, keep_alive: Duration) -> Result<(), PatchError> {
        self.apply(&Patch::new().keep_alive(keep_alive))
    }

    /// Whether idle workers of the core leave, too.
    #[doc(alias = "allowsCoreThreadTimeOut")]
    pub fn core_may_time_out(&self) -> bool {
        self.engine.knobs().core_may_time_out()
    }

    /// Changes whether idle workers of the core leave, too.
    ///
    /// # Errors
    ///
    /// If the keep-alive is 0.
    #[doc(alias = "allowCoreThreadTimeOut")]
    pub fn set_core_may_time_out(&self, may: bool) -> Result<(), PatchError> {
        self.apply(&Patch::new().core_may_time_out(may))
    }

    /// What comes first when the core is busy.
    pub fn growth(&self) -> Growth {
        self.engine.knobs().limits().growth()
    }

    /// Changes what comes first when the core is busy. If that is threads, they start for tasks that
    /// wait.
    pub fn set_growth(&self, growth: Growth) {
        let changed = self.apply(&Patch::new().growth(growth));
        let fits = changed.is_ok() || self.engine.is_forked();
        debug_assert!(fits, "a growth fits all sizes");
    }

    /// How many tasks may wait; `None` if there is no bound, 0 if tasks are handed over.
    pub fn capacity(&self) -> Option<usize> {
        match self.engine.is_forked() {
            false => self.engine.line.capacity(),
            true => Some(0),
        }
    }

    /// Changes how many tasks may wait. Those beyond it stay, and new ones find no room until they
    /// are gone.
    ///
    /// # Errors
    ///
    /// A capacity that its queue cannot have.
    pub fn set_capacity(&self, capacity: usize) -> Result<(), PatchError> {
        self.apply(&Patch::new().capacity(capacity))
    }

    /// How long a task may wait in the queue; `None` is for ever.
    pub fn max_queue_wait(&self) -> Option<Duration> {
        self.engine.overload().max_queue_wait
    }

    /// Changes how long a task may wait in the queue, for those that wait already, too.
    ///
    /// # Errors
    ///
    /// Not at all; or nothing is left that says what an overload is, and there is an order for it.
    pub fn set_max_queue_wait(&self, most: impl Into<Option<Duration>>) -> Result<(), PatchError> {
        self.apply(&Patch::new().max_queue_wait(most))
    }

    /// When it is overloaded, and sheds tasks; `None` is never.
    pub fn shedding(&self) -> Option<CoDel> {
        self.engine.overload().shedding
    }

    /// Changes when it is overloaded, and sheds tasks. What was measured before is forgotten.
    ///
    /// # Errors
    ///
    /// Times that make no sense; or nothing is left that says what an overload is, and there is an
    /// order for it.
    pub fn set_shedding(&self, shedding: impl Into<Option<CoDel>>) -> Result<(), PatchError> {
        self.apply(&Patch::new().shedding(shedding))
    }

    /// Which of the tasks that wait comes next while it is overloaded.
    pub fn overload_order(&self) -> OverloadOrder {
        self.engine.overload().order
    }

    /// Changes which of the tasks that wait comes next while it is overloaded.
    ///
    /// # Errors
    ///
    /// Newest first, and nothing says what an overload is, or the queue has an order of its own.
    pub fn set_overload_order(&self, order: OverloadOrder) -> Result<(), PatchError> {
        self.apply(&Patch::new().overload_order(order))
    }

    /// What becomes of tasks that there is no room for.
    #[doc(alias = "getRejectedExecutionHandler")]
    pub fn rejection(&self) -> Rejection {
        self.engine.rejection()
    }

    /// Changes what becomes of tasks that there is no room for.
    #[doc(alias = "setRejectedExecutionHandler")]
    pub fn set_rejection(&self, rejection: Rejection) {
        if self.engine.is_forked() {
            return;
        }
        // A handler of the user's is dropped outside the lock.
        drop(self.engine.knobs().set_rejection(rejection));
    }

    /// Who starts the threads.
    #[doc(alias = "getThreadFactory")]
    pub fn thread_factory(&self) -> Arc<dyn ThreadFactory> {
        self.engine.factory()
    }

    /// Changes who starts the threads that are still to be started.
    #[doc(alias = "setThreadFactory")]
    pub fn set_thread_factory(&self, factory: Arc<dyn ThreadFactory>) {
        if self.engine.is_forked() {
            return;
        }
        let before = std::mem::replace(&mut self.engine.knobs().lock().factory, factory);
        drop(before);
    }

    /// Changes all parameters that the patch names, or none.
    ///
    /// # Errors
    ///
    /// All that is wrong with the patch; then nothing has changed.
    pub fn apply(&self, patch: &Patch) -> Result<(), PatchError> {
        let engine = &self.engine;
        if engine.is_forked() {
            return PatchError::unless_none(vec![Invalid::Forked]);
        }
        let eager_before = {
            let turn = engine.knobs().lock();
            let limits = engine.knobs().limits();
            let sizes = engine.knobs().sizes().with(patch);
            let overload = engine.shedder.settings().with(patch);
            let mut problems = sizes.problems();
            problems.extend(overload.problems());
            problems.extend(engine.line.objects_to_order(overload.order));
            if !problems.is_empty() {
                let capacity = patch.capacity.and_then(|most| engine.line.objects_to(most));
                problems.extend(capacity.map(Invalid::Capacity));
            }
            PatchError::unless_none(problems)?;
            if let Some(capacity) = patch.capacity {
                engine.line.set_capacity(capacity)?;
            }
            let growth = patch.growth.unwrap_or(limits.growth());
            engine.shedder.set(&turn, overload);
            engine.knobs().write(&turn, sizes, growth, &overload);
            limits.eager()
        };
        engine.limits_changed(eager_before);
        Ok(())
    }

    /// Its parameters and figures at one moment.
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
    #[doc(alias = "prestartCoreThread")]
    pub fn prestart_core(&self) -> io::Result<bool> {
        self.engine.prestart()
    }

    /// Starts all workers of the core that are missing, and returns how many they were.
    ///
    /// # Errors
    ///
    /// A thread could not be started. Those that were stay.
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
    pub fn purge(&self) -> usize {
        match self.engine.is_forked() {
            false => self.engine.purge(),
            true => 0,
        }
    }

    /// The tasks that wait, in the order in which they will be taken, as they are at one moment.
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
    #[doc(alias = "isTerminating")]
    pub fn is_terminating(&self) -> bool {
        let state = self.engine.ctl().read().state();
        state != RunState::Running && state != RunState::Terminated
    }
}

impl Engine {
    pub(in crate::pool) fn purge(&self) -> usize {
        let gone = self
            .line
            .remove_where(usize::MAX, &mut |task| task.is_gone());
        let purged = gone.len();
        self.give_up(gone, CancelReason::Dropped);
        purged
    }

    /// Gives up tasks that have been taken out of the queue, and counts them. Returns how many of them
    /// had not been gone before.
    pub(in crate::pool) fn give_up(&self, tasks: Vec<Task>, reason: CancelReason) -> usize {
        if tasks.is_empty() {
            return 0;
        }
        let mut given_up = 0;
        for task in tasks {
            match task.end(reason) {
                None => given_up += 1,
                Some(shell) => self.count_shell(shell),
            }
        }
        self.rare.cancelled.happened(given_up);
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
