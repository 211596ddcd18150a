//! Where all threads exchange slabs of one class. Invariants are in the [module](super).
//!
//! Slabs come and go by batches, and each is noted in the book of its sheet ([`super::sheet`]). The depot
//! has a list of the sheets that have free slabs. Those that come last are drawn first: they are the ones
//! that somebody has had in a cache just now.
//!
//! When all slabs of a sheet have come back it is *whole*. A few whole ones are kept; what is more than
//! that goes back to the system, after the lock is free.

use super::sheet::{self, Sheet};
use super::slab::{Class, Slab};
use crate::pad::Padded;
use crate::sync::{IN_MODEL, Mutex};

/// How many slabs go from a rack to a depot, or back, at a time. Few in models, for them to see what
/// comes of it.
pub(super) const BATCH: usize = if IN_MODEL { 2 } else { 64 };

/// How many whole sheets are kept.
pub(super) const MOST_WHOLE: usize = if IN_MODEL { 1 } else { 16 };

/// A depot for each class, each with a lock of its own.
pub(super) struct Depots([Padded<Mutex<Depot>>; Class::COUNT]);

impl Depots {
    /// Nothing in any of them.
    #[cfg(not(any(millpond_loom, millpond_shuttle)))]
    pub(super) const fn new() -> Self {
        Depots([const { Padded::new(Mutex::new(Depot::new())) }; Class::COUNT])
    }

    /// Nothing in any of them.
    #[cfg(any(millpond_loom, millpond_shuttle))]
    pub(super) fn new() -> Self {
        Depots(core::array::from_fn(|_| {
            Padded::new(Mutex::new(Depot::new()))
        }))
    }

    pub(super) fn of(&self, class: Class) -> &Mutex<Depot> {
        &self.0[class.index()]
    }

    /// One slab, for who has no rack; `None` if the system has no memory.
    #[cold]
    pub(super) fn take_one(&self, class: Class) -> Option<Slab> {
        let mut one = None;
        self.of(class)
            .lock()
            .draw(class, 1, |slab| one = Some(slab));
        let slab = one?;
        slab.expect_poison(class);
        Some(slab)
    }

    /// Takes one slab back from who has no rack.
    #[cold]
    pub(super) fn give_one(&self, class: Class, slab: Slab) {
        slab.poison(class);
        self.hand_in(class, core::iter::once(slab));
    }

    /// Brings slabs to the depot. They are poisoned.
    #[cold]
    pub(super) fn hand_in(&self, class: Class, slabs: impl Iterator<Item = Slab>) {
        let surplus = self.of(class).lock().hand_in(class, slabs);
        surplus.give_back();
    }
}

/// The sheets of one class that have free slabs, and how many these are.
pub(super) struct Depot {
    sheets: Vec<Sheet>,
    free: usize,
    whole: usize,
}

/// Sheets that nobody needs, to be given back to the system outside the lock.
#[must_use = "they are to be given back"]
pub(super) struct Surplus(Option<Sheet>);

impl Depot {
    pub(super) const fn new() -> Self {
        Depot {
            sheets: Vec::new(),
            free: 0,
            whole: 0,
        }
    }

    /// Takes up to `most` slabs out; none only if the system has no memory.
    pub(super) fn draw(&mut self, class: Class, most: usize, mut take: impl FnMut(Slab)) {
        let mut left = most;
        while left > 0 {
            if self.sheets.is_empty() && (left < most || !self.add_sheet(class)) {
                return;
            }
            let Some(sheet) = self.sheets.last_mut() else {
                return;
            };
            let (drawn, is_empty) = sheet.draw(left, &mut take);
            // Whether it was whole is seen by what was taken and what is left.
            let was_whole = sheet.free() + drawn == sheet::slabs(class);
            self.whole -= usize::from(was_whole);
            if is_empty {
                self.sheets.pop();
            }
            self.free -= drawn;
            left -= drawn;
        }
    }

    fn add_sheet(&mut self, class: Class) -> bool {
        let Some(mut sheet) = Sheet::open(class) else {
            return false;
        };
        sheet.stands_at(self.sheets.len());
        self.sheets.push(sheet);
        self.free += sheet::slabs(class);
        self.whole += 1;
        true
    }

    /// Takes slabs in.
    pub(super) fn hand_in(
        &mut self,
        class: Class,
        mut slabs: impl Iterator<Item = Slab>,
    ) -> Surplus {
        let mut surplus = Surplus(None);
        let mut next = slabs.next();
        while let Some(slab) = next {
            let mut sheet = Sheet::of(&slab);
            let put = sheet.put_back(slab, &mut slabs);
            self.free += put.now - put.before;
            if put.before == 0 {
                sheet.stands_at(self.sheets.len());
                self.sheets.push(sheet.again());
            }
            if put.now == sheet::slabs(class) {
                self.is_whole(class, sheet, &mut surplus);
            }
            next = put.next;
        }
        surplus
    }

    #[cold]
    fn is_whole(&mut self, class: Class, mut sheet: Sheet, surplus: &mut Surplus) {
        if self.whole < MOST_WHOLE {
            self.whole += 1;
            return;
        }
        let place = sheet.place();
        self.sheets.swap_remove(place);
        if let Some(moved) = self.sheets.get_mut(place) {
            moved.stands_at(place);
        }
        self.free -= sheet::slabs(class);
        sheet.goes_before(surplus.0.take());
        surplus.0 = Some(sheet);
    }

