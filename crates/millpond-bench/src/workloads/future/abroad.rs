//! The same work, done by Java's `CompletableFuture` (see [`crate::peers::guest`]), in a JVM for each work: in a shared one
//! what is compiled for the first is compiled again, and worse, for the second.

use super::Work;
use crate::harness::Sample;
use crate::peers::guest::{Guest, Language, Order, Program, WARM_UP_MILLIS};
use anyhow::Result;

static JAVA: Guest = Guest::new(java(Language::Java));
static JAVA_25: Guest = Guest::new(java(Language::Java25));

/// As in the suite `pool`: the collector whose barriers cost least, and a heap that need not grow.
const FLAGS: &[&str] = &[
    "-XX:+UseParallelGC",
    "-Xms256m",
    "-Xmx1g",
    "-XX:-UsePerfData",
];

/// Tests do not ask how fast it is.
const WARM_UP: u64 = if cfg!(test) { 0 } else { WARM_UP_MILLIS };

pub(super) const fn java(language: Language) -> Program {
    Program {
        language,
        file: "FutureBench.java",
        text: include_str!("../../../java/FutureBench.java"),
        more: &[
            ("Usage.java", include_str!("../../../java/Usage.java")),
            ("Jvm.java", include_str!("../../../java/Jvm.java")),
        ],
        flags: FLAGS,
    }
}

/// `CompletableFuture` of a Java.
#[derive(Clone, Copy, Debug)]
pub struct Java {
    /// Its name.
    pub name: &'static str,
    guest: &'static Guest,
}

impl Java {
    /// That of the machine's Java.
    pub const OF_THE_MACHINE: Java = Java {
        name: "Java CompletableFuture",
        guest: &JAVA,
    };

    /// That of Java 25.
    pub const OF_25: Java = Java {
        name: "Java 25 CompletableFuture",
        guest: &JAVA_25,
    };

    /// Has it do `operations` of the work.
    ///
    /// # Errors
    ///
    /// If it is not here, or did not do its work.
    pub fn run(&self, work: Work, operations: u64) -> Result<Sample> {
        self.guest.run(&Order {
            work: work.word(),
            executor: work.word(),
            producers: 1,
            operations,
            warm_up_millis: WARM_UP,
        })
    }
}

/// Which were there, and why the others were not; nothing of those that nobody asked for.
pub fn notes() -> Vec<String> {
    [&JAVA, &JAVA_25]
        .into_iter()
        .filter_map(Guest::note)
        .collect()
}
