//! [`Topology`]: which CPUs share a core, a cache, or memory.
//!
//! Work that moves between two CPUs is cheap if they share a cache and dear if they are on two sockets. A
//! [`ForkJoinPool`](crate::forkjoin::ForkJoinPool) steals from workers nearby first; a program that wants one pool for each
//! node takes the CPUs from here ([`preset::fork_join_per_node`](crate::preset::fork_join_per_node)).

use super::CpuList;
use super::source::Source;
use std::path::Path;

/// How far apart two CPUs are. Nearer ones are less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Distance {
    /// They are one CPU.
    SameCpu,
    /// They are two hardware threads of one core.
    SameCore,
    /// They share the last-level cache.
    SameCache,
    /// They share memory that is near to both.
    SameNode,
    /// Each has memory of its own.
    OtherNode,
}

/// Which CPUs share a core, a cache, or memory.
///
/// ```
/// use millpond::machine::Topology;
///
/// let topology = Topology::read();
/// for node in topology.nodes() {
///     println!("a node with the CPUs {node}");
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// In order of their numbers.
    cpus: Vec<Cpu>,
}

/// One CPU, and the lowest number among those with which it shares something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cpu {
    number: u32,
    core: u32,
    cache: u32,
    /// The number of the node.
    node: u32,
}

impl Topology {
    /// The CPUs that are online and that this process may run on.
    pub fn read() -> Self {
        Self::read_from("/")
    }

    /// Reads the `proc` and `sys` folders below `root`. What cannot be read is shared by nobody, or, for memory, by all:
    /// without a single fact there are no CPUs.
    ///
    /// ```
    /// use millpond::machine::Topology;
    ///
    /// assert!(Topology::read_from("/no/such/root").nodes().is_empty());
    /// ```
    pub fn read_from(root: impl AsRef<Path>) -> Self {
        let source = Source::new(root.as_ref());
        let machine = super::Machine::read_from(root.as_ref());
        let Some(allowed) = machine.allowed.or(machine.online) else {
            return Topology::default();
        };
        let nodes = nodes(&source);
        let cpu = |number| Cpu {
            number,
            core: lowest_sibling(&source, number),
            cache: lowest_in_cache(&source, number),
            node: nodes
                .iter()
                .find(|(_, cpus)| cpus.contains(number))
                .map_or(0, |(node, _)| *node),
        };
        Topology {
            cpus: allowed.iter().map(cpu).collect(),
        }
    }

    /// A topology by hand: for each node its caches, for each of these its cores, for each of these its CPUs.
    ///
    /// ```
    /// use millpond::machine::{Distance, Topology};
    ///
    /// // Two sockets, each with two cores that share a cache, each of two hardware threads.
    /// let topology = Topology::of([[[[0, 4], [1, 5]]], [[[2, 6], [3, 7]]]]);
    /// assert_eq!(topology.nodes()[1].to_string(), "2-3,6-7");
    /// assert_eq!(topology.distance(0, 4), Some(Distance::SameCore));
    /// assert_eq!(topology.distance(0, 5), Some(Distance::SameCache));
    /// assert_eq!(topology.distance(0, 7), Some(Distance::OtherNode));
    /// ```
    pub fn of<Caches, Cores, Threads>(nodes: impl IntoIterator<Item = Caches>) -> Self
    where
        Caches: IntoIterator<Item = Cores>,
        Cores: IntoIterator<Item = Threads>,
        Threads: IntoIterator<Item = u32>,
    {
        let mut cpus = Vec::new();
        for (node, caches) in (0..).zip(nodes) {
            for cores in caches {
                let first_of_cache = cpus.len();
                for threads in cores {
                    let threads: Vec<u32> = threads.into_iter().collect();
                    let core = threads.iter().copied().min().unwrap_or(0);
                    cpus.extend(threads.into_iter().map(|number| Cpu {
                        number,
                        core,
                        cache: 0,
                        node,
                    }));
                }
                let shared = &mut cpus[first_of_cache..];
                let cache = shared.iter().map(|cpu| cpu.number).min().unwrap_or(0);
                shared.iter_mut().for_each(|cpu| cpu.cache = cache);
            }
        }
        cpus.sort_unstable_by_key(|cpu| cpu.number);
        Topology { cpus }
    }

