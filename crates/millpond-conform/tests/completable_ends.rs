//! How completables end and are read: by hand, cancelled, in time, interrupted; views of them.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test stands outside: it uses std's threads and locks beside what it tests"
)]

mod completable_kit;

use completable_kit::{End, Number, Source, assert_value};
use millpond::executor::ExecutorExt;
use millpond::future::{self, Completable, DefaultExecutor};
use millpond::interrupt;
use millpond::task;
use millpond::time::ManualClock;
use millpond_conform::kit::case;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

const MINUTE: Duration = Duration::from_secs(60);

/// Holds: CompletableFutureTest.testComplete, FutureTaskTest.testSet
/// Holds: jtreg FutureTask/Executors/ECS.FutureTask/ExplicitSet
#[test]
fn the_first_completion_counts_and_later_ones_change_nothing() {
    let (promise, reader) = future::promise::<Option<u32>, &str>();
    assert!(!reader.is_complete() && !promise.is_complete());
    assert_eq!(promise.complete(None), Ok(()));
    assert_eq!(promise.complete(Some(1)), Err(Some(1)));
    assert_eq!(promise.fail("late"), Err("late"));
    assert!(!promise.cancel());
    assert_eq!(reader.try_get().unwrap().unwrap(), &None);
    assert_eq!(reader.join().unwrap(), None);
}

/// Holds: CompletableFutureTest.testCompleteExceptionally, FutureTaskTest.testSetException_get
#[test]
fn a_failure_by_hand_is_the_same_for_all_readers() {
    let (promise, reader) = future::promise::<u32, &str>();
    assert_eq!(promise.fail("no wind"), Ok(()));
    assert!(reader.is_complete() && reader.is_failed() && !reader.is_cancelled());
    let failure = reader.failure().unwrap();
    assert!(!failure.is_propagated());
    for other in [
        reader.clone().join().unwrap_err(),
        reader.clone().get_now_or(1).unwrap_err(),
        reader.try_get().unwrap().unwrap_err().clone(),
    ] {
        assert!(
            std::ptr::eq(other.cause(), failure.cause()),
            "it is one failure"
        );
    }
}

/// Holds: CompletableFutureTest.testCancel
#[test]
fn a_cancelled_one_stays_cancelled() {
    let (promise, reader) = future::promise::<u32, &str>();
    assert!(reader.cancel() && reader.cancel());
    assert!(reader.is_cancelled() && reader.is_failed());
    assert_eq!(promise.complete(7), Err(7));
    assert!(reader.clone().get_now_or(7).unwrap_err().is_cancelled());
    assert!(reader.join().unwrap_err().is_cancelled());
}

/// Holds: FutureTaskTest.testGetSet
#[test]
fn waiting_readers_get_the_value_that_another_thread_sets() {
    case("waiting readers", || {
        let (promise, reader) = future::promise::<u32, &str>();
        let readers: Vec<_> = (0..4)
            .map(|_| {
                let reader = reader.clone();
                thread::spawn(move || reader.join().unwrap())
            })
            .collect();
        promise.complete(7).unwrap();
        assert!(
            readers
                .into_iter()
                .all(|reader| reader.join().unwrap() == 7)
        );
        assert_value(reader, 7);
    });
}

/// Holds: CompletableFutureTest.testGetNumberOfDependents
#[test]
fn the_number_of_dependents_rises_with_each_stage_and_falls_at_the_end() {
    let (promise, reader) = future::promise::<u32, &str>();
    assert_eq!(reader.dependents(), 0);
    let one = reader.clone().map(|value| value);
    assert_eq!(reader.dependents(), 1);
    let other = reader.clone().zip(Number::never());
    assert_eq!(reader.dependents(), 2);
    promise.complete(7).unwrap();
    assert_eq!((reader.dependents(), one.dependents()), (0, 0));
    drop(other);
}

/// Holds: CompletableFutureTest.testToString_incomplete, CompletableFutureTest.testToString_normal
/// Holds: CompletableFutureTest.testToString_exception, CompletableFutureTest.testToString_cancelled
#[test]
fn the_debug_text_shows_the_state() {
    let (promise, reader) = future::promise::<u32, &str>();
    assert!(format!("{reader:?}").contains("not complete"));
    let stage = reader.clone().map(|value| value);
    assert!(
        format!("{reader:?}").contains("dependents: 1"),
        "{reader:?}"
    );
    promise.complete(7).unwrap();
    assert!(format!("{stage:?}").contains("completed normally"));
    let failed = Number::failed("no wind");
    assert!(format!("{failed:?}").contains("completed exceptionally"));
    assert!(format!("{failed:?}").contains("no wind"), "{failed:?}");
    let cancelled = Number::never();
    cancelled.cancel();
    assert!(format!("{cancelled:?}").contains("completed exceptionally"));
}

