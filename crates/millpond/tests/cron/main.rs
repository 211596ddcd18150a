//! Cron: expressions, calendars, and the days on which clocks change.

#![cfg(all(feature = "cron", not(any(millpond_loom, millpond_shuttle))))]

mod calendar;
mod clock_changes;
mod errors;
mod kit;
mod model;
mod random;
