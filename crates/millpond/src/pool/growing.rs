//! With threads first: how a submitter comes to count on a free worker instead of starting another one.
//!
//! # The protocol
//!
//! A submitter *claims* a free worker, puts its task into the queue, and ends the claim. It may claim one
//! if more workers are free than tasks wait and claims are open. Under the lock of [`Standing`]:
//!
//! - **G1** *In a line of ours* all of that is one section: the claim is the lock itself. So there are never two
//!   open claims.
//! - **G2** *In a line of the user's*, which must not be called under a lock of ours (E5), it is three: the standing is
//!   read; then, without the lock, how many tasks wait and how many workers are free; then a claim is opened, if
//!   nothing has changed since (otherwise it begins anew); then, without the lock, the task comes in; then the claim
//!   is ended, by a panic of the queue too.
//! - **G3** A worker that leaves is not free, is uncounted, counts itself among the *lost*, and then takes its last look
//!   into the queue (E2). In a claim that is open when one is lost, the submitter judges again when its task is in
//!   ([`Engine::is_served`]).
//! - **G4** A task comes in without a claim when its submitter has read that the maximum was reached, or that the queue
//!   came first, or when no thread could be started for it. Such a submitter looks afterwards whether it was right
//!   (E1). If it was not, it counts a loss, for it may have taken the worker that another counted on, and then
//!   judges, too. Into a line of ours a task for which there is no thread comes under the lock.
//!
//! Below the maximum, therefore:
//!
//! - *No two submitters count on one worker.* At a claim there are at least as many free workers as tasks that wait and
//!   claims, this one included; and what changes that afterwards is a worker that takes a task (one less of each), one
//!   that becomes free, a task that is taken out, or a loss. The figures are not of one moment, but err on the safe
//!   side: a task that is taken has made its worker step down before (`[E-free]`, below), and one that comes in by
//!   another's claim is counted as a claim, for otherwise the standing had changed.
//! - *No task waits for a worker that has left.* If the loss was counted before the standing was read, the worker was not
//!   among the free. If during the claim, the submitter judges again (G3). If after its end, then the worker's last
//!   look comes after the task, and it stays. In a line of ours there is no "during".
//! - *No thread is started that is not needed, except for a moment's sake.* While a worker takes a task out, it is not free
//!   and the task still waits; and in a line of the user's a task may be counted twice, as one that waits and as a claim.
//!   Who comes in such a moment starts a worker although another one is free. It never does so because of its *own*
//!   task: a claim that stands is not judged again.
//!
//! # Orderings
//!
//! - `[E-free]` A worker is no longer free before it takes a task out; a submitter reads how many
//!   tasks wait before how many workers are free. So who sees that a task has been taken does not see
//!   its worker free. Proof that the line's lock is enough for that, and so that no model can notice if
//!   these have no order of their own: the worker steps down before it locks the line to take the task
//!   out; the submitter that finds it gone has locked the line later, and reads afterwards. So the step
//!   down happens before the reading, which finds it or something newer. A line of the user's must order
//!   its own `len` behind the `poll` that it tells of; one that does not makes a task wait for a worker
//!   that is not free yet, and loses none.
//!
//! All else is ordered by the lock of [`Standing`].

use super::engine::Engine;
use millpond_raw::sync::atomic::Ordering;
use millpond_raw::sync::{Mutex, MutexGuard};

/// How often a submitter begins anew because others came and went meanwhile (G2). A queue whose `len` submits tasks
/// changes the standing each time that it is asked; so there is an end to it, and a worker is started.
const TRIES: usize = 8;

/// Who counts on a free worker.
#[derive(Default)]
pub(super) struct Growing {
    standing: Mutex<Standing>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Standing {
    /// How many claims are open.
    claims: usize,
    /// How many claims have ended.
    ended: u64,
    /// How often a worker may have been lost to those that count on one (G3, G4).
    lost: u64,
}

impl Growing {
    /// A worker is lost to those that count on one (G3, G4).
    pub(super) fn has_lost_one(&self) {
        self.standing.lock().lost += 1;
    }
}

/// What a submitter holds while its task comes in.
pub(super) struct Entry<'a>(Held<'a>);

enum Held<'a> {
    /// A claim (G1).
    Lock(MutexGuard<'a, Standing>),
    /// A claim (G2).
    Open(Open<'a>),
    /// None (G4).
    Unclaimed(MutexGuard<'a, Standing>),
}

struct Open<'a> {
    growing: &'a Growing,
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
    /// The task is in.
    pub(super) fn end(self) -> Claim {
        match self.0 {
            Held::Lock(lock) => {
                drop(lock);
                Claim::Stood
            }
            Held::Open(open) => match open.end() {
                true => Claim::Stood,
                false => Claim::Lost,
            },
            Held::Unclaimed(lock) => {
                drop(lock);
                Claim::None
            }
        }
    }
}

impl Open<'_> {
    /// Whether nobody has been lost since it was opened.
    fn end(self) -> bool {
        let stood = self.close();
        std::mem::forget(self);
        stood
    }

    fn close(&self) -> bool {
        let mut standing = self.growing.standing.lock();
        standing.claims -= 1;
        standing.ended += 1;
        standing.lost == self.lost
    }
}

impl Drop for Open<'_> {
    /// There was no room, or a panic.
    fn drop(&mut self) {
        self.close();
    }
}

impl Engine {
    /// Claims a free worker, if there is one for whom there is no task yet.
    ///
    /// A worker that waits is counted until just before it takes a task, so this may say no when it
    /// was yes a moment ago, and never the other way round.
    pub(super) fn claim_free_worker(&self) -> Option<Entry<'_>> {
        let growing = &self.growing;
        if !self.line.is_foreign() {
            let standing = growing.standing.lock();
            return (self.spare(0) > 0).then_some(Entry(Held::Lock(standing)));
        }
        for _ in 0..TRIES {
            let seen = *growing.standing.lock();
            if self.spare(seen.claims) == 0 {
                return None;
            }
            let mut standing = growing.standing.lock();
            if *standing == seen {
                standing.claims += 1;
                let lost = seen.lost;
                return Some(Entry(Held::Open(Open { growing, lost })));
            }
        }
        None
    }

    /// How many more workers are free than tasks wait and claims are open.
    fn spare(&self, claims: usize) -> usize {
        let tasks = self.line.len();
        // [E-free] unmodelled: the line's lock, taken just above, orders the same (proof in the header)
        let free = self.free.load(Ordering::SeqCst);
        free.saturating_sub(tasks.saturating_add(claims))
    }

    /// Whether for each task that waits there is a worker that waits, too.
    pub(super) fn is_served(&self) -> bool {
        // In a line of ours tasks with a claim come in under it.
        let _turn = self.enter_without_claim();
        let tasks = self.line.len();
        // [E-free] unmodelled: the line's lock, taken just above, orders the same (proof in the header)
        tasks == 0 || self.free.load(Ordering::SeqCst) >= tasks
    }

    /// Keeps those with a claim out of a line of ours, while a task comes in without one (G4).
    pub(super) fn enter_without_claim(&self) -> Option<Entry<'_>> {
        let is_ours = !self.line.is_foreign();
        is_ours.then(|| Entry(Held::Unclaimed(self.growing.standing.lock())))
    }
}
