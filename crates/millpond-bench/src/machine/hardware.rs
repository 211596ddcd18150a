//! Facts about the machine that are shown beside figures and on the page of `millpond about`. The facts that
//! decide about the size of a pool are in [`millpond::machine`].
//!
//! | field | source |
//! |---|---|
//! | `memory_total` | `MemTotal` of `/proc/meminfo` |
//! | `nodes`, `cores` | `/sys/devices/system/{node,cpu}` |
//! | `cpu_model`, `hypervisor` | `/proc/cpuinfo` |
//! | `kernel` | `/proc/sys/kernel/osrelease` |
//! | `clock_source` | `/sys/devices/system/clocksource/clocksource0/current_clocksource` |
//! | `own_pid_namespace` | the target of `/proc/self/ns/pid` |

use millpond::machine::CpuList;
use std::fs;
use std::path::Path;

/// The hardware and the kernel. A fact that cannot be read is `None`, or an empty list.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Hardware {
    /// Memory of the machine in bytes.
    pub memory_total: Option<u64>,
    /// NUMA nodes by number. Empty: unknown.
    pub nodes: Vec<Node>,
    /// Physical cores by their first CPU; the CPUs of one core are SMT siblings. Empty: unknown.
    pub cores: Vec<CpuList>,
    /// The CPU's own name for itself.
    pub cpu_model: Option<String>,
    /// The kernel's release, as `uname -r` prints it.
    pub kernel: Option<String>,
    /// The kernel's clock source (`tsc`, `kvm-clock`, `hpet`, ..).
    pub clock_source: Option<String>,
    /// Whether the CPU reports a hypervisor. `Some(true)` is certain; `Some(false)` means that the
    /// CPU reports none, and a hypervisor may hide itself; `None`: this CPU does not say.
    pub hypervisor: Option<bool>,
    /// Whether this process lives in a PID namespace of its own, as nearly every container does.
    /// Marker files such as `/.dockerenv` are not read: they survive in exported images.
    pub own_pid_namespace: Option<bool>,
}

/// A NUMA node: CPUs and the memory that is near to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The kernel's number of this node.
    pub id: u32,
    /// CPUs of this node. None, if it has only memory.
    pub cpus: CpuList,
    /// Memory of this node in bytes.
    pub memory: Option<u64>,
}

const NODES: &str = "sys/devices/system/node";
const CPUS: &str = "sys/devices/system/cpu";

