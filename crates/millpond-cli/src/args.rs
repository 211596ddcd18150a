//! What the program can be asked.
//!
//! A new subcommand is a variant of [`Command`] with its options, and a module of its own.

use std::time::Duration;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "millpond", version, args_conflicts_with_subcommands = true)]
#[command(about = "\
The executor framework of java.util.concurrent, done the Rust way.

Without a command, millpond shows what is in the box, what machine this is,
and what the building blocks cost on it, measured on the spot.")]
#[command(after_help = "\
Examples:
  millpond                     the page, measured for two seconds
  millpond --budget 500ms      measure for half a second
  millpond --json | jq .costs  the same for programs")]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) about: AboutOptions,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// What is in the box, machine facts and costs (same as no command)
    About(AboutOptions),
    /// Millpond and its peers, measured side by side
    #[command(after_help = crate::bench::EXAMPLES)]
    Bench(millpond_bench::program::Options),
}

#[derive(Debug, clap::Args)]
pub(crate) struct AboutOptions {
    /// How long to measure, all rows together: 10ms to 60s
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = budget)]
    pub(crate) budget: Duration,
    /// Show the facts only and measure nothing
    #[arg(long, conflicts_with = "budget")]
    pub(crate) no_measure: bool,
    /// Print one JSON object instead of the page
    #[arg(long)]
    pub(crate) json: bool,
}

const SHORTEST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_secs(60);

fn budget(text: &str) -> Result<Duration, String> {
    let time = time(text)
        .ok_or("not a time: write a number with a unit (us, ms, s), such as 500ms or 2s")?;
    if time < SHORTEST {
        return Err("too short to measure anything: give at least 10ms".into());
    }
    if time > LONGEST {
        return Err("longer than the page is worth: give at most 60s".into());
    }
    Ok(time)
}

/// A decimal number with a unit and nothing else.
fn time(text: &str) -> Option<Duration> {
    // `s` comes last: the others end in it.
    let units = [("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];
    let (number, seconds) = units
        .iter()
        .find_map(|(unit, seconds)| Some((text.trim().strip_suffix(unit)?.trim(), seconds)))?;
    if !number
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.')
    {
        return None;
    }
    Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_do_not_contradict_each_other() {
        Args::command().debug_assert();
    }

    #[test]
    fn a_time_is_a_number_with_a_unit() {
        assert_eq!(time("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(time("1.5 s"), Some(Duration::from_millis(1500)));
        assert_eq!(time("20000us"), Some(Duration::from_millis(20)));
        for text in [
            "", "s", "5", "5m", "-1s", "1e3s", "NaNs", "infs", "1.2.3s", "five s",
        ] {
            assert_eq!(time(text), None, "{text}");
        }
    }

    #[test]
    fn a_budget_has_bounds() {
        assert!(budget("10ms").is_ok() && budget("60s").is_ok());
        assert!(budget("9ms").unwrap_err().contains("at least 10ms"));
        assert!(budget("61s").unwrap_err().contains("at most 60s"));
        assert!(budget("soon").unwrap_err().contains("500ms or 2s"));
    }

    #[test]
    fn no_command_is_the_about_page() {
        let short = Args::try_parse_from(["millpond", "--json"]).unwrap();
        assert!(short.command.is_none() && short.about.json);
        let long = Args::try_parse_from(["millpond", "about", "--json"]).unwrap();
        assert!(matches!(long.command, Some(Command::About(options)) if options.json));
    }

    #[test]
    fn options_before_a_command_are_refused_instead_of_ignored() {
        assert!(Args::try_parse_from(["millpond", "--json", "about"]).is_err());
    }
}
