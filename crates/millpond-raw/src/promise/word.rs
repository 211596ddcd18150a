//! The word of a cell: flags, the number of readers, and the number of references to its memory.
//!
//! ```text
//!   bits 0..8    flags
//!   bits 8..36   readers
//!   bits 36..64  references to the memory
//! ```
//!
//! A count that comes near its limit of 2^28 aborts the process, as that of `Arc` does: only a program that forgets handles
//! gets there.

use crate::sync::atomic::{AtomicU64, Ordering};

/// The value is written or dropped, and whoever completed the cell does not look at it any more.
pub(super) const DONE: u64 = 1;
/// There is no value: it was moved out, or nobody wanted it.
pub(super) const TAKEN: u64 = 2;
/// The right to complete the cell is claimed.
pub(super) const RESULT: u64 = 4;
/// The body is claimed, or there is none.
pub(super) const BODY: u64 = 8;
/// A source has fired.
pub(super) const FIRED: u64 = 16;
/// The thread that has claimed the body may give it back.
pub(super) const PEEK: u64 = 32;

pub(super) const READER: u64 = 1 << 8;
pub(super) const MEMORY: u64 = 1 << 36;
const READERS: u64 = MEMORY - READER;
/// Half of the range: threads that have added and not looked yet do not overflow the rest.
const MOST: u64 = 1 << 27;

/// The word of a cell whose body is put in again: claimed with PEEK, and no source has fired.
pub(super) fn waiting_again(word: u64) -> u64 {
    (word | PEEK) & !FIRED
}

/// A reading of the word.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen(u64);

impl Seen {
    #[inline]
    pub(super) fn has(self, flag: u64) -> bool {
        self.0 & flag != 0
    }

    #[inline]
    pub(super) fn readers(self) -> u64 {
        (self.0 & READERS) / READER
    }

    #[inline]
    pub(super) fn memory(self) -> u64 {
        self.0 / MEMORY
    }

    /// A link of this cell will never run a body.
    #[inline]
    pub(super) fn is_dead(self) -> bool {
        self.0 & (BODY | PEEK) == BODY
    }
}

/// The word.
#[derive(Debug)]
pub(super) struct Word(AtomicU64);

impl Word {
    pub(super) fn new(flags: u64, readers: u64, memory: u64) -> Self {
        Word(AtomicU64::new(flags + readers * READER + memory * MEMORY))
    }

    /// For a caller that is ordered by something else.
    #[inline]
    pub(super) fn relaxed(&self) -> Seen {
        Seen(self.0.load(Ordering::Relaxed))
    }

    #[inline]
    pub(super) fn load(&self) -> Seen {
        // [V-count]
        Seen(self.0.load(Ordering::Acquire))
    }

    /// Sets flags, and returns what was there before.
    #[inline]
    pub(super) fn set(&self, flags: u64) -> Seen {
        // [V-body] [V-count]
        Seen(self.0.fetch_or(flags, Ordering::AcqRel))
    }

    /// One more reader, or one more reference to the memory. The caller has one.
    #[inline]
    pub(super) fn add(&self, unit: u64) {
        // Relaxed: the reference of the caller orders it.
        let before = Seen(self.0.fetch_add(unit, Ordering::Relaxed));
        if before.readers() >= MOST || before.memory() >= MOST {
            std::process::abort();
        }
    }

    /// Gives a reader or a reference back, and returns what was there before.
    #[inline]
    pub(super) fn sub(&self, unit: u64) -> Seen {
        // [V-count]
        Seen(self.0.fetch_sub(unit, Ordering::AcqRel))
    }

    /// Gives the sole reader back, and says that there is no value. The caller has just moved it out, so TAKEN is clear.
    #[inline]
    pub(super) fn take(&self) -> Seen {
        let change = TAKEN.wrapping_sub(READER);
        // Relaxed: it is followed by the release of the readers' reference to the memory.
        Seen(self.0.fetch_add(change, Ordering::Relaxed))
    }

    /// Replaces what was seen.
    ///
    /// # Errors
    ///
    /// What is there instead.
    #[inline]
    pub(super) fn replace(&self, seen: Seen, next: impl FnOnce(u64) -> u64) -> Result<(), Seen> {
        let next = next(seen.0);
        // [V-body] [V-count]
        let success = Ordering::AcqRel;
        // Relaxed: the caller tries again, or leaves the cell alone.
        let failure = Ordering::Relaxed;
        let replaced = self.0.compare_exchange_weak(seen.0, next, success, failure);
        replaced.map(drop).map_err(Seen)
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn counts_and_flags_do_not_touch_each_other() {
        let word = Word::new(BODY, 2, 3);
        word.add(READER);
        word.add(MEMORY);
        let _ = word.set(RESULT);
        let seen = word.load();
        assert_eq!((seen.readers(), seen.memory()), (3, 4));
        assert!(seen.has(RESULT) && seen.has(BODY) && !seen.has(DONE) && seen.is_dead());
        let _ = word.sub(READER);
        let _ = word.sub(READER);
        let before = word.take();
        assert_eq!(before.readers(), 1);
        let seen = word.load();
        assert_eq!((seen.readers(), seen.memory()), (0, 4));
        assert!(seen.has(TAKEN));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_reader_too_many_ends_the_process() {
        use crate::fork::{Child, run_in_child};
        for unit in [READER, MEMORY] {
            let add = move |count: u64| {
                let word = Word(AtomicU64::new(count * unit));
                word.add(unit);
                7
            };
            let below = run_in_child(30, || add(MOST - 1)).unwrap();
            assert_eq!(below, Child::Exited(7));
            let above = run_in_child(30, || add(MOST)).unwrap();
            assert_eq!(above, Child::Killed(libc::SIGABRT));
        }
    }
}
