//! The command line.
//!
//! A new subcommand is a variant of [`Command`] with its options, and a module of its own.

use std::time::Duration;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "millpond", version, args_conflicts_with_subcommands = true)]
#[command(about = "\
The executor framework of java.util.concurrent, done the Rust way.

Without a command, millpond runs the demo: a small shop on three pools, under
load that ebbs and floods. Watch it, and change the pools while they run.")]
#[command(after_help = "\
Examples:
  millpond                             the demo, on the whole screen; press ? for its keys
  millpond | cat                       without a screen: a line per second, for ten seconds
  millpond demo --seconds 30 --load 200
  millpond demo --json | jq .pools     the same for programs, an object per second
  millpond about                       what is in the box, and what things cost on this machine
  millpond bench pool --quick          a minute beside the peers; see millpond bench --help")]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) demo: DemoOptions,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// A small shop on three pools, to watch and to meddle with (same as no command)
    #[command(after_help = DEMO_HELP)]
    Demo(DemoOptions),
    /// What is in the box, machine facts and costs, measured on the spot
    About(AboutOptions),
    /// Millpond and its peers, measured side by side
    #[command(after_help = crate::bench::EXAMPLES)]
    Bench(Box<millpond_bench::program::Options>),
}

const DEMO_HELP: &str = "\
Three pools: orders (tasks that wait), images (tasks that compute), mails (tasks by the clock).
At the end it says what became of every task, and checks that against what the pools have counted.

With --json each line is an object:
  {\"second\":1,\"tide\":0.3,\"load\":100,\"pools\":[{\"name\":\"orders\",\"core\":2,..},..]}   every second
  {\"summary\":{\"pools\":[{\"pool\":\"orders\",\"came\":..,\"done\":..,\"lost\":0,..},..],..}}   at the end
Rates are per second, times in microseconds, and null where no task ended.";

#[derive(Debug, clap::Args)]
pub(crate) struct DemoOptions {
    /// End after so long [default: on the screen never, otherwise 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) seconds: Option<u64>,
    /// How much comes, in percent of the usual: 0 to 500
    #[arg(long, value_name = "PERCENT", default_value_t = 100)]
    #[arg(value_parser = clap::value_parser!(u32).range(..=500))]
    pub(crate) load: u32,
    /// Seed of the arrivals: the same seed brings the same customers
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Print a line per second instead of using the screen
    #[arg(long)]
    pub(crate) plain: bool,
    /// Print a JSON object per second, and one at the end
    #[arg(long, conflicts_with = "plain")]
    pub(crate) json: bool,
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
    fn no_command_is_the_demo() {
        let short = Args::try_parse_from(["millpond", "--json", "--seed", "7"]).unwrap();
        assert!(short.command.is_none() && short.demo.json && short.demo.seed == 7);
        let long = Args::try_parse_from(["millpond", "demo", "--seed", "7"]).unwrap();
        assert!(matches!(long.command, Some(Command::Demo(options)) if options.seed == 7));
    }

    #[test]
    fn the_load_has_a_limit() {
        assert!(Args::try_parse_from(["millpond", "--load", "500"]).is_ok());
        assert!(Args::try_parse_from(["millpond", "--load", "501"]).is_err());
        assert!(Args::try_parse_from(["millpond", "--seconds", "0"]).is_err());
    }

    #[test]
    fn options_before_a_command_are_errors_and_not_ignored() {
        assert!(Args::try_parse_from(["millpond", "--json", "about"]).is_err());
    }
}
