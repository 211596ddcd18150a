//! Reading and changing the parameters of a running pool. They are described in [`super::config`].
//!
//! Each can be changed by itself; [`ThreadPool::apply`] changes several at once, or none of them. A change
//! that is rejected says which parameter is wrong, and the old values stay.

use super::{RejectionPolicy, RunWarning, ThreadPool};
use crate::manage::{Change, CoDel, Growth, OverloadOrder, Parameter, Patch, PatchError};
use crate::thread::ThreadFactory;
use std::sync::Arc;
use std::time::Duration;

impl ThreadPool {
    /// The most workers that a pool can count.
    ///
    /// ```
    /// use millpond::pool::ThreadPool;
    ///
    /// let too_many = ThreadPool::builder("mill").core(1).max(ThreadPool::MAX_WORKERS + 1);
    /// assert_eq!(too_many.build().unwrap_err().problems()[0].parameter(), "max");
    /// ```
    pub const MAX_WORKERS: usize = (1 << 29) - 1;

    /// Workers that are kept, also when they are idle.
    ///
    /// ```
    /// use millpond::preset;
    ///
    /// let pool = preset::fixed("mill", 3).build()?;
    /// assert_eq!(pool.core(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "getCorePoolSize")]
    pub fn core(&self) -> usize {
        self.engine.config().limits().core()
    }

    /// Changes how many workers are kept. Idle ones above it may leave; if it is raised, workers
    /// start for waiting tasks.
    ///
    /// # Errors
    ///
    /// The core is above the maximum.
    ///
    /// ```
    /// use millpond::pool::ThreadPool;
    ///
    /// let pool = ThreadPool::builder("mill").core(1).max(4).build()?;
    /// pool.set_core(4)?;
    /// assert_eq!(pool.core(), 4);
    ///
    /// let error = pool.set_core(5).unwrap_err();
    /// assert!(error.to_string().contains("max"), "{error}");
    /// assert_eq!(pool.core(), 4, "the old value stays");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "setCorePoolSize")]
    pub fn set_core(&self, core: usize) -> Result<(), PatchError> {
        self.apply(&Patch::new().core(core)).map(drop)
    }

    /// The most workers there may be.
    ///
    /// ```
    /// use millpond::pool::ThreadPool;
    ///
    /// let pool = ThreadPool::builder("mill").core(1).max(4).build()?;
    /// assert_eq!(pool.max(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "getMaximumPoolSize")]
    pub fn max(&self) -> usize {
        self.engine.config().limits().max()
    }

    /// Changes how many workers there may be. Workers above it leave when they are idle; none is
    /// interrupted. If it is raised, and threads come first, workers start for waiting tasks.
    ///
    /// # Errors
    ///
    /// The maximum is zero or below the core.
    ///
    /// ```
    /// use millpond::pool::ThreadPool;
    ///
    /// let pool = ThreadPool::builder("mill").core(1).max(4).build()?;
    /// pool.set_max(16)?;
    /// assert_eq!(pool.max(), 16);
    /// assert!(pool.set_max(0).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "setMaximumPoolSize")]
    pub fn set_max(&self, max: usize) -> Result<(), PatchError> {
        self.apply(&Patch::new().max(max)).map(drop)
    }

    /// How long an idle worker above the core stays.
    ///
    /// ```
    /// use millpond::pool::ThreadPool;
    /// use std::time::Duration;
    ///
    /// let pool = ThreadPool::builder("mill").keep_alive(Duration::from_secs(5)).build()?;
    /// assert_eq!(pool.keep_alive(), Duration::from_secs(5));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "getKeepAliveTime")]
    pub fn keep_alive(&self) -> Duration {
        self.engine.config().keep_alive()
    }

