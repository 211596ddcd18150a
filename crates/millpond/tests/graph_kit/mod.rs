//! Random graphs of stages, and what they may come to: played on completables, and evaluated directly.
//!
//! A graph is a list of nodes. A node is a source, which an event completes, or a stage of earlier nodes. Events come between
//! the creations of nodes, so stages are attached before and after their sources are complete; some nodes are cancelled by an
//! event as well.
//!
//! The evaluator does not know completables. It gives each node the set of outcomes that it may have, each with the time at
//! which it is there: the number of the event. A node that takes the first of several may take any of those that are there
//! at the same time. If the events happen on several threads there is no time, and each of them may be the first.

#![allow(
    dead_code,
    clippy::disallowed_types,
    reason = "each test program is a crate of its own and takes what it needs; the tokens are std's"
)]

use millpond::executor::DirectExecutor;
use millpond::future::{self, Cause, Completable, CompletionError, Promise};
use millpond::time::ManualClock;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

pub(crate) type Stage = Completable<u32, u32>;

/// What a node comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Out {
    Value(u32),
    Failed(u32),
    Panicked,
    Cancelled,
    Abandoned,
    Late,
}

impl Out {
    fn of(outcome: Result<u32, CompletionError<u32>>) -> Out {
        match outcome {
            Ok(value) => Out::Value(value),
            Err(failure) => Out::of_failure(&failure),
        }
    }

    fn of_failure(failure: &CompletionError<u32>) -> Out {
        match failure.cause() {
            Cause::Failed(error) => Out::Failed(*error),
            Cause::Panicked(_) => Out::Panicked,
            Cause::Cancelled(_) => Out::Cancelled,
            Cause::Abandoned => Out::Abandoned,
            Cause::TimedOut => Out::Late,
            other => panic!("no node ends so: {other:?}"),
        }
    }

    /// As a number, for closures that handle every outcome.
    fn code(self) -> u32 {
        match self {
            Out::Value(value) => value.wrapping_mul(2),
            Out::Failed(error) => error.wrapping_mul(2) | 1,
            Out::Panicked => 1_000_001,
            Out::Cancelled => 1_000_003,
            Out::Abandoned => 1_000_005,
            Out::Late => 1_000_007,
        }
    }
}

/// A node. Numbers of other nodes are lower than its own.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Node {
    Source(Out),
    Map(usize, u32),
    Panics(usize),
    TryMap(usize, u32),
    AndThen(usize, usize),
    Recover(usize),
    OrElse(usize, usize),
    Handle(usize),
    Watch(usize, bool),
    Zip(usize, usize),
    AllOf(usize, usize, usize),
    AnyOf(usize, usize, usize),
    FirstSuccess(usize, usize),
}

/// What happens between the creations of nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Create(usize),
    /// Completes a source.
    End(usize),
    Cancel(usize),
}

#[derive(Clone, Debug)]
pub(crate) struct Graph {
    pub(crate) nodes: Vec<Node>,
    /// Whether the closures of the node run in place, or on an executor that calls them at once.
    pub(crate) on_executor: Vec<bool>,
    pub(crate) steps: Vec<Step>,
}

