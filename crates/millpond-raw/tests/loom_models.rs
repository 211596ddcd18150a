//! Every interleaving of every scenario, with few threads and weak memory.
//!
//! Run with `cargo xtask models loom`. Up to three preemptions are explored, which finds all known bugs of
//! this kind at a small part of the cost; `LOOM_MAX_PREEMPTIONS` explores more.
#![cfg(millpond_loom)]

mod scenarios;

fn model(scenario: fn()) {
    let mut builder = loom::model::Builder::new();
    if builder.preemption_bound.is_none() {
        builder.preemption_bound = Some(3);
    }
    builder.check(scenario);
}

scenarios::drive!(model);
