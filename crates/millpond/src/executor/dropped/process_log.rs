//! The line about dropped tasks that a process logs, for executors that have no listener.

use super::{DropReports, DroppedTask, ReportDrops, why};
use crate::task::Name;
use crate::time::{Alarm, Clock, NoTimerThread, Owner, Work, run_off_timer};
use millpond_raw::fork;
use millpond_raw::sync::{Mutex, global};
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

struct Shared {
    drops: DropReports,
    /// The fork generation of the process whose timer has the alarm.
    generation: u32,
}

global! {
    static SHARED: Mutex<Shared> = Mutex::new(Shared {
        drops: DropReports::new(),
        generation: 0,
    });
}

/// Logs a line about it, now or with others.
pub(in crate::executor) fn log_dropped(task: DroppedTask) {
    fork::install_handlers();
    ProcessLog.add_dropped(task);
}

struct ProcessLog;

impl ReportDrops for ProcessLog {
    fn with_drops<R>(&self, f: impl FnOnce(&mut DropReports) -> R) -> R {
        fork::register_lock(&SHARED);
        let mut shared = SHARED.lock();
        if shared.generation != fork::generation() {
            shared.drops.forget_parent();
            shared.generation = fork::generation();
        }
        f(&mut shared.drops)
    }

    fn now(&self) -> Instant {
        Clock::system().now()
    }

    fn alarm_after(&self, pause: Duration) -> Result<Alarm, NoTimerThread> {
        let clock = Clock::system();
        clock.alarm(clock.deadline(pause), &Waker::from(Arc::new(ProcessLog)))
    }

    fn report(&self) {
        // The reader of the standard error may be slow, and a subscriber is the user's.
        run_off_timer(Owner::at(0, Work::Notify), || {
            if let Some((task, dropped)) = ProcessLog.with_drops(DropReports::take) {
                log_line(&task, dropped);
            }
        });
    }
}

impl Wake for ProcessLog {
    fn wake(self: Arc<Self>) {
        self.pause_is_over();
    }
}

fn log_line(task: &DroppedTask, dropped: u64) {
    let label = task.name.as_ref().map(Name::as_str);
    let label = label.map_or("a task".into(), |name| format!("`{name}`"));
    let tasks = if dropped == 1 { "task" } else { "tasks" };
    let line = format!(
        "{label} (made at {}) was dropped before it ran ({}) and nobody holds its handle; {dropped} such \
         {tasks} since the last line. Keep the handle to hear of it where the task is submitted",
        task.location,
        why(task.reason),
    );
    #[cfg(feature = "tracing")]
    tracing::warn!(
        target: "millpond",
        event = "dropped_detached",
        task = task.name.as_ref().map(Name::as_str),
        location = %task.location,
        reason = %why(task.reason),
        count = dropped,
        "{line}"
    );
    #[cfg(not(feature = "tracing"))]
    eprintln!("millpond: {line}");
}
