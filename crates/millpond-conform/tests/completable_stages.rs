//! Stages with one source, in each of their forms.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test stands outside: it uses std's threads and locks beside what it tests"
)]

mod completable_kit;

use completable_kit::{
    Calls, End, Form, Number, Outcome, Source, THREADS, assert_panicked, assert_passed_on,
    assert_value, every_way, in_form,
};
use millpond::future::{self, Completable};
use millpond_conform::kit::{ManualExecutor, case};
use std::sync::Arc;
use std::thread;

const BOOM: &str = "the dam broke";

fn map(form: Form, source: Number, f: impl FnOnce(u32) -> u32 + Send + 'static) -> Number {
    in_form!(form, source, map, map_async, map_on, f)
}

fn and_then(form: Form, source: Number, f: impl FnOnce(u32) -> Number + Send + 'static) -> Number {
    in_form!(form, source, and_then, and_then_async, and_then_on, f)
}

fn handle(form: Form, source: Number, f: impl FnOnce(Outcome) -> u32 + Send + 'static) -> Number {
    in_form!(form, source, handle, handle_async, handle_on, f)
}

/// Holds: CompletableFutureTest.testThenApply_normalCompletion, CompletableFutureTest.testThenRun_normalCompletion
#[test]
fn several_stages_of_one_source_run_once_each_in_every_form() {
    case("several stages", || {
        every_way(|form, late| {
            let (source, reader) = Source::new(End::Value(7), late);
            let calls = Arc::new(Calls::new());
            let made: Vec<Number> = (0..3)
                .map(|number| {
                    let calls = Arc::clone(&calls);
                    map(form, reader.clone(), move |value| {
                        calls.count();
                        value * 10 + number
                    })
                })
                .collect();
            source.now();
            let values: Vec<u32> = made
                .into_iter()
                .map(|stage| stage.join().unwrap())
                .collect();
            assert_eq!(values, [70, 71, 72]);
            assert_eq!(calls.get(), 3);
            assert_value(reader, 7);
        });
    });
}

/// Holds: CompletableFutureTest.testThenApply_sourceCancelled, CompletableFutureTest.testThenRun_exceptionalCompletion
/// Holds: CompletableFutureTest.testThenRun_sourceCancelled, CompletableFutureTest.testThenAccept_exceptionalCompletion
/// Holds: CompletableFutureTest.testThenAccept_sourceCancelled
#[test]
fn a_failure_is_passed_on_and_the_closure_does_not_run() {
    case("passed on", || {
        for end in [End::Failure, End::Cancelled] {
            every_way(|form, late| {
                let (source, reader) = Source::new(end, late);
                let owned = Arc::new(());
                let own = Arc::clone(&owned);
                let made = map(form, reader.clone(), move |_| {
                    drop(own);
                    unreachable!("it has failed")
                });
                source.now();
                assert_passed_on(made, end);
                assert_eq!(Arc::strong_count(&owned), 1, "the closure is dropped");
                assert_eq!(reader.is_cancelled(), end == End::Cancelled);
            });
        }
    });
}

/// Holds: CompletableFutureTest.testThenApply_actionFailed, CompletableFutureTest.testThenRun_actionFailed
/// Holds: CompletableFutureTest.testThenAccept_actionFailed
#[test]
fn a_panic_is_the_failure_of_its_stage_and_the_source_keeps_its_value() {
    case("panics", || {
        every_way(|form, late| {
            let (source, reader) = Source::new(End::Value(7), late);
            let made = map(form, reader.clone(), |_| panic!("{BOOM}"));
            let below = made.clone().map(|_| 0);
            source.now();
            assert_panicked(made);
            let failure = below.join().unwrap_err();
            assert!(failure.is_panicked() && failure.is_propagated());
            assert_value(reader, 7);
        });
    });
}

/// Holds: CompletableFutureTest.testExceptionally_exceptionalCompletion
#[test]
fn recover_gets_the_failure_and_its_value_is_the_result() {
    case("recover", || {
        for end in [End::Failure, End::Cancelled, End::Value(7)] {
            every_way(|form, late| {
                let (source, reader) = Source::new(end, late);
                let f = move |failure: millpond::future::CompletionError<&'static str>| {
                    assert!(!failure.is_propagated(), "it is the origin");
                    assert_eq!(failure.is_cancelled(), end == End::Cancelled);
                    1
                };
                let made = in_form!(form, reader, recover, recover_async, recover_on, f);
                source.now();
                assert_value(made, if end == End::Value(7) { 7 } else { 1 });
            });
        }
    });
}

