//! The slots of workers: what other workers see of one.
//!
//! A worker takes a free slot when it starts and gives it back when it exits. A slot is made when it is first needed and
//! then stays, so others can read it without a lock. Its deque is empty when the worker exits (FORKJOIN-4).
//!
//! - **SLOT-1** There are as many slots as workers that can be counted. A leaving worker is uncounted a moment before it
//!   gives its slot back, so a new worker may find no free slot, and waits for one. Then at least one worker that has a
//!   slot is leaving. That worker runs no user code and waits for nothing before it has given its slot back.
//! - **SLOT-2** A worker is the keeper of the deque of its slot ([`BiasedMutex`](millpond_raw::sync::BiasedMutex)). It gives the
//!   key up before the slot.
//!
//! # Orderings
//!
//! - `[S-ask]` Store-load. A worker that goes to sleep changes the word of the idle workers, then reads the request bits of
//!   each other worker and sets the request if it is missing. The fence between is that of `begin_sleep` or `begin_wait`;
//!   a change to a higher parallelism has its own. A worker that withdraws a request clears the bit, then reads the word
//!   of the idle workers, with a fence between ([`Context`](super::context::Context)). If a worker withdraws a request
//!   that a sleeper found set, it sees the sleeper and renews the request.
//! - `[S-help]` Store-load. A waiting worker registers here, then looks into the deque, with a fence between. A publishing
//!   worker pushes, then looks for registered workers, with a fence between. One of them sees the other. As with
//!   `[S-word]` the fence of the publishing worker may be a light one, and the waiting one settles that deque.
//! - `[S-slot]` Raising the number of used slots releases the pointer to the slot; reading the number acquires it.

use super::deque::Deque;
use millpond_raw::cache_padded::CachePadded;
use millpond_raw::forkjoin::Demand;
use millpond_raw::once_box::OnceBox;
use millpond_raw::sync::Mutex;
use millpond_raw::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use millpond_raw::sync::thread;
use std::task::Waker;

/// A request: a worker that searches, or one that waits for a job that this worker runs, wants a job at the next join.
pub(super) const PUBLISH_NOW: u32 = 1;
/// A request: workers sleep or have not been started. A job pays for their wake-up if there is enough work.
pub(super) const PUBLISH_LATER: u32 = 2;
/// Set by the worker itself: the next join is the first of a computation.
pub(super) const FIRST: u32 = 4;

/// What other workers see of one.
#[derive(Default)]
pub(super) struct Slot {
    pub(super) demand: Demand,
    pub(super) deque: Deque,
    /// Workers that sleep until this one publishes a job.
    helpers: Helpers,
    waker: Mutex<Option<Waker>>,
    is_taken: AtomicBool,
    /// Where its worker last ran out of work ([`CacheGroups`](super::cache_groups::CacheGroups)).
    cache_group: AtomicU32,
}

#[derive(Default)]
struct Helpers {
    count: CachePadded<AtomicUsize>,
    slots: Mutex<Vec<u32>>,
}

impl Slot {
    pub(super) fn set_waker(&self, waker: Option<Waker>) {
        let former = std::mem::replace(&mut *self.waker.lock(), waker);
        drop(former);
    }

    /// Wakes its worker, if there is one.
    pub(super) fn wake(&self) {
        let waker = self.waker.lock().clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Whether a worker has it.
    pub(super) fn is_taken(&self) -> bool {
        self.is_taken.load(Ordering::Relaxed)
    }

    pub(super) fn cache_group(&self) -> u32 {
        self.cache_group.load(Ordering::Relaxed)
    }

    pub(super) fn set_cache_group(&self, group: u32) {
        self.cache_group.store(group, Ordering::Relaxed);
    }

    /// Requests a job from its worker. [`PUBLISH_LATER`] needs a fence of the caller before this call.
    pub(super) fn ask(&self, bit: u32) {
        // Relaxed: `[S-ask]` has the fence of the caller.
        if self.demand.get() & bit == 0 {
            self.demand.word().fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// The worker in `slot` will sleep until this one publishes a job. A fence follows.
    pub(super) fn add_helper(&self, slot: u32) {
        self.helpers.slots.lock().push(slot);
        // Relaxed: `[S-help]` has the fence of the caller.
        self.helpers.count.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn remove_helper(&self, slot: u32) {
        let mut slots = self.helpers.slots.lock();
        if let Some(index) = slots.iter().position(|each| *each == slot) {
            slots.swap_remove(index);
            self.helpers.count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The workers to wake after a publication. The caller has a fence before this call.
    pub(super) fn helpers(&self) -> Vec<u32> {
        // [S-help]: the fence of the caller
        if self.helpers.count.load(Ordering::Relaxed) == 0 {
            return Vec::new();
        }
        self.helpers.slots.lock().clone()
    }
}

/// All slots of a pool.
pub(super) struct Slots {
    slots: Box<[OnceBox<Slot>]>,
    free: Mutex<Vec<u32>>,
    /// How many have been used.
    used: CachePadded<AtomicUsize>,
}

impl Slots {
    pub(super) fn new(most: usize) -> Self {
        Slots {
            slots: (0..most).map(|_| OnceBox::new()).collect(),
            free: Mutex::new(Vec::new()),
            used: CachePadded::new(AtomicUsize::new(0)),
        }
    }

    /// Takes a slot for a worker that is counted. If there is none, waits for one that is being given back (SLOT-1).
    pub(super) fn claim(&self, waker: Waker) -> u32 {
        let index = loop {
            if let Some(index) = self.take_free() {
                break index;
            }
            thread::yield_now();
        };
        let slot = self.get(index);
        slot.set_waker(Some(waker));
        slot.is_taken.store(true, Ordering::Relaxed);
        index
    }

    fn take_free(&self) -> Option<u32> {
        let mut free = self.free.lock();
        free.pop().or_else(|| {
            let used = self.used.load(Ordering::Relaxed);
            self.slots.get(used)?.get_or_init(Slot::default);
            // [S-slot]
            self.used.store(used + 1, Ordering::Release);
            Some(used as u32)
        })
    }

    pub(super) fn release(&self, index: u32) {
        let slot = self.get(index);
        slot.is_taken.store(false, Ordering::Relaxed);
        slot.set_waker(None);
        self.free.lock().push(index);
    }

    /// A slot that has been claimed at some time.
    #[inline]
    pub(super) fn get(&self, index: u32) -> &Slot {
        let slot = self.slots[index as usize].get();
        slot.expect("a slot that was claimed stays")
    }

    pub(super) fn used(&self) -> usize {
        // [S-slot]
        self.used.load(Ordering::Acquire)
    }

    /// All slots that have been used, the one at `first` first.
    pub(super) fn iter_from(&self, first: u32) -> impl Iterator<Item = (u32, &Slot)> + Clone {
        let used = self.used();
        let first = first as usize;
        (0..used).map(move |step| {
            let index = (first + step) % used;
            (index as u32, self.get(index as u32))
        })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.iter_from(0).map(|(_, slot)| slot)
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_starts_when_all_slots_are_taken_gets_that_of_one_that_leaves() {
        let slots = Slots::new(2);
        assert_eq!([0, 1].map(|_| slots.claim(Waker::noop().clone())), [0, 1]);
        assert_eq!(slots.take_free(), None);
        slots.release(1);
        assert_eq!(slots.claim(Waker::noop().clone()), 1);
    }
}
