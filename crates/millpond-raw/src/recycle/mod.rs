//! Memory that is used again: a box for things that are made on one thread and dropped on another.
//!
//! A task is made by one thread and freed by another, a hundred thousand times a second or more. The
//! system's allocator takes that badly: memory that is freed far from where it was had finds its way
//! back one piece at a time, and both ends pay for it. [`Recycled`] is a box whose memory comes from,
//! and goes back to, *slabs* that go round in batches:
//!
//! ```text
//!   producer's rack --> a task's cell --> consumer's rack       a thread's own: no atomics
//!        ^                                      |
//!        |  64 at a time                        |  64 at a time
//!        +---------------- depot <--------------+               one lock for each size
//!                            ^
//!                            | cut from sheets of 256 KiB
//! ```
//!
//! - A **slab** is a piece of 64, 128, 192 or 256 bytes (`slab.rs`). What is larger, or asks for more
//!   than 16 bytes of alignment, is no business of this module: it is plainly allocated.
//! - A **rack** is a thread's own stack of up to 128 slabs of one size (`rack.rs`; the threads' own and the
//!   depots of the process are in `threads.rs`). It is an array of
//!   pointers and not a list through the slabs: to read a link out of a slab that another core has
//!   just written would be a cache miss for every task. An empty rack takes 64 from the depot, a full
//!   one gives 64; so a thread that goes up and down at the border between two batches goes to the
//!   depot once. These are the magazines of Bonwick and Adams (USENIX 2001), two to an array.
//! - A **depot** is where all threads exchange slabs of one size (`depot.rs`). They are cut from
//!   **sheets** (`sheet.rs`), at multiples of 64 bytes, and the sheet keeps the book of them.
//!
//! So in the steady state nobody asks the system's allocator for anything.
//!
//! # What is kept
//!
//! There are as many sheets as are needed at once. When all slabs of a sheet have come back it may go
//! back to the system: of each of the four sizes up to 16 such sheets are kept, which is 16 MiB at the
//! very most, if all four have been used to excess at some time. A sheet stays as long as one of its
//! slabs is somewhere else. A thread keeps up to 80 KiB in its racks until it ends, and has 4 KiB of
//! thread-local room for them. Nothing is taken before it is needed. [`kept`] says how much lies idle in
//! the depots.
//!
//! # Switched off
//!
//! Under loom and shuttle, and with `--cfg millpond_plain_memory`, boxes are plain allocations: whoever
//! checks memory sees real frees, and not slabs that never die. Slabs, racks and depots themselves are
//! checked there by models of their own, with depots of their own ([`exchange`]; `slabs.rs` in
//! `tests/scenarios`): hand-over between threads, return of whole sheets, the end of a thread.
//!
//! Where they are switched on, memory that nobody has is poisoned in builds with debug assertions
//! (`slab.rs`): whoever uses it after it was freed is found out when it is had again.
//!
//! # Invariants
//!
//! - **R1** A slab is in one place at a time: with one owner, in one rack, or in one depot. A `Slab`
//!   is not `Copy`, so to move it is all that one can do with it, and whoever has it may write to all
//!   of its memory.
//! - **R2** All slabs of a class have at least its size, and 16 bytes of alignment. The class follows
//!   from the layout alone, so memory goes back to the class that it came from.
//! - **R3** A slab is a part of a sheet, and its pointer was made from that of the sheet. A sheet lives
//!   until all its slabs are in the depot, and the depot, which has counted them, has struck it off its
//!   list.
//! - **R4** What is in a slab means nothing to its next owner: it is uninitialised. Whoever gives a
//!   slab away has ended all access to it, and the depot's lock orders that before the next owner.
//! - **R5** The pointer of a [`Recycled`] came from `alloc` with the layout of its `T`, or from
//!   [`Recycled::into_raw`]; it holds a live `T` and is owned by the box.
//! - **R6** A plain piece was allocated with the very layout it is freed with.

mod depot;
#[doc(hidden)]
pub mod exchange;
mod plain;
mod rack;
mod sheet;
mod slab;
#[cfg(not(any(millpond_loom, millpond_shuttle, millpond_plain_memory)))]
mod threads;

