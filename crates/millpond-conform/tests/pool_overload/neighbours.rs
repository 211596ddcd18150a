//! Hooks, other executors, futures and scopes on a pool that sheds; and all of it under load.

use crate::mill::{Mill, TOO_LONG, ms, whys};
use millpond::executor::{ExecutorExt, Lifecycle, SerialExecutor, SpawnFuture};
use millpond::manage::OverloadOrder;
use millpond::pool::{Ended, Hooks, PoolBuilder, Queue, TaskInfo, ThreadPool};
use millpond::task::{CancelReason, TaskError};
use millpond_conform::kit::{case, until};
use millpond_conform::suites::pond::{Pond, fresh_name};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Default)]
struct Ears {
    before: AtomicUsize,
    gone: AtomicUsize,
}

impl Hooks for Ears {
    fn before(&self, _: &TaskInfo) {
        self.before.fetch_add(1, Ordering::SeqCst);
    }

    fn after(&self, _: &TaskInfo, ended: Ended) {
        let gone = usize::from(ended == Ended::Gone);
        self.gone.fetch_add(gone, Ordering::SeqCst);
    }
}

#[test]
fn hooks_hear_of_what_is_shed_as_of_all_that_is_gone() {
    case("hooks", || {
        let ears = Arc::new(Ears::default());
        let own = Arc::clone(&ears);
        let mill = Mill::new(|pool| pool.max_queue_wait(ms(20)).hooks(own));
        let held = mill.pond.hold(1);
        let all = mill.bring_all(0..2, 30);
        held.release();
        assert_eq!(whys(all), [None, TOO_LONG]);
        mill.await_rest();
        assert_eq!(ears.before.load(Ordering::SeqCst), 3);
        assert_eq!(ears.gone.load(Ordering::SeqCst), 1);
    });
}

/// A drain of a serial executor works for others, and they have deadlines of their own.
#[test]
fn the_machinery_of_other_executors_is_not_shed() {
    case("kept", || {
        let mill = Mill::new(|pool| pool.max_queue_wait(ms(20)));
        let serial = SerialExecutor::new(mill.pond.pool());
        let held = mill.pond.hold(1);
        let in_order = serial.key("one").submit(|| 7).unwrap();
        mill.hand.advance(ms(30));
        held.release();
        assert_eq!(in_order.join().unwrap(), 7);
        assert_eq!(mill.await_rest().shed, 0);
    });
}

/// What has begun is polled to its end; what has not is shed, and its handle says so.
#[test]
fn a_future_is_shed_before_it_begins_and_never_afterwards() {
    case("futures", || {
        let mill = Mill::new(|pool| pool.max_queue_wait(ms(20)));
        let (wake, woken) = (Arc::new(Mutex::new(None)), Arc::new(AtomicUsize::new(0)));
        let (kept, polls) = (Arc::clone(&wake), Arc::clone(&woken));
        let begun = mill
            .pond
            .pool()
            .spawn_future(std::future::poll_fn(move |context| {
                match polls.fetch_add(1, Ordering::SeqCst) {
                    0 => {
                        *kept.lock().unwrap() = Some(context.waker().clone());
                        std::task::Poll::Pending
                    }
                    _ => std::task::Poll::Ready(7),
                }
            }));
        until("it has been polled", || wake.lock().unwrap().is_some());
        let held = mill.pond.hold(1);
        wake.lock().unwrap().take().unwrap().wake();
        let fresh = mill.pond.pool().spawn_future(async { 8 }).unwrap();
        mill.hand.advance(ms(30));
        held.release();
        assert_eq!(begun.unwrap().join().unwrap(), 7);
        let error = fresh.join().unwrap_err();
        assert!(
            matches!(error, TaskError::Cancelled(CancelReason::WaitedTooLong)),
            "{error}"
        );
    });
}

/// Whoever opened the scope runs what the pool let go.
#[test]
fn a_job_of_a_scope_runs_even_if_the_pool_sheds_it() {
    case("scope", || {
        let mill = Mill::new(|pool| pool.max_queue_wait(ms(20)));
        let held = mill.pond.hold(1);
        let ran = AtomicUsize::new(0);
        let sheds = mill.pond.scope(|s| {
            for _ in 0..3 {
                s.submit(|| ran.fetch_add(1, Ordering::SeqCst)).unwrap();
            }
            mill.hand.advance(ms(30));
            held.release();
            until("they are shed", || mill.pond.snapshot().queued == 0);
            mill.pond.snapshot().shed
        });
        assert_eq!(ran.load(Ordering::SeqCst), 3);
        assert!(sheds > 0);
    });
}

/// Real time, many threads, and an order that changes all the time: each task has exactly one end.
#[test]
fn stress_nothing_is_lost_or_run_twice_in_whatever_order() {
    case("stress", || {
        let shape = |pool: PoolBuilder| {
            pool.core(2)
                .max(2)
                .queue(Queue::bounded(64))
                .max_queue_wait(Duration::from_micros(400))
                .overload_order(OverloadOrder::NewestFirst)
        };
        let pond = Pond::of(shape(ThreadPool::builder(fresh_name())));
        let runs: Arc<Vec<AtomicUsize>> =
            Arc::new((0..8000).map(|_| AtomicUsize::new(0)).collect());
        let (mut taken, mut values, mut shed) = (0, 0, 0);
        std::thread::scope(|s| {
            let producers: Vec<_> = (0..4)
                .map(|part| {
                    let (pool, runs) = (pond.pool(), &runs);
                    s.spawn(move || {
                        let mut handles = Vec::new();
                        for number in part * 2000..(part + 1) * 2000 {
                            let runs = Arc::clone(runs);
                            let body = move || {
                                (0..200).for_each(|_| std::hint::spin_loop());
                                runs[number].fetch_add(1, Ordering::Relaxed)
                            };
                            handles.extend(pool.submit(body).map(|handle| (number, handle)));
                            if number % 97 == 0 {
                                std::thread::yield_now();
                            }
                        }
                        handles
                    })
                })
                .collect();
            for producer in producers {
                for (number, handle) in producer.join().unwrap() {
                    taken += 1;
                    let ran = match handle.join() {
                        Ok(before) => {
                            assert_eq!(before, 0);
                            values += 1;
                            1
                        }
                        Err(TaskError::Cancelled(CancelReason::WaitedTooLong)) => {
                            shed += 1;
                            0
                        }
                        Err(other) => panic!("{other}"),
                    };
                    assert_eq!(runs[number].load(Ordering::Relaxed), ran);
                }
            }
        });
        pond.close().unwrap();
        let last = pond.snapshot();
        assert_eq!((last.completed, last.shed), (values, shed));
        assert_eq!(values + shed, taken);
    });
}
