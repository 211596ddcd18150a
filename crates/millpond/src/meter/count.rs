//! A counter that one thread writes and any thread may read.

use millpond_raw::sync::atomic::{AtomicU64, Ordering};

/// Only its owner adds to it, so no lock and no atomic read-modify-write is needed.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    #[inline]
    pub(crate) fn add(&self, more: u64) {
        // Relaxed: it is a statistic, and publishes no other memory.
        let next = self.0.load(Ordering::Relaxed).wrapping_add(more);
        self.0.store(next, Ordering::Relaxed);
    }

    /// Raises it to `least`, if it is below.
    #[inline]
    pub(crate) fn raise_to(&self, least: u64) {
        if self.get() < least {
            self.0.store(least, Ordering::Relaxed);
        }
    }

    /// [`add`](Count::add), saturating.
    #[inline]
    pub(crate) fn saturating_add(&self, more: u64) {
        let next = self.get().saturating_add(more);
        self.0.store(next, Ordering::Relaxed);
    }

    /// Returns the count and resets it. Only its owner calls it; a concurrent reader may miss the count.
    pub(crate) fn take(&self) -> u64 {
        let all = self.get();
        self.0.store(0, Ordering::Relaxed);
        all
    }

    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
