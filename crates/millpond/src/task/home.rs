//! Where a task waits to be run, as far as its handles need to know: a counter that they can reach, and
//! a number by which a worker knows the tasks of its own engine.
//!
//! A task that is cancelled while it is in a queue leaves an empty shell there, until its turn comes or
//! somebody clears it out; so does one that a waiter runs in place. Clearing out means walking the
//! queue, which is worth it only if there are shells. So an engine with a queue has a home and tells
//! it to every task that it takes in, and each handle that empties a task counts it there. An engine
//! whose queue is full looks at its count before it walks.
//!
//! A task has room for a *number* of 15 bits, and not for a pointer. The counters are statics, one for each
//! number. So a task may outlive its engine and still count, which harms nobody, and nothing has to be
//! kept alive for it.
//!
//! # Numbers
//!
//! A worker that joins a task of its own engine runs it in place ([`super::in_place`]), and knows it by the
//! number. So no task may be taken for one of another engine, however many engines there are, were or will be:
//!
//! - **N1** An engine has a number that no other engine has, as long as there are numbers left: 32,766. Those
//!   that come later share the last one.
//! - **N2** A number is used again when its engine is gone, and with it the engine's queue. Whatever was in a
//!   queue of ours is claimed by then: run, or cancelled with the queue. (Whatever left it unclaimed has
//!   left home, H3.) Nobody runs what is claimed, so nobody asks whose it is.
//! - **N3** A queue of the user's may be somebody else's too, and keep its tasks when the engine is gone. So
//!   the number of an engine with such a queue goes only to an engine with such a queue.
//! - **N4** Whoever has a number that it shares (N1), or a used one of the kind of N3, does not trust it: it
//!   takes a task for its own only if it finds it in its own queue. That takes a walk, of those who have
//!   more than 32,766 engines, or build engines with queues of their own again and again; and of
//!   nobody else.
//!
//! # Rules
//!
//! - **H1** The count only goes up. An engine remembers what it has seen, and reads the count *before*
//!   it walks: what is counted during the walk is a reason for the next one. If others count there, too (N1,
//!   N2), it walks now and then for the shells of another.
//! - **H2** A handle empties first and counts second. So whoever sees the count finds the shell.
//! - **H3** Only what is in a queue has its home there. A task leaves home once: when its engine gives it
//!   away again, refused or handed back, or when a worker has claimed it to run it in place. Who makes
//!   it leave counts it.
//!
//! # Orderings
//!
//! - `[H-leave]` is explained in [`super::in_place`], where its other end is.
//! - `[H-gone]` Counting releases, reading the count acquires: H2 across threads. Without it an engine could
//!   see the count and not the shell, would note that it has seen the count, and would not look for that
//!   shell again: its queue stays full.
//!
//! Both are modelled in `tests/loom_library/home.rs`.

use crate::time::Stamp;
use millpond_raw::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use millpond_raw::sync::{Mutex, global};

/// How many numbers there are, 0 included, which means none. Few in models: each of the counters is made
/// anew for each walk.
const NUMBERS: usize = match cfg!(any(millpond_loom, millpond_shuttle)) {
    false => 1 << NUMBER_BITS,
    true => 1 << 4,
};

/// The number that all engines share for which there is no other (N1).
const SHARED: u32 = NUMBERS as u32 - 1;

#[cfg(not(any(millpond_loom, millpond_shuttle)))]
const fn no_counts() -> [AtomicUsize; NUMBERS] {
    [const { AtomicUsize::new(0) }; NUMBERS]
}

#[cfg(any(millpond_loom, millpond_shuttle))]
fn no_counts() -> [AtomicUsize; NUMBERS] {
    std::array::from_fn(|_| AtomicUsize::new(0))
}

global! {
    /// By number. All zero at first, so that memory is taken only for those that are used.
    static GONE: [AtomicUsize; NUMBERS] = no_counts();
}

global! {
    static FREE: Mutex<Numbers> = Mutex::new(Numbers::new());
}

/// The table of free numbers is in order at forks.
pub(super) fn keep_at_forks() {
    #[cfg(not(any(millpond_loom, millpond_shuttle)))]
    millpond_raw::fork::keep(&FREE);
}

/// The numbers that no engine has.
struct Numbers {
    /// All from here on have never been used.
    next: u32,
    used: Vec<u32>,
    /// N3.
    used_by_foreign: Vec<u32>,
}

impl Numbers {
    const fn new() -> Self {
        Numbers {
            next: 1,
            used: Vec::new(),
            used_by_foreign: Vec::new(),
        }
    }

    /// A number, and whether it can be trusted (N4).
    fn take(&mut self, kind: Kind) -> (u32, bool) {
        if kind == Kind::Ours {
            if let Some(number) = self.used.pop() {
                return (number, true);
            }
        }
        // A new one can be trusted. Those of N3 come back to their own kind alone, so they take half at most.
        let end = match kind {
            Kind::Ours => SHARED,
            Kind::Foreign => SHARED / 2,
        };
        if self.next < end {
            self.next += 1;
            return (self.next - 1, true);
        }
        match kind {
            Kind::Ours => (SHARED, false),
            Kind::Foreign => (self.used_by_foreign.pop().unwrap_or(SHARED), false),
        }
    }

