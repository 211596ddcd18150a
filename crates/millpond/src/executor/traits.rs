//! The traits: `Executor`, for implementations; `ExecutorExt`, for users; `Lifecycle`, for shutdown.

use super::caller_run::CallerRun;
use super::error::{InvokeAllError, InvokeAnyError, Rejected, TryExecuteError};
use super::internals::Internals;
use super::invoke;
use super::scope::{self, Scope, ScopeOptions};
use super::terminated::{EndWaiters, Terminated};
use super::termination::TerminationError;
use crate::interrupt::{self, WaitError};
use crate::manage::Managed;
use crate::task::{Task, TaskHandle, TaskSpec};
use crate::time::{Clock, Deadline};
use std::borrow::Cow;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

/// Runs tasks, somewhere, at some time.
///
/// The trait is object-safe: `Arc<dyn Executor>` is an executor. Closures come in through
/// [`ExecutorExt`].
///
/// # Duties of an implementation
///
/// 1. It accepts the task (`Ok`) and will run it, cancel it or drop it, sooner or later; any of them completes the task's
///    handle.
/// 2. Or it rejects the task: then that very task is returned, unrun and not cancelled, with the reason.
/// 3. It runs no user code under a lock, and survives a panic of a task.
/// 4. If it blocks the submitter until there is room, or passes tasks to an executor that may, it implements
///    [`execute_task_until`](Executor::execute_task_until), too: by default a deadline is ignored, and calls such as
///    [`invoke_all_timeout`](ExecutorExt::invoke_all_timeout) block as long as `execute_task` does.
///
/// ```
/// use millpond::executor::{Executor, ExecutorExt, Rejected};
/// use millpond::task::Task;
///
/// /// An executor in five lines.
/// #[derive(Debug)]
/// struct Inline;
///
/// impl Executor for Inline {
///     fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
///         task.run();
///         Ok(())
///     }
/// }
///
/// assert_eq!(Inline.submit(|| 6 * 7)?.join()?, 42);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "java.util.concurrent.Executor")]
pub trait Executor: fmt::Debug + Send + Sync {
    /// Accepts the task, to run it.
    ///
    /// # Errors
    ///
    /// The task, if it is rejected.
    fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>>;

