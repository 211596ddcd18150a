//! Scopes: tasks that borrow, on any executor.
//!
//! The closure of a scope's task, its *job*, is never given to the executor: that gets a task that
//! knows the way to it. So an executor may run it late, hand it back from `shutdown_now`, show it to a
//! rejection policy or leak it, and nothing that is borrowed goes with it. The ground is
//! [`millpond_raw::scope`]; here is what a scope does with it.
//!
//! # How a scope ends
//!
//! 1. Jobs that nobody has started are run by the owner, in their order. So a scope inside a worker
//!    of its own pool cannot wait for a worker that there is not, and what an executor loses is done
//!    all the same.
//! 2. Those that run elsewhere are waited for. What they bring meanwhile goes to step 1.
//! 3. Values that nobody took are dropped. If their destructors bring jobs, it begins again.
//! 4. A panic goes on: the closure's own, else the first one that no handle has reported.
//!
//! An executor that promises when a task runs ([`Executor::may_run_in_place`]) is waited for in step
//! 1 as well, except for what it has dropped.
//!
//! # Interrupts
//!
//! A job runs under the token of its task, wherever it runs: the executor's `shutdown_now` reaches
//! it as it reaches any task, and so does its handle. When the scope's caller is interrupted while the
//! scope ends, all that is left is interrupted; the scope still waits, and the caller's token stays
//! set.

mod errand;
mod handle;

pub use handle::ScopedHandle;

use super::error::{RejectReason, Rejected};
use super::traits::Executor;
use crate::interrupt;
use crate::task::{Listed, TaskSpec};
use errand::{Bell, Errand, Messenger};
use millpond_raw::park::Site;
use millpond_raw::quiet;
use millpond_raw::scope::{self as raw, Reading, Refused};
use millpond_raw::user_code::{self, Kind};
use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::task::Waker;

/// Brings tasks that may borrow what lives longer than the scope: see
/// [`ExecutorExt::scope`](super::ExecutorExt::scope).
///
/// `'scope` is the life of the scope, `'env` that of what its tasks may borrow. A task may bring
/// further tasks.
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
///     s.run(|| println!("{}", grain.len())).unwrap();
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
///     s.run(|| println!("{grain}")).unwrap();
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
/// DirectExecutor::new().scope(|s| s.run(|| println!("{grain}")).unwrap());
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
    raw: raw::Scope<'scope, Errand>,
    executor: &'scope (dyn Executor + 'scope),
    options: ScopeOptions,
    /// Invariant, as `'scope` is.
    _env: PhantomData<&'env mut &'env ()>,
}

