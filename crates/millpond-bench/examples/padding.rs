//! What does it cost if what other workers write is on the cache line that a worker reads in every join?
//!
//! ```text
//! cargo run --release -p millpond-bench --example padding
//! ```
//!
//! Two threads stand for two workers. Each has a demand word, which it reads in every step as a join does, and the length
//! of a deque, which it writes in every step (as with tasks that spawn tasks), in every hundredth, or never. The words of
//! both are neighbours in memory, or each is on cache lines of its own, as in the pool. The figures are the median of the
//! rounds, in nanoseconds a step; packed and padded take turns.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a program that measures the machine, and prints what it found"
)]

use millpond_raw::cache_padded::CachePadded;
use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Instant;

const STEPS: usize = 5_000_000;
const ROUNDS: usize = 9;
const WORKERS: usize = 2;

/// What other workers see of one.
trait Slot: Default + Sync {
    fn demand(&self) -> &AtomicU32;
    fn len(&self) -> &AtomicUsize;
}

#[derive(Default)]
struct Packed {
    demand: AtomicU32,
    len: AtomicUsize,
}

impl Slot for Packed {
    fn demand(&self) -> &AtomicU32 {
        &self.demand
    }

    fn len(&self) -> &AtomicUsize {
        &self.len
    }
}

#[derive(Default)]
struct Padded {
    demand: CachePadded<AtomicU32>,
    len: CachePadded<AtomicUsize>,
}

impl Slot for Padded {
    fn demand(&self) -> &AtomicU32 {
        &self.demand
    }

    fn len(&self) -> &AtomicUsize {
        &self.len
    }
}

/// Nanoseconds a step. The length is written in one of `every` steps; 0 is never.
fn round<S: Slot>(every: usize) -> f64 {
    // The slots are where an allocation begins, so that packed ones share a line.
    let slots: Vec<CachePadded<[S; WORKERS]>> = vec![CachePadded::new(Default::default())];
    let (slots, barrier) = (&slots[0], Barrier::new(WORKERS));
    let work = |slot: &S| {
        barrier.wait();
        let start = Instant::now();
        let mut due = every;
        for step in 0..STEPS {
            if slot.demand().load(Ordering::Relaxed) != 0 {
                black_box(step);
            }
            if every > 0 {
                due -= 1;
                if due == 0 {
                    due = every;
                    slot.len().store(step, Ordering::Relaxed);
                }
            }
            black_box(due);
        }
        start.elapsed().as_secs_f64() * 1e9 / STEPS as f64
    };
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = slots
            .iter()
            .map(|slot| scope.spawn(move || work(slot)))
            .collect();
        let times = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or(f64::NAN));
        times.sum::<f64>() / WORKERS as f64
    })
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

fn main() {
    println!("ns a step         packed  padded  packed / padded");
    for (name, every) in [
        ("never written", 0),
        ("every 100 steps", 100),
        ("every step", 1),
    ] {
        let (mut packed, mut padded) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            packed.push(round::<Packed>(every));
            padded.push(round::<Padded>(every));
        }
        let (packed, padded) = (median(packed), median(padded));
        println!(
            "{name:<16} {packed:>7.2} {padded:>7.2} {:>16.1}",
            packed / padded
        );
    }
}
