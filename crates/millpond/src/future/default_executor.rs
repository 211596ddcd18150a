//! The executor of asynchronous stages that were not given one.

use crate::executor::{Executor, Internals, Rejected, ThreadPerTask, TryExecuteError};
use crate::forkjoin::ForkJoinPool;
use crate::task::Task;
use crate::time::Deadline;
use millpond_raw::once_box::OnceBox;
use millpond_raw::sync::global;

/// The executor of asynchronous stages that were not given one: the common fork-join pool; or, if that has a single
/// worker, a thread per task, because a stage that blocks would hold up all others.
///
/// ```
/// use millpond::executor::ExecutorExt;
/// use millpond::future::DefaultExecutor;
///
/// assert_eq!(DefaultExecutor.submit(|| 6 * 7)?.join()?, 42);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "defaultExecutor")]
#[doc(alias = "asyncPool")]
#[derive(Clone, Copy, Debug, Default)]
pub struct DefaultExecutor;

/// More threads than any machine has room for.
const MAX_THREADS: usize = 32_767;

global! {
    static THREADS: OnceBox<ThreadPerTask> = OnceBox::new();
}

fn threads() -> &'static ThreadPerTask {
    THREADS.get_or_init(|| {
        let threads = ThreadPerTask::builder("completable", MAX_THREADS).build();
        threads.expect("the number is in range")
    })
}

impl DefaultExecutor {
    fn with<R>(self, pool: impl FnOnce(&dyn Executor) -> R) -> R {
        let common = ForkJoinPool::common();
        if common.parallelism() > 1 {
            pool(common)
        } else {
            pool(threads())
        }
    }
}

impl Executor for DefaultExecutor {
    fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        self.with(|pool| pool.execute_task(task))
    }

    fn execute_task_until(&self, task: Task, deadline: Deadline) -> Result<(), Rejected<Task>> {
        self.with(|pool| pool.execute_task_until(task, deadline))
    }

    fn try_execute_task(&self, task: Task) -> Result<(), TryExecuteError> {
        self.with(|pool| pool.try_execute_task(task))
    }

    fn on_worker_thread(&self) -> bool {
        self.with(|pool| pool.on_worker_thread())
    }

    fn internals(&self) -> Internals<'_> {
        let common = ForkJoinPool::common();
        if common.parallelism() > 1 {
            common.internals()
        } else {
            threads().internals()
        }
    }
}
