//! The table of gates: one entry carries name, help, needs and the function.
//!
//! The order is the order of `cargo xtask test`: quick gates first, so that a small mistake
//! shows within seconds. To add a gate, write its file in [`crate::gates`] and one entry here;
//! the command line, the help and the summary follow.

use std::fmt;

use anyhow::Result;

use crate::counts::Counts;
use crate::gates;
use crate::report::Report;
use crate::step::Step;
use crate::workspace::Workspace;

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It passed.
    Passed,
    /// It failed: the reason in a few words. The log has the details.
    Failed(String),
    /// It cannot run here: the reason.
    Skipped(String),
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Passed => write!(f, "ok"),
            Verdict::Failed(reason) => write!(f, "FAILED ({reason})"),
            Verdict::Skipped(reason) => write!(f, "skipped ({reason})"),
        }
    }
}

/// What a step reports.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How it ended.
    pub verdict: Verdict,
    /// The tests that it ran, if it runs tests.
    pub tests: Option<Counts>,
    /// A few words for the summary.
    pub note: String,
}

impl Outcome {
    /// The step passed.
    pub fn passed(note: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Passed,
            tests: None,
            note: note.into(),
        }
    }

    /// The step failed.
    pub fn failed(reason: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Failed(reason.into()),
            tests: None,
            note: String::new(),
        }
    }

    /// The step cannot run here.
    pub fn skipped(reason: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Skipped(reason.into()),
            tests: None,
            note: String::new(),
        }
    }

    /// The outcome of a command that passed or failed for this reason.
    pub fn of_command(success: bool, reason: &str) -> Self {
        if success {
            Self::passed("")
        } else {
            Self::failed(reason)
        }
    }

    /// The outcome of commands that ran tests. No test at all is a failure: the step found nothing to run.
    pub fn of_tests(success: bool, tests: Counts) -> Self {
        let verdict = match (success, tests.passed, tests.failed) {
            (true, 0, 0) => Verdict::Failed("no test ran".into()),
            (true, _, 0) => Verdict::Passed,
            (_, _, 0) => Verdict::Failed("it failed outside its tests".into()),
            (_, _, failed) => Verdict::Failed(format!("{failed} tests failed")),
        };
        Self {
            verdict,
            tests: Some(tests),
            note: String::new(),
        }
    }

    /// The outcome of a pure gate; its findings go to the log.
    ///
    /// # Errors
    /// If the log cannot be written.
    pub fn of_report(report: &Report, step: &mut Step) -> Result<Self> {
        step.say(&report.to_string())?;
        Ok(match report.findings.len() {
            _ if report.is_clean() && !report.pending.is_empty() => Self::passed(format!(
                "{} places, {} pending",
                report.checked,
                report.pending.len()
            )),
            _ if report.is_clean() => Self::passed(format!("{} places", report.checked)),
            0 => Self::failed("nothing to check"),
            wrong => Self::failed(format!("{wrong} violations")),
        })
    }

    /// What this step adds to the closing line: its tests, or one for a gate that runs none. A step
    /// that failed outside its tests adds one failure.
    pub fn counts(&self) -> Counts {
        let tests = self.tests.unwrap_or_default();
        let mut sum = tests;
        match self.verdict {
            Verdict::Passed if self.tests.is_none() => sum.passed += 1,
            Verdict::Passed => {}
            Verdict::Failed(_) if tests.failed == 0 => sum.failed += 1,
            Verdict::Failed(_) => {}
            Verdict::Skipped(_) => sum.skipped += 1,
        }
        sum
    }
}

/// How a gate is run on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invocation {
    /// `cargo xtask NAME`.
    Own,
    /// By this command with arguments.
    Through(&'static str),
}

/// One gate.
#[derive(Clone, Copy, Debug)]
pub struct Gate {
    /// Its name, for the summary, the log, `--only` and `--skip`.
    pub name: &'static str,
    /// One line of help.
    pub help: &'static str,
    /// The commands it needs, as named in [`crate::needs::NEEDS`].
    pub needs: &'static [&'static str],
    /// How it is run on its own.
    pub invocation: Invocation,
    /// Runs it.
    pub run: fn(&Workspace, &mut Step) -> Result<Outcome>,
}

impl Gate {
    /// The gate called `name`.
    pub fn named(name: &str) -> Option<&'static Gate> {
        GATES.iter().find(|gate| gate.name == name)
    }

    /// The arguments of `cargo xtask` that run this gate alone.
    pub fn call(&self) -> &'static str {
        match self.invocation {
            Invocation::Own => self.name,
            Invocation::Through(call) => call,
        }
    }
}

