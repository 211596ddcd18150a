//! Those who play: producers, who bring tasks and treat their handles badly, and the meddler, who
//! changes everything that can be changed.

use super::bank::{Bank, bring, let_go, scope, settle};
use super::ledger::{Fact, Value, lock};
use super::mill::Mill;
use super::shape::{Line, Policy, growth, overload};
use super::tally::Tally;
use crate::kit::Rng;
use millpond::manage::Patch;
use millpond::task::{TaskError, TaskHandle};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Brings so many tasks.
pub(crate) fn produce(bank: &Bank, mut rng: Rng, tasks: usize) -> Tally {
    let mut tally = Tally::default();
    let mut kept: Vec<(usize, TaskHandle<Value>)> = Vec::new();
    for _ in 0..tasks {
        if rng.once_in(12) {
            tally.happened("scopes");
            scope(bank, &mut rng, false);
        }
        kept.extend(bring(bank, &mut rng, 0));
        if !kept.is_empty() && rng.once_in(2) {
            let (id, handle) = kept.swap_remove(rng.below(kept.len()));
            kept.extend(treat(bank, &mut rng, &mut tally, id, handle));
        }
        if rng.once_in(30) {
            tally.happened("purges");
            bank.pool.purge();
        }
        rng.jitter();
    }
    for (id, handle) in kept {
        match rng.below(4) {
            0 => {
                tally.happened("joins");
                settle(&bank.ledger, id, handle.join());
            }
            1 => lock(&bank.ledger.pouch).push((id, handle)),
            _ => {
                if let Some(kept) = treat(bank, &mut rng, &mut tally, id, handle) {
                    lock(&bank.ledger.pouch).push(kept);
                }
            }
        }
    }
    tally
}

/// Brings so many tasks, one at a time: each is waited for before the next one comes.
pub(crate) fn produce_alone(bank: &Bank, mut rng: Rng, tasks: usize) -> Tally {
    let mut tally = Tally::default();
    for _ in 0..tasks * 3 {
        if let Some((id, handle)) = bring(bank, &mut rng, 0) {
            tally.happened("joins of a lone producer");
            settle(&bank.ledger, id, handle.join());
        }
        // About as long as workers stay.
        (0..rng.below(3000)).for_each(|_| std::hint::spin_loop());
    }
    tally
}

/// Does something with a handle. It comes back if it is still of use.
fn treat(
    bank: &Bank,
    rng: &mut Rng,
    tally: &mut Tally,
    id: usize,
    mut handle: TaskHandle<Value>,
) -> Option<(usize, TaskHandle<Value>)> {
    let entry = bank.ledger.entry(id);
    match rng.below(9) {
        0 => {
            tally.happened("joins");
            settle(&bank.ledger, id, handle.join());
            return None;
        }
        1 | 2 => {
            tally.happened("joins with a time-out");
            match handle.join_timeout(rng.patience()) {
                Err(TaskError::TimedOut) => {}
                joined => {
                    settle(&bank.ledger, id, joined);
                    return None;
                }
            }
        }
        3 => {
            tally.happened("joins here");
            settle(&bank.ledger, id, handle.join_here());
            return None;
        }
        4 | 5 => {
            entry.note(Fact::Asked);
            let cancelled = match rng.once_in(2) {
                true => handle.cancel(),
                false => handle.interrupt(),
            };
            if cancelled {
                tally.happened("cancelled by a handle");
                entry.note(Fact::Cancelled);
            }
        }
        6 => {
            if bank.pool.remove(&handle) {
                tally.happened("removed");
                entry.note(Fact::Removed);
            }
        }
        7 => {
            entry.note(Fact::Asked);
            entry.note(Fact::LetGo);
            tally.happened("aborted on drop");
            drop(handle.abort_on_drop());
            return None;
        }
        _ => {
            let_go(bank, id, handle);
            return None;
        }
    }
    Some((id, handle))
}

