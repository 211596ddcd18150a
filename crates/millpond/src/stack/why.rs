//! Why there is no stack of a thread.

use millpond_raw::stack::Refusal;
use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

/// Why there is no stack of a thread, and what can be done about it.
///
/// ```
/// use millpond::stack::Why;
///
/// assert_eq!(
///     Why::NotBuilt.to_string(),
///     "no stack: switch on the feature `stack-dump` of millpond (Linux on x86-64 or AArch64)"
/// );
/// ```
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The program was built without the feature `stack-dump`, or for another platform.
    NotBuilt,
    /// The thread has ended.
    Ended,
    /// The thread did not answer in time.
    Silent {
        /// How long it was given.
        patience: Duration,
    },
    /// Others were asking for the stack of this thread all the time.
    Busy {
        /// For how long.
        patience: Duration,
    },
    /// The system refused to send the signal.
    NotSent {
        /// Its error number.
        errno: i32,
    },
}

impl Why {
    pub(super) fn new(refusal: Refusal, patience: Duration) -> Self {
        match refusal {
            Refusal::NotBuilt => Why::NotBuilt,
            Refusal::Ended => Why::Ended,
            Refusal::Silent => Why::Silent { patience },
            Refusal::Busy => Why::Busy { patience },
            Refusal::NotSent(errno) => Why::NotSent { errno },
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::NotBuilt => f.write_str(
                "no stack: switch on the feature `stack-dump` of millpond (Linux on x86-64 or AArch64)",
            ),
            Why::Ended => f.write_str("no stack: the thread has ended"),
            Why::Silent { patience } => write!(
                f,
                "no stack: the thread did not answer within {patience:?}; it blocks SIGURG, sleeps \
                 where no signal reaches it, has no CPU, or the program has a SIGURG handler of its own"
            ),
            Why::Busy { patience } => write!(
                f,
                "no stack: others were asking this thread for {patience:?}; ask again"
            ),
            Why::NotSent { errno } => write!(
                f,
                "no stack: the signal was not sent: {}",
                io::Error::from_raw_os_error(*errno)
            ),
        }
    }
}

impl Error for Why {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_says_what_is_wrong() {
        let patience = Duration::from_millis(100);
        let texts = [
            (Refusal::Ended, "ended"),
            (Refusal::Silent, "within 100ms"),
            (Refusal::Busy, "ask again"),
            (Refusal::NotSent(1), "not sent"),
            (Refusal::NotBuilt, "`stack-dump`"),
        ];
        for (refusal, expected) in texts {
            let text = Why::new(refusal, patience).to_string();
            assert!(
                text.starts_with("no stack: ") && text.contains(expected),
                "{text}"
            );
        }
    }
}
