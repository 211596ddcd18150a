//! Batches: all of them, or any one of them.
//!
//! Whatever happens to the caller, a time-out, an interrupt, a refusal in the middle, a panic of
//! its iterator, what it has submitted and not finished is *abandoned*: cancelled and asked to stop.
//! A guard does it, so no way out forgets it.
//!
//! An executor may let the submitter wait for room. The caller's deadline holds there, too
//! ([`execute_until`](Executor::execute_until)), and so does an interrupt: a refusal may mean either.

use super::completion::Arrivals;
use super::error::{Failure, InvokeAllError, InvokeAnyError, RejectReason};
use super::traits::Executor;
use crate::interrupt::{self, WaitError};
use crate::task::{CancelReason, TaskError, TaskHandle, TaskSpec};
use crate::time::Deadline;
use millpond_raw::user_code::{self, Kind};

/// The results of a batch, in the order of its tasks.
pub type Results<T> = Vec<Result<T, TaskError>>;

/// Handles that are abandoned unless they are finished when this drops.
struct Batch<T>(Vec<TaskHandle<T>>);

impl<T> Drop for Batch<T> {
    fn drop(&mut self) {
        self.0.iter().for_each(TaskHandle::abandon);
    }
}

/// Whether the deadline has passed by the executor's clock; what never comes asks no clock.
fn is_over<E: Executor + ?Sized>(executor: &E, deadline: Deadline) -> bool {
    deadline != Deadline::NEVER && deadline.has_passed(executor.clock().now())
}

/// What a refusal in the middle of a batch means.
enum Refused {
    /// The caller was interrupted while it waited for room.
    Interrupted,
    /// The time of the caller was up while it waited for room.
    TimedOut,
    Rejected(RejectReason),
}

impl Refused {
    fn new<E: Executor + ?Sized>(executor: &E, reason: RejectReason, deadline: Deadline) -> Self {
        match reason {
            RejectReason::Interrupted => Refused::Interrupted,
            reason if reason.is_saturated() && is_over(executor, deadline) => Refused::TimedOut,
            reason => Refused::Rejected(reason),
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
        let Err(refused) = executor.execute_until(task, deadline) else {
            batch.0.push(handle);
            continue;
        };
        match Refused::new(executor, refused.reason, deadline) {
            Refused::Interrupted => return Err(InvokeAllError::Interrupted),
            Refused::TimedOut => too_late += 1,
            Refused::Rejected(reason) => return Err(InvokeAllError::Rejected(reason)),
        }
    }
    let mut results = Vec::with_capacity(batch.0.len() + too_late);
    let mut deadline = deadline;
    for place in 0..batch.0.len() {
        let result = match batch.0[place].join_until(deadline) {
            Err(TaskError::Interrupted) => return Err(InvokeAllError::Interrupted),
            Err(TaskError::TimedOut) => {
                batch.0[place..].iter().for_each(TaskHandle::abandon);
                // All are finished now, so the rest of the round does not wait.
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

/// Abandons all that has not arrived when it drops.
struct Rest<'a, T: Send + 'static>(&'a Arrivals<T>);

impl<T: Send + 'static> Drop for Rest<'_, T> {
    fn drop(&mut self) {
        for handle in self.0.give_up() {
            handle.abandon();
        }
    }
}

/// What has become of the candidates so far.
struct Race<X> {
    running: usize,
    failures: Vec<Failure<X>>,
}

impl<X> Race<X> {
    /// Notes an arrival; returns the value if it has won.
    fn judge<T>(&mut self, arrived: Result<Result<T, X>, TaskError>) -> Option<T> {
        self.running -= 1;
        let failure = match arrived {
            Ok(Ok(value)) => return Some(value),
            Ok(Err(error)) => Failure::Returned(error),
            Err(error) => Failure::Task(error),
        };
        self.failures.push(failure);
        None
    }

    /// Why there is no winner, when nobody runs any more.
    fn lost(mut self, timed_out: bool) -> InvokeAnyError<X> {
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
    let arrivals = Arrivals::new();
    let _rest = Rest(&*arrivals);
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
        match arrivals.submit(executor, spec.clone(), task, deadline) {
            Ok(_) => race.running += 1,
            Err(refused) => match Refused::new(executor, refused.reason, deadline) {
                Refused::Interrupted => return Err(InvokeAnyError::Interrupted),
                Refused::TimedOut => {
                    timed_out = true;
                    break;
                }
                Refused::Rejected(reason) => race.failures.push(Failure::Rejected(reason)),
            },
        }
        // An executor that is quick may have a winner before the next one is brought.
        while let Some(arrived) = arrivals.poll() {
            if let Some(value) = race.judge(arrived.result) {
                return Ok(value);
            }
        }
    }
    while race.running > 0 {
        let arrived = match arrivals.wait("executor.invoke_any", &executor.clock(), deadline) {
            Ok(arrived) => arrived,
            Err(WaitError::Interrupted) => return Err(InvokeAnyError::Interrupted),
            Err(WaitError::TimedOut) => return Err(InvokeAnyError::TimedOut),
        };
        if let Some(value) = race.judge(arrived.result) {
            return Ok(value);
        }
    }
    Err(race.lost(timed_out))
}
