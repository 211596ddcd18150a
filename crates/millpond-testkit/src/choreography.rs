//! Latches, gates and barriers that fail loudly instead of waiting for ever.
//!
//! They make states such as "running", "queued" or "saturated" exact instead of guessed. No wait in
//! a test is without an end: each gives up after [`delays::long`] and says what it waited for.

use super::delays;
use std::ops::Deref;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[derive(Debug, Default)]
struct Counter {
    value: Mutex<usize>,
    changed: Condvar,
}

impl Counter {
    fn lock(&self) -> MutexGuard<'_, usize> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, f: impl FnOnce(usize) -> usize) {
        let mut value = self.lock();
        *value = f(*value);
        self.changed.notify_all();
    }

    fn wait(&self, timeout: Duration, reached: impl Fn(usize) -> bool) -> Result<(), usize> {
        let end = Instant::now() + timeout;
        let mut value = self.lock();
        while !reached(*value) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(*value);
            }
            value = self
                .changed
                .wait_timeout(value, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        Ok(())
    }
}

/// Counts arrivals; waiting threads go on when all have arrived. Clones are the same latch.
#[derive(Clone, Debug)]
pub struct Latch {
    missing: Arc<Counter>,
}

impl Latch {
    /// A latch for `count` arrivals.
    pub fn new(count: usize) -> Self {
        let missing = Arc::new(Counter::default());
        missing.change(|_| count);
        Latch { missing }
    }

    /// One arrives. More arrivals than were expected change nothing.
    pub fn arrive(&self) {
        self.missing.change(|missing| missing.saturating_sub(1));
    }

    /// How many are missing.
    pub fn missing(&self) -> usize {
        *self.missing.lock()
    }

    /// Waits for all.
    ///
    /// # Panics
    ///
    /// If they do not arrive within [`delays::long`].
    #[track_caller]
    pub fn wait(&self) {
        self.wait_for(delays::long());
    }

    #[track_caller]
    fn wait_for(&self, timeout: Duration) {
        if let Err(missing) = self.missing.wait(timeout, |missing| missing == 0) {
            panic!("{missing} had not arrived at the latch after {timeout:?}");
        }
    }
}

/// Closed until it is opened, once and for all. Clones are the same gate.
#[derive(Clone, Debug)]
pub struct Gate(Latch);

impl Gate {
    /// A closed gate.
    pub fn new() -> Self {
        Gate(Latch::new(1))
    }

    /// Opens it.
    pub fn open(&self) {
        self.0.arrive();
    }

    /// Whether it is open.
    pub fn is_open(&self) -> bool {
        self.0.missing() == 0
    }

    /// Waits until it is open.
    ///
    /// # Panics
    ///
    /// If it is not opened within [`delays::long`].
    #[track_caller]
    pub fn wait(&self) {
        self.0.wait();
    }

    /// Opens the gate at the end of the test, however that ends: tasks that wait at it one after the other would keep
    /// their pool from terminating.
    pub fn open_at_end(&self) -> OpenAtEnd {
        OpenAtEnd(self.clone())
    }
}

/// Opens a [`Gate`] when it is dropped, if it is closed. It is the gate in every other respect.
#[derive(Debug)]
#[must_use = "the gate opens when this is dropped"]
pub struct OpenAtEnd(Gate);

impl Deref for OpenAtEnd {
    type Target = Gate;

    fn deref(&self) -> &Gate {
        &self.0
    }
}

impl Drop for OpenAtEnd {
    fn drop(&mut self) {
        if !self.0.is_open() {
            self.0.open();
        }
    }
}

impl Default for Gate {
    fn default() -> Self {
        Gate::new()
    }
}

/// Holds a fixed number of threads until all are there, round after round.
#[derive(Clone, Debug)]
pub struct Barrier {
    parties: usize,
    arrived: Arc<Counter>,
}

impl Barrier {
    /// A barrier for `parties` threads.
    pub fn new(parties: usize) -> Self {
        Barrier {
            parties,
            arrived: Arc::default(),
        }
    }

    /// Waits for the others of this round.
    ///
    /// # Panics
    ///
    /// If they do not come within [`delays::long`].
    #[track_caller]
    pub fn wait(&self) {
        self.wait_for(delays::long());
    }

    #[track_caller]
    fn wait_for(&self, timeout: Duration) {
        let mut full = 0;
        self.arrived.change(|arrived| {
            full = (arrived / self.parties + 1) * self.parties;
            arrived + 1
        });
        if let Err(arrived) = self.arrived.wait(timeout, |arrived| arrived >= full) {
            let missing = full - arrived;
            panic!("{missing} had not come to the barrier after {timeout:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    const AT_ONCE: Duration = Duration::from_millis(1);

    #[test]
    fn a_latch_that_is_never_opened_fails_and_says_how_many_are_missing() {
        let latch = Latch::new(2);
        latch.arrive();
        let caught = catch_unwind(AssertUnwindSafe(|| latch.wait_for(AT_ONCE)));
        let text = caught.unwrap_err().downcast::<String>().unwrap();
        assert!(text.starts_with("1 had not arrived"), "{text}");
        latch.arrive();
        latch.arrive();
        latch.wait();
    }

    #[test]
    fn a_gate_lets_everyone_through_once_it_is_open() {
        let gate = Gate::new();
        let waiters: Vec<_> = (0..3)
            .map(|_| {
                let gate = gate.clone();
                std::thread::spawn(move || gate.wait())
            })
            .collect();
        assert!(!gate.is_open());
        gate.open();
        for waiter in waiters {
            waiter.join().unwrap();
        }
    }

    #[test]
    fn a_barrier_keeps_rounds_apart() {
        let barrier = Barrier::new(2);
        let step = Arc::new(Mutex::new(Vec::new()));
        let other = {
            let (barrier, step) = (barrier.clone(), Arc::clone(&step));
            std::thread::spawn(move || {
                for round in 0..50 {
                    step.lock().unwrap().push(round);
                    barrier.wait();
                    barrier.wait();
                }
            })
        };
        for round in 0..50 {
            barrier.wait();
            assert_eq!(step.lock().unwrap().last(), Some(&round));
            barrier.wait();
        }
        other.join().unwrap();
    }

    #[test]
    fn a_barrier_at_which_no_thread_arrives_fails() {
        let caught = catch_unwind(|| Barrier::new(3).wait_for(AT_ONCE));
        let text = caught.unwrap_err().downcast::<String>().unwrap();
        assert!(text.starts_with("2 had not come"), "{text}");
    }
}
