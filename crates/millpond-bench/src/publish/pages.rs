//! The parts of README and `docs/compare.md` that are made of the published figures.
//!
//! A part stands between two comments, `<!-- figures: NAME -->` and `<!-- end of figures -->`. It is never written by hand: the
//! test `figures` of this crate compares it with the file, and writes it anew with `MILLPOND_RENEW=1`.
//!
//! README names every row of ours that is behind, in every condition; a curve is named once, with the number of its points.

use crate::condition::Condition;
use crate::figure::Better;
use crate::record::{Record, Row, best};
use crate::table::time;
use crate::verdict::Verdict;
use anyhow::{Context, Result};
use std::fmt::Write;
use std::path::Path;

/// Makes a part of a page.
type Part = fn(&Record) -> String;

/// The parts: the page, the name, and what makes it.
pub const PARTS: &[(&str, &str, Part)] = &[
    ("README.md", "how fast", how_fast),
    ("docs/compare.md", "tables", tables),
];

const END: &str = "<!-- end of figures -->";

/// `page` with the part `name` replaced by `part`.
///
/// # Errors
///
/// If the page has no such part, or it does not end.
pub fn with_part(page: &str, name: &str, part: &str) -> Result<String> {
    let begin = format!("<!-- figures: {name} -->");
    let (before, rest) = page
        .split_once(&begin)
        .with_context(|| format!("there is no line {begin}"))?;
    let (_, after) = rest
        .split_once(END)
        .with_context(|| format!("{begin} is not followed by {END}"))?;
    Ok(format!(
        "{before}{begin}\n{}\n{END}{after}",
        part.trim_end()
    ))
}

/// The pages of the repository as they should be: path, text, and text as it is.
///
/// # Errors
///
/// If one cannot be read, or has no place for its part.
pub fn all(root: &Path, record: &Record) -> Result<Vec<(std::path::PathBuf, String, String)>> {
    let page = |&(file, name, part): &(&str, &str, Part)| {
        let path = root.join(file);
        let is = std::fs::read_to_string(&path).with_context(|| format!("cannot read {file}"))?;
        let should = with_part(&is, name, &part(record)).with_context(|| file.to_owned())?;
        Ok((path, should, is))
    };
    PARTS.iter().map(page).collect()
}

/// Rows that README shows, in quiet and busy: what most people ask first. Suite and row.
pub const SHOWN: &[(&str, &str)] = &[
    ("pool", "fire and forget, unbounded, 1 producer"),
    ("pool", "fire and forget, unbounded, 4 producers"),
    ("pool", "bound 1024, blocking, 1 producer"),
    ("pool", "submit 1000, join all"),
    ("pool", "round trip, warm: p50"),
    ("pool", "round trip, warm: p99"),
    ("pool", "round trip, 50µs pauses: p50"),
    ("pool", "round trip, 50µs pauses: p99"),
    ("elastic", "a task of 1ms every 2ms: p99"),
    (
        "scheduled",
        "schedule and cancel, a million pending (quick: 100,000)",
    ),
    ("scheduled", "100000 due in a second, lateness: p50"),
    ("scheduled", "100000 due in a second, lateness: p99"),
    ("overload", "150 % of the peak: goodput"),
];

/// Candidates in other languages begin with one of these words.
const ELSEWHERE: &[&str] = &["Java", "Go", "Python", "C#"];

