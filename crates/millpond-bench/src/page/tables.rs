//! The figures in numbers: one row per candidate, a column for all that at least one of them has.

use super::bars::class;
use super::text::{count, escape, number};
use crate::record::{Row, Standing};
use crate::rush::Fates;
use crate::verdict::Verdict;
use std::fmt::Write;

/// A column: what stands over it, and what a row has there.
struct Column {
    head: &'static str,
    /// Its meaning.
    means: &'static str,
    cell: fn(&Row) -> Option<String>,
}

const fn column(head: &'static str, means: &'static str, cell: Cell) -> Column {
    Column { head, means, cell }
}

type Cell = fn(&Row) -> Option<String>;

/// The columns of a table, from left to right, after the candidate's name.
const COLUMNS: &[Column] = &[
    column("median", "the median of the rounds", |row| {
        Some(number(row.median))
    }),
    column("min", "the smallest round", |row| Some(number(row.min))),
    column("max", "the largest round", |row| Some(number(row.max))),
    column("ratio", "its median by that of the best peer", |row| {
        row.ratio_to_best_peer.map(number)
    }),
    column("limit", "what it must be below", |row| {
        row.limit.map(number)
    }),
    column(
        "p50 µs",
        "half of the single operations took no longer",
        |row| row.p50.map(number),
    ),
    column("p99", "99 of 100 took no longer", |row| row.p99.map(number)),
    column("p99.9", "999 of 1,000 took no longer", |row| {
        row.p999.map(number)
    }),
    column("slowest", "the longest single operation", |row| {
        row.max_single.map(number)
    }),
    column("allocs", "allocations per operation", |row| {
        row.per_operation.allocations.map(share)
    }),
    column("sleeps", "how often a thread slept, per operation", |row| {
        row.per_operation.sleeps.map(share)
    }),
    column(
        "preempts",
        "how often a thread lost or yielded its CPU, per operation",
        |row| row.per_operation.preemptions.map(share),
    ),
    column("cpu ns", "CPU time of all threads, per operation", |row| {
        row.per_operation.cpu_ns.map(number)
    }),
    column("rounds", "rounds that were counted", |row| {
        Some(count(row.rounds))
    }),
    column("operations", "operations in all rounds", |row| {
        (row.operations > 0).then(|| count(row.operations))
    }),
];

/// The table of one plot, the best first; along a curve by its points, and by workload on a ladder.
pub(super) fn figures(rows: &[&Row]) -> String {
    let mut sorted = rows.to_vec();
    let is_curve = rows.iter().any(|row| row.point().is_some());
    let is_one_workload = rows.iter().all(|row| row.workload == rows[0].workload);
    if is_curve || is_one_workload {
        let x = |row: &Row| row.x.unwrap_or_default();
        sorted.sort_by(|a, b| x(a).total_cmp(&x(b)).then(a.cmp_by_median(b)));
    }
    let has = |column: &&Column| rows.iter().any(|row| (column.cell)(row).is_some());
    let columns: Vec<&Column> = COLUMNS.iter().filter(has).collect();
    let mut html = String::from("<div class=\"scroll\"><table>\n<thead><tr>");
    if !is_one_workload {
        html += "<th class=\"word\">workload</th>";
    }
    html += "<th class=\"word\">candidate</th>";
    for column in &columns {
        let Column { head, means, .. } = column;
        let _ = write!(
            html,
            "<th title=\"{}\">{}</th>",
            escape(means),
            escape(head)
        );
    }
    html += "<th></th></tr></thead>\n<tbody>\n";
    for row in sorted {
        let _ = write!(html, "<tr class=\"{}\">", class(row));
        if !is_one_workload {
            let _ = write!(html, "<td class=\"word\">{}</td>", escape(&row.workload));
        }
        html += &name(row);
        for column in &columns {
            let cell = (column.cell)(row).unwrap_or_else(|| "-".into());
            let _ = write!(html, "<td>{}</td>", escape(&cell));
        }
        let mark = row.verdict.map_or("", Verdict::mark);
        let _ = writeln!(html, "<td class=\"mark\">{mark}</td></tr>");
    }
    html += "</tbody></table></div>\n";
    html
}

/// The fates of the tasks of a workload; nothing where they were not counted.
pub(super) fn fates(rows: &[&Row]) -> String {
    let counted = rows.iter().filter_map(|row| Some((row, row.fates?)));
    let counted: Vec<_> = counted.collect();
    if counted.is_empty() {
        return String::new();
    }
    let mut html = String::from(
        "<p class=\"unit\">what became of the tasks of all rounds</p>\n\
         <div class=\"scroll\"><table>\n<thead><tr><th class=\"word\">candidate</th>",
    );
    for head in Fates::NAMES {
        let _ = write!(html, "<th>{}</th>", escape(head));
    }
    html += "</tr></thead>\n<tbody>\n";
    for (row, fates) in counted {
        let _ = write!(html, "<tr class=\"{}\">{}", class(row), name(row));
        for number in fates.numbers() {
            let _ = write!(html, "<td>{}</td>", count(number));
        }
        html += "</tr>\n";
    }
    html += "</tbody></table></div>\n";
    html
}

fn name(row: &Row) -> String {
    let note = match row.standing {
        Standing::Reference => " <small>(reference)</small>",
        Standing::Ours | Standing::Peer => "",
    };
    format!(
        "<td class=\"word candidate\">{}{note}</td>",
        escape(&row.candidate)
    )
}

fn share(value: f64) -> String {
    match value {
        0.0 => "0".into(),
        value if value < 0.0005 => "< 0.001".into(),
        value => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Standing::{Ours, Peer};
    use crate::record::tests::row;

    #[test]
    fn the_table_has_the_columns_that_somebody_fills() {
        let timed = Row {
            p99: Some(71.5),
            verdict: Some(Verdict::Behind),
            lost: true,
            ..row("millpond", Ours, 90.0)
        };
        let kanal = row("kanal", Peer, 60.0);
        let html = figures(&[&timed, &kanal]);
        assert!(
            html.contains(">p99</th>") && !html.contains(">p99.9</th>"),
            "{html}"
        );
        assert!(
            html.contains("<td>71.5</td>") && html.contains("<td>-</td>"),
            "{html}"
        );
        assert!(
            html.find("kanal") < html.find("millpond"),
            "the best comes first"
        );
        assert_eq!(html.matches(">BEHIND<").count(), 1, "{html}");
    }

    #[test]
    fn fates_are_shown_where_they_were_counted() {
        let plain = row("kanal", Peer, 60.0);
        assert_eq!(fates(&[&plain]), "");
        let counted = Row {
            fates: Some(Fates {
                offered: 15_384,
                in_time: 15_384,
                ..Fates::default()
            }),
            ..row("millpond", Ours, 90.0)
        };
        let html = fates(&[&plain, &counted]);
        assert!(
            html.contains("<td>15,384</td>") && !html.contains("kanal"),
            "{html}"
        );
    }
}
