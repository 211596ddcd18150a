//! How a submitter knows its own task again when it has given it away.
//!
//! Now and then a task must come out of the queue again, because it is too late for it, or because no
//! thread could be started; and then it must be that very one. Its address is not enough: when a task
//! has been run its memory is used again, perhaps for the next task in the same queue. So address and
//! stamp name it together.
//!
//! - **I1** Before an address is used again a task must have been taken out, run and freed, its memory
//!   must have come round to another thread, and that thread must have made and stamped a task: ten
//!   times as long as a stamp is coarse. Within a submit its own thread stamps no other task. So
//!   address and stamp together name one task for as long as its submit lasts.
//! - **I2** A manual clock may stand still meanwhile. There the submitter keeps a reference, as long as its
//!   submit lasts, and nobody else gets the memory.

use crate::task::{Home, Task, Witness};
use crate::time::Ticker;
use millpond_raw::sync::local;
use std::cell::Cell;

local! {
    static NUMBER: Cell<usize> = Cell::new(0);
}

/// What names a task while it is being submitted (I1).
#[derive(Debug)]
pub(super) struct Identity {
    address: usize,
    settled: u64,
    /// I2.
    _kept: Option<Witness>,
}

impl Identity {
    /// Stamps the task: from now on it waits in the engine with this home, or on its way there.
    #[inline]
    pub(super) fn give(task: &Task, home: Option<&Home>, ticker: &Ticker) -> Self {
        task.settle(home, ticker.stamp());
        Identity {
            address: task.address(),
            settled: task.settled(),
            _kept: ticker.stands_still().then(|| task.witness()),
        }
    }

    pub(super) fn is(&self, task: &Task) -> bool {
        task.address() == self.address && task.settled() == self.settled
    }
}

/// The number of this thread. No other has it; in a thread that is being torn down it may be 0.
#[inline]
pub(super) fn thread_number() -> usize {
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

/// A number that no other thread has.
fn next_number() -> usize {
    #![allow(
        clippy::disallowed_types,
        reason = "a static outlives every model, and only tells threads apart"
    )]
    use std::sync::atomic::{AtomicUsize, Ordering};
    static THREADS: AtomicUsize = AtomicUsize::new(1);
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
        let ticker = Ticker::of(&hand.clock());
        let (task, _handle) = task::new(|| ());
        let first = Identity::give(&task, None, &ticker);
        assert!(first.is(&task));
        hand.advance(Duration::from_nanos(1));
        let second = Identity::give(&task, None, &ticker);
        assert!(second.is(&task) && !first.is(&task));
    }

    #[test]
    fn stamps_of_the_machine_differ_between_submits() {
        let ticker = Ticker::of(&Clock::system());
        let (task, _handle) = task::new(|| ());
        let first = Identity::give(&task, None, &ticker);
        // As long as it takes to run a task and to use its memory again, and that is long.
        let start = ticker.now();
        while ticker.nanos(start, ticker.now()) < 50 {}
        Identity::give(&task, None, &ticker);
        assert!(!first.is(&task));
    }

    #[test]
    fn where_time_stands_still_nobody_else_gets_the_memory() {
        let ticker = Ticker::of(&ManualClock::new().clock());
        let (task, handle) = task::new(|| ());
        let first = Identity::give(&task, None, &ticker);
        drop((task, handle));
        let others: Vec<_> = (0..1000).map(|_| task::new(|| ())).collect();
        for (task, _) in &others {
            Identity::give(task, None, &ticker);
            assert!(!first.is(task));
        }
    }
}