/// Holds: CompletableFutureTest.testCompletedFuture, CompletableFutureTest.testFailedFuture
/// Holds: CompletableFutureTest.testCompletedStage, CompletableFutureTest.testFailedStage
/// Holds: CompletableFutureTest.testNewIncompleteFuture
#[test]
fn one_that_is_made_complete_is_complete_at_once() {
    let done = Number::completed(7);
    assert_eq!(done.try_get().unwrap().unwrap(), &7);
    assert_value(done.read_only().to_completable(), 7);
    let failed = Number::failed("no wind");
    assert!(failed.is_failed());
    let copy = failed.read_only().to_completable();
    assert_eq!(copy.join().unwrap_err().error(), Some(&"no wind"));
    assert!(!Number::never().is_complete());
}

/// Holds: CompletableFutureTest.testDefaultExecutor
#[test]
fn the_default_executor_is_the_common_pool_if_that_has_several_workers() {
    case("default executor", || {
        let common = millpond::forkjoin::ForkJoinPool::common();
        let name = DefaultExecutor.submit(|| thread::current().name().map(str::to_owned));
        let name = name.unwrap().join().unwrap().unwrap();
        let expected = if common.parallelism() > 1 {
            "common"
        } else {
            "completable"
        };
        assert!(name.starts_with(expected), "{name}");
    });
}

/// Holds: CompletableFutureTest.testCopy_normalCompletion, CompletableFutureTest.testCopy_exceptionalCompletion
/// Holds: CompletableFutureTest.testCopy_oneWayPropagation
#[test]
fn a_copy_follows_its_source_and_not_the_other_way_round() {
    let (promise, reader) = future::promise::<u32, &str>();
    let (copy, other) = (reader.copy(), reader.copy());
    other.promise().complete(70).unwrap();
    assert!(!reader.is_complete());
    promise.complete(7).unwrap();
    assert_value(copy, 7);
    assert_value(other, 70);
    let (promise, reader) = future::promise::<u32, &str>();
    let copy = reader.copy();
    promise.fail("no wind").unwrap();
    let failure = copy.join().unwrap_err();
    assert!(failure.is_propagated() && failure.error() == Some(&"no wind"));
}

/// A read-only stage has no methods to wait, complete or cancel: `ReadOnly` lacks them.
///
/// Holds: CompletableFutureTest.testMinimalCompletionStage, CompletableFutureTest.testMinimalCompletionStage2
/// Holds: CompletableFutureTest.testMinimalCompletionStage_minimality
/// Holds: CompletableFutureTest.testMinimalCompletionStage_toCompletableFuture_normalCompletion
/// Holds: CompletableFutureTest.testMinimalCompletionStage_toCompletableFuture_exceptionalCompletion
/// Holds: CompletableFutureTest.testMinimalCompletionStage_toCompletableFuture_mutable
/// Holds: CompletableFutureTest.testMinimalCompletionStage_toCompletableFuture_oneWayPropagation
/// Holds: CompletableFutureTest.testMinimalCompletionStage_join_by_hand
/// Holds: CompletableFutureTest.testToCompletableFuture
#[test]
fn a_read_only_stage_gives_copies_only() {
    for end in [End::Value(7), End::Failure] {
        let (source, reader) = Source::new(end, true);
        let stage = reader.clone().read_only();
        let (own, changed) = (stage.to_completable(), stage.clone().to_completable());
        let (send, seen) = mpsc::channel();
        stage
            .to_completable()
            .on_complete(move |outcome| send.send(outcome.is_ok()).unwrap());
        changed.promise().complete(70).unwrap();
        assert!(!reader.is_complete() && !own.is_complete());
        source.now();
        assert_eq!(seen.recv().unwrap(), end == End::Value(7));
        assert_value(changed, 70);
        match end {
            End::Value(value) => assert_value(own, value),
            _ => completable_kit::assert_passed_on(own, end),
        }
    }
}

/// Holds: CompletableFutureTest.testMinimalCompletionStage_toCompletableFuture_join
#[test]
fn a_join_of_a_copy_waits_for_the_source() {
    case("join of a copy", || {
        let (promise, reader) = future::promise::<u32, &str>();
        let copy = reader.read_only().to_completable();
        let completer = thread::spawn(move || promise.complete(7).unwrap());
        assert_value(copy, 7);
        completer.join().unwrap();
    });
}

