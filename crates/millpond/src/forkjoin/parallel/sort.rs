//! Sorting: a merge sort without a buffer of its own, and a quicksort. Both leave small pieces to the standard library.
//!
//! # Merging in place
//!
//! Several workers merge two sorted runs like this. A binary search finds which items are the smaller half: the first `i` of
//! the left run and the first `j` of the right one. The middle is rotated. Two independent merges of half the size remain:
//!
//! ```text
//!   | left[..i] | left[i..] : right[..j] | right[j..] |
//!                   `--- rotate ---'
//!   | left[..i] : right[..j] | left[i..] : right[j..] |
//!     a smaller merge          a smaller merge
//! ```
//!
//! When there are enough merges for all workers, `slice::sort_by` does each of them: it finds the two runs and merges them in
//! linear time. Each step permutes the slice, so a comparison that panics loses no item.

use super::super::context::Context;
use super::drive::{join, offer_older, run_inside};
use std::cmp::Ordering;

/// A piece that one worker sorts at once.
const MIN_PIECE: usize = 4_096;

/// Pieces per worker: more than one, so that others can take some from a worker that is late.
const PIECES: usize = 2;

/// The number of items from which a pivot is chosen.
const SAMPLE: usize = 63;

/// Sorts the slice; equal items keep their order.
///
/// # Panics
///
/// May panic if the order of the items is not total; so do all of these functions. All items are still there then.
///
/// ```
/// use millpond::forkjoin::parallel;
///
/// let mut sacks = vec![3, 1, 2];
/// parallel::sort(&mut sacks);
/// assert_eq!(sacks, [1, 2, 3]);
/// ```
#[doc(alias = "parallelSort")]
#[doc(alias = "par_sort")]
pub fn sort<T: Ord + Send>(items: &mut [T]) {
    sort_by(items, T::cmp);
}

/// Sorts the slice in the order of `compare`; equal items keep their order.
///
/// It allocates up to half of the slice's size, in pieces.
///
/// # Panics
///
/// If `compare` does, or may if its order is not total. All items are still there then.
///
/// ```
/// use millpond::forkjoin::parallel;
///
/// let mut sacks = vec![("rye", 3), ("oats", 1), ("wheat", 3)];
/// parallel::sort_by(&mut sacks, |a, b| b.1.cmp(&a.1));
/// assert_eq!(sacks, [("rye", 3), ("wheat", 3), ("oats", 1)]);
/// ```
#[doc(alias = "parallelSort")]
#[doc(alias = "par_sort_by")]
pub fn sort_by<T: Send>(items: &mut [T], compare: impl Fn(&T, &T) -> Ordering + Sync) {
    if items.len() < 2 * MIN_PIECE {
        return items.sort_by(compare);
    }
    run_inside(|| {
        let most = items.len() / MIN_PIECE;
        let pieces = (workers() * PIECES).next_power_of_two();
        let pieces = if workers() == 1 { 1 } else { pieces.min(most) };
        merge_sort(items, pieces, &compare);
    });
}

/// Sorts the slice by what `key` makes of each item; items with equal keys keep their order. `key` is called for each
/// comparison.
///
/// # Panics
///
/// If `key` does, or may if the order of keys is not total. All items are still there then.
///
/// ```
/// use millpond::forkjoin::parallel;
///
/// let mut sacks = vec!["wheat", "rye", "oats"];
/// parallel::sort_by_key(&mut sacks, |name| name.len());
/// assert_eq!(sacks, ["rye", "oats", "wheat"]);
/// ```
#[doc(alias = "par_sort_by_key")]
pub fn sort_by_key<T: Send, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K + Sync) {
    sort_by(items, |a, b| key(a).cmp(&key(b)));
}

/// Sorts the slice, and may exchange equal items.
///
/// # Panics
///
/// May panic if the order of the items is not total. All items are still there then.
///
/// ```
/// use millpond::forkjoin::parallel;
///
/// let mut sacks = vec![3, 1, 2];
/// parallel::sort_unstable(&mut sacks);
/// assert_eq!(sacks, [1, 2, 3]);
/// ```
#[doc(alias = "parallelSort")]
#[doc(alias = "par_sort_unstable")]
pub fn sort_unstable<T: Ord + Send>(items: &mut [T]) {
    sort_unstable_by(items, T::cmp);
}

/// Sorts the slice in the order of `compare`, and may exchange equal items. It allocates nothing.
///
/// # Panics
///
/// If `compare` does, or may if its order is not total. All items are still there then.
///
/// ```
/// use millpond::forkjoin::parallel;
///
/// let mut sacks = vec![1.5, -0.5, 2.0];
/// parallel::sort_unstable_by(&mut sacks, |a: &f64, b| a.total_cmp(b));
/// assert_eq!(sacks, [-0.5, 1.5, 2.0]);
/// ```
#[doc(alias = "parallelSort")]
#[doc(alias = "par_sort_unstable_by")]
pub fn sort_unstable_by<T: Send>(items: &mut [T], compare: impl Fn(&T, &T) -> Ordering + Sync) {
    if items.len() < 2 * MIN_PIECE {
        return items.sort_unstable_by(compare);
    }
    run_inside(|| {
        let workers = workers();
        if workers == 1 {
            return items.sort_unstable_by(&compare);
        }
        if items.is_sorted_by(|a, b| compare(a, b).is_le()) {
            return;
        }
        if items.is_sorted_by(|a, b| compare(a, b).is_gt()) {
            return items.reverse();
        }
        let piece = (items.len() / (4 * PIECES * workers)).max(MIN_PIECE);
        let limit = 2 * items.len().ilog2();
        quicksort(items, piece, limit, &compare);
    });
}

