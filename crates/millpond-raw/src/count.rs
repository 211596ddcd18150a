//! Counting allocations: the system's allocator, with a tally that can be switched on.
//!
//! "No allocation per task in the steady state" is a promise, and a promise is measured. A program that wants to
//! measure declares a [`CountingAlloc`] as its global allocator. Timed runs leave the tally off: all
//! they pay is the load of one word that nobody writes. A run that counts switches it on and pays
//! for a shared counter, so its times are worth nothing.
//!
//! The atomics are std's and not those of [`crate::sync`]: under a checker those allocate, and an
//! allocator that allocates never comes back. All orderings are relaxed. The tally is exact once the
//! threads that were counted are joined; joining is what orders their counts before the reading.
//!
//! # Invariants
//!
//! - **K1** Every request goes to [`System`] with the caller's own arguments, and its answer goes
//!   back as it is. So what the caller of [`GlobalAlloc`] has promised is what `System` asks for,
//!   and what `System` guarantees is what the caller gets.
//! - **K2** Counting does not allocate, does not panic and does not unwind.

#![allow(
    clippy::disallowed_types,
    reason = "an allocator stands below the Sync seam, whose checkers allocate"
)]

use crate::pad::Padded;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::alloc::{GlobalAlloc, Layout, System};

/// The system's allocator, with a tally of what is asked of it.
///
/// ```
/// use millpond_raw::count::CountingAlloc;
///
/// #[global_allocator]
/// static ALLOC: CountingAlloc = CountingAlloc::new();
///
/// let (kept, counts) = ALLOC.count(|| Box::new(7));
/// assert!(counts.allocations >= 1);
/// # assert_eq!(*kept, 7);
/// ```
#[derive(Debug)]
pub struct CountingAlloc {
    /// Read by every request and written hardly ever: it must not share a line with the tally.
    is_on: Padded<AtomicBool>,
    allocations: AtomicU64,
    frees: AtomicU64,
}

/// What was asked of the allocator while it counted, by all threads of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// How often memory was asked for. Growing or shrinking a block asks for memory too.
    pub allocations: u64,
    /// How often memory was given back. Growing or shrinking a block gives the old one back.
    pub frees: u64,
}

impl CountingAlloc {
    /// An allocator that does not count yet.
    pub const fn new() -> Self {
        CountingAlloc {
            is_on: Padded::new(AtomicBool::new(false)),
            allocations: AtomicU64::new(0),
            frees: AtomicU64::new(0),
        }
    }

    /// Runs `f`, and says what was asked of the allocator meanwhile, by this thread and all others.
    /// Count once at a time: two counts at once stop each other.
    pub fn count<T>(&self, f: impl FnOnce() -> T) -> (T, Counts) {
        let before = self.counts();
        self.is_on.store(true, Relaxed);
        // A panic of `f` must not leave the tally on: later timings would pay for it.
        let off = SwitchOff(self);
        let value = f();
        drop(off);
        let after = self.counts();
        let counts = Counts {
            allocations: after.allocations - before.allocations,
            frees: after.frees - before.frees,
        };
        (value, counts)
    }

    fn counts(&self) -> Counts {
        Counts {
            allocations: self.allocations.load(Relaxed),
            frees: self.frees.load(Relaxed),
        }
    }

    #[inline]
    fn note(&self, counter: &AtomicU64) {
        if self.is_on.load(Relaxed) {
            counter.fetch_add(1, Relaxed);
        }
    }
}

impl Default for CountingAlloc {
    fn default() -> Self {
        Self::new()
    }
}

struct SwitchOff<'a>(&'a CountingAlloc);

impl Drop for SwitchOff<'_> {
    fn drop(&mut self) {
        self.0.is_on.store(false, Relaxed);
    }
}

