//! Computes the trees of fork-join scripts on our pool. The counterpart of `java/Tree.java`.

use super::super::tree::{MODULUS, Node, Tree, Verb};
use millpond::forkjoin::{Completer, CountedCompleter, ForkJoinPool, RecursiveTask};
use millpond::task::TaskError;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The code of the error that a cancelled task is.
const CANCELLED: i64 = -1;

/// What a computation throws.
#[derive(Debug)]
pub(super) struct Thrown(pub(super) i64);

/// Where parts say that they run.
#[derive(Clone, Debug, Default)]
pub(super) struct Trace(Arc<Mutex<Vec<String>>>);

impl Trace {
    pub(super) fn visit(&self, what: String) {
        let mut visited = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        visited.push(what);
    }

    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A part of a computation, ready to run.
pub(super) struct Part {
    pub(super) tree: Tree,
    pub(super) pool: ForkJoinPool,
    /// Where it says that it runs, if its order matters.
    pub(super) trace: Option<Trace>,
}

fn throw(code: i64) -> ! {
    resume_unwind(Box::new(Thrown(code)))
}

/// What a join came to, as a value or as the code of an error.
pub(super) fn joined(result: Result<i64, TaskError>) -> Result<i64, i64> {
    result.map_err(|error| match error {
        TaskError::Panicked(panic) => code(&*panic.into_payload()),
        TaskError::Cancelled(_) => CANCELLED,
        _ => i64::MIN,
    })
}

fn code(payload: &(dyn std::any::Any + Send)) -> i64 {
    payload.downcast_ref::<Thrown>().map_or(i64::MAX, |it| it.0)
}

/// The values of all parts, each by its place.
fn sum(values: impl IntoIterator<Item = i64>) -> i64 {
    let values = (1..).zip(values);
    values.fold(0, |sum, (place, value)| (sum + place * value) % MODULUS)
}

impl RecursiveTask for Part {
    type Output = i64;

    fn compute(self) -> i64 {
        let Part { tree, pool, trace } = self;
        let visit = |what: String| trace.iter().for_each(|trace| trace.visit(what.clone()));
        let (verb, parts) = match tree {
            Tree::Value(value) => {
                visit(value.to_string());
                return value;
            }
            Tree::Error(code) => {
                visit(format!("!{code}"));
                throw(code);
            }
            Tree::Completers(node) => return complete(node, trace),
            Tree::Parts { verb, parts } => (verb, parts),
        };
        let parts = parts.into_iter().map(|tree| Part {
            tree,
            pool: pool.clone(),
            trace: trace.clone(),
        });
        let mut parts: Vec<Part> = parts.collect();
        match verb {
            Verb::Two => match <[Part; 2]>::try_from(parts) {
                Ok(two) => sum(Part::invoke_all(two)),
                Err(_) => unreachable!("a tree that was read has two parts here"),
            },
            Verb::All => sum(Part::invoke_all_vec(parts)),
            Verb::Fork(order) => {
                let mut handles: Vec<_> = parts.into_iter().map(|part| Some(part.fork())).collect();
                let all = order.into_iter().filter_map(|index| handles[index].take());
                let all: Vec<_> = all.map(|handle| joined(handle.join())).collect();
                all_of(all)
            }
            Verb::Early(order) => {
                let mut handles: Vec<_> = parts.into_iter().map(|part| Some(part.fork())).collect();
                let all = order.into_iter().filter_map(|index| handles[index].take());
                sum(all.map(|handle| joined(handle.join()).unwrap_or_else(|code| throw(code))))
            }
            Verb::Try => {
                let part = parts.remove(0);
                match catch_unwind(AssertUnwindSafe(|| part.compute())) {
                    Ok(value) => value,
                    Err(payload) => 7 * code(&*payload),
                }
            }
            Verb::Detach => {
                parts.into_iter().for_each(|part| drop(part.fork()));
                0
            }
            Verb::Cancel => {
                let handle = parts.remove(0).fork();
                handle.cancel();
                all_of(vec![joined(handle.join())])
            }
            Verb::Quiesce => {
                let handles: Vec<_> = parts.into_iter().map(RecursiveTask::fork).collect();
                pool.help_quiesce();
                let all = handles.into_iter().map(|handle| joined(handle.join()));
                all_of(all.collect())
            }
        }
    }
}

/// All values, or the first error.
fn all_of(results: Vec<Result<i64, i64>>) -> i64 {
    match results.into_iter().collect::<Result<Vec<i64>, i64>>() {
        Ok(values) => sum(values),
        Err(code) => throw(code),
    }
}

fn complete(node: Node, trace: Option<Trace>) -> i64 {
    let trace = trace.filter(|_| node.is_traced());
    let is_search = node.has('q');
    let root = Counted::new(node, trace).invoke();
    let result = if is_search { root.found } else { root.total };
    result.into_inner() % MODULUS
}

/// A node of a computation with counted completers.
struct Counted {
    node: Node,
    trace: Option<Trace>,
    total: AtomicI64,
    found: AtomicI64,
}

impl Counted {
    fn new(node: Node, trace: Option<Trace>) -> Self {
        Counted {
            total: AtomicI64::new(node.id),
            found: AtomicI64::new(0),
            node,
            trace,
        }
    }

    fn visit(&self, what: impl FnOnce() -> String) {
        if let Some(trace) = &self.trace {
            trace.visit(what());
        }
    }

    fn add_to(&self, parent: Option<&Completer<'_, '_, Self>>) {
        if let Some(parent) = parent {
            let total = self.total.load(Ordering::SeqCst);
            parent.total.fetch_add(total, Ordering::SeqCst);
        }
    }
}

impl CountedCompleter for Counted {
    fn compute(this: &Completer<'_, '_, Self>) {
        let node = &this.node;
        this.visit(|| format!("c{}", node.id));
        let parts = node.parts.iter();
        let parts = parts.map(|part| Counted::new(part.clone(), this.trace.clone()));
        let mut parts: Vec<Counted> = parts.collect();
        let count = u32::try_from(parts.len()).unwrap_or(0);
        match node.forks {
            'f' => parts.into_iter().for_each(|part| this.fork_child(part)),
            's' => {
                this.set_pending(count);
                parts.into_iter().for_each(|part| this.child(part).fork());
            }
            'a' => {
                this.add_pending(count);
                parts.into_iter().for_each(|part| this.child(part).fork());
            }
            _ => {
                let last = parts.pop().map(|last| this.child(last));
                this.set_pending(count - 1);
                parts.into_iter().for_each(|part| this.child(part).fork());
                last.iter().for_each(Counted::compute);
            }
        }
        match node.ends {
            't' => this.try_complete(),
            'p' => this.propagate_completion(),
            'c' => this.complete(),
            'x' => throw(node.id),
            'q' => {
                let found = &this.root().found;
                let _ = found.compare_exchange(0, node.id, Ordering::SeqCst, Ordering::SeqCst);
                this.complete_root();
            }
            'r' => {
                let mut next = this.first_complete();
                while let Some(here) = next {
                    here.visit(|| format!("r{}", here.node.id));
                    here.add_to(here.completer());
                    next = here.next_complete();
                }
            }
            _ => {}
        }
    }

    fn on_completion(this: &Completer<'_, '_, Self>, caller: &Completer<'_, '_, Self>) {
        this.visit(|| format!("o{}<{}", this.node.id, caller.node.id));
        this.add_to(this.completer());
    }
}
