//! Describing a pool before it is built.

use super::engine::{Engine, Parts};
use super::hooks::Hooks;
use super::knobs::{Knobs, Rare};
use super::line::{Line, Queue};
use super::notice::{Listener, Notice};
use super::reject::Rejection;
use super::watch::{self, RunWarning};
use super::{Owner, ThreadPool};
use crate::executor::{Runner, UncaughtPanic};
use crate::machine::Machine;
use crate::manage::{CoDel, Growth, Invalid, Overload, OverloadOrder, PatchError, Sizes};
use crate::thread::{ThreadFactory, Threads};
use crate::time::Clock;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How many tasks may wait in a pool that was not told otherwise.
pub(super) const DEFAULT_CAPACITY: usize = 1024;

/// How long an idle worker beyond the core stays in a pool that was not told otherwise.
const DEFAULT_KEEP_ALIVE: Duration = Duration::from_secs(60);

/// Of how many names a pool keeps figures that was not told otherwise.
const DEFAULT_NAMES: usize = 64;

/// Describes a [`ThreadPool`].
///
/// ```
/// use millpond::manage::Growth;
/// use millpond::pool::{Queue, Rejection, ThreadPool};
/// use std::time::Duration;
///
/// let pool = ThreadPool::builder("orders")
///     .core(4)
///     .max(16)
///     .growth(Growth::ThreadsFirst)
///     .keep_alive(Duration::from_secs(10))
///     .queue(Queue::bounded(256))
///     .rejection(Rejection::CallerRuns)
///     .build()?;
/// assert_eq!(pool.max(), 16);
///
/// let error = ThreadPool::builder("orders").core(4).max(2).build().unwrap_err();
/// assert!(error.to_string().contains("core 4 is above max 2"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a description does nothing until it is built"]
pub struct PoolBuilder {
    name: Cow<'static, str>,
    core: Option<usize>,
    max: Option<usize>,
    keep_alive: Duration,
    core_may_time_out: bool,
    growth: Growth,
    overload: Overload,
    queue: Queue,
    rejection: Rejection,
    factory: Option<Arc<dyn ThreadFactory>>,
    hooks: Option<Box<dyn Hooks>>,
    runner: Runner,
    clock: Clock,
    names: Option<usize>,
    run_warnings: watch::Limits,
    listener: Option<Listener>,
}

impl PoolBuilder {
    pub(super) fn new(name: Cow<'static, str>) -> Self {
        PoolBuilder {
            name,
            core: None,
            max: None,
            keep_alive: DEFAULT_KEEP_ALIVE,
            core_may_time_out: false,
            growth: Growth::default(),
            overload: Overload::default(),
            queue: Queue::bounded(DEFAULT_CAPACITY),
            rejection: Rejection::default(),
            factory: None,
            hooks: None,
            runner: Runner::default(),
            clock: Clock::system(),
            names: Some(DEFAULT_NAMES),
            run_warnings: watch::Limits::default(),
            listener: None,
        }
    }

    /// How many workers are kept, also when they are idle. Each task starts one until there are so
    /// many. Default: the maximum, if that is given; otherwise one for each CPU that this process
    /// may use ([`Machine::worker_hint`]).
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

    /// How many workers there may be. Default: the core.
    ///
    /// ```
    /// use millpond::executor::ExecutorExt;
    /// use millpond::pool::{Queue, ThreadPool};
    /// use std::sync::mpsc::channel;
    ///
    /// let pool = ThreadPool::builder("mill").core(1).max(2).queue(Queue::hand_off()).build()?;
    /// let ((go, wait), (go_too, wait_too)) = (channel::<()>(), channel::<()>());
    /// pool.run(move || for () in wait {})?;
    /// pool.run(move || for () in wait_too {})?;
    /// assert!(pool.run(|| ()).unwrap_err().reason.is_saturated());
    /// drop((go, go_too));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "maximumPoolSize")]
    pub fn max(mut self, max: usize) -> Self {
        self.max = Some(max);
        self
    }

    /// How long an idle worker beyond the core stays. Default: 60 seconds.
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

    /// Whether idle workers of the core leave, too. Default: no.
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

    /// What comes first when the core is busy, the queue or more threads. Default:
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
    /// pool.run(move || for () in wait {})?;
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

    /// How long a task may wait in the queue. Who has waited longer when its turn comes is dropped
    /// instead of run, and its handle says so
    /// ([`WaitedTooLong`](crate::task::CancelReason::WaitedTooLong)). The time is counted from the
    /// moment the task is brought; a wait for room is part of it. Default: for ever.
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

    /// When the pool is overloaded, and sheds tasks: see [`CoDel`]. Default: never.
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

    /// Which of the tasks that wait comes next while the pool is overloaded. Default: the order of
    /// the queue.
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

