//! The test kit: devices that make race tests exact, quick, and loud when they fail.
//!
//! | device | what it is for |
//! |---|---|
//! | [`delays`] | every time span of every test, scaled by one number |
//! | [`Stopwatch`] | lower bounds always, upper bounds only far away |
//! | [`Actor`] | a thread that can be interrupted, and of which one knows where it is parked |
//! | [`Latch`], [`Gate`], [`Barrier`] | choreography with a mandatory time-out |
//! | [`FailureSink`] | assertions in other threads are not lost |
//! | [`Guard`] | every test of something with a lifecycle is a test of its end |
//! | [`OwnQueue`] | a queue that is none of ours, and may be watched, held up and spoilt |
//! | [`Factory`] | threads that do not start, in every way in which they can |
//! | [`ManualExecutor`] | tasks run by hand: an interleaving step by step |
//! | [`DropCount`] | nothing leaks, nothing is dropped twice |
//! | [`Wedge`] | a test that hangs says who waits where, and ends |
//! | [`Stillness`] | all threads of a set are asleep, as the kernel sees it |
//! | [`History`] | whether what threads did and saw could have happened one step at a time |
//! | [`Stress`] | rounds with a seed that is printed on failure |
//!
//! There is no call that lets time pass to make something happen: one waits for the thing itself.

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
mod wedge;

pub use actor::Actor;
pub use case::case;
pub use choreography::{Barrier, Gate, Latch};
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
pub use wedge::Wedge;
