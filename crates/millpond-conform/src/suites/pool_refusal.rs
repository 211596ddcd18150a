//! The rejection policies: what happens to a task that finds no room, or that is submitted too late.

use super::pond::{Held, Make, Pond};
use crate::kit::{DropCount, Stress, until};
use millpond::executor::{Executor, ExecutorExt, Lifecycle, RejectReason, Rejected};
use millpond::pool::{
    PoolSnapshot, RejectionContext, RejectionHandler, RejectionPolicy, ThreadPool,
};
use millpond::task::{self, CancelReason, Task, TaskError, TaskHandle};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Tests of the rejection policies of a pool that is described by a [`Make`], with a queue that has a
/// bound.
#[macro_export]
macro_rules! pool_refusal_suite {
    ($make:expr) => {
        $crate::bodies! { pool_refusal, ($make as $crate::suites::pond::Make);
            a_handler_is_asked_once_for_each_rejection
            each_policy_does_what_it_says
            the_handler_can_be_read_and_changed
            a_handler_may_keep_the_task_and_run_it_later
            a_handler_may_change_the_pool_and_try_again
            a_handler_that_panics_costs_the_pool_nothing
            the_oldest_goes_and_the_new_one_comes
            where_nothing_waits_the_oldest_is_not_to_be_had
            too_late_means_too_late_for_every_policy
            a_task_can_be_brought_again_and_again
            batches_end_whatever_is_thrown_away
        }
    };
}

/// One worker, one place: both taken.
fn full(make: &Make, rejection: RejectionPolicy) -> (Pond, Held, TaskHandle<usize>) {
    let pond = Pond::new(make, 1, |pool| pool.core(1).max(1).rejection(rejection));
    let held = pond.hold(1);
    let waiting = pond.queue_up(1).pop().unwrap();
    (pond, held, waiting)
}

/// Notes what it is asked, and gives the task back.
#[derive(Debug, Default)]
struct Recorder {
    asked: Mutex<Vec<(Option<String>, String, String)>>,
}

impl RejectionHandler for Recorder {
    fn reject(&self, task: Task, context: RejectionContext<'_>) -> Result<(), Rejected<Task>> {
        let reason = match &context.reason {
            RejectReason::Saturated { .. } => "saturated",
            RejectReason::ShutDown => "shut down",
            RejectReason::SpawnFailed(_) => "spawn failed",
            _ => "something else",
        };
        let asked = (
            task.name().map(str::to_owned),
            reason.to_owned(),
            context.pool.name().to_owned(),
        );
        self.asked.lock().unwrap().push(asked);
        context.give_back(task)
    }
}

/// The metrics, without those that a rejection changes.
fn without_rejections(mut now: PoolSnapshot) -> PoolSnapshot {
    (now.left_to_policy, now.rejected, now.submitted) = (0, 0, 0);
    now.completed -= now.caller_ran;
    now.cancelled -= now.discarded;
    (now.discarded, now.caller_ran) = (0, 0);
    now
}

/// Saturated, shut down, terminated.
///
/// Holds: ThreadPoolExecutorTest.testSubmittedTasksRejectedWhenSaturatedOrShutdown
/// Holds: ThreadPoolExecutorSubclassTest.testSubmittedTasksRejectedWhenSaturatedOrShutdown
pub fn a_handler_is_asked_once_for_each_rejection(make: &Make) {
    let recorder = Arc::new(Recorder::default());
    let handler: Arc<dyn RejectionHandler> = Arc::clone(&recorder) as _;
    let (pond, held, waiting) = full(make, RejectionPolicy::Custom(handler));
    let ask = |name: &'static str, reason: &str| {
        let before = without_rejections(pond.snapshot());
        let (own, mut handle) = task::TaskSpec::new().name(name).build(|| 7);
        let rejected = pond.execute_task(own).unwrap_err();
        assert!(handle.try_join().is_none(), "it stays incomplete");
        let asked = std::mem::take(&mut *recorder.asked.lock().unwrap());
        let expected = (
            Some(name.to_owned()),
            reason.to_owned(),
            pond.name().to_owned(),
        );
        assert_eq!(asked, [expected]);
        assert_eq!(without_rejections(pond.snapshot()), before);
        rejected.task.run();
        assert_eq!(handle.join().unwrap(), 7);
        assert!(pond.submit(|| 7).is_err() && pond.execute(|| ()).is_err());
        assert_eq!(
            std::mem::take(&mut *recorder.asked.lock().unwrap()).len(),
            2
        );
    };
    ask("too much", "saturated");
    pond.shutdown();
    ask("too late", "shut down");
    held.release();
    waiting.join().unwrap();
    pond.await_end();
    ask("after the end", "shut down");
    assert_eq!(pond.snapshot().left_to_policy, 9);
}

