//! The page to read.
//!
//! One table per workload, the fastest first, then a summary. Rows of ours begin with `*`; those we
//! lose end in `LOST`. References begin with `.`, and the summary says why they are no peers.

use crate::report::Row;

const HEAD: [&str; 10] = [
    "", "median", "min", "max", "ratio", "allocs", "sleeps", "preempts", "cpu ns", "",
];

/// The table of one workload, ending in a newline.
pub fn workload(rows: &[Row]) -> String {
    let Some(first) = rows.first() else {
        return String::new();
    };
    let mut sorted: Vec<&Row> = rows.iter().collect();
    sorted.sort_by(|a, b| a.spread.median.total_cmp(&b.spread.median));
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

/// What the columns mean, ending in a newline.
pub const LEGEND: &str = "\
* ours   . shown for reference   ratio: median by that of the best peer
allocs, sleeps, preempts (or yields) and CPU time of all threads: per operation
";

/// What we lose and which candidates are no peers, in one line each; ending in a newline.
pub fn summary(rows: &[Row]) -> String {
    let ours = rows.iter().filter(|row| row.standing.is_ours()).count();
    let lost: Vec<&Row> = rows.iter().filter(|row| row.lost).collect();
    let kept = ours - lost.len();
    let mut text =
        format!("{kept} of {ours} rows of ours are at least as fast as the best peer.\n");
    for row in lost {
        let ratio = row.ratio_to_best_peer.unwrap_or(f64::NAN);
        let best = best_peer(rows, row).unwrap_or("the best peer");
        let (suite, workload, candidate) = (row.suite, &row.workload, row.candidate);
        text += &format!("  LOST  {suite}: {workload}: {candidate} takes {ratio:.2} x {best}\n");
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

/// Who `row` is measured by.
fn best_peer(rows: &[Row], row: &Row) -> Option<&'static str> {
    let rivals = rows.iter().filter(|other| {
        other.suite == row.suite && other.workload == row.workload && other.standing.is_peer()
    });
    let best = rivals.min_by(|a, b| a.spread.median.total_cmp(&b.spread.median));
    best.map(|row| row.candidate)
}

fn line(row: &Row) -> [String; 10] {
    let mark = match (row.standing.is_ours(), row.standing.is_peer()) {
        (true, _) => '*',
        (_, true) => ' ',
        _ => '.',
    };
    let used = &row.per_operation;
    [
        format!("{mark} {}", row.candidate),
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

/// Three digits or more, whatever the size.
fn time(nanos: f64) -> String {
    let digits = if nanos < 9.995 {
        2
    } else {
        usize::from(nanos < 99.95)
    };
    format!("{nanos:.digits$}")
}

fn share(value: Option<f64>) -> String {
    match value {
        None => "-".into(),
        Some(0.0) => "0".into(),
        Some(value) if value < 0.0005 => "<.001".into(),
        Some(value) => format!("{value:.3}"),
    }
}

/// Pads the cells of all rows to their columns: names to the left, numbers to the right.
fn columns<const N: usize>(rows: &[[String; N]]) -> Vec<String> {
    let widths: [usize; N] = std::array::from_fn(|column| {
        let width = |row: &[String; N]| row[column].chars().count();
        rows.iter().map(width).max().unwrap_or_default()
    });
    let pad = |(column, cell): (usize, &String)| {
        let width = widths[column];
        if column == 0 || column + 1 == N {
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
    use crate::harness::Standing;
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
        judge(&mut rows);
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
        assert_eq!(workload(&rows()), expected);
    }

    #[test]
    fn the_summary_names_every_row_we_lose_and_every_reference() {
        let expected = "\
1 of 2 rows of ours are at least as fast as the best peer.
  LOST  queue: 1p1c, capacity 1: millpond array takes 1.50 x crossbeam
  .     spinner: it spins where others sleep
";
        assert_eq!(summary(&rows()), expected);
    }

    #[test]
    fn no_rows_make_no_table() {
        assert_eq!(workload(&[]), "");
    }

    #[test]
    fn times_keep_three_digits() {
        assert_eq!(
            [0.5, 9.99, 9.996, 99.96, 12_345.6].map(time),
            ["0.50", "9.99", "10.0", "100", "12346"]
        );
    }
}
