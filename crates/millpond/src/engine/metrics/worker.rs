//! What one worker counts, by label, and what it runs.

use super::label::LabelId;
use super::label_metrics::{LabelMetrics, LabelSums};
use crate::executor::TaskOutcome;
use crate::task::Task;
use millpond_raw::activity::Activity;
use millpond_raw::once_box::{AtomicStaticRef, OnceBox};
use millpond_raw::sync::Mutex;
use millpond_raw::sync::atomic::{AtomicU64, Ordering};
use millpond_raw::timestamp::Timestamp;
use std::panic::Location;

/// The metrics of one worker: only the worker writes, every thread may read.
#[derive(Debug)]
pub(crate) struct WorkerMetrics {
    labels: Box<[OnceBox<LabelMetrics>]>,
    /// The generation of what is counted under each index (LABELS-2).
    generations: Box<[AtomicU64]>,
    /// Excludes readers while a label is cleared, so that none sees anything twice or not at all.
    clearing: Mutex<()>,
    /// The current task, other than one that runs inline inside it: its number, label and start.
    turns: Activity,
    location: AtomicStaticRef<Location<'static>>,
}

/// The task that a worker runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunningTask {
    /// The number of the task, counted by the worker.
    pub(crate) turn: u64,
    pub(crate) since: Timestamp,
    pub(crate) id: LabelId,
    pub(crate) location: Option<&'static Location<'static>>,
}

impl WorkerMetrics {
    /// Metrics of so many labels; 0 if none are kept.
    pub(crate) fn new(labels: usize) -> Self {
        WorkerMetrics {
            labels: (0..labels).map(|_| OnceBox::new()).collect(),
            generations: (0..labels).map(|_| AtomicU64::new(0)).collect(),
            clearing: Mutex::new(()),
            turns: Activity::new(),
            location: AtomicStaticRef::new(),
        }
    }

    #[inline]
    fn label(&self, id: LabelId) -> &LabelMetrics {
        match self.labels[id.index()].get() {
            Some(label) => label,
            None => self.add_label(id),
        }
    }

    /// The metrics of this label if it still has its place here; otherwise those of the others.
    pub(super) fn label_or_others(&self, id: LabelId) -> &LabelMetrics {
        if self.generation(id) == id.generation() {
            self.label(id)
        } else {
            self.label(LabelId::OTHERS)
        }
    }

    #[inline]
    fn generation(&self, id: LabelId) -> u64 {
        // Relaxed: the worker's own.
        self.generations[id.index()].load(Ordering::Relaxed)
    }

    /// Prepares to count under this label. Returns the id to count under: that of the others, if another label has the
    /// place by now.
    #[inline]
    pub(super) fn prepare(&self, id: LabelId) -> LabelId {
        if self.generation(id) == id.generation() {
            id
        } else {
            self.prepare_slow(id)
        }
    }

    #[cold]
    fn prepare_slow(&self, id: LabelId) -> LabelId {
        if self.generation(id) > id.generation() {
            return LabelId::OTHERS;
        }
        let others = self.label(LabelId::OTHERS);
        let _no_reader = self.clearing.lock();
        if let Some(label) = self.labels[id.index()].get() {
            label.move_to(others);
        }
        self.generations[id.index()].store(id.generation(), Ordering::Relaxed);
        id
    }

    /// Records a task that ran inside another one, which has yet to be counted where it began (LABELS-2).
    pub(crate) fn record_nested(&self, id: LabelId, outcome: TaskOutcome, waited: u64, ran: u64) {
        let outer = LabelId::from_bits(self.turns.kind());
        let id = if outer.index() == id.index() {
            id
        } else {
            self.prepare(id)
        };
        self.label_or_others(id).record(outcome, waited, ran);
    }

    /// Records a task that is over.
    #[inline]
    pub(super) fn record(&self, id: LabelId, outcome: TaskOutcome, waited: u64, ran: u64) {
        self.label(id).record(outcome, waited, ran);
    }

    /// The task that was recorded under this label has ended after its time.
    #[cold]
    pub(crate) fn record_finished_late(&self, id: LabelId) {
        self.label(id).record_finished_late();
    }

    #[cold]
    fn add_label(&self, id: LabelId) -> &LabelMetrics {
        self.labels[id.index()].get_or_init(LabelMetrics::new)
    }

    /// Adds everything to sums by label.
    pub(crate) fn add_to(&self, sums: &mut LabelSums) {
        let _nothing_is_cleared = self.clearing.lock();
        for (index, label) in self.labels.iter().enumerate() {
            if let Some(label) = label.get() {
                let generation = self.generations[index].load(Ordering::Relaxed);
                sums.add(LabelId::new(index, generation), |sum| label.add_to(sum));
            }
        }
    }

    /// A task begins; nothing of it is visible yet.
    #[inline]
    pub(crate) fn begin_turn(&self) {
        self.turns.begin();
    }

    /// The number of the task that the worker runs, or has run last. For the worker itself.
    pub(crate) fn turn(&self) -> u64 {
        self.turns.number()
    }

    /// How many tasks the worker has begun, tombstones included. A reader that sees a task here sees that it has left
    /// the queue.
    pub(crate) fn turns_begun(&self) -> u64 {
        self.turns.begun()
    }

    #[inline]
    pub(super) fn publish_label(&self, id: LabelId, task: &Task) {
        self.turns.set_kind(id.bits());
        self.location.set(task.location());
    }

    #[inline]
    pub(super) fn publish_start(&self, since: Timestamp) {
        // The last: a reader that sees the start sees which task it is of.
        self.turns.set_since(since.count());
    }

    /// METRICS-2
    #[inline]
    pub(super) fn end_turn(&self) {
        self.turns.end();
    }

    /// The task that the worker runs; `None` if it is idle, or between two tasks.
    pub(crate) fn running(&self) -> Option<RunningTask> {
        let seen = self.turns.read(|| self.location.get())?;
        Some(RunningTask {
            turn: seen.number,
            since: Timestamp::from_count(seen.since),
            id: LabelId::from_bits(seen.kind),
            location: seen.extra,
        })
    }
}
