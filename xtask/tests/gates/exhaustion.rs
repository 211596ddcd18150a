//! The gate `exhaustion` on planted tests, one for each fault.

use crate::tree::Tree;
use xtask::gates::exhaustion::{self, Choice};
use xtask::step::Step;
use xtask::table::{Outcome, Verdict};
use xtask::workspace::Workspace;

/// Tests that print that they were refused a thread, as the library does in test builds.
const GOOD: &str = r#"
fn refused() { eprintln!("\nexhausted: refusal 1: mill-1"); }
#[test] fn passes() { refused(); }
#[test] fn fails_clearly() { refused(); panic!("the executor could not start a thread (no more of them): use fewer threads"); }
#[test] fn misses_what_it_expected() { refused(); assert_eq!(1 + 1, 3, "workers"); }
"#;

fn planted(more: &str) -> Tree {
    let manifest =
        "[package]\nname = \"millpond-conform\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
    let workspace = "[workspace]\nmembers = [\"crates/millpond-conform\"]\nresolver = \"3\"\n";
    Tree::new(&[
        ("Cargo.toml", workspace),
        ("crates/millpond-conform/Cargo.toml", manifest),
        ("crates/millpond-conform/src/lib.rs", ""),
        (
            "crates/millpond-conform/tests/pools.rs",
            &format!("{GOOD}{more}"),
        ),
    ])
}

/// Runs the gate; returns its outcome and its log.
fn run(tree: &Tree, condition: &str) -> (Outcome, String) {
    let workspace = Workspace {
        root: tree.root().into(),
        target: tree.root().join("target"),
    };
    let log = tree.root().join("exhaustion.log");
    let mut step = Step::open(&log, |_| ()).expect("a log");
    let choice = Choice {
        conditions: vec![condition.into()],
        filter: None,
    };
    let outcome = exhaustion::run(&workspace, &mut step, &choice).expect("it runs");
    (outcome, std::fs::read_to_string(log).expect("a log"))
}

#[test]
fn tests_that_pass_or_fail_clearly_without_threads_are_good() {
    let (outcome, log) = run(&planted(""), "threads:0");
    assert_eq!(outcome.verdict, Verdict::Passed, "{log}");
    let cells = log.lines().last().expect("a table").split_whitespace();
    let cells: Vec<&str> = cells.take(5).collect();
    assert_eq!(cells, ["threads:0", "3", "1", "1", "1"], "{log}");
}

#[test]
fn an_abort_a_hang_a_spin_an_unclear_error_and_a_loss_are_found_and_can_be_repeated() {
    let bad = r#"
        #[test] fn aborts() { refused(); std::process::abort(); }
        #[test] fn hangs() { eprintln!("\nwedged: `hangs` has not ended"); std::process::abort(); }
        #[test] fn spins() { eprintln!("\nexhausted: refusal 65536: mill-1"); }
        #[test] fn fails_unclearly() { panic!("it is what it is"); }
        #[test] fn loses() { refused(); panic!("2 were never dropped"); }
    "#;
    let (outcome, log) = run(&planted(bad), "threads:0");
    let reason = Verdict::Failed("5 of 8 runs are at fault".into());
    assert_eq!(outcome.verdict, reason, "{log}");
    for (test, fault) in [
        ("aborts", "abort: signal 6"),
        ("hangs", "hang: wedged"),
        ("spins", "spin: 65536 threads requested in vain"),
        ("fails_unclearly", "unclear: refused nothing"),
        ("loses", "lost:"),
    ] {
        assert!(
            log.contains(&format!("threads:0: pools {test}: {fault}")),
            "{log}"
        );
        let replay = format!("cargo test -p millpond-conform --test pools -- --exact {test}");
        assert!(log.contains(&replay), "{log}");
    }
}

#[test]
fn where_nothing_is_refused_every_test_has_to_pass() {
    let (outcome, log) = run(&planted(""), "engines:1024");
    let reason = Verdict::Failed("2 of 3 runs are at fault".into());
    assert_eq!(outcome.verdict, reason, "{log}");
    assert!(
        log.contains("engines:1024: pools fails_clearly: unclear"),
        "{log}"
    );
}
