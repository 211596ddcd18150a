//! `cargo xtask soak`: everything that is random, with fresh seeds, round after round.
//!
//! The tests of the house draw from fixed seeds, so that they are green or red for a reason. This is
//! where new seeds are tried: for hours, if there is time. It prints every seed before it uses it, and
//! for what fails the command that does it again and where to keep what was found.

mod fresh;
mod parts;

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::house::House;
use crate::needs;
use crate::stage::Stage;
use crate::table::{Gate, Outcome, Verdict};
use parts::{PARTS, Part};

/// How many of the last lines of what failed are shown.
const TAIL: usize = 120;

/// How long, from which seed, and what.
#[derive(Clone, Debug, Default, PartialEq, clap::Args)]
#[command(after_help = parts::help())]
pub struct Choice {
    /// For how long: no part is begun after that
    #[arg(long, default_value_t = 60.0)]
    pub minutes: f64,
    /// The seed that all others come from; a fresh one, which is printed, if it is left out
    #[arg(long)]
    pub seed: Option<u64>,
    /// Only these parts
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    pub only: Vec<String>,
}

/// The parts of this name.
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

/// The seed of a part in a round: far from those of its neighbours, and short enough to be typed.
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
pub fn run(house: &House, choice: &Choice) -> Result<bool> {
    let parts = chosen(&choice.only)?;
    let seed = choice.seed.unwrap_or_else(fresh::seed);
    let time = Duration::try_from_secs_f64(choice.minutes * 60.0).unwrap_or(Duration::MAX);
    let log = house.target_of("xtask").join("soak.log");
    println!(
        "soak: seed {seed}, for {time:?}; what the parts print is in {}",
        log.display()
    );
    let (begin, mut stage) = (Instant::now(), Stage::open(&log, |_| ())?.impatient());
    let parts = at_hand(parts);
    if parts.is_empty() {
        bail!("there is nothing left to run");
    }
    for turn in 0.. {
        let (round, part) = (turn / parts.len(), parts[turn % parts.len()]);
        let spent = begin.elapsed();
        if turn > 0 && spent >= time {
            println!("soak: {turn} parts in {} s, all is well", spent.as_secs());
            break;
        }
        let own = seed_of(seed, round as u64, part.name);
        let (name, spent) = (part.name, spent.as_secs());
        println!("soak: {spent} s, round {round}: {name} with seed {own}");
        let outcome = (part.run)(house, &mut stage, own)?;
        if !judged(part, own, &outcome, &log) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Those that have all they need on this machine.
fn at_hand(mut parts: Vec<&'static Part>) -> Vec<&'static Part> {
    parts.retain(|part| {
        let missing = part.gate.and_then(Gate::named).and_then(needs::missing);
        if let Some(missing) = &missing {
            println!("soak: {} is left out: {missing}", part.name);
        }
        missing.is_none()
    });
    parts
}

fn judged(part: &Part, seed: u64, outcome: &Outcome, log: &std::path::Path) -> bool {
    let reason = match &outcome.verdict {
        Verdict::Failed(reason) => reason,
        Verdict::Passed | Verdict::Skipped(_) => {
            if !outcome.note.is_empty() {
                println!("      {}", outcome.note);
            }
            return true;
        }
    };
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(TAIL);
    println!("--- the end of {}", log.display());
    lines[from..].iter().for_each(|line| println!("{line}"));
    println!("--- {} with seed {seed}: FAILED, {reason}", part.name);
    println!("to have it again:  {}", (part.replay)(seed));
    println!("to keep it:        {}", part.keep);
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
    fn seeds_differ_by_round_and_part_and_come_from_the_first_alone() {
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
    fn every_part_says_how_to_have_its_failure_again() {
        for part in PARTS {
            let replay = (part.replay)(4711);
            assert!(
                replay.contains("4711") && replay.contains("cargo"),
                "{replay}"
            );
            assert!(!part.keep.is_empty() && !part.help.is_empty());
        }
    }
}
