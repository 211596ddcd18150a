//! The depot of one size class, where all threads exchange objects. Invariants are in the [module](super).
//!
//! Objects come and go in batches, and each is recorded in the free map of its slab ([`super::slab`]). The
//! depot lists the slabs that have free objects. The objects returned last are taken first, because they are
//! the most likely to be in a cache.
//!
//! A slab whose objects have all come back is *all free*. The depot keeps a few of these; any more go back to
//! the system, after the lock is released.

use super::object::{Object, SizeClass};
use super::slab::{self, Slab};
use crate::cache_padded::CachePadded;
use crate::sync::{IN_MODEL, Mutex};

/// How many objects move between a magazine and a depot at a time. Few in models, so that a model reaches the
/// boundaries.
pub(super) const BATCH: usize = if IN_MODEL { 2 } else { 64 };

/// How many all-free slabs a depot keeps.
pub(super) const MAX_ALL_FREE: usize = if IN_MODEL { 1 } else { 16 };

/// One depot per class, each with its own lock.
pub(super) struct Depots([CachePadded<Mutex<Depot>>; SizeClass::COUNT]);

impl Depots {
    /// Empty depots.
    #[cfg(not(any(millpond_loom, millpond_shuttle)))]
    pub(super) const fn new() -> Self {
        Depots([const { CachePadded::new(Mutex::new(Depot::new())) }; SizeClass::COUNT])
    }

    /// Empty depots.
    #[cfg(any(millpond_loom, millpond_shuttle))]
    pub(super) fn new() -> Self {
        Depots(core::array::from_fn(|_| {
            CachePadded::new(Mutex::new(Depot::new()))
        }))
    }

    pub(super) fn of(&self, class: SizeClass) -> &Mutex<Depot> {
        &self.0[class.index()]
    }

    /// Takes one object, for a thread without magazines; `None` if the system has no memory.
    #[cold]
    pub(super) fn take_one(&self, class: SizeClass) -> Option<Object> {
        let mut one = None;
        self.of(class)
            .lock()
            .take_up_to(class, 1, |object| one = Some(object));
        let object = one?;
        object.expect_poison(class);
        Some(object)
    }

    /// Puts one object back, for a thread without magazines.
    #[cold]
    pub(super) fn put_one(&self, class: SizeClass, object: Object) {
        object.poison(class);
        self.put_all(class, core::iter::once(object));
    }

    /// Puts objects, already poisoned, into the depot.
    #[cold]
    pub(super) fn put_all(&self, class: SizeClass, objects: impl Iterator<Item = Object>) {
        let surplus = self.of(class).lock().put_all(class, objects);
        surplus.release();
    }
}

/// The slabs of one class that have free objects.
pub(super) struct Depot {
    slabs: Vec<Slab>,
    /// Free objects on all of them.
    free: usize,
    /// Slabs of which all objects are free.
    all_free: usize,
}

/// Slabs to be returned to the system outside the lock.
#[must_use = "these slabs leak unless they are released"]
pub(super) struct Surplus(Option<Slab>);

impl Depot {
    pub(super) const fn new() -> Self {
        Depot {
            slabs: Vec::new(),
            free: 0,
            all_free: 0,
        }
    }

    /// Takes up to `most` objects; none only if the system has no memory.
    pub(super) fn take_up_to(
        &mut self,
        class: SizeClass,
        most: usize,
        mut take: impl FnMut(Object),
    ) {
        let mut left = most;
        while left > 0 {
            if self.slabs.is_empty() && (left < most || !self.add_sheet(class)) {
                return;
            }
            let Some(slab) = self.slabs.last_mut() else {
                return;
            };
            let (taken, is_empty) = slab.take_up_to(left, &mut take);
            // It was all free if what was taken and what is left add up.
            let was_all_free = slab.free_count() + taken == slab::objects_per_slab(class);
            self.all_free -= usize::from(was_all_free);
            if is_empty {
                self.slabs.pop();
            }
            self.free -= taken;
            left -= taken;
        }
    }

    fn add_sheet(&mut self, class: SizeClass) -> bool {
        let Some(mut slab) = Slab::allocate(class) else {
            return false;
        };
        slab.set_index(self.slabs.len());
        self.slabs.push(slab);
        self.free += slab::objects_per_slab(class);
        self.all_free += 1;
        true
    }

    /// Puts objects back into their slabs.
    pub(super) fn put_all(
        &mut self,
        class: SizeClass,
        mut objects: impl Iterator<Item = Object>,
    ) -> Surplus {
        let mut surplus = Surplus(None);
        let mut next = objects.next();
        while let Some(object) = next {
            let mut slab = Slab::of(&object);
            let put = slab.put_back(object, &mut objects);
            self.free += put.now - put.before;
            if put.before == 0 {
                slab.set_index(self.slabs.len());
                self.slabs.push(slab.alias());
            }
            if put.now == slab::objects_per_slab(class) {
                self.on_all_free(class, slab, &mut surplus);
            }
            next = put.next;
        }
        surplus
    }

    /// A slab has become all free: keeps it, or moves it to the surplus.
    #[cold]
    fn on_all_free(&mut self, class: SizeClass, mut slab: Slab, surplus: &mut Surplus) {
        if self.all_free < MAX_ALL_FREE {
            self.all_free += 1;
            return;
        }
        let index = slab.index();
        self.slabs.swap_remove(index);
        if let Some(moved) = self.slabs.get_mut(index) {
            moved.set_index(index);
        }
        self.free -= slab::objects_per_slab(class);
        slab.set_next(surplus.0.take());
        surplus.0 = Some(slab);
    }

