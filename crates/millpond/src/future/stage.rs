//! Stages: the bodies of cells that compute something from one source.
//!
//! Every operation on one source, from `map` to `exceptionally_compose`, is a closure from the outcome of the source to what
//! comes [next](Next): an outcome, or another completable to wait for. There are two bodies that call it: [`InPlace`], on
//! the thread that completes the source, and [`OnExecutor`].
//!
//! A panic of the closure is the failure of the stage. If the cell is completed in another way the closure is dropped; and
//! if the chain is linked, the source is cancelled, see [`cancel_upstream`].

use super::completable::Completable;
use super::error::{Cause, Outcome, StagePanic};
use super::meta::StageMeta;
use crate::executor::{Executor, RejectReason, Rejected, why_dropped};
use crate::task::{self, CancelReason, Panic, Task, TaskHandle, TaskSpec};
use millpond_raw::catch_panic;
use millpond_raw::forkjoin::Surround;
use millpond_raw::promise::{self, Body, Held, Producer, Queue, Reader, Upstream};
use millpond_raw::sync::local;
use millpond_raw::user_code::{self, Kind};
use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

pub(super) type ReaderOf<T, E> = Reader<Outcome<T, E>, StageMeta>;
pub(super) type ProducerOf<T, E> = Producer<Outcome<T, E>, StageMeta>;
type Claimed<T, E, B> = promise::Claimed<Outcome<T, E>, StageMeta, B>;
type HeldOf<T, E, B> = Held<Outcome<T, E>, StageMeta, B>;

/// What a stage comes to.
pub(super) enum Next<T, E> {
    Done(Outcome<T, E>),
    /// It is what this will be.
    Wait(Completable<T, E>),
}

/// Calls the closure of a stage. Its panic is a failure of the stage.
#[inline]
pub(super) fn call<T, E, R>(
    meta: &StageMeta,
    f: impl FnOnce() -> R,
    done: impl FnOnce(Outcome<T, E>) -> R,
) -> R {
    user_code::check(Kind::Closure);
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(result) => result,
        Err(payload) => done(Err(panicked(meta, payload))),
    }
}

#[cold]
pub(super) fn panicked<E>(
    meta: &StageMeta,
    payload: Box<dyn Any + Send>,
) -> super::CompletionError<E> {
    meta.error(Cause::Panicked(StagePanic::new(Panic::new(payload))))
}

/// Runs something of the user's: clones of values, and destructors.
pub(super) fn contain<R>(f: impl FnOnce() -> R) -> Result<R, Box<dyn Any + Send>> {
    user_code::check(Kind::Closure);
    catch_unwind(AssertUnwindSafe(f))
}

/// Collects the outcome of a stage from its sources.
#[inline]
pub(super) fn gather<T, E>(meta: &StageMeta, f: impl FnOnce() -> Outcome<T, E>) -> Outcome<T, E> {
    contain(f).unwrap_or_else(|payload| Err(panicked(meta, payload)))
}

/// Runs `f` in the context of the thread that has made the stage.
#[inline]
fn in_context<R>(context: Option<Box<dyn Surround>>, f: impl FnOnce() -> R) -> R {
    let Some(context) = context else {
        return task::outside(f);
    };
    let (mut f, mut result) = (Some(f), None);
    context.enclose(&mut || result = f.take().map(|f| f()));
    result.expect("a context runs its body")
}

/// The value of a source that is complete.
#[inline]
pub(super) fn take<T, E>(source: ReaderOf<T, E>) -> Outcome<T, E> {
    // The clone of a value is the user's.
    match source.take() {
        Ok(outcome) => outcome,
        Err(_) => unreachable!("a link fires when its source is complete"),
    }
}

/// As the outcome of a stage further down.
#[inline]
pub(super) fn relayed<T, E>(outcome: Outcome<T, E>) -> Outcome<T, E> {
    outcome.map_err(super::CompletionError::propagated)
}

