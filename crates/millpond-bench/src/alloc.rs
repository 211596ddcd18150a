//! Allocations per operation.
//!
//! A program that wants them counted installs [`CountingAlloc`] and hands it to the harness:
//!
//! ```
//! use millpond_bench::alloc::{self, CountingAlloc};
//!
//! #[global_allocator]
//! static ALLOC: CountingAlloc = CountingAlloc::new();
//!
//! let boxes = |count: u64| (0..count).for_each(|n| drop(std::hint::black_box(Box::new(n))));
//! let per_box = alloc::per_operation(&ALLOC, 1_000, |count| Ok(boxes(count)))?;
//! assert_eq!(per_box, 1.0);
//! # Ok::<(), anyhow::Error>(())
//! ```

use anyhow::Result;

pub use millpond_raw::count_alloc::CountingAlloc;

/// How many allocations one more operation costs.
///
/// `run` is run with `operations` and with twice as many, and the difference is taken: what a run
/// needs once (threads, the queue itself) falls out, whatever it is.
///
/// # Errors
///
/// The result of `run`.
pub fn per_operation(
    allocator: &CountingAlloc,
    operations: u64,
    mut run: impl FnMut(u64) -> Result<()>,
) -> Result<f64> {
    let mut count = |operations: u64| -> Result<u64> {
        let (outcome, counts) = allocator.count(|| run(operations));
        outcome.map(|()| counts.allocations)
    };
    let operations = operations.max(1);
    let once = count(operations)?;
    let twice = count(operations * 2)?;
    Ok(twice.saturating_sub(once) as f64 / operations as f64)
}