impl Graph {
    /// The graph that these bytes describe; every sequence describes one.
    pub(crate) fn from_bytes(bytes: &[[u8; 5]]) -> Graph {
        let (mut nodes, mut on_executor, mut later) = (Vec::new(), Vec::new(), Vec::new());
        for (own, [kind, first, second, number, when]) in bytes.iter().copied().enumerate() {
            let earlier = |byte: u8| usize::from(byte) % own.max(1);
            let (a, b) = (earlier(first), earlier(second));
            let number = u32::from(number);
            let source = match first % 8 {
                0..=3 => Out::Value(number),
                4 => Out::Failed(number),
                5 => Out::Cancelled,
                6 => Out::Abandoned,
                _ => Out::Late,
            };
            let node = match kind % 20 {
                _ if own == 0 => Node::Source(source),
                0..=5 => Node::Source(source),
                6 | 7 => Node::Map(a, number),
                8 => Node::Panics(a),
                9 => Node::TryMap(a, number),
                10 | 11 => Node::AndThen(a, b),
                12 => Node::Recover(a),
                13 => Node::OrElse(a, b),
                14 => Node::Handle(a),
                15 => Node::Watch(a, number % 2 == 0),
                16 => Node::Zip(a, b),
                17 => Node::AllOf(a, b, earlier(kind / 20)),
                18 => Node::AnyOf(a, b, earlier(kind / 20)),
                _ => Node::FirstSuccess(a, b),
            };
            let is_source = matches!(node, Node::Source(_));
            let delay = usize::from(when % 16);
            if is_source {
                later.push((own + delay, Step::End(own)));
            } else if when >= 208 {
                later.push((own + delay, Step::Cancel(own)));
            }
            nodes.push(node);
            on_executor.push(kind >= 128);
        }
        let mut steps = Vec::new();
        for own in 0..nodes.len() {
            steps.push(Step::Create(own));
            steps.extend(
                later
                    .iter()
                    .filter(|(after, _)| *after == own)
                    .map(|(_, step)| *step),
            );
        }
        let after_all = later.iter().filter(|(after, _)| *after >= nodes.len());
        steps.extend(after_all.map(|(_, step)| *step));
        Graph {
            nodes,
            on_executor,
            steps,
        }
    }
}

/// Outcomes that a node may have, each with its time.
pub(crate) type Allowed = BTreeSet<(usize, Out)>;

/// So many combinations are followed; of a node with more nothing is known.
const MOST: usize = 256;

/// What each node may come to; `None` if that is not known. Without `in_order` nothing is known of times.
pub(crate) fn evaluate(graph: &Graph, in_order: bool) -> Vec<Option<Allowed>> {
    let mut all: Vec<Option<Allowed>> = Vec::new();
    let time_of = |wanted: fn(&Step, usize) -> bool, own: usize| {
        let found = graph.steps.iter().position(|step| wanted(step, own));
        if in_order { found } else { found.map(|_| 0) }
    };
    for (own, node) in graph.nodes.iter().enumerate() {
        let created = time_of(
            |step, own| matches!(step, Step::Create(node) if *node == own),
            own,
        );
        let created = created.expect("every node is created");
        let ended = time_of(
            |step, own| matches!(step, Step::End(node) if *node == own),
            own,
        );
        let cancelled = time_of(
            |step, own| matches!(step, Step::Cancel(node) if *node == own),
            own,
        );
        let members = members(*node);
        let known: Option<Vec<&Allowed>> =
            members.iter().map(|member| all[*member].as_ref()).collect();
        let outcomes = known.and_then(|known| {
            let mut outcomes = Allowed::new();
            for mut combination in combinations(&known)? {
                // Those that are complete when the node is created are there at the same time.
                combination
                    .iter_mut()
                    .for_each(|(time, _)| *time = created.max(*time));
                outcomes.extend(outcomes_of(*node, &combination, ended.unwrap_or(0)));
            }
            Some(outcomes)
        });
        let outcomes = outcomes.map(|outcomes| {
            let mut allowed = Allowed::new();
            for (time, out) in outcomes {
                let time = time.max(created);
                match cancelled {
                    Some(when) if in_order && when < time => {
                        allowed.insert((when, Out::Cancelled));
                    }
                    Some(when) if !in_order => {
                        allowed.insert((when, Out::Cancelled));
                        allowed.insert((time, out));
                    }
                    _ => {
                        allowed.insert((time, out));
                    }
                }
            }
            allowed
        });
        all.push(outcomes);
    }
    all
}

fn members(node: Node) -> Vec<usize> {
    match node {
        Node::Source(_) => vec![],
        Node::Map(a, _)
        | Node::Panics(a)
        | Node::TryMap(a, _)
        | Node::Recover(a)
        | Node::Handle(a)
        | Node::Watch(a, _) => vec![a],
        Node::AndThen(a, b) | Node::OrElse(a, b) | Node::Zip(a, b) | Node::FirstSuccess(a, b) => {
            vec![a, b]
        }
        Node::AllOf(a, b, c) | Node::AnyOf(a, b, c) => vec![a, b, c],
    }
}

