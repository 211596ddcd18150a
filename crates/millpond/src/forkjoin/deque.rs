//! The shared deque of a worker: tasks that were submitted on its thread, and jobs that were published or spawned.
//!
//! Private jobs never come here; that is what makes a join cheap. What is here can be taken by any worker at any time, so a
//! task that was accepted is never out of reach of an idle worker. It is a ring under a lock of which its worker is the
//! keeper ([`BiasedMutex`]): where tasks make tasks, which that worker mostly runs itself, it pushes and pops by plain stores.
//! Lengths are beside the lock, so that nobody locks an empty deque.
//!
//! - **DEQUE-1** The owner takes the newest entry, or the oldest in FIFO mode; other workers take the oldest.
//! - **DEQUE-2** The run state is read under the lock under which a task is pushed. So a shutdown that takes each lock
//!   once after it has changed the state ([`Deque::pass`]) comes after every push that did not see it.
//! - **DEQUE-3** A job of a join that is taken for another worker is marked with that worker's number under the lock. So an
//!   owner that finds its job gone knows who runs it. Nobody asks who runs a spawned job.
//!
//! # Orderings
//!
//! Lengths are relaxed hints. Where sleeping workers depend on them there is a fence on each side: see [`super::sleep`].
//! That of the worker is [`Deque::order`], and free while the lock is biased. So the other side has two steps: a fence, and
//! then [`Deque::settle`].

use crate::meter::Count;
use crate::task::Task;
use millpond_raw::cache_padded::CachePadded;
use millpond_raw::forkjoin::JobRef;
use millpond_raw::sync::atomic::{AtomicUsize, Ordering};
use millpond_raw::sync::{BiasKey, BiasedMutex};
use std::collections::VecDeque;
use std::num::NonZeroUsize;

/// The length of a ring that an idle pool keeps.
pub(super) const KEPT_CAPACITY: usize = 1024;

/// What a worker can run.
pub(super) enum Item {
    Task(Task),
    Job(JobRef),
}

struct Entry {
    /// The stolen job inside of which this one was published; 0 outside of any.
    root: usize,
    /// The scope that a spawned job belongs to.
    scope: Option<ScopeTag>,
    item: Item,
}

/// What a spawned job says of its scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ScopeTag {
    /// Tells scopes apart that are open at the same time.
    pub(super) id: NonZeroUsize,
    /// The stolen job inside of which the scope was entered; 0 outside of any. It is not over before the scope is.
    pub(super) root: usize,
}

/// What a worker waits for, and so which entries of its own deque it may run meanwhile (HELP-1).
#[derive(Clone, Copy)]
pub(super) enum Inner {
    /// The job of a join with this id, which another worker runs.
    Join(usize),
    /// The scope with this id, which this worker has entered.
    Scope(NonZeroUsize),
}

impl Inner {
    /// Joins never: those inside of the wait are over, and an outer one may be published late.
    fn contains(self, entry: &Entry) -> bool {
        entry.scope.is_some_and(|scope| match self {
            Inner::Join(job) => scope.root == job,
            Inner::Scope(id) => scope.id == id,
        })
    }
}

impl Entry {
    /// Whether it is a job that the end of that root waits for (HELP-2). One that was spawned there in an outer scope is
    /// not.
    fn is_job_of(&self, root: usize) -> bool {
        matches!(self.item, Item::Job(_))
            && self.root == root
            && self.scope.is_none_or(|scope| scope.root == root)
    }
}

#[derive(Default)]
struct Ring {
    entries: VecDeque<Entry>,
    jobs: usize,
}

impl Ring {
    fn push(&mut self, item: Item, root: usize, scope: Option<ScopeTag>) {
        self.jobs += usize::from(matches!(item, Item::Job(_)));
        self.entries.push_back(Entry { root, scope, item });
    }

    /// Whether it is empty, and has room for many.
    fn is_oversized(&self) -> bool {
        self.entries.is_empty() && self.entries.capacity() > KEPT_CAPACITY
    }

    fn taken(&mut self, entry: Entry) -> Item {
        self.jobs -= usize::from(matches!(entry.item, Item::Job(_)));
        entry.item
    }