/// Holds: CompletableFutureTest.testExceptionally_exceptionalCompletionActionFailed
#[test]
fn a_recovery_that_panics_fails_with_that() {
    case("recover panics", || {
        every_way(|form, late| {
            let (source, reader) = Source::new(End::Failure, late);
            let made = in_form!(
                form,
                reader,
                recover,
                recover_async,
                recover_on,
                |_| panic!("{BOOM}")
            );
            source.now();
            assert_panicked(made);
        });
    });
}

/// Holds: CompletableFutureTest.testWhenComplete_normalCompletion
/// Holds: CompletableFutureTest.testWhenComplete_exceptionalCompletion
/// Holds: CompletableFutureTest.testWhenComplete_sourceCancelled
#[test]
fn when_complete_sees_the_outcome_and_passes_it_on() {
    case("when_complete", || {
        for end in [End::Value(7), End::Failure, End::Cancelled] {
            every_way(|form, late| {
                let (source, reader) = Source::new(end, late);
                let calls = Arc::new(Calls::new());
                let own = Arc::clone(&calls);
                let f = move |outcome: Result<
                    &u32,
                    &millpond::future::CompletionError<&'static str>,
                >| {
                    own.count();
                    assert_eq!(outcome.is_ok(), end == End::Value(7));
                };
                let made = in_form!(
                    form,
                    reader,
                    when_complete,
                    when_complete_async,
                    when_complete_on,
                    f
                );
                source.now();
                match end {
                    End::Value(value) => assert_value(made, value),
                    _ => assert_passed_on(made, end),
                }
                assert_eq!(calls.get(), 1);
            });
        }
    });
}

/// Holds: CompletableFutureTest.testWhenComplete_sourceFailedActionFailed
#[test]
fn when_both_fail_the_source_counts_and_the_panic_is_kept_with_it() {
    case("suppressed", || {
        every_way(|form, late| {
            let (source, reader) = Source::new(End::Failure, late);
            let made = in_form!(
                form,
                reader,
                when_complete,
                when_complete_async,
                when_complete_on,
                |_| panic!("{BOOM}")
            );
            source.now();
            let failure = made.join().unwrap_err();
            assert_eq!(failure.error(), Some(&"no wind"));
            let suppressed = failure.suppressed();
            assert_eq!(suppressed.len(), 1);
            assert_eq!(suppressed[0].message(), Some(BOOM));
            let (source, reader) = Source::new(End::Value(7), late);
            let made = in_form!(
                form,
                reader,
                when_complete,
                when_complete_async,
                when_complete_on,
                |_| panic!("{BOOM}")
            );
            source.now();
            assert_panicked(made);
        });
    });
}

/// Holds: CompletableFutureTest.testHandle_normalCompletion, CompletableFutureTest.testHandle_exceptionalCompletion
#[test]
fn handle_turns_every_outcome_into_a_value() {
    case("handle", || {
        for end in [End::Value(7), End::Failure, End::Cancelled] {
            every_way(|form, late| {
                let (source, reader) = Source::new(end, late);
                let made = handle(form, reader, |outcome| outcome.unwrap_or(1) + 1);
                source.now();
                assert_value(made, if end == End::Value(7) { 8 } else { 2 });
                let (source, reader) = Source::new(end, late);
                let made = handle(form, reader, |_| panic!("{BOOM}"));
                source.now();
                assert_panicked(made);
            });
        }
    });
}

/// Holds: CompletableFutureTest.testThenCompose_exceptionalCompletion, CompletableFutureTest.testThenCompose_sourceCancelled
#[test]
fn a_failed_source_is_not_composed() {
    case("compose", || {
        for end in [End::Failure, End::Cancelled] {
            every_way(|form, late| {
                let (source, reader) = Source::new(end, late);
                let made = and_then(form, reader, |_| unreachable!("it has failed"));
                source.now();
                assert_passed_on(made, end);
            });
        }
        every_way(|form, late| {
            let (source, reader) = Source::new(End::Value(7), late);
            let made = and_then(form, reader, |_| panic!("{BOOM}"));
            source.now();
            assert_panicked(made);
        });
    });
}

/// The three events of a composition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Attach,
    Outer,
    Inner,
}

const ORDERS: [[Event; 3]; 6] = {
    use Event::{Attach, Inner, Outer};
    [
        [Attach, Outer, Inner],
        [Attach, Inner, Outer],
        [Outer, Attach, Inner],
        [Outer, Inner, Attach],
        [Inner, Attach, Outer],
        [Inner, Outer, Attach],
    ]
};

