//! Completables of several: both, either, all, any; and what stays with sources that are never complete.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test stands outside: it uses std's threads and locks beside what it tests"
)]

mod completable_kit;

use completable_kit::{
    Calls, End, FORMS, Form, Number, Source, THREADS, assert_panicked, assert_passed_on,
    assert_value,
};
use millpond::future::{self, Completable};
use millpond_conform::kit::case;
use std::sync::Arc;

fn both(
    form: Form,
    one: Number,
    other: Number,
    f: impl FnOnce(u32, u32) -> u32 + Send + 'static,
) -> Number {
    match form {
        Form::InPlace => one.zip_with(other, f),
        Form::Async => one.zip_with_async(other, f),
        Form::On => one.zip_with_on(&*THREADS, other, f),
    }
}

fn either(
    form: Form,
    one: Number,
    other: Number,
    f: impl FnOnce(u32) -> u32 + Send + 'static,
) -> Number {
    match form {
        Form::InPlace => one.race_with(other, f),
        Form::Async => one.race_with_async(other, f),
        Form::On => one.race_with_on(&*THREADS, other, f),
    }
}

/// Every form; which source is complete before the stage is made; and which comes first.
fn every_order(mut body: impl FnMut(Form, bool, bool, bool)) {
    for form in FORMS {
        for (late, other_late) in [(false, false), (false, true), (true, false), (true, true)] {
            for swapped in [false, true] {
                body(form, late, other_late, swapped);
            }
        }
    }
}

fn end_both(one: &Source, other: &Source, swapped: bool) {
    let mut order = [one, other];
    if swapped {
        order.reverse();
    }
    order.into_iter().for_each(Source::now);
}

/// Holds: CompletableFutureTest.testThenCombine_normalCompletion
/// Holds: CompletableFutureTest.testThenAcceptBoth_normalCompletion
/// Holds: CompletableFutureTest.testRunAfterBoth_normalCompletion
#[test]
fn both_values_are_combined_once_in_every_order() {
    case("both", || {
        every_order(|form, late, other_late, swapped| {
            let (one, first) = Source::new(End::Value(7), late);
            let (other, second) = Source::new(End::Value(1), other_late);
            let calls = Arc::new(Calls::new());
            let own = Arc::clone(&calls);
            let made = both(form, first, second, move |one, other| {
                own.count();
                10 * one + other
            });
            if late && other_late {
                (if swapped { &other } else { &one }).now();
                assert!(!made.is_complete(), "one of them is missing");
                (if swapped { &one } else { &other }).now();
            } else {
                end_both(&one, &other, swapped);
            }
            assert_value(made, 71);
            assert_eq!(calls.get(), 1);
        });
    });
}

/// Holds: CompletableFutureTest.testThenCombine_exceptionalCompletion
/// Holds: CompletableFutureTest.testRunAfterBoth_exceptionalCompletion
#[test]
fn a_failure_of_one_of_two_counts_when_both_are_complete() {
    case("both, one failed", || {
        for end in [End::Failure, End::Cancelled] {
            for form in FORMS {
                for swapped in [false, true] {
                    let (failing, first) = Source::new(end, true);
                    let (other, second) = Source::new(End::Value(1), true);
                    let (first, second) = if swapped {
                        (second, first)
                    } else {
                        (first, second)
                    };
                    let made = both(form, first, second, |_, _| unreachable!("one has failed"));
                    failing.now();
                    assert!(!made.is_complete(), "the other one is missing");
                    other.now();
                    assert_passed_on(made, end);
                }
            }
        }
    });
}

/// Holds: CompletableFutureTest.testThenAcceptBoth_actionFailed, CompletableFutureTest.testRunAfterBoth_actionFailed
#[test]
fn a_panic_of_a_combination_is_its_failure() {
    case("both, panics", || {
        every_order(|form, late, other_late, swapped| {
            let (one, first) = Source::new(End::Value(7), late);
            let (other, second) = Source::new(End::Value(1), other_late);
            let made = both(form, first, second, |_, _| panic!("the dam broke"));
            end_both(&one, &other, swapped);
            assert_panicked(made);
        });
    });
}

