//! The documentation builds without warnings, those about its links included.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::step::Step;
use crate::table::Outcome;
use crate::workspace::{Workspace, cargo_in, with_flags};

/// The command, for any workspace.
pub fn command(root: &Path) -> Command {
    let mut command = cargo_in(root);
    command
        .args(["doc", "--workspace", "--no-deps", "--all-features"])
        .env("RUSTDOCFLAGS", with_flags("RUSTDOCFLAGS", "-D warnings"));
    command
}

/// The gate.
///
/// # Errors
/// If cargo cannot be started.
pub fn run(workspace: &Workspace, step: &mut Step) -> Result<Outcome> {
    let ended = step.run(&mut command(&workspace.root))?;
    Ok(Outcome::of_command(ended.success, "rustdoc warns"))
}