/// The six orders of composing, completing the outer one and completing the inner one.
///
/// Holds: CompletableFutureTest.testThenCompose_actionReturnsFailingFuture, jtreg CompletableFuture.ThenComposeAsyncTest
#[test]
fn a_composition_comes_to_its_inner_one_in_all_six_orders() {
    case("six orders", || {
        for end in [End::Value(70), End::Failure, End::Cancelled] {
            for form in completable_kit::FORMS {
                for order in ORDERS {
                    let (outer, reader) = Source::new(End::Value(7), true);
                    let (inner, result) = Source::new(end, true);
                    let (mut reader, mut result, mut made) = (Some(reader), Some(result), None);
                    for event in order {
                        match event {
                            Event::Attach => {
                                let (reader, result) =
                                    (reader.take().unwrap(), result.take().unwrap());
                                made = Some(and_then(form, reader, move |value| {
                                    assert_eq!(value, 7);
                                    result
                                }));
                            }
                            Event::Outer => outer.now(),
                            Event::Inner => inner.now(),
                        }
                    }
                    match end {
                        End::Value(value) => assert_value(made.unwrap(), value),
                        _ => assert_passed_on(made.unwrap(), end),
                    }
                }
            }
        }
    });
}

/// Holds: CompletableFutureTest.testExceptionallyCompose_normalCompletion
/// Holds: CompletableFutureTest.testExceptionallyCompose_exceptionalCompletion
#[test]
fn or_else_goes_on_with_another_one_after_a_failure_only() {
    case("or_else", || {
        for end in [End::Value(7), End::Failure, End::Cancelled] {
            every_way(|form, late| {
                let (source, reader) = Source::new(end, late);
                let (inner, result) = Source::new(End::Value(70), late);
                let f = move |_| result;
                let made = in_form!(form, reader, or_else, or_else_async, or_else_on, f);
                source.now();
                inner.now();
                assert_value(made, if end == End::Value(7) { 7 } else { 70 });
            });
        }
    });
}

/// Holds: CompletableFutureTest.testRunAsync_normalCompletion, CompletableFutureTest.testSupplyAsync_normalCompletion
/// Holds: CompletableFutureTest.testRunAsync_exceptionalCompletion
#[test]
fn a_supplier_runs_on_another_thread() {
    case("supply", || {
        let here = thread::current().id();
        assert_ne!(
            Completable::supply_async(|| thread::current().id())
                .join()
                .unwrap(),
            here
        );
        let there = Completable::supply_on(&*THREADS, || thread::current().id());
        assert_ne!(there.unwrap().join().unwrap(), here);
        Completable::run_async(|| ()).join().unwrap();
        Completable::run_on(&*THREADS, || ())
            .unwrap()
            .join()
            .unwrap();
        let failure = Completable::run_async(|| panic!("{BOOM}"))
            .join()
            .unwrap_err();
        assert!(failure.is_panicked());
        let made = Number::try_supply_async(|| Err("no wind"));
        assert_eq!(made.join().unwrap_err().error(), Some(&"no wind"));
        let made = Number::try_supply_on(&*THREADS, || Ok(7));
        assert_value(made.unwrap(), 7);
    });
}

/// Holds: CompletableFutureTest.testRunAsync_rejectingExecutor, CompletableFutureTest.testSupplyAsync_rejectingExecutor
#[test]
fn a_supplier_that_is_rejected_comes_back() {
    case("rejected suppliers", || {
        let executor = ManualExecutor::new();
        executor.refuse(true);
        let owned = Arc::new(7);
        let own = Arc::clone(&owned);
        let rejected = Completable::supply_on(&executor, move || *own).unwrap_err();
        assert!(
            rejected.reason.is_saturated() || rejected.reason.is_shut_down(),
            "{rejected}"
        );
        assert_eq!((rejected.task)(), 7);
        assert_eq!(Arc::strong_count(&owned), 1);
        let (promise, reader) = future::promise::<u32, &str>();
        let rejected = promise.complete_on(&executor, || 7).unwrap_err();
        assert_eq!((rejected.task)(), 7);
        assert!(reader.join().unwrap_err().is_abandoned());
    });
}