    /// As [`execute_task`](Executor::execute_task), for a caller that waits for room no longer than `deadline`, by the
    /// executor's [clock](Executor::clock).
    ///
    /// An executor that blocks the submitter rejects the task as saturated at the deadline. One that never blocks has
    /// nothing to add: by default this is `execute_task`. A wrapper of another executor passes the deadline on.
    /// [`invoke_all_timeout`](ExecutorExt::invoke_all_timeout) and the like submit through here.
    ///
    /// # Errors
    ///
    /// As [`execute_task`](Executor::execute_task).
    ///
    /// ```
    /// use millpond::executor::{SaturationPolicy, Executor, ExecutorExt, ThreadPerTask};
    /// use millpond::task;
    /// use std::{sync::mpsc, time::Duration};
    ///
    /// let threads = ThreadPerTask::builder("mill", 1).at_bound(SaturationPolicy::Block).build()?;
    /// let (go, may_go) = mpsc::channel::<()>();
    /// threads.execute(move || for () in &may_go {})?;
    /// let soon = threads.clock().deadline(Duration::from_millis(1));
    /// let (task, handle) = task::new(|| "flour");
    /// // No thread is free by then, so the task is returned.
    /// let rejected = threads.execute_task_until(task, soon).unwrap_err();
    /// assert!(rejected.reason.is_saturated() && !handle.is_finished());
    /// # drop(go);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn execute_task_until(&self, task: Task, deadline: Deadline) -> Result<(), Rejected<Task>> {
        let _ = deadline;
        self.execute_task(task)
    }

    /// As [`execute_task`](Executor::execute_task), for a caller that can neither wait nor run the task itself: the timer
    /// behind a [`ScheduledPool`](crate::schedule::ScheduledPool), which has others to serve.
    ///
    /// An executor that never blocks its submitters, and never runs a task on their threads, implements this as
    /// `execute_task`. By default the task is returned, and a thread that can wait submits it.
    ///
    /// # Errors
    ///
    /// The task: rejected, or [not to be accepted without waiting](TryExecuteError::WouldBlock).
    fn try_execute_task(&self, task: Task) -> Result<(), TryExecuteError> {
        Err(TryExecuteError::WouldBlock(task))
    }

    /// True on this executor's own worker threads, where a join may run the joined task inline.
    fn on_worker_thread(&self) -> bool {
        false
    }

    /// The engine that runs its tasks, for those who watch and change engines: the executor itself if it is one, or the one
    /// below a wrapper. By default there is none.
    ///
    /// ```
    /// use millpond::executor::{DirectExecutor, Executor, SerialExecutor};
    /// use millpond::preset;
    ///
    /// let alice = SerialExecutor::new(preset::fixed("mill", 2).build()?).key("alice");
    /// assert_eq!(alice.as_managed().map(|engine| engine.name()), Some("mill"));
    /// assert!(DirectExecutor::new().as_managed().is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn as_managed(&self) -> Option<&dyn Managed> {
        None
    }

    /// What other engines of this library need to know of it; see `internals.rs`.
    #[doc(hidden)]
    fn internals(&self) -> Internals<'_> {
        Internals::defaults(self)
    }

    /// Decides that the caller runs the closure that it is about to submit; see `caller_run.rs`. By default, and in
    /// executors that want to see every task, it never does.
    ///
    /// It is not part of the [internals](Executor::internals) because every `execute` asks it first: through
    /// `dyn Executor` that would be two indirect calls instead of one.
    #[doc(hidden)]
    #[inline]
    fn try_caller_run(&self, location: &'static Location<'static>) -> Option<CallerRun<'_>> {
        let _ = location;
        None
    }

    /// The clock of its timeouts.
    fn clock(&self) -> Clock {
        Clock::system()
    }

    /// Whether a [scope](ExecutorExt::scope) that waits for an unstarted task may run it inline, on the current thread.
    /// True, unless the executor promises when its tasks run: a [`SerialKey`](super::SerialKey) promises one at a time.
    /// Then a scope waits for the turn of its tasks, and runs only those that were dropped.
    fn allows_inline(&self) -> bool {
        true
    }
}

macro_rules! executor_through {
    ($($pointer:ty),*) => { $(
        impl<E: Executor + ?Sized> Executor for $pointer {
            fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
                (**self).execute_task(task)
            }

            fn execute_task_until(&self, task: Task, deadline: Deadline) -> Result<(), Rejected<Task>> {
                (**self).execute_task_until(task, deadline)
            }

            fn try_execute_task(&self, task: Task) -> Result<(), TryExecuteError> {
                (**self).try_execute_task(task)
            }

            fn on_worker_thread(&self) -> bool {
                (**self).on_worker_thread()
            }

            fn as_managed(&self) -> Option<&dyn Managed> {
                (**self).as_managed()
            }

            fn internals(&self) -> Internals<'_> {
                (**self).internals()
            }

            #[inline]
            fn try_caller_run(&self, location: &'static Location<'static>) -> Option<CallerRun<'_>> {
                (**self).try_caller_run(location)
            }

            fn clock(&self) -> Clock {
                (**self).clock()
            }

            fn allows_inline(&self) -> bool {
                (**self).allows_inline()
            }
        }
    )* };
}

executor_through!(&E, Box<E>, Arc<E>);

/// The methods of every executor: closures in, handles out. There is nothing to implement.
#[doc(alias = "ExecutorService")]
pub trait ExecutorExt: Executor {
    /// Runs the closure without a handle. Its panic goes to the executor's hook.
    ///
    /// Inside another task it inherits the name, the priority and task-local values, but not the deadline: nobody would
    /// hear that it was dropped for that. [`TaskSpec::inherit_deadline`] asks for it.
    ///
    /// # Errors
    ///
    /// The closure, if it is rejected.
    ///
    /// ```
    /// use millpond::executor::{DirectExecutor, ExecutorExt};
    /// use std::sync::mpsc;
    ///
    /// let (send, receive) = mpsc::channel();
    /// DirectExecutor::new().execute(move || send.send("flour").unwrap())?;
    /// assert_eq!(receive.recv()?, "flour");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    fn execute<F>(&self, f: F) -> Result<(), Rejected<F>>
    where
        F: FnOnce() + Send + 'static,
    {
        if let Some(caller_run) = self.try_caller_run(Location::caller()) {
            caller_run.run(f);
            return Ok(());
        }
        self.execute_with(TaskSpec::new(), f)
    }

