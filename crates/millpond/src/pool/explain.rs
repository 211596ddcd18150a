//! A pool in sentences: what it does, why tasks wait, which of them fill it, and what would help.
//!
//! Facts come in, sentences go out: no clock, no lock, nothing of the pool. So what is said can be tested
//! for every situation, and a console that has the facts of a pool elsewhere can say the same.

use super::ThreadPool;
use super::figures::{Label, NamedFigures, Usage};
use super::view::WorkerView;
use super::watch::Health;
use crate::machine::Machine;
use crate::manage::{Growth, PoolSnapshot, RunState};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// What is known of a pool at one moment.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Its parameters and figures.
    pub snapshot: PoolSnapshot,
    /// The figures of its tasks, those first that ran longest altogether.
    pub names: Vec<NamedFigures>,
    /// What its workers do.
    pub workers: Vec<WorkerView>,
    /// Counts that should be 0.
    pub health: Health,
    /// How many CPUs there are for it.
    pub cpus: usize,
}

/// What can be said of a pool, most important things first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    sentences: Vec<String>,
}

impl Explanation {
    /// Its sentences.
    pub fn sentences(&self) -> &[String] {
        &self.sentences
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, sentence) in self.sentences.iter().enumerate() {
            let space = if index > 0 { " " } else { "" };
            write!(f, "{space}{sentence}")?;
        }
        Ok(())
    }
}

impl ThreadPool {
    /// Says in sentences what the pool is doing, why tasks wait, which of them fill it, and what would
    /// help.
    ///
    /// ```
    /// use millpond::pool::ThreadPool;
    ///
    /// let pool = ThreadPool::builder("mill").core(2).build()?;
    /// let said = pool.explain().to_string();
    /// assert!(said.starts_with("mill is running and has nothing to do."), "{said}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn explain(&self) -> Explanation {
        explain(&self.facts())
    }

    /// What [`explain`](ThreadPool::explain) goes by.
    pub fn facts(&self) -> Facts {
        Facts {
            snapshot: self.snapshot(),
            names: self.figures_by_name(),
            workers: self.workers(),
            health: self.health(),
            cpus: Machine::read().worker_hint().get(),
        }
    }
}

/// Says what the facts mean.
pub fn explain(facts: &Facts) -> Explanation {
    let mut sentences = vec![what_it_does(facts)];
    sentences.extend(why_tasks_wait(facts));
    sentences.extend(how_long(facts));
    sentences.extend(who_fills_it(facts));
    sentences.extend(who_hangs(facts));
    sentences.extend(what_would_help(facts));
    sentences.extend(what_was_lost(facts));
    sentences.extend(what_is_wrong(facts));
    Explanation { sentences }
}

fn what_it_does(facts: &Facts) -> String {
    let now = &facts.snapshot;
    let name = &now.name;
    match now.state {
        RunState::Running if now.active == 0 && now.queued == 0 => {
            format!("{name} is running and has nothing to do.")
        }
        RunState::Running => format!(
            "{name} is running: {} of {} busy, {} in the queue{}.",
            now.active,
            count(now.workers, "worker"),
            count(now.queued, "task"),
            match now.capacity {
                Some(0) | None => String::new(),
                Some(capacity) => format!(", which has room for {capacity}"),
            }
        ),
        RunState::ShutDown => format!(
            "{name} has been shut down: it takes no more tasks, and still runs {} and has {} in the \
             queue.",
            now.active, now.queued
        ),
        RunState::Stopped => format!(
            "{name} has been stopped: {} still {} although interrupted.",
            count(now.active, "task"),
            if now.active == 1 { "runs" } else { "run" },
        ),
        RunState::Tidying | RunState::Terminated => format!("{name} has ended."),
    }
}

fn why_tasks_wait(facts: &Facts) -> Option<String> {
    let now = &facts.snapshot;
    if now.queued == 0 || now.state > RunState::ShutDown {
        return None;
    }
    let said = if now.active < now.workers {
        format!(
            "Tasks wait although {} idle: they are on their way, or not yet due.",
            count_are(now.workers - now.active, "worker")
        )
    } else if now.workers >= now.max {
        format!(
            "Tasks wait because all workers are busy and there may be no more than {}.",
            now.max
        )
    } else if now.growth == Growth::QueueFirst {
        let when = match now.capacity {
            None => "never, for its queue has no bound".to_owned(),
            Some(_) => "only when the queue is full".to_owned(),
        };
        format!(
            "Tasks wait because all {} are busy: up to {} may start, but with the queue coming first \
             that happens {when}; a larger core, or threads first, would start them now.",
            count(now.workers, "worker"),
            now.max
        )
    } else {
        format!(
            "Tasks wait because all {} are busy; more are allowed ({}) and start as tasks come.",
            count(now.workers, "worker"),
            now.max
        )
    };
    Some(said)
}

fn how_long(facts: &Facts) -> Option<String> {
    let mut wait = crate::meter::Distribution::new();
    let mut run = crate::meter::Distribution::new();
    for named in &facts.names {
        wait.merge(&named.figures.wait);
        run.merge(&named.figures.run);
    }
    (run.count() > 0).then(|| {
        format!(
            "Half of its tasks waited no longer than {} (99 %: {}) and ran no longer than {} (99 %: {}).",
            short(wait.quantile(0.5)),
            short(wait.quantile(0.99)),
            short(run.quantile(0.5)),
            short(run.quantile(0.99)),
        )
    })
}