// SAFETY: K1 - `System` keeps the contract, and we only pass its answers on; K2 - nothing unwinds.
unsafe impl GlobalAlloc for CountingAlloc {
    /// # Safety
    ///
    /// As [`GlobalAlloc::alloc`].
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.note(&self.allocations);
        // SAFETY: K1 - the caller promised a layout of non-zero size.
        unsafe { System.alloc(layout) }
    }

    /// # Safety
    ///
    /// As [`GlobalAlloc::alloc_zeroed`].
    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.note(&self.allocations);
        // SAFETY: K1 - the caller promised a layout of non-zero size.
        unsafe { System.alloc_zeroed(layout) }
    }

    /// # Safety
    ///
    /// As [`GlobalAlloc::dealloc`].
    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        self.note(&self.frees);
        // SAFETY: K1 - the caller promised that `block` came from here, hence from `System`, with
        // this layout.
        unsafe { System.dealloc(block, layout) }
    }

    /// # Safety
    ///
    /// As [`GlobalAlloc::realloc`].
    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        self.note(&self.allocations);
        self.note(&self.frees);
        // SAFETY: K1 - the caller promised that `block` came from here, hence from `System`, with
        // this layout, and that the new size is in range.
        unsafe { System.realloc(block, layout, new_size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    const LAYOUT: Layout = Layout::new::<[u64; 4]>();

    fn ask_and_give_back(alloc: &CountingAlloc) {
        // SAFETY: K1 - the layout has 32 bytes.
        let block = unsafe { alloc.alloc(LAYOUT) };
        assert!(!block.is_null());
        // SAFETY: K1 - the block was allocated above with this layout.
        unsafe { alloc.dealloc(block, LAYOUT) };
    }

    #[test]
    fn it_counts_what_is_asked_of_it_while_it_is_on_and_nothing_else() {
        let alloc = CountingAlloc::new();
        ask_and_give_back(&alloc);
        let ((), counts) = alloc.count(|| (0..5).for_each(|_| ask_and_give_back(&alloc)));
        ask_and_give_back(&alloc);
        let expected = Counts {
            allocations: 5,
            frees: 5,
        };
        assert_eq!(counts, expected);
        assert_eq!(alloc.count(|| ()).1, Counts::default());
    }

    #[test]
    fn growing_a_block_asks_and_gives_back_and_keeps_the_content() {
        let alloc = CountingAlloc::new();
        let (first_byte, counts) = alloc.count(|| {
            // SAFETY: K1 - the layout has 32 bytes.
            let block = unsafe { alloc.alloc_zeroed(LAYOUT) };
            // SAFETY: K1 - allocated above with this layout; 64 bytes are in range.
            let block = unsafe { alloc.realloc(block, LAYOUT, 64) };
            assert!(!block.is_null());
            // SAFETY: K1 - the block is ours, has 64 bytes, and the first 32 were zeroed.
            let first_byte = unsafe { block.read() };
            let grown = Layout::from_size_align(64, LAYOUT.align()).unwrap();
            // SAFETY: K1 - the block has this size since it was grown.
            unsafe { alloc.dealloc(block, grown) };
            first_byte
        });
        assert_eq!(first_byte, 0);
        assert_eq!((counts.allocations, counts.frees), (2, 2));
    }

    #[test]
    #[allow(
        clippy::disallowed_methods,
        reason = "the allocator is tested from plain threads, below the Sync seam"
    )]
    fn all_threads_are_counted() {
        let alloc = CountingAlloc::new();
        let ask_often = || (0..100).for_each(|_| ask_and_give_back(&alloc));
        let ((), counts) = alloc.count(|| {
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(ask_often);
                }
            });
        });
        assert_eq!((counts.allocations, counts.frees), (400, 400));
    }

    #[test]
    fn a_panic_switches_the_tally_off() {
        let alloc = CountingAlloc::new();
        let panicked = catch_unwind(AssertUnwindSafe(|| alloc.count(|| panic!("on purpose"))));
        assert!(panicked.is_err());
        assert!(!alloc.is_on.load(Relaxed));
    }
}
