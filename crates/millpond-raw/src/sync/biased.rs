//! A lock for data that one thread uses all the time, and others now and then.
//!
//! The one is its *keeper*: it has the [`BiasKey`]. The others are strangers. While no stranger comes the lock is *biased*,
//! and the keeper enters and leaves by plain stores. A stranger revokes the bias, and then the lock is *shared*: an
//! ordinary lock, also for the keeper, until that has used it [`CALM`] times and met nobody.
//!
//! ```text
//!                keeper: CALM times alone                        stranger, under the lock:
//!   SHARED  ------------------------------->  BIASED  ------>  REVOKING  -- heavy fence, the keeper is out -->  SHARED
//!   all take the lock                         keeper:   IN, light fence, still BIASED?  ..  OUT
//! ```
//!
//! # What it costs
//!
//! To use a lock that is biased takes a few stores instead of two locked instructions. To revoke a bias takes a heavy fence
//! ([`super::fences`]), a microsecond or some. That is as much as the keeper saves in [`CALM`] uses, more or less. So
//! whatever strangers do, both together pay at most about twice what an ordinary lock costs. Without heavy fences it is never
//! biased.
//!
//! # Invariants
//!
//! - **BIAS-1** A lock has one key at most that fits: numbers of keys are never used twice, and a lock takes a new number only
//!   while it has none. The key is neither `Sync` nor `Clone`, so one thread at a time is the keeper.
//! - **BIAS-2** A thread touches the data if it holds the lock and the mode is SHARED; or if it is the keeper, has written IN,
//!   and has read BIASED afterwards.
//! - **BIAS-3** The mode changes under the lock. Only the keeper makes it BIASED.
//! - **BIAS-4** The keeper writes IN, then reads the mode, with a light fence between; a stranger writes REVOKING, then reads
//!   whether the keeper is in, with a heavy fence between. So the keeper does not enter, or the stranger waits for it. The
//!   mode is SHARED only afterwards.
//! - **BIAS-5** A stranger sleeps while the keeper is IN, with REVOKING written before a heavy fence. The keeper writes OUT,
//!   then reads the mode, with a light fence between, and wakes the stranger unless it reads BIASED. At most one stranger
//!   waits there: it holds the lock.
//!
//! # Orderings
//!
//! - `[L-bias]` The keeper's OUT releases what it did to the data; the stranger that revokes the bias acquires that. The other
//!   direction is that of the lock (`[L-own]`): a keeper whose bias was revoked takes it.
//! - `[L-settle]` For what a thread does beside the data, see [`BiasedMutex::order`]: SHARED releases the heavy fence behind
//!   which it was written; whoever acquires that needs no fence of its own. The keeper has a fence behind BIASED: a thread
//!   that reads an older SHARED behind a fence is seen by what the keeper reads then.

use super::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use super::{Futex, IN_MODEL, RawLock, UnsafeCell, chaos, fences, global, hint, spins};
use crate::user_code;
use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;

const SHARED: u32 = 0;
const REVOKING: u32 = 1;
const BIASED: u32 = 2;

/// The keeper is not in, or holds the lock.
const OUT: u32 = 0;
/// The keeper is in, or finds out that it may not be.
const IN: u32 = 1;

/// So often the keeper of a [`BiasedMutex`] has to use it and meet nobody before it is biased.
pub const CALM: u32 = if IN_MODEL {
    1
} else if cfg!(millpond_chaos) {
    8
} else {
    512
};

/// The lock takes this number for none.
const NOBODY: u64 = 0;
/// A key with this number fits no lock.
const NO_LOCK: u64 = u64::MAX;

global! {
    static NUMBERS: AtomicU64 = AtomicU64::new(NOBODY + 1);
}

/// Makes a thread the keeper of one lock.
#[derive(Debug)]
pub struct BiasKey {
    number: u64,
    /// Not `Sync` (BIAS-1).
    _one_thread: PhantomData<Cell<()>>,
}

