//! A pool over a queue that is none of ours: what slips in at the last moment, and what panics.

#![allow(
    clippy::disallowed_types,
    reason = "a test stands outside: it uses std's locks beside what it tests"
)]

use millpond::executor::{ExecutorExt, Lifecycle, RejectReason};
use millpond::manage::{Change, Growth, Patch, PatchError};
use millpond::pool::{PoolBuilder, Queue, RejectionPolicy, ThreadPool};
use millpond::task::{CancelReason, Task, TaskError};
use millpond::time::ManualClock;
use millpond_conform::kit::{
    Actor, DropCount, Factory, Gate, Latch, OwnQueue, Start, Step, case, until,
};
use millpond_conform::suites::pond::{Pond, fresh_name};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn over(queue: OwnQueue<Task>) -> PoolBuilder {
    ThreadPool::builder(fresh_name()).queue(Queue::custom(queue))
}

/// A queue that holds up the next who comes to this step, until the gate is open.
struct HeldUp {
    there: Latch,
    gate: Gate,
    armed: Arc<AtomicUsize>,
}

impl HeldUp {
    fn at(step: Step, capacity: usize) -> (Self, OwnQueue<Task>) {
        let held = HeldUp {
            there: Latch::new(1),
            gate: Gate::new(),
            armed: Arc::new(AtomicUsize::new(0)),
        };
        let (there, gate) = (held.there.clone(), held.gate.clone());
        let armed = Arc::clone(&held.armed);
        let queue = OwnQueue::bounded(capacity).watched(move |now| {
            if now == step && armed.swap(0, Ordering::SeqCst) == 1 {
                there.arrive();
                gate.wait();
            }
        });
        (held, queue)
    }

    fn arm(&self) {
        self.armed.store(1, Ordering::SeqCst);
    }
}

/// A caller who is held up on its way into the queue.
fn late_caller(held: &HeldUp, pool: &ThreadPool) -> Actor<Result<u32, RejectReason>> {
    held.arm();
    let own = pool.clone();
    let caller = Actor::start("late", move || match own.submit(|| 7) {
        Ok(handle) => Ok(handle.join().unwrap_or(0)),
        Err(refused) => {
            assert_eq!((refused.task)(), 7, "it comes back whole");
            Err(refused.reason)
        }
    });
    held.there.wait();
    caller
}

#[test]
fn a_task_that_slips_in_behind_a_shutdown_is_taken_out_again() {
    for (step, stops, workers) in [
        (Step::Offer, false, 0),
        (Step::Offer, true, 0),
        (Step::Offer, false, 1),
        (Step::Offer, true, 1),
        (Step::Offered, false, 1),
        (Step::Offered, true, 1),
    ] {
        case("slips in", || {
            let (held, queue) = HeldUp::at(step, 4);
            let pond = Pond::of(over(queue).core(workers).max(1));
            // A worker that is busy cannot take it meanwhile.
            let busy = (workers == 1).then(|| pond.occupy(1).remove(0));
            let late = late_caller(&held, &pond);
            let back = match stops {
                true => pond.shutdown_now(),
                false => {
                    pond.shutdown();
                    Vec::new()
                }
            };
            if workers == 0 {
                assert!(pond.is_terminated());
            }
            held.gate.open();
            // It was in before the stop, and so it was handed back; or it was not.
            let was_in = back.len() == 1;
            assert_eq!(was_in, step == Step::Offered && stops);
            drop(back);
            match late.finish() {
                Ok(value) => assert!(was_in && value == 0),
                Err(reason) => assert!(reason.is_shut_down() && !was_in),
            }
            if let Some(busy) = busy {
                busy.interrupt();
            }
            pond.await_end();
            assert_eq!(pond.snapshot().queued, 0);
        });
    }
}

#[test]
fn a_task_that_slips_in_as_the_last_worker_leaves_has_a_worker() {
    for step in [Step::Offer, Step::Offered] {
        case("last worker", || {
            let (hand, (held, queue)) = (ManualClock::new(), HeldUp::at(step, 4));
            let pool = over(queue).core(0).max(1).clock(hand.clock());
            let pond = Pond::of(pool.keep_alive(Duration::from_secs(1)));
            pond.submit(|| ()).unwrap().join().unwrap();
            until("its worker is idle", || hand.sleepers() == 1);
            let late = late_caller(&held, &pond);
            if step == Step::Offer {
                hand.advance(Duration::from_secs(1));
                pond.await_workers(0);
            }
            held.gate.open();
            assert_eq!(late.finish().unwrap(), 7);
        });
    }
}

