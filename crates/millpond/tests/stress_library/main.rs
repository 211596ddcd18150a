//! Real threads that order themselves by nothing but what is tested, for the thread sanitizer: it
//! runs the programs called `stress_*`.

#![cfg(not(any(millpond_loom, millpond_shuttle)))]

mod queues;
mod schedule;
mod schedule_kit;
mod scope;
