//! Results in the order in which they come.

use crate::executor_kit::{LONG, PerTask, Rejecting, Shelf, gate, interrupted_before, quiet_panic};
use millpond::executor::{
    CompletionService, DirectExecutor, Executor, Rejected, SaturationPolicy, ThreadPerTask,
};
use millpond::interrupt::Interrupted;
use millpond::task::{CancelReason, Task, TaskError, TaskSpec};
use millpond::time::{Clock, Deadline, ManualClock};
use millpond_testkit::{DropCount, interrupt_at, watch};
use std::collections::HashSet;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

#[test]
fn a_result_carries_the_id_that_submit_returned() {
    let _watch = watch();
    let results = CompletionService::new(DirectExecutor::new());
    let one = results.submit(|| 1).unwrap();
    let two = results.submit(|| 2).unwrap();
    let first = results.take().unwrap();
    assert_eq!((first.id, first.result.unwrap()), (one, 1));
    let second = results.take().unwrap();
    assert_eq!((second.id, second.result.unwrap()), (two, 2));
    assert_ne!(one, two);
}

#[test]
fn nothing_is_ready_until_a_task_ends() {
    let _watch = watch();
    let shelf = Shelf::with_room(2);
    let results = CompletionService::new(Arc::clone(&shelf));
    results.submit(|| 1).unwrap();
    assert!(results.poll().is_none());
    assert!(results.poll_timeout(Duration::ZERO).unwrap().is_none());
    assert_eq!((results.pending(), results.ready_len()), (1, 0));
    shelf.run_all();
    assert_eq!((results.pending(), results.ready_len()), (0, 1));
    assert!(matches!(results.poll().unwrap().result, Ok(1)));
    assert!(results.poll().is_none());
}

#[test]
fn completions_are_in_the_order_in_which_the_tasks_end() {
    let _watch = watch();
    let shelf = Shelf::with_room(3);
    let results = CompletionService::new(Arc::clone(&shelf));
    for n in 0..3 {
        results.submit(move || n).unwrap();
    }
    for task in shelf.take().into_iter().rev() {
        drop(task.run());
    }
    let order: Vec<_> = (0..3)
        .map(|_| results.take().unwrap().result.unwrap())
        .collect();
    assert_eq!(order, [2, 1, 0]);
}

#[test]
fn values_panics_and_dropped_tasks_are_each_delivered_once() {
    let _watch = watch();
    let shelf = Shelf::with_room(3);
    let results = CompletionService::new(Arc::clone(&shelf));
    results.submit(|| 1).unwrap();
    results.submit(|| quiet_panic("two")).unwrap();
    results.submit(|| 3).unwrap();
    let mut tasks = shelf.take();
    drop(tasks.pop());
    tasks.into_iter().for_each(|task| drop(task.run()));
    assert!(matches!(
        results.take().unwrap().result,
        Err(TaskError::Cancelled(CancelReason::Dropped))
    ));
    assert!(matches!(results.take().unwrap().result, Ok(1)));
    assert!(matches!(
        results.take().unwrap().result,
        Err(TaskError::Panicked(_))
    ));
    assert!(results.poll().is_none());
}

#[test]
fn a_rejection_returns_the_closure_and_nothing_completes() {
    let _watch = watch();
    let results = CompletionService::new(Rejecting);
    let drops = DropCount::new();
    let token = drops.token();
    let rejected = results.submit(move || drop(token)).unwrap_err();
    assert_eq!((results.pending(), results.ready_len()), (0, 0));
    assert_eq!(drops.dropped(), 0);
    (rejected.task)();
    assert_eq!(drops.dropped(), 1);
}

#[test]
fn the_first_success_is_used_and_the_others_are_interrupted() {
    let _watch = watch();
    let per_task = PerTask::of(4);
    let results = CompletionService::new(Arc::clone(&per_task.0));
    for _ in 0..2 {
        results
            .submit(|| millpond::interrupt::sleep(LONG).map(|()| 0))
            .unwrap();
    }
    results.submit(|| quiet_panic("bad")).unwrap();
    let good = results.submit(|| Ok(7)).unwrap();
    let found = loop {
        let arrived = results.take().unwrap();
        if let Ok(Ok(value)) = arrived.result {
            break (arrived.id, value);
        }
    };
    assert_eq!(found, (good, 7));
    results.interrupt_all();
    while results.ready_len() > 0 {
        assert!(results.take().unwrap().result.is_err());
    }
    assert_eq!(results.pending(), 0);
}

