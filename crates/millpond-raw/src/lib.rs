//! The ground floor of [millpond](https://crates.io/crates/millpond), and the only crate of it
//! that contains `unsafe` code.
//!
//! Applications use `millpond`. This crate exists so that everything above it can say
//! `#![forbid(unsafe_code)]`: each module here ends in a safe door, lists its invariants by number
//! in its header, and every `SAFETY` comment cites one. `docs/safety.md` is the ledger of all of
//! them, with the test or model that proves each.
//!
//! | module | what it is |
//! |---|---|
//! | [`sync`] | one name for atomics, locks, cells and threads, whoever checks them: std, loom, shuttle, chaos |
//! | [`park`] | the Block seam: how anything waits and is woken |
//! | [`waits`] | a list of wakers, first come first served, from which a waiter can leave |
//! | [`recycle`] | a box whose memory is used again, for what is made on one thread and dropped on another |
//! | [`task`] | the task cell: closure, result, waiters and interrupt token in one piece of memory |
//! | [`scope`] | closures that borrow, given to executors that may do anything with them |
//! | [`stack`] | the registers and the stack of a running thread, for who asks (feature `stack-dump`) |
//! | [`quiet`] | calling and dropping users' values without letting their panics out |
//! | [`user_code`] | the guard of one rule: no user code under our locks or on the timer's thread (feature `user-code-guard`) |
//! | [`publish`] | words through which one thread shows others something |
//! | [`tick`] | the cheapest reading of time, for stamps on every task |
//! | [`headroom`] | how much of the present thread's stack is left |
//! | [`fork`] | which process this is, for what has threads in the parent |
//! | [`pad`] | keeping two hot words off one cache line |
//! | [`slack`] | how punctually a thread is woken |
//! | [`usage`] | what a thread has used of the CPUs |
//! | `count` | an allocator that counts, for measuring programs (feature `count-alloc`) |
//!
//! The dependencies point upwards in this table: `sync`, `quiet`, `pad`, `tick`, `slack` and `usage` know
//! nobody, `park`, `waits`, `publish`, `recycle` and `stack` know those, `task` knows them all, and `scope`
//! knows `task`.

#[cfg(feature = "count-alloc")]
pub mod count;
pub mod fork;
pub mod headroom;
pub mod pad;
pub mod park;
pub mod publish;
pub mod quiet;
pub mod recycle;
pub mod scope;
pub mod slack;
pub mod stack;
pub mod sync;
pub mod task;
pub mod tick;
pub mod turns;
pub mod usage;
pub mod user_code;
pub mod waits;
