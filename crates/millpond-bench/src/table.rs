//! The page to read.
//!
//! One table per figure of a workload, the best first, and one of what became of the tasks where they
//! came whether there was room or not; then all of them in one table with the best
//! of ours beside the best peer, then a summary. Rows of ours begin with `*`; those we lose end in
//! `LOST`. References begin with `.`, and the summary says why they are no peers. Who is not on this
//! machine stands under the table with a `-`.

use crate::figure::Better;
use crate::harness::Found;
use crate::report::Row;
use crate::rush::Fates;

const HEAD: [&str; 10] = [
    "", "median", "min", "max", "ratio", "allocs", "sleeps", "preempts", "cpu ns", "",
];

/// The tables of one workload, and who is missing in them; ending in a newline.
pub fn found(found: &Found) -> String {
    let by_figure = found.rows.chunk_by(|a, b| a.workload == b.workload);
    let mut tables: Vec<String> = by_figure.map(figure).collect();
    tables.extend(fates(&found.rows));
    let mut text = tables.join("\n");
    for (candidate, reason) in &found.absent {
        text += &format!("  - {candidate}: left out: {reason}\n");
    }
    text
}

/// The table of one figure, ending in a newline.
pub fn figure(rows: &[Row]) -> String {
    let Some(first) = rows.first() else {
        return String::new();
    };
    let mut sorted: Vec<&Row> = rows.iter().collect();
    sorted.sort_by(|a, b| a.cmp_by_median(b));
    let mut cells = vec![HEAD.map(String::from)];
    cells.extend(sorted.iter().map(|row| line(row)));
    let (title, unit) = (&first.workload, &first.unit);
    let mut text = format!(
        "{}: {title}  ({unit}, {} rounds)\n",
        first.suite, first.rounds
    );
    for padded in columns(&cells) {
        text += &padded;
        text.push('\n');
    }
    text
}

/// What became of the tasks of a workload, ending in a newline; `None` where that was not counted.
fn fates(rows: &[Row]) -> Option<String> {
    let first = rows.first()?;
    // Each figure of the workload has the same.
    let rows = rows.iter().filter(|row| row.workload == first.workload);
    let mut cells = vec![with_name("", Fates::NAMES.map(String::from))];
    for row in rows {
        let numbers = row.fates?.numbers().map(|number| number.to_string());
        cells.push(with_name(&name(row), numbers));
    }
    let mut text = format!(
        "{}: what became of them  (tasks, all rounds)\n",
        first.suite
    );
    for padded in columns(&cells) {
        text += &padded;
        text.push('\n');
    }
    Some(text)
}

/// A name, what stands beside it, and no mark.
fn with_name(name: &str, numbers: [String; 7]) -> [String; 9] {
    let [a, b, c, d, e, f, g] = numbers;
    [name.into(), a, b, c, d, e, f, g, String::new()]
}

/// What the columns mean, ending in a newline.
pub const LEGEND: &str = "\
* ours   . shown for reference   ratio: median by that of the best peer
allocs, sleeps, preempts (or yields) and CPU time of all threads: per operation
";

/// Every figure in one line: the best of ours, the best peer, and the ratio; ending in a newline.
pub fn overview(rows: &[Row]) -> String {
    let head = ["", "unit", "ours", "best peer", "", "ratio", ""];
    let mut cells = vec![head.map(String::from)];
    for rows in rows.chunk_by(|a, b| (a.suite, &a.workload) == (b.suite, &b.workload)) {
        cells.extend(overview_line(rows));
    }
    let mut text = String::from("best of ours and best peer\n");
    for padded in columns(&cells) {
        text += &padded;
        text.push('\n');
    }
    text
}

fn overview_line(rows: &[Row]) -> Option<[String; 7]> {
    let first = rows.first()?;
    let ours = best(rows.iter().filter(|row| row.standing.is_ours()));
    let peer = best(rows.iter().filter(|row| row.standing.is_peer()));
    let median = |row: Option<&Row>| row.map_or("-".into(), |row| time(row.spread.median));
    let ratio = ours.and_then(|row| row.ratio_to_best_peer);
    let limit = ours.and_then(|row| row.limit);
    Some([
        format!("{}: {}", first.suite, first.workload),
        first.unit.clone(),
        median(ours),
        median(peer),
        peer.map_or("", |row| row.candidate).into(),
        match (ratio, limit) {
            (Some(ratio), _) => format!("{ratio:.2}"),
            (None, Some(limit)) => format!("< {}", time(limit)),
            (None, None) => "-".into(),
        },
        if ours.is_some_and(|row| row.lost) {
            "LOST"
        } else {
            ""
        }
        .into(),
    ])
}

fn best<'a>(rows: impl Iterator<Item = &'a Row>) -> Option<&'a Row> {
    rows.min_by(|a, b| a.cmp_by_median(b))
}

