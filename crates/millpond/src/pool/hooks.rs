//! Callbacks of a pool: before and after each task, and at the end.

use crate::executor::TaskOutcome;
use crate::task::{Name, Priority, Task, TaskView};
use crate::time::Deadline;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

/// Callbacks of a pool. All of them do nothing unless they are implemented.
///
/// They run outside the pool's locks, on the worker that runs the task; [`terminated`] on the thread that ended the pool.
/// A panic in one of them is contained: it costs neither the worker nor the count nor the task.
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
    /// pool.execute(move || tell.send("task").unwrap())?;
    /// pool.close()?;
    /// assert_eq!(told.try_iter().collect::<Vec<_>>(), ["before", "task"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "beforeExecute")]
    fn before(&self, _task: &TaskInfo) {}

    /// A worker has run this task, and this is how it ended. A panic is passed in any case, whether the task has a handle
    /// or not.
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
    ///         self.0.fetch_add(usize::from(ended.is_panicked()), Ordering::Relaxed);
    ///     }
    /// }
    ///
    /// let broken = Arc::new(Broken::default());
    /// let pool = ThreadPool::builder("mill").hooks(Arc::clone(&broken)).build()?;
    /// pool.execute(|| ())?;
    /// pool.execute(|| panic!("the dam broke"))?;
    /// pool.close()?;
    /// assert_eq!(broken.0.load(Ordering::Relaxed), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "afterExecute")]
    fn after(&self, _task: &TaskInfo, _ended: Ended) {}

    /// The last task has ended and the last worker has exited. The pool is terminating; it is terminated when this returns.
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
/// pool.execute(|| ())?;
/// let broken = pool.submit(|| -> u32 { panic!("the dam broke") })?;
/// pool.close()?;
/// assert_eq!(told.recv()?, Ended::Completed);
/// // The handle has the payload; the hook gets its text.
/// assert_eq!(told.recv()?.panic_message(), Some("the dam broke"));
/// assert!(broken.join().unwrap_err().is_panicked());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// Its body returned.
    Completed,
    /// Its body panicked. Its handle has the payload, or the pool's panic hook.
    Panicked {
        /// The text of the panic, if the payload is one, as that of `panic!("...")` is.
        message: Option<String>,
    },
    /// Its body returned, and it had been cancelled while it ran: the result is dropped.
    Cancelled,
    /// There was nothing left to run: it was cancelled, or a joiner ran it, just before it started; or its deadline had
    /// passed, or it was shed.
    Gone,
}

impl Ended {
    /// From its outcome, with the text of its panic.
    pub(super) fn of(outcome: TaskOutcome, message: Option<String>) -> Self {
        match outcome {
            TaskOutcome::Completed => Ended::Completed,
            TaskOutcome::Panicked => Ended::Panicked { message },
            TaskOutcome::Unwanted => Ended::Cancelled,
            TaskOutcome::Cancelled
            | TaskOutcome::Expired
            | TaskOutcome::TooLate
            | TaskOutcome::Shed
            | TaskOutcome::RanElsewhere
            | TaskOutcome::RanByOwnWorker => Ended::Gone,
        }
    }

    /// True if its body panicked.
    ///
    /// ```
    /// use millpond::pool::Ended;
    ///
    /// assert!(Ended::Panicked { message: None }.is_panicked());
    /// assert!(!Ended::Completed.is_panicked());
    /// ```
    pub fn is_panicked(&self) -> bool {
        matches!(self, Ended::Panicked { .. })
    }

    /// The text of its panic, if it panicked with a text.
    ///
    /// ```
    /// use millpond::pool::Ended;
    ///
    /// let message = Some("the dam broke".to_owned());
    /// assert_eq!(Ended::Panicked { message }.panic_message(), Some("the dam broke"));
    /// assert_eq!(Ended::Completed.panic_message(), None);
    /// ```
    pub fn panic_message(&self) -> Option<&str> {
        match self {
            Ended::Panicked { message } => message.as_deref(),
            _ => None,
        }
    }
}

