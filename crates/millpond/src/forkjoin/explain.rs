//! A pool in sentences: what it does, why nothing runs, and what would help. A snapshot comes in, sentences go out.

use super::ForkJoinPool;
use super::snapshot::ForkJoinSnapshot;
use crate::engine::health::Health;
use crate::engine::metrics::TaskMetrics;
use crate::engine::view::WorkerView;
use crate::engine::wording::{how_long, so_far};
use crate::manage::RunState;

impl ForkJoinPool {
    /// The pool in sentences: what it does, why nothing runs, and what would help.
    ///
    /// ```
    /// use millpond::forkjoin::ForkJoinPool;
    ///
    /// let pool = ForkJoinPool::builder("mill").parallelism(2).build()?;
    /// assert!(pool.explain().starts_with("mill is running and has nothing to do"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn explain(&self) -> String {
        explain(
            &self.snapshot(),
            &self.health(),
            &self.workers(),
            &self.metrics_by_name(),
        )
    }
}

/// The snapshot in sentences.
fn explain(
    now: &ForkJoinSnapshot,
    health: &Health,
    workers: &[WorkerView],
    names: &[TaskMetrics],
) -> String {
    let mut sentences = vec![situation(now)];
    sentences.extend(waits(now));
    sentences.extend(why_nothing_runs(now));
    sentences.extend(how_long(names));
    sentences.extend(long_runs(health, workers));
    sentences.extend(advice(now));
    sentences.extend(losses(now, health));
    sentences.extend(faults(health));
    sentences.join(" ")
}

/// What is queued and has yet to run.
pub(super) fn queued(now: &ForkJoinSnapshot) -> usize {
    let all = now.queued_outside + now.queued_by_worker.iter().sum::<usize>();
    all.saturating_sub(now.queued_joined)
}

fn situation(now: &ForkJoinSnapshot) -> String {
    let (name, parallelism, queued) = (&now.name, now.parallelism, queued(now));
    let is_idle = now.active + now.blocked + now.joining + queued == 0;
    match (now.state, now.workers) {
        (RunState::Terminated, _) => format!("{name} has ended."),
        (RunState::Running, 0) if is_idle => format!(
            "{name} is running and has nothing to do; it has no worker, and starts up to {parallelism} when there is work."
        ),
        (RunState::Running, workers) if is_idle => format!(
            "{name} is running and has nothing to do; {} of {workers} workers sleep.",
            now.sleeping
        ),
        (state, workers) => format!(
            "{name} is {state}: {} of {workers} workers are active (parallelism {parallelism}), {queued} tasks and \
             jobs are queued, {} of them from outside.",
            now.active, now.queued_outside
        ),
    }
}

/// Which workers wait, and how many spares run in their place.
fn waits(now: &ForkJoinSnapshot) -> Option<String> {
    let blocked = match now.blocked {
        0 => None,
        1 => Some("1 worker is blocked by what it runs".to_owned()),
        many => Some(format!("{many} workers are blocked by what they run")),
    };
    let joining = (now.joining > 0)
        .then(|| format!("{} wait in joins for parts that others run", now.joining));
    let waits = match (blocked, joining) {
        (Some(blocked), Some(joining)) => format!("{blocked}, {joining}"),
        (blocked, joining) => blocked.or(joining)?,
    };
    let spares = match now.spares {
        0 => "there are no spares".to_owned(),
        1 => "there is 1 spare".to_owned(),
        many => format!("there are {many} spares"),
    };
    Some(format!("{waits}; {spares} (at most {}).", now.max_spares))
}

/// Tasks that have exceeded their limit, and the one that has run longest.
fn long_runs(health: &Health, workers: &[WorkerView]) -> Option<String> {
    let long = match health.long_running {
        0 => return None,
        1 => "1 task runs longer than its limit".to_owned(),
        many => format!("{many} tasks run longer than their limits"),
    };
    let tasks = workers.iter().filter_map(|worker| worker.task.as_ref());
    let longest = tasks.max_by_key(|task| task.running_for);
    Some(match longest {
        None => format!("{long}."),
        Some(task) => format!(
            "{long}; {} has run for {:.1?}, and stacks() shows where.",
            task.label, task.running_for
        ),
    })
}

