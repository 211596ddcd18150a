//! A counting allocator: the system's, with counters that can be switched on.
//!
//! "No allocation per task in the steady state" is a promise that has to be measured. A measuring program
//! declares a [`CountingAlloc`] as its global allocator. Timed runs leave the counters off and pay one load
//! of a word that is never written. A counting run pays for shared counters, so its times are meaningless.
//!
//! The atomics are std's and not those of [`crate::sync`]: under a checker those allocate, so the allocator
//! would recurse. All orderings are relaxed. The counts are exact once the counted threads are joined; the
//! join orders their counts before the read.
//!
//! # Invariants
//!
//! - **ALLOC-1** Every request goes to [`System`] with the caller's own arguments, and its answer is returned
//!   unchanged. So what the caller of [`GlobalAlloc`] promises is what `System` requires, and what `System`
//!   guarantees is what the caller gets.
//! - **ALLOC-2** Counting does not allocate, does not panic and does not unwind.

#![allow(
    clippy::disallowed_types,
    reason = "an allocator stands below the Sync seam, whose checkers allocate"
)]

use crate::cache_padded::CachePadded;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::alloc::{GlobalAlloc, Layout, System};

/// The system's allocator, with counters.
///
/// ```
/// use millpond_raw::count_alloc::CountingAlloc;
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
    /// Read by every request and rarely written, so it must not share a line with the counters.
    is_on: CachePadded<AtomicBool>,
    allocations: AtomicU64,
    frees: AtomicU64,
}

/// The requests of all threads of the process while counting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Allocations. A reallocation is one too.
    pub allocations: u64,
    /// Frees. A reallocation is one too.
    pub frees: u64,
}

impl CountingAlloc {
    /// An allocator that is not counting.
    pub const fn new() -> Self {
        CountingAlloc {
            is_on: CachePadded::new(AtomicBool::new(false)),
            allocations: AtomicU64::new(0),
            frees: AtomicU64::new(0),
        }
    }

    /// Runs `f`, and counts the requests of all threads meanwhile. One call at a time: two concurrent calls
    /// switch each other off.
    pub fn count<T>(&self, f: impl FnOnce() -> T) -> (T, Counts) {
        let before = self.counts();
        self.is_on.store(true, Relaxed);
        // A panic of `f` must not leave counting on: later timings would pay for it.
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
    fn record(&self, counter: &AtomicU64) {
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

// SAFETY: ALLOC-1 - `System` fulfils the contract, and we forward its answers; ALLOC-2 - nothing unwinds.
unsafe impl GlobalAlloc for CountingAlloc {
    /// # Safety
    ///
    /// As [`GlobalAlloc::alloc`].
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.record(&self.allocations);
        // SAFETY: ALLOC-1 - the caller promised a layout of non-zero size.
        unsafe { System.alloc(layout) }
    }

    /// # Safety
    ///
    /// As [`GlobalAlloc::alloc_zeroed`].
    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.record(&self.allocations);
        // SAFETY: ALLOC-1 - the caller promised a layout of non-zero size.
        unsafe { System.alloc_zeroed(layout) }
    }

    /// # Safety
    ///
    /// As [`GlobalAlloc::dealloc`].
    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        self.record(&self.frees);
        // SAFETY: ALLOC-1 - the caller promised that `block` came from here, hence from `System`, with
        // this layout.
        unsafe { System.dealloc(block, layout) }
    }

    /// # Safety
    ///
    /// As [`GlobalAlloc::realloc`].
    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        self.record(&self.allocations);
        self.record(&self.frees);
        // SAFETY: ALLOC-1 - the caller promised that `block` came from here, hence from `System`, with
        // this layout, and that the new size is in range.
        unsafe { System.realloc(block, layout, new_size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    const LAYOUT: Layout = Layout::new::<[u64; 4]>();

    fn allocate_and_free(alloc: &CountingAlloc) {
        // SAFETY: ALLOC-1 - the layout has 32 bytes.
        let block = unsafe { alloc.alloc(LAYOUT) };
        assert!(!block.is_null());
        // SAFETY: ALLOC-1 - the block was allocated above with this layout.
        unsafe { alloc.dealloc(block, LAYOUT) };
    }

    #[test]
    fn it_counts_requests_only_while_it_is_on() {
        let alloc = CountingAlloc::new();
        allocate_and_free(&alloc);
        let ((), counts) = alloc.count(|| (0..5).for_each(|_| allocate_and_free(&alloc)));
        allocate_and_free(&alloc);
        let expected = Counts {
            allocations: 5,
            frees: 5,
        };
        assert_eq!(counts, expected);
        assert_eq!(alloc.count(|| ()).1, Counts::default());
    }

    #[test]
    fn a_reallocation_counts_as_both_and_keeps_the_content() {
        let alloc = CountingAlloc::new();
        let (first_byte, counts) = alloc.count(|| {
            // SAFETY: ALLOC-1 - the layout has 32 bytes.
            let block = unsafe { alloc.alloc_zeroed(LAYOUT) };
            // SAFETY: ALLOC-1 - allocated above with this layout; 64 bytes are in range.
            let block = unsafe { alloc.realloc(block, LAYOUT, 64) };
            assert!(!block.is_null());
            // SAFETY: ALLOC-1 - the block is ours, has 64 bytes, and the first 32 were zeroed.
            let first_byte = unsafe { block.read() };
            let grown = Layout::from_size_align(64, LAYOUT.align()).unwrap();
            // SAFETY: ALLOC-1 - the block has this size since it was grown.
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
        let allocate_often = || (0..100).for_each(|_| allocate_and_free(&alloc));
        let ((), counts) = alloc.count(|| {
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(allocate_often);
                }
            });
        });
        assert_eq!((counts.allocations, counts.frees), (400, 400));
    }

    #[test]
    fn a_panic_switches_counting_off() {
        let alloc = CountingAlloc::new();
        let panicked = catch_unwind(AssertUnwindSafe(|| alloc.count(|| panic!("on purpose"))));
        assert!(panicked.is_err());
        assert!(!alloc.is_on.load(Relaxed));
    }
}
