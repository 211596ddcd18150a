//! The shortages that the kit brings about itself, when `MILLPOND_EXHAUST` asks for them.
//!
//! Refused threads and small stacks are the business of [`millpond_raw::sync::exhaust`]. What is
//! here is the rest: one CPU for everything that a test starts, and a process full of other
//! executors. Every test enters before its first step, through [`Watchdog::arm`](super::Watchdog::arm).

use millpond::pool::ThreadPool;
use millpond::schedule::ScheduledPool;
use millpond_raw::sync::exhaust::Exhaustion;
use std::sync::OnceLock;

/// Applies the requested shortages, on this thread and in this process. May be called repeatedly.
pub(super) fn enter() {
    let exhaustion = Exhaustion::of_this_process();
    if exhaustion.one_cpu {
        stay_on_one_cpu();
    }
    if let Some(count) = exhaustion.engines {
        crowd(count);
    }
}

/// Executors that stay alive as long as the process: half of them plain, half scheduled.
fn crowd(count: usize) {
    type Other = (ThreadPool, Option<ScheduledPool<ThreadPool>>);
    static CROWD: OnceLock<Vec<Other>> = OnceLock::new();
    CROWD.get_or_init(|| {
        let others = (0..count).map(|number| {
            let pool = ThreadPool::builder("other").build().expect("it is right");
            let on = || ScheduledPool::on(pool.clone()).build();
            let scheduled = (number % 2 == 1).then(on);
            (pool, scheduled)
        });
        others.collect()
    });
}

/// Pins this thread, and with it every thread that it starts from now on. Processes that run at the
/// same time take different CPUs, as far as that goes by their numbers.
#[cfg(target_os = "linux")]
fn stay_on_one_cpu() {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let allowed = sched_getaffinity(None).expect("the kernel tells our CPUs");
    let mut cpus = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu));
    let nth = std::process::id() as usize % (allowed.count() as usize).max(1);
    let mut one = CpuSet::new();
    one.set(cpus.nth(nth).expect("we run on a CPU"));
    sched_setaffinity(None, &one).expect("a CPU of our own is granted");
}

#[cfg(not(target_os = "linux"))]
fn stay_on_one_cpu() {
    panic!("cpus:1 is for Linux: nothing else can be told to stay on one CPU");
}
