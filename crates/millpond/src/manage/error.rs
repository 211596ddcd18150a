//! What can be wrong with parameters.

use super::text::{is_same_name, parse_duration, parse_integer};
use super::{Value, ValueError, ValueType};
use crate::queue::CapacityError;
use millpond_raw::user_code::{self, Kind};
use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::time::Duration;

/// One thing that is wrong with a parameter.
///
/// ```
/// use millpond::pool::ThreadPool;
///
/// let error = ThreadPool::builder("mill").core(0).max(0).build().unwrap_err();
/// let [max] = error.problems() else { panic!("one problem") };
/// assert_eq!(max.parameter(), "max");
/// assert!(max.to_string().starts_with("max cannot be 0: write an integer from 1 to"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Invalid {
    /// The engine has no parameter of this name.
    Unknown {
        /// The name.
        parameter: String,
        /// A name that the engine has and that looks like it.
        similar: Option<&'static str>,
        /// All names that the engine has.
        known: Vec<&'static str>,
        /// The name of the executor below the engine, if that has the parameter.
        executor: Option<String>,
    },
    /// The value is of another type.
    WrongType {
        /// The parameter.
        parameter: Cow<'static, str>,
        /// What it was to be set to, as text.
        given: String,
        /// Which values it can have.
        expected: ValueType,
        /// What is wrong with a text that is nearly right, and what to write instead.
        hint: Option<String>,
    },
    /// The value is too small or too large.
    OutOfRange {
        /// The parameter.
        parameter: Cow<'static, str>,
        /// What it was to be set to, as text.
        given: String,
        /// Which values it can have.
        expected: ValueType,
        /// What would happen with a value that is too small; may be empty.
        advice: &'static str,
    },
    /// The parameter cannot change while the engine runs.
    NotLive {
        /// The parameter.
        parameter: Cow<'static, str>,
        /// The value that it has, and keeps.
        current: Value,
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
    OrderOfCustomQueue,
    /// The engine cannot have this value, for a reason of its own.
    Other {
        /// The parameter.
        parameter: Cow<'static, str>,
        /// The reason, and what to write instead.
        reason: Cow<'static, str>,
    },
    /// Nothing can be changed in a process that was forked from that of the engine.
    Forked,
}

impl Invalid {
    /// What is wrong with the name of an engine.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        name.trim().is_empty().then_some(Invalid::Other {
            parameter: Cow::Borrowed("name"),
            reason: Cow::Borrowed(
                "it is empty: threads, events and snapshots are told apart by it, so write one",
            ),
        })
    }

    /// The name of the parameter that is wrong.
    ///
    /// ```
    /// use millpond::manage::Patch;
    /// use millpond::pool::ThreadPool;
    ///
    /// let pool = ThreadPool::builder("mill").core(1).max(4).build()?;
    /// let error = pool.apply(&Patch::new().core(9)).unwrap_err();
    /// assert_eq!(error.problems()[0].parameter(), "core");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn parameter(&self) -> &str {
        match self {
            Invalid::Unknown { parameter, .. } => parameter,
            Invalid::WrongType { parameter, .. }
            | Invalid::OutOfRange { parameter, .. }
            | Invalid::NotLive { parameter, .. }
            | Invalid::Other { parameter, .. } => parameter,
            Invalid::CoreAboveMax { .. } => "core",
            Invalid::NoKeepAlive => "keep_alive",
            Invalid::Capacity(_) => "capacity",
            Invalid::IntervalBelowTarget { .. } => "shedding_interval",
            Invalid::NeverOverloaded | Invalid::OrderOfCustomQueue => "overload_order",
            Invalid::Forked => "process",
        }
    }

    /// Whether it is about this parameter, alone or together with another.
    pub(crate) fn concerns(&self, name: &str) -> bool {
        let other = match self {
            Invalid::CoreAboveMax { .. } => "max",
            Invalid::NoKeepAlive => "core_may_time_out",
            Invalid::IntervalBelowTarget { .. } => "shedding_target",
            _ => "",
        };
        self.parameter() == name || other == name
    }

    pub(super) fn value(parameter: &'static str, error: ValueError, advice: &'static str) -> Self {
        let parameter = Cow::Borrowed(parameter);
        let ValueError {
            given,
            expected,
            is_out_of_range,
            hint,
        } = error;
        if is_out_of_range {
            let advice = if is_too_small(expected, &given) {
                advice
            } else {
                ""
            };
            Invalid::OutOfRange {
                parameter,
                given,
                expected,
                advice,
            }
        } else {
            Invalid::WrongType {
                parameter,
                given,
                expected,
                hint,
            }
        }
    }

    /// Compares the name with all known ones, which takes a while: so under no lock.
    pub(super) fn unknown(parameter: &str, known: impl Iterator<Item = &'static str>) -> Self {
        user_code::check(Kind::Wait);
        let known: Vec<_> = known.collect();
        // No name is that long, and the comparison takes time in proportion to it.
        let is_comparable = parameter.len() <= MAX_COMPARED;
        let candidates = || known.iter().filter(|_| is_comparable);
        let nearest = candidates().min_by_key(|name| distance(name, parameter));
        let similar = nearest.filter(|name| is_similar(name, parameter)).copied();
        let same = candidates().find(|name| is_same_name(name, parameter));
        let meant = || candidates().find(|name| is_javas_name(parameter, name));
        let similar = same.or_else(meant).copied().or(similar);
        Invalid::Unknown {
            parameter: parameter.to_owned(),
            similar,
            known,
            executor: None,
        }
    }

    /// The same, if it is unknown to an engine above this executor, which has it.
    pub(crate) fn known_below(mut self, name: &str) -> Self {
        if let Invalid::Unknown { executor, .. } = &mut self {
            *executor = Some(name.to_owned());
        }
        self
    }
}

