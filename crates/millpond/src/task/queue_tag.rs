//! Queue tags: which engine's queue a task waits in, and the count of tombstones in that queue.
//!
//! A task that is cancelled in a queue leaves a *tombstone* there: an empty task, until its turn comes or the queue is
//! cleared. So does a task that a joining thread runs inline. Clearing means walking the queue, which pays only if there
//! are tombstones. So an engine with a queue has a [`QueueTag`] and writes it into every task that it enqueues, and a
//! handle that empties a task increments the tombstone counter of the tag. An engine whose queue is full reads the
//! counter before it walks.
//!
//! A task has room for a tag *number* of 15 bits, not for a pointer. The counters are statics, one for each number. So a
//! task may outlive its engine and still count, which does no harm, and nothing is kept alive for it.
//!
//! # Numbers
//!
//! A worker that joins a task of its own engine runs it inline ([`super::inline`]), and recognizes it by the number. So
//! no task may be mistaken for one of another engine, however many engines there are, were or will be:
//!
//! - **TAG-1** Each engine has a number of its own, as long as there are numbers left: 32,766. Later engines share the
//!   last number.
//! - **TAG-2** A number is reused when its engine is gone, and with it the engine's queue. All tasks of a queue of ours
//!   are claimed by then: run, or cancelled with the queue. (A task that left the queue unclaimed was detached,
//!   TOMBSTONE-3.) A claimed task is never run again, so its number no longer matters.
//! - **TAG-3** A queue of the user's may be shared, and may keep its tasks when the engine is gone. So the number of an
//!   engine with such a queue is reused only for another engine with such a queue.
//! - **TAG-4** An engine with a shared number (TAG-1), or a reused one of the kind of TAG-3, does not trust the number:
//!   it takes a task for its own only if it finds the task in its queue. That walk is the price of more than 32,766
//!   engines, or of building engines with user queues again and again; nobody else pays it.
//!
//! # Tombstones
//!
//! - **TOMBSTONE-1** The counter only goes up. An engine remembers the count that it has seen, and reads the counter
//!   *before* it walks: a tombstone that is counted during the walk is a reason for the next one. If other engines count
//!   there as well (TAG-1, TAG-2), some walks find nothing.
//! - **TOMBSTONE-2** A handle empties the task first and counts second. So an engine that sees the count finds the
//!   tombstone.
//! - **TOMBSTONE-3** Only a queued task has a tag. It is detached once: when its engine gives it back, rejected or from a
//!   shutdown, or when a worker has claimed it to run it inline. The thread that detaches it counts the task.
//!
//! # Panics
//!
//! - **TAG-5** A body that a joining thread runs, which is no worker of the engine, is counted there as run when its
//!   tombstone leaves the queue, and that may be while it still runs. So its panic is counted by that thread, under the
//!   number that the task had in the queue, before anyone can see the outcome. The count only goes up, and an engine
//!   subtracts what it found when it was built. A panic after the engine is gone counts for the next engine of that number,
//!   and engines that share the last number (TAG-1) see each other's: it is a statistic, and nothing is decided by it.
//!
//! # Orderings
//!
//! - `[H-leave]` is explained in [`super::inline`], where its other end is.
//! - `[H-gone]` Counting releases, reading the counter acquires: TOMBSTONE-2 across threads. Without it an engine could
//!   see the count and not the tombstone. It would record the count as seen, and would not look for that tombstone again.
//!   Its queue would stay full.
//!
//! Both are modelled in `tests/loom_library/queue_tag.rs`.

use crate::time::ShortTimestamp;
use millpond_raw::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use millpond_raw::sync::{Mutex, global};

/// How many numbers there are; 0 means none. Few in models, which create every counter anew for each execution.
const NUMBERS: usize = if cfg!(any(millpond_loom, millpond_shuttle)) {
    1 << 4
} else {
    1 << NUMBER_BITS
};

/// The number that engines share when no other is left (TAG-1).
const SHARED: u32 = NUMBERS as u32 - 1;

#[cfg(not(any(millpond_loom, millpond_shuttle)))]
const fn zeroed_counters() -> [AtomicUsize; NUMBERS] {
    [const { AtomicUsize::new(0) }; NUMBERS]
}

#[cfg(any(millpond_loom, millpond_shuttle))]
fn zeroed_counters() -> [AtomicUsize; NUMBERS] {
    std::array::from_fn(|_| AtomicUsize::new(0))
}

