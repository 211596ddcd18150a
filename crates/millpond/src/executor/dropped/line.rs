//! The line about dropped tasks that a process writes, for executors that have nobody else to tell.

use super::tally::{DropTally, Step};
use super::{DroppedTask, why};
use crate::task::Name;
use crate::time::{Alarm, Clock, Owner, Work, aside};
use millpond_raw::fork;
use millpond_raw::sync::{Mutex, global};
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Duration;

struct Lines {
    tally: DropTally,
    alarm: Option<Alarm>,
    /// A child process has the alarm of its parent and not the timer: it begins anew.
    generation: u32,
}

global! {
    static LINES: Mutex<Lines> = Mutex::new(Lines {
        tally: DropTally::new(),
        alarm: None,
        generation: 0,
    });
}

fn with<R>(f: impl FnOnce(&mut Lines) -> R) -> R {
    fork::keep(&LINES);
    let mut lines = LINES.lock();
    if lines.generation != fork::generation() {
        std::mem::forget(lines.alarm.take());
        lines.tally = DropTally::new();
        lines.generation = fork::generation();
    }
    f(&mut lines)
}

/// Writes a line about it, now or with others.
pub(in crate::executor) fn write_down(task: DroppedTask) {
    fork::watch();
    let now = Clock::system().now();
    go_on(with(|lines| lines.tally.add(task, now)));
}

fn go_on(step: Step) {
    match step {
        Step::Wait => {}
        Step::SetAlarm(left) => set_alarm(left),
        Step::Tell => write(),
    }
}

fn set_alarm(left: Duration) {
    let clock = Clock::system();
    let alarm = clock.alarm(clock.deadline(left), &Waker::from(Arc::new(PauseIsOver)));
    let alarm = alarm.unwrap_or_else(|unattended| {
        with(|lines| lines.tally.alarm_failed());
        unattended.alarm
    });
    let former = with(|lines| lines.alarm.replace(alarm));
    // The timer has a lock of its own.
    drop(former);
}

struct PauseIsOver;

impl Wake for PauseIsOver {
    fn wake(self: Arc<Self>) {
        let now = Clock::system().now();
        go_on(with(|lines| lines.tally.flush(now)));
    }
}

/// The reader of the standard error may be slow, and a subscriber is the user's: neither is for the thread of
/// the timer.
fn write() {
    aside(Owner::at(0, Work::Tell), || {
        if let Some((task, dropped)) = with(|lines| lines.tally.take()) {
            write_line(&task, dropped);
        }
    });
}

fn write_line(task: &DroppedTask, dropped: u64) {
    let label = task.name.as_ref().map(Name::as_str);
    let label = label.map_or("a task".into(), |name| format!("`{name}`"));
    let tasks = match dropped {
        1 => "task",
        _ => "tasks",
    };
    let line = format!(
        "{label} (made at {}) was dropped before it ran ({}) and nobody holds its handle; {dropped} such \
         {tasks} since the last line. Keep the handle to hear of it where the task is submitted",
        task.made_at,
        why(task.reason),
    );
    #[cfg(feature = "tracing")]
    tracing::warn!(target: "millpond", dropped, "{line}");
    #[cfg(not(feature = "tracing"))]
    eprintln!("millpond: {line}");
}