#[test]
fn a_caller_who_waits_for_room_is_let_in_or_turned_away_by_a_shutdown() {
    case("room", || {
        let (held, queue) = HeldUp::at(Step::WaitForRoom, 1);
        let pool = over(queue).core(1).max(1);
        let pond = Pond::of(pool.rejection(RejectionPolicy::Block(Duration::MAX)));
        let busy = pond.hold(1);
        let waiting = pond.queue_up(1).remove(0);
        let late = late_caller(&held, &pond);
        assert!(pond.remove(&waiting), "now there is room");
        pond.shutdown();
        held.gate.open();
        assert!(late.finish().unwrap_err().is_shut_down());
        busy.release();
        pond.await_end();
    });
}

/// A queue that panics at this step, as often as is said.
fn spoilt(step: Step, capacity: usize) -> (Arc<AtomicUsize>, OwnQueue<Task>) {
    let left = Arc::new(AtomicUsize::new(0));
    let own = Arc::clone(&left);
    let queue = OwnQueue::bounded(capacity).watched(move |now| {
        let less = |left: usize| left.checked_sub(1);
        let (up, down) = (Ordering::SeqCst, Ordering::SeqCst);
        if now == step && own.fetch_update(up, down, less).is_ok() {
            panic_any("the queue is broken");
        }
    });
    (left, queue)
}

#[test]
fn an_offer_that_panics_costs_the_caller_a_panic_and_nobody_else_anything() {
    for growth in [Growth::QueueFirst, Growth::ThreadsFirst] {
        for core in [0, 1] {
            case("offer", || {
                let (left, queue) = spoilt(Step::Offer, 4);
                let count = DropCount::new();
                let pond = Pond::of(over(queue).core(core).max(1).growth(growth));
                let held = pond.hold(1);
                left.store(3, Ordering::SeqCst);
                for _ in 0..3 {
                    let token = count.token();
                    let submit = || pond.submit(move || drop(token));
                    assert!(catch_unwind(AssertUnwindSafe(submit)).is_err());
                    count.assert_alive(0);
                }
                let more = pond.submit(|| 7).unwrap();
                held.release();
                assert_eq!(more.join().unwrap(), 7);
                pond.close().unwrap();
            });
        }
    }
}

#[test]
fn a_task_that_went_in_before_the_panic_is_not_stranded() {
    for core in [0, 1] {
        case("stranded", || {
            let (left, queue) = spoilt(Step::Offered, 4);
            let ran = Gate::new();
            let pond = Pond::of(over(queue).core(core).max(1));
            if core == 1 {
                pond.submit(|| ()).unwrap().join().unwrap();
            }
            left.store(1, Ordering::SeqCst);
            let runs = ran.clone();
            let submit = || pond.execute(move || runs.open());
            assert!(catch_unwind(AssertUnwindSafe(submit)).is_err());
            ran.wait();
            pond.close().unwrap();
        });
    }
}

#[test]
fn a_worker_survives_the_panics_of_its_queue() {
    for step in [Step::Poll, Step::WaitForElement, Step::Leave, Step::Len] {
        case("worker", || {
            let (left, queue) = spoilt(step, 64);
            let pond = Pond::of(over(queue).core(1).max(1));
            for number in 0..5 {
                left.store(2, Ordering::SeqCst);
                assert_eq!(pond.submit(move || number).unwrap().join().unwrap(), number);
            }
            left.store(0, Ordering::SeqCst);
            let now = pond.snapshot();
            assert_eq!((now.workers, now.threads_started), (1, 1), "{step:?}");
            pond.close().unwrap();
        });
    }
}

