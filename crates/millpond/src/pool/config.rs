//! The configuration of a pool: the table of its parameters, and the words from which workers and
//! submitters read them.
//!
//! [`TABLE`] is the one place where a parameter is described; [`Config::describe`] leaves out the values that a pool
//! with this queue cannot have. A builder's values are judged by it, a patch is
//! resolved by it, [`ThreadPool::parameters`] lists it; getters, setters, patch methods and snapshots are
//! tested against it (`tests/parameters.rs`). [`Config`] is a plain copy of all values, to be judged and
//! compared; [`LiveConfig`] has the values that a running pool reads.

mod apply;
mod capacity;
mod live;

pub(super) use crate::engine::parameters::{DEFAULT_KEEP_ALIVE, DEFAULT_TASK_NAMES};
pub(super) use live::{ColdConfig, LiveConfig};

use super::{RejectionPolicy, ThreadPool};
use crate::adapt::CoDel;
use crate::engine::parameters;
use crate::engine::watchdog::RunWarning;
use crate::machine::Machine;
use crate::manage::{
    Choice, Growth, Invalid, OverloadOrder, Parameter, ParameterSpec, ParameterTable, Value,
    ValueType, WRONG_TYPE, set,
};
use std::borrow::Cow;
use std::time::Duration;

/// The capacity of the queue of a pool that was not told otherwise.
pub(super) const DEFAULT_CAPACITY: usize = 1024;

/// An interval is so many times the target, if only the target is given.
const INTERVAL_PER_TARGET: u32 = 20;

/// Core and maximum of a pool whose builder was told neither.
pub(super) fn default_workers() -> usize {
    Machine::read_worker_hint().get()
}

/// The same as a builder found it last, which is cheap to ask for.
fn usual_workers() -> usize {
    Machine::last_worker_hint().get()
}

/// The percentile of run times that a task must have time for, unless told otherwise.
const DEFAULT_FINISH_PERCENTILE: u8 = 50;

/// How a pool protects itself from overload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Overload {
    pub(super) max_queue_wait: Option<Duration>,
    pub(super) shedding: Option<CoDel>,
    pub(super) order: OverloadOrder,
    /// From 0 to 100; see [`finish`](super::finish).
    pub(super) finish_percentile: u8,
}

impl Default for Overload {
    fn default() -> Self {
        Overload {
            max_queue_wait: None,
            shedding: None,
            order: OverloadOrder::default(),
            finish_percentile: DEFAULT_FINISH_PERCENTILE,
        }
    }
}

impl Overload {
    /// Whether anything is ever shed except for its own deadline.
    pub(super) fn sheds(&self) -> bool {
        self.max_queue_wait.is_some() || self.shedding.is_some()
    }
}

/// All parameters of a pool.
#[derive(Clone, Debug)]
pub(super) struct Config {
    pub(super) core: usize,
    pub(super) max: usize,
    pub(super) keep_alive: Duration,
    pub(super) core_may_time_out: bool,
    pub(super) growth: Growth,
    pub(super) capacity: Option<usize>,
    pub(super) overload: Overload,
    pub(super) rejection: RejectionPolicy,
    /// One of [`QUEUES`].
    pub(super) queue: &'static str,
    pub(super) run_warning: Option<RunWarning>,
    /// `None` if the pool measures nothing by task name.
    pub(super) task_names: Option<usize>,
}

const QUEUES: &[Choice] = &[
    Choice::plain("fifo"),
    Choice::plain("hand_off"),
    Choice::plain("priority"),
    Choice::plain("custom"),
];

const REJECTIONS: &[Choice] = &[
    Choice::plain("abort"),
    Choice::plain("caller_runs"),
    Choice::plain("discard"),
    Choice::plain("discard_oldest"),
    Choice::with("block", ValueType::ANY_DURATION),
    Choice::with("new_thread", COUNT),
    Choice::with("report", ValueType::ANY_DURATION),
    // The last, see `Config::describe`.
    Choice::plain("custom"),
];

/// Those that need no handler.
pub(super) const SETTABLE_REJECTIONS: &[Choice] = REJECTIONS.split_at(REJECTIONS.len() - 1).0;

