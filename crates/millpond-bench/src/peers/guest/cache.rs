//! The folder where things stay that take a while to make: built programs, and a Java that was fetched.
//!
//! It is `millpond` in the user's cache folder, or in the folder for temporary files where there is
//! none. Nothing in it is missed when it is deleted.

use anyhow::{Context, Result};
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, fs, process};

/// The folder. It may not exist yet.
pub fn folder() -> PathBuf {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty());
    let caches = set("XDG_CACHE_HOME").map(PathBuf::from);
    let caches = caches.or_else(|| Some(Path::new(&set("HOME")?).join(".cache")));
    caches.unwrap_or_else(env::temp_dir).join("millpond")
}

/// The folder `name` for this `key`, filled by `make` if it is not there yet. A reader finds it
/// whole: it is filled under another name.
///
/// # Errors
///
/// If it cannot be made.
pub fn made<K: Hash>(
    name: &str,
    key: &K,
    make: impl FnOnce(&Path) -> Result<()>,
) -> Result<PathBuf> {
    made_in(&folder(), name, key, make)
}

fn made_in<K: Hash>(
    caches: &Path,
    name: &str,
    key: &K,
    make: impl FnOnce(&Path) -> Result<()>,
) -> Result<PathBuf> {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    let made = caches.join(format!("{name}-{:016x}", hasher.finish()));
    if made.is_dir() {
        return Ok(made);
    }
    let unfinished = caches.join(format!(".{name}-{}", unique()));
    fs::create_dir_all(&unfinished)
        .with_context(|| format!("cannot make the folder {}", unfinished.display()))?;
    let filled = make(&unfinished).and_then(|()| {
        // Another process may have been faster: then its folder is as good.
        match fs::rename(&unfinished, &made) {
            Err(error) if !made.is_dir() => Err(error.into()),
            _ => Ok(()),
        }
    });
    // Gone already if it has been renamed.
    let _ = fs::remove_dir_all(&unfinished);
    filled.map(|()| made)
}

/// A unique name, in this process and others.
fn unique() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{}-{number}", process::id())
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;

    #[test]
    fn what_is_there_is_not_made_again_and_another_key_is_another_folder() {
        let caches = tempfile::tempdir().unwrap();
        let make = |key: &str| {
            made_in(caches.path(), "mill", &key, |folder| {
                Ok(fs::write(folder.join("stone"), key)?)
            })
        };
        let first = make("a").unwrap();
        let again = made_in(caches.path(), "mill", &"a", |_| bail!("made twice")).unwrap();
        assert_eq!(first, again);
        let other = make("b").unwrap();
        assert_ne!(first, other);
        assert_eq!(fs::read_to_string(first.join("stone")).unwrap(), "a");
        assert_eq!(fs::read_to_string(other.join("stone")).unwrap(), "b");
    }

    #[test]
    fn what_could_not_be_made_leaves_nothing_behind() {
        let caches = tempfile::tempdir().unwrap();
        let made = made_in(caches.path(), "mill", &1, |folder| {
            fs::write(folder.join("half"), "")?;
            bail!("no stone")
        });
        assert_eq!(made.unwrap_err().to_string(), "no stone");
        assert_eq!(fs::read_dir(caches.path()).unwrap().count(), 0);
    }

    #[test]
    fn many_that_make_the_same_at_once_all_get_it_whole() {
        let caches = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let made = made_in(caches.path(), "mill", &1, |folder| {
                        Ok(fs::write(folder.join("stone"), "whole")?)
                    });
                    let stone = fs::read_to_string(made.unwrap().join("stone")).unwrap();
                    assert_eq!(stone, "whole");
                });
            }
        });
        assert_eq!(fs::read_dir(caches.path()).unwrap().count(), 1);
    }
}
