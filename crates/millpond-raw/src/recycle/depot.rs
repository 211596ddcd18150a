//! Where all threads exchange slabs of one class. Invariants are in the [module](super).
//!
//! The free ones lie in one flat stack, so any number can be handed in and drawn; in practice they
//! come and go by batches, and a batch costs the lock and a copy of 512 bytes.
//!
//! Sheets are cut for as long as there may be more of them; only then are there loose slabs. These are
//! kept while the stack is low. When it is high, those that are handed in stay with the caller, which
//! gives them back to the system after the lock is free. To tell a loose slab from one of a sheet the
//! depot looks at the addresses of its sheets, and only if there are loose ones at all.

use super::slab::{Class, LINE, Slab};
use core::ptr::NonNull;
use std::alloc::{Layout, alloc};
use std::vec::Drain;

/// How many slabs go from a rack to a depot, or back, at a time.
pub(super) const BATCH: usize = 64;

/// What slabs are cut from.
const SHEET: usize = 256 * 1024;

const MOST_SHEETS: usize = 16;

/// A loose slab is kept only while fewer than so many slabs are free.
const MOST_LOOSE: usize = 4096;

/// The free slabs of one class, and the sheets they are cut from.
pub(super) struct Depot {
    free: Vec<Slab>,
    sheets: Sheets,
    /// How many loose slabs there are, wherever they are.
    loose: usize,
}

impl Depot {
    pub(super) const fn new() -> Self {
        Depot {
            free: Vec::new(),
            sheets: Sheets::new(),
            loose: 0,
        }
    }

    /// Takes up to `most` slabs out; none if there are none, and no sheet to cut them from.
    pub(super) fn draw(&mut self, class: Class, most: usize) -> Drain<'_, Slab> {
        if self.free.is_empty() {
            while self.free.len() < most {
                match self.sheets.cut(class) {
                    Some(slab) => self.free.push(slab),
                    None => break,
                }
            }
            // Room for all that have been cut, now: handing them in again asks nobody for memory.
            self.free.reserve(self.sheets.slabs(class));
        }
        let left = self.free.len().saturating_sub(most);
        self.free.drain(left..)
    }

    /// Counts a loose slab that the caller is about to have from the system.
    pub(super) fn count_loose(&mut self) {
        self.loose += 1;
    }

    /// Takes slabs in. The loose ones that are too many stay, and are the caller's to give back.
    pub(super) fn hand_in(&mut self, slabs: &mut [Option<Slab>]) {
        for place in slabs {
            let too_many = self.loose > 0 && self.free.len() >= MOST_LOOSE;
            match place.take() {
                Some(slab) if too_many && !self.sheets.hold(&slab) => {
                    self.loose -= 1;
                    *place = Some(slab);
                }
                Some(slab) => self.free.push(slab),
                None => {}
            }
        }
    }

    /// How many slabs are free.
    pub(super) fn len(&self) -> usize {
        self.free.len()
    }
}

/// The sheets of one depot. They are never given back (R3).
struct Sheets {
    /// Where each begins.
    starts: [usize; MOST_SHEETS],
    count: usize,
    /// What is left of the newest.
    uncut: Option<Uncut>,
}

/// The end of a sheet, from which nothing has been cut.
struct Uncut {
    next: NonNull<u8>,
    bytes: usize,
}

// SAFETY: R1 - it is memory that nobody else has.
unsafe impl Send for Uncut {}

impl Sheets {
    const fn new() -> Self {
        Sheets {
            starts: [0; MOST_SHEETS],
            count: 0,
            uncut: None,
        }
    }

    fn cut(&mut self, class: Class) -> Option<Slab> {
        let size = class.size();
        if self.uncut.as_ref().is_none_or(|rest| rest.bytes < size) {
            self.uncut = Some(self.open()?);
        }
        let rest = self.uncut.as_mut()?;
        let place = rest.next;
        // SAFETY: R1 - there are at least `size` bytes left, so this is in the sheet or just behind it.
        rest.next = unsafe { place.add(size) };
        rest.bytes -= size;
        // SAFETY: R1 - cut just now, and not cut again; R2 - `size` bytes, at a multiple of a line,
        // as all sizes are; R3 - on a sheet.
        Some(unsafe { Slab::own(place) })
    }

    /// `None` if there are enough, or the system has no memory.
    fn open(&mut self) -> Option<Uncut> {
        let entry = self.starts.get_mut(self.count)?;
        let layout = Layout::from_size_align(SHEET, LINE).ok()?;
        // SAFETY: R3 - the size is not zero.
        let start = NonNull::new(unsafe { alloc(layout) })?;
        *entry = start.addr().get();
        self.count += 1;
        Some(Uncut {
            next: start,
            bytes: SHEET,
        })
    }

