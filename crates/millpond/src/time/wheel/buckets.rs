//! What is due later, roughly sorted: levels of 64 buckets each.
//!
//! Time is cut into granules of a millisecond or so. A granule is a number of eight digits to the base
//! of 64, and the wheel has a level for each digit:
//!
//! ```text
//!                      level 2    level 1    level 0
//!   current granule  ..   3          17         40
//!   due              ..   3          17         52    -> level 0, bucket 52:  12 granules from now
//!   due              ..   3          20          9    -> level 1, bucket 20
//!   due              ..   5           0         63    -> level 2, bucket 5
//! ```
//!
//! An entry is in the level of the highest digit in which it differs from the current granule, and there
//! in the bucket of its own digit. So all of a lower level comes before all of a higher one, and in a
//! level the buckets come in order.
//!
//! # Rules
//!
//! - **B1** Where an entry is follows from its due time and the current granule: see [`place`]. Nothing
//!   else says so. Who moves the current granule on first pours the buckets that it reaches or passes.
//! - **B2** A bucket is a list, newest first. Its bit in `occupied` is set exactly if somebody is in it.
//! - **B3** Nobody in a bucket is due before its `earliest`, and one of them is due exactly then. But if
//!   many are in it, this one may have gone; then the bucket is `stale`.
//! - **B4** Who is never due is in a bucket beyond the last level, and never poured.

use super::entries::{Entries, Gone, NIL};
use super::heap::Node;
use super::{NEVER, granule};
use std::collections::BinaryHeap;

const DIGIT_BITS: u32 = 6;
const DIGITS: u64 = 1 << DIGIT_BITS;
const LEVELS: usize = 8;

/// B4: its number, and that of its level.
const BEYOND: Bucket = Bucket(LEVELS << DIGIT_BITS);

/// In how large a bucket the earliest is looked for anew when it has gone. A look at one is a few
/// nanoseconds; a wake-up that was for nothing is thousands.
const FEW: u32 = 16;

/// A bucket, by its number: level and digit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bucket(usize);

/// Where an entry belongs.
pub(super) enum Place {
    Heap,
    Bucket(Bucket),
}

/// B1.
#[inline]
#[allow(
    clippy::cast_possible_truncation,
    reason = "levels and digits are small"
)]
pub(super) fn place(current: u64, due: u64) -> Place {
    if due == NEVER {
        return Place::Bucket(BEYOND);
    }
    let granule = granule(due);
    if granule <= current {
        return Place::Heap;
    }
    let level = (granule ^ current).ilog2() / DIGIT_BITS;
    let digit = (granule >> (level * DIGIT_BITS)) % DIGITS;
    Place::Bucket(Bucket((level << DIGIT_BITS) as usize + digit as usize))
}

impl Bucket {
    fn level(self) -> usize {
        self.0 >> DIGIT_BITS
    }

    fn bit(self) -> u64 {
        1 << (self.0 as u64 % DIGITS)
    }

    /// The first granule of its span, seen from the current one; of the last bucket, the last of all.
    pub(super) fn start(self, current: u64) -> u64 {
        if self == BEYOND {
            return granule(NEVER);
        }
        let shift = self.level() as u32 * DIGIT_BITS;
        let above = current >> shift >> DIGIT_BITS << DIGIT_BITS;
        (above | (self.0 as u64 % DIGITS)) << shift
    }
}

/// What a bucket knows of its list.
#[derive(Clone, Copy)]
struct List {
    /// B3.
    earliest: u64,
    newest: u32,
    count: u32,
}

const EMPTY: List = List {
    earliest: NEVER,
    newest: NIL,
    count: 0,
};

pub(super) struct Buckets {
    /// B2, by level.
    occupied: [u64; LEVELS + 1],
    /// B3, by level.
    stale: [u64; LEVELS + 1],
    lists: Box<[List]>,
}

impl Buckets {
    pub(super) fn new() -> Self {
        Buckets {
            occupied: [0; LEVELS + 1],
            stale: [0; LEVELS + 1],
            lists: Box::new([EMPTY; (LEVELS << DIGIT_BITS) + 1]),
        }
    }

    /// No buckets at all: nobody can be put there.
    pub(super) fn none() -> Self {
        Buckets {
            occupied: [0; LEVELS + 1],
            stale: [0; LEVELS + 1],
            lists: Box::default(),
        }
    }

    /// The bucket that comes first, if anybody is in one.
    #[inline]
    pub(super) fn first(&self) -> Option<Bucket> {
        let level = self.occupied.iter().position(|occupied| *occupied != 0)?;
        let digit = self.occupied[level].trailing_zeros();
        Some(Bucket((level << DIGIT_BITS) + digit as usize))
    }

    fn in_order(&self) -> impl Iterator<Item = Bucket> {
        let levels = self.occupied.iter().enumerate();
        levels.flat_map(|(level, occupied)| {
            let mut left = *occupied;
            std::iter::from_fn(move || {
                let digit = left.trailing_zeros() as usize;
                // Without its lowest bit.
                left &= left.checked_sub(1)?;
                Some(Bucket((level << DIGIT_BITS) + digit))
            })
        })
    }