/// Every gate, in the order of `cargo xtask test`.
pub const GATES: &[Gate] = &[
    Gate {
        name: "fmt",
        help: "every file is formatted as rustfmt.toml says",
        needs: &["cargo-fmt"],
        invocation: Invocation::Own,
        run: gates::fmt::run,
    },
    Gate {
        name: "layers",
        help: "dependencies point down, between crates and between modules; file tables are complete",
        needs: &[],
        invocation: Invocation::Own,
        run: gates::layers::run,
    },
    Gate {
        name: "ledger",
        help: "unsafe only in millpond-raw, each with its invariant; each strong ordering with its label",
        needs: &[],
        invocation: Invocation::Own,
        run: gates::ledger::run,
    },
    Gate {
        name: "links",
        help: "no dead links, anchors or paths in documents and comments",
        needs: &["git"],
        invocation: Invocation::Own,
        run: gates::links::run,
    },
    Gate {
        name: "names",
        help: "predicates ask and do not act; the vocabulary is short",
        needs: &[],
        invocation: Invocation::Own,
        run: gates::names::run,
    },
    Gate {
        name: "seeds",
        help: "tests draw at random from one fixed seed",
        needs: &[],
        invocation: Invocation::Own,
        run: gates::seeds::run,
    },
    Gate {
        name: "clippy",
        help: "no warning in the workspace, nor in millpond-raw under any of its switches",
        needs: &["cargo-clippy"],
        invocation: Invocation::Own,
        run: gates::clippy::run,
    },
    Gate {
        name: "docs",
        help: "the documentation builds without a warning",
        needs: &[],
        invocation: Invocation::Own,
        run: gates::docs::run,
    },
    Gate {
        name: "tests",
        help: "every test and every example in the documentation",
        needs: &["cargo-fmt", "cargo-clippy", "git", "python3"],
        invocation: Invocation::Own,
        run: gates::tests::run,
    },
    Gate {
        name: "exhaustion",
        help: "without threads, timer, CPUs, stack: no test aborts, hangs, spins or fails without a clear error",
        needs: &[],
        invocation: Invocation::Through("exhaustion"),
        run: gates::exhaustion::run_all,
    },
    Gate {
        name: "differential",
        help: "random scripts give the same logs on Java's thread pool and on ours",
        needs: &["javac"],
        invocation: Invocation::Through("differential"),
        run: gates::differential::run_all,
    },
    Gate {
        name: "portable",
        help: "the tests of millpond-raw and millpond on the fallback without futexes",
        needs: &[],
        invocation: Invocation::Own,
        run: gates::tests::run_portable,
    },
    Gate {
        name: "chaos",
        help: "the tests of millpond-raw with random yields, under fixed seeds",
        needs: &[],
        invocation: Invocation::Through("chaos --tests"),
        run: gates::tests::run_chaos,
    },
    Gate {
        name: "chaos-pool",
        help: "stress of the pool with random yields: no task is lost, the counts add up",
        needs: &[],
        invocation: Invocation::Through("chaos"),
        run: gates::chaos::run_all,
    },
    Gate {
        name: "programs",
        help: "random programs with many engines at once: no task is lost, the counts add up",
        needs: &[],
        invocation: Invocation::Through("programs"),
        run: gates::programs::run_all,
    },
    Gate {
        name: "loom",
        help: "the loom models: every interleaving of small cases",
        needs: &[],
        invocation: Invocation::Through("models loom"),
        run: gates::models::run_loom,
    },
    Gate {
        name: "shuttle",
        help: "the shuttle models: random schedules of larger cases",
        needs: &[],
        invocation: Invocation::Through("models shuttle"),
        run: gates::models::run_shuttle,
    },
    Gate {
        name: "weaken",
        help: "each labelled ordering is needed: a loom model fails without it",
        needs: &[],
        invocation: Invocation::Through("weaken"),
        run: gates::weaken::run_all,
    },
    Gate {
        name: "asan",
        help: "the tests of millpond-raw and millpond under AddressSanitizer",
        needs: &["llvm-symbolizer"],
        invocation: Invocation::Through("sanitize asan"),
        run: gates::sanitize::run_asan,
    },
    Gate {
        name: "tsan",
        help: "the tests of millpond-raw and millpond under ThreadSanitizer",
        needs: &["llvm-symbolizer"],
        invocation: Invocation::Through("sanitize tsan"),
        run: gates::sanitize::run_tsan,
    },
    Gate {
        name: "program",
        help: "the millpond program runs in release mode and prints something",
        needs: &[],
        invocation: Invocation::Own,
        run: gates::program::run,
    },
    Gate {
        name: "figures",
        help: "README and docs/compare.md say what the published figures say",
        needs: &[],
        invocation: Invocation::Own,
        run: gates::figures::run,
    },
    Gate {
        name: "browser",
        help: "the page of the benchmarks in a browser: every plot is there and legible",
        needs: &["chromium"],
        invocation: Invocation::Own,
        run: gates::browser::run,
    },
    Gate {
        name: "terminal",
        help: "the demo in a terminal: keys, sizes, and a terminal left as it was",
        needs: &["tmux"],
        invocation: Invocation::Own,
        run: gates::program::run_in_a_terminal,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_test_at_all_is_a_failure() {
        let outcome = Outcome::of_tests(true, Counts::default());
        assert_eq!(outcome.verdict, Verdict::Failed("no test ran".into()));
        assert_eq!(outcome.counts().failed, 1);
    }

    #[test]
    fn a_step_that_fails_outside_its_tests_counts_as_one_failure() {
        let tests = Counts::new(5, 0, 0);
        let outcome = Outcome::of_tests(false, tests);
        assert_eq!(outcome.counts(), Counts::new(5, 1, 0));
    }

    #[test]
    fn failed_tests_are_counted_once() {
        let tests = Counts::new(5, 2, 0);
        assert_eq!(Outcome::of_tests(false, tests).counts(), tests);
    }

    #[test]
    fn a_gate_without_tests_counts_as_one() {
        assert_eq!(Outcome::passed("").counts().passed, 1);
        assert_eq!(Outcome::failed("").counts().failed, 1);
        assert_eq!(Outcome::skipped("").counts().skipped, 1);
    }

    #[test]
    fn names_are_unique_and_needs_are_known() {
        for (index, gate) in GATES.iter().enumerate() {
            assert!(
                GATES[..index].iter().all(|other| other.name != gate.name),
                "{}",
                gate.name
            );
            for need in gate.needs {
                assert!(
                    crate::needs::Need::named(need).is_some(),
                    "{}: {need}",
                    gate.name
                );
            }
        }
    }
}
