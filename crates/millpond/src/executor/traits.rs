//! What an executor is, and what every executor can do besides.

use super::dropped::{self, DroppedTask};
use super::error::{InvokeAllError, InvokeAnyError, NotTaken, Rejected};
use super::invoke;
use super::post::PostOffer;
use super::scope::{self, Scope, ScopeOptions};
use super::termination::TerminationError;
use super::turned_back::TurnedBack;
use crate::interrupt::{self, WaitError};
use crate::task::{Task, TaskHandle, TaskSpec};
use crate::time::{Clock, Deadline};
use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

/// Something that runs tasks, somewhere, at some time.
///
/// The trait is object-safe: `Arc<dyn Executor>` is an executor. Closures come in through
/// [`ExecutorExt`].
///
/// # Duties of an implementation
///
/// 1. It takes the task (`Ok`) and will run it, cancel it or drop it, sooner or later; any of them
///    completes the task's handle.
/// 2. Or it refuses: then that very task comes back, unrun and not cancelled, with the reason.
/// 3. It runs no user's code under a lock, and a panic of a task costs it nothing.
/// 4. If it lets the submitter wait for room, or passes tasks to an executor that may, it implements
///    [`execute_until`](Executor::execute_until), too: by default a deadline is not heeded, and calls such as
///    [`invoke_all_timeout`](ExecutorExt::invoke_all_timeout) wait as long as `execute` does.
///
/// ```
/// use millpond::executor::{Executor, ExecutorExt, Rejected};
/// use millpond::task::Task;
///
/// /// An executor in five lines.
/// #[derive(Debug)]
/// struct InPlace;
///
/// impl Executor for InPlace {
///     fn execute(&self, task: Task) -> Result<(), Rejected<Task>> {
///         task.run();
///         Ok(())
///     }
/// }
///
/// assert_eq!(InPlace.submit(|| 6 * 7)?.join()?, 42);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "java.util.concurrent.Executor")]
pub trait Executor: fmt::Debug + Send + Sync {
    /// Takes the task to run it.
    ///
    /// # Errors
    ///
    /// The task, if it cannot be taken.
    fn execute(&self, task: Task) -> Result<(), Rejected<Task>>;

    /// As [`execute`](Executor::execute), for a caller that waits for room no longer than `deadline`, by the
    /// executor's [clock](Executor::clock).
    ///
    /// An executor that lets the submitter wait gives the task back as saturated when the deadline comes. One
    /// that never does so has nothing to add: by default this is `execute`. A wrapper of another executor
    /// passes the deadline on. [`invoke_all_timeout`](ExecutorExt::invoke_all_timeout) and the like submit
    /// through here.
    ///
    /// # Errors
    ///
    /// As [`execute`](Executor::execute).
    ///
    /// ```
    /// use millpond::executor::{AtBound, Executor, ExecutorExt, ThreadPerTask};
    /// use millpond::task;
    /// use std::{sync::mpsc, time::Duration};
    ///
    /// let threads = ThreadPerTask::builder("mill", 1).at_bound(AtBound::Block).build()?;
    /// let (go, may_go) = mpsc::channel::<()>();
    /// threads.run(move || for () in &may_go {})?;
    /// let soon = threads.clock().deadline(Duration::from_millis(1));
    /// let (task, handle) = task::new(|| "flour");
    /// // No thread is free by then, so the task comes back.
    /// let refused = threads.execute_until(task, soon).unwrap_err();
    /// assert!(refused.reason.is_saturated() && !handle.is_finished());
    /// # drop(go);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn execute_until(&self, task: Task, deadline: Deadline) -> Result<(), Rejected<Task>> {
        let _ = deadline;
        self.execute(task)
    }

    /// As [`execute`](Executor::execute), for a caller that can neither wait nor run the task itself: the
    /// timer behind a [`ScheduledPool`](crate::schedule::ScheduledPool), which has others to serve.
    ///
    /// An executor that never lets its bringers wait, and never runs a task in their thread, says so by
    /// taking it as in `execute`. For one that says nothing the task comes back, and a thread that can
    /// wait brings it.
    ///
    /// # Errors
    ///
    /// The task: refused for good, or not to be had [at once](NotTaken::NotAtOnce).
    fn try_execute(&self, task: Task) -> Result<(), NotTaken> {
        Err(NotTaken::NotAtOnce(task))
    }

    /// Whether the present thread is one of its workers, so that who waits in it for another of its tasks
    /// may have to run that one.
    fn is_worker_here(&self) -> bool {
        false
    }

    /// Lets one of its idle workers stand sentry there; see `post.rs`. Whoever has none leaves it.
    #[doc(hidden)]
    fn offer_post(&self, post: PostOffer) {
        drop(post);
    }

    /// What tells it from other executors: an address that the handles of one executor have in common, as far as
    /// they know it. Jobs that may have to wait for it are kept together by that; see `time/aside.rs`.
    #[doc(hidden)]
    fn address(&self) -> usize {
        std::ptr::from_ref(self).cast::<()>() as usize
    }

    /// Gives tasks back that it has accepted and that have not begun, if they are `wanted`: for one who has
    /// submitted them and is being stopped. Whoever cannot find them gives none. `wanted` may be called under
    /// the lock of a queue.
    #[doc(hidden)]
    fn take_back(&self, wanted: &mut dyn FnMut(&Task) -> bool) -> Vec<Task> {
        let _ = wanted;
        Vec::new()
    }

    /// Turns a closure back that was brought there and that its caller would have to run now; see
    /// `turned_back.rs`. Whoever runs tasks elsewhere, or wants to see them all, does not.
    #[doc(hidden)]
    #[inline]
    fn turn_back(&self, made_at: &'static Location<'static>) -> Option<TurnedBack<'_>> {
        let _ = made_at;
        None
    }

    /// A task without a handle was accepted, by it or by a wrapper of it, and dropped unrun: a wrapper
    /// passes this on to the executor below. Whoever has no other place to say so writes a line.
    #[doc(hidden)]
    fn report_dropped(&self, dropped: DroppedTask) {
        dropped::write_down(dropped);
    }

    /// The clock by which its time-outs run.
    fn clock(&self) -> Clock {
        Clock::system()
    }

    /// Whether a [scope](ExecutorExt::scope) that waits for one of its tasks may run it in the
    /// present thread, if it has not started. True, unless the executor promises when its tasks run:
    /// a [`SerialKey`](super::SerialKey) promises one at a time. Then a scope waits for the turn
    /// of its tasks, and runs only those that were dropped.
    fn may_run_in_place(&self) -> bool {
        true
    }
}

