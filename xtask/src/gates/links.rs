//! No dead links in documents and comments.
//!
//! Links to files and anchors of this repository are checked. Addresses on the net must be
//! well-formed and are not fetched: a gate gives the same answer without a network. In Rust comments,
//! a target such as `Self::lock` or `crate::park` is left to rustdoc.

use std::collections::HashMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::Result;

use crate::report::Report;
use crate::step::Step;
use crate::table::Outcome;
use crate::text::files;
use crate::text::markdown::{Document, Pointer};
use crate::text::source::Source;
use crate::workspace::Workspace;

/// A path in backticks that starts like this is a path of this repository.
const PATHS: &[&str] = &["crates/", "docs/", "examples/", "xtask/", ".ci/", ".cargo/"];

/// Checks every document and every comment below `root`.
///
/// # Errors
/// If a file cannot be read.
pub fn check(root: &Path) -> Result<Report> {
    let mut links = Links {
        root,
        anchors: HashMap::new(),
        report: Report::default(),
    };
    for file in files::owned(root)? {
        match file.extension().and_then(|extension| extension.to_str()) {
            Some("md") => links.document(&file)?,
            Some("rs") => links.comments(&file)?,
            _ => {}
        }
    }
    Ok(links.report)
}

/// The gate.
///
/// # Errors
/// As [`check`].
pub fn run(workspace: &Workspace, step: &mut Step) -> Result<Outcome> {
    Outcome::of_report(&check(&workspace.root)?, step)
}

struct Links<'a> {
    root: &'a Path,
    anchors: HashMap<PathBuf, Vec<String>>,
    report: Report,
}

impl Links<'_> {
    fn document(&mut self, file: &Path) -> Result<()> {
        let document = Document::parse(&files::read(self.root, file)?);
        for (line, pointer) in document.pointers {
            let wrong = match &pointer {
                Pointer::Link(target) => self.link(file, target)?,
                Pointer::Undefined(name) => Some(format!("nothing defines the link `[{name}]`")),
                Pointer::Code(code) => self.code(code),
            };
            self.note(file, line, wrong);
        }
        Ok(())
    }

    fn comments(&mut self, file: &Path) -> Result<()> {
        for (first, block) in Source::read(self.root, file)?.comment_blocks() {
            for (line, pointer) in Document::parse(&block).pointers {
                let wrong = match &pointer {
                    Pointer::Link(target) if is_left_to_rustdoc(target) => None,
                    Pointer::Link(target) => self.link(file, target)?,
                    // Slices and intra-doc links look like this; rustdoc knows which is which.
                    Pointer::Undefined(_) => None,
                    Pointer::Code(code) => self.code(code),
                };
                self.note(file, first + line - 1, wrong);
            }
        }
        Ok(())
    }

    fn note(&mut self, file: &Path, line: usize, wrong: Option<String>) {
        self.report.checked += 1;
        if let Some(text) = wrong {
            self.report.add(file, line, text);
        }
    }

    fn link(&mut self, file: &Path, target: &str) -> Result<Option<String>> {
        if let Some((scheme, rest)) = target.split_once("://") {
            return Ok((!is_address(scheme, rest)).then(|| format!("`{target}` is no address")));
        }
        if target.starts_with("mailto:") {
            return Ok(None);
        }
        let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
        let path = path.replace("%20", " ");
        let aim = match path.as_str() {
            "" => file.to_path_buf(),
            path => match path.strip_prefix('/') {
                Some(from_root) => flat(Path::new(from_root)),
                None => flat(&file.parent().unwrap_or(Path::new("")).join(path)),
            },
        };
        if aim.starts_with("..") {
            return Ok(Some(format!("`{target}` leaves the repository")));
        }
        if !self.root.join(&aim).exists() {
            return Ok(Some(format!(
                "dead link `{target}`: {} does not exist",
                aim.display()
            )));
        }
        if anchor.is_empty() || aim.extension().is_none_or(|extension| extension != "md") {
            return Ok(None);
        }
        let known = self.anchors_of(&aim)?.iter().any(|own| own == anchor);
        Ok((!known).then(|| format!("dead anchor `{target}`: no heading gives `#{anchor}`")))
    }

    fn anchors_of(&mut self, file: &Path) -> Result<&[String]> {
        if !self.anchors.contains_key(file) {
            let document = Document::parse(&files::read(self.root, file)?);
            self.anchors.insert(file.to_path_buf(), document.anchors);
        }
        Ok(&self.anchors[file])
    }

    fn code(&self, code: &str) -> Option<String> {
        let is_path = PATHS.iter().any(|start| code.starts_with(start))
            && code
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "_./-*{},".contains(c));
        if !is_path {
            return None;
        }
        let dead = alternatives(code)
            .into_iter()
            .find(|path| !exists(self.root, path))?;
        Some(format!("dead path `{dead}`: it does not exist"))
    }
}