#[test]
fn a_queue_that_panics_does_not_keep_its_pool_from_ending() {
    for step in [
        Step::Poll,
        Step::WaitForElement,
        Step::Leave,
        Step::Len,
        Step::RemoveWhere,
    ] {
        for stops in [false, true] {
            case("end", || {
                let (left, queue) = spoilt(step, 64);
                let pond = Pond::of(over(queue).core(2).max(2));
                pond.prestart_all_core().unwrap();
                pond.await_idle(2);
                left.store(4, Ordering::SeqCst);
                match stops {
                    true => drop(catch_unwind(AssertUnwindSafe(|| pond.shutdown_now()))),
                    false => drop(catch_unwind(AssertUnwindSafe(|| pond.shutdown()))),
                }
                until(&format!("{step:?} {stops}"), || pond.is_terminated());
            });
        }
    }
}

#[test]
fn a_caller_who_waits_for_room_gets_the_panic_of_the_queue() {
    for step in [Step::WaitForRoom, Step::Leave] {
        case("room", || {
            let count = DropCount::new();
            let (left, queue) = spoilt(step, 1);
            let pool = over(queue).core(1).max(1);
            let pond = Pond::of(pool.rejection(RejectionPolicy::Block(Duration::ZERO)));
            let held = pond.hold(1);
            pond.queue_up(1);
            left.store(2, Ordering::SeqCst);
            let token = count.token();
            let submit = || pond.submit(move || drop(token)).is_err();
            // It is refused or it panics; it does not abort, and nothing is lost.
            assert!(catch_unwind(AssertUnwindSafe(submit)).unwrap_or(true));
            count.assert_alive(0);
            left.store(0, Ordering::SeqCst);
            held.release();
            pond.close().unwrap();
        });
    }
}

#[test]
fn a_capacity_that_panics_changes_nothing() {
    let (left, queue) = spoilt(Step::SetCapacity, 4);
    let pond = Pond::of(over(queue).core(1).max(1));
    left.store(1, Ordering::SeqCst);
    let patch = millpond::manage::Patch::new().core(2).max(3).capacity(8);
    assert!(catch_unwind(AssertUnwindSafe(|| pond.apply(&patch))).is_err());
    assert_eq!((pond.core(), pond.max(), pond.capacity()), (1, 1, Some(4)));
    pond.apply(&patch).unwrap();
    assert_eq!((pond.core(), pond.max(), pond.capacity()), (2, 3, Some(8)));
}

#[test]
fn a_worker_that_may_not_leave_does_not_spin() {
    // With a task in the queue that nobody can have, as in a delay queue, the last worker stays.
    let looks = Arc::new(AtomicUsize::new(0));
    let (own, hand) = (Arc::clone(&looks), ManualClock::new());
    let queue = OwnQueue::bounded(4).watched(move |step| {
        own.fetch_add(usize::from(step == Step::WaitForElement), Ordering::SeqCst);
    });
    let pool = over(queue).core(1).max(1).clock(hand.clock());
    let pond = Pond::of(pool.keep_alive(Duration::from_nanos(1)));
    pond.submit(|| ()).unwrap().join().unwrap();
    pond.await_idle(1);
    let before = looks.load(Ordering::SeqCst);
    for _ in 0..100 {
        hand.advance(Duration::from_secs(1));
    }
    assert_eq!(pond.idle(), 1);
    assert_eq!(looks.load(Ordering::SeqCst), before, "it sleeps");
}

#[test]
fn a_thread_that_dies_before_its_first_step_strands_nobody() {
    for core in [0, 1] {
        for ends_first in [false, true] {
            case("dies", || {
                let gate = Gate::new();
                let at = gate.clone();
                let threads = Factory::new(fresh_name(), move |_| Start::Die(at.clone()));
                let pool = over(OwnQueue::bounded(4)).core(core).max(1);
                let pond = Pond::of(pool.threads(threads));
                let handles: Vec<_> = (0..3).map(|_| pond.submit(|| 7).unwrap()).collect();
                if ends_first {
                    pond.shutdown();
                }
                gate.open();
                for handle in handles {
                    until("it is settled", || handle.is_finished());
                    assert!(handle.join().unwrap_err().is_cancelled());
                }
                pond.shutdown();
                pond.await_end();
            });
        }
    }
}