const COUNT: ValueType = ValueType::Integer {
    min: 0,
    max: usize::MAX as u64,
};

const OPTIONAL_COUNT: ValueType = ValueType::Optional(&COUNT);

/// A capacity that was given stays one.
const BOUND: ValueType = ValueType::Integer {
    min: 1,
    max: usize::MAX as u64,
};

const OPTIONAL_BOUND: ValueType = ValueType::Optional(&BOUND);

/// The capacity of a queue that hands over.
const NO_ROOM: ValueType = ValueType::Integer { min: 0, max: 0 };

const OPTIONAL_WAIT: ValueType = ValueType::Optional(&ValueType::POSITIVE_DURATION);

/// All parameters of a pool, in the order in which consoles show them.
pub(super) const TABLE: ParameterTable<Config> = ParameterTable(&[
    ParameterSpec {
        name: "core",
        kind: ValueType::Integer {
            min: 0,
            max: ThreadPool::MAX_WORKERS as u64,
        },
        unit: Some("workers"),
        default: |_| Some(usual_workers().into()),
        is_live: true,
        help: "Workers that are kept, also when they are idle.",
        advice: "",
        get: |config| config.core.into(),
        set: |config, value| set(&mut config.core, value.as_usize()),
    },
    ParameterSpec {
        name: "max",
        kind: ValueType::Integer {
            min: 1,
            max: ThreadPool::MAX_WORKERS as u64,
        },
        unit: Some("workers"),
        default: |_| Some(usual_workers().into()),
        is_live: true,
        help: "The most workers there may be.",
        advice: "without a worker no task would ever run",
        get: |config| config.max.into(),
        set: |config, value| set(&mut config.max, value.as_usize()),
    },
    parameters::keep_alive(
        "How long an idle worker above the core stays; 584 years and more are for ever.",
        |config| config.keep_alive.into(),
        |config, value| set(&mut config.keep_alive, value.as_duration()),
    ),
    ParameterSpec {
        name: "core_may_time_out",
        kind: ValueType::Boolean,
        unit: None,
        default: |_| Some(false.into()),
        is_live: true,
        help: "Whether idle workers of the core leave as well.",
        advice: "",
        get: |config| config.core_may_time_out.into(),
        set: |config, value| set(&mut config.core_may_time_out, Some(value.is_true())),
    },
    ParameterSpec {
        name: "growth",
        kind: Growth::TYPE,
        unit: None,
        default: |_| Some(Growth::default().into()),
        is_live: true,
        help: "Whether a task that finds the core busy is queued or starts another worker.",
        advice: "",
        get: |config| config.growth.into(),
        set: |config, value| set(&mut config.growth, Growth::of(value)),
    },
    ParameterSpec {
        name: "queue",
        kind: ValueType::Choice(QUEUES),
        unit: None,
        default: |_| Some(Value::choice("fifo")),
        is_live: false,
        help: "The flavor of the queue.",
        advice: "",
        get: |config| Value::choice(config.queue),
        set: |_, _| Ok(()),
    },
    ParameterSpec {
        name: "capacity",
        kind: OPTIONAL_COUNT,
        unit: Some("tasks"),
        // Other queues have no capacity that they were not given.
        default: |config| (config.queue == "fifo").then(|| DEFAULT_CAPACITY.into()),
        is_live: true,
        // See `Config::describe`.
        help: "The most tasks that may wait in the queue.",
        advice: "",
        get: |config| config.capacity.into(),
        set: |config, value| match value {
            Value::None => Err(Cow::Borrowed(
                "a bound cannot be taken away while the pool runs: write the most tasks that may wait",
            )),
            value => set(&mut config.capacity, value.as_usize().map(Some)),
        },
    },
    ParameterSpec {
        name: "rejection",
        kind: ValueType::Choice(REJECTIONS),
        unit: None,
        default: |_| Some(Value::choice("abort")),
        is_live: true,
        help: "What happens to a task that finds no room.",
        advice: "",
        get: |config| value_of(&config.rejection),
        set: |config, value| {
            config.rejection = policy_of(value)?;
            Ok(())
        },
    },
    ParameterSpec {
        name: "max_queue_wait",
        kind: OPTIONAL_WAIT,
        unit: None,
        default: |_| Some(Value::None),
        is_live: true,
        help: "The longest that a task may wait in the queue before it is dropped instead of run.",
        advice: "every task that has to wait would be dropped",
        get: |config| config.overload.max_queue_wait.into(),
        set: |config, value| {
            set(
                &mut config.overload.max_queue_wait,
                Some(value.as_duration()),
            )
        },
    },
    ParameterSpec {
        name: "shedding_target",
        kind: OPTIONAL_WAIT,
        unit: None,
        default: |_| Some(Value::None),
        is_live: true,
        help: "If all tasks wait longer than this for a whole interval, the pool is overloaded and sheds \
               tasks (CoDel).",
        advice: "every wait would be an overload; 5ms fits most services",
        get: |config| config.overload.shedding.map(|codel| codel.target).into(),
        set: |config, value| {
            let interval = config.overload.shedding.map(|codel| codel.interval);
            config.overload.shedding = value.as_duration().map(|target| CoDel {
                target,
                interval: interval.unwrap_or(target.saturating_mul(INTERVAL_PER_TARGET)),
            });
            Ok(())
        },
    },
    ParameterSpec {
        name: "shedding_interval",
        kind: OPTIONAL_WAIT,
        unit: None,
        default: |_| Some(Value::None),
        is_live: true,
        help: "The interval of shedding_target; none is twenty times the target.",
        advice: "an interval must be long enough for a burst to pass",
        get: |config| config.overload.shedding.map(|codel| codel.interval).into(),
        set: |config, value| match (&mut config.overload.shedding, value.as_duration()) {
            (Some(codel), Some(interval)) => set(&mut codel.interval, Some(interval)),
            (Some(codel), None) => {
                codel.interval = default_interval(*codel);
                Ok(())
            }
            (None, None) => Ok(()),
            (None, Some(_)) => Err(Cow::Borrowed(
                "it means nothing without shedding_target: set both",
            )),
        },
    },
    ParameterSpec {
        name: "overload_order",
        kind: OverloadOrder::TYPE,
        unit: None,
        default: |_| Some(OverloadOrder::default().into()),
        is_live: true,
        help: "Which task comes next while the pool is overloaded.",
        advice: "",
        get: |config| config.overload.order.into(),
        set: |config, value| set(&mut config.overload.order, OverloadOrder::of(value)),
    },
    ParameterSpec {
        name: "finish_percentile",
        kind: ValueType::Integer { min: 0, max: 100 },
        unit: Some("percent"),
        default: |_| Some(u32::from(DEFAULT_FINISH_PERCENTILE).into()),
        is_live: true,
        help: "A task with a finish_by is dropped at its turn if less is left than this percentile of what tasks of \
               its name took lately; 0 drops it only when the time has come.",
        advice: "",
        get: |config| u32::from(config.overload.finish_percentile).into(),
        set: |config, value| {
            let percent = value
                .as_usize()
                .and_then(|percent| u8::try_from(percent).ok());
            set(&mut config.overload.finish_percentile, percent)
        },
    },
    parameters::run_warning(
        |config| config.run_warning.map(RunWarning::limit).into(),
        // Whether it interrupts stays as it is.
        |config, value| {
            config.run_warning = RunWarning::with_limit(config.run_warning, value.as_duration());
            Ok(())
        },
    ),
    parameters::task_names(|config| config.task_names.into()),
]);

