//! Runs scripts on both sides until all are done or two logs differ.

use super::judge::{Disagreement, judge};
use super::script::{Script, Step};
use super::tally::Tally;
use super::{Side, decisions, shrink};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long a script is made shorter at most: a script that gets stuck costs a timeout each time.
const SHRINKING: Duration = Duration::from_secs(120);

/// The source of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Written by the generator.
    Seed(u64),
    /// Written by the generator of scripts for completable futures.
    Futures(u64),
    /// Written by a person.
    File(PathBuf),
}

impl Source {
    /// The command that plays it again.
    pub fn command(&self) -> String {
        match self {
            Source::Seed(seed) => format!("cargo xtask differential --seed {seed} --count 1"),
            Source::Futures(seed) => {
                format!("cargo xtask differential --seed {seed} --futures 1")
            }
            Source::File(file) => format!("cargo xtask differential --scripts {}", file.display()),
        }
    }
}

/// Both sides.
#[derive(Debug)]
pub struct Runner<O, J> {
    ours: O,
    java: J,
}

/// The result of a run.
#[derive(Debug, Default)]
pub struct Report {
    /// The kinds of events that were seen.
    pub tally: Tally,
    /// The first disagreement; the run ended there.
    pub found: Option<Found>,
}

/// A disagreement, made as short as it can be.
#[derive(Debug)]
pub struct Found {
    /// The source of the script.
    pub source: Source,
    /// The script as it was.
    pub original: Script,
    /// The disagreement of the shortest script found.
    pub shortest: Disagreement,
    /// False if it did not show when the script was played again.
    pub is_steady: bool,
}

impl<O: Side, J: Side> Runner<O, J> {
    /// Lets two sides play.
    pub fn new(ours: O, java: J) -> Self {
        Runner { ours, java }
    }

    /// Plays one script on both sides at the same time.
    ///
    /// # Errors
    ///
    /// A player is of no use any more.
    pub fn duel(&mut self, script: &Script, tally: &mut Tally) -> io::Result<Option<Disagreement>> {
        self.java.begin(script)?;
        self.ours.begin(script)?;
        let ours = self.ours.finish()?;
        let java = self.java.finish()?;
        tally.add(&java);
        Ok(judge(script, &ours, &java))
    }

    /// Plays all scripts, or until two logs differ; then that script is made shorter.
    ///
    /// # Errors
    ///
    /// A player is of no use any more.
    pub fn run(
        &mut self,
        scripts: impl IntoIterator<Item = (Source, Script)>,
        mut progress: impl FnMut(&Tally),
    ) -> io::Result<Report> {
        let mut report = Report::default();
        for (source, script) in scripts {
            if let Some(first) = self.duel(&script, &mut report.tally)? {
                report.found = Some(self.look_closer(source, script, first));
                break;
            }
            progress(&report.tally);
        }
        Ok(report)
    }

