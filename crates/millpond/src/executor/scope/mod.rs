//! Scopes: tasks that borrow, on any executor.
//!
//! The closure of a scope's task, its *job*, is never given to the executor, which gets a task that refers to it. So an
//! executor may run the task late, return it from `shutdown_now`, show it to a rejection policy or leak it, and nothing
//! borrowed goes with it. [`millpond_raw::scope`] is the foundation; this is what a scope does with it.
//!
//! | file | what |
//! |---|---|
//! | `handle` | the handle of a scope's task |
//! | `job_task` | the task that stands for a job in the executor, and the operations on a job |
//!
//! # How a scope ends
//!
//! 1. Unstarted jobs are run by the owner, in their order. So a scope on a worker of its own pool does not wait for a
//!    worker that does not exist, and a job that the executor loses is run all the same.
//! 2. Jobs that run on other threads are waited for. Jobs that they submit meanwhile go to step 1.
//! 3. Values that were not taken are dropped. If their destructors submit jobs, it begins again.
//! 4. A panic resumes: the closure's own, else the first one that no handle has reported.
//!
//! An executor that promises when a task runs ([`Executor::allows_inline`]) is waited for in step 1 as well, except for
//! tasks that it has dropped.
//!
//! # Interrupts
//!
//! A job runs under the token of its task, on whichever thread: the executor's `shutdown_now` reaches it like any task,
//! and so does its handle. When the scope's caller is interrupted while the scope ends, all remaining jobs are
//! interrupted; the scope still waits, and the caller's token stays set.

mod handle;
mod job_task;

pub use handle::ScopedHandle;

use super::error::{RejectReason, Rejected};
use super::traits::Executor;
use crate::interrupt;
use crate::task::{JoinGuard, TaskSpec};
use job_task::{JobTask, JobTaskBody, StopWaker};
use millpond_raw::catch_panic;
use millpond_raw::park::Site;
use millpond_raw::scope::{self as raw, JobState, ScopeClosed};
use millpond_raw::user_code::{self, Kind};
use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::task::Waker;

/// Submits tasks that may borrow what lives longer than the scope: see [`ExecutorExt::scope`](super::ExecutorExt::scope).
///
/// `'scope` is the lifetime of the scope, `'env` that of what its tasks may borrow. A task may submit further tasks.
///
/// # What does not compile
///
/// Borrowing from inside the scope, which ends before its tasks do:
///
/// ```compile_fail,E0373
/// use millpond::executor::{DirectExecutor, ExecutorExt};
///
/// DirectExecutor::new().scope(|s| {
///     let grain = vec![1, 2, 3];
///     s.execute(|| println!("{}", grain.len())).unwrap();
/// });
/// ```
///
/// Keeping the scope, or one of its handles, for later:
///
/// ```compile_fail,E0521
/// use millpond::executor::{DirectExecutor, ExecutorExt};
///
/// let mut kept = None;
/// DirectExecutor::new().scope(|s| kept = Some(s));
/// ```
///
/// ```compile_fail,E0521
/// use millpond::executor::{DirectExecutor, ExecutorExt};
///
/// let mut kept = None;
/// DirectExecutor::new().scope(|s| kept = Some(s.submit(|| 7).unwrap()));
/// ```
///
/// Changing what a task borrows, as long as the scope lasts:
///
/// ```compile_fail,E0506
/// use millpond::executor::{DirectExecutor, ExecutorExt};
///
/// let mut grain = 1;
/// DirectExecutor::new().scope(|s| {
///     s.execute(|| println!("{grain}")).unwrap();
///     grain = 2;
/// });
/// ```
///
/// Sharing what cannot be shared between threads:
///
/// ```compile_fail,E0277
/// use millpond::executor::{DirectExecutor, ExecutorExt};
///
/// let grain = std::rc::Rc::new(1);
/// DirectExecutor::new().scope(|s| s.execute(|| println!("{grain}")).unwrap());
/// ```
///
/// Keeping a value that borrows longer than what it borrows:
///
/// ```compile_fail,E0597
/// use millpond::executor::{DirectExecutor, ExecutorExt};
///
/// let longest = {
///     let text = String::from("rye, oats");
///     DirectExecutor::new().scope(|s| s.submit(|| &text[..3]).unwrap().join().unwrap())
/// };
/// println!("{longest}");
/// ```
pub struct Scope<'scope, 'env: 'scope> {
    raw: raw::Scope<'scope, JobTask>,
    executor: &'scope (dyn Executor + 'scope),
    options: ScopeOptions,
    /// Invariant, as `'scope` is.
    _env: PhantomData<&'env mut &'env ()>,
}