#[cfg(any(millpond_loom, millpond_shuttle, millpond_plain_memory))]
use plain as memory;
#[cfg(not(any(millpond_loom, millpond_shuttle, millpond_plain_memory)))]
use threads as memory;

#[allow(unused_imports, reason = "only where processes fork")]
pub(crate) use memory::keep_at_forks;
pub use memory::kept;

/// How many depots there are, and so how many locks that are kept at forks.
#[allow(dead_code, reason = "only where processes fork")]
pub(crate) const DEPOTS: usize = slab::Class::COUNT;

use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::panic::UnwindSafe;
use core::ptr::NonNull;
use std::alloc::Layout;

/// A box whose memory is used again.
///
/// ```
/// use millpond_raw::recycle::Recycled;
///
/// let mut sack = Recycled::new([0_u64; 6]);
/// sack[0] = 7;
/// // Made here, dropped there: the memory comes back here with a batch of others.
/// let there = millpond_raw::sync::thread::spawn(move || sack[0]);
/// assert_eq!(there.join().unwrap(), 7);
/// ```
pub struct Recycled<T> {
    place: NonNull<T>,
    _owns: PhantomData<T>,
}

// SAFETY: R5 - it owns its `T`, as a box does, and nothing of it is bound to a thread.
unsafe impl<T: Send> Send for Recycled<T> {}
// SAFETY: R5 - a shared one gives away `&T` and nothing else.
unsafe impl<T: Sync> Sync for Recycled<T> {}

// As a box: what it points to stays where it is, and is exactly as safe after a panic as a `T`.
impl<T> Unpin for Recycled<T> {}
impl<T: UnwindSafe> UnwindSafe for Recycled<T> {}

impl<T> Recycled<T> {
    /// Puts `value` into a box.
    #[inline]
    pub fn new(value: T) -> Self {
        Recycled::new_with(move || value)
    }

    /// Puts what `f` makes into a box. The memory is there first, so that a value can be built in its
    /// place instead of being copied to it.
    #[inline]
    pub fn new_with(f: impl FnOnce() -> T) -> Self {
        let free = Free(memory::alloc(Layout::new::<T>()).cast::<T>());
        let value = f();
        let place = ManuallyDrop::new(free).0;
        // SAFETY: R1 - the memory is ours; R2 - it is large enough and aligned for a `T`.
        unsafe { place.write(value) };
        Recycled {
            place,
            _owns: PhantomData,
        }
    }

    /// Gives the box up, but not what is in it.
    #[inline]
    pub(crate) fn into_raw(self) -> NonNull<T> {
        ManuallyDrop::new(self).place
    }

    /// The box again.
    ///
    /// # Safety
    ///
    /// R5: `place` came from [`Recycled::into_raw`], and is given here once.
    #[inline]
    pub(crate) unsafe fn from_raw(place: NonNull<T>) -> Self {
        Recycled {
            place,
            _owns: PhantomData,
        }
    }
}

/// Gives the memory of a `T` back when it drops: also when the `T` panicked on its way in or out.
struct Free<T>(NonNull<T>);

impl<T> Drop for Free<T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: R5 - it came from `alloc` with this layout; R4 - what was in it is gone.
        unsafe { memory::free(self.0.cast(), Layout::new::<T>()) };
    }
}

impl<T> Drop for Recycled<T> {
    #[inline]
    fn drop(&mut self) {
        let _free = Free(self.place);
        // SAFETY: R5 - it holds a live `T`, which nobody uses after this.
        unsafe { self.place.drop_in_place() };
    }
}

impl<T> Deref for Recycled<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: R5 - a live `T`, borrowed from its owner.
        unsafe { self.place.as_ref() }
    }
}

impl<T> DerefMut for Recycled<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: R5 - a live `T`, borrowed from its owner alone.
        unsafe { self.place.as_mut() }
    }
}

impl<T: Clone> Clone for Recycled<T> {
    fn clone(&self) -> Self {
        Recycled::new(T::clone(self))
    }
}

impl<T: fmt::Debug> fmt::Debug for Recycled<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::fmt(self, f)
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests;
