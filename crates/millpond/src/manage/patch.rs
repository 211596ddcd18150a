//! Parameters that change together, and what can be wrong with them.

use super::{Growth, OverloadOrder};
use crate::adapt::CoDel;
use crate::queue::CapacityError;
use std::error::Error;
use std::fmt;
use std::time::Duration;

/// Parameters to change; those that are `None` stay as they are.
///
/// ```
/// use millpond::manage::Patch;
/// use millpond::pool::ThreadPool;
///
/// let pool = ThreadPool::builder("mill").core(1).max(2).build()?;
/// pool.apply(&Patch::new().core(4).max(8).capacity(64))?;
/// assert_eq!((pool.core(), pool.max(), pool.capacity()), (4, 8, Some(64)));
///
/// // All or nothing: the capacity stays, because max is below core.
/// let error = pool.apply(&Patch::new().max(2).capacity(7)).unwrap_err();
/// assert!(error.to_string().contains("core 4 is above max 2"));
/// assert_eq!((pool.max(), pool.capacity()), (8, Some(64)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "a patch does nothing until it is applied"]
#[non_exhaustive]
pub struct Patch {
    /// How many workers are kept.
    pub core: Option<usize>,
    /// How many workers there may be.
    pub max: Option<usize>,
    /// How long an idle worker beyond the core stays.
    pub keep_alive: Option<Duration>,
    /// Whether idle workers of the core leave, too.
    pub core_may_time_out: Option<bool>,
    /// What comes first, the queue or more threads.
    pub growth: Option<Growth>,
    /// How many tasks may wait.
    pub capacity: Option<usize>,
    /// How long a task may wait; `Some(None)` is for ever.
    pub max_queue_wait: Option<Option<Duration>>,
    /// When it is overloaded, and sheds tasks; `Some(None)` is never.
    pub shedding: Option<Option<CoDel>>,
    /// Which task comes next while it is overloaded.
    pub overload_order: Option<OverloadOrder>,
}

impl Patch {
    /// A patch that changes nothing.
    ///
    /// ```
    /// use millpond::manage::Patch;
    ///
    /// assert_eq!(Patch::new(), Patch::default());
    /// assert_eq!(Patch::new().core(2).max, None); // what is not named stays
    /// ```
    pub fn new() -> Self {
        Patch::default()
    }

