//! What a pool does, and why tasks wait.

use super::Facts;
use crate::engine::wording::{all_busy, count, short};
use crate::manage::{Growth, OverloadOrder, RunState};

pub(super) fn what_it_does(facts: &Facts) -> String {
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
            "{name} has been shut down: it takes no more tasks, and has {} running and {} in the queue.",
            or_none(now.active),
            or_none(now.queued)
        ),
        RunState::Stopped => match now.active {
            0 => format!("{name} has been stopped, and is about to end."),
            1 => {
                format!("{name} has been stopped: 1 task still runs, although it was interrupted.")
            }
            many => format!(
                "{name} has been stopped: {many} tasks still run, although they were interrupted."
            ),
        },
        RunState::Tidying | RunState::Terminated => format!("{name} has ended."),
    }
}

fn or_none(number: usize) -> String {
    match number {
        0 => "none".to_owned(),
        _ => number.to_string(),
    }
}

pub(super) fn why_tasks_wait(facts: &Facts) -> Option<String> {
    let now = &facts.snapshot;
    if now.queued == 0 || now.state > RunState::ShutDown {
        return None;
    }
    let (subject, they_are) = match now.queued {
        1 => ("A task waits", "it is"),
        _ => ("Tasks wait", "they are"),
    };
    let failed = match facts.health.failed_starts_in_a_row {
        0 => None,
        1 => Some("the last attempt to start a thread failed".to_owned()),
        many => Some(format!("the last {many} attempts to start a thread failed")),
    };
    if let Some(failed) = failed.as_ref().filter(|_| now.workers == 0) {
        return Some(format!("{subject} because there is no worker: {failed}."));
    }
    if now.workers == 0 {
        return Some(format!(
            "{subject} although there is no worker: one is about to start, or could not be started."
        ));
    }
    if now.active < now.workers {
        let idle = match now.workers - now.active {
            1 => "1 worker is".to_owned(),
            many => format!("{many} workers are"),
        };
        return Some(format!(
            "{subject} although {idle} idle: {they_are} on the way, or not yet due."
        ));
    }
    let busy = all_busy(now.workers);
    let more = if now.state == RunState::ShutDown {
        String::new()
    } else if now.workers >= now.max {
        format!(", and there may be no more than {}", now.max)
    } else if let Some(failed) = failed {
        format!(": up to {} are allowed, but {failed}", now.max)
    } else if now.growth == Growth::QueueFirst {
        let when = match now.capacity {
            None => "and has no bound, so no more will ever start",
            Some(_) => "so more start only when it is full",
        };
        format!(
            ": up to {} are allowed, but the queue comes first, {when}; a larger core, or threads first, \
             would start them now",
            now.max
        )
    } else {
        format!("; up to {} are allowed, and start as tasks come", now.max)
    };
    Some(format!("{subject} because {busy}{more}."))
}

pub(super) fn overload(facts: &Facts) -> Option<String> {
    let now = &facts.snapshot;
    let order = match now.overload_order {
        OverloadOrder::Unchanged => "",
        OverloadOrder::NewestFirst => ", and takes the newest first",
    };
    let is_now = now.is_overloaded && now.state <= RunState::ShutDown;
    is_now.then(|| format!("It is overloaded: it sheds what has waited too long{order}."))
}

pub(super) fn time_to_drain(facts: &Facts) -> Option<String> {
    let now = &facts.snapshot;
    let drains_in = now.drains_in?;
    let is_needed = now.queued > 0 && now.state <= RunState::ShutDown;
    is_needed.then(|| {
        format!(
            "At this pace the queue drains in about {}.",
            short(drains_in)
        )
    })
}
