//! What is measured, and the rounds in which it is measured.
//!
//! ```text
//!   Suite  "queue"                     one question
//!     Workload  "1p1c, capacity 1"     one row of the answer: the same work for all candidates
//!       Candidate  "millpond fifo"     one implementation
//! ```
//!
//! A workload is measured in four steps:
//! 1. **Sizing.** Each candidate runs more and more operations until a round takes as long as
//!    [`Settings::round_time`]. This warms it up, and is thrown away.
//! 2. **Rounds.** Every candidate once, then every candidate again, each time in another order, drawn by
//!    the seed of the run ([`Pace::seed`]): so that none always runs after the same other.
//! 3. **Counting.** Allocations, if there is an allocator that counts: see [`crate::alloc`].
//! 4. **Judging.** Medians, and their ratio to the best peer: see [`crate::report`].
//!
//! Two kinds of workloads differ in that:
//! - Where arrivals are planned ahead ([`Workload::planned`]) a round is as long as its plan. Then
//!   there is nothing to size, and a short round warms a candidate up.
//! - Where a small difference between two candidates is the question ([`Workload::difference`]) all
//!   get the same number of operations, and there are [`Difference::MORE_ROUNDS`] times as many rounds.
//!
//! A candidate that is not on this machine says so with [`Absent`] when it is sized, and one that hangs
//! and can be ended does so later. It is left out, with its reason, and the others are measured without
//! it.

pub use difference::Difference;
pub use pace::Pace;
pub use sizing::Planned;

use crate::alloc::{self, CountingAlloc};
use crate::figure::Figure;
use crate::memory::Memory;
use crate::plan::Random;
use crate::progress::Progress;
use crate::report::{self, PerOperation, Point, Row};
use crate::rush::{Fates, Rush};
use crate::stats::{Percentiles, Quantiles, Spread};
use crate::usage::Usage;
use anyhow::{Context, Result};
use std::fmt;
use std::time::Duration;

/// One question, and the workloads that answer it.
#[derive(Clone, Copy, Debug)]
pub struct Suite {
    /// What it is called on the command line.
    pub name: &'static str,
    /// The question.
    pub about: &'static str,
    /// Makes its workloads.
    pub workloads: fn() -> Vec<Workload>,
    /// What else a reader of its figures should know, once they are there: a line each. It is asked
    /// with the rows of the suite.
    pub notes: fn(&[Row]) -> Vec<String>,
}

/// The same work, done by every candidate.
#[derive(Debug)]
pub struct Workload {
    /// The suite it belongs to.
    pub suite: &'static str,
    /// What it is called within the suite.
    pub name: String,
    /// What is read off a round: a row each for every candidate.
    pub figures: Vec<Figure>,
    /// A round has no more operations than this, however fast a candidate is.
    pub most_operations: u64,
    /// How many times longer and fewer its rounds are: 1 for nearly all. Idling needs long ones.
    pub stretch: u32,
    /// How many operations come in so much time, where that is planned and not found out.
    pub planned: Option<Planned>,
    /// Where it stands on a curve, if it is a point of one.
    pub point: Option<Point>,
    /// The two whose difference is the question, if that is one.
    pub difference: Option<Difference>,
    /// Who does it.
    pub candidates: Vec<Candidate>,
}

/// One who does the work of a workload.
pub struct Candidate {
    /// What it is called.
    pub name: &'static str,
    /// What it is to us.
    pub standing: Standing,
    /// Whether its allocations can be counted: those of another process cannot.
    pub counts_allocations: bool,
    /// Does the given number of operations, or a few more, and checks what came out.
    pub run: Box<Run>,
}

/// Does a number of operations, and says what it took.
pub type Run = dyn Fn(u64) -> Result<Sample>;

/// What a candidate is to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// One of ours.
    Ours,
    /// It does the same, and we want to be at least as fast.
    Peer,
    /// It does something else, so no ratio is taken to it.
    Reference {
        /// What it does otherwise.
        because: &'static str,
    },
}

/// What a candidate says that cannot run here: its reason, and no error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absent(pub String);

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Absent {}

/// What a workload found.
#[derive(Debug, Default)]
pub struct Found {
    /// The figures, in the order of [`Workload::figures`].
    pub rows: Vec<Row>,
    /// Who was left out, and why.
    pub absent: Vec<LeftOut>,
}

