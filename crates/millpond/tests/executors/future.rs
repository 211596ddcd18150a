//! Futures on executors that know nothing of futures.

use crate::executor_kit::{LONG, PerTask, Rejecting, Shelf, quiet_panic};
use millpond::executor::{DirectExecutor, Executor, SpawnFuture};
use millpond::task::{self, CancelReason, TaskError, TaskSpec};
use millpond::time::{Clock, Deadline};
use millpond_testkit::{DropCount, watch};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

/// Not ready for so many polls; each asks for the next at once.
struct Yields(usize);

impl Future for Yields {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.0 == 0 {
            return Poll::Ready(());
        }
        self.0 -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Pending for ever; gives its waker to the test.
#[derive(Clone, Default)]
struct Waits(Arc<Mutex<Option<Waker>>>);

impl Future for Waits {
    type Output = u8;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<u8> {
        *self.0.lock().unwrap() = Some(context.waker().clone());
        Poll::Pending
    }
}

#[test]
fn a_future_that_is_ready_at_once_gives_its_value() {
    let _watch = watch();
    let handle = DirectExecutor::new().spawn_future(async { 7 }).unwrap();
    assert_eq!(handle.join().unwrap(), 7);
}

#[test]
fn a_future_is_polled_once_per_wake() {
    let _watch = watch();
    let shelf = Shelf::with_room(100);
    let polls = Arc::new(AtomicUsize::new(0));
    let handle = shelf
        .spawn_future({
            let polls = Arc::clone(&polls);
            async move {
                for _ in 0..3 {
                    polls.fetch_add(1, Ordering::SeqCst);
                    Yields(1).await;
                }
            }
        })
        .unwrap();
    let mut rounds = 0;
    loop {
        let mut tasks = shelf.take();
        assert!(tasks.len() <= 1, "one poll at a time");
        let Some(task) = tasks.pop() else { break };
        drop(task.run());
        rounds += 1;
    }
    assert_eq!((rounds, polls.load(Ordering::SeqCst)), (4, 3));
    handle.join().unwrap();
}

#[test]
fn a_future_that_yields_a_million_times_needs_no_more_stack_in_its_caller() {
    let _watch = watch();
    let handle = DirectExecutor::new()
        .spawn_future(Yields(1_000_000))
        .unwrap();
    handle.join().unwrap();
}

#[test]
fn a_future_hops_between_threads_and_other_tasks() {
    let _watch = watch();
    let per_task = PerTask::of(8);
    let executor = Arc::clone(&per_task.0);
    let handles: Vec<_> = (0..4)
        .map(|n| {
            let (task, inner) = task::new(move || n);
            let future = per_task
                .0
                .spawn_future(async move { inner.await.unwrap() * 10 });
            executor.execute_task(task).unwrap();
            future.unwrap()
        })
        .collect();
    for (n, mut handle) in handles.into_iter().enumerate() {
        assert_eq!(handle.join_timeout(LONG).unwrap(), n * 10);
    }
}

#[test]
fn a_panic_in_a_poll_goes_to_the_handle() {
    let _watch = watch();
    let handle = DirectExecutor::new()
        .spawn_future(async { quiet_panic("the dam broke") })
        .unwrap();
    let error = handle.join().unwrap_err();
    assert_eq!(error.to_string(), "the task panicked: the dam broke");
}

#[test]
fn a_rejected_future_is_returned_unpolled() {
    let _watch = watch();
    let drops = DropCount::new();
    let token = drops.token();
    let rejected = Arc::new(Rejecting)
        .spawn_future(async move {
            drop(token);
            7
        })
        .unwrap_err();
    assert_eq!(drops.dropped(), 0);
    let handle = DirectExecutor::new().spawn_future(rejected.task).unwrap();
    assert_eq!((handle.join().unwrap(), drops.dropped()), (7, 1));
}

#[test]
fn a_later_poll_that_is_rejected_cancels_the_handle_and_drops_the_future() {
    let _watch = watch();
    let shelf = Shelf::with_room(1);
    let (drops, waits) = (DropCount::new(), Waits::default());
    let (token, pending) = (drops.token(), waits.clone());
    let handle = shelf
        .spawn_future(async move {
            let _token = token;
            pending.await
        })
        .unwrap();
    shelf.run_all();
    assert!(!handle.is_finished());
    waits.0.lock().unwrap().take().unwrap().wake();
    assert!(matches!(
        handle.join(),
        Err(TaskError::Cancelled(CancelReason::Rejected))
    ));
    assert_eq!(drops.dropped(), 1);
}

#[test]
fn a_poll_that_its_executor_drops_cancels_the_handle() {
    let _watch = watch();
    let shelf = Shelf::with_room(1);
    let handle = shelf.spawn_future(async { 7 }).unwrap();
    drop(shelf.take());
    assert!(matches!(
        handle.join(),
        Err(TaskError::Cancelled(CancelReason::Dropped))
    ));
}

#[test]
fn cancelling_the_handle_drops_an_idle_future_at_once() {
    let _watch = watch();
    let (drops, waits) = (DropCount::new(), Waits::default());
    let (token, pending) = (drops.token(), waits.clone());
    let handle = DirectExecutor::new()
        .spawn_future(async move {
            let _token = token;
            pending.await
        })
        .unwrap();
    assert_eq!(drops.dropped(), 0);
    assert!(handle.cancel());
    assert_eq!(drops.dropped(), 1);
    waits.0.lock().unwrap().take().unwrap().wake();
}

#[test]
fn cancelling_from_inside_the_poll_drops_the_future_after_it() {
    let _watch = watch();
    let shelf = Shelf::with_room(9);
    let drops = Arc::new(DropCount::new());
    let (token, slot) = (drops.token(), Arc::new(Mutex::new(None)));
    let handle = shelf
        .spawn_future({
            let (slot, drops) = (Arc::clone(&slot), Arc::clone(&drops));
            async move {
                let _token = token;
                let handle: task::TaskHandle<u8> = slot.lock().unwrap().take().unwrap();
                assert!(handle.cancel());
                assert_eq!(drops.dropped(), 0, "it is still being polled");
                Waits::default().await
            }
        })
        .unwrap();
    *slot.lock().unwrap() = Some(handle);
    shelf.run_all();
    assert_eq!(drops.dropped(), 1);
}

#[test]
fn a_future_that_lost_its_waker_is_dropped_and_its_handle_cancelled() {
    let _watch = watch();
    let drops = DropCount::new();
    let token = drops.token();
    let handle = DirectExecutor::new()
        .spawn_future(async move {
            let _token = token;
            std::future::pending::<u8>().await
        })
        .unwrap();
    assert!(matches!(
        handle.join(),
        Err(TaskError::Cancelled(CancelReason::Dropped))
    ));
    assert_eq!(drops.dropped(), 1);
}

#[test]
fn run_or_join_waits_for_the_future() {
    let _watch = watch();
    let per_task = PerTask::of(2);
    let (task, inner) = task::new(|| 7);
    let handle = per_task.0.spawn_future(async move { inner.await.unwrap() });
    let handle = handle.unwrap();
    let joiner = std::thread::spawn(move || handle.run_or_join());
    per_task.0.execute_task(task).unwrap();
    assert_eq!(joiner.join().unwrap().unwrap(), 7);
}

#[test]
fn a_future_whose_deadline_has_passed_is_never_polled() {
    let _watch = watch();
    let shelf = Shelf::with_room(9);
    let drops = DropCount::new();
    let passed = Deadline::at(Clock::system().now());
    let (outer, spawned) = TaskSpec::new().deadline(passed).build({
        let (shelf, token) = (Arc::clone(&shelf), drops.token());
        move || {
            let future = async move {
                drop(token);
                quiet_panic("polled")
            };
            shelf.spawn_future(future).unwrap()
        }
    });
    drop(outer.run());
    let handle: task::TaskHandle<()> = spawned.join().unwrap();
    shelf.run_all();
    assert!(matches!(
        handle.join(),
        Err(TaskError::Cancelled(CancelReason::Expired))
    ));
    assert_eq!(drops.dropped(), 1);
}