fn combinations(known: &[&Allowed]) -> Option<Vec<Vec<(usize, Out)>>> {
    let mut all = vec![vec![]];
    for allowed in known {
        let longer = all.iter().flat_map(|one: &Vec<(usize, Out)>| {
            allowed.iter().map(move |next| {
                let mut one = one.clone();
                one.push(*next);
                one
            })
        });
        all = longer.collect();
        if all.len() > MOST {
            return None;
        }
    }
    Some(all)
}

/// What a node comes to if its members come to this.
fn outcomes_of(node: Node, of: &[(usize, Out)], ended: usize) -> Vec<(usize, Out)> {
    let first = of.first().copied().unwrap_or((0, Out::Abandoned));
    let (time, out) = first;
    let value = match out {
        Out::Value(value) => Some(value),
        _ => None,
    };
    let later = |other: (usize, Out)| (time.max(other.0), other.1);
    match node {
        Node::Source(out) => vec![(ended, out)],
        Node::Map(_, number) => vec![(
            time,
            value.map_or(out, |value| Out::Value(value.wrapping_add(number))),
        )],
        Node::Panics(_) => vec![(time, value.map_or(out, |_| Out::Panicked))],
        Node::TryMap(_, number) => vec![(
            time,
            value.map_or(out, |value| match value < number {
                true => Out::Failed(value),
                false => Out::Value(value - number),
            }),
        )],
        Node::AndThen(..) => vec![value.map_or(first, |_| later(of[1]))],
        Node::Recover(_) => vec![(
            time,
            value.map_or_else(|| Out::Value(out.code()), Out::Value),
        )],
        Node::OrElse(..) => vec![value.map_or_else(|| later(of[1]), |_| first)],
        Node::Handle(_) => vec![(time, Out::Value(out.code()))],
        Node::Watch(_, panics) => vec![(
            time,
            if panics && value.is_some() {
                Out::Panicked
            } else {
                out
            },
        )],
        Node::Zip(..) | Node::AllOf(..) => {
            let last = of.iter().map(|(time, _)| *time).max().unwrap_or(0);
            let mut sum = 0_u32;
            for (_, out) in of {
                match out {
                    Out::Value(value) => sum = sum.wrapping_mul(31).wrapping_add(*value),
                    failure => return vec![(last, *failure)],
                }
            }
            vec![(last, Out::Value(sum))]
        }
        Node::AnyOf(..) => earliest(of.iter().copied()),
        Node::FirstSuccess(..) => {
            let values: Vec<_> = of
                .iter()
                .copied()
                .filter(|(_, out)| matches!(out, Out::Value(_)))
                .collect();
            if values.is_empty() {
                let last = of.iter().map(|(time, _)| *time).max().unwrap_or(0);
                return of
                    .iter()
                    .copied()
                    .filter(|(time, _)| *time == last)
                    .collect();
            }
            earliest(values.into_iter())
        }
    }
}

fn earliest(of: impl Iterator<Item = (usize, Out)> + Clone) -> Vec<(usize, Out)> {
    let first = of.clone().map(|(time, _)| time).min();
    of.filter(|(time, _)| Some(*time) == first).collect()
}

/// Completes a source.
pub(crate) enum End {
    By(Promise<u32, u32>, Out),
    At(ManualClock),
}

impl End {
    pub(crate) fn now(self) {
        match self {
            End::At(clock) => clock.advance(MINUTE),
            End::By(promise, Out::Value(value)) => {
                promise.complete(value).expect("it is the only one")
            }
            End::By(promise, Out::Failed(error)) => {
                promise.fail(error).expect("it is the only one")
            }
            End::By(promise, Out::Cancelled) => assert!(promise.cancel(), "it is the only one"),
            End::By(promise, _) => drop(promise),
        }
    }
}

const MINUTE: Duration = Duration::from_secs(60);

fn source(out: Out) -> (Stage, End) {
    if out == Out::Late {
        let clock = ManualClock::new();
        let stage = Stage::never().or_timeout_by(&clock.clock(), MINUTE);
        return (stage, End::At(clock));
    }
    let (promise, stage) = future::promise();
    (stage, End::By(promise, out))
}

/// A graph that is being played.
pub(crate) struct Play {
    pub(crate) stages: Vec<Stage>,
    pub(crate) ends: Vec<Option<End>>,
    token: Arc<()>,
}

/// A panic that prints nothing.
fn planned() -> u32 {
    std::panic::resume_unwind(Box::new("planned"))
}

