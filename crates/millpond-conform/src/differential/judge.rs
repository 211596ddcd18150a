//! Compares two logs line by line, and checks what a script expects.
//!
//! A line of a log is `outcome; events; readings`; the last one has the fates of the tasks before the
//! readings. Both players write the same words, so lines are compared as they are.

use super::script::{Script, Step};
use std::fmt;

/// A log: a line for the pool, one for each step that is played, and one for the end.
pub type Log = Vec<String>;

/// How two logs of one script differ, at the first line that does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement {
    /// The script.
    pub script: Script,
    /// The line of the log, from 0: 0 is the pool.
    pub line: usize,
    /// The step of that line.
    pub step: String,
    /// The disagreement.
    pub problem: String,
    /// The two agree, but not with what the script expects.
    pub is_expectation: bool,
    /// Our line.
    pub ours: String,
    /// Java's line.
    pub java: String,
}

/// The first disagreement of the two logs, if there is one.
pub fn judge(script: &Script, ours: &[String], java: &[String]) -> Option<Disagreement> {
    let steps = script.lines();
    let line = |log: &[String], index: usize| {
        let text = log.get(index).map(String::as_str);
        text.unwrap_or("(nothing)").to_owned()
    };
    let disagreement = |index: usize, problem: String| Disagreement {
        script: script.clone(),
        line: index,
        step: steps.get(index).cloned().unwrap_or_default(),
        problem,
        is_expectation: false,
        ours: line(ours, index),
        java: line(java, index),
    };
    for index in 0..ours.len().max(java.len()).max(1) {
        let (mine, theirs) = (line(ours, index), line(java, index));
        if mine != theirs {
            return Some(disagreement(index, difference(&mine, &theirs)));
        }
        if is_stuck(&mine) || mine == "(nothing)" {
            return Some(disagreement(index, "both are stuck".into()));
        }
    }
    let (index, problem) = expectations(script, java)?;
    Some(Disagreement {
        is_expectation: true,
        ..disagreement(index, problem)
    })
}

/// Whether a player gave up at this line.
pub(super) fn is_stuck(line: &str) -> bool {
    line.starts_with("stuck")
}

/// The first expectation that the log does not meet.
pub fn expectations(script: &Script, log: &[String]) -> Option<(usize, String)> {
    let mut line = 0;
    for step in &script.steps {
        let Step::Expect(readings) = step else {
            line += 1;
            continue;
        };
        let text = log.get(line).map_or("", String::as_str);
        for (name, value) in readings {
            let found = answer(text, name);
            if found.as_ref() != Some(value) {
                let found = found.unwrap_or_else(|| "not told".into());
                return Some((line, format!("expected {name}={value}, but it is {found}")));
            }
        }
    }
    None
}

/// The value of `name` in a line: a reading, the fate of a task, or its outcome or events by those
/// names. An expectation is one word, so a blank is written as `_`, and none follows a comma.
fn answer(line: &str, name: &str) -> Option<String> {
    let mut parts = line.split("; ");
    let (outcome, events) = (parts.next()?, parts.next().unwrap_or_default());
    let found = match name {
        "outcome" => outcome,
        "events" => events,
        _ => parts
            .flat_map(|part| part.split(' '))
            .find_map(|word| word.strip_prefix(name)?.strip_prefix('='))?,
    };
    Some(found.replace(", ", ",").replace(' ', "_"))
}

/// Which parts of two lines differ, in words.
fn difference(ours: &str, java: &str) -> String {
    if is_stuck(ours) || is_stuck(java) {
        return "one of them is stuck".into();
    }
    let (mine, theirs) = (parts(ours), parts(java));
    let mut words: Vec<String> = mine
        .iter()
        .zip(&theirs)
        .filter(|(mine, theirs)| mine != theirs)
        .map(|(mine, theirs)| format!("ours `{mine}`, Java's `{theirs}`"))
        .collect();
    if mine.len() != theirs.len() {
        words.push("they do not tell the same things".into());
    }
    words.join("; ")
}

/// Outcome and events as they are, readings one by one.
fn parts(line: &str) -> Vec<&str> {
    let mut parts = line.split("; ");
    let head = [parts.next(), parts.next()];
    head.into_iter()
        .flatten()
        .chain(parts.flat_map(|part| part.split(' ')))
        .collect()
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut played, script) = (0, &self.script);
        let mark = |line: usize| if line == self.line { "->" } else { "  " };
        writeln!(f, "{} {}", mark(0), script.setup)?;
        for step in &script.steps {
            played += usize::from(step.is_played());
            let mark = if step.is_played() { mark(played) } else { "  " };
            writeln!(f, "{mark} {step}")?;
        }
        if self.step == "end" {
            writeln!(f, "-> (the end: all bodies go on, the pool is shut down)")?;
        }
        writeln!(f, "at `{}`: {}", self.step, self.problem)?;
        writeln!(f, "  ours:   {}", self.ours)?;
        write!(f, "  Java's: {}", self.java)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(steps: &str) -> Script {
        format!("pool core=1 max=1 queue=array:1\n{steps}")
            .parse()
            .unwrap()
    }

    fn log(lines: &[&str]) -> Log {
        lines.iter().map(|line| (*line).to_owned()).collect()
    }

    const POOL: &str = "ok; ; size=0 active=0";
    const END: &str = "end; ended 1; 1=worker; size=0 active=0";

    #[test]
    fn equal_logs_agree() {
        let log = log(&[POOL, "taken; started 1@worker; size=1 active=1", END]);
        assert_eq!(judge(&script("submit 1"), &log, &log), None);
    }

    #[test]
    fn the_first_line_that_differs_is_told_with_what_differs_in_it() {
        let ours = log(&[POOL, "taken; started 1@worker; size=2 active=1", "x"]);
        let java = log(&[POOL, "taken; started 1@worker; size=1 active=1", END]);
        let found = judge(&script("submit 1"), &ours, &java).unwrap();
        assert_eq!((found.line, found.step.as_str()), (1, "submit 1"));
        assert_eq!(found.problem, "ours `size=2`, Java's `size=1`");
        assert!(found.to_string().contains("\n-> submit 1\n"), "{found}");
    }

    #[test]
    fn a_log_that_ends_early_and_one_that_says_nothing_disagree() {
        let java = log(&[POOL, "taken; ; size=1 active=1", END]);
        let found = judge(&script("submit 1"), &java[..2], &java).unwrap();
        assert_eq!((found.line, found.ours.as_str()), (2, "(nothing)"));
        assert!(judge(&script("submit 1"), &[], &[]).is_some());
    }

    #[test]
    fn being_stuck_together_is_no_agreement() {
        let both = log(&[POOL, "stuck: nobody moves"]);
        let found = judge(&script("submit 1"), &both, &both).unwrap();
        assert_eq!(found.problem, "both are stuck");
    }

    #[test]
    fn expectations_are_checked_against_the_step_before_them() {
        let log = log(&[POOL, "taken; started 1@worker; size=1 active=1", END]);
        let good = script(
            "expect size=0\nsubmit 1\nexpect size=1 outcome=taken events=started_1@worker\n",
        );
        assert_eq!(judge(&good, &log, &log), None);
        let bad = script("submit 1\nexpect active=0");
        let found = judge(&bad, &log, &log).unwrap();
        assert!(found.is_expectation);
        assert_eq!(
            (found.line, found.problem.as_str()),
            (1, "expected active=0, but it is 1")
        );
        let unknown = script("expect colour=red");
        let found = judge(&unknown, &log, &log).unwrap();
        assert_eq!(found.problem, "expected colour=red, but it is not told");
    }
}