/// What became of a task that was brought to a full pool.
#[derive(Debug, PartialEq, Eq)]
enum Became {
    Back,
    RanHere,
    Cancelled(CancelReason),
}

fn submit_one(pool: &ThreadPool) -> Became {
    let here = std::thread::current().id();
    let body = move || assert_eq!(std::thread::current().id(), here, "it runs here");
    match pool.submit(body) {
        Err(rejected) => {
            (rejected.task)();
            Became::Back
        }
        Ok(mut handle) => match handle.try_join().expect("it is settled by now") {
            Ok(()) => Became::RanHere,
            Err(TaskError::Cancelled(reason)) => Became::Cancelled(reason),
            Err(other) => panic!("{other}"),
        },
    }
}

/// In all three states, and the pool is as it was before.
///
/// Holds: ThreadPoolExecutorTest.testSubmittedTasksRejectedWhenSaturatedOrShutdown
/// Holds: ThreadPoolExecutorSubclassTest.testSubmittedTasksRejectedWhenSaturatedOrShutdown
/// Holds: ThreadPoolExecutorTest.testStandardRejectedExecutionHandlers
pub fn each_policy_does_what_it_says(make: &Make) {
    let thrown = |reason| Became::Cancelled(reason);
    let late = || Became::Cancelled(CancelReason::ShutDown);
    let cases = [
        (RejectionPolicy::Abort, Became::Back, Became::Back),
        (RejectionPolicy::CallerRuns, Became::RanHere, Became::Back),
        (
            RejectionPolicy::Discard,
            thrown(CancelReason::Discarded),
            late(),
        ),
    ];
    for (policy, when_full, when_late) in cases {
        let (pond, held, waiting) = full(make, policy.clone());
        let before = without_rejections(pond.snapshot());
        assert_eq!(submit_one(&pond), when_full, "{policy:?}");
        assert_eq!(without_rejections(pond.snapshot()), before);
        pond.shutdown();
        let before = without_rejections(pond.snapshot());
        assert_eq!(submit_one(&pond), when_late, "{policy:?}, shut down");
        assert_eq!(without_rejections(pond.snapshot()), before);
        held.release();
        waiting.join().unwrap();
        pond.await_end();
        let before = without_rejections(pond.snapshot());
        assert_eq!(submit_one(&pond), when_late, "{policy:?}, terminated");
        assert_eq!(without_rejections(pond.snapshot()), before);
        let end = pond.snapshot();
        assert_eq!(end.left_to_policy, 3);
        let counted = (end.caller_ran, end.discarded);
        match policy {
            RejectionPolicy::Abort => assert_eq!(counted, (0, 0)),
            RejectionPolicy::CallerRuns => assert_eq!(counted, (1, 0)),
            _ => assert_eq!(counted, (0, 3)),
        }
    }
}

