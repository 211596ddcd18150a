//! PCT schedules of futures that wait for room in a pool and for its end, and of tasks that are interrupted at a time.

use crate::shuttle_kit::{join_all, pct, pool};
use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::interrupt;
use millpond::pool::{Queue, ThreadPool};
use millpond::task::{CancelReason, TaskError, TaskSpec};
use millpond_raw::park::{self, Site};
use millpond_raw::sync::atomic::{AtomicUsize, Ordering};
use millpond_raw::sync::thread::spawn;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

fn block_on<R>(future: impl Future<Output = R>) -> R {
    let mut future = pin!(future);
    let here = park::current();
    let waker = here.waker();
    loop {
        if let Poll::Ready(ready) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return ready;
        }
        here.park(Site::new("test.block_on"));
    }
}

fn one_place(queue: Queue) -> ThreadPool {
    pool(1, 1, queue).0.build().unwrap()
}

/// Two threads that submit by futures, and one future that is polled once and dropped.
fn through_one_place(queue: Queue) {
    let pool = one_place(queue);
    let ran = Arc::new(AtomicUsize::new(0));
    let count = |ran: &Arc<AtomicUsize>| {
        let ran = Arc::clone(ran);
        move || {
            ran.fetch_add(1, Ordering::Relaxed);
        }
    };
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let (pool, body) = (pool.clone(), [count(&ran), count(&ran)]);
            spawn(move || {
                for body in body {
                    block_on(async { pool.submit_when_room(body).await.unwrap().await.unwrap() });
                }
            })
        })
        .collect();
    let mut dropped = pool.submit_when_room(|| ());
    let polled = Pin::new(&mut dropped).poll(&mut Context::from_waker(Waker::noop()));
    drop(dropped);
    drop(polled);
    join_all(threads);
    assert_eq!(ran.load(Ordering::Relaxed), 4);
    block_on(pool.close_async());
    let now = pool.snapshot();
    let gone = now.completed + now.cancelled + now.handed_back;
    assert_eq!((now.queued, gone), (0, now.submitted));
    assert_eq!(now.submitted + now.rejected, 5);
}

#[test]
fn every_future_gets_room_and_one_that_is_dropped_keeps_it_from_nobody() {
    pct(|| through_one_place(Queue::bounded(1)));
}

#[test]
fn every_future_hands_its_task_over() {
    pct(|| through_one_place(Queue::hand_off()));
}

#[test]
fn a_shutdown_wakes_every_future_that_waits_for_room_and_for_the_end() {
    pct(|| {
        let pool = one_place(Queue::bounded(1));
        let waits: Vec<_> = (0..2)
            .map(|_| {
                let pool = pool.clone();
                spawn(move || {
                    for _ in 0..2 {
                        if let Ok(handle) = block_on(pool.submit_when_room(|| ())) {
                            handle.join().unwrap();
                        }
                    }
                    block_on(pool.terminated());
                    assert!(pool.is_terminated());
                })
            })
            .collect();
        pool.shutdown();
        join_all(waits);
        let now = pool.snapshot();
        assert_eq!((now.completed, now.queued), (now.submitted, 0));
        assert_eq!(now.submitted + now.rejected, 4);
    });
}

/// It is interrupted, or dropped unrun, or it ends before; the next one on the same worker never hears of it.
#[test]
fn the_time_of_a_task_interrupts_that_task_alone() {
    pct(|| {
        let (builder, hand) = pool(1, 1, Queue::bounded(2));
        let pool = builder.build().unwrap();
        let second = Duration::from_secs(1);
        let spec = TaskSpec::new().finish_by(hand.clock().deadline(second));
        let nap = pool.submit_with(spec, move || interrupt::sleep(2 * second).is_err());
        let next = pool.submit(interrupt::is_interrupted);
        hand.advance(second);
        hand.advance(2 * second);
        match nap.unwrap().join() {
            Ok(_interrupted_or_over) => {}
            Err(TaskError::Cancelled(CancelReason::TooLate)) => {}
            Err(other) => panic!("{other}"),
        }
        assert!(!next.unwrap().join().unwrap());
        pool.close().unwrap();
    });
}