    #[inline]
    fn take_at(&mut self, index: usize) -> Option<Item> {
        let entry = if index + 1 == self.entries.len() {
            self.entries.pop_back()
        } else {
            self.entries.remove(index)
        }?;
        Some(self.taken(entry))
    }

    /// Takes the youngest job for which `wanted` says so.
    fn take_job(&mut self, wanted: impl Fn(&Entry, &JobRef) -> bool) -> Option<JobRef> {
        if self.jobs == 0 {
            return None;
        }
        let index = self.entries.iter().rposition(|entry| match &entry.item {
            Item::Job(job) => wanted(entry, job),
            Item::Task(_) => false,
        })?;
        match self.take_at(index) {
            Some(Item::Job(job)) => Some(job),
            Some(Item::Task(_)) | None => None,
        }
    }
}

/// A deque.
#[derive(Default)]
pub(super) struct Deque {
    ring: CachePadded<BiasedMutex<Ring>>,
    len: CachePadded<AtomicUsize>,
    jobs: AtomicUsize,
    /// Tasks that were pushed here ever. Written under the lock.
    pushed: Count,
}

impl Deque {
    fn with<R>(&self, f: impl FnOnce(&mut Ring) -> R) -> R {
        self.ring.with(|ring| self.measured(ring, f))
    }

    /// As [`with`](Deque::with), for its worker.
    #[inline]
    fn with_key<R>(&self, key: &BiasKey, f: impl FnOnce(&mut Ring) -> R) -> R {
        self.ring.with_key(key, |ring| self.measured(ring, f))
    }

    #[inline]
    fn measured<R>(&self, ring: &mut Ring, f: impl FnOnce(&mut Ring) -> R) -> R {
        let done = f(ring);
        self.len.store(ring.entries.len(), Ordering::Relaxed);
        if self.jobs.load(Ordering::Relaxed) != ring.jobs {
            self.jobs.store(ring.jobs, Ordering::Relaxed);
        }
        done
    }

    /// Makes the current worker its keeper.
    pub(super) fn keep(&self) -> Option<BiasKey> {
        self.ring.keep()
    }

    /// Its worker leaves.
    pub(super) fn give_up(&self, key: &mut BiasKey) {
        self.ring.give_up(key);
    }

    /// A fence of its worker: what it has pushed is seen by those that have [settled](Deque::settle), or it sees what they
    /// wrote before.
    #[inline]
    pub(super) fn order(&self, key: &BiasKey) {
        self.ring.order(key);
    }

    /// What its worker has pushed is seen behind this. A fence of the caller comes before.
    #[inline]
    pub(super) fn settle(&self) {
        self.ring.settle();
    }

    /// How many entries there are, or were a moment ago.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many of them are jobs.
    #[inline]
    pub(super) fn jobs(&self) -> usize {
        self.jobs.load(Ordering::Relaxed)
    }

    /// How many tasks were ever pushed.
    pub(super) fn pushed(&self) -> u64 {
        self.pushed.get()
    }

    /// Adds a task, unless `is_open` says no (DEQUE-2).
    #[inline]
    pub(super) fn push_task(
        &self,
        key: &BiasKey,
        task: Task,
        is_open: impl FnOnce() -> bool,
    ) -> Result<(), Task> {
        self.with_key(key, |ring| {
            if !is_open() {
                return Err(task);
            }
            ring.push(Item::Task(task), 0, None);
            self.pushed.add(1);
            Ok(())
        })
    }

    /// Adds a job that was published inside of that root: of a join, or spawned in a scope.
    #[inline]
    pub(super) fn push_job(
        &self,
        key: &BiasKey,
        job: JobRef,
        root: usize,
        scope: Option<ScopeTag>,
    ) {
        self.with_key(key, |ring| ring.push(Item::Job(job), root, scope));
    }

    /// Takes an entry for the owner (DEQUE-1).
    pub(super) fn pop(&self, key: &BiasKey, is_fifo: bool) -> Option<Item> {
        if self.is_empty() {
            return None;
        }
        self.with_key(key, |ring| {
            let entry = if is_fifo {
                ring.entries.pop_front()
            } else {
                ring.entries.pop_back()
            }?;
            Some(ring.taken(entry))
        })
    }

