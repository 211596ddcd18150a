//! Stack dumps of running threads, by function and line, without stopping the process.
//!
//! ```
//! use millpond_stack::{CaptureError, DEFAULT_TIMEOUT, ThreadRef, capture};
//! use std::sync::mpsc;
//!
//! let (sender, receiver) = mpsc::channel();
//! let (quit, wait) = mpsc::channel::<()>();
//! let thread = std::thread::spawn(move || {
//!     sender.send(ThreadRef::current()).unwrap();
//!     let _ = wait.recv();
//! });
//! let target = receiver.recv()?;
//! match &capture(&[target], DEFAULT_TIMEOUT)[0] {
//!     Ok(stack) => println!("{stack}"),
//!     // Another platform, or a machine too busy to answer in time.
//!     Err(error) => println!("{error}"),
//! }
//! drop(quit);
//! thread.join().unwrap();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A thread makes a [`ThreadRef`] to itself. Any thread that holds it can [`capture`] the stack of that
//! thread at any time, whether it computes, waits or sleeps in a system call. The workers of a `millpond`
//! pool have one from their start if the feature `stack-dump` of `millpond` is on: `ThreadPool::stacks`,
//! warnings of long runs and reports of rejections then show stacks.
//!
//! # How it works
//!
//! A signal (SIGURG) interrupts the target thread for some microseconds. The signal handler copies the
//! registers and at most 64 KiB of the stack into preallocated memory; it does not allocate and takes no
//! lock. The protocol is described in `millpond_raw::stack`. The rest happens in the calling thread: the
//! copied stack is unwound by the tables that the compiler generates for panics, so code without frame
//! pointers is unwound, too; then addresses are resolved to functions and lines by the symbols and line
//! tables of the program. `profile.release.debug = "line-tables-only"` is enough for lines; without it
//! there are functions only.
//!
//! [`snapshot`] does the first half alone, which takes microseconds, and [`Symbolizer::resolve`] the
//! second, which takes milliseconds and may run later, on another thread.
//!
//! # What it costs
//!
//! | where | what |
//! |---|---|
//! | [`ThreadRef::current`] | some microseconds, once per thread |
//! | a thread with a `ThreadRef` that is not captured | nothing |
//! | a thread that is captured | one signal and the copy; a call such as `poll` or `epoll_wait`, which the kernel never restarts after a signal, returns `EINTR` |
//! | [`capture`] | milliseconds; more the first time, to read the line tables of the program |
//!
//! # Platforms
//!
//! Linux on x86-64 and AArch64. Elsewhere the crate builds, a `ThreadRef` is empty, and every capture
//! returns [`CaptureError::Unsupported`]: callers need no `cfg` ([`IS_SUPPORTED`]).
//!
//! # Files
//!
//! | file | what |
//! |---|---|
//! | `error` | [`CaptureError`] |
//! | `frame` | [`Stack`] and [`Frame`] |
//! | `path` | the crate that a function belongs to, by its demangled name |
//! | `print` | how a stack is printed, and which frames are left out |
//! | `unwind` | from a copied stack to frames |
//! | `unsupported` | the same on other platforms |

#![forbid(unsafe_code)]

mod error;
mod frame;
mod path;
mod print;
#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
mod unsupported;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod unwind;

pub use error::CaptureError;
pub use frame::{Frame, Stack};

use millpond_raw::stack as raw;
use std::fmt;
use std::time::Duration;
#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
use unsupported::Unwinder;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
use unwind::Unwinder;

/// How long a thread is given to answer, if there is no reason for another time: 100 ms.
///
/// ```
/// assert_eq!(millpond_stack::DEFAULT_TIMEOUT.as_millis(), 100);
/// ```
pub const DEFAULT_TIMEOUT: Duration = Duration::from_millis(100);

/// Whether stacks can be captured on this platform.
///
/// ```
/// use millpond_stack::{CaptureError, DEFAULT_TIMEOUT, IS_SUPPORTED, ThreadRef, capture};
///
/// let answer = capture(&[ThreadRef::current()], DEFAULT_TIMEOUT).remove(0);
/// assert_eq!(answer == Err(CaptureError::Unsupported), !IS_SUPPORTED);
/// ```
pub const IS_SUPPORTED: bool = raw::IS_SUPPORTED;

