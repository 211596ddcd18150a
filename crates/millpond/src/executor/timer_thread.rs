//! The rejection of delayed tasks when the timer's thread cannot be started.

use super::RejectReason;
use std::error::Error;
use std::fmt;
use std::io;

/// Marks the error of a [`RejectReason::SpawnFailed`] whose thread is the timer's, which all delays need. Its source is the
/// system's error.
#[derive(Debug)]
pub(crate) struct TimerThread(io::Error);

impl TimerThread {
    #[cold]
    pub(crate) fn failed(why: io::Error) -> RejectReason {
        RejectReason::SpawnFailed(io::Error::new(why.kind(), TimerThread(why)))
    }

    pub(super) fn in_error(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }
}

impl fmt::Display for TimerThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the timer's thread, which delays and series need, could not be started ({}): use fewer \
             threads in this process, or raise its limit",
            self.0
        )
    }
}

impl Error for TimerThread {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}