    /// How many workers are kept.
    ///
    /// ```
    /// use millpond::manage::Patch;
    /// use millpond::pool::ThreadPool;
    ///
    /// let pool = ThreadPool::builder("mill").core(1).max(4).build()?;
    /// pool.apply(&Patch::new().core(2))?;
    /// assert_eq!((pool.core(), pool.max()), (2, 4));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn core(mut self, core: usize) -> Self {
        self.core = Some(core);
        self
    }

    /// How many workers there may be.
    ///
    /// ```
    /// use millpond::manage::Patch;
    /// use millpond::pool::ThreadPool;
    ///
    /// let pool = ThreadPool::builder("mill").core(1).max(4).build()?;
    /// pool.apply(&Patch::new().max(8))?;
    /// assert_eq!((pool.core(), pool.max()), (1, 8));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn max(mut self, max: usize) -> Self {
        self.max = Some(max);
        self
    }

    /// How long an idle worker beyond the core stays.
    ///
    /// ```
    /// use millpond::manage::Patch;
    /// use millpond::pool::ThreadPool;
    /// use std::time::Duration;
    ///
    /// let pool = ThreadPool::builder("mill").build()?;
    /// pool.apply(&Patch::new().keep_alive(Duration::from_secs(5)))?;
    /// assert_eq!(pool.keep_alive(), Duration::from_secs(5));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn keep_alive(mut self, keep_alive: Duration) -> Self {
        self.keep_alive = Some(keep_alive);
        self
    }

    /// Whether idle workers of the core leave, too.
    ///
    /// ```
    /// use millpond::manage::Patch;
    /// use millpond::pool::ThreadPool;
    ///
    /// let pool = ThreadPool::builder("mill").build()?;
    /// pool.apply(&Patch::new().core_may_time_out(true))?;
    /// assert!(pool.core_may_time_out());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn core_may_time_out(mut self, may: bool) -> Self {
        self.core_may_time_out = Some(may);
        self
    }

    /// What comes first, the queue or more threads.
    ///
    /// ```
    /// use millpond::manage::{Growth, Patch};
    /// use millpond::pool::ThreadPool;
    ///
    /// let pool = ThreadPool::builder("mill").core(1).build()?;
    /// pool.apply(&Patch::new().max(4).growth(Growth::ThreadsFirst))?;
    /// assert_eq!((pool.max(), pool.growth()), (4, Growth::ThreadsFirst));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn growth(mut self, growth: Growth) -> Self {
        self.growth = Some(growth);
        self
    }

    /// How many tasks may wait.
    ///
    /// ```
    /// use millpond::manage::Patch;
    /// use millpond::pool::{Queue, ThreadPool};
    ///
    /// let pool = ThreadPool::builder("mill").queue(Queue::bounded(16)).build()?;
    /// pool.apply(&Patch::new().capacity(64))?;
    /// assert_eq!(pool.capacity(), Some(64));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn capacity(mut self, capacity: usize) -> Self {
        self.capacity = Some(capacity);
        self
    }

    /// How long a task may wait; `None` is for ever.
    ///
    /// ```
    /// use millpond::manage::Patch;
    /// use millpond::pool::ThreadPool;
    /// use std::time::Duration;
    ///
    /// let pool = ThreadPool::builder("mill").max_queue_wait(Duration::from_secs(1)).build()?;
    /// pool.apply(&Patch::new().max_queue_wait(Duration::from_secs(3)))?;
    /// assert_eq!(pool.max_queue_wait(), Some(Duration::from_secs(3)));
    /// pool.apply(&Patch::new().max_queue_wait(None))?;
    /// assert_eq!(pool.max_queue_wait(), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn max_queue_wait(mut self, most: impl Into<Option<Duration>>) -> Self {
        self.max_queue_wait = Some(most.into());
        self
    }

    /// When it is overloaded, and sheds tasks; `None` is never.
    ///
    /// ```
    /// use millpond::manage::{CoDel, Patch};
    /// use millpond::pool::ThreadPool;
    ///
    /// let pool = ThreadPool::builder("mill").build()?;
    /// pool.apply(&Patch::new().shedding(CoDel::default()))?;
    /// assert_eq!(pool.shedding(), Some(CoDel::default()));
    /// pool.apply(&Patch::new().shedding(None))?;
    /// assert_eq!(pool.shedding(), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shedding(mut self, shedding: impl Into<Option<CoDel>>) -> Self {
        self.shedding = Some(shedding.into());
        self
    }

    /// Which task comes next while it is overloaded.
    ///
    /// ```
    /// use millpond::manage::{CoDel, OverloadOrder, Patch};
    /// use millpond::pool::ThreadPool;
    ///
    /// let pool = ThreadPool::builder("mill").build()?;
    /// let newest_first = Patch::new().overload_order(OverloadOrder::NewestFirst);
    /// pool.apply(&newest_first).unwrap_err(); // nothing says what an overload is
    /// pool.apply(&newest_first.shedding(CoDel::default()))?;
    /// assert_eq!(pool.overload_order(), OverloadOrder::NewestFirst);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn overload_order(mut self, order: OverloadOrder) -> Self {
        self.overload_order = Some(order);
        self
    }
}

/// The parameters that must fit each other: whoever changes one of them checks them all.
///
/// ```
/// use millpond::manage::{Patch, Sizes};
/// use std::time::Duration;
///
/// let keep_alive = Duration::from_secs(60);
/// let mill = Sizes { core: 2, max: 4, keep_alive, core_may_time_out: false };
/// assert!(mill.problems().is_empty());
/// assert!(!mill.with(&Patch::new().core(5)).problems().is_empty());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// How many workers are kept.
    pub core: usize,
    /// How many workers there may be.
    pub max: usize,
    /// How long an idle worker beyond the core stays.
    pub keep_alive: Duration,
    /// Whether idle workers of the core leave, too.
    pub core_may_time_out: bool,
}

impl Sizes {
    /// The most workers that can be counted.
    ///
    /// ```
    /// use millpond::manage::Sizes;
    /// use millpond::pool::ThreadPool;
    ///
    /// let too_many = ThreadPool::builder("mill").core(1).max(Sizes::MOST_WORKERS + 1);
    /// assert_eq!(too_many.build().unwrap_err().problems()[0].field(), "max");
    /// ```
    pub const MOST_WORKERS: usize = (1 << 29) - 1;

    /// These sizes with what the patch changes.
    ///
    /// ```
    /// use millpond::manage::{Patch, Sizes};
    /// use std::time::Duration;
    ///
    /// let keep_alive = Duration::from_secs(60);
    /// let mill = Sizes { core: 2, max: 4, keep_alive, core_may_time_out: false };
    /// let larger = mill.with(&Patch::new().max(8));
    /// assert_eq!(larger, Sizes { max: 8, ..mill });
    /// ```
    pub fn with(self, patch: &Patch) -> Self {
        Sizes {
            core: patch.core.unwrap_or(self.core),
            max: patch.max.unwrap_or(self.max),
            keep_alive: patch.keep_alive.unwrap_or(self.keep_alive),
            core_may_time_out: patch.core_may_time_out.unwrap_or(self.core_may_time_out),
        }
    }

