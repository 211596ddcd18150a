//! How executors end.

use crate::kit::{Actor, FailureSink, Gate, Guard, Latch, Stopwatch, delays};
use millpond::executor::{Executor, ExecutorExt, InvokeAllError, InvokeAnyError, Lifecycle};
use millpond::interrupt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// An executor that can be ended.
pub trait Service: Executor + Lifecycle {}

impl<E: Executor + Lifecycle + ?Sized> Service for E {}

/// Makes an executor that can be ended and runs at least two tasks at a time.
pub type Make = fn() -> Arc<dyn Service>;

/// Tests of an executor that can be ended, made by a [`Make`].
#[macro_export]
macro_rules! lifecycle_suite {
    ($make:expr) => {
        $crate::bodies! { lifecycle, ($make as $crate::suites::lifecycle::Make);
            an_idle_executor_ends_when_it_is_closed
            closing_waits_for_the_tasks_and_interrupts_none
            a_shutdown_lets_the_tasks_go_on_and_ends_after_the_last
            closing_a_draining_executor_waits
            closing_a_terminated_executor_does_nothing
            an_interrupt_during_a_close_stops_the_tasks_and_is_kept
            nothing_is_accepted_after_a_shutdown
            stopping_interrupts_running_tasks
            awaiting_termination_ends_at_its_timeout_or_by_an_interrupt
            writes_of_the_tasks_are_visible_after_termination
            a_dropped_executor_lets_its_tasks_go_on
        }
    };
}

/// A running executor that is sure to end.
fn guarded(make: &Make) -> Guard<Arc<dyn Service>> {
    Guard::new(make())
}

/// Tasks that wait at gates, and must not be interrupted meanwhile.
struct Held {
    sink: FailureSink,
    started: Latch,
    ended: Arc<AtomicUsize>,
}

impl Held {
    fn start(service: &dyn Service, gates: &[Gate]) -> Self {
        let held = Held {
            sink: FailureSink::new(),
            started: Latch::new(gates.len()),
            ended: Arc::default(),
        };
        for gate in gates {
            let (gate, started, ended) =
                (gate.clone(), held.started.clone(), Arc::clone(&held.ended));
            let body = held.sink.checked(move || {
                started.arrive();
                gate.wait();
                assert!(!interrupt::is_interrupted(), "nobody interrupts it");
                ended.fetch_add(1, Ordering::SeqCst);
            });
            service.execute(body).unwrap();
        }
        held.started.wait();
        held
    }

    fn ended(&self) -> usize {
        self.ended.load(Ordering::SeqCst)
    }
}

/// Holds: ExecutorService/CloseTest.testCloseWithNoTasks
pub fn an_idle_executor_ends_when_it_is_closed(make: &Make) {
    let service = guarded(make);
    assert!(!service.is_shutdown() && !service.is_terminated());
    service.close().unwrap();
    assert!(service.is_shutdown() && service.is_terminated());
}

/// Holds: ExecutorService/CloseTest.testCloseWithRunningTasks
/// Holds: ExecutorService/CloseTest.testCloseWith2RunningTasks
pub fn closing_waits_for_the_tasks_and_interrupts_none(make: &Make) {
    for count in [1, 2] {
        let service = guarded(make);
        let gates: Vec<Gate> = (0..count).map(|_| Gate::new()).collect();
        let held = Held::start(&**service, &gates);
        let own = Arc::clone(&service);
        let closer = Actor::start("closer", move || own.close().unwrap());
        for gate in &gates {
            closer.await_parked_anywhere();
            assert!(service.is_shutdown() && !service.is_terminated());
            gate.open();
        }
        closer.finish();
        assert_eq!(held.ended(), count);
        assert!(service.is_terminated());
    }
}

/// Holds: ExecutorService/CloseTest.testShutdownWithRunningTasks
/// Holds: ExecutorService/CloseTest.testShutdownWith2RunningTasks
pub fn a_shutdown_lets_the_tasks_go_on_and_ends_after_the_last(make: &Make) {
    for count in [1, 2] {
        let service = guarded(make);
        let gates: Vec<Gate> = (0..count).map(|_| Gate::new()).collect();
        let held = Held::start(&**service, &gates);
        service.shutdown();
        service.shutdown();
        for gate in &gates {
            assert!(service.is_shutdown() && !service.is_terminated());
            gate.open();
        }
        assert_eq!(service.await_termination_timeout(delays::long()), Ok(true));
        assert_eq!(held.ended(), count);
    }
}

/// Holds: ExecutorService/CloseTest.testShutdownBeforeClose
pub fn closing_a_draining_executor_waits(make: &Make) {
    let (service, gate) = (guarded(make), Gate::new());
    let held = Held::start(&**service, std::slice::from_ref(&gate));
    service.shutdown();
    let own = Arc::clone(&service);
    let closer = Actor::start("closer", move || own.close().unwrap());
    closer.await_parked_anywhere();
    gate.open();
    closer.finish();
    assert_eq!(held.ended(), 1);
}

/// Holds: ExecutorService/CloseTest.testTerminateBeforeClose
pub fn closing_a_terminated_executor_does_nothing(make: &Make) {
    let service = guarded(make);
    service.shutdown();
    service.await_termination().unwrap();
    let watch = Stopwatch::start();
    service.close().unwrap();
    watch.assert_prompt();
    assert!(service.is_terminated());
    assert!(service.shutdown_now().is_empty());
}

