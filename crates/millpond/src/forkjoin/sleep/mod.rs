//! How workers fall asleep and are woken. The protocol, and why no work is lost, is in `README.md` beside this file.
//!
//! ```text
//!    63            48 47            32 31            16 15             0
//!   +----------------+----------------+----------------+----------------+
//!   |    joining     |    blocked     |    sleeping    |   searching    |
//!   +----------------+----------------+----------------+----------------+
//! ```
//!
//! # Invariants
//!
//! - **SLEEP-1** A worker is *searching* from [`Sleep::begin_search`] on until it has found work, leaves, or sleeps. A
//!   worker that is woken counts as searching from the moment at which it is taken off the list of sleepers.
//! - **SLEEP-2** `sleeping` is the length of the list, and changes under its lock. Each change of the word moves workers
//!   between fields by one addition, and no field is below zero after any step. So none borrows from another.
//!   A worker is in one field at most, and there are fewer than 2^16, so none overflows.
//! - **SLEEP-3** A thread that has made work visible asks [`Sleep::needs_wake`], and wakes a sleeper, or starts a worker,
//!   unless a worker searches.
//! - **SLEEP-4** A worker that stops searching, or is on the list of sleepers, looks for work once more. The last one that
//!   stops searching because it has found work wakes another if there is more.
//!
//! Blocked workers, and those that wait in a join, are in the word for the sake of [`super::spares`].
//!
//! # Orderings
//!
//! - `[S-word]` Store-load: work is made visible, then the word is read, with a fence between; the word is changed, then
//!   work is looked for, with a fence between. One of the two sees the other. A worker that blocks is one of those
//!   that change the word. The fence of a worker that pushes on its own deque may be a light one
//!   ([`Deque::order`](super::deque::Deque::order)), so those that change the word look through
//!   [`finds_work`](super::engine::ForkJoinEngine::finds_work), which settles that.
//!
//! `[S-ask]`, `[S-slot]` and `[S-help]` are in [`super::slot`], `[S-quiet]` in [`super::quiescence`].

use millpond_raw::cache_padded::CachePadded;
use millpond_raw::sync::Mutex;
use millpond_raw::sync::atomic::{AtomicU64, Ordering, fence};

const SEARCHING: u64 = 1;
const SLEEPING: u64 = 1 << 16;
const BLOCKED: u64 = 1 << 32;
const JOINING: u64 = 1 << 48;
const MASK: u64 = 0xffff;

/// Why a worker that runs something does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// It is blocked by what it runs: a queue, a handle, a sleep, or what [`blocking`](super::blocking()) was told.
    Blocked,
    /// It waits for jobs that others run, and finds nothing to help with.
    Joining,
}

impl Wait {
    fn unit(self) -> u64 {
        match self {
            Wait::Blocked => BLOCKED,
            Wait::Joining => JOINING,
        }
    }
}

/// A copy of the word, as it was at one moment.
#[derive(Clone, Copy)]
pub(super) struct Idle(u64);

impl Idle {
    pub(super) fn searching(self) -> usize {
        (self.0 & MASK) as usize
    }

    pub(super) fn sleeping(self) -> usize {
        (self.0 >> 16 & MASK) as usize
    }

    pub(super) fn blocked(self) -> usize {
        (self.0 >> 32 & MASK) as usize
    }

    pub(super) fn joining(self) -> usize {
        (self.0 >> 48) as usize
    }

    /// Workers that run something and do not go on, for whatever reason.
    pub(super) fn waiting(self) -> usize {
        self.blocked() + self.joining()
    }

    /// Workers that run nothing.
    pub(super) fn count(self) -> usize {
        self.searching() + self.sleeping()
    }
}

/// The workers of a pool that have nothing to do.
#[derive(Default)]
pub(super) struct Sleep {
    word: CachePadded<AtomicU64>,
    /// Their slots, the one that fell asleep last at the end: its cache is the warmest.
    sleepers: Mutex<Vec<u32>>,
    /// How often a worker has fallen asleep.
    falls: AtomicU64,
}

impl Sleep {
    #[inline]
    pub(super) fn read(&self) -> Idle {
        // Relaxed: a hint, or behind a fence of the caller's.
        Idle(self.word.load(Ordering::Relaxed))
    }

    /// How often a worker has fallen asleep.
    pub(super) fn falls(&self) -> u64 {
        self.falls.load(Ordering::Relaxed)
    }

    pub(super) fn begin_search(&self) {
        self.word.fetch_add(SEARCHING, Ordering::Relaxed);
    }

    /// Stops searching. Returns whether nobody else does: then the caller looks for work once more (SLEEP-4).
    pub(super) fn end_search(&self) -> bool {
        let before = Idle(self.word.fetch_sub(SEARCHING, Ordering::Relaxed));
        debug_assert!(before.searching() > 0, "SLEEP-2");
        // [S-word]
        fence(Ordering::SeqCst);
        before.searching() == 1
    }

    /// The searching worker in this slot goes on the list of sleepers. It looks for work once more before it parks
    /// (SLEEP-4).
    pub(super) fn begin_sleep(&self, slot: u32) {
        let mut sleepers = self.sleepers.lock();
        sleepers.push(slot);
        self.falls.fetch_add(1, Ordering::Relaxed);
        // [S-quiet]
        let asleep = (SLEEPING - SEARCHING, Ordering::Release);
        let before = Idle(self.word.fetch_add(asleep.0, asleep.1));
        debug_assert!(before.searching() > 0, "SLEEP-2");
        drop(sleepers);
        // [S-word] [S-ask]
        fence(Ordering::SeqCst);
    }

