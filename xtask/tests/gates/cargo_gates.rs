//! The gates `fmt`, `clippy` and `docs`, with the real tools on a crate without dependencies.

use std::process::Command;

use crate::tree::Tree;
use xtask::gates::{clippy, docs, fmt};

/// The settings of this workspace.
const RUSTFMT: &str = include_str!("../../../rustfmt.toml");
const CLIPPY: &str = include_str!("../../../clippy.toml");
const WORKSPACE: &str = include_str!("../../../Cargo.toml");

const CLEAN: &str = "//! A planted crate.\n\n/// Adds one.\npub fn one_more(number: u32) -> u32 {\n    \
    number + 1\n}\n";

/// A crate with these settings and the lint levels.
fn planted(code: &str) -> Tree {
    let workspace: toml::Table = WORKSPACE.parse().expect("the workspace manifest");
    let mut lints = toml::Table::new();
    lints.insert("lints".into(), workspace["workspace"]["lints"].clone());
    let manifest = format!(
        "[package]\nname = \"planted\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n{lints}"
    );
    Tree::new(&[
        ("Cargo.toml", &manifest),
        ("rustfmt.toml", RUSTFMT),
        ("clippy.toml", CLIPPY),
        ("src/lib.rs", code),
    ])
}

/// Runs a gate's command in its own build directory; returns its success and its output.
fn run(gate: fn(&std::path::Path) -> Command, tree: &Tree) -> (bool, String) {
    let mut command = gate(tree.root());
    command
        .env("CARGO_TARGET_DIR", tree.root().join("target"))
        .env("CARGO_NET_OFFLINE", "true")
        .env_remove("RUSTFLAGS");
    let output = command.output().expect("cargo runs");
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

#[track_caller]
fn passes(gate: fn(&std::path::Path) -> Command, code: &str) {
    let (success, text) = run(gate, &planted(code));
    assert!(success, "{text}");
}

#[track_caller]
fn fails(gate: fn(&std::path::Path) -> Command, code: &str, words: &str) {
    let (success, text) = run(gate, &planted(code));
    assert!(!success, "the gate let it through: {text}");
    assert!(text.contains(words), "`{words}` is not said in: {text}");
}

#[test]
fn fmt_passes_on_formatted_code_and_fails_on_other() {
    passes(fmt::command, CLEAN);
    fails(
        fmt::command,
        &CLEAN.replace("    number", "  number"),
        "Diff in",
    );
}

#[test]
fn fmt_uses_the_width_of_the_workspace() {
    let wide = CLEAN.replace("number + 1", &format!("number + {}1", "1 + ".repeat(30)));
    fails(fmt::command, &wide, "Diff in");
}

#[test]
fn clippy_passes_on_clean_code() {
    passes(clippy::command, CLEAN);
}

#[test]
fn clippy_fails_on_any_warning() {
    fails(
        clippy::command,
        &format!("{CLEAN}\nfn unused() {{}}\n"),
        "never used",
    );
}

#[test]
fn clippy_fails_on_each_call_that_bypasses_a_seam() {
    let ways = [
        (
            "a: std::sync::Mutex<u32>",
            "",
            "checkers must see every lock",
        ),
        (
            "a: &std::sync::atomic::AtomicU32",
            "",
            "use millpond_raw::sync::atomic",
        ),
        ("a: &std::sync::Condvar", "", "millpond_raw::park"),
        (
            "a: std::time::Duration",
            "std::thread::sleep(a);",
            "wait through millpond_raw::park",
        ),
        ("a: fn()", "std::thread::spawn(a);", "ThreadFactory"),
        (
            "a: u32",
            "let _ = (a, std::time::Instant::now());",
            "ask a time::Clock",
        ),
    ];
    for (argument, body, words) in ways {
        let code = format!("{CLEAN}\n/// Planted.\npub fn planted({argument}) {{ {body} }}\n");
        fails(clippy::command, &code, words);
    }
}

#[test]
fn clippy_fails_on_missing_documentation_and_on_an_allowance_without_reason() {
    fails(
        clippy::command,
        &format!("{CLEAN}\npub fn bare() {{}}\n"),
        "missing documentation",
    );
    let allowed = format!("{CLEAN}\n/// x\n#[allow(clippy::all)]\npub fn a() {{}}\n");
    fails(clippy::command, &allowed, "without specifying a reason");
}

#[test]
fn clippy_fails_on_an_unsafe_block_without_a_comment() {
    let code =
        format!("{CLEAN}\n/// x\npub fn a(x: &u8) -> u8 {{ unsafe {{ *(x as *const u8) }} }}\n");
    fails(
        clippy::command,
        &code,
        "unsafe block missing a safety comment",
    );
}

#[test]
fn docs_pass_on_living_links_and_fail_on_dead_ones() {
    passes(
        docs::command,
        &CLEAN.replace("Adds one.", "Adds one, see [`one_more`]."),
    );
    fails(
        docs::command,
        &CLEAN.replace("Adds one.", "Adds one, see [`gone`]."),
        "unresolved link",
    );
}
