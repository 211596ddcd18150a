//! Programs that cargo has built: where they are, as its messages tell.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::stage::Stage;

/// Runs a building cargo call; the programs that came of it, or none if it failed.
///
/// # Errors
/// If cargo cannot be started.
pub fn programs(stage: &mut Stage, build: &mut Command) -> Result<Option<Vec<PathBuf>>> {
    let ended = stage.run(build.arg("--message-format=json-render-diagnostics"))?;
    let programs = ended.output.lines().filter_map(executable).collect();
    Ok(ended.success.then_some(programs))
}

/// As [`programs`], but only those of the package with this manifest, a path in the workspace.
///
/// # Errors
/// If cargo cannot be started.
pub fn programs_of(
    stage: &mut Stage,
    build: &mut Command,
    manifest: &str,
) -> Result<Option<Vec<PathBuf>>> {
    let ended = stage.run(build.arg("--message-format=json-render-diagnostics"))?;
    let theirs = format!("/{manifest}\"");
    let messages = ended.output.lines().filter(|line| line.contains(&theirs));
    Ok(ended
        .success
        .then(|| messages.filter_map(executable).collect()))
}

/// The one example `name` that a building cargo call makes; none if it failed.
///
/// # Errors
/// If cargo cannot be started.
pub fn example(stage: &mut Stage, build: &mut Command, name: &str) -> Result<Option<PathBuf>> {
    let programs = programs(stage, build.args(["--example", name]))?;
    let is_it = |program: &PathBuf| program.file_stem().is_some_and(|stem| stem == name);
    Ok(programs.and_then(|programs| programs.into_iter().find(is_it)))
}

/// The program in one of cargo's JSON messages.
fn executable(message: &str) -> Option<PathBuf> {
    let (_, behind) = message.split_once("\"executable\":\"")?;
    behind.split_once('"').map(|(path, _)| PathBuf::from(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cargo_prints_is_understood() {
        let message =
            r#"{"reason":"compiler-artifact","executable":"/t/loom_lock-0f","fresh":true}"#;
        assert_eq!(executable(message), Some("/t/loom_lock-0f".into()));
        assert_eq!(executable(r#"{"executable":null}"#), None);
    }
}
