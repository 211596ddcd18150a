//! A guard that makes every test of something with a lifecycle a test of its termination, too.

use super::delays;
use millpond::executor;
use millpond::interrupt;
use millpond_raw::park::probe;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

/// Something that is shut down and then ends: an executor, a pool, a timer.
pub trait Lifecycle {
    /// Lets nothing new in; what is there goes on.
    fn begin_end(&self);

    /// Gives up what has not started and interrupts what has.
    fn force_end(&self);

    /// Waits for the end. Returns whether it has come.
    fn await_end(&self, timeout: Duration) -> bool;

    /// Whether a task of the test may still run in it. A test that fails leaves such tasks behind.
    fn is_busy(&self) -> bool {
        true
    }
}

impl<E: executor::Lifecycle + ?Sized> Lifecycle for Arc<E> {
    fn begin_end(&self) {
        self.shutdown();
    }

    fn force_end(&self) {
        drop(self.shutdown_now());
    }

    fn await_end(&self, timeout: Duration) -> bool {
        interrupt::uninterruptible(|| self.await_termination_timeout(timeout)).unwrap_or(false)
    }
}

type Release = Box<dyn FnOnce()>;

/// Owns something with a lifecycle, and sees to its end when the test ends, however that ends:
/// it runs the releases, begins the end, and fails the test if the end does not come.
pub struct Guard<L: Lifecycle> {
    guarded: L,
    releases: Vec<Release>,
    timeout: Duration,
}

impl<L: Lifecycle> Guard<L> {
    /// Guards it, with the timeout of [`delays::longer`].
    pub fn new(guarded: L) -> Self {
        Guard {
            guarded,
            releases: Vec::new(),
            timeout: delays::longer(),
        }
    }

    /// What lets the tasks go on that the test holds back: opens a gate, cancels a handle.
    #[must_use]
    pub fn releasing(mut self, release: impl FnOnce() + 'static) -> Self {
        self.releases.push(Box::new(release));
        self
    }
}

impl<L: Lifecycle> Deref for Guard<L> {
    type Target = L;

    fn deref(&self) -> &L {
        &self.guarded
    }
}

impl<L: Lifecycle> Drop for Guard<L> {
    fn drop(&mut self) {
        for release in self.releases.drain(..) {
            release();
        }
        self.guarded.begin_end();
        if self.guarded.await_end(self.timeout) {
            return;
        }
        // A test that has failed no longer lets go what it holds back: that keeps any executor alive.
        if std::thread::panicking() && self.guarded.is_busy() {
            self.guarded.force_end();
            if self.guarded.await_end(self.timeout) {
                return;
            }
        }
        let waits: String = probe::waits()
            .iter()
            .map(|wait| format!("\n  {wait}"))
            .collect();
        self.guarded.force_end();
        let forced = if self.guarded.await_end(delays::small()) {
            "it ended when it was forced to"
        } else {
            "it did not even end when it was forced to"
        };
        let text = format!(
            "it did not end within {:?} after it was shut down; {forced}{waits}",
            self.timeout
        );
        if std::thread::panicking() {
            eprintln!("{text}");
        } else {
            panic!("{text}");
        }
    }
}

impl<L: Lifecycle + fmt::Debug> fmt::Debug for Guard<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Guard").field(&self.guarded).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Gate;
    use std::cell::Cell;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// Ends when it is shut down and its gate is open, or when it is forced.
    struct Mill {
        gate: Gate,
        shut: Cell<bool>,
        forced: Cell<bool>,
    }

    impl Mill {
        fn new(gate: &Gate) -> Self {
            Mill {
                gate: gate.clone(),
                shut: Cell::new(false),
                forced: Cell::new(false),
            }
        }
    }

    impl Lifecycle for Mill {
        fn begin_end(&self) {
            self.shut.set(true);
        }

        fn force_end(&self) {
            self.forced.set(true);
        }

        fn await_end(&self, _: Duration) -> bool {
            self.forced.get() || (self.shut.get() && self.gate.is_open())
        }
    }

    impl Lifecycle for std::rc::Rc<Mill> {
        fn begin_end(&self) {
            (**self).begin_end();
        }

        fn force_end(&self) {
            (**self).force_end();
        }

        fn await_end(&self, timeout: Duration) -> bool {
            (**self).await_end(timeout)
        }
    }

    #[test]
    fn an_engine_that_does_not_terminate_fails_its_test() {
        let gate = Gate::new();
        let guard = Guard::new(Mill::new(&gate));
        let caught = catch_unwind(AssertUnwindSafe(|| drop(guard)));
        let text = caught.unwrap_err().downcast::<String>().unwrap();
        assert!(text.contains("it ended when it was forced to"), "{text}");
    }

    #[test]
    fn releases_come_before_the_end() {
        let gate = Gate::new();
        let opener = gate.clone();
        drop(Guard::new(Mill::new(&gate)).releasing(move || opener.open()));
        assert!(gate.is_open());
    }

    #[test]
    fn a_test_that_fails_is_not_failed_twice() {
        let caught = catch_unwind(AssertUnwindSafe(|| {
            let _guard = Guard::new(Mill::new(&Gate::new()));
            std::panic::resume_unwind(Box::new("the test itself"));
        }));
        assert_eq!(
            *caught.unwrap_err().downcast::<&str>().unwrap(),
            "the test itself"
        );
    }

    #[test]
    fn an_engine_of_a_failed_test_is_forced_to_terminate() {
        let mill = std::rc::Rc::new(Mill::new(&Gate::new()));
        let own = std::rc::Rc::clone(&mill);
        let caught = catch_unwind(AssertUnwindSafe(|| {
            let _guard = Guard::new(own);
            std::panic::resume_unwind(Box::new("the test itself"));
        }));
        assert!(caught.is_err() && mill.forced.get());
    }
}
