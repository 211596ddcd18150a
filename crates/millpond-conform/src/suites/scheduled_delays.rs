//! When what is scheduled runs for the first time.

use super::pond::fresh_name;
use super::scheduled::{HOUR, Make, SECOND, Timers};
use crate::kit::{Factory, FailureSink, Guard, Rng, Start, Stopwatch, delays};
use millpond::executor::{ExecutorExt, RejectReason};
use millpond::time::{Clock, Deadline};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Tests of when things run in a scheduled pool that is described by a [`Make`].
#[macro_export]
macro_rules! scheduled_delays_suite {
    ($make:expr) => {
        $crate::bodies! { scheduled_delays, ($make as $crate::suites::scheduled::Make);
            a_task_that_is_submitted_without_a_delay_is_run_once_by_a_worker
            a_task_runs_when_its_delay_is_over_and_its_handle_has_the_value
            an_action_runs_when_its_delay_is_over
            by_the_clock_of_the_machine_nothing_is_early
            a_rate_begins_after_its_first_delay_and_ends_when_it_is_cancelled
            a_fixed_delay_begins_after_its_first_delay_and_ends_when_it_is_cancelled
            a_delay_that_time_cannot_tell_neither_comes_nor_blocks_others
            what_is_due_sooner_overtakes_what_came_before
            when_the_first_leaves_the_others_still_come_in_time
            all_run_in_the_order_of_their_times_whatever_leaves
            threads_that_cannot_be_started_for_the_alarm_cost_no_task
        }
    };
}

/// Holds: ScheduledExecutorTest.testExecute, ScheduledExecutorSubclassTest.testExecute
pub fn a_task_that_is_submitted_without_a_delay_is_run_once_by_a_worker(make: &Make) {
    let timers = Timers::plain(make, 2);
    let (sink, prefix) = (FailureSink::new(), format!("{}-", timers.below().name()));
    let diary = timers.diary();
    for zero in [false, true] {
        let (own, prefix) = (diary.clone(), prefix.clone());
        let body = sink.checked(move || {
            let here = std::thread::current();
            assert!(here.name().is_some_and(|name| name.starts_with(&prefix)));
            own.note();
        });
        if zero {
            drop(timers.schedule(Duration::ZERO, body).unwrap())
        } else {
            timers.execute(body).unwrap()
        }
    }
    timers.await_rest();
    assert_eq!(diary.seconds(), [0, 0], "each once, and at once");
}

/// Holds: ScheduledExecutorTest.testSchedule1, ScheduledExecutorSubclassTest.testSchedule1
pub fn a_task_runs_when_its_delay_is_over_and_its_handle_has_the_value(make: &Make) {
    let timers = Timers::plain(make, 1);
    let moment = Duration::from_nanos(1);
    let handle = timers.schedule(SECOND, || "flour").unwrap();
    timers.manual.advance(SECOND - moment);
    timers.await_rest();
    assert_eq!((handle.runs(), timers.pending()), (0, 1));
    timers.manual.advance(moment);
    assert_eq!(timers.pending(), 0, "it is with the pool below");
    assert_eq!(handle.join().unwrap(), "flour");
}

/// Holds: ScheduledExecutorSubclassTest.testSchedule3
pub fn an_action_runs_when_its_delay_is_over(make: &Make) {
    let timers = Timers::plain(make, 1);
    let diary = timers.diary();
    let note = diary.run();
    let handle = timers.schedule(3 * SECOND, note).unwrap();
    timers.pass(2);
    assert!(!handle.is_finished());
    timers.pass(2);
    assert_eq!(diary.seconds(), [3]);
    handle.join().unwrap();
}

/// The other tests advance a manual clock; here real time passes.
pub fn by_the_clock_of_the_machine_nothing_is_early(make: &Make) {
    let timers = Guard::new(Arc::new(make(fresh_name(), 2, Clock::system()).build()));
    let delay = delays::short();
    let watch = Stopwatch::start();
    let handles: Vec<_> = (1..=3)
        .map(|times| timers.schedule(times * delay, move || times))
        .collect();
    for handle in handles {
        let times = handle.unwrap().join().unwrap();
        watch.assert_at_least(times * delay);
    }
    watch.assert_prompt();
}

