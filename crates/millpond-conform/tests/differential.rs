//! The written scripts of the differential test, on our side alone: what they expect comes true.
//!
//! Whether Java agrees is asked by `cargo xtask differential`; that needs Java, and this needs nothing.
//! There is one test here and no more, because stillness wants all other threads of the process idle.
#![cfg(target_os = "linux")]

use millpond_conform::differential::script::Script;
use millpond_conform::differential::{Ours, decisions, expectations};
use millpond_conform::kit::delays;
use std::fs;
use std::path::Path;

#[test]
fn every_written_script_plays_to_its_end_and_what_it_expects_comes_true() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts");
    let mut played = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let file = entry.unwrap().path();
        let text = fs::read_to_string(&file).unwrap();
        let script: Script = text
            .parse()
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        assert_eq!(decisions::forbids(&script), None, "{}", file.display());
        let log = Ours::new(delays::long()).play(&script);
        let shown = log.join("\n");
        assert_eq!(
            log.len(),
            script.lines().len(),
            "{}\n{shown}",
            file.display()
        );
        assert_eq!(
            expectations(&script, &log),
            None,
            "{}\n{shown}",
            file.display()
        );
        assert!(
            text.contains("\nexpect "),
            "{}: it expects nothing",
            file.display()
        );
        played += 1;
    }
    assert!(played >= 10, "only {played} scripts");
}
