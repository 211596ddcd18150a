//! PCT schedules of executors: stopping against submitting, lanes that end against tasks that come,
//! wakes against polls, arrivals against takers.
//!
//! Each scenario runs under 500 schedules for each depth.

use crate::shuttle_kit::{pct, threads, until_interrupted};
use millpond::executor::{
    CompletionService, Executor, ExecutorExt, Lifecycle, RejectReason, Rejected, SerialExecutor,
    SpawnFuture, ThreadPerTask,
};
use millpond::task::{self, Task, TaskSpec};
use millpond::time::ManualClock;
use millpond_raw::sync::Mutex;
use millpond_raw::sync::atomic::{AtomicUsize, Ordering};
use millpond_raw::sync::thread::spawn;
use std::sync::Arc;
use std::time::Duration;

/// Rejects every second task, and drops every fifth of the rest.
#[derive(Debug)]
struct Unreliable {
    below: ThreadPerTask,
    asked: AtomicUsize,
}

impl Executor for Unreliable {
    fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        match self.asked.fetch_add(1, Ordering::SeqCst) % 4 {
            0 => Err(Rejected::new(task, RejectReason::ShutDown)),
            1 => self.below.execute_task(task),
            2 => {
                drop(task);
                Ok(())
            }
            _ => self.below.execute_task(task),
        }
    }
}

#[test]
fn a_stop_reaches_every_accepted_task() {
    pct(|| {
        let executor = Arc::new(threads(4));
        let submitter = spawn({
            let executor = Arc::clone(&executor);
            move || {
                let handles = [
                    executor.submit(until_interrupted),
                    executor.submit(until_interrupted),
                ];
                handles.map(|handle| handle.ok().map(|handle| handle.join().is_ok()))
            }
        });
        drop(executor.shutdown_now());
        submitter.join().unwrap();
        executor.await_termination().unwrap();
        assert_eq!(executor.threads(), 0);
    });
}

#[test]
fn a_submitter_at_the_bound_gets_a_slot_or_notices_the_shutdown() {
    pct(|| {
        let executor = Arc::new(threads(1));
        let submitters: Vec<_> = (0..2)
            .map(|n| {
                let executor = Arc::clone(&executor);
                spawn(move || match executor.submit(move || n) {
                    Ok(handle) => assert_eq!(handle.join().unwrap(), n),
                    Err(rejected) => assert!(rejected.reason.is_shut_down()),
                })
            })
            .collect();
        executor.shutdown();
        for submitter in submitters {
            submitter.join().unwrap();
        }
        executor.await_termination().unwrap();
    });
}

#[test]
fn a_lane_runs_all_in_order_and_is_forgotten() {
    pct(|| {
        let serial = SerialExecutor::new(threads(2));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let submitters: Vec<_> = (0..2)
            .map(|submitter| {
                let (serial, seen) = (serial.clone(), Arc::clone(&seen));
                spawn(move || {
                    let handles = [0, 1].map(|n| {
                        let seen = Arc::clone(&seen);
                        let body = move || seen.lock().push((submitter, n));
                        serial.key("one").submit(body).unwrap()
                    });
                    for handle in handles {
                        handle.join().unwrap();
                    }
                })
            })
            .collect();
        for submitter in submitters {
            submitter.join().unwrap();
        }
        serial.inner().close().unwrap();
        assert_eq!(serial.busy_keys(), 0);
        let seen = seen.lock();
        assert_eq!(seen.len(), 4);
        for submitter in 0..2 {
            let mine = seen.iter().filter(|(b, _)| *b == submitter);
            assert!(mine.map(|(_, n)| n).is_sorted());
        }
    });
}

#[test]
fn a_lane_over_an_unreliable_executor_leaves_no_task_behind() {
    pct(|| {
        let serial = SerialExecutor::new(Unreliable {
            below: threads(2),
            asked: AtomicUsize::new(0),
        });
        let submitters: Vec<_> = (0..3)
            .map(|_| {
                let serial = serial.clone();
                spawn(move || {
                    for _ in 0..2 {
                        if let Ok(handle) = serial.key("one").submit(|| ()) {
                            let joined = handle.join();
                            assert!(joined.is_ok() || joined.unwrap_err().is_cancelled());
                        }
                    }
                })
            })
            .collect();
        for submitter in submitters {
            submitter.join().unwrap();
        }
        serial.inner().below.close().unwrap();
        assert_eq!(serial.busy_keys(), 0);
    });
}