fn default_interval(codel: CoDel) -> Duration {
    codel.target.saturating_mul(INTERVAL_PER_TARGET)
}

pub(super) fn value_of(rejection: &RejectionPolicy) -> Value {
    match rejection {
        RejectionPolicy::Abort => Value::choice("abort"),
        RejectionPolicy::CallerRuns => Value::choice("caller_runs"),
        RejectionPolicy::Discard => Value::choice("discard"),
        RejectionPolicy::DiscardOldest => Value::choice("discard_oldest"),
        RejectionPolicy::Block(timeout) => Value::choice_with("block", *timeout),
        RejectionPolicy::NewThread { at_most } => Value::choice_with("new_thread", *at_most),
        RejectionPolicy::Report { at_most_every } => Value::choice_with("report", *at_most_every),
        RejectionPolicy::Custom(_) => Value::choice("custom"),
    }
}

pub(super) fn policy_of(value: &Value) -> Result<RejectionPolicy, Cow<'static, str>> {
    let (name, argument) = value.as_choice().ok_or(WRONG_TYPE)?;
    let duration = || argument.and_then(Value::as_duration).ok_or(WRONG_TYPE);
    let count = || argument.and_then(Value::as_usize).ok_or(WRONG_TYPE);
    Ok(match name {
        "abort" => RejectionPolicy::Abort,
        "caller_runs" => RejectionPolicy::CallerRuns,
        "discard" => RejectionPolicy::Discard,
        "discard_oldest" => RejectionPolicy::DiscardOldest,
        "block" => RejectionPolicy::Block(duration()?),
        "new_thread" => RejectionPolicy::NewThread { at_most: count()? },
        "report" => RejectionPolicy::Report {
            at_most_every: duration()?,
        },
        _ => {
            return Err(Cow::Borrowed(
                "custom needs a handler, which only the program has: see ThreadPool::set_rejection",
            ));
        }
    })
}