/// Holds: ThreadPoolExecutorTest.testGetRejectedExecutionHandler
/// Holds: ThreadPoolExecutorTest.testSetRejectedExecutionHandler
/// Holds: ThreadPoolExecutorSubclassTest.testGetRejectedExecutionHandler
/// Holds: ThreadPoolExecutorSubclassTest.testSetRejectedExecutionHandler
pub fn the_handler_can_be_read_and_changed(make: &Make) {
    let (first, second) = (Arc::new(Recorder::default()), Arc::new(Recorder::default()));
    let as_handler = |one: &Arc<Recorder>| -> Arc<dyn RejectionHandler> { Arc::clone(one) as _ };
    let is_it = |pond: &Pond, one: &Arc<Recorder>| match pond.rejection() {
        RejectionPolicy::Custom(handler) => Arc::ptr_eq(&handler, &as_handler(one)),
        _ => false,
    };
    let (pond, held, _) = full(make, RejectionPolicy::Custom(as_handler(&first)));
    assert!(is_it(&pond, &first));
    assert!(pond.submit(|| ()).is_err());
    pond.set_rejection(RejectionPolicy::Custom(as_handler(&second)));
    assert!(is_it(&pond, &second));
    assert!(pond.submit(|| ()).is_err());
    let asked = |one: &Arc<Recorder>| one.asked.lock().unwrap().len();
    assert_eq!((asked(&first), asked(&second)), (1, 1));
    pond.set_rejection(RejectionPolicy::Discard);
    assert!(matches!(pond.rejection(), RejectionPolicy::Discard));
    assert_eq!(
        submit_one(&pond),
        Became::Cancelled(CancelReason::Discarded)
    );
    assert_eq!(
        Arc::strong_count(&first),
        1,
        "a handler that is replaced is dropped"
    );
    held.release();
}

/// Taking care of it is enough.
pub fn a_handler_may_keep_the_task_and_run_it_later(make: &Make) {
    let kept: Arc<Mutex<Vec<Task>>> = Arc::default();
    let own = Arc::clone(&kept);
    let keep = RejectionPolicy::custom(move |task, _| {
        own.lock().unwrap().push(task);
        Ok(())
    });
    let (pond, held, _) = full(make, keep);
    let (one, two) = (pond.submit(|| 1).unwrap(), pond.submit(|| 2).unwrap());
    assert!(!one.is_finished());
    kept.lock().unwrap().remove(0).run();
    assert_eq!(one.join().unwrap(), 1);
    kept.lock().unwrap().clear();
    let error = two.join().unwrap_err();
    assert!(matches!(error, TaskError::Cancelled(CancelReason::Dropped)));
    held.release();
}

/// No lock is held while it is asked.
pub fn a_handler_may_change_the_pool_and_try_again(make: &Make) {
    let grow = RejectionPolicy::custom(|task, context| {
        let pool = context.pool;
        assert_eq!(pool.snapshot().queued, 1);
        pool.set_max(pool.max() + 1).unwrap();
        pool.set_rejection(RejectionPolicy::Abort);
        pool.execute_task(task)
    });
    let (pond, held, waiting) = full(make, grow);
    assert_eq!(pond.submit(|| 7).unwrap().join().unwrap(), 7);
    assert_eq!(pond.max(), 2);
    waiting.join().unwrap();
    held.release();
}

/// The panic is the caller's, the task is cancelled, and all goes on.
pub fn a_handler_that_panics_costs_the_pool_nothing(make: &Make) {
    let count = DropCount::new();
    let (pond, held, waiting) = full(make, RejectionPolicy::custom(|_, _| panic_any("no")));
    for _ in 0..3 {
        let token = count.token();
        let caught = catch_unwind(AssertUnwindSafe(|| pond.submit(move || drop(token))));
        assert!(caught.is_err());
        count.assert_alive(0);
    }
    assert_eq!(pond.snapshot().left_to_policy, 3);
    held.release();
    waiting.join().unwrap();
    pond.await_idle(1);
    assert_eq!(pond.submit(|| 7).unwrap().join().unwrap(), 7);
}

/// Holds: ThreadPoolExecutorTest.testSaturatedExecute_DiscardOldestPolicy
/// Holds: ThreadPoolExecutorSubclassTest.testSaturatedExecute_DiscardOldestPolicy
pub fn the_oldest_goes_and_the_new_one_comes(make: &Make) {
    let pond = Pond::new(make, 3, |pool| {
        pool.core(1)
            .max(1)
            .rejection(RejectionPolicy::DiscardOldest)
    });
    let held = pond.hold(1);
    let old = pond.queue_up(3);
    let new: Vec<_> = (3..5)
        .map(|number| pond.submit(move || number).unwrap())
        .collect();
    let now = pond.snapshot();
    assert_eq!((now.queued, now.discarded, now.left_to_policy), (3, 2, 2));
    held.release();
    for (number, handle) in old.into_iter().chain(new).enumerate() {
        match (number, handle.join()) {
            (0 | 1, Err(TaskError::Cancelled(reason))) => {
                assert_eq!(reason, CancelReason::Discarded);
            }
            (_, Ok(value)) => assert_eq!(value, number),
            (_, Err(error)) => panic!("{number}: {error}"),
        }
    }
    pond.await_completed(4);
}