macro_rules! executor_through {
    ($($pointer:ty),*) => { $(
        impl<E: Executor + ?Sized> Executor for $pointer {
            fn execute(&self, task: Task) -> Result<(), Rejected<Task>> {
                (**self).execute(task)
            }

            fn execute_until(&self, task: Task, deadline: Deadline) -> Result<(), Rejected<Task>> {
                (**self).execute_until(task, deadline)
            }

            fn try_execute(&self, task: Task) -> Result<(), NotTaken> {
                (**self).try_execute(task)
            }

            fn is_worker_here(&self) -> bool {
                (**self).is_worker_here()
            }

            fn offer_post(&self, post: PostOffer) {
                (**self).offer_post(post)
            }

            fn address(&self) -> usize {
                (**self).address()
            }

            fn take_back(&self, wanted: &mut dyn FnMut(&Task) -> bool) -> Vec<Task> {
                (**self).take_back(wanted)
            }

            #[inline]
            fn turn_back(&self, made_at: &'static Location<'static>) -> Option<TurnedBack<'_>> {
                (**self).turn_back(made_at)
            }

            fn report_dropped(&self, dropped: DroppedTask) {
                (**self).report_dropped(dropped)
            }

            fn clock(&self) -> Clock {
                (**self).clock()
            }

            fn may_run_in_place(&self) -> bool {
                (**self).may_run_in_place()
            }
        }
    )* };
}

executor_through!(&E, Box<E>, Arc<E>);

/// What every executor can do, closures in and handles out. There is nothing to implement.
#[doc(alias = "ExecutorService")]
pub trait ExecutorExt: Executor {
    /// Runs the closure, and nobody waits for it. Its panic goes to the executor's hook.
    ///
    /// Inside another task it inherits the name, the priority and what is carried, but not the deadline:
    /// nobody would hear that it was dropped for that. [`TaskSpec::inherit_deadline`] asks for it.
    ///
    /// # Errors
    ///
    /// The closure, if it is refused.
    ///
    /// ```
    /// use millpond::executor::{DirectExecutor, ExecutorExt};
    /// use std::sync::mpsc;
    ///
    /// let (send, receive) = mpsc::channel();
    /// DirectExecutor::new().run(move || send.send("flour").unwrap())?;
    /// assert_eq!(receive.recv()?, "flour");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "execute")]
    #[track_caller]
    fn run<F>(&self, f: F) -> Result<(), Rejected<F>>
    where
        F: FnOnce() + Send + 'static,
    {
        if let Some(turned) = self.turn_back(Location::caller()) {
            turned.run(f);
            return Ok(());
        }
        self.run_spec(TaskSpec::new(), f)
    }

