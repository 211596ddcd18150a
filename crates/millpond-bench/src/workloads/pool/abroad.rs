//! The same work, done by guests (see [`crate::peers::guest`]), in the words that their programs have
//! for it.
//!
//! | who | what it is |
//! |---|---|
//! | Java TPE | `ThreadPoolExecutor`, with one of Java's queues |
//! | Java ForkJoinPool | in its mode for tasks that are never joined, which takes the oldest first |
//! | Go goroutines | one for each task; the runtime has as many threads as producers and workers have together |
//! | Go channel pool | workers that take closures out of a channel. Channels have a bound: where the work has none it is larger than any round |
//! | Java 25 virtual threads | one for each task, with as many carriers as others have workers |
//! | C# ThreadPool (Mono) | the one pool of the process, and `Task` where a caller waits |
//! | Python ThreadPoolExecutor | of `concurrent.futures` |
//!
//! Python's `ProcessPoolExecutor` is not among them: a task there is copied to another process and its
//! result back, which is another question.

use super::Work;
use crate::harness::Sample;
use crate::peers::guest::{Guest, Language, Order, Program, WARM_UP_MILLIS};
use crate::peers::pool::{Queue, WhenFull};
use anyhow::Result;

/// A JVM for each executor: in a shared one what is compiled for the first is compiled again, and worse, for the
/// second, because a call that had one target has two.
mod jvm {
    use super::{Guest, Language, java};

    pub(super) static LINKED: Guest = Guest::new(java(Language::Java));
    pub(super) static ARRAY: Guest = Guest::new(java(Language::Java));
    pub(super) static TRANSFER: Guest = Guest::new(java(Language::Java));
    pub(super) static HAND_OFF: Guest = Guest::new(java(Language::Java));
    pub(super) static FORK_JOIN: Guest = Guest::new(java(Language::Java));
    pub(super) static PRIORITY: Guest = Guest::new(java(Language::Java));
    pub(super) static LINKED_25: Guest = Guest::new(java(Language::Java25));
    pub(super) static ARRAY_25: Guest = Guest::new(java(Language::Java25));
    pub(super) static FORK_JOIN_25: Guest = Guest::new(java(Language::Java25));
    pub(super) static VIRTUAL_25: Guest = Guest::new(java(Language::Java25));
}

static GO: Guest = Guest::new(IN_GO);
static PYTHON: Guest = Guest::new(IN_PYTHON);
static MONO: Guest = Guest::new(IN_CSHARP);

/// The collector whose barriers cost least, a heap that need not grow, and as many carriers of virtual threads as
/// others have workers. What is sampled for tools such as `jstat` would wake up a JVM that waits for its turn.
const FLAGS: &[&str] = &[
    "-XX:+UseParallelGC",
    "-Xms256m",
    "-Xmx1g",
    "-XX:-UsePerfData",
    "-Djdk.virtualThreadScheduler.parallelism=2",
    "-Djdk.virtualThreadScheduler.maxPoolSize=2",
];

const IN_GO: Program = Program {
    language: Language::Go,
    file: "pool_bench.go",
    text: include_str!("../../../go/pool_bench.go"),
    more: &[
        ("pools.go", include_str!("../../../go/pools.go")),
        ("answer.go", include_str!("../../../go/answer.go")),
        ("usage.go", include_str!("../../../go/usage.go")),
    ],
    flags: &[],
};

const IN_CSHARP: Program = Program {
    language: Language::Mono,
    file: "PoolBench.cs",
    text: include_str!("../../../mono/PoolBench.cs"),
    more: &[],
    flags: &[],
};

const IN_PYTHON: Program = Program {
    language: Language::Python,
    file: "pool_bench.py",
    text: include_str!("../../../python/pool_bench.py"),
    more: &[],
    flags: &[],
};

const fn java(language: Language) -> Program {
    Program {
        language,
        file: "PoolBench.java",
        text: include_str!("../../../java/PoolBench.java"),
        more: &[
            ("Callers.java", include_str!("../../../java/Callers.java")),
            ("Counting.java", include_str!("../../../java/Counting.java")),
            ("Opened.java", include_str!("../../../java/Opened.java")),
            ("Usage.java", include_str!("../../../java/Usage.java")),
            ("Jvm.java", include_str!("../../../java/Jvm.java")),
        ],
        flags: FLAGS,
    }
}

/// A pool of a guest's.
#[derive(Clone, Copy, Debug)]
pub struct Executor {
    /// What it is called.
    pub name: &'static str,
    /// What its guest calls it.
    word: &'static str,
    guest: &'static Guest,
}

impl Executor {
    const fn new(name: &'static str, word: &'static str, guest: &'static Guest) -> Self {
        Executor { name, word, guest }
    }

