//! The documentation builds, and its links between items hold.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::house::{House, cargo_in, with_flags};
use crate::stage::Stage;
use crate::table::Outcome;

/// The question, for any workspace.
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
pub fn run(house: &House, stage: &mut Stage) -> Result<Outcome> {
    Ok(match stage.run(&mut command(&house.root))?.success {
        true => Outcome::passed(""),
        false => Outcome::failed("rustdoc warns"),
    })
}
