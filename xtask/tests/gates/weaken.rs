//! The gate `weaken`: how mutants are made and what their fate means. The real mutants run in the
//! step itself.

use std::fs;
use std::path::Path;

use xtask::gates::weaken::mutate::{self, Fate, Mutant};
use xtask::gates::weaken::{copy, mutants};
use xtask::table::Verdict;

use crate::tree::Tree;

const FILE: &str = "crates/millpond-raw/src/park.rs";

const CODE: &str = "use Ordering::Acquire;
fn f(&self) {
    let größe = self.word.swap(1, Ordering::AcqRel); // [P-tok]
    self.word.load(Acquire); // [P-tok]
    self.word.compare_exchange(1, 2, Ordering::AcqRel, Ordering::Acquire); // [P-tok]
    atomic::fence(Ordering::SeqCst); // [S-all]
    // [S-all] unmodelled: loom has no such fence
    fence(Ordering::SeqCst);
    self.word.load(Ordering::Acquire);
}
";

fn planted() -> (Tree, Vec<Mutant>) {
    let tree = Tree::new(&[(FILE, CODE)]);
    let mutants = mutants(tree.root(), &[]).unwrap();
    (tree, mutants)
}

/// What the mutant's line looks like.
fn changed(mutant: &Mutant) -> String {
    let text = mutate::apply(CODE, &mutant.edit).unwrap();
    let differing: Vec<&str> = text
        .lines()
        .zip(CODE.lines())
        .filter(|(new, old)| new != old)
        .map(|(new, _)| new)
        .collect();
    assert_eq!(text.lines().count(), CODE.lines().count());
    let [line] = differing.as_slice() else {
        panic!("one line changes: {differing:?}")
    };
    line.trim().to_string()
}

#[test]
fn every_labelled_ordering_is_a_mutant_of_its_own() {
    let (_tree, mutants) = planted();
    let places: Vec<_> = mutants
        .iter()
        .map(|one| (one.line, one.ordering.as_str()))
        .collect();
    let expected = [
        (3, "AcqRel"),
        (4, "Acquire"),
        (5, "AcqRel"),
        (5, "Acquire"),
        (6, "SeqCst"),
        (8, "SeqCst"),
    ];
    assert_eq!(places, expected);
}

#[test]
fn a_mutant_differs_in_one_ordering() {
    let (_tree, mutants) = planted();
    let lines: Vec<String> = mutants.iter().map(changed).collect();
    assert_eq!(
        lines[0],
        "let größe = self.word.swap(1, Ordering::Relaxed); // [P-tok]"
    );
    assert_eq!(
        lines[1],
        "self.word.load(core::sync::atomic::Ordering::Relaxed); // [P-tok]"
    );
    assert_eq!(
        lines[2],
        "self.word.compare_exchange(1, 2, Ordering::Relaxed, Ordering::Acquire); // [P-tok]"
    );
    assert_eq!(
        lines[3],
        "self.word.compare_exchange(1, 2, Ordering::AcqRel, Ordering::Relaxed); // [P-tok]"
    );
}

#[test]
fn a_weakened_fence_is_one_that_models_do_not_see() {
    let (_tree, mutants) = planted();
    let line = changed(&mutants[4]);
    assert_eq!(
        line,
        "core::sync::atomic::compiler_fence(Ordering::SeqCst); // [S-all]"
    );
}

#[test]
fn only_a_reason_excuses_an_ordering() {
    let (_tree, mutants) = planted();
    assert_eq!(
        mutants[5].unmodelled.as_deref(),
        Some("loom has no such fence")
    );
    assert!(mutants[..5].iter().all(|one| one.unmodelled.is_none()));
    let lazy = CODE.replace("unmodelled: loom has no such fence", "unmodelled:");
    let tree = Tree::new(&[(FILE, &lazy)]);
    let without_reason = xtask::gates::weaken::mutants(tree.root(), &[]).unwrap();
    assert!(without_reason[5].unmodelled.is_none());
}

#[test]
fn mutants_are_chosen_by_label_and_unknown_labels_are_refused() {
    let (tree, _) = planted();
    let of = |label: &str| mutants(tree.root(), &[label.to_string()]);
    assert_eq!(of("P-tok").unwrap().len(), 4);
    assert_eq!(of("[S-all]").unwrap().len(), 2);
    assert!(of("X-no").unwrap_err().to_string().contains("[X-no]"));
}

#[test]
fn models_named_after_the_file_or_its_folder_are_asked_first() {
    let lock = Path::new("crates/millpond-raw/src/sync/lock.rs");
    assert!(mutate::is_about("loom_lock", lock));
    assert!(mutate::is_about("loom_sync", lock));
    assert!(!mutate::is_about("loom_park", lock));
}

#[test]
fn a_survivor_fails_the_gate_and_an_excuse_does_not() {
    let caught = || Fate::Caught("loom_park::hand_over".into());
    let excused = Fate::NotModelled("no such fence".into());
    let good = mutate::judge(&[caught(), excused.clone()]);
    assert_eq!(good.verdict, Verdict::Passed);
    assert_eq!(good.note, "1 caught, 1 not modelled");
    for bad in [
        Fate::Survived,
        Fate::OutOfTime("loom_park".into()),
        Fate::DoesNotBuild,
    ] {
        assert_ne!(mutate::judge(&[caught(), bad]).verdict, Verdict::Passed);
    }
    assert_ne!(mutate::judge(&[]).verdict, Verdict::Passed);
    assert_ne!(mutate::judge(&[excused]).verdict, Verdict::Passed);
}

#[test]
fn the_table_names_label_place_ordering_and_verdict() {
    let (_tree, mutants) = planted();
    let table = mutate::table(&mutants[..1], &[Fate::Survived]);
    let row = table.lines().nth(1).unwrap();
    for word in [
        "[P-tok]",
        "crates/millpond-raw/src/park.rs:3",
        "AcqRel",
        "SURVIVED",
    ] {
        assert!(row.contains(word), "no {word} in: {row}");
    }
}

#[test]
fn the_copy_holds_the_crates_and_nothing_that_is_gone() {
    let manifest = "[workspace]\nmembers = [\"crates/*\", \"xtask\"]\ndefault-members = [\"xtask\"]\n\
        [profile.models]\ninherits = \"release\"\n";
    let tree = Tree::new(&[(FILE, CODE), ("Cargo.toml", manifest), ("xtask/a.rs", "")]);
    let work = tree.root().join("target/weaken/work");
    copy::workspace(tree.root(), &work).unwrap();
    assert_eq!(fs::read_to_string(work.join(FILE)).unwrap(), CODE);
    let copied = fs::read_to_string(work.join("Cargo.toml")).unwrap();
    assert!(
        copied.contains("[profile.models]") && !copied.contains("xtask"),
        "{copied}"
    );
    assert!(!work.join("xtask").exists());

    let tree = tree
        .without(FILE)
        .with("crates/millpond-raw/src/ring.rs", "");
    copy::workspace(tree.root(), &work).unwrap();
    assert!(!work.join(FILE).exists());
    assert!(work.join("crates/millpond-raw/src/ring.rs").exists());
}
