//! Random programs over the public API: many engines at once, and ledgers that must balance.
//!
//! ```text
//!   seed --> Program: engines, and what a few threads do with them, step by step
//!              |          (text: it is printed when it fails, kept in a file, run again)
//!              v
//!            World: pools of all shapes, fork-join pools, scheduled pools, threads per task, serial
//!              |    executors, completion services, queues of every flavor; each with a ledger of its own
//!              v
//!            the threads run their steps at once; then everything is shut down as its shape says
//!              |
//!              v
//!            judge: the rules below
//! ```
//!
//! [Chaos](crate::chaos) uses one pool; here engines feed each other: tasks of one pool submit tasks
//! to another, hold its last handle, and have destructors that submit to it; threads end with
//! thread-locals that do; results of one completion service go into the next; the process forks
//! meanwhile. Pools are drawn, used and checked by the code of chaos.
//!
//! All random choices come from the program's numbers; scheduling does not. So a failed program is run
//! again and again, and is shrunk by leaving lines out as long as it fails within a few runs.
//!
//! No step waits for something that only another step provides: a program that hangs is a bug of
//! ours. A wait inside a task has a timeout, or waits for a task that this one has submitted.
//!
//! # The rules
//!
//! After a program, when all engines have terminated:
//!
//! - **PROGRAM-1** Every engine has terminated, and no thread of it is left, within a timeout.
//! - **PROGRAM-2** Pools obey the rules CHAOS-1 to CHAOS-8 of [chaos](crate::chaos), their counters included.
//! - **PROGRAM-3** A task submitted to any other engine came back, or ran once, or has a reason; its closure
//!   and its value were dropped once; each handle that was kept is finished and agrees with the ledger.
//! - **PROGRAM-4** Tasks of one key of a serial executor never ran at the same time, and those that one
//!   thread submitted ran in their order.
//! - **PROGRAM-5** Each task of a completion service completed once.
//! - **PROGRAM-6** Each element that a queue accepted came out of it once.
//! - **PROGRAM-7** A forked child that uses an engine of its parent ends, and was rejected.
//! - **PROGRAM-8** A computation of fork-join pools comes to what it comes to without any pool: the same value, or the
//!   panic of one of its parts.

mod computation;
mod engines;
mod ephemeral;
mod judge;
mod outside;
mod play;
mod program;
mod queues;
mod world;

pub use play::{Played, play};
pub use program::Program;
