//! Recursive tasks, for those who come from Java.

use super::ForkJoinPool;
use super::context::Context;
use super::parallel::{join, run_inside};
use crate::task::{TaskHandle, TaskSpec};
use std::sync::Arc;

/// A computation that divides itself. A class that extends `RecursiveTask` in Java is a type that implements this trait; for
/// `RecursiveAction` it has `type Output = ()`.
///
/// | Java | here |
/// |---|---|
/// | `pool.invoke(task)` | `pool.install(\|\| task.compute())` |
/// | `task.invoke()` | [`task.invoke()`](RecursiveTask::invoke) |
/// | `invokeAll(left, right)` | [`Sum::invoke_all([left, right])`](RecursiveTask::invoke_all) |
/// | `invokeAll(list)` | [`Sum::invoke_all_vec(list)`](RecursiveTask::invoke_all_vec) |
/// | `left.fork()`; `right.compute()`; `left.join()` | [`let left = left.fork()`](RecursiveTask::fork); `right.compute()`; `left.join()?` |
/// | `task.get(timeout)`, `task.cancel(true)` | [`TaskHandle::join_timeout`], [`TaskHandle::interrupt`] of what `fork` returns |
///
/// A task is a plain value until it is forked, and running it consumes it. Its result is what `compute` returns. So there is
/// nothing to reinitialize, and no raw result to set.
///
/// Tasks of `invoke_all` may borrow, and cost a few nanoseconds each if they are not stolen. A forked task must own what it
/// uses. It is allocated, and has a [handle](crate::task) like any other task. Prefer `invoke_all`.
///
/// ```
/// use millpond::forkjoin::{ForkJoinPool, RecursiveTask};
///
/// struct Sum<'a>(&'a [u64]);
///
/// impl RecursiveTask for Sum<'_> {
///     type Output = u64;
///
///     fn compute(self) -> u64 {
///         if self.0.len() <= 10_000 {
///             return self.0.iter().sum();
///         }
///         let (left, right) = self.0.split_at(self.0.len() / 2);
///         let [left, right] = Self::invoke_all([Sum(left), Sum(right)]);
///         left + right
///     }
/// }
///
/// let all: Vec<u64> = (1..=100_000).collect();
/// assert_eq!(Sum(&all).invoke(), 5_000_050_000);
/// let pool = ForkJoinPool::builder("mill").parallelism(2).build()?;
/// assert_eq!(pool.install(|| Sum(&all).compute()), 5_000_050_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "RecursiveAction")]
#[doc(alias = "ForkJoinTask")]
pub trait RecursiveTask: Sized + Send {
    /// The type of its result.
    type Output: Send;

    /// Computes the result, either directly or by dividing the task and combining the results of its parts.
    fn compute(self) -> Self::Output;

    /// Runs `compute` at once: on a worker in its pool, on any other thread in [`ForkJoinPool::common`].
    ///
    /// # Panics
    ///
    /// If `compute` panics.
    fn invoke(self) -> Self::Output {
        run_inside(|| self.compute())
    }

    /// Computes all tasks, perhaps at the same time, and returns their results in order.
    ///
    /// # Panics
    ///
    /// If one of the tasks panics, as soon as the others have ended or will never begin.
    ///
    /// ```
    /// use millpond::forkjoin::RecursiveTask;
    ///
    /// /// An action, in Java's words: it has no result.
    /// struct Grind<'a>(&'a mut [u32]);
    ///
    /// impl RecursiveTask for Grind<'_> {
    ///     type Output = ();
    ///
    ///     fn compute(self) {
    ///         match self.0 {
    ///             [] => (),
    ///             [grain] => *grain *= 10,
    ///             sack => {
    ///                 let (left, right) = sack.split_at_mut(sack.len() / 2);
    ///                 Self::invoke_all([Grind(left), Grind(right)]);
    ///             }
    ///         }
    ///     }
    /// }
    ///
    /// let mut sack = vec![1, 2, 3];
    /// Grind(&mut sack).invoke();
    /// assert_eq!(sack, [10, 20, 30]);
    /// ```
    #[doc(alias = "invokeAll")]
    fn invoke_all<const N: usize>(tasks: [Self; N]) -> [Self::Output; N] {
        let mut tasks = tasks.map(Some);
        let mut results = [const { None }; N];
        run_inside(|| compute_all(&mut tasks, &mut results));
        results.map(|result| result.expect(EACH_HAS_RUN))
    }

