//! Telling computing from blocking, by looking at the CPU clock now and then.
//!
//! A look at the CPU clock of a thread is a system call: a hundred nanoseconds and more, too much for
//! every task. So a worker takes *samples*: stretches of work with a look at both ends. A stretch begins
//! with a task, [`PAUSE`] after the last one began or later; it ends when the worker is about to rest, when
//! it has lasted for [`STRETCH`], or when tasks of too many labels are in it. What the CPU clock says is
//! shared out among the labels by how long their tasks ran. How long the thread waited for a CPU is in a
//! file of the system's, and is asked less often still.
//!
//! A sampler says when it is *due*: when the next stretch may begin, or the present one is long enough.
//! Before that nobody has to ask it anything, but for a change of the label.
//!
//! So a task that takes [`PAUSE`] or longer is in a sample if the one before it was as long, and a worker
//! that does nothing but tiny tasks spends about a four-hundredth of its time on looking: on a virtual machine
//! a look at the CPU clock takes 0.6 µs, and one at the file 14.

use super::Ledger;
use super::names::Id;
use crate::time::Ticker;
use millpond_raw::tick::Tick;
use millpond_raw::usage::{self, Schedstat};
use std::cell::RefCell;
use std::time::Duration;

const PAUSE: Duration = Duration::from_micros(200);
const STRETCH: Duration = Duration::from_millis(1);
/// How long after the last look at the system's file the next one comes.
const DELAY_PAUSE: Duration = Duration::from_millis(30);
const LABELS: usize = 4;

/// The samples of one worker.
pub(super) struct Sampler {
    state: RefCell<State>,
    pause: u64,
    stretch: u64,
    delay_pause: u64,
    tid: Option<u32>,
}

struct State {
    /// When the next one may begin, and the next look for delays.
    next: u64,
    next_delay: u64,
    open: Option<Sample>,
}

struct Sample {
    /// When it is long enough.
    until: u64,
    cpu: Duration,
    delay: Option<Duration>,
    /// How long tasks ran, by label.
    ran: [(Id, u64); LABELS],
    labels: usize,
}

impl Sampler {
    /// `None` where it makes no sense: by a manual clock nothing takes any time.
    pub(super) fn new(ticker: &Ticker) -> Option<Self> {
        if ticker.stands_still() || cfg!(any(millpond_loom, millpond_shuttle)) {
            return None;
        }
        Some(Sampler {
            state: RefCell::new(State {
                next: 0,
                next_delay: 0,
                open: None,
            }),
            pause: ticker.ticks(PAUSE),
            stretch: ticker.ticks(STRETCH),
            delay_pause: ticker.ticks(DELAY_PAUSE),
            tid: usage::tid(),
        })
    }

    /// When it is due.
    fn due(state: &State) -> u64 {
        match &state.open {
            None => state.next,
            Some(sample) => sample.until,
        }
    }

    /// It is due, and a task starts. Returns when it is due again; `None` if it goes on with the stretch
    /// that there is, until the task has ended.
    pub(super) fn begins(&self, now: Tick) -> Option<u64> {
        let mut state = self.state.borrow_mut();
        if state.open.is_some() || now.count() < state.next {
            return None;
        }
        self.open(&mut state, now);
        Some(Sampler::due(&state))
    }

    fn open(&self, state: &mut State, now: Tick) {
        let delay = (now.count() >= state.next_delay).then(|| self.delay());
        state.next = now.count() + self.pause;
        if delay.is_some() {
            state.next_delay = now.count() + self.delay_pause;
        }
        state.open = Some(Sample {
            until: now.count() + self.stretch,
            delay: delay.flatten(),
            cpu: usage::thread_cpu_now(),
            ran: [(Id::OTHERS, 0); LABELS],
            labels: 0,
        });
    }

    fn delay(&self) -> Option<Duration> {
        let had: Schedstat = usage::schedstat_of(self.tid?)?;
        Some(had.waiting_for_cpu)
    }

    /// Tasks of this label have run for so long. Returns when it is due.
    pub(super) fn hears(&self, ledger: &Ledger, id: Id, ran: u64) -> u64 {
        let mut state = self.state.borrow_mut();
        if let Some(sample) = state.open.as_mut().filter(|_| ran > 0) {
            sample.add(id, ran);
            if sample.labels == LABELS {
                self.close(&mut state, ledger);
            }
        }
        Sampler::due(&state)
    }

    /// It is due, and a task has ended. Returns when it is due again.
    pub(super) fn ends(&self, ledger: &Ledger, now: Tick) -> u64 {
        let mut state = self.state.borrow_mut();
        let is_over = |sample: &Sample| now.count() >= sample.until;
        if state.open.as_ref().is_some_and(is_over) {
            self.close(&mut state, ledger);
        }
        Sampler::due(&state)
    }

    /// The worker is about to rest. Returns when it is due.
    pub(super) fn rests(&self, ledger: &Ledger) -> u64 {
        let mut state = self.state.borrow_mut();
        if state.open.is_some() {
            self.close(&mut state, ledger);
        }
        Sampler::due(&state)
    }

    fn close(&self, state: &mut State, ledger: &Ledger) {
        let Some(sample) = state.open.take() else {
            return;
        };
        let cpu = usage::thread_cpu_now().saturating_sub(sample.cpu);
        let delay = sample
            .delay
            .and_then(|before| Some(self.delay()?.saturating_sub(before)));
        let all = &sample.ran[..sample.labels];
        let whole: u64 = all.iter().map(|(_, ran)| ran).sum();
        for (id, ran) in all {
            let sheet = ledger.sheet_now(*id);
            sheet.note_cpu(*ran, part(cpu, *ran, whole));
            if let Some(delay) = delay {
                sheet.note_delay(*ran, part(delay, *ran, whole));
            }
        }
    }
}

impl Sample {
    fn add(&mut self, id: Id, ran: u64) {
        let known = self.ran[..self.labels]
            .iter_mut()
            .find(|(known, _)| *known == id);
        match known {
            Some((_, sum)) => *sum += ran,
            // There is room: it is closed when it is full.
            None => {
                self.ran[self.labels] = (id, ran);
                self.labels += 1;
            }
        }
    }
}

/// What of a measured time falls to tasks that ran for `ran` nanoseconds of `whole`.
fn part(of: Duration, ran: u64, whole: u64) -> u64 {
    let nanos = of.as_nanos() * u128::from(ran) / u128::from(whole.max(1));
    // What the worker itself used is no task's.
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