    /// As [`execute`](ExecutorExt::execute), as the task that is described: with a name, a deadline, a priority. Without a
    /// clock of its own it uses that of the executor.
    ///
    /// # Errors
    ///
    /// As [`execute`](ExecutorExt::execute).
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::preset;
    /// use millpond::task::TaskSpec;
    ///
    /// let pool = preset::single("audit").build()?;
    /// pool.execute_with(TaskSpec::new().name("record"), || println!("order 7 was paid"))?;
    /// pool.close()?;
    /// assert_eq!(pool.metrics_by_name()[0].label.to_string(), "record");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "execute")]
    fn execute_with<F>(&self, spec: TaskSpec, f: F) -> Result<(), Rejected<F>>
    where
        F: FnOnce() + Send + 'static,
    {
        let task = spec.clock_by_default(self.clock()).build_detached(f);
        self.execute_task(task).map_err(Rejected::reclaim)
    }

    /// As [`execute`](ExecutorExt::execute), under this name in metrics, logs and dumps.
    ///
    /// # Errors
    ///
    /// As [`execute`](ExecutorExt::execute).
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::preset;
    ///
    /// let pool = preset::single("audit").build()?;
    /// pool.execute_named("record", || println!("order 7 was paid"))?;
    /// pool.close()?;
    /// assert_eq!(pool.metrics_by_name()[0].label.to_string(), "record");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "execute")]
    #[track_caller]
    fn execute_named<F>(&self, name: impl Into<Cow<'static, str>>, f: F) -> Result<(), Rejected<F>>
    where
        F: FnOnce() + Send + 'static,
    {
        self.execute_with(TaskSpec::new().name(name), f)
    }

    /// As [`submit`](ExecutorExt::submit), under this name in metrics, logs and dumps.
    ///
    /// # Errors
    ///
    /// As [`submit`](ExecutorExt::submit).
    ///
    /// ```
    /// use millpond::executor::{DirectExecutor, ExecutorExt};
    ///
    /// let handle = DirectExecutor::new().submit_named("thumbnail", || 7)?;
    /// assert_eq!(handle.name(), Some("thumbnail"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    fn submit_named<F, T>(
        &self,
        name: impl Into<Cow<'static, str>>,
        f: F,
    ) -> Result<TaskHandle<T>, Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.submit_with(TaskSpec::new().name(name), f)
    }

    /// Runs the closure, and returns the handle to its value.
    ///
    /// # Errors
    ///
    /// The closure, if it is rejected; then there is no handle.
    ///
    /// # Panics
    ///
    /// If the executor rejects the task and does not return that very task: see the duties of an [`Executor`].
    #[track_caller]
    fn submit<F, T>(&self, f: F) -> Result<TaskHandle<T>, Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.submit_with(TaskSpec::new(), f)
    }

    /// Runs the closure as the task that is described: with a name, a deadline, a clock. Without a clock of its own it uses
    /// that of the executor.
    ///
    /// # Errors
    ///
    /// As [`submit`](ExecutorExt::submit).
    ///
    /// ```
    /// use millpond::executor::{DirectExecutor, ExecutorExt};
    /// use millpond::task::TaskSpec;
    ///
    /// let handle = DirectExecutor::new().submit_with(TaskSpec::new().name("thumbnail"), || 7)?;
    /// assert_eq!(handle.name(), Some("thumbnail"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn submit_with<F, T>(&self, spec: TaskSpec, f: F) -> Result<TaskHandle<T>, Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let (task, handle) = spec.clock_by_default(self.clock()).build(f);
        match self.execute_task(task) {
            Ok(()) => Ok(handle),
            Err(rejected) => Err(rejected.reclaim()),
        }
    }

    /// Runs all closures and waits for all of them. The results are in the order of the closures; a panic is an error in
    /// its own place and nowhere else.
    ///
    /// # Errors
    ///
    /// A closure was rejected, or the caller was interrupted. Then all unfinished tasks are cancelled and asked to stop;
    /// nothing is left behind.
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

    /// As [`invoke_all`](ExecutorExt::invoke_all), but not longer than `timeout`: then unfinished tasks are cancelled and
    /// asked to stop, and are cancelled in the results; finished ones keep their values. The timeout also limits the wait
    /// for room in the executor.
    ///
    /// # Errors
    ///
    /// As [`invoke_all`](ExecutorExt::invoke_all). A timeout is no error.
    #[doc(alias = "invokeAll")]
    #[track_caller]
    fn invoke_all_timeout<F, T>(
        &self,
        tasks: impl IntoIterator<Item = F>,
        timeout: Duration,
    ) -> Result<invoke::Results<T>, InvokeAllError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let deadline = self.clock().deadline(timeout);
        invoke::all(self, TaskSpec::new(), tasks, deadline)
    }

    /// Runs closures until one returns `Ok`, and returns that. The others are cancelled and asked to stop; those that have
    /// not been submitted by then never are.
    ///
    /// # Errors
    ///
    /// There was none, all failed (returned an error, panicked, were rejected), or the caller was interrupted, which
    /// cancels all.
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

    /// As [`invoke_any`](ExecutorExt::invoke_any), but not longer than `timeout`, waits for room included.
    ///
    /// # Errors
    ///
    /// As [`invoke_any`](ExecutorExt::invoke_any), or the timeout is over; then all unfinished tasks are cancelled and asked
    /// to stop.
    #[doc(alias = "invokeAny")]
    #[track_caller]
    fn invoke_any_timeout<F, T, X>(
        &self,
        tasks: impl IntoIterator<Item = F>,
        timeout: Duration,
    ) -> Result<T, InvokeAnyError<X>>
    where
        F: FnOnce() -> Result<T, X> + Send + 'static,
        T: Send + 'static,
        X: Send + 'static,
    {
        let deadline = self.clock().deadline(timeout);
        invoke::any(self, TaskSpec::new(), tasks, deadline)
    }

    /// Runs `f`, which can submit tasks that borrow, and waits until all of them have ended, however `f` ends. Tasks that
    /// are unstarted by then run inline, in the caller, in their order: so this cannot hang, whatever the executor does
    /// with them and wherever it is called.
    ///
    /// If `f` returns and a task has panicked that was not joined, the panic resumes here.
    ///
    /// If the caller, itself a task, is interrupted while it waits, the remaining tasks are cancelled and asked to stop, and
    /// waited for; the caller is still interrupted afterwards.
    ///
    /// # Panics
    ///
    /// If `f` panics, or a task that was not joined; in both cases after all tasks have ended.
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

    /// As [`scope`](ExecutorExt::scope), but a failure cancels the rest: an error that `f` returns, a panic of `f`, or a
    /// panic of a task, joined or not.
    ///
    /// # Errors
    ///
    /// The error of `f`.
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
    ///     s.execute(|| interrupt::sleep(Duration::from_secs(3600)))?;
    ///     let broken = s.submit(|| -> u32 { panic!("the dam broke") })?;
    ///     Ok::<_, ScopeError>(broken.join()?)
    /// });
    /// assert_eq!(result.unwrap_err().to_string(), "the task panicked: the dam broke");
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

