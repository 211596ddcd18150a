//! A fork-join pool that has become idle, or has ended, gives back the memory of a burst. Memory is the process's, so
//! each phase is in this one test.

#![cfg(not(any(millpond_loom, millpond_shuttle, millpond_plain_memory)))]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test stands outside: it uses std's threads, clocks and channels beside what it tests"
)]

use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::forkjoin::ForkJoinPool;
use millpond::time::ManualClock;
use millpond_raw::recycle;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Queues many tasks behind one, and lets them run.
fn burst(pool: &ForkJoinPool) {
    let (release, released) = mpsc::channel::<()>();
    pool.execute(move || released.recv().unwrap()).unwrap();
    let handles: Vec<_> = (0..200_000_u64)
        .map(|number| pool.submit(move || number).unwrap())
        .collect();
    release.send(()).unwrap();
    for handle in handles {
        handle.join().unwrap();
    }
}

#[test]
fn an_idle_pool_and_one_that_has_ended_give_memory_back() {
    let hand = ManualClock::new();
    let builder = ForkJoinPool::builder("mill").parallelism(1).max_spares(0);
    let builder = builder.keep_alive(Duration::MAX);
    let pool = builder.clock(hand.clock()).build().unwrap();
    burst(&pool);
    assert!(recycle::has_surplus());
    let begin = Instant::now();
    while recycle::has_surplus() {
        assert!(begin.elapsed() < Duration::from_secs(60));
        // The worker may not sleep yet.
        hand.advance(Duration::from_secs(1));
        std::thread::yield_now();
    }
    assert_eq!(pool.snapshot().workers, 1);

    burst(&pool);
    assert!(recycle::has_surplus());
    let before = recycle::cached_bytes();
    pool.close().unwrap();
    // What the thread of the worker had cached comes back after the end, so a few slabs may be left.
    let after = recycle::cached_bytes();
    assert!(after < before / 2, "{before} -> {after} bytes");
}
