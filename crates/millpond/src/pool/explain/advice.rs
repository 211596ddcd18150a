//! What would help a pool, what it has lost, and what must not be.

use super::Facts;
use crate::engine::metrics::{Label, Usage};
use crate::engine::wording::{count, counted, percent, so_far, times};
use crate::manage::RunState;

pub(super) fn what_would_help(facts: &Facts) -> Option<String> {
    let now = &facts.snapshot;
    if now.state > RunState::ShutDown {
        return None;
    }
    let (label, usage) = heaviest(facts)?;
    let (workers, cpus) = (count(now.workers, "worker"), count(facts.cpus, "CPU"));
    if usage.waiting_for_cpu() > 0.25 && now.workers > 0 {
        let share = percent(usage.waiting_for_cpu());
        return Some(if now.workers > facts.cpus {
            format!(
                "{label} waits for a CPU {share} of its time, with {workers} on {cpus}: fewer workers, or \
                 more CPUs, would help."
            )
        } else {
            format!(
                "{label} waits for a CPU {share} of its time, although there is one for each worker \
                 ({workers}, {cpus}): something else keeps them busy."
            )
        });
    }
    let is_full = now.queued > 0 && now.active >= now.workers && now.workers > 0;
    if !is_full {
        return None;
    }
    if usage.computing() > 0.75 {
        let share = percent(usage.computing());
        return Some(if now.workers < facts.cpus {
            format!(
                "{label} computes {share} of its time, with {workers} on {cpus}: more workers would help, \
                 up to one for each CPU."
            )
        } else {
            format!(
                "{label} computes {share} of its time, with {workers} on {cpus}: more workers would not \
                 help; more CPUs, or less to do, would."
            )
        });
    }
    let share = percent(usage.blocked());
    let could = facts.cpus as f64 / usage.computing().max(0.01);
    let could = (could.round() as usize).max(1);
    Some(if could > now.workers {
        format!(
            "{label} is blocked {share} of its time: more workers would help; the CPUs could serve about \
             {could}, if what it waits for can."
        )
    } else {
        format!(
            "{label} is blocked {share} of its time, and there are as many workers as the CPUs can serve: \
             what it waits for is the place to look."
        )
    })
}

/// The label that ran longest altogether and has been sampled.
fn heaviest(facts: &Facts) -> Option<(&Label, Usage)> {
    let mut names = facts.names.iter();
    let sampled = names.find(|named| !named.metrics.usage.sampled().is_zero())?;
    Some((&sampled.label, sampled.metrics.usage))
}

pub(super) fn what_was_lost(facts: &Facts) -> Option<String> {
    let now = &facts.snapshot;
    so_far([
        (now.rejected, "rejected"),
        (now.caller_ran, "run by the caller instead"),
        (now.expired, "expired before the turn came"),
        (now.shed, "shed after too long a wait"),
        (now.discarded, "thrown away by the rejection policy"),
        (now.panicked, "ended by a panic"),
        (facts.health.long_runs, "reported for running too long"),
    ])
}

pub(super) fn what_is_wrong(facts: &Facts) -> Vec<String> {
    let health = facts.health;
    let mut said = Vec::new();
    if health.lost_wakeups > 0 {
        said.push(format!(
            "{} tasks waited although workers were idle, and the watchdog had to wake them: that is a bug of \
             the queue, or of millpond.",
            times(health.lost_wakeups)
        ));
    }
    if health.thread_failures > 0 {
        said.push(format!(
            "{} to start a thread failed: use fewer threads, or raise the limit of the process.",
            counted(health.thread_failures, "attempt")
        ));
    }
    match health.surplus_workers {
        0 => {}
        1 => said.push("1 worker is more than there may be: it leaves when it is idle.".to_owned()),
        many => said.push(format!(
            "{many} workers are more than there may be: they leave when they are idle."
        )),
    }
    said
}
