//! What a pool shows of itself at one moment.

use super::engine::Engine;
use super::stats::Counts;
use crate::manage::{OverloadOrder, PoolSnapshot, RunState};

impl Engine {
    pub(super) fn snapshot(&self) -> PoolSnapshot {
        let word = self.ctl().read();
        let (queued, capacity) = (self.line.len(), self.line.capacity());
        let overload = self.shedder.settings();
        let (active, largest, extra_threads, counts) =
            self.with_crew(|crew| (crew.active(), crew.largest(), crew.extras(), crew.counts()));
        // The shell of a task that a worker runs in place, or has run, waits for nothing.
        let left = (counts.shells + self.rare.shells.get()).min(counts.joins);
        let shells = counts.joins - left;
        PoolSnapshot {
            state: word.state(),
            capacity,
            max_queue_wait: overload.max_queue_wait,
            shedding: overload.shedding,
            overload_order: overload.order,
            workers: word.workers(),
            active,
            extra_threads,
            queued: queued.saturating_sub(shells as usize),
            is_overloaded: self.shedder.is_overloaded(),
            drains_in: self.drains_in(queued, word.workers()),
            in_place: counts.joins.saturating_sub(counts.joined) as usize,
            ..self.without_life(largest, counts)
        }
    }

    /// Its figures, without a lock that is not free.
    pub(super) fn snapshot_of_a_fork(&self) -> PoolSnapshot {
        let counted = self.try_with_crew(|crew| (crew.largest(), crew.counts()));
        let (largest, counts) = counted.unwrap_or((0, Counts::default()));
        self.without_life(largest, counts)
    }

    /// Its sizes and what it has counted, as if nothing of it were left.
    fn without_life(&self, largest: usize, counts: Counts) -> PoolSnapshot {
        // N1: one look, so that core, maximum and growth are of one setting.
        let (limits, knobs, rare) = (self.knobs().limits(), self.knobs(), &self.rare);
        let refused = self.refusals.sum();
        PoolSnapshot {
            name: self.name.clone().into_owned(),
            state: RunState::Terminated,
            core: limits.core(),
            max: limits.max(),
            keep_alive: knobs.keep_alive(),
            core_may_time_out: knobs.core_may_time_out(),
            growth: limits.growth(),
            capacity: Some(0),
            max_queue_wait: None,
            shedding: None,
            overload_order: OverloadOrder::default(),
            workers: 0,
            active: 0,
            largest,
            extra_threads: 0,
            queued: 0,
            is_overloaded: false,
            drains_in: None,
            in_place: 0,
            completed: counts.completed,
            panicked: counts.panicked,
            self_joined: counts.joined,
            cancelled: counts.cancelled + rare.cancelled.get(),
            expired: counts.expired + rare.expired.get(),
            dropped_detached: rare.dropped_detached.get(),
            cancelled_while_running: counts.unwanted,
            shed: counts.shed,
            ran_elsewhere: counts.elsewhere + rare.elsewhere.get(),
            rejected: refused.all(),
            blocked: rare.blocked.get(),
            discarded: rare.discarded.get(),
            caller_ran: refused.caller_ran,
            handed_back: rare.handed_back.get(),
            threads_started: rare.threads_started.get(),
            thread_failures: rare.thread_failures.get(),
        }
    }
}
