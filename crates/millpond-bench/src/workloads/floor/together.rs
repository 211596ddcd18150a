//! What two threads cost each other.

use super::{Outcome, Stopwatch};
use crate::harness::Absent;
use millpond_raw::cache_padded::CachePadded;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

/// Two threads on one CPU take turns by the kernel's clock, and that is what would be measured.
fn need_two_cpus() -> Outcome {
    match thread::available_parallelism() {
        Ok(cpus) if cpus.get() < 2 => Err(Absent(
            "it takes two CPUs, and this process may use one".into(),
        )),
        _ => Ok(()),
    }
}

/// Two threads pass a number to and fro: each even one is answered by the next odd one.
pub fn cache_line(watch: &mut dyn Stopwatch) -> Outcome {
    const OVER: u64 = u64::MAX;
    need_two_cpus()?;
    let ball = CachePadded::new(AtomicU64::new(1));
    thread::scope(|scope| {
        scope.spawn(|| {
            while let seen = await_change(&ball, |ball| ball % 2 == 0 || ball == OVER)
                && seen != OVER
            {
                ball.store(seen + 1, Ordering::Release);
            }
        });
        let mut next = 2;
        watch.short(&mut |rounds| {
            for _ in 0..rounds {
                ball.store(next, Ordering::Release);
                await_change(&ball, |ball| ball == next + 1);
                next += 2;
            }
        });
        ball.store(OVER, Ordering::Release);
    });
    Ok(())
}

/// Spins, because a sleep would be measured instead of the cache line. It yields now and then:
/// the other thread may have lost its CPU, and may be waiting for ours.
fn await_change(word: &AtomicU64, is_there: impl Fn(u64) -> bool) -> u64 {
    loop {
        for _ in 0..10_000 {
            let seen = word.load(Ordering::Acquire);
            if is_there(seen) {
                return seen;
            }
            std::hint::spin_loop();
        }
        thread::yield_now();
    }
}

/// Adds to a number to which another thread adds all the time.
pub fn atomic_add_fought_over(watch: &mut dyn Stopwatch) -> Outcome {
    need_two_cpus()?;
    let counter = CachePadded::new(AtomicU64::new(0));
    let is_over = CachePadded::new(AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                for _ in 0..100 {
                    counter.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        // It begins when the other one has.
        await_change(&counter, |count| count > 0);
        watch.short(&mut |rounds| {
            for _ in 0..rounds {
                black_box(&counter).fetch_add(1, Ordering::Relaxed);
            }
        });
        is_over.store(true, Ordering::Relaxed);
    });
    Ok(())
}

/// Memory that one thread asks for and another gives back, and how much of it at a time.
type Load = Vec<Box<[u8; 64]>>;
const LOAD: u64 = 256;

/// Asks for 64 bytes that another thread gives back. Many at a time change hands, so that passing them
/// on costs next to nothing; the time runs until the last is given back.
pub fn allocation_freed_elsewhere(watch: &mut dyn Stopwatch) -> Outcome {
    need_two_cpus()?;
    thread::scope(|scope| {
        let (send, receive) = mpsc::sync_channel::<Load>(4);
        let (tell, told) = mpsc::channel();
        scope.spawn(move || {
            for load in receive {
                let count = load.len() as u64;
                drop(load);
                if tell.send(count).is_err() {
                    return;
                }
            }
        });
        watch.short(&mut |rounds| {
            let mut left = rounds;
            while left > 0 {
                let some = left.min(LOAD);
                let load: Load = (0..some).map(|_| Box::new(black_box([0; 64]))).collect();
                if send.send(load).is_err() {
                    return;
                }
                left -= some;
            }
            let mut freed = 0;
            while freed < rounds {
                match told.recv() {
                    Ok(count) => freed += count,
                    Err(_) => return,
                }
            }
        });
    });
    Ok(())
}
