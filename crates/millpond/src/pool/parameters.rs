//! The parameters of a pool: reading them, and changing them while it runs.
//!
//! Each can be changed by itself; [`ThreadPool::apply`] changes several at once, or none of them. What a
//! change would break is said by name, and then the old values stay.

use super::engine::Engine;
use super::knobs::Rare;
use super::{Rejection, ThreadPool};
use crate::manage::{CoDel, Growth, Invalid, Overload, OverloadOrder, Patch, PatchError, Sizes};
use crate::thread::ThreadFactory;
use millpond_raw::sync::MutexGuard;
use std::sync::Arc;
use std::time::Duration;

impl ThreadPool {
    /// How many workers are kept.
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
        self.engine.knobs().limits().core()
    }

    /// Changes how many workers are kept. Idle ones beyond it may leave; if it is raised, workers
    /// start for tasks that wait.
    ///
    /// # Errors
    ///
    /// More than the maximum.
    ///
    /// ```
    /// use millpond::pool::ThreadPool;
    ///
    /// let pool = ThreadPool::builder("mill").core(1).max(4).build()?;
    /// pool.set_core(4)?;
    /// assert_eq!(pool.core(), 4);
    ///
    /// let refused = pool.set_core(5).unwrap_err();
    /// assert!(refused.to_string().contains("max"), "{refused}");
    /// assert_eq!(pool.core(), 4, "the old value stays");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "setCorePoolSize")]
    pub fn set_core(&self, core: usize) -> Result<(), PatchError> {
        self.apply(&Patch::new().core(core))
    }

    /// How many workers there may be.
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
        self.engine.knobs().limits().max()
    }

    /// Changes how many workers there may be. Those beyond it leave when they are idle; nobody is
    /// interrupted. If it is raised, and threads come first, workers start for tasks that wait.
    ///
    /// # Errors
    ///
    /// None at all, or less than the core.
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
        self.apply(&Patch::new().max(max))
    }

    /// How long an idle worker beyond the core stays.
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
        self.engine.knobs().keep_alive()
    }

    /// Changes how long an idle worker beyond the core stays. Those that are idle start counting
    /// anew.
    ///
    /// # Errors
    ///
    /// None at all, if the core may time out.
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
        self.apply(&Patch::new().keep_alive(keep_alive))
    }

    /// Whether idle workers of the core leave, too.
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
        self.engine.knobs().core_may_time_out()
    }

    /// Changes whether idle workers of the core leave, too.
    ///
    /// # Errors
    ///
    /// If the keep-alive is 0.
    ///
    /// ```
    /// use millpond::preset;
    /// use std::time::Duration;
    ///
    /// let pool = preset::fixed("mill", 2).build()?;
    /// pool.set_keep_alive(Duration::from_secs(60))?;
    /// pool.set_core_may_time_out(true)?;
    /// assert!(pool.core_may_time_out());
    /// assert!(pool.set_keep_alive(Duration::ZERO).is_err(), "nobody would stay");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "allowCoreThreadTimeOut")]
    pub fn set_core_may_time_out(&self, may: bool) -> Result<(), PatchError> {
        self.apply(&Patch::new().core_may_time_out(may))
    }

    /// What comes first when the core is busy.
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
        self.engine.knobs().limits().growth()
    }

    /// Changes what comes first when the core is busy. If that is threads, they start for tasks that
    /// wait.
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

    /// How many tasks may wait; `None` if there is no bound, 0 if tasks are handed over.
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
        self.apply(&Patch::new().capacity(capacity))
    }

    /// How long a task may wait in the queue; `None` is for ever.
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

    /// Changes how long a task may wait in the queue, for those that wait already, too.
    ///
    /// # Errors
    ///
    /// Not at all; or nothing is left that says what an overload is, and there is an order for it.
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
        self.apply(&Patch::new().max_queue_wait(most))
    }

    /// When it is overloaded, and sheds tasks; `None` is never.
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

    /// Changes when it is overloaded, and sheds tasks. What was measured before is forgotten.
    ///
    /// # Errors
    ///
    /// Times that make no sense; or nothing is left that says what an overload is, and there is an
    /// order for it.
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
        self.apply(&Patch::new().shedding(shedding))
    }

    /// Which of the tasks that wait comes next while it is overloaded.
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

    /// Changes which of the tasks that wait comes next while it is overloaded.
    ///
    /// # Errors
    ///
    /// Newest first, and nothing says what an overload is, or the queue has an order of its own.
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
        self.apply(&Patch::new().overload_order(order))
    }

    /// What becomes of tasks that there is no room for.
    ///
    /// ```
    /// use millpond::pool::{Rejection, ThreadPool};
    ///
    /// let pool = ThreadPool::builder("mill").rejection(Rejection::CallerRuns).build()?;
    /// assert!(matches!(pool.rejection(), Rejection::CallerRuns));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "getRejectedExecutionHandler")]
    pub fn rejection(&self) -> Rejection {
        self.engine.rejection()
    }

    /// Changes what becomes of tasks that there is no room for.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::pool::{Queue, Rejection, ThreadPool};
    /// use std::sync::mpsc;
    /// use std::thread;
    ///
    /// let pool = ThreadPool::builder("mill").core(1).max(1).queue(Queue::hand_off()).build()?;
    /// let (say, hear) = mpsc::channel::<()>();
    /// let busy = pool.submit(move || hear.recv().is_err())?;
    /// assert!(pool.submit(|| "flour").is_err(), "there is no room");
    /// pool.set_rejection(Rejection::CallerRuns);
    /// let caller = thread::current().id();
    /// assert_eq!(pool.submit(move || thread::current().id())?.join()?, caller);
    /// drop(say);
    /// assert!(busy.join()?);
    /// pool.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "setRejectedExecutionHandler")]
    pub fn set_rejection(&self, rejection: Rejection) {
        if self.engine.is_forked() {
            return;
        }
        // A handler of the user's is dropped outside the lock.
        drop(self.engine.knobs().set_rejection(rejection));
    }

    /// Who starts the threads.
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

    /// Changes who starts the threads that are still to be started.
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
        let before = std::mem::replace(&mut self.engine.knobs().lock().factory, factory);
        drop(before);
    }

    /// Changes all parameters that the patch names, or none.
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
    pub fn apply(&self, patch: &Patch) -> Result<(), PatchError> {
        let engine = &self.engine;
        if engine.is_forked() {
            return PatchError::unless_none(vec![Invalid::Forked]);
        }
        let own_queue = engine.line.is_foreign();
        let before = match patch.capacity {
            // A queue of the user's is called under no lock of ours (E5). If what was judged by then has changed
            // meanwhile, it gets its old capacity back.
            Some(capacity) if own_queue => {
                engine.check(patch)?;
                let before = engine.line.capacity();
                engine.line.set_capacity(capacity)?;
                before
            }
            _ => None,
        };
        let eager_before = engine.write_all(patch, !own_queue).inspect_err(|_| {
            if let Some(before) = before {
                let _ = engine.line.set_capacity(before);
            }
        })?;
        engine.limits_changed(eager_before);
        Ok(())
    }
}

