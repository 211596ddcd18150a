//! Which processes there are, and how much time each has.
//!
//! The time of all is given. A condition of a process gets its share, and that is divided among all rows of all suites: so much
//! for each candidate of each workload, its warm-up included. A round takes a twelfth of it. Where that is not enough for
//! three rounds there are three all the same, so nothing is left out, and it takes longer than planned; the
//! rounds of every row are in the file.

use crate::condition::Condition;
use crate::harness::Settings;
use crate::record::Record;
use crate::workloads::SUITES;
use std::ffi::OsString;
use std::time::Duration;

/// What is to be measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The suites, by name, with how many candidates their workloads have together.
    pub suites: Vec<(&'static str, usize)>,
    /// How many processes of each suite there are in each condition.
    pub processes: u64,
    /// The time of all of them together.
    pub time: Duration,
}

/// One process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its suite.
    pub suite: &'static str,
    /// What else the machine does meanwhile.
    pub condition: Condition,
    /// Its number, from 1 on. It is the seed of its orders, too.
    pub process: u64,
}

/// A round is this part of the time of a candidate: ten rounds, and two more to warm up.
const PARTS: u32 = 12;

/// No round is shorter than one of a quick run, or longer than one of a full run. Suites that count timers or tasks, and not
/// time, have their full numbers in rounds of full length only, and otherwise those of a quick run: their rows name both.
const ROUND: [Duration; 2] = [Settings::QUICK.round_time, Settings::FULL.round_time];

impl Plan {
    /// A plan for these suites, or for all if there are none.
    pub fn new(names: &[String], processes: u64, time: Duration) -> Self {
        let is_meant = |name: &str| names.is_empty() || names.iter().any(|one| one == name);
        let suites = SUITES
            .iter()
            .filter(|suite| is_meant(suite.name))
            .map(|suite| {
                let candidates = (suite.workloads)()
                    .iter()
                    .map(|one| one.candidates.len())
                    .sum();
                (suite.name, candidates)
            });
        Plan {
            suites: suites.collect(),
            processes,
            time,
        }
    }

    /// All processes, in the order in which they run.
    pub fn parts(&self) -> Vec<Part> {
        let mut parts = Vec::new();
        for process in 1..=self.processes {
            for condition in Condition::ALL {
                parts.extend(self.suites.iter().map(|&(suite, _)| Part {
                    suite,
                    condition,
                    process,
                }));
            }
        }
        parts
    }

    fn candidates(&self) -> usize {
        self.suites.iter().map(|(_, candidates)| candidates).sum()
    }

    /// The time of each candidate of a workload, and the length of a round.
    pub fn budget(&self) -> (Duration, Duration) {
        let times = self.processes * Condition::ALL.len() as u64 * self.candidates() as u64;
        let each = self.time.div_f64(times.max(1) as f64);
        (each, (each / PARTS).clamp(ROUND[0], ROUND[1]))
    }

    /// The plan in a word: figures of another plan are no part of this one. Processes may be added later.
    pub fn key(&self) -> String {
        let (each, round) = self.budget();
        format!("{}x{}ms", each.as_millis(), round.as_millis())
    }

    /// In a line.
    pub fn text(&self) -> String {
        let (each, round) = self.budget();
        format!(
            "{} suites, {} processes of each in {} conditions, planned for {} min: {} ms for each of {} candidates \
             of workloads, in 3 to 10 rounds of {} ms",
            self.suites.len(),
            self.processes,
            Condition::ALL.len(),
            self.time.as_secs() / 60,
            each.as_millis(),
            self.candidates(),
            round.as_millis(),
        )
    }

    /// What a process is told.
    pub fn arguments(&self, part: &Part) -> Vec<OsString> {
        let (each, round) = self.budget();
        let mut words = vec![
            part.suite.to_owned(),
            format!("--condition={}", part.condition.name()),
            format!("--seed={}", part.process),
            format!("--budget={}", each.as_millis().max(1)),
            format!("--round={}", round.as_millis()),
        ];
        // Allocations are the same each time.
        if part.process > 1 || part.condition != Condition::Quiet {
            words.push("--no-allocations".into());
        }
        words.into_iter().map(OsString::from).collect()
    }

    /// How long the parts that are left will take, if they take as long as those of the same suite before, and the
    /// others as long as planned.
    pub fn left(&self, took: &[(&Part, Duration)], left: &[&Part]) -> Duration {
        let planned = |suite: &str| {
            let known = self.suites.iter().find(|(name, _)| *name == suite);
            let candidates = known.map_or(0, |(_, candidates)| *candidates);
            self.budget().0 * u32::try_from(candidates).unwrap_or(u32::MAX)
        };
        let each = |part: &&Part| {
            let same: Vec<Duration> = took
                .iter()
                .filter(|(one, _)| one.suite == part.suite)
                .map(|(_, time)| *time)
                .collect();
            let count = u32::try_from(same.len()).unwrap_or(u32::MAX);
            if same.is_empty() {
                planned(part.suite)
            } else {
                same.iter().sum::<Duration>() / count
            }
        };
        left.iter().map(each).sum()
    }
}

impl Part {
    /// Its name, also that of its file.
    pub fn name(&self) -> String {
        format!("{}.{}.{}", self.suite, self.condition.name(), self.process)
    }

    /// Whether `record` is of this part, of this commit.
    pub fn is_of(&self, record: &Record, commit: &str) -> bool {
        let is_its = |row: &crate::record::Row| row.suite == self.suite;
        record.rows.iter().all(is_its)
            && record.origin.as_ref().is_some_and(|origin| {
                origin.sources.commit.as_deref() == Some(commit)
                    && origin.sources.is_dirty == Some(false)
                    && origin.condition == self.condition
                    && origin.seed == self.process
            })
    }
}
