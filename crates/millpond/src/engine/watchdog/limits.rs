//! Limits on the run time of tasks.

use crate::engine::metrics::Label;
use std::collections::HashMap;
use std::time::Duration;

/// No limit is shorter: the watchdog looks as often as the shortest limit, and must not do nothing else.
pub(crate) const SHORTEST: Duration = Duration::from_millis(1);

/// A limit on the run time of tasks: a task that exceeds it is reported by an event, and interrupted if asked for.
///
/// The watchdog checks it, on the timer's thread. A pool that has any such limit keeps that thread from its first task
/// until the pool ends. If the thread cannot be started, the pool runs its tasks without the limit, counts that
/// ([`Health::thread_failures`](crate::pool::Health::thread_failures)), and tries again with later tasks: a task that was
/// running before is seen then, too.
///
/// ```
/// use millpond::pool::{RunWarning, ThreadPool};
/// use std::time::Duration;
///
/// let pool = ThreadPool::builder("mill")
///     .run_warning(RunWarning::after(Duration::from_secs(30)))
///     .run_warning_for("thumbnail", RunWarning::after(Duration::from_secs(2)).interrupts())
///     .build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunWarning {
    pub(super) after: Duration,
    pub(super) interrupts: bool,
}

impl RunWarning {
    /// Reports each task that runs longer than this; less than a millisecond counts as a millisecond.
    ///
    /// ```
    /// use millpond::executor::ExecutorExt;
    /// use millpond::pool::{RunWarning, ThreadPool};
    /// use millpond::time::ManualClock;
    /// use std::sync::mpsc::sync_channel;
    /// use std::time::Duration;
    ///
    /// let (hand, minute) = (ManualClock::new(), Duration::from_secs(60));
    /// let mill = ThreadPool::builder("mill").clock(hand.clock()).on_event(|_| ());
    /// let pool = mill.run_warning(RunWarning::after(minute)).build()?;
    /// let (meet, wait) = sync_channel(0);
    /// pool.execute(move || for () in wait {})?;
    /// meet.send(())?; // now it runs
    /// hand.advance(minute);
    /// assert_eq!(pool.health().long_runs, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn after(limit: Duration) -> Self {
        RunWarning {
            after: limit.max(SHORTEST),
            interrupts: false,
        }
    }

    /// Interrupts the task, too. It ends when it heeds that; see [`crate::interrupt`].
    ///
    /// To interrupt one task and not the next, a worker takes a lock for each task of a pool that has any such limit: some
    /// twenty nanoseconds.
    ///
    /// ```
    /// use millpond::executor::ExecutorExt;
    /// use millpond::interrupt;
    /// use millpond::pool::{RunWarning, ThreadPool};
    /// use millpond::time::ManualClock;
    /// use std::sync::mpsc::sync_channel;
    /// use std::time::Duration;
    ///
    /// let (hand, minute) = (ManualClock::new(), Duration::from_secs(60));
    /// let mill = ThreadPool::builder("mill").clock(hand.clock()).on_event(|_| ());
    /// let pool = mill.run_warning(RunWarning::after(minute).interrupts()).build()?;
    /// let (meet, wait) = sync_channel(0);
    /// let hour = Duration::from_secs(3600);
    /// let nap = pool.submit(move || wait.recv().is_ok() && interrupt::sleep(hour).is_err())?;
    /// meet.send(())?; // now it runs
    /// hand.advance(minute);
    /// assert!(nap.join()?); // long before the hour is over
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn interrupts(mut self) -> Self {
        self.interrupts = true;
        self
    }
}

impl RunWarning {
    pub(crate) fn limit(self) -> Duration {
        self.after
    }

    /// The same for another limit, if that is not `None`.
    pub(crate) fn with_limit(this: Option<Self>, limit: Option<Duration>) -> Option<Self> {
        let interrupts = this.is_some_and(|warning| warning.interrupts);
        limit.map(|limit| RunWarning {
            interrupts,
            ..RunWarning::after(limit)
        })
    }
}

/// The limits of an engine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limits {
    pub(crate) of_all: Option<RunWarning>,
    pub(crate) by_name: HashMap<Box<str>, RunWarning>,
}

impl Limits {
    /// Sets the limit of one name; `None` for that of all.
    pub(crate) fn set_for(&mut self, name: &str, warning: Option<RunWarning>) {
        match warning {
            Some(warning) => {
                self.by_name.insert(name.into(), warning);
            }
            None => {
                self.by_name.remove(name);
            }
        }
    }

    pub(super) fn of(&self, label: &Label) -> Option<RunWarning> {
        let own = match label {
            Label::Name(name) => self.by_name.get(&**name),
            Label::Place(_) | Label::Others => None,
        };
        own.copied().or(self.of_all)
    }

    fn all(&self) -> impl Iterator<Item = &RunWarning> {
        self.of_all.iter().chain(self.by_name.values())
    }

    pub(super) fn any_interrupts(&self) -> bool {
        self.all().any(|warning| warning.interrupts)
    }

    pub(super) fn shortest(&self) -> Option<Duration> {
        self.all().map(|warning| warning.after).min()
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn no_limit_is_so_short_that_the_watchdog_does_nothing_else() {
        let of = |limit| {
            let limits = Limits {
                of_all: Some(RunWarning::after(limit)),
                ..Limits::default()
            };
            limits.shortest()
        };
        assert_eq!(of(Duration::ZERO), Some(SHORTEST));
        assert_eq!(of(Duration::from_nanos(999_999)), Some(SHORTEST));
        let second = Duration::from_secs(1);
        assert_eq!(of(second), Some(second));
    }
}
