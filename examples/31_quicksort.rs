//! How do I sort in parallel, in place, by hand?
//!
//! ```sh
//! cargo run -p examples --example 31_quicksort
//! ```
//!
//! ```text
//! by hand: sorted
//! by the library: sorted
//! ```

#![forbid(unsafe_code)]

use millpond::forkjoin::{self, ForkJoinPool, parallel};
use std::error::Error;

/// Below so many items a fork costs more than it brings.
const SMALL: usize = 1_000;

fn quicksort(items: &mut [u32]) {
    if items.len() <= SMALL {
        return items.sort_unstable();
    }
    let middle = partition(items);
    // The two sides do not overlap, and the compiler knows: no lock, no copy.
    let (left, right) = items.split_at_mut(middle);
    forkjoin::join(|| quicksort(left), || quicksort(&mut right[1..]));
}

/// Puts the pivot in its place, smaller ones before it, and returns the place.
fn partition(items: &mut [u32]) -> usize {
    let last = items.len() - 1;
    items.swap(last / 2, last);
    let mut place = 0;
    for index in 0..last {
        if items[index] < items[last] {
            items.swap(place, index);
            place += 1;
        }
    }
    items.swap(place, last);
    place
}

fn main() -> Result<(), Box<dyn Error>> {
    let pool = ForkJoinPool::builder("mill").build()?;
    let grains: Vec<u32> = (0..200_000_u32)
        .map(|n| n.wrapping_mul(2_654_435_761))
        .collect();
    let say = |is_sorted| if is_sorted { "sorted" } else { "not sorted" };

    let mut by_hand = grains.clone();
    pool.install(|| quicksort(&mut by_hand));
    println!("by hand: {}", say(by_hand.is_sorted()));

    // Without a bad case: it notices when pivots are bad.
    let mut by_library = grains;
    pool.install(|| parallel::sort_unstable(&mut by_library));
    println!("by the library: {}", say(by_library == by_hand));
    Ok(())
}
