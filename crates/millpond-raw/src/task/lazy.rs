//! The lists of those who wait, made when the first of them comes: one word in every task cell.
//!
//! ```text
//!   word:  pointer to the lists (null until somebody waits)  | FLAG
//! ```
//!
//! Nearly no task is joined by somebody who has to wait for it, and fewer still block in an
//! interruptible call. So a cell has one word for both lists, and the memory behind it is had when it
//! is needed, from the slabs that cells come from. The flag is the interrupt token's; it is in the
//! same word so that raising it and adding the lists cannot miss each other.
//!
//! # Invariants
//!
//! - **K1** The pointer in the word is null or came from [`Recycled::into_raw`]; once it is not null it
//!   never changes, until the word is dropped, which frees it.
//! - **K2** Who finds no lists adds them by CAS; whoever raises the flag does so by CAS on the same word.
//!   So either who raises it sees the lists, or who waits sees the flag.
//!
//! # Orderings
//!
//! - `[K-list]` The CAS that adds the lists releases them; whoever reads the pointer acquires them.
//! - `[K-set]` The CAS that raises the flag releases what its thread wrote before; whoever finds it up,
//!   by looking or by lowering it, acquires that.

use crate::recycle::Recycled;
use crate::sync::atomic::{AtomicPtr, Ordering};
use crate::waits::Waits;
use core::ptr::{self, NonNull};

const FLAG: usize = 1;

/// Those who wait because of one task.
#[derive(Debug, Default)]
pub(super) struct Lists {
    /// Its body, where it blocks: woken by an interrupt.
    pub(super) blocked: Waits,
    /// Its handles: woken when it is finished.
    pub(super) joiners: Waits,
}

/// A flag, and lists that are made when they are needed.
pub(super) struct LazyLists {
    word: AtomicPtr<Lists>,
}

impl LazyLists {
    /// The flag is down and there are no lists.
    pub(super) fn new() -> Self {
        LazyLists {
            word: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Whether the flag is up.
    pub(super) fn is_flagged(&self) -> bool {
        // [K-set]
        self.word.load(Ordering::Acquire).addr() & FLAG != 0
    }

    /// Raises the flag. Returns the lists of those who have to be told, if it was down and there are
    /// any.
    pub(super) fn raise(&self) -> Option<&Lists> {
        let mut seen = self.word.load(Ordering::Relaxed);
        while seen.addr() & FLAG == 0 {
            match self.swap_word(seen, seen.map_addr(|address| address | FLAG)) {
                Ok(()) => return self.behind(seen),
                Err(now) => seen = now,
            }
        }
        None
    }

    /// Lowers the flag, and returns whether it was up.
    pub(super) fn lower(&self) -> bool {
        let mut seen = self.word.load(Ordering::Relaxed);
        while seen.addr() & FLAG != 0 {
            match self.swap_word(seen, seen.map_addr(|address| address & !FLAG)) {
                Ok(()) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// The lists, if they have been made before something that the caller has seen: it has a ticket of
    /// theirs, or knows of a waiter. Whoever has seen neither may find none, though there are.
    ///
    /// Relaxed for that reason.
    pub(super) fn known(&self) -> Option<&Lists> {
        self.behind(self.word.load(Ordering::Relaxed))
    }

    /// The lists, made now if nobody has made them.
    pub(super) fn get_or_make(&self) -> &Lists {
        // [K-list]
        let mut seen = self.word.load(Ordering::Acquire);
        if let Some(lists) = self.behind(seen) {
            return lists;
        }
        let fresh = Recycled::new(Lists::default()).into_raw();
        loop {
            let next = fresh.as_ptr().map_addr(|address| address | seen.addr());
            match self.swap_word(seen, next) {
                // SAFETY: K1 - they are in the word now, and live as long as it.
                Ok(()) => return unsafe { fresh.as_ref() },
                Err(now) => seen = now,
            }
            if let Some(lists) = self.behind(seen) {
                // SAFETY: K1 - they never came into the word, so they are still ours alone.
                drop(unsafe { Recycled::from_raw(fresh) });
                return lists;
            }
        }
    }

    fn behind(&self, word: *mut Lists) -> Option<&Lists> {
        let lists = word.map_addr(|address| address & !FLAG);
        // SAFETY: K1 - null, or lists that live as long as the word.
        unsafe { lists.as_ref() }
    }

    fn swap_word(&self, seen: *mut Lists, next: *mut Lists) -> Result<(), *mut Lists> {
        self.word
            // [K-list] [K-set]
            .compare_exchange(seen, next, Ordering::AcqRel, Ordering::Acquire)
            .map(drop)
    }
}

impl Drop for LazyLists {
    #[inline]
    fn drop(&mut self) {
        let word = self.word.load(Ordering::Relaxed);
        if let Some(lists) = NonNull::new(word.map_addr(|address| address & !FLAG)) {
            // SAFETY: K1 - from `into_raw`, and `&mut self` says that nobody else looks.
            drop_lists(unsafe { Recycled::from_raw(lists) });
        }
    }
}

/// Most tasks have none, and their end is shorter without this in it.
#[cold]
fn drop_lists(lists: Recycled<Lists>) {
    drop(lists);
}
