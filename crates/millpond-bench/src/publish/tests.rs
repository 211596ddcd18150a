use super::*;
use crate::condition::Condition;
use crate::harness::{Pace, Settings};
use crate::origin::Run;
use crate::record::tests::{record, row};
use crate::record::{Row, Standing};
use crate::verdict::Verdict;
use std::cell::RefCell;

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// The figures of a process: ours and a peer's.
fn figures(condition: Condition, process: u64, medians: [f64; 2]) -> Record {
    let [ours, peer] = medians;
    let mut rows = vec![
        row("millpond", Standing::Ours, ours),
        row("kanal", Standing::Peer, peer),
    ];
    for row in &mut rows {
        row.ratio_to_best_peer = Some(row.median / peer);
        row.condition = Some(condition);
        row.suite = "task".into();
    }
    let pace = Pace {
        seed: process,
        ..Pace::of(Settings::QUICK)
    };
    let mut origin = Origin::read(Run::Budget, &pace, condition, false);
    origin.sources = Sources {
        commit: Some(COMMIT.into()),
        is_dirty: Some(false),
        is_stale: Some(false),
    };
    origin.date = format!("2026-11-18 05:0{process}");
    Record {
        origin: Some(origin),
        seconds: Some(60.0),
        ..record(rows)
    }
}

fn three(condition: Condition, ours: [f64; 3], peer: [f64; 3]) -> Vec<Record> {
    let each = |index: usize| figures(condition, index as u64 + 1, [ours[index], peer[index]]);
    (0..3).map(each).collect()
}

fn ours(record: &Record) -> &Row {
    record.rows.iter().find(|row| row.is_ours()).unwrap()
}

#[test]
fn a_merged_row_is_the_median_of_the_medians_and_is_judged_by_them() {
    let merged = merge::merge(&three(
        Condition::Quiet,
        [30.0, 90.0, 40.0],
        [50.0, 50.0, 50.0],
    ))
    .unwrap();
    let row = ours(&merged);
    assert_eq!((row.median, row.min, row.max), (40.0, 30.0, 90.0));
    assert_eq!(row.values, [30.0, 90.0, 40.0]);
    assert_eq!(row.ratio_to_best_peer, Some(0.8));
    assert_eq!(row.rounds, 30);
    // One process of three says the opposite.
    assert_eq!(row.verdict, Some(Verdict::Level));
    let merged = merge::merge(&three(
        Condition::Quiet,
        [60.0, 90.0, 70.0],
        [50.0, 50.0, 50.0],
    ))
    .unwrap();
    assert_eq!(ours(&merged).verdict, Some(Verdict::Behind));
    assert!(ours(&merged).lost);
    let merged = merge::merge(&three(
        Condition::Quiet,
        [30.0, 35.0, 40.0],
        [50.0, 50.0, 50.0],
    ))
    .unwrap();
    assert_eq!(ours(&merged).verdict, Some(Verdict::Ahead));
}

#[test]
fn conditions_stay_apart_and_a_limit_stays_a_limit() {
    let mut all = three(Condition::Quiet, [30.0; 3], [50.0; 3]);
    let mut busy = three(Condition::Busy, [80.0; 3], [50.0; 3]);
    for record in &mut busy {
        record.rows[0].limit = Some(81.0);
        record.rows[0].ratio_to_best_peer = None;
    }
    all.extend(busy);
    let merged = merged(&all).unwrap();
    assert_eq!(merged.rows.len(), 4);
    assert_eq!(merged.verdicts(), [2, 0, 0]);
    let published = merged.published.unwrap();
    assert_eq!((published.processes, published.minutes), (3, 6));
    assert_eq!(published.dates.0, "2026-11-18 05:01");
    assert_eq!(published.dates.1, "2026-11-18 05:03");
}

#[test]
fn figures_of_different_commits_are_not_merged() {
    let mut all = three(Condition::Quiet, [30.0; 3], [50.0; 3]);
    all[1].origin.as_mut().unwrap().sources.commit = Some("another".into());
    let error = merge::merge(&all).unwrap_err().to_string();
    assert_eq!(error, "these figures are of different commits");
    assert!(merge::merge(&[]).is_err());
}

