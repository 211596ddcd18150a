//! Lints, with warnings denied; the fences of the seams are among them (`clippy.toml`).
//!
//! The library crates are asked again under each of the switches: each compiles other files.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::house::{House, Switch, cargo_in};
use crate::stage::Stage;
use crate::table::Outcome;

const DENY: &[&str] = &["--", "-D", "warnings"];

/// The question, for any workspace.
pub fn command(root: &Path) -> Command {
    let mut command = cargo_in(root);
    command
        .args(["clippy", "--workspace", "--all-targets", "--all-features"])
        .args(DENY);
    command
}

/// The gate.
///
/// # Errors
/// If cargo cannot be started.
pub fn run(house: &House, stage: &mut Stage) -> Result<Outcome> {
    let mut failed = Vec::new();
    if !stage.run(&mut command(&house.root))?.success {
        failed.push("workspace");
    }
    for switch in Switch::ALL {
        let mut command = house.cargo_under(switch, &["clippy", "--all-targets", "--all-features"]);
        for name in CRATES {
            command.args(["-p", name]);
        }
        if !stage.run(command.args(DENY))?.success {
            failed.push(switch.name());
        }
    }
    Ok(match failed.is_empty() {
        true => Outcome::passed(format!("workspace and {} switches", Switch::ALL.len())),
        false => Outcome::failed(format!("warnings in: {}", failed.join(", "))),
    })
}

/// The crates that have code of their own for the switches.
const CRATES: [&str; 2] = ["millpond-raw", "millpond"];
