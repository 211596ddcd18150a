//! The same work, done by guests (see [`crate::peers::guest`]), in the words that their programs have
//! for it.
//!
//! | who | what it is |
//! |---|---|
//! | Java STPE | `ScheduledThreadPoolExecutor` as it comes: a cancelled task stays in the queue until it is due |
//! | Java STPE, removes | with `setRemoveOnCancelPolicy(true)`: it is taken out at once |
//! | Go AfterFunc | `time.AfterFunc` and `Stop`: a goroutine for each that is due |

use super::{Work, hour};
use crate::harness::Sample;
use crate::peers::guest::{Guest, Language, Order, Program, WARM_UP_MILLIS};
use anyhow::Result;

/// A JVM for each executor, as in the suite `pool`.
mod jvm {
    use super::{Guest, Language, java};

    pub(super) static MARKS: Guest = Guest::new(java(Language::Java));
    pub(super) static REMOVES: Guest = Guest::new(java(Language::Java));
    pub(super) static MARKS_25: Guest = Guest::new(java(Language::Java25));
    pub(super) static REMOVES_25: Guest = Guest::new(java(Language::Java25));
}

static GO: Guest = Guest::new(IN_GO);

pub(super) const IN_GO: Program = Program {
    language: Language::Go,
    file: "scheduled_bench.go",
    text: include_str!("../../../go/scheduled_bench.go"),
    more: &[
        ("waiting.go", include_str!("../../../go/waiting.go")),
        ("answer.go", include_str!("../../../go/answer.go")),
        ("usage.go", include_str!("../../../go/usage.go")),
    ],
    flags: &[],
};

pub(super) const fn java(language: Language) -> Program {
    Program {
        language,
        file: "ScheduledBench.java",
        text: include_str!("../../../java/ScheduledBench.java"),
        more: &[
            ("Waiting.java", include_str!("../../../java/Waiting.java")),
            ("Usage.java", include_str!("../../../java/Usage.java")),
            ("Jvm.java", include_str!("../../../java/Jvm.java")),
        ],
        // As it comes: memory is among the questions, and a larger heap than needed would be an answer.
        flags: &[],
    }
}

/// A guest's timers.
#[derive(Clone, Copy, Debug)]
pub struct Executor {
    /// Its name.
    pub name: &'static str,
    word: &'static str,
    guest: &'static Guest,
    /// How the names of the threads begin that belong to it, and not to what runs it.
    threads: &'static str,
}

impl Executor {
    const fn java(name: &'static str, word: &'static str, guest: &'static Guest) -> Self {
        Executor {
            name,
            word,
            guest,
            // The JVM's own have other things to do.
            threads: "pool-",
        }
    }

    /// `ScheduledThreadPoolExecutor`, as it comes.
    pub const JAVA_MARKS: Self = Self::java("Java STPE", "marks", &jvm::MARKS);
    /// With `setRemoveOnCancelPolicy(true)`.
    pub const JAVA_REMOVES: Self = Self::java("Java STPE, removes", "removes", &jvm::REMOVES);
    /// [`Self::JAVA_MARKS`], of Java 25.
    pub const JAVA_25_MARKS: Self = Self::java("Java 25 STPE", "marks", &jvm::MARKS_25);
    /// [`Self::JAVA_REMOVES`], of Java 25.
    pub const JAVA_25_REMOVES: Self =
        Self::java("Java 25 STPE, removes", "removes", &jvm::REMOVES_25);
    /// `time.AfterFunc`.
    pub const GO: Self = Executor {
        name: "Go AfterFunc",
        word: "after-func",
        guest: &GO,
        // Its timers are the runtime's.
        threads: "",
    };

    /// Has it do the work with so many timers, or for so many milliseconds.
    ///
    /// # Errors
    ///
    /// If its guest is not here, or did not do its work.
    pub fn run(&self, work: Work, operations: u64) -> Result<Sample> {
        let word = work.word();
        let order = Order {
            work: &word,
            executor: self.word,
            producers: 1,
            operations,
            warm_up_millis: WARM_UP_MILLIS,
        };
        match work {
            Work::Hour => hour::watch(&mut self.guest.start_alone()?, &order, self.threads),
            _ if work.is_alone() => self.guest.start_alone()?.run(&order),
            _ => self.guest.run(&order),
        }
    }
}

/// The guests that were there, and why the others were not; nothing of those that were not asked for.
pub fn notes() -> Vec<String> {
    let guests = [
        &jvm::MARKS,
        &jvm::REMOVES,
        &jvm::MARKS_25,
        &jvm::REMOVES_25,
        &GO,
    ];
    let mut notes: Vec<_> = guests.into_iter().filter_map(Guest::note).collect();
    // Those of one language say the same.
    notes.dedup();
    notes
}
