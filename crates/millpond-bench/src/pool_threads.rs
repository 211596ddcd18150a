//! The threads of a pool, as the kernel sees them: their CPU time, and whether they have ended.
//!
//! Pools do not list their threads. But the kernel lists all threads of a process, and those that
//! are new after a pool was opened belong to the pool. (Two pools that
//! are opened at the same time would each count the other's; the bench opens one at a time.)
//!
//! One thread is not counted: the timer thread of our clock ([`TIMER`]). All pools of the process
//! share it, and it stays for a second after the last alarm; the next pool to be opened would be charged
//! for all of it. It wakes up once a second while a pool of ours works.
//!
//! A pool should be idle when its threads are read: see [`crate::usage`].

use crate::usage::Usage;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// The beginning of the name of our timer's thread. (The kernel keeps 15 letters.)
pub const TIMER: &str = "millpond-timer";

/// Some threads of this process; `None` where the kernel does not list them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolThreads(Option<Vec<u32>>);

impl PoolThreads {
    /// The threads that `spawn` starts, and that are still there when it returns.
    pub fn of<T>(spawn: impl FnOnce() -> T) -> (T, PoolThreads) {
        let before = threads();
        let value = spawn();
        let pool_threads = before.zip(threads()).map(|(before, after)| {
            // Those of an earlier pool may still be on their way out: they are in both, or gone.
            after.difference(&before).copied().collect()
        });
        (value, PoolThreads(pool_threads))
    }

    /// The threads whose name begins with `prefix`. (The kernel keeps 15 letters.)
    pub fn named(prefix: &str) -> PoolThreads {
        let is_named = |id: &u32| name(*id).is_some_and(|name| name.starts_with(prefix));
        PoolThreads(threads().map(|all| all.into_iter().filter(is_named).collect()))
    }

    /// Threads of which nothing is known.
    pub fn unknown() -> PoolThreads {
        PoolThreads(None)
    }

    /// The usage of all of them together since they were started.
    pub fn usage(&self) -> Usage {
        match &self.0 {
            Some(_) => self.ids().map(Usage::of_thread).sum(),
            None => Usage::default(),
        }
    }

    /// Waits until the last of them is gone, or until `timeout` is over. Returns whether they are.
    pub fn wait_until_gone(&self, timeout: Duration) -> bool {
        let start = Instant::now();
        while !self.is_gone() {
            if start.elapsed() > timeout {
                return false;
            }
            std::thread::sleep(Duration::from_micros(50));
        }
        true
    }

    /// Whether the last of them is gone.
    pub fn is_gone(&self) -> bool {
        !self
            .ids()
            .any(|id| Path::new(&format!("/proc/self/task/{id}")).exists())
    }

    /// How many there are, if that is known.
    pub fn count(&self) -> Option<usize> {
        self.0.as_ref().map(|_| self.ids().count())
    }

    /// All but the timer. A thread that has just been started has no name yet, so this is looked up
    /// each time.
    fn ids(&self) -> impl Iterator<Item = u32> {
        let all = self.0.iter().flatten().copied();
        all.filter(|id| !name(*id).is_some_and(|name| name.starts_with(TIMER)))
    }
}

fn name(id: u32) -> Option<String> {
    fs::read_to_string(format!("/proc/self/task/{id}/comm")).ok()
}

fn threads() -> Option<BTreeSet<u32>> {
    let entries = fs::read_dir("/proc/self/task").ok()?;
    let id = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    Some(entries.flatten().filter_map(id).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    #[cfg(target_os = "linux")]
    fn worker_threads_are_those_that_were_started_until_they_have_ended() {
        let (end, ended) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        let ((worker, id), pool_threads) = PoolThreads::of(|| {
            let worker = std::thread::spawn(move || {
                let own = fs::read_link("/proc/thread-self").unwrap();
                let id: u32 = own.file_name().unwrap().to_str().unwrap().parse().unwrap();
                tell.send(id).unwrap();
                ended.recv()
            });
            (worker, told.recv().unwrap())
        });
        // Other tests may start threads meanwhile, so there may be more.
        assert!(
            pool_threads
                .count()
                .is_some_and(|pool_threads| pool_threads >= 1),
            "{pool_threads:?}"
        );
        assert!(pool_threads.0.is_some_and(|ids| ids.contains(&id)));
        let pool_threads = PoolThreads(Some(vec![id]));
        assert!(pool_threads.usage().sleeps.is_some());
        assert!(!pool_threads.wait_until_gone(Duration::ZERO));
        drop(end);
        let _ = worker.join();
        assert!(pool_threads.wait_until_gone(Duration::from_secs(60)));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_timer_thread_is_no_worker_thread() {
        let (end, ended) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        let thread = std::thread::Builder::new().name(format!("{TIMER}-1"));
        let thread = thread.spawn(move || {
            let own = fs::read_link("/proc/thread-self").unwrap();
            tell.send(own.file_name().unwrap().to_str().unwrap().parse().unwrap())
                .unwrap();
            ended.recv()
        });
        let pool_threads = PoolThreads(Some(vec![told.recv().unwrap()]));
        assert_eq!(pool_threads.count(), Some(0));
        assert_eq!(pool_threads.usage(), Usage::NONE);
        // It is there, and is not waited for.
        assert!(pool_threads.wait_until_gone(Duration::ZERO));
        drop(end);
        let _ = thread.unwrap().join();
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn threads_that_stay_are_found_by_their_name() {
        let (end, ended) = mpsc::channel::<()>();
        let (begin, begun) = mpsc::channel();
        let thread = std::thread::Builder::new().name("stays-here-1".into());
        let thread = thread.spawn(move || {
            begin.send(()).unwrap();
            ended.recv()
        });
        begun.recv().unwrap();
        assert_eq!(PoolThreads::named("stays-here").count(), Some(1));
        assert_eq!(PoolThreads::named("stays-there").count(), Some(0));
        drop(end);
        let _ = thread.unwrap().join();
    }

    #[test]
    fn where_threads_are_not_listed_nothing_is_known_and_nothing_is_waited_for() {
        let unknown = PoolThreads::unknown();
        assert_eq!(unknown.usage(), Usage::default());
        assert_eq!(unknown.count(), None);
        assert!(unknown.wait_until_gone(Duration::ZERO));
    }
}