impl Config {
    /// All that is wrong with a builder's values, apart from its queue.
    pub(super) fn problems(&self, name: &str) -> Vec<Invalid> {
        let mut problems = TABLE.check(self);
        problems.extend(self.misfits(&problems));
        problems.extend(Invalid::of_name(name));
        problems
    }

    /// The parameters, described. Of the values in the table these are the ones that this pool can have: what its
    /// queue, its bound or the lack of a handler forbid is left out. A patch is read by the table nevertheless, so it is
    /// told why.
    pub(super) fn describe(&self) -> Vec<Parameter> {
        let mut all = TABLE.describe(self);
        for each in &mut all {
            if let Some((kind, is_live)) = self.possible(&each.name) {
                (each.kind, each.is_live) = (kind, is_live);
            }
            if each.kind == OPTIONAL_BOUND {
                each.help = "The most tasks that may wait in the queue; none is without a bound.";
            }
        }
        all
    }

    /// The values of a parameter that this pool can have, if they are fewer than the table says, and whether it can
    /// change.
    fn possible(&self, name: &str) -> Option<(ValueType, bool)> {
        match name {
            "capacity" => Some(match self.capacity {
                None => (OPTIONAL_BOUND, true),
                Some(0) => (NO_ROOM, false),
                Some(_) => (BOUND, true),
            }),
            "rejection" if !matches!(self.rejection, RejectionPolicy::Custom(_)) => {
                Some((ValueType::Choice(SETTABLE_REJECTIONS), true))
            }
            "overload_order" if self.queue != "fifo" => Some((OverloadOrder::OF_THE_QUEUE, false)),
            _ => None,
        }
    }

    /// Lets a problem of a patch advise only what this pool can have.
    pub(super) fn narrow_advice(&self, problem: &mut Invalid) {
        if let Invalid::WrongType {
            parameter,
            expected,
            ..
        } = problem
        {
            if let Some((kind, _)) = self.possible(parameter) {
                *expected = kind;
            }
        }
    }

    /// All parameters that do not fit each other, apart from those that are wrong by themselves.
    pub(super) fn misfits(&self, wrong: &[Invalid]) -> Vec<Invalid> {
        let Config { core, max, .. } = *self;
        let mut problems = Vec::new();
        if core > max {
            problems.push(Invalid::CoreAboveMax { core, max });
        }
        if self.core_may_time_out && self.keep_alive.is_zero() {
            problems.push(Invalid::NoKeepAlive);
        }
        if let Some(CoDel { target, interval }) = self.overload.shedding {
            if interval < target {
                problems.push(Invalid::IntervalBelowTarget { target, interval });
            }
        }
        if self.overload.order == OverloadOrder::NewestFirst && !self.overload.sheds() {
            problems.push(Invalid::NeverOverloaded);
        }
        let is_news =
            |misfit: &Invalid| !wrong.iter().any(|each| misfit.concerns(each.parameter()));
        problems.retain(is_news);
        problems
    }
}
