//! What a thread is at, shown to others: the how manieth turn it is, since when, and what kind.
//!
//! One thread, the owner, writes; anybody reads. The owner never waits and needs no locked instruction, and
//! a reader gets parts that belong together, or nothing.
//!
//! ```text
//!   owner, for each turn:   number = n; kind, if it changes; since = t;  ...  since = 0
//!   reader:                 number; since; kind; whatever else; number again: the same?
//! ```
//!
//! # Why the parts belong together
//!
//! Let a reader see the number `n` at first and at last, and a `since` that is not 0.
//!
//! - `[R-turn]` The number is stored with release and first read with acquire. So the reader sees that the
//!   turn before `n` is over: what it reads of `since` is the 0 at its end, or later.
//! - `[R-since]` `since` and `kind` are stored with release and read with acquire. Whoever reads one of a
//!   turn `m` sees the number `m`, or a later one, at the second look, because that comes after: so `m` is not
//!   above `n`.
//!
//! So `since` is that of the turn `n`, and `kind`, which is stored before it, is too. What else a reader looks
//! at in between belongs to it as well, if the owner stores it after the number and before `since`, with
//! release, and the reader loads it with acquire.

use crate::sync::atomic::{AtomicU64, Ordering};

/// How often a reader looks again if the owner has gone on meanwhile.
const TRIES: u32 = 8;

/// The turns of one thread.
///
/// ```
/// use millpond_raw::turns::Turns;
///
/// let turns = Turns::new();
/// turns.begin();
/// turns.set_kind(7);
/// turns.set_since(1_000);
/// let seen = turns.read(|| ()).unwrap();
/// assert_eq!((seen.number, seen.since, seen.kind), (1, 1_000, 7));
/// turns.end();
/// assert!(turns.read(|| ()).is_none());
/// ```
#[derive(Debug)]
pub struct Turns {
    number: AtomicU64,
    since: AtomicU64,
    kind: AtomicU64,
}

/// A turn, as a reader has seen it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen<R> {
    /// The how manieth it is.
    pub number: u64,
    /// Since when it is going on; never 0.
    pub since: u64,
    /// Of which kind it is.
    pub kind: u64,
    /// What else was looked at.
    pub more: R,
}

impl Turns {
    /// None yet.
    pub fn new() -> Self {
        Turns {
            number: AtomicU64::new(0),
            since: AtomicU64::new(0),
            kind: AtomicU64::new(0),
        }
    }

    /// The owner begins a turn, and has ended the one before.
    #[inline]
    pub fn begin(&self) {
        // Only the owner writes it.
        let next = self.number.load(Ordering::Relaxed).wrapping_add(1);
        // [R-turn] unmodelled: proved in the header; the scenario turns does not notice each one alone
        self.number.store(next, Ordering::Release);
    }

    /// The how manieth turn it is, for the owner.
    #[inline]
    pub fn number(&self) -> u64 {
        self.number.load(Ordering::Relaxed)
    }

    /// Of which kind the turn is, or the last one that said so; for the owner.
    #[inline]
    pub fn kind(&self) -> u64 {
        self.kind.load(Ordering::Relaxed)
    }

    /// The owner says of which kind the turn is, if not of the same as the one before.
    #[inline]
    pub fn set_kind(&self, kind: u64) {
        // [R-since] unmodelled: proved in the header; the scenario turns does not notice each one alone
        self.kind.store(kind, Ordering::Release);
    }

    /// The owner shows the turn, and since when it is going on, which is not 0.
    #[inline]
    pub fn set_since(&self, since: u64) {
        // [R-since] unmodelled: proved in the header; the scenario turns does not notice each one alone
        self.since.store(since, Ordering::Release);
    }

    /// The owner ends the turn. What begins next releases this, too.
    #[inline]
    pub fn end(&self) {
        self.since.store(0, Ordering::Relaxed);
    }

    /// The present turn, with what `more` finds; `None` if there is none, or one follows another too fast to
    /// be seen.
    pub fn read<R>(&self, mut more: impl FnMut() -> R) -> Option<Seen<R>> {
        for _ in 0..TRIES {
            // [R-turn] unmodelled: proved in the header; the scenario turns does not notice each one alone
            let number = self.number.load(Ordering::Acquire);
            // [R-since] unmodelled: proved in the header; the scenario turns does not notice each one alone
            let since = self.since.load(Ordering::Acquire);
            if since == 0 {
                return None;
            }
            // [R-since] unmodelled: proved in the header; the scenario turns does not notice each one alone
            let kind = self.kind.load(Ordering::Acquire);
            let more = more();
            // After what was read above, which was all acquired.
            if self.number.load(Ordering::Relaxed) == number {
                return Some(Seen {
                    number,
                    since,
                    kind,
                    more,
                });
            }
        }
        None
    }
}

impl Default for Turns {
    fn default() -> Self {
        Turns::new()
    }
}
