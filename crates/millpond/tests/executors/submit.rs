//! What every executor promises: submitting, rejecting, panicking, passing on.

use crate::executor_kit::{PerTask, Rejecting, Shelf, quiet_panic};
use millpond::executor::{DirectExecutor, Executor, ExecutorExt, RejectReason, Rejected};
use millpond::task::{CancelReason, Task, TaskError, TaskSpec};
use millpond::time::{Deadline, ManualClock};
use millpond_testkit::{DropCount, interrupt_at, watch};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[test]
fn a_closure_runs_in_the_caller() {
    let _watch = watch();
    let (send, receive) = mpsc::channel();
    DirectExecutor::new()
        .execute(move || send.send(std::thread::current().id()).unwrap())
        .unwrap();
    assert_eq!(receive.try_recv().unwrap(), std::thread::current().id());
}

#[test]
fn a_value_comes_through_every_kind_of_pointer() {
    let _watch = watch();
    let by_value = DirectExecutor::new();
    let by_reference: &dyn Executor = &by_value;
    assert_eq!(by_reference.submit(|| 1).unwrap().join().unwrap(), 1);
    let boxed: Box<dyn Executor> = Box::new(by_value.clone());
    assert_eq!(boxed.submit(|| 2).unwrap().join().unwrap(), 2);
    let shared: Arc<dyn Executor> = Arc::new(by_value);
    assert_eq!(shared.submit(|| 3).unwrap().join().unwrap(), 3);
}

#[test]
fn a_task_without_a_value_joins_with_the_unit() {
    let _watch = watch();
    let handle = DirectExecutor::new().submit(|| ()).unwrap();
    assert!(handle.is_finished());
    assert!(handle.join().is_ok());
}

#[test]
fn a_rejection_returns_the_very_closure_and_drops_nothing() {
    let _watch = watch();
    let drops = DropCount::new();
    let token = drops.token();
    let text = String::from("the very same");
    let address = text.as_ptr();
    let rejected = Rejecting
        .submit(move || {
            let _token = token;
            text
        })
        .unwrap_err();
    assert_eq!(drops.dropped(), 0);
    let back = (rejected.task)();
    assert_eq!(back.as_ptr(), address, "the closure and all that it owns");
    assert_eq!(drops.dropped(), 1);
}

#[test]
fn a_rejected_fire_and_forget_closure_is_returned_too() {
    let _watch = watch();
    let (send, receive) = mpsc::channel();
    let rejected = Rejecting
        .execute(move || send.send(7).unwrap())
        .unwrap_err();
    assert!(receive.try_recv().is_err());
    (rejected.task)();
    assert_eq!(receive.try_recv().unwrap(), 7);
}

#[test]
fn a_dropped_rejection_drops_the_closure_once() {
    let _watch = watch();
    let drops = DropCount::new();
    let token = drops.token();
    drop(Rejecting.submit(move || drop(token)));
    assert_eq!(drops.dropped(), 1);
}

#[test]
fn a_rejection_says_what_to_do() {
    let _watch = watch();
    let rejected = Rejecting.execute(|| ()).unwrap_err();
    assert_eq!(
        rejected.to_string(),
        "the task was rejected: the queue is full (7 of 7) and all 2 workers are busy: try again \
         later, or give it more room"
    );
    assert_eq!(
        RejectReason::ShutDown.to_string(),
        "the executor has been shut down: it takes no more tasks"
    );
}

#[test]
fn a_panic_goes_to_the_handle_with_its_payload() {
    let _watch = watch();
    let handle = DirectExecutor::new()
        .submit(|| -> u8 { std::panic::resume_unwind(Box::new(7_u8)) })
        .unwrap();
    let panic = handle.join().unwrap_err().into_panic().unwrap();
    assert_eq!(*panic.into_payload().downcast::<u8>().unwrap(), 7);
}

#[test]
fn a_panic_without_a_handle_goes_to_the_hook() {
    let _watch = watch();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let executor = DirectExecutor::new().on_panic({
        let seen = Arc::clone(&seen);
        move |uncaught| {
            let text = uncaught.panic().message().map(str::to_owned);
            seen.lock()
                .unwrap()
                .push((text, uncaught.location().line()));
        }
    });
    let line = line!() + 1;
    executor.execute(|| quiet_panic("no water")).unwrap();
    executor.submit(|| quiet_panic("has a handle")).unwrap();
    assert_eq!(*seen.lock().unwrap(), [(Some("no water".into()), line)]);
}

#[test]
fn a_hook_that_panics_costs_nothing() {
    let _watch = watch();
    let executor = DirectExecutor::new().on_panic(|_| quiet_panic("the hook, too"));
    executor.execute(|| quiet_panic("no water")).unwrap();
    assert_eq!(executor.submit(|| 7).unwrap().join().unwrap(), 7);
}

