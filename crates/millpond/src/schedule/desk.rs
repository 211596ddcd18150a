//! Where the books of a scheduled pool lie: a desk, which stays when the pool goes.
//!
//! Who has scheduled a task and cancels it, or joins it inside its own executor, needs the books. If its
//! handle kept the pool alive for that, each task would count it up and down, and a count that all share
//! costs as much as a lock. So desks live for ever. A handle knows the desk and nobody counts; a pool
//! gives its desk back when it is dropped, and the next one that is built takes it. There are never more
//! of them than there were pools at a time, and a free one has a few hundred bytes and no more.
//!
//! The same goes for the ward in a closure, which has to reach the books when the closure goes, and to
//! leave behind there what keeps the pool alive: see [`super::ward`].
//!
//! # Rules
//!
//! - **D1** A desk has one pool at a time. It is the pool's from when that is built until its core is
//!   dropped; so as long as a body is there that was not run, for its ward has the core.
//! - **D2** A key of the wheel fits no entry of a pool that comes later (W5). So who comes to a desk with a
//!   key takes out its own entry, or nothing.
//! - **D3** Who asks a desk anything else than what a key is for may be told of a later pool. That is
//!   so only if the body of its own task is gone: there is nothing left to be decided, and whatever
//!   the answer is, the handle finds the task finished, or waits until it is.
//! - **D4** A desk is of one process. In a child the locks of its parent's may be held by nobody, so these
//!   are taken by no pool.

use super::core::{Books, Entry};
use crate::time::Key;
use millpond_raw::fork;
use millpond_raw::sync::{Mutex, MutexGuard, global};
use std::sync::Arc;

global! {
    static FREE: Mutex<Vec<&'static Desk>> = Mutex::new(Vec::new());
}

pub(super) struct Desk {
    books: Mutex<Books>,
    /// D4: the generation of its process.
    born: u32,
}

impl Desk {
    /// A desk for a pool that is being built. `open` makes its books; if there were some on it before, it is
    /// given these, for the wheel to [follow](crate::time::Wheel::begin) on theirs (D2).
    pub(super) fn take(open: impl FnOnce(Option<&mut Books>) -> Books) -> &'static Self {
        let born = watched_generation();
        let mut free = FREE.lock();
        let found = free.iter().rposition(|desk| desk.born == born);
        let found = found.map(|place| free.swap_remove(place));
        drop(free);
        let Some(desk) = found else {
            let books = Mutex::new(open(None));
            return Box::leak(Box::new(Desk { books, born }));
        };
        let mut books = desk.books.lock();
        let opened = open(Some(&mut books));
        let closed = std::mem::replace(&mut *books, opened);
        drop(books);
        drop(closed);
        desk
    }

    /// The pool goes, and nobody has its core any more (D1).
    pub(super) fn give_back(&'static self) {
        if self.is_forked() {
            return;
        }
        let left = self.books.lock().close();
        // K6: nobody knows what an executor does when it is dropped.
        drop(left);
        FREE.lock().push(self);
    }

    /// In a forked process the lock may be held by nobody.
    #[inline]
    pub(super) fn books(&'static self) -> MutexGuard<'static, Books> {
        self.books.lock()
    }

    #[inline]
    pub(super) fn is_forked(&self) -> bool {
        self.born != fork::generation()
    }

    /// Whether this is a thread of the executor that what waits here goes to (D3).
    pub(super) fn is_worker_here(&self) -> bool {
        if self.is_forked() {
            return false;
        }
        let executor = self.books.lock().executor.as_ref().map(Arc::clone);
        executor.is_some_and(|executor| executor.is_worker_here())
    }

    /// Takes an entry out, if it still waits here.
    pub(super) fn remove(&self, key: Key) -> Option<Entry> {
        match self.is_forked() {
            true => None,
            false => self.books.lock().wheel.remove(key),
        }
    }
}

/// The generation of this process; from now on it is told from its children.
fn watched_generation() -> u32 {
    fork::watch();
    #[cfg(not(any(millpond_loom, millpond_shuttle)))]
    fork::keep(&FREE);
    fork::generation()
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;
    use crate::executor::{DirectExecutor, Lifecycle};
    use crate::schedule::ScheduledPool;
    use crate::task;
    use crate::time::{Deadline, ManualClock};
    use std::time::Duration;

    const HOUR: Duration = Duration::from_secs(3600);

    fn pool() -> ScheduledPool<DirectExecutor> {
        let hand = ManualClock::new();
        ScheduledPool::on(DirectExecutor::new())
            .clock(hand.clock())
            .build()
    }

    /// An entry in the books of a pool, without a task of the pool's.
    fn insert(pool: &ScheduledPool<DirectExecutor>) -> Key {
        let (task, _handle) = task::new(|| ());
        pool.core
            .books()
            .insert(Deadline::NEVER, Entry::Once(task))
            .0
    }

    /// The next pool, if it is at this desk: other tests may have taken it meanwhile.
    fn next_at(desk: &'static Desk) -> Option<ScheduledPool<DirectExecutor>> {
        let next = pool();
        std::ptr::eq(next.core.desk, desk).then_some(next)
    }

    #[test]
    fn a_pool_takes_the_desk_of_one_that_is_gone_and_old_keys_and_handles_touch_nothing_there() {
        for _ in 0..1000 {
            let first = pool();
            let desk = first.core.desk;
            let key = insert(&first);
            let handle = first.schedule(HOUR, || 7).unwrap();
            let idle = first.schedule(HOUR, || 8).unwrap();
            assert!(idle.cancel());
            drop(first.shutdown_now());
            drop(first);
            let Some(second) = next_at(desk) else {
                continue;
            };
            assert!(!second.is_shutdown());
            let own = insert(&second);
            let task = second.schedule(HOUR, || 9).unwrap();
            assert!(desk.remove(key).is_none(), "D2");
            assert!(!handle.cancel() && !handle.interrupt() && !idle.cancel());
            assert_eq!(handle.next_run(), Deadline::NEVER);
            assert!(handle.join().unwrap_err().is_cancelled());
            let now = second.snapshot();
            assert_eq!((now.pending, now.cancelled), (2, 0));
            assert!(desk.remove(own).is_some());
            assert!(task.cancel());
            return;
        }
        panic!("no pool came to the desk of the one before, in a thousand tries");
    }

    #[test]
    fn a_desk_that_is_given_back_keeps_nothing_of_its_pool() {
        let first = pool();
        let desk = first.core.desk;
        let executor = Arc::downgrade(&first.executor);
        let core = Arc::downgrade(&first.core);
        insert(&first);
        // Some of what keeps the core alive is in the books now (N3).
        let tasks: Vec<_> = (0..100).map(|_| first.schedule(HOUR, || ())).collect();
        let handles: Vec<_> = tasks.into_iter().map(Result::unwrap).collect();
        assert!(handles[1..].iter().all(|handle| handle.cancel()));
        let kept = desk.books().kept.len();
        assert_eq!(kept, 99);
        drop(first.shutdown_now());
        assert!(first.is_terminated());
        drop(first);
        assert!(core.upgrade().is_none() && executor.upgrade().is_none());
        assert!(handles.iter().all(|handle| handle.is_cancelled()));
    }
}
