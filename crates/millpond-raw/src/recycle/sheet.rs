//! A sheet: a quarter of a megabyte that slabs of one class are cut from, and the book of which of them
//! are free. Invariants R1 to R4 are in the [module](super).
//!
//! ```text
//!   SHEET bytes, at a multiple of SHEET
//!   +------------------------+--------+--------+--------+ ...
//!   | Book: a bit for a line | slab   | slab   | slab   |
//!   +------------------------+--------+--------+--------+ ...
//! ```
//!
//! The book is in the sheet, and a sheet begins at a multiple of its size. So the address of a slab says
//! where its book is, and nothing has to be looked for. A slab goes by the number of the line that it
//! begins at, whatever its size: numbers are shifts and not divisions. Free slabs are taken in the order
//! of their addresses, so what is made one after the other lies side by side, as processors like it.
//!
//! # Invariants
//!
//! - **B1** The book of a sheet is touched by whoever has the lock of its depot, and by nobody else.
//! - **B2** A bit of the book is set while the slab that begins at its line is in the depot. Only lines at
//!   which a slab may begin ever have one.

use super::slab::{Class, LINE, Slab};
use crate::sync::{IN_MODEL, UnsafeCell};
use core::mem::size_of;
use core::ptr::NonNull;
use std::alloc::{Layout, alloc, dealloc};

/// How large a sheet is, and what its address is a multiple of. In models there is room for three slabs of
/// the largest class.
pub(super) const SHEET: usize = if IN_MODEL { 1024 } else { 256 * 1024 };

const LINES: usize = SHEET / LINE;
const WORDS: usize = LINES.div_ceil(u64::BITS as usize);

/// The lines of the book itself.
const FIRST: usize = size_of::<Head>().div_ceil(LINE);

#[repr(C)]
struct Book {
    /// How many of its slabs are free.
    free: usize,
    /// Its place among the sheets of the depot that have free slabs.
    place: usize,
    /// Below this word no bit is set.
    low: usize,
    /// The next one of those that go back to the system.
    next: Option<Sheet>,
    /// How many of its slabs are free when it is whole.
    slabs: usize,
    /// Takes no room, and shows a checker whoever uses the book (B1).
    watched: UnsafeCell<()>,
    bits: [u64; WORDS],
}

/// What a sheet begins with.
#[repr(C)]
struct Head {
    book: Book,
    /// Take no room, and show a checker whoever uses the slab that begins at their line.
    watched: [UnsafeCell<()>; LINES],
}

impl Book {
    /// Notes slabs as free.
    #[inline]
    fn note(&mut self, word: usize, bits: u64) {
        debug_assert!(self.bits[word] & bits == 0, "R1: one is here already");
        self.bits[word] |= bits;
        if bits != 0 {
            self.low = self.low.min(word);
        }
    }
}

/// The lowest `most` of the bits of a word, or all.
#[inline]
fn lowest(word: u64, most: usize) -> u64 {
    if word.count_ones() as usize <= most {
        return word;
    }
    let others = (0..most).fold(word, |left, _| left & (left - 1));
    word ^ others
}

/// Lets a checker know that whoever has the slab uses it: all such uses must be ordered (R4).
pub(super) fn touch(slab: &Slab) {
    let head = Sheet::of(slab).0.cast::<Head>().as_ptr();
    // SAFETY: R3 - a sheet lives as long as a slab of it is out.
    let watched = unsafe { &raw const (*head).watched };
    // SAFETY: R3 - as above; and they change in no way but through themselves.
    let watched = unsafe { &*watched };
    watched[slab.address() % SHEET / LINE].with_mut(drop);
}

/// What came of taking slabs in.
pub(super) struct Put {
    /// How many of the sheet's slabs were free before.
    pub(super) before: usize,
    /// How many are now.
    pub(super) now: usize,
    /// The first one that is not of this sheet.
    pub(super) next: Option<Slab>,
}

/// A sheet of some depot. As good as a pointer: its depot sees to it that it lives.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sheet(NonNull<Book>);

// SAFETY: B1 - what it points to is used under a lock.
unsafe impl Send for Sheet {}

pub(super) const fn layout() -> Layout {
    match Layout::from_size_align(SHEET, SHEET) {
        Ok(layout) => layout,
        Err(_) => unreachable!(),
    }
}

/// How many slabs are on a sheet.
pub(super) const fn slabs(class: Class) -> usize {
    (SHEET - FIRST * LINE) / class.size()
}