    /// The CPUs of each node that has any, in the order of the nodes' numbers.
    pub fn nodes(&self) -> Vec<CpuList> {
        self.groups(|cpu| cpu.node)
    }

    /// The CPUs of each last-level cache.
    ///
    /// ```
    /// use millpond::machine::Topology;
    ///
    /// let topology = Topology::of([[[[0], [1]], [[2], [3]]]]);
    /// let caches: Vec<String> = topology.caches().iter().map(ToString::to_string).collect();
    /// assert_eq!((topology.nodes().len(), caches), (1, vec!["0-1".into(), "2-3".into()]));
    /// ```
    pub fn caches(&self) -> Vec<CpuList> {
        self.groups(|cpu| cpu.cache)
    }

    /// How far apart two CPUs are; `None` if one of them is unknown.
    pub fn distance(&self, one: u32, other: u32) -> Option<Distance> {
        let (one, other) = (self.find(one)?, self.find(other)?);
        Some(if one.number == other.number {
            Distance::SameCpu
        } else if one.core == other.core {
            Distance::SameCore
        } else if one.cache == other.cache {
            Distance::SameCache
        } else if one.node == other.node {
            Distance::SameNode
        } else {
            Distance::OtherNode
        })
    }

    fn find(&self, number: u32) -> Option<&Cpu> {
        let index = self.cpus.binary_search_by_key(&number, |cpu| cpu.number);
        index.ok().map(|index| &self.cpus[index])
    }

    fn groups(&self, key: impl Fn(&Cpu) -> u32) -> Vec<CpuList> {
        let mut keys: Vec<u32> = self.cpus.iter().map(&key).collect();
        keys.sort_unstable();
        keys.dedup();
        let of = |group: u32| {
            let members = self.cpus.iter().filter(|cpu| key(cpu) == group);
            members.map(|cpu| cpu.number).collect()
        };
        keys.into_iter().map(of).collect()
    }
}

/// The nodes and their CPUs, in order.
fn nodes(source: &Source<'_>) -> Vec<(u32, CpuList)> {
    let list = |path: &str| source.line(path)?.parse::<CpuList>().ok();
    let numbers = list("sys/devices/system/node/online").unwrap_or_default();
    let of = |node| {
        let path = format!("sys/devices/system/node/node{node}/cpulist");
        Some((node, list(&path)?))
    };
    numbers.iter().filter_map(of).collect()
}

fn lowest_sibling(source: &Source<'_>, cpu: u32) -> u32 {
    let folder = format!("sys/devices/system/cpu/cpu{cpu}/topology");
    // The second is the older name.
    let names = ["core_cpus_list", "thread_siblings_list"];
    let lists = names
        .iter()
        .filter_map(|name| lowest(source, &format!("{folder}/{name}")));
    lists.into_iter().next().unwrap_or(cpu)
}

/// Caches are numbered from the nearest; the last one with data is the one that is shared most.
fn lowest_in_cache(source: &Source<'_>, cpu: u32) -> u32 {
    let mut found = cpu;
    for index in 0..8 {
        let folder = format!("sys/devices/system/cpu/cpu{cpu}/cache/index{index}");
        let Some(kind) = source.line(&format!("{folder}/type")) else {
            break;
        };
        if kind != "Instruction" {
            let lowest = lowest(source, &format!("{folder}/shared_cpu_list"));
            found = lowest.unwrap_or(found);
        }
    }
    found
}

fn lowest(source: &Source<'_>, path: &str) -> Option<u32> {
    source.line(path)?.parse::<CpuList>().ok()?.iter().next()
}

#[cfg(test)]
mod tests {
    use super::super::tests::Tree;
    use super::*;

