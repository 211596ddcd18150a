//! The results: one row per workload and candidate, and which candidate is ahead.
//!
//! Nearly all figures are times, so less is better. The ratio of a row is its median divided by the
//! best median among the peers of the same workload: 0.50 is twice as fast as the best of them. Where
//! more is better it is the other way round, and each row says which. A row of ours is ahead of the best
//! peer, level with it within noise, or behind, by the rule in [`crate::verdict`]; one that is behind is lost.
//! Where there is a limit instead, a row of ours that is not below it is lost. A figure that is only shown
//! has no goal, and cannot be lost.

use crate::figure::{Better, Figure, Goal};
use crate::harness::Standing;
use crate::machine::Surroundings;
use crate::origin::Origin;
use crate::rush::Fates;
use crate::stats::{Percentiles, Spread};
use crate::usage::Usage;
use crate::verdict::{self, Verdict};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// All that a run found.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The machine.
    pub machine: Surroundings,
    /// What was measured, and how.
    pub origin: Origin,
    /// How long it took.
    pub seconds: f64,
    /// Further notes.
    pub notes: Vec<String>,
    /// Candidates that were not here.
    pub left_out: Vec<LeftOutFact>,
    /// The results.
    pub rows: Vec<Row>,
}

/// A candidate that was not here, as it is written down.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LeftOutFact {
    /// Its name.
    pub candidate: String,
    /// Why.
    pub because: String,
}

/// The figures of one candidate in one workload.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The suite.
    pub suite: &'static str,
    /// The workload.
    pub workload: String,
    /// The candidate.
    pub candidate: &'static str,
    /// Its role.
    #[serde(flatten)]
    pub standing: StandingFact,
    /// The unit of the figures.
    pub unit: String,
    /// The figures.
    #[serde(flatten)]
    pub spread: Spread,
    /// What the verdict is of: the figure of each round.
    pub values: Vec<f64>,
    /// The times of single operations, where they were timed.
    #[serde(flatten)]
    pub percentiles: Percentiles,
    /// How many rounds there were.
    pub rounds: usize,
    /// How many operations, in all rounds together.
    pub operations: u64,
    /// The usage of an operation.
    pub per_operation: PerOperation,
    /// Its median by that of the best peer, if there is a peer.
    pub ratio_to_best_peer: Option<f64>,
    /// The limit, where that and not a peer is the goal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<f64>,
    /// If it is one of ours and has a goal: how it does.
    pub verdict: Option<Verdict>,
    /// Whether it is behind: a peer is better beyond noise, or the limit is not kept.
    pub lost: bool,
    /// Which of two medians is the better one.
    pub better: Better,
    /// The fates of all tasks of all rounds, under open load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fates: Option<Fates>,
    /// Its position on a curve, if it is a point of one.
    #[serde(flatten)]
    pub point: Option<Point>,
}

/// The position of a row on a curve. A line per candidate goes through all points of the same curve.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// The name of the curve.
    pub curve: String,
    /// The quantity on the horizontal axis, with its unit.
    pub axis: &'static str,
    /// How far to the right.
    pub x: f64,
}

impl Point {
    /// The same point, on the curve of one figure of a workload that may have several.
    pub(crate) fn of(&self, figure: &Figure) -> Point {
        Point {
            curve: figure.title(&self.curve),
            ..self.clone()
        }
    }
}

impl Row {
    /// Whether there is something that it could be lost by.
    pub fn has_goal(&self) -> bool {
        self.ratio_to_best_peer.is_some() || self.limit.is_some()
    }

    /// Only ours are judged.
    fn set_verdict(&mut self, verdict: Verdict) {
        self.verdict = self.standing.is_ours().then_some(verdict);
        self.lost = self.verdict == Some(Verdict::Behind);
    }

    /// The worse one comes later.
    pub fn cmp_by_median(&self, other: &Row) -> Ordering {
        let order = self.spread.median.total_cmp(&other.spread.median);
        match self.better {
            Better::Less => order,
            Better::More => order.reverse(),
        }
    }
}

/// A [`Standing`], as it is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StandingFact {
    /// `ours`, `peer` or `reference`.
    pub standing: &'static str,
    /// Why a reference is no peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<&'static str>,
}

impl StandingFact {
    const OURS: &'static str = "ours";
    const PEER: &'static str = "peer";

    /// Whether it is one of ours.
    pub fn is_ours(&self) -> bool {
        self.standing == Self::OURS
    }

    /// Whether ratios are taken to it.
    pub fn is_peer(&self) -> bool {
        self.standing == Self::PEER
    }
}

impl From<Standing> for StandingFact {
    fn from(standing: Standing) -> Self {
        let (standing, because) = match standing {
            Standing::Ours => (Self::OURS, None),
            Standing::Peer => (Self::PEER, None),
            Standing::Reference { because } => ("reference", Some(because)),
        };
        StandingFact { standing, because }
    }
}

