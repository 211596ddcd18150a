//! The queue of pending entries: tasks and series that wait for their due time, in a [timing wheel](Wheel).
//!
//! It is plain data inside the [state](super::state) of the pool, under its lock.

use super::series::Series;
use crate::task::Task;
use crate::time::{Deadline, Key, ReservedEntry, Wheel, due_since};
use std::sync::Arc;
use std::time::Instant;

/// What waits for its due time.
pub(super) enum Entry {
    Once(Task),
    Series(Arc<Series>),
}

/// An entry that is due, and since when.
pub(super) type Due = (Instant, Entry);

pub(super) struct PendingQueue {
    wheel: Wheel<Entry>,
    /// How many entries may be pending.
    pub(super) max: Option<usize>,
    /// The time of the last dispatch.
    now: Instant,
    /// Memory for the next batch of due entries.
    batch: Vec<Due>,
}

impl PendingQueue {
    /// `former` is the queue that was in the same place before: its keys will not fit entries of this one
    /// (STATESLOT-2).
    pub(super) fn new(former: Option<&mut Self>, now: Instant, max: Option<usize>) -> Self {
        PendingQueue {
            wheel: match former {
                Some(former) => former.wheel.successor(now),
                None => Wheel::new(now),
            },
            max,
            now,
            batch: Vec::new(),
        }
    }

    /// The instant from which due times are counted in nanoseconds.
    pub(super) fn base(&self) -> Instant {
        self.wheel.base()
    }

    /// A due time that was counted in nanoseconds.
    pub(super) fn deadline(&self, nanos: u64) -> Deadline {
        self.wheel.deadline(nanos)
    }

    /// Entries that are pending, those included that are never due.
    pub(super) fn len(&self) -> usize {
        self.wheel.len()
    }

    /// When the first entry is due; never, if none is.
    pub(super) fn next_due(&self) -> Deadline {
        self.wheel.next()
    }

    /// The first entries, at most `max`, in order.
    pub(super) fn first(&self, max: usize) -> Vec<(Deadline, &Entry)> {
        self.wheel.first(max)
    }

    /// When the entry with this key is due, if it is still pending.
    pub(super) fn due_of(&self, key: Key) -> Option<Deadline> {
        self.wheel.get(key).map(|(due, _)| due)
    }

    pub(super) fn insert(&mut self, due: Deadline, entry: Entry) -> Key {
        let nanos = due_since(self.wheel.base(), due);
        let place = self.reserve();
        let key = place.key();
        self.fill(place, nanos, entry);
        key
    }

    /// A place for an entry that has to know its key.
    #[inline]
    pub(super) fn reserve(&mut self) -> ReservedEntry {
        self.wheel.reserve(self.now)
    }

    /// Inserts an entry at a place that was reserved under the same lock; `nanos` is its due time, counted
    /// from the [base](PendingQueue::base).
    #[inline]
    pub(super) fn fill(&mut self, place: ReservedEntry, nanos: u64, entry: Entry) {
        self.wheel.fill(place, nanos, entry);
    }

    #[inline]
    pub(super) fn remove(&mut self, key: Key) -> Option<Entry> {
        self.wheel.remove(key)
    }

    /// Moves entries that are due to `batch`, at most `max`. If that has no memory of its own it gets what was
    /// [kept](PendingQueue::keep_memory).
    pub(super) fn take_due(&mut self, now: Instant, max: usize, batch: &mut Vec<Due>) {
        self.now = now;
        if batch.capacity() == 0 {
            *batch = std::mem::take(&mut self.batch);
        }
        while batch.len() < max {
            let Some(due) = self.wheel.pop_due(now) else {
                break;
            };
            batch.push(due);
        }
    }

    /// Keeps the memory of a batch for the next one.
    pub(super) fn keep_memory(&mut self, batch: Vec<Due>) {
        debug_assert!(batch.is_empty());
        if batch.capacity() > 0 {
            self.batch = batch;
        }
    }

    /// Removes the entries that are unwanted, by their due time in nanoseconds.
    pub(super) fn take_by_due(&mut self, unwanted: impl FnMut(u64, &Entry) -> bool) -> Vec<Entry> {
        self.wheel.take_by_due(unwanted)
    }

    pub(super) fn take_all(&mut self) -> Vec<Entry> {
        self.wheel.take_where(|_| true)
    }

    /// The pool is gone: everything that is left, with its memory. Keys go on (STATESLOT-2).
    pub(super) fn close(&mut self) -> (Wheel<Entry>, Vec<Due>) {
        (self.wheel.take_all(), std::mem::take(&mut self.batch))
    }
}
