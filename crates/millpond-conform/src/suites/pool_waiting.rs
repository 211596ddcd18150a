//! Tasks that wait in the queue of a pool: looking at them, taking them out, handing them back.

use super::pond::{Make, Pond};
use crate::kit::{DropCount, Gate, Latch, Stress};
use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::task::{CancelReason, Task, TaskError, TaskSpec};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Tests of the waiting tasks of a pool that is described by a [`Make`], in a queue that holds.
#[macro_export]
macro_rules! pool_waiting_suite {
    ($make:expr) => {
        $crate::bodies! { pool_waiting, ($make as $crate::suites::pond::Make);
            what_waits_can_be_seen_and_what_runs_cannot
            a_waiting_task_is_removed_once_and_a_running_one_never
            cancelled_tasks_are_purged_and_no_others
            a_stop_hands_back_what_has_not_started_and_nothing_else
            what_is_handed_back_comes_in_order
            what_is_handed_back_can_run_elsewhere_and_is_cancelled_when_it_is_dropped
            a_shutdown_lets_what_waits_run
            what_waits_can_be_cancelled_removed_and_purged_after_a_shutdown
            stops_that_race_hand_each_task_back_once
            a_waiting_task_that_its_waiter_runs_is_not_run_again
            what_is_too_late_is_shed
            a_cancelled_task_says_so_whether_it_ran_or_waited
        }
    };
}

fn one_worker(make: &Make) -> Pond {
    Pond::new(make, 10, |pool| pool.core(1).max(1))
}

/// Holds: ThreadPoolExecutorTest.testGetQueue, ThreadPoolExecutorSubclassTest.testGetQueue
pub fn what_waits_can_be_seen_and_what_runs_cannot(make: &Make) {
    let pond = one_worker(make);
    assert!(pond.queued_tasks().is_empty());
    let held = pond.hold(1);
    assert!(pond.queued_tasks().is_empty(), "it runs");
    let mut handles = Vec::new();
    for (number, name) in ["one", "two", "three"].into_iter().enumerate() {
        let spec = TaskSpec::new().name(name);
        handles.push(pond.submit_with(spec, || ()).unwrap());
        assert_eq!(pond.snapshot().queued, number + 1);
    }
    let names = || -> Vec<String> {
        let seen = pond.queued_tasks();
        seen.iter().map(|one| one.name().unwrap().into()).collect()
    };
    assert_eq!(names(), ["one", "two", "three"]);
    assert_eq!(
        names(),
        ["one", "two", "three"],
        "looking takes nothing out"
    );
    handles[1].cancel();
    let gone: Vec<bool> = pond
        .queued_tasks()
        .iter()
        .map(|one| one.is_gone())
        .collect();
    assert_eq!(gone, [false, true, false]);
    assert!(
        pond.queued_tasks()[0]
            .location()
            .file()
            .ends_with("pool_waiting.rs")
    );
    held.release();
    pond.await_idle(1);
    assert!(pond.queued_tasks().is_empty());
}

/// Holds: ThreadPoolExecutorTest.testRemove, ThreadPoolExecutorSubclassTest.testRemove
pub fn a_waiting_task_is_removed_once_and_a_running_one_never(make: &Make) {
    let (count, pond) = (DropCount::new(), one_worker(make));
    let other = one_worker(make);
    let held = pond.hold(1);
    let mut waiting = Vec::new();
    for _ in 0..5 {
        let token = count.token();
        waiting.push(pond.submit(move || drop(token)).unwrap());
    }
    assert!(!pond.remove(&held.handles[0]), "it runs");
    assert!(!other.remove(&waiting[2]), "it is another pool's");
    assert!(pond.remove(&waiting[2]));
    assert!(!pond.remove(&waiting[2]), "it is gone");
    count.assert_alive(4);
    assert_eq!(pond.snapshot().queued, 4);
    let removed = waiting.remove(2).join().unwrap_err();
    assert!(matches!(
        removed,
        TaskError::Cancelled(CancelReason::Removed)
    ));
    waiting[0].cancel();
    assert!(!pond.remove(&waiting[0]), "it was cancelled before");
    held.release();
    for (number, handle) in waiting.into_iter().enumerate() {
        let joined = handle.join();
        assert_eq!(joined.is_err(), number == 0, "all others run");
    }
    pond.await_completed(4);
    assert_eq!(pond.snapshot().cancelled, 2);
}

