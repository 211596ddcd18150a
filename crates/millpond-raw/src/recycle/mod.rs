//! Recycled memory: a box for values that are made on one thread and dropped on another.
//!
//! A task is made by one thread and freed by another, a hundred thousand times a second or more. General
//! allocators handle that badly: memory freed on a foreign thread finds its way back one piece at a time, and
//! both threads pay. [`Recycled`] is a box whose memory comes from a slab allocator and moves between threads
//! in batches:
//!
//! ```text
//!   producer's magazine --> a task's cell --> consumer's magazine     thread-local: no atomics
//!         ^                                          |
//!         |  64 at a time                            |  64 at a time
//!         +------------------ depot <----------------+                one lock per size class
//!                               ^
//!                               | carved from slabs of 256 KiB
//! ```
//!
//! - An **object** is a piece of memory of one of five size classes: 64, 96, 128, 192 or 256 bytes (`object.rs`).
//!   Anything larger, or aligned to more than 16 bytes, is allocated plainly (`plain.rs`).
//! - A **magazine** is a thread's own stack of up to 128 objects of one class (`magazine.rs`; the
//!   thread-local magazines and the depots of the process are in `thread_cache.rs`). It is an array of
//!   pointers and not a free list through the objects: reading a link out of an object that another core has
//!   just written would be a cache miss per task. An empty magazine takes 64 objects from the depot, a full
//!   one returns 64, so a thread that goes up and down at a batch boundary visits the depot once. These are
//!   the magazines of Bonwick and Adams (USENIX 2001), two per array.
//! - A **depot** is where all threads exchange objects of one class (`depot.rs`). The objects are carved from
//!   **slabs** (`slab.rs`), at multiples of 32 bytes, and each slab keeps the free map of its objects.
//!
//! In the steady state nothing calls the system's allocator.
//!
//! | file | what |
//! |---|---|
//! | `object` | objects, size classes, poison |
//! | `slab` | the memory that objects are carved from, and its free map |
//! | `depot` | the exchange of all threads, one per size class |
//! | `magazine` | a thread's own stack of objects |
//! | `thread_cache` | the thread-local magazines and the depots of the process |
//! | `plain` | plain allocation, for everything else |
//! | `testing` | private depots, for models and tests |
//!
//! # What is kept
//!
//! There are as many slabs as were needed at once. A slab all of whose objects have come back may be returned
//! to the system. Up to 16 such slabs are kept per class, which is 20 MiB at the very most, if all five
//! classes have been used to excess at some time. More are kept for some seconds, up to 64 MiB per class: what a
//! load that goes up and down needs again at once (DEPOT-1 to DEPOT-3 in `depot.rs`). An engine that has become idle
//! calls [`trim`]. A slab stays while one of its objects is out. A thread
//! keeps up to 92 KiB in its magazines until it ends, and 5 KiB of thread-local memory for the magazines
//! themselves. Nothing is allocated before it is needed. [`cached_bytes`] says how many bytes lie idle in the depots.
//!
//! # Switched off
//!
//! Under loom and shuttle, and with `--cfg millpond_plain_memory`, boxes are plain allocations, so that
//! memory checkers see real frees. Objects, magazines and depots have models of their own there, with private
//! depots ([`testing`]; `slabs.rs` in `tests/scenarios`): hand-over between threads, return of slabs to the
//! system, the end of a thread.
//!
//! Where recycling is on, builds with debug assertions poison free objects (`object.rs`): a write after free
//! is detected when the object is allocated again.
//!
//! # Invariants
//!
//! - **RECYCLE-1** An object is in one ptr at a time: with one owner, in one magazine, or in one depot.
//!   `Object` is not `Copy`, so it can only be moved, and its owner may write to all of its memory.
//! - **RECYCLE-2** All objects of a class have at least its size, and 16 bytes of alignment. The class
//!   follows from the layout alone, so memory returns to the class that it came from.
//! - **RECYCLE-3** An object is part of a slab, and its pointer was derived from the slab's. A slab lives
//!   until all its objects are in the depot and the depot, which counts them, has removed it from its list.
//! - **RECYCLE-4** The content of an object is uninitialised for its next owner. The last owner ended all
//!   access before it gave the object away, and the depot's lock orders that before the next owner.
//! - **RECYCLE-5** The pointer of a [`Recycled`] came from `alloc` with the layout of its `T`, or from
//!   [`Recycled::into_raw`]; it points to a live `T` and is owned by the box.
//! - **RECYCLE-6** Plain memory is freed with the layout it was allocated with.

