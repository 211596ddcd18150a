//! Parallel sorting.

use crate::pool;
use millpond::forkjoin::parallel;
use std::cmp::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering as Memory};

const LENGTHS: [usize; 7] = [0, 1, 2, 1_000, 8_192, 30_001, 250_000];

/// Inputs in which sorting algorithms are known to stumble.
fn shapes(len: usize) -> Vec<(&'static str, Vec<u64>)> {
    let len = len as u64;
    let random = |n: u64| n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    let shapes: [(_, &dyn Fn(u64) -> u64); 9] = [
        ("random", &random),
        ("sorted", &|n| n),
        ("reverse", &|n| len - n),
        ("equal", &|_| 7),
        ("two values", &|n| random(n) % 2),
        ("few values", &|n| random(n) % 16),
        ("saw", &|n| n % 1_000),
        ("organ pipe", &|n| n.min(len - n)),
        ("sorted but for the end", &|n| {
            if n + 10 > len { random(n) } else { n }
        }),
    ];
    let make = |shape: &dyn Fn(u64) -> u64| (0..len).map(shape).collect();
    shapes.map(|(name, shape)| (name, make(shape))).into()
}

#[test]
fn slices_of_every_shape_are_sorted_with_any_number_of_workers() {
    for parallelism in [1, 2, 3, 8] {
        let pool = pool(parallelism);
        for len in LENGTHS {
            for (shape, items) in shapes(len) {
                let mut expected = items.clone();
                expected.sort_unstable();
                let mut unstable = items.clone();
                pool.install(|| parallel::sort_unstable(&mut unstable));
                assert!(unstable == expected, "{shape}, {len}, {parallelism}");
                let mut stable = items;
                pool.install(|| parallel::sort(&mut stable));
                assert!(stable == expected, "{shape}, {len}, {parallelism}");
            }
        }
    }
}

#[test]
fn equal_items_keep_their_order_in_a_stable_sort() {
    for parallelism in [1, 2, 8] {
        let pool = pool(parallelism);
        for (shape, items) in shapes(100_000) {
            let mut items: Vec<(u64, usize)> =
                items.into_iter().map(|n| n % 100).zip(0..).collect();
            pool.install(|| parallel::sort_by(&mut items, |a, b| a.0.cmp(&b.0)));
            assert!(items.is_sorted(), "{shape}, {parallelism}");
        }
    }
}

#[test]
fn outside_of_a_pool_the_common_one_sorts() {
    let (_, items) = shapes(100_000).swap_remove(0);
    let mut sorted = items.clone();
    parallel::sort(&mut sorted);
    assert!(sorted.is_sorted());
    let mut sorted: Vec<String> = items.iter().map(u64::to_string).collect();
    parallel::sort_unstable_by(&mut sorted, |a, b| b.cmp(a));
    assert!(sorted.iter().rev().is_sorted());
}

#[test]
fn a_comparison_that_panics_or_contradicts_itself_loses_no_item() {
    type Sort = fn(&mut [u64], &(dyn Fn(&u64, &u64) -> Ordering + Sync));
    let stable: Sort = |items, compare| parallel::sort_by(items, compare);
    let unstable: Sort = |items, compare| parallel::sort_unstable_by(items, compare);
    let pool = pool(2);
    let (_, items) = shapes(50_000).swap_remove(0);
    let mut expected = items.clone();
    expected.sort_unstable();
    for sort in [stable, unstable] {
        for fatal in [0, 10, 60_000, 400_000] {
            let compared = AtomicUsize::new(0);
            let mut items = items.clone();
            let compare = |a: &u64, b: &u64| {
                let number = compared.fetch_add(1, Memory::Relaxed);
                assert_ne!(number, fatal, "the scales broke");
                a.cmp(b)
            };
            let caught = catch_unwind(AssertUnwindSafe(|| {
                pool.install(|| sort(&mut items, &compare));
            }));
            assert!(caught.is_err(), "comparison {fatal}");
            items.sort_unstable();
            assert!(items == expected, "comparison {fatal}");
        }
        let mut items = items.clone();
        let nonsense = |a: &u64, b: &u64| (a ^ b.rotate_left(7)).cmp(&(b.wrapping_mul(3)));
        let _ = catch_unwind(AssertUnwindSafe(|| {
            pool.install(|| sort(&mut items, &nonsense));
        }));
        items.sort_unstable();
        assert!(items == expected);
    }
}
