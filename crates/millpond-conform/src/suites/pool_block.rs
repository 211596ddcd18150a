//! The policy that lets callers wait for room, by a clock that the test moves.

use super::pond::{Held, Make, Pond};
use crate::kit::{Actor, DropCount, Factory, Start, Stress};
use millpond::executor::{ExecutorExt, InvokeAllError, InvokeAnyError, Lifecycle, RejectReason};
use millpond::interrupt;
use millpond::pool::{RejectionPolicy, ThreadPool};
use millpond::task::{CancelReason, TaskError, TaskHandle};
use millpond::time::ManualClock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Tests of waiting for room in a pool that is described by a [`Make`], with a queue that has a bound.
#[macro_export]
macro_rules! pool_block_suite {
    ($make:expr) => {
        $crate::bodies! { pool_block, ($make as $crate::suites::pond::Make);
            a_caller_waits_for_room_and_gets_it
            a_caller_waits_no_longer_than_its_timeout
            without_a_timeout_it_does_not_wait
            a_caller_that_waits_is_interrupted
            a_batch_that_waits_for_room_ends_at_its_own_deadline
            a_batch_that_waits_for_room_is_interrupted
            a_caller_that_waits_is_told_of_the_end
            a_caller_that_waits_is_told_of_more_room
            a_caller_that_waits_is_told_of_a_place_that_was_emptied
            callers_that_wait_are_served_in_turn_and_none_is_forgotten
            a_caller_that_waits_for_room_at_a_stop_has_its_task_back_or_has_submitted_it
            a_caller_waits_for_room_although_another_worker_cannot_be_started
            a_caller_that_waits_without_another_worker_is_told_of_time_interrupt_and_end
            a_caller_that_waits_requests_another_worker_after_a_pause_and_gets_it
            a_caller_does_not_wait_if_no_worker_can_be_started
        }
    };
}

const TIMEOUT: Duration = Duration::from_secs(10);

struct Full {
    hand: ManualClock,
    held: Held,
    waiting: TaskHandle<usize>,
    pond: Pond,
}

/// One worker, one place: both taken.
fn full(make: &Make) -> Full {
    let hand = ManualClock::new();
    let pond = Pond::new(make, 1, |pool| {
        let pool = pool.core(1).max(1).clock(hand.clock());
        pool.rejection(RejectionPolicy::Block(TIMEOUT))
    });
    let held = pond.hold(1);
    let waiting = pond.queue_up(1).pop().unwrap();
    Full {
        hand,
        held,
        waiting,
        pond,
    }
}

type Came = Result<TaskHandle<u32>, RejectReason>;

/// A caller that waits for room, for a task that returns 7.
fn caller(pool: &ThreadPool) -> Actor<Came> {
    let own = pool.clone();
    let submit = move || own.submit(|| 7).map_err(|rejected| rejected.reason);
    let caller = Actor::start("caller", submit);
    caller.await_parked("pool.room");
    caller
}

/// As soon as the worker takes a task.
pub fn a_caller_waits_for_room_and_gets_it(make: &Make) {
    let full = full(make);
    let caller = caller(&full.pond);
    assert_eq!(full.pond.snapshot().waited_for_room, 1);
    full.held.release();
    assert_eq!(caller.finish().unwrap().join().unwrap(), 7);
    full.waiting.join().unwrap();
    assert_eq!(
        full.pond.snapshot().left_to_policy,
        0,
        "it was never rejected"
    );
}

/// The closure comes back unrun.
pub fn a_caller_waits_no_longer_than_its_timeout(make: &Make) {
    let (full, count) = (full(make), DropCount::new());
    let (own, token) = (full.pond.pool(), count.token());
    let caller = Actor::start("caller", move || own.submit(move || token).unwrap_err());
    caller.await_parked("pool.room");
    full.hand.advance(TIMEOUT - Duration::from_nanos(1));
    caller.await_parked("pool.room");
    assert!(!caller.has_ended());
    full.hand.advance(Duration::from_nanos(1));
    let rejected = caller.finish();
    assert!(rejected.reason.is_saturated());
    count.assert_alive(1);
    drop((rejected.task)());
    let now = full.pond.snapshot();
    assert_eq!(
        (now.waited_for_room, now.left_to_policy, now.queued),
        (1, 1, 1)
    );
    full.held.release();
}