#[test]
fn a_factory_may_use_the_pool_whatever_a_thread_is_started_for() {
    case("factory", || {
        let (hand, (held, queue)) = (ManualClock::new(), HeldUp::at(Step::Offer, 4));
        let pool: Arc<Mutex<Option<ThreadPool>>> = Arc::default();
        let own = Arc::clone(&pool);
        let threads = Factory::new(fresh_name(), move |number| {
            // A thread that is started because the last worker has just left.
            if number == 2 {
                let pool = own.lock().unwrap().take().unwrap();
                assert!(pool.snapshot().workers <= pool.max());
                pool.execute(|| ()).unwrap();
            }
            Start::Well
        });
        let builder = over(queue).core(0).max(2).growth(Growth::ThreadsFirst);
        let builder = builder
            .keep_alive(Duration::from_secs(1))
            .clock(hand.clock());
        let pond = Pond::of(builder.threads(threads));
        *pool.lock().unwrap() = Some(pond.pool());
        pond.submit(|| ()).unwrap().join().unwrap();
        until("its worker is free", || hand.sleepers() == 1);
        let late = late_caller(&held, &pond);
        hand.advance(Duration::from_secs(1));
        pond.await_workers(0);
        held.gate.open();
        assert_eq!(late.finish().unwrap(), 7);
        pond.await_completed(3);
    });
}

#[test]
fn the_oldest_may_be_gone_and_the_pool_shut_down_when_it_is_looked_for() {
    case("oldest", || {
        let (held, queue) = HeldUp::at(Step::Poll, 1);
        let pool = over(queue).core(1).max(1);
        let pond = Pond::of(pool.rejection(RejectionPolicy::DiscardOldest));
        let busy = pond.hold(1);
        let waiting = pond.queue_up(1).remove(0);
        held.arm();
        let own = pond.pool();
        let late = Actor::start("late", move || own.submit(|| 7).map_err(|no| no.reason));
        held.there.wait();
        busy.release();
        assert_eq!(waiting.join().unwrap(), 0);
        pond.shutdown();
        pond.await_workers(0);
        assert!(
            !pond.is_terminated(),
            "it may come back with a task (END-4)"
        );
        held.gate.open();
        let thrown = late.finish().unwrap().join().unwrap_err();
        assert!(matches!(
            thrown,
            TaskError::Cancelled(CancelReason::ShutDown)
        ));
        pond.await_end();
    });
}

/// A patch that is held up in the queue's `set_capacity`, in a pool with room for 100.
fn held_up_patch(patch: Patch) -> (Pond, HeldUp, Actor<Result<Vec<Change>, PatchError>>) {
    let (held, queue) = HeldUp::at(Step::SetCapacity, 100);
    let pond = Pond::of(over(queue).core(1).max(8));
    held.arm();
    let own = pond.pool();
    let patcher = Actor::start("patcher", move || own.apply(&patch));
    held.there.wait();
    (pond, held, patcher)
}

#[test]
fn a_patch_that_fails_leaves_the_capacity_that_another_has_set_meanwhile() {
    let (pond, held, patcher) = held_up_patch(Patch::new().core(5).capacity(10));
    pond.apply(&Patch::new().max(3).capacity(20)).unwrap();
    assert_eq!(pond.capacity(), Some(20));
    held.gate.open();
    let error = patcher.finish().unwrap_err();
    assert!(
        error.to_string().contains("core 5 is above max 3"),
        "{error}"
    );
    assert_eq!((pond.capacity(), pond.core()), (Some(20), 1));
}

#[test]
fn a_patch_that_fails_takes_its_own_capacity_back() {
    let (pond, held, patcher) = held_up_patch(Patch::new().core(5).capacity(10));
    pond.apply(&Patch::new().max(3)).unwrap();
    held.gate.open();
    assert!(patcher.finish().is_err());
    assert_eq!((pond.capacity(), pond.core()), (Some(100), 1));
    // It takes nothing back twice.
    pond.set_capacity(7).unwrap();
    assert!(pond.apply(&Patch::new().core(5).capacity(10)).is_err());
    assert_eq!(pond.capacity(), Some(7));
}

#[test]
fn of_two_patches_at_once_the_pool_has_the_values_of_one() {
    let (pond, held, patcher) = held_up_patch(Patch::new().core(2).capacity(10));
    pond.apply(&Patch::new().core(3).capacity(20)).unwrap();
    held.gate.open();
    patcher.finish().unwrap();
    assert_eq!((pond.core(), pond.capacity()), (2, Some(10)));
}