impl Sheet {
    /// A new one, all of whose slabs are free; `None` if the system has no memory.
    pub(super) fn open(class: Class) -> Option<Self> {
        // SAFETY: R3 - the size is not zero.
        let memory = NonNull::new(unsafe { alloc(layout()) })?;
        let mut bits = [0; WORDS];
        let lines = class.size() / LINE;
        for slab in 0..slabs(class) {
            let line = FIRST + slab * lines;
            bits[line / 64] |= 1 << (line % 64);
        }
        let book = memory.cast::<Book>();
        let empty = Book {
            free: slabs(class),
            place: 0,
            low: 0,
            next: None,
            slabs: slabs(class),
            watched: UnsafeCell::new(()),
            bits,
        };
        let head = Head {
            book: empty,
            watched: core::array::from_fn(|_| UnsafeCell::new(())),
        };
        // SAFETY: R1 - the memory is ours and new, and the head's alignment divides a sheet's.
        unsafe { memory.cast::<Head>().write(head) };
        for slab in 0..slabs(class) {
            // SAFETY: B2 - a slab of this sheet begins there; so the address is in the sheet.
            let place = unsafe { memory.add(FIRST * LINE + slab * class.size()) };
            // SAFETY: R1 to R4 - new, of this class, on a sheet, and nobody has used it.
            unsafe { Slab::own(place) }.poison(class);
        }
        Some(Sheet(book))
    }

    /// The sheet that a slab was cut from.
    #[inline]
    pub(super) fn of(slab: &Slab) -> Self {
        // The pointer of a slab was made from that of its sheet, so it may be turned back into one.
        let start = slab
            .place()
            .as_ptr()
            .map_addr(|address| address & !(SHEET - 1));
        // SAFETY: R3 - a sheet begins there, and a sheet does not begin at 0.
        Sheet(unsafe { NonNull::new_unchecked(start.cast()) })
    }

    /// The same sheet, for another place to keep it in.
    #[inline]
    pub(super) fn again(&self) -> Self {
        Sheet(self.0)
    }

    #[inline]
    fn book(&mut self) -> &mut Book {
        // SAFETY: R3 - it lives; B1 - the depot, which is locked, has made this handle and uses one at a
        // time.
        let book = unsafe { self.0.as_mut() };
        book.watched.with_mut(drop);
        book
    }

    /// Whether all its slabs are free.
    pub(super) fn is_whole(&mut self) -> bool {
        let book = self.book();
        book.free == book.slabs
    }

    /// Takes up to `most` free slabs out, the lowest first. Returns whether none is left.
    pub(super) fn draw(&mut self, most: usize, mut take: impl FnMut(Slab)) -> (usize, bool) {
        let start = self.0.cast::<u8>();
        let book = self.book();
        let mut left = most.min(book.free);
        let drawn = left;
        book.free -= drawn;
        while left > 0 {
            let index = book.low;
            let Some(word) = book.bits.get_mut(index) else {
                debug_assert!(false, "B2: as many bits as free slabs");
                break;
            };
            // Out of the book before they are given away, so that none is drawn twice.
            let mut drawn = lowest(*word, left);
            *word ^= drawn;
            left -= drawn.count_ones() as usize;
            while drawn != 0 {
                let line = index * 64 + drawn.trailing_zeros() as usize;
                drawn &= drawn - 1;
                // SAFETY: B2 - a slab of this sheet begins there; so the address is in the sheet.
                let place = unsafe { start.add(line * LINE) };
                // SAFETY: R1, B2 - it was in the depot, and is no longer; R2 - cut for this class; R3 -
                // on a sheet; R4 - whoever handed it in has ended all access.
                take(unsafe { Slab::own(place) });
            }
            if left > 0 {
                book.low += 1;
            }
        }
        (drawn, book.free == 0)
    }

    /// Takes a slab of this sheet in, and of those that follow as many as are of this sheet, too: what was
    /// drawn together mostly comes back together.
    #[inline]
    pub(super) fn put_back(&mut self, slab: Slab, others: &mut impl Iterator<Item = Slab>) -> Put {
        let start = self.0.addr().get();
        let book = self.book();
        let before = book.free;
        let mut next = Some(slab);
        // Slabs side by side are bits of one word, which is written when it changes.
        let (mut word, mut bits, mut count) = (0, 0, 0);
        while let Some(slab) = next.take() {
            // Nothing but the place in the sheet is left of an address that is in it.
            let place = slab.address() ^ start;
            if place >= SHEET {
                next = Some(slab);
                break;
            }
            if place / LINE / 64 != word {
                book.note(word, bits);
                (word, bits) = (place / LINE / 64, 0);
            }
            let bit = 1 << (place / LINE % 64);
            debug_assert!(bits & bit == 0, "R1: it comes twice");
            bits |= bit;
            count += 1;
            next = others.next();
        }
        book.note(word, bits);
        book.free = before + count;
        Put {
            before,
            now: book.free,
            next,
        }
    }

