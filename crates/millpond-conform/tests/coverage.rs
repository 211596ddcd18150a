//! Every behaviour is held by a test or says why not, and `COVERAGE.md` says which.

use millpond_conform::coverage::{Coverage, Exemptions, Row, bodies, instances, rows};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Title and name of each page of rows.
const PAGES: [(&str, &str); 6] = [
    ("Task handles", "task-handle"),
    ("Blocking queues", "queues"),
    ("Thread pool and executor service", "thread-pool"),
    ("Scheduled executor", "scheduled"),
    ("Fork-join", "fork-join"),
    ("Completable futures", "completable"),
];

/// The rows of these classes are held only by tests of this implementation.
const SUBJECTS: [(&str, &str); 11] = [
    ("ArrayBlockingQueueTest", "fifo_bounded"),
    ("LinkedBlockingQueueTest", "fifo_growing"),
    ("LinkedBlockingDequeTest", "deque"),
    ("PriorityBlockingQueueTest", "priority"),
    ("DelayQueueTest", "delay"),
    ("SynchronousQueueTest", "hand_off"),
    ("LinkedTransferQueueTest", "transfer"),
    ("ThreadPoolExecutorTest", "pool"),
    ("ThreadPoolExecutorSubclassTest", "extended"),
    ("ScheduledExecutorTest", "scheduled_plain"),
    ("ScheduledExecutorSubclassTest", "scheduled_extended"),
];

fn home() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The Rust files of a folder, by the names of their files.
fn sources(folder: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = fs::read_dir(home().join(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "rs"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            (name, read(&path))
        })
        .collect();
    found.sort();
    found
}

fn page(name: &str) -> Vec<Row> {
    let path = home().join("rows").join(name).with_extension("txt");
    rows(&read(&path)).unwrap_or_else(|problem| panic!("{}, {problem}", path.display()))
}

fn coverage() -> Coverage {
    let (suites, tests) = (sources("src/suites"), sources("tests"));
    Coverage {
        pages: PAGES
            .map(|(title, name)| (title.to_owned(), page(name)))
            .into(),
        bodies: suites
            .iter()
            .chain(&tests)
            .flat_map(|(room, source)| bodies(room, source))
            .collect(),
        instances: tests
            .iter()
            .flat_map(|(_, source)| instances(source))
            .collect(),
        exemptions: Exemptions::read(&read(&home().join("rows/exempt.txt"))).unwrap(),
        subjects: SUBJECTS.into(),
    }
}

#[test]
fn every_row_is_held_by_a_test_or_says_why_it_is_not() {
    let problems = coverage().problems();
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn the_table_is_up_to_date() {
    let path = home().join("COVERAGE.md");
    let table = coverage().render();
    if std::env::var_os("MILLPOND_RENEW").is_some() {
        fs::write(&path, &table).unwrap();
    }
    assert!(
        read(&path) == table,
        "COVERAGE.md is stale: MILLPOND_RENEW=1 cargo test -p millpond-conform --test coverage"
    );
}

#[test]
fn every_suite_is_asked_for() {
    let asked: BTreeSet<String> = coverage()
        .instances
        .into_iter()
        .map(|one| one.suite)
        .collect();
    for (room, source) in sources("src/suites") {
        if source.contains("macro_rules! ") && room != "mod" {
            assert!(asked.contains(&room), "nobody asks for the suite `{room}`");
        }
    }
}

#[test]
fn no_row_of_the_conformance_pages_is_missing() {
    let pages: PathBuf = home().join("../../../shared/conformance");
    // The pages are kept by the maintainers beside the repository, and nowhere else.
    if !pages.is_dir() {
        return;
    }
    for (_, name) in PAGES {
        let text = read(&pages.join(name).with_extension("md"));
        let there: BTreeSet<&str> = text
            .lines()
            .filter(|line| line.starts_with("| ") && !line.starts_with("| id "))
            .filter_map(|line| line.trim_start_matches("| ").split(" | ").next())
            .collect();
        let ours: BTreeSet<String> = page(name).into_iter().map(|row| row.id).collect();
        let ours: BTreeSet<&str> = ours.iter().map(String::as_str).collect();
        assert_eq!(there, ours, "rows/{name}.txt differs from the page");
    }
}
