//! The memory of a wheel's entries: pages of slots, found by index.
//!
//! A page never moves, so a growing wheel copies nothing, and the slot of a removed entry is reused. When the
//! last entry is removed all slots are free, and all but a few pages are deallocated.
//!
//! # Invariants
//!
//! - **ENTRY-1** A slot has a payload while it holds an entry, and none while it is free.
//! - **ENTRY-2** Slots from `fresh` on have not been used since the wheel was last empty. Free slots below are on a
//!   free list, through `next`.
//! - **ENTRY-3** A key has the index of the slot and the number of the entry. Numbers are never reused, so the key of
//!   a removed entry fits no later one. (The key has 32 bits of the number: a collision takes four thousand
//!   million insertions, the last of them into this very slot.) [`take_all`](Entries::take_all) does not reset
//!   them.

use super::Key;
use std::mem::ManuallyDrop;

/// No slot.
pub(super) const NIL: u32 = u32::MAX;

const PAGE: usize = 512;
const PAGE_BITS: u32 = PAGE.trailing_zeros();

/// The number of pages that an empty wheel keeps, so that one that runs empty now and then does not allocate.
const KEPT_PAGES: usize = 8;

/// An entry, or a free slot.
pub(super) struct Entry<P> {
    /// In nanoseconds since the wheel's base.
    pub(super) due: u64,
    /// The number of entries inserted before.
    pub(super) number: u64,
    /// In a bucket: the older neighbour. In the heap: the position there.
    pub(super) prev: u32,
    /// In a bucket: the newer neighbour. Free: the next free slot.
    pub(super) next: u32,
    payload: Option<P>,
}

/// A slot and a number for a new entry. A slot that is not filled is lost until the wheel is empty.
#[must_use = "a slot that is not filled is lost"]
pub(crate) struct ReservedEntry {
    pub(super) index: u32,
    number: u64,
}

impl ReservedEntry {
    /// The key of the entry that will fill it.
    #[inline]
    pub(crate) fn key(&self) -> Key {
        Key {
            index: self.index,
            generation: generation(self.number),
        }
    }
}

/// The due time and the links of an entry that was removed.
#[derive(Clone, Copy)]
pub(super) struct Removed {
    pub(super) due: u64,
    pub(super) prev: u32,
    pub(super) next: u32,
}

type Page<P> = Box<[Entry<P>; PAGE]>;

/// The entries of a wheel.
pub(super) struct Entries<P> {
    pages: Vec<Page<P>>,
    /// ENTRY-2.
    free: u32,
    /// ENTRY-2.
    fresh: u32,
    len: usize,
    next_number: u64,
}

