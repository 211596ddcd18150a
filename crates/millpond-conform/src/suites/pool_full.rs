//! How a pool with a bound fills up, and what happens when it is full.

use super::pond::{Held, Make, Pond};
use crate::kit::{Actor, DropCount, Gate, Latch, until};
use millpond::executor::{Executor, ExecutorExt, RejectReason};
use millpond::manage::{Growth, Patch};
use millpond::task;
use millpond::time::ManualClock;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Tests of a pool that is described by a [`Make`], with a queue that has a bound.
#[macro_export]
macro_rules! pool_full_suite {
    ($make:expr) => {
        $crate::bodies! { pool_full, ($make as $crate::suites::pond::Make);
            first_the_core_then_the_queue_then_the_maximum_then_no_more
            threads_first_first_the_maximum_then_the_queue_then_no_more
            threads_first_a_free_worker_is_used_before_another_is_started
            threads_first_more_threads_are_for_those_that_wait_too
            the_growth_can_change_while_it_runs
            what_is_too_much_comes_back_whole_with_the_reason
            the_very_task_comes_back
            there_is_room_for_exactly_as_many_as_was_said
            a_cancelled_task_gives_its_place_back
            a_cancelled_task_gives_its_place_to_every_way_of_growing
            more_capacity_is_room_at_once_and_less_keeps_what_waits
            without_a_core_the_first_task_has_a_worker
        }
    };
}

/// Core 2, two places, maximum 4.
fn small(make: &Make, growth: Growth) -> Pond {
    Pond::new(make, 2, |pool| pool.core(2).max(4).growth(growth))
}

/// Submits one task after the other, each held in its middle, and returns how many workers and how
/// many waiting tasks there are after each.
fn fill(pond: &Pond, gate: &Gate) -> Vec<(usize, usize)> {
    let mut seen = Vec::new();
    loop {
        let gate = gate.clone();
        match pond.execute(move || gate.wait()) {
            Err(rejected) => {
                assert!(rejected.reason.is_saturated());
                return seen;
            }
            Ok(()) => {
                until("those that have a worker run", || {
                    let now = pond.snapshot();
                    now.active == now.workers
                });
                let now = pond.snapshot();
                seen.push((now.workers, now.queued));
            }
        }
    }
}

/// Java's rule.
pub fn first_the_core_then_the_queue_then_the_maximum_then_no_more(make: &Make) {
    let (pond, gate) = (small(make, Growth::QueueFirst), Gate::new());
    let _open = gate.open_at_end();
    let seen = fill(&pond, &gate);
    assert_eq!(seen, [(1, 0), (2, 0), (2, 1), (2, 2), (3, 2), (4, 2)]);
    gate.open();
    pond.await_completed(6);
}

/// For those whose tasks block.
pub fn threads_first_first_the_maximum_then_the_queue_then_no_more(make: &Make) {
    let (pond, gate) = (small(make, Growth::ThreadsFirst), Gate::new());
    let _open = gate.open_at_end();
    let seen = fill(&pond, &gate);
    assert_eq!(seen, [(1, 0), (2, 0), (3, 0), (4, 0), (4, 1), (4, 2)]);
    gate.open();
    pond.await_completed(6);
}

/// More threads are for tasks that would wait.
pub fn threads_first_a_free_worker_is_used_before_another_is_started(make: &Make) {
    let pond = Pond::new(make, 8, |pool| {
        pool.core(1).max(4).growth(Growth::ThreadsFirst)
    });
    for _ in 0..10 {
        pond.submit(|| ()).unwrap().join().unwrap();
        pond.await_idle(1);
    }
    assert_eq!(pond.snapshot().threads_started, 1);
    let held = pond.hold(1);
    pond.submit(|| ()).unwrap().join().unwrap();
    until("the second is idle", || pond.idle() == 1);
    pond.submit(|| ()).unwrap().join().unwrap();
    assert_eq!(pond.snapshot().threads_started, 2);
    held.release();
}

