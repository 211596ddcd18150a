//! The fate of each task, by its own account and by that of its pool. The two must agree.
//!
//! | a task says | its pool says | it counts as |
//! |---|---|---|
//! | nothing | rejected | rejected |
//! | it has run | answered | in time, or late |
//! | nothing | shed, expired | that |
//! | nothing | answered, or nothing | lost |
//!
//! Anything else is a lie, and the round fails: so it does if a task runs twice, and if one is lost.

use crate::peers::overload::End;
use crate::plan::Plan;
use crate::rush::Fates;
use crate::stats::Quantiles;
use anyhow::{Result, ensure};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// It has not run.
const SILENT: u64 = u64::MAX;

/// The tasks' own account, by number: how long they took to be answered, in nanoseconds, from the
/// planned arrival.
#[derive(Debug)]
pub struct Ledger {
    answers: Vec<AtomicU64>,
    /// How often a task ran that had run before.
    again: AtomicU64,
}

/// The sums of a ledger.
#[derive(Clone, Debug, PartialEq)]
pub struct Settled {
    /// The fates of all.
    pub fates: Fates,
    /// How long answers took, late ones included.
    pub quantiles: Option<Quantiles>,
    /// From the start until the last task had come and the last answer in time was there.
    pub elapsed: Duration,
}

impl Ledger {
    /// For so many tasks.
    pub fn new(tasks: usize) -> Self {
        Ledger {
            answers: (0..tasks).map(|_| AtomicU64::new(SILENT)).collect(),
            again: AtomicU64::new(0),
        }
    }

    /// A task has run, so long after it was to come. Relaxed: the ledger is read when its pool has
    /// said what became of the task, and that is where the order comes from.
    pub fn answered(&self, number: usize, after: Duration) {
        let nanos =
            u64::try_from(after.as_nanos()).map_or(SILENT - 1, |nanos| nanos.min(SILENT - 1));
        if self.answers[number].swap(nanos, Ordering::Relaxed) != SILENT {
            self.again.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Compares both accounts. `refused` are the numbers of those that were rejected; an answer is
    /// in time if it takes no longer than `timeout`.
    ///
    /// # Errors
    ///
    /// If they contradict each other, a task ran twice, or one was lost.
    pub fn settle(
        &self,
        plan: &Plan,
        refused: &[usize],
        ends: &[(usize, End)],
        timeout: Duration,
    ) -> Result<Settled> {
        let again = self.again.load(Ordering::Relaxed);
        ensure!(again == 0, "{again} tasks ran that had run before");
        let mut said = vec![None; self.answers.len()];
        let refused = refused.iter().map(|&number| (number, Said::Refused));
        let ends = ends.iter().map(|&(number, end)| (number, Said::Ended(end)));
        for (number, word) in refused.chain(ends) {
            let before = said[number].replace(word);
            ensure!(before.is_none(), "task {number} ended twice");
        }
        let mut fates = Fates::default();
        let (mut times, mut elapsed) = (Vec::new(), plan.end());
        for (number, (said, &came)) in said.into_iter().zip(plan.arrivals()).enumerate() {
            let nanos = self.answers[number].load(Ordering::Relaxed);
            let took = (nanos != SILENT).then(|| Duration::from_nanos(nanos));
            fates.offered += 1;
            match (said, took) {
                (Some(Said::Ended(End::Answered)), Some(took)) => {
                    times.push(nanos);
                    if took <= timeout {
                        fates.in_time += 1;
                        elapsed = elapsed.max(came + took);
                    } else {
                        fates.late += 1;
                    }
                }
                (Some(Said::Refused), None) => fates.refused += 1,
                (Some(Said::Ended(End::Shed)), None) => fates.shed += 1,
                (Some(Said::Ended(End::Expired)), None) => fates.expired += 1,
                (Some(Said::Ended(End::Answered)) | None, None) => fates.lost += 1,
                (Some(said), Some(_)) => {
                    anyhow::bail!("task {number} has run, and its pool says {said:?}")
                }
                (None, Some(_)) => anyhow::bail!("task {number} has run, and its pool lost it"),
            }
        }
        let Fates { offered, lost, .. } = fates;
        ensure!(lost == 0, "{lost} of {offered} tasks were lost");
        Ok(Settled {
            fates,
            quantiles: Quantiles::of(&times),
            elapsed,
        })
    }
}

/// The pool's account of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    Refused,
    Ended(End),
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_millis(50);

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// The tasks with these numbers say that they took so long.
    fn told(tasks: u64, answers: &[(usize, u64)]) -> (Ledger, Plan) {
        let ledger = Ledger::new(tasks as usize);
        for &(number, millis) in answers {
            ledger.answered(number, ms(millis));
        }
        (ledger, Plan::poisson(1, 1_000.0, tasks))
    }

    #[test]
    fn every_task_counts_once_and_as_what_it_came_to() {
        let (ledger, plan) = told(6, &[(0, 50), (1, 51), (2, 3)]);
        let ends = [
            (0, End::Answered),
            (1, End::Answered),
            (2, End::Answered),
            (3, End::Shed),
            (4, End::Expired),
        ];
        let settled = ledger.settle(&plan, &[5], &ends, PATIENCE).unwrap();
        assert_eq!(settled.fates.numbers(), [6, 2, 1, 1, 1, 1, 0]);
        // Late answers are answers, and waiting for them is no part of the rush.
        let quantiles = settled.quantiles.unwrap();
        assert_eq!(quantiles.p50() / 1_000_000, 50);
        assert_eq!(quantiles.max().unwrap() / 1_000_000, 51);
        assert_eq!(settled.elapsed, plan.end().max(plan.arrivals()[0] + ms(50)));
    }

    #[test]
    fn a_lost_task_is_detected() {
        let error = |ends: &[(usize, End)]| {
            let (ledger, plan) = told(3, &[(0, 1)]);
            let settled = ledger.settle(&plan, &[1], ends, PATIENCE);
            settled.unwrap_err().to_string()
        };
        let answered = (0, End::Answered);
        assert_eq!(error(&[answered]), "1 of 3 tasks were lost");
        // To say that it was answered does not help.
        let lie = (2, End::Answered);
        assert_eq!(error(&[answered, lie]), "1 of 3 tasks were lost");
    }

    #[test]
    fn a_task_that_ran_although_its_pool_says_otherwise_is_detected() {
        let settle = |answers: &[(usize, u64)], refused: &[usize], ends: &[(usize, End)]| {
            let (ledger, plan) = told(1, answers);
            let settled = ledger.settle(&plan, refused, ends, PATIENCE);
            settled.map(|_| ()).map_err(|error| error.to_string())
        };
        let ran = [(0, 1)];
        let error = |text: &str| Err(text.to_owned());
        assert_eq!(
            settle(&ran, &[], &[(0, End::Shed)]),
            error("task 0 has run, and its pool says Ended(Shed)")
        );
        assert_eq!(
            settle(&ran, &[0], &[]),
            error("task 0 has run, and its pool says Refused")
        );
        assert_eq!(
            settle(&ran, &[], &[]),
            error("task 0 has run, and its pool lost it")
        );
        assert_eq!(
            settle(&[(0, 1), (0, 2)], &[], &[(0, End::Answered)]),
            error("1 tasks ran that had run before")
        );
        assert_eq!(
            settle(&[], &[0], &[(0, End::Expired)]),
            error("task 0 ended twice")
        );
        assert_eq!(settle(&ran, &[], &[(0, End::Answered)]), Ok(()));
    }
}
