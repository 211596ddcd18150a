//! When things are to be done.

#[cfg(feature = "cron")]
mod cron;

#[cfg(feature = "cron")]
pub use cron::{Cron, CronError};