    fn cpu(number: u32, siblings: &str, cache: &str) -> Vec<(String, String)> {
        let folder = format!("sys/devices/system/cpu/cpu{number}");
        let file = |name: &str, text: &str| (format!("{folder}/{name}"), format!("{text}\n"));
        vec![
            file("topology/core_cpus_list", siblings),
            file("cache/index0/type", "Data"),
            file("cache/index0/shared_cpu_list", siblings),
            file("cache/index1/type", "Instruction"),
            file("cache/index1/shared_cpu_list", "0-7"),
            file("cache/index2/type", "Unified"),
            file("cache/index2/shared_cpu_list", cache),
        ]
    }

    fn plant(name: &str, files: Vec<(String, String)>) -> Tree {
        let files: Vec<_> = files
            .iter()
            .map(|(path, text)| (&**path, &**text))
            .collect();
        Tree::plant(name, &files)
    }

    #[test]
    fn cores_caches_and_nodes_are_read_from_the_kernels_files() {
        let system = |path: &str, text: &str| (format!("sys/devices/system/{path}"), text.into());
        let mut files = vec![
            system("cpu/online", "0-7\n"),
            system("node/online", "0,2\n"),
            system("node/node0/cpulist", "0-3\n"),
            system("node/node2/cpulist", "4-7\n"),
        ];
        for (number, siblings, cache) in [
            (0, "0,2", "0-3"),
            (1, "1,3", "0-3"),
            (2, "0,2", "0-3"),
            (3, "1,3", "0-3"),
            (4, "4", "4-5"),
            (5, "5", "4-5"),
            (6, "6", "6-7"),
            (7, "7", "6-7"),
        ] {
            files.extend(cpu(number, siblings, cache));
        }
        let tree = plant("topology", files);
        let read = Topology::read_from(tree.root());
        let by_hand = Topology::of([
            vec![vec![vec![0, 2], vec![1, 3]]],
            vec![vec![vec![4], vec![5]], vec![vec![6], vec![7]]],
        ]);
        assert_eq!(read.caches(), by_hand.caches());
        assert_eq!(read.nodes(), by_hand.nodes());
        for (one, other, distance) in [
            (0, 0, Distance::SameCpu),
            (0, 2, Distance::SameCore),
            (0, 1, Distance::SameCache),
            (4, 6, Distance::SameNode),
            (3, 4, Distance::OtherNode),
        ] {
            assert_eq!(read.distance(one, other), Some(distance), "{one} {other}");
            assert_eq!(read.distance(other, one), Some(distance), "{other} {one}");
        }
        assert_eq!(read.distance(0, 8), None);
    }

    #[test]
    fn cpus_of_which_nothing_is_known_share_a_node_and_nothing_else() {
        let online = ("sys/devices/system/cpu/online".into(), "0-1\n".into());
        let tree = plant("bare-topology", vec![online]);
        let read = Topology::read_from(tree.root());
        assert_eq!(read.distance(0, 1), Some(Distance::SameNode));
        assert_eq!((read.nodes().len(), read.caches().len()), (1, 2));
    }

    #[test]
    fn only_cpus_that_this_process_may_run_on_are_in_it() {
        let files = vec![
            ("sys/devices/system/cpu/online".into(), "0-3\n".into()),
            (
                "proc/self/status".into(),
                "Cpus_allowed_list:\t1-2\n".into(),
            ),
        ];
        let tree = plant("confined-topology", files);
        assert_eq!(
            Topology::read_from(tree.root()).nodes()[0].to_string(),
            "1-2"
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_cpus_of_this_machine_are_those_of_the_affinity_mask() {
        let Ok(mask) = millpond_raw::affinity::current_cpus() else {
            return; // The portable build knows no mask.
        };
        let mut seen: Vec<u32> = Vec::new();
        for node in Topology::read().nodes() {
            seen.extend(node.iter());
        }
        seen.sort_unstable();
        assert_eq!(seen, mask);
    }
}