/// Holds: ScheduledExecutorTest.testSchedule4, ScheduledExecutorSubclassTest.testSchedule4
pub fn a_rate_begins_after_its_first_delay_and_ends_when_it_is_cancelled(make: &Make) {
    let timers = Timers::plain(make, 1);
    let diary = timers.diary();
    let series = timers.schedule_at_fixed_rate(2 * SECOND, 5 * SECOND, diary.run());
    let series = series.unwrap();
    timers.pass(8);
    assert_eq!(diary.seconds(), [2, 7]);
    assert!(series.cancel() && !series.cancel());
    assert_eq!(timers.pending(), 0);
    timers.pass(20);
    assert_eq!(diary.seconds(), [2, 7]);
    assert!(series.join().unwrap_err().is_cancelled());
}

/// Holds: ScheduledExecutorSubclassTest.testSchedule5
pub fn a_fixed_delay_begins_after_its_first_delay_and_ends_when_it_is_cancelled(make: &Make) {
    let timers = Timers::plain(make, 1);
    let diary = timers.diary();
    let series = timers.schedule_with_fixed_delay(2 * SECOND, 5 * SECOND, diary.run());
    let series = series.unwrap();
    timers.pass(8);
    assert_eq!(diary.seconds(), [2, 7]);
    assert!(series.cancel() && !series.cancel());
    assert_eq!(timers.pending(), 0);
    timers.pass(20);
    assert_eq!(diary.seconds(), [2, 7]);
    assert!(series.join().unwrap_err().is_cancelled());
}

/// Lesson 24. Adapted: in Java such a delay is cut down to one that its clock can tell; here it never
/// ends.
///
/// Holds: ScheduledExecutorTest.testScheduleWithFixedDelay_overflow
pub fn a_delay_that_time_cannot_tell_neither_comes_nor_blocks_others(make: &Make) {
    let timers = Timers::plain(make, 1);
    let diary = timers.diary();
    // It is overdue before the others come, so that what is compared with it is far apart.
    let gate = timers.hold(1);
    let first = timers.schedule(Duration::ZERO, || ()).unwrap();
    timers.manual.advance(SECOND);
    let far: Vec<_> = delays::eternities()
        .into_iter()
        .chain([Duration::from_secs(u64::MAX / 2)])
        .map(|delay| {
            let series = timers.schedule_with_fixed_delay(Duration::ZERO, delay, diary.run());
            let once = timers.schedule(delay, || panic!("it came")).unwrap();
            (series.unwrap(), once)
        })
        .collect();
    gate.open();
    first.join().unwrap();
    timers.await_rest();
    assert_eq!(diary.seconds().len(), far.len(), "each series has run once");
    for seconds in 1..=3 {
        let handle = timers.schedule(SECOND, move || seconds).unwrap();
        timers.manual.advance(SECOND);
        assert_eq!(handle.join().unwrap(), seconds);
    }
    timers.manual.advance(1000 * 365 * 24 * HOUR);
    timers.await_rest();
    for (series, once) in far {
        assert_eq!((series.runs(), once.is_finished()), (1, false));
        assert!(series.next_run() > Deadline::at(timers.manual.clock().now()));
        assert!(series.cancel() && once.cancel());
    }
    assert_eq!(timers.pending(), 0);
}

/// Lesson 34: whoever sleeps until the first is due is woken when another one becomes the first.
pub fn what_is_due_sooner_overtakes_what_came_before(make: &Make) {
    let timers = Timers::plain(make, 1);
    let mut handles = Vec::new();
    for seconds in (1..=5).rev() {
        handles.push(timers.schedule(seconds * SECOND, move || seconds).unwrap());
    }
    for seconds in 1..=5 {
        timers.manual.advance(SECOND);
        let due = handles.pop().unwrap();
        assert_eq!(due.join().unwrap(), seconds);
        assert_eq!(timers.pending(), handles.len());
    }
}