/// A candidate that is not here, by name, and why.
pub type LeftOut = (&'static str, Absent);

/// What a round took.
#[derive(Clone, Debug)]
pub struct Sample {
    /// How many operations there really were.
    pub operations: u64,
    /// How long they took together.
    pub elapsed: Duration,
    /// What all threads used for them.
    pub usage: Usage,
    /// The times of single operations, if each was timed.
    pub quantiles: Option<Quantiles>,
    /// What became of the tasks, if they came whether there was room or not.
    pub rush: Option<Rush>,
    /// What was held, if memory was the question.
    pub memory: Option<Memory>,
    /// How many operations the workers did, if callers may do some.
    pub by_workers: Option<u64>,
}

/// How long and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Rounds that count.
    pub rounds: usize,
    /// How long a round of one candidate should take.
    pub round_time: Duration,
}

impl Settings {
    /// For figures that are quoted.
    pub const FULL: Settings = Settings {
        rounds: 10,
        round_time: Duration::from_millis(100),
    };

    /// For a look.
    pub const QUICK: Settings = Settings {
        rounds: 3,
        round_time: Duration::from_millis(20),
    };

    /// Rounds that are `factor` times longer, and as many times fewer, though not fewer than a
    /// median needs.
    fn stretched(self, factor: u32) -> Settings {
        let rounds = self.rounds / (factor.max(1) as usize);
        Settings {
            rounds: rounds.max(self.rounds.min(3)),
            round_time: self.round_time * factor,
        }
    }

    fn more_often(self, factor: usize) -> Settings {
        let rounds = self.rounds * factor;
        Settings { rounds, ..self }
    }
}

/// Counting needs no long rounds, and a shared counter makes them longer.
const MOST_COUNTED: u64 = 10_000;

impl Workload {
    /// How many steps `progress` will be told of.
    pub fn steps(&self, settings: Settings) -> u64 {
        self.candidates.len() as u64 * self.steps_each(self.paced(settings))
    }

    /// The rounds of this workload.
    fn paced(&self, settings: Settings) -> Settings {
        let settings = settings.stretched(self.stretch);
        match self.difference {
            Some(_) => settings.more_often(Difference::MORE_ROUNDS),
            None => settings,
        }
    }

    /// Sizing and counting are a step each.
    fn steps_each(&self, settings: Settings) -> u64 {
        settings.rounds as u64 + 2
    }

    /// Measures every candidate, and judges: with the usual seed, and all rounds.
    ///
    /// # Errors
    ///
    /// If a candidate did not do its work.
    pub fn measure(
        &self,
        settings: Settings,
        allocator: Option<&CountingAlloc>,
        progress: &dyn Progress,
    ) -> Result<Found> {
        self.measure_at(&Pace::of(settings), allocator, progress)
    }

    /// Measures every candidate at this pace, and judges.
    ///
    /// # Errors
    ///
    /// If a candidate did not do its work.
    pub fn measure_at(
        &self,
        pace: &Pace,
        allocator: Option<&CountingAlloc>,
        progress: &dyn Progress,
    ) -> Result<Found> {
        let settings = self.paced(pace.settings);
        let mut random = pace.random(self.suite, &self.name);
        let mut clock = pace.start(self.candidates.len());
        let (mut courses, mut absent) = self.size_all(settings, &mut random, progress)?;
        for round in 0..settings.rounds {
            if !clock.allow_round(round) {
                // The steps that are not taken are over.
                for course in &courses {
                    progress.step(&self.label(course.candidate));
                }
                continue;
            }
            let mut order: Vec<usize> = (0..courses.len()).collect();
            random.shuffle(&mut order);
            for index in order {
                let course = &mut courses[index];
                progress.step(&self.label(course.candidate));
                if course.gone.is_some() {
                    continue;
                }
                let sample = (course.candidate.run)(course.operations);
                course.gone = reason(&sample);
                if course.gone.is_none() {
                    course.samples.push(self.at(course.candidate, sample)?);
                }
            }
        }
        courses.retain_mut(|course| {
            let Some(reason) = course.gone.take() else {
                return true;
            };
            // Its allocations are not counted, and that step is over.
            progress.step(&self.label(course.candidate));
            absent.push((course.candidate.name, reason));
            false
        });
        let mut counts = Vec::new();
        for course in &courses {
            progress.step(&self.label(course.candidate));
            counts.push(self.at(course.candidate, course.count(allocator))?);
        }
        let mut rows = Vec::new();
        for figure in &self.figures {
            let counted = courses.iter().zip(&counts);
            let mut judged: Vec<Row> = counted
                .filter_map(|(course, &allocations)| course.row(self, figure, allocations))
                .collect();
            report::judge(&mut judged, figure.goal);
            rows.extend(judged);
        }
        if let Some(difference) = &self.difference {
            rows.extend(difference.row(self, &courses));
        }
        Ok(Found { rows, absent })
    }

