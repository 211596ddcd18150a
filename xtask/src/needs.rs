//! External programs: which gate needs them, and how to install them.
//!
//! Before a step runs, its needs are checked. Root on Debian installs a missing package; otherwise
//! the step fails and says what to install. An optional need never fails a step.

use std::env;
use std::process::Command;

use anyhow::Result;

use crate::runner::aligned;
use crate::step::Step;
use crate::table::{GATES, Gate};

/// Where a command comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A Debian package.
    Debian(&'static str),
    /// A component of the Rust toolchain.
    Component(&'static str),
}

/// An external program.
#[derive(Clone, Copy, Debug)]
pub struct Need {
    /// The command.
    pub command: &'static str,
    /// Where it comes from.
    pub origin: Origin,
    /// What it is for.
    pub why: &'static str,
    /// True if the steps that use it can do without it.
    pub optional: bool,
}

/// All external programs. [`GATES`] says which gate needs which.
pub const NEEDS: &[Need] = &[
    Need {
        command: "cargo-fmt",
        origin: Origin::Component("rustfmt"),
        why: "formats the code",
        optional: false,
    },
    Need {
        command: "cargo-clippy",
        origin: Origin::Component("clippy"),
        why: "lints the code",
        optional: false,
    },
    Need {
        command: "git",
        origin: Origin::Debian("git"),
        why: "lists the files of the repository",
        optional: false,
    },
    Need {
        command: "chromium",
        origin: Origin::Debian("chromium"),
        why: "shows the page of the benchmarks to a test",
        optional: false,
    },
    Need {
        command: "javac",
        // Version 17 or newer, with the compiler; the plain runtime does not have it.
        origin: Origin::Debian("default-jdk-headless"),
        why: "compiles Java's side of the differential test; its package has `java`, too",
        optional: false,
    },
    Need {
        command: "python3",
        origin: Origin::Debian("python3"),
        why: "runs the benchmarks' Python candidate, whose tests are skipped without it",
        optional: true,
    },
    Need {
        command: "tmux",
        origin: Origin::Debian("tmux"),
        why: "is the terminal that the test of the demo reads and types into",
        optional: false,
    },
    Need {
        command: "llvm-symbolizer",
        origin: Origin::Debian("llvm"),
        why: "puts names and lines into the sanitizers' stacks",
        optional: true,
    },
];

impl Need {
    /// The need for `command`.
    pub fn named(command: &str) -> Option<&'static Need> {
        NEEDS.iter().find(|need| need.command == command)
    }

    /// The command that installs it.
    pub fn advice(&self) -> String {
        match self.origin {
            Origin::Debian(package) => format!("apt-get install {package}"),
            Origin::Component(name) => format!("rustup component add {name}"),
        }
    }
}

/// What to do about a need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Nothing: it is installed.
    None,
    /// Install this Debian package.
    Install(&'static str),
    /// Go on without it.
    DoWithout,
    /// Fail and say what to install.
    Stop,
}

/// What this machine allows.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// True for root on a system with `apt-get`.
    pub may_install: bool,
}

impl Machine {
    /// This machine.
    pub fn here() -> Self {
        let user = Command::new("id").arg("-u").output();
        let root = user.is_ok_and(|output| output.stdout.trim_ascii() == b"0");
        Self {
            may_install: root && is_on_path("apt-get"),
        }
    }

    /// What to do about `need`, which is `present` or not.
    pub fn remedy(self, need: &Need, present: bool) -> Remedy {
        match (present, need.origin) {
            (true, _) => Remedy::None,
            (false, Origin::Debian(package)) if self.may_install => Remedy::Install(package),
            _ if need.optional => Remedy::DoWithout,
            _ => Remedy::Stop,
        }
    }
}

/// Installs what steps need; updates the package lists once.
#[derive(Debug)]
pub struct Installer {
    machine: Machine,
    is_updated: bool,
}

impl Installer {
    /// An installer for this machine.
    pub fn new() -> Self {
        Self {
            machine: Machine::here(),
            is_updated: false,
        }
    }

