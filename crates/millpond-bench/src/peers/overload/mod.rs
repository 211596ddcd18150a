//! A pool, as a rush uses it: tasks are offered to it, whether there is room or not.
//!
//! | file | what |
//! |---|---|
//! | [`millpond`] | ours, with and without protection |
//! | [`hand_rolled`] | threads that take boxed closures out of a bounded channel, a long or a short one, with or without a look at the time |
//! | [`semaphore`] | `tokio`'s blocking pool behind a semaphore |
//!
//! All have [`WORKERS`](super::pool::WORKERS) threads and room for [`BOUND`] tasks more where nothing else is said, and
//! reject tasks that do not fit: a submitter never waits.

pub mod hand_rolled;
pub mod millpond;
pub mod semaphore;

use super::pool::Job;
use std::fmt;
use std::time::{Duration, Instant};

/// How many tasks may wait. It takes ten times longer to work them off than their clients wait.
pub const BOUND: usize = 1024;

/// A queue that is short enough: who is in it is answered in time, if a task takes as long as usual.
pub const SHORT: usize = 64;

/// When all have come, the last of those that wait are over much sooner.
pub(crate) const PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 2 } else { 10 });

/// A pool in a rush.
pub trait Rushed: fmt::Debug {
    /// Offers a task that came at this time. Returns whether it was taken in.
    fn offer(&mut self, number: usize, came: Instant, task: Job) -> bool;

    /// Waits until all accepted tasks have ended, and returns the fate of each, by number. A task that has
    /// not ended after a long time is left out: it is lost.
    fn ends(&mut self) -> Vec<(usize, End)>;

    /// Ends the threads.
    fn close(self: Box<Self>);
}

/// The fate of an accepted task, as its pool reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It has run.
    Answered,
    /// It was dropped when its turn came: it had waited too long.
    Shed,
    /// It was dropped when its turn came: its deadline had passed.
    Expired,
}
