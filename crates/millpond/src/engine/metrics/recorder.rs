//! How a worker records its tasks.

use super::label::LabelId;
use super::label_cache::LabelCache;
use super::label_table::LabelTable;
use super::sampler::Sampler;
use super::worker::WorkerMetrics;
use crate::executor::TaskOutcome;
use crate::task::Task;
use crate::time::TimestampClock;
use millpond_raw::timestamp::Timestamp;
use std::cell::Cell;
use std::time::Duration;

/// The time between two checks of its label cache by a worker without a sampler.
const BETWEEN_CHECKS: Duration = Duration::from_millis(100);

/// The private state of a live recorder.
struct RecorderState {
    cache: LabelCache,
    sampler: Option<Sampler>,
    /// The tick at which the sampler is due; without one, at which the label cache is checked.
    due: Cell<u64>,
    /// The end of the last task, if the next one starts with it; else 0.
    last: Cell<u64>,
    /// The address of the location where the last task was made, if it was counted under that; else 0.
    place: Cell<usize>,
    /// The label of the last task.
    id: Cell<LabelId>,
    /// Nanoseconds that tasks of that label have run since the sampler was told.
    ran: Cell<u64>,
}

/// What a recorder writes to, and the clock that it goes by.
#[derive(Clone, Copy)]
struct Target<'a> {
    metrics: &'a WorkerMetrics,
    labels: &'a LabelTable,
    timestamps: &'a TimestampClock,
}

/// The start of a task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskStart {
    id: LabelId,
    pub(crate) tick: Timestamp,
    /// The time that it has waited, in nanoseconds.
    pub(crate) waited: u64,
}

impl TaskStart {
    /// What the task is counted under.
    pub(crate) fn label(&self) -> LabelId {
        self.id
    }
}

/// Records the tasks of a worker, or does nothing. Which of the two is settled when the worker starts, so no task has to
/// ask.
pub(crate) trait Recorder {
    /// A task starts.
    fn start_task(&self, task: &Task) -> Option<TaskStart>;

    /// The task is over. Returns the nanoseconds that it ran.
    fn end_task(&self, start: Option<TaskStart>, outcome: TaskOutcome) -> u64;

    /// The worker did not find a task at once: the next one starts later than the last one ended.
    fn note_gap(&self);

    /// The worker is about to park.
    fn flush(&self);
}

/// Records tasks.
pub(crate) struct LiveRecorder<'a> {
    state: RecorderState,
    target: Target<'a>,
}

impl<'a> LiveRecorder<'a> {
    /// For a worker that begins.
    pub(crate) fn new(
        metrics: &'a WorkerMetrics,
        labels: &'a LabelTable,
        timestamps: &'a TimestampClock,
    ) -> Self {
        LiveRecorder {
            state: RecorderState::new(timestamps),
            target: Target {
                metrics,
                labels,
                timestamps,
            },
        }
    }
}

impl Recorder for LiveRecorder<'_> {
    #[inline(always)]
    fn start_task(&self, task: &Task) -> Option<TaskStart> {
        Some(self.state.start_task(self.target, task))
    }

    #[inline(always)]
    fn end_task(&self, start: Option<TaskStart>, outcome: TaskOutcome) -> u64 {
        match start {
            Some(start) => self.state.end_task(self.target, start, outcome),
            None => 0,
        }
    }

    #[inline]
    fn note_gap(&self) {
        self.state.note_gap();
    }

    fn flush(&self) {
        self.state.flush(self.target);
    }
}

/// Records nothing.
pub(crate) struct NoRecorder;

impl Recorder for NoRecorder {
    #[inline]
    fn start_task(&self, _: &Task) -> Option<TaskStart> {
        None
    }

    #[inline]
    fn end_task(&self, _: Option<TaskStart>, _: TaskOutcome) -> u64 {
        0
    }

    fn note_gap(&self) {}

    fn flush(&self) {}
}

impl RecorderState {
    fn new(timestamps: &TimestampClock) -> Self {
        let sampler = Sampler::new(timestamps);
        RecorderState {
            cache: LabelCache::new(),
            due: Cell::new(0),
            sampler,
            last: Cell::new(0),
            place: Cell::new(0),
            id: Cell::new(LabelId::OTHERS),
            ran: Cell::new(0),
        }
    }

