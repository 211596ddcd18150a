//! The body of a task that runs once.

use super::RunInfo;
use super::core::Ward;
use super::handle::Ending;
use crate::task;
use std::sync::Arc;
use std::time::Duration;

/// The body of a task that is no series. The ward is dropped when the closure has returned (K2).
pub(super) fn run_once<F: FnOnce() -> T, T>(f: F, due: u64, ward: Arc<Ward>) -> Ending<T> {
    let core = &*ward.0;
    let (late, _busy) = core.begins(due);
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
