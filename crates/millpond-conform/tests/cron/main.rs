//! Cron: expressions, calendars, and the days on which clocks change.
//!
//! They are here and not with the library, so that what they compare with is built once and not for every
//! checker.

mod calendar;
mod clock_changes;
mod errors;
mod kit;
mod model;
#[path = "../../../millpond/tests/proptest_kit/mod.rs"]
mod proptest_kit;
mod random;