/// README, "How fast".
pub fn how_fast(record: &Record) -> String {
    let mut text = source(record);
    text += "\n\nHow many rows of ours are ahead of the best peer, in Rust, Java, Go, Python or C#, level with it within \
             noise, or behind, by [a rule](docs/measuring.md#verdicts) that errs against us:\n\n";
    text += "| suite | quiet | busy | one CPU |\n|---|---|---|---|\n";
    for suite in suites(record) {
        let cells = Condition::ALL.map(|condition| counts(record, suite, condition));
        let _ = writeln!(text, "| {suite} | {} |", cells.join(" | "));
    }
    let newer = newer(record);
    if !newer.is_empty() {
        let _ = writeln!(
            text,
            "\nNot measured then, because it is newer: {}.",
            newer.join(", ")
        );
    }
    text += "\nSome of them, with the CPU time of an operation in brackets, in ns:\n\n";
    text += "| | quiet: millpond | best in Rust | best of all | busy: millpond | best of all |\n|---|---|---|---|---|---|\n";
    for &(suite, workload) in SHOWN {
        text += &shown(record, suite, workload).unwrap_or_default();
    }
    text += "\n";
    text += &losses(record);
    let left_out: Vec<_> = record
        .origin
        .iter()
        .flat_map(|origin| &origin.guests)
        .collect();
    let mut names: Vec<&str> = left_out
        .iter()
        .filter(|guest| guest.left_out.is_some())
        .map(|guest| guest.name.as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    if !names.is_empty() {
        let _ = writeln!(
            text,
            "\nNot measured, because they were not there: {}.",
            names.join(", ")
        );
    }
    text
}

/// Where the figures come from, in a paragraph.
fn source(record: &Record) -> String {
    let machine = &record.machine;
    let model = machine.cpu_model.as_deref().unwrap_or("unknown CPU");
    let (cpus, kernel) = (
        machine.effective_cpus,
        machine.kernel.as_deref().unwrap_or("unknown"),
    );
    let mut text = match &record.published {
        Some(published) => {
            let (processes, date) = (published.processes, day(&published.dates.0));
            format!("Medians of {processes} processes on {date}")
        }
        None => "One run".into(),
    };
    let is_virtual = if machine.hypervisor == Some(true) {
        " virtual"
    } else {
        ""
    };
    let _ = write!(
        text,
        ", on {cpus}{is_virtual} CPUs of an {model}, Linux {kernel}"
    );
    if let Some(origin) = &record.origin {
        let commit = origin.sources.commit.as_deref().unwrap_or("unknown");
        let commit = commit.get(..12).unwrap_or(commit);
        let rustc = origin.rustc.split(" (").next().unwrap_or_default();
        let rounds: Vec<u64> = record.rows.iter().map(|row| row.rounds).collect();
        let (least, most) = (rounds.iter().min(), rounds.iter().max());
        let _ = write!(
            text,
            ", commit {commit}, {rustc}, {} to {} rounds of {} ms a row in all",
            least.unwrap_or(&0),
            most.unwrap_or(&0),
            origin.round_millis
        );
    }
    text += ". Metrics of every task are kept. Busy is beside an endless loop at nice 19 for each CPU; on one CPU everything \
             shares it. All figures, with versions and flags: [figures.json](";
    text + FIGURES + ")."
}

/// Seen from README; `docs/compare.md` says it its own way.
const FIGURES: &str = "docs/figures/figures.json";

/// The day of a date with a time.
fn day(date: &str) -> &str {
    date.split(' ').next().unwrap_or(date)
}

fn suites(record: &Record) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for row in record.rows.iter().filter(|row| row.verdict.is_some()) {
        if !names.contains(&row.suite.as_str()) {
            names.push(&row.suite);
        }
    }
    names
}

fn counts(record: &Record, suite: &str, condition: Condition) -> String {
    let here = |row: &&Row| row.suite == suite && row.in_condition() == condition;
    let words = Verdict::ALL.map(|verdict| {
        let is_it = |row: &&Row| row.verdict == Some(verdict);
        (
            record.rows.iter().filter(here).filter(is_it).count(),
            verdict,
        )
    });
    let words = words.iter().filter(|(count, _)| *count > 0);
    let words: Vec<String> = words
        .map(|(count, verdict)| format!("{count} {verdict}"))
        .collect();
    if words.is_empty() {
        "-".into()
    } else {
        words.join(", ")
    }
}

/// The rows beside each other, of one figure in one condition.
fn beside<'a>(
    record: &'a Record,
    suite: &str,
    workload: &str,
    condition: Condition,
) -> Vec<&'a Row> {
    let is_here = |row: &&Row| {
        row.suite == suite && row.workload == workload && row.in_condition() == condition
    };
    record.rows.iter().filter(is_here).collect()
}

