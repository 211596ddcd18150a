//! The machine of a run, and how quiet it was there.
//!
//! A figure without its machine is worth little, and one from a machine that was busy with other
//! things even less. So the load before the run and the CPU time that a hypervisor gave to other
//! machines meanwhile stand beside the figures.

mod hardware;

pub use hardware::{Hardware, Node};

use crate::condition::Condition;
use millpond::machine::Machine;
use serde::{Deserialize, Serialize};
use std::fs;

/// The machine and its load. An unknown value is `null`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Surroundings {
    /// The CPU's own name for itself.
    pub cpu_model: Option<String>,
    /// The architecture this program was built for.
    pub arch: String,
    /// How many CPUs' worth of time this process may use.
    pub effective_cpus: f64,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// The kernel's clock source.
    pub clock_source: Option<String>,
    /// Whether the CPU reports a hypervisor.
    pub hypervisor: Option<bool>,
    /// How many threads wanted to run, on average over the minute before the run.
    pub load_before: Option<f64>,
    /// Of all CPU time during the run, how much was given to other machines.
    pub steal_percent: Option<f64>,
    /// What else the machine did meanwhile, on purpose.
    #[serde(default)]
    pub condition: Condition,
}

impl Surroundings {
    /// Reads the facts; the CPU time given away is known only after the run.
    pub fn read() -> Self {
        let machine = Machine::read();
        let hardware = Hardware::read_from("/", machine.online.as_ref());
        Surroundings {
            effective_cpus: machine.effective_cpus(),
            cpu_model: hardware.cpu_model,
            arch: std::env::consts::ARCH.into(),
            kernel: hardware.kernel,
            clock_source: hardware.clock_source,
            hypervisor: hardware.hypervisor,
            load_before: fs::read_to_string("/proc/loadavg")
                .ok()
                .and_then(|text| load(&text)),
            steal_percent: None,
            condition: Condition::Quiet,
        }
    }

    /// One line about the machine, and one more if it is not quiet; ending in a newline.
    pub fn lines(&self) -> String {
        let model = self.cpu_model.as_deref().unwrap_or("unknown CPU");
        let kernel = self.kernel.as_deref().unwrap_or("unknown");
        let (arch, cpus) = (&self.arch, self.effective_cpus);
        let mut text = format!("{model} ({arch}), {cpus:.1} CPUs, kernel {kernel}\n");
        // Half a CPU: less than one thread at work all the time.
        if let Some(load) = self.load_before.filter(|&load| load > 0.5) {
            text += &format!(
                "The load was {load:.1} before the run: something else works here. \
                 Wait until it is quiet before you trust these figures.\n"
            );
        }
        text
    }
}

/// CPU time of the whole machine so far, in the kernel's ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticks {
    all: u64,
    stolen: u64,
}

impl Ticks {
    /// The ticks until now.
    pub fn read() -> Option<Self> {
        fs::read_to_string("/proc/stat")
            .ok()
            .and_then(|text| Self::parse(&text))
    }

    /// The columns are user, nice, system, idle, iowait, irq, softirq, steal, and two that are part
    /// of the first two.
    fn parse(stat: &str) -> Option<Self> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let columns: Option<Vec<u64>> = line
            .split_whitespace()
            .take(8)
            .map(|n| n.parse().ok())
            .collect();
        let columns = columns?;
        Some(Ticks {
            all: columns.iter().sum(),
            stolen: *columns.get(7)?,
        })
    }

    /// How much of the time since `earlier` was stolen, in percent.
    pub fn steal_since(self, earlier: Ticks) -> Option<f64> {
        let all = self.all.checked_sub(earlier.all).filter(|&all| all > 0)?;
        let stolen = self.stolen.checked_sub(earlier.stolen)?;
        Some(stolen as f64 * 100.0 / all as f64)
    }
}

fn load(loadavg: &str) -> Option<f64> {
    loadavg.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_is_that_of_the_last_minute() {
        assert_eq!(load("1.25 0.73 1.04 1/88 10974\n"), Some(1.25));
        assert_eq!(load(""), None);
    }

    #[test]
    fn stolen_time_is_a_part_of_all_time() {
        let before = Ticks::parse("cpu  10 0 10 80 0 0 0 0 5 5\ncpu0 1 1\n").unwrap();
        let after = Ticks::parse("cpu  60 0 10 110 0 0 0 20 5 5\n").unwrap();
        assert_eq!(after.steal_since(before), Some(20.0));
        assert_eq!(before.steal_since(before), None);
        assert_eq!(Ticks::parse("cpu  1 2 3\n"), None);
    }

    #[test]
    fn a_busy_machine_is_called_busy() {
        let quiet = Surroundings {
            load_before: Some(0.1),
            ..Surroundings::read()
        };
        let busy = Surroundings {
            load_before: Some(3.2),
            ..quiet.clone()
        };
        assert_eq!(quiet.lines().lines().count(), 1);
        assert!(busy.lines().contains("The load was 3.2 before the run"));
    }
}
