//! Formatting.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::house::{House, cargo_in};
use crate::stage::Stage;
use crate::table::Outcome;

/// The question, for any workspace.
pub fn command(root: &Path) -> Command {
    let mut command = cargo_in(root);
    command.args(["fmt", "--all", "--check"]);
    command
}

/// The gate.
///
/// # Errors
/// If cargo cannot be started.
pub fn run(house: &House, stage: &mut Stage) -> Result<Outcome> {
    Ok(match stage.run(&mut command(&house.root))?.success {
        true => Outcome::passed(""),
        false => Outcome::failed("run `cargo fmt --all`"),
    })
}