mod depot;
mod magazine;
mod object;
mod plain;
mod slab;
#[doc(hidden)]
pub mod testing;
#[cfg(not(any(millpond_loom, millpond_shuttle, millpond_plain_memory)))]
mod thread_cache;

#[cfg(any(millpond_loom, millpond_shuttle, millpond_plain_memory))]
use plain as memory;
#[cfg(not(any(millpond_loom, millpond_shuttle, millpond_plain_memory)))]
use thread_cache as memory;

#[allow(unused_imports, reason = "only where processes fork")]
pub(crate) use memory::register_fork_locks;
pub use memory::{cached_bytes, has_surplus, trim};

/// The number of depots, each with a lock that forks have to take.
#[allow(dead_code, reason = "only where processes fork")]
pub(crate) const DEPOTS: usize = object::SizeClass::COUNT;

use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::panic::UnwindSafe;
use core::ptr::NonNull;
use std::alloc::Layout;

/// A box whose memory is recycled.
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
    ptr: NonNull<T>,
    _owns: PhantomData<T>,
}

// SAFETY: RECYCLE-5 - it owns its `T`, as a box does, and nothing of it is bound to a thread.
unsafe impl<T: Send> Send for Recycled<T> {}
// SAFETY: RECYCLE-5 - a shared one gives away `&T` and nothing else.
unsafe impl<T: Sync> Sync for Recycled<T> {}

// Like a box: the value does not move with it, and it is as unwind safe as its `T`.
impl<T> Unpin for Recycled<T> {}
impl<T: UnwindSafe> UnwindSafe for Recycled<T> {}

impl<T> Recycled<T> {
    /// Moves `value` into a box.
    #[inline]
    pub fn new(value: T) -> Self {
        Recycled::new_with(move || value)
    }

    /// Boxes what `f` returns. The memory is allocated first, so that the value can be built in ptr instead
    /// of being copied.
    #[inline]
    pub fn new_with(f: impl FnOnce() -> T) -> Self {
        let memory = FreeOnDrop(self::memory::alloc(Layout::new::<T>()).cast::<T>());
        let value = f();
        let ptr = ManuallyDrop::new(memory).0;
        // SAFETY: RECYCLE-1 - the memory is ours; RECYCLE-2 - it is large enough and aligned for a `T`.
        unsafe { ptr.write(value) };
        Recycled {
            ptr,
            _owns: PhantomData,
        }
    }

    /// Dissolves the box without dropping its value.
    #[inline]
    pub(crate) fn into_raw(self) -> NonNull<T> {
        ManuallyDrop::new(self).ptr
    }

    /// Turns the pointer back into a box.
    ///
    /// # Safety
    ///
    /// RECYCLE-5: `ptr` came from [`Recycled::into_raw`], and is given here once.
    #[inline]
    pub(crate) unsafe fn from_raw(ptr: NonNull<T>) -> Self {
        Recycled {
            ptr,
            _owns: PhantomData,
        }
    }
}

/// Frees the memory of a `T` on drop, also if making or dropping the `T` panicked.
struct FreeOnDrop<T>(NonNull<T>);

impl<T> Drop for FreeOnDrop<T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: RECYCLE-5 - it came from `alloc` with this layout; RECYCLE-4 - what was in it is gone.
        unsafe { memory::free(self.0.cast(), Layout::new::<T>()) };
    }
}

impl<T> Drop for Recycled<T> {
    #[inline]
    fn drop(&mut self) {
        let _free = FreeOnDrop(self.ptr);
        // SAFETY: RECYCLE-5 - it holds a live `T`, which is not used after this.
        unsafe { self.ptr.drop_in_place() };
    }
}

impl<T> Deref for Recycled<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: RECYCLE-5 - a live `T`, borrowed from its owner.
        unsafe { self.ptr.as_ref() }
    }
}

impl<T> DerefMut for Recycled<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: RECYCLE-5 - a live `T`, borrowed from its owner alone.
        unsafe { self.ptr.as_mut() }
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
