//! Attempts to start threads of workers: how many succeeded and failed, and the pause between two while all of them fail.
//!
//! A failed start costs the system tens of microseconds, and an engine without workers would try once for each
//! submitted task. So when [`FREE`] starts in a row have failed the engine tries at most every [`PAUSE`], by its
//! clock. A task that is submitted in between is treated as if its own start had failed, with the same error: it
//! waits for an existing worker, or is rejected. The first start that succeeds ends the pause.
//!
//! On a manual clock there is no pause: it would never end.

use super::metrics::Counter;
use crate::time::TimestampClock;
use millpond_raw::catch_panic;
use millpond_raw::sync::Mutex;
use millpond_raw::sync::atomic::{AtomicU64, Ordering};
use millpond_raw::timestamp::Timestamp;
use std::io;
use std::time::Duration;

/// The number of starts that may fail in a row before there are pauses: an immediate retry gets another try.
const FREE: u64 = 8;

/// How long a recovered system may have to wait for the next try.
const PAUSE: Duration = Duration::from_millis(5);

/// Instead of an error whose text cannot be had.
const UNREADABLE: &str = "the thread factory failed with an error whose Display panics";

/// Attempts to start threads, and when and why the last one failed.
#[derive(Debug, Default)]
pub(crate) struct Starts {
    pub(crate) started: Counter,
    pub(crate) failures: Counter,
    /// Failures since the last thread that started.
    pub(crate) failed_in_a_row: Counter,
    /// A tick; 0 if none has failed.
    failed_at: AtomicU64,
    error: Mutex<Option<Like>>,
}

/// The parts of the last error, to make another one like it.
#[derive(Debug)]
enum Like {
    System(i32),
    Other(io::ErrorKind, String),
}

impl Like {
    fn of(error: &io::Error) -> Self {
        match error.raw_os_error() {
            Some(code) => Like::System(code),
            None => {
                // It may be the user's.
                let text = catch_panic::call(|| error.to_string());
                Like::Other(error.kind(), text.unwrap_or_else(|| UNREADABLE.to_owned()))
            }
        }
    }

    fn error(&self) -> io::Error {
        match self {
            Like::System(code) => io::Error::from_raw_os_error(*code),
            Like::Other(kind, text) => io::Error::new(*kind, text.clone()),
        }
    }
}

impl Starts {
    /// Records an attempt to start a thread.
    pub(crate) fn record(&self, started: &io::Result<()>, timestamps: &TimestampClock) {
        match started {
            Ok(()) => {
                self.started.add(1);
                self.failed_in_a_row.reset();
            }
            Err(error) => self.record_failure(error, timestamps),
        }
    }

    #[cold]
    fn record_failure(&self, error: &io::Error, timestamps: &TimestampClock) {
        self.failures.add(1);
        self.failed_in_a_row.add(1);
        let last = Like::of(error);
        *self.error.lock() = Some(last);
        let now = timestamps.now().count();
        self.failed_at.store(now, Ordering::Relaxed);
    }

    /// The error of the last attempt, if it is too early for another one.
    pub(crate) fn pause(&self, timestamps: &TimestampClock) -> Option<io::Error> {
        if timestamps.stands_still() || self.failed_in_a_row.get() < FREE {
            return None;
        }
        let failed_at = Timestamp::from_count(self.failed_at.load(Ordering::Relaxed));
        let now = timestamps.now();
        // A counter may have gone back.
        let is_over =
            now < failed_at || Duration::from_nanos(timestamps.nanos(failed_at, now)) >= PAUSE;
        if is_over {
            return None;
        }
        self.error.lock().as_ref().map(Like::error)
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_told_again_as_the_system_or_the_factory_told_it() {
        let system = io::Error::from_raw_os_error(11);
        assert_eq!(Like::of(&system).error().raw_os_error(), Some(11));
        let own = io::Error::new(io::ErrorKind::WouldBlock, "no threads today");
        let again = Like::of(&own).error();
        assert_eq!(again.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(again.to_string(), "no threads today");
    }
}
