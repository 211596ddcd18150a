//! The probes: each does one thing again and again and says how long it takes.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use millpond::machine::Machine;
use millpond::thread::{ThreadFactory, Threads};
use millpond_raw::pad::Padded;

use super::costs::Found;
use super::measure::Meter;

pub(super) fn clock(meter: &Meter<'_>, _machine: &Machine) -> Found {
    Ok(vec![meter.batches(|| {
        black_box(Instant::now());
    })])
}

pub(super) fn atomic_add(meter: &Meter<'_>, _machine: &Machine) -> Found {
    let counter = Padded::new(AtomicU64::new(0));
    Ok(vec![meter.batches(|| {
        black_box(&counter).fetch_add(1, Ordering::Relaxed);
    })])
}

pub(super) fn own_lock(meter: &Meter<'_>, _machine: &Machine) -> Found {
    let lock = Padded::new(millpond_raw::sync::Mutex::new(0_u64));
    Ok(vec![meter.batches(|| *black_box(&lock).lock() += 1)])
}

pub(super) fn std_lock(meter: &Meter<'_>, _machine: &Machine) -> Found {
    let lock = Padded::new(std::sync::Mutex::new(0_u64));
    Ok(vec![meter.batches(|| {
        // Nobody panics while holding it, so a poisoned lock cannot be met.
        *black_box(&lock).lock().unwrap() += 1;
    })])
}

pub(super) fn allocation(meter: &Meter<'_>, _machine: &Machine) -> Found {
    Ok(vec![meter.batches(|| {
        black_box(Box::new(black_box([0_u8; 64])));
    })])
}

pub(super) fn task(meter: &Meter<'_>, _machine: &Machine) -> Found {
    Ok(vec![meter.batches(|| {
        let (task, handle) = millpond::task::new(|| black_box(42_u64));
        let _ = task.run();
        black_box(handle.join().ok());
    })])
}

pub(super) fn thread_start(meter: &Meter<'_>, _machine: &Machine) -> Found {
    let threads = Threads::named("about");
    let samples = meter.singles(|| {
        let start = Instant::now();
        threads.start(Box::new(|| ())).ok()?.join().ok()?;
        Some([start.elapsed()])
    });
    Ok(samples.into())
}

/// Two threads pass a number to and fro: each even one is answered by the next odd one.
pub(super) fn cache_line(meter: &Meter<'_>, machine: &Machine) -> Found {
    const OVER: u64 = u64::MAX;
    if machine.allowed.as_ref().is_some_and(|cpus| cpus.len() < 2) {
        return Err("it takes two CPUs, and this process may use one");
    }
    let ball = Padded::new(AtomicU64::new(1));
    let samples = std::thread::scope(|scope| {
        scope.spawn(|| {
            while let seen = await_change(&ball, |ball| ball % 2 == 0 || ball == OVER)
                && seen != OVER
            {
                ball.store(seen + 1, Ordering::Release);
            }
        });
        let mut next = 2;
        let samples = meter.batches(|| {
            ball.store(next, Ordering::Release);
            await_change(&ball, |ball| ball == next + 1);
            next += 2;
        });
        ball.store(OVER, Ordering::Release);
        samples
    });
    Ok(vec![samples])
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
        std::thread::yield_now();
    }
}
