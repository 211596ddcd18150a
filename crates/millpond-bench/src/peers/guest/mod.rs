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
//! The programs themselves are in the folders `java`, `go` and `python` beside `src`. They are part of
//! this library's binary, so that they are there wherever it runs. Each knows its workloads, counts its
//! tasks and checks that every one ran once, as `src/workloads` does it here.
//!
//! # The protocol
//!
//! ```text
//! guest   ready OpenJDK 64-Bit Server VM 17.0.15
//! bench   run fire tpe-linked 4 50000 500          work, executor, producers, operations, warm-up in ms
//! guest   done operations=50000 nanos=9100000 cpu=15000000 sleeps=12 preemptions=30
//! bench   run mill tpe-linked 1 1 0
//! guest   failed there is no work mill
//! ```
//!
//! Times are nanoseconds; what is not known is left out of an answer; a work that times single
//! operations adds their `p50`, `p99`, `p999` and `max`, and one that asks for memory the bytes that are
//! `resident` and `kept`. A guest ends when its orders do.
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
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The first order for a work and an executor does the work for at most so long before it is measured:
/// the JVM compiles what runs often, again and better. It stops earlier if it gets no faster, and the
/// harness's own sizing warms it up further.
pub const WARM_UP_MILLIS: u64 = 500;

/// The time set by [`rounds_take`].
static MOST_WARM_UP: AtomicU64 = AtomicU64::new(WARM_UP_MILLIS);

/// Short rounds mean a short warm-up: no guest warms up for longer than a few of them.
pub fn rounds_take(round_time: Duration) {
    let few = u64::try_from((round_time * 5).as_millis());
    MOST_WARM_UP.store(few.unwrap_or(u64::MAX), Ordering::Relaxed);
}

/// A turn takes a fraction of a second, and a first turn a few. A guest that takes this long hangs.
pub const PATIENCE: Duration = Duration::from_secs(45);

/// A program that takes turns: one process for the whole run, from its first turn on. It ends with us,
/// because its orders end.
#[derive(Debug)]
pub struct Guest {
    program: Program,
    process: Mutex<State>,
    /// The result of the latest start of a process of its own: its version, or why there was none.
    alone: Mutex<Option<Result<String, Absent>>>,
}

/// Its state so far; nothing if it was not asked for.
type State = Option<Result<Process, Absent>>;

impl Guest {
    /// One that is not started yet.
    pub const fn new(program: Program) -> Self {
        Guest {
            program,
            process: Mutex::new(None),
            alone: Mutex::new(None),
        }
    }

    /// Its language.
    pub fn language(&self) -> Language {
        self.program.language
    }

    /// Has it do what is ordered.
    ///
    /// # Errors
    ///
    /// [`Absent`] if it cannot be started, or hangs; or what it says went wrong.
    pub fn run(&self, order: &Order<'_>) -> Result<Sample> {
        let mut state = lock(&self.process);
        let started = state.get_or_insert_with(|| self.start());
        let process = started.as_mut().map_err(|absent| absent.clone())?;
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
            *state = Some(Err(absent));
        }
        outcome
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
        let command = self.program.command()?;
        Process::start(command, self.language().who(), PATIENCE)
    }

    /// Its version, or why it was left out; nothing if it was not asked for.
    pub fn note(&self) -> Option<String> {
        let name = self.language().name();
        let beside = lock(&self.process).as_ref().map(|started| {
            let version = started.as_ref().map(|process| process.version().to_owned());
            version.map_err(Absent::clone)
        });
        let known = beside.or_else(|| lock(&self.alone).clone());
        known.map(|version| match version {
            Ok(version) => format!("{name}: {version}, in a process of its own"),
            Err(absent) => format!("{name}: left out: {absent}"),
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
