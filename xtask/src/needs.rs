//! Programs from outside: who needs them, and how to get them.
//!
//! Before a step runs, its needs are looked for. What is missing is installed where we may (root
//! on Debian), otherwise the step says what to type. A need that only makes a step nicer never
//! fails it.

use std::env;
use std::process::Command;

use anyhow::Result;

use crate::runner::aligned;
use crate::stage::Stage;
use crate::table::{GATES, Gate};

/// Where a command comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A Debian package.
    Debian(&'static str),
    /// A component of the Rust toolchain.
    Component(&'static str),
}

/// A program from outside.
#[derive(Clone, Copy, Debug)]
pub struct Need {
    /// The command.
    pub command: &'static str,
    /// Where it comes from.
    pub origin: Origin,
    /// What it is for.
    pub why: &'static str,
    /// True if the steps that want it can do without.
    pub optional: bool,
}

/// Every program from outside. Which gate needs which is in [`GATES`].
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
        why: "lints the code and guards the seams",
        optional: false,
    },
    Need {
        command: "git",
        origin: Origin::Debian("git"),
        why: "knows which files are ours",
        optional: false,
    },
    Need {
        command: "chromium",
        origin: Origin::Debian("chromium"),
        why: "shows the page of the bench, so that a test can look at its plots",
        optional: false,
    },
    Need {
        command: "javac",
        // Version 17 or newer, with the compiler; the plain runtime does not have it.
        origin: Origin::Debian("default-jdk-headless"),
        why: "compiles Java's side of the differential test, and brings `java` along",
        optional: false,
    },
    Need {
        command: "python3",
        origin: Origin::Debian("python3"),
        why: "runs the bench's guest in Python, whose tests are skipped without it",
        optional: true,
    },
    Need {
        command: "tmux",
        origin: Origin::Debian("tmux"),
        why: "has a terminal that the test of the demo can look at and type into",
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

    /// What a person types to get it.
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
    /// Nothing: it is here.
    None,
    /// Install this Debian package.
    Install(&'static str),
    /// Go on without it.
    DoWithout,
    /// Stop and say what to install.
    Stop,
}

/// What the machine lets us do.
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

/// Fetches what steps need; asks the package lists once.
#[derive(Debug)]
pub struct Larder {
    machine: Machine,
    is_updated: bool,
}

impl Larder {
    /// A larder for this machine.
    pub fn new() -> Self {
        Self {
            machine: Machine::here(),
            is_updated: false,
        }
    }

    /// Makes sure that `gate` has what it needs; otherwise tells what to do.
    ///
    /// # Errors
    /// If `apt-get` cannot be started.
    pub fn prepare(&mut self, gate: &Gate, stage: &mut Stage) -> Result<Result<(), String>> {
        for need in gate.needs.iter().filter_map(|command| Need::named(command)) {
            let mut remedy = self.machine.remedy(need, is_present(need));
            if let Remedy::Install(package) = remedy {
                self.install(package, stage)?;
                remedy = Machine { may_install: false }.remedy(need, is_present(need));
            }
            let (command, advice) = (need.command, need.advice());
            match remedy {
                Remedy::DoWithout => {
                    stage.say(&format!("without `{command}`; to get it: {advice}"))?
                }
                Remedy::Stop => return Ok(Err(format!("needs `{command}`: {advice}"))),
                Remedy::None | Remedy::Install(_) => {}
            }
        }
        Ok(Ok(()))
    }

    fn install(&mut self, package: &str, stage: &mut Stage) -> Result<()> {
        if !self.is_updated {
            stage.run(&mut apt(&["update"]))?;
            self.is_updated = true;
        }
        stage.run(&mut apt(&[
            "install",
            "-y",
            "--no-install-recommends",
            package,
        ]))?;
        Ok(())
    }
}

impl Default for Larder {
    fn default() -> Self {
        Self::new()
    }
}

/// What `gate` needs and is not here, and how to get it. Nothing is installed.
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

/// A proxy of rustup may stand on the path without its component: a component must answer.
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

/// What is here and what is missing, as a table; and whether everything that must be here is.
pub fn overview() -> (String, bool) {
    let mut rows = vec![["command", "state", "for", "why", "to get it"].map(String::from)];
    let mut complete = true;
    for need in NEEDS {
        let present = is_present(need);
        complete &= present || need.optional;
        let state = match (present, need.optional) {
            (true, _) => "here",
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
    fn every_need_is_somebodys_need() {
        for need in NEEDS {
            assert!(
                GATES.iter().any(|gate| gate.needs.contains(&need.command)),
                "{}",
                need.command
            );
        }
    }
}
