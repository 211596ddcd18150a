//! Checks the ledger of a round against the rules in the [module](super).

use super::counts::Counts;
use super::ledger::{Entry, Fact, Ledger, Outcome};
use millpond::forkjoin::ForkJoinSnapshot;
use millpond::manage::RunState;
use millpond::pool::PoolSnapshot;
use millpond::task::CancelReason;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Judges every task.
pub(crate) fn tasks(ledger: &Ledger, counts: &mut Counts) {
    for (id, entry) in ledger.entries() {
        count(entry, counts);
        for problem in task(ledger, entry) {
            let (values, dropped) = entry.values();
            ledger.wrong(format!(
                "task {id}: {problem}\n    {}\n    ran {}, dropped {}, values {values}, of them \
                 dropped {dropped}, its handle came to {:?}",
                entry.facts(),
                entry.runs(),
                entry.drops(),
                entry.outcome(),
            ));
        }
    }
}

fn task(ledger: &Ledger, entry: &Entry) -> Vec<&'static str> {
    let mut problems = Vec::new();
    let mut must = |holds: bool, problem: &'static str| {
        if !holds {
            problems.push(problem);
        }
    };
    let (accepted, rejected) = (entry.is(Fact::Accepted), entry.is(Fact::Rejected));
    let (runs, (values, dropped)) = (entry.runs(), entry.values());
    must(
        accepted != rejected,
        "neither accepted nor rejected (CHAOS-2)",
    );
    must(runs <= 1, "ran twice (CHAOS-3)");
    must(
        entry.drops() == 1,
        "its closure was not dropped once (CHAOS-5)",
    );
    must(
        values == runs && dropped == values,
        "its value was not dropped once (CHAOS-5)",
    );
    if !accepted {
        let only_by_us = runs == 0 || entry.is(Fact::BySubmitter);
        must(only_by_us, "rejected, and run by the pool (CHAOS-2)");
        return problems;
    }
    if entry.is(Fact::Job) {
        must(runs == 1, "a job of a scope did not run (CHAOS-8)");
        return problems;
    }
    if entry.is(Fact::JobAtRisk) {
        return problems;
    }
    let outcome = entry.outcome();
    let kept = entry.is(Fact::HasHandle) && !entry.is(Fact::LetGo);
    must(
        !kept || outcome.is_some(),
        "its handle is not finished (CHAOS-4)",
    );
    if let Some(outcome) = outcome {
        must(
            agrees(ledger, entry, outcome),
            "its handle has an impossible outcome (CHAOS-4)",
        );
    }
    if entry.is(Fact::Removed) {
        let removed = outcome == Some(Outcome::Cancelled(CancelReason::Removed));
        must(
            runs == 0 && (removed || !kept),
            "removed from the queue, and not cancelled (CHAOS-4)",
        );
    }
    if entry.is(Fact::Cancelled) && kept {
        let cancelled = outcome == Some(Outcome::Cancelled(CancelReason::Requested));
        must(
            cancelled,
            "cancelled on request, and its handle does not know (CHAOS-4)",
        );
    }
    if runs == 0 {
        must(
            is_explained(ledger, entry),
            "accepted, never run, without a reason: lost (CHAOS-3)",
        );
    }
    problems
}

/// Whether a handle can have that outcome.
fn agrees(ledger: &Ledger, entry: &Entry, outcome: Outcome) -> bool {
    let (ran, round) = (entry.runs() == 1, &ledger.round);
    let can = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
    match outcome {
        Outcome::Value => ran && !entry.is(Fact::Panics),
        Outcome::Panicked => ran && entry.is(Fact::Panics),
        // One that runs is cancelled, too, and goes on.
        Outcome::Cancelled(CancelReason::Requested) => entry.is(Fact::Asked),
        Outcome::Cancelled(reason) => {
            let possible = match reason {
                CancelReason::Removed => entry.is(Fact::Removed),
                CancelReason::Expired => entry.is(Fact::MayExpire),
                CancelReason::Shed | CancelReason::WaitedTooLong => can(&round.may_shed),
                CancelReason::Discarded | CancelReason::ShutDown => can(&round.may_discard),
                CancelReason::Rejected => can(&round.may_fail),
                CancelReason::Dropped => {
                    let outside = can(&round.may_run_outside) && can(&round.may_fail);
                    entry.is(Fact::HandedBack) || entry.is(Fact::ByPolicy) || outside
                }
                _ => false,
            };
            !ran && possible
        }
    }
}

