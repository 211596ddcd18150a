//! The gate `ledger`: ids of invariants.

use std::path::Path;

use anyhow::Result;
use xtask::gates::ledger::ids::check_with;
use xtask::report::{Report, Rule};

use crate::tree::{Tree, fails, passes};

const WORKERS: &str = "crates/millpond/src/workers.rs";
const QUEUE: &str = "crates/millpond-raw/src/queue.rs";

fn pending(root: &Path) -> Result<Report> {
    check_with(root, Rule::Pending)
}

fn enforced(root: &Path) -> Result<Report> {
    check_with(root, Rule::Enforced)
}

fn clean() -> Tree {
    Tree::new(&[
        (
            WORKERS,
            "//! - **WORKERS-1** one\n//! - **WORKERS-OUT** two, after WORKERS-1\n// see QUEUE-1\n",
        ),
        (QUEUE, "//! - **QUEUE-1** one\n"),
        (
            "docs/design.md",
            "WORKERS-1 to WORKERS-OUT; UTF-8, JDK-8051859.\n",
        ),
    ])
}

#[test]
fn unique_and_known_ids_pass() {
    passes(enforced, &clean());
}

#[test]
fn an_id_stated_in_two_crates_fails() {
    let tree = clean().with(
        QUEUE,
        "//! - **QUEUE-1** one\n//! - **WORKERS-1** another\n",
    );
    for check in [pending, enforced] {
        fails(
            check,
            &tree,
            &format!("{QUEUE}:2"),
            "is stated in crates/millpond/src/workers.rs:1 already",
        );
    }
}

#[test]
fn an_id_stated_in_a_test_counts() {
    let tree = clean().with(
        "crates/millpond/tests/a.rs",
        "//! - **WORKERS-1** another\n",
    );
    fails(pending, &tree, "crates/millpond/tests/a.rs:1", "already");
}

#[test]
fn a_cited_id_that_no_header_states_fails_in_every_comment_and_document() {
    for comment in [
        "// WORKERS-2",
        "/// `WORKERS-2`",
        "//! WORKERS-2.",
        "/* (WORKERS-2) */",
    ] {
        let tree = clean().with("examples/a.rs", &format!("\n{comment}\nfn f() {{}}\n"));
        fails(
            pending,
            &tree,
            "examples/a.rs:2",
            "no header states the invariant `WORKERS-2`",
        );
    }
    let tree = clean().with("README.md", "# A\n\nSee WORKERS-2.\n");
    fails(pending, &tree, "README.md:3", "`WORKERS-2`");
}

#[test]
fn a_heading_of_a_document_states_an_id() {
    let document = "# Decisions\n\n## JAVA-1. A place is given back\n\n## Why\n";
    let cites = "// JAVA-1: cleared\n";
    let tree = clean()
        .with("docs/java.md", document)
        .with("examples/a.rs", cites);
    passes(enforced, &tree);
    let twice = format!("{document}## JAVA-1. Another\n");
    fails(
        enforced,
        &tree.with("docs/java.md", &twice),
        "docs/java.md:6",
        "already",
    );
}

#[test]
fn ids_of_the_old_form_are_counted_while_they_are_pending() {
    let tree = clean()
        .with(
            "crates/a/src/lib.rs",
            "//! - **W1** one\n//! - **W2** two\n// W1, W3\n",
        )
        .with("crates/b/src/lib.rs", "//! - **W1** one\n");
    passes(pending, &tree);
    let report = pending(tree.root()).unwrap();
    assert_eq!(report.pending, ["2 ids of the old form name 3 invariants"]);
}

#[test]
fn an_id_of_the_old_form_fails_when_that_is_enforced() {
    let tree = clean().with("crates/a/src/lib.rs", "//! - **W1** one\n// W1\n");
    fails(
        enforced,
        &tree,
        "crates/a/src/lib.rs:1",
        "`W1` is an id of the old form",
    );
    let tree = clean().with("crates/a/src/lib.rs", "//! L5 is a level.\n// W1\n");
    fails(
        enforced,
        &tree,
        "crates/a/src/lib.rs:2",
        "no header states the invariant `W1`",
    );
}
