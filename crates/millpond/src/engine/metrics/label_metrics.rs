//! What a worker has counted under one label, and sums of that.

use super::label::LabelId;
use super::values::Metrics;
use crate::executor::TaskOutcome;
use crate::meter::{Count, Histogram};

/// The metrics of one label on one worker. Only the worker writes. What every task writes comes first (`repr(C)`).
#[derive(Debug)]
#[repr(C)]
pub(super) struct LabelMetrics {
    completed: Count,
    panicked: Count,
    cancelled: Count,
    expired: Count,
    too_late: Count,
    finished_late: Count,
    shed: Count,
    unwanted: Count,
    wait: Histogram,
    run: Histogram,
    sampled: Count,
    sampled_cpu: Count,
    sampled_for_delay: Count,
    sampled_delay: Count,
}

impl LabelMetrics {
    pub(super) fn new() -> Self {
        LabelMetrics {
            completed: Count::default(),
            panicked: Count::default(),
            cancelled: Count::default(),
            expired: Count::default(),
            too_late: Count::default(),
            finished_late: Count::default(),
            shed: Count::default(),
            unwanted: Count::default(),
            wait: Histogram::new(),
            run: Histogram::new(),
            sampled: Count::default(),
            sampled_cpu: Count::default(),
            sampled_for_delay: Count::default(),
            sampled_delay: Count::default(),
        }
    }

    /// Records a task that is over. Only tasks that ran have times.
    #[inline]
    pub(super) fn record(&self, outcome: TaskOutcome, waited: u64, ran: u64) {
        if outcome != TaskOutcome::Completed && !self.record_unusual(outcome) {
            return;
        }
        self.completed.add(1);
        self.wait.add(waited);
        self.run.add(ran);
    }

    /// Returns true if it ran.
    #[cold]
    fn record_unusual(&self, outcome: TaskOutcome) -> bool {
        match outcome {
            TaskOutcome::Completed => {}
            TaskOutcome::Panicked => self.panicked.add(1),
            TaskOutcome::Unwanted => self.unwanted.add(1),
            TaskOutcome::Cancelled => self.cancelled.add(1),
            // Counted where it ran.
            TaskOutcome::RanElsewhere | TaskOutcome::RanByOwnWorker => {}
            TaskOutcome::Expired => self.expired.add(1),
            TaskOutcome::TooLate => {
                self.too_late.add(1);
                self.expired.add(1);
            }
            TaskOutcome::Shed => self.shed.add(1),
        }
        matches!(
            outcome,
            TaskOutcome::Completed | TaskOutcome::Panicked | TaskOutcome::Unwanted
        )
    }

    /// A task that was recorded has ended after its time.
    pub(super) fn record_finished_late(&self) {
        self.finished_late.add(1);
    }

    /// Of `ran` nanoseconds that its tasks ran, so many were spent on a CPU.
    pub(super) fn record_cpu(&self, ran: u64, on_cpu: u64) {
        self.sampled.add(ran);
        self.sampled_cpu.add(on_cpu);
    }

    /// Of `ran` nanoseconds that its tasks ran, so many were spent waiting for a CPU.
    pub(super) fn record_delay(&self, ran: u64, delay: u64) {
        self.sampled_for_delay.add(ran);
        self.sampled_delay.add(delay);
    }

    /// Moves everything to another label of the same worker.
    pub(super) fn move_to(&self, other: &LabelMetrics) {
        let counts = [
            (&self.completed, &other.completed),
            (&self.panicked, &other.panicked),
            (&self.cancelled, &other.cancelled),
            (&self.expired, &other.expired),
            (&self.too_late, &other.too_late),
            (&self.finished_late, &other.finished_late),
            (&self.shed, &other.shed),
            (&self.unwanted, &other.unwanted),
            (&self.sampled, &other.sampled),
            (&self.sampled_cpu, &other.sampled_cpu),
            (&self.sampled_for_delay, &other.sampled_for_delay),
            (&self.sampled_delay, &other.sampled_delay),
        ];
        for (own, other) in counts {
            other.add(own.take());
        }
        self.wait.move_to(&other.wait);
        self.run.move_to(&other.run);
    }

    pub(super) fn add_to(&self, sums: &mut Metrics) {
        sums.completed += self.completed.get();
        sums.panicked += self.panicked.get();
        sums.cancelled_while_running += self.unwanted.get();
        sums.cancelled += self.cancelled.get();
        sums.expired += self.expired.get();
        sums.too_late += self.too_late.get();
        sums.finished_late += self.finished_late.get();
        sums.shed += self.shed.get();
        self.wait.add_to(&mut sums.wait);
        self.run.add_to(&mut sums.run);
        sums.usage.sampled += self.sampled.get();
        sums.usage.on_cpu += self.sampled_cpu.get();
        sums.usage.sampled_for_delay += self.sampled_for_delay.get();
        sums.usage.delay += self.sampled_delay.get();
    }
}

/// Sums over workers, by the index of the label.
#[derive(Clone, Debug, Default)]
pub(crate) struct LabelSums {
    /// The label that had the index, and its metrics.
    labels: Vec<(LabelId, Metrics)>,
}

impl LabelSums {
    /// Adds metrics of a label. Those of a label that has lost its place belong to the others (LABELS-3).
    pub(super) fn add(&mut self, id: LabelId, add_to: impl FnOnce(&mut Metrics)) {
        while self.labels.len() <= id.index() {
            let index = self.labels.len();
            self.labels
                .push((LabelId::first_at(index), Metrics::default()));
        }
        let (known, _) = self.labels[id.index()];
        if known < id {
            let former = std::mem::take(&mut self.labels[id.index()].1);
            self.labels[0].1.merge(&former);
            self.labels[id.index()].0 = id;
        }
        let at = if known > id { 0 } else { id.index() };
        add_to(&mut self.labels[at].1);
    }

    /// Takes out the metrics of a label that has its place now.
    pub(crate) fn take(&mut self, id: LabelId) -> Metrics {
        let own = self.labels.get_mut(id.index());
        let own = own.filter(|(known, _)| *known == id);
        own.map_or(Metrics::default(), |(_, metrics)| std::mem::take(metrics))
    }

    /// The sum of what is left.
    pub(crate) fn rest(self) -> Metrics {
        let mut rest = Metrics::default();
        for (_, metrics) in &self.labels {
            rest.merge(metrics);
        }
        rest
    }
}