/// Options of a scope.
///
/// ```
/// use millpond::executor::{ExecutorExt, ScopeOptions, ThreadPerTask};
/// use millpond::interrupt;
/// use std::panic::{catch_unwind, AssertUnwindSafe};
/// use std::time::Duration;
///
/// let threads = ThreadPerTask::builder("mill", 4).build()?;
/// let options = ScopeOptions::new().cancel_on_failure();
/// let failed = catch_unwind(AssertUnwindSafe(|| {
///     threads.scope_with(options, |s| {
///         // An hour, if the other one did not fail.
///         s.execute(|| interrupt::sleep(Duration::from_secs(3600))).unwrap();
///         s.execute(|| panic!("the dam broke")).unwrap();
///     });
/// }));
/// assert_eq!(*failed.unwrap_err().downcast::<&str>().unwrap(), "the dam broke");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "options do nothing until a scope has them"]
pub struct ScopeOptions {
    cancel_on_failure: bool,
}

impl ScopeOptions {
    /// A scope that lets all its tasks run to their ends.
    pub fn new() -> Self {
        Self::default()
    }

    /// A scope that cancels the rest as soon as a task panics, joined or not, or the scope's own closure does. See
    /// [`Scope::cancel_rest`].
    pub fn cancel_on_failure(mut self) -> Self {
        self.cancel_on_failure = true;
        self
    }
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// Runs the closure as a task of the scope, and returns the handle to its value.
    ///
    /// # Errors
    ///
    /// The closure, if the executor rejects it or the scope has been
    /// [cancelled](Scope::cancel_rest); then there is no handle. `?` turns it into a
    /// [`ScopeError`](super::ScopeError).
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, ScopeError, ThreadPerTask};
    ///
    /// let threads = ThreadPerTask::builder("mill", 4).build()?;
    /// let weights = [3, 1, 4, 1, 5, 9, 2, 6_u64];
    /// let (left, right) = weights.split_at(4);
    /// let sum = threads.scope(|s| {
    ///     let left = s.submit(|| left.iter().sum::<u64>())?;
    ///     let right = s.submit(|| right.iter().sum::<u64>())?;
    ///     Ok::<_, ScopeError>(left.join()? + right.join()?)
    /// })?;
    /// assert_eq!(sum, 31);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn submit<F, T>(&'scope self, f: F) -> Result<ScopedHandle<'scope, T>, Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        self.submit_with(TaskSpec::new(), f)
    }

    /// As [`submit`](Scope::submit), as the task that is described: with a name, a deadline, a clock.
    ///
    /// # Errors
    ///
    /// As [`submit`](Scope::submit).
    pub fn submit_with<F, T>(
        &'scope self,
        spec: TaskSpec,
        f: F,
    ) -> Result<ScopedHandle<'scope, T>, Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        let job = self.submit_job(spec, f)?;
        Ok(ScopedHandle::new(job.handle(), self.executor))
    }

    /// Runs the closure as a task of the scope without a handle. Its value is dropped. If it panics, the scope does, at its
    /// end. It does not inherit the deadline of the enclosing task.
    ///
    /// # Errors
    ///
    /// As [`submit`](Scope::submit).
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, ScopeError, ThreadPerTask};
    ///
    /// let threads = ThreadPerTask::builder("mill", 4).build()?;
    /// let mut sacks = [1, 2, 3];
    /// threads.scope(|s| {
    ///     for sack in &mut sacks {
    ///         s.execute(|| *sack *= 10)?;
    ///     }
    ///     Ok::<_, ScopeError>(())
    /// })?;
    /// assert_eq!(sacks, [10, 20, 30]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn execute<F, T>(&'scope self, f: F) -> Result<(), Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        // Nobody would hear that it was dropped at the deadline of the enclosing task.
        let spec = TaskSpec::new().without_inherited_deadline();
        self.submit_job(spec, f)?.detach();
        Ok(())
    }

    fn submit_job<F, T>(
        &'scope self,
        spec: TaskSpec,
        f: F,
    ) -> Result<raw::NewJob<F, T, JobTask>, Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        let job = match self.raw.job(f) {
            Ok(job) => job,
            Err(ScopeClosed(f)) => return Err(Rejected::new(f, RejectReason::Cancelled)),
        };
        let cancel_on_failure = self.options.cancel_on_failure;
        let body = JobTaskBody::new(job.stub(), cancel_on_failure);
        let spec = spec.clock_by_default(self.executor.clock());
        let (task, handle) = spec.build(move || body.run());
        job.publish(JobTask {
            task: handle.shared(),
            cancel_on_failure,
        });
        user_code::check(Kind::Executor);
        match self.executor.execute_task(task) {
            Ok(()) => Ok(job),
            // The returned task, if it is that very one, has nothing to do any more.
            Err(Rejected { task, reason, .. }) => {
                let reclaimed = job.reclaim();
                catch_panic::drop(task);
                match reclaimed {
                    Ok(f) => Err(Rejected::new(f, reason)),
                    // A waiting thread has run it, or it was cancelled: it is accounted for.
                    Err(job) => Ok(job),
                }
            }
        }
    }

    /// Cancels the rest of the scope, for an early exit: unstarted tasks never start, running ones are interrupted, and no
    /// more are accepted. The task that calls this is not cancelled.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, ScopeError, ThreadPerTask};
    /// use millpond::interrupt;
    /// use std::time::Duration;
    ///
    /// let threads = ThreadPerTask::builder("mill", 4).build()?;
    /// let haystacks = [["hay", "hay"], ["hay", "needle"]];
    /// threads.scope(|s| {
    ///     let slow = s.submit(|| interrupt::sleep(Duration::from_secs(3600)))?;
    ///     for haystack in &haystacks {
    ///         s.execute(|| {
    ///             if haystack.contains(&"needle") {
    ///                 s.cancel_rest();
    ///             }
    ///         })?;
    ///     }
    ///     assert!(slow.join().unwrap_err().is_cancelled());
    ///     Ok::<_, ScopeError>(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cancel_rest(&self) {
        job_task::stop_rest(self.raw.scope_ref());
    }

    /// Whether no more tasks are accepted, because the rest was cancelled: by
    /// [`cancel_rest`](Scope::cancel_rest), by a failure, or by an interrupt of the scope's caller.
    pub fn is_cancelled(&self) -> bool {
        self.raw.scope_ref().is_stopped()
    }

    /// Ends the scope, in the steps of the header.
    fn end(&'scope self) {
        let (scope, jobs) = (&self.raw, self.raw.scope_ref());
        if jobs.is_empty() {
            return;
        }
        let site = Site::new("scope.end").on(jobs);
        let stop_waker = || Waker::from(Arc::new(StopWaker(jobs.clone())));
        interrupt::forward_to(stop_waker, || {
            let may_run = self.executor.allows_inline();
            let mine = if may_run {
                JobState::is_unstarted
            } else {
                JobState::is_stub_dropped
            };
            let mut ended = 0;
            loop {
                let seen = if may_run { jobs.published() } else { u64::MAX };
                let mut next = ended;
                while let Some(job) = jobs.find(next, mine) {
                    next = job.number() + 1;
                    job_task::run_inline(&job);
                }
                match jobs.find(ended, |state| !state.is_ended()) {
                    Some(job) => {
                        ended = job.number();
                        let target = job_task::join_target(&job, JobState::is_ended);
                        let _blocked = target.map(|one| JoinGuard::enter_infallible(|| one));
                        scope.wait(&job, seen, site);
                    }
                    None if scope.sweep() => {}
                    None => return,
                }
            }
        });
    }
}

