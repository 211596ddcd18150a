//! How a submitter recognises its own task in the queue.
//!
//! Now and then a task must be taken out of the queue again, because it came too late, or because no thread could be
//! started; and then it must be that very one. Its address is not enough: when a task has been run its memory is reused,
//! perhaps for the next task in the same queue. So address and timestamp identify it together.
//!
//! - **IDENTITY-1** Before an address is reused a task must have been taken out, run and freed, its memory must have come
//!   to another thread, and that thread must have made and stamped a task: several times as long as the resolution of a
//!   timestamp. Within a submit its own thread stamps no other task. So address and timestamp together identify one task
//!   for as long as its submit lasts.
//! - **IDENTITY-2** A manual clock may stand still meanwhile. There the submitter keeps a reference as long as its submit
//!   lasts, and its memory is not reused.

use crate::task::{QueueTag, Task, Witness};
use crate::time::TimestampClock;
use millpond_raw::sync::atomic::{AtomicUsize, Ordering};
use millpond_raw::sync::{global, local};
use std::cell::Cell;

global! {
    static THREADS: AtomicUsize = AtomicUsize::new(1);
}

local! {
    static NUMBER: Cell<usize> = Cell::new(0);
}

/// What identifies a task while it is being submitted (IDENTITY-1).
#[derive(Debug)]
pub(crate) struct Identity {
    address: usize,
    tag_word: u64,
    /// IDENTITY-2.
    _kept: Option<Witness>,
}

impl Identity {
    /// Stamps the task: from now on it is in the queue with this tag, or on its way there.
    #[inline]
    pub(crate) fn give(task: &Task, tag: Option<&QueueTag>, timestamps: &TimestampClock) -> Self {
        task.set_tag(tag, timestamps.short_now());
        Identity {
            address: task.address(),
            tag_word: task.tag_word(),
            _kept: timestamps.stands_still().then(|| task.witness()),
        }
    }

    pub(crate) fn is(&self, task: &Task) -> bool {
        task.address() == self.address && task.tag_word() == self.tag_word
    }
}

/// The number of this thread, which no other thread has; 0 in a thread that is being torn down.
#[inline]
pub(crate) fn thread_number() -> usize {
    let number = NUMBER.try_with(|number| match number.get() {
        0 => first_number(number),
        known => known,
    });
    number.unwrap_or(0)
}

#[cold]
fn first_number(number: &Cell<usize>) -> usize {
    number.set(next_number());
    number.get()
}

/// A number that no other thread has. In a model it depends on the schedule alone, because queues are chosen by it.
fn next_number() -> usize {
    THREADS.fetch_add(1, Ordering::Relaxed)
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;
    use crate::task;
    use crate::time::{Clock, ManualClock};
    use std::time::Duration;

    #[test]
    fn a_task_that_is_stamped_anew_is_another() {
        let hand = ManualClock::new();
        let timestamps = TimestampClock::of(&hand.clock());
        let (task, _handle) = task::new(|| ());
        let first = Identity::give(&task, None, &timestamps);
        assert!(first.is(&task));
        hand.advance(Duration::from_nanos(1));
        let second = Identity::give(&task, None, &timestamps);
        assert!(second.is(&task) && !first.is(&task));
    }

    #[test]
    fn stamps_of_the_machine_differ_between_submits() {
        let timestamps = TimestampClock::of(&Clock::system());
        let (task, _handle) = task::new(|| ());
        let first = Identity::give(&task, None, &timestamps);
        // As long as it takes to run a task and to use its memory again, and that is long.
        let start = timestamps.now();
        while timestamps.nanos(start, timestamps.now()) < 50 {}
        Identity::give(&task, None, &timestamps);
        assert!(!first.is(&task));
    }

    #[test]
    fn where_time_stands_still_nobody_else_gets_the_memory() {
        let timestamps = TimestampClock::of(&ManualClock::new().clock());
        let (task, handle) = task::new(|| ());
        let first = Identity::give(&task, None, &timestamps);
        drop((task, handle));
        let others: Vec<_> = (0..1000).map(|_| task::new(|| ())).collect();
        for (task, _) in &others {
            Identity::give(task, None, &timestamps);
            assert!(!first.is(task));
        }
    }
}
