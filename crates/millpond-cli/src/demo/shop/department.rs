//! A department of the shop: a pool, the ledger of its tasks, and how a task is submitted to it.

use std::sync::Arc;
use std::time::Duration;

use millpond::executor::Executor;
use millpond::interrupt;
use millpond::pool::ThreadPool;
use millpond::task::TaskSpec;

use super::easel::Easel;
use super::ledger::{Counts, Ledger};
use super::visits::{Job, Work};

#[derive(Clone, Debug)]
pub(crate) struct Department {
    pub(crate) pool: ThreadPool,
    ledger: Arc<Ledger>,
    easel: Easel,
}

impl Department {
    pub(super) fn new(pool: ThreadPool, easel: Easel) -> Self {
        Department {
            pool,
            ledger: Arc::default(),
            easel,
        }
    }

    /// The account of everything that came.
    pub(crate) fn counts(&self) -> Counts {
        self.ledger.counts()
    }

    /// How long people wait at the door.
    pub(crate) fn lateness(&self) -> Duration {
        self.ledger.lateness()
    }

    pub(super) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Submits a task to the pool. How long that takes is up to the rejection policy.
    pub(super) fn submit(&self, job: Job) {
        let (slip, easel) = (self.ledger.open_slip(), self.easel);
        let task = TaskSpec::new().name(job.name).build_detached(move || {
            match job.work {
                // A real wait, in which the worker can do nothing else. It is cut short when everything is
                // stopped, and then the task is over, too.
                Work::Wait(time) => interrupt::sleep(time).unwrap_or_default(),
                Work::Paint(time) => easel.paint(time),
            }
            slip.done();
        });
        if self.pool.execute_task(task).is_err() {
            self.ledger.note_refusal();
        }
    }
}