    /// Sizes every candidate, and leaves out those that are not here.
    fn size_all(
        &self,
        settings: Settings,
        random: &mut Random,
        progress: &dyn Progress,
    ) -> Result<(Vec<Course<'_>>, Vec<LeftOut>)> {
        let (mut courses, mut absent) = (Vec::new(), Vec::new());
        let mut order: Vec<(usize, &Candidate)> = self.candidates.iter().enumerate().collect();
        random.shuffle(&mut order);
        for (place, candidate) in order {
            progress.step(&self.label(candidate));
            let sized = match &self.planned {
                Some(planned) => sizing::warm_up(candidate, planned, settings),
                None => sizing::size(candidate, settings, self.most_operations),
            };
            if let Some(reason) = reason(&sized) {
                absent.push((candidate.name, reason));
                // The steps that it does not take are over.
                for _ in 1..self.steps_each(settings) {
                    progress.step(&self.label(candidate));
                }
                continue;
            }
            courses.push(Course {
                place,
                candidate,
                operations: self.at(candidate, sized)?,
                samples: Vec::with_capacity(settings.rounds),
                gone: None,
            });
        }
        // Rows come in the order of the table of candidates.
        courses.sort_by_key(|course| course.place);
        if self.difference.is_some() {
            let least = courses.iter().map(|course| course.operations).min();
            for course in &mut courses {
                course.operations = least.unwrap_or(course.operations);
            }
        }
        Ok((courses, absent))
    }

    fn label(&self, candidate: &Candidate) -> String {
        format!("{} {}: {}", self.suite, self.name, candidate.name)
    }

    fn at<T>(&self, candidate: &Candidate, outcome: Result<T>) -> Result<T> {
        outcome.with_context(|| self.label(candidate))
    }
}

impl Sample {
    /// Nanoseconds per operation.
    pub fn nanos(&self) -> f64 {
        self.elapsed.as_nanos() as f64 / self.operations.max(1) as f64
    }
}

/// A candidate on its way through the rounds.
struct Course<'a> {
    /// Its place among the candidates.
    place: usize,
    candidate: &'a Candidate,
    operations: u64,
    samples: Vec<Sample>,
    /// Why it takes no more turns, if it takes none.
    gone: Option<Absent>,
}

impl Course<'_> {
    fn count(&self, allocator: Option<&CountingAlloc>) -> Result<Option<f64>> {
        let Some(allocator) = allocator.filter(|_| self.candidate.counts_allocations) else {
            return Ok(None);
        };
        let operations = self.operations.min(MOST_COUNTED);
        let run = |operations| (self.candidate.run)(operations).map(drop);
        alloc::per_operation(allocator, operations, run).map(Some)
    }

    /// What became of all tasks of all rounds; `None` if that is not what was counted.
    fn fates(&self) -> Option<Fates> {
        let fates = self.samples.iter().map(|sample| Some(sample.rush?.fates));
        fates.sum()
    }

    /// `None` without a single round that tells.
    fn row(&self, workload: &Workload, figure: &Figure, allocations: Option<f64>) -> Option<Row> {
        let values: Vec<f64> = self
            .samples
            .iter()
            .filter_map(|sample| (figure.of)(sample))
            .collect();
        let operations: u64 = self.samples.iter().map(|sample| sample.operations).sum();
        let usage: Usage = self.samples.iter().map(|sample| sample.usage).sum();
        let quantiles = self
            .samples
            .iter()
            .filter_map(|sample| sample.quantiles.as_ref());
        Some(Row {
            suite: workload.suite,
            workload: figure.title(&workload.name),
            candidate: self.candidate.name,
            standing: self.candidate.standing.into(),
            unit: figure.unit.clone(),
            spread: Spread::of(&values)?,
            values,
            percentiles: Percentiles::of(quantiles),
            rounds: self.samples.len(),
            operations,
            per_operation: PerOperation::new(usage, operations, allocations),
            ratio_to_best_peer: None,
            limit: None,
            verdict: None,
            lost: false,
            better: figure.better,
            fates: self.fates(),
            point: workload.point.as_ref().map(|point| point.of(figure)),
        })
    }
}

/// Why there is no outcome, if that is because the candidate is not here.
fn reason<T>(outcome: &Result<T>) -> Option<Absent> {
    let error = outcome.as_ref().err()?;
    error.downcast_ref::<Absent>().cloned()
}

impl fmt::Debug for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Candidate")
            .field("name", &self.name)
            .field("standing", &self.standing)
            .finish_non_exhaustive()
    }
}

mod difference;
mod pace;
mod sizing;
#[cfg(test)]
mod tests;