    /// `ThreadPoolExecutor` with a `LinkedBlockingQueue`, with a bound or without.
    pub const JAVA_LINKED: Self = Self::new("Java TPE linked", "tpe-linked", &jvm::LINKED);
    /// With an `ArrayBlockingQueue`.
    pub const JAVA_ARRAY: Self = Self::new("Java TPE array", "tpe-array", &jvm::ARRAY);
    /// With a `LinkedTransferQueue`.
    pub const JAVA_TRANSFER: Self = Self::new("Java TPE transfer", "tpe-transfer", &jvm::TRANSFER);
    /// With a `SynchronousQueue`. It has no more threads than the others, so who brings a task when no
    /// worker waits for one waits too, or runs it.
    pub const JAVA_HAND_OFF: Self = Self::new("Java TPE hand-off", "tpe-handoff", &jvm::HAND_OFF);
    /// `ForkJoinPool`.
    pub const JAVA_FORK_JOIN: Self = Self::new("Java ForkJoinPool", "fjp", &jvm::FORK_JOIN);
    /// [`Self::JAVA_LINKED`], of Java 25.
    pub const JAVA_25_LINKED: Self = Self::new("Java 25 TPE linked", "tpe-linked", &jvm::LINKED_25);
    /// [`Self::JAVA_ARRAY`], of Java 25.
    pub const JAVA_25_ARRAY: Self = Self::new("Java 25 TPE array", "tpe-array", &jvm::ARRAY_25);
    /// [`Self::JAVA_FORK_JOIN`], of Java 25.
    pub const JAVA_25_FORK_JOIN: Self =
        Self::new("Java 25 ForkJoinPool", "fjp", &jvm::FORK_JOIN_25);
    /// A virtual thread for each task, of Java 25.
    pub const JAVA_25_VIRTUAL: Self =
        Self::new("Java 25 virtual threads", "virtual", &jvm::VIRTUAL_25);
    /// `ThreadPoolExecutor` with a `PriorityBlockingQueue`.
    pub const JAVA_PRIORITY: Self = Self::new("Java TPE priority", "tpe-priority", &jvm::PRIORITY);
    /// A goroutine for each task.
    pub const GO_GOROUTINES: Self = Self::new("Go goroutines", "goroutines", &GO);
    /// Goroutines that take closures out of a channel.
    pub const GO_CHANNEL: Self = Self::new("Go channel pool", "channel", &GO);
    /// `concurrent.futures.ThreadPoolExecutor`.
    pub const PYTHON_THREADS: Self = Self::new("Python ThreadPoolExecutor", "threads", &PYTHON);
    /// `System.Threading.ThreadPool`, and `Task` where a caller waits.
    pub const MONO_THREADS: Self = Self::new("C# ThreadPool (Mono)", "threadpool", &MONO);

    /// Has it do `operations` of the work; Python does fewer where they take seconds.
    ///
    /// # Errors
    ///
    /// If its guest is not here, or did not do its work.
    pub fn run(&self, work: Work, operations: u64) -> Result<Sample> {
        let (word, producers) = words(work);
        let slow = matches!(self.guest.language(), Language::Python | Language::Mono);
        let slow = slow && work == Work::Burst;
        self.order(&word, producers, if slow { 1 } else { operations })
    }

    /// Has it do what its guest has this word for.
    ///
    /// # Errors
    ///
    /// If its guest is not here, or did not do its work.
    pub fn order(&self, work: &str, producers: usize, operations: u64) -> Result<Sample> {
        self.guest.run(&Order {
            work,
            executor: self.word,
            producers,
            operations,
            warm_up_millis: WARM_UP_MILLIS,
        })
    }
}

/// Which guests were there, and why the others were not; nothing of those that nobody asked for.
pub fn notes() -> Vec<String> {
    let java = [
        &jvm::LINKED,
        &jvm::ARRAY,
        &jvm::TRANSFER,
        &jvm::HAND_OFF,
        &jvm::FORK_JOIN,
        &jvm::PRIORITY,
        &jvm::LINKED_25,
        &jvm::ARRAY_25,
        &jvm::FORK_JOIN_25,
        &jvm::VIRTUAL_25,
    ];
    let guests = java.into_iter().chain([&GO, &PYTHON, &MONO]);
    let mut notes: Vec<_> = guests.filter_map(Guest::note).collect();
    // Those of one language say the same.
    notes.dedup();
    notes
}

fn words(work: Work) -> (String, usize) {
    let (word, producers) = match work {
        Work::Fire { queue, producers } => {
            let word = match queue {
                Queue::Unbounded => "fire",
                Queue::Bounded(_, WhenFull::Wait) => "blocking",
                Queue::Bounded(_, WhenFull::CallerRuns) => "caller-runs",
            };
            (word, producers)
        }
        Work::CallerRunsAll => ("caller-runs-all", 1),
        Work::JoinAll => ("join-all", 1),
        Work::Trip { here: true, .. } => ("trip-here", 1),
        Work::Trip {
            pause: Some(pause), ..
        } => return (format!("trip-pause-{}", pause.as_micros()), 1),
        Work::Trip { .. } => ("trip", 1),
        Work::Burst => ("burst", 1),
        Work::Idle => ("idle", 1),
    };
    (word.into(), producers)
}

