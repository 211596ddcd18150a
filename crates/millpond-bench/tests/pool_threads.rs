//! What is known of a pool's threads. The kernel tells of all threads of the process, so this must be
//! the only test in it: a second one's would be among them.
#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

use millpond_bench::harness::Workload;
use millpond_bench::peers::pool::claiming::Claiming;
use millpond_bench::peers::pool::hand_rolled::{Crossbeam, Flume, HandRolled, Kanal, StdMpsc};
use millpond_bench::peers::pool::thread_per_task::ThreadPerTask;
use millpond_bench::peers::pool::{
    Pool, Queue, WORKERS, async_executor, blocking, executors, futures, millpond, rayon,
    rusty_pool, threadfin, threadpool, tokio,
};
use millpond_bench::workloads::pool::{Opened, SUITE};

#[test]
fn the_threads_of_every_pool_are_known_and_so_is_what_they_used() {
    every_pool_has_its_workers_from_the_start();
    what_they_used_is_known();
}

/// Some pools start their threads late, and one that is not there yet would not be counted.
fn every_pool_has_its_workers_from_the_start() {
    check_workers::<millpond::Millpond>();
    check_workers::<HandRolled<Crossbeam>>();
    check_workers::<HandRolled<Flume>>();
    check_workers::<HandRolled<Kanal>>();
    check_workers::<HandRolled<StdMpsc>>();
    check_workers::<Claiming>();
    check_workers::<rayon::Rayon>();
    check_workers::<tokio::SpawnBlocking>();
    check_workers::<tokio::Spawn>();
    check_workers::<threadpool::Threadpool>();
    check_workers::<rusty_pool::RustyPool>();
    check_workers::<threadfin::Threadfin>();
    check_workers::<executors::Executors>();
    check_workers::<futures::Futures>();
    check_workers::<async_executor::AsyncExecutor>();
    // The second time its threads are there already.
    check_workers::<blocking::Blocking>();
    check_workers::<blocking::Blocking>();
}

fn check_workers<P: Pool>() {
    let opened = Opened::<P>::new(Queue::Unbounded).unwrap();
    assert_eq!(opened.threads(), Some(WORKERS), "{}", P::NAME);
    opened.close();
}

fn what_they_used_is_known() {
    const TRIPS: u64 = 50;
    let pauses = |workload: &Workload| workload.name.contains("pauses");
    let workload = (SUITE.workloads)().into_iter().find(pauses).unwrap();
    // What cannot be counted is not in this process.
    for candidate in workload
        .candidates
        .iter()
        .filter(|one| one.counts_allocations)
    {
        let used = (candidate.run)(TRIPS).unwrap().usage;
        let name = format!("{}: {used:?}", candidate.name);
        // A pool may answer without sleeping, but not without working.
        // Whoever is gone after each task is not known at all.
        let is_known = candidate.name != ThreadPerTask::NAME;
        assert_eq!(used.sleeps.is_some(), is_known, "{name}");
        assert!(used.cpu.is_none_or(|cpu| !cpu.is_zero()), "{name}");
    }
}
