//! The program itself: exit code, closing line, choice of steps. It runs on planted workspaces, so
//! that the verdict is known.

use std::process::{Command, Output};

use crate::tree::Tree;

/// A workspace on which `layers` and `links` pass.
fn workspace() -> Tree {
    Tree::new(&[
        ("Cargo.toml", "[workspace]\n"),
        ("xtask/Cargo.toml", "[package]\nname = \"xtask\"\n"),
        ("README.md", "# Pond\n\n[up](#pond)\n"),
        (
            "crates/millpond/Cargo.toml",
            "[package]\nname = \"millpond\"\n",
        ),
        ("crates/millpond/src/lib.rs", "//! Pond.\n"),
    ])
}

fn xtask(tree: &Tree, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(arguments)
        .current_dir(tree.root())
        .env("CARGO_MANIFEST_DIR", tree.root().join("xtask"))
        .env("CARGO_TARGET_DIR", tree.root().join("target"))
        .output()
        .expect("xtask runs")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_good_run_ends_with_its_count_and_success() {
    let output = xtask(&workspace(), &["test", "--only", "layers,links"]);
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(text(&output).lines().last(), Some("2 passed, 0 failed"));
}

#[test]
fn a_failed_step_is_shown_and_does_not_stop_the_others() {
    let tree = workspace().with("crates/millpond/src/dam.rs", "");
    let output = xtask(&tree, &["test", "--only", "layers,links"]);
    let text = text(&output);
    assert!(!output.status.success(), "{text}");
    assert!(text.contains("[1/2] layers ... FAILED"), "{text}");
    assert!(text.contains("module `dam` has no rank"), "{text}");
    assert!(text.contains("[2/2] links ... ok"), "{text}");
    assert_eq!(text.lines().last(), Some("1 passed, 1 failed"));
    let log = std::fs::read_to_string(tree.root().join("target/xtask/layers.log")).unwrap();
    assert!(log.contains("module `dam` has no rank"), "{log}");
}

#[test]
fn steps_with_nothing_to_do_fail() {
    let steps = "tests,exhaustion,portable,chaos,chaos-pool,loom,shuttle,weaken,program";
    let output = xtask(&workspace(), &["test", "--only", steps]);
    assert!(!output.status.success());
    assert_eq!(
        text(&output).lines().last(),
        Some("0 passed, 9 failed"),
        "{}",
        text(&output)
    );
}

#[test]
fn the_exit_code_of_a_single_gate_is_its_verdict() {
    assert!(xtask(&workspace(), &["layers"]).status.success());
    let tree = workspace().with("crates/millpond/src/dam.rs", "");
    let output = xtask(&tree, &["layers"]);
    assert!(!output.status.success());
    assert!(text(&output).contains("module `dam` has no rank"));
}

#[test]
fn the_list_shows_the_chosen_steps_and_runs_none() {
    let tree = workspace();
    let output = xtask(&tree, &["test", "--list", "--skip", "fmt"]);
    let text = text(&output);
    assert!(output.status.success());
    assert!(
        text.contains("weaken") && !text.contains("rustfmt"),
        "{text}"
    );
    assert!(!tree.root().join("target").exists());
}

#[test]
fn an_unknown_step_is_an_error() {
    let output = xtask(&workspace(), &["test", "--only", "lynx"]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("there is no step `lynx`"));
}

#[test]
fn outside_a_workspace_xtask_says_where_to_run_it() {
    let tree = Tree::new(&[("a.txt", "")]);
    let output = xtask(&tree, &["layers"]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("run `cargo xtask` inside it"));
}
