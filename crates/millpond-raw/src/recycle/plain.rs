//! Plain allocation: for layouts without a size class, and for everything where memory is checked. Invariants
//! are in the [module](super).

use core::ptr::NonNull;
use std::alloc::{Layout, alloc as allocate, dealloc, handle_alloc_error};

/// The allocator may not be asked for zero bytes.
fn nonzero(layout: Layout) -> Layout {
    match layout.size() {
        0 => Layout::new::<u8>(),
        _ => layout,
    }
}

/// Allocates memory for `layout`.
pub(super) fn alloc(layout: Layout) -> NonNull<u8> {
    // SAFETY: RECYCLE-6 - the size is not zero.
    let ptr = unsafe { allocate(nonzero(layout)) };
    NonNull::new(ptr).unwrap_or_else(|| handle_alloc_error(layout))
}

/// Frees memory.
///
/// # Safety
///
/// RECYCLE-6: `ptr` came from [`alloc`] with this layout. RECYCLE-4: nothing uses it any more.
pub(super) unsafe fn free(ptr: NonNull<u8>, layout: Layout) {
    // SAFETY: RECYCLE-6 - by contract.
    unsafe { dealloc(ptr.as_ptr(), nonzero(layout)) };
}

/// The number of idle bytes in the depots: 0, for there are no depots here.
#[cfg(any(millpond_loom, millpond_shuttle, millpond_plain_memory))]
pub fn cached_bytes() -> usize {
    0
}

/// There is nothing to return.
#[cfg(any(millpond_loom, millpond_shuttle, millpond_plain_memory))]
pub fn has_surplus() -> bool {
    false
}

/// There is nothing to return.
#[cfg(any(millpond_loom, millpond_shuttle, millpond_plain_memory))]
pub fn trim() {}

/// There are no depots here.
#[cfg(any(millpond_loom, millpond_shuttle, millpond_plain_memory))]
#[allow(dead_code, reason = "only where processes fork")]
pub(crate) fn register_fork_locks() {}
