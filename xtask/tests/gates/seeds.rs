//! The gate `seeds`.

use xtask::gates::seeds::check;

use crate::tree::{Tree, fails, passes};

const TEST: &str = "crates/millpond/tests/queues.rs";

const CLEAN: &str = "//! RandomState, in a comment.
const TEXT: &str = \"RandomState\";
proptest! {
    // Why so many.
    #![proptest_config(crate::proptest_kit::config(256))]

    #[test]
    fn any_number_is_one(number in 0..9_u8) {
        let coin: bool = shuttle::rand::thread_rng().r#gen();
        let scheduler = PctScheduler::new_from_seed(seed_kit::seed(), 1, 1);
    }
}
";

fn clean() -> Tree {
    Tree::new(&[
        (TEST, CLEAN),
        (
            "crates/millpond-raw/tests/seed_kit/mod.rs",
            "use std::hash::RandomState;\n",
        ),
    ])
}

#[test]
fn tests_with_the_fixed_seed_pass() {
    passes(check, &clean());
}

#[test]
fn every_other_source_of_randomness_fails() {
    let planted = [
        ("std::hash::RandomState::new()", "seed_kit"),
        ("rand::random::<u64>()", "seed_kit"),
        ("rand::thread_rng().next_u64()", "seed_kit"),
        ("fastrand::u64(..)", "seed_kit"),
        ("ProptestConfig::with_cases(9)", "proptest_kit"),
        ("TestRunner::deterministic()", "proptest_kit"),
        ("shuttle::check_pct(scenario, 9, 1)", "shuttle_drive"),
        ("PctScheduler::new(1, 9)", "shuttle_drive"),
    ];
    for (source, instead) in planted {
        let tree = clean().with(TEST, &format!("fn f() {{\n    let x = {source};\n}}\n"));
        fails(check, &tree, &format!("{TEST}:2"), instead);
    }
}

#[test]
fn a_proptest_without_the_fixed_seed_fails() {
    let plain = "proptest! {\n    #[test]\n    fn f(x in 0..9_u8) {}\n}\n";
    let tree = clean().with("examples/01.rs", plain);
    fails(check, &tree, "examples/01.rs:1", "proptest_kit::config");
}
