//! A pool of one worker, by a clock that its tasks move, and what became of them.

use millpond::executor::ExecutorExt;
use millpond::pool::{PoolBuilder, PoolSnapshot, Queue, ThreadPool};
use millpond::task::{CancelReason, TaskError, TaskHandle};
use millpond::time::ManualClock;
use millpond_conform::kit::until;
use millpond_conform::suites::pond::{Pond, fresh_name};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(crate) fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// A pool of one worker, by a manual clock.
pub(crate) struct Mill {
    pub(crate) hand: ManualClock,
    pub(crate) pond: Pond,
    pub(crate) ran: Arc<Mutex<Vec<u64>>>,
}

impl Mill {
    pub(crate) fn new(shape: impl FnOnce(PoolBuilder) -> PoolBuilder) -> Self {
        let hand = ManualClock::new();
        let pool = ThreadPool::builder(fresh_name()).core(1).max(1);
        let pool = pool.queue(Queue::bounded(1000)).clock(hand.clock());
        Mill {
            pond: Pond::of(shape(pool)),
            hand,
            ran: Arc::default(),
        }
    }

    /// Brings a task of this number that takes so many milliseconds.
    pub(crate) fn bring(&self, number: u64, takes: u64) -> TaskHandle<u64> {
        let (hand, ran) = (self.hand.clone(), Arc::clone(&self.ran));
        let body = move || {
            ran.lock().unwrap().push(number);
            hand.advance(ms(takes));
            number
        };
        self.pond.submit(body).unwrap()
    }

    pub(crate) fn bring_all(
        &self,
        numbers: std::ops::Range<u64>,
        takes: u64,
    ) -> Vec<TaskHandle<u64>> {
        numbers.map(|number| self.bring(number, takes)).collect()
    }

    /// Which tasks have run, in order.
    pub(crate) fn ran(&self) -> Vec<u64> {
        self.ran.lock().unwrap().clone()
    }

    pub(crate) fn await_rest(&self) -> PoolSnapshot {
        until("all is done", || {
            let now = self.pond.snapshot();
            now.queued == 0 && now.active == 0
        });
        self.pond.snapshot()
    }
}

/// Why there is no value; `None` if there is one.
pub(crate) fn why(handle: TaskHandle<u64>) -> Option<CancelReason> {
    match handle.join() {
        Ok(_) => None,
        Err(TaskError::Cancelled(reason)) => Some(reason),
        Err(other) => panic!("neither a value nor cancelled: {other}"),
    }
}

pub(crate) fn whys(handles: Vec<TaskHandle<u64>>) -> Vec<Option<CancelReason>> {
    handles.into_iter().map(why).collect()
}

pub(crate) const TOO_LONG: Option<CancelReason> = Some(CancelReason::WaitedTooLong);
pub(crate) const SHED: Option<CancelReason> = Some(CancelReason::Shed);
