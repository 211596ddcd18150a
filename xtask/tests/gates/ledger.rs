//! The gate `ledger`: unsafe code and `docs/safety.md`.

use xtask::gates::ledger::{check, safety};

use crate::tree::{Tree, fails, passes};

const HEADER: &str =
    "//! Parking.\n//!\n//! - **PARK-1** one owner\n//! - **PARK-2** no second one\n";

const DOCUMENT: &str = "# Safety\n\n| module | promise | proof |\n|---|---|---|\n\
    | `park.rs` | nobody sleeps for ever | `tests/loom_park.rs` under loom |\n";

const SAFE_ROOT: &str = "//! Says unsafe in words only.\n#![forbid(unsafe_code)]\n\
    const WORD: &str = \"unsafe { }\"; // unsafe\n";

fn clean() -> Tree {
    park("// SAFETY: PARK-1 - we own it.\nfn f() { g(unsafe { h() }) }\n")
        .with(
            "crates/millpond-raw/Cargo.toml",
            "[package]\nname = \"millpond-raw\"\n",
        )
        .with("crates/millpond-raw/src/lib.rs", "//! Raw.\nmod park;\n")
        .with(
            "crates/millpond-raw/tests/loom_park.rs",
            "fn f() { unsafe { g() } }",
        )
        .with(
            "crates/millpond/Cargo.toml",
            "[package]\nname = \"millpond\"\n",
        )
        .with("crates/millpond/src/lib.rs", SAFE_ROOT)
        .with("docs/safety.md", DOCUMENT)
}

/// A tree with nothing but `park.rs`.
fn park(code: &str) -> Tree {
    Tree::new(&[(
        "crates/millpond-raw/src/park.rs",
        &format!("{HEADER}{code}"),
    )])
}

/// Where the code of `park` starts.
fn line(number: usize) -> String {
    format!(
        "crates/millpond-raw/src/park.rs:{}",
        HEADER.lines().count() + number
    )
}

#[test]
fn a_complete_ledger_passes() {
    passes(check, &clean());
}

#[test]
fn unsafe_code_outside_its_crate_fails_in_every_kind_of_file() {
    for place in [
        "src/a.rs",
        "tests/a.rs",
        "benches/a.rs",
        "examples/a.rs",
        "build.rs",
    ] {
        let file = format!("crates/millpond/{place}");
        let tree = clean().with(&file, "\nmacro_rules! m { () => { unsafe { f() } } }");
        fails(
            check,
            &tree,
            &format!("{file}:2"),
            "unsafe code belongs in crates/millpond-raw",
        );
    }
}

#[test]
fn xtask_and_examples_are_checked_too() {
    let file = "xtask/src/lib.rs";
    let tree = clean()
        .with("xtask/Cargo.toml", "[package]\nname = \"xtask\"\n")
        .with(file, "#![forbid(unsafe_code)]\nunsafe fn f() {}");
    fails(check, &tree, &format!("{file}:2"), "unsafe code belongs");
    let tree = clean().with("examples/one.rs", "fn main() { unsafe { f() } }");
    fails(check, &tree, "examples/one.rs:1", "safe code only");
}

#[test]
fn every_crate_root_forbids_unsafe_code() {
    for root in [
        "src/lib.rs",
        "src/main.rs",
        "src/bin/a.rs",
        "src/bin/b/main.rs",
    ] {
        let file = format!("crates/millpond/{root}");
        let tree = clean().with(&file, "// #![forbid(unsafe_code)]\nfn main() {}");
        fails(check, &tree, &file, "#![forbid(unsafe_code)]");
    }
}

#[test]
fn a_root_named_in_the_manifest_forbids_unsafe_code_too() {
    let manifest = "[package]\nname = \"millpond\"\n[[bin]]\nname = \"a\"\npath = \"src/a.rs\"\n";
    let tree = clean().with("crates/millpond/Cargo.toml", manifest).with(
        "crates/millpond/src/a.rs",
        "#![deny(unsafe_code)]\nfn main() {}",
    );
    fails(
        check,
        &tree,
        "crates/millpond/src/a.rs:1",
        "#![forbid(unsafe_code)]",
    );
}

#[test]
fn a_comment_may_be_above_the_expression_or_its_statement() {
    let code = "fn f() {\n\
        // SAFETY: PARK-1 - above the statement.\n\
        let a = g(\n    1,\n    |x| unsafe { h(x) },\n);\n\
        let b = g(\n    1,\n    // SAFETY: PARK-2, PARK-1 - above the argument,\n    // in two lines.\n    \
        unsafe { h(x) },\n);\n\
        match a {\n    // SAFETY: PARK-1 - above the arm.\n    Some(x) => unsafe { h(x) },\n    None => b,\n}\n}\n\
        // SAFETY: PARK-1 - above the attribute.\n#[allow(x)]\nunsafe impl Send for A {}\n";
    passes(safety::check, &park(code));
}

#[test]
fn an_unsafe_block_without_a_comment_fails() {
    fails(
        safety::check,
        &park("fn f() {\n    unsafe { g() }\n}\n"),
        &line(2),
        "SAFETY",
    );
}