#[test]
fn a_task_that_its_executor_drops_is_cancelled() {
    let _watch = watch();
    let shelf = Shelf::with_room(1);
    let handle = shelf.submit(|| 7).unwrap();
    drop(shelf.take());
    assert!(matches!(
        handle.join(),
        Err(TaskError::Cancelled(CancelReason::Dropped))
    ));
}

#[test]
fn an_expired_task_is_shed_and_says_so() {
    let _watch = watch();
    let hand = ManualClock::new();
    let spec = || {
        TaskSpec::new()
            .clock(hand.clock())
            .deadline(hand.clock().deadline(Duration::from_secs(1)))
    };
    let early = spec();
    let late = spec();
    let executor = DirectExecutor::new();
    let handle = executor.submit_with(early, || 7).unwrap();
    assert_eq!(handle.join().unwrap(), 7);
    hand.advance(Duration::from_secs(1));
    let handle = executor.submit_with(late, || 7).unwrap();
    assert!(matches!(
        handle.join(),
        Err(TaskError::Cancelled(CancelReason::Expired))
    ));
}

#[test]
fn a_task_passes_its_name_and_deadline_on() {
    let _watch = watch();
    let deadline = ManualClock::new()
        .clock()
        .deadline(Duration::from_secs(86_400));
    let per_task = PerTask::of(3);
    let below = Arc::clone(&per_task.0);
    let outer = TaskSpec::new()
        .name(String::from("order"))
        .deadline(deadline);
    let handle = per_task
        .0
        .submit_with(outer, move || {
            let plain = below.submit(|| ()).unwrap();
            let own = TaskSpec::new().name("bill").deadline(Deadline::NEVER);
            let own = below.submit_with(own, || ()).unwrap();
            let inherited = (plain.name().map(str::to_owned), plain.deadline());
            let given = (own.name().map(str::to_owned), own.deadline());
            drop((plain.join(), own.join()));
            (inherited, given)
        })
        .unwrap();
    let (inherited, given) = handle.join().unwrap();
    assert_eq!(inherited, (Some("order".into()), deadline));
    assert_eq!(given, (Some("bill".into()), Deadline::NEVER));
}

#[test]
fn what_a_task_passes_on_ends_with_the_task() {
    let _watch = watch();
    let executor = DirectExecutor::new();
    let named = TaskSpec::new().name("order");
    executor.submit_with(named, || ()).unwrap();
    assert_eq!(executor.submit(|| ()).unwrap().name(), None);
    let named = TaskSpec::new().name("order");
    executor.submit_with(named, || quiet_panic("over")).unwrap();
    assert_eq!(executor.submit(|| ()).unwrap().name(), None);
}

#[test]
fn a_task_run_inside_another_passes_its_own_things_on() {
    let _watch = watch();
    let shelf = Shelf::with_room(1);
    let made_outside = shelf
        .submit(|| DirectExecutor::new().submit(|| ()).unwrap())
        .unwrap();
    let outer = DirectExecutor::new()
        .submit_with(TaskSpec::new().name("outer"), move || {
            let inner = made_outside.run_or_join().unwrap();
            let after = DirectExecutor::new().submit(|| ()).unwrap();
            (
                inner.name().map(str::to_owned),
                after.name().map(str::to_owned),
            )
        })
        .unwrap();
    assert_eq!(outer.join().unwrap(), (None, Some("outer".into())));
}

#[test]
fn a_join_that_is_interrupted_says_so_and_the_task_goes_on() {
    let _watch = watch();
    let shelf = Shelf::with_room(1);
    let handle = shelf.submit(|| 7).unwrap();
    let (result, handle) = interrupt_at("submit-joiner", "task.join", move || {
        let mut handle = handle;
        (handle.join_until(Deadline::NEVER), handle)
    });
    assert!(matches!(result, Err(TaskError::Interrupted)));
    shelf.run_all();
    assert_eq!(handle.join().unwrap(), 7);
}

#[test]
fn an_executor_that_returns_another_task_makes_submit_panic() {
    let _watch = watch();
    #[derive(Debug)]
    struct Swaps;

    impl Executor for Swaps {
        fn execute_task(&self, _: Task) -> Result<(), Rejected<Task>> {
            let other = TaskSpec::new().build_detached(|| ());
            Err(Rejected::new(other, RejectReason::ShutDown))
        }
    }

    let told = std::panic::catch_unwind(|| Swaps.submit(|| 7)).unwrap_err();
    let text = told.downcast::<String>().unwrap();
    assert!(text.starts_with("an executor that rejects a task must give that very task back"));
}
