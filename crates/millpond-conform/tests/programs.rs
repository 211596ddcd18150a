//! Random programs with many engines: the first few of the fixed seed, and every one that ever failed.
//!
//! More of them are played by `cargo xtask programs`, and with fresh seeds by `cargo xtask soak`.

use millpond_conform::kit::{Watchdog, delays};
use millpond_conform::programs::{Program, play};
use std::fs;
use std::path::Path;

/// How many programs, and how often each that failed once.
const PROGRAMS: u64 = 60;
const TIMES: u32 = 20;

#[track_caller]
fn plays_well(name: &str, program: &Program) {
    let _watchdog = Watchdog::arm(&format!("{name}:\n{program}"), delays::longer() * 6);
    let wrong = play(program).wrong;
    assert!(wrong.is_empty(), "{name}: {wrong:#?}\n{program}");
}

#[test]
fn random_programs_account_for_every_task() {
    for seed in 0..PROGRAMS {
        plays_well(&format!("seed {seed}"), &Program::draw(seed));
    }
}

/// `counterexamples/README.md` says how one gets there.
#[test]
fn every_program_that_ever_failed_plays_to_its_end() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("counterexamples");
    for entry in fs::read_dir(folder).unwrap() {
        let file = entry.unwrap().path();
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        if !name.starts_with("program-") {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let program = text.parse::<Program>();
        let program = program.unwrap_or_else(|error| panic!("{name}: {error}"));
        (0..TIMES).for_each(|_| plays_well(&name, &program));
    }
}