    /// All that is wrong with them.
    ///
    /// ```
    /// use millpond::manage::{Invalid, Sizes};
    /// use std::time::Duration;
    ///
    /// let keep_alive = Duration::ZERO;
    /// let mill = Sizes { core: 9, max: 4, keep_alive, core_may_time_out: true };
    /// let both = [Invalid::CoreAboveMax { core: 9, max: 4 }, Invalid::NoKeepAlive];
    /// assert_eq!(mill.problems(), both);
    /// ```
    pub fn problems(&self) -> Vec<Invalid> {
        let mut problems = Vec::new();
        let Sizes { core, max, .. } = *self;
        if max == 0 {
            problems.push(Invalid::NoWorkers);
        } else if max > Sizes::MOST_WORKERS {
            problems.push(Invalid::TooManyWorkers { max });
        } else if core > max {
            problems.push(Invalid::CoreAboveMax { core, max });
        }
        if self.core_may_time_out && self.keep_alive.is_zero() {
            problems.push(Invalid::NoKeepAlive);
        }
        problems
    }
}

/// One thing that is wrong with a parameter.
///
/// ```
/// use millpond::manage::Invalid;
/// use millpond::pool::ThreadPool;
///
/// let error = ThreadPool::builder("mill").core(0).max(0).build().unwrap_err();
/// assert_eq!(error.problems(), [Invalid::NoWorkers]);
/// let advice = "max 0 would let no task ever run: allow at least one worker";
/// assert_eq!(error.problems()[0].to_string(), advice);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Invalid {
    /// No worker at all would be allowed.
    NoWorkers,
    /// More workers than can be counted.
    TooManyWorkers {
        /// What was asked for.
        max: usize,
    },
    /// More workers would be kept than are allowed.
    CoreAboveMax {
        /// The core that was asked for, or that is there.
        core: usize,
        /// The maximum that was asked for, or that is there.
        max: usize,
    },
    /// Core workers would leave at once and be started again for every task.
    NoKeepAlive,
    /// The queue cannot have this capacity.
    Capacity(CapacityError),
    /// Every task that has to wait would be shed.
    NoQueueWait,
    /// Every wait would be too long.
    NoTarget,
    /// A burst would be taken for an overload.
    IntervalBelowTarget {
        /// How long a task may wait.
        target: Duration,
        /// For how long all of them must wait longer.
        interval: Duration,
    },
    /// Another order under overload, but nothing that says what an overload is.
    NeverOverloaded,
    /// Newest first, in a queue that has an order of its own.
    OrderOfItsOwn,
    /// Nothing can be changed in a process that was forked from that of the engine.
    Forked,
}

impl Invalid {
    /// The parameter that is wrong, by its name in a [`Patch`].
    ///
    /// ```
    /// use millpond::manage::Patch;
    /// use millpond::pool::ThreadPool;
    ///
    /// let pool = ThreadPool::builder("mill").core(1).max(4).build()?;
    /// let error = pool.apply(&Patch::new().core(9)).unwrap_err();
    /// assert_eq!(error.problems()[0].field(), "core");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn field(&self) -> &'static str {
        match self {
            Invalid::NoWorkers | Invalid::TooManyWorkers { .. } => "max",
            Invalid::CoreAboveMax { .. } => "core",
            Invalid::NoKeepAlive => "keep_alive",
            Invalid::Capacity(_) => "capacity",
            Invalid::NoQueueWait => "max_queue_wait",
            Invalid::NoTarget | Invalid::IntervalBelowTarget { .. } => "shedding",
            Invalid::NeverOverloaded | Invalid::OrderOfItsOwn => "overload_order",
            Invalid::Forked => "process",
        }
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Invalid::NoWorkers => {
                f.write_str("max 0 would let no task ever run: allow at least one worker")
            }
            Invalid::TooManyWorkers { max } => write!(
                f,
                "max {max} is above the most workers that can be counted, {}",
                Sizes::MOST_WORKERS
            ),
            Invalid::CoreAboveMax { core, max } => write!(
                f,
                "core {core} is above max {max}: raise max or lower core, or change both at once"
            ),
            Invalid::NoKeepAlive => f.write_str(
                "keep_alive 0 with core_may_time_out would end every worker as soon as it is idle: \
                 keep them alive for a while",
            ),
            Invalid::Capacity(error) => write!(f, "capacity: {error}"),
            Invalid::NoQueueWait => f.write_str(
                "max_queue_wait 0 would shed every task that has to wait at all: allow a while, or \
                 use a queue that hands tasks over",
            ),
            Invalid::NoTarget => f.write_str(
                "shedding: target 0 would take every wait for an overload: allow a few milliseconds",
            ),
            Invalid::IntervalBelowTarget { target, interval } => write!(
                f,
                "shedding: interval {interval:?} is below target {target:?}: an interval must be \
                 long enough for a burst to pass, twenty times the target as a rule"
            ),
            Invalid::NeverOverloaded => f.write_str(
                "overload_order newest first needs to know what an overload is: set shedding or \
                 max_queue_wait, too",
            ),
            Invalid::OrderOfItsOwn => f.write_str(
                "overload_order newest first needs a queue that is first in, first out, bounded or \
                 unbounded: this one has an order of its own",
            ),
            Invalid::Forked => f.write_str(
                "this process was forked, and the engine's threads stayed in the parent: build a new \
                 engine after fork()",
            ),
        }
    }
}