impl Engine {
    /// What is wrong with a patch, as things are now.
    fn check(&self, patch: &Patch) -> Result<(), PatchError> {
        let turn = self.knobs().lock();
        self.check_in_turn(&turn, patch).map(drop)
    }

    /// The parameters that the patch would lead to.
    fn check_in_turn(
        &self,
        _turn: &MutexGuard<'_, Rare>,
        patch: &Patch,
    ) -> Result<(Sizes, Overload), PatchError> {
        let sizes = self.knobs().sizes().with(patch);
        let overload = self.shedder.settings().with(patch);
        let mut problems = sizes.problems();
        problems.extend(overload.problems());
        problems.extend(self.line.objects_to_order(overload.order));
        if !problems.is_empty() {
            let capacity = patch.capacity.and_then(|most| self.line.objects_to(most));
            problems.extend(capacity.map(Invalid::Capacity));
        }
        PatchError::unless_none(problems)?;
        Ok((sizes, overload))
    }

    /// Writes what the patch names, the capacity only if told so. Returns how many workers there were to be
    /// at least, before.
    fn write_all(&self, patch: &Patch, writes_capacity: bool) -> Result<usize, PatchError> {
        let turn = self.knobs().lock();
        let limits = self.knobs().limits();
        let (sizes, overload) = self.check_in_turn(&turn, patch)?;
        if let Some(capacity) = patch.capacity.filter(|_| writes_capacity) {
            self.line.set_capacity(capacity)?;
        }
        let growth = patch.growth.unwrap_or(limits.growth());
        self.shedder.set(&turn, overload);
        self.knobs().write(&turn, sizes, growth, &overload);
        Ok(limits.eager())
    }
}
