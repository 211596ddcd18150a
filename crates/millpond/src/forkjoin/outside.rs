//! The queue of what comes from outside: tasks, and jobs of [`install`](super::ForkJoinPool::install).
//!
//! It has a few *stripes*. A producer has a stripe by its thread, and a worker begins with one of its own and goes round,
//! so that many producers and workers do not meet at one lock. A stripe has two ends, each with a lock and a cache line
//! pair of its own: producers push at the back, workers take from the front. When the front is empty a worker exchanges
//! it with the whole back at once. So a worker disturbs the producers once for all that they have pushed meanwhile, and
//! order is kept.
//!
//! ```text
//!   producers --> [ back ]  ==exchange==>  [ front ] --> workers        one stripe
//! ```
//!
//! - **OUTSIDE-1** What one thread pushes is taken in the order in which it was pushed. A pool that was built with a
//!   parallelism of 1 has one stripe, so there that holds for all threads together.
//! - **OUTSIDE-2** The run state is read under the lock of the back, under which a task is pushed (DEQUE-2).
//! - **OUTSIDE-3** Both locks are taken in the order front, back. What is moved from one to the other is moved under both,
//!   so whoever holds both, or holds the front and then takes the back, misses nothing.
//! - **OUTSIDE-4** A worker changes the stripe with which it begins every so often, so none of them is starved.
//!
//! # Orderings
//!
//! - `[S-front]` An exchange writes the length of the front, then releases the length of the back. Whoever acquires the
//!   length of the back, and sees nothing there because of that, sees the length of the front. Otherwise lengths are
//!   relaxed hints, as in [`super::deque`].

use super::deque::{Item, KEPT_CAPACITY};
use crate::engine::thread_number;
use crate::meter::Count;
use crate::task::Task;
use millpond_raw::cache_padded::CachePadded;
use millpond_raw::forkjoin::JobRef;
use millpond_raw::sync::Mutex;
use millpond_raw::sync::atomic::{AtomicUsize, Ordering};
use std::collections::VecDeque;

/// The most stripes of a pool. Each takes 256 bytes.
const MAX_STRIPES: usize = 8;

type Items = VecDeque<Item>;

/// The queue.
pub(super) struct Outside {
    stripes: Box<[Stripe]>,
}

#[derive(Default)]
struct Stripe {
    back: CachePadded<End>,
    front: CachePadded<End>,
}

#[derive(Default)]
struct End {
    items: Mutex<Items>,
    len: AtomicUsize,
    /// Tasks that were pushed here and counted, ever. Written under the lock.
    pushed: Count,
}

impl Outside {
    /// For a pool that is built with this parallelism.
    pub(super) fn new(parallelism: usize) -> Self {
        let stripes = match parallelism {
            0 | 1 => 1,
            more => more.min(MAX_STRIPES),
        };
        Outside {
            stripes: (0..stripes).map(|_| Stripe::default()).collect(),
        }
    }

    /// How many items there are, or were a moment ago.
    pub(super) fn len(&self) -> usize {
        self.stripes.iter().map(Stripe::len).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.stripes.iter().all(Stripe::is_empty)
    }

    /// How many tasks were pushed and counted, ever.
    pub(super) fn pushed(&self) -> u64 {
        let pushed = self.stripes.iter().map(|stripe| stripe.back.pushed.get());
        pushed.sum()
    }

    fn own_stripe(&self) -> &Stripe {
        match &*self.stripes {
            [only] => only,
            all => &all[thread_number() % all.len()],
        }
    }

    /// Adds a task if `admit` says something (OUTSIDE-2), and counts it if that is true. Returns whether it was counted.
    pub(super) fn push_task(
        &self,
        task: Task,
        admit: impl FnOnce() -> Option<bool>,
    ) -> Result<bool, Task> {
        let back = &self.own_stripe().back;
        let mut items = back.items.lock();
        let Some(is_counted) = admit() else {
            return Err(task);
        };
        items.push_back(Item::Task(task));
        back.pushed.add(u64::from(is_counted));
        back.len.store(items.len(), Ordering::Relaxed);
        Ok(is_counted)
    }

    /// Adds a job, unless `is_open` says no (OUTSIDE-2).
    pub(super) fn push_job(
        &self,
        job: JobRef,
        is_open: impl FnOnce() -> bool,
    ) -> Result<(), JobRef> {
        let back = &self.own_stripe().back;
        let mut items = back.items.lock();
        if !is_open() {
            return Err(job);
        }
        items.push_back(Item::Job(job));
        back.len.store(items.len(), Ordering::Relaxed);
        Ok(())
    }