    /// Takes the newest entry, if that is the tombstone of a task.
    pub(super) fn pop_gone(&self, key: &BiasKey) -> Option<Task> {
        if self.is_empty() {
            return None;
        }
        self.with_key(key, |ring| {
            let newest = ring.entries.len().checked_sub(1)?;
            let is_gone = match &ring.entries[newest].item {
                Item::Task(task) => task.is_gone(),
                Item::Job(_) => false,
            };
            match is_gone.then(|| ring.take_at(newest)).flatten() {
                Some(Item::Task(task)) => Some(task),
                Some(Item::Job(_)) | None => None,
            }
        })
    }

    /// Takes the oldest entry for the worker with this number (DEQUE-3).
    pub(super) fn steal(&self, thief: u32) -> Option<Item> {
        if self.is_empty() {
            return None;
        }
        self.with(|ring| {
            let entry = ring.entries.pop_front()?;
            if let (Item::Job(job), None) = (&entry.item, entry.scope) {
                job.set_runner(thief);
            }
            Some(ring.taken(entry))
        })
    }

    /// Takes a job that the end of that root waits for, for the worker with this number (DEQUE-3).
    pub(super) fn steal_from_root(&self, root: usize, thief: u32) -> Option<JobRef> {
        if self.jobs() == 0 {
            return None;
        }
        self.with(|ring| {
            let job = ring.take_job(|entry, _| entry.is_job_of(root))?;
            job.set_runner(thief);
            Some(job)
        })
    }

    /// Takes the youngest job that is inside of what its owner waits for.
    pub(super) fn pop_inner(&self, key: &BiasKey, inner: Inner) -> Option<JobRef> {
        if self.jobs() == 0 {
            return None;
        }
        self.with_key(key, |ring| ring.take_job(|entry, _| inner.contains(entry)))
    }

    /// Takes that very job.
    pub(super) fn take_job(&self, key: &BiasKey, id: usize) -> Option<JobRef> {
        if self.jobs() == 0 {
            return None;
        }
        self.with_key(key, |ring| ring.take_job(|_, job| job.id() == id))
    }

    /// Whether there is a job that the end of that root waits for.
    pub(super) fn has_job_of(&self, root: usize) -> bool {
        self.jobs() > 0 && self.with(|ring| ring.entries.iter().any(|entry| entry.is_job_of(root)))
    }

    /// Whether there is a job that is inside of what its owner waits for.
    pub(super) fn has_inner(&self, key: &BiasKey, inner: Inner) -> bool {
        self.jobs() > 0
            && self.with_key(key, |ring| {
                let mut entries = ring.entries.iter().rev();
                entries.any(|entry| inner.contains(entry))
            })
    }

    /// Takes up to `most` tasks that are wanted, the oldest first.
    pub(super) fn remove_tasks(
        &self,
        most: usize,
        wanted: &mut dyn FnMut(&Task) -> bool,
    ) -> Vec<Task> {
        let mut found = Vec::new();
        if self.is_empty() {
            return found;
        }
        self.with(|ring| {
            let mut index = 0;
            while index < ring.entries.len() && found.len() < most {
                let is_wanted = match &ring.entries[index].item {
                    Item::Task(task) => wanted(task),
                    Item::Job(_) => false,
                };
                match is_wanted.then(|| ring.take_at(index)).flatten() {
                    Some(Item::Task(task)) => found.push(task),
                    Some(Item::Job(_)) | None => index += 1,
                }
            }
        });
        found
    }

    /// Calls `see` with each task, the oldest first.
    pub(super) fn visit(&self, see: &mut dyn FnMut(&Task)) {
        if self.is_empty() {
            return;
        }
        self.with(|ring| {
            for entry in &ring.entries {
                if let Item::Task(task) = &entry.item {
                    see(task);
                }
            }
        });
    }

    /// Gives the memory of a long ring back if nothing is in it.
    pub(super) fn trim(&self) {
        let oversized = self.ring.with(|ring| {
            ring.is_oversized()
                .then(|| std::mem::take(&mut ring.entries))
        });
        drop(oversized);
    }

    /// Waits for pushes that are under way (DEQUE-2).
    pub(super) fn pass(&self) {
        self.ring.with(|_| ());
    }
}
