//! Results in the order in which they come, over any executor that runs beside its callers.

use super::executor::Make;
use crate::kit::{Actor, Gate, ManualExecutor, Stopwatch, Stress, delays, until};
use millpond::executor::{CompletionService, Executor, TaskId};
use millpond::interrupt::Interrupted;
use std::collections::BTreeMap;
use std::panic::panic_any;
use std::sync::Arc;
use std::time::Duration;

/// Tests of a completion service over an executor that is made by a [`Make`].
#[macro_export]
macro_rules! completion_suite {
    ($make:expr) => {
        $crate::bodies! { completion, ($make as $crate::suites::executor::Make);
            a_taken_completion_is_that_of_a_finished_submitted_task
            nothing_is_polled_before_it_is_finished
            a_timed_poll_waits_for_its_whole_timeout
            a_waiting_thread_can_be_interrupted
            results_come_in_the_order_of_completion
            values_and_failures_are_each_delivered_once
            every_solution_is_used_as_it_comes
            the_first_solution_cancels_the_others
            a_rejected_task_is_not_delivered
            under_load_every_completion_arrives_once
        }
    };
}

type Service<T> = CompletionService<T, Arc<dyn Executor>>;

fn service<T: Send + 'static>(make: &Make) -> Arc<Service<T>> {
    Arc::new(CompletionService::new(make()))
}

/// Holds: ExecutorCompletionServiceTest.testTake, ExecutorCompletionServiceTest.testTake2
pub fn a_taken_completion_is_that_of_a_finished_submitted_task(make: &Make) {
    let service = service(make);
    let id = service.submit(|| "flour").unwrap();
    let arrived = service.take().unwrap();
    assert_eq!(arrived.id, id);
    assert_eq!(arrived.result.unwrap(), "flour");
    assert_eq!((service.pending(), service.ready_len()), (0, 0));
}

/// Holds: ExecutorCompletionServiceTest.testPoll1
/// Holds: ExecutorCompletionServiceTest.testPollReturnsNullBeforeCompletion
pub fn nothing_is_polled_before_it_is_finished(make: &Make) {
    let (service, gate) = (service(make), Gate::new());
    assert!(service.poll().is_none());
    let held = gate.clone();
    let id = service.submit(move || held.wait()).unwrap();
    assert!(service.poll().is_none());
    assert!(service.poll_timeout(delays::timeout()).unwrap().is_none());
    assert_eq!(service.pending(), 1);
    gate.open();
    until("it arrives", || service.ready_len() == 1);
    assert_eq!(service.poll().unwrap().id, id);
    assert!(service.poll().is_none());
}

/// With no timeout at once, with some after it, with endless when something comes.
pub fn a_timed_poll_waits_for_its_whole_timeout(make: &Make) {
    let service = service(make);
    for timeout in delays::instants() {
        assert!(service.poll_timeout(timeout).unwrap().is_none());
    }
    let watch = Stopwatch::start();
    assert!(service.poll_timeout(delays::timeout()).unwrap().is_none());
    watch.assert_at_least(delays::timeout());
    for timeout in delays::eternities() {
        let own = Arc::clone(&service);
        let taker = Actor::start("taker", move || own.poll_timeout(timeout).unwrap());
        taker.await_parked("completion.take");
        service.submit(|| 7).unwrap();
        assert_eq!(taker.finish().unwrap().result.unwrap(), 7);
    }
}

/// A wait ends, and what arrives later is for another one.
pub fn a_waiting_thread_can_be_interrupted(make: &Make) {
    let service: Arc<Service<u32>> = service(make);
    let own = Arc::clone(&service);
    let taker = Actor::start("taker", move || own.take().map(drop));
    taker.interrupt_at("completion.take");
    assert_eq!(taker.finish(), Err(Interrupted));
    let own = Arc::clone(&service);
    let taker = Actor::start_interrupted("taker", move || own.take().map(drop));
    assert_eq!(taker.finish(), Err(Interrupted));
    service.submit(|| 7).unwrap();
    assert_eq!(service.take().unwrap().result.unwrap(), 7);
}

