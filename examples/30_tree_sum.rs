//! How do I add up a tree whose shape I do not know?
//!
//! ```sh
//! cargo run -p examples --example 30_tree_sum
//! ```
//!
//! ```text
//! nodes: 20000
//! sum: 200010000
//! ```

#![forbid(unsafe_code)]

use millpond::forkjoin;

/// A tree that is a list on some paths and bushy on others.
struct Tree {
    value: u64,
    left: Option<Box<Tree>>,
    right: Option<Box<Tree>>,
}

impl Tree {
    /// With the values of that range.
    fn grow(from: u64, to: u64) -> Option<Box<Tree>> {
        let len = to - from;
        // Never in the middle: one side has most of the rest.
        let root = from + len / if len.is_multiple_of(3) { 2 } else { 5 };
        (len > 0).then(|| {
            Box::new(Tree {
                value: root,
                left: Tree::grow(from, root),
                right: Tree::grow(root + 1, to),
            })
        })
    }

    /// The number of nodes, and the sum of their values.
    fn sum(tree: Option<&Tree>) -> (u64, u64) {
        let Some(tree) = tree else {
            return (0, 0);
        };
        // Both borrow the tree. What nobody steals is an ordinary call; so no threshold is needed.
        let (left, right) = forkjoin::join(
            || Tree::sum(tree.left.as_deref()),
            || Tree::sum(tree.right.as_deref()),
        );
        (left.0 + right.0 + 1, left.1 + right.1 + tree.value)
    }
}

fn main() {
    let tree = Tree::grow(1, 20_001);
    let (nodes, sum) = Tree::sum(tree.as_deref());
    println!("nodes: {nodes}");
    println!("sum: {sum}");
}
