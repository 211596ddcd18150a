//! Random graphs of stages come to what they come to without any: values, failures, panics, cancels and timeouts, in place,
//! on an executor that is driven by hand and on a pool. Every closure runs as often as it should, and closures and values
//! are dropped once.

use crate::proptest_kit;
use millpond::executor::Lifecycle;
use millpond::future::{self, Cause, Completable, CompletionError, Promise};
use millpond::pool::ThreadPool;
use millpond::preset;
use millpond::time::ManualClock;
use millpond_raw::sync::atomic::{AtomicUsize, Ordering};
use millpond_raw::sync::thread;
use millpond_testkit::{DropCount, DropToken, ManualExecutor};
use proptest::prelude::*;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

const LATE: Duration = Duration::from_secs(60);

type Node = Completable<Value, i64>;

/// A value that is counted.
#[derive(Clone, Debug)]
struct Value(i64, #[allow(dead_code, reason = "it is counted")] DropToken);

/// What a node comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Value(i64),
    Failed(i64),
    Panicked(i64),
    Cancelled,
    TimedOut,
    Abandoned,
}

impl End {
    fn number(self) -> i64 {
        match self {
            End::Value(number) | End::Failed(number) => number,
            End::Panicked(number) => -number,
            End::Cancelled | End::TimedOut | End::Abandoned => 1,
        }
    }

    fn is_value(self) -> bool {
        matches!(self, End::Value(_))
    }
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Here,
    Hand,
    Pool,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Completed by hand, when so many nodes are there.
    Root(End, usize),
    /// A stage of one that is never complete, which is itself completed by hand.
    Cut(End, usize),
    Map,
    TryMap,
    AndThen,
    Recover,
    OrElse,
    Handle,
    WhenComplete,
    Zip,
    AllOf,
    RaceWithNever,
    Copy,
}

/// A node: its kind, its sources by their distance, whether its function panics, and where that runs.
#[derive(Clone, Copy, Debug)]
struct Plan {
    kind: Kind,
    one: usize,
    two: usize,
    panics: bool,
    place: Place,
    runs_a_task: bool,
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![
        4 => (0..100_i64).prop_map(End::Value),
        2 => (0..100_i64).prop_map(End::Failed),
        1 => Just(End::Cancelled),
        1 => Just(End::TimedOut),
        1 => Just(End::Abandoned),
    ]
}

fn kind() -> impl Strategy<Value = Kind> {
    let stages = [
        Kind::Map,
        Kind::TryMap,
        Kind::AndThen,
        Kind::Recover,
        Kind::OrElse,
        Kind::Handle,
        Kind::WhenComplete,
        Kind::Zip,
        Kind::AllOf,
        Kind::RaceWithNever,
        Kind::Copy,
    ];
    prop_oneof![
        3 => (end(), 0..40_usize).prop_map(|(end, when)| Kind::Root(end, when)),
        1 => (end(), 0..40_usize).prop_map(|(end, when)| Kind::Cut(end, when)),
        9 => proptest::sample::select(stages.to_vec()),
    ]
}

fn plan() -> impl Strategy<Value = Plan> {
    let place = prop_oneof![Just(Place::Here), Just(Place::Hand), Just(Place::Pool)];
    let parts = (
        kind(),
        0..8_usize,
        0..8_usize,
        prop::bool::weighted(0.15),
        place,
        any::<bool>(),
    );
    parts.prop_map(|(kind, one, two, panics, place, runs_a_task)| Plan {
        kind,
        one,
        two,
        panics,
        place,
        runs_a_task,
    })
}

/// A graph begins with a root, which the first stages need.
fn graph() -> impl Strategy<Value = Vec<Plan>> {
    (end(), 0..40_usize, prop::collection::vec(plan(), 1..30)).prop_map(|(end, when, mut plans)| {
        plans[0].kind = Kind::Root(end, when);
        plans
    })
}

/// The sources of a node: they are among those before it.
fn sources(plan: &Plan, index: usize) -> (usize, usize) {
    let back = |distance: usize| index.saturating_sub(1 + distance % index.max(1));
    (back(plan.one), back(plan.two))
}

