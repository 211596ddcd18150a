//! Time: clocks, and deadlines that saturate.
//!
//! All of millpond asks a [`Clock`], never the operating system: a pool on a manual clock ages by
//! hand, so tests of time-outs are exact and take no time, and a simulation runs at its own speed.

mod alarm;
mod aside;
mod clock;
mod deadline;
mod lead;
#[cfg(test)]
mod measure;
mod ticker;
mod timer;
mod wall;
mod wheel;

pub(crate) use alarm::{Alarm, Unattended};
pub(crate) use aside::{Owner, Work, aside, let_go};
pub use clock::{Clock, ManualClock};
pub use deadline::Deadline;
pub(crate) use lead::{Lead, Rest};
pub(crate) use ticker::{Stamp, Ticker};
pub(crate) use timer::{Hold, is_timer_thread};
pub(crate) use wheel::{Key, Reserved, Wheel, due_since};
