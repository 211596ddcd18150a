//! Random computations on fork-join pools: joins, scopes, installs into other pools, tasks, blocking, panics and deep
//! nesting. What each must come to is computed without any pool (PROGRAM-8).
//!
//! A computation goes only to pools with a higher number than the one that it is in. If all workers of a pool wait for
//! another one, that one never waits for them: so no pool needs spares to come to an end.

use crate::chaos::any_pool::AnyPool;
use crate::chaos::client::Client;
use crate::chaos::ledger::Ledger;
use crate::kit::Rng;
use millpond::executor::ExecutorExt;
use millpond::forkjoin::{self, ForkJoinPool, RecursiveTask};
use millpond::task::TaskError;
use millpond_raw::stack_space;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// The most parts of a computation, more or less.
const PARTS: usize = 60;

/// With less stack than this, joins are not nested further for their own sake: a computation must fit into the smallest
/// stacks that the programs run with.
const ENOUGH_STACK: usize = 96 * 1024;

/// A computation.
#[derive(Debug)]
pub(super) enum Plan {
    Value(u64),
    Panic(u64),
    Join(Box<[Plan; 2]>),
    /// `invoke_all`.
    All(Vec<Plan>),
    /// The jobs of a scope, each of which spawns the next of its kind.
    Scope(Vec<Plan>),
    Catch(Box<Plan>),
    /// Joins inside of joins.
    Deep(u64, Box<Plan>),
    /// Blocks for some microseconds first.
    Block(u64, Box<Plan>),
    /// Changes the parallelism of the pool first.
    Resize(usize, usize, Box<Plan>),
    /// Goes on in another pool.
    Install(usize, Box<Plan>),
    /// A task of this or of another pool.
    Submit(usize, Arc<Plan>),
    /// The items of a range.
    Range(u64),
}

/// What a computation may come to: a value, or a panic with one of these.
type Expected = Result<u64, BTreeSet<u64>>;

impl Plan {
    /// A computation in pool `here` of so many.
    pub(super) fn draw(rng: &mut Rng, here: usize, pools: usize) -> Self {
        let mut author = Author {
            rng,
            pools,
            left: PARTS,
        };
        let depth = 2 + author.rng.below(6);
        author.plan(here, depth)
    }

    /// What it comes to, one part after the other.
    pub(super) fn expected(&self) -> Expected {
        let sum = |parts: &[Plan]| {
            let parts = (1..).zip(parts);
            parts
                .map(|(place, part)| Ok(mix(place, part.expected()?)))
                .sum()
        };
        match self {
            Plan::Value(value) => Ok(*value),
            Plan::Panic(code) => Err(BTreeSet::from([*code])),
            Plan::Join(parts) => sum(&parts[..]),
            Plan::All(parts) => sum(parts),
            Plan::Scope(parts) => {
                // Any of several panics may come out.
                let results: Vec<Expected> = parts.iter().map(Plan::expected).collect();
                let codes = results.iter().filter_map(|result| result.as_ref().err());
                let codes: BTreeSet<u64> = codes.flatten().copied().collect();
                match codes.is_empty() {
                    true => sum(parts),
                    false => Err(codes),
                }
            }
            // Whichever panic it was.
            Plan::Catch(part) => Ok(part.expected().unwrap_or(7)),
            Plan::Deep(depth, part) => Ok(part.expected()? + depth),
            Plan::Block(_, part) | Plan::Resize(_, _, part) | Plan::Install(_, part) => {
                part.expected()
            }
            Plan::Submit(_, part) => part.expected(),
            Plan::Range(end) => Ok((0..*end).sum()),
        }
    }
}

fn mix(place: u64, value: u64) -> u64 {
    (place * value) % 1_000_003
}

struct Author<'a> {
    rng: &'a mut Rng,
    pools: usize,
    left: usize,
}

impl Author<'_> {
    fn plan(&mut self, here: usize, depth: usize) -> Plan {
        self.left = self.left.saturating_sub(1);
        if depth == 0 || self.left == 0 {
            return self.leaf();
        }
        let below = depth - 1;
        match self.rng.below(20) {
            0..=4 => Plan::Join(Box::new([self.plan(here, below), self.plan(here, below)])),
            5 | 6 => Plan::All(self.plans(here, below)),
            7 | 8 => Plan::Scope(self.plans(here, below)),
            9 => Plan::Catch(Box::new(self.plan(here, below))),
            10 => Plan::Deep(self.rng.any() % 200, Box::new(self.plan(here, below))),
            11 => Plan::Block(self.rng.any() % 300, Box::new(self.plan(here, below))),
            12 => {
                let size = 1 + self.rng.below(4);
                Plan::Resize(here, size, Box::new(self.plan(here, below)))
            }
            13..=15 if here + 1 < self.pools => {
                let there = here + 1 + self.rng.below(self.pools - here - 1);
                Plan::Install(there, Box::new(self.plan(there, below)))
            }
            16 | 17 => {
                let there = here + self.rng.below(self.pools - here);
                Plan::Submit(there, Arc::new(self.plan(there, below)))
            }
            18 => Plan::Range(self.rng.any() % 2000),
            _ => self.leaf(),
        }
    }

    fn plans(&mut self, here: usize, depth: usize) -> Vec<Plan> {
        (0..1 + self.rng.below(4))
            .map(|_| self.plan(here, depth))
            .collect()
    }

    fn leaf(&mut self) -> Plan {
        match self.rng.below(16) {
            0 => Plan::Panic(self.rng.any() % 1000),
            _ => Plan::Value(self.rng.any() % 1000),
        }
    }
}

