//! Atomic pointers that publish immutable values without a lock.
//!
//! [`OnceBox`] is initialised at most once and read by any thread from then on. [`AtomicStaticRef`] holds a
//! reference to a static value, and can be changed at any time.
//!
//! # Invariants
//!
//! - **ONCE-1** The word of a `OnceBox` is null, or comes from [`Box::into_raw`] and stays unchanged until the
//!   `OnceBox` is dropped. So a reference to the value is valid as long as one to the `OnceBox`.
//! - **ONCE-2** The word of `AtomicStaticRef` is null, or was made of a `&'static T`.
//!
//! # Orderings
//!
//! - `[P-once]` Initialising releases, reading acquires: a thread that sees the pointer sees the value. The
//!   load in `drop` needs no ordering, and no model notices if it has none: `&mut` comes after every `&`, and
//!   something has synchronised the two. In practice that is often std's `Arc`, whose ordering loom does not see.
//!   So the load acquires all the same, for loom's sake. It is one load in the life of a `OnceBox`.
//! - `[P-shown]` The same for a pointer to a static value, which may have been leaked a moment ago.

use crate::sync::atomic::{AtomicPtr, Ordering};
use crate::sync::const_outside_models;
use core::fmt;
use core::ptr;

/// A boxed value that is initialised at most once.
///
/// ```
/// use millpond_raw::once_box::OnceBox;
///
/// let mill = OnceBox::new();
/// assert_eq!(mill.get(), None);
/// assert_eq!(mill.get_or_init(|| 7), &7);
/// assert_eq!(mill.get_or_init(|| 8), &7);
/// ```
pub struct OnceBox<T> {
    word: AtomicPtr<T>,
}

// SAFETY: ONCE-1 - by reference it gives out references, and takes values from any thread; the value is
// dropped on the thread that drops this.
unsafe impl<T: Send + Sync> Sync for OnceBox<T> {}
// SAFETY: ONCE-1 - it owns its value as a box does.
unsafe impl<T: Send> Send for OnceBox<T> {}

impl<T> OnceBox<T> {
    const_outside_models! {
        /// An empty one.
        pub fn new() -> Self {
            OnceBox {
                word: AtomicPtr::new(ptr::null_mut()),
            }
        }
    }

    /// The value, if it is initialised.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        // [P-once]
        let word = self.word.load(Ordering::Acquire);
        // SAFETY: ONCE-1.
        unsafe { word.as_ref() }
    }

    /// The value, initialised by `make` if it is missing. If two threads race, the first wins.
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        if let Some(value) = self.get() {
            return value;
        }
        let made = Box::into_raw(Box::new(make()));
        let empty = ptr::null_mut();
        // [P-once]
        let (success, failure) = (Ordering::Release, Ordering::Acquire);
        let filled = self.word.compare_exchange(empty, made, success, failure);
        let word = match filled {
            Ok(_) => made,
            Err(first) => {
                // SAFETY: ONCE-1 - this box was not published, so it is still ours.
                drop(unsafe { Box::from_raw(made) });
                first
            }
        };
        // SAFETY: ONCE-1 - it is initialised.
        unsafe { &*word }
    }
}

impl<T> Drop for OnceBox<T> {
    fn drop(&mut self) {
        // [P-once] unmodelled: `&mut self` suffices (header); the acquire is for checkers
        let word = self.word.load(Ordering::Acquire);
        if !word.is_null() {
            // SAFETY: ONCE-1 - `&mut self` excludes all others.
            drop(unsafe { Box::from_raw(word) });
        }
    }
}

impl<T> Default for OnceBox<T> {
    fn default() -> Self {
        OnceBox::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for OnceBox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OnceBox").field(&self.get()).finish()
    }
}

/// An atomic `Option<&'static T>`.
///
/// ```
/// use millpond_raw::once_box::AtomicStaticRef;
///
/// let cell = AtomicStaticRef::new();
/// cell.set(&"the mill");
/// assert_eq!(cell.get(), Some(&"the mill"));
/// ```
pub struct AtomicStaticRef<T: 'static> {
    word: AtomicPtr<T>,
}

impl<T: Sync> AtomicStaticRef<T> {
    /// Without a reference.
    pub fn new() -> Self {
        AtomicStaticRef {
            word: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Publishes a reference.
    #[inline]
    pub fn set(&self, what: &'static T) {
        let word = ptr::from_ref(what).cast_mut();
        // [P-shown]
        self.word.store(word, Ordering::Release);
    }

    /// The last published reference.
    pub fn get(&self) -> Option<&'static T> {
        // [P-shown]
        let word = self.word.load(Ordering::Acquire);
        // SAFETY: ONCE-2.
        unsafe { word.as_ref() }
    }
}

impl<T: Sync> Default for AtomicStaticRef<T> {
    fn default() -> Self {
        AtomicStaticRef::new()
    }
}

impl<T: Sync + fmt::Debug> fmt::Debug for AtomicStaticRef<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AtomicStaticRef").field(&self.get()).finish()
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;
    use crate::sync::thread;
    use std::sync::Arc;

    #[test]
    fn of_many_initialisers_one_wins_and_all_see_its_value() {
        let once = Arc::new(OnceBox::new());
        let threads: Vec<_> = (0..4)
            .map(|number| {
                let once = Arc::clone(&once);
                thread::spawn(move || once.get_or_init(|| Arc::new(number)).clone())
            })
            .collect();
        let seen: Vec<_> = threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect();
        let first = once.get().unwrap();
        assert!(seen.iter().all(|other| Arc::ptr_eq(other, first)));
        let value = Arc::clone(first);
        drop(seen);
        drop(once);
        assert_eq!(
            Arc::strong_count(&value),
            1,
            "the losers' values are dropped"
        );
    }

    #[test]
    fn a_published_reference_can_be_replaced() {
        let shown = AtomicStaticRef::new();
        assert_eq!(shown.get(), None);
        shown.set(&1);
        shown.set(&2);
        assert_eq!(shown.get(), Some(&2));
    }
}