global! {
    /// By number. Initially zero, so that only used pages take memory.
    static TOMBSTONES: [AtomicUsize; NUMBERS] = zeroed_counters();
}

global! {
    /// By number: bodies that panicked on threads that are no workers of the engine (TAG-5).
    static PANICS: [AtomicUsize; NUMBERS] = zeroed_counters();
}

global! {
    static FREE: Mutex<FreeNumbers> = Mutex::new(FreeNumbers::new());
}

/// Keeps the table of free numbers consistent across forks.
pub(super) fn keep_at_forks() {
    #[cfg(not(any(millpond_loom, millpond_shuttle)))]
    millpond_raw::fork::register_lock(&FREE);
}

/// The numbers that no engine has.
struct FreeNumbers {
    /// This number and all after it have never been used.
    next: u32,
    reusable: Vec<u32>,
    /// TAG-3.
    reusable_by_user_queues: Vec<u32>,
}

impl FreeNumbers {
    const fn new() -> Self {
        FreeNumbers {
            next: 1,
            reusable: Vec::new(),
            reusable_by_user_queues: Vec::new(),
        }
    }

    /// A number, and whether it can be trusted (TAG-4).
    fn take(&mut self, owner: QueueOwner) -> (u32, bool) {
        if owner == QueueOwner::Engine {
            if let Some(number) = self.reusable.pop() {
                return (number, true);
            }
        }
        // A new number can be trusted. Those of user queues return to user queues alone, so they get half at most.
        let end = match owner {
            QueueOwner::Engine => SHARED,
            QueueOwner::User => SHARED / 2,
        };
        if self.next < end {
            self.next += 1;
            return (self.next - 1, true);
        }
        match owner {
            QueueOwner::Engine => (SHARED, false),
            QueueOwner::User => (self.reusable_by_user_queues.pop().unwrap_or(SHARED), false),
        }
    }

    fn give_back(&mut self, number: u32, owner: QueueOwner) {
        if number != SHARED {
            match owner {
                QueueOwner::Engine => self.reusable.push(number),
                QueueOwner::User => self.reusable_by_user_queues.push(number),
            }
        }
    }
}

/// The owner of an engine's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueueOwner {
    /// The engine alone.
    Engine,
    /// The user, who may share it (TAG-3).
    User,
}

/// The tag of an engine's queue: a number for the engine's tasks, and a count of those that were emptied by their
/// handles before the engine could start them. To be dropped after the queue (TAG-2).
#[derive(Debug)]
pub(crate) struct QueueTag {
    /// From 1: a task without a tag has 0.
    number: u32,
    /// No other engine's task can have the number (TAG-4).
    is_trusted: bool,
    owner: QueueOwner,
    /// Unique among all engines.
    engine: u64,
    /// Panics that earlier engines of this number have left (TAG-5).
    earlier_panics: usize,
}

impl QueueTag {
    /// For an engine that is being built.
    pub(crate) fn allocate(owner: QueueOwner) -> Self {
        let (number, is_trusted) = FREE.lock().take(owner);
        QueueTag {
            number,
            is_trusted,
            owner,
            engine: next_engine(),
            earlier_panics: panics(number),
        }
    }

    /// How many tasks of the queue have panicked on joining threads that are no workers of the engine (TAG-5).
    pub(crate) fn panics_elsewhere(&self) -> u64 {
        panics(self.number).wrapping_sub(self.earlier_panics) as u64
    }

    /// How many tombstones have been counted so far (TOMBSTONE-1).
    #[inline]
    pub(crate) fn tombstones(&self) -> usize {
        // [H-gone]
        TOMBSTONES[self.number as usize].load(Ordering::Acquire)
    }

    /// Whether the current thread is a worker of this tag's engine.
    pub(crate) fn on_worker_thread(&self) -> bool {
        super::inline::is_worker_of(self.engine)
    }

    pub(super) fn number(&self) -> u32 {
        self.number
    }

    pub(super) fn is_trusted(&self) -> bool {
        self.is_trusted
    }

    pub(super) fn engine(&self) -> u64 {
        self.engine
    }

    /// Counts a task with this number that has just been emptied (TOMBSTONE-2).
    pub(super) fn count_tombstone(number: u32) {
        if number != 0 {
            // [H-gone]
            TOMBSTONES[number as usize].fetch_add(1, Ordering::Release);
        }
    }

