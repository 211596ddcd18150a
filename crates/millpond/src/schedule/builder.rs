//! Describing a scheduled pool, and a series, before they are there.

use super::body::{Body, Done, Finish};
use super::core::{self, Below, Core, Decorator, Listener};
use super::failure::{OnFailure, RunReturn, Verdict};
use super::handle::{Ending, Scheduled};
use super::notice::ScheduleNotice;
use super::plan::{Catchup, Every, Overlap};
use super::series::{self, Series};
use super::{Owner, RunInfo, ScheduledPool};
use crate::executor::{Executor, PostOffer, RejectReason, Rejected};
use crate::task::{TaskHandle, TaskSpec};
use crate::thread::{ThreadFactory, Threads};
use crate::time::Clock;
use millpond_raw::sync::Mutex;
use std::borrow::Cow;
use std::fmt;
use std::panic;
use std::sync::Arc;
use std::time::Duration;

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
    pub fn name(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.name = name.into();
        self
    }

    /// The clock that says what is due. Default: the executor's.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// How many may wait for their time, tasks and series; more are refused. Default: 1,048,576.
    pub fn most_pending(mut self, most: usize) -> Self {
        self.most = Some(most);
        self
    }

    /// Any number may wait for their time, as far as memory goes. What Java does.
    pub fn unbounded(mut self) -> Self {
        self.most = None;
        self
    }

    /// Whether tasks that wait for their time still run after a shutdown. Default: yes.
    #[doc(alias = "setExecuteExistingDelayedTasksAfterShutdownPolicy")]
    pub fn run_delayed_after_shutdown(mut self, run: bool) -> Self {
        self.runs_delayed = run;
        self
    }

    /// Whether series go on after a shutdown. Default: no, they are cancelled.
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
    pub fn courier_threads(mut self, factory: impl ThreadFactory) -> Self {
        self.couriers = Some(Box::new(factory));
        self
    }

    /// Builds it. Nothing is started before it is needed.
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

/// Describes a series: see [`ScheduledPool::series`], which has an example.
#[must_use = "a description does nothing until the series is started"]
pub struct SeriesBuilder<'a> {
    core: &'a Arc<Core>,
    spec: TaskSpec,
    name: Option<Cow<'static, str>>,
    every: Every,
    initial: Option<Duration>,
    overlap: Overlap,
    catchup: Option<Catchup>,
    on_failure: OnFailure,
}

impl<'a> SeriesBuilder<'a> {
    #[track_caller]
    pub(super) fn new(core: &'a Arc<Core>, every: Every) -> Self {
        SeriesBuilder {
            core,
            spec: TaskSpec::new(),
            name: None,
            every,
            initial: None,
            overlap: Overlap::default(),
            catchup: None,
            on_failure: OnFailure::default(),
        }
    }

    /// What its runs are called, in figures, notices and lists. Default: where it was made.
    pub fn name(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// When the first run is due, from now. Default: one period, or one delay, from now. The first time of a
    /// calendar is the first after this, by default after now.
    pub fn first_after(mut self, initial: Duration) -> Self {
        self.initial = Some(initial);
        self
    }

    /// What becomes of a run that is due while one still runs. Default: [`Overlap::Queue`]. With a fixed
    /// delay that cannot happen.
    pub fn overlap(mut self, overlap: Overlap) -> Self {
        self.overlap = overlap;
        self
    }

    /// What becomes of due times that have gone by. Default: [`Catchup::All`]; by the calendar,
    /// [`Catchup::Skip`].
    pub fn catchup(mut self, catchup: Catchup) -> Self {
        self.catchup = Some(catchup);
        self
    }

    /// What becomes of the series when a run fails. Default: [`OnFailure::Stop`].
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.on_failure = on_failure;
        self
    }

    /// Starts it. The closure is called by one thread at a time.
    ///
    /// # Errors
    ///
    /// The closure, if the pool is shut down or full, the description makes no sense, or runs may overlap:
    /// then it must be [shared](SeriesBuilder::start_shared).
    pub fn start<F, R>(self, f: F) -> Result<Scheduled<R::End>, Rejected<F>>
    where
        F: FnMut() -> R + Send + 'static,
        R: RunReturn,
    {
        if self.overlap == Overlap::Concurrent && self.every.may_overlap() {
            let text = "runs that overlap call the closure in several threads at once: start the \
                        series with start_shared, or choose Overlap::Skip or Overlap::Queue";
            return Err(Rejected::new(f, RejectReason::Invalid(text.into())));
        }
        self.start_with(f, |mut f, aside| {
            Body::Exclusive(Box::new(move || put_aside(&aside, f())))
        })
    }

