//! The builder of fork-join pools. The ranges and defaults of parameters are in [`super::config`].

use super::ForkJoinPool;
use super::cache_groups::CacheGroups;
use super::config::{
    Config, DEFAULT_KEEP_ALIVE, DEFAULT_TASK_NAMES, HelpPolicy, LiveConfig, default_parallelism,
};
use super::engine::{ForkJoinEngine, Parts};
use super::events::ForkJoinEvent;
use super::spares::DEFAULT_MAX_SPARES;
use crate::engine::watchdog::RunWarning;
use crate::engine::{CommonBuilder, LastHandle, WorkerBuilder};
use crate::executor::UncaughtPanic;
use crate::machine::Topology;
use crate::manage::PatchError;
use crate::thread::ThreadFactory;
use crate::time::Clock;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Builds a [`ForkJoinPool`].
///
/// ```
/// use millpond::forkjoin::ForkJoinPool;
///
/// let pool = ForkJoinPool::builder("mill").parallelism(2).build()?;
/// assert_eq!(pool.join(|| 3, || 4), (3, 4));
///
/// let error = ForkJoinPool::builder("mill").parallelism(0).build().unwrap_err();
/// assert!(error.to_string().starts_with("parallelism cannot be 0"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a builder does nothing until it is built"]
pub struct ForkJoinBuilder {
    common: CommonBuilder<ForkJoinEvent>,
    workers: WorkerBuilder,
    parallelism: Option<usize>,
    max_spares: usize,
    keep_alive: Duration,
    is_fifo: bool,
    help: HelpPolicy,
    is_common: bool,
    topology: Option<Topology>,
}

impl ForkJoinBuilder {
    pub(super) fn new(name: Cow<'static, str>) -> Self {
        ForkJoinBuilder {
            common: CommonBuilder::new(name, Clock::system()),
            workers: WorkerBuilder::new(DEFAULT_TASK_NAMES),
            parallelism: None,
            max_spares: DEFAULT_MAX_SPARES,
            keep_alive: DEFAULT_KEEP_ALIVE,
            is_fifo: false,
            help: HelpPolicy::default(),
            is_common: false,
            topology: None,
        }
    }

    pub(super) fn common(mut self) -> Self {
        self.is_common = true;
        self
    }

    /// How many workers compute at a time. Unless told otherwise, as many as this process may use CPUs.
    pub fn parallelism(mut self, parallelism: usize) -> Self {
        self.parallelism = Some(parallelism);
        self
    }

    /// How many workers may be started to replace blocked ones: see [`blocking`](super::blocking()). Unless told otherwise,
    /// 16. At the bound a worker blocks without being replaced, and the pool
    /// [says so](ForkJoinEvent::SparesExhausted).
    ///
    /// ```
    /// use millpond::forkjoin::ForkJoinPool;
    ///
    /// let pool = ForkJoinPool::builder("mill").parallelism(2).max_spares(4).build()?;
    /// assert_eq!(pool.max_spares(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "maximumPoolSize")]
    #[doc(alias = "maximumSpares")]
    pub fn max_spares(mut self, max_spares: usize) -> Self {
        self.max_spares = max_spares;
        self
    }

    /// How long a worker without work stays. Unless told otherwise, a minute.
    pub fn keep_alive(mut self, keep_alive: Duration) -> Self {
        self.keep_alive = keep_alive;
        self
    }

    /// Whether workers take their own tasks in the order in which they came, for tasks that are executed and never
    /// joined. Otherwise the newest is first. Tasks that one thread brings from outside begin in the order in which they
    /// came in any case.
    #[doc(alias = "asyncMode")]
    pub fn fifo(mut self, is_fifo: bool) -> Self {
        self.is_fifo = is_fifo;
        self
    }

    /// What a worker runs while it waits for a job that another one runs.
    pub fn help(mut self, help: HelpPolicy) -> Self {
        self.help = help;
        self
    }

    /// How its threads are started.
    #[doc(alias = "ForkJoinWorkerThreadFactory")]
    pub fn threads(mut self, factory: impl ThreadFactory) -> Self {
        self.workers.set_factory(factory);
        self
    }