/// A value that one thread at a time may access.
///
/// ```
/// use millpond_raw::sync::BiasedMutex;
///
/// let jar = BiasedMutex::new(vec![1]);
/// let mut key = jar.keep().expect("nobody keeps it");
/// jar.with_key(&key, |jar| jar.push(2));
/// jar.with(|jar| assert_eq!(jar, &[1, 2]));
/// jar.give_up(&mut key);
/// ```
pub struct BiasedMutex<T> {
    keeper: Futex,
    mode: AtomicU32,
    lock: RawLock,
    /// That of its key. Changes under the lock.
    number: AtomicU64,
    inner: UnsafeCell<Inner<T>>,
}

struct Inner<T> {
    /// How often in a row the keeper has used it while it was shared.
    calm: u32,
    value: T,
}

// SAFETY: BIAS-2 - a reference to the data exists in one thread at a time, so sharing it amounts to moving `T`.
unsafe impl<T: Send> Send for BiasedMutex<T> {}
// SAFETY: BIAS-2 - as above.
unsafe impl<T: Send> Sync for BiasedMutex<T> {}

impl<T> BiasedMutex<T> {
    /// A lock without a keeper.
    pub fn new(value: T) -> Self {
        BiasedMutex {
            keeper: Futex::new(OUT),
            mode: AtomicU32::new(SHARED),
            lock: RawLock::new(),
            number: AtomicU64::new(NOBODY),
            inner: UnsafeCell::new(Inner { calm: 0, value }),
        }
    }

    fn address(&self) -> *const () {
        core::ptr::from_ref(self).cast()
    }

    /// Its key, if nobody has one.
    pub fn keep(&self) -> Option<BiasKey> {
        self.lock.lock();
        let _unlock = Unlock(&self.lock);
        if self.number.load(Ordering::Relaxed) != NOBODY {
            return None;
        }
        // BIAS-1
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        self.number.store(number, Ordering::Relaxed);
        Some(BiasKey {
            number,
            _one_thread: PhantomData,
        })
    }

    /// Ends that the key fits. Another thread may keep the lock.
    pub fn give_up(&self, key: &mut BiasKey) {
        self.lock.lock();
        let _unlock = Unlock(&self.lock);
        if self.fits(key) {
            self.revoke();
            self.number.store(NOBODY, Ordering::Relaxed);
            key.number = NO_LOCK;
        }
    }

    #[inline]
    fn fits(&self, key: &BiasKey) -> bool {
        self.number.load(Ordering::Relaxed) == key.number
    }

