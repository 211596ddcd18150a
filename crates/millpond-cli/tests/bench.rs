//! `millpond bench` as its users meet it.
#![forbid(unsafe_code)]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn bench() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
    command.arg("bench");
    command
}

fn asked(arguments: &[&str]) -> Output {
    bench()
        .args(arguments)
        .output()
        .expect("the program starts")
}

fn stdout(output: &Output) -> &str {
    assert!(output.status.success(), "{output:?}");
    std::str::from_utf8(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> &str {
    assert!(!output.status.success(), "{output:?}");
    std::str::from_utf8(&output.stderr).unwrap()
}

/// `MILLPOND_RENEW=1 cargo test -p millpond-cli` writes the file anew.
#[test]
fn the_help_of_the_bench_is_what_the_file_says() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/help-bench.txt");
    let output = asked(&["--help"]);
    if std::env::var_os("MILLPOND_RENEW").is_some() {
        fs::write(&file, stdout(&output)).unwrap();
    }
    let expected = fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(
        stdout(&output),
        expected,
        "the help has changed: look at it, then run this test with MILLPOND_RENEW=1"
    );
}

#[test]
fn a_wrong_word_is_answered_with_the_right_ones() {
    for (arguments, answer) in [
        (&["quue"][..], "there is no suite \"quue\": the suites are "),
        (
            &["queue", "--only", "9p9c"],
            "no workload has \"9p9c\" in its name",
        ),
        (&["--from", "old.json"], "<--report <DIR>|--compare <OLD>>"),
        (
            &["pool", "--from", "old.json", "--report", "page"],
            "cannot be used with",
        ),
        (
            &["--compare", "no-such.json"],
            "cannot read the figures in no-such.json",
        ),
        (
            &["--from", "no-such.json", "--report", "page"],
            "cannot read the figures in",
        ),
        (&["--rounds", "0"], "0 is not in 1.."),
    ] {
        let output = asked(arguments);
        assert!(stderr(&output).contains(answer), "{}", stderr(&output));
        assert!(output.stdout.is_empty(), "{output:?}");
    }
    assert!(!Path::new("page").exists());
}

#[test]
fn a_run_is_kept_then_shown_and_compared_without_measuring() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (figures, page) = (at("figures.json"), at("page"));
    let run = ["task", "--quick", "--rounds", "1", "--json", &figures];
    let text = asked(&run);
    assert!(stdout(&text).contains("best of ours and best peer"));
    let again = asked(&["--from", &figures, "--compare", &figures, "--report", &page]);
    let text = stdout(&again);
    assert!(text.contains("0 better, 0 worse, "), "{text}");
    assert!(
        text.contains("few rounds: the old run has rows of 1"),
        "{text}"
    );
    assert!(text.contains("page/index.html\n"), "{text}");
    let html = fs::read_to_string(folder.path().join("page/index.html")).unwrap();
    assert!(html.starts_with("<!doctype html>"), "{html}");
}

/// A program that measures tells first where; then it is known to be at it.
#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_run_leaves_old_files_alone_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let figures = folder.path().join("figures.json");
    fs::write(&figures, "of an earlier run").unwrap();
    let mut child = bench()
        .args(["queue", "--json"])
        .arg(&figures)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut tables = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    tables.read_line(&mut first).unwrap();
    let sent = Command::new("kill")
        .arg("-INT")
        .arg(child.id().to_string())
        .status();
    assert!(sent.expect("there is a kill command").success());
    let mut said = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{said}");
    assert_eq!(
        said,
        "bench: interrupted before the end, so no file was written\n"
    );
    assert_eq!(fs::read_to_string(&figures).unwrap(), "of an earlier run");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}
