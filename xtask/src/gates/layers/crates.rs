//! Which crate may use which.
//!
//! ```text
//!  L5  millpond-cli
//!  L4  millpond-console
//!  L3  millpond-govern  |  L2  millpond-vthread      (neither uses the other)
//!  L1  millpond  ->  millpond-stack                  (stack dumps; optional)
//!  L0  millpond-raw
//!  beside: millpond-bench (L0 to L4, for the cli)   examples   xtask
//!  for tests only: millpond-conform, and below it millpond-testkit
//! ```

use std::path::Path;

use anyhow::{Context, Result};
use toml::{Table, Value};

use crate::report::Report;
use crate::text::files;

/// A crate and the crates of this workspace that it may use.
struct Room {
    name: &'static str,
    may_use: &'static [&'static str],
}

const LIBRARY: &[&str] = &[
    "millpond-raw",
    "millpond-stack",
    "millpond",
    "millpond-vthread",
    "millpond-govern",
    "millpond-console",
];

/// The table of crates. A new crate gets an entry here.
const ROOMS: &[Room] = &[
    Room {
        name: "millpond-raw",
        may_use: &[],
    },
    Room {
        name: "millpond-stack",
        may_use: &["millpond-raw"],
    },
    Room {
        name: "millpond",
        may_use: &["millpond-raw", "millpond-stack"],
    },
    Room {
        name: "millpond-vthread",
        may_use: &["millpond-raw", "millpond"],
    },
    Room {
        name: "millpond-govern",
        may_use: &["millpond-raw", "millpond"],
    },
    Room {
        name: "millpond-console",
        may_use: &[
            "millpond-raw",
            "millpond",
            "millpond-vthread",
            "millpond-govern",
        ],
    },
    Room {
        name: "millpond-cli",
        may_use: &[
            "millpond-raw",
            "millpond-stack",
            "millpond",
            "millpond-vthread",
            "millpond-govern",
            "millpond-console",
            "millpond-bench",
        ],
    },
    Room {
        name: "millpond-bench",
        may_use: LIBRARY,
    },
    Room {
        name: TESTS_ONLY[1],
        may_use: &["millpond-raw", "millpond"],
    },
    Room {
        name: TESTS_ONLY[0],
        may_use: &[
            TESTS_ONLY[1],
            "millpond-raw",
            "millpond-stack",
            "millpond",
            "millpond-vthread",
            "millpond-govern",
            "millpond-console",
            "millpond-cli",
            "millpond-bench",
        ],
    },
    Room {
        name: "xtask",
        may_use: &[],
    },
];

/// The behaviour suites and the test kit: any crate may test itself with them, none may ship them.
const TESTS_ONLY: [&str; 2] = ["millpond-conform", "millpond-testkit"];

/// Checks every manifest of the workspace.
///
/// # Errors
/// If a manifest cannot be read.
pub fn check(root: &Path) -> Result<Report> {
    let workspace = manifest(root, Path::new("Cargo.toml"))?;
    let mut report = Report::default();
    for package in files::packages(root)? {
        let file = package.join("Cargo.toml");
        check_manifest(&file, &manifest(root, &file)?, &workspace, &mut report);
    }
    Ok(report)
}

fn check_manifest(file: &Path, manifest: &Table, workspace: &Table, report: &mut Report) {
    report.checked += 1;
    let name = manifest
        .get("package")
        .and_then(|package| package.get("name"))
        .and_then(Value::as_str)
        .unwrap_or("(a crate without a name)");
    let room = ROOMS.iter().find(|room| room.name == name);
    let may_use = match room {
        Some(room) => room.may_use,
        None if file.starts_with("examples") => LIBRARY,
        None => {
            let where_to = "add it to ROOMS in xtask/src/gates/layers/crates.rs";
            return report.add(file, 0, format!("crate `{name}` has no level: {where_to}"));
        }
    };
    for (used, kind) in dependencies(manifest, workspace) {
        let ours = ROOMS.iter().any(|room| room.name == used) || used.starts_with("millpond");
        if !ours || may_use.contains(&used.as_str()) {
            continue;
        }
        if TESTS_ONLY.contains(&used.as_str()) {
            if kind != "dev-dependencies" {
                report.add(
                    file,
                    0,
                    format!("`{used}` is for tests: make it a dev-dependency"),
                );
            }
        } else if used != name {
            let rule =
                "dependencies point down only (see ROOMS in xtask/src/gates/layers/crates.rs)";
            report.add(
                file,
                0,
                format!("`{name}` must not use `{used}` ({kind}): {rule}"),
            );
        }
    }
}

/// Package names in all dependency tables, with the kind of the table.
fn dependencies(manifest: &Table, workspace: &Table) -> Vec<(String, &'static str)> {
    let mut tables = vec![manifest];
    if let Some(targets) = manifest.get("target").and_then(Value::as_table) {
        tables.extend(targets.values().filter_map(Value::as_table));
    }
    let mut found = Vec::new();
    for table in tables {
        for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let Some(entries) = table.get(kind).and_then(Value::as_table) else {
                continue;
            };
            for (key, entry) in entries {
                found.push((package_name(key, entry, workspace), kind));
            }
        }
    }
    found
}

/// A dependency may carry another name than its package, here or in the workspace's table.
fn package_name(key: &str, entry: &Value, workspace: &Table) -> String {
    let inherited = entry.get("workspace").is_some().then(|| {
        workspace
            .get("workspace")
            .and_then(|w| w.get("dependencies"))
            .and_then(|d| d.get(key))
    });
    [Some(entry), inherited.flatten()]
        .into_iter()
        .flatten()
        .find_map(|entry| entry.get("package").and_then(Value::as_str))
        .unwrap_or(key)
        .to_string()
}

fn manifest(root: &Path, file: &Path) -> Result<Table> {
    files::read(root, file)?
        .parse()
        .with_context(|| format!("{} is no manifest", file.display()))
}
