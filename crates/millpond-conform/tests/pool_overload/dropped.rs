//! What was accepted without a handle is done, or it is an event that it was not.

use crate::mill::{Mill, ms};
use millpond::executor::{ExecutorExt, ScopeError, SpawnFuture};
use millpond::manage::CoDel;
use millpond::pool::{PoolBuilder, PoolEvent};
use millpond::schedule::ScheduledPool;
use millpond::task::{CancelReason, TaskSpec};
use millpond_conform::kit::{case, until};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

/// A mill, and what it says of tasks that it has dropped: label, reason, how many.
fn telling(
    shape: impl FnOnce(PoolBuilder) -> PoolBuilder,
) -> (Mill, Receiver<(String, CancelReason, u64)>) {
    let (tell, told) = mpsc::channel();
    let mill = Mill::new(|pool| {
        shape(pool).on_event(move |notice| match notice {
            PoolEvent::DroppedDetached(report) => {
                let line = notice.to_string();
                assert!(line.contains("nobody holds its handle"), "{line}");
                let label = report.label.to_string();
                tell.send((label, report.reason, report.dropped)).unwrap();
            }
            other => panic!("nothing else has happened: {other}"),
        })
    });
    (mill, told)
}

/// A description of a task that must have started within 10 ms.
fn hurried(mill: &Mill, name: &'static str) -> TaskSpec {
    let deadline = mill.hand.clock().deadline(ms(10));
    TaskSpec::new().name(name).deadline(deadline)
}

#[test]
fn every_audit_record_of_a_request_that_is_over_is_written() {
    case("audit", || {
        let (audit, told) = telling(|pool| pool);
        let requests = Mill::new(|pool| pool);
        let written = Arc::new(AtomicUsize::new(0));
        let held = audit.pond.hold(1);
        for _ in 0..20 {
            let (audit, written) = (audit.pond.pool(), Arc::clone(&written));
            let deadline = requests.hand.clock().deadline(ms(30));
            let spec = TaskSpec::new().name("request").deadline(deadline);
            let request = requests.pond.submit_with(spec, move || {
                audit.execute(move || {
                    written.fetch_add(1, Ordering::Relaxed);
                })
            });
            request.unwrap().join().unwrap().unwrap();
        }
        for hand in [&audit.hand, &requests.hand] {
            hand.advance(Duration::from_secs(3600));
        }
        held.release();
        let last = audit.await_rest();
        assert_eq!(written.load(Ordering::Relaxed), 20);
        assert_eq!((last.expired, last.dropped_detached), (0, 0));
        assert!(told.try_recv().is_err());
    });
}

#[test]
fn what_is_dropped_without_a_handle_is_told_at_once_and_then_now_and_then() {
    case("told", || {
        let (mill, told) = telling(|pool| pool);
        let drop_some = |count: u64| {
            let held = mill.pond.hold(1);
            for _ in 0..count {
                mill.pond
                    .execute_with(hurried(&mill, "hint"), || ())
                    .unwrap();
            }
            mill.hand.advance(ms(10));
            held.release();
            mill.await_rest()
        };
        let last = drop_some(3);
        assert_eq!((last.expired, last.dropped_detached), (3, 3));
        let told = || told.try_iter().collect::<Vec<_>>();
        let expired = |dropped| ("hint".to_owned(), CancelReason::Expired, dropped);
        assert_eq!(told(), [expired(1)]);
        drop_some(4);
        assert_eq!(told(), [], "it is quiet for a while");
        mill.hand.advance(Duration::from_secs(10));
        assert_eq!(told(), [expired(2 + 4)]);
        assert_eq!(drop_some(2).dropped_detached, 9);
        assert_eq!(told(), [], "it is quiet again");
        mill.hand.advance(Duration::from_secs(10));
        assert_eq!(told(), [expired(2)]);
    });
}

#[test]
fn what_is_shed_without_a_handle_is_told_with_its_reason() {
    case("shed", || {
        let (mill, told) = telling(|pool| pool.max_queue_wait(ms(100)));
        let held = mill.pond.hold(1);
        mill.pond.execute(|| ()).unwrap();
        mill.hand.advance(ms(200));
        held.release();
        let last = mill.await_rest();
        assert_eq!((last.shed, last.dropped_detached), (1, 1));
        let (label, reason, dropped) = told.recv().unwrap();
        assert!(label.starts_with("pool_overload/dropped.rs:"), "{label}");
        assert_eq!((reason, dropped), (CancelReason::WaitedTooLong, 1));
    });
    case("codel", || {
        let (mill, told) = telling(|pool| pool.shedding(CoDel::default()));
        let held = mill.pond.hold(1);
        for _ in 0..50 {
            let hand = mill.hand.clone();
            mill.pond.execute(move || hand.advance(ms(10))).unwrap();
        }
        held.release();
        let last = mill.await_rest();
        assert!(last.shed > 0);
        assert_eq!(last.dropped_detached, last.shed);
        assert_eq!(told.recv().unwrap().1, CancelReason::Shed);
    });
}