/// By hand, so that the order is exact.
pub fn results_come_in_the_order_of_completion(_: &Make) {
    let manual = ManualExecutor::new();
    let service = CompletionService::new(manual.clone());
    let ids = [0, 1, 2].map(|number| service.submit(move || number).unwrap());
    let first = manual.next().unwrap();
    manual.run_all();
    first.run();
    let order: Vec<TaskId> = std::iter::from_fn(|| service.poll())
        .map(|one| one.id)
        .collect();
    assert_eq!(order, [ids[1], ids[2], ids[0]]);
    // A task that is never run arrives too.
    let id = service.submit(|| 3).unwrap();
    drop(manual.next());
    let arrived = service.poll().unwrap();
    assert_eq!(arrived.id, id);
    assert!(arrived.result.unwrap_err().is_cancelled());
}

/// Holds: ExecutorCompletionServiceTest.testTaskAssortment
pub fn values_and_failures_are_each_delivered_once(make: &Make) {
    let service = service(make);
    let mut open: BTreeMap<TaskId, u32> = (0..4)
        .map(|number| {
            let body = move || match number % 2 {
                0 => number,
                _ => panic_any(number.to_string()),
            };
            (service.submit(body).unwrap(), number)
        })
        .collect();
    while !open.is_empty() {
        let arrived = service.take().unwrap();
        let number = open.remove(&arrived.id).expect("each arrives once");
        match arrived.result {
            Ok(value) => assert_eq!(value, number),
            Err(error) => {
                let panic = error.into_panic().unwrap();
                assert_eq!(panic.message(), Some(number.to_string().as_str()));
            }
        }
    }
    assert!(service.poll().is_none());
}

/// Holds: ExecutorCompletionService9Test.testSolveAll
pub fn every_solution_is_used_as_it_comes(make: &Make) {
    let service = service(make);
    for number in 0..4_u32 {
        service
            .submit(move || (number % 2 == 0).then_some(number))
            .unwrap();
    }
    let mut used = Vec::new();
    for _ in 0..4 {
        used.extend(service.take().unwrap().result.unwrap());
    }
    used.sort_unstable();
    assert_eq!(used, [0, 2]);
}

/// Holds: ExecutorCompletionService9Test.testSolveAny
pub fn the_first_solution_cancels_the_others(make: &Make) {
    let service = service(make);
    let mut ids = Vec::new();
    for number in 0..3 {
        let body = move || match number {
            0 => panic_any("no solution"),
            1 => 7,
            _ => {
                let _ = millpond::interrupt::sleep(Duration::MAX);
                8
            }
        };
        ids.push(service.submit(body).unwrap());
    }
    let solution = loop {
        if let Ok(solution) = service.take().unwrap().result {
            break solution;
        }
    };
    assert_eq!(solution, 7);
    service.interrupt_all();
    while service.pending() + service.ready_len() > 0 {
        let rest = service.take().unwrap();
        assert!(rest.id != ids[1] && rest.result.is_err());
    }
}

/// There is nothing to wait for.
pub fn a_rejected_task_is_not_delivered(_: &Make) {
    let manual = ManualExecutor::new();
    let service = CompletionService::new(manual.clone());
    manual.refuse(true);
    let rejected = service.submit(|| 7).unwrap_err();
    assert_eq!((rejected.task)(), 7);
    assert_eq!((service.pending(), service.ready_len()), (0, 0));
    assert!(service.poll().is_none());
}

/// Holds: jtreg FutureTask/Executors/ECS.ExecutorCompletionService/ExecutorCompletionServiceLoops
pub fn under_load_every_completion_arrives_once(make: &Make) {
    let make = *make;
    Stress::new("completions").one_in(10).run(|round| {
        let service: Arc<Service<u32>> = service(&make);
        let own = Arc::clone(&service);
        let submitter = round.actor("submitter", move |rng| {
            for number in 0..20 {
                rng.jitter();
                // An executor without room is asked again.
                let mut body = move || number;
                while let Err(rejected) = own.submit(body) {
                    assert!(rejected.reason.is_saturated(), "{}", rejected.reason);
                    body = rejected.task;
                    std::thread::yield_now();
                }
            }
        });
        let takers: Vec<_> = (0..2)
            .map(|_| {
                let own = Arc::clone(&service);
                round.actor("taker", move |_| {
                    let ten = (0..10).map(|_| own.take().unwrap().result.unwrap());
                    ten.collect::<Vec<u32>>()
                })
            })
            .collect();
        submitter.finish();
        let mut all: Vec<u32> = takers.into_iter().flat_map(Actor::finish).collect();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..20));
        assert!(service.poll().is_none());
    });
}