/// A greater maximum, or another growth: whoever waits gets a worker, as if it came now.
pub fn threads_first_more_threads_are_for_those_that_wait_too(make: &Make) {
    for patch in [
        Patch::new().max(4),
        Patch::new().max(4).growth(Growth::ThreadsFirst),
    ] {
        let growth = match patch.get("growth") {
            None => Growth::ThreadsFirst,
            Some(_) => Growth::QueueFirst,
        };
        let pond = Pond::new(make, 2, |pool| pool.core(1).max(1).growth(growth));
        let (held, started, gate) = (pond.hold(1), Latch::new(2), Gate::new());
        let _open = gate.open_at_end();
        for _ in 0..2 {
            let (started, gate) = (started.clone(), gate.clone());
            let body = move || {
                started.arrive();
                gate.wait();
            };
            pond.execute(body).unwrap();
        }
        assert_eq!(pond.snapshot().queued, 2);
        pond.apply(&patch).unwrap();
        started.wait();
        assert_eq!((pond.snapshot().workers, pond.snapshot().queued), (3, 0));
        gate.open();
        held.release();
    }
}

/// Workers that are idle at the change count as free after it.
pub fn the_growth_can_change_while_it_runs(make: &Make) {
    let hand = ManualClock::new();
    let pond = Pond::new(make, 2, |pool| {
        let pool = pool.core(2).max(4).clock(hand.clock());
        pool.keep_alive(Duration::MAX)
    });
    let held = pond.hold(2);
    pond.queue_up(1);
    pond.set_growth(Growth::ThreadsFirst);
    assert_eq!(pond.growth(), Growth::ThreadsFirst);
    let more = pond.hold(2);
    assert_eq!(pond.snapshot().workers, 4);
    pond.set_growth(Growth::QueueFirst);
    pond.queue_up(2);
    assert!(pond.submit(|| ()).unwrap_err().reason.is_saturated());
    held.release();
    more.release();
    pond.await_idle(4);
    let patch = Patch::new().core(0).max(5).growth(Growth::ThreadsFirst);
    let patch = patch.keep_alive(Duration::from_secs(10));
    pond.apply(&patch).unwrap();
    // Those that look at the clock have heard of the change.
    until("all have looked again", || hand.sleepers() == 4);
    pond.await_idle(4);
    pond.submit(|| ()).unwrap().join().unwrap();
    assert_eq!(pond.snapshot().threads_started, 4, "four were free");
}

/// All that it takes to be full: one worker that is held, and a place that is taken.
fn full(make: &Make) -> (Pond, Held) {
    let pond = Pond::new(make, 1, |pool| pool.core(1).max(1));
    let held = pond.hold(1);
    pond.queue_up(1);
    (pond, held)
}

/// Unrun, and the metrics show nothing of it but the rejection.
pub fn what_is_too_much_comes_back_whole_with_the_reason(make: &Make) {
    let (pond, held) = full(make);
    let count = DropCount::new();
    let before = pond.snapshot();
    for rejections in 1..=3 {
        let token = count.token();
        let rejected = pond.submit(move || token).unwrap_err();
        match rejected.reason {
            RejectReason::Saturated {
                queued,
                capacity,
                workers,
                ..
            } => assert_eq!((queued, capacity, workers), (1, 1, 1)),
            other => panic!("{other:?}"),
        }
        count.assert_alive(1);
        drop((rejected.task)());
        let mut now = pond.snapshot();
        assert_eq!((now.left_to_policy, now.rejected), (rejections, rejections));
        (now.left_to_policy, now.rejected) = (before.left_to_policy, before.rejected);
        assert_eq!(now, before, "nothing else has changed");
    }
    held.release();
}

/// `execute` gives back what it was given, ready to be run by another.
pub fn the_very_task_comes_back(make: &Make) {
    let (pond, held) = full(make);
    let (own, mut handle) = task::new(|| 7);
    let rejected = pond.execute_task(own).unwrap_err();
    assert!(!rejected.task.is_gone());
    assert!(handle.try_join().is_none());
    rejected.task.run();
    assert_eq!(handle.join().unwrap(), 7);
    held.release();
}

