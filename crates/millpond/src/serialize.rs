//! Serialisation (feature `serde`): snapshots, health, parameters, patches and policies.
//!
//! Durations and values are written as the text that patches are read from (`5ms`, `block(100ms)`), integers and flags as
//! themselves. Policies and patches can be read as well; a patch is a map from names of parameters to text, integers or
//! flags, as in a file of settings.

use crate::adapt::CoDel;
use crate::forkjoin::{ForkJoinSnapshot, HelpPolicy};
use crate::manage::{
    EngineSnapshot, Growth, Measurement, OverloadOrder, Parameter, Patch, RunState, Setting,
    TaskLatency, Value,
};
use crate::meter::Distribution;
use crate::pool::{Health, Metrics, PoolSnapshot, RejectionPolicy, TaskMetrics};
use crate::schedule::{ScheduleSnapshot, Upcoming};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, SerializeStruct, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// A field, as it is written.
struct Field<'a, T: ?Sized>(&'a T);

macro_rules! field_as_itself {
    ($($type:ty),*) => {$(
        impl Serialize for Field<'_, $type> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.0.serialize(serializer)
            }
        }
    )*};
}

field_as_itself!(
    String,
    Cow<'static, str>,
    Vec<String>,
    usize,
    u64,
    bool,
    Option<usize>,
    Vec<usize>,
    RunState,
    Growth,
    OverloadOrder,
    Option<CoDel>,
    Distribution,
    Vec<TaskLatency>,
    Vec<Upcoming>,
    Value,
    Option<Value>,
    Option<&'static str>,
    &'static str,
    Metrics
);

impl Serialize for Field<'_, Duration> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Value::Duration(*self.0))
    }
}

impl Serialize for Field<'_, Option<Duration>> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(duration) => Field(duration).serialize(serializer),
            None => serializer.serialize_none(),
        }
    }
}

macro_rules! struct_of_fields {
    ($type:ident { $($field:ident),* $(,)? }) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let fields = [$(stringify!($field)),*];
                let mut all = serializer.serialize_struct(stringify!($type), fields.len())?;
                $(all.serialize_field(stringify!($field), &Field(&self.$field))?;)*
                all.end()
            }
        }
    };
}

struct_of_fields!(PoolSnapshot {
    name,
    state,
    core,
    max,
    keep_alive,
    core_may_time_out,
    growth,
    capacity,
    max_queue_wait,
    shedding,
    overload_order,
    workers,
    active,
    largest,
    extra_threads,
    queued,
    is_overloaded,
    drains_in,
    running_inline,
    submitted,
    completed,
    panicked,
    cancelled_while_running,
    self_joined,
    cancelled,
    ran_elsewhere,
    expired,
    too_late,
    finished_late,
    shed,
    dropped_detached,
    left_to_policy,
    rejected,
    waited_for_room,
    discarded,
    caller_ran,
    extra_ran,
    panicked_outside,
    handed_back,
    threads_started,
    thread_failures,
});

struct_of_fields!(ForkJoinSnapshot {
    name,
    state,
    parallelism,
    workers,
    active,
    blocked,
    joining,
    spares,
    max_spares,
    sleeping,
    searching,
    largest,
    queued_outside,
    queued_by_worker,
    queued_joined,
    running,
    submitted,
    rejected,
    completed,
    ran_elsewhere,
    panicked,
    cancelled,
    expired,
    handed_back,
    installed,
    published,
    steals,
    leaps,
    max_help_depth,
    spares_exhausted,
    parks,
    wakes,
    deadlocks,
    dropped_detached,
    thread_failures,
    failed_starts_in_a_row,
});

struct_of_fields!(ScheduleSnapshot {
    name,
    state,
    pending,
    max_pending,
    run_delayed_after_shutdown,
    run_series_after_shutdown,
    series,
    submitted,
    runs,
    completed,
    failed,
    skipped,
    rejected,
    cancelled,
    rejected_when_due,
    executed,
    lateness,
    upcoming,
});

struct_of_fields!(Health {
    failed_starts_in_a_row,
    long_running,
    since_lost_wakeup,
    surplus_workers,
    lost_wakeups,
    long_runs,
    deadlocks,
    thread_failures,
    futile_spins,
    preempted_yields,
});

struct_of_fields!(Metrics {
    completed,
    panicked,
    cancelled_while_running,
    cancelled,
    expired,
    too_late,
    finished_late,
    shed,
    rejected,
    wait,
    run,
});

struct_of_fields!(TaskLatency {
    task,
    queue_wait,
    run
});

struct_of_fields!(Parameter {
    name,
    unit,
    value,
    default,
    is_live,
    help
});

