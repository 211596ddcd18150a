//! The pages of the repository say what the published figures say.
//!
//! `MILLPOND_RENEW=1 cargo test -p millpond-bench --test figures` writes them anew, from `figures.json` in `docs/figures`. That file is
//! measured with `cargo run --release -- bench --publish docs/figures`.
#![forbid(unsafe_code)]

use millpond_bench::publish::{self, pages};
use millpond_bench::record::Record;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_pages_are_made_of_the_published_figures() {
    let file = publish::home().join(publish::FILE);
    if !file.exists() {
        // Before the first figures are published: every page has its place for them.
        for (page, name, _) in pages::PARTS {
            let text = fs::read_to_string(root().join(page)).unwrap();
            pages::with_part(&text, name, "").unwrap_or_else(|error| panic!("{page}: {error:#}"));
        }
        return;
    }
    let record = Record::read(&file).unwrap();
    for (path, should, is) in pages::all(&root(), &record).unwrap() {
        if std::env::var_os("MILLPOND_RENEW").is_some() {
            fs::write(&path, &should).unwrap();
            continue;
        }
        let name = path.display();
        assert!(
            is == should,
            "{name} does not say what {} says: run this test with MILLPOND_RENEW=1",
            file.display()
        );
    }
}

#[test]
fn published_figures_are_medians_of_three_processes_on_one_commit_in_every_condition() {
    let file = publish::home().join(publish::FILE);
    if !file.exists() {
        return;
    }
    let record = Record::read(&file).unwrap();
    let published = record
        .published
        .as_ref()
        .expect("it was written by --publish");
    assert!(published.processes >= 3, "{published:?}");
    let origin = record.origin.as_ref().expect("it says where it is from");
    assert_eq!(origin.sources.is_dirty, Some(false));
    let mut measured = 0;
    for suite in millpond_bench::workloads::SUITES {
        // README says of a suite without any row that it is newer than the figures.
        if !record.rows.iter().any(|row| row.suite == suite.name) {
            continue;
        }
        measured += 1;
        for condition in millpond_bench::condition::Condition::ALL {
            let is_there = record
                .rows
                .iter()
                .any(|row| row.suite == suite.name && row.in_condition() == condition);
            assert!(is_there, "{} is not measured in {condition:?}", suite.name);
        }
    }
    assert!(measured >= 20, "only {measured} suites are in the file");
}
