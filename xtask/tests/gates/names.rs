//! The gate `names`: predicates and the vocabulary.

use std::path::Path;

use anyhow::Result;
use xtask::gates::names::{MAX_WORDS, check_with};
use xtask::report::{Report, Rule};

use crate::tree::{Tree, fails, passes};

const FILE: &str = "crates/millpond/src/pool.rs";

fn enforced(root: &Path) -> Result<Report> {
    check_with(root, Rule::Enforced, Rule::Enforced)
}

fn pending(root: &Path) -> Result<Report> {
    check_with(root, Rule::Pending, Rule::Pending)
}

fn pool(code: &str) -> Tree {
    Tree::new(&[(FILE, code)])
}

fn words(rows: usize) -> String {
    let rows = "| **a** | b |\n".repeat(rows);
    format!("# Words\n\n| word | meaning |\n|---|---|\n{rows}")
}

#[test]
fn predicates_that_ask_pass() {
    passes(
        enforced,
        &pool(
            "impl A { fn is_idle(&self) -> bool { true } fn wake(&mut self) {} }\n\
             fn has_room<F: Fn(u8) -> bool>(f: F, all: &mut [u8]) -> Option<u8> { None }\n\
             #[test]\n#[ignore]\nfn may_be_called_anything() {}\n",
        ),
    );
}

#[test]
fn a_predicate_that_acts_fails() {
    for (code, what) in [
        ("fn is_woken_by(&self, waker: &Waker) {}", "returns nothing"),
        ("fn has_started<F: Fn() -> u8>(f: F) {}", "returns nothing"),
        ("fn may_go(&self) -> () {}", "returns nothing"),
        ("fn can_go(&mut self) -> bool { true }", "takes `&mut self`"),
        (
            "fn is_used<'a>(&'a mut self, id: Id) -> Id { id }",
            "takes `&mut self`",
        ),
        (
            "#[inline]\npub(crate) fn is_used(&mut self) {}",
            "takes `&mut self`",
        ),
    ] {
        let tree = pool(&format!("//! A pool.\nimpl A {{\n{code}\n}}\n"));
        fails(enforced, &tree, FILE, what);
        passes(pending, &tree);
        assert_eq!(pending(tree.root()).unwrap().pending.len(), 1);
    }
}

#[test]
fn a_long_vocabulary_fails() {
    let tree = |rows| pool("fn is_a() -> u8 { 1 }").with("docs/words.md", &words(rows));
    passes(enforced, &tree(MAX_WORDS));
    fails(
        enforced,
        &tree(MAX_WORDS + 1),
        "docs/words.md",
        "41 rows, of which 40 are allowed",
    );
    passes(pending, &tree(MAX_WORDS + 1));
}