    /// Installs what `gate` needs, or returns what to do about it.
    ///
    /// # Errors
    /// If `apt-get` cannot be started.
    pub fn prepare(&mut self, gate: &Gate, step: &mut Step) -> Result<Result<(), String>> {
        for need in gate.needs.iter().filter_map(|command| Need::named(command)) {
            let mut remedy = self.machine.remedy(need, is_present(need));
            if let Remedy::Install(package) = remedy {
                self.install(package, step)?;
                remedy = Machine { may_install: false }.remedy(need, is_present(need));
            }
            let (command, advice) = (need.command, need.advice());
            match remedy {
                Remedy::DoWithout => {
                    step.say(&format!("without `{command}`; to install it: {advice}"))?
                }
                Remedy::Stop => return Ok(Err(format!("needs `{command}`: {advice}"))),
                Remedy::None | Remedy::Install(_) => {}
            }
        }
        Ok(Ok(()))
    }

    fn install(&mut self, package: &str, step: &mut Step) -> Result<()> {
        if !self.is_updated {
            step.run(&mut apt(&["update"]))?;
            self.is_updated = true;
        }
        step.run(&mut apt(&[
            "install",
            "-y",
            "--no-install-recommends",
            package,
        ]))?;
        Ok(())
    }
}

impl Default for Installer {
    fn default() -> Self {
        Self::new()
    }
}

/// The first program that `gate` needs and that is missing, and how to install it.
pub fn missing(gate: &Gate) -> Option<String> {
    let mut needs = gate.needs.iter().filter_map(|command| Need::named(command));
    let need = needs.find(|need| !need.optional && !is_present(need))?;
    Some(format!("needs `{}`: {}", need.command, need.advice()))
}

fn apt(arguments: &[&str]) -> Command {
    let mut command = Command::new("apt-get");
    command
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive");
    command
}

/// A proxy of rustup may be on the path without its component, so a component is run.
fn is_present(need: &Need) -> bool {
    match need.origin {
        Origin::Debian(_) => is_on_path(need.command),
        Origin::Component(_) => {
            let asked = Command::new(need.command).arg("--version").output();
            asked.is_ok_and(|output| output.status.success())
        }
    }
}

fn is_on_path(command: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(command).is_file())
}

/// A table of all programs, and whether everything that is needed is installed.
pub fn overview() -> (String, bool) {
    let mut rows = vec![["command", "state", "for", "why", "to install"].map(String::from)];
    let mut complete = true;
    for need in NEEDS {
        let present = is_present(need);
        complete &= present || need.optional;
        let state = match (present, need.optional) {
            (true, _) => "installed",
            (false, true) => "missing, optional",
            (false, false) => "missing",
        };
        let users = GATES
            .iter()
            .filter(|gate| gate.needs.contains(&need.command));
        let users: Vec<&str> = users.map(|gate| gate.name).collect();
        rows.push([
            need.command.into(),
            state.into(),
            users.join(", "),
            need.why.into(),
            need.advice(),
        ]);
    }
    (aligned(&rows), complete)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: Machine = Machine { may_install: true };
    const USER: Machine = Machine { may_install: false };

    #[test]
    fn a_missing_package_is_installed_by_root_and_asked_for_otherwise() {
        let git = Need::named("git").unwrap();
        assert_eq!(ROOT.remedy(git, true), Remedy::None);
        assert_eq!(ROOT.remedy(git, false), Remedy::Install("git"));
        assert_eq!(USER.remedy(git, false), Remedy::Stop);
        assert_eq!(git.advice(), "apt-get install git");
    }

    #[test]
    fn a_missing_component_is_asked_for_even_of_root() {
        let clippy = Need::named("cargo-clippy").unwrap();
        assert_eq!(ROOT.remedy(clippy, false), Remedy::Stop);
        assert_eq!(clippy.advice(), "rustup component add clippy");
    }

    #[test]
    fn an_optional_need_never_stops_a_step() {
        let symbols = Need::named("llvm-symbolizer").unwrap();
        assert_eq!(USER.remedy(symbols, false), Remedy::DoWithout);
    }

    #[test]
    fn every_need_is_used_by_a_gate() {
        for need in NEEDS {
            assert!(
                GATES.iter().any(|gate| gate.needs.contains(&need.command)),
                "{}",
                need.command
            );
        }
    }
}
