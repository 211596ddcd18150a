//! Every example prints what its head says.
//!
//! `cargo test -p examples` builds the examples before it runs this. Asked for `--test output` alone
//! cargo does not, and this runs the ones that were built last.

#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test stands outside: it runs programs"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The names of all examples, by their files.
fn names() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(env!("CARGO_MANIFEST_DIR"))
        .expect("the crate is there")
        .map(|entry| entry.expect("it can be listed").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .filter(|name| name != "guides")
        .collect();
    names.sort();
    names
}

/// The lines of a head, without their marks.
fn head(name: &str) -> Vec<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("{name}.rs"));
    let text = fs::read_to_string(file).expect("it can be read");
    text.lines()
        .map_while(|line| line.strip_prefix("//!"))
        .map(|line| line.strip_prefix(' ').unwrap_or(line).to_owned())
        .collect()
}

/// The lines of the block that begins with "```kind".
fn block(head: &[String], kind: &str) -> String {
    let begin = format!("```{kind}");
    let lines = head.iter().skip_while(|line| **line != begin).skip(1);
    lines
        .take_while(|line| *line != "```")
        .map(|line| format!("{line}\n"))
        .collect()
}

/// Where cargo has put an example: beside the folder of this test.
fn program(name: &str) -> PathBuf {
    let this = std::env::current_exe().expect("a test knows where it is");
    let built = this.ancestors().nth(2).expect("it is in target/KIND/deps");
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    built.join("examples").join(file)
}

fn output(name: &str) -> Result<String, String> {
    let ran = Command::new(program(name)).output().map_err(|error| {
        format!(
            "it cannot be run ({error}): is it in Cargo.toml? cargo build -p examples --examples"
        )
    })?;
    if ran.status.success() {
        Ok(String::from_utf8_lossy(&ran.stdout).into_owned())
    } else {
        Err(format!(
            "it failed: {}",
            String::from_utf8_lossy(&ran.stderr)
        ))
    }
}

#[test]
fn every_example_prints_what_its_head_says() {
    let mut wrong = Vec::new();
    for name in names() {
        let promised = block(&head(&name), "text");
        match output(&name) {
            Ok(printed) if printed == promised && !printed.is_empty() => {}
            Ok(printed) => wrong.push(format!("{name} promises\n{promised}and prints\n{printed}")),
            Err(error) => wrong.push(format!("{name}: {error}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_head_begins_with_a_question_and_its_command() {
    for name in names() {
        let head = head(&name);
        assert!(head[0].ends_with('?'), "{name} asks nothing: {}", head[0]);
        let command = format!("cargo run -p examples --example {name}\n");
        assert_eq!(block(&head, "sh"), command);
    }
}

#[test]
fn examples_are_numbered_without_a_gap() {
    for (place, name) in names().iter().enumerate() {
        let number = format!("{:02}_", place + 1);
        assert!(
            name.starts_with(&number),
            "{name} should begin with {number}"
        );
    }
}
