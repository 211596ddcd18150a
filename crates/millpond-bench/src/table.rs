//! The page to read.
//!
//! One table per figure of a workload, the best first, and one of the fates of the tasks under open
//! load; then all of them in one table with the best
//! of ours beside the best peer, and a table for every curve; then a summary. Rows of ours begin with `*`; they end
//! in `ahead`, `level` or `BEHIND`. Every heading says what is better, less or more; and if the run was a quick one, or the
//! machine not quiet, it says that. References begin with `.`, and the summary says why they are no peers. Candidates that are not on this
//! machine are listed under the table with a `-`.

use crate::figure::Better;
use crate::harness::{Found, LeftOut};
use crate::origin::Heading;
use crate::report::Row;
use crate::rush::Fates;
use crate::verdict::Verdict;

pub(crate) mod columns;
mod curves;

use columns::{Cells, columns};

/// The headings of the columns, before those of the percentiles and after them.
const HEAD: [&str; 5] = ["", "median", "min", "max", "ratio"];
const PERCENTILES: [&str; 4] = ["p50 µs", "p99", "p99.9", "slowest"];
const TAIL: [&str; 5] = ["allocs", "sleeps", "preempts", "cpu ns", ""];

/// The tables of one workload, and its absent candidates; ending in a newline.
pub fn found(found: &Found, heading: Heading) -> String {
    let mut by_figure: Vec<&[Row]> = found
        .rows
        .chunk_by(|a, b| a.workload == b.workload)
        .collect();
    if by_figure.first().is_some_and(|rows| is_timed_point(rows)) {
        // Its other figures are percentiles, and columns of the first.
        by_figure.truncate(1);
    }
    let by_figure = by_figure.into_iter();
    let mut tables: Vec<String> = by_figure.map(|rows| figure(rows, heading)).collect();
    tables.extend(fates(&found.rows, heading));
    let mut text = tables.join("\n");
    text += &left_out(&found.absent);
    text
}

/// A line for each reason, with all candidates that it applies to.
fn left_out(absent: &[LeftOut]) -> String {
    let mut text = String::new();
    for (index, (_, reason)) in absent.iter().enumerate() {
        let is_same = |one: &&LeftOut| one.1 == *reason;
        if absent[..index].iter().any(|one| is_same(&one)) {
            continue;
        }
        let names: Vec<_> = absent.iter().filter(is_same).map(|one| one.0).collect();
        text += &format!("  - {}: left out: {reason}\n", names.join(", "));
    }
    text
}

/// Whether these are points of a curve, of operations that were timed one by one.
fn is_timed_point(rows: &[Row]) -> bool {
    let is_timed = |row: &Row| row.point.is_some() && row.percentiles.p50.is_some();
    rows.iter().any(is_timed)
}

/// The table of one figure, ending in a newline.
pub fn figure(rows: &[Row], heading: Heading) -> String {
    let Some(first) = rows.first() else {
        return String::new();
    };
    let mut sorted: Vec<&Row> = rows.iter().collect();
    sorted.sort_by(|a, b| a.cmp_by_median(b));
    let is_timed = rows.iter().any(|row| row.percentiles.p50.is_some());
    let percentiles: &[&str] = if is_timed { &PERCENTILES } else { &[] };
    let head = [&HEAD, percentiles, &TAIL].concat();
    let mut cells = vec![head.into_iter().map(String::from).collect()];
    cells.extend(sorted.iter().map(|row| line(row, is_timed)));
    let (title, unit) = (&first.workload, &first.unit);
    let (suite, better, rounds) = (first.suite, first.better.words(), rounds(rows));
    let text = format!(
        "{suite}: {title}  ({unit}, {better}, {rounds}{})\n",
        heading.text()
    );
    text + &columns(&cells)
}

/// How many rounds there were.
fn rounds(rows: &[Row]) -> String {
    let all = || rows.iter().map(|row| row.rounds);
    match (all().min(), all().max()) {
        (Some(least), Some(most)) if least < most => format!("{least} to {most} rounds"),
        (_, most) => format!("{} rounds", most.unwrap_or_default()),
    }
}

/// The fates of the tasks of a workload, ending in a newline; `None` where they were not counted.
fn fates(rows: &[Row], heading: Heading) -> Option<String> {
    let first = rows.first()?;
    // Each figure of the workload has the same.
    let rows = rows.iter().filter(|row| row.workload == first.workload);
    let mut cells = vec![with_name("", Fates::NAMES.map(String::from))];
    for row in rows {
        let numbers = row.fates?.numbers().map(|number| number.to_string());
        cells.push(with_name(&name(row), numbers));
    }
    let text = format!(
        "{}: what became of them  (tasks, all rounds{})\n",
        first.suite,
        heading.text()
    );
    Some(text + &columns(&cells))
}

/// A name, what stands beside it, and no mark.
fn with_name(name: &str, numbers: [String; 7]) -> Cells {
    let mut cells = vec![name.to_owned()];
    cells.extend(numbers);
    cells.push(String::new());
    cells
}

/// The meaning of the columns, ending in a newline.
pub const LEGEND: &str = "\
* ours   . shown for reference   ratio: median by that of the best peer
ahead, level, BEHIND: ours beside the best peer; level is a difference that may be noise
p50, p99, p99.9, slowest: single operations, in µs, where they were timed; medians of the rounds
allocs, sleeps, preempts (or yields) and CPU time of all threads: per operation
";

