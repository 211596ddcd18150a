//! Every interleaving of small parts of the library, weak memory included.
//!
//! Run with `cargo xtask models loom [NAME]`.

#![cfg(millpond_loom)]

mod forkjoin;
mod pool;
mod queue;
mod queue_tag;
mod schedule;

/// Walks every interleaving with up to so many preemptions.
fn model(preemptions: usize, scenario: fn()) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(preemptions));
    builder.max_branches = 100_000;
    builder.check(scenario);
}
