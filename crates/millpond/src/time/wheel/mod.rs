//! Entries that wait for a time: a hierarchical timing wheel in front of a heap.
//!
//! Most timers are time-outs: set for later, and cancelled before. A heap would waste work on them, since it
//! sorts entries that are never popped. A wheel puts them into buckets, roughly by time: insertion and removal
//! take a few nanoseconds however many entries there are. But a wheel alone is only as exact as its granule, and
//! forgets the order of insertion. So there are both:
//!
//! ```text
//!            later (buckets.rs)                   now and soon (heap.rs)
//!   insert -> [..|..|..|..|..]  --- cascade --->  exact order  -> pop_due
//!                  |                                   |
//!                remove                              remove
//! ```
//!
//! A bucket cascades when its first entry is due, and not before. Nothing moves while no entry is due: the first
//! due time of a bucket is known without touching its entries, so a lone timer an hour away is one wake-up, at
//! its time.
//!
//! Due times are nanoseconds since a base, a year before the wheel was created. An earlier due time counts as
//! the base, and one that is five hundred years later as never.
//!
//! | file | what |
//! |---|---|
//! | `buckets` | the levels of buckets, for entries that are due later |
//! | `entries` | the memory of the entries: pages of slots, found by key |
//! | `heap` | the exact order of entries that are due now or soon |
//!
//! # Invariants
//!
//! - **WHEEL-1** Entries that are due in the current granule or before are in the heap, all others in buckets (BUCKET-1).
//!   So the heap comes before all buckets.
//! - **WHEEL-2** The current granule never goes back. It advances to that of the earliest entry when this is due, and
//!   to that of the present time as far as no occupied bucket is reached. A clock that jumps changes nothing but
//!   which entries are due.
//! - **WHEEL-3** Entries are popped by due time, and among equals in the order of insertion.
//! - **WHEEL-4** Payloads are moved in and out, and dropped only with the wheel itself: the caller decides where the
//!   user's destructors run.
//! - **WHEEL-5** A key fits one entry, and no later one, not even in the [successor](Wheel::successor) of the wheel
//!   (ENTRY-3).
//!
//! Hashed and hierarchical wheels are by Varghese and Lauck (1987).

mod buckets;
mod entries;
mod heap;
#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

use super::Deadline;
use buckets::{Buckets, Location, locate};
pub(crate) use entries::ReservedEntry;
use entries::{Entries, NIL};
use heap::{Heap, Node};
use std::mem::ManuallyDrop;
use std::time::{Duration, Instant};

/// The due time of an entry that is never due.
const NEVER: u64 = u64::MAX;

/// How long before the creation of the wheel its base is. Earlier due times are not told apart.
const PAST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// A granule is 2^20 nanoseconds, a little more than a millisecond.
const GRANULE_BITS: u32 = 20;

#[inline]
fn granule(due: u64) -> u64 {
    due >> GRANULE_BITS
}

/// A due time in nanoseconds after `base`: 0 if it is earlier, the largest number if it is never.
#[inline]
pub(crate) fn due_since(base: Instant, due: Deadline) -> u64 {
    const SECOND: u64 = 1_000_000_000;
    let Some(instant) = due.instant() else {
        return NEVER;
    };
    let since = instant.saturating_duration_since(base);
    let whole = since.as_secs().saturating_mul(SECOND);
    whole.saturating_add(u64::from(since.subsec_nanos()))
}

/// Finds an entry as long as it is in the wheel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Key {
    index: u32,
    generation: u32,
}

impl Key {
    /// The key of no entry.
    pub(crate) const NONE: Key = Key {
        index: NIL,
        generation: 0,
    };
}

/// Entries that wait for a time, each with a payload.
pub(crate) struct Wheel<P> {
    base: Instant,
    /// The current granule.
    current: u64,
    /// Before this time the wheel need not advance again.
    advanced_until: Instant,
    entries: Entries<P>,
    heap: Heap,
    buckets: Buckets,
}

