//! The sources that a program was built from.

use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// What is measured: a change elsewhere changes no figure.
const MEASURED: &[&str] = &[
    "crates/millpond",
    "crates/millpond-raw",
    "crates/millpond-stack",
    "crates/millpond-bench",
    "crates/millpond-cli",
    "Cargo.toml",
    "Cargo.lock",
];

/// Below these folders of a crate are tests and other things that no program is built from.
const NOT_BUILT: &[&str] = &["/tests/", "/benches/", "/examples/"];

/// The state of the sources. An unknown value is `null`: there may be no git, or no sources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sources {
    /// The last commit that changed them.
    pub commit: Option<String>,
    /// Whether they were changed after that.
    pub is_dirty: Option<bool>,
    /// Whether the program is older than one of them.
    pub is_stale: Option<bool>,
}

impl Sources {
    /// Reads those of this program.
    pub fn read() -> Self {
        let program = std::env::current_exe().ok();
        let built = program.and_then(|program| fs::metadata(program).ok()?.modified().ok());
        Self::read_in(&root(), built)
    }

    fn read_in(root: &Path, built: Option<SystemTime>) -> Self {
        let git = |arguments: &[&str]| {
            let mut git = Command::new("git");
            let said = git
                .current_dir(root)
                .args(arguments)
                .arg("--")
                .args(MEASURED)
                .output()
                .ok()?;
            said.status
                .success()
                .then(|| String::from_utf8_lossy(&said.stdout).into_owned())
        };
        let commit = git(&["log", "-1", "--format=%H"]).map(|text| text.trim().to_owned());
        let newest = git(&["ls-files"]).and_then(|files| {
            let built = files
                .lines()
                .filter(|file| NOT_BUILT.iter().all(|part| !file.contains(part)));
            built
                .filter_map(|file| fs::metadata(root.join(file)).ok()?.modified().ok())
                .max()
        });
        Sources {
            commit: commit.filter(|commit| !commit.is_empty()),
            is_dirty: git(&["status", "--porcelain"]).map(|changes| !changes.trim().is_empty()),
            is_stale: newest.zip(built).map(|(newest, built)| newest > built),
        }
    }

    /// The commit for people, as in `commit 29646f90ab12, changed since`.
    pub fn text(&self) -> String {
        let Some(commit) = &self.commit else {
            return "unknown commit".into();
        };
        let short = commit.get(..12).unwrap_or(commit);
        let changed = if self.is_dirty == Some(true) {
            ", changed since"
        } else {
            ""
        };
        format!("commit {short}{changed}")
    }
}

/// The folder of the workspace.
pub(crate) fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).unwrap_or(own).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// A repository with one commit of one source.
    fn repository() -> Option<tempfile::TempDir> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("crates/millpond/src");
        fs::create_dir_all(&file).unwrap();
        fs::write(file.join("lib.rs"), "//! A pond.\n").unwrap();
        let user = [
            "-c",
            "user.name=A",
            "-c",
            "user.email=a@example.org",
            "-c",
            "commit.gpgsign=false",
        ];
        for step in [
            &["init", "-q"][..],
            &["add", "."],
            &["commit", "-q", "-m", "one"],
        ] {
            let mut git = Command::new("git");
            let done = git
                .current_dir(folder.path())
                .args(user)
                .args(step)
                .status();
            if !done.ok()?.success() {
                return None;
            }
        }
        Some(folder)
    }

    #[test]
    fn a_change_of_a_source_is_noticed_and_one_elsewhere_is_none() {
        let folder = repository().expect("git makes a commit");
        let in_an_hour = Some(SystemTime::now() + Duration::from_secs(3_600));
        let read = || Sources::read_in(folder.path(), in_an_hour);
        let clean = read();
        assert_eq!((clean.is_dirty, clean.is_stale), (Some(false), Some(false)));
        assert_eq!(clean.commit.as_ref().map(String::len), Some(40));
        fs::write(folder.path().join("README.md"), "new").unwrap();
        assert_eq!(read(), clean);
        fs::write(folder.path().join("crates/millpond/src/lib.rs"), "changed").unwrap();
        assert_eq!(read().is_dirty, Some(true));
        assert!(read().text().ends_with(", changed since"));
    }

    #[test]
    fn a_program_that_is_older_than_its_sources_is_stale() {
        let folder = repository().expect("git makes a commit");
        let long_ago = SystemTime::UNIX_EPOCH;
        assert_eq!(
            Sources::read_in(folder.path(), Some(long_ago)).is_stale,
            Some(true)
        );
    }

    #[test]
    fn where_there_is_no_repository_nothing_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let unknown = Sources::read_in(folder.path(), None);
        assert_eq!(unknown, Sources::default());
        assert_eq!(unknown.text(), "unknown commit");
    }
}
