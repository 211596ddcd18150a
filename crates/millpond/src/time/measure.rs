//! How late alarms are, and what an idle timer costs. These are measures and no tests: they print.
//!
//! ```text
//! cargo test --release -p millpond --lib time::measure -- --ignored --nocapture --test-threads 1
//! ```

use super::*;
use millpond_raw::park::{self, Site};
use millpond_raw::sync::Mutex;
use millpond_raw::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

const ALARMS: usize = 100_000;
const BETWEEN: Duration = Duration::from_micros(10);

/// Until the first is due: long enough to set all of them.
const AHEAD: Duration = Duration::from_millis(300);

struct Books {
    late: Vec<AtomicU64>,
    fired: AtomicUsize,
    done: Waker,
}

impl Books {
    fn new() -> Arc<Self> {
        Arc::new(Books {
            late: (0..ALARMS).map(|_| AtomicU64::new(0)).collect(),
            fired: AtomicUsize::new(0),
            done: park::current().waker(),
        })
    }

    fn note(&self, number: usize, due: Instant) {
        let late = Clock::system().now().saturating_duration_since(due);
        let late = u64::try_from(late.as_nanos()).unwrap_or(u64::MAX);
        self.late[number].store(late, Ordering::Relaxed);
        if self.fired.fetch_add(1, Ordering::Relaxed) + 1 == ALARMS {
            self.done.wake_by_ref();
        }
    }

    fn wait_and_print(&self, what: &str) {
        while self.fired.load(Ordering::Relaxed) < ALARMS {
            park::current().park(Site::new("measure.wait"));
        }
        let mut late: Vec<_> = self
            .late
            .iter()
            .map(|one| one.load(Ordering::Relaxed))
            .collect();
        late.sort_unstable();
        let part = |of_1000: usize| late[(late.len() - 1) * of_1000 / 1000] as f64 / 1000.0;
        println!(
            "{what}: lateness in us: p50 {:.1}, p90 {:.1}, p99 {:.1}, p99.9 {:.1}, most {:.1}; CPU {:?}",
            part(500),
            part(900),
            part(990),
            part(999),
            part(1000),
            cpu_of_timer(),
        );
    }
}

/// The numbers of the timer's threads.
fn timer_threads() -> Vec<u32> {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    let number = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    let numbers = threads.flatten().filter_map(number);
    let name = |tid: u32| std::fs::read_to_string(format!("/proc/self/task/{tid}/comm"));
    let is_timer =
        |name: String| name.starts_with("millpond-timer") || name.starts_with("millpond-alarm");
    numbers
        .filter(|tid| name(*tid).is_ok_and(is_timer))
        .collect()
}

fn cpu_of_timer() -> Duration {
    let cpu = timer_threads()
        .into_iter()
        .filter_map(millpond_raw::cpu_time::cpu_time_of);
    cpu.sum()
}

fn wake_ups_of_timer() -> Vec<String> {
    let status = |tid| std::fs::read_to_string(format!("/proc/self/task/{tid}/status"));
    let switches = |status: String| {
        let lines = status.lines().filter(|line| line.contains("ctxt_switches"));
        lines.collect::<Vec<_>>().join(", ")
    };
    timer_threads()
        .into_iter()
        .flat_map(status)
        .map(switches)
        .collect()
}

struct One {
    number: usize,
    due: Instant,
    books: Arc<Books>,
}

impl Wake for One {
    fn wake(self: Arc<Self>) {
        self.books.note(self.number, self.due);
    }
}

#[test]
#[ignore = "a measure"]
fn lateness_of_alarms_that_are_all_set_before() {
    for _ in 0..3 {
        let books = Books::new();
        let clock = Clock::system();
        let start = clock.now() + AHEAD;
        let alarms: Vec<_> = (0..ALARMS)
            .map(|number| {
                let due = start + BETWEEN * u32::try_from(number).unwrap();
                let books = Arc::clone(&books);
                let waker = Waker::from(Arc::new(One { number, due, books }));
                clock.alarm(Deadline::at(due), &waker)
            })
            .collect();
        println!(
            "all set {:?} before the first is due",
            start.saturating_duration_since(clock.now())
        );
        books.wait_and_print("all set before");
        drop(alarms);
    }
}

/// As a pool that sets its next alarm when the previous one fires.
struct Chain {
    start: Instant,
    next: AtomicUsize,
    books: Arc<Books>,
    alarm: Mutex<Option<Alarm>>,
}

impl Chain {
    fn due(&self, number: usize) -> Instant {
        self.start + BETWEEN * u32::try_from(number).unwrap()
    }

    fn set(self: &Arc<Self>, number: usize) {
        let waker = Waker::from(Arc::clone(self));
        let alarm = Clock::system().alarm(Deadline::at(self.due(number)), &waker);
        let old = self.alarm.lock().replace(alarm.ok().unwrap());
        drop(old);
    }
}

impl Wake for Chain {
    fn wake(self: Arc<Self>) {
        // Everything that is due, as a pool does.
        loop {
            let number = self.next.load(Ordering::Relaxed);
            if number == ALARMS {
                return;
            }
            if Clock::system().now() < self.due(number) {
                return self.set(number);
            }
            self.next.store(number + 1, Ordering::Relaxed);
            self.books.note(number, self.due(number));
        }
    }
}

#[test]
#[ignore = "a measure"]
fn lateness_of_alarms_that_are_set_from_the_one_before() {
    for _ in 0..3 {
        let books = Books::new();
        let chain = Arc::new(Chain {
            start: Clock::system().now() + AHEAD,
            next: AtomicUsize::new(0),
            books: Arc::clone(&books),
            alarm: Mutex::new(None),
        });
        chain.set(0);
        books.wait_and_print("set from the one before");
    }
}

#[test]
#[ignore = "a measure"]
fn wake_ups_while_one_alarm_is_an_hour_away() {
    let clock = Clock::system();
    let alarm = clock.alarm(clock.deadline(Duration::from_secs(3600)), Waker::noop());
    let wait = |time| {
        let until = clock.deadline(time);
        while !until.has_passed(clock.now()) {
            let _ = clock.park_until(&park::current(), Site::new("measure.wait"), until);
        }
    };
    // A thread that was idle before checks once more.
    wait(Duration::from_millis(1200));
    let before = wake_ups_of_timer();
    wait(Duration::from_secs(2));
    println!("before: {before:?}\nafter:  {:?}", wake_ups_of_timer());
    drop(alarm);
}