/// Runs `f` with a scope of the executor, and waits for all tasks that it submits. `failed` decides whether its value is a
/// failure.
pub(super) fn enter<'env, R>(
    executor: &dyn Executor,
    options: ScopeOptions,
    f: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R,
    failed: impl FnOnce(&R) -> bool,
) -> R {
    let scope = Scope {
        raw: raw::Scope::new(),
        executor,
        options,
        _env: PhantomData,
    };
    let result = scope.raw.enter(|| {
        user_code::check(Kind::Closure);
        let result = catch_unwind(AssertUnwindSafe(|| f(&scope)));
        let is_failure = match &result {
            Ok(value) => failed(value),
            Err(_) => true,
        };
        if is_failure && scope.options.cancel_on_failure {
            job_task::stop_rest(scope.raw.scope_ref());
        }
        scope.end();
        result
    });
    match (result, scope.raw.take_panic()) {
        (Ok(value), None) => value,
        (Ok(value), Some(panic)) => {
            catch_panic::drop(value);
            panic.resume()
        }
        (Err(payload), panic) => {
            catch_panic::drop(panic);
            resume_unwind(payload)
        }
    }
}

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope")
            .field("executor", &self.executor)
            .field("jobs", &self.raw.scope_ref().len())
            .field("options", &self.options)
            .finish()
    }
}