    /// Changes how long an idle worker above the core stays. Workers that are idle start counting
    /// anew.
    ///
    /// # Errors
    ///
    /// The keep-alive is zero, and the core may time out.
    ///
    /// ```
    /// use millpond::executor::ExecutorExt;
    /// use millpond::manage::Growth;
    /// use millpond::pool::ThreadPool;
    /// use millpond::time::ManualClock;
    /// use std::time::Duration;
    ///
    /// let hand = ManualClock::new();
    /// let pool = ThreadPool::builder("mill").core(0).max(1).growth(Growth::ThreadsFirst);
    /// let pool = pool.clock(hand.clock()).build()?;
    /// pool.set_keep_alive(Duration::from_secs(1))?;
    /// pool.submit(|| "flour")?.join()?;
    /// while pool.snapshot().workers > 0 {
    ///     hand.advance(Duration::from_secs(1));
    ///     std::thread::yield_now();
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "setKeepAliveTime")]
    pub fn set_keep_alive(&self, keep_alive: Duration) -> Result<(), PatchError> {
        self.apply(&Patch::new().keep_alive(keep_alive)).map(drop)
    }

    /// Whether idle workers of the core leave as well.
    ///
    /// ```
    /// use millpond::preset;
    ///
    /// let pool = preset::fixed("mill", 2).build()?;
    /// assert!(!pool.core_may_time_out(), "the core stays, unless told otherwise");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "allowsCoreThreadTimeOut")]
    pub fn core_may_time_out(&self) -> bool {
        self.engine.config().core_may_time_out()
    }

    /// Changes whether idle workers of the core leave as well.
    ///
    /// # Errors
    ///
    /// The keep-alive is zero.
    ///
    /// ```
    /// use millpond::preset;
    /// use std::time::Duration;
    ///
    /// let pool = preset::fixed("mill", 2).build()?;
    /// pool.set_keep_alive(Duration::from_secs(60))?;
    /// pool.set_core_may_time_out(true)?;
    /// assert!(pool.core_may_time_out());
    /// assert!(pool.set_keep_alive(Duration::ZERO).is_err(), "no worker would stay");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "allowCoreThreadTimeOut")]
    pub fn set_core_may_time_out(&self, may: bool) -> Result<(), PatchError> {
        self.apply(&Patch::new().core_may_time_out(may)).map(drop)
    }

    /// Whether a task that finds the core busy is queued or starts another worker.
    ///
    /// ```
    /// use millpond::manage::Growth;
    /// use millpond::pool::ThreadPool;
    ///
    /// let pool = ThreadPool::builder("mill").build()?;
    /// assert_eq!(pool.growth(), Growth::QueueFirst);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn growth(&self) -> Growth {
        self.engine.config().limits().growth()
    }

    /// Changes what comes first when the core is busy. If that is threads, they start for waiting tasks.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::manage::Growth;
    /// use millpond::pool::{Queue, ThreadPool};
    /// use std::sync::mpsc;
    ///
    /// let pool = ThreadPool::builder("mill").core(1).max(2).queue(Queue::bounded(10)).build()?;
    /// let (say, hear) = mpsc::channel::<()>();
    /// let first = pool.submit(move || hear.recv().is_err())?;
    /// let second = pool.submit(|| "flour")?;
    /// // The second waits, for the queue comes first. If threads do, one starts for it.
    /// pool.set_growth(Growth::ThreadsFirst);
    /// assert_eq!(second.join()?, "flour");
    /// drop(say);
    /// assert!(first.join()?);
    /// pool.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_growth(&self, growth: Growth) {
        let changed = self.apply(&Patch::new().growth(growth));
        let fits = changed.is_ok() || self.engine.is_forked();
        debug_assert!(fits, "a growth fits all sizes");
    }

    /// The most tasks that may wait in the queue; `None` if there is no bound, 0 if tasks are handed over.
    ///
    /// ```
    /// use millpond::pool::{Queue, ThreadPool};
    ///
    /// let pool = ThreadPool::builder("mill").queue(Queue::bounded(100)).build()?;
    /// assert_eq!(pool.capacity(), Some(100));
    /// let pool = ThreadPool::builder("mill").queue(Queue::unbounded()).build()?;
    /// assert_eq!(pool.capacity(), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn capacity(&self) -> Option<usize> {
        if self.engine.is_forked() {
            return Some(0);
        }
        self.engine.queue.capacity()
    }

    /// Changes how many tasks may wait. Tasks above it stay, and new ones find no room until those
    /// are gone.
    ///
    /// # Errors
    ///
    /// The queue cannot have this capacity.
    ///
    /// ```
    /// use millpond::pool::{Queue, ThreadPool};
    ///
    /// let pool = ThreadPool::builder("mill").queue(Queue::bounded(100)).build()?;
    /// pool.set_capacity(5_000)?;
    /// assert_eq!(pool.capacity(), Some(5_000));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_capacity(&self, capacity: usize) -> Result<(), PatchError> {
        self.apply(&Patch::new().capacity(capacity)).map(drop)
    }

    /// The longest that a task may wait in the queue; `None` is forever.
    ///
    /// ```
    /// use millpond::preset;
    ///
    /// let pool = preset::fixed("mill", 2).build()?;
    /// assert_eq!(pool.max_queue_wait(), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn max_queue_wait(&self) -> Option<Duration> {
        self.engine.overload().max_queue_wait
    }

    /// Changes how long a task may wait in the queue, including tasks that wait already.
    ///
    /// # Errors
    ///
    /// The wait is zero; or an overload order is set, and nothing is left that defines an overload.
    ///
    /// ```
    /// use millpond::preset;
    /// use std::time::Duration;
    ///
    /// let pool = preset::fixed("mill", 2).build()?;
    /// pool.set_max_queue_wait(Duration::from_millis(500))?;
    /// assert_eq!(pool.max_queue_wait(), Some(Duration::from_millis(500)));
    /// pool.set_max_queue_wait(None)?;
    /// assert_eq!(pool.max_queue_wait(), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_max_queue_wait(&self, most: impl Into<Option<Duration>>) -> Result<(), PatchError> {
        self.apply(&Patch::new().max_queue_wait(most)).map(drop)
    }

    /// When the pool counts as overloaded and sheds tasks; `None` is never.
    ///
    /// ```
    /// use millpond::preset;
    ///
    /// let pool = preset::fixed("mill", 2).build()?;
    /// assert_eq!(pool.shedding(), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shedding(&self) -> Option<CoDel> {
        self.engine.overload().shedding
    }

    /// Changes when the pool counts as overloaded and sheds tasks. Earlier measurements are discarded.
    ///
    /// # Errors
    ///
    /// The target is zero or above the interval; or an overload order is set, and nothing is left that
    /// defines an overload.
    ///
    /// ```
    /// use millpond::manage::CoDel;
    /// use millpond::preset;
    ///
    /// let pool = preset::fixed("mill", 2).build()?;
    /// pool.set_shedding(CoDel::default())?;
    /// assert_eq!(pool.shedding(), Some(CoDel::default()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_shedding(&self, shedding: impl Into<Option<CoDel>>) -> Result<(), PatchError> {
        self.apply(&Patch::new().shedding(shedding)).map(drop)
    }

    /// The limit on the run time of tasks whose name has none of its own; `None` is no limit.
    ///
    /// ```
    /// use millpond::manage::Patch;
    /// use millpond::pool::RunWarning;
    /// use millpond::preset;
    /// use std::time::Duration;
    ///
    /// let pool = preset::fixed("mill", 2).build()?;
    /// assert_eq!(pool.run_warning(), None);
    /// pool.apply(&Patch::new().set("run_warning", "30s"))?;
    /// assert_eq!(pool.run_warning(), Some(RunWarning::after(Duration::from_secs(30))));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn run_warning(&self) -> Option<RunWarning> {
        (!self.engine.is_forked())
            .then(|| self.engine.watchdog.limit_of_all())
            .flatten()
    }

    /// Which waiting task comes next while the pool is overloaded.
    ///
    /// ```
    /// use millpond::manage::OverloadOrder;
    /// use millpond::preset;
    ///
    /// let pool = preset::fixed("mill", 2).build()?;
    /// assert_eq!(pool.overload_order(), OverloadOrder::default());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn overload_order(&self) -> OverloadOrder {
        self.engine.overload().order
    }

    /// Changes which waiting task comes next while the pool is overloaded.
    ///
    /// # Errors
    ///
    /// Newest first, and nothing defines an overload, or the queue has an order of its own.
    ///
    /// ```
    /// use millpond::manage::{CoDel, OverloadOrder};
    /// use millpond::preset;
    ///
    /// let pool = preset::fixed("mill", 2).build()?;
    /// let newest = OverloadOrder::NewestFirst;
    /// assert!(pool.set_overload_order(newest).is_err(), "what is an overload?");
    /// pool.set_shedding(CoDel::default())?;
    /// pool.set_overload_order(newest)?;
    /// assert_eq!(pool.overload_order(), newest);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_overload_order(&self, order: OverloadOrder) -> Result<(), PatchError> {
        self.apply(&Patch::new().overload_order(order)).map(drop)
    }

    /// The percentile of the run times of its name that a task with a [`finish_by`](crate::task::TaskSpec::finish_by) must
    /// have time for at its turn.
    ///
    /// ```
    /// use millpond::preset;
    ///
    /// let pool = preset::fixed("mill", 2).build()?;
    /// assert_eq!(pool.finish_percentile(), 50);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn finish_percentile(&self) -> u8 {
        self.engine.overload().finish_percentile
    }

    /// Changes it; see [`PoolBuilder::finish_percentile`](super::PoolBuilder::finish_percentile).
    ///
    /// # Errors
    ///
    /// It is above 100.
    ///
    /// ```
    /// use millpond::preset;
    ///
    /// let pool = preset::fixed("mill", 2).build()?;
    /// pool.set_finish_percentile(90)?;
    /// assert_eq!(pool.finish_percentile(), 90);
    /// assert!(pool.set_finish_percentile(101).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_finish_percentile(&self, percent: u8) -> Result<(), PatchError> {
        self.apply(&Patch::new().finish_percentile(percent))
            .map(drop)
    }

    /// What happens to tasks that find no room.
    ///
    /// ```
    /// use millpond::pool::{RejectionPolicy, ThreadPool};
    ///
    /// let pool = ThreadPool::builder("mill").rejection(RejectionPolicy::CallerRuns).build()?;
    /// assert!(matches!(pool.rejection(), RejectionPolicy::CallerRuns));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "getRejectedExecutionHandler")]
    pub fn rejection(&self) -> RejectionPolicy {
        self.engine.rejection()
    }

    /// Changes what happens to tasks that find no room.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::pool::{Queue, RejectionPolicy, ThreadPool};
    /// use std::sync::mpsc;
    /// use std::thread;
    ///
    /// let pool = ThreadPool::builder("mill").core(1).max(1).queue(Queue::hand_off()).build()?;
    /// let (say, hear) = mpsc::channel::<()>();
    /// let busy = pool.submit(move || hear.recv().is_err())?;
    /// assert!(pool.submit(|| "flour").is_err(), "there is no room");
    /// pool.set_rejection(RejectionPolicy::CallerRuns);
    /// let caller = thread::current().id();
    /// assert_eq!(pool.submit(move || thread::current().id())?.join()?, caller);
    /// drop(say);
    /// assert!(busy.join()?);
    /// pool.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "setRejectedExecutionHandler")]
    pub fn set_rejection(&self, rejection: RejectionPolicy) {
        if self.engine.is_forked() {
            return;
        }
        let config = self.engine.config();
        let former = config.replace_rejection(&mut config.lock(), rejection);
        // A handler of the user's is dropped outside the lock.
        drop(former);
    }

    /// The factory that starts the threads.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::preset;
    ///
    /// // What one pool has, another one may use.
    /// let (mill, bakery) = (preset::single("mill").build()?, preset::single("bakery").build()?);
    /// bakery.set_thread_factory(mill.thread_factory());
    /// let name = bakery.submit(|| std::thread::current().name().map(String::from))?.join()?;
    /// assert!(name.is_some_and(|name| name.starts_with("mill")));
    /// mill.close()?;
    /// bakery.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "getThreadFactory")]
    pub fn thread_factory(&self) -> Arc<dyn ThreadFactory> {
        self.engine.factory()
    }

    /// Changes the factory for threads that are still to be started.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::preset;
    /// use millpond::thread::Threads;
    /// use std::sync::Arc;
    ///
    /// let pool = preset::single("mill").build()?;
    /// pool.set_thread_factory(Arc::new(Threads::named("night-shift")));
    /// let name = pool.submit(|| std::thread::current().name().map(String::from))?.join()?;
    /// assert!(name.is_some_and(|name| name.starts_with("night-shift")));
    /// pool.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "setThreadFactory")]
    pub fn set_thread_factory(&self, factory: Arc<dyn ThreadFactory>) {
        if self.engine.is_forked() {
            return;
        }
        let before = std::mem::replace(&mut self.engine.config().lock().factory, factory);
        drop(before);
    }

    /// Changes all parameters that the patch names, or none. Returns what has changed.
    ///
    /// # Errors
    ///
    /// All that is wrong with the patch; then nothing has changed.
    ///
    /// ```
    /// use millpond::manage::Patch;
    /// use millpond::pool::ThreadPool;
    ///
    /// let pool = ThreadPool::builder("mill").core(1).max(2).build()?;
    /// // One after the other, this would need the right order.
    /// pool.apply(&Patch::new().core(8).max(16).capacity(500))?;
    /// assert_eq!((pool.core(), pool.max(), pool.capacity()), (8, 16, Some(500)));
    ///
    /// let wrong = Patch::new().core(20).capacity(7);
    /// assert!(pool.apply(&wrong).is_err(), "more than the maximum");
    /// assert_eq!((pool.core(), pool.capacity()), (8, Some(500)), "nothing has changed");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn apply(&self, patch: &Patch) -> Result<Vec<Change>, PatchError> {
        self.engine.apply(patch)
    }

    /// Its parameters, described, with their values now. In a forked process those that are behind a lock are as by
    /// default, and the capacity is 0.
    ///
    /// ```
    /// use millpond::manage::Value;
    /// use millpond::pool::ThreadPool;
    ///
    /// let pool = ThreadPool::builder("mill").core(2).max(4).build()?;
    /// let all = pool.parameters();
    /// let max = all.iter().find(|each| each.name == "max").unwrap();
    /// assert_eq!((&max.value, max.unit), (&Value::Integer(4), Some("workers")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn parameters(&self) -> Vec<Parameter> {
        self.engine.parameters()
    }
}
