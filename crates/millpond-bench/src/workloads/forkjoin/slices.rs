//! Slices: a quicksort that joins, sums that join, and what each library has for sorting and summing.

use super::team::Team;
use super::{Work, input};
use crate::harness::Sample;
use crate::peers::forkjoin::ForkJoin;
use crate::peers::pool::WORKERS;
use anyhow::{Result, ensure};
use std::time::Instant;

/// A piece of so many items is left to `slice::sort_unstable`.
pub const SMALL: usize = 64;

/// The items of a leaf of the sum by joins.
pub const LEAF: usize = 1_024;

/// Sorts or sums up so many items.
///
/// # Errors
///
/// If the result is wrong, or the pool cannot be opened.
pub fn round<F: ForkJoin>(work: Work, items: u64) -> Result<Sample> {
    match work {
        Work::SumByJoins => sum::<F>(items, |context, items| by_joins::<F>(context, items)),
        Work::Sum => sum::<F>(items, |_, items| F::sum(items)),
        Work::Sort => sort::<F>(items, |_, items| F::sort(items)),
        Work::SortUnstable => sort::<F>(items, |_, items| F::sort_unstable(items)),
        _ => sort::<F>(items, |context, items| quicksort::<F>(context, items)),
    }
}

fn sum<F: ForkJoin>(
    items: u64,
    sum: impl FnOnce(&mut F::Context<'_>, &[u64]) -> u64 + Send,
) -> Result<Sample> {
    let all = input::range(items);
    Team::<F>::open(WORKERS)?.measure(items, |pool| {
        let (sum, elapsed) = pool.run(|context| {
            let start = Instant::now();
            let sum = sum(context, &all);
            (sum, start.elapsed())
        });
        let expected = items * items.saturating_sub(1) / 2;
        ensure!(sum == expected, "the sum is {sum} instead of {expected}");
        Ok(elapsed)
    })
}

fn by_joins<F: ForkJoin>(context: &mut F::Context<'_>, items: &[u64]) -> u64 {
    if items.len() <= LEAF {
        return items.iter().sum();
    }
    let (left, right) = items.split_at(items.len() / 2);
    let (left, right) = F::join(
        context,
        |context| by_joins::<F>(context, left),
        |context| by_joins::<F>(context, right),
    );
    left + right
}

fn sort<F: ForkJoin>(
    items: u64,
    sort: impl FnOnce(&mut F::Context<'_>, &mut [u64]) + Send,
) -> Result<Sample> {
    let input = input::numbers(items);
    let mut sorted = Vec::clone(&input);
    let team = Team::<F>::open(WORKERS)?;
    team.measure(items, |pool| {
        let elapsed = pool.run(|context| {
            let start = Instant::now();
            sort(context, &mut sorted);
            start.elapsed()
        });
        let sum = |of: &[u64]| of.iter().copied().fold(0, u64::wrapping_add);
        ensure!(sorted.is_sorted(), "the items are not in order");
        ensure!(sum(&sorted) == sum(&input), "items have been lost");
        Ok(elapsed)
    })
}

/// As in a textbook, with the middle one of three as the pivot.
fn quicksort<F: ForkJoin>(context: &mut F::Context<'_>, items: &mut [u64]) {
    if items.len() <= SMALL {
        return items.sort_unstable();
    }
    let (last, middle) = (items.len() - 1, items.len() / 2);
    for (a, b) in [(0, middle), (0, last), (middle, last)] {
        if items[a] > items[b] {
            items.swap(a, b);
        }
    }
    items.swap(middle, last);
    let pivot = items[last];
    let mut smaller = 0;
    for each in 0..last {
        let is_smaller = items[each] < pivot;
        items.swap(each, smaller);
        smaller += usize::from(is_smaller);
    }
    items.swap(smaller, last);
    let (left, right) = items.split_at_mut(smaller);
    F::join(
        context,
        |context| quicksort::<F>(context, left),
        |context| quicksort::<F>(context, &mut right[1..]),
    );
}
