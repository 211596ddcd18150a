//! What a slab is, and its classes. Invariants are in the [module](super).

use core::ptr::NonNull;
use std::alloc::Layout;

/// Sizes are multiples of a cache line.
pub(super) const LINE: usize = 64;

const LARGEST: usize = 256;

/// What every allocator gives for such sizes without being asked twice.
const ALIGN: usize = 16;

/// A size of slabs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Class(usize);

impl Class {
    /// How many classes there are.
    pub(super) const COUNT: usize = LARGEST / LINE;

    /// The class whose slabs are fit for `layout`; `None` if no slab is.
    #[inline]
    pub(super) const fn of(layout: Layout) -> Option<Class> {
        if layout.size() > LARGEST || layout.align() > ALIGN {
            return None;
        }
        Some(Class(layout.size().saturating_sub(1) / LINE))
    }

    /// All of them, the smallest first.
    pub(super) fn all() -> impl Iterator<Item = Class> {
        (0..Self::COUNT).map(Class)
    }

    /// Its place in an array of all.
    #[inline]
    pub(super) const fn index(self) -> usize {
        self.0
    }

    /// How large its slabs are.
    pub(super) const fn size(self) -> usize {
        (self.0 + 1) * LINE
    }
}

/// A piece of memory that nobody uses. It does not know its class; where it is kept does.
#[derive(Debug)]
pub(super) struct Slab(NonNull<u8>);

// SAFETY: R1 - it is memory that nobody else has.
unsafe impl Send for Slab {}

impl Slab {
    /// Becomes the owner of memory.
    ///
    /// # Safety
    ///
    /// R1: the memory is nobody else's. R2: it is as large and as aligned as the class asks for in
    /// which it will be kept. R3: it was cut from a sheet, and the pointer was made from that sheet's. R4:
    /// all access to it has ended.
    #[inline]
    pub(super) unsafe fn own(place: NonNull<u8>) -> Self {
        Slab(place)
    }

    /// The memory, which is the caller's from now on.
    #[inline]
    pub(super) fn into_place(self) -> NonNull<u8> {
        self.0
    }

    /// Where it is, to be asked for its sheet.
    #[inline]
    pub(super) fn place(&self) -> NonNull<u8> {
        self.0
    }

    /// Where it is, as a number.
    #[inline]
    pub(super) fn address(&self) -> usize {
        self.0.addr().get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_has_the_smallest_class_that_holds_it() {
        for size in 0..=LARGEST {
            let class = Class::of(Layout::from_size_align(size, 8).unwrap()).unwrap();
            assert!(class.size() >= size, "{size}");
            assert!(class.size() < size + LINE || size == 0, "{size}");
            assert!(class.index() < Class::COUNT);
        }
    }

    #[test]
    fn what_no_slab_is_fit_for_has_no_class() {
        let large = Layout::from_size_align(LARGEST + 1, 8).unwrap();
        let aligned = Layout::from_size_align(8, 2 * ALIGN).unwrap();
        assert_eq!(Class::of(large), None);
        assert_eq!(Class::of(aligned), None);
    }
}
