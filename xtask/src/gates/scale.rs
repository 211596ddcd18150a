//! The figures of `docs/design/scale.md`: what the pool would do on more cores than there are.
//!
//! The program is an example of `millpond-bench`, built twice: as usual, to measure what a task costs alone,
//! and under `millpond_traffic`, to record accesses and compute. Its output replaces what is between the
//! two markers in the document. It is no step of `cargo xtask test`: its figures differ from machine to
//! machine, and the model behind it has tests of its own.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use super::built;
use crate::step::Step;
use crate::table::Outcome;
use crate::workspace::{Switch, Workspace};

const DOCUMENT: &str = "docs/design/scale.md";
const BEGIN: &str = "<!-- begin of what `cargo xtask scale` writes -->";
const END: &str = "<!-- end of what `cargo xtask scale` writes -->";

/// Measures, records, computes, and writes the tables into the document.
///
/// # Errors
/// If a program cannot be started or the document cannot be written.
pub fn run(workspace: &Workspace, step: &mut Step) -> Result<Outcome> {
    let words = ["build", "--release", "-p", "millpond-bench"];
    let usual = built::example(step, &mut workspace.cargo(&words), "scale")?;
    let mut build = workspace.cargo_under(Switch::Traffic, &words);
    // Counts do not depend on it, and it takes most of the time of a release build.
    build.env("CARGO_PROFILE_RELEASE_LTO", "off");
    let recording = built::example(step, &mut build, "scale")?;
    let (Some(usual), Some(recording)) = (usual, recording) else {
        return Ok(Outcome::failed("it does not build"));
    };
    let times = workspace.target_of("xtask").join("scale-times.json");
    let measured = step.run(Command::new(usual).arg("times"))?;
    fs::write(&times, measured.output.trim()).context("cannot keep the times")?;
    let computed = step.run(
        Command::new(recording)
            .args(["tables", "--times"])
            .arg(&times),
    )?;
    if !measured.success || !computed.success {
        return Ok(Outcome::failed("the program failed"));
    }
    let path = workspace.root.join(DOCUMENT);
    let document = fs::read_to_string(&path).with_context(|| format!("cannot read {DOCUMENT}"))?;
    let Some(renewed) = replace(&document, &computed.output) else {
        return Ok(Outcome::failed(format!("{DOCUMENT} has lost its markers")));
    };
    fs::write(&path, renewed).with_context(|| format!("cannot write {DOCUMENT}"))?;
    Ok(Outcome::passed(format!("the tables are in {DOCUMENT}")))
}

/// The document with other tables between its markers.
fn replace(document: &str, tables: &str) -> Option<String> {
    let (before, rest) = document.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!(
        "{before}{BEGIN}\n\n{}\n\n{END}{after}",
        tables.trim()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_replace_what_is_between_the_markers_and_nothing_else() {
        let document = format!("a\n{BEGIN}\nold\n{END}\nb\n");
        let renewed = replace(&document, "new\n").expect("it has markers");
        assert_eq!(renewed, format!("a\n{BEGIN}\n\nnew\n\n{END}\nb\n"));
        assert_eq!(replace(&renewed, "new").as_ref(), Some(&renewed));
    }

    #[test]
    fn a_document_without_markers_is_left_alone() {
        assert_eq!(replace("a", "new"), None);
    }
}
