//! The builder of thread pools. The ranges and defaults of parameters are in [`super::config`].

use super::ThreadPool;
use super::config::{
    Config, DEFAULT_CAPACITY, DEFAULT_KEEP_ALIVE, DEFAULT_TASK_NAMES, LiveConfig, Overload,
    default_workers,
};
use super::engine::{Parts, PoolEngine};
use super::events::PoolEvent;
use super::hooks::Hooks;
use super::rejection::RejectionPolicy;
use super::task_queue::{Queue, TaskQueue};
use crate::engine::watchdog::RunWarning;
use crate::engine::{CommonBuilder, LastHandle, WorkerBuilder};
use crate::executor::UncaughtPanic;
use crate::manage::{CoDel, Growth, Invalid, OverloadOrder, PatchError};
use crate::thread::ThreadFactory;
use crate::time::Clock;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Builds a [`ThreadPool`].
///
/// ```
/// use millpond::manage::Growth;
/// use millpond::pool::{Queue, RejectionPolicy, ThreadPool};
/// use std::time::Duration;
///
/// let pool = ThreadPool::builder("orders")
///     .core(4)
///     .max(16)
///     .growth(Growth::ThreadsFirst)
///     .keep_alive(Duration::from_secs(10))
///     .queue(Queue::bounded(256))
///     .rejection(RejectionPolicy::CallerRuns)
///     .build()?;
/// assert_eq!(pool.max(), 16);
///
/// let error = ThreadPool::builder("orders").core(4).max(2).build().unwrap_err();
/// assert!(error.to_string().contains("core 4 is above max 2"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a builder does nothing until it is built"]
pub struct PoolBuilder {
    common: CommonBuilder<PoolEvent>,
    workers: WorkerBuilder,
    core: Option<usize>,
    max: Option<usize>,
    keep_alive: Duration,
    core_may_time_out: bool,
    growth: Growth,
    overload: Overload,
    queue: Queue,
    rejection: RejectionPolicy,
    hooks: Option<Box<dyn Hooks>>,
}

impl PoolBuilder {
    pub(super) fn new(name: Cow<'static, str>) -> Self {
        PoolBuilder {
            common: CommonBuilder::new(name, Clock::system()),
            workers: WorkerBuilder::new(DEFAULT_TASK_NAMES),
            core: None,
            max: None,
            keep_alive: DEFAULT_KEEP_ALIVE,
            core_may_time_out: false,
            growth: Growth::default(),
            overload: Overload::default(),
            queue: Queue::bounded(DEFAULT_CAPACITY),
            rejection: RejectionPolicy::default(),
            hooks: None,
        }
    }

    /// Workers that are kept, also when they are idle. Each task starts one until there are so
    /// many. Default: the maximum, if that is given; otherwise one for each CPU that this process
    /// may use ([`worker_hint`](crate::machine::Machine::worker_hint)).
    ///
    /// ```
    /// use millpond::pool::ThreadPool;
    ///
    /// let pool = ThreadPool::builder("mill").core(2).max(8).build()?;
    /// pool.prestart_all_core()?;
    /// assert_eq!(pool.snapshot().workers, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "corePoolSize")]
    pub fn core(mut self, core: usize) -> Self {
        self.core = Some(core);
        self
    }

    /// The most workers there may be. Default: the core.
    ///
    /// ```
    /// use millpond::executor::ExecutorExt;
    /// use millpond::pool::{Queue, ThreadPool};
    /// use std::sync::mpsc::channel;
    ///
    /// let pool = ThreadPool::builder("mill").core(1).max(2).queue(Queue::hand_off()).build()?;
    /// let ((go, wait), (go_too, wait_too)) = (channel::<()>(), channel::<()>());
    /// pool.execute(move || for () in wait {})?;
    /// pool.execute(move || for () in wait_too {})?;
    /// assert!(pool.execute(|| ()).unwrap_err().reason.is_saturated());
    /// drop((go, go_too));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "maximumPoolSize")]
    pub fn max(mut self, max: usize) -> Self {
        self.max = Some(max);
        self
    }

    /// How long an idle worker above the core stays. Default: 60 seconds.
    ///
    /// ```
    /// use millpond::executor::ExecutorExt;
    /// use millpond::pool::ThreadPool;
    /// use millpond::time::ManualClock;
    /// use std::time::Duration;
    ///
    /// let (hand, second) = (ManualClock::new(), Duration::from_secs(1));
    /// let mill = ThreadPool::builder("mill").core(0).keep_alive(10 * second);
    /// let pool = mill.clock(hand.clock()).build()?;
    /// let began = hand.clock().now();
    /// pool.submit(|| "flour")?.join()?;
    /// while pool.snapshot().workers > 0 {
    ///     hand.advance(second);
    /// }
    /// assert!(hand.clock().now() - began >= 10 * second);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "keepAliveTime")]
    pub fn keep_alive(mut self, keep_alive: Duration) -> Self {
        self.keep_alive = keep_alive;
        self
    }