/// Lesson 34, the other way round: the alarm was set for one that has left.
pub fn when_the_first_leaves_the_others_still_come_in_time(make: &Make) {
    let timers = Timers::plain(make, 1);
    let first = timers.schedule(SECOND, || 1).unwrap();
    let second = timers.schedule(2 * SECOND, || 2).unwrap();
    let third = timers.schedule(3 * SECOND, || 3).unwrap();
    assert!(first.cancel());
    timers.pass(1);
    assert!(!second.is_finished());
    timers.pass(1);
    assert_eq!(second.join().unwrap(), 2);
    assert!(!third.is_finished());
    timers.pass(1);
    assert_eq!(third.join().unwrap(), 3);
}

/// Lessons 24 and 26: by the nanosecond and by the century, against a plain sorted list.
pub fn all_run_in_the_order_of_their_times_whatever_leaves(make: &Make) {
    const SEED: u64 = 0x5eed_0026;
    let timers = Timers::plain(make, 1);
    let (mut rng, ran) = (Rng::new(SEED), Arc::new(Mutex::new(Vec::new())));
    let (mut expected, mut handles) = (Vec::new(), Vec::new());
    for number in 0..600_usize {
        // So many bits that every distance comes: equal ones, near ones, years.
        let nanos = rng.any() >> (5 + rng.below(58));
        let own = Arc::clone(&ran);
        let body = move || own.lock().unwrap().push(number);
        let handle = timers.schedule(Duration::from_nanos(nanos) + SECOND, body);
        handles.push((number, handle.unwrap()));
        expected.push((nanos, number));
        if rng.once_in(3) {
            let (gone, handle) = handles.swap_remove(rng.below(handles.len()));
            assert!(handle.cancel(), "seed {SEED:#x}");
            expected.retain(|(_, number)| *number != gone);
        }
    }
    expected.sort_unstable();
    assert_eq!(timers.pending(), expected.len(), "seed {SEED:#x}");
    for step in [1, 1_000, 1_000_000, 1_000_000_000, u64::MAX] {
        timers.manual.advance(SECOND + Duration::from_nanos(step));
        timers.await_rest();
    }
    let expected: Vec<usize> = expected.into_iter().map(|(_, number)| number).collect();
    assert_eq!(*ran.lock().unwrap(), expected, "seed {SEED:#x}");
}

/// Lesson 30: what was accepted is not forgotten because a thread could not be had.
pub fn threads_that_cannot_be_started_for_the_alarm_cost_no_task(make: &Make) {
    for vice in [Start::Refuse, Start::DropBody, Start::Panic] {
        let own = vice.clone();
        let threads = Arc::new(Factory::new("timer", move |number| match number {
            0..=20 => own.clone(),
            _ => Start::Well,
        }));
        let clock = Clock::system().with_timer(Arc::clone(&threads));
        let timers = Guard::new(Arc::new(make(fresh_name(), 1, clock).build()));
        let watch = Stopwatch::start();
        let delay = delays::short();
        // No thread could wait for the due time, so the error holds the closure, which can be scheduled again.
        let mut closure: Box<dyn FnOnce() -> u32 + Send> = Box::new(|| 7);
        let mut refusals = 0;
        let handle = loop {
            match timers.schedule(delay, closure) {
                Ok(handle) => break handle,
                Err(rejected) => {
                    let reason = &rejected.reason;
                    assert!(matches!(reason, RejectReason::SpawnFailed(_)));
                    assert!(refusals < 100, "{vice:?}: {reason}");
                    (closure, refusals) = (rejected.task, refusals + 1);
                }
            }
        };
        assert_eq!(handle.join().unwrap(), 7, "{vice:?}");
        watch.assert_at_least(delay);
        assert!((1..=21).contains(&refusals), "{vice:?}: {refusals}");
        assert!(threads.asked() > refusals, "each asked for a thread");
        let next = timers.schedule(delay, || 8).unwrap();
        assert_eq!(next.join().unwrap(), 8, "{vice:?}");
    }
}
