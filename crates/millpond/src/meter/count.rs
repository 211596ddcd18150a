//! A count that one thread writes and any may read.

use millpond_raw::sync::atomic::{AtomicU64, Ordering};

/// Only its owner adds to it; so that needs no lock and no locked instruction.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    #[inline]
    pub(crate) fn add(&self, more: u64) {
        // Relaxed: it is a figure, and hands nothing over.
        let next = self.0.load(Ordering::Relaxed).wrapping_add(more);
        self.0.store(next, Ordering::Relaxed);
    }

    /// The same, for what may come to more than there is room for: then it stays at the most.
    #[inline]
    pub(crate) fn add_up_to_most(&self, more: u64) {
        let next = self.0.load(Ordering::Relaxed).saturating_add(more);
        self.0.store(next, Ordering::Relaxed);
    }

    /// What it has come to; it begins anew. Only its owner does that, and nobody reads it meanwhile who
    /// must not miss anything.
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