#[test]
fn the_comment_of_another_statement_does_not_count() {
    let code =
        "fn f() {\n    // SAFETY: PARK-1 - ours.\n    unsafe { g() };\n    unsafe { g() };\n}\n";
    fails(safety::check, &park(code), &line(4), "SAFETY");
}

#[test]
fn a_comment_behind_an_empty_line_does_not_count() {
    let code = "// SAFETY: PARK-1 - somewhere above.\n\nunsafe impl Send for A {}\n";
    fails(safety::check, &park(code), &line(3), "directly above");
}

#[test]
fn documentation_is_no_safety_comment() {
    let code = "/// SAFETY: PARK-1 - as documentation.\nunsafe impl Send for A {}\n";
    fails(safety::check, &park(code), &line(2), "SAFETY");
}

#[test]
fn an_unsafe_block_in_a_macro_fails_like_any_other() {
    let code = "macro_rules! m {\n    () => {\n        unsafe { g() }\n    };\n}\n";
    fails(safety::check, &park(code), &line(3), "SAFETY");
}

#[test]
fn a_comment_without_an_invariant_fails() {
    let code = "// SAFETY: this is fine.\nunsafe impl Send for A {}\n";
    fails(safety::check, &park(code), &line(2), "cites no invariant");
}

#[test]
fn an_invariant_that_no_header_states_fails() {
    let code = "// SAFETY: PARK-1 and PARK-7 - hopefully.\nunsafe impl Send for A {}\n";
    fails(safety::check, &park(code), &line(2), "cites PARK-7");
}

#[test]
fn an_invariant_stated_twice_fails() {
    let tree = Tree::new(&[(
        "crates/millpond-raw/src/a.rs",
        "//! - **A1** one\n//! - **A1** two\n",
    )]);
    fails(
        safety::check,
        &tree,
        "crates/millpond-raw/src/a.rs:2",
        "stated twice",
    );
}

#[test]
fn a_folder_states_invariants_for_its_files_and_for_no_others() {
    let cites = "// SAFETY: T1 - see the folder.\nunsafe impl Send for A {}\n";
    let tree = || {
        Tree::new(&[
            (
                "crates/millpond-raw/src/task/mod.rs",
                "//! - **T1** one owner\n",
            ),
            ("crates/millpond-raw/src/task/cell/mod.rs", "//! Cells.\n"),
            ("crates/millpond-raw/src/task/cell/raw.rs", cites),
        ])
    };
    passes(safety::check, &tree());
    let tree = tree().with("crates/millpond-raw/src/ring.rs", cites);
    fails(
        safety::check,
        &tree,
        "crates/millpond-raw/src/ring.rs:2",
        "cites T1",
    );
}

#[test]
fn an_unsafe_function_or_trait_documents_its_safety() {
    let good = "/// Frees.\n///\n/// # Safety\n/// Once.\n#[inline]\npub(crate) unsafe fn f() {}\n\
        /// # Safety\n/// Be good.\npub unsafe trait T {}\ntype F = unsafe fn(u8);\n";
    passes(safety::check, &park(good));
    fails(
        safety::check,
        &park("/// Frees.\npub unsafe fn f() {}\n"),
        &line(2),
        "# Safety",
    );
    fails(
        safety::check,
        &park("unsafe extern \"C\" fn f() {}\n"),
        &line(1),
        "# Safety",
    );
    fails(
        safety::check,
        &park("pub unsafe trait T {}\n"),
        &line(1),
        "# Safety",
    );
}

#[test]
fn a_workspace_without_the_document_fails() {
    fails(
        check,
        &clean().without("docs/safety.md"),
        "docs/safety.md",
        "the ledger is missing",
    );
}

#[test]
fn a_file_with_unsafe_code_and_no_row_fails() {
    let code = "//! - **RING-1** x\n// SAFETY: RING-1 - x.\nunsafe impl Send for A {}\n";
    let tree = clean().with("crates/millpond-raw/src/ring.rs", code);
    fails(
        check,
        &tree,
        "crates/millpond-raw/src/ring.rs",
        "no row in docs/safety.md",
    );
}

#[test]
fn a_row_without_its_file_or_without_unsafe_code_fails() {
    for module in ["gone.rs", "lib.rs"] {
        let document = format!("{DOCUMENT}| `{module}` | x | `tests/loom_park.rs` |\n");
        let tree = clean().with("docs/safety.md", &document);
        fails(check, &tree, "docs/safety.md:6", "drop the row");
    }
}

#[test]
fn a_row_without_a_module_fails() {
    let tree = clean().with("docs/safety.md", &format!("{DOCUMENT}| park | x | y |\n"));
    fails(
        check,
        &tree,
        "docs/safety.md:6",
        "names a file in backticks",
    );
}

#[test]
fn a_proof_that_does_not_exist_fails() {
    let tree = clean().with(
        "docs/safety.md",
        &DOCUMENT.replace("loom_park", "loom_gone"),
    );
    fails(
        check,
        &tree,
        "docs/safety.md:5",
        "`tests/loom_gone.rs` does not exist",
    );
}

#[test]
fn a_row_without_a_proof_fails() {
    let tree = clean().with(
        "docs/safety.md",
        &DOCUMENT.replace("`tests/loom_park.rs`", "trust us"),
    );
    fails(check, &tree, "docs/safety.md:5", "no proof for `park.rs`");
}
