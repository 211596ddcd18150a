//! Checks the ledgers of a program against the rules in the [module](super); pools are checked by
//! [chaos](crate::chaos).

use super::engines::{EndedTimers, PoolEngine};
use crate::chaos::any_pool::AnyPool;
use crate::chaos::client::{Client, settle};
use crate::chaos::ledger::{Entry, Fact, Ledger, Outcome, lock};
use crate::chaos::round::wait_for;
use crate::chaos::{Counts, judge};
use crate::kit::delays;
use millpond::task::{CancelReason, TaskError};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// PROGRAM-2. `last` is a handle, if there is one left.
pub(super) fn pool(pool: &PoolEngine, last: Option<Client>) {
    let (ledger, counts) = (&pool.ledger, &mut Counts::default());
    settle_all(ledger);
    judge::tasks(ledger, counts);
    let has_hooks = pool.shape.hooks > 0;
    if has_hooks {
        judge::hooks(ledger, counts);
    }
    if let Some(client) = last {
        let asked = pool.factory.asked.load(Ordering::Relaxed);
        match &client.pool {
            AnyPool::Threads(pool) => {
                judge::books(ledger, &pool.snapshot(), asked, has_hooks, counts);
            }
            AnyPool::ForkJoin(pool) => judge::fork_join_books(ledger, &pool.snapshot()),
        }
    }
}

/// The handles of a scheduled pool that has terminated. By then all of them have completed, whichever thread ran
/// their tasks, and values without a handle are dropped. A pool on a foreign executor that was stopped does not
/// see a task just taken out of that executor's queue (LIVENESS-5 in `millpond`'s `schedule`), and the end may not
/// have been awaited: only there it may take a moment.
pub(super) fn timers(ended: EndedTimers) -> Arc<Ledger> {
    let ledger = ended.ledger;
    settle_all(&ledger);
    for (id, mut handle) in ended.kept {
        let joined = if ended.may_lag {
            Some(handle.join_timeout(delays::long()))
        } else {
            handle.try_join()
        };
        match joined {
            None | Some(Err(TaskError::TimedOut)) => ledger.wrong(format!(
                "the scheduled pool is over, and the handle of {id} is not (PROGRAM-3)"
            )),
            Some(joined) => settle(&ledger, id, joined),
        }
    }
    if ended.may_lag {
        let end = Instant::now() + delays::long();
        let is_dropped = |entry: &Entry| entry.values().0 == entry.values().1;
        wait_for(|| ledger.entries().all(|(_, entry)| is_dropped(entry)) || Instant::now() > end);
    }
    if ended.has_hooks {
        judge::hooks(&ledger, &mut Counts::default());
    }
    ledger
}

fn settle_all(ledger: &Ledger) {
    for (id, mut handle) in lock(&ledger.unjoined).drain(..) {
        match handle.try_join() {
            Some(joined) => settle(ledger, id, joined),
            None => ledger.wrong(format!(
                "the engine is over, and the handle of {id} is not (PROGRAM-3)"
            )),
        }
    }
}

/// PROGRAM-3, of an engine that is not a pool.
pub(super) fn loosely(ledger: &Ledger) {
    settle_all(ledger);
    each(ledger, |entry| {
        let kept = entry.is(Fact::HasHandle) && !entry.is(Fact::LetGo);
        let (ran, outcome) = (entry.runs() == 1, entry.outcome());
        let agrees = match outcome {
            None => true,
            Some(Outcome::Value) => ran && !entry.is(Fact::Panics),
            Some(Outcome::Panicked) => ran && entry.is(Fact::Panics),
            // One that runs is cancelled, too, and goes on.
            Some(Outcome::Cancelled(CancelReason::Requested)) => entry.is(Fact::Asked),
            Some(Outcome::Cancelled(_)) => !ran,
        };
        if entry.is(Fact::Rejected) {
            return (ran && !entry.is(Fact::BySubmitter))
                .then_some("rejected, and run nevertheless (PROGRAM-3)");
        }
        match () {
            () if kept && outcome.is_none() => Some("its handle is not finished (PROGRAM-3)"),
            () if !agrees => Some("its handle has an impossible outcome (PROGRAM-3)"),
            // A task without a handle may be lost with the inner pool; that pool's own tasks are judged
            // strictly.
            () => None,
        }
    });
}

/// PROGRAM-6.
pub(super) fn queue(ledger: &Ledger) {
    each(ledger, |entry| {
        let (is_in, runs) = (entry.is(Fact::Accepted), entry.runs());
        (u32::from(is_in) != runs).then_some("an element was lost, or came out twice (PROGRAM-6)")
    });
}

/// The rules for everything, and one more.
fn each(ledger: &Ledger, problem: impl Fn(&Entry) -> Option<&'static str>) {
    for (id, entry) in ledger.entries() {
        let (values, dropped) = entry.values();
        let all = [
            (entry.is(Fact::Accepted) == entry.is(Fact::Rejected))
                .then_some("neither accepted nor rejected"),
            (entry.runs() > 1).then_some("ran twice"),
            (entry.drops() != 1).then_some("its closure was not dropped once"),
            (values != entry.runs() || dropped != values)
                .then_some("its value was not dropped once"),
            problem(entry),
        ];
        for problem in all.into_iter().flatten() {
            ledger.wrong(format!(
                "{id}: {problem}\n    {}\n    ran {}, dropped {}, values {values}, of them dropped \
                 {dropped}, its handle came to {:?}",
                entry.facts(),
                entry.runs(),
                entry.drops(),
                entry.outcome(),
            ));
        }
    }
}
