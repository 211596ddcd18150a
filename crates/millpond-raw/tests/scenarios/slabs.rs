//! Recycled memory: objects that move between magazines and depots, with private depots. An object has one
//! owner at a time, all access by one owner ends before the next one gets it, and none is lost.
//!
//! In models a slab holds two or three of the objects used here, a batch is two, and one all-free slab is
//! kept. Spawned threads have magazines and drop them before they end. The main thread has none, because a
//! checker ends a model before its own thread.

use super::{few_or_many, join_all, spawn_all};
use millpond_raw::recycle::testing::{PrivateDepots, PrivateMagazines, TestObject};
use millpond_raw::sync::Mutex;
use std::collections::HashSet;
use std::sync::Arc;

/// The largest size class.
const BYTES: usize = 256;

/// The addresses of all allocated objects. In models it is behind a std lock, which a checker neither
/// branches on nor takes for an ordering; on real threads behind one of ours, which a thread sanitizer can
/// see.
#[derive(Clone, Default)]
struct Owners(Arc<Hidden<HashSet<usize>>>);

#[cfg(any(millpond_loom, millpond_shuttle))]
#[allow(
    clippy::disallowed_types,
    reason = "a checker shall not take this for part of the protocol"
)]
type Hidden<V> = std::sync::Mutex<V>;
#[cfg(not(any(millpond_loom, millpond_shuttle)))]
type Hidden<V> = Mutex<V>;

impl Owners {
    fn with<R>(&self, f: impl FnOnce(&mut HashSet<usize>) -> R) -> R {
        let known = self.0.lock();
        #[cfg(any(millpond_loom, millpond_shuttle))]
        let known = known.expect("no panic under this lock");
        let mut known = known;
        f(&mut known)
    }

    /// Records that it is allocated.
    fn enter(&self, lent: TestObject) -> TestObject {
        let is_new = self.with(|known| known.insert(lent.address()));
        assert!(is_new, "the object has another owner");
        lent
    }

    /// Records that it is about to be put back.
    fn leave(&self, lent: TestObject) -> TestObject {
        assert!(self.with(|known| known.remove(&lent.address())));
        lent
    }
}

/// Takes an object and fills it with the mark.
fn take(magazines: &PrivateMagazines, owners: &Owners, mark: u64) -> TestObject {
    let mut lent = owners.enter(magazines.take(BYTES));
    lent.fill(mark);
    lent
}

/// All objects are in the depot, on all-free slabs, of which a few are kept.
fn expect_all_home(depots: &PrivateDepots, owners: &Owners) {
    assert!(owners.with(|known| known.is_empty()));
    let stats = depots.stats(BYTES);
    assert_eq!(stats.slabs, stats.all_free, "an object is lost: {stats:?}");
    assert_eq!(
        stats.free,
        stats.all_free * stats.objects_per_slab,
        "{stats:?}"
    );
    let most = if cfg!(any(millpond_loom, millpond_shuttle)) {
        1
    } else {
        16
    };
    assert!(stats.all_free <= most, "{stats:?}");
}

/// An object allocated by one thread and put back by another goes through the other's magazine and the depot.
pub(crate) fn an_object_has_one_owner_at_a_time() {
    let (depots, owners) = (PrivateDepots::new(), Owners::default());
    let counter = Arc::new(Mutex::new(Vec::new()));
    let threads = spawn_all(2, {
        let (depots, owners) = (depots.clone(), owners.clone());
        let counter = Arc::clone(&counter);
        move |number| {
            let magazines = depots.magazines();
            let mark = number as u64;
            for _ in 0..few_or_many(1, 3) {
                let mine = take(&magazines, &owners, mark);
                counter.lock().push((mine, mark));
                let found = counter.lock().pop();
                if let Some((lent, mark)) = found {
                    assert!(lent.holds(mark), "another thread wrote to it");
                    magazines.put(owners.leave(lent));
                }
            }
            let again = take(&magazines, &owners, mark);
            assert!(again.holds(mark));
            magazines.put(owners.leave(again));
        }
    });
    join_all(threads);
    for (lent, _) in counter.lock().drain(..) {
        depots.put(owners.leave(lent));
    }
    expect_all_home(&depots, &owners);
}

/// A slab whose objects have all come back goes to the system, while other threads take and put objects.
pub(crate) fn all_free_slabs_go_back_while_other_threads_allocate() {
    let (depots, owners) = (PrivateDepots::new(), Owners::default());
    let threads = spawn_all(few_or_many(2, 3), {
        let (depots, owners) = (depots.clone(), owners.clone());
        move |number| {
            let magazines = depots.magazines();
            // On real threads slabs are large and many are kept: there it is the batches that move.
            let many = (depots.stats(BYTES).objects_per_slab + 1).min(200);
            let mark = number as u64;
            let all: Vec<_> = (0..many).map(|_| take(&magazines, &owners, mark)).collect();
            for lent in all {
                assert!(lent.holds(mark), "another thread wrote to it");
                magazines.put(owners.leave(lent));
            }
        }
    });
    join_all(threads);
    expect_all_home(&depots, &owners);
}

/// The objects in the magazines of a thread that ends go to the others, and none is lost.
pub(crate) fn a_thread_that_ends_leaves_its_objects_to_the_others() {
    let (depots, owners) = (PrivateDepots::new(), Owners::default());
    let threads = spawn_all(2, {
        let (depots, owners) = (depots.clone(), owners.clone());
        move |number| {
            let mark = number as u64;
            let magazines = depots.magazines();
            let (one, two) = (
                take(&magazines, &owners, mark),
                take(&magazines, &owners, mark + 10),
            );
            magazines.put(owners.leave(one));
            assert!(two.holds(mark + 10), "another thread wrote to it");
            // The magazines are dropped first, as when a user's thread-local value is dropped last.
            drop(magazines);
            assert!(two.holds(mark + 10), "another thread wrote to it");
            depots.put(owners.leave(two));
        }
    });
    join_all(threads);
    expect_all_home(&depots, &owners);
}

/// A thread that is being torn down has no magazines and goes to the depot for every object, beside threads
/// that have some.
pub(crate) fn threads_with_and_without_magazines_share_a_depot() {
    let (depots, owners) = (PrivateDepots::new(), Owners::default());
    let threads = spawn_all(few_or_many(2, 4), {
        let (depots, owners) = (depots.clone(), owners.clone());
        move |number| {
            let mark = number as u64;
            if number % 2 == 0 {
                let magazines = depots.magazines();
                let lent = take(&magazines, &owners, mark);
                assert!(lent.holds(mark));
                magazines.put(owners.leave(lent));
                return;
            }
            for round in 0..2 {
                let mut lent = owners.enter(depots.take(BYTES));
                lent.fill(mark + round);
                assert!(lent.holds(mark + round), "another thread wrote to it");
                depots.put(owners.leave(lent));
            }
        }
    });
    join_all(threads);
    expect_all_home(&depots, &owners);
}
