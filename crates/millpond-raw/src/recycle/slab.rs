//! A slab: a quarter of a megabyte that objects of one class are carved from, and the map of which of them
//! are free. Invariants RECYCLE-1 to RECYCLE-4 are in the [module](super).
//!
//! ```text
//!   SLAB_SIZE bytes, at a multiple of SLAB_SIZE
//!   +--------------------------+--------+--------+--------+ ...
//!   | FreeMap: one bit a line  | object | object | object |
//!   +--------------------------+--------+--------+--------+ ...
//! ```
//!
//! The free map is in the slab, and a slab begins at a multiple of its size. So the map of an object is found
//! by masking the object's address. An object is numbered by the cache line it begins in, whatever its size: no
//! object is smaller than a line, and numbers are shifts and not divisions. Free objects are taken in address order, so consecutive allocations
//! are neighbours, which prefetchers like.
//!
//! # Invariants
//!
//! - **SLAB-1** The free map of a slab is accessed only under the lock of its depot.
//! - **SLAB-2** A bit of the free map is set while the object that begins in its line is in the depot. Only
//!   lines in which an object begins ever have their bit set.

use super::object::{LINE, Object, SizeClass};
use crate::sync::{IN_MODEL, UnsafeCell};
use core::mem::size_of;
use core::ptr::NonNull;
use std::alloc::{Layout, alloc, dealloc};

/// The size of a slab, and the alignment of its address. In models it holds three objects of the largest
/// class.
pub(super) const SLAB_SIZE: usize = if IN_MODEL { 1024 } else { 256 * 1024 };

const LINES: usize = SLAB_SIZE / LINE;
const WORDS: usize = LINES.div_ceil(u64::BITS as usize);

/// The number of lines that the header takes.
const FIRST: usize = size_of::<SlabHeader>().div_ceil(LINE);

#[repr(C)]
struct FreeMap {
    /// The number of free objects.
    free: usize,
    /// Its index among the depot's slabs with free objects.
    index: usize,
    /// No bit is set below this word.
    low: usize,
    /// The next slab on its way back to the system.
    next: Option<Slab>,
    /// The total number of objects.
    objects: usize,
    /// Zero-sized; lets a checker see accesses to the map (SLAB-1).
    watched: UnsafeCell<()>,
    bits: [u64; WORDS],
}

/// The beginning of a slab.
#[repr(C)]
struct SlabHeader {
    free_map: FreeMap,
    /// Zero-sized; let a checker see accesses to the object that begins in their line.
    watched: [UnsafeCell<()>; LINES],
}

impl FreeMap {
    /// Marks objects as free.
    #[inline]
    fn mark_free(&mut self, word: usize, bits: u64) {
        debug_assert!(
            self.bits[word] & bits == 0,
            "RECYCLE-1: an object was put back twice"
        );
        self.bits[word] |= bits;
        if bits != 0 {
            self.low = self.low.min(word);
        }
    }
}

/// The lowest `most` set bits of a word.
#[inline]
fn lowest(word: u64, most: usize) -> u64 {
    if word.count_ones() as usize <= most {
        return word;
    }
    let others = (0..most).fold(word, |left, _| left & (left - 1));
    word ^ others
}

/// Lets a checker see an access to the object by its owner: all of these must be ordered (RECYCLE-4).
pub(super) fn touch(object: &Object) {
    let head = Slab::of(object).0.cast::<SlabHeader>().as_ptr();
    // SAFETY: RECYCLE-3 - a slab lives as long as an object of it is out.
    let watched = unsafe { &raw const (*head).watched };
    // SAFETY: RECYCLE-3 - as above; the cells are only changed through shared references.
    let watched = unsafe { &*watched };
    watched[object.address() % SLAB_SIZE / LINE].with_mut(drop);
}

/// The result of putting objects back.
pub(super) struct PutBack {
    /// How many of the slab's objects were free before.
    pub(super) before: usize,
    /// How many are free now.
    pub(super) now: usize,
    /// The first object of another slab.
    pub(super) next: Option<Object>,
}

