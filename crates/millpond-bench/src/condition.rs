//! The condition in which everything is measured: on a quiet machine, on a busy one, or on one CPU.
//!
//! Production machines are not quiet. A pool that spins or yields while it is idle looks best where nobody else wants
//! the CPU, and worst where somebody does. So every suite can be run in three conditions:
//!
//! - **quiet**: nothing else runs that the bench knows of.
//! - **busy**: as many endless loops run beside it as there are CPUs, at the lowest priority (nice 19). They end by
//!   themselves when the bench does, however it ends: each one looks for its parent a few times a second.
//! - **one CPU**: the bench and all its candidates, those in other languages included, share one CPU.

use crate::apart;
use anyhow::{Context, Result};
use clap::ValueEnum;
use clap::builder::PossibleValue;
use serde::{Deserialize, Serialize};
use std::process::{Child, Command, Stdio};

/// What else the machine does while it is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Condition {
    /// Nothing.
    #[default]
    Quiet,
    /// An endless loop for each CPU, at nice 19.
    Busy,
    /// Everything shares one CPU.
    OneCpu,
}

/// The condition lasts until this is dropped.
#[derive(Debug)]
#[must_use = "the condition ends when this is dropped"]
pub struct InCondition {
    loops: Vec<Child>,
}

/// A loop that ends with its parent: it counts for some tens of milliseconds, then looks whether the parent lives.
const LOOP: &str =
    "while kill -0 $PPID 2>/dev/null; do i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; done";

impl Condition {
    /// Creates the condition.
    ///
    /// # Errors
    ///
    /// If a loop cannot be started, or this thread cannot be kept on one CPU.
    pub fn enter(self) -> Result<InCondition> {
        let mut entered = InCondition { loops: Vec::new() };
        match self {
            Condition::Quiet => {}
            Condition::Busy => {
                let cpus = std::thread::available_parallelism().map_or(1, usize::from);
                for _ in 0..cpus {
                    entered.loops.push(start_loop()?);
                }
            }
            Condition::OneCpu => apart::stay_on_one_cpu()?,
        }
        Ok(entered)
    }

    /// All of them.
    pub const ALL: [Condition; 3] = [Condition::Quiet, Condition::Busy, Condition::OneCpu];

    /// Its name on the command line and in files.
    pub const fn name(self) -> &'static str {
        match self {
            Condition::Quiet => "quiet",
            Condition::Busy => "busy",
            Condition::OneCpu => "one-cpu",
        }
    }

    /// In a heading.
    pub const fn words(self) -> &'static str {
        match self {
            Condition::Quiet => "quiet",
            Condition::Busy => "busy",
            Condition::OneCpu => "one CPU",
        }
    }

    /// One line for the reader of the figures; `None` if there is nothing to say.
    pub fn note(self) -> Option<String> {
        match self {
            Condition::Quiet => None,
            Condition::Busy => {
                Some("Busy: an endless loop for each CPU ran beside this, at nice 19.".into())
            }
            Condition::OneCpu => Some("One CPU: the bench and all candidates shared it.".into()),
        }
    }
}

fn start_loop() -> Result<Child> {
    Command::new("nice")
        .args(["-n", "19", "sh", "-c", LOOP])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .context("`nice` and `sh` are needed for --condition busy")
}

impl InCondition {
    /// How many loops run.
    pub fn loops(&self) -> usize {
        self.loops.len()
    }
}

impl Drop for InCondition {
    fn drop(&mut self) {
        for child in &mut self.loops {
            // One that has ended by itself cannot be ended again.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Not derived: descriptions of the values would stretch the whole help text.
impl ValueEnum for Condition {
    fn value_variants<'a>() -> &'a [Self] {
        &Condition::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name()))
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    /// The nice value of a process, the 19th field of its `stat`.
    fn nice(pid: u32) -> Option<i64> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, fields) = stat.rsplit_once(')')?;
        fields.split_whitespace().nth(16)?.parse().ok()
    }

    #[test]
    fn a_busy_machine_has_a_loop_of_the_lowest_priority_for_each_cpu_until_the_end() {
        let busy = Condition::Busy.enter().unwrap();
        let cpus = std::thread::available_parallelism().unwrap().get();
        assert_eq!(busy.loops(), cpus);
        let pids: Vec<u32> = busy.loops.iter().map(Child::id).collect();
        for &pid in &pids {
            // `nice` sets the priority after it has been started.
            while nice(pid) != Some(19) {
                std::thread::yield_now();
            }
        }
        drop(busy);
        for pid in pids {
            assert!(!Path::new(&format!("/proc/{pid}")).exists());
        }
    }

    #[test]
    fn one_cpu_is_shared_with_threads_that_are_started_later() {
        // On a thread of its own, which takes its CPU with it.
        let cpus = || std::thread::available_parallelism().unwrap().get();
        let seen = std::thread::spawn(move || {
            let _one = Condition::OneCpu.enter().unwrap();
            (cpus(), std::thread::spawn(cpus).join().unwrap())
        });
        assert_eq!(seen.join().unwrap(), (1, 1));
    }

    #[test]
    fn a_quiet_machine_is_left_alone() {
        assert_eq!(Condition::Quiet.enter().unwrap().loops(), 0);
        assert_eq!(Condition::Quiet.note(), None);
    }
}