impl Serialize for TaskMetrics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut all = serializer.serialize_struct("TaskMetrics", 3)?;
        all.serialize_field("label", &self.label.to_string())?;
        all.serialize_field("labels", &self.labels)?;
        all.serialize_field("metrics", &self.metrics)?;
        all.end()
    }
}

/// When it is due is an instant of this process, which means nothing elsewhere, so it is left out.
impl Serialize for Upcoming {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut all = serializer.serialize_struct("Upcoming", 2)?;
        all.serialize_field("label", &self.label)?;
        all.serialize_field("repeats", &self.repeats)?;
        all.end()
    }
}

/// All that engines have in common, and the measurements of their own as a map.
impl Serialize for EngineSnapshot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut all = serializer.serialize_struct("EngineSnapshot", 15)?;
        all.serialize_field("name", &self.name)?;
        all.serialize_field("kind", &self.kind)?;
        all.serialize_field("state", &self.state)?;
        for (name, count) in [
            ("workers", self.workers as u64),
            ("queued", self.queued as u64),
            ("running", self.running as u64),
            ("submitted", self.submitted),
            ("completed", self.completed),
            ("failed", self.failed),
            ("rejected", self.rejected),
            ("cancelled", self.cancelled),
        ] {
            all.serialize_field(name, &count)?;
        }
        all.serialize_field("latencies", &self.latencies)?;
        all.serialize_field("lateness", &self.lateness)?;
        all.serialize_field("warnings", &self.warnings)?;
        all.serialize_field("measurements", &Measurements(self.measurements()))?;
        all.end()
    }
}

struct Measurements(Vec<Measurement>);

impl Serialize for Measurements {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|each| (each.name, &each.value)))
    }
}

/// Count, total, mean, longest and a few percentiles: those of a snapshot, not its buckets.
impl Serialize for Distribution {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut all = serializer.serialize_struct("Distribution", 8)?;
        all.serialize_field("count", &self.count())?;
        let percentile = |share| self.quantile(share);
        for (name, time) in [
            ("total", self.total()),
            ("mean", self.mean()),
            ("p50", percentile(0.5)),
            ("p90", percentile(0.9)),
            ("p99", percentile(0.99)),
            ("p999", percentile(0.999)),
            ("max", self.max()),
        ] {
            all.serialize_field(name, &Field(&time))?;
        }
        all.end()
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::None => serializer.serialize_none(),
            Value::Integer(number) => serializer.serialize_u64(*number),
            Value::Boolean(is_set) => serializer.serialize_bool(*is_set),
            text => serializer.collect_str(text),
        }
    }
}

macro_rules! as_text {
    ($($type:ty),*) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    )*};
}

macro_rules! read_from_text {
    ($($type:ty),*) => {$(
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
            }
        }
    )*};
}

as_text!(RunState, HelpPolicy, RejectionPolicy, CoDel);
read_from_text!(Growth, OverloadOrder, HelpPolicy, RejectionPolicy, CoDel);

macro_rules! as_value {
    ($($type:ty),*) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                Value::from(*self).serialize(serializer)
            }
        }
    )*};
}

as_value!(Growth, OverloadOrder);

impl Serialize for Setting {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            // "none" is a value that can be read; nothing at all is not.
            Setting::Value(Value::None) => serializer.serialize_str("none"),
            Setting::Value(value) => value.serialize(serializer),
            Setting::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for Setting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl Visitor<'_> for Reader {
            type Value = Setting;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text, an integer from 0 on, true, false or nothing")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Setting, E> {
                Ok(text.into())
            }

            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Setting, E> {
                Ok(number.into())
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Setting, E> {
                // A negative one is rejected by the engine, which says what it can be.
                Ok(u64::try_from(number).map_or_else(|_| number.to_string().into(), Setting::from))
            }

            fn visit_bool<E: serde::de::Error>(self, is_set: bool) -> Result<Setting, E> {
                Ok(is_set.into())
            }

            fn visit_unit<E: serde::de::Error>(self) -> Result<Setting, E> {
                Ok(Setting::Value(Value::None))
            }

            fn visit_none<E: serde::de::Error>(self) -> Result<Setting, E> {
                Ok(Setting::Value(Value::None))
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

impl Serialize for Patch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut all = serializer.serialize_map(Some(self.changes().count()))?;
        for (name, setting) in self.changes() {
            all.serialize_entry(name, setting)?;
        }
        all.end()
    }
}

impl<'de> Deserialize<'de> for Patch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Patch;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map from names of parameters to their values")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Patch, A::Error> {
                let mut patch = Patch::new();
                while let Some((name, setting)) = map.next_entry::<String, Setting>()? {
                    patch = patch.set(name, setting);
                }
                Ok(patch)
            }
        }

        deserializer.deserialize_map(Reader)
    }
}