#[test]
fn what_has_a_handle_tells_its_handle_and_nobody_else() {
    case("heard", || {
        let (mill, told) = telling(|pool| pool.max_queue_wait(ms(100)));
        let held = mill.pond.hold(1);
        let plain = mill.pond.submit(|| ()).unwrap();
        let late = mill.pond.submit_with(hurried(&mill, "late"), || ());
        let shared = mill.pond.submit(|| ()).unwrap().shared();
        let future = mill.pond.pool().spawn_future(async {}).unwrap();
        let gone = mill.pond.submit(|| ()).unwrap();
        gone.cancel();
        drop(gone);
        mill.hand.advance(ms(200));
        held.release();
        let last = mill.await_rest();
        assert_eq!((last.shed, last.expired, last.cancelled), (3, 1, 5));
        assert_eq!(last.dropped_detached, 0);
        assert!(told.try_recv().is_err());
        assert!(plain.join().unwrap_err().is_cancelled());
        assert!(late.unwrap().join().unwrap_err().is_cancelled());
        assert!(shared.join().unwrap_err().is_cancelled());
        assert!(future.join().unwrap_err().is_cancelled());
    });
}

#[test]
fn a_task_whose_handle_was_dropped_has_none() {
    case("handle dropped", || {
        let (mill, told) = telling(|pool| pool.max_queue_wait(ms(100)));
        let held = mill.pond.hold(1);
        drop(mill.pond.submit_with(hurried(&mill, "a task"), || ()));
        mill.hand.advance(ms(20));
        held.release();
        let expired = |label: &str| (label.to_owned(), CancelReason::Expired, 1);
        assert_eq!(told.recv().unwrap(), expired("a task"));

        mill.hand.advance(Duration::from_secs(10));
        let held = mill.pond.hold(1);
        drop(mill.pond.pool().spawn_future(async {}).unwrap());
        mill.hand.advance(ms(200));
        held.release();
        assert_eq!(told.recv().unwrap().1, CancelReason::WaitedTooLong);

        mill.hand.advance(Duration::from_secs(10));
        let held = mill.pond.hold(1);
        let timers = ScheduledPool::on(mill.pond.pool()).build();
        let (due, late) = (mill.hand.clock().deadline(ms(0)), hurried(&mill, "a timer"));
        drop(timers.schedule_with(late, due, || ()).unwrap());
        until("it is handed over", || mill.pond.snapshot().queued == 1);
        mill.hand.advance(ms(20));
        held.release();
        assert_eq!(told.recv().unwrap(), expired("a timer"));
        assert_eq!(mill.await_rest().dropped_detached, 3);
    });
}

#[test]
fn the_jobs_of_a_scope_are_lost_only_if_they_expire_and_nobody_joins_them() {
    case("scope", || {
        let (mill, told) = telling(|pool| pool.max_queue_wait(ms(100)));
        let ran = AtomicUsize::new(0);
        let count = || ran.fetch_add(1, Ordering::Relaxed);
        let mut held = Some(mill.pond.hold(1));
        mill.pond
            .scope(|s| {
                drop(s.submit_with(hurried(&mill, "unjoined"), count)?);
                s.execute(count)?;
                let joined = s.submit_with(hurried(&mill, "joined"), count)?;
                mill.hand.advance(ms(200));
                held.take().unwrap().release();
                mill.await_rest();
                assert!(joined.join().unwrap_err().is_cancelled());
                Ok::<_, ScopeError>(())
            })
            .unwrap();
        // What was shed the scope has run.
        assert_eq!(ran.load(Ordering::Relaxed), 1);
        let told: Vec<_> = told.try_iter().collect();
        assert_eq!(told, [("unjoined".to_owned(), CancelReason::Expired, 1)]);
        assert_eq!(mill.pond.snapshot().dropped_detached, 1);
    });
}

#[test]
fn what_its_caller_or_an_extra_thread_was_to_run_and_drops_is_told_too() {
    use millpond::pool::{Queue, RejectionPolicy};
    let policies = [
        RejectionPolicy::CallerRuns,
        RejectionPolicy::NewThread { at_most: 1 },
    ];
    for policy in policies {
        case("refused", || {
            let (mill, told) =
                telling(|pool| pool.queue(Queue::hand_off()).rejection(policy.clone()));
            let held = mill.pond.hold(1);
            let late = hurried(&mill, "late");
            mill.hand.advance(ms(10));
            mill.pond.execute_with(late, || ()).unwrap();
            assert_eq!(told.recv().unwrap().1, CancelReason::Expired);
            assert_eq!(mill.pond.snapshot().dropped_detached, 1);
            held.release();
        });
    }
}
