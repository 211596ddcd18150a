//! The gate `ledger`: orderings and their labels.

use xtask::gates::ledger::orderings::check;

use crate::tree::{Tree, fails, passes};

const FILE: &str = "crates/millpond-raw/src/park.rs";

const CLEAN: &str = "//! - `[P-tok]` the token is handed over.
use Ordering::{Acquire, Release};
fn put(&self) {
    self.word.store(1, Ordering::Release); // [P-tok]
}
fn take(&self) -> bool {
    // [P-tok] The comment line above counts too.
    self.word.load(Acquire) == 1 && self.word.load(Ordering::Relaxed) == 1
}
#[cfg(test)]
mod tests {
    fn free() { WORD.load(Ordering::SeqCst); }
}
";

fn park(text: &str) -> Tree {
    Tree::new(&[(FILE, text)])
}

#[test]
fn labelled_pairs_pass() {
    passes(check, &park(CLEAN));
}

#[test]
fn an_ordering_without_a_label_fails() {
    let tree = park(&CLEAN.replace("// [P-tok]\n", "// the token\n").replace(
        "fn take",
        "fn look(&self) { self.word.swap(2, Ordering::AcqRel); } // [P-tok]\nfn take",
    ));
    fails(check, &tree, &format!("{FILE}:4"), "`Release` has no label");
}

#[test]
fn a_bare_name_needs_a_label_as_much_as_a_path() {
    let tree = park(&format!("{CLEAN}fn f() {{ X.load(Acquire); }}\n"));
    fails(check, &tree, FILE, "`Acquire` has no label");
}

#[test]
fn a_label_in_a_string_or_in_documentation_does_not_count() {
    let tree = park(&format!(
        "{CLEAN}fn f() {{ X.load(Acquire, \"[P-tok]\"); }}\n"
    ));
    fails(check, &tree, FILE, "has no label");
    let tree = park(&format!(
        "{CLEAN}/// [P-tok]\nfn f() {{ X.load(Acquire); }}\n"
    ));
    fails(check, &tree, FILE, "has no label");
}

#[test]
fn the_label_of_the_line_above_does_not_count() {
    let text = "fn f() {\n    X.load(Acquire); // [P-tok]\n    X.load(Acquire);\n}\n";
    let tree = park(&format!("{CLEAN}{text}"));
    fails(
        check,
        &tree,
        &format!("{FILE}:{}", CLEAN.lines().count() + 3),
        "has no label",
    );
}

#[test]
fn a_label_that_no_header_explains_fails() {
    let tree = park(&CLEAN.replace("//! - `[P-tok]`", "//! - the pair:"));
    let report = check(tree.root()).unwrap();
    assert_eq!(report.findings.len(), 2, "one for each end:\n{report}");
    assert!(
        report.findings[0]
            .text
            .contains("explains the label [P-tok]"),
        "{report}"
    );
}

#[test]
fn a_folder_may_explain_the_labels_of_its_files() {
    let own = CLEAN.replace("//! - `[P-tok]`", "//! - the pair:");
    let tree = Tree::new(&[
        (
            "crates/millpond-raw/src/park/mod.rs",
            "//! - `[P-tok]` explained here.\n",
        ),
        ("crates/millpond-raw/src/park/thread.rs", &own),
    ]);
    passes(check, &tree);
}

#[test]
fn a_pair_has_two_ends() {
    let lonely = CLEAN.replace("Acquire) == 1", "Relaxed) == 1");
    fails(
        check,
        &park(&lonely),
        &format!("{FILE}:4"),
        "a pair has two ends",
    );
}

#[test]
fn the_ends_of_a_pair_may_be_in_two_files() {
    let half = |ordering: &str| {
        format!("//! `[P-tok]` the pair.\nfn f() {{ X.swap(1, {ordering}); }} // [P-tok]\n")
    };
    let one = half("Acquire");
    let other = half("Release");
    passes(
        check,
        &Tree::new(&[(FILE, &one), ("crates/millpond-raw/src/task.rs", &other)]),
    );
}

#[test]
fn the_library_follows_the_same_rule() {
    let file = "crates/millpond/src/pool.rs";
    let tree = park(CLEAN).with(file, "fn f() { X.load(Ordering::SeqCst); }");
    fails(check, &tree, &format!("{file}:1"), "`SeqCst` has no label");
}

#[test]
fn a_file_for_tests_alone_is_left_out() {
    let tree = park(&format!("{CLEAN}#[cfg(test)]\nmod proof;\n")).with(
        "crates/millpond-raw/src/park/proof.rs",
        "fn f() { X.load(Ordering::SeqCst); }",
    );
    passes(check, &tree);
}
