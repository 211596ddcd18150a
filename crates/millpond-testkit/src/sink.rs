//! Carries failed assertions from other threads to the test.
//!
//! An assertion that fails in a thread of a pool ends in the pool's panic handling, and the test
//! goes on. A closure that is wrapped with [`FailureSink::checked`] leaves its first failure in the
//! sink, and the sink fails the test when it is dropped.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Mutex, PoisonError};

type Payload = Box<dyn Any + Send>;

/// Keeps the first failure of everything that it wrapped.
#[derive(Clone, Default)]
pub struct FailureSink {
    first: Arc<Mutex<Option<Payload>>>,
}

impl FailureSink {
    /// A sink without a failure.
    pub fn new() -> Self {
        FailureSink::default()
    }

    /// Wraps `body` so that its panic fails the test, whichever thread runs it. The panic goes on as well.
    pub fn checked<R, F: FnOnce() -> R>(&self, body: F) -> impl FnOnce() -> R + use<R, F> {
        let first = Arc::clone(&self.first);
        move || match panic::catch_unwind(AssertUnwindSafe(body)) {
            Ok(value) => value,
            Err(payload) => {
                let text = text_of(payload.as_ref());
                let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
                let payload = if first.is_none() {
                    *first = Some(payload);
                    Box::new(text)
                } else {
                    payload
                };
                drop(first);
                panic::resume_unwind(payload)
            }
        }
    }

    /// Fails with the first failure, if there was one.
    pub fn verify(&self) {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(payload) = first.take() {
            drop(first);
            panic::resume_unwind(payload);
        }
    }
}

/// The message of a panic.
pub(super) fn text_of(payload: &(dyn Any + Send)) -> String {
    match (
        payload.downcast_ref::<&str>(),
        payload.downcast_ref::<String>(),
    ) {
        (Some(text), _) => (*text).to_owned(),
        (_, Some(text)) => text.clone(),
        _ => "a payload that is no text".to_owned(),
    }
}

impl Drop for FailureSink {
    fn drop(&mut self) {
        // Only the last handle speaks, so that no wrapped closure fails for another one.
        if Arc::strong_count(&self.first) == 1 && !std::thread::panicking() {
            self.verify();
        }
    }
}

impl std::fmt::Debug for FailureSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_struct("FailureSink")
            .field("failed", &first.is_some())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_assertion_that_fails_in_another_thread_fails_the_test() {
        let sink = FailureSink::new();
        let elsewhere = std::thread::spawn(sink.checked(|| panic::panic_any("the wheel stands")));
        assert!(elsewhere.join().is_err());
        let caught = panic::catch_unwind(AssertUnwindSafe(|| drop(sink)));
        assert_eq!(text_of(caught.unwrap_err().as_ref()), "the wheel stands");
    }

    #[test]
    fn the_first_failure_is_the_one_that_is_kept() {
        let sink = FailureSink::new();
        for text in ["first", "second"] {
            let failing = sink.checked(|| panic::resume_unwind(Box::new(text)));
            let _: Result<(), _> = panic::catch_unwind(AssertUnwindSafe(failing));
        }
        let caught = panic::catch_unwind(AssertUnwindSafe(|| sink.verify()));
        assert_eq!(text_of(caught.unwrap_err().as_ref()), "first");
    }

    #[test]
    fn what_goes_well_is_passed_through() {
        let sink = FailureSink::new();
        assert_eq!(sink.checked(|| 7)(), 7);
        sink.verify();
    }
}