/// A pointer to a slab of some depot, which keeps it alive.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Slab(NonNull<FreeMap>);

// SAFETY: SLAB-1 - it is only dereferenced under a lock.
unsafe impl Send for Slab {}

pub(super) const fn layout() -> Layout {
    match Layout::from_size_align(SLAB_SIZE, SLAB_SIZE) {
        Ok(layout) => layout,
        Err(_) => unreachable!(),
    }
}

/// The number of objects on a slab.
pub(super) const fn objects_per_slab(class: SizeClass) -> usize {
    (SLAB_SIZE - FIRST * LINE) / class.size()
}

/// The offset in its slab of the object that begins in this line.
#[inline]
const fn offset_of(class: SizeClass, line: usize) -> usize {
    let size = class.size();
    if size % LINE == 0 {
        return line * LINE;
    }
    // One line and a half: two objects share three lines.
    let (pairs, second) = ((line - FIRST) / 3, (line - FIRST) % 3);
    FIRST * LINE + (2 * pairs + second) * size
}

impl Slab {
    /// Allocates a slab with all objects free; `None` if the system has no memory.
    pub(super) fn allocate(class: SizeClass) -> Option<Self> {
        // SAFETY: RECYCLE-3 - the size is not zero.
        let memory = NonNull::new(unsafe { alloc(layout()) })?;
        let mut bits = [0; WORDS];
        for object in 0..objects_per_slab(class) {
            let line = FIRST + object * class.size() / LINE;
            bits[line / 64] |= 1 << (line % 64);
        }
        let free_map = memory.cast::<FreeMap>();
        let empty = FreeMap {
            free: objects_per_slab(class),
            index: 0,
            low: 0,
            next: None,
            objects: objects_per_slab(class),
            watched: UnsafeCell::new(()),
            bits,
        };
        let head = SlabHeader {
            free_map: empty,
            watched: core::array::from_fn(|_| UnsafeCell::new(())),
        };
        // SAFETY: RECYCLE-1 - the memory is new and ours, and its alignment is a multiple of the header's.
        unsafe { memory.cast::<SlabHeader>().write(head) };
        for object in 0..objects_per_slab(class) {
            // SAFETY: SLAB-2 - an object of this slab begins there, so the address is in the slab.
            let ptr = unsafe { memory.add(FIRST * LINE + object * class.size()) };
            // SAFETY: RECYCLE-1 to RECYCLE-4 - new, of this class, on a slab, and not used yet.
            unsafe { Object::from_raw(ptr) }.poison(class);
        }
        Some(Slab(free_map))
    }

    /// The slab that an object was carved from.
    #[inline]
    pub(super) fn of(object: &Object) -> Self {
        // The pointer of an object was derived from that of its slab, so it may be turned back into it.
        let start = object
            .ptr()
            .as_ptr()
            .map_addr(|address| address & !(SLAB_SIZE - 1));
        // SAFETY: RECYCLE-3 - a slab begins there, and no slab begins at 0.
        Slab(unsafe { NonNull::new_unchecked(start.cast()) })
    }

    /// A second pointer to the same slab.
    #[inline]
    pub(super) fn alias(&self) -> Self {
        Slab(self.0)
    }

    #[inline]
    fn free_map(&mut self) -> &mut FreeMap {
        // SAFETY: RECYCLE-3 - it lives; SLAB-1 - the depot made this pointer, is locked, and uses one at a
        // time.
        let free_map = unsafe { self.0.as_mut() };
        free_map.watched.with_mut(drop);
        free_map
    }

    /// The number of objects that are out.
    pub(super) fn used_count(&mut self) -> usize {
        let free_map = self.free_map();
        free_map.objects - free_map.free
    }