    /// When the first in a bucket is due, or a little before (B3).
    #[inline]
    pub(super) fn earliest(&self, bucket: Bucket) -> u64 {
        self.lists[bucket.0].earliest
    }

    /// Makes an entry the newest of a bucket. Returns who was that before, for the entry to note.
    #[inline]
    #[must_use = "its neighbours are noted in the entries"]
    pub(super) fn push(&mut self, bucket: Bucket, index: u32, due: u64) -> u32 {
        let list = &mut self.lists[bucket.0];
        list.count += 1;
        if due <= list.earliest {
            list.earliest = due;
            self.stale[bucket.level()] &= !bucket.bit();
        }
        self.occupied[bucket.level()] |= bucket.bit();
        std::mem::replace(&mut list.newest, index)
    }

    /// Closes the gap that an entry has left.
    #[inline]
    pub(super) fn remove<P>(&mut self, entries: &mut Entries<P>, bucket: Bucket, gone: Gone) {
        let list = &mut self.lists[bucket.0];
        if gone.prev != NIL {
            entries.at_mut(gone.prev).next = gone.next;
        }
        match gone.next {
            NIL => list.newest = gone.prev,
            newer => entries.at_mut(newer).prev = gone.prev,
        }
        list.count -= 1;
        if list.count == 0 {
            self.take(bucket);
        } else if gone.due == list.earliest {
            self.stale[bucket.level()] |= bucket.bit();
        }
        if self.stale[bucket.level()] & bucket.bit() != 0 {
            self.freshen(entries, bucket);
        }
    }

    /// B3.
    fn freshen<P>(&mut self, entries: &Entries<P>, bucket: Bucket) {
        if self.lists[bucket.0].count > FEW {
            return;
        }
        let gone = self.lists[bucket.0].earliest;
        let mut earliest = NEVER;
        for index in self.list(entries, bucket) {
            earliest = earliest.min(entries.at(index).due);
            if earliest == gone {
                break;
            }
        }
        self.lists[bucket.0].earliest = earliest;
        self.stale[bucket.level()] &= !bucket.bit();
    }

    /// Who is in a bucket, newest first.
    fn list<P>(&self, entries: &Entries<P>, bucket: Bucket) -> impl Iterator<Item = u32> {
        let some = |index: u32| (index != NIL).then_some(index);
        let newest = some(self.lists[bucket.0].newest);
        std::iter::successors(newest, move |index| some(entries.at(*index).prev))
    }

    /// Empties a bucket. Returns the newest that was in it; the others follow through `prev`.
    pub(super) fn take(&mut self, bucket: Bucket) -> u32 {
        self.occupied[bucket.level()] &= !bucket.bit();
        self.stale[bucket.level()] &= !bucket.bit();
        std::mem::replace(&mut self.lists[bucket.0], EMPTY).newest
    }

    /// The first so many, in order. Looks at everybody in the buckets from which they come.
    pub(super) fn first_few<P>(&self, entries: &Entries<P>, most: usize) -> Vec<Node> {
        let mut found = Vec::new();
        for bucket in self.in_order() {
            let missing = most - found.len();
            if missing == 0 {
                break;
            }
            // The last of those that are kept is on top.
            let mut kept = BinaryHeap::new();
            for index in self.list(entries, bucket) {
                let node = Node::of(entries, index);
                if kept.len() < missing {
                    kept.push(node);
                } else if let Some(mut last) = kept.peek_mut() {
                    if node < *last {
                        *last = node;
                    }
                }
            }
            found.append(&mut kept.into_sorted_vec());
        }
        found
    }

    /// Whether the rules hold, and how many there are.
    #[cfg(test)]
    pub(super) fn check<P>(&self, entries: &Entries<P>, current: u64) -> usize {
        let mut len = 0;
        for (number, list) in self.lists.iter().enumerate() {
            let bucket = Bucket(number);
            let is_occupied = self.occupied[bucket.level()] & bucket.bit() != 0;
            assert_eq!(is_occupied, list.count > 0, "B2 at {bucket:?}");
            let (mut earliest, mut newer) = (NEVER, NIL);
            let mut count = 0;
            for index in self.list(entries, bucket) {
                let entry = entries.at(index);
                assert!(entry.payload().is_some(), "nobody is there");
                let is_here =
                    matches!(place(current, entry.due), Place::Bucket(own) if own == bucket);
                assert!(is_here, "B1 at {bucket:?}");
                assert_eq!(entry.next, newer, "B2 at {bucket:?}");
                earliest = earliest.min(entry.due);
                newer = index;
                count += 1;
            }
            assert_eq!(count, list.count, "at {bucket:?}");
            let is_stale = self.stale[bucket.level()] & bucket.bit() != 0;
            assert!(list.earliest <= earliest, "B3 at {bucket:?}");
            assert!(is_stale || list.earliest == earliest, "B3 at {bucket:?}");
            assert!(!is_stale || count > FEW, "B3 at {bucket:?}");
            len += count as usize;
        }
        len
    }
}
