//! Pictures where none can be taken: the same names, and one answer.

use super::{Refusal, Registers};
use std::time::Duration;

/// Whether pictures can be taken.
pub const IS_BUILT: bool = false;

/// A thread that cannot be asked.
#[derive(Clone, Debug)]
pub struct Subject;

impl Subject {
    /// The present thread. Here this does nothing.
    #[inline]
    pub fn here() -> Self {
        Subject
    }

    /// Whether the thread is known to have ended. Here nothing is known.
    pub fn has_ended(&self) -> bool {
        false
    }
}

/// There is none.
#[derive(Debug)]
pub enum Picture {}

impl Picture {
    /// The registers.
    pub fn registers(&self) -> Registers {
        match *self {}
    }

    /// The word at an address of the stack, if it was copied.
    pub fn word_at(&self, _address: u64) -> Option<u64> {
        match *self {}
    }

    /// Whether the copy reaches to the top of the stack.
    pub fn is_whole(&self) -> bool {
        match *self {}
    }
}

/// Refuses each of them.
pub fn capture(subjects: &[Subject], _patience: Duration) -> Vec<Result<Picture, Refusal>> {
    subjects.iter().map(|_| Err(Refusal::NotBuilt)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_capture_is_refused_and_registering_is_free() {
        assert_eq!(size_of::<Subject>(), 0);
        let answers = capture(&[Subject::here(), Subject::here()], Duration::ZERO);
        assert_eq!(answers.len(), 2);
        assert!(
            answers
                .iter()
                .all(|answer| matches!(answer, Err(Refusal::NotBuilt)))
        );
    }
}
