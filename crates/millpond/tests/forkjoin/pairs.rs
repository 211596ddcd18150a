//! Loops over numbered items and over pairs, and sorting by keys.

use crate::pool;
use millpond::forkjoin::parallel;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

const LENGTHS: [usize; 7] = [0, 1, 2, 3, 100, 1_025, 50_000];

#[test]
fn numbers_are_those_of_the_sequential_loop_whoever_runs_a_part() {
    for workers in [1, 3] {
        let pool = pool(workers);
        for len in LENGTHS {
            let items: Vec<u64> = (0..len as u64).map(|n| n * 7).collect();
            let expected: Vec<_> = items.iter().copied().enumerate().collect();
            let numbered = pool.install(|| parallel::over(items).enumerate().collect());
            assert_eq!(numbered, expected);
            let chunks: Vec<_> = (0..len).collect();
            let sums = pool.install(|| {
                let chunks = parallel::chunks(&chunks, 3).enumerate();
                chunks.map(|(number, three)| (number, three[0])).collect()
            });
            assert!(sums.iter().all(|(number, first)| number * 3 == *first));
        }
    }
}

#[test]
fn pairs_are_those_of_the_sequential_loop_as_far_as_both_go() {
    let pool = pool(3);
    for left in LENGTHS {
        for right in [0, left, left + 1, 10, 60_000] {
            let (a, b): (Vec<usize>, Vec<usize>) = ((0..left).collect(), (1..=right).collect());
            let expected: Vec<_> = a.iter().copied().zip(b.iter().copied()).collect();
            let owned = pool.install(|| parallel::over(a.clone()).zip(b.clone()).collect());
            assert_eq!(owned, expected);
            let ranges = pool.install(|| parallel::over(0..left).zip(1..=right).collect());
            assert_eq!(ranges, expected);
            let slices =
                pool.install(|| parallel::over(&a).zip(&b).map(|(a, b)| (*a, *b)).collect());
            assert_eq!(slices, expected);
            let mut sums = a.clone();
            pool.install(|| {
                parallel::over(&mut sums)
                    .zip(&b)
                    .for_each(|(sum, b)| *sum += b)
            });
            let pairs = left.min(right);
            assert!(
                sums[..pairs]
                    .iter()
                    .enumerate()
                    .all(|(n, sum)| *sum == 2 * n + 1)
            );
            assert_eq!(sums[pairs..], a[pairs..]);
        }
    }
}

#[test]
fn pairs_are_numbered_chunked_and_become_any_collection() {
    let pool = pool(2);
    let (names, mut rows) = (["rye", "oats"], [0; 5]);
    pool.install(|| {
        let rows = parallel::chunks_mut(&mut rows, 3).zip(&names).enumerate();
        rows.for_each(|(number, (row, name))| row.fill(name.len() * 10 + number));
    });
    assert_eq!(rows, [30, 30, 30, 41, 41]);
    let pairs = pool.install(|| parallel::over(&names).zip(1..9).collect());
    let numbers: HashMap<_, _> = pairs.into_iter().collect();
    assert_eq!(numbers[&"oats"], 2);
}

#[test]
fn items_of_pairs_that_a_panic_leaves_over_are_dropped_each_once() {
    let pool = pool(2);
    let item = Arc::new(());
    let items = || (0..10_000).map(|_| Arc::clone(&item)).collect::<Vec<_>>();
    let (left, mut right) = (items(), items());
    right.extend(items());
    let died = catch_unwind(AssertUnwindSafe(|| {
        pool.install(|| {
            let pairs = parallel::over(left).zip(right).enumerate();
            pairs.for_each(|(number, _)| assert_ne!(number, 7_777, "too much"));
        });
    }));
    assert!(died.is_err());
    assert_eq!(Arc::strong_count(&item), 1);
    assert_eq!(
        pool.install(|| parallel::over(0..10).enumerate().count()),
        10
    );
}

#[test]
fn slices_are_sorted_by_keys_and_equal_keys_keep_their_order_if_that_is_stable() {
    let pool = pool(3);
    for len in [0, 1, 100, 100_000_u64] {
        // The first of a pair is the key.
        let mixed: Vec<_> = (0..len)
            .map(|n| (n.wrapping_mul(0x9E37_79B9) % 1_000, n))
            .collect();
        let mut expected = mixed.clone();
        expected.sort_by_key(|item| item.0);
        let mut stable = mixed.clone();
        pool.install(|| parallel::sort_by_key(&mut stable, |item| item.0));
        assert_eq!(stable, expected);
        let mut unstable = mixed;
        pool.install(|| parallel::sort_unstable_by_key(&mut unstable, |item| Reverse(*item)));
        assert!(unstable.is_sorted_by_key(|item| Reverse(*item)));
    }
}

#[test]
fn a_key_that_panics_loses_no_item() {
    let pool = pool(2);
    let mut items: Vec<u64> = (0..50_000).rev().collect();
    let died = catch_unwind(AssertUnwindSafe(|| {
        let key = |item: &u64| if *item == 77 { panic!("no key") } else { *item };
        pool.install(|| parallel::sort_by_key(&mut items, key));
    }));
    assert!(died.is_err());
    items.sort_unstable();
    assert!(items.iter().copied().eq(0..50_000));
}
