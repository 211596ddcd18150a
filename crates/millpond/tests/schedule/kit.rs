//! An executor that runs everything at once where it is brought, so that moving the hand of a manual clock
//! runs what is due and nothing happens beside it; and a diary of what ran when.

use millpond::executor::{Executor, Rejected, TryExecuteError};
use millpond::schedule::{ScheduleEvent, ScheduledPool};
use millpond::task::Task;
use millpond::time::{Clock, ManualClock};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const HOUR: Duration = Duration::from_secs(3600);

/// Runs tasks where they are brought, by a manual clock.
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

/// A hand, a pool that it drives, and what was noted.
pub(crate) struct Bench {
    pub(crate) hand: ManualClock,
    pub(crate) timers: ScheduledPool<InPlace>,
    pub(crate) diary: Diary,
    pub(crate) events: Arc<Mutex<Vec<ScheduleEvent>>>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let hand = ManualClock::new();
        let events = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&events);
        let timers = ScheduledPool::on(InPlace(hand.clock()))
            .name("bench")
            .on_event(move |event| heard.lock().unwrap().push(event.clone()))
            .build();
        Bench {
            diary: Diary::new(&hand),
            hand,
            timers,
            events,
        }
    }

    /// Lets so many seconds pass, one after the other.
    pub(crate) fn pass(&self, seconds: u64) {
        for _ in 0..seconds {
            self.hand.advance(SECOND);
        }
    }

    /// Lets time pass until it is so late; runs may take some of it, too.
    pub(crate) fn pass_until(&self, second: u64) {
        while self.diary.second() < second {
            self.hand.advance(SECOND);
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
    pub(crate) fn new(hand: &ManualClock) -> Self {
        let clock = hand.clock();
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
