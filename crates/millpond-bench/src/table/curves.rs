//! A curve as a table: a line for every point of the axis, a column for every candidate. Below it, where it is known,
//! the CPU time of an operation in the same form; once for all percentiles of the same operations.

use super::columns::{Cells, columns};
use super::{cpu, mark, name, time};
use crate::origin::Heading;
use crate::report::{Point, Row};

/// All curves among `rows`, in the order in which they begin; ending in a newline, if there is one.
pub(super) fn all(rows: &[Row], heading: Heading) -> String {
    let mut names: Vec<(&str, &str)> = Vec::new();
    for row in rows {
        if let Some(point) = &row.point {
            let name = (row.suite, point.curve.as_str());
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    let tables: Vec<String> = names
        .iter()
        .map(|&name| curve(rows, name, heading))
        .collect();
    tables.join("\n")
}

fn curve(rows: &[Row], (suite, curve): (&str, &str), heading: Heading) -> String {
    let on_it = |row: &'_ Row| {
        let point = row.point.clone()?;
        (row.suite == suite && point.curve == curve).then_some(point)
    };
    let points: Vec<(&Row, Point)> = rows
        .iter()
        .filter_map(|row| Some((row, on_it(row)?)))
        .collect();
    let Some((first, point)) = points.first() else {
        return String::new();
    };
    let mut axis: Vec<f64> = points.iter().map(|(_, point)| point.x).collect();
    axis.sort_unstable_by(f64::total_cmp);
    axis.dedup();
    let mut who: Vec<&Row> = Vec::new();
    for (row, _) in &points {
        if who.iter().all(|known| known.candidate != row.candidate) {
            who.push(row);
        }
    }
    let mut head: Cells = vec![point.axis.to_owned()];
    head.extend(who.iter().map(|row| name(row).trim().to_owned()));
    // The last column is for marks.
    head.push(String::new());
    let table = |cell: fn(&Row) -> String, is_judged: bool| {
        let mut cells = vec![head.clone()];
        for &x in &axis {
            let mut line = vec![time(x)];
            for known in &who {
                let here = points
                    .iter()
                    .find(|(row, point)| row.candidate == known.candidate && point.x == x);
                line.push(here.map_or("-".into(), |(row, _)| cell(row)));
            }
            let here = points
                .iter()
                .filter(|(row, point)| row.verdict.is_some() && point.x == x);
            let worst = here.max_by_key(|(row, _)| row.verdict);
            line.push(
                worst
                    .filter(|_| is_judged)
                    .map_or("", |(row, _)| mark(row))
                    .into(),
            );
            cells.push(line);
        }
        columns(&cells)
    };
    let (unit, better, end) = (&first.unit, first.better.words(), heading.text());
    let medians = table(|row| time(row.spread.median), true);
    let mut text = format!("{suite}: {curve}  ({unit}, {better}{end})\n{medians}");
    let is_first = first.percentiles.p50.is_none() || curve.ends_with("p50");
    let is_known = points
        .iter()
        .any(|(row, _)| row.per_operation.cpu_ns.is_some());
    if is_first && is_known {
        let used = table(cpu, false);
        text += &format!("{suite}: {curve}: CPU time  (ns/operation, less is better{end})\n{used}");
    }
    text
}