    /// Takes up to `most` free objects, the lowest first. Returns how many, and whether none is left. `class` is the one
    /// that it was allocated for.
    pub(super) fn take_up_to(
        &mut self,
        class: SizeClass,
        most: usize,
        mut take: impl FnMut(Object),
    ) -> (usize, bool) {
        let start = self.0.cast::<u8>();
        let free_map = self.free_map();
        let mut left = most.min(free_map.free);
        let taken = left;
        free_map.free -= taken;
        while left > 0 {
            let index = free_map.low;
            let Some(word) = free_map.bits.get_mut(index) else {
                debug_assert!(
                    false,
                    "SLAB-2: the map has as many bits as there are free objects"
                );
                break;
            };
            // Out of the map before they are handed out, so that none is taken twice.
            let mut taken = lowest(*word, left);
            *word ^= taken;
            left -= taken.count_ones() as usize;
            while taken != 0 {
                let line = index * 64 + taken.trailing_zeros() as usize;
                taken &= taken - 1;
                // SAFETY: SLAB-2 - an object of this slab begins there, so the address is in the slab.
                let ptr = unsafe { start.add(offset_of(class, line)) };
                // SAFETY: RECYCLE-1, SLAB-2 - it was in the depot and no longer is; RECYCLE-2 - carved for
                // this class; RECYCLE-3 - on a slab; RECYCLE-4 - its last owner has ended all access.
                take(unsafe { Object::from_raw(ptr) });
            }
            if left > 0 {
                free_map.low += 1;
            }
        }
        (taken, free_map.free == 0)
    }

    /// Puts an object of this slab back, and as many of those that follow as belong to this slab too: what
    /// was taken together mostly comes back together.
    #[inline]
    pub(super) fn put_back(
        &mut self,
        object: Object,
        others: &mut impl Iterator<Item = Object>,
    ) -> PutBack {
        let start = self.0.addr().get();
        let free_map = self.free_map();
        let before = free_map.free;
        let mut next = Some(object);
        // Neighbouring objects are bits of one word, which is written back when the word changes.
        let (mut word, mut bits, mut count) = (0, 0, 0);
        while let Some(object) = next.take() {
            // The exclusive or leaves the offset, if the address is in the slab.
            let offset = object.address() ^ start;
            if offset >= SLAB_SIZE {
                next = Some(object);
                break;
            }
            if offset / LINE / 64 != word {
                free_map.mark_free(word, bits);
                (word, bits) = (offset / LINE / 64, 0);
            }
            let bit = 1 << (offset / LINE % 64);
            debug_assert!(bits & bit == 0, "RECYCLE-1: an object was put back twice");
            bits |= bit;
            count += 1;
            next = others.next();
        }
        free_map.mark_free(word, bits);
        free_map.free = before + count;
        PutBack {
            before,
            now: free_map.free,
            next,
        }
    }

    /// The number of free objects.
    pub(super) fn free_count(&mut self) -> usize {
        self.free_map().free
    }

    /// Its index among the depot's slabs with free objects.
    pub(super) fn index(&mut self) -> usize {
        self.free_map().index
    }

    pub(super) fn set_index(&mut self, index: usize) {
        self.free_map().index = index;
    }

    /// Links the next slab on the way back to the system.
    pub(super) fn set_next(&mut self, next: Option<Slab>) {
        self.free_map().next = next;
    }

