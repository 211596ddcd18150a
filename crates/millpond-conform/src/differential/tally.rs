//! Counts what a run has covered: a test without any rejection says nothing about rejections.

use std::collections::BTreeMap;
use std::fmt;

/// Everything that must have been seen by a run of [`ENOUGH`] scripts, as words of its logs.
const WANTED: [&str; 18] = [
    "taken",
    "refused",
    "discarded",
    "caller",
    "dropped",
    "started",
    "ended",
    "failed",
    "interrupted",
    "invalid",
    "cancelled",
    "removed",
    "returned",
    "no-handle",
    "terminated",
    "value",
    "error",
    "visited",
];

/// The same for scripts of completable futures: words that are in their lines.
const WANTED_OF_FUTURES: [&str; 12] = [
    "made; ",
    "yes; ",
    "no; ",
    "; ran ",
    "pending",
    "null",
    "~!cancelled",
    "=!cancelled",
    "=!timed-out",
    "~!rejected",
    "+/",
    "/deq",
];

/// A run of so many scripts sees everything that there is.
const ENOUGH: u64 = 1_000;

/// Counts of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Scripts played.
    pub scripts: u64,
    /// Steps played.
    pub steps: u64,
    /// How many of the scripts were for completable futures.
    pub futures: u64,
    seen: BTreeMap<&'static str, u64>,
}

impl Tally {
    /// Adds the log of one script.
    pub fn add(&mut self, log: &[String]) {
        self.scripts += 1;
        self.steps += log.len() as u64;
        if log.iter().any(|line| line.starts_with("made; ")) {
            self.futures += 1;
            for word in WANTED_OF_FUTURES {
                let lines = log.iter().filter(|line| line.contains(word)).count() as u64;
                if lines > 0 {
                    *self.seen.entry(word).or_default() += lines;
                }
            }
            return;
        }
        for line in log {
            let mut parts = line.split("; ");
            let outcome = parts.next().unwrap_or_default();
            let first = outcome.split(' ').next().unwrap_or_default();
            if first != "returned" || outcome != first {
                self.saw(first);
            }
            for event in parts.next().unwrap_or_default().split(", ") {
                self.saw(event.split(' ').next().unwrap_or_default());
                if event.ends_with('!') {
                    self.saw("interrupted");
                }
            }
        }
        // The fates are in the last line, between the events and the readings.
        let fates = log.last().and_then(|line| line.split("; ").nth(2));
        for fate in fates.unwrap_or_default().split(' ') {
            if let Some((_, fate @ ("cancelled" | "removed"))) = fate.split_once('=') {
                self.saw(fate);
            }
        }
        let is_terminated = |line: &&String| line.contains(" state=terminated ");
        if log.iter().rev().skip(1).any(|line| is_terminated(&line)) {
            self.saw("terminated");
        }
    }

    fn saw(&mut self, word: &str) {
        if let Some(wanted) = WANTED.iter().find(|wanted| **wanted == word) {
            *self.seen.entry(wanted).or_default() += 1;
        }
    }

    /// The kinds of events that a run of this size should have seen and has not.
    pub fn missing(&self) -> Vec<&'static str> {
        let is_missing = |word: &&str| !self.seen.contains_key(*word);
        let of_pools = self.scripts - self.futures >= ENOUGH;
        let of_futures = self.futures >= ENOUGH;
        let wanted = WANTED.into_iter().filter(|_| of_pools);
        let wanted = wanted.chain(WANTED_OF_FUTURES.into_iter().filter(|_| of_futures));
        wanted.filter(is_missing).collect()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seen: Vec<String> = self
            .seen
            .iter()
            .map(|(word, count)| format!("{word} {count}"))
            .collect();
        write!(
            f,
            "{} scripts, {} steps: {}",
            self.scripts,
            self.steps,
            seen.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_events_and_fates_are_counted() {
        let lines = [
            "refused; dropped 2, ended 1!; state=running size=1",
            "returned; ; state=terminated ",
            "end; ; 1=worker 2=removed; state=terminated ",
        ];
        let mut tally = Tally::default();
        tally.add(&lines.map(str::to_owned));
        let text = "1 scripts, 3 steps: dropped 1, ended 1, interrupted 1, refused 1, removed 1, \
            terminated 1";
        assert_eq!(tally.to_string(), text);
        assert_eq!(
            tally.missing(),
            Vec::<&str>::new(),
            "a small run may miss much"
        );
    }

    #[test]
    fn a_large_run_that_misses_something_says_what() {
        let mut tally = Tally::default();
        (0..ENOUGH).for_each(|_| tally.add(&["taken; ; size=1".to_owned()]));
        let missing = tally.missing();
        assert_eq!(missing.len(), WANTED.len() - 1);
        assert!(!missing.contains(&"taken"));
    }
}
