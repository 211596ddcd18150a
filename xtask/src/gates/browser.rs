//! The page of the bench in a real browser: its plots are there, and legible.

use anyhow::Result;

use super::program::NO_SKIP;
use crate::house::House;
use crate::stage::Stage;
use crate::table::Outcome;
use crate::tally::Tally;

/// The gate.
///
/// # Errors
/// If cargo cannot be started.
pub fn run(house: &House, stage: &mut Stage) -> Result<Outcome> {
    let mut tests = house.cargo(&["test", "-p", "millpond-bench", "--test", "browser"]);
    let ended = stage.run(tests.env(NO_SKIP, "1"))?;
    Ok(Outcome::of_tests(
        ended.success,
        Tally::of_output(&ended.output),
    ))
}
