//! Pictures on Linux: who sits for them, and who asks.

mod machine;
mod picture;
mod signal;
mod sitter;

pub use picture::Picture;

use self::sitter::Sitter;
use super::Refusal;
use super::tray::{Asked, Nothing};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Whether pictures can be taken.
pub const IS_BUILT: bool = true;

/// How many pictures are under way at once, so that a thousand threads do not take 64 MiB.
const AT_ONCE: usize = 32;

/// A thread of which pictures may be taken, for as long as it lives. Clones are the same thread.
///
/// ```
/// use millpond_raw::stack::{Subject, capture};
/// use std::time::Duration;
///
/// let me = Subject::here();
/// for picture in capture(&[me], Duration::from_millis(100)) {
///     if let Ok(picture) = picture {
///         assert_ne!(picture.registers().instruction, 0);
///     }
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Subject {
    sitter: Arc<Sitter>,
}

impl Subject {
    /// The present thread. The first call in a thread costs some microseconds; when the thread ends
    /// it stops being a subject by itself.
    pub fn here() -> Self {
        Subject {
            sitter: sitter::here(),
        }
    }

    /// Whether the thread has ended.
    pub fn has_ended(&self) -> bool {
        self.sitter.has_left()
    }
}

/// Takes a picture of each, at about the same time, in the order of the slice.
///
/// A thread that does not look up within `patience`, because it blocks the signal or sleeps where
/// no signal reaches it, is refused; the others are not held up. Many threads are taken 32
/// at a time, each time with the same patience.
pub fn capture(subjects: &[Subject], patience: Duration) -> Vec<Result<Picture, Refusal>> {
    let mut answers: Vec<Result<Picture, Refusal>> = Vec::new();
    answers.resize_with(subjects.len(), || Err(Refusal::Busy));
    if let Err(error) = signal::install() {
        answers.fill_with(|| Err(Refusal::NotSent(error)));
        return answers;
    }
    // Everybody asks in this order, or two who ask for the same threads would wait for each other.
    let mut waiting: Vec<usize> = (0..subjects.len()).collect();
    waiting.sort_by_key(|&index| Arc::as_ptr(&subjects[index].sitter).addr());
    while !waiting.is_empty() {
        let round = next_round(&mut waiting, subjects);
        take_round(subjects, &round, patience, &mut answers);
    }
    answers
}

/// The next threads to ask, no thread twice: who is named twice is asked again in a later round.
fn next_round(waiting: &mut Vec<usize>, subjects: &[Subject]) -> Vec<usize> {
    let mut round: Vec<usize> = Vec::new();
    waiting.retain(|&index| {
        // They are sorted by thread, so a twin can only be the last one.
        let twin = round
            .last()
            .is_some_and(|&last| Arc::ptr_eq(&subjects[last].sitter, &subjects[index].sitter));
        let is_in = round.len() < AT_ONCE && !twin;
        if is_in {
            round.push(index);
        }
        !is_in
    });
    round
}

fn take_round(
    subjects: &[Subject],
    round: &[usize],
    patience: Duration,
    answers: &mut [Result<Picture, Refusal>],
) {
    let deadline = after(patience);
    // What has begun ends soon, unless somebody stops the thread in the middle.
    let last = after(patience.saturating_mul(2));
    let asked: Vec<(usize, Result<Asked<'_, Picture>, Refusal>)> = round
        .iter()
        .map(|&index| (index, subjects[index].sitter.ask(deadline)))
        .collect();
    for (index, asked) in asked {
        answers[index] = asked.and_then(|asked| {
            asked
                .wait(deadline, last)
                .map(|picture| *picture)
                .map_err(|nothing| match nothing {
                    Nothing::Ended => Refusal::Ended,
                    Nothing::TimedOut => Refusal::Silent,
                })
        });
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "how long a signal takes is real time, whatever clock the callers go by"
)]
fn after(patience: Duration) -> Instant {
    let now = Instant::now();
    // Nobody waits a year.
    let most = Duration::from_secs(365 * 24 * 60 * 60);
    now.checked_add(patience.min(most)).unwrap_or(now)
}

#[cfg(test)]
mod tests;