/// A description of a task.
///
/// ```
/// use millpond::executor::ExecutorExt;
/// use millpond::pool::ThreadPool;
/// use millpond::task::TaskSpec;
/// use std::sync::mpsc::channel;
///
/// let pool = ThreadPool::builder("mill").max(1).build()?;
/// let (go, wait) = channel::<()>();
/// pool.execute(move || for () in wait {})?;
/// let spec = TaskSpec::new().name("bread");
/// let bread = pool.submit_with(spec, || "bread")?;
/// let waits = &pool.queued_tasks()[0];
/// assert_eq!((waits.name(), waits.is_gone()), (Some("bread"), false));
/// drop(go);
/// # bread.join()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct TaskInfo {
    name: Option<Name>,
    location: &'static Location<'static>,
    deadline: Deadline,
    priority: Priority,
    is_gone: bool,
}

impl TaskInfo {
    pub(super) fn of(task: &Task) -> Self {
        TaskInfo {
            name: task.shared_name(),
            location: task.location(),
            deadline: task.deadline(),
            priority: task.priority(),
            is_gone: task.is_gone(),
        }
    }

    /// Describes a task that runs.
    pub(super) fn about(task: TaskView<'_>) -> Self {
        TaskInfo {
            name: task.shared_name(),
            location: task.location(),
            deadline: task.deadline(),
            priority: task.priority(),
            is_gone: false,
        }
    }

    /// The name of the task.
    ///
    /// ```
    /// use millpond::executor::ExecutorExt;
    /// use millpond::pool::ThreadPool;
    /// use millpond::task::TaskSpec;
    /// use std::sync::mpsc::channel;
    ///
    /// let pool = ThreadPool::builder("mill").max(1).build()?;
    /// let (go, wait) = channel::<()>();
    /// pool.execute(move || for () in wait {})?;
    /// let bread = pool.submit_with(TaskSpec::new().name("bread"), || ())?;
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

    /// The source location where it was made.
    ///
    /// ```
    /// use millpond::executor::ExecutorExt;
    /// use millpond::pool::ThreadPool;
    /// use std::sync::mpsc::channel;
    ///
    /// let pool = ThreadPool::builder("mill").max(1).build()?;
    /// let (go, wait) = channel::<()>();
    /// pool.execute(move || for () in wait {})?;
    /// let line = line!() + 1;
    /// let bread = pool.submit(|| "bread")?;
    /// assert_eq!(pool.queued_tasks()[0].location().line(), line);
    /// drop(go);
    /// # bread.join()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn location(&self) -> &'static Location<'static> {
        self.location
    }

    /// The deadline by which it must have started.
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
    /// pool.execute(move || for () in wait {})?;
    /// let noon = pool.clock().deadline(Duration::from_secs(3600));
    /// let bread = pool.submit_with(TaskSpec::new().deadline(noon), || "bread")?;
    /// assert_eq!(pool.queued_tasks()[0].deadline(), noon);
    /// drop(go);
    /// # bread.join()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// The priority of the task.
    ///
    /// ```
    /// use millpond::executor::ExecutorExt;
    /// use millpond::pool::ThreadPool;
    /// use millpond::task::{Priority, TaskSpec};
    /// use std::sync::mpsc::channel;
    ///
    /// let pool = ThreadPool::builder("mill").max(1).build()?;
    /// let (go, wait) = channel::<()>();
    /// pool.execute(move || for () in wait {})?;
    /// let bread = pool.submit_with(TaskSpec::new().priority(Priority::High), || "bread")?;
    /// assert_eq!(pool.queued_tasks()[0].priority(), Priority::High);
    /// drop(go);
    /// # bread.join()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// True if there is nothing left to run, because it was cancelled.
    ///
    /// ```
    /// use millpond::executor::ExecutorExt;
    /// use millpond::pool::ThreadPool;
    /// use std::sync::mpsc::channel;
    ///
    /// let pool = ThreadPool::builder("mill").max(1).build()?;
    /// let (go, wait) = channel::<()>();
    /// pool.execute(move || for () in wait {})?;
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
            .field("location", &format_args!("{}", self.location))
            .field("is_gone", &self.is_gone)
            .finish_non_exhaustive()
    }
}
