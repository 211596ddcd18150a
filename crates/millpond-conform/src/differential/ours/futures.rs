//! Plays scripts for completable futures. Nothing here needs another thread, so nothing has to come to rest.

use crate::differential::futures::{FutureStep, Place, Verb};
use crate::differential::script::{Number, Step};
use crate::kit::ManualExecutor;
use millpond::executor::{Executor, Rejected};
use millpond::future::{self, Cause, Completable, CompletionError};
use millpond::task::Task;
use millpond::time::ManualClock;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A time that never comes.
const FAR: Duration = Duration::from_secs(3600);

/// Errors of functions have the number of their node on top of this.
const THROWN: u32 = 1000;

/// `None` is Java's null.
type Value = Option<i64>;
type Node = Completable<Value, Failure>;

#[derive(Debug)]
struct Failure(u32);

pub(super) struct FuturePlayer {
    nodes: BTreeMap<Number, Made>,
    log: Arc<Log>,
    clock: ManualClock,
    played: u32,
    /// Nodes whose dependents Java counts when they are gone (DIFF-20).
    uncounted: BTreeSet<Number>,
}

struct Made {
    node: Node,
    step: FutureStep,
    executor: NodeExecutor,
}

/// What functions write.
#[derive(Default)]
struct Log {
    events: Mutex<Vec<(Number, String)>>,
    /// Where each error lies in memory: a failure that passes along a chain is one.
    addresses: Mutex<BTreeMap<u32, usize>>,
}

impl Log {
    fn ran(&self, node: Number, arguments: &str) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.push((node, format!("ran {node}({arguments})")));
    }

    /// Events of a step in the order of the nodes (DIFF-19).
    fn events(&self) -> String {
        let mut events =
            std::mem::take(&mut *self.events.lock().unwrap_or_else(PoisonError::into_inner));
        events.sort();
        let words: Vec<String> = events.into_iter().map(|(_, text)| text).collect();
        words.join(", ")
    }

    /// A failure of this node, or one that its function got from there.
    fn failure(&self, node: Number, failure: &CompletionError<Failure>) -> String {
        let (text, number, address) = match failure.cause() {
            Cause::Failed(error) => (None, error.0, std::ptr::from_ref(error) as usize),
            Cause::Panicked(panic) => {
                let text = panic.message().unwrap_or_default();
                (None, text.parse().unwrap_or(0), text.as_ptr() as usize)
            }
            Cause::Cancelled(_) => (Some("cancelled"), 0, 0),
            Cause::TimedOut => (Some("timed-out"), 0, 0),
            Cause::Rejected(_) => (Some("rejected"), 0, 0),
            _ => (Some("unexpected"), 0, 0),
        };
        let mut addresses = self
            .addresses
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let is_same = number == 0 || *addresses.entry(number).or_insert(address) == address;
        // Java wraps a failure of a stage where it arises, too (DIFF-18).
        let arises_in_stage = number >= THROWN || failure.is_rejected();
        if number >= THROWN && failure.is_propagated() == (number - THROWN == node) {
            return format!("!{number} with the wrong origin");
        }
        let wrapped = if failure.is_propagated() || arises_in_stage {
            "~"
        } else {
            ""
        };
        let other = if is_same { "" } else { " (another one)" };
        match text {
            Some(text) => format!("{wrapped}!{text}"),
            None => format!("{wrapped}!{number}{other}"),
        }
    }

    fn outcome(&self, node: Number, outcome: Result<&Value, &CompletionError<Failure>>) -> String {
        match outcome {
            Ok(value) => word(*value),
            Err(failure) => self.failure(node, failure),
        }
    }
}

fn word(value: Value) -> String {
    value.map_or("null".into(), |value| value.to_string())
}

/// The executor of one node.
#[derive(Clone, Debug)]
struct NodeExecutor {
    is_direct: bool,
    tasks: ManualExecutor,
}

impl Executor for NodeExecutor {
    fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        self.tasks.execute_task(task)?;
        if self.is_direct {
            self.tasks.run_all();
        }
        Ok(())
    }
}

impl FuturePlayer {
    pub(super) fn new() -> Self {
        FuturePlayer {
            nodes: BTreeMap::new(),
            log: Arc::default(),
            clock: ManualClock::new(),
            played: 0,
            uncounted: BTreeSet::new(),
        }
    }

    pub(super) fn opening(&mut self) -> Result<String, String> {
        Ok("ok; ; nodes=0".into())
    }

