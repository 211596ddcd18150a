//! How a submitter knows its own task again when it has given it away.
//!
//! Now and then a task must come out of the queue again, because it is too late for it, or because no
//! thread could be started; and then it must be that very one. Its address is not enough: when a task
//! has been run its memory is used again, perhaps for the next task in the same queue. So each
//! submitter marks what it gives away.
//!
//! - **I1** A mark is the number of the submitting thread, and a count of that thread's own. Within a
//!   submit its thread makes no other task, and another thread's marks differ, as long as there are
//!   no more than 65,536 threads. So address and mark together name one task for as long as its
//!   submit lasts.

use crate::task::Task;
use millpond_raw::sync::local;
use std::cell::Cell;

const COUNT_BITS: u32 = 16;

local! {
    static MARK: Cell<u32> = Cell::new(0);
}

/// What names a task while it is being submitted (I1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    address: usize,
    mark: u32,
}

impl Identity {
    /// Marks the task.
    #[inline]
    pub(super) fn give(task: &Task) -> Self {
        let mark = MARK.try_with(|mark| {
            let next = match mark.get() {
                0 => first_mark(),
                last => (last & !0 << COUNT_BITS) | (last.wrapping_add(1) & !(!0 << COUNT_BITS)),
            };
            mark.set(next);
            next
        });
        // In a thread that is being torn down: none of the others' marks.
        let mark = mark.unwrap_or(0);
        task.set_mark(mark);
        Identity {
            address: task.address(),
            mark,
        }
    }

    pub(super) fn is(&self, task: &Task) -> bool {
        task.address() == self.address && task.mark() == self.mark
    }
}

/// A number that no other thread has; from 1, so that no mark is 0.
#[cold]
fn first_mark() -> u32 {
    #![allow(
        clippy::disallowed_types,
        reason = "a static outlives every model, and only tells threads apart"
    )]
    use std::sync::atomic::{AtomicU32, Ordering};
    static THREADS: AtomicU32 = AtomicU32::new(0);
    let number = THREADS.fetch_add(1, Ordering::Relaxed);
    (number % 0xffff + 1) << COUNT_BITS
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;
    use crate::task;
    use millpond_raw::sync::thread;

    #[test]
    fn marks_of_one_thread_differ_and_come_round_without_leaving_it() {
        let (task, _handle) = task::new(|| ());
        let first = Identity::give(&task);
        assert_ne!(first.mark, 0);
        for _ in 1..1 << COUNT_BITS {
            let next = Identity::give(&task);
            assert_ne!(next, first);
            assert_eq!(next.mark >> COUNT_BITS, first.mark >> COUNT_BITS);
            assert!(next.is(&task) && !first.is(&task));
        }
        assert_eq!(Identity::give(&task), first);
    }

    #[test]
    fn marks_of_two_threads_differ() {
        let mark = || Identity::give(&task::new(|| ()).0).mark >> COUNT_BITS;
        let other = thread::spawn(mark).join().unwrap();
        assert_ne!(mark(), other);
    }
}
