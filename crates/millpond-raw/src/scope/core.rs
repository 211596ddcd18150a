//! What all sides of a scope share, and what outlives it: the roster, and the first panic that
//! nobody took.

use super::roster::{Phase, Roster};
use super::slot::Erased;
use super::state::Reading;
use crate::quiet;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::task::{Outcome, Panic};
use crate::waits::Waits;

pub(super) struct Core<M> {
    roster: Mutex<Roster<M>>,
    /// Whether jobs are refused. Written and obeyed under the roster's lock; a look without it is
    /// good for those who would rather not begin.
    stopped: AtomicBool,
    /// Where the owner sleeps, to be woken when a job is brought.
    news: Waits,
    panic: Mutex<Option<Panic>>,
}

impl<M> Core<M> {
    pub(super) fn new() -> Self {
        Core {
            roster: Mutex::new(Roster::new()),
            stopped: AtomicBool::new(false),
            news: Waits::new(),
            panic: Mutex::new(None),
        }
    }

    /// Lets jobs in. Returns false if it did so before.
    pub(super) fn open(&self) -> bool {
        let mut roster = self.roster.lock();
        let is_new = roster.phase == Phase::New;
        if is_new {
            roster.phase = Phase::Open;
        }
        is_new
    }

    /// Lets no job in any more, if there is none. Returns whether that is so.
    pub(super) fn close(&self) -> bool {
        let mut roster = self.roster.lock();
        let is_over = roster.is_empty();
        if is_over {
            roster.phase = Phase::Closed;
        }
        is_over
    }

    /// J1: puts the job on the roster. Returns false, and does nothing, if none may come.
    pub(super) fn link(&self, job: &Erased<M>) -> bool {
        let mut roster = self.roster.lock();
        if roster.phase != Phase::Open || self.is_stopped() {
            return false;
        }
        let number = roster.push(job.clone());
        job.set_number(number);
        true
    }

    /// Notes that a job can be run by whoever waits, and wakes the owner if it sleeps.
    pub(super) fn bring(&self, job: &Erased<M>) {
        let asleep = {
            let mut roster = self.roster.lock();
            job.state().bring();
            roster.brought += 1;
            core::mem::take(&mut roster.asleep)
        };
        if asleep {
            self.news.wake_all();
        }
    }

    pub(super) fn remove(&self, number: u64) {
        // It may be the last reference: it drops outside the lock.
        let job = self.roster.lock().remove(number);
        drop(job);
    }

    pub(super) fn find(&self, from: u64, wanted: fn(Reading) -> bool) -> Option<Erased<M>> {
        self.roster.lock().find(from, wanted).cloned()
    }

    pub(super) fn stop(&self) {
        let _roster = self.roster.lock();
        self.stopped.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    pub(super) fn brought(&self) -> u64 {
        self.roster.lock().brought
    }

    pub(super) fn len(&self) -> usize {
        self.roster.lock().len()
    }

    /// Where the owner waits for jobs to be brought.
    pub(super) fn news(&self) -> &Waits {
        &self.news
    }

    /// Whether no more than `seen` jobs have been brought. If so the next one wakes the owner.
    pub(super) fn no_more_than(&self, seen: u64) -> bool {
        let mut roster = self.roster.lock();
        roster.asleep = roster.brought <= seen;
        roster.asleep
    }

    /// What to do with an outcome that nobody takes: a panic is kept if it is the first.
    pub(super) fn dispose<T>(&self, outcome: Outcome<T>) {
        let Outcome::Panicked(panic) = outcome else {
            return quiet::drop(outcome);
        };
        let mut first = self.panic.lock();
        if first.is_none() {
            *first = Some(panic);
        } else {
            drop(first);
            quiet::drop(panic);
        }
    }

    pub(super) fn take_panic(&self) -> Option<Panic> {
        self.panic.lock().take()
    }
}

impl<M> Drop for Core<M> {
    fn drop(&mut self) {
        quiet::drop(self.take_panic());
    }
}