impl Hardware {
    /// Reads the facts from the `proc` and `sys` folders below `root`, which is `/` except in tests. Cores
    /// are those of the CPUs that are `online`, of all CPUs if that is unknown.
    pub fn read_from(root: impl AsRef<Path>, online: Option<&CpuList>) -> Self {
        let root = root.as_ref();
        let cpuinfo = text(root, "proc/cpuinfo").unwrap_or_default();
        let model = value(&cpuinfo, "model name").or_else(|| value(&cpuinfo, "cpu"));
        let namespace = fs::read_link(root.join("proc/self/ns/pid")).ok();
        Hardware {
            memory_total: text(root, "proc/meminfo").and_then(|text| kilobytes(&text, "MemTotal")),
            nodes: nodes(root),
            cores: cores(root, online),
            cpu_model: model.map(str::to_owned),
            kernel: line(root, "proc/sys/kernel/osrelease"),
            clock_source: line(
                root,
                "sys/devices/system/clocksource/clocksource0/current_clocksource",
            ),
            hypervisor: value(&cpuinfo, "flags")
                .map(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor")),
            own_pid_namespace: namespace.and_then(|target| is_own_namespace(target.to_str()?)),
        }
    }

    /// Whether at least one core runs more than one CPU (SMT); `None` if the cores are unknown.
    pub fn has_smt(&self) -> Option<bool> {
        (!self.cores.is_empty()).then(|| self.cores.iter().any(|core| core.len() > 1))
    }
}

fn nodes(root: &Path) -> Vec<Node> {
    let node = |id| {
        let folder = format!("{NODES}/node{id}");
        let cpus = text(root, &format!("{folder}/cpulist"))?.parse().ok()?;
        let memory = text(root, &format!("{folder}/meminfo"))
            .and_then(|text| kilobytes(&text, &format!("Node {id} MemTotal")));
        Some(Node { id, cpus, memory })
    };
    let ids = numbered(root, NODES, "node");
    ids.into_iter().filter_map(node).collect()
}

/// Every core once, although each of its CPUs names it. One CPU without siblings makes all cores unknown:
/// a count that leaves some out would be wrong without looking so.
fn cores(root: &Path, online: Option<&CpuList>) -> Vec<CpuList> {
    let mut cores: Vec<CpuList> = Vec::new();
    for id in numbered(root, CPUS, "cpu") {
        if online.is_some_and(|online| !online.contains(id)) {
            continue;
        }
        let siblings = line(
            root,
            &format!("{CPUS}/cpu{id}/topology/thread_siblings_list"),
        );
        match siblings.and_then(|text| text.parse().ok()) {
            Some(core) if cores.contains(&core) => {}
            Some(core) => cores.push(core),
            None => return Vec::new(),
        }
    }
    cores
}

/// The kernel gives its first PID namespace this fixed number (`PROC_PID_INIT_INO`).
const FIRST_PID_NAMESPACE: u32 = 0xEFFF_FFFC;

fn is_own_namespace(target: &str) -> Option<bool> {
    let number = target.strip_prefix("pid:[")?.strip_suffix(']')?;
    Some(number.parse::<u32>().ok()? != FIRST_PID_NAMESPACE)
}

fn text(root: &Path, path: &str) -> Option<String> {
    let bytes = fs::read(root.join(path)).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The first line of a file, trimmed; an empty one counts as unreadable.
fn line(root: &Path, path: &str) -> Option<String> {
    let line = text(root, path)?.lines().next()?.trim().to_owned();
    (!line.is_empty()).then_some(line)
}

/// The numbers `n` of the entries named `<prefix><n>` in a folder, in order.
fn numbered(root: &Path, folder: &str, prefix: &str) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(root.join(folder)) else {
        return Vec::new();
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut numbers: Vec<u32> = names
        .filter_map(|name| name.strip_prefix(prefix)?.parse().ok())
        .collect();
    numbers.sort_unstable();
    numbers
}

/// The first value of the lines `key: value` that is not empty.
fn value<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    let mut values = text.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim())
    });
    values.find(|value| !value.is_empty())
}

