//! The program's answer to an order: one line, `done` with its figures or `failed` with a reason.
//!
//! ```
//! use millpond_bench::peers::guest::answer::{line, parse};
//!
//! let sample = parse("done operations=1000 nanos=52000 p50=40 p99=300")?;
//! assert_eq!((sample.operations, sample.nanos()), (1_000, 52.0));
//! assert_eq!(line(&Ok(sample)), "done operations=1000 nanos=52000 p50=40 p99=300");
//! let error = parse("failed 1000 tasks were submitted and 999 ran").unwrap_err();
//! assert_eq!(error.to_string(), "1000 tasks were submitted and 999 ran");
//! # Ok::<(), anyhow::Error>(())
//! ```

use crate::harness::Sample;
use crate::memory::Memory;
use crate::rush::{Fates, Rush};
use crate::stats::Quantiles;
use crate::usage::Usage;
use anyhow::{Context, Result, bail, ensure};
use std::time::Duration;

/// Reads an answer.
///
/// # Errors
///
/// The failure that the program reports, or that this is not an answer.
pub fn parse(line: &str) -> Result<Sample> {
    let line = line.trim();
    if let Some(reason) = line.strip_prefix("failed ") {
        bail!("{reason}");
    }
    let figures = line.strip_prefix("done ");
    let figures = figures.with_context(|| format!("{line:?} is not an answer"))?;
    let figures = Figures::parse(figures).with_context(|| format!("in {line:?}"))?;
    let told = figures.get("p50").zip(figures.get("p99"));
    let quantiles = told.map(|(p50, p99)| {
        Quantiles::told_with_tail(p50, p99, figures.get("p999"), figures.get("max"))
    });
    let sample = Sample {
        operations: figures.need("operations")?,
        elapsed: Duration::from_nanos(figures.need("nanos")?),
        usage: Usage {
            cpu: figures.get("cpu").map(Duration::from_nanos),
            sleeps: figures.get("sleeps"),
            preemptions: figures.get("preemptions"),
        },
        quantiles,
        rush: figures.rush(),
        memory: figures
            .get("resident")
            .zip(figures.get("kept"))
            .map(|(resident, kept)| Memory { resident, kept }),
        by_workers: figures.get("by_workers"),
    };
    ensure!(sample.operations > 0, "{line:?} says that nothing was done");
    Ok(sample)
}

/// The line for an outcome, as [`parse`] reads it. The fates of a rush do not fit into one.
pub fn line(outcome: &Result<Sample>) -> String {
    let sample = match outcome {
        Ok(sample) => sample,
        Err(error) => {
            let reason = format!("{error:#}");
            let words: Vec<_> = reason.split_whitespace().collect();
            return format!("failed {}", words.join(" "));
        }
    };
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let (usage, quantiles, memory) = (&sample.usage, sample.quantiles.as_ref(), sample.memory);
    let figures = [
        ("operations", Some(sample.operations)),
        ("nanos", Some(nanos(sample.elapsed))),
        ("cpu", usage.cpu.map(nanos)),
        ("sleeps", usage.sleeps),
        ("preemptions", usage.preemptions),
        ("p50", quantiles.map(Quantiles::p50)),
        ("p99", quantiles.map(Quantiles::p99)),
        ("p999", quantiles.and_then(Quantiles::p999)),
        ("max", quantiles.and_then(Quantiles::max)),
        ("resident", memory.map(|memory| memory.resident)),
        ("kept", memory.map(|memory| memory.kept)),
        ("by_workers", sample.by_workers),
    ];
    let known = figures
        .into_iter()
        .filter_map(|(name, value)| Some(format!(" {name}={}", value?)));
    format!("done{}", known.collect::<String>())
}

struct Figures<'a>(Vec<(&'a str, u64)>);

