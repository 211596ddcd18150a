//! Dependencies point down: between crates ([`crates`]) and between modules of the library
//! ([`modules`]).

pub mod crates;
pub mod modules;

use std::path::Path;

use anyhow::Result;

use crate::house::House;
use crate::report::Report;
use crate::stage::Stage;
use crate::table::Outcome;

/// Checks both directions below `root`.
///
/// # Errors
/// If a manifest or a source file cannot be read.
pub fn check(root: &Path) -> Result<Report> {
    let mut report = crates::check(root)?;
    report.merge(modules::check(root)?);
    Ok(report)
}

/// The gate.
///
/// # Errors
/// As [`check`].
pub fn run(house: &House, stage: &mut Stage) -> Result<Outcome> {
    Outcome::of_report(&check(&house.root)?, stage)
}