#[cfg(test)]
mod tests {
    use super::super::entries::{ENTRIES, Runner};
    use super::super::{BOUND, burst, handles, works};
    use super::*;
    use crate::peers::pool::WORKERS;
    use std::collections::BTreeSet;

    const SOURCES: [Program; 4] = [java(Language::Java), IN_GO, IN_PYTHON, IN_CSHARP];

    #[test]
    fn every_work_has_a_word_of_its_own() {
        let all = works().into_iter().chain([Work::Idle]);
        let words: Vec<_> = all.map(words).collect();
        let different: BTreeSet<_> = words.iter().collect();
        assert_eq!(different.len(), words.len());
    }

    #[test]
    fn every_guest_has_the_same_sizes() {
        for program in SOURCES {
            for (name, value) in [
                ("WORKERS", WORKERS as u128),
                ("BOUND", BOUND as u128),
                ("BATCH", handles::BATCH.into()),
                ("BURST", burst::TASKS.into()),
            ] {
                let file = program.file;
                assert_eq!(program.size(name), Some(value), "{name} in {file}");
            }
        }
    }

    /// All that every guest is asked for.
    fn orders() -> Vec<(Work, Executor)> {
        let fitting = |work: Work| {
            let entries = ENTRIES.iter().filter(move |entry| (entry.fits)(work));
            entries.filter_map(move |entry| match entry.run {
                Runner::Abroad(executor) => Some((work, executor)),
                Runner::Here(_) | Runner::Nowhere(_) => None,
            })
        };
        let all = works().into_iter().chain([Work::Idle]);
        all.flat_map(fitting).collect()
    }

    /// Whether it is here: where it is not, there is nothing to test, and that is said.
    fn is_here(language: Language) -> bool {
        if !language.is_here() {
            eprintln!("skipped: {} is not here", language.name());
        }
        language.is_here()
    }

    fn does_every_work_that_it_is_asked_for(language: Language) {
        if !is_here(language) {
            return;
        }
        let of_it = |order: &(Work, Executor)| order.1.guest.language() == language;
        for (work, executor) in orders().into_iter().filter(of_it) {
            let name = format!("{}: {}", executor.name, work.name());
            let (word, producers) = words(work);
            let sample = executor.guest.run(&Order {
                work: &word,
                executor: executor.word,
                producers,
                operations: if work == Work::Burst { 1 } else { 3 },
                warm_up_millis: 0,
            });
            let sample = sample.unwrap_or_else(|error| panic!("{name}: {error:#}"));
            let expected = match work {
                Work::JoinAll => handles::BATCH,
                Work::Fire { producers: 4, .. } => 4,
                Work::Burst => 1,
                _ => 3,
            };
            assert_eq!(sample.operations, expected, "{name}");
            assert!(!sample.elapsed.is_zero(), "{name}");
            let is_timed = matches!(work, Work::Trip { .. });
            assert_eq!(sample.quantiles.is_some(), is_timed, "{name}");
        }
        let guest = orders().iter().find(|order| of_it(order)).unwrap().1.guest;
        says_what_it_does_not_know_and_goes_on(guest);
        assert!(guest.note().unwrap().contains(", in a process of its own"));
    }

    fn says_what_it_does_not_know_and_goes_on(guest: &Guest) {
        let run = |work, executor, producers| {
            let order = Order {
                work,
                executor,
                producers,
                operations: 1,
                warm_up_millis: 0,
            };
            guest.run(&order).map_err(|error| format!("{error:#}"))
        };
        let name = guest.language().name();
        let error = run("mill", "channel", 1).unwrap_err();
        assert_eq!(error, format!("in {name}: there is no work mill"));
        let error = run("fire", "pond", 1).unwrap_err();
        assert_eq!(error, format!("in {name}: there is no executor pond"));
        let error = run("fire", "channel", 5).unwrap_err();
        assert_eq!(error, format!("in {name}: there are 1 to 4 producers"));
    }

    #[test]
    fn java_does_every_work_that_it_is_asked_for() {
        does_every_work_that_it_is_asked_for(Language::Java);
    }

    #[test]
    fn java_25_does_every_work_that_it_is_asked_for() {
        does_every_work_that_it_is_asked_for(Language::Java25);
    }

    #[test]
    fn go_does_every_work_that_it_is_asked_for() {
        does_every_work_that_it_is_asked_for(Language::Go);
    }

    #[test]
    fn c_sharp_does_every_work_that_it_is_asked_for() {
        does_every_work_that_it_is_asked_for(Language::Mono);
    }

    #[test]
    fn python_does_every_work_that_it_is_asked_for() {
        does_every_work_that_it_is_asked_for(Language::Python);
    }
}