    /// How many slabs are free.
    pub(super) fn len(&self) -> usize {
        self.free
    }

    /// How many sheets have free slabs, and how many of these are whole.
    pub(super) fn sheets(&self) -> (usize, usize) {
        (self.sheets.len(), self.whole)
    }
}

/// Only depots of tests and models ever drop. A sheet of which a slab is out stays where it is (R3).
impl Drop for Depot {
    fn drop(&mut self) {
        for mut sheet in self.sheets.drain(..) {
            if sheet.is_whole() {
                // SAFETY: R3 - whole, and no longer in the depot.
                unsafe { sheet.give_back() };
            }
        }
    }
}

impl Surplus {
    /// Gives them back.
    pub(super) fn give_back(mut self) {
        while let Some(sheet) = self.0.take() {
            // SAFETY: R3 - whole, and no longer in the depot.
            self.0 = unsafe { sheet.give_back() };
        }
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn draw(depot: &mut Depot, class: Class, count: usize) -> Vec<Slab> {
        let mut drawn = Vec::new();
        while drawn.len() < count {
            depot.draw(class, (count - drawn.len()).min(BATCH), |slab| {
                drawn.push(slab)
            });
        }
        drawn
    }

    /// Hands everything in, and says how many sheets went back.
    fn give(depot: &mut Depot, class: Class, slabs: Vec<Slab>) -> usize {
        let mut surplus = depot.hand_in(class, slabs.into_iter());
        let mut count = 0;
        while let Some(sheet) = surplus.0.take() {
            count += 1;
            // SAFETY: R3 - whole, and no longer in the depot.
            surplus.0 = unsafe { sheet.give_back() };
        }
        count
    }

    /// What a depot has, seen sheet by sheet.
    fn check(depot: &mut Depot, class: Class) {
        let frees: Vec<_> = depot.sheets.iter_mut().map(Sheet::free).collect();
        assert_eq!(frees.iter().sum::<usize>(), depot.free);
        assert!(frees.iter().all(|free| *free > 0));
        let whole = frees.iter().filter(|free| **free == sheet::slabs(class));
        assert_eq!(whole.count(), depot.whole);
        let places: Vec<_> = depot.sheets.iter_mut().map(Sheet::place).collect();
        assert!(places.into_iter().eq(0..depot.sheets.len()));
    }

    #[test]
    fn a_slab_that_was_handed_in_is_drawn_again() {
        for class in Class::all() {
            let mut depot = Depot::new();
            let first = draw(&mut depot, class, 1);
            let address = first[0].address();
            assert_eq!(give(&mut depot, class, first), 0);
            assert_eq!(depot.len(), sheet::slabs(class));
            let again = draw(&mut depot, class, 1);
            assert_eq!(again[0].address(), address);
            give(&mut depot, class, again);
            check(&mut depot, class);
        }
    }

    #[test]
    fn no_slab_is_drawn_twice_and_all_that_are_handed_in_are_there() {
        for class in Class::all() {
            let mut depot = Depot::new();
            let many = 5 * sheet::slabs(class) / 2;
            let mut held = draw(&mut depot, class, many);
            let different: HashSet<_> = held.iter().map(Slab::address).collect();
            assert_eq!(different.len(), many);
            check(&mut depot, class);
            // Every third one goes back, then as many are drawn again, several times over.
            for round in 0..3 {
                let (mut back, mut kept) = (Vec::new(), Vec::new());
                for (index, slab) in held.into_iter().enumerate() {
                    let to = if index % 3 == round {
                        &mut back
                    } else {
                        &mut kept
                    };
                    to.push(slab);
                }
                let count = back.len();
                give(&mut depot, class, back);
                check(&mut depot, class);
                held = kept;
                held.extend(draw(&mut depot, class, count));
                check(&mut depot, class);
                let different: HashSet<_> = held.iter().map(Slab::address).collect();
                assert_eq!(different.len(), many);
            }
            give(&mut depot, class, held);
            check(&mut depot, class);
            assert_eq!(depot.len(), 3 * sheet::slabs(class));
        }
    }

    #[test]
    fn what_a_burst_took_goes_back_to_the_system_but_for_a_few_sheets() {
        for class in Class::all() {
            let mut depot = Depot::new();
            let held = draw(&mut depot, class, 20 * sheet::slabs(class));
            assert_eq!((depot.len(), depot.whole), (0, 0));
            assert_eq!(give(&mut depot, class, held), 20 - MOST_WHOLE);
            assert_eq!(depot.len(), MOST_WHOLE * sheet::slabs(class));
            check(&mut depot, class);
        }
    }

    #[test]
    fn a_sheet_of_which_a_slab_is_out_stays() {
        let class = Class::all().next().unwrap();
        let mut depot = Depot::new();
        let mut held = draw(&mut depot, class, 18 * sheet::slabs(class));
        // One of the first sheet stays out: it does not go back however many are whole.
        let last = held.remove(0);
        assert_eq!(give(&mut depot, class, held), 1);
        check(&mut depot, class);
        assert_eq!(give(&mut depot, class, vec![last]), 1);
        check(&mut depot, class);
    }
}
