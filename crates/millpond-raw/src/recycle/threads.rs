//! The racks of the threads and the depots of the process. Invariants are in the [module](super).
//!
//! A thread that is being torn down has no racks any more; it goes to the depot for every slab.

use super::depot::Depots;
use super::rack::Racks;
use super::slab::{Class, Slab};
use super::{plain, sheet};
use crate::sync::local;
use core::ptr::NonNull;
use std::alloc::{Layout, handle_alloc_error};

static DEPOTS: Depots = Depots::new();

local! {
    static RACKS: Racks<&'static Depots> = Racks::new(&DEPOTS);
}

/// The depots are in order at forks.
#[allow(dead_code, reason = "only where processes fork")]
pub(crate) fn keep_at_forks() {
    for class in Class::all() {
        crate::fork::keep(DEPOTS.of(class));
    }
}

/// How many bytes lie idle in the depots, to be used again. What threads have in their racks is not
/// counted.
///
/// ```
/// let before = millpond_raw::recycle::kept();
/// assert!(before <= 16 << 20);
/// ```
pub fn kept() -> usize {
    Class::all().map(|class| idle(class) * class.size()).sum()
}

/// How many slabs of a class lie in its depot.
pub(super) fn idle(class: Class) -> usize {
    DEPOTS.of(class).lock().len()
}

/// Memory for `layout`.
#[inline]
pub(super) fn alloc(layout: Layout) -> NonNull<u8> {
    match Class::of(layout) {
        Some(class) => take(class).into_place(),
        None => plain::alloc(layout),
    }
}

/// Gives memory back.
///
/// # Safety
///
/// R2, R6: `place` came from [`alloc`] with this layout. R1, R4: it is the caller's, who no longer
/// uses it.
#[inline]
pub(super) unsafe fn free(place: NonNull<u8>, layout: Layout) {
    match Class::of(layout) {
        // SAFETY: R1, R2, R4 - by contract; R3 - it is on a sheet, as all slabs are.
        Some(class) => give(class, unsafe { Slab::own(place) }),
        // SAFETY: R6 - by contract.
        None => unsafe { plain::free(place, layout) },
    }
}

#[inline]
fn take(class: Class) -> Slab {
    RACKS
        .try_with(|racks| racks.take(class))
        .unwrap_or_else(|_| DEPOTS.take_one(class))
        .unwrap_or_else(|| handle_alloc_error(sheet::layout()))
}

#[inline]
fn give(class: Class, slab: Slab) {
    let mut slab = Some(slab);
    let _ = RACKS.try_with(|racks| {
        if let Some(slab) = slab.take() {
            racks.give(class, slab);
        }
    });
    if let Some(slab) = slab {
        DEPOTS.give_one(class, slab);
    }
}