    /// The worker in this slot is awake and searches, whether another thread has woken it or not (SLEEP-1). Returns
    /// whether another one has.
    pub(super) fn end_sleep(&self, slot: u32) -> bool {
        let mut sleepers = self.sleepers.lock();
        let found = sleepers.iter().rposition(|each| *each == slot);
        if let Some(index) = found {
            sleepers.remove(index);
            self.word.fetch_sub(SLEEPING - SEARCHING, Ordering::Relaxed);
        }
        drop(sleepers);
        // [S-quiet]
        fence(Ordering::Release);
        found.is_none()
    }

    /// Whether the worker in this slot is on the list of sleepers.
    pub(super) fn is_asleep(&self, slot: u32) -> bool {
        self.sleepers.lock().contains(&slot)
    }

    /// Takes a sleeper off the list. The caller wakes it.
    pub(super) fn take_sleeper(&self) -> Option<u32> {
        let mut sleepers = self.sleepers.lock();
        let slot = sleepers.pop()?;
        self.word.fetch_sub(SLEEPING - SEARCHING, Ordering::Relaxed);
        Some(slot)
    }

    /// Takes all sleepers off the list. The caller wakes them.
    pub(super) fn take_all(&self) -> Vec<u32> {
        let mut sleepers = self.sleepers.lock();
        let all = std::mem::take(&mut *sleepers);
        let change = all.len() as u64 * (SLEEPING - SEARCHING);
        self.word.fetch_sub(change, Ordering::Relaxed);
        all
    }

    /// A worker that runs something waits from now on. It looks for work behind this (SPARE-2). Returns the word as it is
    /// then.
    pub(super) fn begin_wait(&self, wait: Wait) -> Idle {
        self.word.fetch_add(wait.unit(), Ordering::Relaxed);
        // [S-word] [S-ask] [S-help]
        fence(Ordering::SeqCst);
        self.read()
    }

    /// The worker goes on. Nobody depends on when that is seen.
    pub(super) fn end_wait(&self, wait: Wait) {
        let before = self.word.fetch_sub(wait.unit(), Ordering::Relaxed);
        debug_assert!(Idle(before).waiting() > 0, "SLEEP-2");
    }

    /// Work has been made visible. Returns the word if nobody searches: a sleeper is to be woken, or a worker to be
    /// started (SLEEP-3).
    #[inline]
    pub(super) fn needs_wake(&self) -> Option<Idle> {
        // [S-word]
        fence(Ordering::SeqCst);
        self.lacks_searcher()
    }

    /// As [`needs_wake`](Sleep::needs_wake), behind a fence of the caller's.
    #[inline]
    pub(super) fn lacks_searcher(&self) -> Option<Idle> {
        let idle = self.read();
        (idle.searching() == 0).then_some(idle)
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;

    fn counts(sleep: &Sleep) -> (usize, usize) {
        (sleep.read().searching(), sleep.read().sleeping())
    }

    #[test]
    fn the_fields_of_the_word_do_not_bleed_into_each_other() {
        let sleep = Sleep::default();
        for round in 0..1_000_000_u32 {
            let slot = round % 7;
            sleep.begin_search();
            sleep.begin_sleep(slot);
            assert_eq!(counts(&sleep), (0, 1));
            if round % 2 == 0 {
                assert_eq!(sleep.take_sleeper(), Some(slot));
                assert!(sleep.end_sleep(slot), "it was woken");
            } else {
                assert!(!sleep.end_sleep(slot));
            }
            assert_eq!(counts(&sleep), (1, 0));
            assert!(sleep.end_search());
        }
        assert_eq!(sleep.read().0, 0);
    }

    #[test]
    fn fields_that_are_full_to_the_brim_do_not_bleed_into_each_other() {
        let sleep = Sleep::default();
        let full = MASK * (BLOCKED + JOINING) + (MASK - 1) * (SEARCHING + SLEEPING);
        sleep.word.store(full, Ordering::Relaxed);
        sleep.begin_search();
        assert!(!sleep.end_search());
        for wait in [Wait::Blocked, Wait::Joining] {
            sleep.end_wait(wait);
            let idle = sleep.begin_wait(wait);
            assert_eq!((idle.blocked(), idle.joining()), (0xffff, 0xffff));
            assert_eq!((idle.searching(), idle.sleeping()), (0xfffe, 0xfffe));
        }
        assert_eq!(sleep.read().0, full);
    }

    #[test]
    fn the_last_to_fall_asleep_is_woken_first_and_all_at_once_if_wanted() {
        let sleep = Sleep::default();
        for slot in 0..3 {
            sleep.begin_search();
            sleep.begin_sleep(slot);
        }
        assert_eq!(sleep.needs_wake().map(Idle::sleeping), Some(3));
        assert_eq!(sleep.take_sleeper(), Some(2));
        assert!(sleep.needs_wake().is_none(), "it searches");
        assert_eq!(sleep.take_all(), [0, 1]);
        assert_eq!(counts(&sleep), (3, 0));
        assert!(sleep.take_sleeper().is_none() && sleep.take_all().is_empty());
        assert!(!sleep.end_search() && !sleep.end_search() && sleep.end_search());
    }
}
