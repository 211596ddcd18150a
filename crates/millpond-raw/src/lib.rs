//! The unsafe foundation of [millpond](https://crates.io/crates/millpond): the only crate of it that contains
//! `unsafe` code.
//!
//! Applications use `millpond`. This crate exists so that everything above it can say
//! `#![forbid(unsafe_code)]`: each module has a safe interface and states its invariants in its header, and
//! every `SAFETY` comment cites one. `docs/safety.md` is the ledger of all of them, with the test or model
//! that proves each.
//!
//! | module | what it is |
//! |---|---|
//! | [`sync`] | atomics, locks, cells and threads under one name for std, loom, shuttle and chaos |
//! | [`park`] | the Block seam: how anything waits and is woken |
//! | [`wait_queue`] | a FIFO queue of wakers from which a waiter can leave |
//! | [`recycle`] | a box with recycled memory, for values made on one thread and dropped on another |
//! | [`task`] | the task cell: closure, outcome, waiters and interrupt token in one piece of memory |
//! | [`scope`] | closures that borrow, given to executors that may do anything with them |
//! | [`promise`] | cells that are completed once, and the cells that depend on them |
//! | [`forkjoin`] | fork-join: closures on the stack of the thread that waits for them, which others may steal |
//! | [`stack`] | the registers and the stack of a running thread (feature `stack-dump`) |
//! | [`catch_panic`] | calling and dropping users' values without letting their panics escape |
//! | [`user_code`] | the guard of one rule: no user code under our locks or on the timer's thread (feature `user-code-guard`) |
//! | [`once_box`] | a box that is initialised once and read without a lock; an atomic static reference |
//! | [`activity`] | what a worker is running, published like a seqlock |
//! | [`timestamp`] | the cheapest timestamps, taken for every task |
//! | [`stack_space`] | how much of the current thread's stack is left |
//! | [`fork`] | process generations, and locks across `fork()` |
//! | [`cache_padded`] | padding that keeps two hot words off one cache line |
//! | [`timer_slack`] | the timer slack of a thread |
//! | [`time_slice`] | the time slice of a thread |
//! | [`affinity`] | on which CPUs a thread may run |
//! | [`cpu_time`] | the CPU time of threads |
//! | `count_alloc` | a counting allocator, for measuring programs (feature `count-alloc`) |
//!
//! The dependencies point upwards in this table: `sync`, `catch_panic`, `cache_padded`, `timestamp`, `timer_slack`,
//! `time_slice`, `affinity` and `cpu_time` depend on nothing, `park`, `wait_queue`, `once_box`, `activity`, `recycle` and `stack` on
//! those, `task` on all of them, `scope` on `task`, and `promise` on `sync`, `catch_panic` and `recycle`. `forkjoin` depends on
//! the first row only.

pub mod activity;
pub mod affinity;
pub mod cache_padded;
pub mod catch_panic;
#[cfg(feature = "count-alloc")]
pub mod count_alloc;
pub mod cpu_time;
pub mod fork;
pub mod forkjoin;
pub mod once_box;
pub mod park;
pub mod promise;
pub mod recycle;
pub mod scope;
pub mod stack;
pub mod stack_space;
pub mod sync;
pub mod task;
pub mod time_slice;
pub mod timer_slack;
pub mod timestamp;
pub mod user_code;
pub mod wait_queue;