/// Whether there is a reason why it never ran. The outcome of a handle is one, and has been judged.
fn is_explained(ledger: &Ledger, entry: &Entry) -> bool {
    let facts = [
        Fact::Asked,
        Fact::Removed,
        Fact::MayExpire,
        Fact::HandedBack,
        Fact::ByPolicy,
    ];
    let round = &ledger.round;
    let round = [&round.may_discard, &round.may_fail, &round.may_shed];
    entry.outcome().is_some()
        || facts.into_iter().any(|fact| entry.is(fact))
        || round.into_iter().any(|flag| flag.load(Ordering::Relaxed))
}

fn count(entry: &Entry, counts: &mut Counts) {
    counts.happened("tasks");
    let facts = [
        (Fact::Accepted, "tasks accepted"),
        (Fact::Rejected, "tasks rejected"),
        (Fact::HandedBack, "tasks handed back"),
        (Fact::ByPolicy, "tasks kept by a custom policy"),
        (Fact::Job, "tasks of a producer's scope"),
        (Fact::JobAtRisk, "tasks of a task's scope"),
    ];
    for (fact, name) in facts {
        counts.add(name, u64::from(entry.is(fact)));
    }
    counts.add("tasks run", u64::from(entry.runs()));
    match entry.outcome() {
        None => {}
        Some(Outcome::Value) => counts.happened("outcome value"),
        Some(Outcome::Panicked) => counts.happened("outcome panic"),
        Some(Outcome::Cancelled(reason)) => counts.happened(match reason {
            CancelReason::Requested => "outcome cancelled: requested",
            CancelReason::Dropped => "outcome cancelled: dropped",
            CancelReason::Discarded => "outcome cancelled: discarded",
            CancelReason::Removed => "outcome cancelled: removed",
            CancelReason::ShutDown => "outcome cancelled: shut down",
            CancelReason::Expired => "outcome cancelled: expired",
            CancelReason::Shed => "outcome cancelled: shed",
            CancelReason::WaitedTooLong => "outcome cancelled: waited too long",
            CancelReason::Rejected => "outcome cancelled: rejected",
            _ => "outcome cancelled: otherwise",
        }),
    }
}

/// CHAOS-6: the calls of the hooks.
pub(crate) fn hooks(ledger: &Ledger, counts: &mut Counts) {
    let round = &ledger.round;
    let [before, completed, gone, terminated] = [
        &round.hooks_before,
        &round.hooks_completed,
        &round.hooks_gone,
        &round.terminated,
    ]
    .map(read);
    counts.add("hooks that panicked", read(&round.hooks_panicked));
    if before != completed + gone || terminated != 1 {
        ledger.wrong(format!(
            "hooks (CHAOS-6): {before} before, {completed} completed, {gone} gone, {terminated} ends"
        ));
    }
}