    fn give_back(&mut self, number: u32, kind: Kind) {
        if number != SHARED {
            match kind {
                Kind::Ours => self.used.push(number),
                Kind::Foreign => self.used_by_foreign.push(number),
            }
        }
    }
}

/// Whose queue it is that an engine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nobody else has it.
    Ours,
    /// The user's (N3).
    Foreign,
}

/// What an engine has for its queue: a number for its tasks, and a count of those that were emptied by their
/// handles before the engine could start them. To be dropped after the queue (N2).
#[derive(Debug)]
pub(crate) struct Home {
    /// From 1: a task without a home has 0.
    number: u32,
    /// Whether no other engine's task can have the number (N4).
    is_trusted: bool,
    kind: Kind,
    /// The engine, which no other one is.
    engine: u64,
}

impl Home {
    /// For an engine that is being built.
    pub(crate) fn take(kind: Kind) -> Self {
        let (number, is_trusted) = FREE.lock().take(kind);
        Home {
            number,
            is_trusted,
            kind,
            engine: next_engine(),
        }
    }

    /// How many have gone so far (H1).
    #[inline]
    pub(crate) fn gone(&self) -> usize {
        // [H-gone]
        GONE[self.number as usize].load(Ordering::Acquire)
    }

    /// Whether the present thread is a worker of the engine that this is the home of.
    pub(crate) fn is_here(&self) -> bool {
        super::in_place::is_at(self.engine)
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

    /// Counts a task that has just been emptied, at the home of this number (H2).
    pub(super) fn count_at(number: u32) {
        if number != 0 {
            // [H-gone]
            GONE[number as usize].fetch_add(1, Ordering::Release);
        }
    }
}

impl Drop for Home {
    /// Not in models: the last engine may go when their statics are gone.
    fn drop(&mut self) {
        if !cfg!(any(millpond_loom, millpond_shuttle)) {
            FREE.lock().give_back(self.number, self.kind);
        }
    }
}

/// From 1; so many that they do not come round.
fn next_engine() -> u64 {
    #![allow(
        clippy::disallowed_types,
        reason = "a static outlives every model, and only tells engines apart"
    )]
    use std::sync::atomic::{AtomicU64, Ordering};
    static ENGINES: AtomicU64 = AtomicU64::new(1);
    ENGINES.fetch_add(1, Ordering::Relaxed)
}

/// Where a task waits and since when, in one word: the number of its home, and a stamp; and whether it is
/// kept under overload, which is said when it is made and never changes.
/// ```text
///   63           49   48  47                     0
///   [    home    ] [kept] [         stamp         ]
/// ```
#[derive(Debug)]
pub(super) struct Address {
    word: AtomicU64,
}

const KEPT: u64 = 1 << Stamp::BITS;
const HOME_SHIFT: u32 = Stamp::BITS + 1;
const NUMBER_BITS: u32 = u64::BITS - HOME_SHIFT;

const NO_HOME: u64 = (1 << HOME_SHIFT) - 1;

impl Address {
    pub(super) fn none(is_kept: bool) -> Self {
        Address {
            word: AtomicU64::new(if is_kept { KEPT } else { 0 }),
        }
    }

    pub(super) fn is_kept(&self) -> bool {
        self.word() & KEPT != 0
    }

    /// Relaxed: whoever empties a task that is in no queue yet leaves a shell that its engine sees, for
    /// it still has it in its hands.
    #[inline]
    pub(super) fn set(&self, home: Option<&Home>, stamp: Stamp) {
        let number = home.map_or(0, |home| u64::from(home.number));
        let kept = self.word() & KEPT;
        let word = number << HOME_SHIFT | kept | stamp.bits();
        self.word.store(word, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn word(&self) -> u64 {
        self.word.load(Ordering::Relaxed)
    }

    /// The number of its home; 0 if it has none.
    #[inline]
    pub(super) fn number(&self) -> u32 {
        (self.word() >> HOME_SHIFT) as u32
    }

    /// Its engine gives it away (H3). Returns the number of the home that it has left by this; 0 if it
    /// had left before, or had none.
    pub(super) fn is_given_away(&self) -> u32 {
        // Most that are given away were refused at the door and never had one.
        // [H-leave]
        if self.word.load(Ordering::Acquire) <= NO_HOME {
            return 0;
        }
        // [H-leave]
        let before = self.word.fetch_and(NO_HOME, Ordering::Acquire);
        (before >> HOME_SHIFT) as u32
    }

    /// A worker of its engine has claimed it (H3). Returns what [`is_given_away`](Address::is_given_away)
    /// does.
    pub(super) fn is_claimed_at_home(&self) -> u32 {
        // [H-leave]
        let before = self.word.fetch_and(NO_HOME, Ordering::Release);
        (before >> HOME_SHIFT) as u32
    }

    /// Since when it waits; `None` if no engine has it.
    #[inline]
    pub(super) fn stamp(&self) -> Option<Stamp> {
        let word = self.word();
        (word & !KEPT != 0).then(|| Stamp::from_bits(word))
    }

    /// Counts a task that has just been emptied (H2).
    pub(super) fn count_gone(&self) {
        Home::count_at(self.number());
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests;
