//! Counting what is made and what is dropped: nothing leaks, nothing is dropped twice, and nothing where user code
//! must not run ([`user_code`]).

use millpond_raw::user_code::{self, Kind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts tokens. Fails its test if one is alive when it is dropped itself.
#[derive(Debug, Default)]
pub struct DropCount(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    made: AtomicUsize,
    dropped: AtomicUsize,
}

impl Counts {
    fn token(counts: &Arc<Counts>) -> DropToken {
        counts.made.fetch_add(1, Ordering::SeqCst);
        DropToken(Arc::clone(counts))
    }
}

impl DropCount {
    /// Counts from none.
    pub fn new() -> Self {
        DropCount::default()
    }

    /// A new token; it is alive until it is dropped.
    pub fn token(&self) -> DropToken {
        Counts::token(&self.0)
    }

    /// How many were dropped.
    pub fn dropped(&self) -> usize {
        self.0.dropped.load(Ordering::SeqCst)
    }

    /// How many are alive; below zero if some were dropped twice.
    pub fn alive(&self) -> i64 {
        // What was dropped is read first: a token that is made meanwhile may be dropped meanwhile.
        let dropped = self.dropped() as i64;
        self.0.made.load(Ordering::SeqCst) as i64 - dropped
    }

    /// Fails unless exactly `expected` are alive.
    ///
    /// # Panics
    ///
    /// If there are more or fewer.
    #[track_caller]
    pub fn assert_alive(&self, expected: i64) {
        let alive = self.alive();
        assert_eq!(alive, expected, "{alive} are alive instead of {expected}");
    }
}

impl Drop for DropCount {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.alive(), 0, "{} were never dropped", self.alive());
        }
    }
}

/// Something that is counted while it lives. A clone is another one.
#[derive(Debug)]
pub struct DropToken(Arc<Counts>);

impl Clone for DropToken {
    fn clone(&self) -> Self {
        Counts::token(&self.0)
    }
}

impl Drop for DropToken {
    fn drop(&mut self) {
        user_code::check(Kind::Destructor);
        self.0.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn a_token_that_is_never_dropped_is_caught() {
        let count = DropCount::new();
        std::mem::forget(count.token());
        let caught = catch_unwind(AssertUnwindSafe(|| drop(count)));
        let text = caught.unwrap_err().downcast::<String>().unwrap();
        assert!(text.contains("1 were never dropped"), "{text}");
    }

    #[test]
    fn clones_count_too() {
        let count = DropCount::new();
        let (one, two) = (count.token(), count.token());
        let three = two.clone();
        count.assert_alive(3);
        drop((one, two));
        assert!(catch_unwind(AssertUnwindSafe(|| count.assert_alive(0))).is_err());
        drop(three);
        count.assert_alive(0);
        assert_eq!(count.dropped(), 3);
    }
}
