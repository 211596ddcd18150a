//! Lints, with warnings denied; the fences of the seams are among them (`clippy.toml`).
//!
//! The library crates are asked again under each of the switches: each compiles other files. A
//! switch that brings dependencies of its own must be told to cargo, and then everything is built
//! for it alone. The others are told to clippy, which passes them to our own crates: they share one
//! build of the dependencies.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::house::{House, Switch, cargo_in};
use crate::stage::Stage;
use crate::table::Outcome;

const DENY: &[&str] = &["--", "-D", "warnings"];

/// The crates that have code of their own for the switches.
const CRATES: [&str; 2] = ["millpond-raw", "millpond"];

/// The question, for any workspace.
pub fn command(root: &Path) -> Command {
    let mut command = cargo_in(root);
    command
        .args(["clippy", "--workspace", "--all-targets", "--all-features"])
        .args(DENY);
    command
}

/// The question, for the library crates under a switch.
fn command_under(house: &House, switch: Switch) -> Command {
    // What is built for a switch alone is built without the neighbours that features bring: no switch
    // changes what is said to them.
    let mut command = match switch.has_dependencies() {
        true => house.cargo_under(switch, &["clippy", "--all-targets"]),
        false => house.cargo(&["clippy", "--all-targets", "--all-features"]),
    };
    for name in CRATES {
        command.args(["-p", name]);
    }
    command.args(DENY);
    if !switch.has_dependencies() {
        command
            .args(["--cfg", switch.cfg()])
            .env("CARGO_TARGET_DIR", house.target_of("clippy"));
    }
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
        if !stage.run(&mut command_under(house, switch))?.success {
            failed.push(switch.name());
        }
    }
    Ok(match failed.is_empty() {
        true => Outcome::passed(format!("workspace and {} switches", Switch::ALL.len())),
        false => Outcome::failed(format!("warnings in: {}", failed.join(", "))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `[target.'cfg(millpond_loom)'.dependencies]` would be for other switches.
    #[test]
    fn a_switch_with_dependencies_of_its_own_is_told_to_cargo() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for name in CRATES {
            let manifest = root.join("crates").join(name).join("Cargo.toml");
            let text = std::fs::read_to_string(manifest).unwrap();
            for switch in Switch::ALL {
                let brings = text.contains(&format!("cfg({})", switch.cfg()));
                assert!(!brings || switch.has_dependencies(), "{name}: {switch:?}");
            }
        }
    }
}