/// Holds: CompletableFutureTest.testApplyToEither_normalCompletion
/// Holds: CompletableFutureTest.testAcceptEither_normalCompletion
/// Holds: CompletableFutureTest.testRunAfterEither_normalCompletion
#[test]
fn the_first_of_two_counts_and_the_later_has_no_effect() {
    case("either", || {
        every_order(|form, late, other_late, swapped| {
            let (one, first) = Source::new(End::Value(7), late);
            let (other, second) = Source::new(End::Value(8), other_late);
            let calls = Arc::new(Calls::new());
            let own = Arc::clone(&calls);
            let made = either(form, first, second, move |value| {
                own.count();
                value
            });
            end_both(&one, &other, swapped);
            let value = made.join().unwrap();
            match (late, other_late) {
                (false, true) => assert_eq!(value, 7),
                (true, false) => assert_eq!(value, 8),
                (true, true) => assert_eq!(value, if swapped { 8 } else { 7 }),
                (false, false) => assert!(matches!(value, 7 | 8)),
            }
            assert_eq!(calls.get(), 1);
        });
    });
}

/// Holds: CompletableFutureTest.testApplyToEither_exceptionalCompletion
/// Holds: CompletableFutureTest.testApplyToEither_sourceCancelled
/// Holds: CompletableFutureTest.testAcceptEither_exceptionalCompletion
/// Holds: CompletableFutureTest.testRunAfterEither_exceptionalCompletion
/// Holds: CompletableFutureTest.testRunAfterEither_sourceCancelled
#[test]
fn a_first_one_that_fails_is_not_repaired_by_the_other() {
    case("either, failed", || {
        for end in [End::Failure, End::Cancelled] {
            for form in FORMS {
                for swapped in [false, true] {
                    let (failing, first) = Source::new(end, true);
                    let (other, second) = Source::new(End::Value(1), true);
                    let (first, second) = if swapped {
                        (second, first)
                    } else {
                        (first, second)
                    };
                    let made = either(form, first, second, |_| {
                        unreachable!("the first has failed")
                    });
                    failing.now();
                    other.now();
                    assert_passed_on(made, end);
                }
            }
        }
    });
}

/// Holds: CompletableFutureTest.testApplyToEither_exceptionalCompletion2
/// Holds: CompletableFutureTest.testApplyToEither_sourceCancelled2
/// Holds: CompletableFutureTest.testAcceptEither_exceptionalCompletion2
/// Holds: CompletableFutureTest.testRunAfterEither_exceptionalCompletion2
#[test]
fn of_a_value_and_a_failure_that_are_both_there_either_counts() {
    case("either, both there", || {
        for end in [End::Failure, End::Cancelled] {
            for form in FORMS {
                for swapped in [false, true] {
                    let (_failed, first) = Source::new(end, false);
                    let (_done, second) = Source::new(End::Value(1), false);
                    let (first, second) = if swapped {
                        (second, first)
                    } else {
                        (first, second)
                    };
                    let calls = Arc::new(Calls::new());
                    let own = Arc::clone(&calls);
                    let made = either(form, first, second, move |value| {
                        own.count();
                        value
                    });
                    let outcome = made.join();
                    assert_eq!(calls.get(), u32::from(outcome.is_ok()));
                }
            }
        }
    });
}

/// Holds: CompletableFutureTest.testApplyToEither_actionFailed, CompletableFutureTest.testAcceptEither_actionFailed
/// Holds: CompletableFutureTest.testRunAfterEither_actionFailed
#[test]
fn a_panic_after_the_first_of_two_is_the_failure() {
    case("either, panics", || {
        every_order(|form, late, other_late, swapped| {
            let (one, first) = Source::new(End::Value(7), late);
            let (other, second) = Source::new(End::Value(8), other_late);
            let made = either(form, first, second, |_| panic!("the dam broke"));
            end_both(&one, &other, swapped);
            assert_panicked(made);
        });
    });
}

