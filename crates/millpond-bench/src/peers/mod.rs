//! Others and us behind one trait, so that a workload is written once.
//!
//! A workload is generic over the trait and not written for `dyn`: the call of a channel costs as
//! much as a virtual call, and all would pay for ours. Channels are here; pools are in [`pool`],
//! those that get more than they can do in [`overload`], fork-join pools in [`forkjoin`], timers in [`timers`], and those
//! that run in a process of their own, because they are not written in Rust, in [`guest`].

pub mod channel;
pub mod concurrent_queue;
pub mod crossbeam;
pub mod flume;
pub mod forkjoin;
pub mod guest;
pub mod kanal;
pub mod millpond;
pub mod overload;
pub mod pool;
pub mod std_mpsc;
pub mod timers;

pub use channel::{Channel, Ends, Opened, Receive, Send};