/// Completes the cell, or drops the outcome if it was completed in another way.
#[inline]
fn finish<T, E, B>(claimed: Claimed<T, E, B>, outcome: Outcome<T, E>, queue: &mut Queue)
where
    T: Send + 'static,
    E: Send + Sync + 'static,
    B: Body<Outcome<T, E>, StageMeta>,
{
    if let Err(unwanted) = claimed.complete(outcome, queue) {
        catch_panic::drop(unwanted);
    }
}

/// A stage that runs on the thread that completes its source.
pub(super) enum InPlace<S, SE, U, E, G> {
    First {
        source: ReaderOf<S, SE>,
        g: G,
        context: Option<Box<dyn Surround>>,
    },
    /// It is what this will be.
    Second(ReaderOf<U, E>),
}

impl<S, SE, U, E, G> Body<Outcome<U, E>, StageMeta> for InPlace<S, SE, U, E, G>
where
    S: Send + 'static,
    SE: Send + Sync + 'static,
    U: Send + 'static,
    E: Send + Sync + 'static,
    G: FnOnce(Outcome<S, SE>, &StageMeta) -> Next<U, E> + Send + 'static,
{
    #[inline]
    fn run(self, _: Option<usize>, claimed: Claimed<U, E, Self>, queue: &mut Queue) {
        let (source, g, context) = match self {
            InPlace::First { source, g, context } => (source, g, context),
            InPlace::Second(inner) => return finish(claimed, relayed(take(inner)), queue),
        };
        let meta = claimed.meta();
        let next = in_context(context, || call(meta, || g(take(source), meta), Next::Done));
        match next {
            Next::Done(outcome) => finish(claimed, outcome, queue),
            Next::Wait(inner) => {
                let inner = inner.into_reader();
                if inner.is_complete() {
                    return finish(claimed, relayed(take(inner)), queue);
                }
                claimed.wait_again(InPlace::Second(inner), queue);
            }
        }
    }

    fn sources(&self, see: &mut dyn FnMut(Upstream<'_, StageMeta>)) {
        match self {
            InPlace::First { source, .. } => see(source.upstream()),
            InPlace::Second(inner) => see(inner.upstream()),
        }
    }

    fn discard(self, meta: &StageMeta, _: &mut Queue) {
        match &self {
            InPlace::First { source, .. } => cancel_upstream(meta, source),
            InPlace::Second(inner) => cancel_upstream(meta, inner),
        }
        catch_panic::drop(self);
    }
}

/// A stage that runs on an executor.
pub(super) enum OnExecutor<S, SE, U, E, G, X> {
    First {
        source: ReaderOf<S, SE>,
        g: G,
        /// Whether the closure is wanted for this outcome. If not, no task is submitted.
        wants: fn(&Outcome<S, SE>) -> bool,
        executor: X,
        spec: TaskSpec,
    },
    /// The task is queued, or runs.
    Computing(Computing),
    Second(ReaderOf<U, E>),
}

/// The task that computes a value.
pub(super) struct Computing(TaskHandle<()>);

impl Computing {
    /// The value is not wanted any more.
    fn stop(&self, meta: &StageMeta) {
        let _ = catch_panic::call(|| {
            if meta.is_linked() {
                self.0.interrupt();
            } else if !self.0.is_started() {
                self.0.cancel();
            }
        });
    }
}

impl<S, SE, U, E, G, X> Body<Outcome<U, E>, StageMeta> for OnExecutor<S, SE, U, E, G, X>
where
    S: Send + 'static,
    SE: Send + Sync + 'static,
    U: Send + 'static,
    E: Send + Sync + 'static,
    G: FnOnce(Outcome<S, SE>, &StageMeta) -> Next<U, E> + Send + 'static,
    X: Executor + 'static,
{
    fn run(self, _: Option<usize>, claimed: Claimed<U, E, Self>, queue: &mut Queue) {
        let (source, g, wants, executor, spec) = match self {
            OnExecutor::First {
                source,
                g,
                wants,
                executor,
                spec,
            } => (source, g, wants, executor, spec),
            OnExecutor::Second(inner) => return finish(claimed, relayed(take(inner)), queue),
            OnExecutor::Computing(_) => return,
        };
        let meta = claimed.meta();
        let source = match contain(|| take(source)) {
            Ok(outcome) => outcome,
            Err(payload) => {
                catch_panic::drop(g);
                let failure = panicked(meta, payload);
                return finish(claimed, Err(failure), queue);
            }
        };
        if !wants(&source) {
            let next = call(meta, || g(source, meta), Next::Done);
            let Next::Done(outcome) = next else {
                unreachable!("a closure that is not wanted passes the outcome on")
            };
            return finish(claimed, outcome, queue);
        }
        let compute = move |meta: &StageMeta| g(source, meta);
        let task = claimed.hold(
            |held| {
                let (task, handle, _) =
                    Computation::task(held, compute, |f, meta| f(meta), spec, &executor);
                (OnExecutor::Computing(Computing(handle)), task)
            },
            queue,
        );
        if let Err(rejected) = execute(&executor, task) {
            reject(rejected);
        }
    }

    fn sources(&self, see: &mut dyn FnMut(Upstream<'_, StageMeta>)) {
        match self {
            OnExecutor::First { source, .. } => see(source.upstream()),
            OnExecutor::Computing(_) => {}
            OnExecutor::Second(inner) => see(inner.upstream()),
        }
    }

    fn discard(self, meta: &StageMeta, _: &mut Queue) {
        match &self {
            OnExecutor::First { source, .. } => cancel_upstream(meta, source),
            OnExecutor::Computing(computing) => computing.stop(meta),
            OnExecutor::Second(inner) => cancel_upstream(meta, inner),
        }
        catch_panic::drop(self);
    }
}

impl<S, SE, U, E, G, X> WaitsAgain<U, E> for OnExecutor<S, SE, U, E, G, X>
where
    OnExecutor<S, SE, U, E, G, X>: Body<Outcome<U, E>, StageMeta>,
{
    fn second(inner: ReaderOf<U, E>) -> Self {
        OnExecutor::Second(inner)
    }
}

/// The body of a cell that a task computes, without a source.
pub(super) struct Supplied(pub(super) Computing);

impl<T, E> Body<Outcome<T, E>, StageMeta> for Supplied
where
    T: Send + 'static,
    E: Send + Sync + 'static,
{
    fn run(self, _: Option<usize>, _: Claimed<T, E, Self>, _: &mut Queue) {}

    fn sources(&self, _: &mut dyn FnMut(Upstream<'_, StageMeta>)) {}

    fn discard(self, meta: &StageMeta, _: &mut Queue) {
        self.0.stop(meta);
    }
}

impl<T: Send + 'static, E: Send + Sync + 'static> WaitsAgain<T, E> for Supplied {
    fn second(_: ReaderOf<T, E>) -> Self {
        unreachable!("a supplier returns a value")
    }
}

/// A body that can become one that waits for a completable.
pub(super) trait WaitsAgain<T, E>: Body<Outcome<T, E>, StageMeta> {
    fn second(inner: ReaderOf<T, E>) -> Self;
}

/// The closure of the task that computes the value of a cell.
struct Computation<T, E, B, F>
where
    T: Send + 'static,
    E: Send + Sync + 'static,
    B: WaitsAgain<T, E>,
{
    held: Option<HeldOf<T, E, B>>,
    f: Option<F>,
    call: fn(F, &StageMeta) -> Next<T, E>,
}

/// What is special about a task that was rejected, while its closure is dropped or called.
enum Rejecting {
    /// The cell fails with this.
    Fail(Arc<RejectReason>),
    /// The closure is wanted back.
    Reclaim(Option<Box<dyn Any>>),
}

local! {
    static REJECTING: RefCell<Option<Rejecting>> = RefCell::new(None);
}

impl<T, E, B, F> Computation<T, E, B, F>
where
    T: Send + 'static,
    E: Send + Sync + 'static,
    B: WaitsAgain<T, E>,
    F: Send + 'static,
{
    fn task(
        held: HeldOf<T, E, B>,
        f: F,
        call: fn(F, &StageMeta) -> Next<T, E>,
        spec: TaskSpec,
        executor: &impl Executor,
    ) -> (Task, TaskHandle<()>, Reclaim<F>) {
        let computation = Computation {
            held: Some(held),
            f: Some(f),
            call,
        };
        let closure = move || computation.run();
        let reclaim = reclaimer(&closure);
        let spec = spec.clock_by_default(executor.clock());
        let (task, handle) = spec.build(closure);
        (task, handle, reclaim)
    }

    /// Gives the closure back, if it was rejected and is wanted.
    fn give_back(&mut self) -> bool {
        let wanted = REJECTING.try_with(|rejecting| match &mut *rejecting.borrow_mut() {
            Some(Rejecting::Reclaim(closure)) => {
                *closure = self.f.take().map(|f| Box::new(f) as Box<dyn Any>);
                true
            }
            _ => false,
        });
        wanted.unwrap_or(false)
    }

    fn run(mut self) {
        if self.give_back() {
            return;
        }
        let (Some(held), Some(f)) = (self.held.take(), self.f.take()) else {
            return;
        };
        if held.is_over() {
            return catch_panic::drop(f);
        }
        let own = self.call;
        let next = promise::enter(held.address(), || {
            call(held.meta(), || own(f, held.meta()), Next::Done)
        });
        let Some((body, claimed)) = held.claim() else {
            return catch_panic::drop(next);
        };
        drop(body);
        let mut queue = Queue::new();
        match next {
            Next::Done(outcome) => finish(claimed, outcome, &mut queue),
            Next::Wait(inner) => {
                let inner = inner.into_reader();
                if inner.is_complete() {
                    finish(claimed, relayed(take(inner)), &mut queue);
                } else {
                    claimed.wait_again(B::second(inner), &mut queue);
                }
            }
        }
        queue.run();
    }
}

/// The task was dropped unrun.
impl<T, E, B, F> Drop for Computation<T, E, B, F>
where
    T: Send + 'static,
    E: Send + Sync + 'static,
    B: WaitsAgain<T, E>,
{
    fn drop(&mut self) {
        let Some(held) = self.held.take() else {
            return;
        };
        let rejecting = REJECTING.try_with(|rejecting| match &mut *rejecting.borrow_mut() {
            Some(Rejecting::Fail(reason)) => Cause::Rejected(Arc::clone(reason)),
            Some(Rejecting::Reclaim(_)) => Cause::Cancelled(CancelReason::Rejected),
            None => Cause::Cancelled(why_dropped()),
        });
        let cause = rejecting.unwrap_or(Cause::Cancelled(CancelReason::Dropped));
        if let Some((body, claimed)) = held.claim() {
            drop(body);
            let failure = claimed.meta().error(cause);
            let mut queue = Queue::new();
            finish(claimed, Err(failure), &mut queue);
            queue.run();
        }
        catch_panic::drop(self.f.take());
    }
}

/// Returns what was set before.
fn set_rejecting(rejecting: Option<Rejecting>) -> Option<Rejecting> {
    let mut rejecting = Some(rejecting);
    let outer = REJECTING.try_with(|own| own.replace(rejecting.take().flatten()));
    outer.ok().flatten()
}

type Reclaim<F> = fn(Rejected<Task>) -> Rejected<F>;

fn reclaimer<C: FnOnce() + 'static, F: 'static>(_: &C) -> Reclaim<F> {
    |rejected| {
        let Rejected { task, reason } = rejected.reclaim::<C>();
        let outer = set_rejecting(Some(Rejecting::Reclaim(None)));
        task();
        let Some(Rejecting::Reclaim(Some(closure))) = set_rejecting(outer) else {
            panic!("an executor that rejects a task gives that very task back")
        };
        let closure = closure.downcast().expect("the closure of that task");
        Rejected::new(*closure, reason)
    }
}

fn execute(executor: &impl Executor, task: Task) -> Result<(), Rejected<Task>> {
    user_code::check(Kind::Executor);
    let answer = catch_unwind(AssertUnwindSafe(|| executor.execute_task(task)));
    // If it has panicked it has dropped the task, which fails the stage.
    answer.unwrap_or_else(|payload| {
        catch_panic::drop(payload);
        Ok(())
    })
}

/// Fails the stage of a task that was rejected.
#[cold]
fn reject(rejected: Rejected<Task>) {
    let Rejected { task, reason } = rejected;
    let outer = set_rejecting(Some(Rejecting::Fail(Arc::new(reason))));
    catch_panic::drop(task);
    drop(set_rejecting(outer));
}

/// A cell that a task computes on this executor.
pub(super) fn supply<T, E, F>(
    executor: &impl Executor,
    spec: TaskSpec,
    f: F,
    call: fn(F, &StageMeta) -> Next<T, E>,
) -> Result<ReaderOf<T, E>, Rejected<F>>
where
    T: Send + 'static,
    E: Send + Sync + 'static,
    F: Send + 'static,
{
    let (mut queue, meta) = (Queue::new(), StageMeta::new(spec.location()));
    if let Some(name) = spec.shared_name() {
        meta.set_name(name);
    }
    let (reader, (task, reclaim)) = promise::held(
        meta,
        |held| {
            let (task, handle, reclaim) = Computation::task(held, f, call, spec, executor);
            (Supplied(Computing(handle)), (task, reclaim))
        },
        &mut queue,
    );
    match execute(executor, task) {
        Ok(()) => Ok(reader),
        Err(rejected) => Err(reclaim(rejected)),
    }
}

/// The outcome of a cell that was rejected by the executor.
pub(super) fn rejected<E>(meta: &StageMeta, reason: RejectReason) -> super::CompletionError<E> {
    meta.error(Cause::Rejected(Arc::new(reason)))
}

type Job = Box<dyn FnOnce()>;

local! {
    /// What is to be cancelled next, if this thread cancels a linked chain: a loop, not a recursion.
    static CANCELLING: RefCell<Option<Vec<Job>>> = RefCell::new(None);
}

/// A stage with this metadata does not need its source any more: if it is linked the source is cancelled, and what that
/// waits for. A source that nobody else knows is cancelled in any case.
pub(super) fn cancel_upstream<T, E>(meta: &StageMeta, source: &ReaderOf<T, E>)
where
    T: Send + 'static,
    E: Send + Sync + 'static,
{
    let is_linked = meta.is_linked();
    if source.is_complete() || !(is_linked || source.meta().is_inner()) {
        return;
    }
    let source = source.producer();
    cancel_later(Box::new(move || {
        if is_linked {
            source.meta().link();
        }
        let cancelled = source
            .meta()
            .error(Cause::Cancelled(CancelReason::Abandoned));
        let mut queue = Queue::new();
        let _ = source.complete(Err(cancelled), &mut queue);
        queue.run();
    }));
}

#[cold]
fn cancel_later(job: Job) {
    let mut first = Some(job);
    let _ = CANCELLING.try_with(|jobs| match &mut *jobs.borrow_mut() {
        Some(jobs) => jobs.extend(first.take()),
        outermost => *outermost = Some(Vec::new()),
    });
    let Some(mut job) = first else { return };
    loop {
        job();
        let next = CANCELLING.try_with(|jobs| {
            let mut jobs = jobs.borrow_mut();
            let next = jobs.as_mut().and_then(Vec::pop);
            if next.is_none() {
                *jobs = None;
            }
            next
        });
        match next {
            Ok(Some(next)) => job = next,
            _ => return,
        }
    }
}
