//! Recycled memory: slabs between racks and depots, with depots of the scenario's own. A slab has one owner
//! at a time, what one owner did to it is over when the next one has it, and none is lost.
//!
//! In models a sheet has two or three of the slabs that are used here, a batch is two and one whole sheet
//! is kept. Threads come with racks and leave without: the thread that waits for them has none, because a
//! checker ends a model before its own thread.

use super::{crew, few_or_many, gather};
use millpond_raw::recycle::exchange::{Exchange, Lent, OwnRacks};
use millpond_raw::sync::Mutex;
use std::collections::HashSet;
use std::sync::Arc;

/// The largest slabs there are.
const BYTES: usize = 256;

/// Who has which slab. In models it is behind a lock of std's, which is no branch for a checker and orders
/// nothing that it watches; on real threads behind one of ours, which a thread sanitizer can see.
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
        let known = known.expect("nobody panics under it");
        let mut known = known;
        f(&mut known)
    }

    /// Notes that somebody has it.
    fn enter(&self, lent: Lent) -> Lent {
        let is_new = self.with(|known| known.insert(lent.address()));
        assert!(is_new, "somebody else has it");
        lent
    }

    /// Notes that somebody is about to give it back.
    fn leave(&self, lent: Lent) -> Lent {
        assert!(self.with(|known| known.remove(&lent.address())));
        lent
    }
}

/// Takes a slab, and leaves a mark in it.
fn take(racks: &OwnRacks, owners: &Owners, mark: u64) -> Lent {
    let mut lent = owners.enter(racks.take(BYTES));
    lent.fill(mark);
    lent
}

/// Nobody has a slab: all are in the depot, on whole sheets, and of these a few are kept.
fn expect_all_home(exchange: &Exchange, owners: &Owners) {
    assert!(owners.with(|known| known.is_empty()));
    let tally = exchange.tally(BYTES);
    assert_eq!(tally.sheets, tally.whole, "a slab is lost: {tally:?}");
    assert_eq!(tally.free, tally.whole * tally.on_a_sheet, "{tally:?}");
    let most = if cfg!(any(millpond_loom, millpond_shuttle)) {
        1
    } else {
        16
    };
    assert!(tally.whole <= most, "{tally:?}");
}

/// What one thread has had another gives back: it goes to the other's rack, and round through the depot.
pub(crate) fn a_slab_goes_from_hand_to_hand_and_has_one_owner_at_a_time() {
    let (exchange, owners) = (Exchange::new(), Owners::default());
    let counter = Arc::new(Mutex::new(Vec::new()));
    let threads = crew(2, {
        let (exchange, owners) = (exchange.clone(), owners.clone());
        let counter = Arc::clone(&counter);
        move |number| {
            let racks = exchange.racks();
            let mark = number as u64;
            for _ in 0..few_or_many(1, 3) {
                let mine = take(&racks, &owners, mark);
                counter.lock().push((mine, mark));
                let found = counter.lock().pop();
                if let Some((lent, mark)) = found {
                    assert!(lent.holds(mark), "somebody wrote to it meanwhile");
                    racks.give(owners.leave(lent));
                }
            }
            let again = take(&racks, &owners, mark);
            assert!(again.holds(mark));
            racks.give(owners.leave(again));
        }
    });
    gather(threads);
    for (lent, _) in counter.lock().drain(..) {
        exchange.give(owners.leave(lent));
    }
    expect_all_home(&exchange, &owners);
}

/// A sheet all of whose slabs come back goes back to the system, while others draw and hand in.
pub(crate) fn whole_sheets_go_back_while_others_draw() {
    let (exchange, owners) = (Exchange::new(), Owners::default());
    let threads = crew(few_or_many(2, 3), {
        let (exchange, owners) = (exchange.clone(), owners.clone());
        move |number| {
            let racks = exchange.racks();
            // On real threads a sheet is large and many are kept: there it is batches that go round.
            let many = (exchange.tally(BYTES).on_a_sheet + 1).min(200);
            let mark = number as u64;
            let all: Vec<_> = (0..many).map(|_| take(&racks, &owners, mark)).collect();
            for lent in all {
                assert!(lent.holds(mark), "somebody wrote to it meanwhile");
                racks.give(owners.leave(lent));
            }
        }
    });
    gather(threads);
    expect_all_home(&exchange, &owners);
}

/// What a thread has in its racks when it ends is for the others, and none of it is lost.
pub(crate) fn a_thread_that_ends_leaves_its_slabs_to_the_others() {
    let (exchange, owners) = (Exchange::new(), Owners::default());
    let threads = crew(2, {
        let (exchange, owners) = (exchange.clone(), owners.clone());
        move |number| {
            let mark = number as u64;
            let racks = exchange.racks();
            let (one, two) = (
                take(&racks, &owners, mark),
                take(&racks, &owners, mark + 10),
            );
            racks.give(owners.leave(one));
            assert!(two.holds(mark + 10), "somebody wrote to it meanwhile");
            // The racks first, as when a thread-local value of the user's goes last.
            drop(racks);
            assert!(two.holds(mark + 10), "somebody wrote to it meanwhile");
            exchange.give(owners.leave(two));
        }
    });
    gather(threads);
    expect_all_home(&exchange, &owners);
}

/// A thread that is being torn down has no racks, and goes to the depot for every slab, beside others that
/// have some.
pub(crate) fn threads_with_racks_and_without_share_a_depot() {
    let (exchange, owners) = (Exchange::new(), Owners::default());
    let threads = crew(few_or_many(2, 4), {
        let (exchange, owners) = (exchange.clone(), owners.clone());
        move |number| {
            let mark = number as u64;
            if number % 2 == 0 {
                let racks = exchange.racks();
                let lent = take(&racks, &owners, mark);
                assert!(lent.holds(mark));
                racks.give(owners.leave(lent));
                return;
            }
            for round in 0..2 {
                let mut lent = owners.enter(exchange.take(BYTES));
                lent.fill(mark + round);
                assert!(lent.holds(mark + round), "somebody wrote to it meanwhile");
                exchange.give(owners.leave(lent));
            }
        }
    });
    gather(threads);
    expect_all_home(&exchange, &owners);
}
