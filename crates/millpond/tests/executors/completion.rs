//! Results in the order in which they come.

use crate::executor_kit::{
    Crew, Drops, LONG, Refusing, Shelf, gate, interrupt_at, interrupted_before, quiet_panic,
};
use crate::watch_kit::watch;
use millpond::executor::{AtBound, CompletionService, DirectExecutor, ThreadPerTask};
use millpond::interrupt::Interrupted;
use millpond::task::{CancelReason, TaskError};
use millpond::time::ManualClock;
use std::collections::HashSet;
use std::sync::Arc;
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
fn nothing_is_there_until_a_task_ends() {
    let _watch = watch();
    let shelf = Shelf::with_room(2);
    let results = CompletionService::new(Arc::clone(&shelf));
    results.submit(|| 1).unwrap();
    assert!(results.poll().is_none());
    assert!(results.poll_timeout(Duration::ZERO).unwrap().is_none());
    assert_eq!((results.pending(), results.arrived()), (1, 0));
    shelf.run_all();
    assert_eq!((results.pending(), results.arrived()), (0, 1));
    assert!(matches!(results.poll().unwrap().result, Ok(1)));
    assert!(results.poll().is_none());
}

#[test]
fn they_come_in_the_order_in_which_they_end() {
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
fn values_panics_and_dropped_tasks_all_arrive_once() {
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
fn a_refusal_gives_the_closure_back_and_nothing_arrives() {
    let _watch = watch();
    let results = CompletionService::new(Refusing);
    let drops = Drops::default();
    let token = drops.token();
    let refused = results.submit(move || drop(token)).unwrap_err();
    assert_eq!((results.pending(), results.arrived()), (0, 0));
    assert_eq!(drops.count(), 0);
    (refused.task)();
    assert_eq!(drops.count(), 1);
}

#[test]
fn the_first_good_one_is_used_and_the_others_are_stopped() {
    let _watch = watch();
    let crew = Crew::of(4);
    let results = CompletionService::new(Arc::clone(&crew.0));
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
    while results.arrived() > 0 {
        assert!(results.take().unwrap().result.is_err());
    }
    assert_eq!(results.pending(), 0);
}

#[test]
fn one_can_be_cancelled_and_arrives_as_such() {
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
fn waiting_ends_with_the_patience() {
    let _watch = watch();
    let hand = ManualClock::new();
    let threads = ThreadPerTask::builder("patience", 1)
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
        .at_bound(AtBound::Block)
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
    let bringers: Vec<_> = (0..2)
        .map(|bringer| {
            let results = Arc::clone(&results);
            std::thread::spawn(move || {
                for n in 0..300 {
                    results.submit(move || bringer * 1000 + n).unwrap();
                }
            })
        })
        .collect();
    for bringer in bringers {
        bringer.join().unwrap();
    }
    let seen: Vec<_> = takers.into_iter().flat_map(|t| t.join().unwrap()).collect();
    assert_eq!(seen.len(), 600);
    assert_eq!(seen.into_iter().collect::<HashSet<_>>().len(), 600);
    assert_eq!((results.pending(), results.arrived()), (0, 0));
}

#[test]
fn dropping_the_service_lets_the_tasks_go_on_and_leaks_nothing() {
    let _watch = watch();
    let shelf = Shelf::with_room(1);
    let drops = Drops::default();
    let token = drops.token();
    let results = CompletionService::new(Arc::clone(&shelf));
    results.submit(move || token).unwrap();
    drop(results);
    let tasks = shelf.take();
    assert!(!tasks[0].is_gone());
    tasks.into_iter().for_each(|task| drop(task.run()));
    assert_eq!(drops.count(), 1, "the value that nobody takes is dropped");
}