/// What a scope does besides waiting.
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
///         s.run(|| interrupt::sleep(Duration::from_secs(3600))).unwrap();
///         s.run(|| panic!("the dam broke")).unwrap();
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

    /// A scope that cancels the rest as soon as something fails: as soon as a task panics, whether
    /// somebody joins it or not, or the scope's own closure does. See
    /// [`Scope::cancel_rest`].
    pub fn cancel_on_failure(mut self) -> Self {
        self.cancel_on_failure = true;
        self
    }
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// Runs the closure as a task of the scope, and returns the handle to what it will return.
    ///
    /// # Errors
    ///
    /// The closure, if the executor refuses it or the scope has been
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
        self.submit_spec(TaskSpec::new(), f)
    }

    /// As [`submit`](Scope::submit), as the task that is described: with a name, a deadline, a clock.
    ///
    /// # Errors
    ///
    /// As [`submit`](Scope::submit).
    pub fn submit_spec<F, T>(
        &'scope self,
        spec: TaskSpec,
        f: F,
    ) -> Result<ScopedHandle<'scope, T>, Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        let job = self.bring(spec, f)?;
        Ok(ScopedHandle::new(job.handle(), self.executor))
    }

    /// Runs the closure as a task of the scope that nobody joins. What it returns is dropped. If it
    /// panics, the scope does, at its end. It does not inherit the deadline of the task around the scope.
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
    ///         s.run(|| *sack *= 10)?;
    ///     }
    ///     Ok::<_, ScopeError>(())
    /// })?;
    /// assert_eq!(sacks, [10, 20, 30]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn run<F, T>(&'scope self, f: F) -> Result<(), Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        // Nobody would hear that it was dropped at the deadline of the task around the scope.
        let spec = TaskSpec::new().without_inherited_deadline();
        self.bring(spec, f)?.detach();
        Ok(())
    }

    fn bring<F, T>(
        &'scope self,
        spec: TaskSpec,
        f: F,
    ) -> Result<raw::Fresh<F, T, Errand>, Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        let job = match self.raw.job(f) {
            Ok(job) => job,
            Err(Refused(f)) => return Err(Rejected::new(f, RejectReason::Cancelled)),
        };
        let cancel_on_failure = self.options.cancel_on_failure;
        let messenger = Messenger::new(job.stub(), cancel_on_failure);
        let spec = spec.clock_by_default(self.executor.clock());
        let (task, handle) = spec.build(move || messenger.run());
        job.bring(Errand {
            task: handle.shared(),
            cancel_on_failure,
        });
        user_code::check(Kind::Executor);
        match self.executor.execute(task) {
            Ok(()) => Ok(job),
            // The task that comes back, if it is that one, finds nothing to do any more.
            Err(Rejected { task, reason, .. }) => {
                let reclaimed = job.reclaim();
                quiet::drop(task);
                match reclaimed {
                    Ok(f) => Err(Rejected::new(f, reason)),
                    // Somebody who waits has run it, or it was cancelled: it is taken care of.
                    Err(job) => Ok(job),
                }
            }
        }
    }

    /// Cancels what is left of the scope, for an early exit: tasks that have not started never will,
    /// those that run are interrupted, and no more are taken. The task that calls this is not one of
    /// the rest.
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
    ///         s.run(|| {
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
        errand::stop_the_rest(self.raw.remote());
    }

    /// Whether no more tasks are taken, because the rest was cancelled: by
    /// [`cancel_rest`](Scope::cancel_rest), by a failure, or by an interrupt of the scope's caller.
    pub fn is_cancelled(&self) -> bool {
        self.raw.remote().is_stopped()
    }

    /// The end of the scope, in the steps of the header.
    fn settle(&'scope self) {
        let (scope, jobs) = (&self.raw, self.raw.remote());
        if jobs.is_empty() {
            return;
        }
        let site = Site::new("scope.end").on(jobs);
        let bell = || Waker::from(Arc::new(Bell(jobs.clone())));
        interrupt::forwarded(bell, || {
            let may_run = self.executor.may_run_in_place();
            let mine = match may_run {
                true => Reading::is_unstarted,
                false => Reading::is_stray,
            };
            let mut ended = 0;
            loop {
                let seen = if may_run { jobs.brought() } else { u64::MAX };
                let mut next = ended;
                while let Some(job) = jobs.find(next, mine) {
                    next = job.number() + 1;
                    errand::run_in_place(&job);
                }
                match jobs.find(ended, |state| !state.is_ended()) {
                    Some(job) => {
                        ended = job.number();
                        let awaited = errand::awaited(&job, Reading::is_ended);
                        let _listed = awaited.map(|one| Listed::enter_for_good(|| one));
                        scope.wait(&job, seen, site);
                    }
                    None if scope.sweep() => {}
                    None => return,
                }
            }
        });
    }
}

/// Runs `f` with a scope of the executor, and waits for all that it brings. `failed` judges what it
/// returns.
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
            errand::stop_the_rest(scope.raw.remote());
        }
        scope.settle();
        result
    });
    match (result, scope.raw.take_panic()) {
        (Ok(value), None) => value,
        (Ok(value), Some(panic)) => {
            quiet::drop(value);
            panic.resume()
        }
        (Err(payload), panic) => {
            quiet::drop(panic);
            resume_unwind(payload)
        }
    }
}

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope")
            .field("executor", &self.executor)
            .field("jobs", &self.raw.remote().len())
            .field("options", &self.options)
            .finish()
    }
}
