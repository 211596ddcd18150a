//! An executor that runs tasks on the caller's thread, so that due tasks run on the thread that advances a manual clock,
//! and nothing is concurrent; and a diary of what ran when.

use millpond::executor::{Executor, ExecutorExt, Rejected, TryExecuteError};
use millpond::pool::{PoolBuilder, ThreadPool};
use millpond::schedule::{ScheduleEvent, ScheduledBuilder, ScheduledPool};
use millpond::task::Task;
use millpond::time::{Clock, ManualClock};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const HOUR: Duration = Duration::from_secs(3600);

/// Runs tasks on the caller's thread, by a manual clock.
#[derive(Debug)]
pub(crate) struct InPlace(pub(crate) Clock);

impl Executor for InPlace {
    fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        let _ = task.run();
        Ok(())
    }

    fn try_execute_task(&self, task: Task) -> Result<(), TryExecuteError> {
        self.execute_task(task).map_err(TryExecuteError::Rejected)
    }

    fn clock(&self) -> Clock {
        self.0.clone()
    }
}

/// A manual clock, a pool that goes by it, and what was noted.
pub(crate) struct Bench {
    pub(crate) manual: ManualClock,
    pub(crate) timers: ScheduledPool<InPlace>,
    pub(crate) diary: Diary,
    pub(crate) events: Arc<Mutex<Vec<ScheduleEvent>>>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let manual = ManualClock::new();
        let events = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&events);
        let timers = ScheduledPool::on(InPlace(manual.clock()))
            .name("bench")
            .on_event(move |event| heard.lock().unwrap().push(event.clone()))
            .build();
        Bench {
            diary: Diary::new(&manual),
            manual,
            timers,
            events,
        }
    }

    /// Lets so many seconds pass, one after the other.
    pub(crate) fn pass(&self, seconds: u64) {
        for _ in 0..seconds {
            self.manual.advance(SECOND);
        }
    }

    /// Lets time pass until it is so late; runs may take some of it, too.
    pub(crate) fn pass_until(&self, second: u64) {
        while self.diary.second() < second {
            self.manual.advance(SECOND);
        }
    }

    pub(crate) fn events(&self) -> Vec<String> {
        let events = self.events.lock().unwrap();
        events.iter().map(ToString::to_string).collect()
    }
}

/// What was noted, with the second in which it was.
#[derive(Clone)]
pub(crate) struct Diary {
    clock: Clock,
    start: Instant,
    pages: Arc<Mutex<Vec<(u64, String)>>>,
}

impl Diary {
    pub(crate) fn new(manual: &ManualClock) -> Self {
        let clock = manual.clock();
        Diary {
            start: clock.now(),
            clock,
            pages: Arc::default(),
        }
    }

    pub(crate) fn second(&self) -> u64 {
        (self.clock.now() - self.start).as_secs()
    }

    pub(crate) fn note(&self, what: &str) {
        let page = (self.second(), what.to_owned());
        self.pages.lock().unwrap().push(page);
    }

    /// The seconds at which this was noted.
    pub(crate) fn times(&self, what: &str) -> Vec<u64> {
        let pages = self.pages.lock().unwrap();
        let found = pages.iter().filter(|(_, noted)| noted == what);
        found.map(|(second, _)| *second).collect()
    }

    /// What was noted, in its order.
    pub(crate) fn words(&self) -> Vec<String> {
        let pages = self.pages.lock().unwrap();
        pages.iter().map(|(_, word)| word.clone()).collect()
    }
}

/// Describes a pool of so many workers by this clock.
pub(crate) fn workers(manual: &ManualClock, max: usize) -> PoolBuilder {
    let pool = ThreadPool::builder("mill").max(max);
    pool.clock(manual.clock())
}

/// Occupies a worker until what this returns is dropped, or sends.
pub(crate) fn occupy(pool: &ThreadPool) -> Sender<()> {
    let ((go, wait), (begun, begins)) = (channel(), channel());
    let body = move || {
        begun.send(()).unwrap();
        let _ = wait.recv();
    };
    pool.execute(body).unwrap();
    begins.recv().unwrap();
    go
}

/// A scheduled pool on this one, which it owns or shares.
pub(crate) fn schedule_on(pool: &ThreadPool, owns: bool) -> ScheduledBuilder<ThreadPool> {
    if owns {
        ScheduledPool::owning(pool.clone())
    } else {
        ScheduledPool::on(pool.clone())
    }
}
