//! What becomes of a task that a pool has no room for.
//!
//! | file | what it holds |
//! |---|---|
//! | `policy` | the policies, and the handler of the user's |
//! | `apply` | what each policy does |
//! | `when_room` | waiting for room in async code |
//! | `handler_scope` | keeps a handler from being called about what it submits itself |
//! | `counters` | how many tasks were rejected, by label |

mod apply;
mod counters;
mod handler_scope;
mod policy;
mod when_room;

pub(super) use counters::RejectionCounters;
pub use policy::{RejectionContext, RejectionHandler, RejectionPolicy};
pub use when_room::SubmitWhenRoom;
