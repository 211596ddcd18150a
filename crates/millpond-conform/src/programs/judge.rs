//! Whether the books of a program balance. The rules are in the [module](super); pools are judged by
//! [chaos](crate::chaos).

use super::engines::{EndedTimers, PoolEngine};
use crate::chaos::bank::{Bank, settle};
use crate::chaos::ledger::{Entry, Fact, Ledger, Outcome, lock};
use crate::chaos::round::wait_for;
use crate::chaos::{Tally, judge};
use crate::kit::delays;
use millpond::task::{CancelReason, TaskError};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// R2. `last` is a handle, if there is one left.
pub(super) fn pool(pool: &PoolEngine, last: Option<Bank>) {
    let (ledger, tally) = (&pool.ledger, &mut Tally::default());
    settle_all(ledger);
    judge::tasks(ledger, tally);
    let has_hooks = pool.shape.hooks > 0;
    if has_hooks {
        judge::hooks(ledger, tally);
    }
    if let Some(bank) = last {
        let asked = pool.mill.asked.load(Ordering::Relaxed);
        judge::books(ledger, &bank.pool.snapshot(), asked, has_hooks, tally);
    }
}

/// The handles of a scheduled pool that has ended. By then all of them have heard, whichever thread ran their tasks,
/// and values that nobody wants are gone. A pool on an executor of others that was stopped does not see a task which
/// that has just taken out of its queue (K2 in `millpond`'s `schedule`), and nobody may have waited for the end: only
/// there it may take a moment.
pub(super) fn timers(ended: EndedTimers) -> Arc<Ledger> {
    let ledger = ended.ledger;
    settle_all(&ledger);
    for (id, mut handle) in ended.kept {
        let joined = match ended.may_lag {
            true => Some(handle.join_timeout(delays::long())),
            false => handle.try_join(),
        };
        match joined {
            None | Some(Err(TaskError::TimedOut)) => ledger.wrong(format!(
                "the scheduled pool is over, and the handle of {id} is not (R3)"
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
        judge::hooks(&ledger, &mut Tally::default());
    }
    ledger
}

fn settle_all(ledger: &Ledger) {
    for (id, mut handle) in lock(&ledger.pouch).drain(..) {
        match handle.try_join() {
            Some(joined) => settle(ledger, id, joined),
            None => ledger.wrong(format!(
                "the engine is over, and the handle of {id} is not (R3)"
            )),
        }
    }
}

/// R3, of an engine that is not a pool.
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
        if entry.is(Fact::Refused) {
            return (ran && !entry.is(Fact::BySubmitter))
                .then_some("refused, and run all the same (R3)");
        }
        match () {
            () if kept && outcome.is_none() => Some("its handle is not finished (R3)"),
            () if !agrees => Some("its handle cannot have come to that (R3)"),
            // What has no handle may be lost with the pool below; that pool's own tasks are judged
            // strictly.
            () => None,
        }
    });
}

/// R6.
pub(super) fn queue(ledger: &Ledger) {
    each(ledger, |entry| {
        let (is_in, runs) = (entry.is(Fact::Accepted), entry.runs());
        (u32::from(is_in) != runs).then_some("an element was lost, or came out twice (R6)")
    });
}

/// What holds of everything, and one thing more.
fn each(ledger: &Ledger, problem: impl Fn(&Entry) -> Option<&'static str>) {
    for (id, entry) in ledger.entries() {
        let (values, dropped) = entry.values();
        let all = [
            (entry.is(Fact::Accepted) == entry.is(Fact::Refused))
                .then_some("neither accepted nor refused"),
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
