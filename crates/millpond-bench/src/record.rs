//! A run as it was written down by `--json`, read back.
//!
//! Everything that is made of figures after they were measured, the page and the comparison, is made
//! of a record, and a run that has just ended is read back like any other. So an old file and a
//! fresh run can never be shown in two ways, and nothing relies on what the file does not hold.
//!
//! Fields that younger versions added are optional, so that old files stay good for something.

use crate::condition::Condition;
use crate::figure::Better;
use crate::machine::Surroundings;
use crate::origin::{Heading, Origin, Run};
use crate::report::{LeftOutFact, PerOperation, Report};
use crate::rush::Fates;
use crate::verdict::Verdict;
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fs;
use std::path::Path;

/// All that a run found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The machine.
    pub machine: Surroundings,
    /// What was measured, and how. Of published figures: of the first process.
    #[serde(default)]
    pub origin: Option<Origin>,
    /// How many processes these figures are the medians of, if they are published ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Published>,
    /// How long it took, if it was one run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Further notes.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Candidates that were not here.
    #[serde(default)]
    pub left_out: Vec<LeftOutFact>,
    /// The results.
    pub rows: Vec<Row>,
}

/// What makes figures published ones: see [`crate::publish`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Published {
    /// How many processes each figure is the median of.
    pub processes: usize,
    /// The day of the first process and of the last.
    pub dates: (String, String),
    /// How long all of them took together, in minutes.
    pub minutes: u64,
}

/// The figures of one candidate in one workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The suite.
    pub suite: String,
    /// The workload.
    pub workload: String,
    /// The candidate.
    pub candidate: String,
    /// Its role.
    pub standing: Standing,
    /// Why a reference is no peer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// The unit of the figures.
    pub unit: String,
    /// The median of the rounds.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// What the verdict is of: the figure of each round, or the median of each process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<f64>,
    /// Half of all single operations took no longer, in microseconds; if they were timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50: Option<f64>,
    /// 99 of 100 took no longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99: Option<f64>,
    /// 999 of 1,000 took no longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p999: Option<f64>,
    /// The longest single operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_single: Option<f64>,
    /// How many rounds there were.
    pub rounds: u64,
    /// How many operations, in all rounds together.
    #[serde(default)]
    pub operations: u64,
    /// The usage of an operation.
    #[serde(default)]
    pub per_operation: PerOperation,
    /// Its median by that of the best peer, if there is a peer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_to_best_peer: Option<f64>,
    /// The limit, where that and not a peer is the goal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<f64>,
    /// If it is one of ours and has a goal: how it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Whether it is behind: a peer is better beyond noise, or the limit is not kept.
    #[serde(default)]
    pub lost: bool,
    /// What else the machine did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Condition>,
    /// Which of two medians is the better one.
    pub better: Better,
    /// The fates of the tasks, under open load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fates: Option<Fates>,
    /// The curve that it is a point of, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curve: Option<String>,
    /// The quantity along that curve, with its unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub axis: Option<String>,
    /// The position of this point on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x: Option<f64>,
}

/// The role of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// One of ours.
    Ours,
    /// It does the same.
    Peer,
    /// It does something else, and is only shown.
    Reference,
}

impl Record {
    /// Reads a file that `--json` wrote.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or holds something else.
    pub fn read(file: &Path) -> Result<Self> {
        let name = file.display();
        let text = fs::read_to_string(file)
            .with_context(|| format!("cannot read the figures in {name}"))?;
        Self::parse(&text)
            .with_context(|| format!("{name} is no file that `bench --json FILE` has written"))
    }

    /// The record of a run that has just ended, as it would be read back.
    ///
    /// # Errors
    ///
    /// If a figure is no number, which cannot be written down.
    pub fn of(report: &Report) -> Result<Self> {
        Self::parse(&serde_json::to_string(report)?)
            .context("the figures of this run cannot be read back: that is a mistake in the bench")
    }

