//! Listing files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The files below `folder` that end in `.extension`, sorted, relative to `root`. A folder that
/// does not exist holds none; `target` and hidden folders are not entered.
///
/// # Errors
/// If a folder cannot be read.
pub fn below(root: &Path, folder: &str, extension: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    walk(&root.join(folder), &mut |file| {
        if file.extension().is_some_and(|own| own == extension) {
            found.push(file.strip_prefix(root).unwrap_or(file).to_path_buf());
        }
    })?;
    found.sort();
    Ok(found)
}

/// The folders directly below `folder` that hold a manifest, sorted, relative to `root`.
///
/// # Errors
/// If the folder cannot be read.
pub fn packages_in(root: &Path, folder: &str) -> Result<Vec<PathBuf>> {
    let full = root.join(folder);
    if !full.is_dir() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(&full)? {
        let path = entry?.path();
        if path.join("Cargo.toml").is_file() {
            found.push(path.strip_prefix(root).unwrap_or(&path).to_path_buf());
        }
    }
    found.sort();
    Ok(found)
}

/// Every package of the workspace, relative to `root`: all in `crates`, all in `examples`, and `xtask`.
///
/// # Errors
/// If a folder cannot be read.
pub fn packages(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = packages_in(root, "crates")?;
    found.extend(packages_in(root, "examples")?);
    for single in ["examples", "xtask"] {
        if root.join(single).join("Cargo.toml").is_file() {
            found.push(single.into());
        }
    }
    Ok(found)
}

/// Every file of the repository, relative to `root`: what git tracks, and what is new and not
/// ignored. Without a repository (a source archive), everything but `target` and hidden folders.
///
/// # Errors
/// If git fails or a folder cannot be read.
pub fn owned(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    if root.join(".git").exists() {
        let listed = Command::new("git")
            .args([
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
            ])
            .current_dir(root)
            .output()
            .context("cannot run git: install it, or work in a folder without `.git`")?;
        if !listed.status.success() {
            bail!(
                "git ls-files failed: {}",
                String::from_utf8_lossy(&listed.stderr).trim()
            );
        }
        let names = String::from_utf8(listed.stdout).context("a file name is not UTF-8")?;
        found.extend(names.split_terminator('\0').map(PathBuf::from));
        // A tracked file may be deleted in the working tree.
        found.retain(|file| root.join(file).is_file());
    } else {
        walk(root, &mut |file| {
            found.push(file.strip_prefix(root).unwrap_or(file).to_path_buf())
        })?;
    }
    found.sort();
    found.dedup();
    Ok(found)
}

fn walk(folder: &Path, visit: &mut dyn FnMut(&Path)) -> Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() {
            if name != "target" && !name.to_string_lossy().starts_with('.') {
                walk(&path, visit)?;
            }
        } else {
            visit(&path);
        }
    }
    Ok(())
}

/// Reads a file as text.
///
/// # Errors
/// If it cannot be read; the message names it.
pub fn read(root: &Path, file: &Path) -> Result<String> {
    let full = root.join(file);
    fs::read_to_string(&full).with_context(|| format!("cannot read {}", full.display()))
}
