//! Where our pool differs from Java's on purpose. The list is `decisions.md`, and nowhere else.
//!
//! Each decision has a number. Code in the generator or in one of the players that exists because of a
//! decision cites that number, and a test compares the two: an unknown number and a decision that no
//! code cites are both failures.

use super::futures::{Ancestors, Place};
use super::script::{Flavor, Policy, Script, Setup, Step};
use super::tree::{Tree, Verb};

/// The list, as it is printed and linked.
pub const TEXT: &str = include_str!("decisions.md");

/// The numbers and titles of the list.
pub fn titles() -> Vec<(&'static str, &'static str)> {
    let heads = TEXT.lines().filter_map(|line| line.strip_prefix("## "));
    heads.filter_map(|head| head.split_once(". ")).collect()
}

/// The list in short, for a terminal.
pub fn summary() -> String {
    let mut text =
        String::from("Differences that are ours by decision, and left out or translated:\n");
    for (number, title) in titles() {
        text.push_str(&format!("  {number:<4}{title}\n"));
    }
    text.push_str("  reasons: crates/millpond-conform/src/differential/decisions.md\n");
    text
}

/// The decision because of which a script cannot be compared, if there is one. The generator never
/// writes such a script, and shrinking must not make one.
pub fn forbids(script: &Script) -> Option<&'static str> {
    let Script { setup, steps } = script;
    let setup = match setup {
        Setup::Pool(setup) => setup,
        Setup::ForkJoin(setup) => return forbids_fork_join(setup.parallelism, steps),
        Setup::Futures => return forbids_futures(steps),
    };
    let drops_oldest = setup.policy == Policy::DiscardOldest
        || steps.contains(&Step::Policy(Policy::DiscardOldest));
    if drops_oldest && setup.queue == Flavor::HandOff {
        return Some("DIFF-4");
    }
    // Where threads fail, a worker must live from the first step to the last.
    let risks_the_last_worker = |step: &Step| match step {
        Step::Core(0) | Step::CoreMayTimeOut(true) => true,
        Step::Submission(submission) => !submission.has_handle,
        _ => false,
    };
    let keeps_a_worker = steps.first() == Some(&Step::PrestartAll)
        && setup.core > 0
        && !setup.core_may_time_out
        && !steps.iter().any(risks_the_last_worker);
    if steps.contains(&Step::Threads(false)) && !keeps_a_worker {
        return Some("DIFF-6");
    }
    None
}

/// A race whose sources one call can complete: who wins is not determined.
fn forbids_futures(steps: &[Step]) -> Option<&'static str> {
    let mut ancestors = Ancestors::default();
    for step in steps {
        let Step::Future(step) = step else { continue };
        if !step.makes() {
            continue;
        }
        if step.verb.races() && ancestors.share(step.sources()) {
            return Some("DIFF-19");
        }
        if step.verb.races() && step.place == Place::Queue {
            return Some("DIFF-24");
        }
        ancestors.add(step);
    }
    None
}

fn forbids_fork_join(parallelism: usize, steps: &[Step]) -> Option<&'static str> {
    let ends = |step: &Step| matches!(step, Step::Shutdown | Step::ShutdownNow);
    let may_end = steps.iter().any(ends);
    for (index, step) in steps.iter().enumerate() {
        let computation = match step {
            Step::Compute(computation) => computation,
            // The first body begins at once, and so before the end.
            Step::Submission(submission) if submission.forks > 0 && may_end && index > 0 => {
                return Some("DIFF-13");
            }
            _ => continue,
        };
        let tree = &computation.tree;
        if may_end && (computation.is_traced || has(tree, &|verb| matches!(verb, Verb::Cancel))) {
            return Some("DIFF-13");
        }
        if parallelism > 1 && has(tree, &|verb| matches!(verb, Verb::Cancel | Verb::Quiesce)) {
            return Some("DIFF-13");
        }
        let quiesces: &dyn Fn(&Verb) -> bool = &|verb| *verb == Verb::Quiesce;
        if let Tree::Parts { parts, .. } = tree
            && parts.iter().any(|part| has(part, quiesces))
        {
            return Some("DIFF-15");
        }
    }
    None
}

