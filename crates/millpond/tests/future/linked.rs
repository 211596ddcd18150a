//! Linked chains, and what goes along with stages: cancellation, deadlines, task-local values.

use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::future::{self, Completable};
use millpond::interrupt;
use millpond::preset;
use millpond::task::{TaskLocal, TaskSpec};
use millpond::time::{Clock, ManualClock};
use std::sync::{Arc, mpsc};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

/// A computation that runs until it is interrupted, and where it says so.
fn patient() -> (Completable<u32>, mpsc::Receiver<bool>) {
    let (say, hear) = mpsc::channel();
    let (begin, begun) = mpsc::channel();
    let made = Completable::supply_async(move || {
        begin.send(()).unwrap();
        let interrupted = interrupt::sleep(HOUR).is_err();
        let _ = say.send(interrupted);
        7
    });
    begun.recv().unwrap();
    (made, hear)
}

#[test]
fn cancelling_a_linked_chain_interrupts_the_task_that_computes_it() {
    let (made, interrupted) = patient();
    let chain = made
        .map(|value| value + 1)
        .zip(Completable::<u32>::never())
        .linked()
        .map(|_| 0);
    assert!(chain.cancel());
    assert!(interrupted.recv().unwrap());
}

#[test]
fn a_timeout_of_a_linked_chain_interrupts_the_task_that_computes_it() {
    let (made, interrupted) = patient();
    let hand = ManualClock::new();
    let chain = made
        .linked()
        .map(|value| value + 1)
        .or_timeout_by(&hand.clock(), HOUR);
    hand.advance(HOUR);
    assert!(chain.join().unwrap_err().is_timed_out());
    assert!(interrupted.recv().unwrap());
}

#[test]
fn cancelling_a_plain_chain_leaves_its_source_alone() {
    let (promise, source) = future::promise::<u32, ()>();
    let chain = source.clone().map(|value| value + 1).map(|value| value + 1);
    assert!(chain.cancel());
    assert_eq!(promise.complete(7), Ok(()));
    assert_eq!(source.join().unwrap(), 7);
}

#[test]
fn cancelling_drops_the_closure_of_a_task_that_waits_in_a_queue() {
    let pool = preset::single("mill").build().unwrap();
    let (go, may_go) = mpsc::channel::<()>();
    pool.execute(move || for () in may_go {}).unwrap();
    let owned = Arc::new(());
    let own = Arc::clone(&owned);
    let made = Completable::supply_on(&pool, move || drop(own)).unwrap();
    assert!(made.cancel());
    assert_eq!(Arc::strong_count(&owned), 1);
    let own = Arc::clone(&owned);
    let stage = Completable::completed(1).map_on(&pool, move |_: u32| drop(own));
    assert!(Completable::<(), ()>::cancel(&stage));
    assert_eq!(Arc::strong_count(&owned), 1);
    drop(go);
    pool.close().unwrap();
}

#[test]
fn stages_have_the_task_local_values_of_the_code_that_made_them() {
    static REQUEST: TaskLocal<u32> = TaskLocal::new();
    let request = || REQUEST.get().map_or(0, |number| *number);
    let (promise, source) = future::promise::<(), ()>();
    let pool = preset::single("mill").build().unwrap();
    let made = REQUEST.scope(7, || {
        [
            source.clone().map(move |()| request()),
            source.clone().map_async(move |()| request()),
            source.clone().map_on(&pool, move |()| request()),
            source
                .clone()
                .and_then(move |()| Completable::completed(request())),
        ]
    });
    let outside = source.map(move |()| request());
    REQUEST.scope(8, || promise.complete(()).unwrap());
    assert_eq!(future::all_of(made).join().unwrap(), [7; 4]);
    assert_eq!(outside.join().unwrap(), 0);
}

#[test]
fn a_stage_on_an_executor_has_the_deadline_of_the_code_that_made_it() {
    let pool = preset::single("mill").build().unwrap();
    let other = preset::single("other").build().unwrap();
    let (promise, source) = future::promise::<(), ()>();
    let deadline = Clock::system().deadline(Duration::from_nanos(1));
    let target = other.clone();
    let made = pool.submit_with(TaskSpec::new().name("request"), move || {
        // A deadline that has passed when the stage is to run.
        let spec = TaskSpec::new().deadline(deadline);
        Completable::supply_with(&target, spec, || 7)
    });
    let late = made.unwrap().join().unwrap().unwrap();
    let failure = late.join().unwrap_err();
    assert!(failure.is_cancelled(), "{failure}");
    drop((promise, source));
    pool.close().unwrap();
    other.close().unwrap();
}

#[test]
fn a_task_that_its_pool_drops_fails_its_stage_with_the_reason() {
    let pool = preset::single("mill").build().unwrap();
    let (go, may_go) = mpsc::channel::<()>();
    pool.execute(move || for () in may_go {}).unwrap();
    let made = Completable::supply_on(&pool, || 7).unwrap();
    let stage = Completable::<_, ()>::completed(1).map_on(&pool, |value| value + 1);
    drop(pool.shutdown_now());
    assert!(made.join().unwrap_err().is_cancelled());
    assert!(stage.join().unwrap_err().is_cancelled());
    drop(go);
    pool.close().unwrap();
}