    fn look_closer(&mut self, source: Source, original: Script, first: Disagreement) -> Found {
        if first.is_expectation {
            // Every step is part of what the author meant, and the players agree anyway.
            return Found {
                source,
                original,
                shortest: first,
                is_steady: true,
            };
        }
        let mut shortest = first;
        let end = Instant::now() + SHRINKING;
        let mut differs = |runner: &mut Self, script: &Script| {
            // A player that breaks down here has shown enough; what is known by then is reported.
            let found = runner.duel(script, &mut Tally::default()).ok().flatten();
            match found {
                Some(found) if Instant::now() < end => {
                    shortest = found;
                    true
                }
                _ => false,
            }
        };
        // The expectations of the whole script mean nothing for half of it.
        let mut played = original.clone();
        played.steps.retain(Step::is_played);
        let is_steady = differs(self, &played);
        if is_steady {
            shrink(&played, |shorter| {
                decisions::forbids(shorter).is_none() && differs(self, shorter)
            });
        }
        Found {
            source,
            original,
            shortest,
            is_steady,
        }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps = self.original.steps.len();
        if self.shortest.is_expectation {
            writeln!(f, "the two agree, but not with the script:")?;
        } else if self.is_steady {
            writeln!(
                f,
                "the two disagree; {} of {steps} steps are enough to see it:",
                self.shortest.script.steps.len()
            )?;
        } else {
            writeln!(
                f,
                "the two disagreed once, and not when the script was played again (a race?):"
            )?;
        }
        writeln!(f, "\n{}\n", self.shortest)?;
        match &self.source {
            Source::Seed(seed) | Source::Futures(seed) => writeln!(f, "the seed: {seed}")?,
            Source::File(file) => writeln!(f, "the file: {}", file.display())?,
        }
        write!(f, "to see it again: {}", self.source.command())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::differential::generate;
    use crate::differential::judge::Log;

    /// A side that knows nothing of pools: it answers each step with its words, and breaks the rule at
    /// steps of one kind.
    struct Parrot {
        lies_about: &'static str,
        script: Option<Script>,
        /// How many scripts it will still lie about.
        lies_left: usize,
    }

    impl Parrot {
        fn new(lies_about: &'static str, lies_left: usize) -> Self {
            Parrot {
                lies_about,
                script: None,
                lies_left,
            }
        }
    }

    impl Side for Parrot {
        fn begin(&mut self, script: &Script) -> io::Result<()> {
            self.script = Some(script.clone());
            Ok(())
        }

        fn finish(&mut self) -> io::Result<Log> {
            let lines = self.script.take().expect("it has begun").lines();
            let mut has_lied = false;
            let answers = lines.iter().map(|line| {
                let lies = self.lies_left > 0 && line.starts_with(self.lies_about);
                has_lied |= lies;
                format!("{}; ; size=0", if lies { "a lie" } else { line })
            });
            let answers = answers.collect();
            self.lies_left -= usize::from(has_lied);
            Ok(answers)
        }
    }

    fn scripts() -> impl Iterator<Item = (Source, Script)> {
        (0..50).map(|seed| (Source::Seed(seed), generate::script(seed)))
    }

    #[test]
    fn two_sides_that_agree_play_everything() {
        let mut runner = Runner::new(Parrot::new("nothing", 0), Parrot::new("nothing", 0));
        let mut told = 0;
        let report = runner.run(scripts(), |_| told += 1).unwrap();
        assert!(report.found.is_none());
        assert_eq!((report.tally.scripts, told), (50, 50));
    }

    #[test]
    fn a_side_that_lies_is_caught_and_the_script_made_short() {
        let mut runner = Runner::new(Parrot::new("idle-out", usize::MAX), Parrot::new("x", 0));
        let found = runner.run(scripts(), |_| ()).unwrap().found.unwrap();
        assert!(found.is_steady);
        let text = found.to_string();
        assert!(text.contains("1 of "), "{text}");
        assert!(text.contains("\n-> idle-out\n"), "{text}");
        assert!(text.contains("ours `a lie`, Java's `idle-out`"), "{text}");
        let Source::Seed(seed) = found.source else {
            panic!("it came from a seed");
        };
        let again = format!("cargo xtask differential --seed {seed} --count 1");
        assert!(text.ends_with(&again), "{text}");
    }

    #[test]
    fn a_script_that_expects_too_much_is_shown_whole() {
        let text = "pool core=1 max=1 queue=array:1\nidle-out\nsubmit 1\nexpect size=7\n";
        let all = [(Source::File("a.txt".into()), text.parse().unwrap())];
        let mut runner = Runner::new(Parrot::new("x", 0), Parrot::new("x", 0));
        let found = runner.run(all, |_| ()).unwrap().found.unwrap();
        let shown = found.to_string();
        assert!(shown.starts_with("the two agree, but not with"), "{shown}");
        assert!(
            shown.contains("   idle-out\n-> submit 1\n   expect size=7\n"),
            "{shown}"
        );
        assert!(shown.contains("expected size=7, but it is 0"), "{shown}");
    }

    #[test]
    fn a_disagreement_that_does_not_come_back_is_told_as_such() {
        let mut runner = Runner::new(Parrot::new("submit", 1), Parrot::new("x", 0));
        let found = runner.run(scripts(), |_| ()).unwrap().found.unwrap();
        assert!(!found.is_steady);
        let text = found.to_string();
        assert!(text.contains("disagreed once"), "{text}");
        assert!(text.contains("ours `a lie`"), "{text}");
    }
}
