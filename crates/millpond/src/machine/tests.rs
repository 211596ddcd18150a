//! The whole reading, on planted trees.

use std::fs;
use std::path::PathBuf;

use super::{CpuList, Machine};

/// A planted root directory, removed when the test is over.
pub(super) struct Tree {
    root: PathBuf,
}

impl Tree {
    /// `name` keeps the trees of parallel tests apart.
    pub(super) fn plant(name: &str, files: &[(&str, &str)]) -> Self {
        let root = std::env::temp_dir().join(format!("millpond-{}-{name}", std::process::id()));
        let tree = Self { root };
        for (path, text) in files {
            let place = tree.root.join(path);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, text).unwrap();
        }
        tree
    }

    pub(super) fn root(&self) -> &std::path::Path {
        &self.root
    }

    fn read(&self) -> Machine {
        Machine::read_from(&self.root)
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

const ONLINE: &str = "sys/devices/system/cpu/online";
const CGROUP: &str = "proc/self/cgroup";
const MOUNTS: &str = "proc/self/mountinfo";
const STATUS: &str = "proc/self/status";

const V2_MOUNT: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";
const V1_MOUNTS: &str = "\
23 27 0:22 / /sys rw - sysfs sysfs rw
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
36 31 0:33 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer
";

#[test]
fn the_smallest_quota_of_all_parent_groups_wins() {
    let tree = Tree::plant(
        "nested",
        &[
            (ONLINE, "0-63\n"),
            (CGROUP, "0::/pods.slice/pod7/app\n"),
            (MOUNTS, V2_MOUNT),
            ("sys/fs/cgroup/pods.slice/cpu.max", "800000 100000\n"),
            ("sys/fs/cgroup/pods.slice/memory.max", "8589934592\n"),
            ("sys/fs/cgroup/pods.slice/pod7/cpu.max", "250000 100000\n"),
            ("sys/fs/cgroup/pods.slice/pod7/memory.max", "1073741824\n"),
            ("sys/fs/cgroup/pods.slice/pod7/app/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/pods.slice/pod7/app/memory.max", "max\n"),
        ],
    );
    let machine = tree.read();
    assert_eq!(machine.cpu_quota, Some(2.5));
    assert_eq!(machine.memory_limit, Some(1 << 30));
    assert_eq!(machine.effective_cpus(), 2.5);
    assert_eq!(machine.worker_hint().get(), 3);
}

#[test]
fn half_a_cpu_still_gets_one_worker() {
    let tree = Tree::plant(
        "half",
        &[
            (ONLINE, "0-3\n"),
            (CGROUP, "0::/\n"),
            (MOUNTS, V2_MOUNT),
            ("sys/fs/cgroup/cpu.max", "50000 100000\n"),
        ],
    );
    assert_eq!(tree.read().effective_cpus(), 0.5);
    assert_eq!(tree.read().worker_hint().get(), 1);
}

#[test]
fn without_a_quota_the_mask_decides() {
    let tree = Tree::plant(
        "no-quota",
        &[
            (ONLINE, "0-7\n"),
            (
                STATUS,
                "Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t2-3\n",
            ),
            (CGROUP, "0::/\n"),
            (MOUNTS, V2_MOUNT),
            ("sys/fs/cgroup/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/memory.max", "max\n"),
        ],
    );
    let machine = tree.read();
    assert_eq!(machine.cpu_quota, None);
    assert_eq!(machine.memory_limit, None);
    assert_eq!(machine.online, Some(cpus("0-7")));
    assert_eq!(machine.allowed, Some(cpus("2-3")));
    assert_eq!(machine.effective_cpus(), 2.0);
}

#[test]
fn the_mask_does_not_count_cpus_that_are_offline() {
    let tree = Tree::plant(
        "offline",
        &[(ONLINE, "0-1,4\n"), (STATUS, "Cpus_allowed_list:\t0-127\n")],
    );
    assert_eq!(tree.read().allowed, Some(cpus("0-1,4")));
    assert_eq!(tree.read().worker_hint().get(), 3);
}

#[test]
fn version_one_groups_are_read_controller_by_controller() {
    let tree = Tree::plant(
        "v1",
        &[
            (ONLINE, "0-7\n"),
            (
                CGROUP,
                "6:freezer:/ice\n4:memory:/m/app\n1:cpu,cpuacct:/c/app\n0::/\n",
            ),
            (MOUNTS, V1_MOUNTS),
            ("sys/fs/cgroup/cpu,cpuacct/c/app/cpu.cfs_quota_us", "-1\n"),
            (
                "sys/fs/cgroup/cpu,cpuacct/c/app/cpu.cfs_period_us",
                "100000\n",
            ),
            ("sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_quota_us", "150000\n"),
            ("sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_period_us", "100000\n"),
            (
                "sys/fs/cgroup/memory/memory.limit_in_bytes",
                "9223372036854771712\n",
            ),
            (
                "sys/fs/cgroup/memory/m/app/memory.limit_in_bytes",
                "536870912\n",
            ),
            // Not ours: a neighbour's and another controller's limits.
            (
                "sys/fs/cgroup/memory/m/other/memory.limit_in_bytes",
                "4096\n",
            ),
            ("sys/fs/cgroup/freezer/ice/memory.limit_in_bytes", "4096\n"),
        ],
    );
    let machine = tree.read();
    assert_eq!(machine.cpu_quota, Some(1.5));
    assert_eq!(machine.memory_limit, Some(512 << 20));
    assert_eq!(machine.worker_hint().get(), 2);
}

#[test]
fn broken_files_read_as_unknown() {
    let tree = Tree::plant(
        "broken",
        &[
            (ONLINE, "7-0,banana\n"),
            (
                STATUS,
                "Cpus_allowed_list\nCpus_allowed_list:\tall of them\n",
            ),
            (CGROUP, "\n::\n0::relative\nnonsense\n0::/app\n"),
            (
                MOUNTS,
                "garbage\n1 2 3 - cgroup2\n30 23 0:26 / /sys/fs/cgroup rw - cgroup2 c rw\n",
            ),
            ("sys/fs/cgroup/app/cpu.max", "-5 zero\n"),
            ("sys/fs/cgroup/app/memory.max", "99999999999999999999999\n"),
            ("sys/fs/cgroup/cpu.max", ""),
            ("proc/cpuinfo", "\u{0}\u{0}:::\nprocessor : x\n"),
        ],
    );
    assert_eq!(tree.read(), Machine::default());
    assert_eq!(tree.read().worker_hint().get(), 1);
}

#[test]
fn a_file_that_is_not_text_is_no_panic() {
    let tree = Tree::plant("bytes", &[(ONLINE, "0-1")]);
    fs::write(tree.root.join(ONLINE), [0xff, 0xfe, b'0']).unwrap();
    assert_eq!(tree.read().online, None);
}

#[test]
fn without_sys_the_processor_table_counts_the_cpus() {
    let cpuinfo = "processor\t: 0\nflags\t\t: fpu\n\nprocessor\t: 1\nflags\t\t: fpu\n";
    let tree = Tree::plant("no-sys", &[("proc/cpuinfo", cpuinfo)]);
    assert_eq!(tree.read().online, Some(cpus("0-1")));
    assert_eq!(tree.read().worker_hint().get(), 2);
}

#[test]
fn an_absent_tree_is_a_machine_with_one_cpu() {
    let machine = Machine::read_from("/no/such/root");
    assert_eq!(machine, Machine::default());
    assert_eq!(machine.effective_cpus(), 1.0);
}

#[test]
fn an_absurd_quota_neither_overflows_nor_raises_the_mask() {
    let machine = Machine {
        allowed: Some(cpus("0-4294967295")),
        cpu_quota: Some(f64::MAX),
        ..Machine::default()
    };
    assert_eq!(machine.effective_cpus(), cpus("0-4294967295").len() as f64);
}

#[test]
fn this_machine_agrees_with_the_standard_library() {
    let machine = Machine::read();
    let parallelism = machine
        .parallelism
        .expect("the standard library knows this machine")
        .get();
    // It rounds a quota down and we round up; apart from that the two look at the same limits.
    let hint = machine.worker_hint().get();
    assert!(
        hint == parallelism || hint == parallelism + 1,
        "{hint} and {parallelism}"
    );
}

mod cpu_list {
    use super::cpus;
    use crate::machine::CpuList;

    #[test]
    fn ranges_that_touch_or_overlap_become_one() {
        assert_eq!(cpus("4,0-1,2-3,3").to_string(), "0-4");
        assert_eq!(cpus("0-1,3"), cpus("3,1,0"));
    }

    #[test]
    fn the_empty_text_is_the_empty_set() {
        assert!(cpus(" \n").is_empty());
        assert_eq!(cpus("").len(), 0);
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for text in [
            "x",
            "3-1",
            "0-",
            "-",
            ",",
            "0,,1",
            "-1",
            "0-1-2",
            "4294967296",
        ] {
            assert!(text.parse::<CpuList>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_largest_range_costs_nothing() {
        let all = cpus("0-4294967295");
        assert_eq!(
            all.len(),
            usize::try_from(1_u64 << 32).unwrap_or(usize::MAX)
        );
        assert_eq!(all.intersection(&cpus("5,7-8")), cpus("5,7-8"));
    }

    #[test]
    fn sets_without_a_common_cpu_have_an_empty_intersection() {
        assert!(cpus("0-3").intersection(&cpus("4-7")).is_empty());
    }
}
