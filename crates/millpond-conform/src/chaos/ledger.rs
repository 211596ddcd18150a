//! The ledger: an entry for each task, written by its closure, its value and its submitter.
//!
//! All counts are relaxed: a ledger that ordered the threads would hide the races that it is there to
//! find. They are read after all writers have been joined.

use super::shape::Policy;
use millpond::task::{CancelReason, TaskHandle};
use millpond_raw::user_code::{self, Kind};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

thread_local! {
    static PLACE: Cell<Place> = const { Cell::new(Place::Anywhere) };
}

/// In whose hands the present thread has a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The pool's.
    Anywhere,
    /// Its submitter's: it was rejected.
    Submitter,
    /// The caller of `shutdown_now`.
    HandedBack,
    /// The custom rejection policy.
    Policy,
}

impl Place {
    /// Runs `f`, which ends a task in this place.
    pub(crate) fn enter<R>(self, f: impl FnOnce() -> R) -> R {
        struct Back(Place);

        impl Drop for Back {
            fn drop(&mut self) {
                PLACE.set(self.0);
            }
        }

        let _back = Back(PLACE.replace(self));
        f()
    }
}

/// The known facts of a task, bit by bit.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(crate) enum Fact {
    Accepted = 1,
    Rejected = 1 << 1,
    /// It was cancelled or interrupted by its handle.
    Asked = 1 << 2,
    /// That call cancelled it.
    Cancelled = 1 << 3,
    /// It was taken out of the queue.
    Removed = 1 << 4,
    HasHandle = 1 << 5,
    /// The handle was given up before it had an outcome.
    LetGo = 1 << 6,
    Panics = 1 << 7,
    MayExpire = 1 << 8,
    /// It ran, or was dropped, in that place.
    BySubmitter = 1 << 9,
    HandedBack = 1 << 10,
    ByPolicy = 1 << 11,
    /// A job of a scope whose owner cannot be interrupted, or of one that can.
    Job = 1 << 12,
    JobAtRisk = 1 << 13,
}

/// The outcome of a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Value,
    Panicked,
    Cancelled(CancelReason),
}

/// One task.
#[derive(Debug, Default)]
pub(crate) struct Entry {
    facts: AtomicU32,
    runs: AtomicU32,
    drops: AtomicU32,
    values: AtomicU32,
    value_drops: AtomicU32,
    outcome: Mutex<Option<Outcome>>,
}

fn add(count: &AtomicU32) {
    count.fetch_add(1, Ordering::Relaxed);
}

impl Entry {
    pub(crate) fn note(&self, fact: Fact) {
        self.facts.fetch_or(fact as u32, Ordering::Relaxed);
    }

    pub(crate) fn is(&self, fact: Fact) -> bool {
        self.facts.load(Ordering::Relaxed) & fact as u32 != 0
    }

    pub(crate) fn runs(&self) -> u32 {
        self.runs.load(Ordering::Relaxed)
    }

    pub(crate) fn drops(&self) -> u32 {
        self.drops.load(Ordering::Relaxed)
    }

    /// How many values were made, and how many of them dropped.
    pub(crate) fn values(&self) -> (u32, u32) {
        let read = |count: &AtomicU32| count.load(Ordering::Relaxed);
        (read(&self.values), read(&self.value_drops))
    }

    pub(crate) fn outcome(&self) -> Option<Outcome> {
        *lock(&self.outcome)
    }

    pub(crate) fn came_to(&self, outcome: Outcome) {
        *lock(&self.outcome) = Some(outcome);
    }

    fn note_place(&self) {
        match PLACE.get() {
            Place::Anywhere => {}
            Place::Submitter => self.note(Fact::BySubmitter),
            Place::HandedBack => self.note(Fact::HandedBack),
            Place::Policy => self.note(Fact::ByPolicy),
        }
    }

    pub(crate) fn facts(&self) -> String {
        let all = [
            Fact::Accepted,
            Fact::Rejected,
            Fact::Asked,
            Fact::Cancelled,
            Fact::Removed,
            Fact::HasHandle,
            Fact::LetGo,
            Fact::Panics,
            Fact::MayExpire,
            Fact::BySubmitter,
            Fact::HandedBack,
            Fact::ByPolicy,
            Fact::Job,
            Fact::JobAtRisk,
        ];
        let known = all.into_iter().filter(|fact| self.is(*fact));
        known.map(|fact| format!("{fact:?} ")).collect()
    }
}