/// An executor that can be shut down.
///
/// ```text
///   running --shutdown--> shut down --last task ended--> terminated
///      \                      |                              ^
///       `----shutdown_now-----+--> stopped: running tasks ---'
///                                  are asked to stop
/// ```
#[doc(alias = "ExecutorService")]
pub trait Lifecycle: fmt::Debug {
    /// Accepts no more tasks. Accepted ones still run, and none is interrupted. A second call does nothing.
    fn shutdown(&self);

    /// Accepts no more tasks, interrupts the running ones, and returns the unstarted ones. Dropping one of them cancels it.
    /// A running task that ignores its interrupt goes on.
    #[doc(alias = "shutdownNow")]
    fn shutdown_now(&self) -> Vec<Task>;

    /// Whether it accepts no more tasks.
    #[doc(alias = "isShutdown")]
    fn is_shutdown(&self) -> bool;

    /// Whether it accepts no more tasks and the last one has ended.
    #[doc(alias = "isTerminated")]
    fn is_terminated(&self) -> bool;

    /// Waits until it is terminated, but not longer than `deadline`, after which it returns false. All writes of its tasks
    /// are visible afterwards.
    ///
    /// # Errors
    ///
    /// The caller, itself a task, was interrupted; or it is a task of this executor, and there is no deadline
    /// ([`TerminationError::OwnTask`]).
    fn await_termination_until(&self, deadline: Deadline) -> Result<bool, TerminationError>;

