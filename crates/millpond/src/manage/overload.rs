//! What a pool does when more comes than it can do: parameters, and what can be wrong with them.

use super::{Invalid, Patch};
use crate::adapt::CoDel;
use std::fmt;
use std::time::Duration;

/// Which of the tasks that wait comes next while a pool is overloaded.
///
/// First in, first out is fair, and under overload it is the worst there is: everybody waits as long
/// as callers are patient, and what runs at last nobody wants any more. Newest first serves those who
/// still wait, at once, and lets the others go.
///
/// A pool is overloaded when its [`shedding`](Overload::shedding) says so; without that, when a task
/// has waited for more than half of [`max_queue_wait`](Overload::max_queue_wait). As soon as it is
/// not, the order is first in, first out again.
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
    /// The same as ever.
    #[default]
    Unchanged,
    /// The one that came last. Those that have waited too long are shed as they would be otherwise,
    /// so places are not taken by tasks whose turn never comes.
    NewestFirst,
}

impl fmt::Display for OverloadOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OverloadOrder::Unchanged => "unchanged",
            OverloadOrder::NewestFirst => "newest first",
        })
    }
}

/// How a pool protects itself.
///
/// ```
/// use millpond::manage::Overload;
///
/// let open = Overload::default();
/// assert!(!open.sheds() && open.problems().is_empty());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overload {
    /// How long a task may wait; who has waited longer when its turn comes is shed.
    pub max_queue_wait: Option<Duration>,
    /// When a pool counts as overloaded, and what it sheds then.
    pub shedding: Option<CoDel>,
    /// Which task comes next while it is overloaded.
    pub order: OverloadOrder,
}

impl Overload {
    /// These parameters with what the patch changes.
    ///
    /// ```
    /// use millpond::manage::{Overload, Patch};
    /// use std::time::Duration;
    ///
    /// let most = Duration::from_millis(300);
    /// let careful = Overload::default().with(&Patch::new().max_queue_wait(most));
    /// assert_eq!(careful.max_queue_wait, Some(most));
    /// assert_eq!(careful.with(&Patch::new().core(3)), careful, "what is not named stays");
    /// ```
    pub fn with(self, patch: &Patch) -> Self {
        Overload {
            max_queue_wait: patch.max_queue_wait.unwrap_or(self.max_queue_wait),
            shedding: patch.shedding.unwrap_or(self.shedding),
            order: patch.overload_order.unwrap_or(self.order),
        }
    }

    /// Whether anything is ever shed but for its own deadline.
    ///
    /// ```
    /// use millpond::manage::{CoDel, Overload};
    ///
    /// let shedding = Some(CoDel::default());
    /// assert!(Overload { shedding, ..Overload::default() }.sheds());
    /// ```
    pub fn sheds(&self) -> bool {
        self.max_queue_wait.is_some() || self.shedding.is_some()
    }

    /// All that is wrong with them.
    ///
    /// ```
    /// use millpond::manage::{Overload, OverloadOrder};
    ///
    /// let order = OverloadOrder::NewestFirst;
    /// let problems = Overload { order, ..Overload::default() }.problems();
    /// assert_eq!(problems.len(), 1, "nothing says what an overload is");
    /// assert_eq!(problems[0].field(), "overload_order");
    /// ```
    pub fn problems(&self) -> Vec<Invalid> {
        let mut problems = Vec::new();
        if self.max_queue_wait.is_some_and(|most| most.is_zero()) {
            problems.push(Invalid::NoQueueWait);
        }
        if let Some(CoDel { target, interval }) = self.shedding {
            if target.is_zero() {
                problems.push(Invalid::NoTarget);
            }
            if interval < target || interval.is_zero() {
                problems.push(Invalid::IntervalBelowTarget { target, interval });
            }
        }
        if self.order == OverloadOrder::NewestFirst && !self.sheds() {
            problems.push(Invalid::NeverOverloaded);
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn fields(patch: Patch) -> Vec<&'static str> {
        let problems = Overload::default().with(&patch).problems();
        problems.iter().map(Invalid::field).collect()
    }

    #[test]
    fn a_patch_sets_what_it_names_and_takes_it_back() {
        let usual = CoDel::default();
        let all = Patch::new()
            .max_queue_wait(MS)
            .shedding(usual)
            .overload_order(OverloadOrder::NewestFirst);
        let set = Overload::default().with(&all);
        assert_eq!((set.max_queue_wait, set.shedding), (Some(MS), Some(usual)));
        assert_eq!(set.with(&Patch::new()), set, "what is not named stays");
        let less = set.with(&Patch::new().max_queue_wait(None));
        assert_eq!((less.max_queue_wait, less.shedding), (None, Some(usual)));
        let none = Patch::new()
            .max_queue_wait(None)
            .shedding(None)
            .overload_order(OverloadOrder::Unchanged);
        assert_eq!(set.with(&none), Overload::default());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_field() {
        let newest = |patch: Patch| patch.overload_order(OverloadOrder::NewestFirst);
        assert_eq!(
            fields(Patch::new().max_queue_wait(Duration::ZERO)),
            ["max_queue_wait"]
        );
        assert_eq!(fields(newest(Patch::new())), ["overload_order"]);
        assert!(fields(newest(Patch::new().max_queue_wait(MS))).is_empty());
        assert!(fields(newest(Patch::new().shedding(CoDel::default()))).is_empty());
        let twice = ["shedding", "shedding"];
        let none = Duration::ZERO;
        assert_eq!(fields(Patch::new().shedding(CoDel::new(none, none))), twice);
        assert_eq!(
            fields(Patch::new().shedding(CoDel::new(2 * MS, MS))),
            twice[1..]
        );
        assert!(fields(Patch::new().shedding(CoDel::new(MS, MS))).is_empty());
    }

    #[test]
    fn each_problem_says_what_to_do() {
        let problems = Overload {
            max_queue_wait: Some(Duration::ZERO),
            shedding: Some(CoDel::new(9 * MS, MS)),
            order: OverloadOrder::Unchanged,
        }
        .problems();
        let texts: Vec<String> = problems.iter().map(Invalid::to_string).collect();
        assert_eq!(
            texts,
            [
                "max_queue_wait 0 would shed every task that has to wait at all: allow a while, or \
                 use a queue that hands tasks over",
                "shedding: interval 1ms is below target 9ms: an interval must be long enough for a \
                 burst to pass, twenty times the target as a rule",
            ]
        );
    }
}
