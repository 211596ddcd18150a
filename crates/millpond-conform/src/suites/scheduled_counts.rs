//! The metrics of a scheduled pool, and of the pool below it.

use super::scheduled::{HOUR, Make, NOW, SECOND, Timers};
use crate::kit::{FailureSink, Gate, Latch, until};
use millpond::executor::Lifecycle;
use millpond::pool::ThreadPool;
use millpond::schedule::{Scheduled, ScheduledPool};
use millpond::thread::{ThreadFactory, Threads};
use std::sync::Arc;

/// Tests of the metrics of a scheduled pool that is described by a [`Make`].
#[macro_export]
macro_rules! scheduled_counts_suite {
    ($make:expr) => {
        $crate::bodies! { scheduled_counts, ($make as $crate::suites::scheduled::Make);
            the_core_is_as_it_was_told_until_it_is_changed
            the_largest_number_of_workers_is_remembered
            workers_come_with_the_work_and_go_with_the_end
            only_workers_that_run_a_task_are_active
            a_task_is_completed_when_its_body_has_ended_and_not_before
            what_waits_runs_and_ran_adds_up
            threads_come_from_the_factory_that_it_reports_and_another_one_may_be_set
            what_waits_can_be_seen_and_what_runs_is_not_among_it
            how_late_runs_began_is_measured
        }
    };
}

/// A task that is due at once, and held in the middle.
struct Held {
    gate: Gate,
    handle: Scheduled<()>,
}

fn hold(timers: &Timers) -> Held {
    let (gate, started) = (Gate::new(), Latch::new(1));
    let (held, begun) = (gate.clone(), started.clone());
    let body = move || {
        begun.arrive();
        held.wait();
    };
    let handle = timers.schedule(NOW, body).unwrap();
    started.wait();
    Held { gate, handle }
}

impl Held {
    fn release(self) {
        self.gate.open();
        self.handle.join().unwrap();
    }
}

/// Adapted: the sizes are those of the pool below, and reach through to it.
///
/// Holds: ScheduledExecutorTest.testGetCorePoolSize, ScheduledExecutorSubclassTest.testGetCorePoolSize
pub fn the_core_is_as_it_was_told_until_it_is_changed(make: &Make) {
    let timers = Timers::plain(make, 3);
    assert_eq!(timers.executor().core(), 3);
    assert_eq!(timers.executor().snapshot().core, 3);
    hold(&timers).release();
    timers.executor().set_core(2).unwrap();
    assert_eq!(timers.executor().snapshot().core, 2);
}

/// Holds: ScheduledExecutorTest.testGetLargestPoolSize
pub fn the_largest_number_of_workers_is_remembered(make: &Make) {
    let timers = Timers::plain(make, 3);
    assert_eq!(timers.below().snapshot().largest, 0);
    let held: Vec<_> = (0..3).map(|_| hold(&timers)).collect();
    assert_eq!(timers.below().snapshot().largest, 3);
    held.into_iter().for_each(Held::release);
    timers.shutdown();
    timers.await_end();
    let end = timers.below().snapshot();
    assert_eq!((end.largest, end.workers), (3, 0));
}

/// Adapted: a task that waits for its time needs no worker; in Java one sits there and waits with it.
///
/// Holds: ScheduledExecutorTest.testGetPoolSize, ScheduledExecutorSubclassTest.testGetPoolSize
pub fn workers_come_with_the_work_and_go_with_the_end(make: &Make) {
    let timers = Timers::plain(make, 2);
    let far = timers.schedule(HOUR, || ()).unwrap();
    assert_eq!(timers.below().snapshot().workers, 0);
    let held = hold(&timers);
    assert_eq!(timers.below().snapshot().workers, 1);
    held.release();
    far.cancel();
    timers.shutdown();
    timers.await_end();
    assert_eq!(timers.below().snapshot().workers, 0);
}

/// Holds: ScheduledExecutorSubclassTest.testGetActiveCount
pub fn only_workers_that_run_a_task_are_active(make: &Make) {
    let timers = Timers::plain(make, 2);
    let active = |timers: &ScheduledPool<ThreadPool>| timers.executor().snapshot().active;
    assert_eq!(active(&timers), 0);
    let (sink, own) = (FailureSink::new(), timers.share());
    let look = sink.checked(move || assert_eq!(active(&own), 1));
    timers.schedule(NOW, look).unwrap().join().unwrap();
    timers.await_rest();
    assert_eq!(active(&timers), 0);
    let held = hold(&timers);
    assert_eq!(active(&timers), 1, "seen from outside");
    held.release();
    timers.await_rest();
    assert_eq!(active(&timers), 0);
}