/// Holds: ThreadPoolExecutorTest.testPurge, ThreadPoolExecutorSubclassTest.testPurge
pub fn cancelled_tasks_are_purged_and_no_others(make: &Make) {
    let pond = one_worker(make);
    let held = pond.hold(1);
    let handles = pond.queue_up(5);
    assert_eq!(pond.purge(), 0);
    assert_eq!(pond.snapshot().task_count(), 6);
    handles[0].cancel();
    handles[3].interrupt();
    assert_eq!(pond.purge(), 2);
    let now = pond.snapshot();
    assert_eq!((now.task_count(), now.queued, now.cancelled), (4, 3, 2));
    assert_eq!(pond.purge(), 0);
    assert_eq!(pond.snapshot().task_count(), 4);
    held.release();
    pond.await_completed(4);
    for (number, handle) in handles.into_iter().enumerate() {
        match number {
            0 | 3 => assert!(handle.join().unwrap_err().is_cancelled()),
            _ => assert_eq!(handle.join().unwrap(), number),
        }
    }
}

/// Holds: ThreadPoolExecutorTest.testShutdownNow, ThreadPoolExecutorSubclassTest.testShutdownNow
pub fn a_stop_hands_back_what_has_not_started_and_nothing_else(make: &Make) {
    let pond = Pond::new(make, 10, |pool| pool.core(2).max(2));
    let running = pond.occupy(2);
    let rest: Vec<_> = (0..3)
        .map(|_| pond.submit(|| panic!("it ran")).unwrap())
        .collect();
    rest[1].cancel();
    let unstarted = pond.shutdown_now();
    assert_eq!(unstarted.len(), 2, "what was cancelled is not handed back");
    assert!(pond.is_shutdown() && pond.queued_tasks().is_empty());
    assert!(pond.shutdown_now().is_empty(), "once is enough");
    for handle in running {
        assert!(handle.join().unwrap(), "what ran was interrupted");
    }
    pond.await_end();
    let now = pond.snapshot();
    assert_eq!((now.completed, now.handed_back, now.cancelled), (2, 2, 3));
    assert_eq!(now.task_count(), 2);
    assert!(!rest[0].is_finished(), "they are still to be run by others");
    drop(unstarted);
    for handle in rest {
        assert!(handle.join().unwrap_err().is_cancelled());
    }
}

/// As it would have been run.
pub fn what_is_handed_back_comes_in_order(make: &Make) {
    let pond = one_worker(make);
    pond.occupy(1);
    for number in 0..8 {
        let spec = TaskSpec::new().name(number.to_string());
        drop(pond.submit_with(spec, || ()).unwrap());
    }
    let back = pond.shutdown_now();
    let names: Vec<&str> = back.iter().filter_map(Task::name).collect();
    assert_eq!(names, ["0", "1", "2", "3", "4", "5", "6", "7"]);
}

/// A handle completes in any case.
pub fn what_is_handed_back_can_run_elsewhere_and_is_cancelled_when_it_is_dropped(make: &Make) {
    let pond = one_worker(make);
    pond.occupy(1);
    let mut handles = pond.queue_up(3).into_iter();
    let mut unstarted = pond.shutdown_now().into_iter();
    unstarted.next().unwrap().run();
    assert_eq!(handles.next().unwrap().join().unwrap(), 0);
    unstarted.next().unwrap().cancel(CancelReason::ShutDown);
    let second = handles.next().unwrap().join().unwrap_err();
    assert!(matches!(
        second,
        TaskError::Cancelled(CancelReason::ShutDown)
    ));
    drop(unstarted);
    let third = handles.next().unwrap().join().unwrap_err();
    assert!(matches!(third, TaskError::Cancelled(CancelReason::Dropped)));
}

/// In order, and no task is interrupted.
pub fn a_shutdown_lets_what_waits_run(make: &Make) {
    let pond = one_worker(make);
    let held = pond.hold(1);
    let handles = pond.queue_up(6);
    pond.shutdown();
    assert_eq!(pond.snapshot().queued, 6);
    assert!(pond.submit(|| ()).unwrap_err().reason.is_shut_down());
    held.release();
    for (number, handle) in handles.into_iter().enumerate() {
        assert_eq!(handle.join().unwrap(), number);
    }
    pond.await_end();
    assert_eq!(pond.snapshot().completed, 7);
    assert_eq!(pond.snapshot().threads_started, 1);
}

/// Whatever takes the last task away ends the pool.
pub fn what_waits_can_be_cancelled_removed_and_purged_after_a_shutdown(make: &Make) {
    let pond = one_worker(make);
    let held = pond.hold(1);
    let handles = pond.queue_up(4);
    pond.shutdown();
    assert!(pond.remove(&handles[0]));
    handles[1].cancel();
    handles[2].cancel();
    assert_eq!(pond.purge(), 2);
    assert!(pond.remove(&handles[3]));
    assert_eq!(pond.snapshot().queued, 0);
    held.release();
    pond.await_end();
    assert_eq!(
        (pond.snapshot().completed, pond.snapshot().cancelled),
        (1, 4)
    );
}

