//! How many CPUs this process may use: its affinity mask and the quota of its control group.
//!
//! A pool that starts one worker per core of a 64-core machine inside a group with a quota of two
//! CPUs is throttled most of the time. So sizing takes the smallest of three numbers: the CPUs that are
//! online, those of them that this process may run on, and the CPU time that its control group grants.
//!
//! Take it to size anything by CPUs; [`preset::cpu_bound_workers`](crate::preset::cpu_bound_workers) does that for pools.
//!
//! ```
//! use millpond::machine::Machine;
//!
//! let machine = Machine::read();
//! println!("{} workers for {} CPUs", machine.worker_hint(), machine.effective_cpus());
//! ```
//!
//! # What it tells
//! - [`Machine`] is a plain value, read on demand. It does not follow later changes: read again.
//! - Everything comes from text files below a root directory, parsed by pure functions
//!   ([`Machine::read_from`]), so tests run on planted trees.
//! - A fact that cannot be read or understood is `None`, never an error and never a
//!   guess. Where `/proc` and `/sys` do not exist (other systems than Linux), only
//!   [`Machine::parallelism`] is known.
//! - [`Topology`] says which of these CPUs are near to each other.
//! - Facts that are only shown, such as the CPU's name or its memory, are in the program (`millpond about`).
//!
//! # What is read
//! | field | source |
//! |---|---|
//! | `online` | `/sys/devices/system/cpu/online`, else the `processor` lines of `/proc/cpuinfo` |
//! | `allowed` | `Cpus_allowed_list` of `/proc/self/status`, without CPUs that are offline |
//! | `cpu_quota`, `memory_limit` | every control group from ours up to the mounted root |
//! | [`Topology`] | below `/sys/devices/system`: `topology` and `cache` of each `cpu`, `cpulist` of each `node` |

// | file | what |
// |---|---|
// | `cpus` | [`CpuList`], a set of CPU numbers |
// | `cgroup` | the limits of control groups, version 1 and 2 |
// | `source` | text files below a root directory |
// | `topology` | which CPUs share a core, a cache, or memory |

use std::num::NonZeroUsize;
use std::path::Path;

mod cgroup;
mod cpus;
mod source;
mod topology;

#[cfg(test)]
mod tests;

pub use cpus::{CpuList, CpuListError};
pub use topology::{Distance, Topology};

use source::Source;

/// The CPUs and limits of this process at one moment.
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
    /// The value of [`std::thread::available_parallelism`]. It is `None` after
    /// [`read_from`](Self::read_from), because it does not come from files.
    pub parallelism: Option<NonZeroUsize>,
    /// CPU time per wall time the control groups grant: `0.5` is half a CPU. `None`: no limit.
    pub cpu_quota: Option<f64>,
    /// The smallest memory limit of the control groups in bytes. `None`: no limit.
    pub memory_limit: Option<u64>,
}

impl Machine {
    /// Reads the facts about this machine.
    ///
    /// It opens a few files. Read once and keep the value; do not read per task.
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
        let online = source
            .line("sys/devices/system/cpu/online")
            .and_then(|text| text.parse::<CpuList>().ok())
            .or_else(|| processors(&source.text("proc/cpuinfo")?));
        let limits = cgroup::Limits::read(&source);
        Self {
            allowed: source
                .text("proc/self/status")
                .and_then(|status| allowed(&status, online.as_ref())),
            parallelism: None,
            cpu_quota: limits.cpu_quota,
            memory_limit: limits.memory,
            online,
        }
    }

    /// How many CPUs this process can keep busy: the smaller of mask and quota.
    ///
    /// Half a CPU is `0.5`. Without a mask, [`parallelism`](Self::parallelism) is taken instead, then the
    /// number of CPUs online; a machine of which nothing is known has one CPU.
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

    /// How many workers CPU-bound tasks can use: [`effective_cpus`] rounded up, at
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

    /// The worker hint of this machine now: it opens files.
    pub(crate) fn read_worker_hint() -> NonZeroUsize {
        let hint = Machine::read().worker_hint();
        remember_hint(hint.get());
        hint
    }

    /// The worker hint that was read last, for whoever asks often. Files are opened if it is the first.
    pub(crate) fn last_worker_hint() -> NonZeroUsize {
        NonZeroUsize::new(remember_hint(0)).unwrap_or_else(Machine::read_worker_hint)
    }
}

/// Keeps the hint, unless it is 0. Returns the one that is kept; 0 if there is none.
fn remember_hint(hint: usize) -> usize {
    #![allow(
        clippy::disallowed_types,
        reason = "a static outlives every model, and nothing is decided by it"
    )]
    use std::sync::atomic::{AtomicUsize, Ordering};
    static LAST: AtomicUsize = AtomicUsize::new(0);
    if hint != 0 {
        LAST.store(hint, Ordering::Relaxed);
    }
    LAST.load(Ordering::Relaxed)
}

fn processors(cpuinfo: &str) -> Option<CpuList> {
    let ids = source::values(cpuinfo, "processor").filter_map(|id| id.parse::<u32>().ok());
    let list: CpuList = ids.collect();
    (!list.is_empty()).then_some(list)
}

/// The kernel's mask contains CPUs that could be plugged in later; those are left out.
fn allowed(status: &str, online: Option<&CpuList>) -> Option<CpuList> {
    let mask: CpuList = source::value(status, "Cpus_allowed_list")?.parse().ok()?;
    Some(online.map_or_else(|| mask.clone(), |online| mask.intersection(online)))
}