/// A reference to a thread, by which its stack can be captured. Clones refer to the same thread.
///
/// ```
/// use millpond_stack::{DEFAULT_TIMEOUT, IS_SUPPORTED, ThreadRef, capture};
///
/// let thread = std::thread::spawn(ThreadRef::current);
/// let target = thread.join().unwrap();
/// assert_eq!(target.has_ended(), IS_SUPPORTED);
/// assert!(capture(&[target], DEFAULT_TIMEOUT)[0].is_err());
/// ```
#[derive(Clone, Debug)]
pub struct ThreadRef {
    raw: raw::ThreadRef,
}

impl ThreadRef {
    /// The calling thread.
    #[inline]
    pub fn current() -> Self {
        ThreadRef {
            raw: raw::ThreadRef::current(),
        }
    }

    /// Whether the thread has ended. Always false where captures are not [supported](IS_SUPPORTED).
    pub fn has_ended(&self) -> bool {
        self.raw.has_ended()
    }
}

/// Captures the stack of each thread, all at about the same moment; the results are in the order of
/// `threads`.
///
/// A thread that does not answer within `timeout` is an error and does not hold up the others. More than
/// 32 threads are captured in batches of 32, each with the same timeout.
///
/// ```no_run
/// use millpond_stack::{DEFAULT_TIMEOUT, ThreadRef, capture};
///
/// # let workers: Vec<ThreadRef> = Vec::new();
/// for (number, answer) in capture(&workers, DEFAULT_TIMEOUT).iter().enumerate() {
///     match answer {
///         Ok(stack) => println!("worker {number}:\n{stack}"),
///         Err(error) => println!("worker {number}: {error}"),
///     }
/// }
/// ```
#[doc(alias = "getStackTrace")]
#[doc(alias = "jstack")]
pub fn capture(threads: &[ThreadRef], timeout: Duration) -> Vec<Result<Stack, CaptureError>> {
    let mut symbolizer = Symbolizer::new();
    let snapshots = snapshot(threads, timeout).into_iter();
    snapshots
        .map(|answer| answer.map(|snapshot| symbolizer.resolve(&snapshot)))
        .collect()
}

/// The first half of [`capture`]: copies registers and stacks, which takes microseconds.
///
/// ```
/// use millpond_stack::{DEFAULT_TIMEOUT, Symbolizer, ThreadRef, snapshot};
///
/// let answer = snapshot(&[ThreadRef::current()], DEFAULT_TIMEOUT).remove(0);
/// // Now, or later, on another thread.
/// if let Ok(snapshot) = answer {
///     let stack = Symbolizer::new().resolve(&snapshot);
///     assert!(!stack.frames().is_empty());
/// }
/// ```
pub fn snapshot(
    threads: &[ThreadRef],
    timeout: Duration,
) -> Vec<Result<StackSnapshot, CaptureError>> {
    let threads: Vec<raw::ThreadRef> = threads.iter().map(|one| one.raw.clone()).collect();
    let answers = raw::capture(&threads, timeout).into_iter();
    answers
        .map(|answer| match answer {
            Ok(raw) => Ok(StackSnapshot { raw }),
            Err(error) => Err(CaptureError::new(error, timeout)),
        })
        .collect()
}

/// The registers of a thread and a copy of its stack at one moment, without names; see [`snapshot`].
#[derive(Debug)]
pub struct StackSnapshot {
    raw: raw::StackSnapshot,
}

/// The second half of [`capture`]: unwinds copied stacks and resolves addresses to names and lines.
///
/// It reads the unwind tables of the program and its libraries at the first use and keeps them, so one
/// symbolizer should resolve all snapshots of a moment. Libraries that are loaded later need a new one.
/// See [`snapshot`] for an example.
#[derive(Default)]
pub struct Symbolizer {
    unwinder: Option<Unwinder>,
}

impl Symbolizer {
    /// A symbolizer that has read nothing yet.
    pub fn new() -> Self {
        Symbolizer::default()
    }

    /// The frames of a copied stack.
    pub fn resolve(&mut self, snapshot: &StackSnapshot) -> Stack {
        let unwinder = self.unwinder.get_or_insert_with(Unwinder::new);
        unwinder.unwind(&snapshot.raw)
    }
}

impl fmt::Debug for Symbolizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Symbolizer").finish_non_exhaustive()
    }
}
