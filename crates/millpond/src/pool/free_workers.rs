//! With threads first: how a submitter comes to rely on a free worker instead of starting another one.
//!
//! # The protocol
//!
//! A submitter *claims* a free worker, enqueues its task, and ends the claim. It may claim one if more workers are free
//! than tasks are queued and claims are open. Under the lock of [`Claims`]:
//!
//! - **FREE-1** *In a queue of ours* all of that is one section: the claim is the lock itself. So there are never two
//!   open claims.
//! - **FREE-2** *In a queue of the user's*, which must not be called under a lock of ours (POOL-4), it is three sections:
//!   the claims are read; then, without the lock, how many tasks are queued and how many workers are free; then a claim
//!   is opened, if nothing has changed since (otherwise it starts over); then, without the lock, the task is enqueued;
//!   then the claim is ended, by a panic of the queue too.
//! - **FREE-3** A leaving worker is not free, is uncounted, records a *loss*, and then takes its last look into the queue
//!   (POOL-2). If a loss was recorded while a claim was open, its submitter judges again when the task is enqueued
//!   ([`PoolEngine::is_served`]).
//! - **FREE-4** A task is enqueued without a claim when its submitter has read that the maximum was reached, or that the
//!   queue comes first, or when no thread could be started for it. Such a submitter checks afterwards whether that was
//!   right (POOL-1). If it was not, it records a loss, for it may have taken the worker that another one relied on, and
//!   then judges again, too. Into a queue of ours a task for which there is no thread comes under the lock.
//!
//! Below the maximum, therefore:
//!
//! - *No two submitters rely on one worker.* At a claim there are at least as many free workers as queued tasks and claims,
//!   this one included; and what changes that afterwards is a worker that takes a task (one less of each), one that
//!   becomes free, a task that is taken out, or a loss. The numbers are not of one moment, but err on the safe side: the
//!   worker of a task that is taken has stopped being free before (`[E-free]`, below), and a task that is enqueued under
//!   another claim is counted as a claim, for otherwise the claims had changed.
//! - *No task waits for a worker that has left.* If the loss was recorded before the claims were read, the worker was not
//!   among the free. If during the claim, the submitter judges again (FREE-3). If after its end, then the worker's last
//!   look comes after the task, and it stays. In a queue of ours there is no "during".
//! - *No thread is started that is not needed, except for a moment's sake.* While a worker takes a task out, it is not free
//!   and the task is still queued; and in a queue of the user's a task may be counted twice, as queued and as a claim. A
//!   submitter that comes in such a moment starts a worker although another one is free. It never does so because of its
//!   *own* task: a claim that stood is not judged again.
//!
//! # Orderings
//!
//! - `[E-free]` A worker stops being free before it takes a task out. A submitter first reads how many tasks are queued, and
//!   then how many workers are free. So a submitter that sees that a task was taken does not see its worker free. The
//!   queue's lock is enough for that, so no model notices if these accesses have no order of their own. Proof: the worker
//!   stops being free before it locks the queue to take the task out. A submitter that finds the task gone has locked the
//!   queue later, and reads afterwards. So the change happens before the read, which finds it or something newer. A user's
//!   queue must order its own `len` behind the `poll` that it reflects. If it does not, a task may wait for a worker that
//!   is not free yet, but none is lost.
//!
//! The lock of [`Claims`] orders everything else.

use super::engine::PoolEngine;
use millpond_raw::cache_padded::CachePadded;
use millpond_raw::sync::atomic::{AtomicUsize, Ordering};
use millpond_raw::sync::{Mutex, MutexGuard};

/// How often a submitter starts over because others came and went meanwhile (FREE-2). A queue whose `len` submits tasks
/// changes the claims each time that it is asked; so there is an end to it, and a worker is started.
const MAX_TRIES: usize = 8;

/// Workers that wait for a task, and the submitters that rely on them, while threads come first.
pub(super) struct FreeWorkers {
    pub(super) count: CachePadded<AtomicUsize>,
    claims: Mutex<Claims>,
}

