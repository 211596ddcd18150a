//! The threads of a pool, as the kernel sees them: what they used, and whether they are gone.
//!
//! Pools keep their threads to themselves. But the kernel lists all threads of a process, and those
//! that are there after a pool was opened and were not there before are the pool's. (Two pools that
//! are opened at the same time would each count the other's; the bench opens one at a time.)
//!
//! One thread is nobody's: the one that rings the alarms of our clock ([`TIMER`]). All pools of the
//! process share it, and it stays for a second after the last alarm; whoever opens a pool when it is not
//! there would get it all. It wakes up once a second while a pool of ours works.
//!
//! A pool should be idle when its staff is read: see [`crate::usage`].

use crate::usage::Usage;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// How the name begins of the thread that rings the alarms of our clock. (The kernel keeps 15 letters.)
pub const TIMER: &str = "millpond-timer";

/// Some threads of this process; `None` where the kernel does not list them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Staff(Option<Vec<u32>>);

impl Staff {
    /// The threads that `hire` starts, and that are still there when it returns.
    pub fn of<T>(hire: impl FnOnce() -> T) -> (T, Staff) {
        let before = threads();
        let value = hire();
        let staff = before.zip(threads()).map(|(before, after)| {
            // Those of an earlier pool may still be on their way out: they are in both, or gone.
            after.difference(&before).copied().collect()
        });
        (value, Staff(staff))
    }

    /// The threads whose name begins with `prefix`. (The kernel keeps 15 letters.)
    pub fn named(prefix: &str) -> Staff {
        let is_named = |id: &u32| name(*id).is_some_and(|name| name.starts_with(prefix));
        Staff(threads().map(|all| all.into_iter().filter(is_named).collect()))
    }

    /// Threads of which nothing is known.
    pub fn unknown() -> Staff {
        Staff(None)
    }

    /// What all of them together have used since they were started.
    pub fn usage(&self) -> Usage {
        match &self.0 {
            Some(_) => self.ids().map(Usage::of_thread).sum(),
            None => Usage::default(),
        }
    }

    /// Waits until the last of them is gone, or until `patience` is over. Returns whether they are.
    pub fn wait_until_gone(&self, patience: Duration) -> bool {
        let start = Instant::now();
        while !self.is_gone() {
            if start.elapsed() > patience {
                return false;
            }
            std::thread::sleep(Duration::from_micros(50));
        }
        true
    }

    fn is_gone(&self) -> bool {
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
    fn staff_are_the_threads_that_were_started_until_they_are_gone() {
        let (end, ended) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        let ((worker, id), staff) = Staff::of(|| {
            let worker = std::thread::spawn(move || {
                let own = fs::read_link("/proc/thread-self").unwrap();
                let id: u32 = own.file_name().unwrap().to_str().unwrap().parse().unwrap();
                tell.send(id).unwrap();
                ended.recv()
            });
            (worker, told.recv().unwrap())
        });
        // Other tests may start threads meanwhile, so there may be more.
        assert!(staff.count().is_some_and(|staff| staff >= 1), "{staff:?}");
        assert!(staff.0.is_some_and(|ids| ids.contains(&id)));
        let staff = Staff(Some(vec![id]));
        assert!(staff.usage().sleeps.is_some());
        assert!(!staff.wait_until_gone(Duration::ZERO));
        drop(end);
        let _ = worker.join();
        assert!(staff.wait_until_gone(Duration::from_secs(60)));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_one_that_rings_alarms_is_no_staff() {
        let (end, ended) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        let thread = std::thread::Builder::new().name(format!("{TIMER}-1"));
        let thread = thread.spawn(move || {
            let own = fs::read_link("/proc/thread-self").unwrap();
            tell.send(own.file_name().unwrap().to_str().unwrap().parse().unwrap())
                .unwrap();
            ended.recv()
        });
        let staff = Staff(Some(vec![told.recv().unwrap()]));
        assert_eq!(staff.count(), Some(0));
        assert_eq!(staff.usage(), Usage::NONE);
        // It is there, and nobody waits for it.
        assert!(staff.wait_until_gone(Duration::ZERO));
        drop(end);
        let _ = thread.unwrap().join();
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn those_that_stay_are_found_by_their_name() {
        let (end, ended) = mpsc::channel::<()>();
        let (begin, begun) = mpsc::channel();
        let thread = std::thread::Builder::new().name("stays-here-1".into());
        let thread = thread.spawn(move || {
            begin.send(()).unwrap();
            ended.recv()
        });
        begun.recv().unwrap();
        assert_eq!(Staff::named("stays-here").count(), Some(1));
        assert_eq!(Staff::named("stays-there").count(), Some(0));
        drop(end);
        let _ = thread.unwrap().join();
    }

    #[test]
    fn where_threads_are_not_listed_nothing_is_known_and_nothing_is_waited_for() {
        let unknown = Staff::unknown();
        assert_eq!(unknown.usage(), Usage::default());
        assert_eq!(unknown.count(), None);
        assert!(unknown.wait_until_gone(Duration::ZERO));
    }
}