    /// How many slabs they are good for.
    fn slabs(&self, class: Class) -> usize {
        self.count * (SHEET / class.size())
    }

    /// Whether the slab was cut from one of these.
    fn hold(&self, slab: &Slab) -> bool {
        let starts = &self.starts[..self.count];
        let address = slab.address();
        starts
            .iter()
            .any(|start| address.wrapping_sub(*start) < SHEET)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn class(size: usize) -> Class {
        Class::of(Layout::from_size_align(size, 8).unwrap()).unwrap()
    }

    /// As a rack does it: from the depot, or loose.
    fn take(depot: &mut Depot, class: Class) -> Slab {
        if let Some(slab) = depot.draw(class, 1).next() {
            return slab;
        }
        depot.count_loose();
        Slab::loose(class)
    }

    /// Hands in, and gives back what is too much. Returns how much that was.
    fn give(depot: &mut Depot, class: Class, slab: Slab) -> usize {
        let mut handed = [Some(slab)];
        depot.hand_in(&mut handed);
        let [left] = handed;
        left.map_or(0, |slab| {
            // SAFETY: R3 - the depot has found it on no sheet, so it is loose.
            unsafe { slab.give_back(class) };
            1
        })
    }

    #[test]
    fn slabs_of_a_sheet_are_on_lines_of_their_own_and_do_not_overlap() {
        for class in Class::all() {
            let mut depot = Depot::new();
            let slabs: Vec<_> = (0..3 * SHEET / class.size())
                .map(|_| take(&mut depot, class))
                .collect();
            let addresses: HashSet<_> = slabs.iter().map(Slab::address).collect();
            assert!(addresses.iter().all(|address| address % LINE == 0));
            let mut sorted: Vec<_> = addresses.into_iter().collect();
            sorted.sort_unstable();
            assert!(sorted.windows(2).all(|two| two[1] - two[0] >= class.size()));
            assert_eq!(sorted.len(), slabs.len());
            assert_eq!(depot.loose, 0);
        }
    }

    #[test]
    fn a_slab_that_was_handed_in_is_drawn_again_before_another_is_cut() {
        let (mut depot, class) = (Depot::new(), class(64));
        let first = take(&mut depot, class);
        let address = first.address();
        assert_eq!(give(&mut depot, class, first), 0);
        assert_eq!(depot.len(), 1);
        assert_eq!(take(&mut depot, class).address(), address);
    }

    #[test]
    fn handing_in_what_was_cut_asks_for_no_memory() {
        for class in Class::all() {
            let mut depot = Depot::new();
            let mut drawn: Vec<_> = depot.draw(class, BATCH).collect();
            let room = depot.free.capacity();
            while depot.sheets.count == 1 {
                drawn.extend(depot.draw(class, 1));
            }
            drawn.truncate(SHEET / class.size());
            for slab in drawn {
                assert_eq!(give(&mut depot, class, slab), 0);
            }
            assert!(room >= depot.len());
        }
    }

    #[test]
    fn beyond_the_sheets_slabs_are_loose_and_what_is_kept_of_them_has_a_bound() {
        let (mut depot, class) = (Depot::new(), class(256));
        let on_sheets = MOST_SHEETS * SHEET / class.size();
        let excess = 3 * MOST_LOOSE;
        let mut all: Vec<_> = (0..on_sheets + excess)
            .map(|_| take(&mut depot, class))
            .collect();
        assert_eq!((depot.sheets.count, depot.loose), (MOST_SHEETS, excess));
        assert_eq!(depot.draw(class, BATCH).count(), 0);

        // The loose ones come first: they are kept up to the bound, and no further.
        all.reverse();
        let given_back: usize = all
            .into_iter()
            .map(|slab| give(&mut depot, class, slab))
            .sum();
        assert_eq!(given_back, excess - MOST_LOOSE);
        assert_eq!(depot.loose, MOST_LOOSE);
        assert_eq!(depot.len(), on_sheets + MOST_LOOSE);
    }

    #[test]
    fn where_there_are_enough_from_sheets_no_loose_one_is_kept() {
        let (mut depot, class) = (Depot::new(), class(256));
        let on_sheets = MOST_SHEETS * SHEET / class.size();
        let mut all: Vec<_> = (0..on_sheets + 10)
            .map(|_| take(&mut depot, class))
            .collect();
        let loose = all.split_off(on_sheets);
        let kept: usize = all
            .into_iter()
            .map(|slab| give(&mut depot, class, slab))
            .sum();
        let given_back: usize = loose
            .into_iter()
            .map(|slab| give(&mut depot, class, slab))
            .sum();
        assert_eq!((kept, given_back, depot.loose), (0, 10, 0));
        assert_eq!(depot.len(), on_sheets);
    }
}
