//! The same work, in the words of `java/PoolBench.java`.

use super::Work;
use crate::harness::Sample;
use crate::peers::java::{self, Executor};
use crate::peers::pool::{Queue, WhenFull};
use anyhow::Result;

/// Has Java do `operations` of the work.
///
/// # Errors
///
/// If there is no Java, or it did not do its work.
pub fn run(executor: Executor, work: Work, operations: u64) -> Result<Sample> {
    let (word, producers) = words(work);
    java::run(executor, word, producers, operations)
}

fn words(work: Work) -> (&'static str, usize) {
    match work {
        Work::Fire { queue, producers } => {
            let word = match queue {
                Queue::Unbounded => "fire",
                Queue::Bounded(_, WhenFull::Wait) => "blocking",
                Queue::Bounded(_, WhenFull::CallerRuns) => "caller-runs",
            };
            (word, producers)
        }
        Work::JoinAll => ("join-all", 1),
        Work::Trip { here: true, .. } => ("trip-here", 1),
        Work::Trip { pause: true, .. } => ("trip-pause", 1),
        Work::Trip { .. } => ("trip", 1),
        Work::Burst => ("burst", 1),
        Work::Idle => ("idle", 1),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BOUND, burst, handles, works};
    use super::*;
    use crate::peers::pool::WORKERS;
    use std::collections::BTreeSet;

    const SOURCE: &str = include_str!("../../../java/PoolBench.java");

    #[test]
    fn java_knows_every_work_by_a_word_of_its_own() {
        let words: Vec<_> = works().into_iter().map(words).collect();
        for (word, _) in &words {
            assert!(SOURCE.contains(&format!("case \"{word}\" -> ")), "{word}");
        }
        let different: BTreeSet<_> = words.iter().collect();
        assert_eq!(different.len(), words.len());
    }

    #[test]
    fn java_has_the_same_sizes() {
        let pause = handles::PAUSE.as_nanos();
        for (name, value) in [
            ("WORKERS", WORKERS.to_string()),
            ("BOUND", BOUND.to_string()),
            ("BATCH", grouped(handles::BATCH.into())),
            ("BURST", grouped(burst::TASKS.into())),
            ("PAUSE_NANOS", grouped(pause)),
        ] {
            let line = format!(" {name} = {value};");
            assert!(SOURCE.contains(&line), "there is no {line:?}");
        }
    }

    fn grouped(number: u128) -> String {
        format!("{}_{:03}", number / 1_000, number % 1_000)
    }
}
