//! Who waits for a time: a wheel in front of a heap.
//!
//! Most timers are time-outs: set for later, and taken back before. For these a heap is wasted work, since
//! it sorts what nobody will ask for. A wheel puts them into buckets, roughly by time, which takes a few
//! nanoseconds however many there are, and as many to take one back. But a wheel alone tells the time by
//! its granule and forgets who came first. So both:
//!
//! ```text
//!            later (buckets.rs)                   now and soon (heap.rs)
//!   insert -> [..|..|..|..|..]  -- is poured -->  exact order  -> pop_due
//!                  |                                   |
//!                remove                              remove
//! ```
//!
//! A bucket is poured when its first entry is due, and not before. Nothing turns while nobody is due: the
//! first entry of a bucket is known without pouring it, so a lone timer an hour away is one wake-up, at
//! its time.
//!
//! Due times are nanoseconds since a base, a year before the wheel was made. What was due before that is
//! due at the base; what is due five hundred years after it is never due.
//!
//! # Rules
//!
//! - **W1** Everything that is due in the current granule or before is in the heap, all else in buckets
//!   (B1). So the heap comes before all buckets.
//! - **W2** The current granule never goes back. It goes on to that of the earliest entry, when this is
//!   due; and to that of the present time, as far as that reaches no occupied bucket. A clock that goes
//!   back or leaps changes nothing but which entries are due.
//! - **W3** Who comes out comes out by due time, and among equals in the order in which they came.
//! - **W4** Payloads are moved in and out and never dropped, but with the wheel itself. What the caller's
//!   own code does in a destructor happens where the caller wants it.
//! - **W5** A key fits one entry, and nobody who comes after it has gone; nor anybody in a wheel that
//!   [follows](Wheel::begin) this one (E3).
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
use buckets::{Buckets, Place, place};
pub(crate) use entries::Reserved;
use entries::{Entries, NIL};
use heap::{Heap, Node};
use std::mem::ManuallyDrop;
use std::time::{Duration, Instant};

/// The due time of who is never due.
const NEVER: u64 = u64::MAX;

/// How long before the wheel was made time begins. What is due earlier than that has lost its order.
const PAST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// A granule is 2^20 nanoseconds, a little more than a millisecond.
const GRANULE_BITS: u32 = 20;

#[inline]
fn granule(due: u64) -> u64 {
    due >> GRANULE_BITS
}

/// How many nanoseconds after `base` something is due. What was due before is due then; the largest number
/// is never.
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

/// What finds an entry again, as long as it waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Key {
    index: u32,
    generation: u32,
}

