//! The suites. One file per question; a new suite gets a line in [`SUITES`].

pub mod awaiting;
pub mod crowd;
pub mod elastic;
pub mod field;
pub mod floor;
pub mod footprint;
pub mod forkjoin;
pub mod future;
pub mod granularity;
pub mod hand_over;
pub mod idle;
pub mod inside;
pub mod kinds;
pub mod latency;
pub mod lifetime;
pub mod mixed;
pub mod overload;
pub mod pool;
pub mod queue;
pub mod scale;
pub mod scheduled;
pub mod submit;
pub mod task;

use crate::harness::{Sample, Suite};
use crate::peers::guest::Order;
use anyhow::Result;

/// All suites, in the order in which they are run.
pub const SUITES: &[Suite] = &[
    queue::SUITE,
    task::SUITE,
    pool::SUITE,
    inside::SUITE,
    submit::SUITE,
    crowd::SUITE,
    kinds::SUITE,
    awaiting::SUITE,
    mixed::SUITE,
    latency::SUITE,
    elastic::SUITE,
    granularity::SUITE,
    scale::SUITE,
    idle::SUITE,
    forkjoin::SUITE,
    future::SUITE,
    scheduled::SUITE,
    overload::SUITE,
    footprint::SUITE,
    lifetime::SUITE,
    floor::SUITE,
];

/// Does what is ordered, in this process: for work that takes a process of its own (see
/// [`own`](crate::peers::guest::own)).
///
/// # Errors
///
/// If there is no such work or no such candidate here, or it is not done.
pub fn obey(order: &Order<'_>) -> Result<Sample> {
    if order.work == footprint::WORD {
        footprint::obey(order)
    } else {
        scheduled::alone::obey(order)
    }
}
