//! The program as its users meet it.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn millpond(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_millpond"))
        .args(arguments)
        .env_remove("NO_COLOR")
        .output()
        .expect("the program starts")
}

fn stdout(output: &Output) -> &str {
    assert!(output.status.success(), "{output:?}");
    std::str::from_utf8(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

/// The keys and labels of the cost table, as the program itself lists them.
fn costs() -> Vec<Value> {
    let output = millpond(&["about", "--budget", "50ms", "--json"]);
    let page: Value = serde_json::from_str(stdout(&output)).expect("one JSON object");
    page["costs"].as_array().expect("costs are a list").clone()
}

#[test]
fn a_short_run_measures_every_row() {
    let costs = costs();
    assert!(costs.len() >= 9, "{costs:?}");
    for cost in costs {
        let only_one_cpu = std::thread::available_parallelism().map_or(1, usize::from) < 2;
        if cost["key"] == "line" && only_one_cpu {
            continue;
        }
        let (p50, p99) = (cost["p50_ns"].as_f64(), cost["p99_ns"].as_f64());
        assert!(p50.is_some_and(|nanos| nanos > 0.0), "{cost}");
        assert!(p99 >= p50, "{cost}");
        assert!(cost["rounds"].as_u64() > Some(0), "{cost}");
        assert_ne!(cost["meaning"], "", "{cost}");
    }
}

#[test]
fn the_page_shows_every_row_of_the_table() {
    let output = millpond(&["about", "--budget", "50ms"]);
    let text = stdout(&output);
    for cost in costs() {
        let label = cost["label"].as_str().unwrap();
        let line = text
            .lines()
            .find(|line| line.trim_start().starts_with(label));
        let line = line.unwrap_or_else(|| panic!("`{label}` is not on the page:\n{text}"));
        let value = line
            .split_whitespace()
            .find_map(|word| word.parse::<f64>().ok());
        let is_skipped = cost.get("skipped").is_some();
        assert!(
            is_skipped || value.is_some_and(|value| value > 0.0),
            "{line}"
        );
    }
}

#[test]
fn facts_alone_are_a_page_without_costs() {
    let output = millpond(&["about", "--no-measure"]);
    assert!(stdout(&output).contains("millpond::machine"));
    assert!(!stdout(&output).contains("What things cost"));
}

#[test]
fn without_a_terminal_there_are_neither_colours_nor_a_bar() {
    let output = millpond(&["about", "--budget", "10ms"]);
    assert!(!stdout(&output).contains('\x1b'));
    assert_eq!(stderr(&output), "");
}

#[test]
fn facts_alone_are_a_json_object_without_costs() {
    let output = millpond(&["about", "--json", "--no-measure"]);
    let page: Value = serde_json::from_str(stdout(&output)).unwrap();
    assert_eq!(page["name"], "millpond");
    assert_eq!(page["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(page["costs"], Value::Null);
    assert!(page["machine"]["worker_hint"].as_u64() >= Some(1));
}

#[test]
fn bad_arguments_say_what_is_wrong_and_what_to_do() {
    for (arguments, hint) in [
        (&["about", "--budget", "soon"][..], "500ms or 2s"),
        (&["about", "--budget", "1h"], "500ms or 2s"),
        (&["about", "--budget", "0s"], "at least 10ms"),
        (
            &["about", "--budget", "2s", "--no-measure"],
            "cannot be used with",
        ),
        (&["--seconds", "0"], "1..=86400"),
        (&["--load", "501"], "0..=500"),
        (&["demo", "--plain", "--json"], "cannot be used with"),
        (&["--jason"], "--json"),
        (&["swim"], "--help"),
    ] {
        let output = millpond(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(
            stderr(&output).contains(hint),
            "{arguments:?}: {}",
            stderr(&output)
        );
    }
}

/// `MILLPOND_RENEW=1 cargo test -p millpond-cli` writes the file anew.
fn assert_like_file(name: &str, output: &Output) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(name);
    if std::env::var_os("MILLPOND_RENEW").is_some() {
        std::fs::write(&file, stdout(output)).unwrap();
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(
        stdout(output),
        expected,
        "the help has changed: look at it, then run this test with MILLPOND_RENEW=1"
    );
}

#[test]
fn the_help_is_what_the_file_says() {
    assert_like_file("help.txt", &millpond(&["--help"]));
}

#[test]
fn the_help_of_the_demo_is_what_the_file_says() {
    assert_like_file("help-demo.txt", &millpond(&["demo", "--help"]));
}
