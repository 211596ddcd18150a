//! A futex for platforms without one: a table of std locks and condition variables, by address.
//!
//! A sleeper holds the lock of its bucket from its check of the word until it sleeps; a waker takes the same
//! lock before it notifies. Hence a waker that changed the word before was seen by the check, or finds the
//! sleeper asleep. Words that share a bucket cause each other spurious wake-ups, which a futex may do.
//!
//! A forked process gets its own table ([`reset_after_fork`]): threads that exist only in the parent may hold
//! locks of the old one, forever.
//!
//! # Invariants
//!
//! - **PORTABLE-1** A table is a static, or was made by a process that had one thread (FORK-4 of `fork.rs`),
//!   and lives as long as the process. So a thread that finds a table made it, or was started later.

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
    condvar: Condvar,
}

impl Bucket {
    const fn new() -> Self {
        Bucket {
            lock: Mutex::new(()),
            condvar: Condvar::new(),
        }
    }
}

type Table = [Bucket; BUCKETS];

static FIRST: Table = [const { Bucket::new() }; BUCKETS];

/// Null means `FIRST`; any other table lives as long as the process.
static TABLE: AtomicPtr<Table> = AtomicPtr::new(core::ptr::null_mut());

fn table() -> &'static Table {
    // SAFETY: PORTABLE-1 - null, or made by this thread or before it was started, and never freed.
    unsafe { TABLE.load(Ordering::Relaxed).as_ref() }.unwrap_or(&FIRST)
}

/// A new table, for a process that has just been forked and has one thread. The old one is leaked: its locks
/// may be held.
#[cfg(target_os = "linux")]
pub(crate) fn reset_after_fork() {
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
                    .condvar
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
                .condvar
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
        // Another word's sleeper may share the bucket, so all must check.
        self.wake_all(word);
    }

    pub(super) fn wake_all(&self, word: &AtomicU32) {
        let bucket = bucket(word);
        drop(bucket.lock.lock().unwrap_or_else(PoisonError::into_inner));
        bucket.condvar.notify_all();
    }
}
