//! A curve as a table: a line for every point of the axis, a column for every candidate.

use super::columns::{Cells, columns};
use super::{name, time};
use crate::report::{Point, Row};

/// All curves among `rows`, in the order in which they begin; ending in a newline, if there is one.
pub(super) fn all(rows: &[Row]) -> String {
    let mut names: Vec<(&str, &str)> = Vec::new();
    for row in rows {
        if let Some(point) = &row.point {
            let name = (row.suite, point.curve.as_str());
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    let tables: Vec<String> = names.iter().map(|&name| curve(rows, name)).collect();
    tables.join("\n")
}

fn curve(rows: &[Row], (suite, curve): (&str, &str)) -> String {
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
    let mut cells = vec![head];
    for x in axis {
        let mut line = vec![time(x)];
        for known in &who {
            let here = points
                .iter()
                .find(|(row, point)| row.candidate == known.candidate && point.x == x);
            line.push(here.map_or("-".into(), |(row, _)| time(row.spread.median)));
        }
        let is_lost = points.iter().any(|(row, point)| row.lost && point.x == x);
        line.push(if is_lost { "LOST" } else { "" }.into());
        cells.push(line);
    }
    format!("{suite}: {curve}  ({})\n{}", first.unit, columns(&cells))
}
