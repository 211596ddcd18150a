//! The body of a task that runs once.

use super::RunInfo;
use super::handle::Ending;
use super::liveness::Guard;
use crate::task;
use std::time::Duration;

pub(super) fn run_once<F: FnOnce() -> T, T>(f: F, due: u64, guard: Guard) -> Ending<T> {
    let (late, running) = guard.begin(due);
    let mut running = running.until_delivered();
    let engine = running.engine();
    let Some(decorator) = &engine.decorator else {
        let value = f();
        running.succeed();
        return Ending::Value { value, late };
    };
    let info = RunInfo {
        name: task::current_name().map(|name| name.as_str().to_owned()),
        due: engine.instant(due),
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

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::super::handle::Scheduled;
    use super::super::pending::Entry;
    use super::*;

    /// What docs/design/schedule.md says about the memory of a timer.
    #[test]
    #[cfg(target_pointer_width = "64")]
    fn a_timer_and_its_handle_are_small() {
        assert_eq!(size_of::<Scheduled<()>>(), 48);
        assert_eq!(size_of::<Option<Scheduled<u64>>>(), 48);
        assert_eq!(size_of::<Entry>(), 16);
        // Before the closure a cell has 48 bytes. With three words of the user's it fits into an object of 96.
        let own = size_of::<Guard>() + size_of::<u64>();
        assert_eq!(own, 24);
        assert!(size_of::<Ending<()>>() <= 48);
    }
}