/// Entries that wait for a time, each with a payload.
pub(crate) struct Wheel<P> {
    base: Instant,
    /// The current granule.
    current: u64,
    /// Before that there is no need to move on again.
    moved_until: Instant,
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
            moved_until: now,
            entries: Entries::new(),
            heap: Heap::new(),
            buckets: Buckets::new(),
        };
        wheel.current = granule(wheel.time(now));
        wheel
    }

    /// How many nanoseconds there are from the base to an instant, so many at most that it is not never.
    #[inline]
    fn time(&self, instant: Instant) -> u64 {
        self.due(Deadline::at(instant)).min(NEVER - 1)
    }

    #[inline]
    fn due(&self, deadline: Deadline) -> u64 {
        due_since(self.base, deadline)
    }

    /// What due times are counted from: see [`due_since`].
    pub(crate) fn base(&self) -> Instant {
        self.base
    }

    fn deadline(&self, due: u64) -> Deadline {
        match due {
            NEVER => Deadline::NEVER,
            due => Deadline::at(self.instant(due)),
        }
    }

    /// The other way round.
    fn instant(&self, due: u64) -> Instant {
        let instant = self.base.checked_add(Duration::from_nanos(due));
        // A clock that cannot tell this instant has never shown it to us.
        instant.unwrap_or(self.base)
    }

    /// Takes everybody out, and leaves a wheel that has no memory and takes nobody in, until it
    /// [begins](Wheel::begin) anew.
    pub(crate) fn let_go(&mut self) -> Self {
        Wheel {
            base: self.base,
            current: self.current,
            moved_until: self.moved_until,
            entries: self.entries.let_go(),
            heap: std::mem::replace(&mut self.heap, Heap::new()),
            buckets: std::mem::replace(&mut self.buckets, Buckets::none()),
        }
    }

    /// A wheel for who comes after those of this one, which has been [let go](Wheel::let_go) of. W5: their
    /// keys fit nobody in the new one.
    pub(crate) fn begin(&mut self, now: Instant) -> Self {
        Wheel {
            entries: self.entries.let_go(),
            ..Wheel::new(now)
        }
    }

    /// Takes an entry in. `now` lets the wheel move on cheaply; it may be stale.
    #[inline]
    pub(crate) fn insert(&mut self, now: Instant, due: Deadline, payload: P) -> Key {
        let reserved = self.reserve(now);
        let key = reserved.key();
        self.fill(reserved, self.due(due), payload);
        key
    }

    /// A place for an entry whose payload has to know its key. `now` is as for an [insertion](Wheel::insert).
    #[inline]
    pub(crate) fn reserve(&mut self, now: Instant) -> Reserved {
        if now >= self.moved_until {
            self.move_on(self.time(now));
        }
        self.entries.reserve()
    }

    /// Takes an entry in, at a place that was reserved just now. Who calls this has worked out, perhaps
    /// without a lock, how many nanoseconds after the [base](Wheel::base) it is due.
    #[inline]
    pub(crate) fn fill(&mut self, reserved: Reserved, due: u64, payload: P) {
        let index = reserved.index;
        match place(self.current, due) {
            Place::Bucket(bucket) => {
                let older = self.buckets.push(bucket, index, due);
                self.entries.fill(reserved, due, payload, older);
            }
            Place::Heap => {
                self.entries.fill(reserved, due, payload, NIL);
                let node = Node::of(&self.entries, index);
                self.heap.push(&mut self.entries, node);
            }
        }
    }

    /// W2: as far as that is free.
    #[cold]
    fn move_on(&mut self, now: u64) {
        let mut to = granule(now);
        self.moved_until = self.instant((to << GRANULE_BITS).saturating_add(1 << GRANULE_BITS));
        if let Some(bucket) = self.buckets.first() {
            to = to.min(bucket.start(self.current) - 1);
        }
        self.current = self.current.max(to);
    }

    /// Takes an entry out, unless it has gone already.
    #[inline]
    pub(crate) fn remove(&mut self, key: Key) -> Option<P> {
        let (payload, gone) = self.entries.take(key)?;
        match place(self.current, gone.due) {
            Place::Bucket(bucket) => self.buckets.remove(&mut self.entries, bucket, gone),
            Place::Heap => self.heap.remove(&mut self.entries, gone.prev),
        }
        self.entries.tidy();
        Some(ManuallyDrop::into_inner(payload))
    }

    /// An entry, unless it has gone.
    pub(crate) fn get(&self, key: Key) -> Option<(Deadline, &P)> {
        let entry = self.entries.find(key)?;
        Some((self.deadline(entry.due), entry.payload()?))
    }

    /// The same, to be changed.
    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut P> {
        self.entries.find_mut(key)
    }

    /// Takes out the first entry, with its due time, if that has come by `now` (W3).
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
                    self.move_on(now);
                }
                return None;
            };
            self.pour(bucket);
        }
    }

    /// Moves on to the earliest entry of the first bucket, and gives everybody in there a new place: the
    /// heap, which is empty, or a lower level.
    fn pour(&mut self, bucket: buckets::Bucket) {
        // B3: perhaps of one that has gone, but that had its place in this bucket.
        self.current = granule(self.buckets.earliest(bucket));
        let mut index = self.buckets.take(bucket);
        while index != NIL {
            let node = Node::of(&self.entries, index);
            let next = self.entries.at(index).prev;
            match place(self.current, node.due) {
                Place::Heap => self.heap.add(node),
                Place::Bucket(bucket) => {
                    let older = self.buckets.push(bucket, index, node.due);
                    self.entries.put_after(older, index);
                }
            }
            index = next;
        }
        self.heap.put_in_order(&mut self.entries);
    }

    /// When the first entry is due; never, if none is. It may be a little earlier than that if the one
    /// that was first has been taken out, and there were many about its time.
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

    /// How many wait, those included that are never due.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The first so many, in order. This takes a look at each of them, and at those about the time of the
    /// last of them; not at the others.
    pub(crate) fn first(&self, most: usize) -> Vec<(Deadline, &P)> {
        let mut found = self.heap.first_few(most);
        let missing = most - found.len();
        found.append(&mut self.buckets.first_few(&self.entries, missing));
        let shown = found.iter().map(|node| {
            let payload = self.entries.at(node.index).payload()?;
            Some((self.deadline(node.due), payload))
        });
        shown.flatten().collect()
    }

    /// Takes out everybody who is unwanted, in order. Nobody has gone until all have been looked at.
    pub(crate) fn take_where(&mut self, mut unwanted: impl FnMut(&P) -> bool) -> Vec<P> {
        let unwanted = self
            .entries
            .iter()
            .filter(|(_, _, payload)| unwanted(payload));
        let mut nodes: Vec<Node> = unwanted
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