/// The payload of its panics.
struct Code(u64);

/// The pools of a computation.
#[derive(Clone)]
pub(super) struct Pools(Vec<Client>);

impl Pools {
    /// Those of the clients that are fork-join pools.
    pub(super) fn of(clients: impl Iterator<Item = Client>) -> Self {
        Pools(
            clients
                .filter(|client| fork_join(client).is_some())
                .collect(),
        )
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The ledger of the pool with this number.
    pub(super) fn ledger(&self, here: usize) -> &Ledger {
        &self.0[here].ledger
    }

    /// Computes in the pool with this number, in one of several ways. What is wrong, if the result is.
    pub(super) fn check(&self, rng: &mut Rng, here: usize, plan: Plan) -> Option<String> {
        let pool = fork_join(&self.0[here])?;
        let plan = Arc::new(plan);
        let found = catch_unwind(AssertUnwindSafe(|| match rng.below(3) {
            0 => pool.install(|| self.run(&plan)),
            1 => pool.join(|| self.run(&plan), || ()).0,
            _ => self.submit(here, &plan),
        }));
        let found = found.map_err(|payload| payload.downcast_ref::<Code>().map(|code| code.0));
        let expected = plan.expected();
        let is_right = match (&found, &expected) {
            (Ok(found), Ok(expected)) => found == expected,
            (Err(Some(code)), Err(codes)) => codes.contains(code),
            _ => false,
        };
        (!is_right).then(|| {
            format!("a computation came to {found:?}, not to {expected:?} (PROGRAM-8): {plan:?}")
        })
    }

    fn run(&self, plan: &Plan) -> u64 {
        let sum = |values: &[u64]| {
            let values = (1..).zip(values);
            values.map(|(place, value)| mix(place, *value)).sum()
        };
        match plan {
            Plan::Value(value) => *value,
            Plan::Panic(code) => resume_unwind(Box::new(Code(*code))),
            Plan::Join(parts) => {
                let [a, b] = &**parts;
                let (a, b) = forkjoin::join(|| self.run(a), || self.run(b));
                sum(&[a, b])
            }
            Plan::All(parts) => {
                let parts = parts.iter().map(|plan| Part(self, plan));
                sum(&Part::invoke_all_vec(parts.collect()))
            }
            Plan::Scope(parts) => {
                let results: Vec<AtomicU64> = parts.iter().map(|_| AtomicU64::new(0)).collect();
                forkjoin::scope(|scope| {
                    for (plan, result) in parts.iter().zip(&results) {
                        scope.spawn(move |scope| {
                            // The value comes from a job of a job.
                            scope.spawn(move |_| {
                                result.store(self.run(plan), Ordering::Relaxed);
                            });
                        });
                    }
                });
                let results: Vec<u64> = results.into_iter().map(AtomicU64::into_inner).collect();
                sum(&results)
            }
            Plan::Catch(part) => {
                let caught = catch_unwind(AssertUnwindSafe(|| self.run(part)));
                caught.unwrap_or_else(|payload| match payload.is::<Code>() {
                    true => 7,
                    false => resume_unwind(payload),
                })
            }
            Plan::Deep(depth, part) => self.deep(*depth, part),
            Plan::Block(micros, part) => {
                forkjoin::blocking(|| thread::sleep(Duration::from_micros(*micros)));
                self.run(part)
            }
            Plan::Resize(pool, size, part) => {
                if let Some(pool) = fork_join(&self.0[*pool]) {
                    let _ = pool.set_parallelism(*size);
                }
                self.run(part)
            }
            Plan::Install(there, part) => match fork_join(&self.0[*there]) {
                Some(pool) => pool.install(|| self.run(part)),
                None => self.run(part),
            },
            Plan::Submit(there, part) => self.submit(*there, part),
            Plan::Range(end) => forkjoin::parallel::over(0..*end).map(|item| item).sum(),
        }
    }

    /// Nests no further when little stack is left: its parts and what the worker helps with need some, too.
    fn deep(&self, depth: u64, part: &Plan) -> u64 {
        let has_stack = stack_space::current().is_none_or(|space| space.left >= ENOUGH_STACK);
        match depth {
            0 => self.run(part),
            _ if !has_stack => self.run(part) + depth,
            _ => {
                let (value, one) = forkjoin::join(|| self.deep(depth - 1, part), || 1);
                value + one
            }
        }
    }

    /// As a task with a handle. If that has no value, because the pool was stopped or the caller is interrupted, the
    /// caller computes it.
    fn submit(&self, there: usize, plan: &Arc<Plan>) -> u64 {
        let (pools, own) = (self.clone(), Arc::clone(plan));
        let Ok(handle) = self.0[there].submit(move || pools.run(&own)) else {
            return self.run(plan);
        };
        match handle.join() {
            Ok(value) => value,
            Err(TaskError::Panicked(panic)) => resume_unwind(panic.into_payload()),
            Err(_) => self.run(plan),
        }
    }
}

fn fork_join(client: &Client) -> Option<&ForkJoinPool> {
    match &client.pool {
        AnyPool::ForkJoin(pool) => Some(pool),
        AnyPool::Threads(_) => None,
    }
}

/// A part of `invoke_all`.
struct Part<'a>(&'a Pools, &'a Plan);

impl RecursiveTask for Part<'_> {
    type Output = u64;

    fn compute(self) -> u64 {
        self.0.run(self.1)
    }
}
