//! Thread factories: how the threads of an engine are started, and what they are called.
//!
//! Every engine starts its threads through a [`ThreadFactory`] and through nothing else. Take [`Threads`] for a name and a
//! stack size; pin them to CPUs with [`Threads::pinned`]; implement the trait to set priorities, to count threads, or to have a test in which the
//! operating system refuses one: starting a thread *may fail*.
//!
//! ```
//! use millpond::executor::ExecutorExt;
//! use millpond::pool::ThreadPool;
//! use millpond::thread::Threads;
//!
//! let threads = Threads::named("grinder").stack_size(256 * 1024);
//! let pool = ThreadPool::builder("mill").threads(threads).build()?;
//! let name = pool.submit(|| std::thread::current().name().map(str::to_owned))?;
//! assert_eq!(name.join()?.as_deref(), Some("grinder-1"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// The Threads seam.
//
// | file | what |
// |---|---|
// | `contention` | whether a thread that yields gets its CPU back soon |
// | `on_demand` | a thread that is started when there is something to do |
// | `pinning` | on which CPUs the threads of a factory run |
// | `run_queue` | how many threads of the machine want a CPU |

pub(crate) mod contention;
pub(crate) mod on_demand;
mod pinning;
mod run_queue;

use millpond_raw::sync::atomic::{AtomicU64, Ordering};
use millpond_raw::sync::thread;
use pinning::Pinning;
use std::borrow::Cow;
use std::fmt;
use std::io;
use std::sync::Arc;

pub use millpond_raw::sync::thread::JoinHandle;

/// What a new thread runs.
pub type Body = Box<dyn FnOnce() + Send + 'static>;

/// Starts threads.
///
/// ```
/// use millpond::thread::{Body, JoinHandle, ThreadFactory, Threads};
///
/// /// Refuses every thread, as an operating system does that has run out of them.
/// #[derive(Debug)]
/// struct Exhausted;
///
/// impl ThreadFactory for Exhausted {
///     fn start(&self, _body: Body) -> std::io::Result<JoinHandle<()>> {
///         Err(std::io::ErrorKind::WouldBlock.into())
///     }
/// }
///
/// assert!(Exhausted.start(Box::new(|| unreachable!())).is_err());
/// assert!(Threads::named("mill").start(Box::new(|| ())).is_ok());
/// ```
#[doc(alias = "java.util.concurrent.ThreadFactory")]
pub trait ThreadFactory: fmt::Debug + Send + Sync + 'static {
    /// Starts a thread that runs `body`. It should not block: a submitter waits for it, and so does a scheduled pool,
    /// whose other tasks are late meanwhile.
    ///
    /// # Errors
    ///
    /// The error of the operating system, or of the factory. The body is dropped then: a caller that must not
    /// lose it keeps it elsewhere until the thread has started.
    fn start(&self, body: Body) -> io::Result<JoinHandle<()>>;

    /// Itself, to be shared. What is shared already stays the very one that it is.
    #[doc(hidden)]
    fn into_shared(self) -> Arc<dyn ThreadFactory>
    where
        Self: Sized,
    {
        Arc::new(self)
    }
}

impl<F: ThreadFactory> ThreadFactory for Arc<F> {
    fn start(&self, body: Body) -> io::Result<JoinHandle<()>> {
        (**self).start(body)
    }

    fn into_shared(self) -> Arc<dyn ThreadFactory> {
        self
    }
}

impl ThreadFactory for Arc<dyn ThreadFactory> {
    fn start(&self, body: Body) -> io::Result<JoinHandle<()>> {
        (**self).start(body)
    }

    fn into_shared(self) -> Arc<dyn ThreadFactory> {
        self
    }
}

/// The factory that does what it says: threads `mill-1`, `mill-2` and so on.
///
/// ```
/// use millpond::thread::{ThreadFactory, Threads};
/// use std::sync::mpsc;
///
/// let threads = Threads::named("mill").stack_size(256 * 1024);
/// let (send, names) = mpsc::channel();
/// let first = send.clone();
/// let one = threads.start(Box::new(move || {
///     first.send(std::thread::current().name().map(str::to_owned)).unwrap();
/// }))?;
/// assert_eq!(names.recv()?.as_deref(), Some("mill-1"));
/// # one.join().unwrap();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Threads {
    prefix: Cow<'static, str>,
    stack_size: Option<usize>,
    pinning: Pinning,
    started: AtomicU64,
}

