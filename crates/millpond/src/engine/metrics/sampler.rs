//! Tells computing from blocking, by samples of the CPU clock.
//!
//! Reading the CPU clock of a thread is a system call: a hundred nanoseconds and more, too much for every task. So a
//! worker takes *samples*: stretches of work with a reading at both ends. A stretch begins with a task, [`PAUSE`] after
//! the last one began or later; it ends when the worker is about to park, when it has lasted for [`STRETCH`], or when it
//! has tasks of too many labels. The CPU time is divided among the labels by how long their tasks ran. How long the
//! thread waited for a CPU is in a file of the kernel's, which is read less often still.
//!
//! A sampler says when it is *due*: when the next stretch may begin, or the open one is long enough. Until then it is
//! called only when the label changes.
//!
//! So a task that takes [`PAUSE`] or longer is in a sample if the one before it was as long, and a worker that runs
//! nothing but tiny tasks spends about a four-hundredth of its time on sampling: on a virtual machine a reading of the
//! CPU clock takes 0.6 µs, and one of the file 14.

use super::label::LabelId;
use super::worker::WorkerMetrics;
use crate::time::TimestampClock;
use millpond_raw::cpu_time::{self, Schedstat};
use millpond_raw::timestamp::Timestamp;
use std::cell::RefCell;
use std::time::Duration;

const PAUSE: Duration = Duration::from_micros(200);
const STRETCH: Duration = Duration::from_millis(1);
/// The time between two readings of the kernel's file.
const DELAY_PAUSE: Duration = Duration::from_millis(30);
const LABELS: usize = 4;

/// Takes the samples of one worker.
pub(super) struct Sampler {
    state: RefCell<State>,
    pause: u64,
    stretch: u64,
    delay_pause: u64,
    tid: Option<u32>,
}

struct State {
    /// When the next stretch may begin, and the next reading of delays.
    next: u64,
    next_delay: u64,
    open: Option<Sample>,
}

struct Sample {
    /// When it is long enough.
    until: u64,
    cpu: Duration,
    delay: Option<Duration>,
    /// Nanoseconds that tasks ran, by label.
    ran: [(LabelId, u64); LABELS],
    labels: usize,
}

impl Sampler {
    /// `None` by a manual clock, by which nothing takes any time.
    pub(super) fn new(timestamps: &TimestampClock) -> Option<Self> {
        if timestamps.stands_still() || cfg!(any(millpond_loom, millpond_shuttle)) {
            return None;
        }
        Some(Sampler {
            state: RefCell::new(State {
                next: 0,
                next_delay: 0,
                open: None,
            }),
            pause: timestamps.ticks(PAUSE),
            stretch: timestamps.ticks(STRETCH),
            delay_pause: timestamps.ticks(DELAY_PAUSE),
            tid: cpu_time::tid(),
        })
    }

    /// When it is due.
    fn due(state: &State) -> u64 {
        match &state.open {
            None => state.next,
            Some(sample) => sample.until,
        }
    }

    /// The sampler is due, and a task starts. Returns when it is due again; `None` if the open stretch goes on until the
    /// task has ended.
    pub(super) fn begin(&self, now: Timestamp) -> Option<u64> {
        let mut state = self.state.borrow_mut();
        if state.open.is_some() || now.count() < state.next {
            return None;
        }
        self.open(&mut state, now);
        Some(Sampler::due(&state))
    }

    fn open(&self, state: &mut State, now: Timestamp) {
        let delay = (now.count() >= state.next_delay).then(|| self.delay());
        state.next = now.count() + self.pause;
        if delay.is_some() {
            state.next_delay = now.count() + self.delay_pause;
        }
        state.open = Some(Sample {
            until: now.count() + self.stretch,
            delay: delay.flatten(),
            cpu: cpu_time::thread_cpu_now(),
            ran: [(LabelId::OTHERS, 0); LABELS],
            labels: 0,
        });
    }

    fn delay(&self) -> Option<Duration> {
        let had: Schedstat = cpu_time::schedstat_of(self.tid?)?;
        Some(had.waiting_for_cpu)
    }

    /// Adds the time that tasks of a label have run. Returns when the sampler is due.
    pub(super) fn add_run(&self, metrics: &WorkerMetrics, id: LabelId, ran: u64) -> u64 {
        let mut state = self.state.borrow_mut();
        if let Some(sample) = state.open.as_mut().filter(|_| ran > 0) {
            sample.add(id, ran);
            if sample.labels == LABELS {
                self.close(&mut state, metrics);
            }
        }
        Sampler::due(&state)
    }

    /// The sampler is due, and a task has ended. Returns when it is due again.
    pub(super) fn end(&self, metrics: &WorkerMetrics, now: Timestamp) -> u64 {
        let mut state = self.state.borrow_mut();
        let is_over = |sample: &Sample| now.count() >= sample.until;
        if state.open.as_ref().is_some_and(is_over) {
            self.close(&mut state, metrics);
        }
        Sampler::due(&state)
    }

    /// The worker is about to park. Returns when the sampler is due.
    pub(super) fn flush(&self, metrics: &WorkerMetrics) -> u64 {
        let mut state = self.state.borrow_mut();
        if state.open.is_some() {
            self.close(&mut state, metrics);
        }
        Sampler::due(&state)
    }

    fn close(&self, state: &mut State, metrics: &WorkerMetrics) {
        let Some(sample) = state.open.take() else {
            return;
        };
        let cpu = cpu_time::thread_cpu_now().saturating_sub(sample.cpu);
        let delay = sample
            .delay
            .and_then(|before| Some(self.delay()?.saturating_sub(before)));
        let all = &sample.ran[..sample.labels];
        let whole: u64 = all.iter().map(|(_, ran)| ran).sum();
        for (id, ran) in all {
            let label = metrics.label_or_others(*id);
            label.record_cpu(*ran, part(cpu, *ran, whole));
            if let Some(delay) = delay {
                label.record_delay(*ran, part(delay, *ran, whole));
            }
        }
    }
}

impl Sample {
    fn add(&mut self, id: LabelId, ran: u64) {
        let known = self.ran[..self.labels]
            .iter_mut()
            .find(|(known, _)| *known == id);
        match known {
            Some((_, sum)) => *sum += ran,
            // There is room: a full sample is closed at once.
            None => {
                self.ran[self.labels] = (id, ran);
                self.labels += 1;
            }
        }
    }
}

/// The part of a measured time that belongs to tasks that ran for `ran` nanoseconds of `whole`.
fn part(of: Duration, ran: u64, whole: u64) -> u64 {
    let nanos = of.as_nanos() * u128::from(ran) / u128::from(whole.max(1));
    // Without what the worker itself used.
    u64::try_from(nanos).unwrap_or(u64::MAX).min(ran)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_measured_is_shared_out_by_how_long_tasks_ran() {
        let half = Duration::from_nanos(500);
        assert_eq!((part(half, 750, 1000), part(half, 250, 1000)), (375, 125));
        // Never more than they ran, and nothing of nothing.
        assert_eq!(part(Duration::from_nanos(1200), 1000, 1000), 1000);
        assert_eq!(part(half, 0, 0), 0);
        assert_eq!(part(Duration::MAX, 7, 7), 7);
    }
}
