//! A thread factory and hooks that fail now and then.

use super::ledger::{Ledger, lock};
use crate::kit::Rng;
use millpond::pool::{Ended, Hooks, TaskInfo};
use millpond::thread::{Body, JoinHandle, ThreadFactory, Threads};
use millpond_raw::user_code::{self, Kind};
use std::fmt;
use std::io;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// A thread factory that counts its threads and, once in a while, lets one fail.
pub(crate) struct FaultyFactory {
    threads: Threads,
    rng: Mutex<Rng>,
    /// Once in how many; 0 for never.
    faults: AtomicUsize,
    pub(crate) asked: AtomicU64,
    live_threads: Arc<AtomicUsize>,
    ledger: Arc<Ledger>,
}

/// Counts a body from before its thread starts until it is dropped.
struct Living(Arc<AtomicUsize>);

impl Drop for Living {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl FaultyFactory {
    pub(crate) fn new(ledger: &Arc<Ledger>, faults: usize, rng: Rng) -> Self {
        let factory = FaultyFactory {
            threads: Threads::named("chaos"),
            rng: Mutex::new(rng),
            faults: AtomicUsize::new(0),
            asked: AtomicU64::new(0),
            live_threads: Arc::default(),
            ledger: Arc::clone(ledger),
        };
        factory.set_faults(faults);
        factory
    }

    pub(crate) fn set_faults(&self, once_in: usize) {
        if once_in > 0 {
            self.ledger.round.may_fail.store(true, Ordering::Relaxed);
        }
        self.faults.store(once_in, Ordering::Relaxed);
    }

    /// How many bodies there are that have not been dropped.
    pub(crate) fn live_threads(&self) -> usize {
        self.live_threads.load(Ordering::SeqCst)
    }
}

impl ThreadFactory for FaultyFactory {
    fn start(&self, body: Body) -> io::Result<JoinHandle<()>> {
        user_code::check(Kind::Factory);
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.live_threads.fetch_add(1, Ordering::SeqCst);
        let living = Living(Arc::clone(&self.live_threads));
        let (mut own, vice) = {
            let mut rng = lock(&self.rng);
            let faults = self.faults.load(Ordering::Relaxed);
            let spoilt = faults > 0 && rng.once_in(faults);
            (rng.fork(), spoilt.then(|| rng.below(6)))
        };
        let mut late = own.fork();
        own.jitter();
        let body: Body = Box::new(move || {
            let _living = living;
            late.jitter();
            body();
        });
        match vice {
            None => self.threads.start(body),
            Some(0) => Err(io::ErrorKind::WouldBlock.into()),
            Some(1) => resume_unwind(Box::new("the loom is broken")),
            Some(2) => {
                drop(body);
                self.threads.start(Box::new(|| ()))
            }
            Some(3) => {
                drop(self.threads.start(body)?);
                Err(io::ErrorKind::WouldBlock.into())
            }
            Some(4) => {
                drop(self.threads.start(body)?);
                resume_unwind(Box::new("the loom is broken"))
            }
            Some(_) => self.threads.start(Box::new(move || {
                own.jitter();
                drop(body);
            })),
        }
    }
}

impl fmt::Debug for FaultyFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultyFactory").finish_non_exhaustive()
    }
}

/// Hooks that count, and panic once in a while.
pub(crate) struct FaultyHooks {
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) rng: Mutex<Rng>,
    pub(crate) once_in: usize,
}

impl FaultyHooks {
    fn ring(&self, count: &AtomicU64) {
        count.fetch_add(1, Ordering::Relaxed);
        let panics = lock(&self.rng).once_in(self.once_in);
        if panics {
            self.ledger
                .round
                .hooks_panicked
                .fetch_add(1, Ordering::Relaxed);
            resume_unwind(Box::new("the bell is cracked"));
        }
    }
}

impl Hooks for FaultyHooks {
    fn before(&self, _: &TaskInfo) {
        self.ring(&self.ledger.round.hooks_before);
    }

    fn after(&self, _: &TaskInfo, ended: Ended) {
        self.ring(match ended {
            Ended::Gone => &self.ledger.round.hooks_gone,
            _ => &self.ledger.round.hooks_completed,
        });
    }

    fn terminated(&self) {
        self.ring(&self.ledger.round.terminated);
    }
}
