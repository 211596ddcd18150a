//! Tasks that borrow: a scope of a hundred, again and again. An operation is one task.

use super::row;
use crate::harness::{Candidate, Sample, Standing, Workload};
use crate::peers::pool::WORKERS;
use crate::pool_threads::PoolThreads;
use crate::usage::Usage;
use anyhow::{Result, ensure};
use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::pool::ThreadPool;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// So many tasks have a scope.
const TASKS: usize = 100;

/// How long to wait for threads to end. In tests some of them may be other tests', and stay.
const ENDS_IN: Duration = Duration::from_millis(if cfg!(test) { 20 } else { 1_000 });

pub(super) fn workload() -> Workload {
    row(
        &format!("scopes of {TASKS} tasks that borrow"),
        200_000,
        vec![
            candidate::<Millpond>(Standing::Ours),
            candidate::<Rayon>(Standing::Peer),
            candidate::<Threads>(Standing::Peer),
        ],
    )
}

/// What has scopes.
trait Scopes: Sized {
    const NAME: &'static str;

    fn open() -> Result<Self>;

    /// Runs a task for each slot, which borrows it and writes its number.
    fn fill(&self, slots: &mut [u64], ran: &AtomicU64);

    fn close(self);
}

struct Millpond(ThreadPool);

impl Scopes for Millpond {
    const NAME: &'static str = "millpond";

    fn open() -> Result<Self> {
        let pool = ThreadPool::builder("bench").core(WORKERS).max(WORKERS);
        let pool = pool.queue(millpond::pool::Queue::unbounded()).build()?;
        pool.prestart_all_core()?;
        Ok(Millpond(pool))
    }

    fn fill(&self, slots: &mut [u64], ran: &AtomicU64) {
        self.0.scope(|scope| {
            for (number, slot) in slots.iter_mut().enumerate() {
                let task = move || write(slot, number, ran);
                scope.execute(task).expect("an open pool refuses nothing");
            }
        });
    }

    fn close(self) {
        self.0
            .close()
            .expect("no task of the bench closes its pool");
    }
}

struct Rayon(rayon_core::ThreadPool);

impl Scopes for Rayon {
    const NAME: &'static str = "rayon in_place_scope";

    fn open() -> Result<Self> {
        let builder = rayon_core::ThreadPoolBuilder::new().num_threads(WORKERS);
        Ok(Rayon(builder.build()?))
    }

    /// Like ours, it brings the tasks in the caller's thread.
    fn fill(&self, slots: &mut [u64], ran: &AtomicU64) {
        self.0.in_place_scope(|scope| {
            for (number, slot) in slots.iter_mut().enumerate() {
                scope.spawn(move |_| write(slot, number, ran));
            }
        });
    }

    fn close(self) {}
}

/// No pool: a thread for each task.
struct Threads;

impl Scopes for Threads {
    const NAME: &'static str = "std::thread::scope";

    fn open() -> Result<Self> {
        Ok(Threads)
    }

    fn fill(&self, slots: &mut [u64], ran: &AtomicU64) {
        std::thread::scope(|scope| {
            for (number, slot) in slots.iter_mut().enumerate() {
                scope.spawn(move || write(slot, number, ran));
            }
        });
    }

    fn close(self) {}
}

fn write(slot: &mut u64, number: usize, ran: &AtomicU64) {
    *slot += number as u64;
    ran.fetch_add(1, Ordering::Relaxed);
}

fn candidate<S: Scopes + 'static>(standing: Standing) -> Candidate {
    Candidate {
        name: S::NAME,
        standing,
        counts_allocations: true,
        run: Box::new(round::<S>),
    }
}

/// Runs `tasks` tasks, or as many more as make whole scopes.
fn round<S: Scopes>(tasks: u64) -> Result<Sample> {
    let scopes = tasks.div_ceil(TASKS as u64).max(1);
    let (opened, threads) = PoolThreads::of(S::open);
    let (pool, before) = (opened?, threads.usage());
    let (mut slots, ran) = ([0_u64; TASKS], AtomicU64::new(0));
    let (elapsed, by_the_caller) = Usage::during(|| {
        let start = Instant::now();
        for _ in 0..scopes {
            pool.fill(&mut slots, &ran);
        }
        start.elapsed()
    });
    let by_the_pool = threads.usage() - before;
    pool.close();
    threads.wait_until_gone(ENDS_IN);
    let (all, ran) = (scopes * TASKS as u64, ran.into_inner());
    ensure!(ran == all, "{all} tasks were submitted and {ran} ran");
    let is_right = |(number, &slot): (usize, &u64)| slot == number as u64 * scopes;
    ensure!(
        slots.iter().enumerate().all(is_right),
        "the tasks did not write what they were given"
    );
    Ok(Sample {
        operations: all,
        elapsed,
        usage: [by_the_caller, by_the_pool].into_iter().sum(),
        quantiles: None,
        rush: None,
        memory: None,
        by_workers: None,
    })
}