    pub(super) fn play(&mut self, step: Option<&Step>) -> Result<String, String> {
        self.played += 1;
        let outcome = match step {
            Some(Step::Future(step)) if step.makes() => self.make(step),
            Some(Step::Future(step)) => self.act(step),
            Some(step) => return Err(format!("`{step}` is not for futures")),
            None => "end".into(),
        };
        let events = self.log.events();
        let count = format!("nodes={}", self.nodes.len());
        let readings = self.nodes.keys().map(|node| self.reading(*node));
        let readings: Vec<String> = std::iter::once(count).chain(readings).collect();
        let fates = if step.is_none() { "; " } else { "" };
        Ok(format!(
            "{outcome}; {events}; {fates}{}",
            readings.join(" ")
        ))
    }

    fn node(&self, number: Number) -> Node {
        self.nodes[&number].node.clone()
    }

    fn make(&mut self, step: &FutureStep) -> String {
        let executor = NodeExecutor {
            is_direct: step.place == Place::Direct,
            tasks: ManualExecutor::new(),
        };
        executor.tasks.refuse(step.place == Place::Rejects);
        let node = self.built(step, &executor);
        if step.verb == Verb::AllOf && step.names.len() == 1 {
            // Java counts the only one twice (DIFF-20).
            self.uncounted.extend(&step.names);
        }
        let made = Made {
            node,
            step: step.clone(),
            executor,
        };
        self.nodes.insert(step.node, made);
        "made".into()
    }

    fn built(&self, step: &FutureStep, executor: &NodeExecutor) -> Node {
        let number = step.node;
        let of = |index: usize| self.node(step.names[index]);
        let from = step.names.first().copied().unwrap_or(0);
        let log = Arc::clone(&self.log);
        let throws = step.throws;
        let end = move |value: Value| {
            if throws {
                resume_unwind(Box::new((THROWN + number).to_string()));
            }
            value
        };
        let next = move |value: i64| Some(value % 1_000_003 + i64::from(number));
        macro_rules! placed {
            ($here:ident, $there:ident, ($($other:expr),*), $f:expr) => {
                match step.place {
                    Place::InPlace => of(0).$here($($other,)* $f),
                    _ => of(0).$there(executor, $($other,)* $f),
                }
            };
        }
        let both = move |show: fn(Value, Value) -> String,
                         result: fn(Value, Value) -> Option<i64>| {
            move |one: Value, two: Value| {
                log.ran(number, &show(one, two));
                end(result(one, two).and_then(next))
            }
        };
        let log = Arc::clone(&self.log);
        let single = move |show: fn(Value) -> String, result: fn(Value) -> Option<i64>| {
            move |value: Value| {
                log.ran(number, &show(value));
                end(result(value).and_then(next))
            }
        };
        let pair = |one: Value, two: Value| format!("{},{}", word(one), word(two));
        let log = Arc::clone(&self.log);
        match step.verb {
            Verb::New => Completable::never(),
            Verb::Completed => Completable::completed(Some(i64::from(number) * 10)),
            Verb::Failed => Completable::failed(Failure(self.played)),
            // An error that is returned is Java's exception as well as a panic is.
            Verb::Apply if throws && number.is_multiple_of(2) => {
                let f = move |value: Value| {
                    log.ran(number, &word(value));
                    Err(Failure(THROWN + number))
                };
                placed!(try_map, try_map_on, (), f)
            }
            Verb::Apply => placed!(
                map,
                map_on,
                (),
                single(word, |value| Some(value.unwrap_or(0)))
            ),
            Verb::Accept => placed!(map, map_on, (), single(word, |_| None)),
            Verb::Run => placed!(map, map_on, (), single(|_| String::new(), |_| None)),
            Verb::Handle => placed!(handle, handle_on, (), move |outcome: Result<Value, _>| {
                log.ran(number, &log.outcome(from, outcome.as_ref()));
                end(next(outcome.map_or(5, |value| value.unwrap_or(0))))
            }),
            Verb::WhenComplete => placed!(
                when_complete,
                when_complete_on,
                (),
                move |outcome: Result<&Value, &CompletionError<Failure>>| {
                    log.ran(number, &log.outcome(from, outcome));
                    end(None);
                }
            ),
            Verb::Exceptionally => {
                placed!(recover, recover_on, (), move |failure: CompletionError<
                    Failure,
                >| {
                    log.ran(number, &log.failure(from, &failure));
                    end(next(7))
                })
            }
            Verb::Compose => {
                let inner = of(1);
                placed!(and_then, and_then_on, (), move |value: Value| {
                    log.ran(number, &word(value));
                    end(None);
                    inner
                })
            }
            Verb::ExceptionallyCompose => {
                let inner = of(1);
                placed!(or_else, or_else_on, (), move |failure: CompletionError<
                    Failure,
                >| {
                    log.ran(number, &log.failure(from, &failure));
                    end(None);
                    inner
                })
            }
            Verb::Combine => {
                let sum = |one: Value, two: Value| Some(one.unwrap_or(0) * 31 + two.unwrap_or(0));
                placed!(zip_with, zip_with_on, (of(1)), both(pair, sum))
            }
            Verb::AcceptBoth => placed!(zip_with, zip_with_on, (of(1)), both(pair, |_, _| None)),
            Verb::RunAfterBoth => {
                placed!(
                    zip_with,
                    zip_with_on,
                    (of(1)),
                    both(|_, _| String::new(), |_, _| None)
                )
            }
            Verb::ApplyToEither => {
                let f = single(word, |value| Some(value.unwrap_or(0)));
                placed!(race_with, race_with_on, (of(1)), f)
            }
            Verb::AcceptEither => placed!(race_with, race_with_on, (of(1)), single(word, |_| None)),
            Verb::RunAfterEither => {
                placed!(
                    race_with,
                    race_with_on,
                    (of(1)),
                    single(|_| String::new(), |_| None)
                )
            }
            Verb::Copy => of(0).copy(),
            Verb::Minimal => of(0).read_only().to_completable(),
            // Java's has no values (DIFF-22).
            Verb::AllOf => {
                let all: Vec<Node> = step.names.iter().map(|node| self.node(*node)).collect();
                future::all_of(all).map(|_| None)
            }
            Verb::AnyOf => future::any_of(step.names.iter().map(|node| self.node(*node))),
            _ => unreachable!("it makes no node"),
        }
    }

