//! Counts the tasks that have run, cheaply enough not to disturb the measurement.
//!
//! A counter that all workers share costs more than a small task, and so does an `Arc` that each task
//! clones. So every thread has a slot, and every tally has a cache line of its own for each slot: to count
//! is to add to two words that no other thread writes. A task holds a plain reference to its tally, which
//! therefore lives for ever; tallies are used again, so that this is not a leak.
//!
//! # Waiting for the end
//!
//! Peers have no common way to say that all is done, and a signal from each task would need a
//! shared counter. So the first producer polls: it estimates from the speed so far how long the rest will
//! take, sleeps for half of that, and polls again. Only near the end ([`NEAR`]) does it poll all the time,
//! with yields in between. A poll reads every worker's line, so there are few of them.
//!
//! # Invariants
//!
//! - **TALLY-1** A slot belongs to one living thread at a time: it is released when the thread ends.
//! - **TALLY-2** A tally is released only when all that was counted with it has ended; so the next
//!   user is the only one that counts.
//!
//! # Orderings
//!
//! - `[B-sum]` A thread adds to its sum before it adds to its count; a thread that has seen the count
//!   sees the sum.

use anyhow::{Result, ensure};
use millpond_raw::cache_padded::CachePadded;
use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// More threads than ever count at the same time.
const SLOTS: usize = 160;

/// So close to the end it looks all the time: two of the shortest sleeps, which the kernel makes
/// longer by 50 microseconds and a wake-up.
const NEAR: Duration = Duration::from_micros(200);

/// A look and a few hints to the CPU take about a microsecond.
const HINTS: u32 = 32;

/// No sleep is longer: the first estimates are rough.
const LONGEST_SLEEP: Duration = Duration::from_millis(20);

/// If nothing at all was counted for this long, nothing more will be.
const PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 5 });

/// How many tasks have run, and the sum of their numbers.
#[derive(Debug)]
pub struct Tally {
    lines: [CachePadded<Line>; SLOTS],
}

#[derive(Debug, Default)]
struct Line {
    tasks: AtomicU64,
    sum: AtomicU64,
}

/// Those that are not in use.
static SPARE: Mutex<Vec<&'static Tally>> = Mutex::new(Vec::new());

impl Tally {
    /// One that no other user counts with, at zero.
    pub fn take() -> &'static Tally {
        let spare = lock(&SPARE).pop();
        let tally = spare.unwrap_or_else(|| {
            Box::leak(Box::new(Tally {
                lines: std::array::from_fn(|_| CachePadded::new(Line::default())),
            }))
        });
        for line in &tally.lines {
            line.tasks.store(0, Ordering::Relaxed);
            line.sum.store(0, Ordering::Relaxed);
        }
        tally
    }

    /// Counts the task with this number, on the thread that runs it.
    pub fn count(&self, number: u64) {
        let line = &self.lines[Slot::mine()];
        // TALLY-1: no other thread writes here, so nothing is lost between the load and the store.
        let sum = line.sum.load(Ordering::Relaxed);
        line.sum.store(sum.wrapping_add(number), Ordering::Relaxed);
        let tasks = line.tasks.load(Ordering::Relaxed) + 1;
        // [B-sum]
        line.tasks.store(tasks, Ordering::Release);
    }

    /// How many tasks have run.
    pub fn tasks(&self) -> u64 {
        let tasks = |line: &CachePadded<Line>| {
            // [B-sum]
            line.tasks.load(Ordering::Acquire)
        };
        self.lines.iter().map(tasks).sum()
    }

    /// How many of them this thread has run.
    pub fn by_this_thread(&self) -> u64 {
        self.lines[Slot::mine()].tasks.load(Ordering::Relaxed)
    }

    /// Waits until so many tasks have run, or until none has for a long time.
    pub fn wait_for(&self, tasks: u64) {
        let start = Instant::now();
        let first = self.tasks();
        let (mut latest, mut latest_at) = (first, start);
        loop {
            let done = self.tasks();
            if done >= tasks {
                return;
            }
            let now = Instant::now();
            if done > latest {
                (latest, latest_at) = (done, now);
            } else if now - latest_at > PATIENCE {
                return;
            }
            rest(left(done - first, now - start, tasks - done));
        }
    }

    /// Checks that the tasks from 1 to `tasks` have run, once each, and gives the tally back. Call it
    /// when the pool is closed: a task that runs twice may do so late.
    ///
    /// # Errors
    ///
    /// If others have run, or none.
    pub fn check(&'static self, tasks: u64) -> Result<()> {
        let ran = self.tasks();
        ensure!(ran == tasks, "{tasks} tasks were submitted and {ran} ran");
        let sums = self
            .lines
            .iter()
            .map(|line| line.sum.load(Ordering::Relaxed));
        let sum = sums.fold(0, u64::wrapping_add);
        ensure!(
            sum == sum_up_to(tasks),
            "{tasks} tasks ran, but they are not the ones that were submitted"
        );
        // TALLY-2: had one of them still to come, it would have been missing.
        lock(&SPARE).push(self);
        Ok(())
    }

    /// Checks that no more than `most` tasks have run, and gives the tally back. Call it when the pool is closed, and
    /// none can follow.
    ///
    /// # Errors
    ///
    /// If more have run.
    pub fn check_at_most(&'static self, most: u64) -> Result<()> {
        let ran = self.tasks();
        ensure!(
            ran <= most,
            "{ran} tasks ran, and no more than {most} should have"
        );
        // TALLY-2: the pool is closed.
        lock(&SPARE).push(self);
        Ok(())
    }
}