/// Names of items, and anchors in a page of rustdoc.
fn is_left_to_rustdoc(target: &str) -> bool {
    let plain_name = !target.contains('/') && !target.contains('.') && !target.contains(' ');
    target.contains("::") || target.starts_with('#') || plain_name
}

fn is_address(scheme: &str, rest: &str) -> bool {
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.split(':').next().unwrap_or_default();
    let good_host = !host.is_empty()
        && host.split('.').all(|part| {
            !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
        })
        && (host.contains('.') || host == "localhost");
    matches!(scheme, "http" | "https") && good_host && !rest.contains(char::is_whitespace)
}

/// Resolves `.` and `..` without reading the disk.
fn flat(path: &Path) -> PathBuf {
    let mut flat = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if flat.file_name().is_some() => {
                flat.pop();
            }
            part => flat.push(part),
        }
    }
    flat
}

/// `a/{b,c}.rs` means `a/b.rs` and `a/c.rs`.
fn alternatives(path: &str) -> Vec<String> {
    let Some((front, rest)) = path.split_once('{') else {
        return vec![path.to_string()];
    };
    let Some((list, back)) = rest.split_once('}') else {
        return vec![path.to_string()];
    };
    list.split(',')
        .flat_map(|one| alternatives(&format!("{front}{}{back}", one.trim())))
        .collect()
}

/// True if the path exists; `*` in a component matches anything.
fn exists(root: &Path, path: &str) -> bool {
    let mut folders = vec![root.to_path_buf()];
    for part in path.split('/').filter(|part| !part.is_empty()) {
        folders = folders
            .iter()
            .flat_map(|folder| matches_in(folder, part))
            .collect();
    }
    !folders.is_empty()
}

fn matches_in(folder: &Path, part: &str) -> Vec<PathBuf> {
    let Some((front, back)) = part.split_once('*') else {
        let path = folder.join(part);
        return if path.exists() {
            vec![path]
        } else {
            Vec::new()
        };
    };
    // A second star in one part would need a matcher; one star covers `loom_*.rs`.
    let back = back.trim_start_matches('*');
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let fits = |name: &str| {
        name.len() >= front.len() + back.len() && name.starts_with(front) && name.ends_with(back)
    };
    entries
        .filter(|entry| fits(&entry.file_name().to_string_lossy()))
        .map(|entry| entry.path())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_need_a_scheme_and_a_host() {
        assert!(is_address("https", "docs.rs/millpond?x=1#y"));
        assert!(is_address("http", "localhost:8080/"));
        assert!(!is_address("htps", "docs.rs"));
        assert!(!is_address("https", "/docs"));
        assert!(!is_address("https", "docs..rs/x"));
        assert!(!is_address("https", "docs/x"));
    }

    #[test]
    fn braces_mean_each_of_their_names() {
        assert_eq!(alternatives("a/{b,c}/d"), ["a/b/d", "a/c/d"]);
    }

    #[test]
    fn parent_folders_are_resolved_without_the_disk() {
        assert_eq!(flat(Path::new("docs/../README.md")), Path::new("README.md"));
        assert_eq!(flat(Path::new("../x")), Path::new("../x"));
    }
}
