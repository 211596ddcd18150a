//! Parameters that engines with workers share: their rows in the tables of parameters, and their defaults.

use super::metrics::MAX_LABELS;
use super::watchdog::SHORTEST_LIMIT;
use crate::manage::{ParameterSpec, Value, ValueType};
use millpond_raw::sync::atomic::{AtomicU64, Ordering};
use std::borrow::Cow;
use std::time::Duration;

/// How long an idle worker stays in an engine that was not told otherwise.
pub(crate) const DEFAULT_KEEP_ALIVE: Duration = Duration::from_secs(60);

/// How many task names an engine measures that was not told otherwise.
pub(crate) const DEFAULT_TASK_NAMES: usize = 64;

/// Reads a parameter of a configuration.
type Get<C> = fn(&C) -> Value;

/// Writes a parameter.
type Set<C> = fn(&mut C, &Value) -> Result<(), Cow<'static, str>>;

/// How long idle workers stay, as workers read it: in nanoseconds, of which the greatest number is for ever.
#[derive(Debug, Default)]
pub(crate) struct KeepAlive(AtomicU64);

impl KeepAlive {
    pub(crate) fn get(&self) -> Duration {
        match self.0.load(Ordering::Relaxed) {
            u64::MAX => Duration::MAX,
            nanos => Duration::from_nanos(nanos),
        }
    }

    pub(crate) fn set(&self, to: Duration) {
        let nanos = u64::try_from(to.as_nanos()).unwrap_or(u64::MAX);
        self.0.store(nanos, Ordering::Relaxed);
    }
}

pub(crate) const fn keep_alive<C>(
    help: &'static str,
    get: Get<C>,
    set: Set<C>,
) -> ParameterSpec<C> {
    ParameterSpec {
        name: "keep_alive",
        kind: ValueType::ANY_DURATION,
        unit: None,
        default: |_| Some(DEFAULT_KEEP_ALIVE.into()),
        is_live: true,
        help,
        advice: "",
        get,
        set,
    }
}

pub(crate) const fn run_warning<C>(get: Get<C>, set: Set<C>) -> ParameterSpec<C> {
    ParameterSpec {
        name: "run_warning",
        kind: ValueType::Optional(&ValueType::Duration {
            min: SHORTEST_LIMIT,
            max: Duration::MAX,
        }),
        unit: None,
        default: |_| Some(Value::None),
        is_live: true,
        help: "A task that runs longer than this is reported, unless its name has a limit of its own.",
        advice: "",
        get,
        set,
    }
}

/// It never changes.
pub(crate) const fn task_names<C>(get: Get<C>) -> ParameterSpec<C> {
    ParameterSpec {
        name: "max_task_names",
        kind: ValueType::Optional(&ValueType::Integer {
            min: 0,
            max: MAX_LABELS as u64,
        }),
        unit: Some("names"),
        default: |_| Some(DEFAULT_TASK_NAMES.into()),
        is_live: false,
        help: "Task names that are measured one by one; none if nothing is measured.",
        advice: "",
        get,
        set: |_, _| Ok(()),
    }
}
