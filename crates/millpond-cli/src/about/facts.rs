//! The machine, as the page tells it.

use millpond::machine::Machine;
use millpond_bench::machine::Hardware;
use serde::Serialize;

/// The facts of a [`Machine`] and its [`Hardware`], for programs. An unknown one is `null`.
#[derive(Debug, Serialize)]
pub(super) struct Facts {
    cpu_model: Option<String>,
    cpus_online: Option<usize>,
    cpus_allowed: Option<usize>,
    cpus_allowed_list: Option<String>,
    cpu_quota: Option<f64>,
    effective_cpus: f64,
    worker_hint: usize,
    cores: Option<usize>,
    smt: Option<bool>,
    memory_total_bytes: Option<u64>,
    memory_limit_bytes: Option<u64>,
    numa_nodes: Vec<NodeFacts>,
    kernel: Option<String>,
    clock_source: Option<String>,
    hypervisor: Option<bool>,
    own_pid_namespace: Option<bool>,
}

#[derive(Debug, Serialize)]
struct NodeFacts {
    id: u32,
    cpus: String,
    memory_bytes: Option<u64>,
}

impl Facts {
    pub(super) fn of(machine: &Machine, hardware: &Hardware) -> Self {
        Self {
            cpu_model: hardware.cpu_model.clone(),
            cpus_online: machine.online.as_ref().map(|list| list.len()),
            cpus_allowed: machine.allowed.as_ref().map(|list| list.len()),
            cpus_allowed_list: machine.allowed.as_ref().map(ToString::to_string),
            cpu_quota: machine.cpu_quota,
            effective_cpus: machine.effective_cpus(),
            worker_hint: machine.worker_hint().get(),
            cores: Some(hardware.cores.len()).filter(|&cores| cores > 0),
            smt: hardware.has_smt(),
            memory_total_bytes: hardware.memory_total,
            memory_limit_bytes: machine.memory_limit,
            numa_nodes: hardware
                .nodes
                .iter()
                .map(|node| NodeFacts {
                    id: node.id,
                    cpus: node.cpus.to_string(),
                    memory_bytes: node.memory,
                })
                .collect(),
            kernel: hardware.kernel.clone(),
            clock_source: hardware.clock_source.clone(),
            hypervisor: hardware.hypervisor,
            own_pid_namespace: hardware.own_pid_namespace,
        }
    }

    #[cfg(test)]
    pub(super) fn unknown() -> Self {
        Self::of(&Machine::default(), &Hardware::default())
    }

    /// Name and text of each fact, for people. An unknown fact has no line.
    pub(super) fn lines(&self) -> Vec<(&'static str, String)> {
        let lines = [
            ("CPU", self.cpu_model.clone()),
            ("CPUs", self.cpus()),
            (
                "quota",
                Some(
                    self.cpu_quota
                        .map_or("none found".into(), |q| format!("{q:.2} CPUs")),
                ),
            ),
            ("workers", Some(self.workers())),
            ("memory", self.memory()),
            ("NUMA", self.numa()),
            ("kernel", self.kernel_line()),
            ("runs in", self.surroundings()),
        ];
        lines
            .into_iter()
            .filter_map(|(name, text)| Some((name, text?)))
            .collect()
    }

    fn cpus(&self) -> Option<String> {
        let online = self.cpus_online?;
        let mut text = format!("{online} online");
        if let (Some(allowed), Some(list)) = (self.cpus_allowed, &self.cpus_allowed_list) {
            text += &format!(", {allowed} for this process ({list})");
        }
        match (self.cores, self.smt) {
            (Some(cores), Some(true)) => text += &format!(", on {cores} cores with SMT"),
            (Some(_), Some(false)) => text += ", one per core",
            _ => {}
        }
        Some(text)
    }

    fn workers(&self) -> String {
        let (workers, cpus) = (self.worker_hint, self.effective_cpus);
        format!("{workers} for CPU-bound tasks ({cpus:.2} CPUs, the smaller of mask and quota)")
    }

    fn memory(&self) -> Option<String> {
        let total = bytes(self.memory_total_bytes?);
        let limit = self
            .memory_limit_bytes
            .map_or("no limit found".into(), |limit| {
                format!("limited to {}", bytes(limit))
            });
        Some(format!("{total}, {limit}"))
    }

    fn numa(&self) -> Option<String> {
        let nodes: Vec<String> = self
            .numa_nodes
            .iter()
            .map(|node| format!("node {} has CPUs {}", node.id, or_none(&node.cpus)))
            .collect();
        (!nodes.is_empty()).then(|| nodes.join("; "))
    }

    fn kernel_line(&self) -> Option<String> {
        let kernel = self.kernel.as_ref()?;
        let clock = self
            .clock_source
            .as_ref()
            .map(|clock| format!(", clock source {clock}"));
        Some(format!("{kernel}{}", clock.unwrap_or_default()))
    }

    /// Only what is certain is said.
    fn surroundings(&self) -> Option<String> {
        let machine = (self.hypervisor == Some(true)).then_some("a virtual machine");
        let group = (self.own_pid_namespace == Some(true)).then_some("its own PID namespace");
        let known: Vec<&str> = machine.into_iter().chain(group).collect();
        (!known.is_empty()).then(|| known.join(", "))
    }
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { "none" } else { text }
}

fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (bytes as f64, 0);
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = usize::from(unit > 0);
    format!("{value:.digits$} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_machine_says_only_what_follows_from_nothing() {
        let names: Vec<_> = Facts::unknown().lines().iter().map(|l| l.0).collect();
        assert_eq!(names, ["quota", "workers"]);
    }

    #[test]
    fn a_known_machine_tells_mask_quota_and_cores() {
        let mut machine = Machine::default();
        machine.online = "0-7".parse().ok();
        machine.allowed = "0-3".parse().ok();
        machine.cpu_quota = Some(1.5);
        let hardware = Hardware {
            cores: vec!["0,1".parse().unwrap(), "2,3".parse().unwrap()],
            ..Hardware::default()
        };
        let lines = Facts::of(&machine, &hardware).lines();
        let text = |name| lines.iter().find(|line| line.0 == name).unwrap().1.as_str();
        assert_eq!(
            text("CPUs"),
            "8 online, 4 for this process (0-3), on 2 cores with SMT"
        );
        assert_eq!(text("quota"), "1.50 CPUs");
        assert!(text("workers").starts_with("2 for CPU-bound tasks (1.50 CPUs"));
    }

    #[test]
    fn only_certain_surroundings_are_named() {
        let surroundings = |hypervisor| {
            let hardware = Hardware {
                hypervisor,
                ..Hardware::default()
            };
            Facts::of(&Machine::default(), &hardware).surroundings()
        };
        assert_eq!(surroundings(Some(false)), None);
        assert_eq!(
            surroundings(Some(true)).as_deref(),
            Some("a virtual machine")
        );
    }

    #[test]
    fn bytes_are_shown_in_the_largest_unit_that_fits() {
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1 << 30), "1.0 GiB");
        assert_eq!(bytes(u64::MAX), "16777216.0 TiB");
    }
}