/// Holds: CompletableFutureTest.testRejectingExecutor
#[test]
fn an_executor_that_rejects_fails_its_stage_and_no_other() {
    case("rejected stages", || {
        for late in [false, true] {
            let executor = ManualExecutor::new();
            executor.refuse(true);
            let (source, reader) = Source::new(End::Value(7), late);
            let owned = Arc::new(());
            let own = Arc::clone(&owned);
            let rejected = reader.clone().map_on(&executor, move |value| {
                drop(own);
                value
            });
            let other = reader.clone().map(|value| value + 1);
            let below = rejected.clone().map(|value| value);
            source.now();
            assert_eq!(Arc::strong_count(&owned), 1, "the closure is dropped");
            let failure = rejected.join().unwrap_err();
            assert!(
                failure.is_rejected() && !failure.is_propagated(),
                "{failure:?}"
            );
            assert!(below.join().unwrap_err().is_propagated());
            assert_value(other, 8);
            executor.refuse(false);
            assert_eq!(executor.waiting(), 0, "one attempt");
        }
    });
}

/// Holds: CompletableFutureTest.testRejectingExecutorNeverInvoked
#[test]
fn a_stage_that_was_completed_by_hand_asks_no_executor() {
    case("never asked", || {
        let executor = ManualExecutor::new();
        let (promise, reader) = future::promise::<u32, &str>();
        let made = reader.map_on(&executor, |value| value + 1);
        made.promise().complete(70).unwrap();
        promise.complete(7).unwrap();
        assert_eq!(executor.waiting(), 0);
        assert_value(made, 70);
    });
}

/// Holds: CompletableFutureTest.testCompleteAsync, CompletableFutureTest.testCompleteAsync2
/// Holds: CompletableFutureTest.testCompleteAsync3, CompletableFutureTest.testCompleteAsync4
#[test]
fn a_promise_is_completed_by_a_supplier() {
    case("complete_async", || {
        let (promise, reader) = future::promise();
        promise.complete_async(|| 7);
        assert_value(reader, 7);
        let (promise, reader) = future::promise();
        promise.complete_async(|| panic!("{BOOM}"));
        let failure = Number::join(reader).unwrap_err();
        assert!(failure.is_panicked());
        let (promise, reader) = future::promise();
        promise.complete_on(&*THREADS, || 7).unwrap();
        assert_value(reader, 7);
        let (promise, reader) = future::promise();
        promise.complete_on(&*THREADS, || panic!("{BOOM}")).unwrap();
        assert!(Number::join(reader).unwrap_err().is_panicked());
    });
}

/// Unit, associativity, zero and plus, up to where a failure arose.
///
/// Holds: CompletableFutureTest.testAdditiveMonad
#[test]
fn composing_and_racing_obey_the_laws_of_an_additive_monad() {
    fn half(value: u32) -> Number {
        if value & 1 == 0 {
            Number::completed(value / 2)
        } else {
            Number::failed("odd")
        }
    }
    fn less(value: u32) -> Number {
        value
            .checked_sub(1)
            .map_or_else(|| Number::failed("none"), Number::completed)
    }
    fn same(one: Number, other: Number) {
        let [one, other] =
            [one, other].map(|number| number.join().map_err(|failure| *failure.error().unwrap()));
        assert_eq!(one, other);
    }
    case("monad", || {
        for value in 0..8 {
            let unit = Number::completed;
            same(unit(value).and_then(half), half(value));
            same(half(value).and_then(unit), half(value));
            let one = unit(value).and_then(half).and_then(less);
            same(
                one,
                unit(value).and_then(|value| half(value).and_then(less)),
            );
            same(future::any_of([Number::never(), half(value)]), half(value));
            same(future::any_of([half(value), Number::never()]), half(value));
            assert!(!Number::never().and_then(half).is_complete());
        }
    });
}

/// Holds: jtreg CompletableFuture.Basic
#[test]
fn a_chain_of_all_operations_comes_to_what_they_come_to_one_by_one() {
    case("basic", || {
        every_way(|form, late| {
            let (source, reader) = Source::new(End::Value(6), late);
            let made = map(form, reader, |value| value + 1);
            let made = and_then(form, made, |value| Number::completed(value * 2));
            let made = in_form!(
                form,
                made,
                try_map,
                try_map_async,
                try_map_on,
                |value| match value {
                    14 => Err("fourteen"),
                    other => Ok(other),
                }
            );
            let made = in_form!(form, made, or_else, or_else_async, or_else_on, |_| {
                Number::completed(20)
            });
            let made = handle(form, made, |outcome| outcome.unwrap() + 1);
            let made = in_form!(
                form,
                made,
                when_complete,
                when_complete_async,
                when_complete_on,
                |_| ()
            );
            let made = made.zip_with(Number::completed(2), |one, other| one * other);
            source.now();
            assert_value(made, 42);
        });
    });
}
