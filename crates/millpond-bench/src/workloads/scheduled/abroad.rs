//! The same work, done by Java: in the words that its program has for it.

use super::Work;
use crate::harness::Sample;
use crate::peers::guest::{Guest, Language, Order, Program, WARM_UP_MILLIS};
use anyhow::Result;

static JAVA: Guest = Guest::new(Program {
    language: Language::Java,
    file: "ScheduledBench.java",
    text: include_str!("../../../java/ScheduledBench.java"),
    more: &[],
});

/// A `ScheduledThreadPoolExecutor` of Java's.
#[derive(Clone, Copy, Debug)]
pub struct Executor {
    /// What it is called.
    pub name: &'static str,
    word: &'static str,
}

impl Executor {
    /// As it comes: a task that was cancelled stays in the queue until it is due.
    pub const MARKS: Self = Executor {
        name: "Java STPE",
        word: "marks",
    };

    /// With `setRemoveOnCancelPolicy(true)`: it is taken out at once.
    pub const REMOVES: Self = Executor {
        name: "Java STPE, removes",
        word: "removes",
    };

    /// Has it do the work with so many timers.
    ///
    /// # Errors
    ///
    /// If there is no Java here, or it did not do its work.
    pub fn run(&self, work: Work, timers: u64) -> Result<Sample> {
        JAVA.run(&Order {
            work: word(work),
            executor: self.word,
            producers: 1,
            operations: timers,
            warm_up_millis: WARM_UP_MILLIS,
        })
    }
}

fn word(work: Work) -> &'static str {
    match work {
        Work::Pending => "pending",
        Work::Firing => "firing",
    }
}

/// Which Java it was, or why there was none; nothing if nobody asked for one.
pub fn notes() -> Vec<String> {
    JAVA.note().into_iter().collect()
}
