//! Describing a scheduled pool before it is there.

use super::core::{self, Below, Core, Decorator, Listener};
use super::notice::ScheduleNotice;
use super::{Owner, RunInfo, ScheduledPool};
use crate::executor::{Executor, PostOffer};
use crate::thread::{ThreadFactory, Threads};
use crate::time::Clock;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// How many may wait for their time in a pool that was not told otherwise.
const DEFAULT_PENDING: usize = 1 << 20;

/// Describes a [`ScheduledPool`]: begun by [`ScheduledPool::on`] or [`ScheduledPool::owning`].
///
/// ```
/// use millpond::pool::ThreadPool;
/// use millpond::schedule::ScheduledPool;
///
/// let timers = ScheduledPool::owning(ThreadPool::builder("mill").core(2).build()?)
///     .name("mill")
///     .most_pending(10_000)
///     .run_delayed_after_shutdown(false)
///     .build();
/// assert_eq!(timers.most_pending(), Some(10_000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a description does nothing until it is built"]
pub struct ScheduledBuilder<E> {
    executor: Arc<E>,
    below: Option<Arc<Below>>,
    name: Cow<'static, str>,
    clock: Clock,
    most: Option<usize>,
    runs_delayed: bool,
    runs_periodic: bool,
    sentries: Option<bool>,
    couriers: Option<Box<dyn ThreadFactory>>,
    decorator: Option<Box<Decorator>>,
    listener: Option<Box<Listener>>,
}

impl<E: Executor + 'static> ScheduledBuilder<E> {
    pub(super) fn new(executor: Arc<E>, below: Option<Arc<Below>>) -> Self {
        ScheduledBuilder {
            clock: executor.clock(),
            executor,
            below,
            name: Cow::Borrowed("scheduled"),
            most: Some(DEFAULT_PENDING),
            runs_delayed: true,
            runs_periodic: false,
            sentries: None,
            couriers: None,
            decorator: None,
            listener: None,
        }
    }

    /// What it is called, in notices and snapshots. Default: `scheduled`.
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
        self.name = name.into();
        self
    }

    /// The clock that says what is due. Default: the executor's.
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
        self.clock = clock;
        self
    }

    /// How many may wait for their time, tasks and series; more are refused. Default: 1,048,576.
    ///
    /// ```
    /// use millpond::executor::Lifecycle;
    /// use millpond::preset;
    /// use millpond::schedule::ScheduledPool;
    /// use std::time::Duration;
    ///
    /// let workers = preset::single("mill").build()?;
    /// let timers = ScheduledPool::owning(workers).most_pending(1).build();
    /// let first = timers.schedule(Duration::from_secs(3600), || ())?;
    /// let second = timers.schedule(Duration::from_secs(3600), || ());
    /// assert!(second.unwrap_err().reason.is_saturated());
    /// first.cancel();
    /// timers.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn most_pending(mut self, most: usize) -> Self {
        self.most = Some(most);
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
    /// assert_eq!(timers.most_pending(), None);
    /// timers.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn unbounded(mut self) -> Self {
        self.most = None;
        self
    }

    /// Whether tasks that wait for their time still run after a shutdown. Default: yes.
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
        self.runs_delayed = run;
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
        self.runs_periodic = run;
        self
    }

    /// What is around every run of every task and series: it calls the closure that it is given, once, and may
    /// do something before and after. What it does not call does not run.
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

    /// Who hears of runs that fail and of tasks that are refused when they are due. Default: the standard
    /// error; with the feature `tracing`, an event.
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
    /// let listener = move |notice: &_| drop(tell.send(format!("{notice}")));
    /// let timers = ScheduledPool::owning(workers).on_notice(listener).build();
    /// let rings = || Err::<(), _>("cracked");
    /// let bell = timers.schedule_with_fixed_delay(Duration::ZERO, Duration::from_millis(1), rings)?;
    /// assert!(told.recv()?.contains("cracked"));
    /// assert!(bell.join().is_err());
    /// timers.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on_notice(mut self, listener: impl Fn(&ScheduleNotice) + Send + Sync + 'static) -> Self {
        self.listener = Some(Box::new(listener));
        self
    }

    /// Whether an idle worker of the executor waits for what is due next, and runs it, instead of the timer that
    /// wakes a worker. Default: yes, if the executor is the pool's own and both go by the system's clock.
    ///
    /// A task then begins a wake-up earlier. By a manual clock what is due is usually with the executor when
    /// the hand has been moved; with sentries a worker brings it there, a little later.
    /// A worker that has stood sentry asks the system to be woken without slack, as long as it lives.
    ///
    /// Executors other than a [`ThreadPool`](crate::pool::ThreadPool) with a plain queue have no sentries.
    ///
    /// ```
    /// use millpond::pool::ThreadPool;
    /// use millpond::schedule::ScheduledPool;
    /// use std::time::Duration;
    ///
    /// let pool = ThreadPool::builder("mill").core(1).build()?;
    /// let timers = ScheduledPool::owning(pool).sentries(false).build();
    /// assert_eq!(timers.schedule(Duration::from_millis(1), || 7)?.join()?, 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sentries(mut self, sentries: bool) -> Self {
        self.sentries = Some(sentries);
        self
    }

    /// Who starts the courier, a thread that is only there if the executor lets who brings a task wait, or
    /// run it. Default: [`Threads`] of the pool's name.
    ///
    /// ```
    /// use millpond::executor::Lifecycle;
    /// use millpond::preset;
    /// use millpond::schedule::ScheduledPool;
    /// use millpond::thread::Threads;
    /// use std::time::Duration;
    ///
    /// let workers = preset::single("mill").build()?;
    /// let couriers = Threads::named("courier").stack_size(64 * 1024);
    /// let timers = ScheduledPool::owning(workers).courier_threads(couriers).build();
    /// assert_eq!(timers.schedule(Duration::from_millis(1), || 7)?.join()?, 7);
    /// timers.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn courier_threads(mut self, factory: impl ThreadFactory) -> Self {
        self.couriers = Some(Box::new(factory));
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
        let couriers = self.couriers.unwrap_or_else(|| {
            let name = format!("{}-courier", self.name);
            Box::new(Threads::named(name))
        });
        let is_own = self.below.is_some();
        let by_the_system = self.clock.is_system() && self.executor.clock().is_system();
        let sentries = self.sentries.unwrap_or(is_own && by_the_system);
        let core = Core::new(core::Parts {
            name: self.name,
            clock: self.clock,
            executor: Arc::clone(&self.executor) as Arc<dyn Executor>,
            below: self.below,
            couriers,
            decorator: self.decorator,
            listener: self.listener,
            most: self.most,
            runs_delayed: self.runs_delayed,
            runs_periodic: self.runs_periodic,
        });
        if sentries {
            let post = Arc::downgrade(&core);
            self.executor.offer_post(PostOffer::new(post));
        }
        ScheduledPool {
            _owner: Arc::new(Owner(Arc::clone(&core))),
            core,
            executor: self.executor,
        }
    }
}

impl<E: fmt::Debug> fmt::Debug for ScheduledBuilder<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScheduledBuilder")
            .field("name", &self.name)
            .field("executor", &self.executor)
            .field("most_pending", &self.most)
            .finish_non_exhaustive()
    }
}
