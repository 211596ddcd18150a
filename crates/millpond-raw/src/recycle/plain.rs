//! Plain allocation: for what no slab is fit for, and for everything where memory is checked.
//! Invariants are in the [module](super).

use core::ptr::NonNull;
use std::alloc::{Layout, alloc as allocate, dealloc, handle_alloc_error};

/// The system cannot be asked for nothing at all.
fn asked(layout: Layout) -> Layout {
    match layout.size() {
        0 => Layout::new::<u8>(),
        _ => layout,
    }
}

/// Memory for `layout`.
pub(super) fn alloc(layout: Layout) -> NonNull<u8> {
    // SAFETY: R6 - the size is not zero.
    let place = unsafe { allocate(asked(layout)) };
    NonNull::new(place).unwrap_or_else(|| handle_alloc_error(layout))
}

/// Gives memory back.
///
/// # Safety
///
/// R6: `place` came from [`alloc`] with this layout. R4: nobody uses it any more.
pub(super) unsafe fn free(place: NonNull<u8>, layout: Layout) {
    // SAFETY: R6 - by contract.
    unsafe { dealloc(place.as_ptr(), asked(layout)) };
}

/// How many bytes lie idle in the depots: none, for there are no depots here.
#[cfg(any(millpond_loom, millpond_shuttle, millpond_plain_memory))]
pub fn kept() -> usize {
    0
}

/// There is nothing to keep in order here.
#[cfg(any(millpond_loom, millpond_shuttle, millpond_plain_memory))]
#[allow(dead_code, reason = "only where processes fork")]
pub(crate) fn keep_at_forks() {}
