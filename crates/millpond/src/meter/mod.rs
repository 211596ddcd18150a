//! Distributions of measured times: count, mean, percentiles.
//!
//! Metrics of pools have them: how long tasks waited and ran. A [`Distribution`] is a copy, made when it is asked for;
//! reading resets nothing.
//!
//! ```
//! use millpond::executor::{ExecutorExt, Lifecycle};
//! use millpond::preset;
//!
//! let pool = preset::single("mill").build()?;
//! pool.submit(|| "flour")?.join()?;
//! pool.close()?;
//! let waited = pool.metrics().wait;
//! println!("{} tasks, p99 {:?}", waited.count(), waited.quantile(0.99));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// Each thread counts in memory that no other thread writes: adding to a `Count` is a plain load and store, adding to a
// `Histogram` a few more. Readers sum over all threads at any time.
//
// | file | what |
// |---|---|
// | `count` | a counter with one writer |
// | `histogram` | a histogram of durations with one writer |
// | `distribution` | the sum of histograms: counts, means, percentiles |

mod count;
mod distribution;
mod histogram;

pub(crate) use count::Count;
pub use distribution::Distribution;
pub(crate) use histogram::Histogram;
