//! Chaos over the whole pool: rounds of everything at once, and a ledger that must balance afterwards.
//!
//! ```text
//!   seed, round --> Shape: a pool of any kind, the threads that use it, how it ends
//!                     |
//!        producers ---+--- meddler ---+--- ender            all at once, on one pool, in a build whose
//!        submit, join,    resize,         shut down, stop,   every atomic operation may yield or
//!        cancel, scope    swap, fail      close, drop        sleep (millpond_chaos)
//!                     |
//!                     v
//!                   Ledger: an entry for each task   -->  judge: the rules below
//! ```
//!
//! All random choices come from the seed and the round. Scheduling does not, so a seed only narrows a
//! search: a failed round is repeated with `--round`.
//!
//! # The rules
//!
//! After each round, when all threads of the round have ended:
//!
//! - **CHAOS-1** The pool has terminated and no thread of it is left, within a timeout.
//! - **CHAOS-2** A rejected closure came back: the same one, not run and not dropped.
//! - **CHAOS-3** No task ran twice. One that was accepted ran once, or not at all and for a possible
//!   reason.
//! - **CHAOS-4** Each handle that was kept is finished, and agrees with the ledger.
//! - **CHAOS-5** Each closure and each value was dropped exactly once.
//! - **CHAOS-6** Hooks come in pairs, and as many tasks completed as hooks were called for.
//! - **CHAOS-7** The counters of the pool add up, see below.
//! - **CHAOS-8** A task of a scope whose owner was not interrupted ran exactly once.
//!
//! # The counters
//!
//! Of a terminated pool, where *accepted* is how often `execute` returned `Ok`:
//!
//! ```text
//!   accepted = completed + cancelled - extra_ran + outside
//! ```
//!
//! *Outside* is what a custom rejection policy kept for itself, which we count, and what
//! `RejectionPolicy::NewThread` ran outside the pool, which the snapshot does not count; so with that
//! policy the equation is an inequality. Besides: `handed_back` is what `shutdown_now`
//! returned, one by one; `threads_started + thread_failures` is how often the factory was asked;
//! `rejected` is at least the number of rejections that callers saw; and nothing is queued or active.
//! When the last handle has been dropped no snapshot can be had; then CHAOS-7 is left out.

pub(crate) mod actions;
pub(crate) mod any_pool;
pub(crate) mod client;
mod counts;
pub(crate) mod faulty;
pub(crate) mod judge;
pub(crate) mod ledger;
pub(crate) mod round;
pub(crate) mod shape;

pub use counts::Counts;
pub use round::{Played, play};
pub use shape::Shape;

use crate::kit::Rng;

/// The numbers of one round.
pub fn rng_of(seed: u64, round: u64) -> Rng {
    let mut mixed = Rng::new(seed ^ round.wrapping_mul(0xd6e8_feb8_6659_fd93));
    mixed.fork()
}
