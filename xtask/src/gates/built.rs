//! Programs that cargo has built, read from its messages.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::step::Step;

/// A program that cargo has built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The manifest of its package.
    pub manifest: PathBuf,
    /// Its file.
    pub path: PathBuf,
}

impl Program {
    /// Whether it belongs to the package in this folder, a path from the root.
    pub fn is_of(&self, package: &str) -> bool {
        self.manifest
            .ends_with(Path::new(package).join("Cargo.toml"))
    }

    /// The name of its target: `loom_lock-0123456789abcdef` is `loom_lock`.
    pub fn name(&self) -> String {
        let stem = self.path.file_stem().unwrap_or_default();
        let stem = stem.to_string_lossy();
        let name = stem.rsplit_once('-').map_or(&*stem, |(name, _)| name);
        name.to_string()
    }
}

/// Runs a cargo build; returns the programs that it built, or none if it failed.
///
/// # Errors
/// If cargo cannot be started.
pub fn programs(step: &mut Step, build: &mut Command) -> Result<Option<Vec<Program>>> {
    let ended = step.run(build.arg("--message-format=json-render-diagnostics"))?;
    let programs = ended.output.lines().filter_map(program).collect();
    Ok(ended.success.then_some(programs))
}

/// Builds the example `name`; none if that failed.
///
/// # Errors
/// If cargo cannot be started.
pub fn example(step: &mut Step, build: &mut Command, name: &str) -> Result<Option<PathBuf>> {
    let programs = programs(step, build.args(["--example", name]))?;
    let is_it = |program: &Program| program.path.file_stem().is_some_and(|stem| stem == name);
    let program = programs.and_then(|programs| programs.into_iter().find(is_it));
    Ok(program.map(|program| program.path))
}

/// The program in one of cargo's JSON messages.
fn program(message: &str) -> Option<Program> {
    let text = |key: &str| {
        let (_, behind) = message.split_once(&format!("\"{key}\":\""))?;
        behind.split_once('"').map(|(path, _)| PathBuf::from(path))
    };
    Some(Program {
        manifest: text("manifest_path")?,
        path: text("executable")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_messages_of_cargo_are_parsed() {
        let message = r#"{"reason":"compiler-artifact","manifest_path":"/w/crates/a/Cargo.toml","executable":"/t/loom_lock-0f","fresh":true}"#;
        let program = program(message).unwrap();
        assert_eq!(program.path, Path::new("/t/loom_lock-0f"));
        assert_eq!(program.name(), "loom_lock");
        assert!(program.is_of("crates/a") && !program.is_of("crates/b"));
        let library = r#"{"manifest_path":"/w/Cargo.toml","executable":null}"#;
        assert_eq!(super::program(library), None);
    }
}
