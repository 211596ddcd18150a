//! Random programs over the public API: many engines at once, and books that must balance.
//!
//! ```text
//!   seed --> Program: engines, and what a few threads do with them, step by step
//!              |          (text: it is printed when it fails, kept in a file, played again)
//!              v
//!            World: pools of all shapes, scheduled pools, threads per task, serial executors,
//!              |    completion services, queues of every flavor; each with a ledger of its own
//!              v
//!            the threads play their steps at once; then everything is ended, in the way its shape says
//!              |
//!              v
//!            judge: the rules below
//! ```
//!
//! [Chaos](crate::chaos) plays on one pool; here engines feed each other: tasks of one pool bring tasks
//! to another, hold its last handle, and have destructors that submit to it; threads end with
//! thread-locals that do; results of one completion service go into the next; the process forks
//! meanwhile. Pools are drawn, fed and judged by chaos's own means.
//!
//! Everything that is drawn comes from the program's numbers; what the operating system makes of it
//! does not. So a program that failed is played again and again, and is made smaller by leaving lines
//! out as long as it fails within a few times.
//!
//! No step waits for something that only another step may bring: a program that hangs is a bug of
//! ours. What waits inside a task has a time-out, or waits for what that task has brought itself.
//!
//! # The rules
//!
//! After a program, when all engines have ended:
//!
//! - **R1** Every engine has terminated, and no thread of it is left, within a patience.
//! - **R2** Pools obey the rules J1 to J8 of [chaos](crate::chaos), their books included.
//! - **R3** What was submitted to any other engine came back whole, or ran once, or has a reason;
//!   its closure and its value were dropped once; each handle that was kept is finished and says what
//!   the ledger says.
//! - **R4** Tasks of one key of a serial executor never ran at the same time, and those that one
//!   thread submitted ran in their order.
//! - **R5** Each task of a completion service arrived once.
//! - **R6** Each element that a queue took in came out of it once.
//! - **R7** A forked child that touches an engine of its parent ends, and was refused.

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
