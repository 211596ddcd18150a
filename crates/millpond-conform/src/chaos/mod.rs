//! Chaos over the whole pool: rounds of everything at once, and books that must balance afterwards.
//!
//! ```text
//!   seed, round --> Shape: a pool of any kind, who plays on it, how it ends
//!                     |
//!        producers ---+--- meddler ---+--- ender            all at once, on one pool, in a build whose
//!        submit, join,    resize,         shut down, stop,   every atomic operation may yield or
//!        cancel, scope    swap, spoil     close, let go      sleep (millpond_chaos)
//!                     |
//!                     v
//!                   Ledger: an entry for each task   -->  judge: the rules below
//! ```
//!
//! Everything that is drawn comes from the seed and the round. What the operating system makes of it
//! does not, so a seed narrows a search: a round that failed is played again and again with
//! `--round`.
//!
//! # The rules
//!
//! After each round, when all who played have gone:
//!
//! - **J1** The pool has terminated and no thread of it is left, within a patience.
//! - **J2** A refused closure came back whole: unrun, undropped, that very one.
//! - **J3** No task ran twice. One that was accepted ran once, or not at all and for a reason that
//!   can have been.
//! - **J4** Each handle that was kept is finished, and says what the ledger says.
//! - **J5** Each closure and each value was dropped exactly once.
//! - **J6** Hooks come in pairs, and as many tasks completed as they heard of.
//! - **J7** The books of the pool balance, see below.
//! - **J8** A task of a scope whose owner nobody interrupted ran exactly once.
//!
//! # The books
//!
//! Of a terminated pool, where *accepted* is how often `execute` returned `Ok`:
//!
//! ```text
//!   accepted = completed + cancelled + expired + shed + discarded + handed_back + caller_ran
//!            + ran_elsewhere + outside
//! ```
//!
//! *Outside* is what a custom rejection policy kept for itself, which we count, and what
//! `Rejection::NewThread` ran outside the pool, which the snapshot does not count; so where that
//! policy played, the equation is an inequality. Besides: `handed_back` is what `shutdown_now`
//! returned, one by one; `threads_started + thread_failures` is how often the factory was asked;
//! `rejected` is at least the number of refusals that callers saw; and nothing is queued or active.
//! When the last handle is dropped nobody is left who could ask for a snapshot; then J7 is left out.

pub(crate) mod bank;
pub(crate) mod judge;
pub(crate) mod ledger;
pub(crate) mod mill;
pub(crate) mod round;
pub(crate) mod shape;
pub(crate) mod storm;
mod tally;

pub use round::{Played, play};
pub use shape::Shape;
pub use tally::Tally;

use crate::kit::Rng;

/// The numbers of one round.
pub fn rng_of(seed: u64, round: u64) -> Rng {
    let mut mixed = Rng::new(seed ^ round.wrapping_mul(0xd6e8_feb8_6659_fd93));
    mixed.fork()
}