    /// As [`run`](ExecutorExt::run), as the task that is described: with a name, a deadline, a priority.
    /// Without a clock of its own it goes by that of the executor.
    ///
    /// # Errors
    ///
    /// As [`run`](ExecutorExt::run).
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::preset;
    /// use millpond::task::TaskSpec;
    ///
    /// let pool = preset::single("audit").build()?;
    /// pool.run_spec(TaskSpec::new().name("record"), || println!("order 7 was paid"))?;
    /// pool.close()?;
    /// assert_eq!(pool.figures_by_name()[0].label.to_string(), "record");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "execute")]
    fn run_spec<F>(&self, spec: TaskSpec, f: F) -> Result<(), Rejected<F>>
    where
        F: FnOnce() + Send + 'static,
    {
        let task = spec.clock_by_default(self.clock()).build_detached(f);
        self.execute(task).map_err(Rejected::reclaim)
    }

    /// Runs the closure, and returns the handle to what it will return.
    ///
    /// # Errors
    ///
    /// The closure, if it is refused; then there is no handle.
    ///
    /// # Panics
    ///
    /// If the executor refuses and does not give back what it was given: see the duties of an
    /// [`Executor`].
    #[track_caller]
    fn submit<F, T>(&self, f: F) -> Result<TaskHandle<T>, Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.submit_spec(TaskSpec::new(), f)
    }

    /// Runs the closure as the task that is described: with a name, a deadline, a clock. Without a clock
    /// of its own it goes by that of the executor.
    ///
    /// # Errors
    ///
    /// As [`submit`](ExecutorExt::submit).
    ///
    /// ```
    /// use millpond::executor::{DirectExecutor, ExecutorExt};
    /// use millpond::task::TaskSpec;
    ///
    /// let handle = DirectExecutor::new().submit_spec(TaskSpec::new().name("thumbnail"), || 7)?;
    /// assert_eq!(handle.name(), Some("thumbnail"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn submit_spec<F, T>(&self, spec: TaskSpec, f: F) -> Result<TaskHandle<T>, Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let (task, handle) = spec.clock_by_default(self.clock()).build(f);
        match self.execute(task) {
            Ok(()) => Ok(handle),
            Err(refused) => Err(refused.reclaim()),
        }
    }

    /// Runs all closures and waits for all of them. The results come in the order of the closures;
    /// one that panics is an error in its own place and nowhere else.
    ///
    /// # Errors
    ///
    /// One was refused, or the caller was interrupted. Then all that is unfinished is cancelled and
    /// asked to stop; nothing is left behind.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, ThreadPerTask};
    ///
    /// let threads = ThreadPerTask::builder("mill", 8).build()?;
    /// let squares = threads.invoke_all((1..=4).map(|n| move || n * n))?;
    /// let squares: Vec<u32> = squares.into_iter().collect::<Result<_, _>>()?;
    /// assert_eq!(squares, [1, 4, 9, 16]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "invokeAll")]
    #[track_caller]
    fn invoke_all<F, T>(
        &self,
        tasks: impl IntoIterator<Item = F>,
    ) -> Result<invoke::Results<T>, InvokeAllError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        invoke::all(self, TaskSpec::new(), tasks, Deadline::NEVER)
    }

    /// As [`invoke_all`](ExecutorExt::invoke_all), but not longer than `patience`: then what is
    /// unfinished is cancelled and asked to stop, and shows as cancelled in its place. What has
    /// finished keeps its value. An executor that lets the submitter wait for room does so no longer, either.
    ///
    /// # Errors
    ///
    /// As [`invoke_all`](ExecutorExt::invoke_all). A time-out is none.
    #[doc(alias = "invokeAll")]
    #[track_caller]
    fn invoke_all_timeout<F, T>(
        &self,
        tasks: impl IntoIterator<Item = F>,
        patience: Duration,
    ) -> Result<invoke::Results<T>, InvokeAllError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let deadline = self.clock().deadline(patience);
        invoke::all(self, TaskSpec::new(), tasks, deadline)
    }

    /// Runs closures until one returns `Ok`, and returns that. The others are cancelled and asked
    /// to stop; those that have not been brought to the executor by then never are.
    ///
    /// # Errors
    ///
    /// There was none, all failed (returned an error, panicked, were refused), or the caller was
    /// interrupted, which cancels all.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, ThreadPerTask};
    ///
    /// let threads = ThreadPerTask::builder("mirrors", 8).build()?;
    /// let mirrors = ["down", "up", "down"].map(|mirror| {
    ///     move || if mirror == "up" { Ok("the file") } else { Err("no answer") }
    /// });
    /// assert_eq!(threads.invoke_any(mirrors)?, "the file");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "invokeAny")]
    #[track_caller]
    fn invoke_any<F, T, X>(
        &self,
        tasks: impl IntoIterator<Item = F>,
    ) -> Result<T, InvokeAnyError<X>>
    where
        F: FnOnce() -> Result<T, X> + Send + 'static,
        T: Send + 'static,
        X: Send + 'static,
    {
        invoke::any(self, TaskSpec::new(), tasks, Deadline::NEVER)
    }

    /// As [`invoke_any`](ExecutorExt::invoke_any), but not longer than `patience`, also if the executor lets
    /// the submitter wait for room.
    ///
    /// # Errors
    ///
    /// As [`invoke_any`](ExecutorExt::invoke_any), or the time was up; then all that is unfinished
    /// is cancelled and asked to stop.
    #[doc(alias = "invokeAny")]
    #[track_caller]
    fn invoke_any_timeout<F, T, X>(
        &self,
        tasks: impl IntoIterator<Item = F>,
        patience: Duration,
    ) -> Result<T, InvokeAnyError<X>>
    where
        F: FnOnce() -> Result<T, X> + Send + 'static,
        T: Send + 'static,
        X: Send + 'static,
    {
        let deadline = self.clock().deadline(patience);
        invoke::any(self, TaskSpec::new(), tasks, deadline)
    }

    /// Runs `f`, which can bring tasks that borrow, and waits until all of them have ended, however
    /// `f` ends. Tasks that nobody has started by then run here, in the caller, in their order: so this
    /// cannot hang, whatever the executor does with them and wherever it is called.
    ///
    /// If `f` returns and a task has panicked that nobody joined, the panic goes on here.
    ///
    /// If the caller, itself a task, is interrupted while it waits, the tasks that are left are
    /// cancelled and asked to stop, and waited for; the caller is still interrupted afterwards.
    ///
    /// # Panics
    ///
    /// If `f` does, or a task that nobody joined; in both cases when all tasks have ended.
    ///
    /// # What it costs
    ///
    /// One allocation for each task, beside the executor's task as for
    /// [`submit`](ExecutorExt::submit).
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, ScopeError, ThreadPerTask};
    ///
    /// let threads = ThreadPerTask::builder("mill", 4).build()?;
    /// let grain = vec!["rye", "oats", "barley"];
    /// let longest = threads.scope(|s| {
    ///     let lengths = grain.iter().map(|name| s.submit(|| name.len()));
    ///     let lengths: Vec<_> = lengths.collect::<Result<_, _>>()?;
    ///     let mut longest = 0;
    ///     for length in lengths {
    ///         longest = longest.max(length.join()?);
    ///     }
    ///     Ok::<_, ScopeError>(longest)
    /// })?;
    /// assert_eq!(longest, 6);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn scope<'env, R>(&self, f: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R) -> R {
        self.scope_with(ScopeOptions::new(), f)
    }

    /// As [`scope`](ExecutorExt::scope), with options: [`ScopeOptions::cancel_on_failure`].
    ///
    /// # Panics
    ///
    /// As [`scope`](ExecutorExt::scope).
    fn scope_with<'env, R>(
        &self,
        options: ScopeOptions,
        f: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R,
    ) -> R {
        scope::enter(&self, options, f, |_| false)
    }

    /// As [`scope`](ExecutorExt::scope), but a failure cancels the rest: an error that `f` returns, a
    /// panic of `f`, or a panic of a task, whether somebody joins it or not.
    ///
    /// # Errors
    ///
    /// What `f` returns.
    ///
    /// # Panics
    ///
    /// As [`scope`](ExecutorExt::scope).
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, ScopeError, ThreadPerTask};
    /// use millpond::interrupt;
    /// use std::time::Duration;
    ///
    /// let threads = ThreadPerTask::builder("mill", 4).build()?;
    /// let result = threads.try_scope(|s| {
    ///     // An hour, if nothing fails.
    ///     s.run(|| interrupt::sleep(Duration::from_secs(3600)))?;
    ///     let broken = s.submit(|| -> u32 { panic!("the dam broke") })?;
    ///     Ok::<_, ScopeError>(broken.join()?)
    /// });
    /// assert_eq!(result.unwrap_err().to_string(), "task panicked: the dam broke");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn try_scope<'env, R, X>(
        &self,
        f: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> Result<R, X>,
    ) -> Result<R, X> {
        let options = ScopeOptions::new().cancel_on_failure();
        scope::enter(&self, options, f, Result::is_err)
    }
}

