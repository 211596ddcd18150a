//! The queues of waiters, allocated for the first waiter: one word in every task cell.
//!
//! ```text
//!   word:  pointer to the queues (null until something waits)  | TAKEN | FLAG
//! ```
//!
//! Hardly any task is joined before it ends, and fewer still block in an interruptible call. So a cell has
//! one word for both queues, and their memory is allocated on demand, from the slabs that cells come from.
//! The flag is the interrupt token's; it is in the same word so that setting it and adding the queues cannot
//! miss each other. Clearing it leaves TAKEN behind, for those who work for the task on other threads.
//!
//! # Invariants
//!
//! - **LAZY-1** The pointer in the word is null or came from [`Recycled::into_raw`]; once it is not null it
//!   never changes, until the word is dropped, which frees it.
//! - **LAZY-2** The queues are added by a CAS on the word, and the flag is set by a CAS on the same word. So
//!   either the interrupter sees the queues, or the waiter sees the flag.
//!
//! # Orderings
//!
//! - `[K-list]` The CAS that adds the queues releases them; a thread that reads the pointer acquires them.
//! - `[K-set]` The CAS that sets the flag releases what its thread wrote before. A thread that reads or clears the
//!   flag and finds it set acquires that.

use crate::recycle::Recycled;
use crate::sync::atomic::{AtomicPtr, Ordering};
use crate::wait_queue::WaitQueue;
use core::ptr::{self, NonNull};

const FLAG: usize = 1;
/// The flag has been cleared at least once.
const TAKEN: usize = 2;

/// The waiters of one task.
#[derive(Debug, Default)]
pub(super) struct WaiterQueues {
    /// Its body, if it blocks: woken by an interrupt.
    pub(super) blocked: WaitQueue,
    /// Its joiners: woken when it is finished.
    pub(super) joiners: WaitQueue,
}

/// A flag, and queues that are allocated on demand.
pub(super) struct LazyWaiters {
    word: AtomicPtr<WaiterQueues>,
}

impl LazyWaiters {
    /// The flag is clear and there are no queues.
    pub(super) fn new() -> Self {
        LazyWaiters {
            word: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Whether the flag is set.
    pub(super) fn is_flag_set(&self) -> bool {
        // [K-set]
        self.word.load(Ordering::Acquire).addr() & FLAG != 0
    }

    /// Whether the flag has ever been cleared.
    pub(super) fn was_flag_cleared(&self) -> bool {
        // [K-set]
        self.word.load(Ordering::Acquire).addr() & TAKEN != 0
    }

    /// Sets the flag. Returns the queues to wake, if the flag was clear and there are any.
    pub(super) fn set_flag(&self) -> Option<&WaiterQueues> {
        let mut seen = self.word.load(Ordering::Relaxed);
        while seen.addr() & FLAG == 0 {
            match self.swap_word(seen, seen.map_addr(|address| address | FLAG)) {
                Ok(()) => return self.queues_in(seen),
                Err(now) => seen = now,
            }
        }
        None
    }

    /// Clears the flag, and returns whether it was set.
    pub(super) fn clear_flag(&self) -> bool {
        let mut seen = self.word.load(Ordering::Relaxed);
        while seen.addr() & FLAG != 0 {
            let next = seen.map_addr(|address| address & !FLAG | TAKEN);
            match self.swap_word(seen, next) {
                Ok(()) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// The queues, for a caller that knows of them: it has a ticket, or knows of a waiter. Any other caller
    /// may get `None` although they exist.
    ///
    /// Relaxed: the caller's knowledge orders it.
    pub(super) fn get_known(&self) -> Option<&WaiterQueues> {
        self.queues_in(self.word.load(Ordering::Relaxed))
    }

    /// The queues, allocated now if they are missing.
    pub(super) fn get_or_init(&self) -> &WaiterQueues {
        // [K-list]
        let mut seen = self.word.load(Ordering::Acquire);
        if let Some(queues) = self.queues_in(seen) {
            return queues;
        }
        let fresh = Recycled::new(WaiterQueues::default()).into_raw();
        loop {
            let next = fresh.as_ptr().map_addr(|address| address | seen.addr());
            match self.swap_word(seen, next) {
                // SAFETY: LAZY-1 - they are in the word now, and live as long as it.
                Ok(()) => return unsafe { fresh.as_ref() },
                Err(now) => seen = now,
            }
            if let Some(queues) = self.queues_in(seen) {
                // SAFETY: LAZY-1 - they never came into the word, so they are still ours.
                drop(unsafe { Recycled::from_raw(fresh) });
                return queues;
            }
        }
    }

    fn queues_in(&self, word: *mut WaiterQueues) -> Option<&WaiterQueues> {
        let queues = word.map_addr(|address| address & !(FLAG | TAKEN));
        // SAFETY: LAZY-1 - null, or queues that live as long as the word.
        unsafe { queues.as_ref() }
    }

    fn swap_word(
        &self,
        seen: *mut WaiterQueues,
        next: *mut WaiterQueues,
    ) -> Result<(), *mut WaiterQueues> {
        self.word
            // [K-list] [K-set]
            .compare_exchange(seen, next, Ordering::AcqRel, Ordering::Acquire)
            .map(drop)
    }
}

impl Drop for LazyWaiters {
    #[inline]
    fn drop(&mut self) {
        let word = self.word.load(Ordering::Relaxed);
        if let Some(queues) = NonNull::new(word.map_addr(|address| address & !(FLAG | TAKEN))) {
            // SAFETY: LAZY-1 - from `into_raw`, and `&mut self` excludes all others.
            drop_queues(unsafe { Recycled::from_raw(queues) });
        }
    }
}

/// Out of line: most tasks have no queues.
#[cold]
fn drop_queues(queues: Recycled<WaiterQueues>) {
    drop(queues);
}