    /// Where tasks wait. Default: at most 1024, first in, first out.
    ///
    /// ```
    /// use millpond::executor::ExecutorExt;
    /// use millpond::pool::{Queue, ThreadPool};
    /// use std::sync::mpsc::channel;
    ///
    /// let pool = ThreadPool::builder("mill").max(1).queue(Queue::bounded(1)).build()?;
    /// let (go, wait) = channel::<()>();
    /// pool.run(move || for () in wait {})?; // runs
    /// pool.run(|| ())?; // waits
    /// assert!(pool.run(|| ()).unwrap_err().reason.is_saturated());
    /// drop(go);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "workQueue")]
    pub fn queue(mut self, queue: Queue) -> Self {
        self.queue = queue;
        self
    }

    /// What becomes of tasks that there is no room for. Default: [`Rejection::Abort`].
    ///
    /// ```
    /// use millpond::executor::ExecutorExt;
    /// use millpond::pool::{Queue, Rejection, ThreadPool};
    /// use std::sync::mpsc::channel;
    ///
    /// let mill = ThreadPool::builder("mill").max(1).queue(Queue::hand_off());
    /// let pool = mill.rejection(Rejection::CallerRuns).build()?;
    /// let (go, wait) = channel::<()>();
    /// pool.run(move || for () in wait {})?;
    /// let here = std::thread::current().id();
    /// assert!(pool.submit(move || std::thread::current().id() == here)?.join()?);
    /// drop(go);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rejection(mut self, rejection: Rejection) -> Self {
        self.rejection = rejection;
        self
    }

    /// Who starts the threads. Default: [`Threads`] of the pool's name. An `Arc` is taken as it is, and
    /// [`ThreadPool::thread_factory`] returns that very one.
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
        self.factory = Some(factory.into_shared());
        self
    }

    /// Who hears of tasks and of the end. Default: nobody.
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
    /// pool.run(|| ())?;
    /// assert_eq!(told.recv()?, Ended::Completed);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn hooks(mut self, hooks: impl Hooks) -> Self {
        self.hooks = Some(Box::new(hooks));
        self
    }

    /// What to do with the panic of a task that has no handle. Default: it goes no further than the
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
    /// pool.run(|| panic!("the dam broke"))?;
    /// assert_eq!(told.recv()?.message(), Some("the dam broke"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on_panic(mut self, hook: impl Fn(UncaughtPanic) + Send + Sync + 'static) -> Self {
        self.runner = Runner::with_hook(hook);
        self
    }

    /// The clock by which its time-outs run. Default: the system's.
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
        self.clock = clock;
        self
    }

    /// After how long a running task is worth a notice, while it runs. Default: never.
    ///
    /// ```
    /// use millpond::executor::ExecutorExt;
    /// use millpond::pool::{RunWarning, ThreadPool};
    /// use millpond::time::ManualClock;
    /// use std::sync::mpsc::sync_channel;
    /// use std::time::Duration;
    ///
    /// let (hand, minute) = (ManualClock::new(), Duration::from_secs(60));
    /// let mill = ThreadPool::builder("mill").clock(hand.clock()).on_notice(|_| ());
    /// let pool = mill.run_warning(RunWarning::after(minute)).build()?;
    /// let (meet, wait) = sync_channel(0);
    /// pool.run(move || for () in wait {})?;
    /// meet.send(())?; // now it runs
    /// hand.advance(minute);
    /// assert_eq!(pool.health().long_runs, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn run_warning(mut self, warning: RunWarning) -> Self {
        self.run_warnings.of_all = Some(warning);
        self
    }

    /// The same for tasks of one name, instead of what holds for all.
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
    /// let mill = ThreadPool::builder("mill").clock(hand.clock()).on_notice(|_| ());
    /// let pool = mill.run_warning_for("nap", RunWarning::after(minute)).build()?;
    /// let (meet, wait) = sync_channel(0);
    /// let nap = pool.submit_spec(TaskSpec::new().name("nap"), move || for () in wait {})?;
    /// meet.send(())?; // now it runs
    /// hand.advance(minute);
    /// assert_eq!(pool.health().long_runs, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn run_warning_for(mut self, name: impl Into<String>, warning: RunWarning) -> Self {
        let name = name.into().into_boxed_str();
        self.run_warnings.by_name.insert(name, warning);
        self
    }

    /// Who hears what the pool has to tell ([`Notice`]). Default: the standard error; with the feature
    /// `tracing`, an event.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::pool::{Notice, Rejection, ThreadPool};
    /// use std::sync::mpsc::channel;
    /// use std::time::Duration;
    ///
    /// let (tell, told) = channel();
    /// let pool = ThreadPool::builder("mill")
    ///     .rejection(Rejection::Report { at_most_every: Duration::from_secs(60) })
    ///     .on_notice(move |notice: &Notice| tell.send(notice.to_string()).unwrap())
    ///     .build()?;
    /// pool.shutdown();
    /// pool.run(|| ()).unwrap_err();
    /// assert!(told.recv()?.starts_with("mill: "));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on_notice(mut self, listener: impl Fn(&Notice) + Send + Sync + 'static) -> Self {
        self.listener = Some(Arc::new(listener));
        self
    }

    /// Of how many names it keeps figures ([`ThreadPool::figures_by_name`]). Tasks of further names are
    /// counted together, as "others", until a name has not been in use for a minute or two: that one makes room,
    /// and what was counted under it is the others' from then on. Default: 64. A name costs each worker that runs tasks of it two or three
    /// kilobytes.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::pool::ThreadPool;
    /// use millpond::task::TaskSpec;
    ///
    /// let pool = ThreadPool::builder("mill").most_names(2).build()?;
    /// for grain in ["rye", "oats", "barley"] {
    ///     pool.submit_spec(TaskSpec::new().name(grain), || ())?.join()?;
    /// }
    /// pool.close()?;
    /// let mut labels = pool.figures_by_name().into_iter().map(|named| named.label.to_string());
    /// assert!(labels.any(|label| label == "(others)"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn most_names(mut self, most: usize) -> Self {
        self.names = Some(most);
        self
    }

    /// Keeps no figures of tasks, neither times nor names: [`ThreadPool::figures`] stays empty, and no
    /// refusal says how long the queue needs to drain. For pools
    /// whose tasks are so small that some twenty nanoseconds each are too much. The counts of
    /// [`PoolSnapshot`](crate::manage::PoolSnapshot) are kept all the same.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::pool::{Figures, ThreadPool};
    ///
    /// let pool = ThreadPool::builder("mill").without_figures().build()?;
    /// pool.run(|| ())?;
    /// pool.close()?;
    /// assert_eq!(pool.figures(), Figures::default());
    /// assert_eq!(pool.snapshot().completed, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn without_figures(mut self) -> Self {
        self.names = None;
        self
    }

    /// Builds it. Workers start with the first tasks.
    ///
    /// # Errors
    ///
    /// All that is wrong with the description, field by field.
    ///
    /// ```
    /// use millpond::manage::Invalid;
    /// use millpond::pool::{Queue, ThreadPool};
    ///
    /// let wrong = ThreadPool::builder("mill").core(4).max(2).queue(Queue::bounded(0));
    /// let error = wrong.build().unwrap_err();
    /// let fields: Vec<_> = error.problems().iter().map(Invalid::field).collect();
    /// assert_eq!(fields, ["core", "capacity"]);
    /// ```
    pub fn build(self) -> Result<ThreadPool, PatchError> {
        let (core, max) = match (self.core, self.max) {
            (Some(core), Some(max)) => (core, max),
            (Some(core), None) => (core, core.max(1)),
            (None, Some(max)) => (max, max),
            (None, None) => {
                let cpus = Machine::read().worker_hint().get();
                (cpus, cpus)
            }
        };
        let sizes = Sizes {
            core,
            max,
            keep_alive: self.keep_alive,
            core_may_time_out: self.core_may_time_out,
        };
        let mut problems = sizes.problems();
        problems.extend(self.overload.problems());
        let line = match self.queue.build(&self.clock) {
            Ok(line) => Some(line),
            Err(error) => {
                problems.push(Invalid::Capacity(error));
                None
            }
        };
        let objects = |line: &Line| line.objects_to_order(self.overload.order);
        problems.extend(line.as_ref().and_then(objects));
        PatchError::unless_none(problems)?;
        let line = line.expect("a line that was not built is a problem");
        let name = self.name;
        let factory = self
            .factory
            .unwrap_or_else(|| Arc::new(Threads::named(name.clone())));
        let rare = Rare::new(self.rejection, factory);
        let parts = Parts {
            name,
            knobs: Knobs::new(sizes, self.growth, &self.overload, rare),
            overload: self.overload,
            line,
            hooks: self.hooks,
            runner: self.runner,
            clock: self.clock,
            names: self.names,
            run_warnings: self.run_warnings,
            listener: self.listener,
        };
        let engine = Arc::new_cyclic(|own| Engine::new(parts, own.clone()));
        Ok(ThreadPool {
            _owner: Arc::new(Owner {
                engine: Arc::clone(&engine),
            }),
            engine,
        })
    }
}

impl fmt::Debug for PoolBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolBuilder")
            .field("name", &self.name)
            .field("core", &self.core)
            .field("max", &self.max)
            .field("queue", &self.queue)
            .field("rejection", &self.rejection)
            .finish_non_exhaustive()
    }
}