    /// Waits until it is terminated, but not longer than `timeout`, after which it returns false.
    ///
    /// # Errors
    ///
    /// The caller, itself a task, was interrupted.
    #[doc(alias = "awaitTermination")]
    fn await_termination_timeout(&self, timeout: Duration) -> Result<bool, TerminationError>;

    /// Waits until it is terminated, which another call must have started.
    ///
    /// # Errors
    ///
    /// The caller, itself a task, was interrupted; or it is a task of this executor, which would wait for
    /// itself ([`TerminationError::OwnTask`]).
    #[doc(alias = "awaitTermination")]
    #[track_caller]
    fn await_termination(&self) -> Result<(), TerminationError> {
        if !self.is_terminated() {
            let instead = "use `terminated().await`";
            interrupt::check_runtime("await_termination", Location::caller(), instead);
        }
        self.await_termination_until(Deadline::NEVER).map(drop)
    }

    /// Whether the caller keeps it from terminating: one of its own tasks, or a hook or handler that it has called on one of
    /// its threads. There a wait for the termination would wait for itself.
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

    /// Waits until it is terminated, which another call must have started, in async code: the future holds no thread. Events
    /// that an engine has for its listener may still be delivered afterwards.
    ///
    /// ```
    /// # use std::{future::Future, pin::pin, task::{Context, Poll, Waker}};
    /// use millpond::executor::Lifecycle;
    /// use millpond::preset;
    ///
    /// let pool = preset::single("mill").build()?;
    /// let end = async {
    ///     pool.shutdown();
    ///     pool.terminated().await;
    ///     pool.is_terminated()
    /// };
    /// # assert_eq!(pin!(end).poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(true));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "awaitTermination")]
    fn terminated(&self) -> Terminated<'_>
    where
        Self: Sized + Sync,
    {
        Terminated::of(self)
    }

    /// Shuts down in order at the first poll, and is ready when it is terminated: [`close`](Lifecycle::close) for async
    /// code. The future holds no thread, and interrupts nothing; limit the wait with the time-out of your runtime and
    /// call [`shutdown_now`](Lifecycle::shutdown_now) if it is over.
    ///
    /// ```
    /// # use std::{future::Future, pin::pin, task::{Context, Waker}};
    /// use millpond::executor::Lifecycle;
    /// use millpond::preset;
    ///
    /// let pool = preset::single("mill").build()?;
    /// let end = async { pool.close_async().await };
    /// # assert!(pin!(end).poll(&mut Context::from_waker(Waker::noop())).is_ready());
    /// assert!(pool.is_terminated());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn close_async(&self) -> Terminated<'_>
    where
        Self: Sized + Sync,
    {
        Terminated::after_shutdown(self)
    }

    /// Where a future waits for the termination. With the default it looks now and then.
    #[doc(hidden)]
    fn end_waiters(&self) -> Option<EndWaiters<'_>> {
        None
    }

    /// Shuts down in order, and waits for the termination. If the caller, itself a task, is interrupted meanwhile, it stops
    /// the running tasks, goes on waiting, and is still interrupted afterwards.
    ///
    /// # Errors
    ///
    /// [`TerminationError::OwnTask`], if the caller is one of its own tasks. Then it is shut down, but not waited for: it
    /// terminates when that task and all others have ended.
    #[track_caller]
    fn close(&self) -> Result<(), TerminationError> {
        self.shutdown();
        if self.is_caller_inside() {
            return Err(TerminationError::OwnTask);
        }
        if !self.is_terminated() {
            let instead = "use `close_async().await`";
            interrupt::check_runtime("close", Location::caller(), instead);
        }
        match self.await_termination_until(Deadline::NEVER).map(drop) {
            Err(TerminationError::Interrupted) => {}
            ended => return ended,
        }
        drop(self.shutdown_now());
        // Uninterruptible, so it returns only after the termination.
        let ended =
            interrupt::uninterruptible(|| self.await_termination_until(Deadline::NEVER).map(drop));
        interrupt::restore(Err(WaitError::Interrupted));
        ended
    }
}