fn shown(record: &Record, suite: &str, workload: &str) -> Option<String> {
    let quiet = beside(record, suite, workload, Condition::Quiet);
    let busy = beside(record, suite, workload, Condition::Busy);
    let first = quiet.first()?;
    let (unit, better) = (&first.unit, first.better.words());
    let ours = |rows: &[&Row]| {
        rows.iter()
            .find(|row| row.is_ours())
            .map(|row| figure(row, true))
    };
    let peer = |rows: &[&Row], is_in_rust: bool| {
        let is_here = |name: &str| ELSEWHERE.iter().any(|word| name.starts_with(word));
        let peers = rows.iter().copied().filter(|row| row.is_peer());
        let found = best(peers.filter(|row| !is_in_rust || !is_here(&row.candidate)));
        found.map(|row| format!("{} {}", plain(&row.candidate), figure(row, true)))
    };
    let cells = [
        ours(&quiet),
        peer(&quiet, true),
        peer(&quiet, false),
        ours(&busy),
        peer(&busy, false),
    ];
    let cells = cells.map(|cell| cell.unwrap_or_else(|| "-".into()));
    Some(format!(
        "| {}, {unit}, {better} | {} |\n",
        plain(workload),
        cells.join(" | ")
    ))
}

/// A median, and the CPU time of an operation.
fn figure(row: &Row, has_cpu: bool) -> String {
    let cpu = row.per_operation.cpu_ns.filter(|_| has_cpu);
    let cpu = cpu.map_or(String::new(), |nanos| format!(" ({})", time(nanos)));
    format!("{}{cpu}", time(row.median))
}

/// The suites that were added after the figures were published.
fn newer(record: &Record) -> Vec<&'static str> {
    let names = crate::workloads::SUITES.iter().map(|suite| suite.name);
    names
        .filter(|name| !record.rows.iter().any(|row| row.suite == *name))
        .collect()
}

/// Every row in which we are behind, folded: there are more of them than anybody reads at first sight.
fn losses(record: &Record) -> String {
    let mut text = String::new();
    let mut rows = 0;
    for suite in suites(record) {
        let mut seen: Vec<(&str, &str)> = Vec::new();
        let lost = record
            .rows
            .iter()
            .filter(|row| row.lost && row.suite == suite);
        for row in lost {
            let name = row.curve.as_deref().unwrap_or(&row.workload);
            if seen.contains(&(name, &row.candidate)) {
                continue;
            }
            seen.push((name, &row.candidate));
            let who = if row.candidate == "millpond" {
                String::new()
            } else {
                format!(" ({})", plain(&row.candidate))
            };
            let cells = Condition::ALL.map(|condition| loss(record, row, condition));
            let cells = cells.map(Option::unwrap_or_default);
            let _ = writeln!(
                text,
                "| {suite} | {}{who} | {} |",
                plain(name),
                cells.join(" | ")
            );
            rows += 1;
        }
    }
    if rows == 0 {
        return "We are behind in no row.\n".into();
    }
    format!(
        "<details>\n<summary>Every row in which we are behind, {rows} of them</summary>\n\nA cell is the multiple of \
         the best peer's figure, and that peer; of a curve it is the worst point that is behind, and how many are. An \
         empty cell is a row in which we are not behind.\n\n| suite | row | quiet | busy | one CPU |\n\
         |---|---|---|---|---|\n{text}\n</details>\n"
    )
}

/// How `of` is behind in a condition, at all points of its curve if it is one; `None` if it is not.
fn loss(record: &Record, of: &Row, condition: Condition) -> Option<String> {
    let is_same = |row: &&Row| {
        let name = |row: &Row| row.curve.clone().unwrap_or_else(|| row.workload.clone());
        row.suite == of.suite
            && row.candidate == of.candidate
            && row.in_condition() == condition
            && name(row) == name(of)
    };
    let all: Vec<&Row> = record
        .rows
        .iter()
        .filter(is_same)
        .filter(|row| row.verdict.is_some())
        .collect();
    let lost: Vec<&&Row> = all.iter().filter(|row| row.lost).collect();
    // The worst of them.
    let badness = |row: &Row| {
        let ratio = row.ratio_to_best_peer.unwrap_or(1.0).max(1e-9);
        if row.better == Better::Less {
            ratio
        } else {
            ratio.recip()
        }
    };
    let worst = lost
        .iter()
        .max_by(|a, b| badness(a).total_cmp(&badness(b)))?;
    if let Some(limit) = worst.limit {
        return Some(format!(
            "{} and not below {}",
            time(worst.median),
            time(limit)
        ));
    }
    let ratio = worst.ratio_to_best_peer?;
    let rival = rival(record, worst).map_or("the best peer", |row| &row.candidate);
    let points = if of.curve.is_some() {
        format!(", {} of {} points", lost.len(), all.len())
    } else {
        String::new()
    };
    Some(format!("{ratio:.2} × {}{points}", plain(rival)))
}