/// The usage of one operation, on average. An unknown value is `null`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PerOperation {
    /// How often memory was asked for.
    pub allocations: Option<f64>,
    /// How often a thread slept, to be woken later.
    pub sleeps: Option<f64>,
    /// How often a thread lost its CPU to another, or yielded it.
    pub preemptions: Option<f64>,
    /// CPU time of all threads.
    pub cpu_ns: Option<f64>,
}

impl PerOperation {
    /// Shares `usage` out among `operations`.
    pub fn new(usage: Usage, operations: u64, allocations: Option<f64>) -> Self {
        let share = |whole: f64| whole / operations.max(1) as f64;
        PerOperation {
            allocations,
            sleeps: usage.sleeps.map(|sleeps| share(sleeps as f64)),
            preemptions: usage
                .preemptions
                .map(|preemptions| share(preemptions as f64)),
            cpu_ns: usage.cpu.map(|cpu| share(cpu.as_nanos() as f64)),
        }
    }
}

/// Judges the rows of one figure of one workload.
pub fn judge(rows: &mut [Row], goal: Goal) {
    match goal {
        Goal::BestPeer => judge_by_best_peer(rows),
        Goal::Below(limit) => {
            for row in rows {
                row.limit = Some(limit);
                row.set_verdict(if row.spread.median < limit {
                    Verdict::Ahead
                } else {
                    Verdict::Behind
                });
            }
        }
        Goal::Shown => {}
    }
}

