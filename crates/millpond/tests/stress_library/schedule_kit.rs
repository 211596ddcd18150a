//! What the stress of scheduled pools needs: numbers from a seed, and threads that do not always start.

use millpond::thread::{Body, JoinHandle, ThreadFactory, Threads};
use millpond_raw::sync::atomic::{AtomicU64, Ordering};
use millpond_raw::sync::thread;
use std::io;
use std::panic::resume_unwind;
use std::time::Duration;

/// SplitMix64.
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.any() % limit
    }

    pub(crate) fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn fork(&mut self) -> Rng {
        Rng(self.any())
    }

    /// Moves the interleaving about.
    pub(crate) fn jitter(&mut self) {
        match self.below(3) {
            0 => thread::yield_now(),
            1 => (0..self.below(2000)).for_each(|_| std::hint::spin_loop()),
            _ => {}
        }
    }

    pub(crate) fn micros(&mut self, limit: u64) -> Duration {
        Duration::from_micros(1 + self.below(limit))
    }
}

/// Tells the seed if the round fails.
pub(crate) struct Told(pub(crate) u64);

impl Drop for Told {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("run it again with MILLPOND_STRESS_SEED={}", self.0);
        }
    }
}

/// Threads of which once in a while one does not start.
#[derive(Debug)]
pub(crate) struct Moody {
    threads: Threads,
    turn: AtomicU64,
    once_in: u64,
}

impl Moody {
    pub(crate) fn new(rng: &mut Rng) -> Self {
        Moody {
            threads: Threads::named("moody"),
            turn: AtomicU64::new(rng.any()),
            once_in: 2 + rng.below(6),
        }
    }
}

impl ThreadFactory for Moody {
    fn start(&self, body: Body) -> io::Result<JoinHandle<()>> {
        let mut rng = Rng(self.turn.fetch_add(1, Ordering::Relaxed));
        let vice = rng.once_in(self.once_in).then(|| rng.below(4));
        match vice {
            None => self.threads.start(body),
            Some(0) => Err(io::ErrorKind::WouldBlock.into()),
            Some(1) => resume_unwind(Box::new("the loom is broken")),
            Some(2) => {
                drop(body);
                self.threads.start(Box::new(|| ()))
            }
            Some(_) => self.threads.start(Box::new(move || drop(body))),
        }
    }
}
