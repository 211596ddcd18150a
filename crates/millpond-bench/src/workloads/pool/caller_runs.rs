//! Every worker is busy and the queue is full, so the caller runs every task: what does it cost to find that out?

use super::{BOUND, Opened};
use crate::harness::Sample;
use crate::peers::pool::{Pool, Queue, WORKERS, WhenFull};
use crate::tally::Tally;
use crate::usage::Usage;
use anyhow::{Result, ensure};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

/// Brings `tasks` tasks to a pool that has no room for any of them.
///
/// # Errors
///
/// If not all of them ran, one ran twice, or a worker ran one.
pub fn run<P: Pool>(tasks: u64) -> Result<Sample> {
    let opened = Opened::<P>::new(Queue::Bounded(BOUND, WhenFull::CallerRuns))?;
    let gate = fill_up(&opened.pool);
    let (pool, tally) = (&opened.pool, Tally::take());
    let (elapsed, by_the_caller) = Usage::during(|| {
        let start = Instant::now();
        for number in 1..=tasks {
            pool.run(move || tally.count(number));
        }
        start.elapsed()
    });
    let mine = tally.by_this_thread();
    gate.open();
    let by_the_pool = opened.close();
    tally.check(tasks)?;
    ensure!(
        mine == tasks,
        "the caller had to run all {tasks} tasks, and ran {mine}"
    );
    Ok(Sample {
        operations: tasks,
        elapsed,
        usage: [by_the_caller, by_the_pool].into_iter().sum(),
        quantiles: None,
        rush: None,
        memory: None,
        by_workers: Some(tasks - mine),
    })
}

/// Tasks wait here until it is open.
#[derive(Debug, Default)]
struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
    begun: AtomicUsize,
    /// Whether the one that was brought last did not fit.
    left_to_the_caller: AtomicBool,
}

impl Gate {
    fn open(&self) {
        *self.is_open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.opened.notify_all();
    }

    fn wait(&self) {
        self.begun.fetch_add(1, Ordering::Relaxed);
        let is_open = self.is_open.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.opened.wait_while(is_open, |is_open| !*is_open);
        drop(waited);
    }
}

/// Keeps every worker busy and fills the queue, until the gate is opened.
fn fill_up<P: Pool>(pool: &P) -> Arc<Gate> {
    let gate = Arc::new(Gate::default());
    let caller = std::thread::current().id();
    loop {
        let inside = Arc::clone(&gate);
        let all_wait = gate.begun.load(Ordering::Relaxed) == WORKERS;
        gate.left_to_the_caller.store(false, Ordering::Relaxed);
        pool.run(move || {
            if std::thread::current().id() == caller {
                inside.left_to_the_caller.store(true, Ordering::Relaxed);
            } else {
                inside.wait();
            }
        });
        // All workers waited before this one was brought, and it did not fit: nothing makes room any more.
        if all_wait && gate.left_to_the_caller.load(Ordering::Relaxed) {
            return gate;
        }
    }
}