    /// Returns it to the system, and returns the slab linked behind it.
    ///
    /// # Safety
    ///
    /// RECYCLE-3: all objects are free, and no depot lists it any more.
    pub(super) unsafe fn release(mut self) -> Option<Slab> {
        let next = self.free_map().next.take();
        // SAFETY: RECYCLE-3 - by contract; it was allocated with this layout.
        unsafe { dealloc(self.0.as_ptr().cast(), layout()) };
        next
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn take(slab: &mut Slab, class: SizeClass, most: usize) -> Vec<Object> {
        let mut taken = Vec::new();
        slab.take_up_to(class, most, |object| taken.push(object));
        taken
    }

    #[test]
    fn objects_of_a_slab_begin_in_lines_of_their_own_and_do_not_overlap() {
        for class in SizeClass::all() {
            let mut slab = Slab::allocate(class).unwrap();
            let start = slab.0.addr().get();
            assert_eq!(start % SLAB_SIZE, 0);
            let objects: Vec<_> = take(&mut slab, class, usize::MAX);
            assert_eq!(objects.len(), super::objects_per_slab(class));
            let addresses: Vec<_> = objects.iter().map(Object::address).collect();
            let step = if class.size() % LINE == 0 {
                LINE
            } else {
                LINE / 2
            };
            assert!(addresses.iter().all(|address| address % step == 0));
            let lines: HashSet<_> = addresses.iter().map(|address| address / LINE).collect();
            assert_eq!(lines.len(), addresses.len());
            assert!(addresses[0] >= start + size_of::<FreeMap>());
            assert!(
                addresses
                    .windows(2)
                    .all(|two| two[1] - two[0] == class.size())
            );
            assert!(addresses[addresses.len() - 1] + class.size() <= start + SLAB_SIZE);
            assert!(objects.iter().all(|object| Slab::of(object) == slab));
            for (free, object) in objects.into_iter().enumerate() {
                let put = slab.put_back(object, &mut std::iter::empty());
                assert_eq!((put.before, put.now), (free, free + 1));
                assert!(put.next.is_none());
            }
            // SAFETY: RECYCLE-3 - all objects are back.
            assert!(unsafe { slab.release() }.is_none());
        }
    }

    #[test]
    fn the_lowest_free_objects_are_taken_first_and_none_twice() {
        let class = SizeClass::all().next().unwrap();
        let mut slab = Slab::allocate(class).unwrap();
        let mut held = take(&mut slab, class, 1000);
        let back: Vec<_> = held.drain(100..700).collect();
        let expected: Vec<_> = back.iter().map(Object::address).collect();
        let mut back = back.into_iter().rev();
        let put = slab.put_back(back.next().unwrap(), &mut back);
        assert_eq!(put.now - put.before, 600);
        assert!(put.next.is_none());
        let again = take(&mut slab, class, 600);
        assert_eq!(
            again.iter().map(Object::address).collect::<Vec<_>>(),
            expected
        );
        held.extend(again);
        held.extend(take(&mut slab, class, usize::MAX));
        assert!(take(&mut slab, class, 1).is_empty());
        let different: HashSet<_> = held.iter().map(Object::address).collect();
        assert_eq!(different.len(), super::objects_per_slab(class));
        let mut held = held.into_iter();
        slab.put_back(held.next().unwrap(), &mut held);
        // SAFETY: RECYCLE-3 - all objects are back.
        unsafe { slab.release() };
    }

    #[test]
    fn the_lowest_bits_are_as_many_as_there_are_at_most() {
        assert_eq!(lowest(0, 3), 0);
        assert_eq!(lowest(0b1011_0100, 0), 0);
        assert_eq!(lowest(0b1011_0100, 2), 0b0001_0100);
        assert_eq!(lowest(0b1011_0100, 9), 0b1011_0100);
        assert_eq!(lowest(u64::MAX, 63), u64::MAX >> 1);
    }

    #[test]
    fn objects_are_put_back_up_to_the_first_of_another_slab() {
        let class = SizeClass::all().next().unwrap();
        let (mut one, mut other) = (
            Slab::allocate(class).unwrap(),
            Slab::allocate(class).unwrap(),
        );
        let (mine, theirs) = (take(&mut one, class, 3), take(&mut other, class, 2));
        let first_of_theirs = theirs[0].address();
        let mut all = mine.into_iter().chain(theirs);
        let put = one.put_back(all.next().unwrap(), &mut all);
        assert_eq!(put.now - put.before, 3);
        assert_eq!(one.free_count(), super::objects_per_slab(class));
        let next = put.next.unwrap();
        assert_eq!(next.address(), first_of_theirs);
        other.put_back(next, &mut all);
        assert_eq!(other.free_count(), super::objects_per_slab(class));
        for slab in [one, other] {
            // SAFETY: RECYCLE-3 - all objects are back.
            unsafe { slab.release() };
        }
    }
}
