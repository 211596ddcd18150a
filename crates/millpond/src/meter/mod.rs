//! Counting and measuring, at a price that every task can pay.
//!
//! Whoever works counts for itself, in memory that nobody else writes: a [`Count`] is a plain load and
//! store, a [`Histogram`] a few more. Readers come whenever they like, add up what all have counted, and
//! reset nothing. What they get is a [`Distribution`]: a copy, with percentiles.

mod count;
mod distribution;
mod histogram;

pub(crate) use count::Count;
pub use distribution::Distribution;
pub(crate) use histogram::Histogram;
