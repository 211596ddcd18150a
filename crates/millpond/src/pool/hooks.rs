//! What a user hears of a pool's life: before and after each task, and at the end.

use crate::task::{About, Name, Priority, Task};
use crate::time::Deadline;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

/// Calls from a pool to its user. All of them do nothing unless they are written.
///
/// They run outside the pool's locks, on the worker that runs the task; [`terminated`] on whichever
/// thread ended the pool. A panic in one of them costs nothing but itself: not the worker, not the
/// count, not the task.
///
/// [`terminated`]: Hooks::terminated
///
/// ```
/// use millpond::executor::{ExecutorExt, Lifecycle};
/// use millpond::pool::{Ended, Hooks, TaskInfo, ThreadPool};
///
/// struct Log;
///
/// impl Hooks for Log {
///     fn after(&self, task: &TaskInfo, ended: Ended) {
///         println!("{} ended: {ended:?}", task.name().unwrap_or("a task"));
///     }
/// }
///
/// let pool = ThreadPool::builder("mill").hooks(Log).build()?;
/// pool.submit(|| 7)?.join()?;
/// pool.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Hooks: Send + Sync + 'static {
    /// A worker is about to run this task.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::pool::{Hooks, TaskInfo, ThreadPool};
    /// use std::sync::mpsc::{Sender, channel};
    ///
    /// struct Diary(Sender<&'static str>);
    ///
    /// impl Hooks for Diary {
    ///     fn before(&self, _task: &TaskInfo) {
    ///         self.0.send("before").unwrap();
    ///     }
    /// }
    ///
    /// let (tell, told) = channel();
    /// let pool = ThreadPool::builder("mill").hooks(Diary(tell.clone())).build()?;
    /// pool.run(move || tell.send("task").unwrap())?;
    /// pool.close()?;
    /// assert_eq!(told.try_iter().collect::<Vec<_>>(), ["before", "task"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "beforeExecute")]
    fn before(&self, _task: &TaskInfo) {}

    /// A worker has run this task.
    ///
    /// ```
    /// use millpond::executor::{ExecutorExt, Lifecycle};
    /// use millpond::pool::{Ended, Hooks, TaskInfo, ThreadPool};
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    ///
    /// #[derive(Default)]
    /// struct Broken(AtomicUsize);
    ///
    /// impl Hooks for Broken {
    ///     fn after(&self, _task: &TaskInfo, ended: Ended) {
    ///         self.0.fetch_add(usize::from(ended == Ended::Panicked), Ordering::Relaxed);
    ///     }
    /// }
    ///
    /// let broken = Arc::new(Broken::default());
    /// let pool = ThreadPool::builder("mill").hooks(Arc::clone(&broken)).build()?;
    /// pool.run(|| ())?;
    /// pool.run(|| panic!("the dam broke"))?;
    /// pool.close()?;
    /// assert_eq!(broken.0.load(Ordering::Relaxed), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "afterExecute")]
    fn after(&self, _task: &TaskInfo, _ended: Ended) {}

    /// The last task has ended and the last worker is gone. The pool is terminating; it is
    /// terminated when this returns.
    ///
    /// ```
    /// use millpond::executor::Lifecycle;
    /// use millpond::pool::{Hooks, ThreadPool};
    /// use std::sync::mpsc::{Sender, channel};
    ///
    /// struct Bell(Sender<&'static str>);
    ///
    /// impl Hooks for Bell {
    ///     fn terminated(&self) {
    ///         self.0.send("closing time").unwrap();
    ///     }
    /// }
    ///
    /// let (tell, told) = channel();
    /// let pool = ThreadPool::builder("mill").hooks(Bell(tell)).build()?;
    /// pool.close()?;
    /// assert_eq!(told.try_recv()?, "closing time");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn terminated(&self) {}
}

impl<H: Hooks + ?Sized> Hooks for Arc<H> {
    fn before(&self, task: &TaskInfo) {
        (**self).before(task);
    }

    fn after(&self, task: &TaskInfo, ended: Ended) {
        (**self).after(task, ended);
    }

    fn terminated(&self) {
        (**self).terminated();
    }
}

/// How a task ended that a worker has run.
///
/// ```
/// use millpond::executor::{ExecutorExt, Lifecycle};
/// use millpond::pool::{Ended, Hooks, TaskInfo, ThreadPool};
/// use std::sync::mpsc::{Sender, channel};
///
/// struct Tell(Sender<Ended>);
///
/// impl Hooks for Tell {
///     fn after(&self, _task: &TaskInfo, ended: Ended) {
///         self.0.send(ended).unwrap();
///     }
/// }
///
/// let (tell, told) = channel();
/// let pool = ThreadPool::builder("mill").max(1).hooks(Tell(tell)).build()?;
/// pool.run(|| ())?;
/// pool.run(|| panic!("the dam broke"))?;
/// pool.close()?;
/// assert_eq!(told.try_iter().collect::<Vec<_>>(), [Ended::Completed, Ended::Panicked]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Its body returned.
    Completed,
    /// Its body panicked. The payload is with its handle, or with the pool's panic hook.
    Panicked,
    /// There was nothing left to run: it was cancelled, or a waiter ran it, between the look at it
    /// and its start; or its deadline had passed, or it was shed.
    Gone,
}

