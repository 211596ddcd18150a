//! The parameters of a scheduled pool, and their table.
//!
//! - **SCHEDULE-CONFIG-1** Parameters are in the pool's [state](super::state), and read and written under its lock.

use super::state::PoolState;
use crate::manage::{ParameterSpec, ParameterTable, ValueType};

/// How many may wait for their time in a pool that was not told otherwise.
const DEFAULT_PENDING: usize = 1 << 20;

/// All parameters of a scheduled pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Config {
    pub(super) max_pending: Option<usize>,
    pub(super) run_delayed_after_shutdown: bool,
    pub(super) run_series_after_shutdown: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            max_pending: Some(DEFAULT_PENDING),
            run_delayed_after_shutdown: true,
            run_series_after_shutdown: false,
        }
    }
}

impl Config {
    pub(super) fn of(state: &PoolState) -> Self {
        Config {
            max_pending: state.pending.max,
            run_delayed_after_shutdown: state.runs_delayed,
            run_series_after_shutdown: state.runs_periodic,
        }
    }

    pub(super) fn write(self, state: &mut PoolState) {
        state.pending.max = self.max_pending;
        state.runs_delayed = self.run_delayed_after_shutdown;
        state.runs_periodic = self.run_series_after_shutdown;
    }
}

/// All parameters of a scheduled pool, in the order in which consoles show them.
pub(super) const TABLE: ParameterTable<Config> = ParameterTable(&[
    ParameterSpec {
        name: "max_pending",
        kind: ValueType::Optional(&ValueType::Integer {
            min: 0,
            max: usize::MAX as u64,
        }),
        unit: Some("tasks"),
        default: |_| Some(Config::default().max_pending.into()),
        is_live: true,
        help: "The most tasks and series that may wait for their time; none is without a bound.",
        advice: "",
        get: |config| config.max_pending.into(),
        set: |config, value| {
            config.max_pending = value.as_usize();
            Ok(())
        },
    },
    ParameterSpec {
        name: "run_delayed_after_shutdown",
        kind: ValueType::Boolean,
        unit: None,
        default: |_| Some(Config::default().run_delayed_after_shutdown.into()),
        is_live: true,
        help: "Whether delayed tasks still run after a shutdown.",
        advice: "",
        get: |config| config.run_delayed_after_shutdown.into(),
        set: |config, value| {
            config.run_delayed_after_shutdown = value.is_true();
            Ok(())
        },
    },
    ParameterSpec {
        name: "run_series_after_shutdown",
        kind: ValueType::Boolean,
        unit: None,
        default: |_| Some(Config::default().run_series_after_shutdown.into()),
        is_live: true,
        help: "Whether series go on after a shutdown.",
        advice: "",
        get: |config| config.run_series_after_shutdown.into(),
        set: |config, value| {
            config.run_series_after_shutdown = value.is_true();
            Ok(())
        },
    },
]);