/// No task comes back twice, none is forgotten.
pub fn stops_that_race_hand_each_task_back_once(make: &Make) {
    let make = *make;
    Stress::new("stops").one_in(20).run(|round| {
        let pond = Pond::new(&make, 64, |pool| pool.core(2).max(2));
        let ran = Arc::new(AtomicUsize::new(0));
        let mut spec = 0..40_u32;
        let mut submit = || {
            let (own, number) = (Arc::clone(&ran), spec.next().unwrap());
            let body = move || {
                own.fetch_add(1, Ordering::SeqCst);
            };
            let spec = TaskSpec::new().name(number.to_string());
            pond.submit_with(spec, body).unwrap()
        };
        let handles: Vec<_> = (0..40).map(|_| submit()).collect();
        let stoppers: Vec<_> = (0..3)
            .map(|_| {
                let own = pond.pool();
                round.actor("stopper", move |rng| -> Vec<Task> {
                    rng.jitter();
                    own.shutdown_now()
                })
            })
            .collect();
        let back: Vec<Task> = stoppers.into_iter().flat_map(|one| one.finish()).collect();
        let names: BTreeSet<&str> = back.iter().map(|task| task.name().unwrap()).collect();
        assert_eq!(names.len(), back.len(), "none comes back twice");
        pond.await_end();
        assert_eq!(ran.load(Ordering::SeqCst) + back.len(), 40);
        assert_eq!(pond.snapshot().handed_back, back.len() as u64);
        drop(back);
        assert!(handles.iter().all(|handle| handle.is_finished()));
    });
}

/// The worker finds nothing to run.
pub fn a_waiting_task_that_its_waiter_runs_is_not_run_again(make: &Make) {
    let pond = one_worker(make);
    let held = pond.hold(1);
    let ran = Arc::new(AtomicUsize::new(0));
    let own = Arc::clone(&ran);
    let handle = pond
        .submit(move || own.fetch_add(1, Ordering::SeqCst))
        .unwrap();
    handle.run_or_join().unwrap();
    held.release();
    pond.submit(|| ()).unwrap().join().unwrap();
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    pond.await_completed(3);
    let now = pond.snapshot();
    assert_eq!((now.ran_elsewhere, now.cancelled), (1, 0));
}

/// A task whose deadline passes while it waits does not run.
pub fn what_is_too_late_is_shed(make: &Make) {
    let hand = millpond::time::ManualClock::new();
    let pond = Pond::new(make, 10, |pool| pool.core(1).max(1).clock(hand.clock()));
    let held = pond.hold(1);
    let spec = |timeout: Duration| {
        let clock = hand.clock();
        TaskSpec::new()
            .deadline(clock.deadline(timeout))
            .clock(clock)
    };
    let late = pond
        .submit_with(spec(Duration::from_secs(1)), || 7)
        .unwrap();
    let early = pond
        .submit_with(spec(Duration::from_secs(9)), || 8)
        .unwrap();
    hand.advance(Duration::from_secs(2));
    held.release();
    let error = late.join().unwrap_err();
    assert!(matches!(error, TaskError::Cancelled(CancelReason::Expired)));
    assert_eq!(early.join().unwrap(), 8);
    pond.await_completed(2);
    assert_eq!(pond.snapshot().expired, 1);
}

/// Timed or not, and its handle is done at once.
///
/// Holds: ThreadPoolExecutorTest.testGet_cancelled, ThreadPoolExecutorSubclassTest.testGet_cancelled
pub fn a_cancelled_task_says_so_whether_it_ran_or_waited(make: &Make) {
    for interrupts in [false, true] {
        let pond = one_worker(make);
        let (started, gate) = (Latch::new(1), Gate::new());
        let (arrived, held) = (started.clone(), gate.clone());
        let runs = pond.submit(move || {
            arrived.arrive();
            held.wait();
        });
        let waits = pond.submit(|| ());
        started.wait();
        for mut handle in [runs.unwrap(), waits.unwrap()] {
            assert!(if interrupts {
                handle.interrupt()
            } else {
                handle.cancel()
            });
            assert!(handle.is_finished() && handle.is_cancelled());
            let timed = handle.join_timeout(Duration::ZERO).unwrap_err();
            assert!(timed.is_cancelled() && handle.is_cancelled());
        }
        gate.open();
        pond.close().unwrap();
        assert_eq!(pond.snapshot().completed, 1);
    }
}