/// What Java calls parameters, and what they are called here.
const JAVA_NAMES: [(&str, &str); 12] = [
    ("corePoolSize", "core"),
    ("maximumPoolSize", "max"),
    ("maxPoolSize", "max"),
    ("keepAliveTime", "keep_alive"),
    ("allowCoreThreadTimeOut", "core_may_time_out"),
    ("allowsCoreThreadTimeOut", "core_may_time_out"),
    ("workQueue", "queue"),
    ("queueCapacity", "capacity"),
    ("rejectedExecutionHandler", "rejection"),
    ("asyncMode", "fifo"),
    (
        "executeExistingDelayedTasksAfterShutdownPolicy",
        "run_delayed_after_shutdown",
    ),
    (
        "continueExistingPeriodicTasksAfterShutdownPolicy",
        "run_series_after_shutdown",
    ),
];

/// Whether Java has the parameter `own` by the name that was `given`, in any spelling.
fn is_javas_name(given: &str, own: &str) -> bool {
    let is_it = |(java, ours): &(&str, &str)| *ours == own && is_same_name(java, given);
    JAVA_NAMES.iter().any(is_it)
}

/// Whether a value that is out of the range of its type is below it.
fn is_too_small(expected: ValueType, given: &str) -> bool {
    match expected {
        ValueType::Integer { min, .. } => {
            parse_integer(given).is_some_and(|given: u64| given < min)
        }
        ValueType::Duration { min, .. } => parse_duration(given).is_some_and(|given| given < min),
        ValueType::Optional(kind) => is_too_small(*kind, given),
        ValueType::Boolean | ValueType::Choice(_) => false,
    }
}

/// The longest unknown name that is compared with the known ones, in bytes.
const MAX_COMPARED: usize = 64;

/// Whether one may be meant by the other: at most a third of the letters differ.
fn is_similar(one: &str, other: &str) -> bool {
    let letters = one.chars().count().max(other.chars().count());
    3 * distance(one, other) <= letters
}

/// How many letters must be changed, added or left out to make one of the other (Levenshtein).
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, letter) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], line + 1);
        for (column, &beside) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != beside);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Invalid::Unknown {
                parameter,
                executor: Some(executor),
                ..
            } => write!(
                f,
                "there is no parameter `{parameter}` here: it is one of the executor, `{executor}`, which \
                 takes patches of its own"
            ),
            Invalid::Unknown {
                parameter,
                similar: Some(similar),
                ..
            } => write!(f, "there is no parameter `{parameter}`: did you mean {similar}?"),
            Invalid::Unknown {
                parameter, known, ..
            } => write!(
                f,
                "there is no parameter `{parameter}`: this engine has {}",
                known.join(", ")
            ),
            Invalid::WrongType {
                parameter,
                given,
                expected,
                hint,
            } => match hint {
                Some(hint) => write!(f, "{parameter} cannot be `{given}`: {hint}"),
                None => write!(f, "{parameter} cannot be `{given}`: write {expected}"),
            },
            Invalid::OutOfRange {
                parameter,
                given,
                expected,
                advice,
            } => {
                write!(f, "{parameter} cannot be {given}: write {expected}")?;
                match *advice {
                    "" => Ok(()),
                    advice => write!(f, " ({advice})"),
                }
            }
            Invalid::NotLive { parameter, current } => write!(
                f,
                "{parameter} cannot change while the engine runs: it stays {current}; build a new \
                 engine for another value"
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
            Invalid::IntervalBelowTarget { target, interval } => write!(
                f,
                "shedding_interval {interval:?} is below shedding_target {target:?}: an interval must \
                 be long enough for a burst to pass, twenty times the target as a rule"
            ),
            Invalid::NeverOverloaded => f.write_str(
                "overload_order newest_first needs to know what an overload is: set shedding_target or \
                 max_queue_wait, too",
            ),
            Invalid::OrderOfCustomQueue => f.write_str(
                "overload_order newest_first needs a queue that is first in, first out, bounded or \
                 unbounded: this one has an order of its own",
            ),
            Invalid::Other { parameter, reason } => write!(f, "{parameter}: {reason}"),
            Invalid::Forked => f.write_str(
                "this process was forked, and the engine's threads stayed in the parent: build a new \
                 engine after fork()",
            ),
        }
    }
}

