//! The parts of a script's pool on our side: threads that are watched and can be made to fail, and
//! hooks that count.

use super::ledger;
use crate::kit::Stillness;
use millpond::pool::{Ended, Hooks, TaskInfo};
use millpond::thread::{Body, JoinHandle, ThreadFactory, Threads};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Starts threads that are watched, unless it is to refuse them.
#[derive(Debug)]
pub(super) struct WatchedThreads {
    threads: Threads,
    stillness: Stillness,
    refuses: Arc<AtomicBool>,
}

impl WatchedThreads {
    pub(super) fn new(stillness: Stillness, refuses: Arc<AtomicBool>) -> Self {
        WatchedThreads {
            threads: Threads::named("ours").stack_size(256 * 1024),
            stillness,
            refuses,
        }
    }
}

impl ThreadFactory for WatchedThreads {
    fn start(&self, body: Body) -> io::Result<JoinHandle<()>> {
        if self.refuses.load(Ordering::SeqCst) {
            return Err(io::Error::other("as the script says"));
        }
        self.threads.start(Box::new(self.stillness.watch(move || {
            ledger::be_worker();
            body();
        })))
    }
}

/// How often each hook was called.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts(Arc<[AtomicUsize; 3]>);

impl Counts {
    /// Before, after and terminated.
    pub(super) fn read(&self) -> [usize; 3] {
        self.0.each_ref().map(|count| count.load(Ordering::SeqCst))
    }

    fn happened(&self, which: usize) {
        self.0[which].fetch_add(1, Ordering::SeqCst);
    }
}

impl Hooks for Counts {
    // The tombstone of a cancelled task is not counted: Java's side has purged it (DIFF-1).
    fn before(&self, task: &TaskInfo) {
        if !task.is_gone() {
            self.happened(0);
        }
    }

    fn after(&self, _task: &TaskInfo, ended: Ended) {
        if ended != Ended::Gone {
            self.happened(1);
        }
    }

    fn terminated(&self) {
        self.happened(2);
    }
}
