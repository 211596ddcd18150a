//! What a slab is, and its classes. Invariants are in the [module](super).
//!
//! # Poison
//!
//! A slab that nobody has is memory that the system believes to be in use, so nothing tells who writes to
//! it all the same. In builds with debug assertions it is filled with a pattern from the moment it is free,
//! and whoever gets it next looks whether the pattern is whole. If not, somebody has written to memory that
//! was given back: the process ends and says where. And who reads such memory finds no pointers there but
//! this pattern.

use core::ptr::NonNull;
use std::alloc::Layout;
use std::io::Write;

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

/// Whether memory that nobody has is poisoned: with debug assertions, but not under ThreadSanitizer, which does not
/// know the fences by which the last owner of an `Arc` comes behind the others, and takes the poison for a race.
const IS_POISONED: bool = cfg!(all(debug_assertions, not(millpond_tsan)));

/// What is in memory that nobody has. No address of a program looks like this.
const POISON: u64 = 0xf4ee_51ab_f4ee_51ab;

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

    /// Fills it with the pattern of memory that nobody has; only with debug assertions.
    #[inline]
    pub(super) fn poison(&self, class: Class) {
        if IS_POISONED {
            for word in self.words(class) {
                // SAFETY: R1 - the slab is ours; R2 - so large, and so aligned.
                unsafe { word.write(POISON) };
            }
        }
    }

    /// Ends the process if somebody has written to it since it was poisoned; only with debug assertions.
    #[inline]
    pub(super) fn expect_poison(&self, class: Class) {
        if IS_POISONED {
            for (number, word) in self.words(class).enumerate() {
                // SAFETY: R1 - the slab is ours; R2 - so large, and so aligned; R4 - written when it was
                // poisoned, if not since.
                let found = unsafe { word.read() };
                if found != POISON {
                    used_after_free(self.address(), number, found);
                }
            }
        }
    }

    /// The words of its memory.
    pub(super) fn words(&self, class: Class) -> impl Iterator<Item = NonNull<u64>> {
        let start = self.0.cast::<u64>();
        // SAFETY: R2 - a slab of this class has so many, one after the other.
        (0..class.size() / size_of::<u64>()).map(move |number| unsafe { start.add(number) })
    }

    /// The memory, which is the caller's from now on.
    #[allow(dead_code, reason = "not where boxes are plain")]
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

/// Somebody has used memory that was not theirs any more. Nothing can be trusted after that.
#[cold]
fn used_after_free(address: usize, word: usize, found: u64) -> ! {
    let _ = writeln!(
        std::io::stderr(),
        "fatal: memory was used after it was freed: word {word} of the slab at {address:#x} should be \
         {POISON:#x} and is {found:#x}; aborting"
    );
    std::process::abort();
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
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