    /// Which CPUs are near to each other. Unless told otherwise, those of this machine: see [`Topology::read`].
    ///
    /// A worker that has run out of work looks first at workers that share its last-level cache.
    ///
    /// ```
    /// use millpond::forkjoin::ForkJoinPool;
    /// use millpond::machine::Topology;
    ///
    /// // The first two CPUs have a cache, and so have the next two.
    /// let topology = Topology::of([[[[0], [1]], [[2], [3]]]]);
    /// let pool = ForkJoinPool::builder("mill").topology(topology).build()?;
    /// assert_eq!(pool.join(|| 3, || 4), (3, 4));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn topology(mut self, topology: Topology) -> Self {
        self.topology = Some(topology);
        self
    }

    /// Sets the hook for panics of tasks that have no handle.
    #[doc(alias = "UncaughtExceptionHandler")]
    pub fn on_panic(mut self, hook: impl Fn(UncaughtPanic) + Send + Sync + 'static) -> Self {
        self.workers.set_panic_hook(hook);
        self
    }

    /// Sets the listener for events that an operator should know of. Without a listener they are logged.
    pub fn on_event(mut self, listener: impl Fn(&ForkJoinEvent) + Send + Sync + 'static) -> Self {
        self.common.set_listener(listener);
        self
    }

    /// The clock by which workers time out and deadlines pass.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.common.set_clock(clock);
        self
    }

    /// How long a task may run before an event is emitted, while it still runs. Unless told otherwise, for ever.
    ///
    /// It is tasks that have a limit, with all their parts, whoever runs these, and not the jobs of
    /// [`install`](ForkJoinPool::install). A limit that [interrupts](RunWarning::interrupts) reaches the parts, too.
    ///
    /// ```
    /// use millpond::executor::ExecutorExt;
    /// use millpond::forkjoin::{ForkJoinPool, RunWarning};
    /// use millpond::time::ManualClock;
    /// use std::sync::mpsc::sync_channel;
    /// use std::time::Duration;
    ///
    /// let (hand, minute) = (ManualClock::new(), Duration::from_secs(60));
    /// let mill = ForkJoinPool::builder("mill").clock(hand.clock()).on_event(|_| ());
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
    pub fn run_warning_for(mut self, name: impl Into<String>, warning: RunWarning) -> Self {
        self.workers.set_run_warning_for(name, warning);
        self
    }

    /// The most task names that are measured one by one ([`ForkJoinPool::metrics_by_name`]). Unless told otherwise, 64;
    /// more than 65,535 are an error of [`build`](Self::build). Tasks of further names are counted together, as "others", until a name has not been in use for a minute or two.
    pub fn max_task_names(mut self, most: usize) -> Self {
        self.workers.set_max_task_names(most);
        self
    }

    /// Keeps no metrics of tasks. Then it cannot tell either for how long a task runs: limits on that have no effect.
    pub fn without_metrics(mut self) -> Self {
        self.workers.unset_metrics();
        self
    }

    /// Makes the pool. It starts no thread until there is something to do.
    ///
    /// # Errors
    ///
    /// All that is wrong with the parameters.
    pub fn build(self) -> Result<ForkJoinPool, PatchError> {
        let config = Config {
            parallelism: self.parallelism.unwrap_or_else(default_parallelism),
            max_spares: self.max_spares,
            keep_alive: self.keep_alive,
            is_fifo: self.is_fifo,
            help: self.help,
            run_warning: self.workers.run_warning(),
            task_names: self.workers.task_names(),
        };
        PatchError::unless_none(config.problems(self.common.name()))?;
        let factory = self.workers.factory(&self.common);
        let engine = ForkJoinEngine::new(Parts {
            common: self.common,
            workers: self.workers,
            config: LiveConfig::new(config, factory),
            is_common: self.is_common,
            cache_groups: match self.topology {
                Some(topology) => Arc::new(CacheGroups::of(&topology)),
                None => CacheGroups::of_this_machine(),
            },
        });
        Ok(ForkJoinPool {
            _last_handle: Arc::new(LastHandle::new(&engine)),
            engine,
        })
    }
}

impl fmt::Debug for ForkJoinBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.common
            .debug("ForkJoinBuilder", f)
            .field("parallelism", &self.parallelism)
            .field("help", &self.help)
            .finish_non_exhaustive()
    }
}
