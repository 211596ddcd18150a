//! Lints, with warnings denied. `clippy.toml` has those that protect the seams.
//!
//! The library crates are linted once more under each switch, because each compiles other files. A
//! switch with dependencies of its own is passed to cargo, which then builds everything for it. The
//! others are passed to clippy, for our own crates only: they share one build of the dependencies.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::step::Step;
use crate::table::Outcome;
use crate::workspace::{Switch, Workspace, cargo_in};

const DENY: &[&str] = &["--", "-D", "warnings"];

/// The crates that have code of their own for the switches.
const CRATES: [&str; 2] = ["millpond-raw", "millpond"];

/// The command, for any workspace.
pub fn command(root: &Path) -> Command {
    let mut command = cargo_in(root);
    command
        .args(["clippy", "--workspace", "--all-targets", "--all-features"])
        .args(DENY);
    command
}

/// The command for the library crates under a switch.
fn command_under(workspace: &Workspace, switch: Switch) -> Command {
    // A build for one switch alone goes without the dependencies of features: no switch changes the
    // code that uses them.
    let mut command = if switch.has_dependencies() {
        workspace.cargo_under(switch, &["clippy", "--all-targets"])
    } else {
        workspace.cargo(&["clippy", "--all-targets", "--all-features"])
    };
    for name in CRATES {
        command.args(["-p", name]);
    }
    command.args(DENY);
    if !switch.has_dependencies() {
        command
            .args(["--cfg", switch.cfg()])
            .env("CARGO_TARGET_DIR", workspace.target_of("clippy"));
    }
    command
}

/// The gate.
///
/// # Errors
/// If cargo cannot be started.
pub fn run(workspace: &Workspace, step: &mut Step) -> Result<Outcome> {
    let mut failed = Vec::new();
    if !step.run(&mut command(&workspace.root))?.success {
        failed.push("workspace");
    }
    for switch in Switch::ALL {
        if !step.run(&mut command_under(workspace, switch))?.success {
            failed.push(switch.name());
        }
    }
    Ok(if failed.is_empty() {
        Outcome::passed(format!("workspace and {} switches", Switch::ALL.len()))
    } else {
        Outcome::failed(format!("warnings in: {}", failed.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_switch_with_dependencies_of_its_own_is_passed_to_cargo() {
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
