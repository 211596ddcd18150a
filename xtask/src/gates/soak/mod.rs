//! `cargo xtask soak`: all random tests with fresh seeds, round after round.
//!
//! All other tests use fixed seeds, so that their results can be repeated. The soak tries new seeds, for
//! hours if there is time. It prints every seed before it uses it. After a failure it prints the
//! command that repeats it, and where to keep the counterexample.

mod fresh;
mod parts;

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::needs;
use crate::step::Step;
use crate::table::{Gate, Outcome, Verdict};
use crate::workspace::Workspace;
use parts::{PARTS, Part};

/// How many lines of the log are shown after a failure.
const TAIL: usize = 120;

/// How long, from which seed, and which parts.
#[derive(Clone, Debug, Default, PartialEq, clap::Args)]
#[command(after_help = parts::help())]
pub struct Choice {
    /// For how long: no part starts after that
    #[arg(long, default_value_t = 60.0)]
    pub minutes: f64,
    /// The seed that all others are derived from; a fresh one by default, which is printed
    #[arg(long)]
    pub seed: Option<u64>,
    /// Only these parts
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    pub only: Vec<String>,
}

/// The parts of these names; all if there are none.
fn chosen(only: &[String]) -> Result<Vec<&'static Part>> {
    let is_known = |name: &&String| PARTS.iter().any(|part| part.name == **name);
    if let Some(unknown) = only.iter().find(|name| !is_known(name)) {
        let names: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
        bail!(
            "there is no part `{unknown}`; there are: {}",
            names.join(", ")
        );
    }
    let is_chosen = |part: &&Part| only.is_empty() || only.iter().any(|name| name == part.name);
    Ok(PARTS.iter().filter(is_chosen).collect())
}

/// The seed of a part in a round, short enough to be typed.
fn seed_of(seed: u64, round: u64, part: &str) -> u64 {
    let salt = part.bytes().fold(round, |sum, byte| {
        sum.wrapping_mul(0x0000_0100_0000_01b3) ^ u64::from(byte)
    });
    let mut mixed = (seed ^ salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 32)) >> 16
}

/// Runs part after part and round after round until the time is over or something fails.
///
/// # Errors
/// If a part is unknown, cargo cannot be started or the log cannot be written.
pub fn run(workspace: &Workspace, choice: &Choice) -> Result<bool> {
    let parts = chosen(&choice.only)?;
    let seed = choice.seed.unwrap_or_else(fresh::seed);
    let time = Duration::try_from_secs_f64(choice.minutes * 60.0).unwrap_or(Duration::MAX);
    let log = workspace.log_of("soak");
    println!(
        "soak: seed {seed}, for {time:?}; the log is {}",
        log.display()
    );
    let (begin, mut step) = (Instant::now(), Step::open(&log, |_| ())?.limit_silence());
    let parts = runnable(parts);
    if parts.is_empty() {
        bail!("no part can run here");
    }
    for turn in 0.. {
        let (round, part) = (turn / parts.len(), parts[turn % parts.len()]);
        let spent = begin.elapsed();
        if turn > 0 && spent >= time {
            println!("soak: {turn} parts in {} s, all passed", spent.as_secs());
            break;
        }
        let own = seed_of(seed, round as u64, part.name);
        let (name, spent) = (part.name, spent.as_secs());
        println!("soak: {spent} s, round {round}: {name} with seed {own}");
        let outcome = part.run(workspace, &mut step, own)?;
        if !judged(part, own, &outcome, &step) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The parts whose needs are installed.
fn runnable(mut parts: Vec<&'static Part>) -> Vec<&'static Part> {
    parts.retain(|part| {
        let missing = part.gate.and_then(Gate::named).and_then(needs::missing);
        if let Some(missing) = &missing {
            println!("soak: {} is skipped: {missing}", part.name);
        }
        missing.is_none()
    });
    parts
}

fn judged(part: &Part, seed: u64, outcome: &Outcome, step: &Step) -> bool {
    let reason = match &outcome.verdict {
        Verdict::Failed(reason) => reason,
        Verdict::Passed | Verdict::Skipped(_) => {
            if !outcome.note.is_empty() {
                println!("      {}", outcome.note);
            }
            return true;
        }
    };
    println!("{}", step.tail(TAIL));
    println!("{} with seed {seed}: FAILED, {reason}", part.name);
    println!("to repeat it:  {}", part.replay(seed));
    println!("to keep it:    {}", part.keep);
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_part_is_named_with_those_there_are() {
        let error = chosen(&["quues".to_owned()]).unwrap_err().to_string();
        assert!(
            error.contains("quues") && error.contains("queues"),
            "{error}"
        );
        assert_eq!(chosen(&["programs".to_owned()]).unwrap().len(), 1);
        assert_eq!(chosen(&[]).unwrap().len(), PARTS.len());
    }

    #[test]
    fn seeds_differ_by_round_and_part_and_depend_on_the_first_alone() {
        let mut seeds = Vec::new();
        for round in 0..20 {
            seeds.extend(PARTS.iter().map(|part| seed_of(7, round, part.name)));
        }
        let all = seeds.len();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), all);
        assert_eq!(seed_of(7, 1, "pool"), seed_of(7, 1, "pool"));
        assert_ne!(seed_of(7, 1, "pool"), seed_of(8, 1, "pool"));
    }

    #[test]
    fn every_part_says_how_to_repeat_its_failure() {
        for part in PARTS {
            let replay = part.replay(4711);
            assert!(
                replay.contains("4711") && replay.contains("cargo"),
                "{replay}"
            );
            assert!(!part.keep.is_empty() && !part.help.is_empty());
        }
    }
}