/// Every figure in one line: the best of ours, the best peer, and the ratio; curves after that, a table
/// each; ending in a newline.
pub fn overview(rows: &[Row], heading: Heading) -> String {
    let head = [
        "",
        "unit",
        "better",
        "ours",
        "best peer",
        "",
        "ratio",
        "cpu ns",
        "its cpu",
        "",
    ];
    let mut cells = vec![head.map(String::from).to_vec()];
    for rows in rows.chunk_by(|a, b| (a.suite, &a.workload) == (b.suite, &b.workload)) {
        if rows[0].point.is_none() {
            cells.extend(overview_line(rows));
        }
    }
    let mut text = String::new();
    if cells.len() > 1 {
        let end = heading.text();
        text = format!("best of ours and best peer{end}\n{}", columns(&cells));
    }
    let curves = curves::all(rows, heading);
    if !text.is_empty() && !curves.is_empty() {
        text.push('\n');
    }
    text + &curves
}

fn overview_line(rows: &[Row]) -> Option<Cells> {
    let first = rows.first()?;
    let ours = best(rows.iter().filter(|row| row.standing.is_ours()));
    let peer = best(rows.iter().filter(|row| row.standing.is_peer()));
    let median = |row: Option<&Row>| row.map_or("-".into(), |row| time(row.spread.median));
    let ratio = ours.and_then(|row| row.ratio_to_best_peer);
    let limit = ours.and_then(|row| row.limit);
    Some(vec![
        format!("{}: {}", first.suite, first.workload),
        first.unit.clone(),
        first.better.word().into(),
        median(ours),
        median(peer),
        peer.map_or("", |row| row.candidate).into(),
        match (ratio, limit) {
            (Some(ratio), _) => format!("{ratio:.2}"),
            (None, Some(limit)) => format!("< {}", time(limit)),
            (None, None) => "-".into(),
        },
        ours.map_or("-".into(), cpu),
        peer.map_or("-".into(), cpu),
        ours.map_or("", mark).into(),
    ])
}

/// The CPU time of an operation, in nanoseconds.
fn cpu(row: &Row) -> String {
    row.per_operation.cpu_ns.map_or("-".into(), time)
}

/// What stands at the end of a row.
fn mark(row: &Row) -> &'static str {
    row.verdict.map_or("", Verdict::mark)
}

fn best<'a>(rows: impl Iterator<Item = &'a Row>) -> Option<&'a Row> {
    rows.min_by(|a, b| a.cmp_by_median(b))
}

/// The rows we lose and the candidates that are no peers, in one line each; ending in a newline.
pub fn summary(rows: &[Row]) -> String {
    let with = |verdict| {
        rows.iter()
            .filter(|row| row.verdict == Some(verdict))
            .count()
    };
    let [ahead, level, behind] = Verdict::ALL.map(with);
    let all = ahead + level + behind;
    let mut text = format!("{all} rows of ours: {ahead} ahead, {level} level, {behind} behind.\n");
    let lost = rows.iter().filter(|row| row.lost);
    for row in lost {
        let (suite, workload, candidate) = (row.suite, &row.workload, row.candidate);
        text += &format!(
            "  BEHIND  {suite}: {workload}: {candidate} {}\n",
            lack(rows, row)
        );
    }
    let mut references: Vec<_> = rows
        .iter()
        .filter_map(|row| Some((row.standing.because?, row.candidate)))
        .collect();
    references.sort_unstable();
    references.dedup();
    for same in references.chunk_by(|a, b| a.0 == b.0) {
        let candidates: Vec<_> = same.iter().map(|(_, candidate)| *candidate).collect();
        text += &format!("  .       {}: {}\n", candidates.join(", "), same[0].0);
    }
    text
}

/// By how much `row` is lost.
fn lack(rows: &[Row], row: &Row) -> String {
    if let Some(limit) = row.limit {
        let (median, limit) = (time(row.spread.median), time(limit));
        return format!("is at {median}, and must be below {limit} {}", row.unit);
    }
    let ratio = row.ratio_to_best_peer.unwrap_or(f64::NAN);
    let rivals = rows.iter().filter(|other| {
        other.suite == row.suite && other.workload == row.workload && other.standing.is_peer()
    });
    let rival = best(rivals).map_or("the best peer", |row| row.candidate);
    match row.better {
        Better::Less => format!("takes {ratio:.2} x {rival}"),
        Better::More => format!("has {ratio:.2} x {rival}"),
    }
}

/// The name of a candidate, after its mark.
fn name(row: &Row) -> String {
    let mark = match (row.standing.is_ours(), row.standing.is_peer()) {
        (true, _) => '*',
        (_, true) => ' ',
        _ => '.',
    };
    format!("{mark} {}", row.candidate)
}

fn line(row: &Row, is_timed: bool) -> Cells {
    let ratio = row.ratio_to_best_peer;
    let mut cells = vec![
        name(row),
        time(row.spread.median),
        time(row.spread.min),
        time(row.spread.max),
        ratio.map_or("-".into(), |ratio| format!("{ratio:.2}")),
    ];
    if is_timed {
        let single = &row.percentiles;
        let all = [single.p50, single.p99, single.p999, single.max_single];
        cells.extend(all.map(|micros| micros.map_or("-".into(), time)));
    }
    let used = &row.per_operation;
    cells.extend([
        share(used.allocations),
        share(used.sleeps),
        share(used.preemptions),
        cpu(row),
        mark(row).into(),
    ]);
    cells
}

/// Three digits or more; two for values below one.
pub(crate) fn time(value: f64) -> String {
    // A difference may be below zero.
    let digits = match value.abs() {
        0.0 => 0,
        size if size < 0.00995 => 4,
        size if size < 0.0995 => 3,
        size if size < 9.995 => 2,
        size => usize::from(size < 99.95),
    };
    format!("{value:.digits$}")
}

fn share(value: Option<f64>) -> String {
    match value {
        None => "-".into(),
        Some(0.0) => "0".into(),
        Some(value) if value < 0.0005 => "<.001".into(),
        Some(value) => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests;
