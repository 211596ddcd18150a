//! The lock: a futex word with three values, and the data it guards.
//!
//! ```text
//!            lock (CAS)                 slow lock (swap)
//!   FREE ---------------> HELD  ---------------------------> CONTENDED
//!    ^                     |                                     |
//!    +---- unlock (swap) --+------- unlock (swap) + wake one ----+
//! ```
//!
//! Without contention a lock is one CAS and an unlock one swap, and neither enters the kernel. A thread that
//! finds the lock taken spins a little, then marks it CONTENDED and sleeps. It also *takes* the lock as
//! CONTENDED, because it cannot know whether others still sleep: one wake too many at the end of a contended
//! phase, never one too few.
//!
//! It does not poison: user code never runs under our locks, and a guard dropped while unwinding leaves the
//! data as the last finished step did. It is not fair and not re-entrant.
//!
//! It sleeps on the futex directly and not through [`crate::park`]: these locks guard a few instructions, and
//! a virtual thread that unmounted in the middle would leave them held. **No thread parks or calls user code
//! while it holds one**: in test builds [`user_code`] checks that, and each lock reports to it when it is
//! taken and released.
//!
//! # Why an unlock is a swap
//!
//! A load and a plain store would lose a sleeper that marks the word between the two, and a `membarrier` by
//! the sleeper does not help: the owner may be preempted at just that point. What does work is a second word
//! that counts waiters, read after the store, and a `membarrier` before one sleeps. Measured and rejected: it
//! saves 0.3 to 1.2 ns of an uncontended lock, nothing that shows in a queue between threads or in a pool,
//! and each sleeper interrupts all other processors for 1.2 µs.
//!
//! # Invariants
//!
//! - **LOCK-1** A thread that moved the word from FREE to HELD or CONTENDED owns the lock until it swaps FREE
//!   in. Only the owner makes a reference to the data.
//! - **LOCK-2** The access to the data ends before the word turns FREE (the fields of [`MutexGuard`] drop in
//!   that order).
//! - **LOCK-3** A thread sleeps only while the word is CONTENDED, and a thread that swaps CONTENDED for FREE
//!   wakes one sleeper.
//!
//! # Orderings
//!
//! - `[L-own]` Unlock releases, lock acquires: the next owner sees what the last one wrote. Both ways into
//!   the lock, the CAS and the slow swap, acquire.

use super::atomic::Ordering;
use super::traffic::{Access, record};
use super::{Futex, MutPtr, UnsafeCell, chaos, hint, spins};
use crate::user_code;
use core::fmt;
use core::ops::{Deref, DerefMut};

const FREE: u32 = 0;
const HELD: u32 = 1;
const CONTENDED: u32 = 2;

/// The lock without data.
#[derive(Debug)]
pub(crate) struct RawLock {
    word: Futex,
}

impl RawLock {
    const_outside_models! {
        pub(super) fn new() -> Self {
            RawLock {
                word: Futex::new(FREE),
            }
        }
    }

    /// Its identity for [`user_code`].
    #[inline]
    fn address(&self) -> *const () {
        core::ptr::from_ref(self).cast()
    }

    #[inline]
    #[cfg_attr(millpond_traffic, track_caller)]
    fn try_lock(&self) -> bool {
        let acquired = self
            .word
            // [L-own]
            .compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed)
            .is_ok();
        if acquired {
            record(self.address(), Access::Acquired);
        }
        acquired
    }

    #[inline]
    #[cfg_attr(millpond_traffic, track_caller)]
    pub(crate) fn lock(&self) {
        if !self.try_lock() {
            self.lock_slow();
        }
        chaos::point("lock.held");
    }

    #[cold]
    #[cfg_attr(millpond_traffic, track_caller)]
    fn lock_slow(&self) {
        for _ in 0..spins() {
            match self.word.load(Ordering::Relaxed) {
                FREE if self.try_lock() => return,
                // Others sleep already; spinning would only delay them.
                CONTENDED => break,
                _ => hint::spin_loop(),
            }
        }
        // [L-own]
        while self.word.swap(CONTENDED, Ordering::Acquire) != FREE {
            let _ = self.word.wait(CONTENDED, None);
        }
        record(self.address(), Access::Acquired);
    }

    #[inline]
    pub(crate) fn unlock(&self) {
        chaos::point("lock.release");
        record(self.address(), Access::Released);
        // [L-own]
        let before = self.word.swap(FREE, Ordering::Release);
        if before == CONTENDED {
            self.word.wake_one();
        }
    }
}

