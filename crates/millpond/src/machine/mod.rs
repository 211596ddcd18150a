//! What machine this process runs on: CPUs it may use, its CPU quota, memory, NUMA nodes.
//!
//! A pool that starts one worker per core of a 64-core machine inside a group with a quota of two
//! CPUs is throttled most of the time. So sizing asks three questions, and the smallest answer
//! wins: which CPUs are online, which of them may this process use, and how much CPU time does its
//! control group grant?
//!
//! # Design
//! - [`Machine`] is a plain value, read on demand. It does not follow later changes: read again.
//! - Everything comes from text files below a root directory, parsed by pure functions
//!   ([`Machine::read_from`]), so tests run on planted trees.
//! - What cannot be read or understood is `None` (or an empty list), never an error and never a
//!   guess. Where `/proc` and `/sys` do not exist (other systems than Linux), only
//!   [`Machine::parallelism`] is known.
//!
//! # What is read
//! | field | source |
//! |---|---|
//! | `online` | `/sys/devices/system/cpu/online`, else the `processor` lines of `/proc/cpuinfo` |
//! | `allowed` | `Cpus_allowed_list` of `/proc/self/status`, without CPUs that are offline |
//! | `cpu_quota`, `memory_limit` | `cgroup.rs`: every group from ours up to the mounted root |
//! | `memory_total` | `MemTotal` of `/proc/meminfo` |
//! | `nodes`, `cores` | `topology.rs`: `/sys/devices/system/{node,cpu}` |
//! | `cpu_model`, `hypervisor` | `/proc/cpuinfo` |
//! | `kernel` | `/proc/sys/kernel/osrelease` |
//! | `clock_source` | `/sys/devices/system/clocksource/clocksource0/current_clocksource` |
//! | `own_pid_namespace` | the target of `/proc/self/ns/pid` |

use std::num::NonZeroUsize;
use std::path::Path;

mod cgroup;
mod cpus;
mod source;
mod topology;

#[cfg(test)]
mod tests;

pub use cpus::{CpuList, CpuListError};
pub use topology::Node;

use source::Source;

/// The machine as this process sees it at one moment.
///
/// ```
/// use millpond::machine::Machine;
///
/// let machine = Machine::read();
/// assert!(machine.effective_cpus() > 0.0);
/// assert!(machine.worker_hint().get() >= 1);
/// ```
#[non_exhaustive]
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Machine {
    /// Logical CPUs that are switched on.
    pub online: Option<CpuList>,
    /// The online CPUs this process may run on: its affinity mask, which includes the cpuset of
    /// its control group.
    pub allowed: Option<CpuList>,
    /// What [`std::thread::available_parallelism`] says. It is `None` after
    /// [`read_from`](Self::read_from), because it does not come from files.
    pub parallelism: Option<NonZeroUsize>,
    /// CPU time per wall time the control groups grant: `0.5` is half a CPU. `None`: no limit.
    pub cpu_quota: Option<f64>,
    /// Memory of the machine in bytes.
    pub memory_total: Option<u64>,
    /// The smallest memory limit of the control groups in bytes. `None`: no limit.
    pub memory_limit: Option<u64>,
    /// NUMA nodes by number. Empty: unknown.
    pub nodes: Vec<Node>,
    /// Physical cores by their first CPU; the CPUs of one core are SMT siblings. Empty: unknown.
    pub cores: Vec<CpuList>,
    /// The CPU's own name for itself.
    pub cpu_model: Option<String>,
    /// The kernel's release, as `uname -r` prints it.
    pub kernel: Option<String>,
    /// What the kernel reads time from (`tsc`, `kvm-clock`, `hpet`, ..).
    pub clock_source: Option<String>,
    /// Whether the CPU reports a hypervisor. `Some(true)` is certain; `Some(false)` means that the
    /// CPU reports none, and a hypervisor may hide itself; `None`: this CPU does not say.
    pub hypervisor: Option<bool>,
    /// Whether this process lives in a PID namespace of its own, as nearly every container does.
    /// Marker files such as `/.dockerenv` are not asked: they survive in exported images.
    pub own_pid_namespace: Option<bool>,
}

impl Machine {
    /// Reads the facts about this machine.
    ///
    /// It opens a few files per CPU and node. Read once and keep the value; do not read per task.
    pub fn read() -> Self {
        Self {
            parallelism: std::thread::available_parallelism().ok(),
            ..Self::read_from("/")
        }
    }