/// Once, as it would under `Abort`.
pub fn without_a_timeout_it_does_not_wait(make: &Make) {
    let full = full(make);
    full.pond
        .set_rejection(RejectionPolicy::Block(Duration::ZERO));
    assert!(full.pond.submit(|| 7).unwrap_err().reason.is_saturated());
    full.held.release();
    full.waiting.join().unwrap();
    full.pond.await_idle(1);
    assert_eq!(full.pond.submit(|| 7).unwrap().join().unwrap(), 7);
}

/// That of the batch, which is earlier than that of the pool.
pub fn a_batch_that_waits_for_room_ends_at_its_own_deadline(make: &Make) {
    let (full, second) = (full(make), Duration::from_secs(1));
    let own = full.pond.pool();
    let all = Actor::start("all", move || own.invoke_all_timeout([|| 7, || 8], second));
    let own = full.pond.pool();
    let any = Actor::start("any", move || {
        own.invoke_any_timeout([|| Ok::<_, ()>(7), || Ok(8)], second)
    });
    all.await_parked("pool.room");
    any.await_parked("pool.room");
    full.hand.advance(second);
    let results = all.finish().unwrap();
    let is_abandoned = |result: &Result<_, _>| {
        matches!(result, Err(TaskError::Cancelled(CancelReason::Abandoned)))
    };
    assert!(results.len() == 2 && results.iter().all(is_abandoned));
    assert!(matches!(any.finish(), Err(InvokeAnyError::TimedOut)));
    full.held.release();
    full.waiting.join().unwrap();
}

/// And says so.
pub fn a_batch_that_waits_for_room_is_interrupted(make: &Make) {
    let full = full(make);
    let own = full.pond.pool();
    let all = Actor::start("all", move || own.invoke_all([|| 7, || 8]));
    let own = full.pond.pool();
    let any = Actor::start("any", move || own.invoke_any([|| Ok::<_, ()>(7), || Ok(8)]));
    all.await_parked("pool.room");
    any.await_parked("pool.room");
    all.interrupt();
    any.interrupt();
    assert!(matches!(all.finish(), Err(InvokeAllError::Interrupted)));
    assert!(matches!(any.finish(), Err(InvokeAnyError::Interrupted)));
    full.held.release();
    full.waiting.join().unwrap();
}

/// While it waits, and before; what is reported is cleared.
pub fn a_caller_that_waits_is_interrupted(make: &Make) {
    let full = full(make);
    let waits = caller(&full.pond);
    waits.interrupt();
    assert!(matches!(waits.finish(), Err(RejectReason::Interrupted)));
    let own = full.pond.pool();
    let early = Actor::start_interrupted("caller", move || {
        let rejected = own.submit(|| 7).unwrap_err();
        assert!(matches!(rejected.reason, RejectReason::Interrupted));
        interrupt::is_interrupted()
    });
    assert!(!early.finish());
    full.held.release();
    full.waiting.join().unwrap();
    full.pond.await_idle(1);
    let own = full.pond.pool();
    let roomy = Actor::start_interrupted("caller", move || {
        let taken = own.execute(|| ()).is_ok();
        (taken, interrupt::is_interrupted())
    });
    assert_eq!(
        roomy.finish(),
        (true, true),
        "a caller that need not wait is not cut short"
    );
}