fn who_fills_it(facts: &Facts) -> Option<String> {
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
    let all: Duration = facts
        .names
        .iter()
        .map(|named| named.figures.run.total())
        .sum();
    let own = facts
        .names
        .iter()
        .find(|named| named.label.to_string() == *first);
    let share = own.map_or(0.0, |named| {
        named.figures.run.total().as_secs_f64() / all.as_secs_f64().max(1e-9)
    });
    let so_far = match share > 0.0 {
        true => format!(" (and had {} of all running time so far)", percent(share)),
        false => String::new(),
    };
    let mut said = format!("{first} is on {}{so_far}", count(*workers, "worker"),);
    for (other, workers) in busy.iter().skip(1).take(2) {
        said.push_str(&format!(", {other} on {workers}"));
    }
    said.push('.');
    Some(said)
}

/// Tasks that run far longer than others of their name ever did.
fn who_hangs(facts: &Facts) -> Vec<String> {
    const WORTH_SAYING: Duration = Duration::from_secs(1);
    let mut said = Vec::new();
    for worker in &facts.workers {
        let Some(task) = &worker.task else { continue };
        let own = facts.names.iter().find(|named| named.label == task.label);
        let usual = own
            .filter(|named| named.figures.run.count() > 0)
            .map(|named| named.figures.run.quantile(0.99));
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

fn what_would_help(facts: &Facts) -> Option<String> {
    let now = &facts.snapshot;
    let is_full = now.queued > 0 && now.active >= now.workers && now.workers > 0;
    let (label, usage) = heaviest(facts)?;
    if usage.waiting_for_cpu() > 0.25 {
        return Some(format!(
            "{label} waits for a CPU {} of its time: {} for {} are too many threads; fewer workers, or \
             more CPUs, would help.",
            percent(usage.waiting_for_cpu()),
            count(now.workers, "worker"),
            count(facts.cpus, "CPU"),
        ));
    }
    if !is_full {
        return None;
    }
    let said = if usage.computing() > 0.75 {
        format!(
            "{label} computes {} of its time: more than {} on {} would not help; more CPUs, or less to \
             do, would.",
            percent(usage.computing()),
            count(facts.cpus, "worker"),
            count(facts.cpus, "CPU"),
        )
    } else {
        let could = facts.cpus as f64 / usage.computing().max(0.01);
        let could = (could.round() as usize).max(1);
        match could > now.workers {
            true => format!(
                "{label} is blocked {} of its time: more workers would help; the CPUs could serve \
                 about {could}, if what it waits for can.",
                percent(usage.blocked()),
            ),
            false => format!(
                "{label} is blocked {} of its time, and there are as many workers as the CPUs can \
                 serve: what it waits for is the place to look.",
                percent(usage.blocked()),
            ),
        }
    };
    Some(said)
}

/// The label that ran longest altogether and has been sampled.
fn heaviest(facts: &Facts) -> Option<(&Label, Usage)> {
    let sampled = facts
        .names
        .iter()
        .find(|named| !named.figures.usage.sampled().is_zero())?;
    Some((&sampled.label, sampled.figures.usage))
}

fn what_was_lost(facts: &Facts) -> Option<String> {
    let now = &facts.snapshot;
    let losses = [
        (now.rejected, "refused for lack of room"),
        (now.expired, "past their deadlines when their turn came"),
        (now.discarded, "thrown away by the rejection policy"),
        (now.panicked, "ended by a panic"),
    ];
    let said: Vec<_> = losses
        .into_iter()
        .filter(|(many, _)| *many > 0)
        .map(|(many, what)| format!("{many} {what}"))
        .collect();
    (!said.is_empty()).then(|| format!("Of its tasks so far: {}.", said.join(", ")))
}

fn what_is_wrong(facts: &Facts) -> Vec<String> {
    let health = facts.health;
    let mut said = Vec::new();
    if health.lost_wake_ups > 0 {
        said.push(format!(
            "{} tasks waited although workers rested, and the watch had to wake them: that is a bug of \
             the queue, or of millpond.",
            match health.lost_wake_ups {
                1 => "Once".to_owned(),
                times => format!("{times} times"),
            }
        ));
    }
    if health.thread_failures > 0 {
        said.push(format!(
            "{} could not be started: use fewer, or raise the limit of the process.",
            count(health.thread_failures as usize, "thread")
        ));
    }
    said
}

fn count(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}

fn count_are(number: usize, what: &str) -> String {
    let are = if number == 1 { "is" } else { "are" };
    format!("{} {are}", count(number, what))
}

fn percent(share: f64) -> String {
    format!("{} %", (share * 100.0).round())
}

/// Two digits are enough to read.
fn short(duration: Duration) -> String {
    match duration {
        long if long >= Duration::from_secs(100) => format!("{} s", long.as_secs()),
        other => format!("{other:.1?}"),
    }
}
