//! What a worker is running, published for observers: a sequence number, a start time and a kind.
//!
//! One thread, the owner, writes; any thread reads. It works like a seqlock: the owner never waits and needs
//! no locked instruction, and a reader gets parts that belong together, or nothing.
//!
//! ```text
//!   owner, for each run:   number = n; kind, if it changes; since = t;  ...  since = 0
//!   reader:                number; since; kind; whatever else; number again: the same?
//! ```
//!
//! # Why the parts belong together
//!
//! Let a reader see the number `n` at both looks, and a `since` that is not 0.
//!
//! - `[R-turn]` The number is stored with release and first read with acquire. So the reader sees that the
//!   run before `n` has ended: what it reads of `since` is the 0 at that end, or later. A reader of the number alone
//!   ([`Activity::begun`]) sees what the owner did before it.
//! - `[R-since]` `since` and `kind` are stored with release and read with acquire. A reader that sees one of
//!   them from run `m` sees the number `m`, or a later one, at its second look: so `m` is not above `n`.
//!
//! So `since` belongs to run `n`, and so does `kind`, which is stored before it. Whatever else a reader looks
//! at in between belongs to the run as well, if the owner stores it after the number and before `since`, with
//! release, and the reader loads it with acquire.

use crate::sync::atomic::{AtomicU64, Ordering};

/// How often a reader retries if the owner has gone on meanwhile.
const TRIES: u32 = 8;

/// What one thread is running.
///
/// ```
/// use millpond_raw::activity::Activity;
///
/// let activity = Activity::new();
/// activity.begin();
/// activity.set_kind(7);
/// activity.set_since(1_000);
/// let seen = activity.read(|| ()).unwrap();
/// assert_eq!((seen.number, seen.since, seen.kind), (1, 1_000, 7));
/// activity.end();
/// assert!(activity.read(|| ()).is_none());
/// ```
#[derive(Debug)]
pub struct Activity {
    number: AtomicU64,
    since: AtomicU64,
    kind: AtomicU64,
}

/// A consistent snapshot of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActivitySnapshot<R> {
    /// The sequence number of the run.
    pub number: u64,
    /// When it started; never 0.
    pub since: u64,
    /// Its kind.
    pub kind: u64,
    /// What the reader's closure returned.
    pub extra: R,
}

impl Activity {
    /// Nothing has run yet.
    pub fn new() -> Self {
        Activity {
            number: AtomicU64::new(0),
            since: AtomicU64::new(0),
            kind: AtomicU64::new(0),
        }
    }

    /// Begins a run, after the end of the one before. For the owner.
    #[inline]
    pub fn begin(&self) {
        // Relaxed: only the owner writes it.
        let next = self.number.load(Ordering::Relaxed).wrapping_add(1);
        // [R-turn]
        self.number.store(next, Ordering::Release);
    }

    /// The sequence number of the run. For the owner.
    #[inline]
    pub fn number(&self) -> u64 {
        self.number.load(Ordering::Relaxed)
    }

    /// How many runs have begun. A reader sees what the owner did before it began the last of them.
    #[inline]
    pub fn begun(&self) -> u64 {
        // [R-turn]
        self.number.load(Ordering::Acquire)
    }

    /// The kind that was set last. For the owner.
    #[inline]
    pub fn kind(&self) -> u64 {
        self.kind.load(Ordering::Relaxed)
    }

    /// Sets the kind of the run, if it differs from the one before. For the owner.
    #[inline]
    pub fn set_kind(&self, kind: u64) {
        // [R-since]
        self.kind.store(kind, Ordering::Release);
    }

    /// Publishes the run with its start time, which is not 0. For the owner.
    #[inline]
    pub fn set_since(&self, since: u64) {
        // [R-since]
        self.since.store(since, Ordering::Release);
    }

    /// Ends the run. For the owner. Relaxed: the next `begin` releases this, too.
    #[inline]
    pub fn end(&self) {
        self.since.store(0, Ordering::Relaxed);
    }

    /// The current run, with what `extra` returns; `None` if there is none, or runs follow one another too
    /// fast to be observed.
    pub fn read<R>(&self, mut extra: impl FnMut() -> R) -> Option<ActivitySnapshot<R>> {
        for _ in 0..TRIES {
            // [R-turn]
            let number = self.number.load(Ordering::Acquire);
            // [R-since]
            let since = self.since.load(Ordering::Acquire);
            if since == 0 {
                return None;
            }
            // [R-since]
            let kind = self.kind.load(Ordering::Acquire);
            let extra = extra();
            // Ordered after the loads above, which all acquire.
            if self.number.load(Ordering::Relaxed) == number {
                return Some(ActivitySnapshot {
                    number,
                    since,
                    kind,
                    extra,
                });
            }
        }
        None
    }
}

impl Default for Activity {
    fn default() -> Self {
        Activity::new()
    }
}
