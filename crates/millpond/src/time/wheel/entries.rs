//! Where the entries of a wheel are: in pages, found by number.
//!
//! A page never moves, so a wheel that grows copies nothing; and an entry that goes leaves its place to
//! the next that comes. When the last one has gone, all places are free at once, and all but a few pages
//! go back.
//!
//! # Rules
//!
//! - **E1** A place has a payload as long as somebody waits there, and none when it is free.
//! - **E2** Places from `fresh` on have not been used since the wheel was last empty. Free places below
//!   are on a list, through `next`.
//! - **E3** A key names a place and the number of the one who waits there. Numbers are given once, so the
//!   key of an entry that has gone fits nobody who comes later. (It has 32 bits of the number: it would
//!   take four thousand million insertions, and the last of them in this very place.) They go on when
//!   everything is [let go](Entries::let_go), too.

use super::Key;
use std::mem::ManuallyDrop;

/// No place.
pub(super) const NIL: u32 = u32::MAX;

const PAGE: usize = 512;
const PAGE_BITS: u32 = PAGE.trailing_zeros();

/// How many pages an empty wheel keeps, so that one that runs empty now and then allocates nothing.
const KEEP: usize = 8;

/// One who waits, or a free place.
pub(super) struct Entry<P> {
    /// In nanoseconds since the wheel's base.
    pub(super) due: u64,
    /// How many came before.
    pub(super) number: u64,
    /// In a bucket: the neighbour that came before. In the heap: the position there.
    pub(super) prev: u32,
    /// In a bucket: the neighbour that came after. Free: the next free place.
    pub(super) next: u32,
    payload: Option<P>,
}

/// A place for one who comes, and its number. A place that is not filled is lost until the wheel is empty.
#[must_use = "a place that is not filled is lost"]
pub(crate) struct Reserved {
    pub(super) index: u32,
    number: u64,
}

impl Reserved {
    /// The key of who will be there.
    #[inline]
    pub(crate) fn key(&self) -> Key {
        Key {
            index: self.index,
            generation: generation(self.number),
        }
    }
}

/// Where one was that has been taken out.
#[derive(Clone, Copy)]
pub(super) struct Gone {
    pub(super) due: u64,
    pub(super) prev: u32,
    pub(super) next: u32,
}

type Page<P> = Box<[Entry<P>; PAGE]>;

/// The entries of a wheel.
pub(super) struct Entries<P> {
    pages: Vec<Page<P>>,
    /// E2.
    free: u32,
    /// E2.
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

    /// Takes all of it out, and leaves nobody and no memory. E3: the numbers go on.
    pub(super) fn let_go(&mut self) -> Self {
        let nobody = Entries {
            next_number: self.next_number,
            ..Entries::new()
        };
        std::mem::replace(self, nobody)
    }

    /// A place for one who comes.
    #[inline]
    pub(super) fn reserve(&mut self) -> Reserved {
        let index = self.free_place();
        let number = self.next_number;
        self.next_number += 1;
        Reserved { index, number }
    }

    /// Takes one in, whose neighbour in the bucket is `older`, if any.
    #[inline]
    pub(super) fn fill(&mut self, reserved: Reserved, due: u64, payload: P, older: u32) {
        let Reserved { index, number } = reserved;
        self.len += 1;
        // Field by field: an entry that is made elsewhere and copied here is read before it is written.
        let entry = self.at_mut(index);
        entry.due = due;
        entry.number = number;
        entry.prev = older;
        entry.next = NIL;
        let nobody = entry.payload.replace(payload);
        debug_assert!(nobody.is_none(), "E1: the place was free");
        std::mem::forget(nobody);
        if older != NIL {
            self.at_mut(older).next = index;
        }
    }

    /// Makes an entry the newest of a bucket in which `older` was that.
    #[inline]
    pub(super) fn put_after(&mut self, older: u32, index: u32) {
        let entry = self.at_mut(index);
        entry.prev = older;
        entry.next = NIL;
        if older != NIL {
            self.at_mut(older).next = index;
        }
    }

    #[inline]
    fn free_place(&mut self) -> u32 {
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
        let nobody = || Entry {
            due: 0,
            number: 0,
            prev: NIL,
            next: NIL,
            payload: None,
        };
        let page: Box<[Entry<P>]> = std::iter::repeat_with(nobody).take(PAGE).collect();
        match page.try_into() {
            Ok(page) => self.pages.push(page),
            Err(_) => unreachable!("a page has {PAGE} places"),
        }
    }

