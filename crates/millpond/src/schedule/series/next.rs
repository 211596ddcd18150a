//! What comes after a run of a series: another one, a retry, or nothing.

use super::{Series, SeriesState};
use crate::schedule::events::NextRun;
use crate::schedule::failure::OnFailure;
use crate::schedule::plan::{Catchup, DueTime, Next, Now};
use crate::schedule::run::RunResult;
use crate::schedule::state::PoolState;
use std::sync::Arc;

impl Series {
    /// What comes after a run with this result, as far as it is up to the series.
    pub(super) fn next_after(&self, state: &SeriesState, result: &RunResult) -> NextRun {
        match (result, self.on_failure) {
            (RunResult::End, _) => NextRun::Never,
            (RunResult::Continue | RunResult::Lost, _) | (_, OnFailure::Continue) => {
                NextRun::AsPlanned
            }
            (RunResult::Failed(_) | RunResult::Panicked(_), OnFailure::Stop) => NextRun::Never,
            (RunResult::Failed(_) | RunResult::Panicked(_), OnFailure::Retry(backoff)) => backoff
                .after(state.failures_in_a_row)
                .map_or(NextRun::Never, NextRun::RetryIn),
        }
    }

    /// Waits for the next run, after one that has settled; `is_lost` if the executor rejected or dropped it. Returns
    /// whether the caller must dispatch.
    pub(super) fn wait_for_next(
        self: &Arc<Self>,
        pool: &mut PoolState,
        state: &mut SeriesState,
        next: NextRun,
        is_lost: bool,
        now: Now,
    ) -> bool {
        if let NextRun::RetryIn(pause) = next {
            // In place of the planned run, if there is one.
            if !self.unplan(pool, state) {
                return false;
            }
            state.is_retry = true;
            let due = now.instant.checked_add(pause);
            let wall = state.planned.wall;
            let next = due.map_or(Next::Never, |due| Next::At(DueTime { due, wall }));
            return self.replan(pool, state, next, now);
        }
        // An executor that rejects one run would reject all others that were missed, one after the other.
        let catchup = if is_lost && self.catchup == Catchup::All {
            Catchup::Skip
        } else {
            self.catchup
        };
        if state.key.is_some() || self.plans_ahead() {
            let is_behind = state.key.is_some() && state.planned.due < now.instant;
            let skips = is_behind && !state.is_retry && catchup != self.catchup;
            if !skips || !self.unplan(pool, state) {
                return false;
            }
        }
        let next = self.every.next(catchup, state.last, now);
        self.replan(pool, state, next, now)
    }

    /// Plans another run, or lets the planned one wait for another due time, if its entry was
    /// [removed](Series::unplan).
    fn replan(
        self: &Arc<Self>,
        pool: &mut PoolState,
        state: &mut SeriesState,
        next: Next,
        now: Now,
    ) -> bool {
        if state.key.is_some() {
            self.wait_locked(pool, state, next, now)
        } else {
            self.plan_locked(pool, state, next, now)
        }
    }

    /// Removes its entry, if it has one. Returns false if the entry is being dispatched already: that is the next
    /// run, and a second entry would be a second series.
    fn unplan(&self, pool: &mut PoolState, state: &mut SeriesState) -> bool {
        let Some(key) = state.key else {
            return true;
        };
        debug_assert!(self.plans_ahead());
        // What is dropped is one of many references to this series, and not the last.
        pool.pending.remove(key).is_some()
    }
}