    /// The number of free objects.
    pub(super) fn len(&self) -> usize {
        self.free
    }

    /// How many slabs have free objects, and how many of these are all free.
    pub(super) fn slabs(&self) -> (usize, usize) {
        (self.slabs.len(), self.all_free)
    }
}

/// Only depots of tests and models are dropped. A slab with an object out is leaked (RECYCLE-3).
impl Drop for Depot {
    fn drop(&mut self) {
        for mut slab in self.slabs.drain(..) {
            if slab.used_count() == 0 {
                // SAFETY: RECYCLE-3 - all free, and no longer in the depot.
                unsafe { slab.release() };
            }
        }
    }
}

impl Surplus {
    /// Returns the slabs to the system.
    pub(super) fn release(mut self) {
        while let Some(slab) = self.0.take() {
            // SAFETY: RECYCLE-3 - all free, and no longer in the depot.
            self.0 = unsafe { slab.release() };
        }
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn take_up_to(depot: &mut Depot, class: SizeClass, count: usize) -> Vec<Object> {
        let mut taken = Vec::new();
        while taken.len() < count {
            depot.take_up_to(class, (count - taken.len()).min(BATCH), |object| {
                taken.push(object)
            });
        }
        taken
    }

    /// Puts everything back, and returns how many slabs were released.
    fn put(depot: &mut Depot, class: SizeClass, objects: Vec<Object>) -> usize {
        let mut surplus = depot.put_all(class, objects.into_iter());
        let mut count = 0;
        while let Some(slab) = surplus.0.take() {
            count += 1;
            // SAFETY: RECYCLE-3 - all free, and no longer in the depot.
            surplus.0 = unsafe { slab.release() };
        }
        count
    }

    /// Checks the counts of a depot against its slabs.
    fn check(depot: &mut Depot, class: SizeClass) {
        let frees: Vec<_> = depot.slabs.iter_mut().map(Slab::free_count).collect();
        assert_eq!(frees.iter().sum::<usize>(), depot.free);
        assert!(frees.iter().all(|free| *free > 0));
        let all_free = frees
            .iter()
            .filter(|free| **free == slab::objects_per_slab(class));
        assert_eq!(all_free.count(), depot.all_free);
        let indices: Vec<_> = depot.slabs.iter_mut().map(Slab::index).collect();
        assert!(indices.into_iter().eq(0..depot.slabs.len()));
    }

    #[test]
    fn an_object_that_was_put_back_is_taken_again() {
        for class in SizeClass::all() {
            let mut depot = Depot::new();
            let first = take_up_to(&mut depot, class, 1);
            let address = first[0].address();
            assert_eq!(put(&mut depot, class, first), 0);
            assert_eq!(depot.len(), slab::objects_per_slab(class));
            let again = take_up_to(&mut depot, class, 1);
            assert_eq!(again[0].address(), address);
            put(&mut depot, class, again);
            check(&mut depot, class);
        }
    }

    #[test]
    fn no_object_is_taken_twice_and_none_that_was_put_back_is_lost() {
        for class in SizeClass::all() {
            let mut depot = Depot::new();
            let many = 5 * slab::objects_per_slab(class) / 2;
            let mut held = take_up_to(&mut depot, class, many);
            let different: HashSet<_> = held.iter().map(Object::address).collect();
            assert_eq!(different.len(), many);
            check(&mut depot, class);
            // Every third one goes back, then as many are taken again, several times over.
            for round in 0..3 {
                let (mut back, mut kept) = (Vec::new(), Vec::new());
                for (index, object) in held.into_iter().enumerate() {
                    let to = if index % 3 == round {
                        &mut back
                    } else {
                        &mut kept
                    };
                    to.push(object);
                }
                let count = back.len();
                put(&mut depot, class, back);
                check(&mut depot, class);
                held = kept;
                held.extend(take_up_to(&mut depot, class, count));
                check(&mut depot, class);
                let different: HashSet<_> = held.iter().map(Object::address).collect();
                assert_eq!(different.len(), many);
            }
            put(&mut depot, class, held);
            check(&mut depot, class);
            assert_eq!(depot.len(), 3 * slab::objects_per_slab(class));
        }
    }

    #[test]
    fn what_a_burst_took_goes_back_to_the_system_but_for_a_few_slabs() {
        for class in SizeClass::all() {
            let mut depot = Depot::new();
            let held = take_up_to(&mut depot, class, 20 * slab::objects_per_slab(class));
            assert_eq!((depot.len(), depot.all_free), (0, 0));
            assert_eq!(put(&mut depot, class, held), 20 - MAX_ALL_FREE);
            assert_eq!(depot.len(), MAX_ALL_FREE * slab::objects_per_slab(class));
            check(&mut depot, class);
        }
    }

    #[test]
    fn a_slab_with_an_object_out_stays() {
        let class = SizeClass::all().next().unwrap();
        let mut depot = Depot::new();
        let mut held = take_up_to(&mut depot, class, 18 * slab::objects_per_slab(class));
        // One object of the first slab stays out: that slab is not released however many are all free.
        let last = held.remove(0);
        assert_eq!(put(&mut depot, class, held), 1);
        check(&mut depot, class);
        assert_eq!(put(&mut depot, class, vec![last]), 1);
        check(&mut depot, class);
    }
}