impl Default for FreeWorkers {
    fn default() -> Self {
        FreeWorkers {
            count: CachePadded::new(AtomicUsize::new(0)),
            claims: Mutex::new(Claims::default()),
        }
    }
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Claims {
    open: usize,
    ended: u64,
    /// How often a worker may have been lost to a submitter that relied on it (FREE-3, FREE-4).
    lost: u64,
}

impl FreeWorkers {
    /// A worker is lost to submitters that rely on one (FREE-3, FREE-4).
    pub(super) fn record_loss(&self) {
        self.claims.lock().lost += 1;
    }
}

/// What a submitter holds while its task is enqueued.
pub(super) struct Entry<'a>(Held<'a>);

enum Held<'a> {
    /// A claim (FREE-1).
    Lock(MutexGuard<'a, Claims>),
    /// A claim (FREE-2).
    Open(OpenClaim<'a>),
    /// None (FREE-4).
    Unclaimed(MutexGuard<'a, Claims>),
}

struct OpenClaim<'a> {
    free_workers: &'a FreeWorkers,
    /// How many had been lost when it was opened.
    lost: u64,
}

/// What a claim was worth.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Claim {
    /// There was none.
    None,
    /// A worker was there all the time.
    Stood,
    /// A worker was lost meanwhile, and it may have been this one.
    Lost,
}

impl Entry<'_> {
    /// The task is enqueued.
    pub(super) fn end(self) -> Claim {
        match self.0 {
            Held::Lock(lock) => {
                drop(lock);
                Claim::Stood
            }
            Held::Open(open) => open.end(),
            Held::Unclaimed(lock) => {
                drop(lock);
                Claim::None
            }
        }
    }
}

impl OpenClaim<'_> {
    fn end(self) -> Claim {
        let stood = self.close();
        std::mem::forget(self);
        if stood { Claim::Stood } else { Claim::Lost }
    }

    /// Returns whether no worker has been lost since it was opened.
    fn close(&self) -> bool {
        let mut claims = self.free_workers.claims.lock();
        claims.open -= 1;
        claims.ended += 1;
        claims.lost == self.lost
    }
}

impl Drop for OpenClaim<'_> {
    /// There was no room, or a panic.
    fn drop(&mut self) {
        self.close();
    }
}

impl PoolEngine {
    /// Claims a free worker, if there is one for which there is no task yet.
    ///
    /// A waiting worker is counted until just before it takes a task. So this may say no although there was one a moment
    /// ago, and never the other way round.
    pub(super) fn claim_free_worker(&self) -> Option<Entry<'_>> {
        let free_workers = &self.free_workers;
        if !self.queue.is_foreign() {
            let claims = free_workers.claims.lock();
            return (self.spare_workers(0) > 0).then_some(Entry(Held::Lock(claims)));
        }
        for _ in 0..MAX_TRIES {
            let seen = *free_workers.claims.lock();
            if self.spare_workers(seen.open) == 0 {
                return None;
            }
            let mut claims = free_workers.claims.lock();
            if *claims == seen {
                claims.open += 1;
                let lost = seen.lost;
                return Some(Entry(Held::Open(OpenClaim { free_workers, lost })));
            }
        }
        None
    }

    /// How many more workers are free than tasks are queued and claims are open.
    fn spare_workers(&self, claims: usize) -> usize {
        let tasks = self.queue.len();
        // [E-free] unmodelled: the queue's lock, taken just above, orders the same (proof in the header)
        let free = self.free_workers.count.load(Ordering::SeqCst);
        free.saturating_sub(tasks.saturating_add(claims))
    }

    /// Whether for each queued task there is a worker that waits, too.
    pub(super) fn is_served(&self) -> bool {
        // In a queue of ours, tasks with a claim are enqueued under it.
        let _turn = self.enter_without_claim();
        let tasks = self.queue.len();
        // [E-free] unmodelled: the queue's lock, taken just above, orders the same (proof in the header)
        tasks == 0 || self.free_workers.count.load(Ordering::SeqCst) >= tasks
    }

    /// Keeps submitters with a claim out of a queue of ours, while a task is enqueued without one (FREE-4).
    pub(super) fn enter_without_claim(&self) -> Option<Entry<'_>> {
        let is_ours = !self.queue.is_foreign();
        is_ours.then(|| Entry(Held::Unclaimed(self.free_workers.claims.lock())))
    }
}
