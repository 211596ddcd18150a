//! What a running thread is doing: its stack, by function and line.
//!
//! A thread makes itself a [`Subject`]; whoever holds that may [`capture`] its stack at any time, while
//! it computes, waits or sleeps in a system call. Nothing is stopped. Workers of a pool are
//! subjects from their start.
//!
//! # How
//!
//! A signal interrupts the thread for some microseconds. Its handler copies registers and at most
//! 64 KiB of the stack into memory that was laid out for it; it allocates nothing and takes no lock
//! (`millpond_raw::stack`, where the protocol is). All the rest happens later, in the thread that
//! asked: the walk up the copied stack (`walk.rs`), by the tables that the compiler makes for panics,
//! so that code without frame pointers is walked as well; then the names (`names.rs`), from the
//! symbols and line tables of the program. `profile.release.debug = "line-tables-only"` is
//! enough for lines; without it there are functions.
//!
//! # What it costs
//!
//! | who | what |
//! |---|---|
//! | a thread that becomes a subject | some microseconds, once |
//! | a subject of which nobody takes pictures | nothing |
//! | a subject of which somebody does | one signal and the copy; a call such as `poll` or `epoll_wait`, which is never resumed after a signal, returns `EINTR` |
//! | the one who asks | milliseconds; the first time more, to read the line tables of the program |
//!
//! # Where it is built
//!
//! With the feature `stack-dump`, on Linux, on x86-64 and AArch64. Elsewhere the same names are here, a
//! subject is nothing at all, and every capture answers [`Why::NotBuilt`]: callers need no `cfg`.

#[cfg(not(all(
    feature = "stack-dump",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
mod absent;
mod frame;
#[cfg(all(
    feature = "stack-dump",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod modules;
#[cfg(all(
    feature = "stack-dump",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod names;
mod path;
mod print;
#[cfg(all(
    feature = "stack-dump",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod walk;
mod why;

#[cfg(not(all(
    feature = "stack-dump",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
use absent::Walker;
pub use frame::{Frame, Stack};
#[cfg(all(
    feature = "stack-dump",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
use walk::Walker;
pub use why::Why;

use millpond_raw::stack as raw;
use std::time::Duration;

/// How long a thread is given to answer, if you have no better idea: 100 ms.
pub const PATIENCE: Duration = Duration::from_millis(100);

/// A thread whose stack may be asked for. Clones are the same thread.
///
/// ```
/// use millpond::stack::{self, PATIENCE, Subject, Why};
///
/// let me = Subject::here();
/// match stack::capture(&[me], PATIENCE).remove(0) {
///     Ok(stack) => assert!(!stack.frames().is_empty()),
///     // Without the feature `stack-dump`.
///     Err(why) => assert_eq!(why, Why::NotBuilt),
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Subject {
    raw: raw::Subject,
}

impl Subject {
    /// The present thread. When it ends it stops being a subject by itself.
    #[inline]
    pub fn here() -> Self {
        Subject {
            raw: raw::Subject::here(),
        }
    }

    /// Whether the thread has ended. Without the feature nobody knows, and the answer is no.
    pub fn has_ended(&self) -> bool {
        self.raw.has_ended()
    }
}

/// The stack of each subject, all of about the same moment, in their order.
///
/// A thread that does not answer within `patience` is refused and does not hold up the others. More
/// than 32 threads are asked 32 at a time.
///
/// ```no_run
/// use millpond::stack::{self, PATIENCE, Subject};
///
/// # let workers: Vec<Subject> = Vec::new();
/// for (number, answer) in stack::capture(&workers, PATIENCE).iter().enumerate() {
///     match answer {
///         Ok(stack) => println!("worker {number}:\n{stack}"),
///         Err(why) => println!("worker {number}: {why}"),
///     }
/// }
/// ```
#[doc(alias = "getStackTrace")]
#[doc(alias = "jstack")]
pub fn capture(subjects: &[Subject], patience: Duration) -> Vec<Result<Stack, Why>> {
    let mut names = Names::default();
    let copied = copy(subjects, patience).into_iter();
    copied
        .map(|answer| answer.map(|snapshot| names.of(&snapshot)))
        .collect()
}

/// Whether there can be stacks at all.
pub(crate) const IS_BUILT: bool = raw::IS_BUILT;

/// A copy of a stack, without names: it takes microseconds, and the names may be looked up later.
pub(crate) struct Snapshot {
    picture: raw::Picture,
}

/// The first half of [`capture`].
pub(crate) fn copy(subjects: &[Subject], patience: Duration) -> Vec<Result<Snapshot, Why>> {
    let subjects: Vec<raw::Subject> = subjects.iter().map(|one| one.raw.clone()).collect();
    let answers = raw::capture(&subjects, patience).into_iter();
    answers
        .map(|answer| match answer {
            Ok(picture) => Ok(Snapshot { picture }),
            Err(refusal) => Err(Why::new(refusal, patience)),
        })
        .collect()
}

/// The second half of [`capture`]: gives copied stacks their names.
#[derive(Default)]
pub(crate) struct Names {
    /// Nobody reads the program's tables for nothing.
    walker: Option<Walker>,
}

impl Names {
    pub(crate) fn of(&mut self, snapshot: &Snapshot) -> Stack {
        let walker = self.walker.get_or_insert_with(Walker::new);
        walker.walk(&snapshot.picture)
    }
}
