//! A pool of somebody else's, with a handle as ours is: who waits spins for a moment, then yields, then parks.
//!
//! A pool without handles of its own gets a channel for one result (see [`with_handle`](super)), and its caller sleeps
//! at once. That is fair to the CPU and unfair in a comparison of round trips: here the same caller looks out first.

use super::hand_rolled::{Crossbeam, HandRolled, Kanal};
use super::rayon::Rayon;
use super::tokio::SpawnBlocking;
use super::{Pool, Queue, Threads, receive, with_handle};
use anyhow::Result;
use std::time::{Duration, Instant};

/// The pool.
#[derive(Debug)]
pub struct Awake<P>(P);

/// What it is called.
pub trait Named {
    /// Its name.
    const NAME: &'static str;
}

impl Named for HandRolled<Crossbeam> {
    const NAME: &'static str = "crossbeam-channel, spin-yield-park";
}

impl Named for HandRolled<Kanal> {
    const NAME: &'static str = "kanal, spin-yield-park";
}

impl Named for SpawnBlocking {
    const NAME: &'static str = "tokio spawn_blocking, spin-yield-park";
}

impl Named for Rayon {
    const NAME: &'static str = "rayon spawn, spin-yield-park";
}

/// It spins for so long.
const SPINS_FOR: Duration = Duration::from_micros(5);

/// It yields until so much time has passed. A wake-up takes longer.
const AWAKE_FOR: Duration = Duration::from_micros(25);

/// So many hints to the CPU between two looks.
const HINTS: u32 = 8;

/// Waits for a result: awake for a moment, then asleep.
fn wait(handle: oneshot::Receiver<u64>) -> u64 {
    let start = Instant::now();
    loop {
        if let Ok(result) = handle.try_recv() {
            return result;
        }
        match start.elapsed() {
            time if time < SPINS_FOR => (0..HINTS).for_each(|_| std::hint::spin_loop()),
            time if time < AWAKE_FOR => std::thread::yield_now(),
            _ => return receive(handle),
        }
    }
}

impl<P: Pool + Named> Pool for Awake<P> {
    const NAME: &'static str = <P as Named>::NAME;
    const THREADS: Threads = P::THREADS;
    type Handle = oneshot::Receiver<u64>;

    fn with_workers(workers: usize, queue: Queue) -> Result<Self> {
        P::with_workers(workers, queue).map(Awake)
    }

    fn run<F: FnOnce() + Send + 'static>(&self, f: F) {
        self.0.run(f);
    }

    fn submit<F: FnOnce() -> u64 + Send + 'static>(&self, f: F) -> Self::Handle {
        let (job, handle) = with_handle(f);
        self.0.run(job);
        handle
    }

    fn join(&self, handle: Self::Handle) -> u64 {
        wait(handle)
    }

    fn close(self) {
        self.0.close();
    }
}