/// Whether one of the verbs in it is like that.
fn has(tree: &Tree, is_it: &dyn Fn(&Verb) -> bool) -> bool {
    match tree {
        Tree::Parts { verb, parts } => is_it(verb) || parts.iter().any(|part| has(part, is_it)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    /// All words `D` + digits in brackets or comments of the files that obey decisions.
    fn cited() -> BTreeSet<String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folders = ["java", "src/differential", "src/differential/ours"];
        let mut found = BTreeSet::new();
        for folder in folders {
            for entry in fs::read_dir(root.join(folder)).unwrap() {
                let path = entry.unwrap().path();
                let is_code = path
                    .extension()
                    .is_some_and(|end| end == "rs" || end == "java");
                if !is_code || path.ends_with("decisions.rs") {
                    continue;
                }
                let text = fs::read_to_string(&path).unwrap();
                let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
                found.extend(words.filter(|word| is_number(word)).map(str::to_owned));
            }
        }
        found
    }

    fn is_number(word: &str) -> bool {
        let digits = word.strip_prefix("DIFF-").unwrap_or_default();
        !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit())
    }

    #[test]
    fn what_cannot_be_compared_is_known_by_its_decision() {
        let forbidden = |text: &str| forbids(&text.parse().unwrap());
        let pool = "pool core=1 max=2 queue=hand-off";
        assert_eq!(
            forbidden(&format!("{pool}\npolicy discard-oldest")),
            Some("DIFF-4")
        );
        assert_eq!(
            forbidden(&format!("{pool} policy=discard-oldest")),
            Some("DIFF-4")
        );
        assert_eq!(
            forbidden("pool core=1 max=2 queue=array:1 policy=discard-oldest"),
            None
        );
        let good = format!("{pool}\nprestart-all\nthreads fail\nsubmit 1");
        assert_eq!(forbidden(&good), None);
        assert_eq!(
            forbidden(&format!("{pool}\nthreads fail\nsubmit 1")),
            Some("DIFF-6")
        );
        assert_eq!(forbidden(&good.replace("core=1", "core=0")), Some("DIFF-6"));
        for step in ["core 0", "core-may-time-out yes", "run 2"] {
            assert_eq!(
                forbidden(&format!("{good}\n{step}")),
                Some("DIFF-6"),
                "{step}"
            );
        }
    }

    #[test]
    fn a_race_that_is_not_determined_is_known_by_its_decision() {
        let forbidden =
            |text: &str| forbids(&format!("futures\nnew 1\nnew 2\n{text}").parse().unwrap());
        assert_eq!(forbidden("any-of 3 of=1,2"), None);
        assert_eq!(forbidden("any-of 3 of=1,1"), Some("DIFF-19"));
        assert_eq!(
            forbidden("copy 3 of=1\naccept-either 4 of=3,1"),
            Some("DIFF-19")
        );
        assert_eq!(
            forbidden("compose 3 of=1 to=2\nany-of 4 of=3,2"),
            Some("DIFF-19")
        );
        assert_eq!(
            forbidden("apply-to-either 3 of=1,2 on=queue"),
            Some("DIFF-24")
        );
    }

    #[test]
    fn every_decision_is_obeyed_somewhere_and_every_number_is_a_decision() {
        let listed: BTreeSet<String> = titles()
            .into_iter()
            .map(|(number, _)| number.to_owned())
            .collect();
        assert_eq!(listed, cited());
    }

    #[test]
    fn every_decision_says_what_both_do_and_why_and_what_the_test_does() {
        let sections = TEXT.split("\n## ").skip(1);
        let mut count = 0;
        for section in sections {
            count += 1;
            for part in ["- Java:", "- ours:", "- why:", "- here:"] {
                assert!(section.contains(part), "no `{part}` in: {section}");
            }
        }
        assert_eq!(count, titles().len());
    }
}
