//! Facts made by hand.

use crate::engine::health::Health;
use crate::engine::metrics::{Label, Metrics, TaskMetrics, Usage};
use crate::engine::view::{CurrentTask, WorkerState, WorkerView};
use crate::manage::{Growth, OverloadOrder, RunState};
use crate::pool::PoolSnapshot;
use crate::pool::explain::{Facts, explain};
use std::time::Duration;

pub(super) fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// A pool that has just been built.
pub(super) fn new() -> Facts {
    Facts {
        snapshot: PoolSnapshot {
            name: "mill".to_owned(),
            state: RunState::Running,
            core: 2,
            max: 4,
            keep_alive: Duration::from_secs(60),
            core_may_time_out: false,
            growth: Growth::QueueFirst,
            capacity: Some(100),
            max_queue_wait: None,
            shedding: None,
            overload_order: OverloadOrder::Unchanged,
            workers: 0,
            active: 0,
            largest: 0,
            extra_threads: 0,
            queued: 0,
            is_overloaded: false,
            drains_in: None,
            running_inline: 0,
            completed: 0,
            panicked: 0,
            cancelled_while_running: 0,
            self_joined: 0,
            cancelled: 0,
            ran_elsewhere: 0,
            expired: 0,
            too_late: 0,
            finished_late: 0,
            shed: 0,
            dropped_detached: 0,
            rejected: 0,
            waited_for_room: 0,
            discarded: 0,
            caller_ran: 0,
            handed_back: 0,
            submitted: 0,
            left_to_policy: 0,
            extra_ran: 0,
            panicked_outside: 0,
            threads_started: 0,
            thread_failures: 0,
        },
        names: Vec::new(),
        workers: Vec::new(),
        health: Health::default(),
        cpus: 2,
        waits: Vec::new(),
        cycles: Vec::new(),
    }
}

/// With so many workers, of which so many are busy, and so many tasks in the queue.
pub(super) fn busy(workers: usize, active: usize, queued: usize) -> Facts {
    let mut facts = new();
    facts.snapshot.workers = workers;
    facts.snapshot.active = active;
    facts.snapshot.queued = queued;
    facts
}

impl Facts {
    pub(super) fn but(mut self, change: impl FnOnce(&mut PoolSnapshot)) -> Self {
        change(&mut self.snapshot);
        self
    }

    pub(super) fn of_health(mut self, change: impl FnOnce(&mut Health)) -> Self {
        change(&mut self.health);
        self
    }

    pub(super) fn on(mut self, cpus: usize) -> Self {
        self.cpus = cpus;
        self
    }

    /// Tasks of a name that have run: how long each of them waited and ran.
    pub(super) fn ran(mut self, name: &str, tasks: &[(u64, u64)]) -> Self {
        let mut metrics = Metrics::default();
        for (waited, ran) in tasks {
            metrics.completed += 1;
            metrics.wait.add(ms(*waited));
            metrics.run.add(ms(*ran));
        }
        let label = Label::Name(name.into());
        self.names.push(TaskMetrics {
            label,
            labels: 1,
            metrics,
        });
        self
    }

    /// What the last name does with its time.
    pub(super) fn that(mut self, computing: f64, waiting_for_cpu: f64) -> Self {
        let last = self.names.last_mut().expect("it has a name");
        last.metrics.usage = Usage::of_shares(computing, waiting_for_cpu);
        self
    }

    /// One more worker runs a task of this name.
    pub(super) fn runs(mut self, name: &str, running_for: Duration) -> Self {
        let number = self.workers.len() as u64 + 1;
        self.workers.push(WorkerView {
            number,
            thread: Some(format!("mill-{number}")),
            tid: None,
            age: Duration::ZERO,
            state: WorkerState::Running,
            task: Some(CurrentTask {
                label: Label::Name(name.into()),
                location: None,
                running_for,
            }),
            cpu: None,
            waited_for_cpu: None,
        });
        self
    }

    /// This and nothing else is said.
    #[track_caller]
    pub(super) fn says(self, expected: &[&str]) {
        let said = explain(&self);
        assert_eq!(said.sentences(), expected);
        let text = said.to_string();
        assert!(!text.contains("  "), "{text}");
        for sentence in said.sentences() {
            assert!(
                sentence.ends_with('.') && sentence.trim() == sentence,
                "{sentence}"
            );
        }
    }
}
