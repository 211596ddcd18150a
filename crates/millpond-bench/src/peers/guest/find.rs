//! Finds programs on this machine.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The path of `program`: in the folder `bin` of the home that the variable `home` names, or on the PATH.
pub fn program(program: &str, home: Option<&str>) -> Option<PathBuf> {
    let home = home.and_then(env::var_os);
    among(program, home.as_deref(), env::var_os("PATH").as_deref())
}

/// A home comes first: it was set on purpose.
fn among(program: &str, home: Option<&OsStr>, path: Option<&OsStr>) -> Option<PathBuf> {
    let at_home = home.into_iter().map(|home| Path::new(home).join("bin"));
    let on_path = path.into_iter().flat_map(env::split_paths);
    at_home
        .chain(on_path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_home_comes_before_the_path_and_a_home_without_the_program_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("home/bin")).unwrap();
        fs::create_dir_all(at("first")).unwrap();
        fs::create_dir_all(at("second")).unwrap();
        fs::write(at("home/bin/java"), "").unwrap();
        fs::write(at("second/java"), "").unwrap();
        fs::write(at("second/go"), "").unwrap();
        let path = env::join_paths([at("first"), at("second")]).unwrap();
        let (home, path) = (at("home").into_os_string(), path.as_os_str());
        let find = |name, home| among(name, home, Some(path));
        assert_eq!(
            find("java", Some(home.as_os_str())),
            Some(at("home/bin/java"))
        );
        assert_eq!(find("java", None), Some(at("second/java")));
        assert_eq!(find("go", Some(home.as_os_str())), Some(at("second/go")));
        assert_eq!(find("cobol", Some(home.as_os_str())), None);
        assert_eq!(among("go", None, None), None);
    }

    #[test]
    fn a_folder_with_the_name_of_a_program_is_none() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("go")).unwrap();
        assert_eq!(among("go", None, Some(folder.path().as_os_str())), None);
    }
}
