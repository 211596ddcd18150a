//! Entries that are due now or soon, in exact order: a heap in which each node has four children.
//!
//! Nodes have the due time and the number of their entries, so that comparing touches no entry. Each entry has
//! its position, so that it can be removed from the middle.
//!
//! # Invariants
//!
//! - **WHEEL-HEAP-1** No node is less than its parent.
//! - **WHEEL-HEAP-2** The `prev` of an entry in the heap is its position there.

use super::Key;
use super::entries::{Entries, generation};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const CHILDREN: usize = 4;

/// The capacity that an empty heap keeps.
const KEPT_CAPACITY: usize = 4096;

/// An entry, by its slot, with its sort key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Node {
    pub(super) due: u64,
    pub(super) number: u64,
    pub(super) index: u32,
}

impl Node {
    pub(super) fn of<P>(entries: &Entries<P>, index: u32) -> Self {
        let entry = entries.at(index);
        Node {
            due: entry.due,
            number: entry.number,
            index,
        }
    }

    pub(super) fn key(&self) -> Key {
        Key {
            index: self.index,
            generation: generation(self.number),
        }
    }

    /// The sort key, to be compared in one step.
    #[inline]
    fn rank(&self) -> u128 {
        u128::from(self.due) << 64 | u128::from(self.number)
    }
}

#[derive(Debug)]
pub(super) struct Heap {
    nodes: Vec<Node>,
}

impl Heap {
    pub(super) fn new() -> Self {
        Heap { nodes: Vec::new() }
    }

    #[inline]
    pub(super) fn first(&self) -> Option<&Node> {
        self.nodes.first()
    }

    pub(super) fn push<P>(&mut self, entries: &mut Entries<P>, node: Node) {
        self.nodes.push(node);
        self.sift_up(entries, self.nodes.len() - 1);
    }

    /// Appends a node. The heap is out of order until [`heapify`](Heap::heapify).
    #[inline]
    pub(super) fn push_unordered(&mut self, node: Node) {
        self.nodes.push(node);
    }

    /// Restores the order bottom-up, in linear time.
    pub(super) fn heapify<P>(&mut self, entries: &mut Entries<P>) {
        for at in 0..self.nodes.len() {
            self.store_position(entries, at);
        }
        let with_children = self.nodes.len().saturating_sub(2) / CHILDREN + 1;
        for at in (0..with_children.min(self.nodes.len())).rev() {
            self.sift_down(entries, at);
        }
    }

    /// Removes the node at a position.
    pub(super) fn remove<P>(&mut self, entries: &mut Entries<P>, at: u32) {
        let at = at as usize;
        self.nodes.swap_remove(at);
        if at < self.nodes.len() {
            // The last node fills the gap. It comes from another branch: it may belong above as well as below.
            let at = self.sift_up(entries, at);
            self.sift_down(entries, at);
        } else if self.nodes.is_empty() {
            self.nodes.shrink_to(KEPT_CAPACITY);
        }
    }

    fn sift_up<P>(&mut self, entries: &mut Entries<P>, mut at: usize) -> usize {
        let node = self.nodes[at];
        while at > 0 {
            let parent = (at - 1) / CHILDREN;
            if self.nodes[parent].rank() <= node.rank() {
                break;
            }
            self.nodes[at] = self.nodes[parent];
            self.store_position(entries, at);
            at = parent;
        }
        self.nodes[at] = node;
        self.store_position(entries, at);
        at
    }

    fn sift_down<P>(&mut self, entries: &mut Entries<P>, mut at: usize) {
        let node = self.nodes[at];
        let start = at;
        loop {
            let first = at * CHILDREN + 1;
            let children = first..(first + CHILDREN).min(self.nodes.len());
            let Some(least) = children.min_by_key(|child| self.nodes[*child].rank()) else {
                break;
            };
            if node.rank() <= self.nodes[least].rank() {
                break;
            }
            self.nodes[at] = self.nodes[least];
            self.store_position(entries, at);
            at = least;
        }
        if at != start {
            self.nodes[at] = node;
            self.store_position(entries, at);
        }
    }

    /// WHEEL-HEAP-2.
    #[inline]
    #[allow(
        clippy::cast_possible_truncation,
        reason = "there are no more nodes than slots"
    )]
    fn store_position<P>(&self, entries: &mut Entries<P>, at: usize) {
        entries.at_mut(self.nodes[at].index).prev = at as u32;
    }

    /// The first `max` nodes, in order. Visits these and their children only.
    pub(super) fn first_n(&self, max: usize) -> Vec<Node> {
        let mut found = Vec::new();
        let mut seen = BinaryHeap::new();
        seen.extend(self.nodes.first().map(|node| Reverse((*node, 0))));
        while found.len() < max {
            let Some(Reverse((node, at))) = seen.pop() else {
                break;
            };
            found.push(node);
            let children = at * CHILDREN + 1..=at * CHILDREN + CHILDREN;
            let child = |at: usize| Some(Reverse((*self.nodes.get(at)?, at)));
            seen.extend(children.filter_map(child));
        }
        found
    }

    /// Checks the invariants. Returns the number of nodes.
    #[cfg(test)]
    pub(super) fn check<P>(&self, entries: &Entries<P>) -> usize {
        for (at, node) in self.nodes.iter().enumerate() {
            assert_eq!(*node, Node::of(entries, node.index));
            assert!(
                entries.at(node.index).payload().is_some(),
                "an empty slot is linked"
            );
            assert_eq!(entries.at(node.index).prev as usize, at, "WHEEL-HEAP-2");
            if at > 0 {
                assert!(
                    self.nodes[(at - 1) / CHILDREN] < *node,
                    "WHEEL-HEAP-1 at {at}"
                );
            }
        }
        self.nodes.len()
    }
}
