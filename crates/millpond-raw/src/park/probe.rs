//! Who waits where: the registry behind honest race tests.
//!
//! A test that wants to interrupt a thread *while it blocks in `queue.take`* must know that it
//! does; sleeping and hoping is how flaky tests are made. With the feature `probe` every park notes
//! its site here before it sleeps and strikes it out after.
//!
//! Being noted means that the strand has decided to wait and will not look at its condition again
//! before something wakes it. It may still be a few instructions away from the futex; the token
//! rule makes the difference invisible.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "watches the seam, so it stands outside"
)]

use super::Site;
use core::fmt;
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

/// One strand that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The thread that waits, or that carries the strand that does.
    pub thread: ThreadId,
    /// Its name, if it has one.
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

struct Registry {
    next: u64,
    waits: BTreeMap<u64, Wait>,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
    next: 0,
    waits: BTreeMap::new(),
});
static CHANGED: Condvar = Condvar::new();

fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A note in the registry; dropping it strikes it out.
pub(super) struct Noted(u64);

pub(super) fn note(site: Site, timed: bool) -> Noted {
    let thread = thread::current();
    let name = thread.name().map(str::to_owned);
    let mut registry = registry();
    let id = registry.next;
    registry.next += 1;
    registry.waits.insert(
        id,
        Wait {
            thread: thread.id(),
            name,
            site,
            timed,
        },
    );
    CHANGED.notify_all();
    Noted(id)
}

impl Drop for Noted {
    fn drop(&mut self) {
        registry().waits.remove(&self.0);
        CHANGED.notify_all();
    }
}

/// Everyone who waits now, longest first. [`Wait`]s print as sentences: this is what a watchdog
/// shows when a test hangs.
pub fn waits() -> Vec<Wait> {
    registry().waits.values().cloned().collect()
}

/// Blocks until some strand's wait satisfies `wanted`, and returns that wait.
///
/// # Errors
///
/// After `patience` it gives up, with a text that lists who waits where instead.
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
pub fn await_wait(patience: Duration, wanted: impl Fn(&Wait) -> bool) -> Result<Wait, String> {
    let deadline = Instant::now() + patience;
    let mut registry = registry();
    loop {
        if let Some(wait) = registry.waits.values().find(|wait| wanted(wait)) {
            return Ok(wait.clone());
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let mut text = format!("nobody came to wait there within {patience:?}");
            for wait in registry.waits.values() {
                text.push_str(&format!("\n  {wait}"));
            }
            return Err(text);
        }
        registry = CHANGED
            .wait_timeout(registry, left)
            .unwrap_or_else(PoisonError::into_inner)
            .0;
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;
    use crate::park;

    const PATIENCE: Duration = Duration::from_secs(10);

    #[test]
    fn a_parked_thread_is_seen_by_name_and_site_until_it_is_woken() {
        let (send, receive) = std::sync::mpsc::channel();
        let sleeper = thread::Builder::new()
            .name("sleeper".into())
            .spawn(move || {
                let here = park::current();
                send.send(here.waker()).expect("the test listens");
                here.park(Site::new("probe.test"));
            })
            .expect("a thread can be started");
        let waker = receive.recv().expect("the sleeper sends its waker");
        let id = sleeper.thread().id();
        let wait = await_wait(PATIENCE, |wait| wait.thread == id).expect("it parks");
        assert_eq!(wait.to_string(), "thread `sleeper` is parked in probe.test");
        waker.wake();
        sleeper.join().expect("it wakes up");
        assert!(waits().iter().all(|wait| wait.thread != id));
    }

    #[test]
    fn waiting_for_somebody_who_never_comes_ends_with_a_list_of_those_who_did() {
        let error = await_wait(Duration::from_millis(1), |_| false).expect_err("nobody comes");
        assert!(
            error.starts_with("nobody came to wait there within 1ms"),
            "{error}"
        );
    }
}