/// Holds: ExecutorService/CloseTest.testInterruptDuringClose
pub fn an_interrupt_during_a_close_stops_the_tasks_and_is_kept(make: &Make) {
    for pending in [false, true] {
        let service = guarded(make);
        let (started, stopped) = (Latch::new(1), Gate::new());
        let (start, stop) = (started.clone(), stopped.clone());
        let body = move || {
            start.arrive();
            if interrupt::sleep(Duration::MAX).is_err() {
                stop.open();
            }
        };
        service.execute(body).unwrap();
        started.wait();
        let own = Arc::clone(&service);
        let close = move || {
            own.close().unwrap();
            interrupt::is_interrupted()
        };
        let closer = if pending {
            Actor::start_interrupted("closer", close)
        } else {
            let closer = Actor::start("closer", close);
            closer.await_parked_anywhere();
            closer.interrupt();
            closer
        };
        assert!(closer.finish(), "the closer is still interrupted");
        stopped.wait();
        assert!(service.is_terminated());
    }
}

/// Holds: ExecutorService/SubmitTest.testSubmitRunnableAfterShutdown
/// Holds: ExecutorService/SubmitTest.testSubmitCallableAfterShutdown
/// Holds: ExecutorService/SubmitTest.testExecuteAfterShutdown
/// Holds: ExecutorService/InvokeTest.testInvokeAnyAfterShutdown
/// Holds: ExecutorService/InvokeTest.testInvokeAllAfterShutdown1
pub fn nothing_is_accepted_after_a_shutdown(make: &Make) {
    let service = guarded(make);
    service.shutdown();
    for _ in ["draining", "terminated"] {
        let rejected = service.submit(|| 7).unwrap_err();
        assert!(rejected.reason.is_shut_down());
        assert_eq!((rejected.task)(), 7, "the closure comes back whole");
        assert!(service.execute(|| panic!("it ran")).is_err());
        let error = service.invoke_all([|| ()]).unwrap_err();
        assert!(matches!(error, InvokeAllError::Rejected(reason) if reason.is_shut_down()));
        let error = service.invoke_any([|| Ok::<_, ()>(())]).unwrap_err();
        assert!(matches!(error, InvokeAnyError::Rejected(reason) if reason.is_shut_down()));
        service.await_termination().unwrap();
    }
}

/// Holds: ExecutorService/SubmitTest.testSubmitRunnableWithShutdownNow
/// Holds: ExecutorService/SubmitTest.testSubmitCallableWithShutdownNow
pub fn stopping_interrupts_running_tasks(make: &Make) {
    let service = guarded(make);
    let (started, sink) = (Latch::new(2), FailureSink::new());
    let handles = [0, 1].map(|number| {
        let started = started.clone();
        let body = sink.checked(move || {
            started.arrive();
            assert!(interrupt::sleep(Duration::MAX).is_err());
            number
        });
        service.submit(body).unwrap()
    });
    started.wait();
    assert!(service.shutdown_now().is_empty(), "both have started");
    assert_eq!(service.await_termination_timeout(delays::long()), Ok(true));
    for (number, handle) in handles.into_iter().enumerate() {
        // It was asked to stop and not cancelled: what it returns is its value.
        assert_eq!(handle.join().unwrap(), number);
    }
}

/// With a deadline it gives up, without it waits, and an interrupt ends either.
pub fn awaiting_termination_ends_at_its_timeout_or_by_an_interrupt(make: &Make) {
    let (service, gate) = (guarded(make), Gate::new());
    let held = Held::start(&**service, std::slice::from_ref(&gate));
    service.shutdown();
    for timeout in delays::instants() {
        assert_eq!(service.await_termination_timeout(timeout), Ok(false));
    }
    let watch = Stopwatch::start();
    assert_eq!(
        service.await_termination_timeout(delays::timeout()),
        Ok(false)
    );
    watch.assert_at_least(delays::timeout());
    let own = Arc::clone(&service);
    let waiter = Actor::start("waiter", move || own.await_termination());
    waiter.await_parked_anywhere();
    waiter.interrupt();
    assert!(waiter.finish().is_err());
    gate.open();
    for timeout in delays::eternities() {
        assert_eq!(service.await_termination_timeout(timeout), Ok(true));
    }
    assert_eq!(held.ended(), 1);
}

/// Everything that happened in the tasks happened before the end.
pub fn writes_of_the_tasks_are_visible_after_termination(make: &Make) {
    for _ in 0..50 {
        let service = guarded(make);
        let cell = Arc::new(AtomicUsize::new(0));
        let own = Arc::clone(&cell);
        service
            .execute(move || own.store(7, Ordering::Relaxed))
            .unwrap();
        service.close().unwrap();
        assert_eq!(cell.load(Ordering::Relaxed), 7);
    }
}

/// Dropping is an orderly shutdown that does not wait.
pub fn a_dropped_executor_lets_its_tasks_go_on(make: &Make) {
    let service = make();
    let gate = Gate::new();
    let held = Held::start(&*service, std::slice::from_ref(&gate));
    drop(service);
    assert_eq!(held.ended(), 0);
    gate.open();
    crate::kit::until("it has gone on to its end", || held.ended() == 1);
}