#[test]
fn stopping_the_inner_executor_of_a_lane_releases_all_of_it() {
    pct(|| {
        let serial = SerialExecutor::new(Arc::new(threads(1)));
        let submitter = spawn({
            let serial = serial.clone();
            move || {
                let handles = [0, 1].map(|_| serial.key("one").submit(until_interrupted).ok());
                for handle in handles.into_iter().flatten() {
                    drop(handle.join());
                }
            }
        });
        drop(serial.inner().shutdown_now());
        submitter.join().unwrap();
        serial.inner().await_termination().unwrap();
        assert_eq!(serial.busy_keys(), 0);
    });
}

#[test]
fn no_wake_of_a_future_is_lost() {
    pct(|| {
        let executor = Arc::new(threads(2));
        let (task, inner) = task::new(|| 7);
        let (second, other) = task::new(|| 8);
        let handle = executor
            .spawn_future(async move { inner.await.unwrap() + other.await.unwrap() })
            .unwrap();
        let wakers = [task, second].map(|task| spawn(move || drop(task.run())));
        assert_eq!(handle.join().unwrap(), 15);
        for waker in wakers {
            waker.join().unwrap();
        }
        executor.close().unwrap();
    });
}

#[test]
fn cancelling_a_future_against_its_poll_drops_it_once() {
    pct(|| {
        let executor = Arc::new(threads(2));
        let alive = Arc::new(());
        let (task, inner) = task::new(|| 7);
        let handle = executor
            .spawn_future({
                let alive = Arc::clone(&alive);
                async move {
                    let _alive = alive;
                    inner.await.unwrap()
                }
            })
            .unwrap();
        let waker = spawn(move || drop(task.run()));
        handle.cancel();
        assert!(handle.is_finished());
        drop(handle);
        waker.join().unwrap();
        executor.close().unwrap();
        assert_eq!(Arc::strong_count(&alive), 1);
    });
}

#[test]
fn every_completion_is_taken_once() {
    pct(|| {
        let results = Arc::new(CompletionService::new(threads(2)));
        let takers: Vec<_> = (0..2)
            .map(|_| {
                let results = Arc::clone(&results);
                spawn(move || results.take().unwrap().id)
            })
            .collect();
        let ids = [0, 1].map(|n| results.submit(move || n).unwrap());
        let mut taken: Vec<_> = takers.into_iter().map(|t| t.join().unwrap()).collect();
        taken.sort_unstable();
        assert_eq!(taken, ids);
        results.executor().close().unwrap();
    });
}

/// Keeps tasks until they are taken.
#[derive(Debug, Default)]
struct Shelf(Mutex<Vec<Task>>);

impl Executor for Shelf {
    fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        self.0.lock().push(task);
        Ok(())
    }
}

/// The clock is advanced, in two steps, while the task is submitted, while its alarm is being set, and
/// while another thread runs it, or none does.
#[test]
fn a_task_with_a_deadline_completes_once_whichever_thread_ends_it() {
    for runs in [true, false] {
        let scenario = move || {
            let hand = ManualClock::new();
            let shelf = Arc::new(Shelf::default());
            let results = CompletionService::new(Arc::clone(&shelf));
            let second = Duration::from_secs(1);
            let spec = TaskSpec::new().clock(hand.clock());
            let spec = spec.deadline(hand.clock().deadline(2 * second));
            let mover = spawn({
                let hand = hand.clone();
                move || (0..2).for_each(|_| hand.advance(second))
            });
            let runner = spawn({
                let shelf = Arc::clone(&shelf);
                move || {
                    let taken = shelf.0.lock().pop();
                    taken.filter(|_| runs).map(Task::run)
                }
            });
            let id = results.submit_with(spec, || 7).unwrap();
            mover.join().unwrap();
            drop(runner.join().unwrap());
            // It has ended, one way or the other: at the latest when its time was up.
            let arrived = results.poll().expect("it has arrived");
            assert_eq!(arrived.id, id);
            let is_expired = || matches!(arrived.result, Err(ref error) if error.is_cancelled());
            assert!(arrived.result.as_ref().is_ok_and(|value| *value == 7) || is_expired());
            let left = std::mem::take(&mut *shelf.0.lock());
            drop(left);
            assert_eq!((results.pending(), results.ready_len()), (0, 0), "once");
            assert_eq!(hand.sleepers(), 0, "no alarm is left");
        };
        crate::shuttle_drive::pct(500, scenario);
    }
}