    /// How many of its slabs are free.
    pub(super) fn free(&mut self) -> usize {
        self.book().free
    }

    /// Its place among the sheets of the depot that have free slabs.
    pub(super) fn place(&mut self) -> usize {
        self.book().place
    }

    pub(super) fn stands_at(&mut self, place: usize) {
        self.book().place = place;
    }

    /// Puts another one behind it, on its way back to the system.
    pub(super) fn goes_before(&mut self, next: Option<Sheet>) {
        self.book().next = next;
    }

    /// Gives it back to the system. Returns the one behind it.
    ///
    /// # Safety
    ///
    /// R3: all its slabs are free, and no depot knows it any more.
    pub(super) unsafe fn give_back(mut self) -> Option<Sheet> {
        let next = self.book().next.take();
        // SAFETY: R3 - by contract; it was had with this layout.
        unsafe { dealloc(self.0.as_ptr().cast(), layout()) };
        next
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn draw(sheet: &mut Sheet, most: usize) -> Vec<Slab> {
        let mut drawn = Vec::new();
        sheet.draw(most, |slab| drawn.push(slab));
        drawn
    }

    #[test]
    fn slabs_of_a_sheet_are_on_lines_of_their_own_and_do_not_overlap() {
        for class in Class::all() {
            let mut sheet = Sheet::open(class).unwrap();
            let start = sheet.0.addr().get();
            assert_eq!(start % SHEET, 0);
            let slabs: Vec<_> = draw(&mut sheet, usize::MAX);
            assert_eq!(slabs.len(), super::slabs(class));
            let addresses: Vec<_> = slabs.iter().map(Slab::address).collect();
            assert!(addresses.iter().all(|address| address % LINE == 0));
            assert!(addresses[0] >= start + size_of::<Book>());
            assert!(
                addresses
                    .windows(2)
                    .all(|two| two[1] - two[0] == class.size())
            );
            assert!(addresses[addresses.len() - 1] + class.size() <= start + SHEET);
            assert!(slabs.iter().all(|slab| Sheet::of(slab) == sheet));
            for (free, slab) in slabs.into_iter().enumerate() {
                let put = sheet.put_back(slab, &mut std::iter::empty());
                assert_eq!((put.before, put.now), (free, free + 1));
                assert!(put.next.is_none());
            }
            // SAFETY: R3 - all of them are back.
            assert!(unsafe { sheet.give_back() }.is_none());
        }
    }

    #[test]
    fn the_lowest_that_are_free_are_drawn_first_and_none_twice() {
        let class = Class::all().next().unwrap();
        let mut sheet = Sheet::open(class).unwrap();
        let mut held = draw(&mut sheet, 1000);
        let back: Vec<_> = held.drain(100..700).collect();
        let expected: Vec<_> = back.iter().map(Slab::address).collect();
        let mut back = back.into_iter().rev();
        let put = sheet.put_back(back.next().unwrap(), &mut back);
        assert_eq!(put.now - put.before, 600);
        assert!(put.next.is_none());
        let again = draw(&mut sheet, 600);
        assert_eq!(
            again.iter().map(Slab::address).collect::<Vec<_>>(),
            expected
        );
        held.extend(again);
        held.extend(draw(&mut sheet, usize::MAX));
        assert!(draw(&mut sheet, 1).is_empty());
        let different: HashSet<_> = held.iter().map(Slab::address).collect();
        assert_eq!(different.len(), super::slabs(class));
        let mut held = held.into_iter();
        sheet.put_back(held.next().unwrap(), &mut held);
        // SAFETY: R3 - all of them are back.
        unsafe { sheet.give_back() };
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
    fn slabs_are_taken_in_up_to_the_first_of_another_sheet() {
        let class = Class::all().next().unwrap();
        let (mut one, mut other) = (Sheet::open(class).unwrap(), Sheet::open(class).unwrap());
        let (mine, theirs) = (draw(&mut one, 3), draw(&mut other, 2));
        let first_of_theirs = theirs[0].address();
        let mut all = mine.into_iter().chain(theirs);
        let put = one.put_back(all.next().unwrap(), &mut all);
        assert_eq!(put.now - put.before, 3);
        assert_eq!(one.free(), super::slabs(class));
        let next = put.next.unwrap();
        assert_eq!(next.address(), first_of_theirs);
        other.put_back(next, &mut all);
        assert_eq!(other.free(), super::slabs(class));
        for sheet in [one, other] {
            // SAFETY: R3 - all of them are back.
            unsafe { sheet.give_back() };
        }
    }
}
