//! The builder of scheduled pools.

use super::config::Config;
use super::engine::{self, Decorator, OwnedExecutor, ScheduleEngine};
use super::events::ScheduleEvent;
use super::{RunInfo, ScheduledPool};
use crate::engine::{CommonBuilder, LastHandle};
use crate::executor::{Executor, TimerSourceOffer};
use crate::thread::{ThreadFactory, Threads};
use crate::time::Clock;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// The name of a pool that was given none.
const DEFAULT_NAME: Cow<'static, str> = Cow::Borrowed("scheduled");

/// Describes a [`ScheduledPool`]: begun by [`ScheduledPool::on`] or [`ScheduledPool::owning`].
///
/// ```
/// use millpond::pool::ThreadPool;
/// use millpond::schedule::ScheduledPool;
///
/// let timers = ScheduledPool::owning(ThreadPool::builder("mill").core(2).build()?)
///     .name("mill")
///     .max_pending(10_000)
///     .run_delayed_after_shutdown(false)
///     .build();
/// assert_eq!(timers.max_pending(), Some(10_000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a builder does nothing until it is built"]
pub struct ScheduledBuilder<E> {
    executor: Arc<E>,
    below: Option<Arc<OwnedExecutor>>,
    common: CommonBuilder<ScheduleEvent>,
    config: Config,
    worker_timers: Option<bool>,
    dispatcher_threads: Option<Box<dyn ThreadFactory>>,
    decorator: Option<Box<Decorator>>,
}