    /// Takes one out, unless it has gone already (E3). The heap, or its neighbours in the bucket, have yet
    /// to be told; then [`tidy`](Entries::tidy). Who forgets what is in the payload loses it.
    #[inline]
    pub(super) fn take(&mut self, key: Key) -> Option<(ManuallyDrop<P>, Gone)> {
        let free = self.free;
        let page = self.pages.get_mut((key.index >> PAGE_BITS) as usize)?;
        let entry = &mut page[key.index as usize % PAGE];
        if generation(entry.number) != key.generation {
            return None;
        }
        let payload = ManuallyDrop::new(entry.payload.take()?);
        let gone = Gone {
            due: entry.due,
            prev: entry.prev,
            next: entry.next,
        };
        entry.next = free;
        self.free = key.index;
        self.len -= 1;
        Some((payload, gone))
    }

    /// After somebody was taken out, and all have been told.
    #[inline]
    pub(super) fn tidy(&mut self) {
        if self.len == 0 {
            self.clear();
        }
    }

    #[cold]
    fn clear(&mut self) {
        self.free = NIL;
        self.fresh = 0;
        self.pages.truncate(KEEP);
    }

    #[inline]
    pub(super) fn at(&self, index: u32) -> &Entry<P> {
        &self.pages[(index >> PAGE_BITS) as usize][index as usize % PAGE]
    }

    #[inline]
    pub(super) fn at_mut(&mut self, index: u32) -> &mut Entry<P> {
        &mut self.pages[(index >> PAGE_BITS) as usize][index as usize % PAGE]
    }

    /// Who has this key, if it still waits (E3).
    #[inline]
    pub(super) fn find(&self, key: Key) -> Option<&Entry<P>> {
        let page = self.pages.get((key.index >> PAGE_BITS) as usize)?;
        let entry = &page[key.index as usize % PAGE];
        let is_it = entry.payload.is_some() && generation(entry.number) == key.generation;
        is_it.then_some(entry)
    }

    /// What it carries, to be changed.
    pub(super) fn find_mut(&mut self, key: Key) -> Option<&mut P> {
        let page = self.pages.get_mut((key.index >> PAGE_BITS) as usize)?;
        let entry = &mut page[key.index as usize % PAGE];
        let is_it = generation(entry.number) == key.generation;
        entry.payload.as_mut().filter(|_| is_it)
    }

    /// All who wait, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Entry<P>, &P)> {
        let places = self.pages.iter().flat_map(|page| page.iter());
        (0..self.fresh)
            .zip(places)
            .filter_map(|(index, entry)| Some((index, entry, entry.payload.as_ref()?)))
    }
}

/// As much of a number as there is room for in a key.
#[allow(clippy::cast_possible_truncation, reason = "E3")]
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
        entries.tidy();
        Some(ManuallyDrop::into_inner(payload))
    }

    #[test]
    fn places_are_used_again_and_all_but_a_few_pages_go_back_when_nobody_is_left() {
        let mut entries = Entries::new();
        let all: Vec<Key> = (0..KEEP * 3 * PAGE)
            .map(|n| insert(&mut entries, n))
            .collect();
        assert_eq!(entries.pages.len(), KEEP * 3);
        for (n, key) in all.iter().enumerate().skip(1) {
            assert_eq!(take(&mut entries, *key), Some(n));
            assert_eq!(take(&mut entries, *key), None, "it has gone");
        }
        assert_eq!(entries.pages.len(), KEEP * 3, "one still waits");
        let last = insert(&mut entries, 7);
        assert!(all[1..].iter().any(|key| key.index == last.index));
        assert_eq!(take(&mut entries, last), Some(7));
        assert_eq!(take(&mut entries, all[0]), Some(0));
        assert_eq!((entries.pages.len(), entries.len()), (KEEP, 0));
        assert_eq!(insert(&mut entries, 8).index, 0);
    }

    #[test]
    fn a_key_fits_nobody_who_comes_later_even_if_its_page_was_given_back() {
        let mut entries = Entries::new();
        let all: Vec<Key> = (0..=KEEP * PAGE).map(|n| insert(&mut entries, n)).collect();
        let last = *all.last().unwrap();
        for key in &all {
            take(&mut entries, *key);
        }
        assert!(entries.find(last).is_none(), "its page is gone");
        for n in 0..=KEEP * PAGE {
            insert(&mut entries, n);
        }
        assert!(entries.at(last.index).payload.is_some());
        assert!(all.iter().all(|key| entries.find(*key).is_none()));
        assert!(all.iter().all(|key| entries.take(*key).is_none()));
    }
}
