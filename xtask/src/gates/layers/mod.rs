//! Dependencies point down: between crates ([`crates`]) and between modules of the library
//! ([`modules`]). Each folder says in its header which files it has ([`file_tables`]).

pub mod crates;
pub mod file_tables;
pub mod modules;

use std::path::Path;

use anyhow::Result;

use crate::report::Report;
use crate::step::Step;
use crate::table::Outcome;
use crate::workspace::Workspace;

/// Checks manifests and sources below `root`.
///
/// # Errors
/// If a manifest or a source file cannot be read.
pub fn check(root: &Path) -> Result<Report> {
    let mut report = crates::check(root)?;
    report.merge(modules::check(root)?);
    report.merge(file_tables::check(root)?);
    Ok(report)
}

/// The gate.
///
/// # Errors
/// As [`check`].
pub fn run(workspace: &Workspace, step: &mut Step) -> Result<Outcome> {
    Outcome::of_report(&check(&workspace.root)?, step)
}