impl<'a> Figures<'a> {
    fn parse(text: &'a str) -> Result<Self> {
        let figure = |word: &'a str| -> Result<(&'a str, u64)> {
            let split = word.split_once('=');
            let (name, value) = split.with_context(|| format!("{word:?} has no value"))?;
            let value = value.parse();
            Ok((
                name,
                value.with_context(|| format!("{word:?} has no number"))?,
            ))
        };
        text.split_whitespace()
            .map(figure)
            .collect::<Result<_>>()
            .map(Figures)
    }

    fn get(&self, name: &str) -> Option<u64> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found.map(|&(_, value)| value)
    }

    /// What became of the tasks of a rush. Its peak is known to who ordered it.
    fn rush(&self) -> Option<Rush> {
        let fates = Fates {
            offered: self.get("offered")?,
            in_time: self.get("in_time")?,
            late: self.get("late")?,
            refused: self.get("refused")?,
            shed: 0,
            expired: 0,
            lost: self.get("lost")?,
        };
        Some(Rush { fates, peak: 0.0 })
    }

    fn need(&self, name: &str) -> Result<u64> {
        self.get(name)
            .with_context(|| format!("it does not say {name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_its_figures_in_any_order() {
        let line = "done nanos=52000 operations=1000 preemptions=0 sleeps=3 cpu=81000 p99=300 p50=40 \
             max=900 p999=800 kept=9 resident=700\n";
        let sample = parse(line).unwrap();
        assert_eq!(sample.operations, 1_000);
        assert_eq!(sample.elapsed, Duration::from_micros(52));
        let usage = Usage {
            cpu: Some(Duration::from_micros(81)),
            sleeps: Some(3),
            preemptions: Some(0),
        };
        assert_eq!(sample.usage, usage);
        let quantiles = Quantiles::told_with_tail(40, 300, Some(800), Some(900));
        assert_eq!(sample.quantiles, Some(quantiles));
        let memory = Memory {
            resident: 700,
            kept: 9,
        };
        assert_eq!(sample.memory, Some(memory));
    }

    #[test]
    fn a_rush_has_the_fates_of_its_tasks() {
        let line = "done operations=9 nanos=2 offered=9 in_time=4 late=3 refused=2 lost=0";
        let fates = parse(line).unwrap().rush.unwrap().fates;
        assert_eq!(fates.numbers(), [9, 4, 3, 2, 0, 0, 0]);
        assert_eq!(parse("done operations=9 nanos=2").unwrap().rush, None);
    }

    #[test]
    fn what_is_said_is_what_is_read() {
        for text in [
            "done operations=1000 nanos=52000 cpu=81000 sleeps=3 preemptions=0 p50=40 p99=300 \
             p999=800 max=900 resident=700 kept=9",
            "done operations=1 nanos=2 sleeps=3",
            "done operations=5 nanos=2 by_workers=3",
            "failed no memory",
        ] {
            assert_eq!(line(&parse(text)), text);
        }
        let error = anyhow::anyhow!("no\nstone").context("in the mill");
        assert_eq!(line(&Err(error)), "failed in the mill: no stone");
    }

    #[test]
    fn what_is_left_out_is_unknown() {
        let sample = parse("done operations=1 nanos=2").unwrap();
        assert_eq!(sample.usage, Usage::default());
        assert_eq!(sample.quantiles, None);
        assert_eq!(sample.memory, None);
    }

    #[test]
    fn what_is_no_answer_says_so() {
        let error = |line: &str| format!("{:#}", parse(line).unwrap_err());
        assert_eq!(error("failed no memory"), "no memory");
        assert_eq!(
            error("Exception in thread"),
            "\"Exception in thread\" is not an answer"
        );
        assert_eq!(error(""), "\"\" is not an answer");
        assert_eq!(error("done nanos=2"), "it does not say operations");
        assert_eq!(error("done operations=1"), "it does not say nanos");
        assert!(error("done operations=1 nanos").ends_with("\"nanos\" has no value"));
        assert!(error("done operations=x nanos=2").contains("\"operations=x\" has no number"));
        assert!(error("done operations=1 nanos=-2").contains("\"nanos=-2\" has no number"));
        assert!(error("done operations=0 nanos=2").ends_with("says that nothing was done"));
    }
}
