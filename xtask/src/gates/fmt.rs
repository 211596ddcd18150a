//! Formatting.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::step::Step;
use crate::table::Outcome;
use crate::workspace::{Workspace, cargo_in};

/// The command, for any workspace.
pub fn command(root: &Path) -> Command {
    let mut command = cargo_in(root);
    command.args(["fmt", "--all", "--check"]);
    command
}

/// The gate.
///
/// # Errors
/// If cargo cannot be started.
pub fn run(workspace: &Workspace, step: &mut Step) -> Result<Outcome> {
    let ended = step.run(&mut command(&workspace.root))?;
    Ok(Outcome::of_command(ended.success, "run `cargo fmt --all`"))
}
