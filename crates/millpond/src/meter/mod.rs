//! Counters and histograms that are cheap enough for every task.
//!
//! Each thread counts in memory that no other thread writes: adding to a [`Count`] is a plain load and
//! store, adding to a [`Histogram`] a few more. Readers sum over all threads at any time and
//! reset nothing. They get a [`Distribution`]: a copy, with percentiles.
//!
//! | file | what |
//! |---|---|
//! | `count` | a counter with one writer |
//! | `histogram` | a histogram of durations with one writer |
//! | `distribution` | the sum of histograms: counts, means, percentiles |

mod count;
mod distribution;
mod histogram;

pub(crate) use count::Count;
pub use distribution::Distribution;
pub(crate) use histogram::Histogram;