impl<E: Executor + ?Sized> ExecutorExt for E {}

/// An executor that can be ended.
///
/// ```text
///   running --shutdown--> draining --last task ended--> terminated
///      \                      |                             ^
///       `----shutdown_now-----+--> stopping: running tasks -'
///                                  are asked to stop
/// ```
#[doc(alias = "ExecutorService")]
pub trait Lifecycle: fmt::Debug {
    /// Takes no more tasks. Those that it has taken still run, and nobody is interrupted. Doing it
    /// twice does nothing.
    fn shutdown(&self);

    /// Takes no more tasks, interrupts those that run, and hands those back that have not started.
    /// Dropping one of them cancels it. A running task that ignores its interrupt goes on.
    #[doc(alias = "shutdownNow")]
    fn shutdown_now(&self) -> Vec<Task>;

    /// Whether it takes no more tasks.
    #[doc(alias = "isShutdown")]
    fn is_shutdown(&self) -> bool;

    /// Whether it takes no more tasks and the last one has ended.
    #[doc(alias = "isTerminated")]
    fn is_terminated(&self) -> bool;

    /// Waits until it is terminated, but not longer than `deadline`; false if the time was up. All
    /// that its tasks wrote is visible afterwards.
    ///
    /// # Errors
    ///
    /// The caller, itself a task, was interrupted; or it is a task of this executor, and there is no deadline
    /// ([`TerminationError::OwnTask`]).
    fn await_termination_until(&self, deadline: Deadline) -> Result<bool, TerminationError>;

