//! A copy of the crates that mutants may be made in.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use toml::{Table, Value};

/// Makes `work` a workspace with the same `crates/`, profiles and lock file. Files that are equal
/// already are left alone, so that cargo does not build them again.
///
/// # Errors
/// If a file cannot be read or written.
pub fn workspace(root: &Path, work: &Path) -> Result<()> {
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
    mirror(&root.join("crates"), &work.join("crates"))
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

fn mirror(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(to)? {
        let old = entry?.path();
        let gone = !from.join(old.file_name().unwrap_or_default()).exists();
        match (gone, old.is_dir()) {
            (true, true) => fs::remove_dir_all(&old)?,
            (true, false) => fs::remove_file(&old)?,
            _ => {}
        }
    }
    for entry in fs::read_dir(from).with_context(|| format!("no folder {}", from.display()))? {
        let entry = entry?;
        let (source, name) = (entry.path(), entry.file_name());
        if !source.is_dir() {
            put(&to.join(name), &fs::read(&source)?)?;
        } else if name != "target" {
            mirror(&source, &to.join(name))?;
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