impl<E: Executor + 'static> ScheduledBuilder<E> {
    pub(super) fn new(executor: Arc<E>, below: Option<Arc<OwnedExecutor>>) -> Self {
        ScheduledBuilder {
            common: CommonBuilder::new(DEFAULT_NAME, executor.clock()),
            executor,
            below,
            config: Config::default(),
            worker_timers: None,
            dispatcher_threads: None,
            decorator: None,
        }
    }

    /// The pool's name, in events and snapshots. Default: `scheduled`, also if it is empty, because
    /// [`build`](Self::build) cannot fail.
    ///
    /// ```
    /// use millpond::executor::Lifecycle;
    /// use millpond::preset;
    /// use millpond::schedule::ScheduledPool;
    ///
    /// let workers = preset::single("mill").build()?;
    /// let timers = ScheduledPool::owning(workers).name("orders").build();
    /// assert_eq!(timers.name(), "orders");
    /// timers.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn name(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.common.set_name_or(name.into(), DEFAULT_NAME);
        self
    }

    /// The clock by which tasks are due. Default: the executor's.
    ///
    /// ```
    /// use millpond::executor::Lifecycle;
    /// use millpond::preset;
    /// use millpond::schedule::ScheduledPool;
    /// use millpond::time::ManualClock;
    /// use std::time::Duration;
    ///
    /// let workers = preset::single("mill").build()?;
    /// let hand = ManualClock::new();
    /// let timers = ScheduledPool::owning(workers).clock(hand.clock()).build();
    /// let bell = timers.schedule(Duration::from_secs(3600), || "ding")?;
    /// hand.advance(Duration::from_secs(3600));
    /// assert_eq!(bell.join()?, "ding");
    /// timers.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn clock(mut self, clock: Clock) -> Self {
        self.common.set_clock(clock);
        self
    }

    /// The most tasks and series that may wait for their time; more are rejected. Default: 1,048,576.
    ///
    /// ```
    /// use millpond::executor::Lifecycle;
    /// use millpond::preset;
    /// use millpond::schedule::ScheduledPool;
    /// use std::time::Duration;
    ///
    /// let workers = preset::single("mill").build()?;
    /// let timers = ScheduledPool::owning(workers).max_pending(1).build();
    /// let first = timers.schedule(Duration::from_secs(3600), || ())?;
    /// let second = timers.schedule(Duration::from_secs(3600), || ());
    /// assert!(second.unwrap_err().reason.is_saturated());
    /// first.cancel();
    /// timers.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn max_pending(mut self, most: usize) -> Self {
        self.config.max_pending = Some(most);
        self
    }

    /// Any number may wait for their time, as far as memory goes. What Java does.
    ///
    /// ```
    /// use millpond::executor::Lifecycle;
    /// use millpond::preset;
    /// use millpond::schedule::ScheduledPool;
    ///
    /// let workers = preset::single("mill").build()?;
    /// let timers = ScheduledPool::owning(workers).unbounded().build();
    /// assert_eq!(timers.max_pending(), None);
    /// timers.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn unbounded(mut self) -> Self {
        self.config.max_pending = None;
        self
    }

    /// Whether delayed tasks still run after a shutdown. Default: yes. A task that is due by then runs in any
    /// case.
    ///
    /// ```
    /// use millpond::executor::Lifecycle;
    /// use millpond::preset;
    /// use millpond::schedule::ScheduledPool;
    /// use std::time::Duration;
    ///
    /// let workers = preset::single("mill").build()?;
    /// let timers = ScheduledPool::owning(workers).run_delayed_after_shutdown(false).build();
    /// let never = timers.schedule(Duration::from_secs(3600), || ())?;
    /// timers.close()?;
    /// assert!(never.join().unwrap_err().is_cancelled());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "setExecuteExistingDelayedTasksAfterShutdownPolicy")]
    pub fn run_delayed_after_shutdown(mut self, run: bool) -> Self {
        self.config.run_delayed_after_shutdown = run;
        self
    }

    /// Whether series go on after a shutdown. Default: no, they are cancelled.
    ///
    /// ```
    /// use millpond::executor::Lifecycle;
    /// use millpond::preset;
    /// use millpond::schedule::ScheduledPool;
    ///
    /// let workers = preset::single("mill").build()?;
    /// let timers = ScheduledPool::owning(workers).build();
    /// assert!(!timers.runs_series_after_shutdown(), "unless told so");
    /// timers.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "setContinueExistingPeriodicTasksAfterShutdownPolicy")]
    pub fn run_series_after_shutdown(mut self, run: bool) -> Self {
        self.config.run_series_after_shutdown = run;
        self
    }

    /// A function around every run of every scheduled task and series: it calls the closure that it is given,
    /// once, and may do something before and after. A run that it does not call does not happen.
    ///
    /// Tasks that are to run at once, by [`submit`](crate::executor::ExecutorExt::submit) or
    /// [`invoke_all`](crate::executor::ExecutorExt::invoke_all), go straight to the executor, without the
    /// decorator; [hooks](crate::pool::PoolBuilder::hooks) of a thread pool are around both.
    ///
    /// ```
    /// use millpond::pool::ThreadPool;
    /// use millpond::schedule::ScheduledPool;
    /// use std::time::Duration;
    ///
    /// let pool = ThreadPool::builder("mill").core(1).build()?;
    /// let timers = ScheduledPool::owning(pool)
    ///     .decorator(|info, run| {
    ///         run();
    ///         println!("run {} was {:?} late", info.number, info.lateness);
    ///     })
    ///     .build();
    /// assert_eq!(timers.schedule(Duration::from_millis(1), || 7)?.join()?, 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "decorateTask")]
    pub fn decorator(
        mut self,
        decorator: impl Fn(&RunInfo, &mut dyn FnMut()) + Send + Sync + 'static,
    ) -> Self {
        self.decorator = Some(Box::new(decorator));
        self
    }

    /// The listener to events: runs that fail, and tasks that the executor rejects when they are due. Default: the
    /// standard error, or `tracing` with that feature.
    ///
    /// Events are delivered one at a time, in order, on a thread of their own; by a manual clock on the thread where
    /// they arise. If the listener does not keep up, some are [dropped](ScheduleEvent::Dropped).
    ///
    /// ```
    /// use millpond::executor::Lifecycle;
    /// use millpond::preset;
    /// use millpond::schedule::ScheduledPool;
    /// use std::sync::mpsc;
    /// use std::time::Duration;
    ///
    /// let workers = preset::single("mill").build()?;
    /// let (tell, told) = mpsc::channel();
    /// let listener = move |event: &_| drop(tell.send(format!("{event}")));
    /// let timers = ScheduledPool::owning(workers).on_event(listener).build();
    /// let rings = || Err::<(), _>("cracked");
    /// let bell = timers.schedule_with_fixed_delay(Duration::ZERO, Duration::from_millis(1), rings)?;
    /// assert!(told.recv()?.contains("cracked"));
    /// assert!(bell.join().is_err());
    /// timers.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on_event(mut self, listener: impl Fn(&ScheduleEvent) + Send + Sync + 'static) -> Self {
        self.common.set_listener(listener);
        self
    }

    /// Whether an idle worker of the executor waits for the next due time, and runs what is due, in place of the timer
    /// that wakes a worker. Default: yes, if the executor is the pool's own and both go by the system's clock.
    /// Never, if the clock of the pool is not that of the executor: workers sleep by the executor's, and would
    /// sleep through what is due by another.
    ///
    /// A task then begins a wake-up earlier. With a manual clock, due tasks are usually with the executor when
    /// the hand has been moved; with worker timers a worker takes them there, a little later.
    /// A worker that has waited for a due time asks the system to be woken without slack from then on.
    ///
    /// Executors other than a [`ThreadPool`](crate::pool::ThreadPool) with a plain queue have no worker timers.
    ///
    /// ```
    /// use millpond::pool::ThreadPool;
    /// use millpond::schedule::ScheduledPool;
    /// use std::time::Duration;
    ///
    /// let pool = ThreadPool::builder("mill").core(1).build()?;
    /// let timers = ScheduledPool::owning(pool).worker_timers(false).build();
    /// assert_eq!(timers.schedule(Duration::from_millis(1), || 7)?.join()?, 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn worker_timers(mut self, worker_timers: bool) -> Self {
        self.worker_timers = Some(worker_timers);
        self
    }

    /// The factory for the dispatcher, a thread that is started only if the executor makes a caller wait, or run
    /// the task. Default: [`Threads`] of the pool's name.
    ///
    /// ```
    /// use millpond::executor::Lifecycle;
    /// use millpond::preset;
    /// use millpond::schedule::ScheduledPool;
    /// use millpond::thread::Threads;
    /// use std::time::Duration;
    ///
    /// let workers = preset::single("mill").build()?;
    /// let threads = Threads::named("dispatcher").stack_size(64 * 1024);
    /// let timers = ScheduledPool::owning(workers).dispatcher_threads(threads).build();
    /// assert_eq!(timers.schedule(Duration::from_millis(1), || 7)?.join()?, 7);
    /// timers.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn dispatcher_threads(mut self, factory: impl ThreadFactory) -> Self {
        self.dispatcher_threads = Some(Box::new(factory));
        self
    }

    /// Builds it. Nothing is started before it is needed.
    ///
    /// ```
    /// use millpond::executor::Lifecycle;
    /// use millpond::preset;
    /// use millpond::schedule::ScheduledPool;
    ///
    /// let workers = preset::single("mill").build()?;
    /// let timers = ScheduledPool::owning(workers).build();
    /// assert_eq!(timers.snapshot().pending, 0);
    /// timers.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn build(self) -> ScheduledPool<E> {
        let dispatcher_threads = self.dispatcher_threads.unwrap_or_else(|| {
            let name = format!("{}-dispatcher", self.common.name());
            Box::new(Threads::named(name))
        });
        let is_own = self.below.is_some();
        let clock = self.common.clock();
        let by_the_system = clock.is_system() && self.executor.clock().is_system();
        // LEADER-4
        let may_have_leader = clock.agrees_with(&self.executor.clock());
        let has_leader = may_have_leader && self.worker_timers.unwrap_or(is_own && by_the_system);
        let engine = ScheduleEngine::new(engine::Parts {
            common: self.common,
            executor: Arc::clone(&self.executor) as Arc<dyn Executor>,
            owned: self.below,
            dispatcher_threads,
            decorator: self.decorator,
            max_pending: self.config.max_pending,
            runs_delayed: self.config.run_delayed_after_shutdown,
            runs_periodic: self.config.run_series_after_shutdown,
        });
        if has_leader {
            let source = Arc::downgrade(&engine);
            self.executor
                .internals()
                .offer_timer_source(TimerSourceOffer::new(source));
        }
        ScheduledPool {
            _last: Arc::new(LastHandle::new(&engine)),
            engine,
            executor: self.executor,
        }
    }
}

impl<E: fmt::Debug> fmt::Debug for ScheduledBuilder<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.common
            .debug("ScheduledBuilder", f)
            .field("executor", &self.executor)
            .field("max_pending", &self.config.max_pending)
            .finish_non_exhaustive()
    }
}