/// Sorts the slice by what `key` makes of each item, and may exchange items with equal keys. `key` is called for each
/// comparison. It allocates nothing itself.
///
/// # Panics
///
/// If `key` does, or may if the order of keys is not total. All items are still there then.
///
/// ```
/// use millpond::forkjoin::parallel;
/// use std::cmp::Reverse;
///
/// let mut sacks = vec![1, 3, 2];
/// parallel::sort_unstable_by_key(&mut sacks, |sack| Reverse(*sack));
/// assert_eq!(sacks, [3, 2, 1]);
/// ```
#[doc(alias = "par_sort_unstable_by_key")]
pub fn sort_unstable_by_key<T: Send, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K + Sync) {
    sort_unstable_by(items, |a, b| key(a).cmp(&key(b)));
}

fn workers() -> usize {
    Context::with_current(|here| here.map_or(1, |here| here.engine.parallelism()))
}

fn merge_sort<T: Send>(
    items: &mut [T],
    pieces: usize,
    compare: &(impl Fn(&T, &T) -> Ordering + Sync),
) {
    if pieces < 2 {
        offer_older();
        return items.sort_by(compare);
    }
    let middle = items.len() / 2;
    let (left, right) = items.split_at_mut(middle);
    let pieces = pieces / 2;
    join(
        || merge_sort(left, pieces, compare),
        || merge_sort(right, pieces, compare),
    );
    merge(items, middle, pieces, compare);
}

/// Merges `items[..middle]` and `items[middle..]`, which are sorted, in `parts` parts.
fn merge<T: Send>(
    items: &mut [T],
    middle: usize,
    parts: usize,
    compare: &(impl Fn(&T, &T) -> Ordering + Sync),
) {
    let is_before = |right: &T, left: &T| compare(right, left).is_lt();
    let (left, right) = items.split_at(middle);
    match (left.last(), right.first()) {
        (Some(last), Some(first)) if is_before(first, last) => (),
        _ => return,
    }
    if parts < 2 || items.len() < 2 * MIN_PIECE {
        offer_older();
        return items.sort_by(compare);
    }
    let half = items.len() / 2;
    // How many of the smaller half are in the left run. Of equal items those come first.
    let (mut least, mut most) = (half.saturating_sub(right.len()), half.min(left.len()));
    while least < most {
        let guess = least.midpoint(most);
        if is_before(&right[half - guess - 1], &left[guess]) {
            most = guess;
        } else {
            least = guess + 1;
        }
    }
    let from_left = least;
    items[from_left..middle + (half - from_left)].rotate_left(middle - from_left);
    let (smaller, greater) = items.split_at_mut(half);
    let parts = parts / 2;
    join(
        || merge(smaller, from_left, parts, compare),
        || merge(greater, middle - from_left, parts, compare),
    );
}

fn quicksort<T: Send>(
    items: &mut [T],
    piece: usize,
    limit: u32,
    compare: &(impl Fn(&T, &T) -> Ordering + Sync),
) {
    if items.len() <= piece || limit == 0 {
        offer_older();
        return items.sort_unstable_by(compare);
    }
    move_pivot_to_front(items, compare);
    let smaller = partition(items, |item, pivot| compare(item, pivot).is_lt());
    // The pivot is between both sides, and stays there.
    items.swap(0, smaller);
    let (left, right) = items.split_at_mut(smaller);
    let mut right = &mut right[..];
    if left.len() < right.len() / 8 {
        // Many items are equal to the pivot: these stay where they are, too.
        let equal = partition(right, |item, pivot| compare(item, pivot).is_le());
        right = &mut right[equal..];
    }
    let right = &mut right[1..];
    let limit = limit - 1;
    join(
        || quicksort(left, piece, limit, compare),
        || quicksort(right, piece, limit, compare),
    );
}

/// Moves the median of a sample to the front.
fn move_pivot_to_front<T>(items: &mut [T], compare: &impl Fn(&T, &T) -> Ordering) {
    let step = items.len() / SAMPLE;
    for each in 1..SAMPLE {
        items.swap(each, each * step);
    }
    items[..SAMPLE].sort_unstable_by(compare);
    items.swap(0, SAMPLE / 2);
}

/// Moves the items that belong before the pivot, which is the first item, to the places behind it. Returns how many.
fn partition<T>(items: &mut [T], is_before: impl Fn(&T, &T) -> bool) -> usize {
    let Some((pivot, rest)) = items.split_first_mut() else {
        return 0;
    };
    let mut before = 0;
    for each in 0..rest.len() {
        // Without a branch: where the items are in random order, half of the guesses would be wrong.
        let is_before = is_before(&rest[each], pivot);
        rest.swap(before, each);
        before += usize::from(is_before);
    }
    before
}