    /// Takes the oldest item of a stripe for the worker with this number (DEQUE-3). It begins with the stripe `first`,
    /// modulo their number.
    #[inline]
    pub(super) fn steal(&self, thief: u32, first: usize) -> Option<Item> {
        let all = &*self.stripes;
        (0..all.len()).find_map(|step| all[(first + step) % all.len()].steal(thief))
    }

    /// Takes up to `most` tasks that are wanted, the oldest of each stripe first.
    pub(super) fn remove_tasks(
        &self,
        most: usize,
        wanted: &mut dyn FnMut(&Task) -> bool,
    ) -> Vec<Task> {
        let mut found = Vec::new();
        self.with_all(|items| {
            let mut index = 0;
            while index < items.len() && found.len() < most {
                let is_wanted = match &items[index] {
                    Item::Task(task) => wanted(task),
                    Item::Job(_) => false,
                };
                match is_wanted.then(|| items.remove(index)).flatten() {
                    Some(Item::Task(task)) => found.push(task),
                    Some(Item::Job(_)) | None => index += 1,
                }
            }
        });
        found
    }

    /// Takes all jobs.
    pub(super) fn take_jobs(&self) -> Vec<JobRef> {
        self.take_jobs_if(|_| true)
    }

    /// Takes that very job.
    pub(super) fn take_job(&self, id: usize) -> Option<JobRef> {
        self.take_jobs_if(|job| job.id() == id).pop()
    }

    fn take_jobs_if(&self, wanted: impl Fn(&JobRef) -> bool) -> Vec<JobRef> {
        let mut jobs = Vec::new();
        self.with_all(|items| {
            let mut index = 0;
            while index < items.len() {
                let is_wanted = matches!(&items[index], Item::Job(job) if wanted(job));
                match is_wanted.then(|| items.remove(index)).flatten() {
                    Some(Item::Job(job)) => jobs.push(job),
                    Some(Item::Task(_)) | None => index += 1,
                }
            }
        });
        jobs
    }

    /// Calls `see` with each task, the oldest of each stripe first.
    pub(super) fn visit(&self, see: &mut dyn FnMut(&Task)) {
        self.with_all(|items| {
            for item in items {
                if let Item::Task(task) = item {
                    see(task);
                }
            }
        });
    }

    /// Calls `f` with what is in the front and then with what is in the back of each stripe that is not empty.
    fn with_all(&self, mut f: impl FnMut(&mut Items)) {
        for stripe in self.stripes.iter().filter(|stripe| !stripe.is_empty()) {
            // OUTSIDE-3
            let mut front = stripe.front.items.lock();
            f(&mut front);
            stripe.front.len.store(front.len(), Ordering::Relaxed);
            let mut back = stripe.back.items.lock();
            f(&mut back);
            stripe.back.len.store(back.len(), Ordering::Relaxed);
        }
    }

    /// Gives the memory of long rings back if nothing is in them.
    pub(super) fn trim(&self) {
        for stripe in &self.stripes {
            stripe.front.trim();
            stripe.back.trim();
        }
    }

    /// Waits for pushes that are under way (OUTSIDE-2).
    pub(super) fn pass(&self) {
        for stripe in &self.stripes {
            drop(stripe.back.items.lock());
        }
    }
}

impl Stripe {
    fn len(&self) -> usize {
        // Relaxed: a hint. An exchange meanwhile may make it too large, never too small.
        // [S-front]
        let back = self.back.len.load(Ordering::Acquire);
        back + self.front.len.load(Ordering::Relaxed)
    }

    #[inline]
    fn is_empty(&self) -> bool {
        // The front first: whoever looks at the back disturbs the producers.
        self.front.len.load(Ordering::Relaxed) == 0 && self.len() == 0
    }

    fn steal(&self, thief: u32) -> Option<Item> {
        if self.is_empty() {
            return None;
        }
        let mut front = self.front.items.lock();
        if front.is_empty() {
            self.exchange(&mut front);
        }
        let item = front.pop_front()?;
        self.front.len.store(front.len(), Ordering::Relaxed);
        if let Item::Job(job) = &item {
            job.set_runner(thief);
        }
        Some(item)
    }

    /// OUTSIDE-3
    fn exchange(&self, front: &mut Items) {
        let mut back = self.back.items.lock();
        std::mem::swap(front, &mut back);
        self.front.len.store(front.len(), Ordering::Relaxed);
        // [S-front]
        self.back.len.store(0, Ordering::Release);
    }
}

impl End {
    fn trim(&self) {
        let mut items = self.items.lock();
        if items.is_empty() && items.capacity() > KEPT_CAPACITY {
            let oversized = std::mem::take(&mut *items);
            drop(items);
            drop(oversized);
        }
    }
}
