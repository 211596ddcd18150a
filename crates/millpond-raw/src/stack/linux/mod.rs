//! Snapshots on Linux: the reference to a thread, and the requester's side of a capture.
//!
//! | file | what |
//! |---|---|
//! | `target` | the target thread: its id, its stack, its mailbox |
//! | `signal` | the signal and its handler |
//! | `snapshot` | registers and stack, as the handler copies them |
//! | `arch` | what depends on the architecture |

mod arch;
mod signal;
mod snapshot;
mod target;

pub use snapshot::StackSnapshot;

use self::target::Target;
use super::CaptureError;
use super::mailbox::{MailboxError, Request};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Whether snapshots can be taken.
pub const IS_SUPPORTED: bool = true;

/// How many snapshots are taken at once, so that a thousand threads do not need 64 MiB.
const BATCH: usize = 32;

/// A reference to a thread, for snapshots of it while it is alive. Clones refer to the same thread.
///
/// ```
/// use millpond_raw::stack::{ThreadRef, capture};
/// use std::time::Duration;
///
/// let me = ThreadRef::current();
/// for snapshot in capture(&[me], Duration::from_millis(100)) {
///     if let Ok(snapshot) = snapshot {
///         assert_ne!(snapshot.registers().instruction, 0);
///     }
/// }
/// ```
#[derive(Clone, Debug)]
pub struct ThreadRef {
    target: Arc<Target>,
}

impl ThreadRef {
    /// The calling thread. The first call in a thread costs some microseconds.
    pub fn current() -> Self {
        ThreadRef {
            target: target::current(),
        }
    }

    /// Whether the thread has ended.
    pub fn has_ended(&self) -> bool {
        self.target.has_ended()
    }
}

/// Takes a snapshot of each thread, at about the same time; the results are in the order of the slice.
///
/// A thread that does not run the handler within `timeout`, because it blocks the signal or sleeps where
/// no signal reaches it, is an error and does not hold up the others. Threads are captured in batches of
/// 32, each with the same timeout.
pub fn capture(
    threads: &[ThreadRef],
    timeout: Duration,
) -> Vec<Result<StackSnapshot, CaptureError>> {
    let mut answers: Vec<Result<StackSnapshot, CaptureError>> = Vec::new();
    answers.resize_with(threads.len(), || Err(CaptureError::Busy));
    if let Err(error) = signal::install() {
        answers.fill_with(|| Err(CaptureError::SignalNotSent(error)));
        return answers;
    }
    // All requesters lock mailboxes in this order, or two with the same threads could deadlock.
    let mut waiting: Vec<usize> = (0..threads.len()).collect();
    waiting.sort_by_key(|&index| Arc::as_ptr(&threads[index].target).addr());
    while !waiting.is_empty() {
        let batch = next_batch(&mut waiting, threads);
        capture_batch(threads, &batch, timeout, &mut answers);
    }
    answers
}

/// The next threads to capture, no thread twice: a duplicate is captured again in a later batch.
fn next_batch(waiting: &mut Vec<usize>, threads: &[ThreadRef]) -> Vec<usize> {
    let mut batch: Vec<usize> = Vec::new();
    waiting.retain(|&index| {
        // They are sorted by thread, so only the last one can be the same thread.
        let is_duplicate = batch
            .last()
            .is_some_and(|&last| Arc::ptr_eq(&threads[last].target, &threads[index].target));
        let is_in = batch.len() < BATCH && !is_duplicate;
        if is_in {
            batch.push(index);
        }
        !is_in
    });
    batch
}

fn capture_batch(
    threads: &[ThreadRef],
    batch: &[usize],
    timeout: Duration,
    answers: &mut [Result<StackSnapshot, CaptureError>],
) {
    let start_by = after(timeout);
    // A handler that has started finishes soon, unless the thread is stopped in the middle.
    let finish_by = after(timeout.saturating_mul(2));
    let requests: Vec<(usize, Result<Request<'_, StackSnapshot>, CaptureError>)> = batch
        .iter()
        .map(|&index| (index, threads[index].target.request(start_by)))
        .collect();
    for (index, request) in requests {
        answers[index] = request.and_then(|request| {
            request
                .wait(start_by, finish_by)
                .map(|snapshot| *snapshot)
                .map_err(|error| match error {
                    MailboxError::Closed => CaptureError::ThreadEnded,
                    MailboxError::TimedOut => CaptureError::TimedOut,
                })
        });
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "how long a signal takes is real time, whatever clock the callers use"
)]
fn after(timeout: Duration) -> Instant {
    let now = Instant::now();
    // Keeps the sum in range.
    let most = Duration::from_secs(365 * 24 * 60 * 60);
    now.checked_add(timeout.min(most)).unwrap_or(now)
}

#[cfg(test)]
mod tests;
