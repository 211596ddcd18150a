//! The first success, all or the first failure, the order of completion.

use millpond::future::{self, Completable};
use std::sync::Arc;

type Number = Completable<u32, &'static str>;

#[test]
fn the_first_failure_of_all_counts_and_cancels_the_rest() {
    let (one, first) = future::promise::<u32, &str>();
    let (other, second) = future::promise::<u32, &str>();
    let third = Number::never();
    let all = future::try_all_of([first, second, third.clone()]);
    one.complete(1).unwrap();
    assert!(!all.is_complete());
    other.fail("no wind").unwrap();
    let failure = all.join().unwrap_err();
    assert_eq!(failure.error(), Some(&"no wind"));
    assert!(third.is_cancelled());
}

#[test]
fn all_values_are_in_the_order_of_the_members() {
    let (promises, readers): (Vec<_>, Vec<_>) =
        (0..5).map(|_| future::promise::<u32, &str>()).unzip();
    let all = future::try_all_of(readers);
    for (number, promise) in (0..5).zip(&promises).rev() {
        promise.complete(number).unwrap();
    }
    assert_eq!(all.join().unwrap(), [0, 1, 2, 3, 4]);
}

#[test]
fn a_cancelled_result_cancels_its_members() {
    let member = Number::never();
    let all = future::try_all_of([member.clone(), Number::completed(1)]);
    assert!(all.cancel());
    assert!(member.is_cancelled());
}

#[test]
fn the_first_success_wins_and_only_failures_of_all_fail() {
    let (one, first) = future::promise::<u32, &str>();
    let (other, second) = future::promise::<u32, &str>();
    let result = future::first_success([first, second, Number::never()]);
    one.fail("no wind").unwrap();
    assert!(!result.is_complete());
    other.complete(7).unwrap();
    assert_eq!(result.join().unwrap(), 7);
    let (one, first) = future::promise::<u32, &str>();
    let result = future::first_success([first, Number::failed("no water")]);
    one.fail("no wind").unwrap();
    assert_eq!(
        result.join().unwrap_err().error(),
        Some(&"no wind"),
        "the last one"
    );
}

#[test]
fn nothing_stays_with_members_that_are_never_complete() {
    let forever = Number::never();
    let owned = Arc::new(());
    for _ in 0..10_000 {
        let own = Arc::clone(&owned);
        let won = Number::completed(7).map(move |value| {
            let _ = &own;
            value
        });
        let first = future::first_success([forever.clone(), won]);
        assert_eq!(first.join().unwrap(), 7);
        let mut completions = future::as_completed([forever.clone(), Number::completed(1)]);
        assert_eq!(completions.next().map(|(number, _)| number), Some(1));
    }
    assert_eq!(Arc::strong_count(&owned), 1);
    assert!(forever.dependents() <= 64);
}

#[test]
fn outcomes_come_in_the_order_of_completion_also_for_async_code() {
    let (promises, readers): (Vec<_>, Vec<_>) =
        (0..4).map(|_| future::promise::<u32, &str>()).unzip();
    let mut completions = future::as_completed(readers);
    assert!(completions.try_next().is_none());
    for number in [2, 0, 3, 1] {
        promises[number].complete(number as u32).unwrap();
    }
    let order: Vec<_> = completions.by_ref().map(|(number, _)| number).collect();
    assert_eq!(order, [2, 0, 3, 1]);
    assert!(completions.next().is_none());
}
