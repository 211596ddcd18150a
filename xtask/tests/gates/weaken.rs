//! The gate `weaken`: how mutants are made, which models run on them, and what their results mean.
//! The real mutants run in the step itself.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use xtask::gates::weaken::hints::{self, Hints};
use xtask::gates::weaken::mutate::{self, Fate, Mutant};
use xtask::gates::weaken::{copy, mutants, switch};
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

const PACKAGE: &str = "crates/millpond-raw";

fn planted() -> (Tree, Vec<Mutant>) {
    let tree = Tree::new(&[(FILE, CODE)]);
    let mutants = mutants(tree.root(), &[]).unwrap();
    (tree, mutants)
}

/// The lines with the switch of this mutant.
fn changed(mutant: &Mutant) -> String {
    let text = switch::switched(CODE, &[mutant]).unwrap();
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
fn a_mutant_is_a_switch_around_one_ordering() {
    let (_tree, mutants) = planted();
    let lines: Vec<String> = mutants.iter().map(changed).collect();
    assert_eq!(
        lines[0],
        "let größe = self.word.swap(1, crate::weakened::at(1, Ordering::AcqRel)); // [P-tok]"
    );
    assert_eq!(
        lines[1],
        "self.word.load(crate::weakened::at(2, Acquire)); // [P-tok]"
    );
    assert_eq!(
        lines[3],
        "self.word.compare_exchange(1, 2, Ordering::AcqRel, \
         crate::weakened::at(4, Ordering::Acquire)); // [P-tok]"
    );
}

#[test]
fn two_mutants_on_a_line_are_independent() {
    let (_tree, mutants) = planted();
    let pair: Vec<&Mutant> = mutants[2..4].iter().collect();
    let text = switch::switched(CODE, &pair).unwrap();
    assert_eq!(
        text.lines().nth(4).unwrap().trim(),
        "self.word.compare_exchange(1, 2, crate::weakened::at(3, Ordering::AcqRel), \
         crate::weakened::at(4, Ordering::Acquire)); // [P-tok]"
    );
}

#[test]
fn a_weakened_fence_is_a_compiler_fence() {
    let (_tree, mutants) = planted();
    let line = changed(&mutants[4]);
    assert_eq!(
        line,
        "(if crate::weakened::is(5) { ::core::sync::atomic::compiler_fence } \
         else { atomic::fence })(Ordering::SeqCst); // [S-all]"
    );
}

#[test]
fn each_crate_gets_the_module_that_its_switches_call() {
    let (tree, mutants) = planted();
    let tree = tree.with("crates/millpond-raw/src/lib.rs", "mod park;\n");
    let files = switch::files(tree.root(), &mutants, &[PACKAGE.to_string()]).unwrap();
    let names: Vec<String> = files
        .keys()
        .map(|file| file.display().to_string())
        .collect();
    let source = |name: &str| format!("{PACKAGE}/src/{name}");
    assert_eq!(
        names,
        [source("lib.rs"), source("park.rs"), source("weakened.rs")]
    );
    let top = &files[&PathBuf::from(source("lib.rs"))];
    assert!(top.ends_with("mod weakened;\n"), "{top}");
    let helper = &files[&PathBuf::from(source("weakened.rs"))];
    assert!(helper.contains(switch::VARIABLE), "{helper}");
}

#[test]
fn an_ordering_is_excused_by_a_reason_only() {
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
fn mutants_are_chosen_by_label_and_unknown_labels_are_errors() {
    let (tree, _) = planted();
    let of = |label: &str| mutants(tree.root(), &[label.to_string()]);
    assert_eq!(of("P-tok").unwrap().len(), 4);
    assert_eq!(of("[S-all]").unwrap().len(), 2);
    assert!(of("X-no").unwrap_err().to_string().contains("[X-no]"));
}

#[test]
fn rows_of_the_table_are_found_although_lines_have_moved() {
    let (tree, mutants) = planted();
    fs::create_dir_all(tree.root().join("xtask")).unwrap();
    let fates: Vec<Fate> = mutants
        .iter()
        .map(|mutant| match mutant.number {
            2 => Fate::Survived,
            number => Fate::Caught(format!("loom_park::no_{number}")),
        })
        .collect();
    let learnt = Hints::default().learn(&mutants, &fates, &mutants);
    learnt.write(tree.root()).unwrap();

    let tree = tree.with(FILE, &format!("// One line more.\n{CODE}"));
    let moved = xtask::gates::weaken::mutants(tree.root(), &[]).unwrap();
    let read = Hints::read(tree.root());
    assert_eq!(read, learnt);
    let found: Vec<_> = moved.iter().map(|one| read.of(one, &moved)).collect();
    let model = |number: usize| match number {
        1 => Some("loom_park::no_1"),
        3 => Some("loom_park::no_3"),
        4 => Some("loom_park::no_4"),
        5 => Some("loom_park::no_5"),
        6 => Some("loom_park::no_6"),
        _ => None,
    };
    assert_eq!(found, (1..=6).map(model).collect::<Vec<_>>());
}

#[test]
fn a_table_that_is_renewed_for_some_labels_keeps_the_rows_of_the_others() {
    let (tree, all) = planted();
    let caught = |by: &str, count| vec![Fate::Caught(format!("loom_park::{by}")); count];
    let before = Hints::default().learn(&all, &caught("before", all.len()), &all);
    let chosen = mutants(tree.root(), &["S-all".to_string()]).unwrap();
    let after = before.learn(&chosen, &caught("after", chosen.len()), &all);
    for mutant in &all {
        let expected = if mutant.has_label("S-all") {
            "loom_park::after"
        } else {
            "loom_park::before"
        };
        assert_eq!(after.of(mutant, &all), Some(expected), "{mutant}");
    }
}

#[test]
fn without_a_table_there_are_no_hints() {
    let (tree, _) = planted();
    assert!(!hints::file(tree.root()).exists());
    assert_eq!(Hints::read(tree.root()), Hints::default());
}

#[test]
fn a_survivor_fails_the_gate_and_an_excuse_does_not() {
    let caught = || Fate::Caught("loom_park::hand_over".into());
    let excused = Fate::NotModelled("no such fence".into());
    let good = mutate::judge(&[caught(), excused.clone()]);
    assert_eq!(good.verdict, Verdict::Passed);
    assert_eq!(good.note, "1 caught, 1 not modelled");
    for bad in [Fate::Survived, Fate::OutOfTime("loom_park".into())] {
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
fn the_copy_holds_the_crates_and_no_deleted_file() {
    let manifest = "[workspace]\nmembers = [\"crates/*\", \"xtask\"]\ndefault-members = [\"xtask\"]\n\
        [profile.models]\ninherits = \"release\"\n";
    let tree = Tree::new(&[(FILE, CODE), ("Cargo.toml", manifest), ("xtask/a.rs", "")]);
    let work = tree.root().join("target/weaken/work");
    let none = BTreeMap::new();
    copy::workspace(tree.root(), &work, &none).unwrap();
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
    copy::workspace(tree.root(), &work, &none).unwrap();
    assert!(!work.join(FILE).exists());
    assert!(work.join("crates/millpond-raw/src/ring.rs").exists());
}

#[test]
fn changed_files_of_the_copy_stay_changed_and_are_restored() {
    let manifest = "[workspace]\nmembers = [\"crates/*\"]\n";
    let tree = Tree::new(&[(FILE, CODE), ("Cargo.toml", manifest)]);
    let work = tree.root().join("target/weaken/work");
    let added = "crates/millpond-raw/src/weakened.rs";
    let changed = BTreeMap::from(
        [(FILE, "other"), (added, "more")]
            .map(|(file, text)| (PathBuf::from(file), text.to_string())),
    );
    for _ in 0..2 {
        copy::workspace(tree.root(), &work, &changed).unwrap();
        assert_eq!(fs::read_to_string(work.join(FILE)).unwrap(), "other");
        assert_eq!(fs::read_to_string(work.join(added)).unwrap(), "more");
    }
    copy::workspace(tree.root(), &work, &BTreeMap::new()).unwrap();
    assert_eq!(fs::read_to_string(work.join(FILE)).unwrap(), CODE);
    assert!(!work.join(added).exists());
}
