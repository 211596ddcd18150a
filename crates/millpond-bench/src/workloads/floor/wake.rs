//! What it costs to wake a thread that sleeps, and how long it takes until that thread runs.
//!
//! A wake-up of a thread that has not fallen asleep yet is cheap and would spoil the numbers. So
//! the waker looks at the sleeper's state in `/proc` before each round, and leaves out a round in
//! which it did not see it asleep. Where there is no `/proc` it waits a while instead.

use super::{Outcome, Stopwatch};
use crate::harness::Absent;
use millpond_raw::cache_padded::CachePadded;
use millpond_raw::park::{self, Site};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::task::Waker;
use std::thread;
use std::time::{Duration, Instant};

const OVER: u64 = u64::MAX;

/// How long the sleeper has to fall asleep.
const PATIENCE: Duration = Duration::from_millis(5);

/// Shared by the two threads, each word on a cache line of its own.
#[derive(Debug)]
struct Shared {
    born: Instant,
    /// The round the sleeper shall wake up for.
    called: CachePadded<AtomicU64>,
    /// The round it woke up for, and when, in nanoseconds since `born`.
    awake: CachePadded<AtomicU64>,
    awake_at: AtomicU64,
}

impl Shared {
    fn nanos(&self) -> u64 {
        self.born.elapsed().as_nanos() as u64
    }

    fn sleeper(&self, introduce: &mpsc::Sender<(Waker, Option<PathBuf>)>) {
        let here = park::current();
        let state = fs::read_link("/proc/thread-self")
            .ok()
            .map(|own| Path::new("/proc").join(own).join("stat"));
        if introduce.send((here.waker(), state)).is_err() {
            return;
        }
        let mut seen = 0;
        while seen != OVER {
            while self.called.load(Ordering::Acquire) == seen {
                here.park(Site::new("floor.sleeper"));
            }
            self.awake_at.store(self.nanos(), Ordering::Relaxed);
            seen = self.called.load(Ordering::Acquire);
            self.awake.store(seen, Ordering::Release);
        }
    }

    /// Wakes the sleeper: the time the call took, and the time until the sleeper ran.
    fn wake(&self, round: u64, waker: &Waker) -> [Duration; 2] {
        let start = self.nanos();
        self.called.store(round, Ordering::Release);
        waker.wake_by_ref();
        let called = self.nanos();
        while self.awake.load(Ordering::Acquire) != round {
            thread::yield_now();
        }
        let awake = self.awake_at.load(Ordering::Relaxed);
        [called - start, awake.saturating_sub(start)].map(Duration::from_nanos)
    }
}

/// Wakes a thread that sleeps: what the call takes.
pub fn the_call(watch: &mut dyn Stopwatch) -> Outcome {
    wake_up(watch, |[call, _]| call)
}

/// Wakes a thread that sleeps: what it takes until that thread runs.
pub fn until_it_runs(watch: &mut dyn Stopwatch) -> Outcome {
    wake_up(watch, |[_, delay]| delay)
}

fn wake_up(watch: &mut dyn Stopwatch, which: fn([Duration; 2]) -> Duration) -> Outcome {
    let shared = Arc::new(Shared {
        born: Instant::now(),
        called: CachePadded::new(AtomicU64::new(0)),
        awake: CachePadded::new(AtomicU64::new(0)),
        awake_at: AtomicU64::new(0),
    });
    let (introduce, introduced) = mpsc::channel();
    let other = Arc::clone(&shared);
    let sleeper = thread::spawn(move || other.sleeper(&introduce));
    let Ok((waker, state)) = introduced.recv() else {
        return Err(Absent("the thread to be woken did not start".into()));
    };
    let mut round = 0;
    watch.long(&mut || {
        let asleep = await_sleep(state.as_deref());
        round += 1;
        let times = shared.wake(round, &waker);
        asleep.then(|| which(times))
    });
    shared.wake(OVER, &waker);
    let joined = sleeper.join();
    joined.map_err(|_| Absent("the thread to be woken panicked".into()))
}

/// Whether the thread with this `stat` file falls asleep before the timeout.
fn await_sleep(state: Option<&Path>) -> bool {
    let Some(path) = state else {
        thread::sleep(Duration::from_micros(200));
        return true;
    };
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        if fs::read_to_string(path).is_ok_and(|stat| is_asleep(&stat)) {
            return true;
        }
        thread::yield_now();
    }
    false
}

/// The state is the letter after the name, and a name may contain parentheses of its own.
fn is_asleep(stat: &str) -> bool {
    stat.rsplit_once(')')
        .is_some_and(|(_, rest)| rest.trim_start().starts_with('S'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_stands_after_the_last_parenthesis() {
        assert!(is_asleep("71 (worker) S 1 71 71 0"));
        assert!(is_asleep("71 (odd) R name)) S 1"));
        assert!(!is_asleep("71 (S) R 1"));
        assert!(!is_asleep("nonsense"));
    }

    #[test]
    fn this_thread_is_not_asleep_while_it_reads_its_own_state() {
        if let Ok(stat) = fs::read_to_string("/proc/thread-self/stat") {
            assert!(!is_asleep(&stat), "{stat}");
        }
    }
}