/// The value of `key` in bytes, from a line such as `MemTotal: 2048 kB`.
fn kilobytes(text: &str, key: &str) -> Option<u64> {
    let number = value(text, key)?.strip_suffix("kB")?.trim();
    number.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// A planted root directory, removed when the test is over.
    struct Tree {
        root: PathBuf,
    }

    impl Tree {
        /// `name` keeps the trees of parallel tests apart.
        fn plant(name: &str, files: &[(&str, &str)]) -> Self {
            let name = format!("millpond-bench-{}-{name}", std::process::id());
            let root = std::env::temp_dir().join(name);
            for (path, text) in files {
                let file = root.join(path);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, text).unwrap();
            }
            Tree { root }
        }

        fn read(&self) -> Hardware {
            Hardware::read_from(&self.root, None)
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.root);
        }
    }

    fn cpus(text: &str) -> CpuList {
        text.parse().unwrap()
    }

    #[test]
    fn broken_files_read_as_unknown() {
        let files = [
            ("proc/meminfo", "MemTotal:       lots kB\n"),
            ("proc/cpuinfo", "\u{0}\u{0}:::\nmodel name\nmodel name :\n"),
            ("proc/sys/kernel/osrelease", "\n"),
            ("sys/devices/system/node/node0/cpulist", "x\n"),
            ("sys/devices/system/nodeful/cpulist", "0\n"),
            (
                "sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
                "0-\n",
            ),
        ];
        assert_eq!(Tree::plant("broken", &files).read(), Hardware::default());
        let nowhere = Hardware::read_from("/no/such/root", None);
        assert_eq!(nowhere, Hardware::default());
    }

    #[test]
    fn several_numa_nodes_come_in_order_of_their_numbers() {
        let node = |id: u32| format!("sys/devices/system/node/node{id}");
        let meminfo = "Node 10 MemTotal:       2048 kB\nNode 10 MemFree:  1 kB\n";
        let tree = Tree::plant(
            "numa",
            &[
                (&format!("{}/cpulist", node(10)), "4-7\n"),
                (&format!("{}/meminfo", node(10)), meminfo),
                (&format!("{}/cpulist", node(0)), "0-3\n"),
                (&format!("{}/cpulist", node(2)), "\n"),
                ("sys/devices/system/node/possible", "0-10\n"),
            ],
        );
        let nodes = tree.read().nodes;
        let seen: Vec<_> = nodes
            .iter()
            .map(|n| (n.id, n.cpus.to_string(), n.memory))
            .collect();
        assert_eq!(
            seen,
            [
                (0, "0-3".into(), None),
                (2, String::new(), None),
                (10, "4-7".into(), Some(2 << 20))
            ]
        );
    }

    #[test]
    fn smt_siblings_make_one_core() {
        let siblings = |cpu: u32| format!("{CPUS}/cpu{cpu}/topology/thread_siblings_list");
        let tree = Tree::plant(
            "smt",
            &[
                (&siblings(0), "0,2\n"),
                (&siblings(1), "1,3\n"),
                (&siblings(2), "0,2\n"),
                (&siblings(3), "1,3\n"),
                ("sys/devices/system/cpu/cpu9/uevent", ""),
                ("sys/devices/system/cpu/cpufreq/policy", ""),
            ],
        );
        let hardware = Hardware::read_from(&tree.root, Some(&cpus("0-3")));
        assert_eq!(hardware.cores, [cpus("0,2"), cpus("1,3")]);
        assert_eq!(hardware.has_smt(), Some(true));
        // CPU 9 is not known to be offline, and names no siblings.
        assert_eq!(tree.read().has_smt(), None);
    }

    #[test]
    fn the_cpu_and_the_kernel_are_named() {
        let cpuinfo = "processor\t: 0\nmodel name\t: Fast One\nflags\t\t: fpu hypervisor sse\n";
        let tree = Tree::plant(
            "named",
            &[
                ("proc/cpuinfo", cpuinfo),
                ("proc/meminfo", "MemTotal:        4096 kB\nMemFree: 1 kB\n"),
                ("proc/sys/kernel/osrelease", "6.1.0-test\n"),
            ],
        );
        let hardware = tree.read();
        assert_eq!(hardware.cpu_model.as_deref(), Some("Fast One"));
        assert_eq!(hardware.kernel.as_deref(), Some("6.1.0-test"));
        assert_eq!(hardware.memory_total, Some(4 << 20));
        assert_eq!(hardware.hypervisor, Some(true));
        assert!(hardware.nodes.is_empty() && hardware.cores.is_empty());
    }

    #[test]
    fn a_cpu_that_lists_flags_without_hypervisor_reports_none() {
        let files = [("proc/cpuinfo", "flags : fpu sse hypervisors\n")];
        assert_eq!(Tree::plant("metal", &files).read().hypervisor, Some(false));
    }

    #[cfg(unix)]
    #[test]
    fn only_the_first_pid_namespace_is_not_our_own() {
        for (name, target, own) in [
            ("first-ns", "pid:[4026531836]", Some(false)),
            ("own-ns", "pid:[4026532201]", Some(true)),
            ("odd-ns", "pid:[many]", None),
        ] {
            let tree = Tree::plant(name, &[("proc/self/ns/keep", "")]);
            std::os::unix::fs::symlink(target, tree.root.join("proc/self/ns/pid")).unwrap();
            assert_eq!(tree.read().own_pid_namespace, own, "{target}");
        }
    }
}
