//! The test kit: devices that make race tests exact, quick, and loud when they fail.
//!
//! | device | what it is for |
//! |---|---|
//! | [`delays`] | all delays and timeouts of tests, scaled by one number |
//! | [`Stopwatch`] | measured times: exact lower bounds, generous upper bounds |
//! | [`Actor`] | a thread that can be interrupted, and whose parking site is known |
//! | [`Latch`], [`Gate`], [`OpenAtEnd`], [`Barrier`] | choreography with a mandatory timeout |
//! | [`FailureSink`] | carries failed assertions from other threads to the test |
//! | [`Guard`] | checks at the end of a test that an engine terminates |
//! | [`OwnQueue`] | a queue as a user might write one, whose steps can be watched, delayed and made to panic |
//! | [`Factory`] | a thread factory whose threads fail to start, in every possible way |
//! | [`ManualExecutor`] | tasks run by hand: an interleaving step by step |
//! | [`DropCount`] | counts drops: no leak, no double drop |
//! | [`watch`], [`Watchdog`] | ends a test that hangs, and prints which thread waits where |
//! | [`CountingWaker`], [`poll_once`] | futures polled by hand |
//! | [`Stillness`] | waits until all threads of a set sleep, as the kernel sees it |
//! | [`History`] | checks linearizability of concurrent calls |
//! | [`Stress`] | rounds with a seed that is printed on failure |
//!
//! No device sleeps to let something happen: a test waits for the event itself.
//!
//! The tests of `millpond` use this crate, and the behaviour suites of `millpond-conform`, which call it `kit`.

#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test kit is independent of what it tests: it uses std's threads, locks and clocks"
)]

mod actor;
mod case;
mod choreography;
pub mod delays;
mod drops;
mod exhaust;
mod factory;
mod guard;
mod linear;
mod manual;
mod own_queue;
mod rng;
mod sink;
mod still;
mod stopwatch;
mod stress;
mod wakers;
mod watchdog;

pub use actor::{Actor, interrupt_at};
pub use case::case;
pub use choreography::{Barrier, Gate, Latch, OpenAtEnd};
pub use drops::{DropCount, DropToken};
pub use factory::{Factory, Start};
pub use guard::{Guard, Lifecycle};
pub use linear::{Call, History, Recorder};
pub use manual::ManualExecutor;
pub use own_queue::{OwnQueue, Step};
pub use rng::Rng;
pub use sink::FailureSink;
pub use still::Stillness;
pub use stopwatch::{Stopwatch, comes_true, until};
pub use stress::{Round, Stress};
pub use wakers::{CountingWaker, poll_once};
pub use watchdog::{Watchdog, watch};
