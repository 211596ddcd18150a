//! The depot of one size class, where all threads exchange objects. Invariants are in the [module](super).
//!
//! Objects come and go in batches, and each is recorded in the free map of its slab ([`super::slab`]). The
//! depot lists the slabs that have free objects. The objects returned last are taken first, because they are
//! the most likely to be in a cache.
//!
//! A slab whose objects have all come back is *all free*. Returning one to the system and asking for another
//! costs a page fault for every 64 small objects, which is as much as a task itself. So all-free slabs are kept
//! as long as they may be needed again:
//!
//! - **DEPOT-1** A depot always keeps up to [`MAX_ALL_FREE`] of them, and never more than [`MOST_ALL_FREE`].
//! - **DEPOT-2** Every [`PERIOD`] in which objects come back, half of those beyond [`MAX_ALL_FREE`] that were not
//!   needed in that period go back to the system. So a load that goes up and down keeps its memory, and one that
//!   has become smaller gives it back within seconds.
//! - **DEPOT-3** An engine that has become idle, so that no more objects come back, calls [`Depots::trim`], and all
//!   beyond [`MAX_ALL_FREE`] go back.
//!
//! Slabs are returned after the lock is released.

use super::object::{Object, SizeClass};
use super::slab::{self, Slab};
use crate::cache_padded::CachePadded;
use crate::sync::{IN_MODEL, Mutex};
use crate::timestamp::{self, Timestamp};
use core::time::Duration;

/// How many objects move between a magazine and a depot at a time. Few in models, so that a model reaches the
/// boundaries.
pub(super) const BATCH: usize = if IN_MODEL { 2 } else { 64 };

/// How many all-free slabs a depot keeps for ever.
pub(super) const MAX_ALL_FREE: usize = if IN_MODEL { 1 } else { 16 };

/// How many all-free slabs a depot keeps for a while: 64 MiB. In models none, so that they reach the boundary.
pub(super) const MOST_ALL_FREE: usize = if IN_MODEL { MAX_ALL_FREE } else { 256 };

/// The time after which slabs count as not needed.
const PERIOD: Duration = Duration::from_secs(1);

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
        let mut depot = self.of(class).lock();
        let mut surplus = depot.put_all(class, objects);
        if depot.all_free > MAX_ALL_FREE {
            depot.give_unneeded_back(class, timestamp::now(), &mut surplus);
        }
        drop(depot);
        surplus.release();
    }

    /// Whether [`trim`](Depots::trim) would return anything.
    #[cfg_attr(
        any(millpond_loom, millpond_shuttle, millpond_plain_memory),
        allow(dead_code, reason = "with plain allocations nothing is kept")
    )]
    pub(super) fn has_surplus(&self) -> bool {
        SizeClass::all().any(|class| self.of(class).lock().all_free > MAX_ALL_FREE)
    }

    /// Returns what is free to the system, but for a few slabs (DEPOT-3).
    #[cfg_attr(
        any(millpond_loom, millpond_shuttle, millpond_plain_memory),
        allow(dead_code, reason = "with plain allocations nothing is kept")
    )]
    pub(super) fn trim(&self) {
        for class in SizeClass::all() {
            let mut surplus = Surplus(None);
            let mut depot = self.of(class).lock();
            let most = depot.all_free.saturating_sub(MAX_ALL_FREE);
            depot.give_back(class, most, &mut surplus);
            drop(depot);
            surplus.release();
        }
    }
}

/// The slabs of one class that have free objects.
pub(super) struct Depot {
    slabs: Vec<Slab>,
    /// Free objects on all of them.
    free: usize,
    /// Slabs of which all objects are free.
    all_free: usize,
    /// The least value of `all_free` in this period: so many slabs were not needed (DEPOT-2).
    least_all_free: usize,
    /// When this period began; `None` if none has yet.
    period: Option<Timestamp>,
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
            least_all_free: 0,
            period: None,
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
            let (taken, is_empty) = slab.take_up_to(class, left, &mut take);
            // It was all free if what was taken and what is left add up.
            let was_all_free = slab.free_count() + taken == slab::objects_per_slab(class);
            if was_all_free {
                self.all_free -= 1;
                self.least_all_free = self.least_all_free.min(self.all_free);
            }
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

    /// A slab has become all free: keeps it, or moves it to the surplus (DEPOT-1).
    #[cold]
    fn on_all_free(&mut self, class: SizeClass, slab: Slab, surplus: &mut Surplus) {
        if self.all_free < MOST_ALL_FREE {
            self.all_free += 1;
        } else {
            self.remove(class, slab, surplus);
        }
    }