    /// Calls `f` with the data, on whichever thread. If it is called inside of itself it waits for ever.
    #[track_caller]
    pub fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        self.lock.lock();
        user_code::record_locked(self.address());
        let _unlock = UnlockRecorded(self);
        self.revoke();
        self.inner.with_mut(|inner| {
            // SAFETY: BIAS-2 - we hold the lock, and it is shared.
            let inner = unsafe { &mut *inner };
            inner.calm = 0;
            f(&mut inner.value)
        })
    }

    /// As [`with`](BiasedMutex::with), for the keeper.
    ///
    /// # Panics
    ///
    /// If the keeper calls it inside of itself.
    #[inline]
    #[track_caller]
    pub fn with_key<R>(&self, key: &BiasKey, f: impl FnOnce(&mut T) -> R) -> R {
        if !self.fits(key) {
            return self.with(f);
        }
        if !self.enter() {
            return self.with_shared(f);
        }
        user_code::record_locked(self.address());
        let _leave = Leave(self);
        // SAFETY: BIAS-2 - we are the keeper, and have read BIASED after IN.
        self.inner
            .with_mut(|inner| f(unsafe { &mut (*inner).value }))
    }

    /// The keeper enters, if the lock is biased.
    #[inline]
    fn enter(&self) -> bool {
        if self.mode.load(Ordering::Relaxed) != BIASED {
            return false;
        }
        assert!(
            self.keeper.load(Ordering::Relaxed) == OUT,
            "a lock is used inside of itself"
        );
        self.keeper.store(IN, Ordering::Relaxed);
        // BIAS-4
        fences::light();
        chaos::point("biased.in");
        if self.mode.load(Ordering::Relaxed) == BIASED {
            return true;
        }
        self.leave();
        false
    }

    #[inline]
    fn leave(&self) {
        chaos::point("biased.leave");
        // [L-bias]
        self.keeper.store(OUT, Ordering::Release);
        // BIAS-5
        fences::light();
        if self.mode.load(Ordering::Relaxed) != BIASED {
            self.wake_stranger();
        }
    }

    #[cold]
    fn wake_stranger(&self) {
        self.keeper.wake_one();
    }

    /// The keeper uses it as an ordinary lock.
    #[inline(never)]
    #[track_caller]
    fn with_shared<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        self.lock.lock();
        user_code::record_locked(self.address());
        let _unlock = UnlockRecorded(self);
        debug_assert_eq!(self.mode.load(Ordering::Relaxed), SHARED, "BIAS-3");
        self.inner.with_mut(|inner| {
            // SAFETY: BIAS-2 - we hold the lock, and BIAS-3 - nobody but us would have made it BIASED.
            let inner = unsafe { &mut *inner };
            let done = f(&mut inner.value);
            inner.calm += 1;
            if inner.calm >= CALM {
                inner.calm = 0;
                if fences::are_asymmetric() {
                    self.mode.store(BIASED, Ordering::Relaxed);
                    // [L-settle] unmodelled: on the way to the next use of the data there is a fence of the models anyway
                    fence(Ordering::SeqCst);
                }
            }
            done
        })
    }

    /// A stranger that holds the lock makes it shared (BIAS-4).
    #[inline]
    fn revoke(&self) {
        if self.mode.load(Ordering::Relaxed) == BIASED {
            self.revoke_slow();
        }
    }

    #[cold]
    fn revoke_slow(&self) {
        self.mode.store(REVOKING, Ordering::Relaxed);
        fences::heavy();
        let mut left = spins();
        // [L-bias]
        while self.keeper.load(Ordering::Acquire) == IN {
            if left > 0 {
                left -= 1;
                hint::spin_loop();
            } else {
                // BIAS-5
                let _ = self.keeper.wait(IN, None);
            }
        }
        // [L-settle] unmodelled: heavy fences are ordinary ones in models, where each side has its own
        self.mode.store(SHARED, Ordering::Release);
    }

    /// A fence of the keeper: what it has written, under this lock or not, is seen by a thread that has called
    /// [`settle`](BiasedMutex::settle) behind a write and a fence of its own, or the keeper sees that write behind this.
    /// It is free while the lock is biased.
    #[inline]
    pub fn order(&self, key: &BiasKey) {
        if self.fits(key) && self.mode.load(Ordering::Relaxed) == BIASED {
            fences::light();
        } else {
            // [L-settle] unmodelled: in models a lock is biased after one use, or its stranger has taken it, which orders
            fence(Ordering::SeqCst);
        }
    }

    /// The other side of [`order`](BiasedMutex::order), which needs a fence of the caller before it. It costs one load
    /// unless the lock is biased, or has just been.
    #[inline]
    pub fn settle(&self) {
        // [L-settle] unmodelled: see above
        if self.mode.load(Ordering::Acquire) != SHARED {
            self.with(|_| ());
        }
    }
}

impl<T: Default> Default for BiasedMutex<T> {
    fn default() -> Self {
        BiasedMutex::new(T::default())
    }
}

impl<T> fmt::Debug for BiasedMutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_biased = self.mode.load(Ordering::Relaxed) == BIASED;
        f.debug_struct("BiasedMutex")
            .field("is_biased", &is_biased)
            .finish_non_exhaustive()
    }
}