/// Tasks that did not run, or did not run well, since the pool was built.
fn losses(now: &ForkJoinSnapshot, health: &Health) -> Option<String> {
    so_far([
        (now.rejected, "rejected"),
        (now.expired, "expired before the turn came"),
        (now.panicked, "ended by a panic"),
        (health.long_runs, "reported for running too long"),
    ])
}

fn faults(health: &Health) -> Option<String> {
    (health.lost_wakeups > 0).then(|| {
        "Tasks have waited although workers were idle, and the watchdog had to wake them: that is a bug of millpond."
            .to_owned()
    })
}

/// What an operator should look at now. A fault that is over is not among them.
pub(super) fn warnings(now: &ForkJoinSnapshot, health: &Health) -> Vec<String> {
    let mut health = *health;
    if now.state == RunState::Terminated {
        health.failed_starts_in_a_row = 0;
    }
    let mut warnings = health.warnings();
    if is_stuck(now) {
        warnings.push(format!(
            "{} are queued and nothing runs: all workers wait, and there are as many spares as there may be ({})",
            queued(now),
            now.max_spares
        ));
    }
    warnings
}

/// Whether something is queued, and all workers wait at the bound of spares.
fn is_stuck(now: &ForkJoinSnapshot) -> bool {
    queued(now) > 0
        && now.active + now.searching == 0
        && now.blocked + now.joining > 0
        && is_at_bound(now)
}

/// Whether there are as many workers as there may be, all those that wait replaced as far as that goes.
fn is_at_bound(now: &ForkJoinSnapshot) -> bool {
    now.workers >= now.parallelism + now.max_spares.min(now.blocked + now.joining)
}

fn why_nothing_runs(now: &ForkJoinSnapshot) -> Option<String> {
    if queued(now) == 0 || now.active > 0 || now.state > RunState::ShutDown {
        return None;
    }
    let why = if now.searching > 0 {
        "Nothing runs: a worker has just been woken for what is queued."
    } else if is_stuck(now) {
        "Nothing runs: all workers wait, and there are as many spares as there may be. What is queued waits until one \
         of them goes on: raise max_spares, or block less in this pool."
    } else if now.failed_starts_in_a_row > 0 {
        "Nothing runs: no thread could be started for what is queued."
    } else {
        "Nothing runs: a worker is being started or woken for what is queued."
    };
    Some(why.to_owned())
}