/// What the graph comes to, and how often the function of each node runs: by itself, without stages.
fn evaluate(plans: &[Plan]) -> Vec<(End, usize)> {
    let mut all: Vec<(End, usize)> = Vec::new();
    for (index, plan) in plans.iter().enumerate() {
        let own = index as i64;
        let (one, two) = sources(plan, index);
        let of = |index: usize| all[index].0;
        let ran = |end: End| (if plan.panics { End::Panicked(own) } else { end }, 1);
        let next = |end: End| End::Value(end.number() + own);
        all.push(match plan.kind {
            Kind::Root(end, _) | Kind::Cut(end, _) => (end, 0),
            Kind::Map if of(one).is_value() => ran(next(of(one))),
            Kind::TryMap if of(one).is_value() => ran(End::Failed(of(one).number() + own)),
            Kind::AndThen if of(one).is_value() => ran(of(two)),
            Kind::Recover if !of(one).is_value() => ran(next(of(one))),
            Kind::OrElse if !of(one).is_value() => ran(of(two)),
            Kind::Handle => ran(next(of(one))),
            // The failure counts, and not the panic.
            Kind::WhenComplete if !of(one).is_value() => (of(one), 1),
            Kind::WhenComplete => ran(of(one)),
            Kind::Zip if of(one).is_value() && of(two).is_value() => {
                ran(End::Value(of(one).number() * 3 + of(two).number()))
            }
            Kind::Zip | Kind::AllOf if !of(one).is_value() => (of(one), 0),
            Kind::Zip => (of(two), 0),
            Kind::AllOf if !of(two).is_value() => (of(two), 0),
            Kind::AllOf => (End::Value(of(one).number() - of(two).number()), 0),
            Kind::RaceWithNever if of(one).is_value() => ran(next(of(one))),
            _ => (of(one), 0),
        });
    }
    all
}

struct Play<'plans> {
    plans: &'plans [Plan],
    nodes: Vec<Node>,
    promises: Vec<Option<Promise<Value, i64>>>,
    runs: Vec<Arc<AtomicUsize>>,
    drops: DropCount,
    clock: ManualClock,
    hand: ManualExecutor,
    pool: ThreadPool,
}

impl Play<'_> {
    fn make(&mut self, index: usize) {
        let plan = self.plans[index];
        let (one, two) = sources(&plan, index);
        let runs = Arc::new(AtomicUsize::new(0));
        self.runs.push(Arc::clone(&runs));
        let own = index as i64;
        // It belongs to the closure, and is dropped with it.
        let token = self.drops.token();
        let begins = move || {
            let _token = &token;
            runs.fetch_add(1, Ordering::Relaxed);
            if plan.panics {
                resume_unwind(Box::new(own.to_string()));
            }
        };
        let drops = self.drops.token();
        let value = move |number: i64| Value(number, drops.clone());
        let of = |index: usize| self.nodes[index].clone();
        let source = || of(one);
        macro_rules! placed {
            ($here:ident, $there:ident, ($($other:expr),*), $f:expr) => {
                match plan.place {
                    Place::Here => source().$here($($other,)* $f),
                    Place::Hand => source().$there(&self.hand, $($other,)* $f),
                    Place::Pool => source().$there(&self.pool, $($other,)* $f),
                }
            };
        }
        let mut promise = None;
        let node = match plan.kind {
            Kind::Root(End::TimedOut, _) => {
                let (other, node) = future::promise();
                promise = Some(other);
                node.or_timeout_by(&self.clock.clock(), LATE)
            }
            Kind::Root(..) => {
                let (other, node) = future::promise();
                promise = Some(other);
                node
            }
            Kind::Cut(end, _) => {
                let never = Completable::<Value, i64>::never();
                let node = never.map(move |value| {
                    begins();
                    value
                });
                match end {
                    End::TimedOut => node.or_timeout_by(&self.clock.clock(), LATE),
                    _ => node,
                }
            }
            Kind::Map => placed!(map, map_on, (), move |it: Value| {
                begins();
                value(it.0 + own)
            }),
            Kind::TryMap => placed!(try_map, try_map_on, (), move |it: Value| {
                begins();
                Err(it.0 + own)
            }),
            Kind::AndThen => {
                let inner = of(two);
                placed!(and_then, and_then_on, (), move |_: Value| {
                    begins();
                    inner
                })
            }
            Kind::Recover => placed!(recover, recover_on, (), move |failure: CompletionError<
                i64,
            >| {
                begins();
                value(ended(Err(&failure)).number() + own)
            }),
            Kind::OrElse => {
                let inner = of(two);
                placed!(or_else, or_else_on, (), move |_: CompletionError<i64>| {
                    begins();
                    inner
                })
            }
            Kind::Handle => placed!(handle, handle_on, (), move |outcome: Result<Value, _>| {
                begins();
                value(ended(outcome.as_ref()).number() + own)
            }),
            Kind::WhenComplete => placed!(when_complete, when_complete_on, (), move |_: Result<
                &Value,
                &CompletionError<i64>,
            >| {
                begins()
            }),
            Kind::Zip => placed!(
                zip_with,
                zip_with_on,
                (of(two)),
                move |one: Value, two: Value| {
                    begins();
                    value(one.0 * 3 + two.0)
                }
            ),
            Kind::AllOf => {
                future::all_of(vec![of(one), of(two)]).map(move |all| value(all[0].0 - all[1].0))
            }
            Kind::RaceWithNever => placed!(
                race_with,
                race_with_on,
                (Completable::never()),
                move |it: Value| {
                    begins();
                    value(it.0 + own)
                }
            ),
            Kind::Copy => of(one).copy(),
        };
        self.nodes.push(node);
        self.promises.push(promise);
    }

    /// Completes what is to be completed when so many nodes are there.
    fn settle(&mut self, is_due: impl Fn(usize) -> bool) {
        for index in 0..self.nodes.len() {
            match self.plans[index].kind {
                Kind::Root(End::Abandoned, when) if is_due(when) => self.promises[index] = None,
                Kind::Root(end, when) if is_due(when) => {
                    if let Some(promise) = &self.promises[index] {
                        self.complete(promise, end);
                    }
                }
                Kind::Cut(end, when) if is_due(when) => {
                    // A promise of a stage abandons nothing.
                    let end = if end == End::Abandoned {
                        End::Cancelled
                    } else {
                        end
                    };
                    self.complete(&self.nodes[index].promise(), end);
                }
                _ => {}
            }
        }
    }

    fn complete(&self, promise: &Promise<Value, i64>, end: End) {
        match end {
            End::Value(number) => {
                let _ = promise.complete(Value(number, self.drops.token()));
            }
            End::Failed(number) => {
                let _ = promise.fail(number);
            }
            End::Cancelled => {
                promise.cancel();
            }
            // By the clock; and nothing panics by hand.
            End::TimedOut | End::Abandoned | End::Panicked(_) => {}
        }
    }
}

