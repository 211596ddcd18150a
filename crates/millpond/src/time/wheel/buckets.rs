//! Entries that are due later, roughly sorted: levels of 64 buckets each.
//!
//! Time is divided into granules of about a millisecond. A granule is a number of eight digits to the base
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
//! in the bucket of its own digit. So the entries of a lower level come before those of a higher one, and within
//! a level the buckets are in order.
//!
//! # Invariants
//!
//! - **BUCKET-1** The location of an entry follows from its due time and the current granule, and is stored
//!   nowhere: see [`locate`]. Before the current granule advances, the buckets that it reaches or passes cascade.
//! - **BUCKET-2** A bucket is a linked list, newest first. Its bit in `occupied` is set exactly if it is not empty.
//! - **BUCKET-3** No entry of a bucket is due before its `earliest`, and one is due exactly then. But that one may
//!   have been removed from a bucket of more than [`SMALL`]; then the bucket is `stale`.
//! - **BUCKET-4** Entries that are never due are in a bucket beyond the last level, which never cascades.

use super::entries::{Entries, NIL, Removed};
use super::heap::Node;
use super::{NEVER, granule};
use std::collections::BinaryHeap;

const DIGIT_BITS: u32 = 6;
const DIGITS: u64 = 1 << DIGIT_BITS;
const LEVELS: usize = 8;

/// BUCKET-4.
const NEVER_BUCKET: Bucket = Bucket(LEVELS << DIGIT_BITS);

/// The size up to which a bucket is searched for its earliest entry when that was removed. A step of the search
/// takes a few nanoseconds; a spurious wake-up takes thousands.
const SMALL: u32 = 16;

/// A bucket, by its number: level and digit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bucket(usize);

/// Where an entry is.
pub(super) enum Location {
    Heap,
    Bucket(Bucket),
}

/// BUCKET-1.
#[inline]
#[allow(
    clippy::cast_possible_truncation,
    reason = "levels and digits are small"
)]
pub(super) fn locate(current: u64, due: u64) -> Location {
    if due == NEVER {
        return Location::Bucket(NEVER_BUCKET);
    }
    let granule = granule(due);
    if granule <= current {
        return Location::Heap;
    }
    let level = (granule ^ current).ilog2() / DIGIT_BITS;
    let digit = (granule >> (level * DIGIT_BITS)) % DIGITS;
    Location::Bucket(Bucket((level << DIGIT_BITS) as usize + digit as usize))
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
        if self == NEVER_BUCKET {
            return granule(NEVER);
        }
        let shift = self.level() as u32 * DIGIT_BITS;
        let above = current >> shift >> DIGIT_BITS << DIGIT_BITS;
        (above | (self.0 as u64 % DIGITS)) << shift
    }
}

/// The list of a bucket.
#[derive(Clone, Copy)]
struct List {
    /// BUCKET-3.
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
    /// BUCKET-2, by level.
    occupied: [u64; LEVELS + 1],
    /// BUCKET-3, by level.
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

    /// Without memory: nothing can be inserted.
    pub(super) fn none() -> Self {
        Buckets {
            occupied: [0; LEVELS + 1],
            stale: [0; LEVELS + 1],
            lists: Box::default(),
        }
    }

    /// The first bucket that is not empty.
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

    /// When the first entry of a bucket is due, or a little before (BUCKET-3).
    #[inline]
    pub(super) fn earliest(&self, bucket: Bucket) -> u64 {
        self.lists[bucket.0].earliest
    }

    /// Makes an entry the newest of a bucket. Returns the former newest, for the caller to link.
    #[inline]
    #[must_use = "the caller links the neighbours"]
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

    /// Unlinks an entry that was removed.
    #[inline]
    pub(super) fn remove<P>(&mut self, entries: &mut Entries<P>, bucket: Bucket, removed: Removed) {
        let list = &mut self.lists[bucket.0];
        if removed.prev != NIL {
            entries.at_mut(removed.prev).next = removed.next;
        }
        match removed.next {
            NIL => list.newest = removed.prev,
            newer => entries.at_mut(newer).prev = removed.prev,
        }
        list.count -= 1;
        if list.count == 0 {
            self.take(bucket);
        } else if removed.due == list.earliest {
            self.stale[bucket.level()] |= bucket.bit();
        }
        if self.stale[bucket.level()] & bucket.bit() != 0 {
            self.refresh_earliest(entries, bucket);
        }
    }

    /// BUCKET-3.
    fn refresh_earliest<P>(&mut self, entries: &Entries<P>, bucket: Bucket) {
        if self.lists[bucket.0].count > SMALL {
            return;
        }
        let removed = self.lists[bucket.0].earliest;
        let mut earliest = NEVER;
        for index in self.list(entries, bucket) {
            earliest = earliest.min(entries.at(index).due);
            if earliest == removed {
                break;
            }
        }
        self.lists[bucket.0].earliest = earliest;
        self.stale[bucket.level()] &= !bucket.bit();
    }

    /// The entries of a bucket, newest first.
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

    /// The first `max` entries, in order. Visits all entries of their buckets.
    pub(super) fn first_n<P>(&self, entries: &Entries<P>, max: usize) -> Vec<Node> {
        let mut found = Vec::new();
        for bucket in self.in_order() {
            let missing = max - found.len();
            if missing == 0 {
                break;
            }
            // The last of the kept ones is on top.
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

    /// Checks the invariants. Returns the number of entries.
    #[cfg(test)]
    pub(super) fn check<P>(&self, entries: &Entries<P>, current: u64) -> usize {
        let mut len = 0;
        for (number, list) in self.lists.iter().enumerate() {
            let bucket = Bucket(number);
            let is_occupied = self.occupied[bucket.level()] & bucket.bit() != 0;
            assert_eq!(is_occupied, list.count > 0, "BUCKET-2 at {bucket:?}");
            let (mut earliest, mut newer) = (NEVER, NIL);
            let mut count = 0;
            for index in self.list(entries, bucket) {
                let entry = entries.at(index);
                assert!(entry.payload().is_some(), "an empty slot is linked");
                let is_right =
                    matches!(locate(current, entry.due), Location::Bucket(own) if own == bucket);
                assert!(is_right, "BUCKET-1 at {bucket:?}");
                assert_eq!(entry.next, newer, "BUCKET-2 at {bucket:?}");
                earliest = earliest.min(entry.due);
                newer = index;
                count += 1;
            }
            assert_eq!(count, list.count, "at {bucket:?}");
            let is_stale = self.stale[bucket.level()] & bucket.bit() != 0;
            assert!(list.earliest <= earliest, "BUCKET-3 at {bucket:?}");
            assert!(
                is_stale || list.earliest == earliest,
                "BUCKET-3 at {bucket:?}"
            );
            assert!(!is_stale || count > SMALL, "BUCKET-3 at {bucket:?}");
            len += count as usize;
        }
        len
    }
}