impl Threads {
    /// Threads called `prefix-1`, `prefix-2`, ...
    ///
    /// ```
    /// use millpond::thread::{ThreadFactory, Threads};
    ///
    /// let threads = Threads::named("mill");
    /// let name = || assert_eq!(std::thread::current().name(), Some("mill-1"));
    /// threads.start(Box::new(name))?.join().unwrap();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn named(prefix: impl Into<Cow<'static, str>>) -> Self {
        Threads {
            prefix: prefix.into(),
            stack_size: None,
            pinning: Pinning::Anywhere,
            started: AtomicU64::new(0),
        }
    }

    /// The size of their stacks in bytes. Left alone it is std's: 2 MiB, or `RUST_MIN_STACK`.
    ///
    /// ```
    /// use millpond::thread::{ThreadFactory, Threads};
    ///
    /// let threads = Threads::named("mill").stack_size(8 << 20);
    /// threads.start(Box::new(|| drop(std::hint::black_box([0_u8; 3 << 20]))))?.join().unwrap();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.stack_size = Some(bytes);
        self
    }

    /// Each thread runs on one of these CPUs only: on the one that has the fewest of this factory's threads.
    ///
    /// Threads that tasks start inherit the CPU. A CPU that does not exist, or that this process may not use, makes the
    /// start fail, as does any pinning elsewhere than on Linux.
    ///
    /// ```
    /// use millpond::machine::Machine;
    /// use millpond::thread::{ThreadFactory, Threads};
    ///
    /// let cpus = Machine::read().allowed.unwrap_or_default();
    /// let threads = Threads::named("mill").pinned(cpus.iter());
    /// if let Ok(thread) = threads.start(Box::new(|| println!("on the first of them"))) {
    ///     thread.join().unwrap();
    /// }
    /// let error = Threads::named("mill").pinned([60_000]).start(Box::new(|| ())).unwrap_err();
    /// assert!(error.to_string().starts_with("a thread cannot be pinned to CPU 60000"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn pinned(mut self, cpus: impl IntoIterator<Item = u32>) -> Self {
        self.pinning = Pinning::one_of_each(cpus);
        self
    }

    /// All threads run on these CPUs only, on any of them: those of a node, say.
    ///
    /// Otherwise as [`pinned`](Threads::pinned).
    ///
    /// ```
    /// use millpond::machine::Topology;
    /// use millpond::thread::Threads;
    ///
    /// for node in Topology::read().nodes() {
    ///     let threads = Threads::named("mill").confined(node.iter());
    /// #   drop(threads);
    /// }
    /// ```
    #[must_use]
    pub fn confined(mut self, cpus: impl IntoIterator<Item = u32>) -> Self {
        self.pinning = Pinning::Any(cpus.into_iter().collect());
        self
    }

    /// The number of threads it was asked to start, failed starts included.
    ///
    /// ```
    /// use millpond::thread::{ThreadFactory, Threads};
    ///
    /// let threads = Threads::named("mill");
    /// assert_eq!(threads.spawn_attempts(), 0);
    /// threads.start(Box::new(|| ()))?.join().unwrap();
    /// assert_eq!(threads.spawn_attempts(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn spawn_attempts(&self) -> u64 {
        self.started.load(Ordering::Relaxed)
    }
}

/// Whether threads can be pinned to CPUs on this system.
pub(crate) fn can_pin() -> bool {
    millpond_raw::affinity::current_cpus().is_ok()
}

impl ThreadFactory for Threads {
    fn start(&self, body: Body) -> io::Result<JoinHandle<()>> {
        let number = self.started.fetch_add(1, Ordering::Relaxed) + 1;
        let name = Some(format!("{}-{number}", self.prefix));
        self.pinning
            .start(body, |body| thread::start(name, self.stack_size, body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_no_thread_can_have_is_an_error_that_says_why() {
        let error = Threads::named("a\0b")
            .start(Box::new(|| ()))
            .expect_err("the start fails");
        assert_eq!(
            error.to_string(),
            "thread name \"a\\0b-1\" contains a zero byte: leave it out"
        );
    }

    #[test]
    fn a_stack_that_cannot_be_had_is_an_error_and_not_a_panic() {
        let threads = Threads::named("huge").stack_size(1 << 60);
        assert!(threads.start(Box::new(|| ())).is_err());
        assert_eq!(threads.spawn_attempts(), 1);
    }
}