/// Changes the pool until it is told to stop.
pub(crate) fn meddle(bank: &Bank, mill: &Mill, mut rng: Rng, over: &AtomicBool) -> Tally {
    let mut tally = Tally::default();
    while !over.load(Ordering::Relaxed) {
        meddle_once(bank, mill, &mut rng, &mut tally);
        rng.jitter();
    }
    tally
}

/// Changes the pool, or looks at it. One at a time does.
pub(crate) fn meddle_once(bank: &Bank, mill: &Mill, rng: &mut Rng, tally: &mut Tally) {
    let pool = &bank.pool;
    match rng.below(12) {
        0..=2 => patch(bank, rng, tally),
        3 => {
            let policy = Policy::draw(rng);
            tally.happened("policies swapped");
            pool.set_rejection(policy.build(&bank.ledger, rng));
        }
        4 => {
            tally.happened("prestarts");
            // A vice of the factory is no fault of the pool.
            let _ = pool.prestart_core();
        }
        5 => {
            tally.happened("prestarts");
            let _ = pool.prestart_all_core();
        }
        6 => {
            tally.happened("snapshots");
            let seen = pool.snapshot();
            if seen.core > seen.max {
                bank.ledger.wrong(format!("core above max: {seen:?}"));
            }
        }
        7 => {
            tally.happened("queues looked at");
            drop(pool.queued_tasks());
        }
        8 => {
            tally.happened("factory moods");
            let vices = if rng.once_in(2) { 0 } else { 1 + rng.below(12) };
            // Only where threads may fail in any case: others are to be judged strictly.
            if bank.ledger.round.may_fail.load(Ordering::Relaxed) {
                mill.set_vices(vices);
            }
        }
        9 => pool.set_growth(growth(rng)),
        10 => drop(format!("{pool:?}")),
        _ => {
            tally.happened("purges");
            pool.purge();
        }
    }
}

/// A patch, good or bad. A bad one changes nothing; the meddler is alone, so that can be seen.
fn patch(bank: &Bank, rng: &mut Rng, tally: &mut Tally) {
    let pool = &bank.pool;
    let mut patch = Patch::new();
    if rng.once_in(2) {
        patch = patch.core(rng.below(6));
    }
    if rng.once_in(2) {
        patch = patch.max(rng.below(7));
    }
    if rng.once_in(3) {
        patch = patch.keep_alive(match rng.once_in(2) {
            true => rng.patience(),
            false => Duration::from_secs(60),
        });
    }
    if rng.once_in(4) {
        patch = patch.core_may_time_out(rng.once_in(2));
    }
    if rng.once_in(4) {
        patch = patch.growth(growth(rng));
    }
    if rng.once_in(4) {
        patch = patch.capacity(rng.below(6));
    }
    if rng.once_in(4) {
        // Whatever the queue is: an order that it cannot have is refused.
        let drawn = overload(rng, Line::Unbounded);
        if drawn.sheds() {
            bank.ledger.round.may_shed.store(true, Ordering::Relaxed);
        }
        tally.happened("protections swapped");
        patch = patch.max_queue_wait(drawn.max_queue_wait);
        patch = patch.shedding(drawn.shedding);
        patch = patch.overload_order(drawn.order);
    }
    let all = || {
        let guard = (
            pool.max_queue_wait(),
            pool.shedding(),
            pool.overload_order(),
        );
        let time = (pool.keep_alive(), pool.core_may_time_out());
        (
            pool.core(),
            pool.max(),
            time,
            pool.growth(),
            pool.capacity(),
            guard,
        )
    };
    let before = all();
    match pool.apply(&patch) {
        Ok(()) => tally.happened("patches applied"),
        Err(error) => {
            tally.happened("patches refused");
            let after = all();
            if before != after {
                bank.ledger.wrong(format!(
                    "a patch was refused ({error}) and changed {before:?} to {after:?}"
                ));
            }
        }
    }
}
