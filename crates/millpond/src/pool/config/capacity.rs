//! The capacity of a queue of the user's, which patches change under no lock.
//!
//! A patch is judged, then the queue is given its capacity, then the patch is judged again and written under the lock. By
//! then other patches may have changed what it was judged by, and it fails; or they have changed the capacity, too.
//!
//! ```text
//!   begin: count it  -->  set_capacity  -->  judge again: commit, or fail  -->  end: the last one sets what counts
//! ```
//!
//! # Invariants
//!
//! - **CAPACITY-1** The queue is called under no lock: its `set_capacity` may wait for another patch, or apply one.
//! - **CAPACITY-2** The `base` is what the last committed patch says, or what the queue had when the first of those under
//!   way began. A patch that fails does not change it, so it takes nothing back but its own.
//! - **CAPACITY-3** When no patch is under way the queue has the base: a patch that ends as the last one compares them
//!   and sets the base. It counts as under way until that is done, so that no other call of `set_capacity` overlaps it
//!   unseen; if a patch has begun meanwhile, the end of that one does the same.

use crate::pool::engine::PoolEngine;
use millpond_raw::catch_panic;
use millpond_raw::sync::thread;

/// The patches under way. Guarded by the lock of the configuration.
#[derive(Debug, Default)]
pub(in crate::pool) struct CapacityPatches {
    under_way: usize,
    /// CAPACITY-2; of no meaning if none is under way.
    base: Option<usize>,
    /// Advances with each begin, commit and end.
    version: u64,
}

impl CapacityPatches {
    /// Differs if a patch has begun, committed or ended meanwhile.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// The capacity that counts, if a patch is under way; then the queue may have another one.
    pub(super) fn base_under_way(&self) -> Option<Option<usize>> {
        (self.under_way > 0).then_some(self.base)
    }

    /// A patch counts from now on.
    pub(super) fn commit(&mut self, capacity: Option<usize>) {
        self.base = capacity;
        self.version += 1;
    }
}

/// A patch under way. Dropping it ends it.
pub(super) struct CapacityTurn<'a> {
    engine: &'a PoolEngine,
    /// The capacity that the queue has without this patch, or would have without all that are under way.
    pub(super) base: Option<usize>,
}

impl<'a> CapacityTurn<'a> {
    pub(super) fn begin(engine: &'a PoolEngine) -> Self {
        loop {
            let version = engine.config().lock().capacity_patches.version;
            let capacity = engine.queue.capacity();
            let mut turn = engine.config().lock();
            let patches = &mut turn.capacity_patches;
            if patches.under_way == 0 {
                if patches.version != version {
                    // What was read may be the capacity of a patch that has failed.
                    continue;
                }
                patches.base = capacity;
            }
            patches.under_way += 1;
            patches.version += 1;
            let base = patches.base;
            return CapacityTurn { engine, base };
        }
    }

    /// CAPACITY-3
    fn end(&self) {
        let mut settled = None;
        loop {
            let mut turn = self.engine.config().lock();
            let patches = &mut turn.capacity_patches;
            if patches.under_way > 1 || settled == Some(patches.version) {
                patches.under_way -= 1;
                patches.version += 1;
                return;
            }
            let (base, version) = (patches.base, patches.version);
            drop(turn);
            // It had this capacity before, or was given it. If it panics nevertheless, there is no more to be done.
            let _ = catch_panic::call(|| {
                let base = base.filter(|_| self.engine.queue.capacity() != base);
                base.map(|base| self.engine.queue.set_capacity(base))
            });
            settled = Some(version);
        }
    }
}

impl Drop for CapacityTurn<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            // A panic of the queue: it is not called again.
            let mut turn = self.engine.config().lock();
            turn.capacity_patches.under_way -= 1;
            turn.capacity_patches.version += 1;
        } else {
            self.end();
        }
    }
}