impl<P> Wheel<P> {
    pub(crate) fn new(now: Instant) -> Self {
        let base = now.checked_sub(PAST).unwrap_or(now);
        let mut wheel = Wheel {
            base,
            current: 0,
            advanced_until: now,
            entries: Entries::new(),
            heap: Heap::new(),
            buckets: Buckets::new(),
        };
        wheel.current = granule(wheel.time(now));
        wheel
    }

    /// The nanoseconds from the base to an instant; less than never.
    #[inline]
    fn time(&self, instant: Instant) -> u64 {
        self.due(Deadline::at(instant)).min(NEVER - 1)
    }

    #[inline]
    fn due(&self, deadline: Deadline) -> u64 {
        due_since(self.base, deadline)
    }

    /// The instant that due times are counted from: see [`due_since`].
    pub(crate) fn base(&self) -> Instant {
        self.base
    }

    /// The inverse of [`due_since`].
    pub(crate) fn deadline(&self, due: u64) -> Deadline {
        match due {
            NEVER => Deadline::NEVER,
            due => Deadline::at(self.instant(due)),
        }
    }

    /// The inverse of [`time`](Wheel::time).
    fn instant(&self, due: u64) -> Instant {
        let instant = self.base.checked_add(Duration::from_nanos(due));
        // An instant that does not exist cannot have been inserted.
        instant.unwrap_or(self.base)
    }

    /// Moves all entries and their memory into a new wheel. This one is unusable from then on, but for its
    /// [successor](Wheel::successor).
    pub(crate) fn take_all(&mut self) -> Self {
        Wheel {
            base: self.base,
            current: self.current,
            advanced_until: self.advanced_until,
            entries: self.entries.take_all(),
            heap: std::mem::replace(&mut self.heap, Heap::new()),
            buckets: std::mem::replace(&mut self.buckets, Buckets::none()),
        }
    }

    /// An empty wheel that follows this one, whose entries were [taken](Wheel::take_all). WHEEL-5: their keys fit no
    /// entry of the new one.
    pub(crate) fn successor(&mut self, now: Instant) -> Self {
        Wheel {
            entries: self.entries.take_all(),
            ..Wheel::new(now)
        }
    }

    /// Inserts an entry. `now` lets the wheel advance cheaply; it may be stale.
    #[inline]
    pub(crate) fn insert(&mut self, now: Instant, due: Deadline, payload: P) -> Key {
        let reserved = self.reserve(now);
        let key = reserved.key();
        self.fill(reserved, self.due(due), payload);
        key
    }

    /// Reserves a slot for an entry whose payload has to know its key. `now` as in [`insert`](Wheel::insert).
    #[inline]
    pub(crate) fn reserve(&mut self, now: Instant) -> ReservedEntry {
        if now >= self.advanced_until {
            self.advance(self.time(now));
        }
        self.entries.reserve()
    }

    /// Inserts an entry into a slot that was just reserved. `due` is in nanoseconds after the
    /// [base](Wheel::base): the caller may have computed it outside its lock.
    #[inline]
    pub(crate) fn fill(&mut self, reserved: ReservedEntry, due: u64, payload: P) {
        let index = reserved.index;
        match locate(self.current, due) {
            Location::Bucket(bucket) => {
                let older = self.buckets.push(bucket, index, due);
                self.entries.fill(reserved, due, payload, older);
            }
            Location::Heap => {
                self.entries.fill(reserved, due, payload, NIL);
                let node = Node::of(&self.entries, index);
                self.heap.push(&mut self.entries, node);
            }
        }
    }

    /// WHEEL-2: up to the first occupied bucket.
    #[cold]
    fn advance(&mut self, now: u64) {
        let mut to = granule(now);
        self.advanced_until = self.instant((to << GRANULE_BITS).saturating_add(1 << GRANULE_BITS));
        if let Some(bucket) = self.buckets.first() {
            to = to.min(bucket.start(self.current) - 1);
        }
        self.current = self.current.max(to);
    }