    /// Whether idle workers of the core leave as well. Default: no.
    ///
    /// ```
    /// use millpond::executor::ExecutorExt;
    /// use millpond::pool::ThreadPool;
    /// use millpond::time::ManualClock;
    ///
    /// let hand = ManualClock::new();
    /// let mill = ThreadPool::builder("mill").core(1).core_may_time_out(true);
    /// let pool = mill.clock(hand.clock()).build()?;
    /// pool.submit(|| "flour")?.join()?;
    /// while pool.snapshot().workers > 0 {
    ///     hand.advance(pool.keep_alive());
    /// }
    /// assert_eq!(pool.core(), 1); // so the next task starts one again
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "allowCoreThreadTimeOut")]
    pub fn core_may_time_out(mut self, may: bool) -> Self {
        self.core_may_time_out = may;
        self
    }

    /// Whether a task that finds the core busy is queued or starts another worker. Default:
    /// [`Growth::QueueFirst`].
    ///
    /// ```
    /// use millpond::executor::ExecutorExt;
    /// use millpond::manage::Growth;
    /// use millpond::pool::ThreadPool;
    /// use std::sync::mpsc::channel;
    ///
    /// let pool = ThreadPool::builder("mill").core(1).max(2).growth(Growth::ThreadsFirst).build()?;
    /// let (go, wait) = channel::<()>();
    /// pool.execute(move || for () in wait {})?;
    /// // The core is busy, and there is room in the queue: a thread comes all the same.
    /// assert_eq!(pool.submit(|| "flour")?.join()?, "flour");
    /// assert_eq!(pool.snapshot().workers, 2);
    /// drop(go);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn growth(mut self, growth: Growth) -> Self {
        self.growth = growth;
        self
    }

    /// The longest that a task may wait in the queue. A task that has waited longer when its turn comes is
    /// dropped instead of run, and its handle says so
    /// ([`WaitedTooLong`](crate::task::CancelReason::WaitedTooLong)). The time is counted from the
    /// moment the task is submitted; a wait for room is part of it. Default: forever.
    ///
    /// ```
    /// use millpond::executor::ExecutorExt;
    /// use millpond::pool::ThreadPool;
    /// use millpond::task::{CancelReason, TaskError};
    /// use millpond::time::ManualClock;
    /// use std::sync::mpsc::channel;
    /// use std::time::Duration;
    ///
    /// let hand = ManualClock::new();
    /// let pool = ThreadPool::builder("mill")
    ///     .max(1)
    ///     .max_queue_wait(Duration::from_secs(1))
    ///     .clock(hand.clock())
    ///     .build()?;
    /// let (go, wait) = channel();
    /// let running = pool.submit(move || wait.recv())?;
    /// let waiting = pool.submit(|| ())?;
    /// hand.advance(Duration::from_secs(2));
    /// go.send(())?;
    /// running.join()??;
    /// let error = waiting.join().unwrap_err();
    /// assert!(matches!(error, TaskError::Cancelled(CancelReason::WaitedTooLong)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn max_queue_wait(mut self, most: impl Into<Option<Duration>>) -> Self {
        self.overload.max_queue_wait = most.into();
        self
    }

    /// When the pool counts as overloaded and sheds tasks: see [`CoDel`]. Default: never.
    ///
    /// ```
    /// use millpond::manage::{CoDel, OverloadOrder};
    /// use millpond::pool::ThreadPool;
    ///
    /// let pool = ThreadPool::builder("orders")
    ///     .shedding(CoDel::default())
    ///     .overload_order(OverloadOrder::NewestFirst)
    ///     .build()?;
    /// pool.set_shedding(None).unwrap_err(); // "newest first needs to know what an overload is"
    /// assert_eq!(pool.shedding(), Some(CoDel::default()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shedding(mut self, shedding: impl Into<Option<CoDel>>) -> Self {
        self.overload.shedding = shedding.into();
        self
    }

    /// Which waiting task comes next while the pool is overloaded. Default: the order of the queue.
    ///
    /// ```
    /// use millpond::manage::{Invalid, OverloadOrder};
    /// use millpond::pool::ThreadPool;
    /// use std::time::Duration;
    ///
    /// let mill = || ThreadPool::builder("mill").overload_order(OverloadOrder::NewestFirst);
    /// let pool = mill().max_queue_wait(Duration::from_secs(1)).build()?;
    /// assert_eq!(pool.overload_order(), OverloadOrder::NewestFirst);
    ///
    /// // Something has to say what an overload is.
    /// assert_eq!(mill().build().unwrap_err().problems(), [Invalid::NeverOverloaded]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn overload_order(mut self, order: OverloadOrder) -> Self {
        self.overload.order = order;
        self
    }

    /// How sure it must be that a task with a [`finish_by`](crate::task::TaskSpec::finish_by) can be finished in time, or
    /// else it is not started: less than this percentile of the run times of its name may not be left. 50, the median,
    /// unless told otherwise: a task that would more likely fail than not is not started. A higher one leaves more
    /// room for others under overload; 0 starts every task whose time has not come.
    ///
    /// The run times are those of the last tasks of the name that had a `finish_by`. One that ended late counts as twice
    /// what it was given, because an interrupt may have cut it short. Once a second one task of a name that is dropped for
    /// this reason is run all the same, so that the pool learns when tasks become shorter. A pool without metrics does
    /// not look at run times.
    ///
    /// ```
    /// use millpond::pool::ThreadPool;
    ///
    /// let pool = ThreadPool::builder("mill").finish_percentile(90).build()?;
    /// assert_eq!(pool.finish_percentile(), 90);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn finish_percentile(mut self, percent: u8) -> Self {
        self.overload.finish_percentile = percent;
        self
    }

    /// The queue. Default: at most 1024 tasks, first in, first out.
    ///
    /// ```
    /// use millpond::executor::ExecutorExt;
    /// use millpond::pool::{Queue, ThreadPool};
    /// use std::sync::mpsc::channel;
    ///
    /// let pool = ThreadPool::builder("mill").max(1).queue(Queue::bounded(1)).build()?;
    /// let (go, wait) = channel::<()>();
    /// pool.execute(move || for () in wait {})?; // runs
    /// pool.execute(|| ())?; // waits
    /// assert!(pool.execute(|| ()).unwrap_err().reason.is_saturated());
    /// drop(go);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "workQueue")]
    pub fn queue(mut self, queue: Queue) -> Self {
        self.queue = queue;
        self
    }

    /// What happens to tasks that find no room. Default: [`RejectionPolicy::Abort`].
    ///
    /// ```
    /// use millpond::executor::ExecutorExt;
    /// use millpond::pool::{Queue, RejectionPolicy, ThreadPool};
    /// use std::sync::mpsc::channel;
    ///
    /// let mill = ThreadPool::builder("mill").max(1).queue(Queue::hand_off());
    /// let pool = mill.rejection(RejectionPolicy::CallerRuns).build()?;
    /// let (go, wait) = channel::<()>();
    /// pool.execute(move || for () in wait {})?;
    /// let here = std::thread::current().id();
    /// assert!(pool.submit(move || std::thread::current().id() == here)?.join()?);
    /// drop(go);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rejection(mut self, rejection: RejectionPolicy) -> Self {
        self.rejection = rejection;
        self
    }

    /// The factory that starts the threads. Default: [`Threads`](crate::thread::Threads) of the pool's name. An `Arc` is
    /// taken as it is, and [`ThreadPool::thread_factory`] returns that very one.
    ///
    /// ```
    /// use millpond::executor::ExecutorExt;
    /// use millpond::pool::ThreadPool;
    /// use millpond::thread::Threads;
    ///
    /// let threads = Threads::named("wheel").stack_size(256 * 1024);
    /// let pool = ThreadPool::builder("mill").threads(threads).build()?;
    /// let name = pool.submit(|| std::thread::current().name().map(str::to_owned))?;
    /// assert_eq!(name.join()?.as_deref(), Some("wheel-1"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn threads(mut self, factory: impl ThreadFactory) -> Self {
        self.workers.set_factory(factory);
        self
    }

    /// Callbacks before and after tasks and at the end. Default: none.
    ///
    /// ```
    /// use millpond::executor::ExecutorExt;
    /// use millpond::pool::{Ended, Hooks, TaskInfo, ThreadPool};
    /// use std::sync::mpsc::{Sender, channel};
    ///
    /// struct Tell(Sender<Ended>);
    /// impl Hooks for Tell {
    ///     fn after(&self, _task: &TaskInfo, ended: Ended) {
    ///         self.0.send(ended).unwrap();
    ///     }
    /// }
    /// let (tell, told) = channel();
    /// let pool = ThreadPool::builder("mill").hooks(Tell(tell)).build()?;
    /// pool.execute(|| ())?;
    /// assert_eq!(told.recv()?, Ended::Completed);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn hooks(mut self, hooks: impl Hooks) -> Self {
        self.hooks = Some(Box::new(hooks));
        self
    }

    /// The callback for panics of tasks that have no handle. Default: they go no further than the
    /// program's panic hook.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, UncaughtPanic};
    /// use millpond::pool::ThreadPool;
    /// use std::sync::mpsc::channel;
    ///
    /// let (tell, told) = channel();
    /// let hook = move |uncaught: UncaughtPanic| tell.send(uncaught.into_panic()).unwrap();
    /// let pool = ThreadPool::builder("mill").on_panic(hook).build()?;
    /// pool.execute(|| panic!("the dam broke"))?;
    /// assert_eq!(told.recv()?.message(), Some("the dam broke"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on_panic(mut self, hook: impl Fn(UncaughtPanic) + Send + Sync + 'static) -> Self {
        self.workers.set_panic_hook(hook);
        self
    }

    /// The clock of its timeouts. Default: the system's.
    ///
    /// ```
    /// use millpond::executor::Executor;
    /// use millpond::pool::ThreadPool;
    /// use millpond::time::ManualClock;
    /// use std::time::Duration;
    ///
    /// let (hand, hour) = (ManualClock::new(), Duration::from_secs(3600));
    /// let pool = ThreadPool::builder("mill").clock(hand.clock()).build()?;
    /// let before = pool.clock().now();
    /// hand.advance(hour);
    /// assert_eq!(pool.clock().now() - before, hour);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn clock(mut self, clock: Clock) -> Self {
        self.common.set_clock(clock);
        self
    }

    /// How long a task may run before an event is emitted, while it still runs. Default: forever.
    ///
    /// ```
    /// use millpond::executor::ExecutorExt;
    /// use millpond::pool::{RunWarning, ThreadPool};
    /// use millpond::time::ManualClock;
    /// use std::sync::mpsc::sync_channel;
    /// use std::time::Duration;
    ///
    /// let (hand, minute) = (ManualClock::new(), Duration::from_secs(60));
    /// let mill = ThreadPool::builder("mill").clock(hand.clock()).on_event(|_| ());
    /// let pool = mill.run_warning(RunWarning::after(minute)).build()?;
    /// let (meet, wait) = sync_channel(0);
    /// pool.execute(move || for () in wait {})?;
    /// meet.send(())?; // now it runs
    /// hand.advance(minute);
    /// assert_eq!(pool.health().long_runs, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn run_warning(mut self, warning: RunWarning) -> Self {
        self.workers.set_run_warning(warning);
        self
    }

    /// The same for tasks of one name, in place of the limit for all.
    ///
    /// ```
    /// use millpond::executor::ExecutorExt;
    /// use millpond::pool::{RunWarning, ThreadPool};
    /// use millpond::task::TaskSpec;
    /// use millpond::time::ManualClock;
    /// use std::sync::mpsc::sync_channel;
    /// use std::time::Duration;
    ///
    /// let (hand, minute) = (ManualClock::new(), Duration::from_secs(60));
    /// let mill = ThreadPool::builder("mill").clock(hand.clock()).on_event(|_| ());
    /// let pool = mill.run_warning_for("nap", RunWarning::after(minute)).build()?;
    /// let (meet, wait) = sync_channel(0);
    /// let nap = pool.submit_with(TaskSpec::new().name("nap"), move || for () in wait {})?;
    /// meet.send(())?; // now it runs
    /// hand.advance(minute);
    /// assert_eq!(pool.health().long_runs, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn run_warning_for(mut self, name: impl Into<String>, warning: RunWarning) -> Self {
        self.workers.set_run_warning_for(name, warning);
        self
    }

    /// The listener for [`PoolEvent`]s. Default: the standard error; with the feature `tracing`, an event.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::pool::{PoolEvent, RejectionPolicy, ThreadPool};
    /// use std::sync::mpsc::channel;
    /// use std::time::Duration;
    ///
    /// let (tell, told) = channel();
    /// let pool = ThreadPool::builder("mill")
    ///     .rejection(RejectionPolicy::Report { at_most_every: Duration::from_secs(60) })
    ///     .on_event(move |event: &PoolEvent| tell.send(event.to_string()).unwrap())
    ///     .build()?;
    /// pool.shutdown();
    /// pool.execute(|| ()).unwrap_err();
    /// assert!(told.recv()?.starts_with("mill: "));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on_event(mut self, listener: impl Fn(&PoolEvent) + Send + Sync + 'static) -> Self {
        self.common.set_listener(listener);
        self
    }

    /// The most task names that are measured one by one ([`ThreadPool::metrics_by_name`]). Tasks of further
    /// names are counted together, as "others", until a name has not been in use for a minute or two: that one
    /// makes room, and its counts are added to the others'. Default: 64; more than 65,535 are an error of
    /// [`build`](Self::build). A name costs each worker that runs tasks of it two or three kilobytes.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::pool::ThreadPool;
    /// use millpond::task::TaskSpec;
    ///
    /// let pool = ThreadPool::builder("mill").max_task_names(2).build()?;
    /// for grain in ["rye", "oats", "barley"] {
    ///     pool.submit_with(TaskSpec::new().name(grain), || ())?.join()?;
    /// }
    /// pool.close()?;
    /// let mut labels = pool.metrics_by_name().into_iter().map(|named| named.label.to_string());
    /// assert!(labels.any(|label| label == "(others)"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn max_task_names(mut self, most: usize) -> Self {
        self.workers.set_max_task_names(most);
        self
    }

    /// Measures no tasks, neither times nor names: [`ThreadPool::metrics`] stays empty, and no
    /// rejection says how long the queue needs to drain. For pools
    /// whose tasks are so small that some twenty nanoseconds each are too much. The counts of
    /// [`PoolSnapshot`](crate::pool::PoolSnapshot) are kept all the same.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::pool::{Metrics, ThreadPool};
    ///
    /// let pool = ThreadPool::builder("mill").without_metrics().build()?;
    /// pool.execute(|| ())?;
    /// pool.close()?;
    /// assert_eq!(pool.metrics(), Metrics::default());
    /// assert_eq!(pool.snapshot().completed, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn without_metrics(mut self) -> Self {
        self.workers.unset_metrics();
        self
    }

    /// Builds the pool. Workers start with the first tasks.
    ///
    /// # Errors
    ///
    /// All parameters that are wrong.
    ///
    /// ```
    /// use millpond::manage::Invalid;
    /// use millpond::pool::{Queue, ThreadPool};
    ///
    /// let wrong = ThreadPool::builder("mill").core(4).max(2).queue(Queue::bounded(0));
    /// let error = wrong.build().unwrap_err();
    /// let wrong: Vec<_> = error.problems().iter().map(Invalid::parameter).collect();
    /// assert_eq!(wrong, ["core", "capacity"]);
    /// ```
    pub fn build(self) -> Result<ThreadPool, PatchError> {
        let (core, max) = match (self.core, self.max) {
            (Some(core), Some(max)) => (core, max),
            (Some(core), None) => (core, core.max(1)),
            (None, Some(max)) => (max, max),
            (None, None) => {
                let workers = default_workers();
                (workers, workers)
            }
        };
        let queue = self.queue.build(self.common.clock());
        let config = Config {
            core,
            max,
            keep_alive: self.keep_alive,
            core_may_time_out: self.core_may_time_out,
            growth: self.growth,
            // The queue judges its own capacity, when it is built.
            capacity: None,
            overload: self.overload,
            rejection: self.rejection,
            queue: "fifo",
            run_warning: self.workers.run_warning(),
            task_names: self.workers.task_names(),
        };
        let mut problems = config.problems(self.common.name());
        let queue = match queue {
            Ok(queue) => Some(queue),
            Err(error) => {
                problems.push(Invalid::Capacity(error));
                None
            }
        };
        let objects = |queue: &TaskQueue| queue.objects_to_order(self.overload.order);
        problems.extend(queue.as_ref().and_then(objects));
        PatchError::unless_none(problems)?;
        let queue = queue.expect("a queue that was not built is a problem");
        let factory = self.workers.factory(&self.common);
        let parts = Parts {
            common: self.common,
            workers: self.workers,
            config: LiveConfig::new(&config, factory),
            overload: self.overload,
            queue,
            hooks: self.hooks,
        };
        let engine = Arc::new_cyclic(|own| PoolEngine::new(parts, own.clone()));
        Ok(ThreadPool {
            _last_handle: Arc::new(LastHandle::new(&engine)),
            engine,
        })
    }
}

impl fmt::Debug for PoolBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.common
            .debug("PoolBuilder", f)
            .field("core", &self.core)
            .field("max", &self.max)
            .field("queue", &self.queue)
            .field("rejection", &self.rejection)
            .finish_non_exhaustive()
    }
}