/// All that is wrong with a patch or a builder's values. Nothing has changed.
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
    /// The problems, one by one.
    ///
    /// ```
    /// use millpond::manage::{Invalid, Patch};
    /// use millpond::pool::ThreadPool;
    /// use std::time::Duration;
    ///
    /// let pool = ThreadPool::builder("mill").core(1).max(4).build()?;
    /// let error = pool.apply(&Patch::new().core(9).max_queue_wait(Duration::ZERO)).unwrap_err();
    /// let mut names: Vec<_> = error.problems().iter().map(Invalid::parameter).collect();
    /// names.sort();
    /// assert_eq!(names, ["core", "max_queue_wait"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn problems(&self) -> &[Invalid] {
        &self.problems
    }

    pub(crate) fn of(problem: Invalid) -> Self {
        PatchError {
            problems: vec![problem],
        }
    }

    /// An error if there are problems, for engines of other crates.
    ///
    /// # Errors
    ///
    /// The problems, if there is one.
    ///
    /// ```
    /// use millpond::manage::{Invalid, PatchError};
    ///
    /// assert!(PatchError::unless_none(Vec::new()).is_ok());
    /// let problem = Invalid::Other { parameter: "lanes".into(), reason: "two at most".into() };
    /// let error = PatchError::unless_none(vec![problem]).unwrap_err();
    /// assert_eq!(error.to_string(), "lanes: two at most");
    /// ```
    pub fn unless_none(problems: Vec<Invalid>) -> Result<(), PatchError> {
        if problems.is_empty() {
            Ok(())
        } else {
            Err(PatchError { problems })
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
        PatchError::of(Invalid::Capacity(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_nearly_right_is_answered_with_the_right_one() {
        let known = || ["core", "max", "keep_alive"].into_iter();
        let text = |name| Invalid::unknown(name, known()).to_string();
        assert_eq!(
            text("cores"),
            "there is no parameter `cores`: did you mean core?"
        );
        assert_eq!(
            text("keepalive"),
            "there is no parameter `keepalive`: did you mean keep_alive?"
        );
        assert_eq!(
            text(" core"),
            "there is no parameter ` core`: did you mean core?"
        );
        assert_eq!(text("mx"), "there is no parameter `mx`: did you mean max?");
        for (java, ours) in [
            ("corePoolSize", "core"),
            ("core-pool-size", "core"),
            ("maximumPoolSize", "max"),
            ("keepAliveTime", "keep_alive"),
            ("KeepAlive", "keep_alive"),
        ] {
            let expected = format!("there is no parameter `{java}`: did you mean {ours}?");
            assert_eq!(text(java), expected);
        }
        // A name of Java's is of no use to an engine that has no such parameter.
        assert!(!text("asyncMode").contains("did you mean"));
    }

    #[test]
    fn a_name_that_is_not_near_is_answered_with_all_names() {
        let known = || ["core", "max", "keep_alive"].into_iter();
        let long = "keep_alive".repeat(1_000);
        for name in ["nope", "colour", "cap", "", "m", long.as_str()] {
            assert_eq!(
                Invalid::unknown(name, known()).to_string(),
                format!("there is no parameter `{name}`: this engine has core, max, keep_alive")
            );
        }
    }

    #[test]
    fn a_distance_counts_letters_that_differ_are_missing_or_too_many() {
        let all = [("", "", 0), ("core", "core", 0), ("core", "cure", 1)];
        for (one, other, letters) in all {
            assert_eq!(distance(one, other), letters, "{one} {other}");
        }
        assert_eq!(distance("max", "maximum"), 4);
        assert_eq!(distance("keep_alive", "keepalive"), 1);
    }
}