fn judge_by_best_peer(rows: &mut [Row]) {
    let peers = rows.iter().filter(|row| row.standing.is_peer());
    let best = peers.min_by(|a, b| a.cmp_by_median(b));
    // A peer of which nothing came to anything is no measure.
    let best = best.filter(|row| row.better == Better::Less || row.spread.median > 0.0);
    let best = best.map(|row| (row.spread.median, row.values.clone()));
    for row in rows {
        let Some((median, values)) = &best else {
            (row.ratio_to_best_peer, row.verdict, row.lost) = (None, None, false);
            continue;
        };
        row.ratio_to_best_peer = Some(row.spread.median / median);
        row.set_verdict(verdict::between(&row.values, values, row.better));
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn row(candidate: &'static str, standing: Standing, median: f64) -> Row {
        Row {
            suite: "queue",
            workload: "1p1c, capacity 1".into(),
            candidate,
            standing: standing.into(),
            unit: "ns/message".into(),
            spread: Spread {
                median,
                min: median / 2.0,
                max: median * 2.0,
            },
            values: vec![median * 0.99, median, median * 1.01],
            percentiles: Percentiles::default(),
            rounds: 10,
            operations: 1_000,
            per_operation: PerOperation::default(),
            ratio_to_best_peer: None,
            limit: None,
            verdict: None,
            lost: false,
            better: Better::Less,
            fates: None,
            point: None,
        }
    }

    const SPINS: Standing = Standing::Reference {
        because: "it spins",
    };

    fn judged(rows: &[(Standing, f64)]) -> Vec<(Option<f64>, bool)> {
        let mut rows: Vec<_> = rows
            .iter()
            .map(|&(standing, median)| row("x", standing, median))
            .collect();
        judge(&mut rows, Goal::BestPeer);
        rows.iter()
            .map(|row| (row.ratio_to_best_peer, row.lost))
            .collect()
    }

    #[test]
    fn ratios_are_taken_to_the_fastest_peer() {
        let rows = [
            (Standing::Ours, 30.0),
            (Standing::Peer, 80.0),
            (Standing::Peer, 60.0),
        ];
        let expected = [(0.5, false), (80.0 / 60.0, false), (1.0, false)];
        assert_eq!(
            judged(&rows),
            expected.map(|(ratio, lost)| (Some(ratio), lost))
        );
    }

    #[test]
    fn each_of_ours_that_is_slower_than_the_best_peer_beyond_noise_is_lost() {
        let rows = [
            (Standing::Ours, 90.0),
            (Standing::Peer, 60.0),
            (Standing::Ours, 60.0),
        ];
        let expected = [(1.5, true), (1.0, false), (1.0, false)];
        assert_eq!(
            judged(&rows),
            expected.map(|(ratio, lost)| (Some(ratio), lost))
        );
    }

    #[test]
    fn ours_are_ahead_level_or_behind_and_peers_are_not_judged() {
        let standings = [
            (Standing::Ours, 30.0),
            (Standing::Ours, 61.0),
            (Standing::Ours, 90.0),
        ];
        let mut rows: Vec<Row> = standings
            .iter()
            .map(|&(s, median)| row("x", s, median))
            .collect();
        rows.push(row("peer", Standing::Peer, 60.0));
        judge(&mut rows, Goal::BestPeer);
        let verdicts: Vec<_> = rows.iter().map(|row| row.verdict).collect();
        use Verdict::{Ahead, Behind, Level};
        assert_eq!(verdicts, [Some(Ahead), Some(Level), Some(Behind), None]);
    }

    #[test]
    fn a_reference_is_no_peer_however_fast_it_is() {
        let rows = [
            (Standing::Ours, 50.0),
            (SPINS, 5.0),
            (Standing::Peer, 100.0),
        ];
        let expected = [(0.5, false), (0.05, false), (1.0, false)];
        assert_eq!(
            judged(&rows),
            expected.map(|(ratio, lost)| (Some(ratio), lost))
        );
    }

    #[test]
    fn without_a_peer_there_is_no_ratio_and_nothing_is_lost() {
        assert_eq!(
            judged(&[(Standing::Ours, 50.0), (SPINS, 5.0)]),
            [(None, false); 2]
        );
    }

    #[test]
    fn a_limit_is_kept_by_being_below_it_whatever_the_peers_do() {
        let kept = row("kept", Standing::Ours, 0.09);
        let missed = row("missed", Standing::Ours, 0.1);
        let peer = row("peer", Standing::Peer, 5.0);
        let mut rows = [kept, missed, peer];
        judge(&mut rows, Goal::Below(0.1));
        assert_eq!(rows.each_ref().map(|row| row.lost), [false, true, false]);
        assert!(rows.iter().all(|row| row.limit == Some(0.1)));
        assert!(rows.iter().all(|row| row.ratio_to_best_peer.is_none()));
    }

    #[test]
    fn where_more_is_better_the_best_peer_has_most_and_having_less_is_lost() {
        let mut rows = [
            row("more", Standing::Ours, 300.0),
            row("least", Standing::Ours, 50.0),
            row("less", Standing::Peer, 60.0),
            row("most", Standing::Peer, 100.0),
        ];
        rows.iter_mut().for_each(|row| row.better = Better::More);
        judge(&mut rows, Goal::BestPeer);
        let judged = rows
            .each_ref()
            .map(|row| (row.ratio_to_best_peer, row.lost));
        let expected = [(3.0, false), (0.5, true), (0.6, false), (1.0, false)];
        assert_eq!(judged, expected.map(|(ratio, lost)| (Some(ratio), lost)));
        // There is nothing to be gained by a ratio to nothing.
        rows.iter_mut().for_each(|row| {
            if row.standing.is_peer() {
                row.spread.median = 0.0;
                row.values = vec![0.0; 3];
            }
        });
        judge(&mut rows, Goal::BestPeer);
        assert!(
            rows.iter()
                .all(|row| row.ratio_to_best_peer.is_none() && row.verdict.is_none())
        );
    }

    #[test]
    fn what_is_only_shown_has_no_goal() {
        let mut rows = [
            row("slow", Standing::Ours, 300.0),
            row("fast", Standing::Peer, 1.0),
        ];
        judge(&mut rows, Goal::Shown);
        assert!(rows.iter().all(|row| !row.has_goal() && !row.lost));
    }

    #[test]
    fn a_row_is_one_flat_object() {
        let mut rows = [row("flume", Standing::Peer, 60.0), row("q", SPINS, 30.0)];
        judge(&mut rows, Goal::BestPeer);
        let json = serde_json::to_value(&rows).unwrap();
        assert_eq!(json[0]["median"], 60.0);
        assert_eq!(json[0]["standing"], "peer");
        assert_eq!(json[0]["ratio_to_best_peer"], 1.0);
        assert_eq!(json[0].get("because"), None);
        assert_eq!(json[0].get("limit"), None);
        assert_eq!(json[0].get("fates"), None);
        assert_eq!(json[0]["better"], "less");
        assert_eq!(json[1]["because"], "it spins");
        assert_eq!(json[0]["per_operation"]["cpu_ns"], serde_json::Value::Null);
        // A value that was not timed is null, and a row that is no point of a curve has none of its keys.
        assert_eq!(json[0].get("p999"), Some(&serde_json::Value::Null));
        assert_eq!(json[0].get("curve"), None);
        rows[0].percentiles.max_single = Some(7.5);
        rows[0].point = Some(Point {
            curve: "time against size: p99".into(),
            axis: "size, bytes",
            x: 64.0,
        });
        let json = serde_json::to_value(&rows[0]).unwrap();
        assert_eq!(json["max_single"], 7.5);
        assert_eq!(json["curve"], "time against size: p99");
        assert_eq!(
            (&json["axis"], &json["x"]),
            (&"size, bytes".into(), &64.0.into())
        );
    }
}