#[test]
fn a_task_can_be_cancelled_and_is_delivered_as_cancelled() {
    let _watch = watch();
    let shelf = Shelf::with_room(2);
    let results = CompletionService::new(Arc::clone(&shelf));
    let one = results.submit(|| 1).unwrap();
    let two = results.submit(|| 2).unwrap();
    assert!(results.interrupt(one));
    assert!(!results.interrupt(one), "it has arrived");
    let cancelled = results.take().unwrap();
    assert_eq!(cancelled.id, one);
    assert!(cancelled.result.unwrap_err().is_cancelled());
    shelf.run_all();
    assert_eq!(results.take().unwrap().id, two);
}

#[test]
fn waiting_ends_at_the_timeout() {
    let _watch = watch();
    let hand = ManualClock::new();
    let threads = ThreadPerTask::builder("timeout", 1)
        .clock(hand.clock())
        .build()
        .unwrap();
    let results = CompletionService::new(threads);
    let (open, wait) = gate();
    results.submit(wait).unwrap();
    let mover = std::thread::spawn(move || {
        while hand.sleepers() == 0 {
            std::thread::yield_now();
        }
        hand.advance(Duration::from_secs(60));
    });
    assert!(
        results
            .poll_timeout(Duration::from_secs(60))
            .unwrap()
            .is_none()
    );
    mover.join().unwrap();
    open.send(()).unwrap();
    assert!(results.take().unwrap().result.is_ok());
}

#[test]
fn waiting_can_be_interrupted_before_and_while() {
    let _watch = watch();
    let results = Arc::new(CompletionService::<u8, _>::new(DirectExecutor::new()));
    let taken = interrupt_at("completion-taker", "completion.take", {
        let results = Arc::clone(&results);
        move || results.take().map(drop)
    });
    assert_eq!(taken, Err(Interrupted));
    let polled = interrupted_before(move || results.poll_timeout(LONG).map(drop));
    assert_eq!(polled, Err(Interrupted));
}

#[test]
fn under_load_every_completion_is_delivered_once() {
    let _watch = watch();
    let threads = ThreadPerTask::builder("load", 16)
        .at_bound(SaturationPolicy::Block)
        .build()
        .unwrap();
    let results = Arc::new(CompletionService::new(threads));
    let takers: Vec<_> = (0..3)
        .map(|_| {
            let results = Arc::clone(&results);
            std::thread::spawn(move || {
                let mut seen = Vec::new();
                for _ in 0..200 {
                    seen.push(results.take().unwrap().result.unwrap());
                }
                seen
            })
        })
        .collect();
    let submitters: Vec<_> = (0..2)
        .map(|submitter| {
            let results = Arc::clone(&results);
            std::thread::spawn(move || {
                for n in 0..300 {
                    results.submit(move || submitter * 1000 + n).unwrap();
                }
            })
        })
        .collect();
    for submitter in submitters {
        submitter.join().unwrap();
    }
    let seen: Vec<_> = takers.into_iter().flat_map(|t| t.join().unwrap()).collect();
    assert_eq!(seen.len(), 600);
    assert_eq!(seen.into_iter().collect::<HashSet<_>>().len(), 600);
    assert_eq!((results.pending(), results.ready_len()), (0, 0));
}

#[test]
fn dropping_the_service_lets_the_tasks_go_on_and_leaks_nothing() {
    let _watch = watch();
    let shelf = Shelf::with_room(1);
    let drops = DropCount::new();
    let token = drops.token();
    let results = CompletionService::new(Arc::clone(&shelf));
    results.submit(move || token).unwrap();
    drop(results);
    let tasks = shelf.take();
    assert!(!tasks[0].is_gone());
    tasks.into_iter().for_each(|task| drop(task.run()));
    assert_eq!(drops.dropped(), 1, "the value that nobody takes is dropped");
}

fn is_expired<T>(result: &Result<T, TaskError>) -> bool {
    matches!(result, Err(TaskError::Cancelled(CancelReason::Expired)))
}

#[test]
fn a_task_that_is_late_when_submitted_completes_as_expired() {
    let _watch = watch();
    let shelf = Shelf::with_room(1);
    let results = CompletionService::new(Arc::clone(&shelf));
    let now = Deadline::at(Clock::system().now());
    let late = TaskSpec::new().deadline(now);
    let id = results.submit_with(late.clone(), || 7).unwrap();
    let arrived = results.take().unwrap();
    assert_eq!(arrived.id, id);
    assert!(is_expired(&arrived.result), "{arrived:?}");
    shelf.run_all();
    assert_eq!((results.pending(), results.ready_len()), (0, 0), "once");
    // A rejection returns it whole, however late it is.
    let results = CompletionService::new(Rejecting);
    let rejected = results.submit_with(late, || 7).unwrap_err();
    assert_eq!((rejected.task)(), 7);
    assert_eq!((results.pending(), results.ready_len()), (0, 0));
}