    #[inline(always)]
    fn start_task(&self, target: Target<'_>, task: &Task) -> TaskStart {
        let tick = match self.last.get() {
            0 => target.timestamps.now(),
            last => Timestamp::from_count(last),
        };
        let place = std::ptr::from_ref(task.location()).addr();
        if place != self.place.get() || task.name().is_some() {
            self.switch_label(target, task, place);
        }
        target.metrics.publish_start(tick);
        if tick.count() >= self.due.get() {
            self.sample_from(target, tick);
        }
        let waited = task
            .queued_since()
            .map_or(0, |stamp| target.timestamps.nanos_from(stamp, tick));
        TaskStart {
            id: self.id.get(),
            tick,
            waited,
        }
    }

    #[inline(always)]
    fn end_task(&self, target: Target<'_>, start: TaskStart, outcome: TaskOutcome) -> u64 {
        let end = target.timestamps.now();
        let ran = target.timestamps.nanos(start.tick, end);
        target.metrics.record(start.id, outcome, start.waited, ran);
        self.ran.set(self.ran.get().wrapping_add(ran));
        if end.count() >= self.due.get() {
            self.sample_until(target, end);
        }
        self.last.set(end.count());
        target.metrics.end_turn();
        ran
    }

    /// The label differs from that of the task before, or is a name.
    #[inline(never)]
    fn switch_label(&self, target: Target<'_>, task: &Task, place: usize) {
        let id = self.cache.id_of(target.labels, task);
        if let Some(sampler) = self.sampler.as_ref().filter(|_| id != self.id.get()) {
            let due = sampler.add_run(target.metrics, self.id.get(), self.ran.take());
            self.due.set(due);
        }
        let id = target.metrics.prepare(id);
        self.id.set(id);
        self.place
            .set(if task.name().is_none() { place } else { 0 });
        target.metrics.publish_label(id, task);
    }

    #[cold]
    fn sample_from(&self, target: Target<'_>, start: Timestamp) {
        let Some(sampler) = &self.sampler else {
            self.check_cache(target);
            let pause = target.timestamps.ticks(BETWEEN_CHECKS);
            return self.due.set(start.count().saturating_add(pause));
        };
        if let Some(due) = sampler.begin(start) {
            self.ran.set(0);
            self.due.set(due);
        }
    }

    /// Makes the next task look up its label if a round has begun ([`label_table`](super::label_table)). Called now and
    /// then: a task of the same label as the one before looks up nothing.
    fn check_cache(&self, target: Target<'_>) {
        if self.cache.is_outdated(target.labels) {
            self.place.set(0);
        }
    }

    #[cold]
    fn sample_until(&self, target: Target<'_>, end: Timestamp) {
        if let Some(sampler) = &self.sampler {
            sampler.add_run(target.metrics, self.id.get(), self.ran.take());
            self.due.set(sampler.end(target.metrics, end));
            self.check_cache(target);
        }
    }

    #[inline]
    fn note_gap(&self) {
        self.last.set(0);
    }

    fn flush(&self, target: Target<'_>) {
        self.check_cache(target);
        if let Some(sampler) = &self.sampler {
            sampler.add_run(target.metrics, self.id.get(), self.ran.take());
            self.due.set(sampler.flush(target.metrics));
        }
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;
    use crate::engine::metrics::{Label, LabelSums};
    use crate::task::TaskSpec;
    use crate::time::{Clock, ManualClock};
    use std::panic::Location;

    /// What a recorder writes to, by this clock.
    struct Study {
        metrics: WorkerMetrics,
        labels: LabelTable,
        timestamps: TimestampClock,
    }

    impl Study {
        fn new(clock: &Clock) -> Self {
            let labels = LabelTable::new(8);
            Study {
                metrics: WorkerMetrics::new(labels.len()),
                labels,
                timestamps: TimestampClock::of(clock),
            }
        }

        fn target(&self) -> Target<'_> {
            Target {
                metrics: &self.metrics,
                labels: &self.labels,
                timestamps: &self.timestamps,
            }
        }

        fn shown(&self) -> Option<(u64, Label)> {
            let running = self.metrics.running()?;
            Some((running.since.count(), self.labels.label(running.id)))
        }
    }

