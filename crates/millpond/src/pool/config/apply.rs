//! Describing and changing the parameters of a running pool.

use super::capacity::CapacityTurn;
use super::{ColdConfig, Config, TABLE};
use crate::engine::metrics::LabelTable;
use crate::engine::watchdog::Supervised;
use crate::manage::{Change, Invalid, Parameter, Patch, PatchError};
use crate::pool::RejectionPolicy;
use crate::pool::engine::PoolEngine;
use crate::pool::task_queue::TaskQueue;
use millpond_raw::sync::MutexGuard;
use std::sync::Arc;

/// What a change leaves to be done when the lock is free.
struct Written {
    changes: Vec<Change>,
    /// The former number of eagerly started workers.
    eager_before: usize,
    names_warning: bool,
    /// A handler of the user's, perhaps.
    _former: Option<RejectionPolicy>,
}

impl PoolEngine {
    /// What the patch would change.
    pub(in crate::pool) fn check(&self, patch: &Patch) -> Result<Vec<Change>, PatchError> {
        self.check_names(patch)?;
        let (turn, capacity) = self.lock_with_capacity();
        let (now, next) = self.judge_patch(&turn, patch, capacity)?;
        Ok(TABLE.changes(&now, &next))
    }

    /// Changes all parameters that the patch names, or none (PATCH-1). Returns what has changed.
    pub(in crate::pool) fn apply(
        self: &Arc<Self>,
        patch: &Patch,
    ) -> Result<Vec<Change>, PatchError> {
        self.check_names(patch)?;
        let names_capacity = patch.get("capacity").is_some();
        let written = if self.queue.is_foreign() && names_capacity {
            self.apply_to_foreign(patch)?
        } else {
            self.write_all(patch, None)?
        };
        self.limits_changed(written.eager_before);
        if written.names_warning {
            self.heed_limits();
        }
        Ok(written.changes)
    }

    /// An error if nothing can be changed here, or with all that is wrong with a patch that has unknown names.
    fn check_names(&self, patch: &Patch) -> Result<(), PatchError> {
        if self.is_forked() {
            return Err(PatchError::of(Invalid::Forked));
        }
        let unknown = TABLE.unknown(patch);
        if unknown.is_empty() {
            return Ok(());
        }
        let capacity = patch.get("capacity").and_then(|_| self.queue.capacity());
        let judged = self.judge_patch(&self.config().lock(), patch, capacity);
        let mut problems = unknown;
        problems.extend(
            judged
                .err()
                .iter()
                .flat_map(|error| error.problems().to_vec()),
        );
        PatchError::unless_none(problems)
    }

    /// The same for a patch that names the capacity of a queue of the user's, which is set under no lock (CAPACITY-1).
    fn apply_to_foreign(&self, patch: &Patch) -> Result<Written, PatchError> {
        let turn = CapacityTurn::begin(self);
        let base = turn.base;
        let (_, next) = self.judge_patch(&self.config().lock(), patch, base)?;
        if let Some(capacity) = next.capacity.filter(|_| next.capacity != base) {
            self.queue.set_capacity(capacity)?;
        }
        self.write_all(patch, Some(base))
    }

    /// The parameters, described.
    pub(in crate::pool) fn parameters(&self) -> Vec<Parameter> {
        self.read_config().describe()
    }

    /// The parameters, without a lock in a forked process, where it may be held by a thread that is not there.
    fn read_config(&self) -> Config {
        let (queue, names) = (self.queue_name(), self.task_names());
        if self.is_forked() {
            let limits = self.config().limits();
            return Config {
                core: limits.core(),
                max: limits.max(),
                keep_alive: self.config().keep_alive(),
                core_may_time_out: self.config().core_may_time_out(),
                growth: limits.growth(),
                capacity: Some(0),
                overload: self.overload(),
                rejection: self.rejection(),
                queue,
                run_warning: None,
                task_names: names,
            };
        }
        let (turn, capacity) = self.lock_with_capacity();
        let (overload, run_warning) = (self.shedder.settings(), self.watchdog.limit_of_all());
        self.config()
            .read(&turn, (queue, capacity), overload, names, run_warning)
    }