    /// Reads the facts from the `proc` and `sys` folders below `root`.
    ///
    /// ```
    /// use millpond::machine::Machine;
    ///
    /// let nowhere = Machine::read_from("/no/such/root");
    /// assert_eq!(nowhere, Machine::default());
    /// assert_eq!(nowhere.worker_hint().get(), 1);
    /// ```
    pub fn read_from(root: impl AsRef<Path>) -> Self {
        let source = Source::new(root.as_ref());
        let cpuinfo = source.text("proc/cpuinfo").unwrap_or_default();
        let online = source
            .line("sys/devices/system/cpu/online")
            .and_then(|text| text.parse::<CpuList>().ok())
            .or_else(|| processors(&cpuinfo));
        let limits = cgroup::Limits::read(&source);
        Self {
            allowed: source
                .text("proc/self/status")
                .and_then(|status| allowed(&status, online.as_ref())),
            parallelism: None,
            cpu_quota: limits.cpu_quota,
            memory_total: source
                .text("proc/meminfo")
                .and_then(|text| source::kilobytes(&text, "MemTotal")),
            memory_limit: limits.memory,
            nodes: topology::nodes(&source),
            cores: topology::cores(&source, online.as_ref()),
            cpu_model: source::value(&cpuinfo, "model name")
                .or_else(|| source::value(&cpuinfo, "cpu"))
                .map(str::to_owned),
            kernel: source.line("proc/sys/kernel/osrelease"),
            clock_source: source
                .line("sys/devices/system/clocksource/clocksource0/current_clocksource"),
            hypervisor: hypervisor(&cpuinfo),
            own_pid_namespace: source
                .link("proc/self/ns/pid")
                .and_then(|t| is_own_namespace(&t)),
            online,
        }
    }

    /// How many CPUs this process can keep busy: the smaller of mask and quota.
    ///
    /// Half a CPU is `0.5`. Without a mask, what [`parallelism`](Self::parallelism) says is taken,
    /// then the number of CPUs online; a machine of which nothing is known has one CPU.
    ///
    /// ```
    /// use millpond::machine::Machine;
    ///
    /// let mut machine = Machine::default();
    /// machine.allowed = "0-3".parse().ok();
    /// assert_eq!(machine.effective_cpus(), 4.0);
    /// machine.cpu_quota = Some(1.5);
    /// assert_eq!(machine.effective_cpus(), 1.5);
    /// ```
    pub fn effective_cpus(&self) -> f64 {
        let count = |list: &Option<CpuList>| list.as_ref().map(CpuList::len).filter(|&n| n > 0);
        // The standard library's number comes second, because it rounds a quota down: 1.5 is 1.
        let usable = count(&self.allowed)
            .or(self.parallelism.map(NonZeroUsize::get))
            .or(count(&self.online))
            .unwrap_or(1) as f64;
        self.cpu_quota.map_or(usable, |quota| usable.min(quota))
    }

    /// How many workers of CPU-bound tasks this machine feeds: [`effective_cpus`] rounded up, at
    /// least one.
    ///
    /// Rounded up, because a quota of 1.5 CPUs is lost in part with one worker and used in full
    /// with two.
    ///
    /// ```
    /// use millpond::machine::Machine;
    ///
    /// let mut machine = Machine::default();
    /// machine.allowed = "0-3".parse().ok();
    /// machine.cpu_quota = Some(1.5);
    /// assert_eq!(machine.worker_hint().get(), 2);
    /// ```
    ///
    /// [`effective_cpus`]: Self::effective_cpus
    pub fn worker_hint(&self) -> NonZeroUsize {
        // A float-to-integer `as` saturates, so even an absurd quota cannot overflow.
        NonZeroUsize::new(self.effective_cpus().ceil() as usize).unwrap_or(NonZeroUsize::MIN)
    }

    /// Whether at least one core runs more than one CPU (SMT); `None` if the cores are unknown.
    ///
    /// ```
    /// use millpond::machine::Machine;
    ///
    /// let mut machine = Machine::default();
    /// assert_eq!(machine.has_smt(), None);
    /// machine.cores = vec!["0,2".parse().unwrap(), "1,3".parse().unwrap()];
    /// assert_eq!(machine.has_smt(), Some(true));
    /// ```
    pub fn has_smt(&self) -> Option<bool> {
        (!self.cores.is_empty()).then(|| self.cores.iter().any(|core| core.len() > 1))
    }
}

fn processors(cpuinfo: &str) -> Option<CpuList> {
    let ids = source::values(cpuinfo, "processor").filter_map(|id| id.parse::<u32>().ok());
    let list: CpuList = ids.collect();
    (!list.is_empty()).then_some(list)
}

/// The kernel's mask also names CPUs that could be plugged in later; those run nothing now.
fn allowed(status: &str, online: Option<&CpuList>) -> Option<CpuList> {
    let mask: CpuList = source::value(status, "Cpus_allowed_list")?.parse().ok()?;
    Some(online.map_or_else(|| mask.clone(), |online| mask.intersection(online)))
}

fn hypervisor(cpuinfo: &str) -> Option<bool> {
    source::value(cpuinfo, "flags")
        .map(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"))
}

/// The kernel gives its first PID namespace this fixed number (`PROC_PID_INIT_INO`).
const FIRST_PID_NAMESPACE: u32 = 0xEFFF_FFFC;

fn is_own_namespace(target: &str) -> Option<bool> {
    let number = target.strip_prefix("pid:[")?.strip_suffix(']')?;
    Some(number.parse::<u32>().ok()? != FIRST_PID_NAMESPACE)
}