    /// [`invoke_all`](RecursiveTask::invoke_all) for any number of tasks.
    ///
    /// # Panics
    ///
    /// If one of the tasks panics, as soon as the others have ended or will never begin.
    ///
    /// ```
    /// use millpond::forkjoin::RecursiveTask;
    ///
    /// struct Leaves(u32);
    ///
    /// impl RecursiveTask for Leaves {
    ///     type Output = u32;
    ///
    ///     fn compute(self) -> u32 {
    ///         match self.0 {
    ///             0 => 1,
    ///             depth => Self::invoke_all_vec((0..3).map(|_| Leaves(depth - 1)).collect()).iter().sum(),
    ///         }
    ///     }
    /// }
    /// assert_eq!(Leaves(4).invoke(), 81);
    /// ```
    #[doc(alias = "invokeAll")]
    fn invoke_all_vec(tasks: Vec<Self>) -> Vec<Self::Output> {
        let mut tasks: Vec<_> = tasks.into_iter().map(Some).collect();
        let mut results: Vec<_> = tasks.iter().map(|_| None).collect();
        run_inside(|| compute_all(&mut tasks, &mut results));
        let results = results.into_iter();
        results.map(|result| result.expect(EACH_HAS_RUN)).collect()
    }

    /// Submits the task to the pool of the calling worker, or else to [`ForkJoinPool::common`], and returns its handle.
    ///
    /// A worker that joins the task runs it itself, unless another one has begun to. If the pool was shut down, or no thread can be
    /// started, it runs before `fork` returns.
    ///
    /// ```
    /// use millpond::forkjoin::RecursiveTask;
    /// use millpond::task::TaskError;
    ///
    /// struct Fib(u32);
    ///
    /// impl RecursiveTask for Fib {
    ///     type Output = Result<u32, TaskError>;
    ///
    ///     fn compute(self) -> Self::Output {
    ///         if self.0 < 2 {
    ///             return Ok(self.0);
    ///         }
    ///         let left = Fib(self.0 - 1).fork();
    ///         let right = Fib(self.0 - 2).compute()?;
    ///         Ok(left.join()?? + right)
    ///     }
    /// }
    /// assert_eq!(Fib(10).invoke()?, 55);
    /// # Ok::<(), TaskError>(())
    /// ```
    #[must_use = "the result is lost without its handle"]
    #[track_caller]
    fn fork(self) -> TaskHandle<Self::Output>
    where
        Self: 'static,
    {
        let engine = Context::with_current(|here| here.map(|here| Arc::clone(&here.engine)));
        let engine = engine.unwrap_or_else(|| Arc::clone(&ForkJoinPool::common().engine));
        let spec = TaskSpec::new().clock_by_default(engine.clock.clone());
        let (task, handle) = spec.build(|| self.compute());
        if engine.is_forked() {
            task.run();
        } else if let Err(rejected) = engine.submit(task) {
            rejected.task.run();
        }
        handle
    }
}

const EACH_HAS_RUN: &str = "a join returns when both of its sides have run";

fn compute_all<T: RecursiveTask>(tasks: &mut [Option<T>], results: &mut [Option<T::Output>]) {
    match (tasks, results) {
        ([task], [result]) => *result = task.take().map(T::compute),
        (tasks, results) if tasks.len() > 1 => {
            let half = tasks.len() / 2;
            let (tasks, others) = tasks.split_at_mut(half);
            let (results, other_results) = results.split_at_mut(half);
            let right = || compute_all(others, other_results);
            join(|| compute_all(tasks, results), right);
        }
        _ => (),
    }
}
