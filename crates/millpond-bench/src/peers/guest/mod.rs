//! Guests: programs that do the same work in a process of their own, and take their turns like all
//! candidates.
//!
//! | file | what |
//! |---|---|
//! | [`language`] | what a guest is written in: how it is found, built and started |
//! | [`process`] | a guest that was started: orders go in, answers come out, a line each |
//! | [`answer`] | what it says |
//! | [`own`] | this program, as its own guest |
//! | [`cache`] | the folder where built programs and a fetched Java stay |
//! | [`find`] | where programs are on this machine |
//! | [`install`] | `--install`: gets what is missing |
//!
//! The programs themselves are in the folders `java`, `go`, `python` and `mono` beside `src`. They are part of
//! this library's binary, so that they are there wherever it runs. Each knows its workloads, counts its
//! tasks and checks that every one ran once, as `src/workloads` does it here.
//!
//! # The protocol
//!
//! ```text
//! guest   ready OpenJDK 64-Bit Server VM 17.0.15 (-XX:+UseParallelGC)
//! bench   run fire tpe-linked 4 50000 500          work, executor, producers, operations, warm-up in ms
//! guest   done operations=50000 nanos=9100000 cpu=15000000 sleeps=12 preemptions=30
//! bench   run mill tpe-linked 1 1 0
//! guest   failed there is no work mill
//! ```
//!
//! A length that is part of the work is part of its word: `trip-pause-200` is in microseconds, `firing-1000` per
//! second. Times are nanoseconds; what is not known is left out of an answer; a work that times single
//! operations adds their `p50`, `p99`, `p999` and `max`, one that asks for memory the bytes that are
//! `resident` and `kept`, and one where a caller may run tasks how many were run `by_workers`. A guest ends when its orders do.
//!
//! # Being left out
//!
//! A guest that cannot be started is [`Absent`], with what to type to get it. One that hangs is ended
//! after [`PATIENCE`] and is absent from then on; so a candidate that is known to hang can be measured
//! as a guest without ending the whole run.

pub mod answer;
pub mod cache;
pub mod find;
pub mod install;
pub mod language;
pub mod own;
pub mod process;

pub use language::{Language, Program};
pub use process::{Order, Process};

use crate::harness::{Absent, Sample};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The first order for a work and an executor does the work for at most so long before it is measured:
/// the JVM compiles what runs often, again and better. It stops earlier if it gets no faster, and the
/// harness's own sizing warms it up further.
pub const WARM_UP_MILLIS: u64 = 1_000;

/// The time set by [`rounds_take`].
static MOST_WARM_UP: AtomicU64 = AtomicU64::new(WARM_UP_MILLIS);

/// Short rounds mean a short warm-up: no guest warms up for longer than a few of them.
pub fn rounds_take(round_time: Duration) {
    let few = u64::try_from((round_time * 10).as_millis());
    MOST_WARM_UP.store(few.unwrap_or(u64::MAX), Ordering::Relaxed);
}

/// A turn takes a fraction of a second, and a first turn a few. A guest that takes this long hangs.
pub const PATIENCE: Duration = Duration::from_secs(45);

/// A program that takes turns: a process for each of its executors, from the first turn of that on, so that
/// none runs code that was compiled, or a heap that was shaped, for another. They end with us, because
/// their orders end.
#[derive(Debug)]
pub struct Guest {
    program: Program,
    processes: Mutex<Vec<Seat>>,
    /// The result of the latest start of a process of its own: its version, or why there was none.
    alone: Mutex<Option<Result<String, Absent>>>,
}

/// The process of one executor.
#[derive(Debug)]
struct Seat {
    executor: String,
    process: Result<Process, Absent>,
}

/// What a guest was: for the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestFact {
    /// Its language.
    pub name: String,
    /// The version of what runs it, in its own words; nothing if it was left out.
    #[serde(default)]
    pub version: Option<String>,
    /// Options that it was started with, without paths.
    #[serde(default)]
    pub flags: Vec<String>,
    /// Why it was left out.
    #[serde(default)]
    pub left_out: Option<String>,
}

/// All that were asked for so far.
static FACTS: Mutex<Vec<GuestFact>> = Mutex::new(Vec::new());

/// All guests that were asked for in this process, each once.
pub fn facts() -> Vec<GuestFact> {
    lock(&FACTS).clone()
}

impl Guest {
    /// One that is not started yet.
    pub const fn new(program: Program) -> Self {
        Guest {
            program,
            processes: Mutex::new(Vec::new()),
            alone: Mutex::new(None),
        }
    }

