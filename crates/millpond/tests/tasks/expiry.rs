//! A waiting thread is woken at the deadline of the task, and not when the task's turn comes.

use millpond::executor::ExecutorExt;
use millpond::pool::{Queue, ThreadPool};
use millpond::task::{CancelReason, TaskError, TaskSpec};
use millpond::time::{Clock, ManualClock};
use millpond_raw::sync::thread;
use std::future::Future;
use std::pin::pin;
use std::sync::mpsc::channel;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

fn with_a_second(clock: &Clock) -> TaskSpec {
    let deadline = clock.deadline(SECOND);
    TaskSpec::new().clock(clock.clone()).deadline(deadline)
}

fn is_expired(error: &TaskError) -> bool {
    matches!(error, TaskError::Cancelled(CancelReason::Expired))
}

#[test]
fn a_join_ends_at_the_deadline_of_a_task_that_no_worker_starts() {
    let hand = ManualClock::new();
    let (task, handle) = with_a_second(&hand.clock()).build(|| 7);
    let joiner = thread::spawn(move || handle.join());
    while hand.sleepers() == 0 {
        thread::yield_now();
    }
    hand.advance(SECOND);
    assert!(is_expired(&joiner.join().unwrap().unwrap_err()));
    assert!(task.is_gone());
}

#[test]
fn so_does_that_of_a_shared_handle() {
    let hand = ManualClock::new();
    let (_task, handle) = with_a_second(&hand.clock()).build(|| 7);
    let handle = handle.shared();
    hand.advance(SECOND);
    assert!(is_expired(&handle.join().unwrap_err()));
}

#[test]
fn a_future_is_woken_when_the_deadline_comes() {
    let hand = ManualClock::new();
    let (_task, handle) = with_a_second(&hand.clock()).build(|| 7);
    let (_other, shared) = with_a_second(&hand.clock()).build(|| 7);
    let mut context = Context::from_waker(Waker::noop());
    let (mut handle, mut shared) = (pin!(handle), pin!(shared.shared()));
    assert!(handle.as_mut().poll(&mut context).is_pending());
    assert!(shared.as_mut().poll(&mut context).is_pending());
    assert_eq!(hand.sleepers(), 2, "an alarm each");
    hand.advance(SECOND);
    for polled in [
        handle.as_mut().poll(&mut context),
        shared.as_mut().poll(&mut context),
    ] {
        let Poll::Ready(Err(error)) = polled else {
            panic!("it is too late");
        };
        assert!(is_expired(&error));
    }
    assert_eq!(hand.sleepers(), 0);
}

#[test]
fn a_task_that_has_started_in_time_may_take_its_time() {
    let hand = ManualClock::new();
    let also = hand.clone();
    let (task, handle) = with_a_second(&hand.clock()).build(move || {
        also.advance(10 * SECOND);
        7
    });
    let worker = thread::spawn(move || drop(task.run()));
    assert_eq!(handle.join().unwrap(), 7);
    worker.join().unwrap();
}

#[test]
fn in_a_pool_its_queue_slot_is_freed_and_it_counts_as_expired() {
    let hand = ManualClock::new();
    let pool = ThreadPool::builder("mill")
        .max(1)
        .queue(Queue::bounded(1))
        .clock(hand.clock())
        .build()
        .unwrap();
    let ((go, wait), (begun, begins)) = (channel::<()>(), channel());
    let running = pool
        .submit(move || begun.send(()).is_ok() && wait.recv().is_err())
        .unwrap();
    begins.recv().unwrap();
    let late = pool
        .submit_with(with_a_second(&hand.clock()), || 7)
        .unwrap();
    assert!(pool.submit(|| 8).is_err(), "there is no room");
    hand.advance(SECOND);
    assert!(
        is_expired(&late.join().unwrap_err()),
        "its turn has not come"
    );
    let next = pool.submit(|| 8).unwrap();
    drop(go);
    assert!(running.join().unwrap());
    assert_eq!(next.join().unwrap(), 8);
    assert_eq!(pool.snapshot().expired, 1);
}