impl<P> Entries<P> {
    pub(super) fn new() -> Self {
        Entries {
            pages: Vec::new(),
            free: NIL,
            fresh: 0,
            len: 0,
            next_number: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Moves all entries and pages out. ENTRY-3: the numbers continue.
    pub(super) fn take_all(&mut self) -> Self {
        let empty = Entries {
            next_number: self.next_number,
            ..Entries::new()
        };
        std::mem::replace(self, empty)
    }

    /// Reserves a slot.
    #[inline]
    pub(super) fn reserve(&mut self) -> ReservedEntry {
        let index = self.free_slot();
        let number = self.next_number;
        self.next_number += 1;
        ReservedEntry { index, number }
    }

    /// Fills a slot; `older` is the neighbour in the bucket, if any.
    #[inline]
    pub(super) fn fill(&mut self, reserved: ReservedEntry, due: u64, payload: P, older: u32) {
        let ReservedEntry { index, number } = reserved;
        self.len += 1;
        // Field by field: assigning a whole entry would read the old one first, to drop it.
        let entry = self.at_mut(index);
        entry.due = due;
        entry.number = number;
        entry.prev = older;
        entry.next = NIL;
        let empty = entry.payload.replace(payload);
        debug_assert!(empty.is_none(), "ENTRY-1: the slot was free");
        std::mem::forget(empty);
        if older != NIL {
            self.at_mut(older).next = index;
        }
    }

    /// Links an entry as the newest of a bucket, after `older`.
    #[inline]
    pub(super) fn link_after(&mut self, older: u32, index: u32) {
        let entry = self.at_mut(index);
        entry.prev = older;
        entry.next = NIL;
        if older != NIL {
            self.at_mut(older).next = index;
        }
    }

    #[inline]
    fn free_slot(&mut self) -> u32 {
        let free = self.free;
        if free != NIL {
            self.free = self.at(free).next;
            return free;
        }
        let fresh = self.fresh;
        if fresh as usize == self.pages.len() * PAGE {
            self.grow();
        }
        self.fresh += 1;
        fresh
    }

    #[cold]
    fn grow(&mut self) {
        assert!(
            self.pages.len() < NIL as usize / PAGE,
            "a wheel holds four thousand million entries, and this one is full: cancel what is not needed",
        );
        let empty = || Entry {
            due: 0,
            number: 0,
            prev: NIL,
            next: NIL,
            payload: None,
        };
        let page: Box<[Entry<P>]> = std::iter::repeat_with(empty).take(PAGE).collect();
        match page.try_into() {
            Ok(page) => self.pages.push(page),
            Err(_) => unreachable!("a page has {PAGE} slots"),
        }
    }

    /// Takes an entry out of its slot, if it is still there (ENTRY-3). The caller unlinks it from the heap or the
    /// bucket, then calls [`release_if_empty`](Entries::release_if_empty), and takes care of the payload.
    #[inline]
    pub(super) fn take(&mut self, key: Key) -> Option<(ManuallyDrop<P>, Removed)> {
        let free = self.free;
        let page = self.pages.get_mut((key.index >> PAGE_BITS) as usize)?;
        let entry = &mut page[key.index as usize % PAGE];
        if generation(entry.number) != key.generation {
            return None;
        }
        let payload = ManuallyDrop::new(entry.payload.take()?);
        let removed = Removed {
            due: entry.due,
            prev: entry.prev,
            next: entry.next,
        };
        entry.next = free;
        self.free = key.index;
        self.len -= 1;
        Some((payload, removed))
    }

    /// Deallocates pages if no entry is left. To be called after an entry was removed and unlinked.
    #[inline]
    pub(super) fn release_if_empty(&mut self) {
        if self.len == 0 {
            self.clear();
        }
    }

    #[cold]
    fn clear(&mut self) {
        self.free = NIL;
        self.fresh = 0;
        self.pages.truncate(KEPT_PAGES);
    }

    #[inline]
    pub(super) fn at(&self, index: u32) -> &Entry<P> {
        &self.pages[(index >> PAGE_BITS) as usize][index as usize % PAGE]
    }

    #[inline]
    pub(super) fn at_mut(&mut self, index: u32) -> &mut Entry<P> {
        &mut self.pages[(index >> PAGE_BITS) as usize][index as usize % PAGE]
    }

    /// The entry with this key, if it is still there (ENTRY-3).
    #[inline]
    pub(super) fn find(&self, key: Key) -> Option<&Entry<P>> {
        let page = self.pages.get((key.index >> PAGE_BITS) as usize)?;
        let entry = &page[key.index as usize % PAGE];
        let matches = entry.payload.is_some() && generation(entry.number) == key.generation;
        matches.then_some(entry)
    }

    /// The payload of the entry with this key, if it is still there (ENTRY-3).
    pub(super) fn find_mut(&mut self, key: Key) -> Option<&mut P> {
        let page = self.pages.get_mut((key.index >> PAGE_BITS) as usize)?;
        let entry = &mut page[key.index as usize % PAGE];
        let matches = generation(entry.number) == key.generation;
        entry.payload.as_mut().filter(|_| matches)
    }

    /// All entries, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Entry<P>, &P)> {
        let slots = self.pages.iter().flat_map(|page| page.iter());
        (0..self.fresh)
            .zip(slots)
            .filter_map(|(index, entry)| Some((index, entry, entry.payload.as_ref()?)))
    }
}

/// The part of a number that fits into a key.
#[allow(clippy::cast_possible_truncation, reason = "ENTRY-3")]
pub(super) fn generation(number: u64) -> u32 {
    number as u32
}

impl<P> Entry<P> {
    pub(super) fn payload(&self) -> Option<&P> {
        self.payload.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_with_two_words_of_payload_takes_six_words_at_most() {
        assert!(size_of::<Entry<[u64; 2]>>() <= 48);
        assert_eq!(size_of::<Entry<std::task::Waker>>(), 40);
        assert_eq!(size_of::<Key>(), 8);
    }

    fn insert(entries: &mut Entries<usize>, n: usize) -> Key {
        let reserved = entries.reserve();
        let key = reserved.key();
        entries.fill(reserved, 0, n, NIL);
        key
    }

    fn take(entries: &mut Entries<usize>, key: Key) -> Option<usize> {
        let (payload, _) = entries.take(key)?;
        entries.release_if_empty();
        Some(ManuallyDrop::into_inner(payload))
    }

    #[test]
    fn slots_are_reused_and_all_but_a_few_pages_are_deallocated_when_no_entry_is_left() {
        let mut entries = Entries::new();
        let all: Vec<Key> = (0..KEPT_PAGES * 3 * PAGE)
            .map(|n| insert(&mut entries, n))
            .collect();
        assert_eq!(entries.pages.len(), KEPT_PAGES * 3);
        for (n, key) in all.iter().enumerate().skip(1) {
            assert_eq!(take(&mut entries, *key), Some(n));
            assert_eq!(take(&mut entries, *key), None, "it was removed");
        }
        assert_eq!(entries.pages.len(), KEPT_PAGES * 3, "one entry is left");
        let last = insert(&mut entries, 7);
        assert!(all[1..].iter().any(|key| key.index == last.index));
        assert_eq!(take(&mut entries, last), Some(7));
        assert_eq!(take(&mut entries, all[0]), Some(0));
        assert_eq!((entries.pages.len(), entries.len()), (KEPT_PAGES, 0));
        assert_eq!(insert(&mut entries, 8).index, 0);
    }

    /// ENTRY-3, with old entries alive and old keys kept.
    #[test]
    fn keys_stay_apart_when_their_32_bits_of_the_number_wrap_around() {
        const ROUND: u64 = 1 << 32;
        for start in [ROUND - 3, 7 * ROUND - 3, u64::MAX - 20] {
            let mut entries = Entries::new();
            // Long ago, and not by a multiple of what a key can tell.
            entries.next_number = start - ROUND.min(start / 3) - 100;
            let old = insert(&mut entries, 1_000);
            let stale = insert(&mut entries, 1_001);
            assert_eq!(take(&mut entries, stale), Some(1_001));
            entries.next_number = start;
            // One at a time, and so always in the slot of the stale key.
            let mut all = vec![stale];
            for n in 0..10 {
                let key = insert(&mut entries, n);
                assert_eq!(key.index, stale.index);
                assert!(all.iter().all(|key| entries.find(*key).is_none()));
                assert!(all.iter().all(|key| entries.take(*key).is_none()));
                assert_eq!(take(&mut entries, key), Some(n));
                all.push(key);
            }
            assert_eq!(take(&mut entries, old), Some(1_000));
        }
    }

    /// The price of a key of 8 bytes (ENTRY-3): not a promise.
    #[test]
    fn a_key_fits_the_entry_that_fills_its_slot_exactly_two_to_the_32nd_later() {
        let mut entries = Entries::new();
        let stale = insert(&mut entries, 1);
        assert_eq!(take(&mut entries, stale), Some(1));
        entries.next_number = 1 << 32;
        insert(&mut entries, 2);
        assert_eq!(take(&mut entries, stale), Some(2));
    }

    #[test]
    fn a_key_fits_no_later_entry_even_if_its_page_was_deallocated() {
        let mut entries = Entries::new();
        let all: Vec<Key> = (0..=KEPT_PAGES * PAGE)
            .map(|n| insert(&mut entries, n))
            .collect();
        let last = *all.last().unwrap();
        for key in &all {
            take(&mut entries, *key);
        }
        assert!(entries.find(last).is_none(), "its page is gone");
        for n in 0..=KEPT_PAGES * PAGE {
            insert(&mut entries, n);
        }
        assert!(entries.at(last.index).payload.is_some());
        assert!(all.iter().all(|key| entries.find(*key).is_none()));
        assert!(all.iter().all(|key| entries.take(*key).is_none()));
    }
}