    /// The writers' lock, and the capacity that belongs to what is read under it. A queue of the user's is asked under no
    /// lock, again if a patch has come between, and not at all while one is under way (CAPACITY-2).
    fn lock_with_capacity(&self) -> (MutexGuard<'_, ColdConfig>, Option<usize>) {
        let config = self.config();
        if !self.queue.is_foreign() {
            let turn = config.lock();
            let capacity = self.queue.capacity();
            return (turn, capacity);
        }
        loop {
            let version = config.lock().capacity_patches.version();
            let asked = self.queue.capacity();
            let turn = config.lock();
            let patches = &turn.capacity_patches;
            if let Some(base) = patches.base_under_way() {
                return (turn, base);
            }
            if patches.version() == version {
                return (turn, asked);
            }
        }
    }

    fn queue_name(&self) -> &'static str {
        match self.queue {
            TaskQueue::Plain(_) => "fifo",
            TaskQueue::HandOff(_) => "hand_off",
            TaskQueue::Sorted(_) => "priority",
            TaskQueue::Other(_) => "custom",
        }
    }

    fn task_names(&self) -> Option<usize> {
        self.labels.as_ref().map(LabelTable::max_labels)
    }

    /// The parameters now, and those that the patch leads to, if nothing is wrong with what it names.
    fn judge_patch(
        &self,
        turn: &MutexGuard<'_, ColdConfig>,
        patch: &Patch,
        capacity: Option<usize>,
    ) -> Result<(Config, Config), PatchError> {
        let (queue, names) = ((self.queue_name(), capacity), self.task_names());
        let overload = self.shedder.settings();
        let run_warning = self.watchdog.limit_of_all();
        let now = self
            .config()
            .read(turn, queue, overload, names, run_warning);
        let (next, mut problems) = TABLE.resolve_known(&now, patch);
        problems.iter_mut().for_each(|each| now.narrow_advice(each));
        problems.extend(next.misfits(&problems));
        problems.extend(self.queue.objects_to_order(next.overload.order));
        if let Some(capacity) = next.capacity.filter(|_| next.capacity != now.capacity) {
            problems.extend(self.queue.objects_to(capacity).map(Invalid::Capacity));
        }
        PatchError::unless_none(problems)?;
        Ok((now, next))
    }

    /// Writes what the patch names. A queue of the user's has the new capacity already; without the patch it would
    /// have what was `seen`.
    fn write_all(&self, patch: &Patch, seen: Option<Option<usize>>) -> Result<Written, PatchError> {
        let config = self.config();
        let mut turn = config.lock();
        let eager_before = config.limits().eager();
        let capacity = match (seen, patch.get("capacity")) {
            (Some(seen), _) => seen,
            (None, Some(_)) => self.queue.capacity(),
            // It is not asked for.
            (None, None) => None,
        };
        let (now, next) = self.judge_patch(&turn, patch, capacity)?;
        if seen.is_some() {
            turn.capacity_patches.commit(next.capacity);
        } else if next.capacity != now.capacity {
            if let Some(capacity) = next.capacity {
                // The last step that can fail, and the first that changes something (PATCH-1).
                self.queue.set_capacity(capacity)?;
            }
        }
        self.shedder.set(&turn, next.overload);
        config.write(&turn, &next);
        let names_warning = patch.get("run_warning").is_some();
        if names_warning {
            self.watchdog
                .write_limits(|limits| limits.of_all = next.run_warning);
        }
        let names_policy = patch.get("rejection").is_some();
        let changes = TABLE.changes(&now, &next);
        let policy = names_policy.then_some(next.rejection);
        let former = policy.map(|policy| config.replace_rejection(&mut turn, policy));
        Ok(Written {
            changes,
            eager_before,
            names_warning,
            _former: former,
        })
    }
}
