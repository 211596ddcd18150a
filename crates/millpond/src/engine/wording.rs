//! Sentences about an engine: numbers, latencies and losses, as every `explain` says them.

use super::metrics::TaskMetrics;
use crate::meter::Distribution;
use std::time::Duration;

/// "1 worker", "2 workers".
pub(crate) fn count(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}

/// The same for a count of events.
pub(crate) fn counted(number: u64, what: &str) -> String {
    count(usize::try_from(number).unwrap_or(usize::MAX), what)
}

/// "Once", "2 times": at the beginning of a sentence.
pub(crate) fn times(number: u64) -> String {
    match number {
        1 => "Once".to_owned(),
        _ => format!("{number} times"),
    }
}

/// "its only worker is busy", "all 2 workers are busy".
pub(crate) fn all_busy(workers: usize) -> String {
    match workers {
        1 => "its only worker is busy".to_owned(),
        _ => format!("all {workers} workers are busy"),
    }
}

pub(crate) fn percent(share: f64) -> String {
    format!("{} %", (share * 100.0).round())
}

/// Two digits are enough to read, but whole seconds are told apart.
pub(crate) fn short(duration: Duration) -> String {
    let nanos = duration.as_nanos() as f64;
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")];
    // What would be rounded up to the next unit is written in it.
    let unit = units.iter().find(|(unit, _)| nanos >= unit * 0.995);
    let Some((unit, name)) = unit else {
        return "0 s".to_owned();
    };
    let number = nanos / unit;
    match number {
        small if small < 9.95 && *unit > 1.0 => format!("{small:.1} {name}"),
        large if large >= 99.5 && *unit < 1e9 => {
            format!("{:.0} {name}", (large / 10.0).round() * 10.0)
        }
        other => format!("{other:.0} {name}"),
    }
}

/// How long tasks waited and ran, those of all names together; `None` if none has run.
pub(crate) fn how_long(names: &[TaskMetrics]) -> Option<String> {
    let (mut wait, mut run) = (Distribution::new(), Distribution::new());
    for named in names {
        wait.merge(&named.metrics.wait);
        run.merge(&named.metrics.run);
    }
    let half = |all: &Distribution| short(all.quantile(0.5));
    let nearly_all = |all: &Distribution| short(all.quantile(0.99));
    match run.count() {
        0 => None,
        1 => Some(format!(
            "The only task that it has run so far waited for {} and ran for {}.",
            short(wait.mean()),
            short(run.mean())
        )),
        _ => Some(format!(
            "Half of its tasks waited for up to about {} (99 %: {}) and ran for up to about {} (99 %: {}).",
            half(&wait),
            nearly_all(&wait),
            half(&run),
            nearly_all(&run),
        )),
    }
}

/// "So far: 2 tasks rejected, 1 task ended by a panic." `None` if nothing was lost.
pub(crate) fn so_far<const N: usize>(losses: [(u64, &str); N]) -> Option<String> {
    let losses = losses.into_iter().filter(|(many, _)| *many > 0);
    let said: Vec<_> = losses
        .map(|(many, what)| format!("{} {what}", counted(many, "task")))
        .collect();
    (!said.is_empty()).then(|| format!("So far: {}.", said.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_digits_and_the_unit_that_suits_them() {
        let said = |nanos| short(Duration::from_nanos(nanos));
        let table = [
            (0, "0 s"),
            (7, "7 ns"),
            (993, "990 ns"),
            (999, "1.0 µs"),
            (1_000, "1.0 µs"),
            (9_940, "9.9 µs"),
            (9_960, "10 µs"),
            (99_400, "99 µs"),
            (99_600, "100 µs"),
            (994_000, "990 µs"),
            (996_000, "1.0 ms"),
            (120_400_000, "120 ms"),
            (1_100_000_000, "1.1 s"),
            (4_711_000_000_000, "4711 s"),
        ];
        for (nanos, text) in table {
            assert_eq!(said(nanos), text);
        }
    }
}
