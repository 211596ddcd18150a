//! Batches: all results, or the first success.
//!
//! Whatever happens to the caller, a timeout, an interrupt, a rejection in the middle, a panic of its iterator, the
//! unfinished tasks that it has submitted are *abandoned*: cancelled and asked to stop. A guard does it, on every way out.
//!
//! An executor may block the submitter until there is room. The caller's deadline applies there, too
//! ([`execute_task_until`](Executor::execute_task_until)), and so does an interrupt: a rejection may mean either.

use super::completion::Completions;
use super::error::{Failure, InvokeAllError, InvokeAnyError, RejectReason};
use super::traits::Executor;
use crate::interrupt::{self, WaitError};
use crate::task::{CancelReason, TaskError, TaskHandle, TaskSpec};
use crate::time::Deadline;
use millpond_raw::user_code::{self, Kind};

/// The results of a batch, in the order of its tasks.
pub type Results<T> = Vec<Result<T, TaskError>>;

/// Handles of a batch. Unfinished tasks are abandoned when this drops.
struct Batch<T>(Vec<TaskHandle<T>>);

impl<T> Drop for Batch<T> {
    fn drop(&mut self) {
        self.0.iter().for_each(TaskHandle::abandon);
    }
}

/// Whether the deadline has passed by the executor's clock, which is not read without a deadline.
fn is_over<E: Executor + ?Sized>(executor: &E, deadline: Deadline) -> bool {
    deadline != Deadline::NEVER && deadline.has_passed(executor.clock().now())
}

/// The meaning of a rejection in the middle of a batch.
enum BatchRejection {
    /// The caller was interrupted while it waited for room.
    Interrupted,
    /// The deadline of the caller passed while it waited for room.
    TimedOut,
    Rejected(RejectReason),
}

impl BatchRejection {
    fn new<E: Executor + ?Sized>(executor: &E, reason: RejectReason, deadline: Deadline) -> Self {
        match reason {
            RejectReason::Interrupted => BatchRejection::Interrupted,
            reason if reason.is_saturated() && is_over(executor, deadline) => {
                BatchRejection::TimedOut
            }
            reason => BatchRejection::Rejected(reason),
        }
    }
}

pub(super) fn all<E, F, T>(
    executor: &E,
    spec: TaskSpec,
    tasks: impl IntoIterator<Item = F>,
    deadline: Deadline,
) -> Result<Results<T>, InvokeAllError>
where
    E: Executor + ?Sized,
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    interrupt::check()?;
    let spec = spec.clock_by_default(executor.clock());
    let mut batch = Batch(Vec::new());
    let mut too_late = 0;
    for task in tasks {
        if is_over(executor, deadline) {
            too_late += 1;
            continue;
        }
        let (task, handle) = spec.clone().build(task);
        user_code::check(Kind::Executor);
        let Err(rejected) = executor.execute_task_until(task, deadline) else {
            batch.0.push(handle);
            continue;
        };
        match BatchRejection::new(executor, rejected.reason, deadline) {
            BatchRejection::Interrupted => return Err(InvokeAllError::Interrupted),
            BatchRejection::TimedOut => too_late += 1,
            BatchRejection::Rejected(reason) => return Err(InvokeAllError::Rejected(reason)),
        }
    }
    let mut results = Vec::with_capacity(batch.0.len() + too_late);
    let mut deadline = deadline;
    for place in 0..batch.0.len() {
        let result = match batch.0[place].join_until(deadline) {
            Err(TaskError::Interrupted) => return Err(InvokeAllError::Interrupted),
            Err(TaskError::TimedOut) => {
                batch.0[place..].iter().for_each(TaskHandle::abandon);
                // All are finished now, so the rest of the loop does not wait.
                deadline = Deadline::NEVER;
                batch.0[place].join_until(deadline)
            }
            result => result,
        };
        results.push(result);
    }
    results.extend((0..too_late).map(|_| Err(TaskError::Cancelled(CancelReason::Abandoned))));
    Ok(results)
}

/// Abandons all pending tasks when it drops.
struct AbandonPending<'a, T: Send + 'static>(&'a Completions<T>);

impl<T: Send + 'static> Drop for AbandonPending<'_, T> {
    fn drop(&mut self) {
        for handle in self.0.take_pending() {
            handle.abandon();
        }
    }
}

/// The state of the candidates.
struct Race<X> {
    running: usize,
    failures: Vec<Failure<X>>,
}

impl<X> Race<X> {
    /// Records a result; returns the value if it is a success.
    fn record<T>(&mut self, result: Result<Result<T, X>, TaskError>) -> Option<T> {
        self.running -= 1;
        let failure = match result {
            Ok(Ok(value)) => return Some(value),
            Ok(Err(error)) => Failure::Returned(error),
            Err(error) => Failure::Task(error),
        };
        self.failures.push(failure);
        None
    }

    /// The error, when no candidate is left.
    fn into_error(mut self, timed_out: bool) -> InvokeAnyError<X> {
        if timed_out {
            return InvokeAnyError::TimedOut;
        }
        let ran = |failure: &Failure<X>| !matches!(failure, Failure::Rejected(_));
        if self.failures.iter().any(ran) {
            return InvokeAnyError::AllFailed(self.failures);
        }
        match self.failures.pop() {
            Some(Failure::Rejected(reason)) => InvokeAnyError::Rejected(reason),
            _ => InvokeAnyError::Empty,
        }
    }
}

pub(super) fn any<E, F, T, X>(
    executor: &E,
    spec: TaskSpec,
    tasks: impl IntoIterator<Item = F>,
    deadline: Deadline,
) -> Result<T, InvokeAnyError<X>>
where
    E: Executor + ?Sized,
    F: FnOnce() -> Result<T, X> + Send + 'static,
    T: Send + 'static,
    X: Send + 'static,
{
    interrupt::check()?;
    let completions = Completions::new();
    let _abandon = AbandonPending(&*completions);
    let mut race = Race {
        running: 0,
        failures: Vec::new(),
    };
    let mut timed_out = false;
    for task in tasks {
        if is_over(executor, deadline) {
            timed_out = true;
            break;
        }
        match completions.submit(executor, spec.clone(), task, deadline) {
            Ok(_) => race.running += 1,
            Err(rejected) => match BatchRejection::new(executor, rejected.reason, deadline) {
                BatchRejection::Interrupted => return Err(InvokeAnyError::Interrupted),
                BatchRejection::TimedOut => {
                    timed_out = true;
                    break;
                }
                BatchRejection::Rejected(reason) => race.failures.push(Failure::Rejected(reason)),
            },
        }
        // A fast executor may have a winner before the next candidate is submitted.
        while let Some(completed) = completions.poll() {
            if let Some(value) = race.record(completed.result) {
                return Ok(value);
            }
        }
    }
    while race.running > 0 {
        let completed = match completions.wait("executor.invoke_any", &executor.clock(), deadline) {
            Ok(completed) => completed,
            Err(WaitError::Interrupted) => return Err(InvokeAnyError::Interrupted),
            Err(WaitError::TimedOut) => return Err(InvokeAnyError::TimedOut),
        };
        if let Some(value) = race.record(completed.result) {
            return Ok(value);
        }
    }
    Err(race.into_error(timed_out))
}
