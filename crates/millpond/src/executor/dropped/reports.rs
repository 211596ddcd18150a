//! When dropped tasks are reported: the first at once, those that follow together, by an alarm.

use super::DroppedTask;
use super::tally::{DropTally, Step};
use crate::time::{Alarm, NoTimerThread};
use std::time::{Duration, Instant};

/// The dropped tasks that have not been reported. Kept under a lock of the reporter's.
#[derive(Debug)]
pub(crate) struct DropReports {
    tally: DropTally,
    alarm: Option<Alarm>,
}

impl DropReports {
    pub(crate) const fn new() -> Self {
        DropReports {
            tally: DropTally::new(),
            alarm: None,
        }
    }

    /// The last of them and their number, for [`ReportDrops::report`].
    pub(crate) fn take(&mut self) -> Option<(DroppedTask, u64)> {
        self.tally.take()
    }

    /// In a child process, which has the alarm of its parent and not the timer.
    #[cfg(not(any(millpond_loom, millpond_shuttle)))]
    pub(super) fn forget_parent(&mut self) {
        std::mem::forget(self.alarm.take());
        self.tally = DropTally::new();
    }
}

/// Reports dropped tasks: an engine by an event, the process by a line.
pub(crate) trait ReportDrops {
    /// Accesses what has not been reported, under its lock.
    fn with_drops<R>(&self, f: impl FnOnce(&mut DropReports) -> R) -> R;

    /// The time by its clock.
    fn now(&self) -> Instant;

    /// An alarm of its clock that calls [`pause_is_over`](ReportDrops::pause_is_over).
    fn alarm_after(&self, pause: Duration) -> Result<Alarm, NoTimerThread>;

    /// [Takes](DropReports::take) what has not been reported, and reports it. On the timer's thread it leaves both to
    /// another.
    fn report(&self);

    /// A task without a handle was dropped before it ran.
    fn add_dropped(&self, task: DroppedTask) {
        let now = self.now();
        let step = self.with_drops(|drops| drops.tally.add(task, now));
        obey(self, step);
    }

    /// The alarm rings.
    fn pause_is_over(&self) {
        let now = self.now();
        let step = self.with_drops(|drops| drops.tally.flush(now));
        obey(self, step);
    }

    /// Reports what has not been reported; from now on every task is reported at once.
    fn report_rest(&self) {
        let now = self.now();
        let end = |drops: &mut DropReports| (drops.tally.end(now), drops.alarm.take());
        let (is_due, alarm) = self.with_drops(end);
        drop(alarm);
        if is_due {
            self.report();
        }
    }
}

fn obey<R: ReportDrops + ?Sized>(reporter: &R, step: Step) {
    match step {
        Step::Wait => {}
        Step::SetAlarm(left) => {
            let alarm = reporter.alarm_after(left).unwrap_or_else(|no_thread| {
                reporter.with_drops(|drops| drops.tally.alarm_failed());
                no_thread.alarm
            });
            let former = reporter.with_drops(|drops| drops.alarm.replace(alarm));
            // The timer has a lock of its own.
            drop(former);
        }
        Step::Report => reporter.report(),
    }
}