/// Under pressure from several sides.
pub fn there_is_room_for_exactly_as_many_as_was_said(make: &Make) {
    for growth in [Growth::QueueFirst, Growth::ThreadsFirst] {
        for (core, max, capacity) in [(0, 1, 1), (1, 3, 2), (2, 2, 5), (0, 4, 3)] {
            let pond = Pond::new(make, capacity, |pool| {
                pool.core(core).max(max).growth(growth)
            });
            let gate = Gate::new();
            let (accepted, tries) = (Arc::new(AtomicUsize::new(0)), Latch::new(3));
            let submitters: Vec<_> = (0..3)
                .map(|_| {
                    let (own, gate, tries) = (pond.pool(), gate.clone(), tries.clone());
                    let accepted = Arc::clone(&accepted);
                    Actor::start("submitter", move || {
                        for _ in 0..20 {
                            let gate = gate.clone();
                            let taken = own.execute(move || gate.wait()).is_ok();
                            accepted.fetch_add(usize::from(taken), Ordering::SeqCst);
                        }
                        tries.arrive();
                    })
                })
                .collect();
            tries.wait();
            // A worker that has just taken a task from the queue has left a place behind.
            let room = core.max(1)..=max;
            let taken = accepted.load(Ordering::SeqCst);
            let now = pond.snapshot();
            assert!(room.contains(&now.workers), "{now:?}");
            assert!(taken <= max + capacity, "{taken} for {max} + {capacity}");
            until("all that have a worker run", || {
                let now = pond.snapshot();
                now.active == now.workers
            });
            let mut last = taken;
            while pond
                .execute({
                    let gate = gate.clone();
                    move || gate.wait()
                })
                .is_ok()
            {
                last += 1;
                until("all that have a worker run", || {
                    let now = pond.snapshot();
                    now.active == now.workers
                });
            }
            assert_eq!(last, max + capacity, "{growth}, {core} to {max}");
            gate.open();
            for submitter in submitters {
                submitter.finish();
            }
        }
    }
}

/// No task is rejected for the sake of one that will never run.
pub fn a_cancelled_task_gives_its_place_back(make: &Make) {
    let pond = Pond::new(make, 3, |pool| pool.core(1).max(1));
    let held = pond.hold(1);
    let waiting = pond.queue_up(3);
    assert!(pond.submit(|| 0).is_err());
    waiting[1].cancel();
    let instead = pond.submit(|| 7).expect("there is room again");
    assert!(pond.submit(|| 0).unwrap_err().reason.is_saturated());
    held.release();
    assert_eq!(instead.join().unwrap(), 7);
    pond.await_completed(4);
    assert_eq!(pond.snapshot().cancelled, 1);
}

/// Also where another worker, or another policy, would have come first.
pub fn a_cancelled_task_gives_its_place_to_every_way_of_growing(make: &Make) {
    for growth in [Growth::QueueFirst, Growth::ThreadsFirst] {
        let pond = Pond::new(make, 2, |pool| pool.core(1).max(2).growth(growth));
        let held = pond.hold(1);
        let more = match growth {
            Growth::QueueFirst => None,
            Growth::ThreadsFirst => Some(pond.hold(1)),
        };
        let waiting = pond.queue_up(2);
        drop(waiting.iter().map(|one| one.cancel()).collect::<Vec<_>>());
        // With a queue full of cancelled ones and a worker less than allowed, either will do.
        let accepted: Vec<_> = (0..3).map_while(|_| pond.submit(|| 7).ok()).collect();
        assert!(accepted.len() >= 2, "{growth}");
        held.release();
        drop(more);
        for handle in accepted {
            assert_eq!(handle.join().unwrap(), 7);
        }
    }
}

/// What waits beyond the bound stays.
pub fn more_capacity_is_room_at_once_and_less_keeps_what_waits(make: &Make) {
    let (pond, held) = full(make);
    assert_eq!(pond.capacity(), Some(1));
    pond.set_capacity(3).unwrap();
    assert_eq!(pond.capacity(), Some(3));
    let mut waiting = pond.queue_up(2);
    assert!(pond.submit(|| 0).is_err());
    pond.set_capacity(2).unwrap();
    assert_eq!((pond.capacity(), pond.snapshot().queued), (Some(2), 3));
    assert!(pond.submit(|| 0).is_err());
    assert!(pond.remove(&waiting.pop().unwrap()));
    assert!(pond.submit(|| 0).is_err(), "it is just full");
    assert!(pond.remove(&waiting.pop().unwrap()));
    assert_eq!(pond.queue_up(1).len(), 1);
    assert!(
        pond.set_capacity(0).is_err(),
        "a queue that holds has a place"
    );
    assert_eq!(pond.capacity(), Some(2));
    held.release();
    pond.await_completed(3);
}

/// A queue alone runs nothing.
pub fn without_a_core_the_first_task_has_a_worker(make: &Make) {
    for growth in [Growth::QueueFirst, Growth::ThreadsFirst] {
        let pond = Pond::new(make, 4, |pool| pool.core(0).max(2).growth(growth));
        assert_eq!(pond.submit(|| 7).unwrap().join().unwrap(), 7);
        assert_eq!(pond.snapshot().workers, 1);
    }
}