/// CHAOS-7: the counters of the terminated pool.
pub(crate) fn books(
    ledger: &Ledger,
    last: &PoolSnapshot,
    asked: u64,
    has_hooks: bool,
    counts: &mut Counts,
) {
    let round = &ledger.round;
    let figures = [
        ("figure completed", last.completed),
        ("figure panicked", last.panicked),
        ("figure cancelled", last.cancelled),
        ("figure expired", last.expired),
        ("figure ran_elsewhere", last.ran_elsewhere),
        ("figure self_joined", last.self_joined),
        ("figure shed", last.shed),
        ("figure rejected", last.left_to_policy),
        ("figure waited_for_room", last.waited_for_room),
        ("figure discarded", last.discarded),
        ("figure caller_ran", last.caller_ran),
        ("figure handed_back", last.handed_back),
        ("figure threads_started", last.threads_started),
        ("figure thread_failures", last.thread_failures),
    ];
    for (name, figure) in figures {
        counts.add(name, figure);
    }
    let must = |holds: bool, what: &str| {
        if !holds {
            ledger.wrong(format!("books (CHAOS-7): {what}\n    {last:?}"));
        }
    };
    let at_rest =
        last.workers + last.active + last.running_inline + last.queued + last.extra_threads == 0;
    must(
        last.state == RunState::Terminated && at_rest,
        "it is not at rest",
    );
    let accepted = read(&round.accepted);
    let sum = accounted_for(last) + round.policy_kept();
    if round.may_run_outside.load(Ordering::Relaxed) {
        let most = sum + last.left_to_policy;
        let holds = sum <= accepted && accepted <= most;
        must(
            holds,
            &format!("{accepted} accepted, {sum} to {most} accounted for"),
        );
    } else {
        must(
            accepted == sum,
            &format!("{accepted} accepted, {sum} accounted for"),
        )
    }
    must(
        last.shed == 0 || round.may_shed.load(Ordering::Relaxed),
        "tasks were shed, and nobody asked for it",
    );
    let handed_back = read(&round.handed_back);
    must(
        last.handed_back == handed_back,
        &format!("{handed_back} were handed back"),
    );
    let threads = last.threads_started + last.thread_failures;
    must(
        threads == asked,
        &format!("the factory was asked for {asked} threads"),
    );
    let rejected = read(&round.rejected);
    must(
        rejected <= last.left_to_policy && last.rejected <= last.left_to_policy,
        &format!("callers saw {rejected} rejections"),
    );
    must(
        last.panicked <= last.completed,
        "more panicked than completed",
    );
    let completed = read(&round.hooks_completed);
    must(
        !has_hooks || last.completed_by_workers() == completed,
        &format!("hooks saw {completed}"),
    );
}

/// CHAOS-7 of a fork-join pool: a task that was submitted has completed, or was cancelled. Tasks that were forked, and
/// not submitted by a client, are among them.
pub(crate) fn fork_join_books(ledger: &Ledger, last: &ForkJoinSnapshot) {
    let must = |holds: bool, what: &str| {
        if !holds {
            ledger.wrong(format!("books (CHAOS-7): {what}\n    {last:?}"));
        }
    };
    let round = &ledger.round;
    let queued = last.queued_outside + last.queued_by_worker.iter().sum::<usize>();
    let busy = last.workers + last.active + last.blocked + last.joining + last.spares;
    let at_rest = queued + busy == 0;
    must(
        last.state == RunState::Terminated && at_rest,
        "it is not at rest",
    );
    let (accepted, sum) = (read(&round.accepted), last.completed + last.cancelled);
    must(
        accepted == last.submitted && accepted == sum,
        &format!("{accepted} accepted, {sum} accounted for"),
    );
    let handed_back = read(&round.handed_back);
    must(
        last.handed_back == handed_back,
        &format!("{handed_back} were handed back"),
    );
    let rejected = read(&round.rejected);
    must(
        rejected == last.rejected,
        &format!("callers saw {rejected} rejections"),
    );
    must(
        last.panicked + last.ran_elsewhere <= 2 * last.completed
            && last.expired + last.handed_back <= last.cancelled,
        "a part is more than the whole",
    );
}

/// The outcomes of the tasks that a pool has accepted, but for those that extra threads ran.
fn accounted_for(last: &PoolSnapshot) -> u64 {
    last.completed + last.cancelled - last.extra_ran
}

fn read(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}
