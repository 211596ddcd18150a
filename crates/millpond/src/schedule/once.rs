//! The body of a task that runs once.

use super::RunInfo;
use super::handle::Ending;
use super::ward::OwnWard;
use crate::task;
use std::time::Duration;

/// The body of a task that is no series. From here on that it is busy is its ward, which goes when its outcome is
/// delivered (K2).
pub(super) fn run_once<F: FnOnce() -> T, T>(f: F, due: u64, ward: OwnWard) -> Ending<T> {
    let (late, busy) = ward.into_core().begins_once(due);
    let core = busy.core();
    let Some(decorator) = &core.decorator else {
        return Ending::Value { value: f(), late };
    };
    let info = RunInfo {
        name: task::current_name().map(|name| name.as_str().to_owned()),
        due: core.instant(due),
        lateness: Duration::from_nanos(late),
        number: 1,
    };
    let (mut f, mut value) = (Some(f), None);
    decorator(&info, &mut || {
        value = f.take().map(|f| f()).or(value.take())
    });
    match value {
        Some(value) => Ending::Value { value, late },
        None => Ending::NotRun,
    }
}
