//! Which CPUs belong together: NUMA nodes (one memory) and cores (one set of execution units).

use super::CpuList;
use super::source::{self, Source};

/// A NUMA node: CPUs and the memory that is near to them.
///
/// ```
/// use millpond::machine::Machine;
///
/// let nodes = Machine::read().nodes;
/// // A node without CPUs is possible (it is memory only), a machine without CPUs is not.
/// let cpus: usize = nodes.iter().map(|node| node.cpus.len()).sum();
/// assert!(nodes.is_empty() || cpus >= 1);
/// ```
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The kernel's number of this node.
    pub id: u32,
    /// CPUs of this node.
    pub cpus: CpuList,
    /// Memory of this node in bytes.
    pub memory: Option<u64>,
}

const NODES: &str = "sys/devices/system/node";
const CPUS: &str = "sys/devices/system/cpu";

pub(super) fn nodes(source: &Source<'_>) -> Vec<Node> {
    source
        .numbered(NODES, "node")
        .into_iter()
        .filter_map(|id| node(source, id))
        .collect()
}

fn node(source: &Source<'_>, id: u32) -> Option<Node> {
    let folder = format!("{NODES}/node{id}");
    let cpus = source.text(&format!("{folder}/cpulist"))?.parse().ok()?;
    let memory = source
        .text(&format!("{folder}/meminfo"))
        .and_then(|text| source::kilobytes(&text, &format!("Node {id} MemTotal")));
    Some(Node { id, cpus, memory })
}

/// Every core once, although each of its CPUs names it. One silent CPU makes all cores unknown:
/// a count that leaves some out would be wrong without looking so.
pub(super) fn cores(source: &Source<'_>, online: Option<&CpuList>) -> Vec<CpuList> {
    let mut cores: Vec<CpuList> = Vec::new();
    for id in source.numbered(CPUS, "cpu") {
        if online.is_some_and(|online| !online.contains(id)) {
            continue;
        }
        let siblings = source
            .line(&format!("{CPUS}/cpu{id}/topology/thread_siblings_list"))
            .and_then(|text| text.parse::<CpuList>().ok());
        match siblings {
            Some(core) if cores.contains(&core) => {}
            Some(core) => cores.push(core),
            None => return Vec::new(),
        }
    }
    cores
}
