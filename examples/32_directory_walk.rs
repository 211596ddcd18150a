//! How do I walk a directory tree in parallel, and stop it?
//!
//! ```sh
//! cargo run -p examples --example 32_directory_walk
//! ```
//!
//! ```text
//! 15 directories, 30 files, 300 bytes
//! stopped: interrupted: the running task was asked to stop
//! ```

#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a program of a user's counts with std's atomics, and waits for a state"
)]

use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::forkjoin::{self, ForkJoinPool, ForkScope};
use millpond::interrupt::{self, Interrupted};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::{env, fs, io, process};

#[derive(Default)]
struct Found {
    directories: AtomicU64,
    files: AtomicU64,
    bytes: AtomicU64,
    error: Mutex<Option<io::Error>>,
}

/// Reads one directory, and spawns a job for each one inside. The scope ends when the last one is over.
fn walk<'scope>(scope: &'scope ForkScope<'scope, '_>, path: PathBuf, found: &'scope Found) {
    // Also on a worker that has stolen this job: an interrupt of the task reaches all its parts.
    if interrupt::is_interrupted() {
        return;
    }
    let read = || -> io::Result<()> {
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                found.directories.fetch_add(1, Relaxed);
                scope.spawn(move |scope| walk(scope, entry.path(), found));
            } else {
                found.files.fetch_add(1, Relaxed);
                found.bytes.fetch_add(entry.metadata()?.len(), Relaxed);
            }
        }
        Ok(())
    };
    if let Err(error) = read() {
        *found.error.lock().expect("nobody panics under it") = Some(error);
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let top = env::temp_dir().join(format!("millpond-walk-{}", process::id()));
    plant(&top, 3)?;
    let pool = ForkJoinPool::builder("walk").parallelism(4).build()?;

    let found = Found::default();
    let path = top.clone();
    pool.install(|| forkjoin::scope(|scope| walk(scope, path, &found)));
    if let Some(error) = found.error.into_inner()? {
        return Err(error.into());
    }
    let (files, bytes) = (found.files.into_inner(), found.bytes.into_inner());
    let directories = 1 + found.directories.into_inner();
    println!("{directories} directories, {files} files, {bytes} bytes");

    // Again and again, until somebody has enough.
    let path = top.clone();
    let endless = pool.submit(move || {
        while interrupt::check().is_ok() {
            let (found, path) = (Found::default(), path.clone());
            forkjoin::scope(|scope| walk(scope, path, &found));
        }
    })?;
    while !endless.is_started() {
        std::thread::yield_now();
    }
    endless.interrupt();
    pool.close()?; // It waits for the end, which comes.
    println!("stopped: {Interrupted}");
    fs::remove_dir_all(top)?;
    Ok(())
}

/// Makes a tree to walk over.
fn plant(path: &Path, depth: u32) -> io::Result<()> {
    fs::create_dir_all(path)?;
    for name in ["rye", "wheat"] {
        fs::write(path.join(name), "10 grains\n")?;
    }
    for name in ["left", "right"].iter().filter(|_| depth > 0) {
        plant(&path.join(name), depth - 1)?;
    }
    Ok(())
}