fn ended(outcome: Result<&Value, &CompletionError<i64>>) -> End {
    let failure = match outcome {
        Ok(value) => return End::Value(value.0),
        Err(failure) => failure,
    };
    match failure.cause() {
        Cause::Failed(number) => End::Failed(*number),
        Cause::Panicked(panic) => {
            let text = panic.message().expect("panics are numbers");
            End::Panicked(text.parse().expect("panics are numbers"))
        }
        Cause::Cancelled(_) => End::Cancelled,
        Cause::Abandoned => End::Abandoned,
        Cause::TimedOut => End::TimedOut,
        other => panic!("nothing ends so here: {other:?}"),
    }
}

fn play(mut plans: Vec<Plan>) {
    for plan in &mut plans {
        if let Kind::Cut(end @ End::Abandoned, _) = &mut plan.kind {
            *end = End::Cancelled;
        }
    }
    let mut play = Play {
        plans: &plans,
        nodes: Vec::new(),
        promises: Vec::new(),
        runs: Vec::new(),
        drops: DropCount::new(),
        clock: ManualClock::new(),
        hand: ManualExecutor::new(),
        pool: preset::single("graph").build().unwrap(),
    };
    for (index, plan) in plans.iter().enumerate() {
        play.make(index);
        play.settle(|when| when <= index);
        if plan.runs_a_task {
            play.hand.run_next();
        }
    }
    play.settle(|_| true);
    play.clock.advance(LATE);
    while !play.nodes.iter().all(Completable::is_complete) {
        if play.hand.run_all() == 0 {
            thread::yield_now();
        }
    }
    let expected = evaluate(&plans);
    for (index, (end, runs)) in expected.into_iter().enumerate() {
        let found = ended(play.nodes[index].try_get().expect("it is complete"));
        assert_eq!(found, end, "node {index}");
        assert_eq!(
            play.runs[index].load(Ordering::Relaxed),
            runs,
            "the function of node {index}"
        );
    }
    let Play {
        nodes,
        promises,
        drops,
        pool,
        ..
    } = play;
    drop((nodes, promises));
    pool.close().unwrap();
    drops.assert_alive(0);
}

#[test]
fn a_graph_of_stages_comes_to_what_its_functions_come_to_one_by_one() {
    proptest_kit::ask(400, &graph(), play);
}
