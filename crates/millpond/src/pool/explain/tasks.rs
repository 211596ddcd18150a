//! Which tasks fill a pool, which of them hang, and which wait for each other.

use super::Facts;
use crate::engine::wording::{count, percent, short, times};
use std::collections::BTreeMap;
use std::time::Duration;

/// How many are named.
const MOST: usize = 3;

pub(super) fn fills_it(facts: &Facts) -> Option<String> {
    let mut busy: BTreeMap<String, usize> = BTreeMap::new();
    for task in facts
        .workers
        .iter()
        .filter_map(|worker| worker.task.as_ref())
    {
        *busy.entry(task.label.to_string()).or_default() += 1;
    }
    let mut busy: Vec<_> = busy.into_iter().collect();
    busy.sort_by_key(|(_, workers)| std::cmp::Reverse(*workers));
    let (first, workers) = busy.first()?;
    let names = facts.names.iter();
    let all: Duration = names.map(|named| named.metrics.run.total()).sum();
    let mut names = facts.names.iter();
    let own = names.find(|named| named.label.to_string() == *first);
    let share = own.map_or(0.0, |named| {
        named.metrics.run.total().as_secs_f64() / all.as_secs_f64().max(1e-9)
    });
    let so_far = if share >= 0.005 {
        format!(" (and had {} of all running time so far)", percent(share))
    } else {
        String::new()
    };
    let mut said = format!("{first} is on {}{so_far}", count(*workers, "worker"));
    for (other, workers) in busy.iter().take(MOST).skip(1) {
        said.push_str(&format!(", {other} on {workers}"));
    }
    said.push_str(and_others(busy.len()));
    Some(said)
}

/// The end of a list of so many.
fn and_others(many: usize) -> &'static str {
    if many > MOST { ", and so on." } else { "." }
}

/// Tasks that run far longer than others of their name ever did.
pub(super) fn hangs(facts: &Facts) -> Vec<String> {
    const WORTH_SAYING: Duration = Duration::from_secs(1);
    let mut said = Vec::new();
    for worker in &facts.workers {
        let Some(task) = &worker.task else { continue };
        let own = facts.names.iter().find(|named| named.label == task.label);
        let usual = own
            .filter(|named| named.metrics.run.count() > 0)
            .map(|named| named.metrics.run.quantile(0.99));
        let is_long = task.running_for > WORTH_SAYING
            && usual.is_none_or(|usual| task.running_for > usual.saturating_mul(10));
        if !is_long {
            continue;
        }
        let thread = worker.thread.as_deref().unwrap_or("A worker");
        said.push(format!(
            "{thread} has been running {} for {}{}.",
            task.label,
            short(task.running_for),
            match usual {
                Some(usual) => format!(", while 99 % of its kind ended within {}", short(usual)),
                None => ", and no other of its kind has ended".to_owned(),
            }
        ));
    }
    said
}

/// Workers that wait for tasks are no use to the others.
pub(super) fn waits_for_whom(facts: &Facts) -> Vec<String> {
    let mut said = Vec::new();
    if !facts.waits.is_empty() {
        let all = facts.waits.iter().take(MOST).map(|wait| {
            let thread = wait.thread.as_deref().unwrap_or("one");
            format!("{thread} for {}", wait.task)
        });
        let all: Vec<_> = all.collect();
        let who = match facts.waits.len() {
            1 => "1 worker does nothing but wait for another task".to_owned(),
            many => format!("{many} workers do nothing but wait for other tasks"),
        };
        let end = and_others(facts.waits.len());
        said.push(format!("{who}: {}{end}", all.join(", ")));
    }
    if facts.health.deadlocks > 0 {
        let last = facts.cycles.last();
        // They are kept for the process and not for the pool.
        let last = last.map_or(String::new(), |found| {
            format!("; the last ring in this process: {}", found.cycle)
        });
        said.push(format!(
            "{} its tasks waited for each other in a ring, and one got an error for it{last}.",
            times(facts.health.deadlocks)
        ));
    }
    said
}
