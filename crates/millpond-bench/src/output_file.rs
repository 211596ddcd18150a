//! A file for figures that is known to be writable before anything is measured.
//!
//! Minutes of measuring should not end in "no such folder", so a trial file is written beside
//! it when it is opened, and removed again. Nothing is written until the end: a run that is broken off
//! leaves no half-written file, and the file of an earlier run as it was. The new one replaces it whole
//! or not at all.

use anyhow::{Context, Result, ensure};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A file to be written at the end.
#[derive(Clone, Debug)]
pub struct OutputFile {
    /// Its purpose, in messages: "the figures".
    what: &'static str,
    file: PathBuf,
}

impl OutputFile {
    /// Opens `file` after a test that it is writable.
    ///
    /// # Errors
    ///
    /// If it is not.
    pub fn open(what: &'static str, file: &Path) -> Result<Self> {
        // A link stays a link, and what it leads to is written.
        let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
        let output_file = OutputFile { what, file };
        output_file
            .try_out()
            .with_context(|| output_file.cannot())?;
        Ok(output_file)
    }

    /// As above, for a file called `name` in `folder`, which is made if it does not exist.
    ///
    /// # Errors
    ///
    /// If it cannot be made, or nothing can be written in it.
    pub fn open_in(what: &'static str, folder: &Path, name: &str) -> Result<Self> {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot write {what} to the folder {}", folder.display()))?;
        Self::open(what, &folder.join(name))
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Writes the file, whole or not at all.
    ///
    /// # Errors
    ///
    /// If that is not possible any more.
    pub fn write(&self, text: &str) -> Result<()> {
        let written = if self.is_special() {
            fs::write(&self.file, text)
        } else {
            let part = self.part();
            fs::write(&part, text)
                .and_then(|()| fs::rename(&part, &self.file))
                .inspect_err(|_| drop(fs::remove_file(&part)))
        };
        written.with_context(|| self.cannot())
    }

    fn try_out(&self) -> Result<()> {
        ensure!(!self.file.is_dir(), "that is a folder, and not a file");
        if self.is_special() {
            return Ok(());
        }
        let part = self.part();
        fs::write(&part, "")?;
        fs::remove_file(&part)?;
        // The folder lets files be made; an old one in it may still not be ours to change.
        match fs::OpenOptions::new().append(true).open(&self.file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Devices and pipes are written to; they have no place that another could take.
    fn is_special(&self) -> bool {
        fs::metadata(&self.file).is_ok_and(|meta| !meta.is_file() && !meta.is_dir())
    }

    fn part(&self) -> PathBuf {
        let mut name = OsString::from(self.file.file_name().unwrap_or_default());
        name.push(format!(".{}.part", std::process::id()));
        self.file.with_file_name(name)
    }

    fn cannot(&self) -> String {
        format!("cannot write {} to {}", self.what, self.file.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn an_output_file_that_is_only_opened_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("figures.json");
        let _new = OutputFile::open("the figures", &file).unwrap();
        assert!(names(folder.path()).is_empty());
        fs::write(&file, "old").unwrap();
        let output_file = OutputFile::open("the figures", &file).unwrap();
        assert_eq!(names(folder.path()), ["figures.json"]);
        assert_eq!(fs::read_to_string(&file).unwrap(), "old");
        output_file.write("new").unwrap();
        assert_eq!(names(folder.path()), ["figures.json"]);
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    }

    #[test]
    fn a_folder_is_made_and_what_is_none_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a/b");
        let output_file = OutputFile::open_in("the page", &deep, "index.html").unwrap();
        output_file.write("<p>").unwrap();
        assert_eq!(names(&deep), ["index.html"]);
        let below_a_file = deep.join("index.html/c");
        let error = OutputFile::open_in("the page", &below_a_file, "index.html").unwrap_err();
        let error = error.to_string();
        assert!(error.starts_with("cannot write the page to the folder "));
        assert!(error.ends_with("index.html/c"), "{error}");
        let error = format!("{:#}", OutputFile::open("the figures", &deep).unwrap_err());
        assert!(
            error.ends_with("that is a folder, and not a file"),
            "{error}"
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        OutputFile::open("the figures", &link)
            .unwrap()
            .write("new")
            .unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    }

    #[cfg(unix)]
    #[test]
    fn a_device_is_written_to_and_not_replaced() {
        let device = OutputFile::open("the figures", Path::new("/dev/null")).unwrap();
        device.write("gone").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }
}