/// Holds: CompletableFutureTest.testAllOf_empty, CompletableFutureTest.testAnyOf_empty
#[test]
fn all_of_nothing_is_complete_and_any_of_nothing_never_is() {
    let none: Vec<Number> = Vec::new();
    assert_eq!(future::all_of(none).join().unwrap(), Vec::<u32>::new());
    let none: [Number; 0] = [];
    assert!(!future::any_of(none).is_complete());
    let none: [Number; 0] = [];
    assert!(!future::first_success(none).is_complete());
    let none: [Number; 0] = [];
    assert_eq!(future::try_all_of(none).join().unwrap(), Vec::<u32>::new());
}

/// Holds: CompletableFutureTest.testAllOf_exceptional
#[test]
fn all_of_waits_for_all_also_after_a_failure() {
    case("all_of", || {
        for failing in 0..5 {
            let made: Vec<_> = (0..5)
                .map(|number| {
                    let end = if number == failing {
                        End::Failure
                    } else {
                        End::Value(number)
                    };
                    Source::new(end, true)
                })
                .collect();
            let (sources, readers): (Vec<Source>, Vec<Number>) = made.into_iter().unzip();
            let all = future::all_of(&readers[..]);
            for (number, source) in sources.iter().enumerate().rev() {
                assert!(!all.is_complete(), "{number} is missing");
                source.now();
            }
            let failure = all.join().unwrap_err();
            assert_eq!(failure.error(), Some(&"no wind"));
            assert!(failure.is_propagated());
        }
        let values = future::all_of([Number::completed(1), Number::completed(2)]);
        assert_eq!(values.join().unwrap(), [1, 2]);
    });
}

/// Holds: CompletableFutureTest.testAnyOf_normal
#[test]
fn any_of_comes_to_the_first_and_late_ones_have_no_effect() {
    case("any_of", || {
        for first in 0..5 {
            let made: Vec<_> = (0..5)
                .map(|number| Source::new(End::Value(number), true))
                .collect();
            let (sources, readers): (Vec<Source>, Vec<Number>) = made.into_iter().unzip();
            let any = future::any_of(readers.iter().cloned());
            assert!(!any.is_complete());
            sources[first as usize].now();
            assert_eq!(any.try_get().unwrap().unwrap(), &first);
            for (number, source) in (0_u32..).zip(&sources) {
                if number != first {
                    source.now();
                }
            }
            assert_value(any, first);
            assert!(future::any_of(readers).is_complete());
        }
    });
}

/// Holds: CompletableFutureTest.testManyDependents
#[test]
fn a_source_with_very_many_dependents_completes_each_once() {
    case("many dependents", || {
        const MANY: u32 = 100_000;
        let (promise, reader) = future::promise::<u32, &str>();
        let calls = Arc::new(Calls::new());
        let made: Vec<Number> = (0..MANY)
            .map(|number| {
                let (own, source) = (Arc::clone(&calls), reader.clone());
                let count = move |value: u32| {
                    own.count();
                    value
                };
                match number % 5 {
                    0 => source.map(count),
                    1 => source.and_then(move |value| Number::completed(count(value))),
                    2 => source.handle(move |outcome| count(outcome.unwrap())),
                    3 => source.zip_with(Number::completed(1), move |value, _| count(value)),
                    _ => source.race_with(Number::never(), count),
                }
            })
            .collect();
        assert_eq!(reader.dependents(), MANY as usize);
        promise.complete(7).unwrap();
        assert_eq!(calls.get(), MANY);
        assert_eq!(reader.dependents(), 0);
        for stage in made {
            assert_value(stage, 7);
        }
    });
}

/// Holds: CompletableFutureTest.testRecursiveChains
#[test]
fn long_chains_with_dead_ends_are_completed() {
    case("chains", || {
        let (promise, mut chain) = future::promise::<u32, &str>();
        let mut ends = Vec::new();
        for _ in 0..20_000 {
            ends.push(chain.clone().map(|value| value));
            chain = chain.map(|value| value + 1);
        }
        promise.complete(0).unwrap();
        assert_value(chain, 20_000);
        assert!(ends.into_iter().all(|end| end.is_complete()));
    });
}

/// As many stages as pass by one source that is never complete.
const PASSING: usize = 20_000;

/// At most this many dead links stay in a list (`millpond_raw::promise`).
const FEW: usize = 64;

