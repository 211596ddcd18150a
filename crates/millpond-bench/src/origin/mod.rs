//! Where figures come from: what was built, from what, with what, and how it was measured.
//!
//! A figure that nobody can measure again is an anecdote. So every file of figures names the commit, the compiler, the
//! profile, the allocator, the versions of all peers and guests, the day, the seed, and whether rounds were few and short.
//!
//! The commit is the last one that changed what is measured ([`sources`]): one that changes a page of the documentation
//! measures the same. Whether files were changed since then is read when the run begins, and so is whether the program is
//! older than its sources: a build that was forgotten.

mod day;
mod lock;
mod sources;

pub use sources::Sources;
pub(crate) use sources::root;

use crate::condition::Condition;
use crate::harness::Pace;
use crate::peers::guest::{self, GuestFact};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::process::Command;

/// Where the figures of a run come from. An unknown value is `null`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// What was measured.
    #[serde(flatten)]
    pub sources: Sources,
    /// When it began, in UTC.
    pub date: String,
    /// The compiler.
    pub rustc: String,
    /// How it was compiled.
    pub profile: String,
    /// Where its memory comes from.
    pub allocator: String,
    /// How thoroughly it was measured.
    pub run: Run,
    /// The length of a round.
    pub round_millis: u64,
    /// The most rounds of a workload; each row says how many it had.
    pub most_rounds: usize,
    /// The time of each candidate in a workload, where that ended the rounds.
    pub budget_millis: Option<u64>,
    /// What else the machine did.
    pub condition: Condition,
    /// The seed of the orders in which candidates took their turns.
    pub seed: u64,
    /// The versions of the peers in Rust.
    pub peers: BTreeMap<String, String>,
    /// The peers in other languages, with their versions and options, or why they were left out.
    pub guests: Vec<GuestFact>,
}

/// How thoroughly it was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Run {
    /// Few and short rounds, for a look.
    Quick,
    /// All rounds.
    Full,
    /// As many rounds as a budget of time allows, and enough for a verdict.
    Budget,
}

impl Origin {
    /// Reads all facts that are there before the run; guests are known after it.
    pub fn read(run: Run, pace: &Pace, condition: Condition, is_counting: bool) -> Self {
        let millis =
            |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Origin {
            sources: Sources::read(),
            date: day::now(),
            rustc: env!("MILLPOND_BENCH_RUSTC").into(),
            profile: profile(),
            allocator: allocator(is_counting),
            run,
            round_millis: millis(pace.settings.round_time),
            most_rounds: pace.settings.rounds,
            budget_millis: pace.budget.map(millis),
            condition,
            seed: pace.seed,
            peers: lock::versions(),
            guests: Vec::new(),
        }
    }

    /// The same with the guests that were asked for meanwhile.
    #[must_use]
    pub fn with_guests(self) -> Self {
        Origin {
            guests: guest::facts(),
            ..self
        }
    }

    /// Lines for the head of a run, ending in a newline.
    pub fn lines(&self) -> String {
        let (rustc, profile, seed) = (&self.rustc, &self.profile, self.seed);
        let commit = self.sources.text();
        let mut text = format!("{commit}, {rustc}, {profile}, {}\n", self.date);
        text += &format!("candidates take turns in orders drawn by the seed {seed} (--seed)\n");
        if self.sources.is_stale == Some(true) {
            text += "This program is older than its sources: build it anew before you believe a figure.\n";
        }
        if self.run == Run::Quick {
            text += QUICK;
        }
        text
    }
}

/// What a quick run says of itself.
const QUICK: &str = "QUICK RUN: few and short rounds, good for a look and not to be quoted.\n";

/// What is added to the heading of every table of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heading {
    /// Whether rounds were few and short.
    pub is_quick: bool,
    /// What else the machine did.
    pub condition: Condition,
}

impl Heading {
    /// The end of a heading; nothing for a full run on a quiet machine.
    pub fn text(self) -> String {
        let mut text = String::new();
        if self.condition != Condition::Quiet {
            text += &format!(", {}", self.condition.words());
        }
        if self.is_quick {
            text += ", QUICK RUN";
        }
        text
    }
}

fn profile() -> String {
    let (name, level) = (
        env!("MILLPOND_BENCH_PROFILE"),
        env!("MILLPOND_BENCH_OPT_LEVEL"),
    );
    let target = env!("MILLPOND_BENCH_TARGET");
    let mut text = format!("{name}, opt-level {level}");
    for (setting, value) in lock::profile(name) {
        text += &format!(", {setting} {value}");
    }
    format!("{text}, {target}")
}

fn allocator(is_counting: bool) -> String {
    let said = Command::new("getconf")
        .arg("GNU_LIBC_VERSION")
        .output()
        .ok();
    let version = said.and_then(|said| String::from_utf8(said.stdout).ok());
    let version = version.map(|text| text.trim().to_owned());
    let version = version.filter(|text| !text.is_empty());
    let version = version.map_or("of the system".into(), |text| format!("of {text}"));
    if is_counting {
        format!("malloc {version}, with a counter that is off while time is measured")
    } else {
        format!("malloc {version}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::Settings;

    fn origin(run: Run) -> Origin {
        Origin::read(run, &Pace::of(Settings::QUICK), Condition::Busy, true)
    }

    #[test]
    fn everything_that_a_figure_depends_on_is_written_down() {
        let json = serde_json::to_value(origin(Run::Quick)).unwrap();
        for key in [
            "commit",
            "is_dirty",
            "is_stale",
            "date",
            "rustc",
            "profile",
            "allocator",
            "run",
            "round_millis",
            "most_rounds",
            "budget_millis",
            "condition",
            "seed",
            "peers",
            "guests",
        ] {
            assert!(json.get(key).is_some(), "{key} is not in {json}");
        }
        assert_eq!(
            (&json["run"], &json["condition"]),
            (&"quick".into(), &"busy".into())
        );
        assert!(
            json["rustc"].as_str().unwrap().starts_with("rustc 1."),
            "{json}"
        );
        assert!(
            json["profile"].as_str().unwrap().contains("opt-level"),
            "{json}"
        );
        let read: Origin = serde_json::from_value(json).unwrap();
        assert_eq!(read.most_rounds, Settings::QUICK.rounds);
    }

    #[test]
    fn a_quick_run_says_so_in_every_heading() {
        assert!(origin(Run::Quick).lines().contains("QUICK RUN"));
        assert!(!origin(Run::Full).lines().contains("QUICK"));
        let quick = Heading {
            is_quick: true,
            condition: Condition::OneCpu,
        };
        assert_eq!(quick.text(), ", one CPU, QUICK RUN");
        assert_eq!(Heading::default().text(), "");
    }
}