/// It comes back, rather than being thrown away itself.
pub fn where_nothing_waits_the_oldest_is_not_to_be_had(make: &Make) {
    let pond = Pond::new(make, 1, |pool| {
        let pool = pool
            .core(1)
            .max(1)
            .rejection(RejectionPolicy::DiscardOldest);
        pool.threads(crate::kit::Factory::new("none", |_| {
            crate::kit::Start::Refuse
        }))
    });
    let rejected = pond.submit(|| 7).unwrap_err();
    assert!(matches!(rejected.reason, RejectReason::SpawnFailed(_)));
    assert_eq!((rejected.task)(), 7);
    assert_eq!(pond.snapshot().discarded, 0);
}

/// Holds: ThreadPoolExecutorTest.testDiscardOldestOnShutdown
/// Holds: ThreadPoolExecutorSubclassTest.testDiscardOldestOnShutdown
pub fn too_late_means_too_late_for_every_policy(make: &Make) {
    let (pond, held, waiting) = full(make, RejectionPolicy::DiscardOldest);
    pond.shutdown();
    assert_eq!(submit_one(&pond), Became::Cancelled(CancelReason::ShutDown));
    assert_eq!(pond.snapshot().queued, 1, "what it had it keeps");
    for policy in [
        RejectionPolicy::Abort,
        RejectionPolicy::CallerRuns,
        RejectionPolicy::Block(std::time::Duration::MAX),
        RejectionPolicy::NewThread { at_most: 5 },
    ] {
        pond.set_rejection(policy.clone());
        let rejected = pond.submit(|| panic!("it ran")).unwrap_err();
        assert!(rejected.reason.is_shut_down(), "{policy:?}");
    }
    held.release();
    assert_eq!(waiting.join().unwrap(), 0);
}

/// The same closure many times, accepted or not.
///
/// Holds: ThreadPoolExecutorTest.testRejectedRecycledTask
pub fn a_task_can_be_brought_again_and_again(make: &Make) {
    let make = *make;
    Stress::new("recycled").one_in(50).run(|round| {
        let pond = Pond::new(&make, 2, |pool| pool.core(1).max(2));
        let ran = Arc::new(AtomicUsize::new(0));
        let own = Arc::clone(&ran);
        let task: Arc<dyn Fn() + Send + Sync> = Arc::new(move || {
            own.fetch_add(1, Ordering::SeqCst);
        });
        let submitters: Vec<_> = (0..2)
            .map(|_| {
                let (own, task) = (pond.pool(), Arc::clone(&task));
                round.actor("submitter", move |rng| {
                    let mut accepted = 0;
                    for _ in 0..50 {
                        let again = Arc::clone(&task);
                        accepted += usize::from(own.execute(move || again()).is_ok());
                        rng.jitter();
                    }
                    accepted
                })
            })
            .collect();
        let accepted: usize = submitters.into_iter().map(|one| one.finish()).sum();
        pond.close().unwrap();
        assert_eq!(ran.load(Ordering::SeqCst), accepted);
    });
}

/// Nobody waits for ever for what was thrown away.
pub fn batches_end_whatever_is_thrown_away(make: &Make) {
    for policy in [
        RejectionPolicy::Discard,
        RejectionPolicy::DiscardOldest,
        RejectionPolicy::CallerRuns,
        RejectionPolicy::custom(|task, _| {
            drop(task);
            Ok(())
        }),
    ] {
        let pond = Pond::new(make, 2, |pool| pool.core(1).max(1).rejection(policy));
        let results = pond.invoke_all((0..50).map(|number| move || number));
        let results = results.unwrap();
        assert_eq!(results.len(), 50);
        for (number, result) in results.into_iter().enumerate() {
            match result {
                Ok(value) => assert_eq!(value, number),
                Err(error) => assert!(error.is_cancelled()),
            }
        }
        until("nothing waits", || pond.snapshot().queued == 0);
    }
}