/// The facts of a round as a whole.
#[derive(Debug, Default)]
pub(crate) struct Whole {
    /// Calls of `execute` that returned `Ok`, and those that did not.
    pub(crate) accepted: AtomicU64,
    pub(crate) rejected: AtomicU64,
    kept_by_policy: AtomicU64,
    /// The tasks that `shutdown_now` returned.
    pub(crate) handed_back: AtomicU64,
    pub(crate) hooks_before: AtomicU64,
    pub(crate) hooks_completed: AtomicU64,
    pub(crate) hooks_gone: AtomicU64,
    pub(crate) hooks_panicked: AtomicU64,
    pub(crate) terminated: AtomicU64,
    pub(crate) may_discard: AtomicBool,
    pub(crate) may_run_outside: AtomicBool,
    /// Tasks may be shed, or may have been.
    pub(crate) may_shed: AtomicBool,
    /// Threads may fail to start.
    pub(crate) may_fail: AtomicBool,
}

impl Whole {
    /// This policy plays in the round.
    pub(crate) fn allow(&self, policy: Policy) {
        match policy {
            Policy::Discard | Policy::DiscardOldest => {
                self.may_discard.store(true, Ordering::Relaxed);
            }
            Policy::NewThread(_) => self.may_run_outside.store(true, Ordering::Relaxed),
            _ => {}
        }
    }

    pub(crate) fn kept_by_policy(&self) {
        self.kept_by_policy.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn policy_kept(&self) -> u64 {
        self.kept_by_policy.load(Ordering::Relaxed)
    }
}

/// Handles that have not been joined, with the numbers of their tasks.
type Pouch = Mutex<Vec<(usize, TaskHandle<Value>)>>;

/// All tasks of a round.
#[derive(Debug)]
pub(crate) struct Ledger {
    entries: Vec<Entry>,
    next: AtomicUsize,
    pub(crate) round: Whole,
    /// Joined when the pool is over.
    pub(crate) unjoined: Pouch,
    wrong: Mutex<Vec<String>>,
}

impl Ledger {
    /// For at most `most` tasks; more cannot be submitted.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Ledger {
            entries: (0..most).map(|_| Entry::default()).collect(),
            next: AtomicUsize::new(0),
            round: Whole::default(),
            unjoined: Mutex::default(),
            wrong: Mutex::default(),
        })
    }

    /// A new task.
    pub(crate) fn open(self: &Arc<Self>) -> Option<Stub> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        (id < self.entries.len()).then(|| Stub {
            ledger: Arc::clone(self),
            id,
        })
    }

    pub(crate) fn entry(&self, id: usize) -> &Entry {
        &self.entries[id]
    }

    /// How many tasks there are.
    pub(crate) fn len(&self) -> usize {
        self.next.load(Ordering::Relaxed).min(self.entries.len())
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (usize, &Entry)> {
        self.entries[..self.len()].iter().enumerate()
    }

    /// Something is wrong.
    pub(crate) fn wrong(&self, what: String) {
        lock(&self.wrong).push(what);
    }

    pub(crate) fn all_wrong(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.wrong))
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Owned by a closure: counts how often the closure runs, and how often it is dropped.
#[derive(Debug)]
pub(crate) struct Stub {
    ledger: Arc<Ledger>,
    pub(crate) id: usize,
}

impl Stub {
    pub(crate) fn entry(&self) -> &Entry {
        self.ledger.entry(self.id)
    }

    /// The closure runs, and makes its value.
    pub(crate) fn runs(&self) -> Value {
        let entry = self.entry();
        add(&entry.runs);
        entry.note_place();
        // The body runs in the pool's place again.
        add(&entry.values);
        Value {
            ledger: Arc::clone(&self.ledger),
            id: self.id,
        }
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        user_code::check(Kind::Destructor);
        add(&self.entry().drops);
        self.entry().note_place();
    }
}

/// The value of a task.
#[derive(Debug)]
pub(crate) struct Value {
    ledger: Arc<Ledger>,
    pub(crate) id: usize,
}

impl Drop for Value {
    fn drop(&mut self) {
        user_code::check(Kind::Destructor);
        add(&self.ledger.entry(self.id).value_drops);
    }
}
