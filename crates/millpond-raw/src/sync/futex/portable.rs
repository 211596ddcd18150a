//! A futex for platforms without one: a table of std locks and condition variables, by address.
//!
//! A sleeper holds the lock of its bucket while it looks at the word and until it sleeps; a waker
//! takes the same lock before it rings. Hence a waker that changed the word before it came either
//! was seen by the look or finds the sleeper asleep. Words that share a bucket wake each other for
//! no reason, which a futex may do.
//!
//! A process that `fork` has made takes a table of its own ([`start_anew`]): threads that it does not
//! have may hold locks of the old one, for ever.
//!
//! # Invariants
//!
//! - **N1** A table is a static or was made by a process that had one thread yet (F4 of `fork.rs`), and
//!   lives as long as the process. So whoever finds one is the thread that made it or was started later.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "this is the seam"
)]

use super::Woken;
use crate::sync::atomic::{AtomicU32, Ordering};
use std::sync::atomic::AtomicPtr;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

const BUCKETS: usize = 64;

struct Bucket {
    lock: Mutex<()>,
    bell: Condvar,
}

impl Bucket {
    const fn new() -> Self {
        Bucket {
            lock: Mutex::new(()),
            bell: Condvar::new(),
        }
    }
}

type Table = [Bucket; BUCKETS];

static FIRST: Table = [const { Bucket::new() }; BUCKETS];

/// Null stands for the first one; every other lives as long as the process.
static TABLE: AtomicPtr<Table> = AtomicPtr::new(core::ptr::null_mut());

fn table() -> &'static Table {
    // SAFETY: N1 - null, or made by this thread or before this thread was, and never freed.
    unsafe { TABLE.load(Ordering::Relaxed).as_ref() }.unwrap_or(&FIRST)
}

/// A new table, for a process that has just been forked and has one thread. The old one is left to
/// itself: somebody may have been in there.
#[cfg(target_os = "linux")]
pub(crate) fn start_anew() {
    let table: Box<Table> = Box::new([const { Bucket::new() }; BUCKETS]);
    TABLE.store(Box::leak(table), Ordering::Relaxed);
}

fn bucket(word: &AtomicU32) -> &'static Bucket {
    let address = core::ptr::from_ref(word).addr();
    // Fibonacci hashing: the high bits of the product depend on every bit of the address.
    let hash = (address >> 2).wrapping_mul(0x9e37_79b9) as u32;
    &table()[(hash >> 26) as usize % BUCKETS]
}

/// The table keeps the sleepers; nothing is stored here.
#[derive(Debug)]
pub(super) struct Sleepers;

impl Sleepers {
    pub(super) const fn new() -> Self {
        Sleepers
    }

    pub(super) fn wait(&self, word: &AtomicU32, expected: u32, until: Option<Instant>) -> Woken {
        let bucket = bucket(word);
        let guard = bucket.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if word.load(Ordering::Relaxed) != expected {
            return Woken::Maybe;
        }
        let Some(deadline) = until else {
            drop(
                bucket
                    .bell
                    .wait(guard)
                    .unwrap_or_else(PoisonError::into_inner),
            );
            return Woken::Maybe;
        };
        let Some(left) = deadline.checked_duration_since(Instant::now()) else {
            return Woken::TimedOut;
        };
        drop(
            bucket
                .bell
                .wait_timeout(guard, left)
                .unwrap_or_else(PoisonError::into_inner),
        );
        if Instant::now() >= deadline {
            Woken::TimedOut
        } else {
            Woken::Maybe
        }
    }

    pub(super) fn wake_one(&self, word: &AtomicU32) {
        // Another word's sleeper may share the bucket, so everyone must look.
        self.wake_all(word);
    }

    pub(super) fn wake_all(&self, word: &AtomicU32) {
        let bucket = bucket(word);
        drop(bucket.lock.lock().unwrap_or_else(PoisonError::into_inner));
        bucket.bell.notify_all();
    }
}