    fn act(&mut self, step: &FutureStep) -> String {
        let made = &self.nodes[&step.node];
        let was_pending = !made.node.is_complete();
        let yes = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
        let value = Some(i64::from(self.played) * 7);
        let outcome = match step.verb {
            Verb::Complete => yes(made.node.promise().complete(value).is_ok()),
            Verb::Fail => yes(made.node.promise().fail(Failure(self.played)).is_ok()),
            Verb::Cancel => yes(made.node.cancel()),
            Verb::Go => yes(made.executor.tasks.run_next().is_some()),
            _ => {
                let node = made.node.clone();
                let clock = self.clock.clock();
                let soon = Duration::from_millis(1);
                drop(match step.verb {
                    Verb::OrTimeout => node.or_timeout_by(&clock, FAR),
                    Verb::DefaultOnTimeout => node.complete_on_timeout_by(value, &clock, FAR),
                    Verb::TimeOut => node.or_timeout_by(&clock, soon),
                    _ => node.complete_on_timeout_by(value, &clock, soon),
                });
                if matches!(step.verb, Verb::TimeOut | Verb::DefaultNow) {
                    self.clock.advance(soon);
                }
                "ok".into()
            }
        };
        if was_pending && step.verb != Verb::Go {
            self.uncounted.extend(&made.step.names);
        }
        outcome
    }

    fn reading(&self, number: Number) -> String {
        let Made {
            node,
            step,
            executor,
        } = &self.nodes[&number];
        let mut state = match node.try_get() {
            None => "pending".to_owned(),
            Some(outcome) => self.log.outcome(number, outcome),
        };
        if let Some(failure) = node.failure() {
            // The panic of a callback is kept with the failure that it was told.
            let own = (THROWN + number).to_string();
            let is_own = |panic: &future::StagePanic| panic.message() == Some(own.as_str());
            if step.verb == Verb::WhenComplete && failure.suppressed().iter().any(is_own) {
                state.push('+');
            }
        }
        let flags = [
            (node.is_complete(), 'd'),
            (node.is_cancelled(), 'c'),
            (node.is_failed(), 'e'),
            (executor.tasks.waiting() > 0, 'q'),
        ];
        let flags: String = flags
            .iter()
            .filter(|(is, _)| *is)
            .map(|(_, flag)| flag)
            .collect();
        let dependents = if self.uncounted.contains(&number) {
            "*".to_owned()
        } else {
            node.dependents().to_string()
        };
        let now = match node.clone().get_now_or(Some(-1)) {
            Ok(value) => word(value),
            Err(failure) if failure.is_cancelled() && !failure.is_propagated() => {
                "cancellation".into()
            }
            Err(_) => "completion".into(),
        };
        format!("{number}={state}/{flags}/{dependents}/{now}")
    }
}
