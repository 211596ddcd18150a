//! A test that hangs reports which thread waits where, and ends the process so that it is noticed.
//!
//! One watchdog thread serves all tests of a process. Arming costs a lock; a test that ends in time
//! removes its entry. When one does not, the watchdog prints all parked threads, and every
//! thread of the process with its state where the operating system reports it, and calls the alarm,
//! which aborts.

use super::{delays, exhaust};
use millpond_raw::park::probe;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::{Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

type Alarm = Box<dyn FnOnce(&str) + Send>;

struct Entry {
    name: String,
    timeout: Duration,
    end: Instant,
    alarm: Alarm,
}

#[derive(Default)]
struct Watched {
    next: u64,
    entries: BTreeMap<u64, Entry>,
}

static WATCHED: Mutex<Option<Watched>> = Mutex::new(None);
static CHANGED: Condvar = Condvar::new();
static STARTED: Once = Once::new();

fn watched() -> MutexGuard<'static, Option<Watched>> {
    WATCHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Watches the test that the present thread runs, with the timeout of [`delays::hang`]. A test begins with
/// `let _watch = watch();`.
pub fn watch() -> Watchdog {
    let thread = std::thread::current();
    Watchdog::arm(thread.name().unwrap_or("a test"), delays::hang())
}

/// A watch over one test; dropping it ends the watch.
#[derive(Debug)]
#[must_use = "the watch ends when it is dropped"]
pub struct Watchdog(u64);

impl Watchdog {
    /// Watches until it is dropped. After `timeout` the process prints what hangs and aborts.
    pub fn arm(name: &str, timeout: Duration) -> Self {
        Watchdog::arm_with(name, timeout, |report| {
            // Not by a macro: those write into the test's captured output, which dies with us.
            let _ = std::io::stderr().write_all(report.as_bytes());
            std::process::abort();
        })
    }

    /// Watches, and calls `alarm` with the report instead.
    pub fn arm_with(
        name: &str,
        timeout: Duration,
        alarm: impl FnOnce(&str) + Send + 'static,
    ) -> Self {
        exhaust::enter();
        STARTED.call_once(|| {
            std::thread::Builder::new()
                .name("watchdog".into())
                .spawn(watch_all)
                .expect("a thread can be started");
        });
        let mut guard = watched();
        let watched = guard.get_or_insert_default();
        let id = watched.next;
        watched.next += 1;
        let entry = Entry {
            name: name.to_owned(),
            timeout,
            end: Instant::now() + timeout,
            alarm: Box::new(alarm),
        };
        watched.entries.insert(id, entry);
        CHANGED.notify_all();
        Watchdog(id)
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        if let Some(watched) = watched().as_mut() {
            watched.entries.remove(&self.0);
        }
    }
}

fn watch_all() {
    let mut guard = watched();
    loop {
        let now = Instant::now();
        let entries = &mut guard.get_or_insert_default().entries;
        let due = entries
            .iter()
            .find(|(_, entry)| entry.end <= now)
            .map(|(&id, _)| id);
        if let Some(entry) = due.and_then(|id| entries.remove(&id)) {
            drop(guard);
            (entry.alarm)(&report(&entry.name, entry.timeout));
            guard = watched();
            continue;
        }
        let next = entries.values().map(|entry| entry.end).min();
        guard = match next {
            None => CHANGED.wait(guard).unwrap_or_else(PoisonError::into_inner),
            Some(end) => {
                CHANGED
                    .wait_timeout(guard, end - now)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0
            }
        };
    }
}

fn report(name: &str, timeout: Duration) -> String {
    let mut text = format!("wedged: `{name}` has not ended within {timeout:?}\nparked:\n");
    let waits = probe::waits();
    if waits.is_empty() {
        text.push_str("  nobody\n");
    }
    for wait in waits {
        let _ = writeln!(text, "  {wait}");
    }
    text.push_str("threads:\n");
    for thread in threads() {
        let _ = writeln!(text, "  {thread}");
    }
    text
}

/// Every thread of the process with its state, where `/proc` tells.
fn threads() -> Vec<String> {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else {
        return vec!["this operating system does not tell".to_owned()];
    };
    let read = |path: std::path::PathBuf| std::fs::read_to_string(path).unwrap_or_default();
    tasks
        .flatten()
        .map(|task| {
            let status = read(task.path().join("status"));
            let field = |name: &str| {
                let line = status.lines().find_map(|line| line.strip_prefix(name));
                line.unwrap_or("unknown").trim().to_owned()
            };
            let wchan = read(task.path().join("wchan"));
            format!("`{}` is {} {wchan}", field("Name:"), field("State:"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Actor;
    use millpond::interrupt;
    use std::sync::mpsc;

    #[test]
    fn a_test_that_hangs_is_reported_with_the_sites_where_threads_wait() {
        let sleeper = Actor::start("hanging", || interrupt::sleep(Duration::MAX));
        sleeper.await_parked("interrupt.sleep");
        let (tell, told) = mpsc::channel();
        let _watchdog = Watchdog::arm_with("the_wheel_turns", delays::timeout(), move |report| {
            tell.send(report.to_owned()).unwrap();
        });
        let report = told.recv_timeout(delays::long()).unwrap();
        assert!(
            report.contains("`the_wheel_turns` has not ended"),
            "{report}"
        );
        assert!(
            report.contains("thread `hanging` is parked in interrupt.sleep"),
            "{report}"
        );
        assert!(report.contains("`watchdog` is"), "{report}");
        sleeper.interrupt();
        assert!(sleeper.finish().is_err());
    }

    #[test]
    fn a_test_that_ends_in_time_is_left_alone() {
        let (tell, told) = mpsc::channel::<()>();
        drop(Watchdog::arm_with("quick", delays::longer(), move |_| {
            drop(tell)
        }));
        assert_eq!(
            told.try_recv(),
            Err(mpsc::TryRecvError::Disconnected),
            "the alarm is dropped uncalled"
        );
    }
}
