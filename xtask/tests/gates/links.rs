//! The gate `links`.

use std::process::Command;

use xtask::gates::links::check;

use crate::tree::{Tree, fails, passes};

const README: &str = "# The pond

See [the words](docs/words.md#one-word-per-idea), [below](#how-it-runs), [the docs][docs] and
<https://docs.rs/millpond>. The code is in `crates/millpond/src/{lib,pool}.rs` and `crates/mill*`.

```text
[not](a/link.md)
```

## How it runs

[docs]: docs/
";

const CODE: &str = "//! The pool. See [the words](../../../docs/words.md) and `docs/words.md`.
//! [Clock](crate::time::Clock), [`Self::lock`] and [up](#errors) belong to rustdoc.
// Plain comments count: https://example.org/paper.pdf
const TEXT: &str = \"[dead](gone.md) `docs/gone.md`\";
";

fn clean() -> Tree {
    Tree::new(&[
        ("README.md", README),
        (
            "docs/words.md",
            "# Words\n\n## One word per idea\n\n[up](../README.md)\n",
        ),
        ("crates/millpond/src/lib.rs", "//! Library.\n"),
        ("crates/millpond/src/pool.rs", CODE),
        ("target/doc/index.md", "[dead](gone.md)"),
    ])
}

#[test]
fn living_links_pass() {
    passes(check, &clean());
}

#[test]
fn a_dead_file_fails() {
    let tree = clean().with("docs/a.md", "# A\n\nSee\n[this](gone.md).\n");
    fails(
        check,
        &tree,
        "docs/a.md:4",
        "dead link `gone.md`: docs/gone.md does not exist",
    );
}

#[test]
fn a_dead_image_fails() {
    fails(
        check,
        &clean().with("docs/a.md", "![x](gone.svg)"),
        "docs/a.md:1",
        "dead link",
    );
    fails(
        check,
        &clean().with("docs/a.md", "<img src=\"gone.svg\">"),
        "docs/a.md:1",
        "dead link",
    );
}

#[test]
fn a_dead_anchor_fails_here_and_elsewhere() {
    let tree = clean().with("docs/a.md", "[this](words.md#two-words)");
    fails(check, &tree, "docs/a.md:1", "dead anchor");
    fails(
        check,
        &clean().with("docs/a.md", "# A\n\n[this](#b)"),
        "docs/a.md:3",
        "dead anchor",
    );
}

#[test]
fn an_undefined_reference_fails() {
    let tree = clean().with("docs/a.md", "[this][nowhere]");
    fails(
        check,
        &tree,
        "docs/a.md:1",
        "nothing defines the link `[nowhere]`",
    );
}

#[test]
fn a_reference_to_a_dead_file_fails() {
    let tree = clean().with("docs/a.md", "[this][there]\n\n[there]: gone.md\n");
    fails(check, &tree, "docs/a.md:1", "dead link `gone.md`");
}

#[test]
fn a_dead_path_in_backticks_fails() {
    for path in [
        "crates/millpond/src/gone.rs",
        "docs/gone.md",
        "crates/millpond/src/{lib,gone}.rs",
    ] {
        let tree = clean().with("docs/a.md", &format!("See `{path}`."));
        fails(check, &tree, "docs/a.md:1", "dead path");
    }
}

#[test]
fn a_malformed_address_fails() {
    for address in [
        "https://",
        "https:///docs",
        "htps://docs.rs",
        "https://docs..rs/x",
    ] {
        let tree = clean().with("docs/a.md", &format!("[x]({address})"));
        fails(check, &tree, "docs/a.md:1", "is no address");
    }
}

#[test]
fn a_link_out_of_the_repository_fails() {
    let tree = clean().with("docs/a.md", "[x](../../elsewhere.md)");
    fails(check, &tree, "docs/a.md:1", "leaves the repository");
}

#[test]
fn a_dead_link_in_a_comment_fails() {
    let file = "crates/millpond/src/lib.rs";
    for comment in [
        "//! ok\n//! [x](gone.md)",
        "\n// [x](gone.md)",
        "\n/* [x](gone.md) */",
    ] {
        let tree = clean().with(file, &format!("{comment}\nfn f() {{}}\n"));
        fails(check, &tree, &format!("{file}:2"), "dead link");
    }
    let tree = clean().with(file, "\nfn f() {} // see `docs/gone.md`\n");
    fails(check, &tree, &format!("{file}:2"), "dead path");
}

#[test]
fn files_that_git_ignores_are_not_checked() {
    let tree = clean()
        .with(".gitignore", "/target\n/drafts\n")
        .with("drafts/a.md", "[x](gone.md)");
    fails(check, &tree, "drafts/a.md:1", "dead link");
    let made = Command::new("git")
        .args(["init", "--quiet"])
        .current_dir(tree.root())
        .status();
    assert!(made.expect("git runs").success());
    passes(check, &tree);
}
