//! Who keeps a scheduled pool from being over (K2): wards, of two kinds.
//!
//! [`Ward`] is shared: by the pool until it is shut down, by every series until it has ended and by each of
//! its runs. It is counted as any `Arc` is.
//!
//! [`OwnWard`] is that of a task that runs once, inside its closure. There may be millions of these, and
//! most come to be cancelled, so they are counted in passing, where somebody has a lock anyway:
//!
//! ```text
//!   schedule             books:  wards + 1, and the entry into the wheel
//!   dropped unrun        books:  wards - 1, and the entry out of the wheel, if it is still there
//!   has run              bodies: ended + 1, with the count of those who are busy, when its outcome is delivered
//!
//!   no ward is left:     the shared one is gone, and wards = ended
//! ```
//!
//! So to cancel a task is to drop its closure. Nothing is left of it in the wheel when that is done, whoever
//! did it and why: a handle that cancels, or a waiter that finds it expired.
//!
//! # Rules
//!
//! - **N1** The books are locked before the bodies, where both are.
//! - **N2** Who counts a ward out looks afterwards whether any is left, under both locks. As long as the pool
//!   has the shared one there is no need to. So who was last sees it; two may see it.
//! - **N3** An own ward has the core, for its task to run in. Some of these references are kept in the
//!   books, as long as the pool takes tasks: in the steady state nobody counts them up or down.
//!   The shutdown takes them out with the pool's ward.

use super::core::{Books, Core, Entry};
use crate::executor;
use crate::time::Key;
use std::sync::Arc;

/// N3: so many references are kept, 8 KiB at most.
const MOST_KEPT: usize = 1024;

/// The ward that the pool, its series and their runs share.
pub(super) struct Ward(pub(super) Arc<Core>);

impl Drop for Ward {
    fn drop(&mut self) {
        let core = &self.0;
        if core.is_forked() {
            return;
        }
        core.bodies.lose_the_shared_ward();
        if core.has_no_ward() {
            core.is_over_now();
        }
    }
}

/// The ward of one task: in its closure, behind what is the user's.
pub(super) struct OwnWard {
    /// `None` when the task has begun.
    core: Option<Arc<Core>>,
    /// Where the task waits.
    key: Key,
}

impl OwnWard {
    /// One that has been [counted](Books::count_ward), for the task with this key.
    pub(super) fn new(core: Arc<Core>, key: Key) -> Self {
        let core = Some(core);
        OwnWard { core, key }
    }

    /// The task begins to run; from now on its being [busy](super::busy::Busy) is the ward.
    pub(super) fn into_core(mut self) -> Arc<Core> {
        let core = self.core.take();
        core.expect("it is only taken here and in the drop")
    }
}

/// The task will not run.
impl Drop for OwnWard {
    fn drop(&mut self) {
        let Some(core) = self.core.take() else {
            return;
        };
        if core.is_forked() {
            return;
        }
        if core.has_witnesses() {
            executor::discount_witness();
        }
        let mut books = core.desk.books();
        let shell = books.leave(self.key);
        books.wards -= 1;
        if books.ward.is_some() {
            let unkept = books.keep(core);
            drop(books);
            // K6: not under the lock, for they may be the last of something.
            drop((shell, unkept));
            return;
        }
        drop(books);
        drop(shell);
        if core.has_no_ward() {
            core.is_over_now();
        }
    }
}

impl Core {
    /// Whether no ward is left (N2).
    pub(super) fn has_no_ward(&self) -> bool {
        let books = self.books();
        self.bodies.were_all(books.wards)
    }
}

impl Books {
    /// Counts a ward for a task that comes in, and gives it the core (N3).
    #[inline]
    pub(super) fn count_ward(&mut self, core: &Arc<Core>) -> Arc<Core> {
        self.wards += 1;
        self.kept.pop().unwrap_or_else(|| Arc::clone(core))
    }

    /// Takes out a task whose closure is gone. If it still waits, its handle has cancelled it.
    #[inline]
    fn leave(&mut self, key: Key) -> Option<Entry> {
        let entry = self.wheel.remove(key)?;
        self.cancelled += 1;
        Some(entry)
    }

    /// The shutdown: nothing more comes in (N3).
    pub(super) fn take_wards(&mut self) -> (Option<Arc<Ward>>, Vec<Arc<Core>>) {
        (self.ward.take(), std::mem::take(&mut self.kept))
    }

    /// Keeps a reference for the next task, or gives it back (N3).
    #[inline]
    fn keep(&mut self, core: Arc<Core>) -> Option<Arc<Core>> {
        if self.kept.len() == MOST_KEPT {
            return Some(core);
        }
        self.kept.push(core);
        None
    }
}