/// Calls `make` many times with a source that is never complete, and looks how much of what it makes is still there.
#[track_caller]
fn nothing_stays(mut make: impl FnMut(&Number, Arc<()>)) {
    let forever = Number::never();
    let owned = Arc::new(());
    for _ in 0..PASSING {
        make(&forever, Arc::clone(&owned));
    }
    let left = Arc::strong_count(&owned) - 1;
    assert_eq!(left, 0, "closures and values are gone at once");
    assert!(forever.dependents() <= FEW);
}

/// Holds: CompletableFutureTest.testCoCompletionGarbageRetention
#[test]
fn short_lived_partners_of_a_source_that_is_never_complete_leave_nothing_on_it() {
    case("partners", || {
        nothing_stays(|forever, owned| {
            let (promise, reader) = future::promise::<u32, &str>();
            let made = forever.clone().race_with(reader, move |value| {
                drop(owned);
                value
            });
            promise.complete(7).unwrap();
            assert_value(made, 7);
        });
    });
}

/// Holds: CompletableFutureTest.testAnyOfGarbageRetention
#[test]
fn any_of_again_and_again_leaves_nothing_on_those_that_are_never_complete() {
    case("any_of again", || {
        nothing_stays(|forever, owned| {
            let (promise, reader) = future::promise::<u32, &str>();
            let any = future::any_of([forever.clone(), reader, forever.clone()]);
            let made = any.map(move |value| {
                drop(owned);
                value
            });
            promise.complete(7).unwrap();
            assert_value(made, 7);
        });
    });
}

/// Holds: CompletableFutureTest.testCancelledAllOfGarbageRetention
#[test]
fn a_cancelled_all_of_leaves_nothing_on_its_members() {
    case("all_of cancelled", || {
        nothing_stays(|forever, owned| {
            let all = future::all_of([forever.clone(), forever.clone()]);
            let below = all.clone().map(move |_| drop(owned));
            assert!(all.cancel());
            assert!(below.join().unwrap_err().is_cancelled());
        });
    });
}

/// Holds: CompletableFutureTest.testCancelledGarbageRetention
#[test]
fn cancelled_stages_leave_nothing_on_a_source_that_is_never_complete() {
    case("stages cancelled", || {
        nothing_stays(|forever, owned| {
            let made = forever.clone().map(move |_| drop(owned));
            assert!(made.cancel());
        });
        nothing_stays(|forever, owned| {
            let (promise, reader) = future::promise::<u32, &str>();
            let inner = forever.clone();
            let made = reader.and_then(move |_| inner);
            let below = made.clone().map(move |_| drop(owned));
            promise.complete(1).unwrap();
            assert!(made.cancel());
            assert!(below.join().unwrap_err().is_cancelled());
        });
        nothing_stays(|forever, owned| {
            let made = forever.clone().zip_with(forever.clone(), move |_, _| {
                drop(owned);
                0
            });
            assert!(made.cancel());
        });
        nothing_stays(|forever, owned| {
            let made = forever
                .clone()
                .race_with(forever.clone(), move |_| drop(owned));
            assert!(made.cancel());
        });
    });
}

/// Holds: CompletableFutureTest.testToCompletableFutureGarbageRetention
#[test]
fn cancelled_copies_leave_nothing_on_their_source() {
    case("copies cancelled", || {
        nothing_stays(|forever, owned| {
            let copy = forever.clone().read_only().to_completable();
            let made = copy.clone().map(move |_| drop(owned));
            assert!(copy.cancel());
            assert!(made.join().unwrap_err().is_cancelled());
        });
    });
}

/// The value of a result goes with its last reader, although its memory may stay for a while.
#[test]
fn values_do_not_stay_on_sources_that_are_never_complete() {
    case("values", || {
        let forever = Completable::<Arc<()>, &str>::never();
        let value = Arc::new(());
        for _ in 0..1_000 {
            let any = future::any_of([forever.clone(), Completable::completed(Arc::clone(&value))]);
            drop(any);
            let (promise, reader) = future::promise();
            let any = future::any_of([forever.clone(), reader]);
            promise.complete(Arc::clone(&value)).unwrap();
            drop(any);
        }
        assert_eq!(Arc::strong_count(&value), 1);
    });
}
