//! The gate `layers`.

use xtask::gates::layers::check;

use crate::tree::{Tree, fails, passes};

fn manifest(name: &str, rest: &str) -> String {
    format!("[package]\nname = \"{name}\"\n{rest}")
}

/// Three crates, and the library with four modules.
fn clean() -> Tree {
    let raw = "[dependencies]\nmillpond-raw = { workspace = true }\n";
    Tree::new(&[
        (
            "Cargo.toml",
            "[workspace.dependencies]\npond = { path = \"crates/millpond\", package = \"millpond\" }\n",
        ),
        (
            "crates/millpond-raw/Cargo.toml",
            &manifest("millpond-raw", "[dependencies]\nlibc = \"1\"\n"),
        ),
        ("crates/millpond/Cargo.toml", &manifest("millpond", raw)),
        (
            "crates/millpond-cli/Cargo.toml",
            &manifest("millpond-cli", "[dependencies]\nmillpond = \"1\"\n"),
        ),
        (
            "xtask/Cargo.toml",
            &manifest("xtask", "[dependencies]\nanyhow = \"1\"\n"),
        ),
        (
            "crates/millpond/src/lib.rs",
            "pub mod machine; pub mod time; pub use crate::time::Clock;",
        ),
        (
            "crates/millpond/src/machine.rs",
            "//! Mentions crate::pool::Pool only here.\npub fn cores() {}",
        ),
        (
            "crates/millpond/src/time/mod.rs",
            "mod wheel;\nuse super::machine;\npub struct Clock;",
        ),
        (
            "crates/millpond/src/time/wheel.rs",
            "use super::Clock;\nfn f() { crate::machine::cores() }",
        ),
        (
            "crates/millpond/src/pool.rs",
            "use crate::{time::Clock, machine};",
        ),
    ])
}

fn with_dependencies(name: &str, rest: &str) -> Tree {
    clean().with(&format!("crates/{name}/Cargo.toml"), &manifest(name, rest))
}

#[test]
fn dependencies_that_point_down_pass() {
    passes(check, &clean());
}

#[test]
fn an_empty_workspace_does_not_pass() {
    let tree = Tree::new(&[("Cargo.toml", "")]);
    assert!(!check(tree.root()).unwrap().is_clean());
}

#[test]
fn a_crate_that_uses_a_higher_one_fails() {
    let tree = with_dependencies("millpond-raw", "[dependencies]\nmillpond = \"1\"\n");
    fails(
        check,
        &tree,
        "crates/millpond-raw/Cargo.toml",
        "must not use `millpond`",
    );
}

#[track_caller]
fn raw_must_not_use_millpond(tree: &Tree) {
    let place = "crates/millpond-raw/Cargo.toml";
    fails(check, tree, place, "must not use `millpond`");
}

#[test]
fn the_kind_of_dependency_does_not_help() {
    for kind in [
        "dev-dependencies",
        "build-dependencies",
        "target.'cfg(unix)'.dependencies",
    ] {
        let tree = with_dependencies("millpond-raw", &format!("[{kind}]\nmillpond = \"1\"\n"));
        raw_must_not_use_millpond(&tree);
    }
}

#[test]
fn another_name_for_a_crate_does_not_help() {
    let renamed = "[dependencies]\nbasin = { package = \"millpond\", version = \"1\" }\n";
    let inherited = "[dependencies]\npond = { workspace = true }\n";
    for rest in [renamed, inherited] {
        let tree = with_dependencies("millpond-raw", rest);
        raw_must_not_use_millpond(&tree);
    }
}

#[test]
fn virtual_threads_and_governance_do_not_use_each_other() {
    for (one, other) in [
        ("millpond-vthread", "millpond-govern"),
        ("millpond-govern", "millpond-vthread"),
    ] {
        let tree = with_dependencies(one, &format!("[dependencies]\n{other} = \"1\"\n"));
        fails(
            check,
            &tree,
            &format!("crates/{one}"),
            &format!("must not use `{other}`"),
        );
    }
}

