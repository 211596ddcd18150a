//! The same names where no snapshot can be taken.

use super::{CaptureError, Registers};
use std::time::Duration;

/// Whether snapshots can be taken.
pub const IS_SUPPORTED: bool = false;

/// A reference to a thread; empty here.
#[derive(Clone, Debug)]
pub struct ThreadRef;

impl ThreadRef {
    /// The calling thread. Does nothing here.
    #[inline]
    pub fn current() -> Self {
        ThreadRef
    }

    /// Whether the thread is known to have ended. Always false here.
    pub fn has_ended(&self) -> bool {
        false
    }
}

/// There is none.
#[derive(Debug)]
pub enum StackSnapshot {}

impl StackSnapshot {
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

/// Returns an error for each thread.
pub fn capture(
    threads: &[ThreadRef],
    _timeout: Duration,
) -> Vec<Result<StackSnapshot, CaptureError>> {
    threads
        .iter()
        .map(|_| Err(CaptureError::Unsupported))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_capture_fails_and_a_reference_is_empty() {
        assert_eq!(size_of::<ThreadRef>(), 0);
        let threads = [ThreadRef::current(), ThreadRef::current()];
        let answers = capture(&threads, Duration::ZERO);
        assert_eq!(answers.len(), 2);
        assert!(
            answers
                .iter()
                .all(|answer| matches!(answer, Err(CaptureError::Unsupported)))
        );
    }
}
