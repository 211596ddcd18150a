//! The table of gates: one entry carries name, help, needs and the function.
//!
//! The order is the order of `cargo xtask test`: cheap questions first, so that a small mistake
//! is told within seconds. To add a gate, write its file in [`crate::gates`] and one entry here;
//! the command line, the help and the summary follow.

use anyhow::Result;

use crate::gates;
use crate::house::House;
use crate::report::Report;
use crate::stage::Stage;
use crate::tally::Tally;

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It holds.
    Passed,
    /// It does not; the reason in a few words, the log has the rest.
    Failed(String),
    /// It cannot be asked here; the reason.
    Skipped(String),
}

/// What a step reports.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How it ended.
    pub verdict: Verdict,
    /// The tests it ran, if running tests is what it does.
    pub tests: Option<Tally>,
    /// A few words for the summary.
    pub note: String,
}

impl Outcome {
    /// The step holds.
    pub fn passed(note: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Passed,
            tests: None,
            note: note.into(),
        }
    }

    /// The step does not hold.
    pub fn failed(reason: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Failed(reason.into()),
            tests: None,
            note: String::new(),
        }
    }

    /// The step cannot be asked here.
    pub fn skipped(reason: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Skipped(reason.into()),
            tests: None,
            note: String::new(),
        }
    }

    /// The outcome of commands that ran tests. No test at all is a failure: the step went blind.
    pub fn of_tests(success: bool, tests: Tally) -> Self {
        let verdict = match (success, tests.passed, tests.failed) {
            (true, 0, 0) => Verdict::Failed("no test ran".into()),
            (true, _, 0) => Verdict::Passed,
            (_, _, 0) => Verdict::Failed("it broke outside its tests".into()),
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
    pub fn of_report(report: &Report, stage: &mut Stage) -> Result<Self> {
        stage.say(&report.to_string())?;
        Ok(match report.findings.len() {
            _ if report.is_clean() => Self::passed(format!("{} places", report.looked_at)),
            0 => Self::failed("nothing to look at"),
            wrong => Self::failed(format!("{wrong} violations")),
        })
    }

    /// What this step adds to the closing line: its tests, or one for a gate that runs none. A
    /// step that broke outside its tests counts as one failure more.
    pub fn tally(&self) -> Tally {
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

/// How a gate is called on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// `cargo xtask NAME`.
    Own,
    /// Through a command with arguments, spelled out here.
    Through(&'static str),
}

/// One gate.
#[derive(Clone, Copy, Debug)]
pub struct Gate {
    /// Its name: in the summary, of its log, for `--only` and `--skip`.
    pub name: &'static str,
    /// One line of help.
    pub help: &'static str,
    /// The commands it needs, as named in [`crate::needs::NEEDS`].
    pub needs: &'static [&'static str],
    /// How it is called on its own.
    pub door: Door,
    /// Asks the question.
    pub run: fn(&House, &mut Stage) -> Result<Outcome>,
}

impl Gate {
    /// The gate called `name`.
    pub fn named(name: &str) -> Option<&'static Gate> {
        GATES.iter().find(|gate| gate.name == name)
    }

    /// What one types after `cargo xtask` to run this gate alone.
    pub fn call(&self) -> &'static str {
        match self.door {
            Door::Own => self.name,
            Door::Through(call) => call,
        }
    }
}