/// In both ways of ending.
pub fn a_caller_that_waits_is_told_of_the_end(make: &Make) {
    for stops in [false, true] {
        let pond = Pond::new(make, 1, |pool| {
            let forever = RejectionPolicy::Block(Duration::MAX);
            pool.core(1).max(1).rejection(forever)
        });
        let running = pond.occupy(1);
        pond.queue_up(1);
        let waits = caller(&pond);
        if stops {
            assert_eq!(pond.shutdown_now().len(), 1);
        } else {
            pond.shutdown();
        }
        assert!(matches!(waits.finish(), Err(RejectReason::ShutDown)));
        for one in running {
            one.interrupt();
        }
    }
}

/// More workers, or more places.
pub fn a_caller_that_waits_is_told_of_more_room(make: &Make) {
    for places in [false, true] {
        let full = full(make);
        let waits = caller(&full.pond);
        if places {
            full.pond.set_capacity(2).unwrap();
        } else {
            full.pond.set_max(2).unwrap();
        }
        let handle = waits.finish().unwrap();
        full.held.release();
        assert_eq!(handle.join().unwrap(), 7);
    }
}

/// By removing a task, or by purging cancelled ones.
pub fn a_caller_that_waits_is_told_of_a_place_that_was_emptied(make: &Make) {
    for purges in [false, true] {
        let full = full(make);
        let waits = caller(&full.pond);
        if purges {
            full.waiting.cancel();
            // It may have gone by the caller's own look already.
            assert!(full.pond.purge() <= 1);
        } else {
            assert!(full.pond.remove(&full.waiting));
        }
        let handle = waits.finish().unwrap();
        full.held.release();
        assert_eq!(handle.join().unwrap(), 7);
    }
}

/// Many callers, one place.
pub fn callers_that_wait_are_served_in_turn_and_none_is_forgotten(make: &Make) {
    let make = *make;
    Stress::new("callers").one_in(50).run(|round| {
        let pond = Pond::new(&make, 1, |pool| {
            let forever = RejectionPolicy::Block(Duration::MAX);
            pool.core(1).max(2).rejection(forever)
        });
        let ran = Arc::new(AtomicUsize::new(0));
        let callers: Vec<_> = (0..4)
            .map(|_| {
                let (own, ran) = (pond.pool(), Arc::clone(&ran));
                round.actor("caller", move |rng| {
                    for _ in 0..25 {
                        let ran = Arc::clone(&ran);
                        rng.jitter();
                        let body = move || {
                            ran.fetch_add(1, Ordering::SeqCst);
                        };
                        own.execute(body).unwrap();
                    }
                })
            })
            .collect();
        for caller in callers {
            caller.finish();
        }
        pond.close().unwrap();
        assert_eq!(ran.load(Ordering::SeqCst), 100);
        assert_eq!(pond.snapshot().left_to_policy, 0);
    });
}