    /// Counts a task that had this number, and whose body has just panicked on a thread that does not count it otherwise
    /// (TAG-5).
    #[cold]
    pub(super) fn count_panic(number: u32) {
        if number != 0 {
            PANICS[number as usize].fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for QueueTag {
    /// Not in models: the last engine may outlive their statics.
    fn drop(&mut self) {
        if !cfg!(any(millpond_loom, millpond_shuttle)) {
            FREE.lock().give_back(self.number, self.owner);
        }
    }
}

/// Not in models, which have no need of it, and would create the counters anew for each execution.
fn panics(number: u32) -> usize {
    if cfg!(any(millpond_loom, millpond_shuttle)) {
        return 0;
    }
    PANICS[number as usize].load(Ordering::Relaxed)
}

/// From 1; 64 bits do not wrap around.
fn next_engine() -> u64 {
    #![allow(
        clippy::disallowed_types,
        reason = "a static outlives every model, and only tells engines apart"
    )]
    use std::sync::atomic::{AtomicU64, Ordering};
    static ENGINES: AtomicU64 = AtomicU64::new(1);
    ENGINES.fetch_add(1, Ordering::Relaxed)
}

/// A task's tag number, the timestamp of its enqueueing, and whether it is exempt from shedding, which is set when the
/// task is created and never changes; in one word.
/// ```text
///   63           49    48    47                     0
///   [    number    ] [kept] [      timestamp        ]
/// ```
#[derive(Debug)]
pub(super) struct TagWord {
    word: AtomicU64,
}

const KEPT: u64 = 1 << ShortTimestamp::BITS;
const NUMBER_SHIFT: u32 = ShortTimestamp::BITS + 1;
const NUMBER_BITS: u32 = u64::BITS - NUMBER_SHIFT;

/// All bits but those of the number.
const UNTAGGED: u64 = (1 << NUMBER_SHIFT) - 1;

impl TagWord {
    pub(super) fn untagged(is_kept: bool) -> Self {
        TagWord {
            word: AtomicU64::new(if is_kept { KEPT } else { 0 }),
        }
    }

    pub(super) fn is_kept(&self) -> bool {
        self.word() & KEPT != 0
    }

    /// Relaxed: a task that is emptied before it is in a queue is still in its engine's hands, so the engine sees that
    /// it is empty.
    #[inline]
    pub(super) fn set(&self, tag: Option<&QueueTag>, stamp: ShortTimestamp) {
        let number = tag.map_or(0, |tag| u64::from(tag.number));
        let kept = self.word() & KEPT;
        let word = number << NUMBER_SHIFT | kept | stamp.bits();
        self.word.store(word, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn word(&self) -> u64 {
        self.word.load(Ordering::Relaxed)
    }

    /// The tag number; 0 if the task has no tag.
    #[inline]
    pub(super) fn number(&self) -> u32 {
        (self.word() >> NUMBER_SHIFT) as u32
    }

    /// The engine gives the task back (TOMBSTONE-3). Returns the number that this call has removed; 0 if there was none.
    pub(super) fn detach(&self) -> u32 {
        // Most tasks that are given back were rejected at once and never had a tag.
        // [H-leave]
        if self.word.load(Ordering::Acquire) <= UNTAGGED {
            return 0;
        }
        // [H-leave]
        let before = self.word.fetch_and(UNTAGGED, Ordering::Acquire);
        (before >> NUMBER_SHIFT) as u32
    }

    /// As [`detach`](TagWord::detach), by a worker of the task's engine that has claimed it.
    pub(super) fn detach_claimed(&self) -> u32 {
        // [H-leave]
        let before = self.word.fetch_and(UNTAGGED, Ordering::Release);
        (before >> NUMBER_SHIFT) as u32
    }

    /// When the task was enqueued; `None` if no engine has it.
    #[inline]
    pub(super) fn stamp(&self) -> Option<ShortTimestamp> {
        let word = self.word();
        (word & !KEPT != 0).then(|| ShortTimestamp::from_bits(word))
    }

    /// Counts the task, which has just been emptied (TOMBSTONE-2).
    pub(super) fn count_tombstone(&self) {
        QueueTag::count_tombstone(self.number());
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests;
