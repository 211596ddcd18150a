//! Planted workspaces.

use std::fs;
use std::path::Path;

use anyhow::Result;
use tempfile::TempDir;
use xtask::report::Report;

/// A small workspace in a temporary folder.
#[derive(Debug)]
pub(crate) struct Tree {
    folder: TempDir,
}

impl Tree {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let tree = Self {
            folder: tempfile::tempdir().expect("a temporary folder"),
        };
        files
            .iter()
            .fold(tree, |tree, (path, text)| tree.with(path, text))
    }

    /// The same tree with one file added or replaced.
    pub(crate) fn with(self, path: &str, text: &str) -> Self {
        let full = self.root().join(path);
        fs::create_dir_all(full.parent().expect("a file has a folder")).expect("a folder");
        fs::write(full, text).expect("a file");
        self
    }

    pub(crate) fn without(self, path: &str) -> Self {
        fs::remove_file(self.root().join(path)).expect("a file to remove");
        self
    }

    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }
}

type Check = fn(&Path) -> Result<Report>;

/// The gate checks something and finds nothing wrong.
#[track_caller]
pub(crate) fn passes(check: Check, tree: &Tree) {
    let report = check(tree.root()).expect("the gate can read the tree");
    assert!(report.is_clean(), "{report}");
}

/// The gate finds exactly one violation, at `place`, and its text contains `words`.
#[track_caller]
pub(crate) fn fails(check: Check, tree: &Tree, place: &str, words: &str) {
    let report = check(tree.root()).expect("the gate can read the tree");
    let [finding] = report.findings.as_slice() else {
        panic!("not one finding:\n{report}")
    };
    let finding = finding.to_string();
    assert!(
        finding.starts_with(place),
        "`{place}` is not the place of: {finding}"
    );
    assert!(
        finding.contains(words),
        "`{words}` is not said in: {finding}"
    );
}