/// Holds: CompletableFutureTest.testOrTimeout_timesOut, CompletableFutureTest.testCompleteOnTimeout_timesOut
#[test]
fn a_timeout_ends_it_not_before_its_time() {
    case("timeouts", || {
        let hand = ManualClock::new();
        let late = Number::never().or_timeout_by(&hand.clock(), MINUTE);
        let same = late.clone();
        let bought = Number::never().complete_on_timeout_by(7, &hand.clock(), MINUTE);
        hand.advance(MINUTE - Duration::from_nanos(1));
        assert!(!late.is_complete() && !bought.is_complete());
        hand.advance(Duration::from_nanos(1));
        assert!(same.is_complete() && !late.failure().unwrap().is_propagated());
        assert!(late.join().unwrap_err().is_timed_out());
        assert_value(bought, 7);
        let (begun, short) = (Instant::now(), Duration::from_millis(2));
        let late = Number::never().or_timeout(short);
        assert!(late.join().unwrap_err().is_timed_out());
        assert_value(Number::never().complete_on_timeout(7, short), 7);
        assert!(begun.elapsed() >= 2 * short);
    });
}

/// The clock holds the waker of each alarm, and through it the default value: both go when the alarm does.
///
/// Holds: CompletableFutureTest.testOrTimeout_completed, CompletableFutureTest.testCompleteOnTimeout_completed
/// Holds: jtreg CompletableFuture.CompletableFutureOrTimeoutExceptionallyTest.testOrTimeoutWithCompleteExceptionallyDoesNotLeak
/// Holds: jtreg CompletableFuture.CompletableFutureOrTimeoutExceptionallyTest.testCompleteOnTimeoutWithCompleteExceptionallyDoesNotLeak
#[test]
fn a_timeout_leaves_the_clock_at_every_completion() {
    case("timeouts leave", || {
        let hand = ManualClock::new();
        let value = Arc::new(7);
        for end in [End::Value(1), End::Failure, End::Cancelled] {
            let (promise, reader) = future::promise::<Arc<u32>, &str>();
            let reader = reader.or_timeout_by(&hand.clock(), MINUTE);
            let reader = reader.complete_on_timeout_by(Arc::clone(&value), &hand.clock(), MINUTE);
            assert_eq!(Arc::strong_count(&value), 2);
            match end {
                End::Value(other) => promise.complete(Arc::new(other)).unwrap(),
                End::Failure => promise.fail("no wind").unwrap(),
                End::Cancelled => assert!(reader.cancel()),
            }
            assert_eq!(
                Arc::strong_count(&value),
                1,
                "the alarm is gone, with what it had"
            );
            hand.advance(MINUTE);
            match reader.join() {
                Ok(other) => assert_eq!((*other, end), (1, End::Value(1))),
                Err(failure) => assert!(!failure.is_timed_out()),
            }
        }
    });
}

/// Either the value, and the interrupt is still there; or the interrupt is reported and gone.
///
/// Holds: jtreg CompletableFuture.LostInterrupt, jtreg CompletableFuture.SwallowedInterruptedException
#[test]
fn an_interrupt_against_a_completion_is_reported_or_left() {
    case("interrupts", || {
        for round in 0..300 {
            let (promise, mut reader) = future::promise::<u32, &str>();
            let (send, seen) = mpsc::channel();
            let (started, begun) = mpsc::channel();
            let (work, handle) = task::new(move || {
                started.send(()).unwrap();
                let outcome = if round % 2 == 0 {
                    reader.join()
                } else {
                    reader.join_timeout(MINUTE)
                };
                match outcome {
                    Ok(_) => {
                        while interrupt::check().is_ok() {
                            thread::yield_now();
                        }
                    }
                    Err(failure) => {
                        assert!(failure.is_interrupted(), "{failure}");
                        assert!(!interrupt::is_interrupted(), "it was reported");
                    }
                }
                send.send(()).unwrap();
            });
            let runner = thread::spawn(move || drop(work.run()));
            begun.recv().unwrap();
            let completer = thread::spawn(move || promise.complete(7).is_ok());
            handle.interrupt();
            seen.recv()
                .expect("the interrupt was reported, or left for the task");
            completer.join().unwrap();
            runner.join().unwrap();
        }
    });
}

/// Holds: Future/DefaultMethods.testCompletableFuture1, Future/DefaultMethods.testCompletableFuture2
/// Holds: Future/DefaultMethods.testCompletableFuture3, Future/DefaultMethods.testCompletableFuture4
/// Holds: Future/DefaultMethods.testCompletableFuture5
#[test]
fn what_is_there_can_be_looked_at_without_waiting() {
    let (promise, reader) = future::promise::<Option<u32>, &str>();
    assert!(reader.try_get().is_none() && reader.failure().is_none() && !reader.is_failed());
    promise.complete(None).unwrap();
    assert_eq!(reader.try_get().unwrap().unwrap(), &None);
    assert!(reader.failure().is_none());
    let failed = Completable::<u32, _>::failed("no wind");
    assert_eq!(failed.failure().unwrap().error(), Some(&"no wind"));
    let cancelled = Number::never();
    assert!(cancelled.cancel() && cancelled.failure().unwrap().is_cancelled());
}
