//! Objects and their size classes. Invariants are in the [module](super).
//!
//! # Poison
//!
//! A free object is memory that the system believes to be in use, so no memory checker notices a write to it.
//! In builds with debug assertions a free object is filled with a pattern, which is checked when the object
//! is allocated again. If the pattern is damaged, something wrote to freed memory: the process aborts and
//! says where. A stale read finds the pattern and no pointers.

use core::ptr::NonNull;
use std::alloc::Layout;
use std::io::Write;

/// The size of a cache line.
pub(super) const LINE: usize = 64;

/// The sizes of objects: cache lines, and one and a half. That is the cell of a scheduled task whose closure captures a
/// few words, and there may be a million of them. All are at least a line, so no two objects begin in one.
const SIZES: [usize; 5] = [LINE, LINE + LINE / 2, 2 * LINE, 3 * LINE, 4 * LINE];

/// The alignment that every allocator gives for such sizes anyway.
const ALIGN: usize = 16;

/// A size class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SizeClass(usize);

impl SizeClass {
    /// The number of classes.
    pub(super) const COUNT: usize = SIZES.len();

    /// The smallest class that fits `layout`; `None` if no class does.
    #[inline]
    pub(super) const fn of(layout: Layout) -> Option<SizeClass> {
        if layout.align() > ALIGN {
            return None;
        }
        let mut index = 0;
        while index < SIZES.len() {
            if layout.size() <= SIZES[index] {
                return Some(SizeClass(index));
            }
            index += 1;
        }
        None
    }

    /// All classes, the smallest first.
    pub(super) fn all() -> impl Iterator<Item = SizeClass> {
        (0..Self::COUNT).map(SizeClass)
    }

    /// Its index in an array of all classes.
    #[inline]
    pub(super) const fn index(self) -> usize {
        self.0
    }

    /// The size of its objects in bytes.
    pub(super) const fn size(self) -> usize {
        SIZES[self.0]
    }
}

/// Free memory is poisoned with debug assertions, but not under ThreadSanitizer: it does not model the fence
/// by which the last owner of an `Arc` follows the others, and would report the poison as a race.
const POISONING: bool = cfg!(all(debug_assertions, not(millpond_tsan)));

/// The content of free memory. No valid address looks like this.
const POISON: u64 = 0xf4ee_51ab_f4ee_51ab;

/// An owned piece of free memory. It does not know its class; its container does.
#[derive(Debug)]
pub(super) struct Object(NonNull<u8>);

// SAFETY: RECYCLE-1 - it is memory with one owner.
unsafe impl Send for Object {}

impl Object {
    /// Takes ownership of memory.
    ///
    /// # Safety
    ///
    /// RECYCLE-1: nothing else owns the memory. RECYCLE-2: it has the size and alignment of the class it will
    /// be kept in. RECYCLE-3: it was carved from a slab, and the pointer was derived from that slab's.
    /// RECYCLE-4: all access to it has ended.
    #[inline]
    pub(super) unsafe fn from_raw(place: NonNull<u8>) -> Self {
        Object(place)
    }

    /// Fills it with the poison pattern, if poisoning is on.
    #[inline]
    pub(super) fn poison(&self, class: SizeClass) {
        if POISONING {
            for word in self.words(class) {
                // SAFETY: RECYCLE-1 - we own the object; RECYCLE-2 - it has this size and alignment.
                unsafe { word.write(POISON) };
            }
        }
    }

    /// Aborts the process if the poison is damaged, if poisoning is on.
    #[inline]
    pub(super) fn expect_poison(&self, class: SizeClass) {
        if POISONING {
            for (number, word) in self.words(class).enumerate() {
                // SAFETY: RECYCLE-1 - we own the object; RECYCLE-2 - it has this size and alignment;
                // RECYCLE-4 - it was initialised when it was poisoned.
                let found = unsafe { word.read() };
                if found != POISON {
                    used_after_free(self.address(), number, found);
                }
            }
        }
    }

    /// Pointers to the words of its memory.
    pub(super) fn words(&self, class: SizeClass) -> impl Iterator<Item = NonNull<u64>> {
        let start = self.0.cast::<u64>();
        // SAFETY: RECYCLE-2 - an object of this class has that many words in a row.
        (0..class.size() / size_of::<u64>()).map(move |number| unsafe { start.add(number) })
    }

    /// Gives the memory to the caller.
    #[allow(dead_code, reason = "not where boxes are plain")]
    #[inline]
    pub(super) fn into_ptr(self) -> NonNull<u8> {
        self.0
    }

    /// The pointer, from which its slab can be found.
    #[inline]
    pub(super) fn ptr(&self) -> NonNull<u8> {
        self.0
    }

    /// The address.
    #[inline]
    pub(super) fn address(&self) -> usize {
        self.0.addr().get()
    }
}

/// Memory was used after it was freed. Nothing can be trusted after that.
#[cold]
fn used_after_free(address: usize, word: usize, found: u64) -> ! {
    let _ = writeln!(
        std::io::stderr(),
        "fatal: memory was used after it was freed: word {word} of the block at {address:#x} should be \
         {POISON:#x} and is {found:#x}; aborting"
    );
    std::process::abort();
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn every_size_has_the_smallest_class_that_holds_it() {
        for size in 0..=SIZES[SizeClass::COUNT - 1] {
            let class = SizeClass::of(Layout::from_size_align(size, 8).unwrap()).unwrap();
            assert!(class.size() >= size, "{size}");
            let smaller = SizeClass::all().filter(|other| other.index() < class.index());
            assert!(
                smaller.into_iter().all(|other| other.size() < size),
                "{size}"
            );
            assert!(class.index() < SizeClass::COUNT);
        }
    }

    #[test]
    fn a_layout_that_is_too_large_or_too_aligned_has_no_class() {
        let large = Layout::from_size_align(SIZES[SizeClass::COUNT - 1] + 1, 8).unwrap();
        let aligned = Layout::from_size_align(8, 2 * ALIGN).unwrap();
        assert_eq!(SizeClass::of(large), None);
        assert_eq!(SizeClass::of(aligned), None);
    }
}