#[test]
fn the_file_has_a_line_for_each_row_and_is_read_back() {
    let all = three(Condition::Busy, [30.123_456; 3], [50.0; 3]);
    let record = merged(&all).unwrap();
    let text = merge::text(&record).unwrap();
    assert_eq!(
        text.lines().filter(|line| line.starts_with("{\"")).count(),
        2,
        "{text}"
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(FILE);
    fs::write(&file, &text).unwrap();
    let read = Record::read(&file).unwrap();
    assert_eq!(ours(&read).median, 30.12);
    assert_eq!(read.rows.len(), 2);
    assert_eq!(
        (&read.origin, &read.published),
        (&record.origin, &record.published)
    );
    assert_eq!(
        merge::text(&read).unwrap(),
        text,
        "the same figures are the same file"
    );
}

fn plan(processes: u64) -> Plan {
    Plan::new(&["task".into()], processes, Duration::from_secs(60))
}

/// Measures nothing: writes figures, and notes which.
fn noted<'a>(log: &'a RefCell<Vec<String>>) -> impl Fn(&Part, &Path) -> Result<()> + 'a {
    |part, file| {
        log.borrow_mut().push(part.name());
        let record = figures(part.condition, part.process, [30.0, 50.0]);
        Ok(fs::write(file, merge::text(&record)?)?)
    }
}

#[test]
fn what_was_measured_is_not_measured_again() {
    let folder = tempfile::tempdir().unwrap();
    let (log, mut out) = (RefCell::default(), Vec::new());
    let all = complete(&plan(2), COMMIT, folder.path(), &mut out, noted(&log)).unwrap();
    assert_eq!(all.len(), 6);
    let first = [
        "task.quiet.1",
        "task.busy.1",
        "task.one-cpu.1",
        "task.quiet.2",
    ];
    assert_eq!(log.borrow()[..4], first);
    // One is lost, one is broken, one is of another commit; and a third process is wanted.
    fs::remove_file(folder.path().join("task.busy.1.json")).unwrap();
    fs::write(folder.path().join("task.quiet.1.json"), "{").unwrap();
    let mut other = figures(Condition::OneCpu, 2, [1.0, 2.0]);
    other.origin.as_mut().unwrap().sources.commit = Some("another".into());
    fs::write(
        folder.path().join("task.one-cpu.2.json"),
        merge::text(&other).unwrap(),
    )
    .unwrap();
    log.borrow_mut().clear();
    let all = complete(&plan(3), COMMIT, folder.path(), &mut out, noted(&log)).unwrap();
    assert_eq!(all.len(), 9);
    let again = [
        "task.quiet.1",
        "task.busy.1",
        "task.one-cpu.2",
        "task.quiet.3",
        "task.busy.3",
        "task.one-cpu.3",
    ];
    assert_eq!(log.borrow()[..], again);
    let text = String::from_utf8(out).unwrap();
    assert!(
        text.contains("3 of 9 processes were measured before\n"),
        "{text}"
    );
    assert!(
        text.contains("[9/9] task.one-cpu.3: 0 s; about 0 min left\n"),
        "{text}"
    );
}

#[test]
fn a_process_that_fails_is_named_the_others_are_measured_and_nothing_is_published() {
    let folder = tempfile::tempdir().unwrap();
    let (log, mut out) = (RefCell::default(), Vec::new());
    let write = noted(&log);
    let measure = |part: &Part, file: &Path| {
        ensure!(part.name() != "task.busy.1", "it hung");
        write(part, file)
    };
    let error = complete(&plan(1), COMMIT, folder.path(), &mut out, measure).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("1 of 3 processes failed (task.busy.1)"),
        "{error}"
    );
    assert_eq!(log.borrow()[..], ["task.quiet.1", "task.one-cpu.1"]);
    assert!(
        String::from_utf8(out)
            .unwrap()
            .contains("task.busy.1: FAILED: it hung")
    );
}

#[test]
fn only_the_sources_of_a_commit_are_published() {
    let clean = Sources {
        commit: Some(COMMIT.into()),
        is_dirty: Some(false),
        is_stale: Some(false),
    };
    assert_eq!(publishable(&clean).unwrap(), COMMIT);
    let dirty = Sources {
        is_dirty: Some(true),
        ..clean.clone()
    };
    assert!(
        publishable(&dirty)
            .unwrap_err()
            .to_string()
            .contains("commit them first")
    );
    let stale = Sources {
        is_stale: Some(true),
        ..clean
    };
    assert!(
        publishable(&stale)
            .unwrap_err()
            .to_string()
            .contains("build it anew")
    );
    assert!(publishable(&Sources::default()).is_err());
}