    /// Starts it with a closure that several threads may call at once.
    ///
    /// # Errors
    ///
    /// The closure, if the pool is shut down or full, or the description makes no sense.
    ///
    /// ```
    /// use millpond::preset;
    /// use millpond::schedule::{Every, Overlap};
    /// use std::time::Duration;
    ///
    /// let timers = preset::scheduled("mill", 4)?;
    /// let probe = timers
    ///     .series(Every::rate(Duration::from_millis(1)))
    ///     .overlap(Overlap::Concurrent)
    ///     .start_shared(|| println!("knock"))?;
    /// # probe.cancel();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn start_shared<F, R>(self, f: F) -> Result<Scheduled<R::End>, Rejected<F>>
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: RunReturn,
    {
        self.start_with(f, |f, aside| {
            Body::Shared(Arc::new(move || put_aside(&aside, f())))
        })
    }

    fn start_with<F, T: Send + 'static>(
        self,
        f: F,
        body: impl FnOnce(F, Aside<T>) -> Body,
    ) -> Result<Scheduled<T>, Rejected<F>> {
        let core = self.core;
        if core.is_forked() {
            return Err(Rejected::new(f, RejectReason::Forked));
        }
        if let Some(problem) = self.every.problem() {
            return Err(Rejected::new(f, RejectReason::Invalid(problem.into())));
        }
        let mut spec = self.spec.without_inherited_deadline();
        spec = spec.clock(core.clock.clone());
        let name = self.name.as_deref().map(str::to_owned);
        if let Some(name) = self.name {
            spec = spec.name(name);
        }
        let (now, carried) = (core.now(), core.bag.len());
        let first = self.every.first(self.initial, now);
        let aside = Arc::new(Mutex::new(None));
        let (done, handle) = end_of(&spec, Arc::clone(&aside));
        let mut books = core.books();
        if let Some(reason) = books.objection(carried) {
            drop(books);
            return Err(Rejected::new(f, reason));
        }
        let Some(ward) = books.ward.clone() else {
            unreachable!("K2: nobody objects while the pool has a ward")
        };
        let series = Series::new(
            core,
            ward,
            series::Parts {
                name,
                catchup: self.catchup.unwrap_or(self.every.usual_catchup()),
                every: self.every,
                overlap: self.overlap,
                on_failure: self.on_failure,
                spec,
                body: body(f, aside),
                done,
                first,
                now,
            },
        );
        let rings = series.waits_for(&mut books, first, now);
        drop(books);
        if rings {
            core.ring();
        }
        Ok(Scheduled::series(handle, series))
    }
}

impl fmt::Debug for SeriesBuilder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SeriesBuilder")
            .field("name", &self.name)
            .field("every", &self.every)
            .field("overlap", &self.overlap)
            .field("catchup", &self.catchup)
            .field("on_failure", &self.on_failure)
            .finish_non_exhaustive()
    }
}

/// Where the value that a series ends with waits for the end.
type Aside<T> = Arc<Mutex<Option<Ended<T>>>>;

enum Ended<T> {
    Value(T),
    Failed(super::RunError),
    Panicked(crate::task::Panic),
}

fn put_aside<R: RunReturn>(aside: &Mutex<Option<Ended<R::End>>>, returned: R) -> Verdict<()> {
    match returned.verdict() {
        Verdict::Again => Verdict::Again,
        Verdict::Failed(error) => Verdict::Failed(error),
        Verdict::End(value) => {
            let former = aside.lock().replace(Ended::Value(value));
            drop(former);
            Verdict::End(())
        }
    }
}

/// The end of a series: a task that returns what has been put aside, and its handle.
fn end_of<T: Send + 'static>(spec: &TaskSpec, aside: Aside<T>) -> (Done, TaskHandle<Ending<T>>) {
    let outcome = Arc::clone(&aside);
    let (task, handle) = spec.clone().build(move || {
        let ended = outcome.lock().take();
        match ended {
            Some(Ended::Value(value)) => Ending::Value { value, late: 0 },
            Some(Ended::Failed(error)) => Ending::Failed(error),
            Some(Ended::Panicked(panic)) => panic::resume_unwind(panic.into_payload()),
            None => Ending::NotRun,
        }
    });
    let done = Box::new(move |finish| {
        let ended = match finish {
            Finish::Value => None,
            Finish::Failed(error) => Some(Ended::Failed(error)),
            Finish::Panicked(panic) => Some(Ended::Panicked(panic)),
            Finish::Cancelled(reason) => {
                task.cancel(reason);
                return;
            }
        };
        if let Some(ended) = ended {
            let former = aside.lock().replace(ended);
            drop(former);
        }
        let _ = task.run();
    });
    (done, handle)
}
