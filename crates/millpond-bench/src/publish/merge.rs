//! Many files of figures become one.
//!
//! The median of a row is that of the medians of its processes, its smallest and largest are the smallest and largest of
//! these medians, and the verdict is of them: see [`crate::verdict`]. Percentiles and CPU time are medians, too; rounds, operations
//! and fates are sums.

use crate::condition::Condition;
use crate::record::{Record, Row, best};
use crate::report::PerOperation;
use crate::stats::Spread;
use crate::verdict::{self, Verdict};
use crate::workloads::SUITES;
use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::{Number, Value};

/// Merges them.
///
/// # Errors
///
/// If there are none, or they are of different commits.
pub fn merge(records: &[Record]) -> Result<Record> {
    let first = records.first().context("there are no figures to merge")?;
    let commit = |record: &Record| record.origin.as_ref().map(|origin| origin.sources.clone());
    ensure!(
        records.iter().all(|record| commit(record) == commit(first)),
        "these figures are of different commits"
    );
    let mut groups: Vec<Vec<&Row>> = Vec::new();
    let mut places = std::collections::BTreeMap::new();
    for row in records.iter().flat_map(|record| &record.rows) {
        let place = *places.entry(key(row)).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        groups[place].push(row);
    }
    let mut rows: Vec<Row> = groups.iter().filter_map(|group| one(group)).collect();
    let rank = |row: &Row| SUITES.iter().position(|suite| suite.name == row.suite);
    // The order within a suite stays.
    rows.sort_by_key(|row| (rank(row), row.in_condition()));
    judge(&mut rows);
    let mut record = Record {
        rows,
        ..first.clone()
    };
    for other in &records[1..] {
        let guests = other.origin.iter().flat_map(|origin| &origin.guests);
        if let Some(origin) = &mut record.origin {
            let missing: Vec<_> = guests
                .filter(|guest| !origin.guests.contains(guest))
                .cloned()
                .collect();
            origin.guests.extend(missing);
        }
        let new = other
            .notes
            .iter()
            .filter(|note| !record.notes.contains(note));
        let new: Vec<String> = new.cloned().collect();
        record.notes.extend(new);
        let new = other
            .left_out
            .iter()
            .filter(|one| !record.left_out.contains(one));
        let new: Vec<_> = new.cloned().collect();
        record.left_out.extend(new);
    }
    record.machine.condition = Condition::Quiet;
    let steals = records
        .iter()
        .filter_map(|record| record.machine.steal_percent);
    record.machine.steal_percent =
        Spread::of(&steals.collect::<Vec<_>>()).map(|spread| spread.median);
    Ok(record)
}

/// Rows with the same key are the same row, of different processes.
fn key(row: &Row) -> (Condition, [String; 5], Option<u64>) {
    let words = [&row.suite, &row.workload, &row.candidate, &row.unit].map(Clone::clone);
    let [suite, workload, candidate, unit] = words;
    let curve = row.curve.clone().unwrap_or_default();
    (
        row.in_condition(),
        [suite, workload, candidate, unit, curve],
        row.x.map(f64::to_bits),
    )
}

/// The row of all processes.
fn one(rows: &[&Row]) -> Option<Row> {
    let first = *rows.first()?;
    let values: Vec<f64> = rows.iter().map(|row| row.median).collect();
    let spread = Spread::of(&values)?;
    let median = |of: &dyn Fn(&Row) -> Option<f64>| {
        let known: Vec<f64> = rows.iter().filter_map(|row| of(row)).collect();
        Spread::of(&known).map(|spread| spread.median)
    };
    let slowest = rows
        .iter()
        .filter_map(|row| row.max_single)
        .max_by(f64::total_cmp);
    let fates: Option<Vec<_>> = rows.iter().map(|row| row.fates).collect();
    // What one process could not judge, for want of a peer, another could.
    let judged = rows
        .iter()
        .find(|row| row.has_goal())
        .copied()
        .unwrap_or(first);
    Some(Row {
        median: spread.median,
        min: spread.min,
        max: spread.max,
        values,
        p50: median(&|row| row.p50),
        p99: median(&|row| row.p99),
        p999: median(&|row| row.p999),
        max_single: slowest,
        rounds: rows.iter().map(|row| row.rounds).sum(),
        operations: rows.iter().map(|row| row.operations).sum(),
        per_operation: PerOperation {
            allocations: median(&|row| row.per_operation.allocations),
            sleeps: median(&|row| row.per_operation.sleeps),
            preemptions: median(&|row| row.per_operation.preemptions),
            cpu_ns: median(&|row| row.per_operation.cpu_ns),
        },
        fates: fates.map(|all| all.into_iter().sum()),
        ratio_to_best_peer: judged.ratio_to_best_peer,
        limit: judged.limit,
        verdict: None,
        lost: false,
        ..first.clone()
    })
}

/// Judges every row of ours anew, by the medians of the processes.
fn judge(rows: &mut [Row]) {
    let place = |row: &Row| {
        let (condition, words, x) = key(row);
        let [suite, workload, _, _, curve] = words;
        (condition, suite, workload, curve, x)
    };
    let peers: Vec<Row> = rows.iter().filter(|row| row.is_peer()).cloned().collect();
    let mut by_place = std::collections::BTreeMap::<_, Vec<&Row>>::new();
    for peer in &peers {
        by_place.entry(place(peer)).or_default().push(peer);
    }
    for row in rows.iter_mut().filter(|row| row.has_goal()) {
        let rival = by_place
            .get(&place(row))
            .and_then(|peers| best(peers.iter().copied()));
        let verdict = match (row.limit, rival) {
            (Some(limit), _) if row.median < limit => Verdict::Ahead,
            (Some(_), _) => Verdict::Behind,
            (None, Some(rival)) => {
                row.ratio_to_best_peer = Some(row.median / rival.median);
                verdict::between(&row.values, &rival.values, row.better)
            }
            (None, None) => continue,
        };
        row.verdict = row.is_ours().then_some(verdict);
        row.lost = row.verdict == Some(Verdict::Behind);
    }
}

/// The file: a line for each row, four digits for each number, so that a change of one row is a change of one line.
///
/// # Errors
///
/// If a figure is no number.
pub fn text(record: &Record) -> Result<String> {
    #[derive(Serialize)]
    struct Head<'a> {
        machine: &'a crate::machine::Surroundings,
        origin: &'a Option<crate::origin::Origin>,
        published: &'a Option<crate::record::Published>,
        notes: &'a [String],
        left_out: &'a [crate::report::LeftOutFact],
    }
    let head = serde_json::to_string_pretty(&Head {
        machine: &record.machine,
        origin: &record.origin,
        published: &record.published,
        notes: &record.notes,
        left_out: &record.left_out,
    })?;
    let head = head.trim_end().trim_end_matches('}').trim_end();
    let mut lines = Vec::new();
    for row in &record.rows {
        let mut value = serde_json::to_value(row)?;
        round(&mut value);
        lines.push(serde_json::to_string(&value)?);
    }
    Ok(format!(
        "{head},\n  \"rows\": [\n{}\n  ]\n}}\n",
        lines.join(",\n")
    ))
}

/// Numbers with more than four digits are not known as exactly.
fn round(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let exact = number.as_f64().unwrap_or_default();
            let rounded = format!("{exact:.3e}")
                .parse()
                .ok()
                .and_then(Number::from_f64);
            *number = rounded.unwrap_or_else(|| number.clone());
        }
        Value::Array(values) => values.iter_mut().for_each(round),
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(round);
        }
        _ => {}
    }
}
