//! The workspace on disk, and how to call cargo in it.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

/// The workspace on disk.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// The workspace root.
    pub root: PathBuf,
    /// The build directory. Each checker builds in a folder of its own below it.
    pub target: PathBuf,
}

impl Workspace {
    /// Finds the workspace by the environment that cargo sets, or from the current folder upwards.
    ///
    /// # Errors
    /// If no folder above holds `xtask/Cargo.toml`.
    pub fn find() -> Result<Self> {
        let start = match env::var_os("CARGO_MANIFEST_DIR") {
            Some(own_manifest) => PathBuf::from(own_manifest),
            None => env::current_dir().context("the current folder is gone")?,
        };
        let root = start
            .ancestors()
            .find(|folder| folder.join("xtask/Cargo.toml").is_file())
            .context("this is not the workspace: run `cargo xtask` inside it")?
            .to_path_buf();
        let target = match env::var_os("CARGO_TARGET_DIR") {
            Some(named) => root.join(named),
            None => root.join("target"),
        };
        Ok(Self { root, target })
    }

    /// The folder where one checker builds, apart because its flags differ.
    pub fn target_of(&self, checker: &str) -> PathBuf {
        self.target.join(checker)
    }

    /// The log of a step.
    pub fn log_of(&self, step: &str) -> PathBuf {
        self.target_of("xtask").join(format!("{step}.log"))
    }

    /// A cargo call in the root.
    pub fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = cargo_in(&self.root);
        command.args(arguments);
        command
    }

    /// A cargo call under one of the `--cfg` switches, with its own build directory.
    pub fn cargo_under(&self, switch: Switch, arguments: &[&str]) -> Command {
        let mut command = self.cargo(arguments);
        command
            .env(
                "RUSTFLAGS",
                with_flags("RUSTFLAGS", &format!("--cfg {}", switch.cfg())),
            )
            .env("CARGO_TARGET_DIR", self.target_of(switch.name()));
        command
    }
}

/// A `--cfg` that chooses a backend of `millpond-raw`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// The loom model checker.
    Loom,
    /// The shuttle scheduler.
    Shuttle,
    /// Seeded random yields.
    Chaos,
    /// The fallback for platforms without futexes.
    Portable,
    /// Memory from the system's allocator only.
    Plain,
    /// A record of every access.
    Traffic,
}

impl Switch {
    /// Every switch, in the order of `cargo xtask test`.
    pub const ALL: [Switch; 6] = [
        Switch::Portable,
        Switch::Plain,
        Switch::Traffic,
        Switch::Chaos,
        Switch::Loom,
        Switch::Shuttle,
    ];

    /// The short name: of the step and of the build directory.
    pub const fn name(self) -> &'static str {
        match self {
            Switch::Loom => "loom",
            Switch::Shuttle => "shuttle",
            Switch::Chaos => "chaos",
            Switch::Portable => "portable",
            Switch::Plain => "plain",
            Switch::Traffic => "traffic",
        }
    }

    /// Whether its code uses crates that no other build does, so that cargo must know the switch.
    pub const fn has_dependencies(self) -> bool {
        matches!(self, Switch::Loom | Switch::Shuttle)
    }

    /// The name in the sources.
    pub const fn cfg(self) -> &'static str {
        match self {
            Switch::Loom => "millpond_loom",
            Switch::Shuttle => "millpond_shuttle",
            Switch::Chaos => "millpond_chaos",
            Switch::Portable => "millpond_portable",
            Switch::Plain => "millpond_plain_memory",
            Switch::Traffic => "millpond_traffic",
        }
    }
}

/// A cargo call in any folder, without the variables that the outer `cargo run` has set.
pub fn cargo_in(folder: &Path) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(folder);
    // They describe xtask; a test that reads them would see the wrong package.
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    // An incremental build takes a quarter longer, and the gates build everything once.
    if env::var_os("CARGO_INCREMENTAL").is_none() {
        command.env("CARGO_INCREMENTAL", "0");
    }
    command
}

/// The caller's flags in `variable`, followed by ours.
pub fn with_flags(variable: &str, ours: &str) -> OsString {
    let mut flags = env::var_os(variable).unwrap_or_default();
    if !flags.is_empty() {
        flags.push(" ");
    }
    flags.push(ours);
    flags
}
