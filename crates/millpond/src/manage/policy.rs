//! Choices that a thread pool's parameters have: what grows first, and what comes next under overload.

use super::{Choice, Value, ValueType};
use std::fmt;

/// What comes first when a task finds all workers of the core there.
///
/// ```
/// use millpond::manage::Growth;
/// use millpond::pool::ThreadPool;
///
/// let pool = ThreadPool::builder("mill").growth(Growth::ThreadsFirst).build()?;
/// assert_eq!(pool.growth().to_string(), "threads first");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Growth {
    /// The queue; more workers, up to the maximum, only when it is full. Java's rule.
    #[default]
    QueueFirst,
    /// More workers, up to the maximum, whenever none is free; then the queue. For services whose
    /// tasks block and whose callers wait.
    ThreadsFirst,
}

impl Growth {
    pub(crate) const TYPE: ValueType =
        ValueType::Choice(&[Choice::plain("queue_first"), Choice::plain("threads_first")]);

    /// The growth of a value of [`TYPE`](Growth::TYPE).
    pub(crate) fn of(value: &Value) -> Option<Self> {
        [Growth::QueueFirst, Growth::ThreadsFirst]
            .into_iter()
            .find(|growth| Value::from(*growth) == *value)
    }
}

impl From<Growth> for Value {
    fn from(growth: Growth) -> Self {
        Value::choice(match growth {
            Growth::QueueFirst => "queue_first",
            Growth::ThreadsFirst => "threads_first",
        })
    }
}

impl fmt::Display for Growth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Growth::QueueFirst => "queue first",
            Growth::ThreadsFirst => "threads first",
        })
    }
}

/// Which of the waiting tasks comes next while a pool is overloaded.
///
/// First in, first out is fair, and under overload it is the worst there is: every task waits as long
/// as callers are patient, and a task that runs at last is not wanted any more. Newest first serves the tasks
/// whose callers still wait, at once, and lets the others go.
///
/// A pool is overloaded when its [shedding](crate::pool::ThreadPool::shedding) says so; without that, when a
/// task has waited for more than half of the [longest wait](crate::pool::ThreadPool::max_queue_wait). As soon
/// as it is not, the order is first in, first out again.
///
/// ```
/// use millpond::manage::OverloadOrder;
///
/// assert_eq!(OverloadOrder::default(), OverloadOrder::Unchanged);
/// assert_eq!(OverloadOrder::NewestFirst.to_string(), "newest first");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OverloadOrder {
    /// The order of the queue.
    #[default]
    Unchanged,
    /// The task that came last. Tasks that have waited too long are shed as they would be otherwise,
    /// so no place is taken by a task whose turn never comes.
    NewestFirst,
}

impl OverloadOrder {
    pub(crate) const TYPE: ValueType =
        ValueType::Choice(&[Choice::plain("unchanged"), Choice::plain("newest_first")]);

    /// What is left for a queue that has an order of its own.
    pub(crate) const OF_THE_QUEUE: ValueType = ValueType::Choice(&[Choice::plain("unchanged")]);

    /// The order of a value of [`TYPE`](OverloadOrder::TYPE).
    pub(crate) fn of(value: &Value) -> Option<Self> {
        [OverloadOrder::Unchanged, OverloadOrder::NewestFirst]
            .into_iter()
            .find(|order| Value::from(*order) == *value)
    }
}

impl From<OverloadOrder> for Value {
    fn from(order: OverloadOrder) -> Self {
        Value::choice(match order {
            OverloadOrder::Unchanged => "unchanged",
            OverloadOrder::NewestFirst => "newest_first",
        })
    }
}

impl fmt::Display for OverloadOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OverloadOrder::Unchanged => "unchanged",
            OverloadOrder::NewestFirst => "newest first",
        })
    }
}