    /// At the end of a period, moves half of what was not needed in it to the surplus (DEPOT-2).
    fn give_unneeded_back(&mut self, class: SizeClass, now: Timestamp, surplus: &mut Surplus) {
        let elapsed = self.period.map(|start| now.nanos_since(start));
        if elapsed.is_some_and(|elapsed| u128::from(elapsed) < PERIOD.as_nanos()) {
            return;
        }
        if elapsed.is_some() {
            let unneeded = self.least_all_free.saturating_sub(MAX_ALL_FREE);
            self.give_back(class, unneeded.div_ceil(2), surplus);
        }
        self.period = Some(now);
        self.least_all_free = self.all_free;
    }

    /// Moves up to `most` all-free slabs to the surplus.
    fn give_back(&mut self, class: SizeClass, most: usize, surplus: &mut Surplus) {
        let (mut left, mut index) = (most, 0);
        while left > 0 {
            let Some(slab) = self.slabs.get_mut(index) else {
                return;
            };
            if slab.used_count() > 0 {
                index += 1;
                continue;
            }
            // Another one takes its index.
            let slab = slab.alias();
            self.remove(class, slab, surplus);
            self.all_free -= 1;
            left -= 1;
        }
    }

    /// Moves a slab from the list to the surplus.
    fn remove(&mut self, class: SizeClass, mut slab: Slab, surplus: &mut Surplus) {
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
    fn what_a_burst_took_beyond_the_most_goes_back_to_the_system_at_once() {
        let class = SizeClass::all().last().unwrap();
        let mut depot = Depot::new();
        let many = MOST_ALL_FREE + 4;
        let held = take_up_to(&mut depot, class, many * slab::objects_per_slab(class));
        assert_eq!((depot.len(), depot.all_free), (0, 0));
        assert_eq!(put(&mut depot, class, held), 4);
        assert_eq!(depot.len(), MOST_ALL_FREE * slab::objects_per_slab(class));
        check(&mut depot, class);
    }

    /// A moment so many seconds after the first.
    fn second(number: u64) -> Timestamp {
        Timestamp::from_count(1 + number * timestamp::ticks(PERIOD + Duration::from_millis(1)))
    }

    /// Ends a period, and returns how many slabs were released.
    fn end_period(depot: &mut Depot, class: SizeClass, number: u64) -> usize {
        let mut surplus = Surplus(None);
        depot.give_unneeded_back(class, second(number), &mut surplus);
        let before = depot.all_free;
        surplus.release();
        check(depot, class);
        before
    }

    #[test]
    fn a_load_that_goes_up_and_down_keeps_its_memory_and_a_smaller_one_gives_it_back() {
        for class in SizeClass::all() {
            let (mut depot, many) = (Depot::new(), 100 * slab::objects_per_slab(class));
            for number in 0..5 {
                let held = take_up_to(&mut depot, class, many);
                assert_eq!(put(&mut depot, class, held), 0);
                // All were needed since the period began.
                assert_eq!(end_period(&mut depot, class, number), 100);
            }
            // Ten at a time: of the other 90, those beyond 16 are halved in each period.
            let mut left = vec![];
            for number in 5..15 {
                let held = take_up_to(&mut depot, class, 10 * slab::objects_per_slab(class));
                assert_eq!(put(&mut depot, class, held), 0);
                left.push(end_period(&mut depot, class, number));
            }
            assert_eq!(left[..3], [63, 44, 35]);
            assert_eq!(left[9], MAX_ALL_FREE + 10);
        }
    }

    #[test]
    fn within_a_period_nothing_goes_back() {
        let class = SizeClass::all().next().unwrap();
        let mut depot = Depot::new();
        let held = take_up_to(&mut depot, class, 40 * slab::objects_per_slab(class));
        put(&mut depot, class, held);
        assert_eq!(end_period(&mut depot, class, 0), 40);
        let mut surplus = Surplus(None);
        let soon = Timestamp::from_count(second(0).count() + timestamp::ticks(PERIOD / 2));
        depot.give_unneeded_back(class, soon, &mut surplus);
        assert!(surplus.0.is_none());
        assert_eq!(end_period(&mut depot, class, 1), 28);
    }

    #[test]
    fn an_idle_depot_is_trimmed_to_a_few_slabs() {
        let depots = Depots::new();
        for class in SizeClass::all() {
            let held = {
                let mut depot = depots.of(class).lock();
                take_up_to(&mut depot, class, 40 * slab::objects_per_slab(class))
            };
            depots.put_all(class, held.into_iter());
            assert_eq!(depots.of(class).lock().all_free, 40);
        }
        depots.trim();
        for class in SizeClass::all() {
            let mut depot = depots.of(class).lock();
            assert_eq!(depot.all_free, MAX_ALL_FREE);
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
        assert_eq!(put(&mut depot, class, held), 0);
        let mut surplus = Surplus(None);
        depot.give_back(class, usize::MAX, &mut surplus);
        surplus.release();
        assert_eq!(depot.slabs(), (1, 0));
        check(&mut depot, class);
        assert_eq!(put(&mut depot, class, vec![last]), 0);
        assert_eq!(depot.slabs(), (1, 1));
        check(&mut depot, class);
    }
}