    fn parse(text: &str) -> Result<Self> {
        let mut record: Record = serde_json::from_str(text)?;
        ensure!(!record.rows.is_empty(), "it holds no rows");
        for row in &mut record.rows {
            row.condition = row.condition.or(Some(record.machine.condition));
            if row.is_ours() && row.has_goal() && row.verdict.is_none() {
                // Files from before there were three verdicts have two.
                row.verdict = Some(if row.lost {
                    Verdict::Behind
                } else {
                    Verdict::Ahead
                });
            }
        }
        Ok(record)
    }

    /// What is said over every table.
    pub fn heading(&self, condition: Condition) -> Heading {
        Heading {
            is_quick: self
                .origin
                .as_ref()
                .is_some_and(|origin| origin.run == Run::Quick),
            condition,
        }
    }

    /// How many rows of ours are ahead, level and behind.
    pub fn verdicts(&self) -> [usize; 3] {
        let with = |verdict| {
            self.rows
                .iter()
                .filter(|row| row.verdict == Some(verdict))
                .count()
        };
        Verdict::ALL.map(with)
    }

    /// How many rows of ours have a goal, and how many of those miss it.
    pub fn goals(&self) -> (usize, usize) {
        let judged = |row: &&Row| row.is_ours() && row.has_goal();
        let lost = self.rows.iter().filter(|row| row.lost).count();
        (self.rows.iter().filter(judged).count(), lost)
    }
}

impl Row {
    /// Whether it is one of ours.
    pub fn is_ours(&self) -> bool {
        self.standing == Standing::Ours
    }

    /// Whether ratios are taken to it.
    pub fn is_peer(&self) -> bool {
        self.standing == Standing::Peer
    }

    /// Whether there is something that it could be lost by.
    pub fn has_goal(&self) -> bool {
        self.ratio_to_best_peer.is_some() || self.limit.is_some()
    }

    /// The worse one comes later.
    pub fn cmp_by_median(&self, other: &Row) -> Ordering {
        let order = self.median.total_cmp(&other.median);
        match self.better {
            Better::Less => order,
            Better::More => order.reverse(),
        }
    }

    /// What else the machine did.
    pub fn in_condition(&self) -> Condition {
        self.condition.unwrap_or_default()
    }

    /// Its curve and its place there, if it is a point of one.
    pub fn point(&self) -> Option<(&str, f64)> {
        Some((self.curve.as_deref()?, self.x?))
    }
}