#[test]
fn a_task_that_is_never_started_completes_at_its_deadline_however_the_clock_gets_there() {
    let _watch = watch();
    let hand = ManualClock::new();
    let shelf = Shelf::with_room(2);
    let results = CompletionService::new(Arc::clone(&shelf));
    let spec = TaskSpec::new().clock(hand.clock());
    let spec = spec.deadline(hand.clock().deadline(Duration::from_secs(5)));
    let id = results.submit_with(spec, || 7).unwrap();
    for _ in 0..4 {
        hand.advance(Duration::from_secs(1));
        assert_eq!((results.pending(), results.ready_len()), (1, 0));
    }
    hand.advance(Duration::from_secs(1));
    let arrived = results.poll().unwrap();
    assert_eq!(arrived.id, id);
    assert!(is_expired(&arrived.result), "{arrived:?}");
    assert_eq!(hand.sleepers(), 0, "no alarm is left");
    shelf.run_all();
    assert_eq!((results.pending(), results.ready_len()), (0, 0), "once");
}

#[test]
fn a_task_that_runs_past_its_deadline_completes_with_its_value() {
    let _watch = watch();
    let hand = ManualClock::new();
    let threads = ThreadPerTask::builder("mill", 1)
        .clock(hand.clock())
        .build();
    let results = CompletionService::new(threads.unwrap());
    let (begin, begun) = mpsc::channel();
    let (go, may_go) = mpsc::channel::<()>();
    let spec = TaskSpec::new().clock(hand.clock());
    let spec = spec.deadline(hand.clock().deadline(Duration::from_secs(5)));
    let body = move || {
        begin.send(()).unwrap();
        may_go.recv().unwrap_err();
        "bread"
    };
    results.submit_with(spec, body).unwrap();
    begun.recv_timeout(LONG).unwrap();
    hand.advance(Duration::from_secs(6));
    assert_eq!((results.pending(), results.ready_len()), (1, 0));
    drop(go);
    assert_eq!(results.take().unwrap().result.unwrap(), "bread");
    assert_eq!(hand.sleepers(), 0, "no alarm is left");
}

#[test]
fn no_timer_is_set_for_results_without_a_waiting_thread() {
    let _watch = watch();
    let hand = ManualClock::new();
    let spec = TaskSpec::new().clock(hand.clock());
    let spec = spec.deadline(hand.clock().deadline(Duration::from_secs(5)));
    let shelf = Shelf::with_room(3);
    let results = CompletionService::new(Arc::clone(&shelf));
    let first = results.submit_with(spec.clone(), || 1).unwrap();
    results.submit_with(spec.clone(), || 2).unwrap();
    results.submit_with(spec, || 3).unwrap();
    assert_eq!(hand.sleepers(), 0);
    // A waiting thread, even by another clock, watches the deadline, and stops watching when it leaves.
    assert!(
        results
            .poll_timeout(Duration::from_millis(1))
            .unwrap()
            .is_none()
    );
    assert_eq!(hand.sleepers(), 0);
    assert!(results.interrupt(first));
    drop(shelf.take());
    assert_eq!((results.pending(), results.ready_len()), (0, 3));
}

#[test]
fn a_waiter_is_woken_by_the_deadline_of_a_task_whichever_clock_it_uses() {
    let _watch = watch();
    for is_by_the_same in [true, false] {
        let (hand, other) = (ManualClock::new(), ManualClock::new());
        let by = if is_by_the_same { &hand } else { &other };
        let spec = TaskSpec::new().clock(by.clock());
        let spec = spec.deadline(by.clock().deadline(Duration::from_secs(5)));
        let shelf = Shelf::with_room(1);
        let timed = Timed(Arc::clone(&shelf), hand.clock());
        let results = Arc::new(CompletionService::new(timed));
        let own = Arc::clone(&results);
        let waits = thread::spawn(move || own.take().unwrap());
        // It may be waiting already: then it is woken for the new deadline.
        let id = results.submit_with(spec, || 7).unwrap();
        for _ in 0..5 {
            while by.sleepers() == 0 {
                thread::yield_now();
            }
            assert_eq!(results.ready_len(), 0);
            by.advance(Duration::from_secs(1));
        }
        let arrived = waits.join().unwrap();
        assert_eq!(arrived.id, id);
        assert!(is_expired(&arrived.result), "{arrived:?}");
        assert_eq!((hand.sleepers(), other.sleepers()), (0, 0));
    }
}

/// An executor by a clock.
#[derive(Debug)]
struct Timed(Arc<Shelf>, Clock);

impl Executor for Timed {
    fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        self.0.execute_task(task)
    }

    fn clock(&self) -> Clock {
        self.1.clone()
    }
}
