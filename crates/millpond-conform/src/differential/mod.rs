//! The differential test: one script, played on Java's `ThreadPoolExecutor` and on our pool, or on Java's
//! `ForkJoinPool` and on ours, or on Java's `CompletableFuture` and our `Completable`, must leave the same log.
//!
//! ```text
//!   generate (a seed)  ---.                    .--> java: one process, pipes, crates/.../java ---.
//!   parse (a file) -------+---> Script --------+                                                 +--> judge
//!                                              `--> ours: the pool, in this process -------------'      |
//!                                                                              shrink, print  <---------'
//! ```
//!
//! A script is a pool and steps, or a graph of futures that grows. Each task of a script stays in its body until the script releases it,
//! so everything can be at rest between two steps, and then there is exactly one truth to be reported: a
//! line with the result of the step, which tasks started and ended, and all that the pool shows of
//! itself.
//!
//! # Rest
//!
//! Nothing is guessed from time; a player knows when nothing moves any more.
//!
//! - **REST-1** Java's player sees every thread enter and leave each wait, because the queues, the gates and
//!   the threads are subclasses that say so (`java/Stage.java`). Of a fork-join pool it knows which bodies wait and
//!   which tasks are over, and asks the pool for the rest (`java/ForkJoinPlayer.java`).
//! - **REST-2** Ours is looked at from outside: all threads that the pool has started are asleep in the
//!   kernel, at one instant ([`Stillness`](crate::kit::Stillness)). Time is a manual clock, so no sleeper
//!   wakes by itself.
//! - **REST-3** A player that does not come to rest says so in its log; the line then differs, or both are
//!   stuck, which is no agreement either.
//!
//! Differences that are ours by decision are listed in [`decisions`], with how the test deals with
//! each. `docs/differential.md` is the page for people.

pub mod decisions;
pub mod futures;
pub mod generate;
mod generate_forkjoin;
pub mod generate_futures;
pub mod java;
mod judge;
mod ours;
mod parse;
mod run;
pub mod script;
mod shrink;
mod tally;
pub mod tree;

pub use judge::{Disagreement, Log, expectations, judge};
pub use ours::Ours;
pub use parse::ParseError;
pub use run::{Found, Report, Runner, Source};
pub use shrink::shrink;
pub use tally::Tally;

use script::Script;
use std::io;

/// A player of scripts. The two halves let both sides play at the same time.
pub trait Side {
    /// Begins to play.
    ///
    /// # Errors
    ///
    /// The player is of no use any more.
    fn begin(&mut self, script: &Script) -> io::Result<()>;

    /// The log of the script that was begun.
    ///
    /// # Errors
    ///
    /// The player is of no use any more. A script that it cannot play to the end is no error: its log
    /// says so.
    fn finish(&mut self) -> io::Result<Log>;
}
