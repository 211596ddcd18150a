//! The thread-local magazines and the depots of the process. Invariants are in the [module](super).
//!
//! A thread that is being torn down has no magazines any more and goes to the depot for every object.

use super::depot::Depots;
use super::magazine::Magazines;
use super::object::{Object, SizeClass};
use super::{plain, slab};
use crate::sync::local;
use core::ptr::NonNull;
use std::alloc::{Layout, handle_alloc_error};

static DEPOTS: Depots = Depots::new();

local! {
    static MAGAZINES: Magazines<&'static Depots> = Magazines::new(&DEPOTS);
}

/// Has forks take the locks of the depots.
#[allow(dead_code, reason = "only where processes fork")]
pub(crate) fn register_fork_locks() {
    for class in SizeClass::all() {
        crate::fork::register_lock(DEPOTS.of(class));
    }
}

/// The number of idle bytes in the depots, not counting the magazines of threads.
///
/// ```
/// let before = millpond_raw::recycle::cached_bytes();
/// assert!(before <= 320 << 20);
/// ```
pub fn cached_bytes() -> usize {
    SizeClass::all()
        .map(|class| idle(class) * class.size())
        .sum()
}

/// Whether [`trim`] would return memory to the system.
///
/// ```
/// millpond_raw::recycle::trim();
/// assert!(!millpond_raw::recycle::has_surplus());
/// ```
pub fn has_surplus() -> bool {
    DEPOTS.has_surplus()
}

/// Returns idle memory to the system, but for a few slabs. For an engine that has become idle: memory that a burst of
/// tasks took is returned a second later if objects still come back, and otherwise by this.
///
/// ```
/// millpond_raw::recycle::trim();
/// assert!(millpond_raw::recycle::cached_bytes() <= 32 << 20);
/// ```
pub fn trim() {
    DEPOTS.trim();
}

/// The number of objects in the depot of a class.
pub(super) fn idle(class: SizeClass) -> usize {
    DEPOTS.of(class).lock().len()
}

/// Allocates memory for `layout`.
#[inline]
pub(super) fn alloc(layout: Layout) -> NonNull<u8> {
    match SizeClass::of(layout) {
        Some(class) => take(class).into_ptr(),
        None => plain::alloc(layout),
    }
}

/// Frees memory.
///
/// # Safety
///
/// RECYCLE-2, RECYCLE-6: `ptr` came from [`alloc`] with this layout. RECYCLE-1, RECYCLE-4: the caller owns it
/// and no longer uses it.
#[inline]
pub(super) unsafe fn free(ptr: NonNull<u8>, layout: Layout) {
    match SizeClass::of(layout) {
        // SAFETY: RECYCLE-1, RECYCLE-2, RECYCLE-4 - by contract; RECYCLE-3 - it is on a slab, as all objects
        // are.
        Some(class) => put(class, unsafe { Object::from_raw(ptr) }),
        // SAFETY: RECYCLE-6 - by contract.
        None => unsafe { plain::free(ptr, layout) },
    }
}

#[inline]
fn take(class: SizeClass) -> Object {
    MAGAZINES
        .try_with(|magazines| magazines.take(class))
        .unwrap_or_else(|_| DEPOTS.take_one(class))
        .unwrap_or_else(|| handle_alloc_error(slab::layout()))
}

#[inline]
fn put(class: SizeClass, object: Object) {
    let mut object = Some(object);
    let _ = MAGAZINES.try_with(|magazines| {
        if let Some(object) = object.take() {
            magazines.put(class, object);
        }
    });
    if let Some(object) = object {
        DEPOTS.put_one(class, object);
    }
}
