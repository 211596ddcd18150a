//! What cargo decided: the versions of the peers, and the settings of the profile. Both are read when this is compiled.

use std::collections::BTreeMap;

const LOCK: &str = include_str!("../../../../Cargo.lock");
const WORKSPACE: &str = include_str!("../../../../Cargo.toml");

/// The crates that the bench uses and that are no peers.
const TOOLS: &[&str] = &[
    "anyhow",
    "clap",
    "hdrhistogram",
    "indicatif",
    "png",
    "rustix",
    "serde",
    "serde_json",
    "signal-hook",
    "tempfile",
];

/// The peers among the dependencies of the bench, by name.
pub(super) fn versions() -> BTreeMap<String, String> {
    versions_in(LOCK)
}

fn versions_in(lock: &str) -> BTreeMap<String, String> {
    let packages: Vec<&str> = lock.split("[[package]]").collect();
    let value = |package: &str, key: &str| {
        let lines = package.lines();
        let found = lines.filter_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""));
        found
            .map(|rest| rest.trim_end_matches('"').to_owned())
            .next()
    };
    let is_bench = |package: &&&str| value(package, "name").as_deref() == Some("millpond-bench");
    let bench = packages.iter().find(is_bench).copied().unwrap_or_default();
    let needs = bench.lines().filter_map(|line| {
        let need = line.trim().strip_prefix('"')?.strip_suffix("\",")?;
        let (name, version) = need.split_once(' ').unwrap_or((need, ""));
        Some((name, version))
    });
    let is_peer = |name: &str| !TOOLS.contains(&name);
    needs
        .filter(|(name, _)| is_peer(name))
        .filter_map(|(name, version)| {
            let of_it = |package: &&&str| value(package, "name").as_deref() == Some(name);
            let locked = || value(packages.iter().find(of_it)?, "version");
            // It has a version here if the workspace has several.
            let version = Some(version.split(' ').next().unwrap_or(version).to_owned());
            let version = version.filter(|text| !text.is_empty()).or_else(locked)?;
            Some((name.to_owned(), version))
        })
        .collect()
}

/// The settings of a profile in the workspace, in its order.
pub(super) fn profile(name: &str) -> Vec<(String, String)> {
    let head = format!("[profile.{name}]");
    let section = WORKSPACE.lines().skip_while(|line| *line != head).skip(1);
    let section = section.take_while(|line| !line.starts_with('['));
    let settings = section.filter(|line| !line.starts_with('#'));
    let pairs = settings.filter_map(|line| line.split_once(" = "));
    let plain = |text: &str| text.trim_matches('"').to_owned();
    pairs
        .map(|(key, value)| (plain(key), plain(value)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_have_versions_and_tools_are_no_peers() {
        let versions = versions();
        for peer in [
            "crossbeam-channel",
            "kanal",
            "rayon-core",
            "tokio",
            "millpond",
        ] {
            assert!(versions.contains_key(peer), "{peer} is not in {versions:?}");
        }
        assert!(!versions.contains_key("clap"), "{versions:?}");
        assert!(
            versions.values().all(|version| version.contains('.')),
            "{versions:?}"
        );
    }

    #[test]
    fn of_several_versions_the_one_that_is_used_counts() {
        let lock = "[[package]]\nname = \"flume\"\nversion = \"0.11.0\"\n\n\
            [[package]]\nname = \"flume\"\nversion = \"0.12.0\"\n\n\
            [[package]]\nname = \"kanal\"\nversion = \"0.1.1\"\n\n\
            [[package]]\nname = \"millpond-bench\"\nversion = \"0.1.0\"\ndependencies = [\n \"flume 0.12.0\",\n \"kanal\",\n]\n";
        let versions = versions_in(lock);
        assert_eq!(versions["flume"], "0.12.0");
        assert_eq!(versions["kanal"], "0.1.1");
        assert_eq!(versions.len(), 2);
    }

    #[test]
    fn the_profile_is_that_of_the_workspace() {
        let release = profile("release");
        assert!(
            release.contains(&("lto".into(), "thin".into())),
            "{release:?}"
        );
        assert!(profile("no such profile").is_empty());
    }
}