#[test]
fn the_time_is_divided_among_all_candidates_of_all_processes() {
    let plan = Plan {
        suites: vec![("task", 10), ("queue", 30)],
        processes: 3,
        time: Duration::from_secs(360),
    };
    let (each, round) = plan.budget();
    assert_eq!(
        (each, round),
        (Duration::from_secs(1), Duration::from_secs(1) / 12)
    );
    assert_eq!(plan.parts().len(), 18);
    let parts = plan.parts();
    let words = plan.arguments(&parts[0]);
    assert_eq!(
        words,
        [
            "task",
            "--condition=quiet",
            "--seed=1",
            "--budget=1000",
            "--round=83"
        ]
    );
    assert_eq!(
        plan.arguments(&parts[2]).last().unwrap(),
        "--no-allocations"
    );
    // A suite that took long once takes as long again.
    let left: Vec<&Part> = parts[1..].iter().take(2).collect();
    let took = [(&parts[0], Duration::from_secs(25))];
    assert_eq!(plan.left(&took, &left), Duration::from_secs(30 + 25));
}

fn published() -> Record {
    let mut all = three(Condition::Quiet, [30.0; 3], [50.0; 3]);
    all.extend(three(Condition::Busy, [80.0; 3], [50.0; 3]));
    all.extend(three(Condition::OneCpu, [50.0; 3], [50.0; 3]));
    merged(&all).unwrap()
}

#[test]
fn readme_names_every_loss_and_counts_the_rest() {
    let text = pages::how_fast(&published());
    assert!(
        text.contains("| task | 1 ahead | 1 behind | 1 level |\n"),
        "{text}"
    );
    assert!(
        text.contains("| task | burst |  | 1.60 × kanal |  |\n"),
        "{text}"
    );
    assert!(
        text.contains("Medians of 3 processes on 2026-11-18"),
        "{text}"
    );
    assert!(text.contains("commit 0123456789ab"), "{text}");
}

#[test]
fn a_curve_that_is_lost_is_named_once_with_its_points() {
    let mut record = published();
    for row in &mut record.rows {
        row.curve = Some("time against load: p99".into());
        row.x = Some(1.0);
    }
    let mut second = record.rows.clone();
    for row in &mut second {
        row.x = Some(2.0);
        row.lost = false;
    }
    record.rows.extend(second);
    let text = pages::how_fast(&record);
    let line = "| task | time against load: p99 |  | 1.60 × kanal, 1 of 2 points |  |\n";
    assert!(text.contains(line), "{text}");
}

#[test]
fn the_tables_have_every_row_with_its_cpu_time_and_verdict() {
    let mut record = published();
    record.rows[0].per_operation.cpu_ns = Some(77.0);
    let text = pages::tables(&record);
    assert!(text.contains("### task\n"), "{text}");
    assert!(
        text.contains("30.0 (30.0 to 30.0, CPU 77.0); kanal 50.0 (50.0 to 50.0); 0.60 ahead"),
        "{text}"
    );
    assert!(text.contains("1.60 *behind*"), "{text}");
    assert!(text.contains("burst: ns/task, less is better |"), "{text}");
}

#[test]
fn a_part_of_a_page_is_replaced_and_nothing_else() {
    let page = "a\n<!-- figures: x -->\nold\n<!-- end of figures -->\nb\n";
    let new = pages::with_part(page, "x", "new\n").unwrap();
    assert_eq!(
        new,
        "a\n<!-- figures: x -->\nnew\n<!-- end of figures -->\nb\n"
    );
    assert_eq!(pages::with_part(&new, "x", "new\n").unwrap(), new);
    let error = pages::with_part(page, "y", "").unwrap_err().to_string();
    assert_eq!(error, "there is no line <!-- figures: y -->");
}

#[test]
fn the_rows_that_readme_shows_are_rows_of_the_bench() {
    let mut rows = Vec::new();
    for suite in crate::workloads::SUITES {
        for workload in (suite.workloads)() {
            let titles = workload
                .figures
                .iter()
                .map(|figure| figure.title(&workload.name));
            rows.extend(titles.map(|title| (suite.name, title)));
        }
    }
    for &(suite, workload) in pages::SHOWN {
        let is_there = rows
            .iter()
            .any(|(name, title)| *name == suite && title == workload);
        assert!(is_there, "{suite}: {workload} is no row: {rows:?}");
    }
}
