//! A pool of one worker, by a clock that its tasks move.

use millpond::executor::ExecutorExt;
use millpond::interrupt;
use millpond::pool::ThreadPool;
use millpond::pool::{PoolBuilder, PoolEvent, Queue, TaskMetrics};
use millpond::task::{TaskHandle, TaskSpec};
use millpond::time::ManualClock;
use millpond_conform::kit::{Gate, Latch, comes_true, delays};
use millpond_conform::suites::pond::{Pond, fresh_name};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(crate) fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// A pool by a manual clock, which keeps the notices.
pub(crate) struct Mill {
    pub(crate) hand: ManualClock,
    pub(crate) pond: Pond,
    pub(crate) notices: Arc<Mutex<Vec<PoolEvent>>>,
}

impl Mill {
    pub(crate) fn new(shape: impl FnOnce(PoolBuilder) -> PoolBuilder) -> Self {
        let (hand, notices) = (ManualClock::new(), Arc::<Mutex<Vec<_>>>::default());
        let heard = Arc::clone(&notices);
        let pool = ThreadPool::builder(fresh_name())
            .core(1)
            .queue(Queue::bounded(100))
            .clock(hand.clock())
            .on_event(move |notice| heard.lock().unwrap().push(notice.clone()));
        Mill {
            pond: Pond::of(shape(pool)),
            hand,
            notices,
        }
    }

    /// Brings a task of this name that takes so long.
    pub(crate) fn bring(&self, name: &str, takes: Duration) -> TaskHandle<()> {
        let hand = self.hand.clone();
        let spec = TaskSpec::new().name(name.to_owned());
        let body = move || hand.advance(takes);
        self.pond.submit_with(spec, body).unwrap()
    }

    /// Has a task run until the gate opens or it is interrupted, and returns which.
    pub(crate) fn hold(&self, name: &'static str) -> (Gate, TaskHandle<bool>) {
        let (gate, started) = (Gate::new(), Latch::new(1));
        let (inside, begun) = (gate.clone(), started.clone());
        let body = move || {
            begun.arrive();
            let so = || inside.is_open() || interrupt::is_interrupted();
            assert!(comes_true(delays::long(), so), "nobody lets it go");
            interrupt::check().is_err()
        };
        let spec = TaskSpec::new().name(name);
        let handle = self.pond.submit_with(spec, body).unwrap();
        started.wait();
        (gate, handle)
    }

    pub(crate) fn notices(&self) -> Vec<PoolEvent> {
        self.notices.lock().unwrap().clone()
    }

    pub(crate) fn long_runs(&self) -> Vec<String> {
        let notices = self.notices();
        let runs = notices.iter().filter_map(|notice| match notice {
            PoolEvent::LongRunning(run) => Some(run.label.to_string()),
            _ => None,
        });
        runs.collect()
    }
}

pub(crate) fn of<'a>(all: &'a [TaskMetrics], name: &str) -> &'a TaskMetrics {
    let found = all.iter().find(|named| named.label.to_string() == name);
    found.unwrap_or_else(|| panic!("{name} is not among {all:?}"))
}

/// Right up to the width of a bucket.
pub(crate) fn is_about(told: Duration, exact: Duration) -> bool {
    told.abs_diff(exact) <= exact / 16
}
