//! [`CaptureError`].

use millpond_raw::stack as raw;
use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

/// Why the stack of a thread could not be captured, and what can be done about it.
///
/// ```
/// use millpond_stack::CaptureError;
///
/// assert_eq!(
///     CaptureError::ThreadEnded.to_string(),
///     "no stack: the thread has ended"
/// );
/// ```
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureError {
    /// This platform is not supported.
    Unsupported,
    /// The thread has ended.
    ThreadEnded,
    /// The thread did not answer in time.
    TimedOut {
        /// How long it was given.
        timeout: Duration,
    },
    /// Other captures of this thread were under way all the time.
    Busy {
        /// For how long.
        timeout: Duration,
    },
    /// The system refused to send the signal.
    SignalNotSent {
        /// Its error number.
        errno: i32,
    },
}

impl CaptureError {
    pub(crate) fn new(error: raw::CaptureError, timeout: Duration) -> Self {
        match error {
            raw::CaptureError::Unsupported => CaptureError::Unsupported,
            raw::CaptureError::ThreadEnded => CaptureError::ThreadEnded,
            raw::CaptureError::TimedOut => CaptureError::TimedOut { timeout },
            raw::CaptureError::Busy => CaptureError::Busy { timeout },
            raw::CaptureError::SignalNotSent(errno) => CaptureError::SignalNotSent { errno },
        }
    }
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CaptureError::Unsupported => f.write_str(
                "no stack: this platform is not supported (Linux on x86-64 and AArch64 are)",
            ),
            CaptureError::ThreadEnded => f.write_str("no stack: the thread has ended"),
            CaptureError::TimedOut { timeout } => write!(
                f,
                "no stack: the thread did not answer within {timeout:?}; it blocks SIGURG, sleeps \
                 where no signal reaches it, has no CPU, or the program has a SIGURG handler of its own"
            ),
            CaptureError::Busy { timeout } => write!(
                f,
                "no stack: other captures of this thread were under way for {timeout:?}; try again"
            ),
            CaptureError::SignalNotSent { errno } => write!(
                f,
                "no stack: the signal was not sent: {}",
                io::Error::from_raw_os_error(*errno)
            ),
        }
    }
}

impl Error for CaptureError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_says_what_is_wrong() {
        let timeout = Duration::from_millis(100);
        let texts = [
            (raw::CaptureError::ThreadEnded, "ended"),
            (raw::CaptureError::TimedOut, "within 100ms"),
            (raw::CaptureError::Busy, "try again"),
            (raw::CaptureError::SignalNotSent(1), "not sent"),
            (raw::CaptureError::Unsupported, "platform"),
        ];
        for (error, expected) in texts {
            let text = CaptureError::new(error, timeout).to_string();
            assert!(
                text.starts_with("no stack: ") && text.contains(expected),
                "{text}"
            );
        }
    }
}
