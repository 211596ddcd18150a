//! The gate `layers`: file tables.

use std::path::Path;

use anyhow::Result;
use xtask::gates::layers::file_tables::check_with;
use xtask::report::{Report, Rule};

use crate::tree::{Tree, fails, passes};

const POOL: &str = "crates/millpond/src/pool/mod.rs";
const TABLE: &str = "//! A pool.\n//!\n//! | file | what |\n//! |---|---|\n";
const MODULES: &str =
    "mod ctl;\npub(crate) mod workers;\n#[cfg(test)]\nmod tests;\nmod inline {}\n";

fn enforced(root: &Path) -> Result<Report> {
    check_with(root, Rule::Enforced)
}

fn pool(rows: &str) -> Tree {
    Tree::new(&[(POOL, &format!("{TABLE}{rows}{MODULES}"))])
}

#[test]
fn a_complete_table_passes_however_it_names_the_modules() {
    passes(
        enforced,
        &pool("//! | `ctl` | the control word |\n//! | [`workers`] | who |\n"),
    );
    passes(enforced, &pool("//! | `ctl.rs`, `workers/` | both |\n"));
}

#[test]
fn a_module_that_the_table_lacks_fails() {
    let tree = pool("//! | `ctl` | the control word |\n");
    fails(
        enforced,
        &tree,
        &format!("{POOL}:5"),
        "the file table lacks `workers`",
    );
    let pending = check_with(tree.root(), Rule::Pending).unwrap();
    assert!(
        pending.is_clean() && pending.pending.len() == 1,
        "{pending}"
    );
}

#[test]
fn a_row_without_its_module_fails() {
    let tree = pool("//! | `ctl`, `workers` | both |\n//! | `tests` | gone |\n");
    fails(
        enforced,
        &tree,
        &format!("{POOL}:6"),
        "lists `tests`, which is no module",
    );
}

/// What users need not see is not on the page of a module.
#[test]
fn a_table_in_the_plain_comment_below_the_header_is_checked_just_the_same() {
    const NOTES: &str = "//! A pool.\n\n// | file | what |\n// |---|---|\n";
    let pool = |rows: &str| Tree::new(&[(POOL, &format!("{NOTES}{rows}\n{MODULES}"))]);
    passes(
        enforced,
        &pool("// | `ctl` | the control word |\n// | `workers` | who |\n"),
    );
    fails(
        enforced,
        &pool("// | `ctl` | the control word |\n"),
        &format!("{POOL}:5"),
        "the file table lacks `workers`",
    );
    fails(
        enforced,
        &pool("// | `ctl`, `workers` | both |\n// | `tests` | gone |\n"),
        &format!("{POOL}:6"),
        "lists `tests`, which is no module",
    );
    // Below the first code it is a comment like any other.
    let late =
        format!("//! A pool.\n{MODULES}\n// | file | what |\n// |---|---|\n// | `ctl` | x |\n");
    fails(
        enforced,
        &Tree::new(&[(POOL, &late)]),
        POOL,
        "no table `| file | what |`",
    );
}

#[test]
fn a_library_folder_without_a_table_fails_if_it_has_two_modules() {
    let tree = Tree::new(&[(POOL, MODULES)]);
    fails(
        enforced,
        &tree,
        POOL,
        "no table `| file | what |`; it lists `ctl`, `workers`",
    );
    let tree =
        pool("//! | `ctl`, `workers` | both |\n").with("crates/millpond/src/a/mod.rs", "mod b;\n");
    passes(enforced, &tree);
}

#[test]
fn a_table_of_another_crate_is_checked_but_not_required() {
    let tree = pool("//! | `ctl`, `workers` | both |\n").with("crates/bench/src/a/mod.rs", MODULES);
    passes(enforced, &tree);
    let tree = tree.with(
        "crates/bench/src/a/mod.rs",
        &format!("{TABLE}//! | `ctl` | x |\n{MODULES}"),
    );
    fails(
        enforced,
        &tree,
        "crates/bench/src/a/mod.rs:5",
        "lacks `workers`",
    );
}
