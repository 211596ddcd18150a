//! The registry itself. Its lock is ours, so that a thread sanitizer sees it.

use crate::park::{Block, Site, ThreadBlock, Woken};
use crate::sync::{Mutex, thread};
use core::fmt;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::task::Waker;
use std::thread::{Thread, ThreadId};
use std::time::{Duration, Instant};

/// A parked strand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The thread that waits, or that carries the strand that does.
    pub thread: ThreadId,
    /// The name of the thread, if it has one.
    pub name: Option<String>,
    /// Where it waits.
    pub site: Site,
    /// Whether its wait has a deadline.
    pub timed: bool,
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "thread `{name}`")?,
            None => write!(f, "{:?}", self.thread)?,
        }
        let timed = if self.timed { ", with a deadline" } else { "" };
        write!(f, " is parked in {}{timed}", self.site)
    }
}

/// What is kept of a parked strand: making it allocates nothing, since tests with probes count allocations, too.
struct Record {
    thread: Thread,
    site: Site,
    timed: bool,
}

impl Record {
    fn to_wait(&self) -> Wait {
        Wait {
            thread: self.thread.id(),
            name: self.thread.name().map(str::to_owned),
            site: self.site,
            timed: self.timed,
        }
    }
}

struct Registry {
    next: u64,
    waits: BTreeMap<u64, Record>,
    /// To be woken at the next change.
    watchers: Vec<Waker>,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
    next: 0,
    waits: BTreeMap::new(),
    watchers: Vec::new(),
});

/// Has forks acquire the lock of the registry.
#[allow(dead_code, reason = "only where processes fork")]
pub(crate) fn register_fork_locks() {
    crate::fork::register_lock(&REGISTRY);
}

/// Changes the registry and wakes the watchers.
fn change<R>(f: impl FnOnce(&mut Registry) -> R) -> R {
    let mut registry = REGISTRY.lock();
    let result = f(&mut registry);
    let watchers = core::mem::take(&mut registry.watchers);
    drop(registry);
    watchers.into_iter().for_each(Waker::wake);
    result
}

/// A record in the registry, removed on drop.
pub(in crate::park) struct Recorded(u64);

pub(in crate::park) fn record(site: Site, timed: bool) -> Recorded {
    let wait = Record {
        thread: thread::current(),
        site,
        timed,
    };
    Recorded(change(|registry| {
        let id = registry.next;
        registry.next += 1;
        registry.waits.insert(id, wait);
        id
    }))
}

impl Drop for Recorded {
    fn drop(&mut self) {
        change(|registry| registry.waits.remove(&self.0));
    }
}

/// All parked strands, the longest wait first. [`Wait`]s print as sentences: a watchdog prints them when a
/// test hangs.
pub fn waits() -> Vec<Wait> {
    let registry = REGISTRY.lock();
    registry.waits.values().map(Record::to_wait).collect()
}

/// Blocks until some strand's wait satisfies `wanted`, and returns that wait.
///
/// # Errors
///
/// After `timeout` it gives up, with a text that lists all parked strands.
///
/// ```
/// use millpond_raw::park::{self, Site, probe};
/// use std::time::Duration;
///
/// let here = park::current();
/// let waker = here.waker();
/// let watcher = std::thread::spawn(move || {
///     let found = probe::await_wait(Duration::from_secs(10), |wait| {
///         wait.site.name() == "example.sleep"
///     });
///     waker.wake();
///     found
/// });
/// here.park(Site::new("example.sleep"));
/// let wait = watcher.join().unwrap().expect("it was seen");
/// assert!(wait.to_string().ends_with("is parked in example.sleep"));
/// ```
#[allow(
    clippy::disallowed_methods,
    reason = "watches the seam, so it stands outside"
)]
pub fn await_wait(timeout: Duration, wanted: impl Fn(&Wait) -> bool) -> Result<Wait, String> {
    let deadline = Instant::now() + timeout;
    // Not through a strand: the watcher must not find itself in the registry.
    let block = Arc::new(ThreadBlock::new());
    let mut timed_out = false;
    loop {
        {
            let mut registry = REGISTRY.lock();
            let mut waits = registry.waits.values().map(Record::to_wait);
            if let Some(wait) = waits.find(|wait| wanted(wait)) {
                return Ok(wait);
            }
            if timed_out {
                let waits = registry.waits.values().map(Record::to_wait);
                return Err(not_parked(timeout, waits));
            }
            registry.watchers.push(Arc::clone(&block).waker());
        }
        timed_out = block.park(Some(deadline)) == Woken::TimedOut;
    }
}

fn not_parked(timeout: Duration, waits: impl Iterator<Item = Wait>) -> String {
    let mut text =
        format!("no thread parked there within {timeout:?}; these are parked elsewhere:");
    for wait in waits {
        let _ = write!(text, "\n  {wait}");
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::disallowed_types,
        clippy::disallowed_methods,
        reason = "a test stands outside"
    )]

    use super::*;
    use crate::park;

    const TIMEOUT: Duration = Duration::from_secs(10);

    #[test]
    fn a_parked_thread_is_seen_by_name_and_site_until_it_is_woken() {
        let (send, receive) = std::sync::mpsc::channel();
        let sleeper = thread::start(Some("sleeper".into()), None, move || {
            let here = park::current();
            send.send(here.waker()).expect("the test listens");
            here.park(Site::new("probe.test"));
        })
        .expect("a thread can be started");
        let waker = receive.recv().expect("the sleeper sends its waker");
        let id = sleeper.thread().id();
        let wait = await_wait(TIMEOUT, |wait| wait.thread == id).expect("it parks");
        assert_eq!(wait.to_string(), "thread `sleeper` is parked in probe.test");
        waker.wake();
        sleeper.join().expect("it wakes up");
        assert!(waits().iter().all(|wait| wait.thread != id));
    }

    #[test]
    fn a_wait_that_never_happens_ends_with_a_list_of_all_parked_threads() {
        let error = await_wait(Duration::from_millis(1), |_| false).expect_err("no wait matches");
        assert!(
            error.starts_with("no thread parked there within 1ms"),
            "{error}"
        );
    }
}
