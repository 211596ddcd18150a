//! Computations that consist of joins: `fib`, sums of trees, and a tree whose halves are uneven.

use super::input::{self, Node};
use super::team::Team;
use crate::harness::Sample;
use crate::peers::forkjoin::ForkJoin;
use crate::peers::pool::WORKERS;
use anyhow::{Result, ensure};
use std::hint::black_box;
use std::time::Instant;

/// The largest Fibonacci number that is computed has this index. Where more joins are wanted it is computed again.
pub const MOST_FIB: u32 = 32;

/// The nodes of a small tree.
pub const SMALL: u64 = 1_023;

/// The index of the Fibonacci number that takes at least so many joins, if there is one, and how many that takes.
pub(super) fn fib_of(joins: u64) -> (u32, u64) {
    let (mut index, mut now, mut next) = (1, 1, 1);
    // Its joins are one less than the number behind it.
    while index < MOST_FIB && next - 1 < joins {
        (now, next) = (next, now + next);
        index += 1;
    }
    (index, next - 1)
}

/// Computes Fibonacci numbers with at least so many joins.
///
/// # Errors
///
/// If the result is wrong, or the pool cannot be opened.
pub fn fib<F: ForkJoin>(threads: usize, joins: u64) -> Result<Sample> {
    let (index, each) = fib_of(joins);
    let times = joins.div_ceil(each.max(1)).max(1);
    Team::<F>::open(threads)?.measure(times * each, |pool| {
        let (sum, elapsed) = pool.run(|context| {
            let start = Instant::now();
            // Without this the compiler computes it once, where nothing is forked.
            let once = |_| number::<F>(context, black_box(index));
            let sum = (0..times).map(once).sum::<u64>();
            (sum, start.elapsed())
        });
        let expected = times * plain(index);
        ensure!(sum == expected, "the sum is {sum} instead of {expected}");
        Ok(elapsed)
    })
}

fn number<F: ForkJoin>(context: &mut F::Context<'_>, index: u32) -> u64 {
    if index < 2 {
        return index.into();
    }
    let (a, b) = F::join(
        context,
        |context| number::<F>(context, index - 1),
        |context| number::<F>(context, index - 2),
    );
    a + b
}

fn plain(index: u32) -> u64 {
    (0..index).fold((0, 1), |(a, b), _| (b, a + b)).0
}

/// Sums up a small tree, so often that there are at least so many nodes.
///
/// # Errors
///
/// If the result is wrong, or the pool cannot be opened.
pub fn small_tree<F: ForkJoin>(threads: usize, nodes: u64) -> Result<Sample> {
    trees::<F>(threads, SMALL, nodes.div_ceil(SMALL).max(1))
}

/// Sums up a tree of at least so many nodes.
///
/// # Errors
///
/// If the result is wrong, or the pool cannot be opened.
pub fn large_tree<F: ForkJoin>(threads: usize, nodes: u64) -> Result<Sample> {
    trees::<F>(threads, nodes, 1)
}

fn trees<F: ForkJoin>(threads: usize, nodes: u64, times: u64) -> Result<Sample> {
    let (tree, nodes) = input::tree(nodes);
    Team::<F>::open(threads)?.measure(times * nodes, |pool| {
        let (sum, elapsed) = pool.run(|context| {
            let start = Instant::now();
            let sum = (0..times)
                .map(|_| sum::<F>(context, black_box(&tree)))
                .fold(0, u64::wrapping_add);
            (sum, start.elapsed())
        });
        let expected = times.wrapping_mul(nodes * (nodes + 1) / 2);
        ensure!(sum == expected, "the sum is {sum} instead of {expected}");
        Ok(elapsed)
    })
}

fn sum<F: ForkJoin>(context: &mut F::Context<'_>, node: &Node) -> u64 {
    match &node.children {
        [Some(left), Some(right)] => {
            let (left, right) = F::join(
                context,
                |context| sum::<F>(context, left),
                |context| sum::<F>(context, right),
            );
            node.value + left + right
        }
        [one, other] => {
            let children = [one, other].into_iter().flatten();
            children.fold(node.value, |all, child| all + sum::<F>(context, child))
        }
    }
}

/// Walks through a tree of so many nodes whose halves are uneven.
///
/// # Errors
///
/// If not all nodes were visited, or the pool cannot be opened.
pub fn uneven<F: ForkJoin>(nodes: u64) -> Result<Sample> {
    let nodes = nodes.max(1);
    Team::<F>::open(WORKERS)?.measure(nodes, |pool| {
        let (visited, elapsed) = pool.run(|context| {
            let start = Instant::now();
            let visited = walk::<F>(context, nodes, ROOT);
            (visited, start.elapsed())
        });
        ensure!(visited == nodes, "{visited} of {nodes} nodes were visited");
        Ok(elapsed)
    })
}

/// The hash of the first node.
const ROOT: u64 = 0x6d69_6c6c;

/// How often a node is hashed: that is its work, some nanoseconds.
pub(super) const HASHES: u64 = 8;

/// Visits a node and its descendants, so many in all. How these divide between its two children is up to its hash, and as
/// uneven as in a search: most often one of them has nearly all.
fn walk<F: ForkJoin>(context: &mut F::Context<'_>, nodes: u64, hash: u64) -> u64 {
    let hash = (0..HASHES).fold(hash, mixed);
    let rest = nodes - 1;
    if rest == 0 {
        return 1;
    }
    // The cube of a share is small.
    let share = (hash >> 8 & 0xff) + 1;
    let cube = u128::from(share * share * share);
    let few = ((u128::from(rest) * cube) >> 25) as u64;
    let (left, right) = if hash & 1 == 0 {
        (few, rest - few)
    } else {
        (rest - few, few)
    };
    let child = |context: &mut F::Context<'_>, nodes, salt| {
        if nodes == 0 {
            return 0;
        }
        walk::<F>(context, nodes, hash ^ salt)
    };
    let (left, right) = F::join(
        context,
        |context| child(context, left, 1),
        |context| child(context, right, 2),
    );
    1 + left + right
}

fn mixed(hash: u64, round: u64) -> u64 {
    let hash = (hash ^ round).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash ^ (hash >> 29)
}
