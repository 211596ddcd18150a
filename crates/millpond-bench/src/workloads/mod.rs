//! The suites. One file per question; a new suite gets a line in [`SUITES`].

pub mod elastic;
pub mod field;
pub mod floor;
pub mod granularity;
pub mod hand_over;
pub mod idle;
pub mod latency;
pub mod overload;
pub mod pool;
pub mod queue;
pub mod scale;
pub mod scheduled;
pub mod task;

use crate::harness::Suite;

/// All suites, in the order in which they are run.
pub const SUITES: &[Suite] = &[
    queue::SUITE,
    task::SUITE,
    pool::SUITE,
    latency::SUITE,
    elastic::SUITE,
    granularity::SUITE,
    scale::SUITE,
    idle::SUITE,
    scheduled::SUITE,
    overload::SUITE,
    floor::SUITE,
];
