//! Which workers share a last-level cache, and so the order in which a worker looks at the deques of others.
//!
//! A stolen job is in the cache of the worker that published it. A thief on another socket pays several times as much for
//! each of its cache lines as a thief that shares the cache. So a worker looks at its own group first and at all others
//! afterwards. No deque is left out: the group decides the order only.
//!
//! A worker records the group of its CPU whenever it has run out of work. Unless its thread is
//! [pinned](crate::thread::Threads::pinned), it may run elsewhere a moment later. Then the order is wrong, and nothing else.
//! If all CPUs share one cache, or nothing is known, there is one group, and nothing is recorded or compared.

use crate::machine::Topology;
use millpond_raw::affinity;
use millpond_raw::once_box::OnceBox;
use millpond_raw::sync::global;
use std::sync::Arc;

global! {
    static THIS_MACHINE: OnceBox<Arc<CacheGroups>> = OnceBox::new();
}

/// The groups of CPUs that share a last-level cache.
#[derive(Debug, Default)]
pub(super) struct CacheGroups {
    /// The group of each CPU by its number; empty if there is only one.
    by_cpu: Vec<u32>,
}

impl CacheGroups {
    pub(super) fn of(topology: &Topology) -> Self {
        let caches = topology.caches();
        let mut by_cpu = Vec::new();
        if caches.len() < 2 {
            return CacheGroups { by_cpu };
        }
        for (group, cpus) in (0..).zip(&caches) {
            for cpu in cpus.iter().map(|cpu| cpu as usize) {
                if by_cpu.len() <= cpu {
                    by_cpu.resize(cpu + 1, 0);
                }
                by_cpu[cpu] = group;
            }
        }
        CacheGroups { by_cpu }
    }

    /// Those of this machine, read once.
    pub(super) fn of_this_machine() -> Arc<Self> {
        let read = || {
            // Without the number of the CPU, as in models, the files are of no use.
            let known = affinity::current_cpu().map(|_| Topology::read());
            Arc::new(CacheGroups::of(&known.unwrap_or_default()))
        };
        Arc::clone(THIS_MACHINE.get_or_init(read))
    }

    /// The group of the CPU that the current thread runs on; `None` if there is only one group.
    pub(super) fn current(&self) -> Option<u32> {
        if self.by_cpu.is_empty() {
            return None;
        }
        let cpu = affinity::current_cpu()? as usize;
        Some(self.by_cpu.get(cpu).copied().unwrap_or(0))
    }

    /// The other workers in the order in which a worker of group `own` looks at them: those of its group first.
    pub(super) fn near_first<T>(
        &self,
        own: u32,
        others: impl Iterator<Item = T> + Clone,
        group_of: impl Fn(&T) -> u32 + Copy,
    ) -> impl Iterator<Item = T> {
        let has_groups = !self.by_cpu.is_empty();
        let near = others
            .clone()
            .filter(move |other| !has_groups || group_of(other) == own);
        let far = others.filter(move |other| has_groups && group_of(other) != own);
        near.chain(far)
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;

    fn order(groups: &CacheGroups, own: u32, workers: &[(u32, u32)]) -> Vec<u32> {
        let near_first = groups.near_first(own, workers.iter(), |(_, group)| *group);
        near_first.map(|(worker, _)| *worker).collect()
    }

    /// Two sockets, two caches on each, two cores on each of these.
    fn two_sockets() -> Topology {
        let cache = |first| [[first], [first + 1]];
        Topology::of([[cache(0), cache(2)], [cache(4), cache(6)]])
    }

    #[test]
    fn a_worker_looks_at_all_others_and_first_at_those_of_its_cache() {
        let groups = CacheGroups::of(&two_sockets());
        assert_eq!(groups.by_cpu, [0, 0, 1, 1, 2, 2, 3, 3]);
        let workers = [(7, 3), (8, 1), (9, 0), (10, 1), (11, 2)];
        assert_eq!(order(&groups, 1, &workers), [8, 10, 7, 9, 11]);
        assert_eq!(order(&groups, 2, &workers), [11, 7, 8, 9, 10]);
    }

    #[test]
    fn with_one_cache_or_none_the_order_is_that_of_the_slots() {
        let one = Topology::of([[[[0], [1], [2], [3]]]]);
        for topology in [one, Topology::default()] {
            let groups = CacheGroups::of(&topology);
            assert_eq!(groups.current(), None);
            assert_eq!(order(&groups, 0, &[(3, 1), (1, 0), (2, 7)]), [3, 1, 2]);
        }
    }

    #[test]
    fn a_cpu_that_the_topology_does_not_know_is_in_the_first_group() {
        let groups = CacheGroups::of(&Topology::of([[
            [[60_000], [60_001]],
            [[60_002], [60_003]],
        ]]));
        // This thread runs on none of them.
        assert!(matches!(groups.current(), None | Some(0)));
    }
}