/// Holds: ScheduledExecutorSubclassTest.testGetCompletedTaskCount
pub fn a_task_is_completed_when_its_body_has_ended_and_not_before(make: &Make) {
    let timers = Timers::plain(make, 2);
    let completed = || timers.below().snapshot().completed;
    assert_eq!(completed(), 0);
    let held = hold(&timers);
    assert_eq!((completed(), ScheduledPool::snapshot(&timers).runs), (0, 1));
    held.release();
    until("it is completed", || completed() == 1);
}

/// Adapted: what waits for its time is counted by the scheduled pool, what has been due by the one below.
///
/// Holds: ScheduledExecutorTest.testGetTaskCount, ScheduledExecutorSubclassTest.testGetTaskCount
pub fn what_waits_runs_and_ran_adds_up(make: &Make) {
    let timers = Timers::plain(make, 1);
    let count = || timers.pending() as u64 + timers.below().snapshot().task_count();
    assert_eq!(count(), 0);
    let held = hold(&timers);
    assert_eq!(count(), 1);
    for number in 2..=5 {
        timers.schedule(number * SECOND, || ()).unwrap();
        assert_eq!(count(), u64::from(number));
    }
    timers.manual.advance(3 * SECOND);
    let now = timers.below().snapshot();
    assert_eq!((now.completed, now.active, now.queued), (0, 1, 2));
    assert_eq!((timers.pending(), count()), (2, 5));
    held.release();
    timers.shutdown();
    timers.manual.advance(2 * SECOND);
    timers.await_end();
    assert_eq!((timers.below().snapshot().completed, count()), (5, 5));
}

/// Holds: ScheduledExecutorSubclassTest.testGetThreadFactory
/// Holds: ScheduledExecutorSubclassTest.testSetThreadFactory
pub fn threads_come_from_the_factory_that_it_reports_and_another_one_may_be_set(make: &Make) {
    let timers = Timers::plain(make, 2);
    let name = || std::thread::current().name().map(str::to_owned);
    let first = timers.below().thread_factory();
    assert!(Arc::ptr_eq(&first, &timers.below().thread_factory()));
    let ran_in = timers.schedule(NOW, name).unwrap().join().unwrap();
    assert_eq!(ran_in, Some(format!("{}-1", timers.below().name())));
    let other: Arc<dyn ThreadFactory> = Arc::new(Threads::named("other"));
    timers.below().set_thread_factory(Arc::clone(&other));
    assert!(Arc::ptr_eq(&timers.below().thread_factory(), &other));
    let held = hold(&timers);
    let ran_in = timers.schedule(NOW, name).unwrap().join().unwrap();
    held.release();
    let threads = [
        Some(format!("{}-1", timers.below().name())),
        Some("other-1".into()),
    ];
    assert!(threads.contains(&ran_in), "{ran_in:?}");
    assert_eq!(timers.below().snapshot().threads_started, 2);
}

/// Adapted: a list of what is to come, in order, in place of the queue itself.
///
/// Holds: ScheduledExecutorTest.testGetQueue, ScheduledExecutorSubclassTest.testGetQueue
pub fn what_waits_can_be_seen_and_what_runs_is_not_among_it(make: &Make) {
    let timers = Timers::plain(make, 1);
    let held = hold(&timers);
    let mut far: Vec<_> = (1..=3)
        .map(|hours| timers.schedule(hours * HOUR, || ()).unwrap())
        .collect();
    let beat = timers
        .schedule_at_fixed_rate(4 * HOUR, HOUR, || ())
        .unwrap();
    let upcoming = timers.upcoming(10);
    let due: Vec<_> = upcoming.iter().map(|next| next.due).collect();
    let expected: Vec<_> = far.iter().map(|task| task.next_run()).collect();
    assert_eq!(due[..3], expected, "the one that runs is not among them");
    assert_eq!((upcoming.len(), due[3]), (4, beat.next_run()));
    assert_eq!(upcoming[0].repeats, "once");
    far.pop().unwrap().cancel();
    assert_eq!(timers.upcoming(10).len(), 3);
    timers.manual.advance(HOUR);
    assert_eq!(timers.upcoming(10).len(), 2, "one waits for a worker below");
    assert_eq!(timers.below().queued_tasks().len(), 1);
    held.release();
}

/// From when it was due until its body begins, the wait for a worker included.
pub fn how_late_runs_began_is_measured(make: &Make) {
    let timers = Timers::plain(make, 1);
    let held = hold(&timers);
    let mut late = timers.schedule(SECOND, || ()).unwrap();
    timers.manual.advance(4 * SECOND);
    held.release();
    timers.await_rest();
    assert_eq!(late.lateness(), Some(3 * SECOND));
    let now = ScheduledPool::snapshot(&timers);
    assert_eq!((now.runs, now.lateness.total()), (2, 3 * SECOND));
}