/// The sum of the numbers from 1 to `last`, as far as a word holds it.
fn sum_up_to(last: u64) -> u64 {
    let (even, odd) = if last.is_multiple_of(2) {
        (last / 2, last.wrapping_add(1))
    } else {
        (last.wrapping_add(1) / 2, last)
    };
    even.wrapping_mul(odd)
}

/// How long `missing` tasks will take if `done` took `elapsed`; `None` if that cannot be said.
fn left(done: u64, elapsed: Duration, missing: u64) -> Option<Duration> {
    let each = elapsed.as_secs_f64() / (done > 0).then_some(done)? as f64;
    Duration::try_from_secs_f64(each * missing as f64).ok()
}

fn rest(left: Option<Duration>) {
    match left.filter(|&left| left > NEAR) {
        Some(left) => std::thread::sleep((left / 2).min(LONGEST_SLEEP)),
        None => {
            for _ in 0..HINTS {
                std::hint::spin_loop();
            }
            std::thread::yield_now();
        }
    }
}

/// A thread's place in all tallies.
struct Slot(Cell<Option<usize>>);

/// Those that are free.
static FREE: Mutex<Slots> = Mutex::new(Slots {
    given: 0,
    back: Vec::new(),
});

struct Slots {
    /// So many have been given out, ever.
    given: usize,
    back: Vec<usize>,
}

thread_local! {
    static MINE: Slot = const { Slot(Cell::new(None)) };
}

impl Slot {
    fn mine() -> usize {
        MINE.with(|slot| match slot.0.get() {
            Some(index) => index,
            None => slot.acquire(),
        })
    }

    #[cold]
    fn acquire(&self) -> usize {
        let mut free = lock(&FREE);
        let index = free.back.pop().unwrap_or_else(|| {
            free.given += 1;
            free.given - 1
        });
        assert!(index < SLOTS, "more than {SLOTS} threads count at once");
        self.0.set(Some(index));
        index
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(index) = self.0.get() {
            lock(&FREE).back.push(index);
        }
    }
}

/// A panic elsewhere does not spoil a list of numbers.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_many_threads_count_adds_up() {
        let tally = Tally::take();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                scope.spawn(move || (1..=1_000).for_each(|n| tally.count(thread * 1_000 + n)));
            }
            tally.wait_for(4_000);
            assert_eq!(tally.tasks(), 4_000);
        });
        tally.check(4_000).unwrap();
    }

    #[test]
    fn a_thread_knows_its_own_part() {
        let tally = Tally::take();
        tally.count(1);
        std::thread::spawn(move || tally.count(2)).join().unwrap();
        assert_eq!(tally.by_this_thread(), 1);
        tally.check(2).unwrap();
    }

    #[test]
    fn lost_repeated_and_forged_tasks_are_detected() {
        let checked = |numbers: &[u64], tasks| {
            let tally = Tally::take();
            numbers.iter().for_each(|&number| tally.count(number));
            tally.check(tasks).map_err(|error| error.to_string())
        };
        assert_eq!(checked(&[3, 1, 2], 3), Ok(()));
        assert_eq!(checked(&[], 0), Ok(()));
        let error = |text: &str| Err(text.to_owned());
        assert_eq!(
            checked(&[1, 3], 3),
            error("3 tasks were submitted and 2 ran")
        );
        assert_eq!(
            checked(&[1, 2, 3, 3], 3),
            error("3 tasks were submitted and 4 ran")
        );
        assert_eq!(
            checked(&[1, 3, 3], 3),
            error("3 tasks ran, but they are not the ones that were submitted")
        );
    }

    #[test]
    fn more_tasks_than_may_run_are_detected() {
        let checked = |most| {
            let tally = Tally::take();
            (1..=2).for_each(|number| tally.count(number));
            tally.check_at_most(most).map_err(|error| error.to_string())
        };
        assert_eq!((checked(2), checked(3)), (Ok(()), Ok(())));
        let error = "2 tasks ran, and no more than 1 should have";
        assert_eq!(checked(1), Err(error.into()));
    }

    #[test]
    fn a_tally_that_was_used_begins_at_zero_again() {
        for _ in 0..3 {
            let tally = Tally::take();
            assert_eq!(tally.tasks(), 0);
            tally.count(1);
            tally.check(1).unwrap();
        }
    }

    #[test]
    fn the_slots_of_threads_that_end_are_reused() {
        let tally = Tally::take();
        let threads = 3 * SLOTS as u64;
        for number in 1..=threads {
            std::thread::spawn(move || tally.count(number))
                .join()
                .unwrap();
        }
        tally.check(threads).unwrap();
    }

    #[test]
    fn the_rest_takes_as_long_as_what_is_done_did() {
        let ms = Duration::from_millis;
        assert_eq!(left(100, ms(10), 300), Some(ms(30)));
        assert_eq!(left(0, ms(10), 300), None);
        assert_eq!(left(1, Duration::ZERO, 1), Some(Duration::ZERO));
    }

    #[test]
    fn sums_of_numbers_are_right_for_odd_and_even_ends() {
        for last in [0, 1, 2, 7, 100, 1_000_001] {
            assert_eq!(sum_up_to(last), (1..=last).sum::<u64>(), "{last}");
        }
    }
}