struct Unlock<'a>(&'a RawLock);

impl Drop for Unlock<'_> {
    fn drop(&mut self) {
        self.0.unlock();
    }
}

struct UnlockRecorded<'a, T>(&'a BiasedMutex<T>);

impl<T> Drop for UnlockRecorded<'_, T> {
    #[inline]
    fn drop(&mut self) {
        user_code::record_unlocked(self.0.address());
        self.0.lock.unlock();
    }
}

struct Leave<'a, T>(&'a BiasedMutex<T>);

impl<T> Drop for Leave<'_, T> {
    #[inline]
    fn drop(&mut self) {
        user_code::record_unlocked(self.0.address());
        self.0.leave();
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;
    use crate::sync::thread;
    use std::sync::Arc;

    /// A lock whose keeper is alone.
    fn biased() -> (Arc<BiasedMutex<u64>>, BiasKey) {
        let jar = Arc::new(BiasedMutex::new(0));
        let key = jar.keep().expect("it is new");
        (0..CALM).for_each(|_| jar.with_key(&key, |jar| *jar += 1));
        let is_biased = jar.mode.load(Ordering::Relaxed) == BIASED;
        assert_eq!(is_biased, fences::are_asymmetric());
        (jar, key)
    }

    #[test]
    fn a_lock_whose_keeper_is_alone_gets_biased_and_a_stranger_revokes_that() {
        let (jar, key) = biased();
        jar.with_key(&key, |jar| *jar += 1);
        let stranger = Arc::clone(&jar);
        let seen = thread::spawn(move || stranger.with(|jar| *jar)).join();
        assert_eq!(seen.expect("it only reads"), u64::from(CALM) + 1);
        assert_eq!(jar.mode.load(Ordering::Relaxed), SHARED);
        jar.with_key(&key, |jar| *jar += 1);
        assert_eq!(jar.with(|jar| *jar), u64::from(CALM) + 2);
    }

    #[test]
    fn it_has_one_keeper_at_a_time_and_a_key_that_was_given_up_fits_no_more() {
        let (jar, mut key) = biased();
        assert!(jar.keep().is_none());
        jar.give_up(&mut key);
        let own = jar.keep().expect("nobody keeps it");
        (0..CALM).for_each(|_| jar.with_key(&own, |jar| *jar += 1));
        // A stranger.
        jar.with_key(&key, |jar| *jar += 1);
        assert_eq!(jar.mode.load(Ordering::Relaxed), SHARED);
        let other = BiasedMutex::new(0_u64);
        other.with_key(&own, |other| *other += 1);
        other.give_up(&mut key);
        assert!(other.keep().is_some());
    }

    #[test]
    fn a_panic_inside_leaves_the_lock_free() {
        let (jar, key) = biased();
        let held = crate::catch_panic::call(|| {
            jar.with_key(&key, |jar| {
                *jar = 7;
                std::panic::resume_unwind(Box::new(()));
            });
        });
        assert!(held.is_none());
        assert_eq!(jar.with(|jar| *jar), 7);
    }

    #[test]
    fn increments_of_keeper_and_strangers_are_never_lost() {
        let (jar, key) = biased();
        let rounds = 200_000;
        let strangers: Vec<_> = (0..2)
            .map(|_| {
                let jar = Arc::clone(&jar);
                thread::spawn(move || {
                    for _ in 0..200 {
                        jar.with(|jar| *jar += 1);
                        (0..20).for_each(|_| thread::yield_now());
                    }
                })
            })
            .collect();
        (0..rounds).for_each(|_| jar.with_key(&key, |jar| *jar += 1));
        for stranger in strangers {
            stranger.join().expect("it only counts");
        }
        assert_eq!(jar.with(|jar| *jar), u64::from(CALM) + rounds + 400);
    }
}