    /// Removes an entry, if it is still there.
    #[inline]
    pub(crate) fn remove(&mut self, key: Key) -> Option<P> {
        let (payload, removed) = self.entries.take(key)?;
        match locate(self.current, removed.due) {
            Location::Bucket(bucket) => self.buckets.remove(&mut self.entries, bucket, removed),
            Location::Heap => self.heap.remove(&mut self.entries, removed.prev),
        }
        self.entries.release_if_empty();
        Some(ManuallyDrop::into_inner(payload))
    }

    /// An entry, if it is still there.
    pub(crate) fn get(&self, key: Key) -> Option<(Deadline, &P)> {
        let entry = self.entries.find(key)?;
        Some((self.deadline(entry.due), entry.payload()?))
    }

    /// The payload of an entry, if it is still there.
    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut P> {
        self.entries.find_mut(key)
    }

    /// Removes the first entry, with its due time, if it is due at `now` (WHEEL-3).
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<(Instant, P)> {
        let now = self.time(now);
        loop {
            if let Some(first) = self.heap.first() {
                if first.due > now {
                    return None;
                }
                let (due, key) = (self.instant(first.due), first.key());
                return Some((due, self.remove(key)?));
            }
            let bucket = self.buckets.first();
            let Some(bucket) = bucket.filter(|first| self.buckets.earliest(*first) <= now) else {
                if granule(now) > self.current {
                    self.advance(now);
                }
                return None;
            };
            self.cascade(bucket);
        }
    }

    /// Advances to the earliest entry of the first bucket, and moves the entries of that bucket into the heap,
    /// which is empty, or to a lower level.
    fn cascade(&mut self, bucket: buckets::Bucket) {
        // BUCKET-3: perhaps the due time of a removed entry, but one of this bucket.
        self.current = granule(self.buckets.earliest(bucket));
        let mut index = self.buckets.take(bucket);
        while index != NIL {
            let node = Node::of(&self.entries, index);
            let next = self.entries.at(index).prev;
            match locate(self.current, node.due) {
                Location::Heap => self.heap.push_unordered(node),
                Location::Bucket(bucket) => {
                    let older = self.buckets.push(bucket, index, node.due);
                    self.entries.link_after(older, index);
                }
            }
            index = next;
        }
        self.heap.heapify(&mut self.entries);
    }

    /// When the first entry is due, or never. It may be a little earlier than that if the first entry was removed
    /// from a crowded bucket.
    #[inline]
    pub(crate) fn next(&self) -> Deadline {
        if let Some(first) = self.heap.first() {
            return self.deadline(first.due);
        }
        let bucket = self.buckets.first();
        bucket.map_or(Deadline::NEVER, |first| {
            self.deadline(self.buckets.earliest(first))
        })
    }

    /// The number of entries, including those that are never due.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The first `max` entries, in order. Visits these and the other entries of the last bucket that it reaches.
    pub(crate) fn first(&self, max: usize) -> Vec<(Deadline, &P)> {
        let mut found = self.heap.first_n(max);
        let missing = max - found.len();
        found.append(&mut self.buckets.first_n(&self.entries, missing));
        let shown = found.iter().map(|node| {
            let payload = self.entries.at(node.index).payload()?;
            Some((self.deadline(node.due), payload))
        });
        shown.flatten().collect()
    }

    /// Removes all is_unwanted entries, in order. No entry is removed before all have been checked.
    pub(crate) fn take_where(&mut self, mut is_unwanted: impl FnMut(&P) -> bool) -> Vec<P> {
        self.take_by_due(|_, payload| is_unwanted(payload))
    }

    /// The same, with the due time: in nanoseconds since the [base](Wheel::base), as in [`fill`](Wheel::fill).
    pub(crate) fn take_by_due(&mut self, mut is_unwanted: impl FnMut(u64, &P) -> bool) -> Vec<P> {
        let is_unwanted = self
            .entries
            .iter()
            .filter(|(_, entry, payload)| is_unwanted(entry.due, payload));
        let mut nodes: Vec<Node> = is_unwanted
            .map(|(index, entry, _)| Node {
                due: entry.due,
                number: entry.number,
                index,
            })
            .collect();
        nodes.sort_unstable();
        let taken = nodes.into_iter().map(|node| self.remove(node.key()));
        taken.flatten().collect()
    }
}
