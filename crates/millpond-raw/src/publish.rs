//! Words through which one thread shows others something that does not change.
//!
//! [`Once`] is filled at most once and read by anybody from then on, without a lock on either side.
//! [`Shown`] holds a reference to something that lives for ever, and can be changed at will.
//!
//! # Invariants
//!
//! - **P1** The word of a `Once` is null, or comes from [`Box::into_raw`] and stays as it is until the
//!   `Once` is dropped, alone. So a reference to what it points to is good for as long as one to the
//!   `Once` is.
//! - **P2** The word of a `Shown` is null, or was made of a `&'static T`.
//!
//! # Orderings
//!
//! - `[P-once]` Filling releases, reading acquires: whoever sees the pointer sees what it points to. The
//!   reading when a `Once` drops needs no order of its own, and no model can notice if it has none: whoever
//!   has `&mut` to it comes after all who had `&`, by whatever brought the last of them to give it up. In
//!   life that is often std's `Arc`, whose order loom does not see. So it acquires all the same, for loom to
//!   see what it orders; it is a load, once in the life of a `Once`.
//! - `[P-shown]` Likewise: what lives for ever may have been made a moment ago.

use crate::sync::atomic::{AtomicPtr, Ordering};
use core::fmt;
use core::ptr;

/// A place that is filled at most once.
///
/// ```
/// use millpond_raw::publish::Once;
///
/// let mill = Once::new();
/// assert_eq!(mill.get(), None);
/// assert_eq!(mill.get_or_fill(|| 7), &7);
/// assert_eq!(mill.get_or_fill(|| 8), &7);
/// ```
pub struct Once<T> {
    word: AtomicPtr<T>,
}

// SAFETY: P1 - by reference it gives out references, and moves values in from any thread; when it
// drops, on whatever thread, so does the value.
unsafe impl<T: Send + Sync> Sync for Once<T> {}
// SAFETY: P1 - it owns its value as a box does.
unsafe impl<T: Send> Send for Once<T> {}

impl<T> Once<T> {
    /// Empty.
    pub fn new() -> Self {
        Once {
            word: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// What is in it.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        // [P-once]
        let word = self.word.load(Ordering::Acquire);
        // SAFETY: P1.
        unsafe { word.as_ref() }
    }

    /// What is in it, after it has been filled if it was empty. If two fill it, the first wins.
    pub fn get_or_fill(&self, make: impl FnOnce() -> T) -> &T {
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
                // SAFETY: P1 - this one did not get in, so it is still ours alone.
                drop(unsafe { Box::from_raw(made) });
                first
            }
        };
        // SAFETY: P1 - it is filled.
        unsafe { &*word }
    }
}

impl<T> Drop for Once<T> {
    fn drop(&mut self) {
        // [P-once] unmodelled: `&mut self` is proof enough (header); it is there for checkers
        let word = self.word.load(Ordering::Acquire);
        if !word.is_null() {
            // SAFETY: P1 - nobody else is left.
            drop(unsafe { Box::from_raw(word) });
        }
    }
}

impl<T> Default for Once<T> {
    fn default() -> Self {
        Once::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for Once<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Once").field(&self.get()).finish()
    }
}

/// A reference to something that lives for ever, for others to see.
///
/// ```
/// use millpond_raw::publish::Shown;
///
/// let place = Shown::nothing();
/// place.show(&"the mill");
/// assert_eq!(place.get(), Some(&"the mill"));
/// ```
pub struct Shown<T: 'static> {
    word: AtomicPtr<T>,
}

impl<T: Sync> Shown<T> {
    /// Shows nothing.
    pub fn nothing() -> Self {
        Shown {
            word: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Shows this from now on.
    #[inline]
    pub fn show(&self, what: &'static T) {
        let word = ptr::from_ref(what).cast_mut();
        // [P-shown]
        self.word.store(word, Ordering::Release);
    }

    /// What it shows.
    pub fn get(&self) -> Option<&'static T> {
        // [P-shown]
        let word = self.word.load(Ordering::Acquire);
        // SAFETY: P2.
        unsafe { word.as_ref() }
    }
}

impl<T: Sync> Default for Shown<T> {
    fn default() -> Self {
        Shown::nothing()
    }
}

impl<T: Sync + fmt::Debug> fmt::Debug for Shown<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Shown").field(&self.get()).finish()
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;
    use crate::sync::thread;
    use std::sync::Arc;

    #[test]
    fn of_many_who_fill_one_gets_in_and_all_see_it() {
        let once = Arc::new(Once::new());
        let fillers: Vec<_> = (0..4)
            .map(|number| {
                let once = Arc::clone(&once);
                thread::spawn(move || once.get_or_fill(|| Arc::new(number)).clone())
            })
            .collect();
        let seen: Vec<_> = fillers
            .into_iter()
            .map(|filler| filler.join().unwrap())
            .collect();
        let first = once.get().unwrap();
        assert!(seen.iter().all(|other| Arc::ptr_eq(other, first)));
        let value = Arc::clone(first);
        drop(seen);
        drop(once);
        assert_eq!(
            Arc::strong_count(&value),
            1,
            "what did not get in is gone, too"
        );
    }

    #[test]
    fn what_is_shown_can_change() {
        let shown = Shown::nothing();
        assert_eq!(shown.get(), None);
        shown.show(&1);
        shown.show(&2);
        assert_eq!(shown.get(), Some(&2));
    }
}
