//! A copy of the crates with some files changed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use toml::{Table, Value};

/// The text of changed and added files, by their paths from the root.
type Changed = BTreeMap<PathBuf, String>;

/// Makes `work` a workspace with the same `crates/`, profiles and lock file, but for what is
/// `changed`. Files that are up to date are not written, so that cargo does not build them again.
///
/// # Errors
/// If a file cannot be read or written.
pub fn workspace(root: &Path, work: &Path, changed: &Changed) -> Result<()> {
    let manifest = fs::read_to_string(root.join("Cargo.toml"))?;
    put(
        &work.join("Cargo.toml"),
        members_only(&manifest)?.as_bytes(),
    )?;
    if let (Ok(lock), false) = (
        fs::read(root.join("Cargo.lock")),
        work.join("Cargo.lock").exists(),
    ) {
        put(&work.join("Cargo.lock"), &lock)?;
    }
    mirror(root, work, Path::new("crates"), changed)?;
    for (file, text) in changed {
        put(&work.join(file), text.as_bytes())?;
    }
    Ok(())
}

/// The workspace manifest without members outside `crates/`.
fn members_only(manifest: &str) -> Result<String> {
    let mut manifest: Table = manifest.parse().context("Cargo.toml is no manifest")?;
    let workspace = manifest.get_mut("workspace").and_then(Value::as_table_mut);
    let workspace = workspace.context("Cargo.toml has no [workspace]")?;
    workspace.insert("members".into(), Value::Array(vec!["crates/*".into()]));
    workspace.remove("default-members");
    Ok(manifest.to_string())
}

fn mirror(root: &Path, work: &Path, folder: &Path, changed: &Changed) -> Result<()> {
    let (from, to) = (root.join(folder), work.join(folder));
    fs::create_dir_all(&to)?;
    for entry in fs::read_dir(&to)? {
        let entry = entry?;
        let (old, path) = (entry.path(), folder.join(entry.file_name()));
        let gone = !root.join(&path).exists() && !changed.contains_key(&path);
        match (gone, old.is_dir()) {
            (true, true) => fs::remove_dir_all(&old)?,
            (true, false) => fs::remove_file(&old)?,
            _ => {}
        }
    }
    for entry in fs::read_dir(&from).with_context(|| format!("no folder {}", from.display()))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        if entry.path().is_dir() {
            if entry.file_name() != "target" {
                mirror(root, work, &path, changed)?;
            }
        } else if !changed.contains_key(&path) {
            put(&work.join(&path), &fs::read(entry.path())?)?;
        }
    }
    Ok(())
}

fn put(file: &Path, content: &[u8]) -> Result<()> {
    if fs::read(file).is_ok_and(|old| old == content) {
        return Ok(());
    }
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(file, content).with_context(|| format!("cannot write {}", file.display()))
}