/// Nothing is lost at the last moment.
pub fn a_caller_that_waits_for_room_at_a_stop_has_its_task_back_or_has_submitted_it(make: &Make) {
    let make = *make;
    Stress::new("blocked at the stop").one_in(20).run(|round| {
        let pond = Pond::new(&make, 1, |pool| {
            let forever = RejectionPolicy::Block(Duration::MAX);
            pool.core(1).max(1).rejection(forever)
        });
        let ran = Arc::new(AtomicUsize::new(0));
        let callers: Vec<_> = (0..3)
            .map(|_| {
                let (own, ran) = (pond.pool(), Arc::clone(&ran));
                round.actor("caller", move |rng| {
                    let mut handles = Vec::new();
                    for _ in 0..5 {
                        let ran = Arc::clone(&ran);
                        let body = move || {
                            ran.fetch_add(1, Ordering::SeqCst);
                        };
                        rng.jitter();
                        handles.extend(own.submit(body).ok());
                    }
                    handles
                })
            })
            .collect();
        round.rng.jitter();
        let back = match round.rng.below(2) {
            0 => pond.shutdown_now(),
            _ => {
                pond.shutdown();
                Vec::new()
            }
        };
        let handles: Vec<_> = callers.into_iter().flat_map(|one| one.finish()).collect();
        pond.await_end();
        let accepted = handles.len();
        assert_eq!(ran.load(Ordering::SeqCst) + back.len(), accepted);
        drop(back);
        for handle in handles {
            match handle.join() {
                Ok(()) | Err(TaskError::Cancelled(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
    });
}

/// One worker, one place: both taken. There may be a second worker, but its thread is refused.
struct Short {
    full: Full,
    /// The number of threads that start.
    threads: Arc<AtomicU64>,
    factory: Arc<Factory>,
}

fn short(make: &Make) -> Short {
    let (hand, threads) = (ManualClock::new(), Arc::new(AtomicU64::new(1)));
    let allowed = Arc::clone(&threads);
    let factory = Arc::new(Factory::new("own", move |number| {
        if number <= allowed.load(Ordering::SeqCst) {
            Start::Well
        } else {
            Start::Refuse
        }
    }));
    let own = Arc::clone(&factory);
    let pond = Pond::new(make, 1, |pool| {
        let pool = pool.core(1).max(2).threads(own).clock(hand.clock());
        pool.rejection(RejectionPolicy::Block(TIMEOUT))
    });
    let held = pond.hold(1);
    let waiting = pond.queue_up(1).pop().unwrap();
    let full = Full {
        hand,
        held,
        waiting,
        pond,
    };
    Short {
        full,
        threads,
        factory,
    }
}

/// The worker that is there takes a task, and the caller has the place.
pub fn a_caller_waits_for_room_although_another_worker_cannot_be_started(make: &Make) {
    let Short { full, .. } = short(make);
    let caller = caller(&full.pond);
    full.held.release();
    assert_eq!(caller.finish().unwrap().join().unwrap(), 7);
    full.waiting.join().unwrap();
    let now = full.pond.snapshot();
    assert_eq!((now.left_to_policy, now.largest), (0, 1));
}

/// As a caller is that waits for workers only.
pub fn a_caller_that_waits_without_another_worker_is_told_of_time_interrupt_and_end(make: &Make) {
    let Short { full, .. } = short(make);
    let late = caller(&full.pond);
    full.hand.advance(TIMEOUT);
    let reason = late.finish().unwrap_err();
    assert!(reason.is_saturated(), "{reason}");
    let interrupted = caller(&full.pond);
    interrupted.interrupt();
    let reason = interrupted.finish().unwrap_err();
    assert!(matches!(reason, RejectReason::Interrupted), "{reason}");
    let ended = caller(&full.pond);
    full.pond.shutdown();
    let reason = ended.finish().unwrap_err();
    assert!(matches!(reason, RejectReason::ShutDown), "{reason}");
    full.held.release();
    full.waiting.join().unwrap();
}

/// By the pool's clock: not before the pause is over, and then once.
pub fn a_caller_that_waits_requests_another_worker_after_a_pause_and_gets_it(make: &Make) {
    let Short {
        full,
        threads,
        factory,
    } = short(make);
    let caller = caller(&full.pond);
    let requests = factory.asked();
    let pause = Duration::from_millis(100);
    for _ in 0..10 {
        full.hand.advance(pause / 100);
        caller.await_parked("pool.room");
    }
    assert_eq!(factory.asked(), requests, "it waits");
    threads.store(u64::MAX, Ordering::SeqCst);
    full.hand.advance(pause);
    // The first worker is still busy.
    assert_eq!(caller.finish().unwrap().join().unwrap(), 7);
    assert_eq!(factory.asked(), requests + 1);
    full.held.release();
    full.waiting.join().unwrap();
}

/// It hears why.
pub fn a_caller_does_not_wait_if_no_worker_can_be_started(make: &Make) {
    let factory = Factory::new("own", |_| Start::Refuse);
    let pond = Pond::new(make, 1, |pool| {
        let pool = pool.core(1).max(2).threads(factory);
        pool.rejection(RejectionPolicy::Block(Duration::MAX))
    });
    let rejected = pond.submit(|| 7).unwrap_err();
    assert!(matches!(rejected.reason, RejectReason::SpawnFailed(_)));
    assert_eq!((rejected.task)(), 7);
}
