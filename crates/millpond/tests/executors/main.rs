//! What executors promise, on real threads: one program for all of it, because each costs a link.

#![cfg(not(any(millpond_loom, millpond_shuttle)))]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test stands outside: it uses std's threads, clocks and channels beside what it tests"
)]

mod adapters;
mod caller_run;
mod completion;
#[path = "../executor_kit/mod.rs"]
mod executor_kit;
mod future;
mod inheritance;
mod invoke;
mod invoke_waiting;
mod scope;
mod scope_cancel;
mod scope_hostile;
mod scope_panics;
mod serial;
mod stop;
mod submit;
mod threads;
mod without_threads;