/// What can be told of a task.
///
/// ```
/// use millpond::executor::ExecutorExt;
/// use millpond::pool::ThreadPool;
/// use millpond::task::TaskSpec;
/// use std::sync::mpsc::channel;
///
/// let pool = ThreadPool::builder("mill").max(1).build()?;
/// let (go, wait) = channel::<()>();
/// pool.run(move || for () in wait {})?;
/// let spec = TaskSpec::new().name("bread");
/// let bread = pool.submit_spec(spec, || "bread")?;
/// let waits = &pool.queued_tasks()[0];
/// assert_eq!((waits.name(), waits.is_gone()), (Some("bread"), false));
/// drop(go);
/// # bread.join()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct TaskInfo {
    name: Option<Name>,
    made_at: &'static Location<'static>,
    deadline: Deadline,
    priority: Priority,
    is_gone: bool,
}

impl TaskInfo {
    pub(super) fn of(task: &Task) -> Self {
        TaskInfo {
            name: task.shared_name(),
            made_at: task.made_at(),
            deadline: task.deadline(),
            priority: task.priority(),
            is_gone: task.is_gone(),
        }
    }

    /// Of a task that runs.
    pub(super) fn about(task: About<'_>) -> Self {
        TaskInfo {
            name: task.shared_name(),
            made_at: task.made_at(),
            deadline: task.deadline(),
            priority: task.priority(),
            is_gone: false,
        }
    }

    /// What it is called.
    ///
    /// ```
    /// use millpond::executor::ExecutorExt;
    /// use millpond::pool::ThreadPool;
    /// use millpond::task::TaskSpec;
    /// use std::sync::mpsc::channel;
    ///
    /// let pool = ThreadPool::builder("mill").max(1).build()?;
    /// let (go, wait) = channel::<()>();
    /// pool.run(move || for () in wait {})?;
    /// let bread = pool.submit_spec(TaskSpec::new().name("bread"), || ())?;
    /// let cake = pool.submit(|| ())?;
    /// let waiting = pool.queued_tasks();
    /// assert_eq!((waiting[0].name(), waiting[1].name()), (Some("bread"), None));
    /// drop(go);
    /// # (bread.join()?, cake.join()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn name(&self) -> Option<&str> {
        self.name.as_ref().map(Name::as_str)
    }

    /// Where it was made.
    ///
    /// ```
    /// use millpond::executor::ExecutorExt;
    /// use millpond::pool::ThreadPool;
    /// use std::sync::mpsc::channel;
    ///
    /// let pool = ThreadPool::builder("mill").max(1).build()?;
    /// let (go, wait) = channel::<()>();
    /// pool.run(move || for () in wait {})?;
    /// let line = line!() + 1;
    /// let bread = pool.submit(|| "bread")?;
    /// assert_eq!(pool.queued_tasks()[0].made_at().line(), line);
    /// drop(go);
    /// # bread.join()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn made_at(&self) -> &'static Location<'static> {
        self.made_at
    }

    /// Until when it must have started.
    ///
    /// ```
    /// use millpond::executor::{Executor, ExecutorExt};
    /// use millpond::pool::ThreadPool;
    /// use millpond::task::TaskSpec;
    /// use std::sync::mpsc::channel;
    /// use std::time::Duration;
    ///
    /// let pool = ThreadPool::builder("mill").max(1).build()?;
    /// let (go, wait) = channel::<()>();
    /// pool.run(move || for () in wait {})?;
    /// let noon = pool.clock().deadline(Duration::from_secs(3600));
    /// let bread = pool.submit_spec(TaskSpec::new().deadline(noon), || "bread")?;
    /// assert_eq!(pool.queued_tasks()[0].deadline(), noon);
    /// drop(go);
    /// # bread.join()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// How urgent it is.
    ///
    /// ```
    /// use millpond::executor::ExecutorExt;
    /// use millpond::pool::ThreadPool;
    /// use millpond::task::{Priority, TaskSpec};
    /// use std::sync::mpsc::channel;
    ///
    /// let pool = ThreadPool::builder("mill").max(1).build()?;
    /// let (go, wait) = channel::<()>();
    /// pool.run(move || for () in wait {})?;
    /// let bread = pool.submit_spec(TaskSpec::new().priority(Priority::High), || "bread")?;
    /// assert_eq!(pool.queued_tasks()[0].priority(), Priority::High);
    /// drop(go);
    /// # bread.join()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// Whether there is nothing left to run, because it was cancelled.
    ///
    /// ```
    /// use millpond::executor::ExecutorExt;
    /// use millpond::pool::ThreadPool;
    /// use std::sync::mpsc::channel;
    ///
    /// let pool = ThreadPool::builder("mill").max(1).build()?;
    /// let (go, wait) = channel::<()>();
    /// pool.run(move || for () in wait {})?;
    /// let bread = pool.submit(|| "bread")?;
    /// bread.cancel();
    /// assert!(pool.queued_tasks()[0].is_gone());
    /// drop(go);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_gone(&self) -> bool {
        self.is_gone
    }
}

impl fmt::Debug for TaskInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskInfo")
            .field("name", &self.name())
            .field("made_at", &format_args!("{}", self.made_at))
            .field("is_gone", &self.is_gone)
            .finish_non_exhaustive()
    }
}