/// Every gate, in the order of `cargo xtask test`.
pub const GATES: &[Gate] = &[
    Gate {
        name: "fmt",
        help: "every file is formatted as rustfmt.toml says",
        needs: &["cargo-fmt"],
        door: Door::Own,
        run: gates::fmt::run,
    },
    Gate {
        name: "layers",
        help: "dependencies point down, between crates and between modules of the library",
        needs: &[],
        door: Door::Own,
        run: gates::layers::run,
    },
    Gate {
        name: "ledger",
        help: "unsafe only in millpond-raw, each with its invariant; each strong ordering with its label",
        needs: &[],
        door: Door::Own,
        run: gates::ledger::run,
    },
    Gate {
        name: "links",
        help: "no dead links, anchors or paths in documents and comments",
        needs: &["git"],
        door: Door::Own,
        run: gates::links::run,
    },
    Gate {
        name: "seeds",
        help: "tests draw at random from one fixed seed",
        needs: &[],
        door: Door::Own,
        run: gates::seeds::run,
    },
    Gate {
        name: "clippy",
        help: "no warning in the workspace, nor in millpond-raw under any of its switches",
        needs: &["cargo-clippy"],
        door: Door::Own,
        run: gates::clippy::run,
    },
    Gate {
        name: "docs",
        help: "the documentation builds without a warning",
        needs: &[],
        door: Door::Own,
        run: gates::docs::run,
    },
    Gate {
        name: "tests",
        help: "every test and every example in the documentation",
        needs: &["cargo-fmt", "cargo-clippy", "git", "python3"],
        door: Door::Own,
        run: gates::tests::run,
    },
    Gate {
        name: "exhaustion",
        help: "without threads, timer, CPUs, stack: no body aborts, hangs, spins or fails unclearly",
        needs: &[],
        door: Door::Through("exhaustion"),
        run: gates::exhaustion::run_all,
    },
    Gate {
        name: "differential",
        help: "random scripts come to the same on Java's thread pool and on ours",
        needs: &["javac"],
        door: Door::Through("differential"),
        run: gates::differential::run_all,
    },
    Gate {
        name: "portable",
        help: "the tests of millpond-raw and millpond on the fallback without futexes",
        needs: &[],
        door: Door::Own,
        run: gates::tests::run_portable,
    },
    Gate {
        name: "chaos",
        help: "the tests of millpond-raw with random yields, under fixed seeds",
        needs: &[],
        door: Door::Through("chaos --tests"),
        run: gates::tests::run_chaos,
    },
    Gate {
        name: "chaos-pool",
        help: "everything at once on the pool, with random yields: no task is lost, the books balance",
        needs: &[],
        door: Door::Through("chaos"),
        run: gates::chaos::run_all,
    },
    Gate {
        name: "programs",
        help: "random programs with many engines at once: no task is lost, the books balance",
        needs: &[],
        door: Door::Through("programs"),
        run: gates::programs::run_all,
    },
    Gate {
        name: "loom",
        help: "the loom models: every interleaving of small cases",
        needs: &[],
        door: Door::Through("models loom"),
        run: gates::models::run_loom,
    },
    Gate {
        name: "shuttle",
        help: "the shuttle models: random schedules of larger cases",
        needs: &[],
        door: Door::Through("models shuttle"),
        run: gates::models::run_shuttle,
    },
    Gate {
        name: "weaken",
        help: "each labelled ordering is needed: a loom model fails without it",
        needs: &[],
        door: Door::Through("weaken"),
        run: gates::weaken::run_all,
    },
    Gate {
        name: "asan",
        help: "the tests of millpond-raw and millpond under AddressSanitizer",
        needs: &["llvm-symbolizer"],
        door: Door::Through("sanitize asan"),
        run: gates::sanitize::run_asan,
    },
    Gate {
        name: "tsan",
        help: "the tests of millpond-raw and millpond under ThreadSanitizer",
        needs: &["llvm-symbolizer"],
        door: Door::Through("sanitize tsan"),
        run: gates::sanitize::run_tsan,
    },
    Gate {
        name: "program",
        help: "the millpond program runs in release mode and shows something",
        needs: &[],
        door: Door::Own,
        run: gates::program::run,
    },
    Gate {
        name: "browser",
        help: "the page of the bench in a real browser: every plot is there and legible",
        needs: &["chromium"],
        door: Door::Own,
        run: gates::browser::run,
    },
    Gate {
        name: "terminal",
        help: "the demo in a real terminal: keys, sizes, and a terminal left as it was",
        needs: &["tmux"],
        door: Door::Own,
        run: gates::program::run_in_a_terminal,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_test_at_all_is_a_failure() {
        let outcome = Outcome::of_tests(true, Tally::default());
        assert_eq!(outcome.verdict, Verdict::Failed("no test ran".into()));
        assert_eq!(outcome.tally().failed, 1);
    }

    #[test]
    fn a_step_that_breaks_outside_its_tests_counts_as_one_failure() {
        let tests = Tally {
            passed: 5,
            failed: 0,
            skipped: 0,
        };
        let outcome = Outcome::of_tests(false, tests);
        assert_eq!(
            outcome.tally(),
            Tally {
                passed: 5,
                failed: 1,
                skipped: 0
            }
        );
    }

    #[test]
    fn failed_tests_are_counted_once() {
        let tests = Tally {
            passed: 5,
            failed: 2,
            skipped: 0,
        };
        assert_eq!(Outcome::of_tests(false, tests).tally(), tests);
    }

    #[test]
    fn a_gate_without_tests_counts_as_one() {
        assert_eq!(Outcome::passed("").tally().passed, 1);
        assert_eq!(Outcome::failed("").tally().failed, 1);
        assert_eq!(Outcome::skipped("").tally().skipped, 1);
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
