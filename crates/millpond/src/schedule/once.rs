//! The body of a task that runs once.

use super::RunInfo;
use super::handle::Ending;
use super::liveness::Guard;
use crate::task;
use std::time::Duration;

pub(super) fn run_once<F: FnOnce() -> T, T>(f: F, due: u64, guard: Guard) -> Ending<T> {
    let (late, running) = guard.begin(due);
    let mut running = running.until_delivered();
    let core = running.core();
    let Some(decorator) = &core.decorator else {
        let value = f();
        running.succeed();
        return Ending::Value { value, late };
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
    running.succeed();
    match value {
        Some(value) => Ending::Value { value, late },
        None => Ending::NotRun,
    }
}
