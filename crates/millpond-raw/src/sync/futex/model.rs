//! The futex as loom and shuttle see it; `mod.rs` says what it models.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "this is the seam"
)]

use super::Woken;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::thread;
use std::time::Instant;

#[cfg(millpond_loom)]
use ::loom::sync::{Condvar, Mutex};
#[cfg(millpond_shuttle)]
use ::shuttle::sync::{Condvar, Mutex};

#[derive(Debug)]
pub(super) struct Sleepers {
    bucket: Mutex<()>,
    condvar: Condvar,
}

impl Sleepers {
    pub(super) fn new() -> Self {
        Sleepers {
            bucket: Mutex::new(()),
            condvar: Condvar::new(),
        }
    }

    pub(super) fn wait(&self, word: &AtomicU32, expected: u32, until: Option<Instant>) -> Woken {
        let guard = self.bucket.lock().expect("no model panics under this lock");
        if word.load(Ordering::Relaxed) != expected {
            return Woken::Maybe;
        }
        if until.is_some() {
            drop(guard);
            thread::yield_now();
            return Woken::TimedOut;
        }
        drop(
            self.condvar
                .wait(guard)
                .expect("no model panics under this lock"),
        );
        Woken::Maybe
    }

    pub(super) fn wake_one(&self, _word: &AtomicU32) {
        let _guard = self.bucket.lock().expect("no model panics under this lock");
        self.condvar.notify_one();
    }

    pub(super) fn wake_all(&self, _word: &AtomicU32) {
        let _guard = self.bucket.lock().expect("no model panics under this lock");
        self.condvar.notify_all();
    }
}