/// What we lose and which candidates are no peers, in one line each; ending in a newline.
pub fn summary(rows: &[Row]) -> String {
    let ours = rows.iter().filter(|row| row.standing.is_ours());
    let ours = ours.filter(|row| row.has_goal()).count();
    let lost: Vec<&Row> = rows.iter().filter(|row| row.lost).collect();
    let kept = ours - lost.len();
    let mut text = format!("{kept} of {ours} rows of ours reach their goal.\n");
    for row in lost {
        let (suite, workload, candidate) = (row.suite, &row.workload, row.candidate);
        text += &format!(
            "  LOST  {suite}: {workload}: {candidate} {}\n",
            lack(rows, row)
        );
    }
    let mut references: Vec<_> = rows
        .iter()
        .filter_map(|row| Some((row.candidate, row.standing.because?)))
        .collect();
    references.sort_unstable();
    references.dedup();
    for (candidate, because) in references {
        text += &format!("  .     {candidate}: {because}\n");
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

/// What a candidate is called, after its mark.
fn name(row: &Row) -> String {
    let mark = match (row.standing.is_ours(), row.standing.is_peer()) {
        (true, _) => '*',
        (_, true) => ' ',
        _ => '.',
    };
    format!("{mark} {}", row.candidate)
}

fn line(row: &Row) -> [String; 10] {
    let used = &row.per_operation;
    [
        name(row),
        time(row.spread.median),
        time(row.spread.min),
        time(row.spread.max),
        row.ratio_to_best_peer
            .map_or("-".into(), |ratio| format!("{ratio:.2}")),
        share(used.allocations),
        share(used.sleeps),
        share(used.preemptions),
        used.cpu_ns.map_or("-".into(), time),
        if row.lost { "LOST" } else { "" }.into(),
    ]
}

/// Three digits or more; two for what is below one.
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

fn ends_in_a_letter(cell: &str) -> bool {
    cell.ends_with(char::is_alphabetic)
}

/// Pads the cells of all rows to their columns: words to the left, numbers to the right.
pub(crate) fn columns<const N: usize>(rows: &[[String; N]]) -> Vec<String> {
    let widths: [usize; N] = std::array::from_fn(|column| {
        let width = |row: &[String; N]| row[column].chars().count();
        rows.iter().map(width).max().unwrap_or_default()
    });
    let is_words: [bool; N] = std::array::from_fn(|column| {
        let mut body = rows.iter().skip(1).map(|row| row[column].as_str());
        // The first is names and the last is marks, even if there are none.
        column == 0 || column + 1 == N || body.any(ends_in_a_letter)
    });
    let pad = |(column, cell): (usize, &String)| {
        let width = widths[column];
        if is_words[column] {
            format!("{cell:<width$}")
        } else {
            format!("{cell:>width$}")
        }
    };
    let line = |row: &[String; N]| {
        let cells: Vec<String> = row.iter().enumerate().map(pad).collect();
        format!("  {}", cells.join("  ")).trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Goal;
    use crate::harness::{Absent, Standing};
    use crate::report::{PerOperation, judge, tests::row};

    fn rows() -> Vec<Row> {
        let spins = Standing::Reference {
            because: "it spins where others sleep",
        };
        let mut rows = vec![
            row("millpond array", Standing::Ours, 150.0),
            row("flume", Standing::Peer, 2500.0),
            row("crossbeam", Standing::Peer, 100.0),
            row("millpond linked", Standing::Ours, 50.0),
            row("spinner", spins, 8.0),
        ];
        rows[0].per_operation = PerOperation {
            allocations: Some(1.0),
            sleeps: Some(0.000_01),
            preemptions: Some(0.0),
            cpu_ns: Some(301.5),
        };
        judge(&mut rows, Goal::BestPeer);
        rows
    }

    #[test]
    fn a_table_shows_the_fastest_first_and_marks_what_we_lose() {
        let expected = "\
queue: 1p1c, capacity 1  (ns/message, 10 rounds)
                     median   min   max  ratio  allocs  sleeps  preempts  cpu ns
  . spinner            8.00  4.00  16.0   0.08       -       -         -       -
  * millpond linked    50.0  25.0   100   0.50       -       -         -       -
    crossbeam           100  50.0   200   1.00       -       -         -       -
  * millpond array      150  75.0   300   1.50   1.000   <.001         0     302  LOST
    flume              2500  1250  5000  25.00       -       -         -       -
";
        assert_eq!(figure(&rows()), expected);
    }

    #[test]
    fn the_summary_names_every_row_we_lose_and_every_reference() {
        let expected = "\
1 of 2 rows of ours reach their goal.
  LOST  queue: 1p1c, capacity 1: millpond array takes 1.50 x crossbeam
  .     spinner: it spins where others sleep
";
        assert_eq!(summary(&rows()), expected);
    }

    #[test]
    fn no_rows_make_no_table() {
        assert_eq!(figure(&[]), "");
        assert_eq!(found(&Found::default()), "");
    }

    #[test]
    fn what_became_of_the_tasks_has_a_table_of_its_own() {
        let fates = Fates {
            offered: 30,
            in_time: 12,
            late: 9,
            refused: 5,
            shed: 4,
            ..Fates::default()
        };
        let rush = |workload: &str, candidate, standing| Row {
            workload: workload.into(),
            fates: Some(fates),
            ..row(candidate, standing, 12.0)
        };
        let both = |workload| {
            [
                rush(workload, "millpond", Standing::Ours),
                rush(workload, "flume", Standing::Peer),
            ]
        };
        let rows = [both("rush: goodput"), both("rush: p99")].concat();
        let text = found(&Found {
            rows,
            absent: Vec::new(),
        });
        let expected = "
queue: what became of them  (tasks, all rounds)
              offered  in time  late  refused  shed  expired  lost
  * millpond       30       12     9        5     4        0     0
    flume          30       12     9        5     4        0     0
";
        assert!(text.ends_with(expected), "{text}");
    }

    #[test]
    fn where_more_is_better_the_most_comes_first_and_less_is_lost() {
        let mut rows = [
            row("millpond", Standing::Ours, 50.0),
            row("flume", Standing::Peer, 100.0),
        ];
        rows.iter_mut().for_each(|row| row.better = Better::More);
        judge(&mut rows, Goal::BestPeer);
        let text = figure(&rows);
        assert!(text.find("flume") < text.find("millpond"), "{text}");
        let line = "  LOST  queue: 1p1c, capacity 1: millpond has 0.50 x flume\n";
        assert!(summary(&rows).ends_with(line), "{}", summary(&rows));
    }

    #[test]
    fn what_is_only_shown_does_not_count_among_the_goals() {
        let text = summary(&[row("millpond", Standing::Ours, 50.0)]);
        assert_eq!(text, "0 of 0 rows of ours reach their goal.\n");
    }

    #[test]
    fn who_is_not_here_stands_under_the_tables() {
        let mut tail = row("flume", Standing::Peer, 70.0);
        tail.workload = "trip: p99".into();
        let both = Found {
            rows: vec![row("flume", Standing::Peer, 60.0), tail],
            absent: vec![("Java", Absent("no java on the PATH".into()))],
        };
        let text = found(&both);
        assert_eq!(text.matches("median").count(), 2, "{text}");
        assert!(text.contains("\n\nqueue: trip: p99  ("), "{text}");
        assert!(
            text.ends_with("\n  - Java: left out: no java on the PATH\n"),
            "{text}"
        );
    }

    fn idle(median: f64) -> Vec<Row> {
        let mut rows = vec![
            row("millpond", Standing::Ours, median),
            row("flume", Standing::Peer, 0.0),
        ];
        for row in &mut rows {
            row.workload = "idle".into();
            row.unit = "% of a CPU".into();
        }
        judge(&mut rows, Goal::Below(0.1));
        rows
    }

    #[test]
    fn the_overview_has_a_line_for_every_figure() {
        let mut all = rows();
        all.extend(idle(0.02));
        let mut lonely = row("flume", Standing::Peer, 60.0);
        lonely.workload = "nothing of ours".into();
        all.push(lonely);
        let expected = "\
best of ours and best peer
                           unit         ours  best peer              ratio
  queue: 1p1c, capacity 1  ns/message   50.0        100  crossbeam    0.50
  queue: idle              % of a CPU  0.020          0  flume      < 0.10
  queue: nothing of ours   ns/message      -       60.0  flume           -
";
        assert_eq!(overview(&all), expected);
        let lost: Vec<Row> = rows().drain(..3).collect();
        assert!(overview(&lost).ends_with("1.50  LOST\n"));
    }

    #[test]
    fn a_limit_that_is_not_kept_is_lost_by_its_own_figure() {
        let text = summary(&idle(0.5));
        let line = "  LOST  queue: idle: millpond is at 0.50, and must be below 0.10 % of a CPU\n";
        assert!(text.ends_with(line), "{text}");
    }

    #[test]
    fn times_keep_three_digits() {
        assert_eq!(
            [0.0, 0.001_23, 0.08, 0.5, 9.99, 9.996, 99.96, 12_345.6].map(time),
            [
                "0", "0.0012", "0.080", "0.50", "9.99", "10.0", "100", "12346"
            ]
        );
        assert_eq!(
            [-0.08, -12.34, -250.0].map(time),
            ["-0.080", "-12.3", "-250"]
        );
    }
}
