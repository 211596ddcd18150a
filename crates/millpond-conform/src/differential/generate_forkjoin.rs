//! Random scripts for fork-join pools.
//!
//! Most pools have one worker: then everything is determined, the order in which tasks run included. With more, the
//! scripts ask for results and sets only. What a decision rules out is not written: DIFF-12, DIFF-13, DIFF-14, DIFF-15.

use super::decisions;
use super::script::{Computation, ForkJoinSetup, Number, Script, Setup, Step, Submission};
use super::tree::{Node, Tree, Verb};
use crate::kit::Rng;

/// The most leaves of a computation, more or less.
const LEAVES: usize = 12;

/// The script of this seed.
pub(super) fn script(seed: u64) -> Script {
    let mut rng = Rng::new(seed);
    let parallelism = if rng.once_in(4) { 2 + rng.below(2) } else { 1 };
    let setup = ForkJoinSetup {
        parallelism,
        is_fifo: rng.once_in(3),
    };
    let mut author = Author {
        may_end: rng.once_in(4),
        has_gates: !rng.once_in(4),
        setup,
        rng,
        last: 0,
        leaves: 0,
    };
    let steps = author.steps();
    let script = Script {
        setup: Setup::ForkJoin(setup),
        steps,
    };
    debug_assert_eq!(decisions::forbids(&script), None);
    script
}

struct Author {
    rng: Rng,
    setup: ForkJoinSetup,
    /// Whether the pool is shut down in the middle.
    may_end: bool,
    has_gates: bool,
    last: Number,
    /// The leaves of the present computation: they have different values.
    leaves: usize,
}

impl Author {
    fn steps(&mut self) -> Vec<Step> {
        let length = 5 + self.rng.below(16);
        let mut steps = Vec::new();
        for index in 0..length {
            let step = match self.rng.below(16) {
                0..=5 => self.compute(),
                6..=8 if self.has_gates => self.submit(index == 0),
                9..=11 if self.last > 0 => self.release(),
                12 if self.last > 0 => Step::Cancel(self.task()),
                13 if self.last > 0 && self.has_gates => Step::Fail(self.task()),
                14 => Step::Quiescence,
                15 if self.may_end && index > 1 && self.rng.once_in(2) => Step::ShutdownNow,
                15 if self.may_end && index > 1 => Step::Shutdown,
                _ => self.compute(),
            };
            steps.push(step);
        }
        steps
    }

    fn submit(&mut self, is_first: bool) -> Step {
        self.last += 1;
        let may_fork = self.setup.parallelism == 1 && (is_first || !self.may_end);
        Step::Submission(Submission {
            number: self.last,
            has_handle: !self.rng.once_in(4),
            is_stubborn: self.rng.once_in(6),
            forks: if may_fork && self.rng.once_in(3) {
                1 + self.rng.below(4)
            } else {
                0
            },
        })
    }

    fn compute(&mut self) -> Step {
        self.last += 1;
        self.leaves = 0;
        let depth = self.rng.below(5);
        let tree = if self.setup.parallelism == 1 && self.rng.once_in(8) {
            self.many(depth, |_, _| Verb::Quiesce) // DIFF-15
        } else {
            self.tree(depth)
        };
        let is_ordered = self.setup.parallelism == 1 || !throws(&tree);
        Step::Compute(Computation {
            number: self.last,
            is_traced: is_ordered && !self.may_end, // DIFF-13
            tree,
        })
    }

