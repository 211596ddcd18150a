//! From ten to a hundred thousand tasks are due in a second: how late does each begin?
//!
//! All are scheduled before the first is due, at times that were drawn before. Lateness is what lies
//! between when a task was due and when it runs. One that runs before it is due ends the run; so does
//! one that does not run, or runs twice.

use crate::harness::Sample;
use crate::peers::overload::End;
use crate::peers::timers::Timers;
use crate::plan::Plan;
use crate::pool_threads::PoolThreads;
use crate::tally::Tally;
use crate::usage::Usage;
use crate::workloads::overload::ledger::Ledger;
use anyhow::{Result, ensure};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long there is to schedule all of them, at most.
pub const LEAD: Duration = Duration::from_millis(250);

/// How long there is to schedule a few.
pub const LEAST_LEAD: Duration = Duration::from_millis(20);

/// And so much longer for each. It takes a microsecond or two.
pub const LEAD_EACH: Duration = Duration::from_micros(5);

/// How long to wait for threads to end. In tests some of them may be other tests', and stay.
pub(super) const ENDS_IN: Duration = Duration::from_millis(if cfg!(test) { 20 } else { 1_000 });

/// The seed of all due times.
const SEED: u64 = 0x6669_7265;

/// Lets `tasks` timers fire, so many of them in a second.
///
/// # Errors
///
/// If one fires before its time, twice, or never.
pub fn run<T: Timers>(rate: u64, tasks: u64) -> Result<Sample> {
    let lead = (LEAST_LEAD + LEAD_EACH * tasks as u32).min(LEAD);
    // Independent of each other; so the last one comes a little later or sooner.
    let plan = Plan::poisson(SEED, rate as f64, tasks);
    let ledger = Arc::new(Ledger::new(plan.arrivals().len()));
    let early = Arc::new(AtomicU64::new(0));
    let (timers, pool_threads) = PoolThreads::of(T::open);
    let mut timers = timers?;
    let tally = Tally::take();
    let used = || -> Usage { [pool_threads.usage(), T::used_beside()].into_iter().sum() };
    let before = used();
    let (elapsed, by_the_caller) = Usage::during(|| {
        let start = Instant::now() + lead;
        for (number, &at) in plan.arrivals().iter().enumerate() {
            let due = start + at;
            let (ledger, early) = (Arc::clone(&ledger), Arc::clone(&early));
            let task = move || {
                let now = Instant::now();
                if now < due {
                    early.fetch_add(1, Ordering::Relaxed);
                }
                ledger.answered(number, now.saturating_duration_since(due));
                // Written last: a thread that has seen this count sees the ledger.
                tally.count(number as u64 + 1);
            };
            drop(timers.schedule(due, task));
        }
        timers.drive(tasks);
        std::thread::sleep((start + plan.end()).saturating_duration_since(Instant::now()));
        tally.wait_for(tasks);
        (start + plan.end()).elapsed() + plan.end()
    });
    let by_its_threads = used() - before;
    timers.close();
    pool_threads.wait_until_gone(ENDS_IN);
    tally.check(tasks)?;
    let early = early.load(Ordering::Relaxed);
    ensure!(
        early == 0,
        "{early} of {tasks} tasks ran before they were due"
    );
    let ends: Vec<_> = (0..plan.arrivals().len())
        .map(|number| (number, End::Answered))
        .collect();
    let settled = ledger.settle(&plan, &[], &ends, Duration::MAX)?;
    Ok(Sample {
        operations: tasks,
        elapsed,
        usage: [by_the_caller, by_its_threads].into_iter().sum(),
        quantiles: settled.quantiles,
        rush: None,
        memory: None,
        by_workers: None,
    })
}
