//! The same work, done by Java (see [`crate::peers::guest`]): recursive actions, each of which forks one half, computes the
//! other and joins, and `Arrays.parallelSort`.

use super::Work;
use crate::harness::Sample;
use crate::peers::guest::{Guest, Language, Order, Program, WARM_UP_MILLIS};
use crate::peers::pool::WORKERS;
use anyhow::{Result, bail};

static FORK_JOIN: Guest = Guest::new(IN_JAVA);

/// Half of the heap must hold a hundred million numbers. `parallelSort` asks the common pool how many threads there are,
/// and that counts its caller beside one less than there are CPUs.
const FLAGS: &[&str] = &[
    "-XX:+UseParallelGC",
    "-Xms256m",
    "-Xmx3g",
    "-Xss16m",
    "-XX:-UsePerfData",
    "-Djava.util.concurrent.ForkJoinPool.common.parallelism=2",
];

pub(super) const IN_JAVA: Program = Program {
    language: Language::Java,
    file: "ForkJoinBench.java",
    text: include_str!("../../../java/ForkJoinBench.java"),
    more: &[
        ("Usage.java", include_str!("../../../java/Usage.java")),
        ("Jvm.java", include_str!("../../../java/Jvm.java")),
    ],
    flags: FLAGS,
};

/// A fork-join pool of Java's.
#[derive(Clone, Copy, Debug)]
pub struct Java {
    /// Its name.
    pub name: &'static str,
    guest: &'static Guest,
}

impl Java {
    /// That of the machine's Java.
    pub const FORK_JOIN: Java = Java {
        name: "Java ForkJoinPool, recursive",
        guest: &FORK_JOIN,
    };

    /// Has it do `operations` of the work.
    ///
    /// # Errors
    ///
    /// If it is not here, or did not do its work.
    pub fn run(&self, work: Work, operations: u64) -> Result<Sample> {
        let (word, threads) = match work {
            Work::Fib(threads) => ("fib", threads),
            Work::SmallTree(threads) => ("small-tree", threads),
            Work::LargeTree(threads) => ("large-tree", threads),
            Work::Uneven => ("uneven", WORKERS),
            Work::Quicksort => ("quicksort", WORKERS),
            Work::SortUnstable => ("sort", WORKERS),
            Work::SumByJoins => ("sum", WORKERS),
            _ => bail!("Java is not asked for {work:?}"),
        };
        self.guest.run(&Order {
            work: word,
            executor: "fjp",
            producers: threads,
            operations,
            warm_up_millis: WARM_UP_MILLIS,
        })
    }
}

/// Whether it was there, and why not; nothing if nobody asked for it.
pub fn notes() -> Vec<String> {
    FORK_JOIN.note().into_iter().collect()
}