/// The best of `rows`; `None` if there are none.
pub fn best<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Option<&'a Row> {
    rows.into_iter().min_by(|a, b| a.cmp_by_median(b))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::harness;
    use crate::report;

    pub(crate) fn row(candidate: &str, standing: Standing, median: f64) -> Row {
        Row {
            suite: "pool".into(),
            workload: "burst".into(),
            candidate: candidate.into(),
            standing,
            because: None,
            unit: "ns/task".into(),
            median,
            min: median * 0.99,
            max: median * 1.01,
            values: vec![median * 0.99, median, median * 1.01],
            p50: None,
            p99: None,
            p999: None,
            max_single: None,
            rounds: 10,
            operations: 1_000,
            per_operation: PerOperation::default(),
            ratio_to_best_peer: None,
            limit: None,
            verdict: None,
            lost: false,
            condition: None,
            better: Better::Less,
            fates: None,
            curve: None,
            axis: None,
            x: None,
        }
    }

    pub(crate) fn record(rows: Vec<Row>) -> Record {
        Record {
            machine: Surroundings::read(),
            origin: None,
            published: None,
            seconds: None,
            notes: Vec::new(),
            left_out: Vec::new(),
            rows,
        }
    }

    fn report() -> Report {
        let spins = harness::Standing::Reference {
            because: "it spins",
        };
        let mut rows = vec![
            report::tests::row("millpond", harness::Standing::Ours, 90.0),
            report::tests::row("kanal", harness::Standing::Peer, 60.0),
            report::tests::row("spinner", spins, 6.0),
        ];
        report::judge(&mut rows, crate::figure::Goal::BestPeer);
        rows[0].percentiles = crate::stats::Percentiles {
            p50: Some(1.0),
            p99: Some(2.0),
            p999: Some(3.0),
            max_single: Some(4.0),
        };
        rows[0].point = Some(report::Point {
            curve: "p99 against load".into(),
            axis: "load, %",
            x: 80.0,
        });
        Report {
            machine: Surroundings::read(),
            origin: Origin::read(
                Run::Quick,
                &harness::Pace::of(harness::Settings::QUICK),
                Condition::Busy,
                false,
            ),
            seconds: 1.5,
            notes: vec!["Java: 17".into()],
            left_out: vec![LeftOutFact {
                candidate: "Go channel pool".into(),
                because: "there is no `go`".into(),
            }],
            rows,
        }
    }

    #[test]
    fn what_is_written_is_what_is_read() {
        let report = report();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("figures.json");
        fs::write(&file, serde_json::to_string_pretty(&report).unwrap()).unwrap();
        let record = Record::read(&file).unwrap();
        assert_eq!(record, Record::of(&report).unwrap());
        assert_eq!(record.machine, report.machine);
        assert_eq!(record.notes, report.notes);
        assert_eq!(record.goals(), (1, 1));
        assert_eq!(record.origin.as_ref(), Some(&report.origin));
        assert_eq!(record.left_out, report.left_out);
        assert!(record.heading(Condition::Quiet).is_quick);
        assert_eq!(record.rows[0].verdict, Some(Verdict::Behind));
        assert_eq!(record.rows[0].values, report.rows[0].values);
        assert_eq!(record.verdicts(), [0, 0, 1]);
        let standings: Vec<_> = record.rows.iter().map(|row| row.standing).collect();
        let first = &record.rows[0];
        let percentiles = [first.p50, first.p99, first.p999, first.max_single];
        assert_eq!(percentiles, [1.0, 2.0, 3.0, 4.0].map(Some));
        assert_eq!(first.point(), Some(("p99 against load", 80.0)));
        assert_eq!(first.axis.as_deref(), Some("load, %"));
        use Standing::{Ours, Peer, Reference};
        assert_eq!(standings, [Ours, Peer, Reference]);
        for (read, written) in record.rows.iter().zip(&report.rows) {
            assert_eq!(read.candidate, written.candidate);
            assert_eq!(read.because.as_deref(), written.standing.because);
            assert_eq!(read.unit, written.unit);
            assert_eq!(read.median, written.spread.median);
            assert_eq!(
                (read.min, read.max),
                (written.spread.min, written.spread.max)
            );
            assert_eq!(read.ratio_to_best_peer, written.ratio_to_best_peer);
            assert_eq!((read.lost, read.better), (written.lost, written.better));
            assert_eq!(read.per_operation, written.per_operation);
        }
    }

    #[test]
    fn files_from_before_percentiles_and_curves_are_read() {
        let text = r#"{"machine": {"arch": "x86_64", "effective_cpus": 2.0}, "rows": [{
            "suite": "task", "workload": "join", "candidate": "millpond", "standing": "ours",
            "unit": "ns/task", "median": 2, "min": 1.5, "max": 3, "rounds": 10, "better": "less"}]}"#;
        let record = Record::parse(text).unwrap();
        assert_eq!(record.rows[0].median, 2.0);
        assert_eq!(record.rows[0].p99, None);
        assert_eq!((record.rows[0].verdict, &record.origin), (None, &None));
        assert_eq!(record.rows[0].point(), None);
    }

    #[test]
    fn a_file_of_something_else_is_named_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("other.json");
        for (text, reason) in [
            ("median,min\n", "expected value at line 1"),
            ("", "EOF while parsing"),
            ("{}", "missing field `machine`"),
            (
                r#"{"machine": {"arch": "x", "effective_cpus": 1}, "rows": []}"#,
                "it holds no rows",
            ),
            (
                r#"{"machine": {"arch": "x", "effective_cpus": 1}, "rows": [{"suite": 7}]}"#,
                "expected a string at line 1",
            ),
        ] {
            fs::write(&file, text).unwrap();
            let error = format!("{:#}", Record::read(&file).unwrap_err());
            assert!(error.contains("other.json is no file that"), "{error}");
            assert!(error.contains(reason), "{error}");
        }
        fs::remove_file(&file).unwrap();
        let error = format!("{:#}", Record::read(&file).unwrap_err());
        assert!(error.starts_with("cannot read the figures in "), "{error}");
    }
}