    fn release(&mut self) -> Step {
        let mut numbers: Vec<Number> = (0..1 + self.rng.below(3)).map(|_| self.task()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        Step::Release(numbers)
    }

    fn task(&mut self) -> Number {
        let recent = self.last.min(6) as usize;
        self.last - u32::try_from(self.rng.below(recent)).unwrap_or(0)
    }

    fn tree(&mut self, depth: usize) -> Tree {
        if depth == 0 || self.leaves >= LEAVES {
            return self.leaf();
        }
        let is_alone = self.setup.parallelism == 1;
        let below = depth - 1;
        match self.rng.below(16) {
            0..=2 => {
                let parts = self.trees(below, 2);
                parts_of(Verb::Two, parts)
            }
            3..=5 => self.many(below, |_, _| Verb::All),
            6..=8 => self.many(below, |rng, parts| Verb::Fork(order(rng, parts))),
            9 if is_alone => self.many(below, |rng, parts| Verb::Early(order(rng, parts))),
            10 => self.many(below, |_, _| Verb::Detach),
            11 if is_alone && !self.may_end => parts_of(Verb::Cancel, self.trees(below, 1)),
            12 | 13 => Tree::Completers(self.completers()),
            14 => parts_of(Verb::Try, self.trees(below, 1)),
            _ => self.leaf(),
        }
    }

    fn leaf(&mut self) -> Tree {
        self.leaves += 1;
        let number = i64::try_from(self.leaves).unwrap_or(0);
        if self.rng.once_in(9) {
            Tree::Error(number)
        } else {
            Tree::Value(number)
        }
    }

    fn trees(&mut self, depth: usize, count: usize) -> Vec<Tree> {
        (0..count).map(|_| self.tree(depth)).collect()
    }

    fn many(&mut self, depth: usize, verb: impl FnOnce(&mut Rng, usize) -> Verb) -> Tree {
        let count = 1 + self.rng.below(4);
        let parts = self.trees(depth, count);
        parts_of(verb(&mut self.rng, count), parts)
    }

    /// With several workers all nodes end in one way, and at most one in a special way: else it depends on who comes
    /// last, or first.
    fn completers(&mut self) -> Node {
        let ends = ['t', 't', 'p', 'r'][self.rng.below(4)];
        let mut plan = Plan {
            ends: (self.setup.parallelism > 1).then_some(ends),
            special: ['-', '-', 'x', 'q'][self.rng.below(4)],
            next: 1,
        };
        let depth = self.rng.below(4);
        let mut root = self.node(depth, &mut plan);
        // A root without parts that has found something is no search.
        if root.parts.is_empty() && root.ends == 'q' {
            root.ends = 't';
        }
        root
    }

    fn node(&mut self, depth: usize, plan: &mut Plan) -> Node {
        let id = plan.next;
        plan.next += 1;
        let count = if depth == 0 { 0 } else { self.rng.below(4) };
        let parts: Vec<Node> = (0..count).map(|_| self.node(depth - 1, plan)).collect();
        let forks = match parts.len() {
            0 => 'f',
            _ => ['f', 's', 'a', 'i'][self.rng.below(4)],
        };
        let ends = match (forks, plan.ends) {
            ('i', _) => '-',
            _ if parts.is_empty() && plan.special != '-' && self.rng.once_in(3) => {
                let special = plan.special;
                if plan.ends.is_some() {
                    plan.special = '-';
                }
                special
            }
            (_, Some(ends)) => ends,
            _ if parts.is_empty() => ['t', 'p', 'r', 'c'][self.rng.below(4)],
            _ => ['t', 't', 'p', 'r'][self.rng.below(4)],
        };
        Node {
            id,
            forks,
            ends,
            parts,
        }
    }
}

struct Plan {
    ends: Option<char>,
    special: char,
    next: i64,
}

fn parts_of(verb: Verb, parts: Vec<Tree>) -> Tree {
    Tree::Parts { verb, parts }
}

fn order(rng: &mut Rng, parts: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..parts).collect();
    for last in (1..parts).rev() {
        order.swap(last, rng.below(last + 1));
    }
    order
}

/// Whether an error may keep some of its parts from running.
fn throws(tree: &Tree) -> bool {
    match tree {
        Tree::Value(_) => false,
        Tree::Error(_) => true,
        Tree::Completers(node) => node.has('x'),
        Tree::Parts { parts, .. } => parts.iter().any(throws),
    }
}