    #[test]
    fn between_two_tasks_that_follow_at_once_none_is_shown() {
        let hand = ManualClock::new();
        let study = Study::new(&hand.clock());
        let state = RecorderState::new(&study.timestamps);
        let mut since = Vec::new();
        for name in ["grind", "sift", "sift"] {
            let task = TaskSpec::new().name(name).build_detached(|| ());
            study.metrics.begin_turn();
            let start = state.start_task(study.target(), &task);
            let (tick, label) = study.shown().unwrap();
            assert_eq!(label, Label::Name(name.into()));
            since.push(tick);
            hand.advance(Duration::from_secs(10));
            assert_eq!(
                state.end_task(study.target(), start, TaskOutcome::Completed),
                10_000_000_000
            );
            assert_eq!(study.shown(), None, "METRICS-2");
        }
        // Each starts when the one before ended.
        assert!(
            since
                .windows(2)
                .all(|two| two[1] - two[0] == 10_000_000_000)
        );
    }

    #[test]
    fn a_pause_that_outlasts_a_sample_loses_nothing_of_it() {
        let study = Study::new(&Clock::system());
        let state = RecorderState::new(&study.timestamps);
        let long = study.timestamps.ticks(Duration::from_millis(50));
        let early = study.timestamps.now();
        let late = Timestamp::from_count(early.count() + long);
        state.sample_from(study.target(), early);
        state.ran.set(7_000);
        // Another task starts when the stretch should be over: it is still the same stretch.
        state.sample_from(study.target(), late);
        state.ran.set(state.ran.get() + 3_000);
        state.sample_until(study.target(), late);
        let mut sums = LabelSums::default();
        study.metrics.add_to(&mut sums);
        assert_eq!(sums.rest().usage.sampled(), Duration::from_micros(10));
    }

    /// Three workers, ten labels and places for three, in an order that is drawn: whatever happens, nothing is
    /// lost, nothing is counted twice, and nothing is counted under a label that is not its own. Tasks of
    /// the label `n` take `n` seconds, so times tell whose they are.
    #[test]
    fn whoever_loses_its_place_sums_are_exact_and_nobody_has_the_metrics_of_another() {
        let (hand, second) = (ManualClock::new(), Duration::from_secs(1));
        let (labels, timestamps) = (LabelTable::new(3), TimestampClock::of(&hand.clock()));
        let mut workers = [(); 3].map(|()| WorkerMetrics::new(labels.len()));
        let mut states = [(); 3].map(|()| RecorderState::new(&timestamps));
        let (mut gone, mut folded) = (LabelSums::default(), 0);
        let mut drawn = 7_u64;
        let mut draw = |below: u64| {
            drawn = drawn
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (drawn >> 33) % below
        };
        let mut ran = [0_u64; 11];
        for round in 1..6_000 {
            let worker = draw(3) as usize;
            let (metrics, state) = (&workers[worker], &states[worker]);
            let target = Target {
                metrics,
                labels: &labels,
                timestamps: &timestamps,
            };
            // Labels come in fashion and go out of it.
            let number = 1 + (round / 300 + draw(4)) % 10;
            let spec = TaskSpec::new().name(number.to_string());
            state.note_gap();
            let start = state.start_task(target, &spec.build_detached(|| ()));
            hand.advance(second * number as u32);
            if draw(4) == 0 {
                // One that is joined in place, inside.
                let nested = 1 + draw(10);
                let id = labels.id_of(Some(&nested.to_string()), Location::caller());
                metrics.record_nested(id, TaskOutcome::Completed, 0, nested * 1_000_000_000);
                ran[nested as usize] += 1;
            }
            state.end_task(target, start, TaskOutcome::Completed);
            ran[number as usize] += 1;
            match draw(20) {
                0 => labels.renew(hand.clock().now(), &[], |_| 0),
                1 => state.flush(target),
                2 => {
                    // It leaves, and another comes.
                    metrics.add_to(&mut gone);
                    workers[worker] = WorkerMetrics::new(labels.len());
                    states[worker] = RecorderState::new(&timestamps);
                }
                _ => {}
            }
            let mut sums = gone.clone();
            for metrics in &workers {
                metrics.add_to(&mut sums);
            }
            let mut all = 0;
            for known in labels.all() {
                let own = sums.take(known.id);
                all += own.completed;
                if let Label::Name(name) = &known.label {
                    let number: u32 = name.parse().unwrap();
                    let expected = second * number * own.completed as u32;
                    assert_eq!(own.run.total(), expected, "of {name}, in round {round}");
                    assert!(own.completed <= ran[number as usize]);
                }
                folded = folded.max(known.labels);
            }
            all += sums.rest().completed;
            assert_eq!(all, ran.iter().sum::<u64>(), "in round {round}");
        }
        assert!(folded > 10, "places have changed hands: {folded}");
    }
}
