//! The same rush for Java's `ThreadPoolExecutor`, with a bounded queue and `AbortPolicy`: a task that does not fit is
//! rejected. It follows the same plan, and says itself what became of the tasks.

use super::{LOAD, peak};
use crate::harness::{Candidate, Sample, Standing};
use crate::peers::guest::{Guest, Language, Order, Program};
use crate::rush::Rush;
use anyhow::{Context, Result, ensure};

static JAVA: Guest = Guest::new(IN_JAVA);

pub(super) const IN_JAVA: Program = Program {
    language: Language::Java,
    file: "OverloadBench.java",
    text: include_str!("../../../java/OverloadBench.java"),
    more: &[
        ("Usage.java", include_str!("../../../java/Usage.java")),
        ("Jvm.java", include_str!("../../../java/Jvm.java")),
    ],
    flags: &["-XX:+UseParallelGC", "-Xms256m", "-Xmx1g"],
};

/// What they are called, here and there.
pub(super) const EXECUTORS: [(&str, &str); 2] = [
    ("Java TPE of 1024, abort", "abort-1024"),
    ("Java TPE of 64, abort", "abort-64"),
];

pub(super) fn candidates() -> impl Iterator<Item = Candidate> {
    EXECUTORS.into_iter().map(|(name, executor)| Candidate {
        name,
        standing: Standing::Peer,
        counts_allocations: false,
        run: Box::new(move |arrivals| rush(executor, peak()?, arrivals)),
    })
}

pub(super) fn notes() -> Option<String> {
    JAVA.note()
}

/// One round. The rate is in the word for the work, in tasks per second.
pub(super) fn rush(executor: &str, peak: f64, arrivals: u64) -> Result<Sample> {
    let work = format!("rush-{}", (peak * LOAD).round());
    let mut sample = JAVA.run(&Order {
        work: &work,
        executor,
        producers: 1,
        operations: arrivals,
        warm_up_millis: 0,
    })?;
    let rush = sample
        .rush
        .context("it does not say what became of the tasks")?;
    let [offered, rest @ ..] = rush.fates.numbers();
    ensure!(
        offered == arrivals && rest.iter().sum::<u64>() == offered,
        "the fates of its tasks do not add up: {:?}",
        rush.fates
    );
    let lost = rush.fates.lost;
    ensure!(lost == 0, "{lost} of {arrivals} tasks were lost");
    sample.rush = Some(Rush { peak, ..rush });
    Ok(sample)
}
