//! The demo without a terminal, as its users and their programs meet it.
#![forbid(unsafe_code)]

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn demo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
    command.args(arguments).stdin(Stdio::null());
    command
}

fn stdout(output: &Output) -> &str {
    assert!(output.status.success(), "{output:?}");
    assert_eq!(output.stderr, b"", "{output:?}");
    std::str::from_utf8(&output.stdout).unwrap()
}

#[test]
fn without_a_terminal_it_prints_a_line_per_second_and_then_the_books() {
    let output = demo(&["--seconds", "2"]).output().unwrap();
    let text = stdout(&output);
    assert!(!text.contains('\x1b'), "{text}");
    for second in ["  1  ", "  2  "] {
        let lines = text.lines().filter(|line| line.starts_with(second));
        assert_eq!(lines.count(), 1, "{text}");
    }
    assert!(!text.contains("\n  3  "), "{text}");
    let orders = text.lines().find(|line| line.starts_with("  orders "));
    let numbers: Vec<u64> = orders
        .unwrap_or_else(|| panic!("{text}"))
        .split_whitespace()
        .skip(1)
        .map(|word| word.parse().unwrap())
        .collect();
    let [came, done, rejected, dropped, lost] = numbers[..] else {
        panic!("{text}")
    };
    assert!(came > 0 && came == done + rejected + dropped, "{text}");
    assert_eq!(lost, 0);
    assert!(
        text.ends_with("the pools counted the same as the shop.\n"),
        "{text}"
    );
}

#[test]
fn the_command_and_no_command_are_the_same() {
    let heads = [&["demo", "--seconds", "1"][..], &["--seconds", "1"]].map(|arguments| {
        let output = demo(arguments).output().unwrap();
        stdout(&output)
            .lines()
            .take(5)
            .collect::<Vec<_>>()
            .join("\n")
    });
    assert!(
        heads[0].contains("A small shop on three pools"),
        "{}",
        heads[0]
    );
    assert_eq!(heads[0], heads[1]);
}

#[test]
fn programs_get_an_object_per_second_and_a_summary_at_the_end() {
    let output = demo(&[
        "demo",
        "--json",
        "--seconds",
        "2",
        "--seed",
        "7",
        "--load",
        "200",
    ]);
    let output = { output }.output().unwrap();
    let lines: Vec<Value> = stdout(&output)
        .lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect();
    let [first, second, last] = &lines[..] else {
        panic!("{lines:?}")
    };
    assert_eq!(
        (&first["second"], &second["second"]),
        (&1.into(), &2.into())
    );
    assert_eq!(second["load"], 200);
    let names: Vec<_> = second["pools"].as_array().unwrap().iter().collect();
    assert_eq!(names.len(), 3);
    for (pool, name) in names.into_iter().zip(["orders", "images", "mails"]) {
        assert_eq!(pool["name"], name);
        for key in [
            "core",
            "max",
            "workers",
            "queued",
            "capacity",
            "in_per_second",
        ] {
            assert!(pool[key].is_number(), "{key}: {pool}");
        }
        assert_eq!(pool["state"], "running");
        assert_eq!(pool["policy"], "abort");
    }
    let summary = &last["summary"];
    assert_eq!(
        (&summary["balanced"], &summary["seed"]),
        (&true.into(), &7.into())
    );
    for pool in summary["pools"].as_array().unwrap() {
        let of = |key: &str| pool[key].as_u64().unwrap();
        assert_eq!(of("came"), of("done") + of("refused") + of("dropped"));
        assert_eq!(of("lost"), 0);
    }
}

#[test]
fn a_reader_that_has_seen_enough_ends_it_quietly() {
    let mut child = demo(&["--seconds", "60"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert!(line.starts_with("A small shop"), "{line}");
    // The reader is gone. The next line that is written finds that out.
    let mut said = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(said, "");
}

#[cfg(unix)]
#[test]
fn a_signal_closes_the_shop_in_order() {
    let mut child = demo(&["--json", "--seconds", "60"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    assert!(first.contains("\"second\":1"), "{first}");
    let killed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(killed.unwrap().success());
    let last = lines.last().unwrap().unwrap();
    let last: Value = serde_json::from_str(&last).unwrap();
    assert_eq!(last["summary"]["balanced"], true, "{last}");
    assert!(last["summary"]["seconds"].as_f64() < Some(50.0), "{last}");
    assert!(child.wait().unwrap().success());
}