fn advice(now: &ForkJoinSnapshot) -> Vec<String> {
    let mut sentences = Vec::new();
    if now.failed_starts_in_a_row > 0 {
        sentences.push(format!(
            "The last {} attempts to start a thread have failed: raise the limit of threads, lower the parallelism, or \
             look at the thread factory; a rejection says what the system said.",
            now.failed_starts_in_a_row
        ));
    }
    if now.active >= now.parallelism && now.queued_outside > 8 * now.parallelism {
        sentences.push(
            "All workers are busy and tasks wait outside: raise the parallelism if there are CPUs to spare, or \
             submit less."
                .to_owned(),
        );
    }
    if now.spares_exhausted > 0 && now.active > 0 {
        sentences.push(format!(
            "{} times work had to wait because there were {} spares and no more may be started: raise max_spares, or \
             block less in this pool.",
            now.spares_exhausted, now.max_spares
        ));
    }
    sentences
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;
    use crate::executor::{ExecutorExt, Lifecycle};

    fn snapshot() -> ForkJoinSnapshot {
        let pool = ForkJoinPool::builder("mill").parallelism(2).max_spares(1);
        pool.build().unwrap().snapshot()
    }

    fn health(now: &ForkJoinSnapshot) -> Health {
        Health {
            failed_starts_in_a_row: now.failed_starts_in_a_row,
            ..Health::default()
        }
    }

    fn told(now: &ForkJoinSnapshot) -> String {
        explain(now, &health(now), &[], &[])
    }

    fn warned(now: &ForkJoinSnapshot) -> Vec<String> {
        warnings(now, &health(now))
    }

    #[test]
    fn tasks_that_run_too_long_and_lost_wake_ups_are_told() {
        let health = Health {
            long_running: 2,
            lost_wakeups: 1,
            ..Health::default()
        };
        let said = explain(&snapshot(), &health, &[], &[]);
        assert!(
            said.contains("2 tasks run longer than their limits."),
            "{said}"
        );
        assert!(said.contains("that is a bug of millpond"), "{said}");
        assert_eq!(
            warnings(&snapshot(), &health).len(),
            1,
            "one of them is now"
        );
    }

    #[test]
    fn a_pool_says_its_name_and_what_was_lost_so_far() {
        let mut now = snapshot();
        assert_eq!(
            told(&now),
            "mill is running and has nothing to do; it has no worker, and starts up to 2 when there is work."
        );
        (now.rejected, now.expired, now.panicked) = (2, 1, 3);
        let said = told(&now);
        let losses = "So far: 2 tasks rejected, 1 task expired before the turn came, 3 tasks ended by a panic.";
        assert!(said.ends_with(losses), "{said}");
        now.state = RunState::Terminated;
        assert!(told(&now).starts_with("mill has ended. So far: "));
    }

    #[test]
    fn a_pool_says_how_long_its_tasks_waited_and_ran() {
        let pool = ForkJoinPool::builder("mill").build().unwrap();
        pool.submit(|| ()).unwrap().join().unwrap();
        pool.close().unwrap();
        let said = pool.explain();
        let latency = "mill has ended. The only task that it has run so far waited for ";
        assert!(said.starts_with(latency), "{said}");
    }

    #[test]
    fn a_busy_pool_and_one_without_threads_say_what_would_help() {
        let mut now = snapshot();
        (now.workers, now.active, now.queued_outside) = (2, 2, 100);
        assert!(told(&now).contains("All workers are busy"));
        (now.workers, now.active, now.failed_starts_in_a_row) = (0, 0, 3);
        assert!(told(&now).contains("no thread could be started for what is queued"));
        assert!(told(&now).contains("The last 3 attempts to start a thread have failed"));
        assert_eq!(warned(&now).len(), 1);
        now.failed_starts_in_a_row = 0;
        assert!(warned(&now).is_empty(), "the fault is over");
    }

    #[test]
    fn a_pool_whose_workers_are_all_blocked_says_why_nothing_runs() {
        let mut now = snapshot();
        (now.workers, now.blocked, now.joining) = (3, 2, 1);
        (now.spares, now.queued_outside) = (1, 1);
        let said = told(&now);
        let waits = "2 workers are blocked by what they run, 1 wait in joins for parts that others run; \
                     there is 1 spare (at most 1).";
        assert!(said.contains(waits), "{said}");
        assert!(said.contains("Nothing runs: all workers wait"), "{said}");
        assert!(said.contains("raise max_spares"), "{said}");
        assert!(warned(&now)[0].contains("nothing runs"));
        now.active = 1;
        assert!(warned(&now).is_empty());
        assert!(!told(&now).contains("Nothing runs"));
        now.spares_exhausted = 7;
        assert!(told(&now).contains("7 times work had to wait"));
        (now.active, now.searching) = (0, 1);
        assert!(told(&now).contains("has just been woken"));
    }

    #[test]
    fn a_worker_that_is_blocked_while_nothing_is_queued_is_no_idle_pool() {
        let mut now = snapshot();
        (now.workers, now.blocked) = (1, 1);
        let said = told(&now);
        assert!(said.contains("1 worker is blocked by what it runs; there are no spares"));
        assert!(!said.contains("nothing to do") && !said.contains("Nothing runs"));
    }
}