impl Play {
    pub(crate) fn new() -> Play {
        Play {
            stages: Vec::new(),
            ends: Vec::new(),
            token: Arc::new(()),
        }
    }

    pub(crate) fn create(&mut self, node: Node, on_executor: bool) {
        let (stage, end) = match node {
            Node::Source(out) => {
                let (stage, end) = source(out);
                (stage, Some(end))
            }
            node => (self.stage(node, on_executor), None),
        };
        self.stages.push(stage);
        self.ends.push(end);
    }

    fn stage(&self, node: Node, on_executor: bool) -> Stage {
        let direct = DirectExecutor::new();
        let (of, token) = (
            |number: usize| self.stages[number].clone(),
            Arc::clone(&self.token),
        );
        /// Both forms of an operation; the closure owns a token, so that it is seen when it is not dropped.
        macro_rules! call {
            ($of:expr, $name:ident, $on:ident, |$argument:tt: $kind:ty| $body:expr) => {{
                let f = move |$argument: $kind| {
                    let _token = &token;
                    $body
                };
                if on_executor {
                    $of.$on(&direct, f)
                } else {
                    $of.$name(f)
                }
            }};
        }
        match node {
            Node::Source(_) => unreachable!("a source is no stage"),
            Node::Map(a, number) => {
                call!(of(a), map, map_on, |value: u32| value.wrapping_add(number))
            }
            Node::Panics(a) => call!(of(a), map, map_on, |_: u32| planned()),
            Node::TryMap(a, number) => {
                call!(of(a), try_map, try_map_on, |value: u32| value
                    .checked_sub(number)
                    .ok_or(value))
            }
            Node::AndThen(a, b) => {
                let inner = of(b);
                call!(of(a), and_then, and_then_on, |_: u32| inner)
            }
            Node::Recover(a) => call!(of(a), recover, recover_on, |failure: CompletionError<
                u32,
            >| Out::of_failure(
                &failure
            )
            .code()),
            Node::OrElse(a, b) => {
                let inner = of(b);
                call!(of(a), or_else, or_else_on, |_: CompletionError<u32>| inner)
            }
            Node::Handle(a) => call!(of(a), handle, handle_on, |outcome: Result<
                u32,
                CompletionError<u32>,
            >| Out::of(outcome)
                .code()),
            Node::Watch(a, panics) => {
                call!(of(a), when_complete, when_complete_on, |_: Result<
                    &u32,
                    &CompletionError<u32>,
                >| {
                    if panics {
                        planned();
                    }
                })
            }
            Node::Zip(a, b) => {
                let f = move |one: u32, other: u32| {
                    let _token = &token;
                    one.wrapping_mul(31).wrapping_add(other)
                };
                match on_executor {
                    true => of(a).zip_with_on(&direct, of(b), f),
                    false => of(a).zip_with(of(b), f),
                }
            }
            Node::AllOf(a, b, c) => future::all_of([of(a), of(b), of(c)]).map(move |values| {
                let _token = &token;
                values.iter().fold(0_u32, |sum, value| {
                    sum.wrapping_mul(31).wrapping_add(*value)
                })
            }),
            Node::AnyOf(a, b, c) => future::any_of([of(a), of(b), of(c)]),
            Node::FirstSuccess(a, b) => future::first_success([of(a), of(b)]),
        }
    }

    /// Compares what the nodes have come to with what they may come to, and looks that nothing is left.
    pub(crate) fn check(self, allowed: &[Option<Allowed>]) {
        let Play {
            stages,
            ends,
            token,
        } = self;
        drop(ends);
        for (number, stage) in stages.iter().enumerate() {
            assert!(
                stage.is_complete(),
                "node {number} is not complete:\n{}",
                stage.explain()
            );
            assert_eq!(stage.dependents(), 0, "node {number}");
            let out = Out::of(stage.clone().join());
            if let Some(allowed) = &allowed[number] {
                let is_allowed = allowed.iter().any(|(_, other)| *other == out);
                assert!(
                    is_allowed,
                    "node {number} came to {out:?}, and may come to {allowed:?}"
                );
            }
        }
        drop(stages);
        assert_eq!(Arc::strong_count(&token), 1, "all closures are dropped");
    }
}