    /// Its language.
    pub fn language(&self) -> Language {
        self.program.language
    }

    /// Has it do what is ordered, in the process of the executor.
    ///
    /// # Errors
    ///
    /// [`Absent`] if it cannot be started, or hangs; or what it says went wrong.
    pub fn run(&self, order: &Order<'_>) -> Result<Sample> {
        let mut seats = lock(&self.processes);
        let seat = self.seat(&mut seats, order.executor);
        let process = seat.process.as_mut().map_err(|absent| absent.clone())?;
        let most = MOST_WARM_UP.load(Ordering::Relaxed);
        let outcome = process.run(&Order {
            warm_up_millis: order.warm_up_millis.min(most),
            ..*order
        });
        let absent = outcome
            .as_ref()
            .err()
            .and_then(|error| error.downcast_ref::<Absent>());
        if let Some(absent) = absent.cloned() {
            // It does not come back, and its process ends here.
            seat.process = Err(absent);
        }
        outcome
    }

    /// The process of `executor`, started if it is not there yet.
    fn seat<'a>(&self, seats: &'a mut Vec<Seat>, executor: &str) -> &'a mut Seat {
        let found = seats.iter().position(|seat| seat.executor == executor);
        let index = found.unwrap_or_else(|| {
            seats.push(Seat {
                executor: executor.to_owned(),
                process: self.start(),
            });
            seats.len() - 1
        });
        &mut seats[index]
    }

    /// Starts a process of its own for the caller, in which nothing has been done yet.
    ///
    /// # Errors
    ///
    /// If it cannot be started.
    pub fn start_alone(&self) -> Result<Process, Absent> {
        let mut alone = lock(&self.alone);
        // A guest that could not be started cannot be started now.
        if let Some(Err(absent)) = &*alone {
            return Err(absent.clone());
        }
        let started = self.start();
        let version = started.as_ref().map(|process| process.version().to_owned());
        *alone = Some(version.map_err(Absent::clone));
        started
    }

    fn start(&self) -> Result<Process, Absent> {
        let command = self.program.command();
        let flags = command.as_ref().map(flags).unwrap_or_default();
        let started =
            command.and_then(|command| Process::start(command, self.language().who(), PATIENCE));
        let version = started.as_ref().map(|process| process.version().to_owned());
        note_fact(GuestFact {
            name: self.language().name().to_owned(),
            version: version.as_ref().ok().cloned(),
            flags,
            left_out: version.err().map(ToString::to_string),
        });
        started
    }

    /// Its version, or why it was left out; nothing if it was not asked for.
    pub fn note(&self) -> Option<String> {
        let name = self.language().name();
        let known = |seat: &Seat| {
            let version = seat
                .process
                .as_ref()
                .map(|process| process.version().to_owned());
            version.map_err(Absent::clone)
        };
        let seats: Vec<_> = lock(&self.processes).iter().map(known).collect();
        // One executor that hung does not make the others unknown.
        let beside = seats.iter().find(|known| known.is_ok()).or(seats.first());
        let known = beside.cloned().or_else(|| lock(&self.alone).clone());
        known.map(|version| match version {
            Ok(version) => format!("{name}: {version}, in a process of its own for each executor"),
            Err(absent) => format!("{name}: left out: {absent}"),
        })
    }
}

/// The options of a command: what begins with a dash. What follows may be a path of this machine.
fn flags(command: &Command) -> Vec<String> {
    let words = command.get_args().map(|word| word.to_string_lossy());
    let is_flag = |word: &str| word.starts_with('-') && !word.contains('/') && word != "-cp";
    words.filter(|word| is_flag(word)).map(Into::into).collect()
}

fn note_fact(fact: GuestFact) {
    let mut facts = lock(&FACTS);
    if !facts.contains(&fact) {
        facts.push(fact);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_kept_without_the_paths_of_this_machine() {
        let mut command = Command::new("java");
        command.args([
            "-XX:+UseParallelGC",
            "-cp",
            "/somewhere",
            "-Dx=/y",
            "PoolBench",
        ]);
        assert_eq!(flags(&command), ["-XX:+UseParallelGC"]);
    }

    #[test]
    fn a_fact_is_kept_once() {
        let fact = GuestFact {
            name: "a language of a test".into(),
            version: Some("9".into()),
            flags: Vec::new(),
            left_out: None,
        };
        note_fact(fact.clone());
        note_fact(fact.clone());
        assert_eq!(facts().iter().filter(|known| **known == fact).count(), 1);
    }
}
