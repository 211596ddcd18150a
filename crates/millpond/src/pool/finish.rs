//! Tasks that must have ended by a time ([`TaskSpec::finish_by`](crate::task::TaskSpec::finish_by)): which are dropped at
//! their turn because too little time is left.
//!
//! A worker compares what is left with a percentile of what tasks of the label took, of late, that had such a time. The
//! totals of the metrics would not do: they are of all times, and hold runs that were cut short.
//!
//! # Invariants
//!
//! - **LATE-1** Tasks without such a time neither take the lock nor are recorded.
//! - **LATE-2** A run that ended late says only that tasks take longer than it was given: it is recorded as twice that, and
//!   never as less than what is usual. Otherwise interrupts would make tasks look as short as the time that they are given,
//!   and all of them would be started and interrupted for ever.
//! - **LATE-3** Dropping tasks never lasts for lack of news: after [`PROBE`] one that would be dropped is run. If it ends
//!   in time what was known is wrong, and is forgotten.

use super::engine::PoolEngine;
use super::worker::Worker;
use crate::engine::metrics::{LabelId, TaskStart};
use crate::executor::TaskOutcome;
use crate::task::{CancelReason, Task};
use crate::time::{Clock, Deadline};
use millpond_raw::sync::Mutex;
use millpond_raw::timestamp::Timestamp;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// So many runs are remembered of each label.
const WINDOW: usize = 64;

/// From fewer runs nothing is concluded.
const ENOUGH: usize = 8;

/// LATE-3
const PROBE: Duration = Duration::from_secs(1);

/// How long tasks took that have a time by which they must have ended, by label.
#[derive(Default)]
pub(super) struct FinishTimes {
    by_index: Mutex<HashMap<usize, Recent>>,
}

/// The last runs of a label.
struct Recent {
    id: LabelId,
    /// In nanoseconds, in the order in which they ended.
    runs: VecDeque<u64>,
    sorted: Vec<u64>,
    /// When one was run that would have been dropped, or the first was dropped.
    probed: Option<Timestamp>,
}

impl Recent {
    fn new(id: LabelId) -> Self {
        Recent {
            id,
            runs: VecDeque::with_capacity(WINDOW),
            sorted: Vec::with_capacity(WINDOW),
            probed: None,
        }
    }

    fn add(&mut self, nanos: u64) {
        if self.runs.len() == WINDOW {
            let oldest = self.runs.pop_front();
            let place = oldest.and_then(|oldest| self.sorted.binary_search(&oldest).ok());
            if let Some(place) = place {
                self.sorted.remove(place);
            }
        }
        self.runs.push_back(nanos);
        let place = self.sorted.partition_point(|each| *each < nanos);
        self.sorted.insert(place, nanos);
    }

    /// The run time that so many percent of the runs do not exceed.
    fn usual(&self, percentile: u8) -> Option<u64> {
        if percentile == 0 || self.sorted.len() < ENOUGH {
            return None;
        }
        let rank = (self.sorted.len() * usize::from(percentile)).div_ceil(100);
        self.sorted.get(rank - 1).copied()
    }
}

/// A task that must have ended by a time, from its turn to its end.
pub(super) struct FinishRun {
    by: Deadline,
    clock: Clock,
    /// Nanoseconds that were left at its turn.
    left: u64,
    /// Its label, if the pool keeps metrics, and the start of its run.
    label: Option<LabelId>,
    since: Timestamp,
}

impl FinishRun {
    /// `None` if there is no time by which the task must have ended.
    pub(super) fn of(engine: &PoolEngine, task: &Task, start: Option<TaskStart>) -> Option<Self> {
        if !task.has_finish_by() {
            return None;
        }
        let (by, clock) = (task.finish_by(), task.clock());
        let left = by.remaining(clock.now()).unwrap_or(Duration::MAX);
        Some(FinishRun {
            by,
            clock,
            left: u64::try_from(left.as_nanos()).unwrap_or(u64::MAX),
            // The others have nothing in common.
            label: start
                .map(|start| start.label())
                .filter(|label| *label != LabelId::OTHERS),
            since: start.map_or_else(|| engine.timestamps.now(), |start| start.tick),
        })
    }

    /// Whether the task is to be dropped, because less is left than tasks of its label take.
    pub(super) fn judge(&self, engine: &PoolEngine, task: &Task) -> Option<CancelReason> {
        let label = self.label.filter(|_| !task.is_kept())?;
        let percentile = engine.shedder.settings().finish_percentile;
        let mut all = engine.finish_times.by_index.lock();
        let recent = all
            .get_mut(&label.index())
            .filter(|recent| recent.id == label)?;
        if self.left >= recent.usual(percentile)? {
            return None;
        }
        let probed = *recent.probed.get_or_insert(self.since);
        let waited = engine.timestamps.nanos(probed, self.since);
        if Duration::from_nanos(waited) >= PROBE {
            recent.probed = Some(self.since);
            return None;
        }
        Some(CancelReason::TooLate)
    }

    /// The task has run on this worker, or was dropped.
    pub(super) fn end(self, engine: &PoolEngine, worker: &Worker, outcome: TaskOutcome) {
        let has_run = matches!(
            outcome,
            TaskOutcome::Completed | TaskOutcome::Panicked | TaskOutcome::Unwanted
        );
        if !has_run {
            return;
        }
        let is_late = self.by.has_passed(self.clock.now());
        if is_late {
            worker.stats.count_finished_late();
        }
        let Some(label) = self.label else { return };
        if is_late {
            worker.metrics.record_finished_late(label);
        }
        let now = engine.timestamps.now();
        let ran = engine.timestamps.nanos(self.since, now);
        let percentile = engine.shedder.settings().finish_percentile;
        let mut all = engine.finish_times.by_index.lock();
        let recent = all
            .entry(label.index())
            .or_insert_with(|| Recent::new(label));
        if recent.id < label {
            *recent = Recent::new(label);
        }
        let usual = recent.usual(percentile).unwrap_or(0);
        if is_late {
            if self.left < usual {
                // The pause begins when the one that was tried has ended.
                recent.probed = Some(now);
            }
            // LATE-2
            recent.add(ran.max(self.left.saturating_mul(2)).max(usual));
            return;
        }
        if self.left < usual {
            // LATE-3
            *recent = Recent::new(label);
        }
        recent.add(ran);
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(crate::proptest_kit::config(128))]

        #[test]
        fn the_percentile_is_that_of_the_last_runs(
            runs in prop::collection::vec(0_u64..50, 0..200),
            percentile in 1_u8..=100,
        ) {
            let mut recent = Recent::new(LabelId::OTHERS);
            runs.iter().for_each(|nanos| recent.add(*nanos));
            let mut last = runs[runs.len().saturating_sub(WINDOW)..].to_vec();
            last.sort_unstable();
            let enough = last.len() >= ENOUGH;
            let rank = (last.len() * usize::from(percentile)).div_ceil(100);
            let expected = enough.then(|| last[rank - 1]);
            prop_assert_eq!(recent.usual(percentile), expected);
            prop_assert_eq!(recent.usual(0), None);
        }
    }
}
