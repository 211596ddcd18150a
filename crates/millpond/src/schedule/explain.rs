//! A scheduled pool in sentences: what it waits for, how late it is, and what is wrong. A snapshot comes in, sentences go
//! out.

use super::ScheduledPool;
use super::snapshot::ScheduleSnapshot;
use crate::executor::Executor;
use crate::manage::RunState;
use std::time::{Duration, Instant};

/// Runs that begin later than this are late.
const LATE: Duration = Duration::from_millis(100);

impl<E: Executor + 'static> ScheduledPool<E> {
    /// The pool in sentences: what it waits for, how late its runs begin, and what would help. What its executor does is
    /// for that to say.
    ///
    /// ```
    /// use millpond::preset;
    /// use std::time::Duration;
    ///
    /// let timers = preset::scheduled("bells", 1)?;
    /// assert_eq!(timers.explain(), "bells is running, and nothing is planned.");
    /// let noon = timers.schedule(Duration::from_secs(3600), || ())?;
    /// assert!(timers.explain().starts_with("bells is running: 1 task waits for its time. "));
    /// # noon.cancel();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn explain(&self) -> String {
        let now = self.snapshot();
        let is_executor_down = self.is_executor_down(now.state);
        explain(&now, self.engine.clock.now(), is_executor_down)
    }
}

fn explain(now: &ScheduleSnapshot, at: Instant, is_executor_down: bool) -> String {
    let mut sentences = vec![situation(now)];
    sentences.extend(next(now, at));
    sentences.extend(lateness(now));
    sentences.extend(advice(now, is_executor_down));
    sentences.join(" ")
}

fn situation(now: &ScheduleSnapshot) -> String {
    let ScheduleSnapshot { name, state, .. } = now;
    let series = match now.series {
        0 => String::new(),
        1 => ", 1 series goes on".to_owned(),
        many => format!(", {many} series go on"),
    };
    match (state, now.pending) {
        (RunState::Terminated, _) => format!("{name} has ended."),
        (_, 0) if now.series == 0 => format!("{name} is {state}, and nothing is planned."),
        (_, 1) => format!("{name} is {state}: 1 task waits for its time{series}."),
        (_, many) => format!("{name} is {state}: {many} tasks wait for their time{series}."),
    }
}

fn next(now: &ScheduleSnapshot, at: Instant) -> Option<String> {
    let next = now.upcoming.first()?;
    let due = next.due.instant()?;
    let label = &next.label;
    Some(match due.checked_duration_since(at) {
        Some(left) if !left.is_zero() => format!("The next is {label}, in {left:.1?}."),
        _ => format!("The next is {label}, which is due now."),
    })
}

fn lateness(now: &ScheduleSnapshot) -> Option<String> {
    let late = now.lateness.quantile(0.99);
    (late > LATE).then(|| {
        format!(
            "One run in a hundred begins more than {late:.1?} late: the executor has too few workers, or its tasks take \
             too long."
        )
    })
}

fn advice(now: &ScheduleSnapshot, is_executor_down: bool) -> Vec<String> {
    let mut sentences = Vec::new();
    if is_executor_down {
        sentences.push(
            "The executor below is shut down: tasks that become due are cancelled. Shut this pool down, too."
                .to_owned(),
        );
    }
    if now.state == RunState::Running && now.max_pending.is_some_and(|most| now.pending >= most) {
        sentences.push(
            "As many tasks wait as may, and further ones are rejected: raise max_pending, or schedule less."
                .to_owned(),
        );
    }
    if now.rejected_when_due > 0 {
        sentences.push(format!(
            "Tasks that the executor has rejected when they were due: {}. Raise its capacity, or have it make its caller \
             wait.",
            now.rejected_when_due
        ));
    }
    if now.skipped > 0 {
        sentences.push(format!(
            "Due times of series that were skipped, because the run before was still going: {}. Runs take longer than \
             their period.",
            now.skipped
        ));
    }
    sentences
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;
    use crate::executor::DirectExecutor;
    use crate::manage::RunState;
    use crate::time::ManualClock;

    fn snapshot() -> ScheduleSnapshot {
        ScheduledPool::on(DirectExecutor::new())
            .name("bells")
            .build()
            .snapshot()
    }

    #[test]
    fn what_is_wrong_is_said_and_what_would_help() {
        let mut now = snapshot();
        (now.pending, now.max_pending, now.series) = (2, Some(2), 1);
        (now.rejected_when_due, now.skipped) = (3, 4);
        let said = explain(&now, ManualClock::new().clock().now(), true);
        for part in [
            "bells is running: 2 tasks wait for their time, 1 series goes on.",
            "The executor below is shut down",
            "raise max_pending",
            "when they were due: 3.",
            "was still going: 4.",
        ] {
            assert!(said.contains(part), "{said}");
        }
    }

    #[test]
    fn a_pool_that_has_ended_says_just_that() {
        let mut now = snapshot();
        now.state = RunState::Terminated;
        assert_eq!(
            explain(&now, ManualClock::new().clock().now(), false),
            "bells has ended."
        );
    }
}