/// The best peer of a row.
fn rival<'a>(record: &'a Record, of: &Row) -> Option<&'a Row> {
    let is_beside = |row: &&Row| {
        row.suite == of.suite
            && row.workload == of.workload
            && row.in_condition() == of.in_condition()
            && row.point() == of.point()
            && row.is_peer()
    };
    best(record.rows.iter().filter(is_beside))
}

/// `docs/compare.md`: every row of ours that has a goal.
pub fn tables(record: &Record) -> String {
    let mut text = source(record).replace("](docs/figures/", "](figures/");
    text += " A cell is ours, then the best peer's, their ratio and the verdict; in brackets the smallest and the largest \
             median of a process, and the CPU time of an operation in ns. Rows without a goal are in the file only.\n";
    for suite in suites(record) {
        let _ = write!(
            text,
            "\n### {suite}\n\n| | quiet | busy | one CPU |\n|---|---|---|---|\n"
        );
        let mut seen: Vec<String> = Vec::new();
        for row in record
            .rows
            .iter()
            .filter(|row| row.suite == suite && row.verdict.is_some())
        {
            let name = name(row);
            if seen.contains(&name) {
                continue;
            }
            let cells = Condition::ALL.map(|condition| cell(record, row, condition));
            let _ = writeln!(text, "| {name} | {} |", cells.join(" | "));
            seen.push(name);
        }
    }
    text
}

fn name(row: &Row) -> String {
    let at = row.x.map_or(String::new(), |x| match &row.curve {
        Some(curve) if !row.workload.contains(&time(x)) => format!(" ({} at {})", curve, time(x)),
        _ => String::new(),
    });
    let who = if row.candidate == "millpond" {
        String::new()
    } else {
        format!(", {}", row.candidate)
    };
    plain(&format!(
        "{}{at}{who}: {}, {}",
        row.workload,
        row.unit,
        row.better.words()
    ))
}

fn cell(record: &Record, of: &Row, condition: Condition) -> String {
    let is_it = |row: &&Row| {
        name(row) == name(of)
            && row.suite == of.suite
            && row.in_condition() == condition
            && row.verdict.is_some()
    };
    let Some(ours) = record.rows.iter().find(is_it) else {
        return "-".into();
    };
    let verdict = ours
        .verdict
        .map_or(String::new(), |verdict| verdict.to_string());
    if let Some(limit) = ours.limit {
        return format!(
            "{} (must be below {}), {verdict}",
            time(ours.median),
            time(limit)
        );
    }
    let (Some(rival), Some(ratio)) = (rival(record, ours), ours.ratio_to_best_peer) else {
        return time(ours.median);
    };
    let verdict = if ours.lost {
        format!("*{verdict}*")
    } else {
        verdict
    };
    format!(
        "{}; {} {}; {ratio:.2} {verdict}",
        detail(ours),
        plain(&rival.candidate),
        detail(rival)
    )
}

/// A median, how far processes spread, and CPU time.
fn detail(row: &Row) -> String {
    let cpu = row
        .per_operation
        .cpu_ns
        .map_or(String::new(), |nanos| format!(", CPU {}", time(nanos)));
    format!(
        "{} ({} to {}{cpu})",
        time(row.median),
        time(row.min),
        time(row.max)
    )
}

/// A name in a table of Markdown.
fn plain(name: &str) -> String {
    name.replace('|', "\\|")
        .replace('*', "\\*")
        .replace('_', "\\_")
        .replace('<', "&lt;")
}
