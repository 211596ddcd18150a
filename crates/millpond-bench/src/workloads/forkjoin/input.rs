//! Trees and arrays. They take long to make and much memory, so all candidates of a workload use the same, and only the
//! last one is kept.

use crate::plan::Random;
use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

/// The seed of everything that is in no order.
const SEED: u64 = 0x666f_726b_6a6f_696e;

/// What was made last: what, for how many, and the thing itself.
type Kept = (&'static str, u64, Arc<dyn Any + Send + Sync>);

static KEPT: Mutex<Option<Kept>> = Mutex::new(None);

fn kept<T: Send + Sync + 'static>(
    what: &'static str,
    size: u64,
    make: impl FnOnce() -> T,
) -> Arc<T> {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((of, same, made)) = &*kept
        && (*of, *same) == (what, size)
        && let Ok(made) = Arc::clone(made).downcast()
    {
        return made;
    }
    // The former one goes first: both may not fit.
    *kept = None;
    let made = Arc::new(make());
    *kept = Some((what, size, Arc::<T>::clone(&made)));
    made
}

/// A binary tree, each node in memory of its own.
#[derive(Debug)]
pub struct Node {
    /// What is summed up.
    pub value: u64,
    /// Its children: both, or none.
    pub children: [Option<Box<Node>>; 2],
}

impl Node {
    /// A full tree of so many levels, made in the order in which it is walked. Its values are 1, 2, 3 and so on.
    fn full(levels: u32, next: &mut u64) -> Box<Node> {
        let mut node = Box::new(Node {
            value: *next,
            children: [None, None],
        });
        *next += 1;
        if levels > 1 {
            for child in &mut node.children {
                *child = Some(Node::full(levels - 1, next));
            }
        }
        node
    }
}

/// A full tree of at least so many nodes, and how many it has.
pub fn tree(nodes: u64) -> (Arc<Node>, u64) {
    let levels = (nodes + 1).next_power_of_two().trailing_zeros().max(1);
    let nodes = (1 << levels) - 1;
    let tree = kept("tree", nodes, || *Node::full(levels, &mut 1));
    (tree, nodes)
}

/// So many numbers in no order.
pub fn numbers(count: u64) -> Arc<Vec<u64>> {
    kept("numbers", count, || {
        let mut random = Random::new(SEED);
        (0..count)
            .map(|_| (random.share() * (1_u64 << 53) as f64) as u64)
            .collect()
    })
}

/// The numbers from 0 on.
pub fn range(count: u64) -> Arc<Vec<u64>> {
    kept("range", count, || (0..count).collect())
}