/// A value that one thread at a time may access.
///
/// ```
/// use millpond_raw::sync::Mutex;
///
/// let jar = Mutex::new(vec![1]);
/// jar.lock().push(2);
/// assert_eq!(*jar.lock(), [1, 2]);
/// ```
pub struct Mutex<T: ?Sized> {
    lock: RawLock,
    data: UnsafeCell<T>,
}

// SAFETY: LOCK-1 - a reference to the data exists in one thread at a time, so sharing the lock amounts to
// moving `T` between threads.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}
// SAFETY: LOCK-1 - as above.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}

impl<T> Mutex<T> {
    const_outside_models! {
        /// A lock around `value`.
        pub fn new(value: T) -> Self {
            Mutex {
                lock: RawLock::new(),
                data: UnsafeCell::new(value),
            }
        }
    }

    /// The lock without its data.
    #[allow(dead_code, reason = "only where processes fork")]
    pub(crate) fn raw(&self) -> &RawLock {
        &self.lock
    }

    /// Returns the value.
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Acquires the lock. A thread that already holds it deadlocks.
    #[inline]
    #[track_caller]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.lock.lock();
        user_code::record_locked(self.lock.address());
        MutexGuard {
            data: self.data.get_mut(),
            _unlock: Unlock(&self.lock),
        }
    }

    /// Acquires the lock if it is free.
    #[inline]
    #[track_caller]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        if !self.lock.try_lock() {
            return None;
        }
        user_code::record_locked(self.lock.address());
        Some(MutexGuard {
            data: self.data.get_mut(),
            _unlock: Unlock(&self.lock),
        })
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Mutex::new(T::default())
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.try_lock() {
            Some(guard) => f.debug_tuple("Mutex").field(&&*guard).finish(),
            None => f.write_str("Mutex(<locked>)"),
        }
    }
}

/// Access to the data; dropping it releases the lock.
#[must_use = "a guard that is dropped at once guards nothing"]
pub struct MutexGuard<'a, T: ?Sized> {
    // LOCK-2: fields drop in this order, the access before the lock.
    data: MutPtr<T>,
    _unlock: Unlock<'a>,
}

struct Unlock<'a>(&'a RawLock);

impl Drop for Unlock<'_> {
    #[inline]
    fn drop(&mut self) {
        user_code::record_unlocked(self.0.address());
        self.0.unlock();
    }
}

// SAFETY: LOCK-1 - sharing a guard shares `&T` and nothing else. It is not `Send`, because `MutPtr` holds a
// raw pointer: a lock is released where it was taken, as loom expects too.
unsafe impl<T: ?Sized + Sync> Sync for MutexGuard<'_, T> {}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: LOCK-1 - the guard owns the lock for as long as the reference lives.
        self.data.with(|data| unsafe { &*data })
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: LOCK-1 - the guard owns the lock, and `&mut self` makes this the only reference.
        self.data.with(|data| unsafe { &mut *data })
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;
    use crate::sync::thread;
    use std::sync::Arc;

    #[test]
    fn increments_under_the_lock_are_never_lost() {
        let total = Arc::new(Mutex::new(0_u64));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let total = Arc::clone(&total);
                thread::spawn(move || (0..10_000).for_each(|_| *total.lock() += 1))
            })
            .collect();
        for thread in threads {
            thread.join().expect("it only counts");
        }
        assert_eq!(*total.lock(), 40_000);
    }

    #[test]
    fn a_held_lock_is_refused_and_shown_as_locked() {
        let jar = Mutex::new(1);
        let guard = jar.lock();
        assert!(jar.try_lock().is_none());
        assert_eq!(format!("{jar:?}"), "Mutex(<locked>)");
        drop(guard);
        assert_eq!(format!("{jar:?}"), "Mutex(1)");
    }

    #[test]
    fn a_guard_dropped_by_a_panic_frees_the_lock_and_keeps_the_data() {
        let jar = Mutex::new(1);
        let held = crate::catch_panic::call(|| {
            let mut guard = jar.lock();
            *guard = 2;
            std::panic::resume_unwind(Box::new(()));
        });
        assert!(held.is_none());
        assert_eq!(*jar.lock(), 2);
    }
}