    /// Waits until it is terminated, but not longer than `patience`; false if the time was up.
    ///
    /// # Errors
    ///
    /// The caller, itself a task, was interrupted.
    #[doc(alias = "awaitTermination")]
    fn await_termination_timeout(&self, patience: Duration) -> Result<bool, TerminationError>;

    /// Waits until it is terminated, which somebody must have begun.
    ///
    /// # Errors
    ///
    /// The caller, itself a task, was interrupted; or it is a task of this executor, which would wait for
    /// itself ([`TerminationError::OwnTask`]).
    #[doc(alias = "awaitTermination")]
    fn await_termination(&self) -> Result<(), TerminationError> {
        self.await_termination_until(Deadline::NEVER).map(drop)
    }

    /// Whether what runs here and now keeps it from terminating: one of its own tasks, or a hook or handler
    /// that it has called on one of its threads. Whoever waits for the end there waits for itself.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::preset;
    ///
    /// let pool = preset::single("mill").build()?;
    /// let own = pool.clone();
    /// assert!(pool.submit(move || own.is_caller_inside())?.join()?);
    /// assert!(!pool.is_caller_inside());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn is_caller_inside(&self) -> bool {
        false
    }

    /// Shuts down in order, and waits for the end. If the caller, itself a task, is interrupted
    /// meanwhile, it stops what runs, goes on waiting, and is still interrupted afterwards.
    ///
    /// # Errors
    ///
    /// [`TerminationError::OwnTask`], if the caller is one of its own tasks. Then it is shut down, and nobody
    /// waits: it ends when that task and all others have.
    fn close(&self) -> Result<(), TerminationError> {
        self.shutdown();
        if self.is_caller_inside() {
            return Err(TerminationError::OwnTask);
        }
        match self.await_termination() {
            Err(TerminationError::Interrupted) => {}
            ended => return ended,
        }
        drop(self.shutdown_now());
        // Uninterruptible, so it only returns when it is over.
        let ended = interrupt::uninterruptible(|| self.await_termination());
        interrupt::put_back(Err(WaitError::Interrupted));
        ended
    }
}
