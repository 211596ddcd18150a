//! What a stop hands back of a series: one last run.
//!
//! A series may have runs that wait for a worker, and one that is planned. A stop takes all of them back, and the
//! caller gets one of them: the first that waits or, if none does, the planned one. Running it is the last run of the
//! series; dropping it cancels the series.
//!
//! - **SERIES-5** After a stop a series ends when its last run has settled, the one that was handed back included.
//!   Nothing is planned any more. So a run that goes on meanwhile does not take the last run from the caller, and
//!   runs that are taken back beside it go without a trace.

use super::{Series, SeriesState};
use crate::manage::RunState;
use crate::schedule::state::PoolState;
use crate::task::Task;
use std::sync::Arc;

impl Series {
    /// The pool has been stopped, and the series had an entry: adds its last run to the tasks that are handed back,
    /// unless one of them is a run of it. Removes all other runs of it.
    pub(in crate::schedule) fn hand_back(self: &Arc<Self>, back: &mut Vec<Task>) {
        let waiting;
        let planned = {
            let mut pool = self.engine.state();
            let mut state = self.state.lock();
            let is_planned = state.key.take().is_some();
            if state.has_ended {
                return;
            }
            let handles = state.out.iter().filter_map(|(_, run)| run.as_ref());
            let out: Vec<usize> = handles.map(|run| run.address()).collect();
            let tasks = std::mem::take(back).into_iter();
            (waiting, *back) = tasks.partition::<Vec<_>, _>(|task| out.contains(&task.address()));
            if waiting.is_empty() {
                let planned = state.planned;
                self.begin(&mut pool, &mut state, planned)
            } else {
                pool.cancelled += u64::from(is_planned);
                None
            }
        };
        if let Some(mut run) = planned {
            run.is_last = true;
            back.push(self.task_of(run));
        }
        // Those that are left are dropped here, without a lock.
        let mut waiting = waiting.into_iter();
        back.extend(waiting.next());
    }

    /// Whether the series goes on after a stop, because another run is going to be its last one (SERIES-5). `is_lost`
    /// if the run that has settled was dropped.
    pub(super) fn awaits_last_run(
        &self,
        pool: &PoolState,
        state: &SeriesState,
        is_lost: bool,
    ) -> bool {
        let mut others = state.out.iter().map(|(_, run)| run.as_ref());
        // A run that goes on is not the one that was handed back.
        let has_other = others.any(|run| !is_lost || run.is_none_or(|run| !run.has_begun()));
        pool.run_state == RunState::Stopped && (has_other || state.key.is_some())
    }
}
