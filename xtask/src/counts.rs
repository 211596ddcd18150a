//! Counts of tests: what `cargo test` printed, and the sum over all steps.

use std::fmt;

/// Numbers of tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Tests that held.
    pub passed: u64,
    /// Tests that did not.
    pub failed: u64,
    /// Tests that were not run.
    pub skipped: u64,
}

impl Counts {
    /// So many of each.
    pub const fn new(passed: u64, failed: u64, skipped: u64) -> Self {
        Self {
            passed,
            failed,
            skipped,
        }
    }

    /// Sums up the `test result:` lines of a test run.
    pub fn of_output(output: &str) -> Self {
        let mut sum = Self::default();
        for line in output.lines() {
            let Some((_, counts)) = line.trim_start().split_once("test result: ") else {
                continue;
            };
            sum.passed += number_before(counts, " passed");
            sum.failed += number_before(counts, " failed");
            sum.skipped += number_before(counts, " ignored");
        }
        sum
    }

    /// Adds others.
    pub fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

fn number_before(counts: &str, word: &str) -> u64 {
    let Some((front, _)) = counts.split_once(word) else {
        return 0;
    };
    let digits = front
        .rsplit(|c: char| !c.is_ascii_digit())
        .next()
        .unwrap_or_default();
    digits.parse().unwrap_or(0)
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        match self.skipped {
            0 => Ok(()),
            skipped => write!(f, ", {skipped} skipped"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_result_line_counts() {
        let output = "running 2 tests\n\
            test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out\n\
            Doc-tests x\n\
            test result: FAILED. 40 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out\n";
        assert_eq!(Counts::of_output(output), Counts::new(42, 3, 1));
    }

    #[test]
    fn a_sentence_about_passing_is_no_result() {
        assert_eq!(Counts::of_output("7 passed; 0 failed"), Counts::default());
    }

    #[test]
    fn the_closing_line_mentions_skips_only_when_there_are_any() {
        assert_eq!(Counts::new(3, 0, 0).to_string(), "3 passed, 0 failed");
        let skipped = Counts::new(3, 1, 2);
        assert_eq!(skipped.to_string(), "3 passed, 1 failed, 2 skipped");
    }
}