/// Parameters that an engine cannot have. Nothing has changed.
///
/// ```
/// use millpond::manage::Patch;
/// use millpond::pool::ThreadPool;
///
/// let pool = ThreadPool::builder("mill").core(1).max(4).build()?;
/// let error = pool.apply(&Patch::new().core(9).capacity(7)).unwrap_err();
/// assert!(error.to_string().starts_with("core 9 is above max 4"));
/// assert_eq!((pool.core(), pool.capacity()), (1, Some(1024)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchError {
    problems: Vec<Invalid>,
}

impl PatchError {
    /// What is wrong, one by one.
    ///
    /// ```
    /// use millpond::manage::{Invalid, Patch};
    /// use millpond::pool::ThreadPool;
    /// use std::time::Duration;
    ///
    /// let pool = ThreadPool::builder("mill").core(1).max(4).build()?;
    /// let error = pool.apply(&Patch::new().core(9).max_queue_wait(Duration::ZERO)).unwrap_err();
    /// let fields: Vec<_> = error.problems().iter().map(Invalid::field).collect();
    /// assert_eq!(fields, ["core", "max_queue_wait"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn problems(&self) -> &[Invalid] {
        &self.problems
    }

    /// An error if there are problems.
    pub(crate) fn unless_none(problems: Vec<Invalid>) -> Result<(), PatchError> {
        match problems.is_empty() {
            true => Ok(()),
            false => Err(PatchError { problems }),
        }
    }
}

impl fmt::Display for PatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, problem) in self.problems.iter().enumerate() {
            if position > 0 {
                f.write_str("; ")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl Error for PatchError {}

impl From<CapacityError> for PatchError {
    fn from(error: CapacityError) -> Self {
        PatchError {
            problems: vec![Invalid::Capacity(error)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: Sizes = Sizes {
        core: 2,
        max: 4,
        keep_alive: Duration::from_secs(60),
        core_may_time_out: false,
    };

    #[test]
    fn an_empty_patch_changes_nothing() {
        assert_eq!(GOOD.with(&Patch::new()), GOOD);
        assert!(GOOD.problems().is_empty());
    }

    #[test]
    fn everything_that_is_wrong_is_named_with_its_field() {
        let patch = Patch::new()
            .core(9)
            .keep_alive(Duration::ZERO)
            .core_may_time_out(true);
        let problems = GOOD.with(&patch).problems();
        let fields: Vec<_> = problems.iter().map(Invalid::field).collect();
        assert_eq!(fields, ["core", "keep_alive"]);
        let error = PatchError::unless_none(problems).unwrap_err();
        assert_eq!(
            error.to_string(),
            "core 9 is above max 4: raise max or lower core, or change both at once; keep_alive 0 \
             with core_may_time_out would end every worker as soon as it is idle: keep them alive \
             for a while"
        );
    }

    #[test]
    fn no_worker_at_all_and_more_than_can_be_counted_are_refused() {
        for max in [0, Sizes::MOST_WORKERS + 1, usize::MAX] {
            let problems = GOOD.with(&Patch::new().core(0).max(max)).problems();
            assert_eq!(problems.len(), 1, "max {max}");
            assert_eq!(problems[0].field(), "max");
        }
        let most = Patch::new().max(Sizes::MOST_WORKERS);
        assert!(GOOD.with(&most).problems().is_empty());
    }
}
