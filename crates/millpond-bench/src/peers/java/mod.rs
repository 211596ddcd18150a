//! The pools of `java.util.concurrent`, in a process of their own that takes its turns.
//!
//! | file | what |
//! |---|---|
//! | `java/PoolBench.java` | the program: it knows the workloads, and checks that every task ran once |
//! | [`process`] | starts it, once, at its first turn |
//! | [`answer`] | reads what it says |
//!
//! Where there is no Java, its rows are left out and say so; so does a line of [`notes`].

pub mod answer;
pub mod process;

use crate::harness::{Absent, Sample};
use anyhow::Result;
use process::{Order, Process};
use std::sync::{Mutex, PoisonError};

/// A pool of Java's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Executor {
    /// With a `LinkedBlockingQueue`, or an `ArrayBlockingQueue` where it has a bound.
    ThreadPoolExecutor,
    /// In its mode for tasks that are never joined, which takes the oldest first.
    ForkJoinPool,
}

impl Executor {
    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Executor::ThreadPoolExecutor => "Java ThreadPoolExecutor",
            Executor::ForkJoinPool => "Java ForkJoinPool",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Executor::ThreadPoolExecutor => "tpe",
            Executor::ForkJoinPool => "fjp",
        }
    }
}

/// The first order for a work and an executor does the work for so long before it is measured. The
/// JVM compiles what runs often, again and better; the harness's own sizing warms it up further.
pub const WARM_UP_MILLIS: u64 = 500;

/// The process, once somebody wanted it: one for the whole run, or the reason why there is none. It
/// ends with us, because its orders end.
static SHARED: Mutex<Option<Result<Process, Absent>>> = Mutex::new(None);

/// Has `executor` do `operations` operations of a work of the program.
///
/// # Errors
///
/// [`Absent`] if there is no Java; or what the program says.
pub fn run(executor: Executor, work: &str, producers: usize, operations: u64) -> Result<Sample> {
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    let process = shared.get_or_insert_with(Process::start);
    let process = process.as_mut().map_err(|absent| absent.clone())?;
    process.run(&Order {
        work,
        executor: executor.word(),
        producers,
        operations,
        warm_up_millis: WARM_UP_MILLIS,
    })
}

/// Which Java it was, or why there was none; nothing if nobody asked for one.
pub fn notes() -> Vec<String> {
    let shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    let note = shared.as_ref().map(|started| match started {
        Ok(process) => format!("Java: {}, in a process of its own", process.version()),
        Err(absent) => format!("Java: left out: {absent}"),
    });
    note.into_iter().collect()
}