#[test]
fn the_behaviour_suites_are_for_tests_only() {
    for suites in ["millpond-conform", "millpond-testkit"] {
        let tests = format!("[dev-dependencies]\n{suites} = \"1\"\n");
        passes(check, &with_dependencies("millpond", &tests));
        let ships = format!("[dependencies]\n{suites} = \"1\"\n");
        let tree = with_dependencies("millpond", &ships);
        let place = "crates/millpond/Cargo.toml";
        fails(check, &tree, place, "make it a dev-dependency");
    }
    let uses = "[dependencies]\nmillpond-testkit = \"1\"\n";
    passes(check, &with_dependencies("millpond-conform", uses));
    let uses = "[dependencies]\nmillpond-conform = \"1\"\n";
    let tree = with_dependencies("millpond-testkit", uses);
    fails(
        check,
        &tree,
        "crates/millpond-testkit/",
        "make it a dev-dependency",
    );
}

#[test]
fn only_the_program_uses_the_benchmarks() {
    let uses = "[dependencies]\nmillpond-bench = \"1\"\n";
    passes(check, &with_dependencies("millpond-cli", uses));
    fails(
        check,
        &with_dependencies("millpond", uses),
        "crates/millpond/",
        "`millpond-bench`",
    );
}

#[test]
fn xtask_uses_no_crate_of_the_workspace() {
    let rest = manifest("xtask", "[dependencies]\nmillpond = \"1\"\n");
    fails(
        check,
        &clean().with("xtask/Cargo.toml", &rest),
        "xtask/Cargo.toml",
        "`millpond`",
    );
}

#[test]
fn examples_may_use_the_library_but_not_the_suites() {
    let example = |rest| clean().with("examples/a/Cargo.toml", &manifest("a", rest));
    passes(check, &example("[dependencies]\nmillpond = \"1\"\n"));
    let tree = example("[dependencies]\nmillpond-conform = \"1\"\n");
    fails(check, &tree, "examples/a/Cargo.toml", "`millpond-conform`");
}

#[test]
fn an_unknown_crate_fails_and_the_text_says_where_to_add_it() {
    let tree = with_dependencies("millpond-dam", "");
    fails(
        check,
        &tree,
        "crates/millpond-dam",
        "add it to ROOMS in xtask/src/gates/layers/crates.rs",
    );
}

#[test]
fn a_module_that_imports_a_higher_one_fails() {
    let tree = clean().with("crates/millpond/src/machine.rs", "use crate::time::Clock;");
    fails(
        check,
        &tree,
        "crates/millpond/src/machine.rs:1",
        "(rank 0) uses `time` (rank 1)",
    );
}

#[test]
fn siblings_never_import_each_other() {
    let tree = clean().with(
        "crates/millpond/src/meter.rs",
        "\nuse crate::{\n    machine,\n};",
    );
    fails(
        check,
        &tree,
        "crates/millpond/src/meter.rs:3",
        "uses its sibling `machine`",
    );
}

#[test]
fn a_path_of_supers_to_the_root_is_an_import() {
    let tree = clean().with(
        "crates/millpond/src/time/wheel.rs",
        "use super::super::pool::Pool;",
    );
    fails(
        check,
        &tree,
        "crates/millpond/src/time/wheel.rs:1",
        "uses `pool` (rank 7)",
    );
}

#[test]
fn a_path_in_a_macro_is_an_import() {
    let tree = clean().with(
        "crates/millpond/src/machine.rs",
        "fn f() { println!(\"{}\", crate::pool::SIZE) }",
    );
    fails(
        check,
        &tree,
        "crates/millpond/src/machine.rs:1",
        "uses `pool`",
    );
}

#[test]
fn tests_in_the_source_follow_the_rule() {
    let text = "#[cfg(test)]\nmod tests {\n    use crate::pool::Pool;\n}";
    let tree = clean().with("crates/millpond/src/machine.rs", text);
    fails(
        check,
        &tree,
        "crates/millpond/src/machine.rs:3",
        "uses `pool`",
    );
}

#[test]
fn tests_outside_the_source_may_import_anything() {
    passes(
        check,
        &clean().with("crates/millpond/tests/all.rs", "use crate::pool::Pool;"),
    );
}

#[test]
fn an_import_through_the_crate_root_fails() {
    let tree = clean().with("crates/millpond/src/machine.rs", "use crate::Clock;");
    fails(
        check,
        &tree,
        "crates/millpond/src/machine.rs:1",
        "name the module it lives in",
    );
}

#[test]
fn an_unknown_module_fails_and_the_text_says_where_to_add_it() {
    let tree = clean().with("crates/millpond/src/dam.rs", "");
    fails(
        check,
        &tree,
        "crates/millpond/src/dam.rs",
        "add it to RANKS in xtask/src/gates/layers/modules.rs",
    );
}
