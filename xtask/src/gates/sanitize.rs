//! The tests under the sanitizers of the compiler.
//!
//! They belong to nightly; `RUSTC_BOOTSTRAP=1` makes a stable compiler accept the flags. The standard
//! library is not instrumented: only our own code is checked. If the toolchain cannot build an empty
//! program with a sanitizer, the step is skipped and says so.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use crate::counts::Counts;
use crate::step::Step;
use crate::table::{Outcome, Verdict};
use crate::workspace::{Workspace, with_flags};

/// A sanitizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Sanitizer {
    /// Use after free, overflow, leaks.
    Asan,
    /// Data races.
    Tsan,
}

impl Sanitizer {
    /// The name of its step and of its build directory.
    pub const fn name(self) -> &'static str {
        match self {
            Sanitizer::Asan => "asan",
            Sanitizer::Tsan => "tsan",
        }
    }

    /// The integration tests that it runs.
    const fn tests(self) -> &'static [&'static str] {
        match self {
            Sanitizer::Asan => &["--tests"],
            Sanitizer::Tsan => &["--test", "stress_*"],
        }
    }

    /// The features under test. ThreadSanitizer defers signals, so snapshots of running threads are
    /// checked by AddressSanitizer only.
    const fn features(self) -> &'static str {
        match self {
            Sanitizer::Asan => "millpond-raw/probe,millpond-raw/stack-dump",
            Sanitizer::Tsan => "millpond-raw/probe",
        }
    }

    const fn flags(self) -> &'static str {
        match self {
            // A recycled slab is never freed, so its misuse would not be seen.
            Sanitizer::Asan => "-Zsanitizer=address --cfg millpond_plain_memory",
            // Without the second flag the compiler refuses to mix instrumented code with std's.
            Sanitizer::Tsan => {
                "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer --cfg millpond_tsan"
            }
        }
    }
}

/// The gate `asan`.
///
/// # Errors
/// If cargo cannot be started.
pub fn run_asan(workspace: &Workspace, step: &mut Step) -> Result<Outcome> {
    run(workspace, step, Sanitizer::Asan)
}

/// The gate `tsan`.
///
/// # Errors
/// If cargo cannot be started.
pub fn run_tsan(workspace: &Workspace, step: &mut Step) -> Result<Outcome> {
    run(workspace, step, Sanitizer::Tsan)
}

/// Runs the unit and integration tests of both crates under one sanitizer. Under ThreadSanitizer, only
/// those that synchronise by our own primitives: it reports a race in everything that the locks and
/// channels of the uninstrumented std order.
///
/// # Errors
/// If cargo cannot be started.
pub fn run(workspace: &Workspace, step: &mut Step, sanitizer: Sanitizer) -> Result<Outcome> {
    let host = host()?;
    if let Some(refusal) = refusal(workspace, step, sanitizer, &host)? {
        return Ok(Outcome::skipped(format!("not supported here: {refusal}")));
    }
    let mut command = workspace.cargo(&["test", "-p", "millpond-raw", "-p", "millpond"]);
    command
        .args([
            "--features",
            sanitizer.features(),
            "--lib",
            "--no-fail-fast",
        ])
        .args(sanitizer.tests())
        .args(["--target", &host])
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", with_flags("RUSTFLAGS", sanitizer.flags()))
        .env("CARGO_TARGET_DIR", workspace.target_of(sanitizer.name()));
    if sanitizer == Sanitizer::Asan {
        // Locals stay on the stack, so that code which looks how much of it is left is right.
        command.env("ASAN_OPTIONS", "detect_stack_use_after_return=0");
    }
    if sanitizer == Sanitizer::Tsan {
        let excused = workspace.root.join("xtask").join("tsan.supp");
        command.env(
            "TSAN_OPTIONS",
            format!("suppressions={}", excused.display()),
        );
    }
    let ended = step.run(&mut command)?;
    Ok(judge(ended.success, &ended.output))
}

/// Sanitizers may report something although all tests have passed.
fn judge(success: bool, output: &str) -> Outcome {
    let reports = output
        .lines()
        .filter(|line| line.starts_with("SUMMARY: "))
        .count();
    let mut outcome = Outcome::of_tests(success && reports == 0, Counts::of_output(output));
    if reports > 0 {
        outcome.verdict = Verdict::Failed(format!("sanitizer reports: {reports}"));
    }
    outcome
}

/// The platform the compiler runs on.
fn host() -> Result<String> {
    let output = Command::new("rustc")
        .arg("-vV")
        .output()
        .context("cannot run rustc")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc -vV names no host")?.to_string())
}

/// Why an empty program cannot be built and run with the sanitizer, if it cannot.
fn refusal(
    workspace: &Workspace,
    step: &mut Step,
    sanitizer: Sanitizer,
    host: &str,
) -> Result<Option<String>> {
    let folder = workspace.target_of(sanitizer.name());
    fs::create_dir_all(&folder)?;
    let (source, program) = (folder.join("empty.rs"), folder.join("empty"));
    fs::write(&source, "fn main() {}\n")?;
    let mut compiler = Command::new("rustc");
    compiler
        .args(sanitizer.flags().split(' '))
        .args(["--edition", "2024", "--target", host, "-o"])
        .args([&program, &source])
        .env("RUSTC_BOOTSTRAP", "1");
    let built = step.run(&mut compiler)?;
    if !built.success {
        let why = built.output.lines().find(|line| line.starts_with("error"));
        return Ok(Some(why.unwrap_or("rustc refuses the flag").to_string()));
    }
    let ran = step.run(&mut Command::new(&program))?;
    Ok((!ran.success).then(|| "an empty program does not start".to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESULT: &str = "test result: ok. 3 passed; 0 failed; 0 ignored";

    #[test]
    fn a_report_fails_the_step_though_every_test_passed() {
        assert_eq!(judge(true, RESULT).verdict, Verdict::Passed);
        let raced = judge(
            true,
            &format!("SUMMARY: ThreadSanitizer: data race a.rs:1\n{RESULT}"),
        );
        assert_eq!(
            raced.verdict,
            Verdict::Failed("sanitizer reports: 1".into())
        );
        assert_eq!(raced.counts().failed, 1);
        assert_ne!(judge(true, "").verdict, Verdict::Passed);
    }

    #[test]
    fn no_code_of_ours_is_excused() {
        for line in include_str!("../../tsan.supp").lines() {
            let names_std = ["race:^<std::", "race:^test::", "race:^<alloc::"];
            let is_good = line.is_empty()
                || line.starts_with('#')
                || names_std.iter().any(|start| line.starts_with(start));
            assert!(is_good && !line.contains("millpond"), "{line}");
        }
    }
}
