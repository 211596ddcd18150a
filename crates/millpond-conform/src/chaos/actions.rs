//! The threads of a round: producers, which submit tasks and use their handles in every way, and the
//! meddler, which changes every parameter.

use super::any_pool::AnyPool;
use super::client::{Client, let_go, scope, settle, submit_task};
use super::counts::Counts;
use super::faulty::FaultyFactory;
use super::ledger::{Fact, Value, lock};
use super::shape::{Line, Policy, growth, overload};
use crate::kit::Rng;
use millpond::forkjoin::ForkJoinPool;
use millpond::manage::Patch;
use millpond::pool::ThreadPool;
use millpond::task::{TaskError, TaskHandle};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Submits so many tasks.
pub(crate) fn produce(client: &Client, mut rng: Rng, tasks: usize) -> Counts {
    let mut counts = Counts::default();
    let mut kept: Vec<(usize, TaskHandle<Value>)> = Vec::new();
    for _ in 0..tasks {
        if rng.once_in(12) {
            counts.happened("scopes");
            scope(client, &mut rng, false);
        }
        kept.extend(submit_task(client, &mut rng, 0));
        if !kept.is_empty() && rng.once_in(2) {
            let (id, handle) = kept.swap_remove(rng.below(kept.len()));
            kept.extend(treat(client, &mut rng, &mut counts, id, handle));
        }
        if rng.once_in(30) {
            counts.happened("purges");
            client.pool.purge();
        }
        rng.jitter();
    }
    for (id, handle) in kept {
        match rng.below(4) {
            0 => {
                counts.happened("joins");
                settle(&client.ledger, id, handle.join());
            }
            1 => lock(&client.ledger.unjoined).push((id, handle)),
            _ => {
                if let Some(kept) = treat(client, &mut rng, &mut counts, id, handle) {
                    lock(&client.ledger.unjoined).push(kept);
                }
            }
        }
    }
    counts
}

/// Submits so many tasks, one at a time: each is joined before the next one is submitted.
pub(crate) fn produce_alone(client: &Client, mut rng: Rng, tasks: usize) -> Counts {
    let mut counts = Counts::default();
    for _ in 0..tasks * 3 {
        if let Some((id, handle)) = submit_task(client, &mut rng, 0) {
            counts.happened("joins of a lone producer");
            settle(&client.ledger, id, handle.join());
        }
        // About as long as workers stay.
        (0..rng.below(3000)).for_each(|_| std::hint::spin_loop());
    }
    counts
}

/// Does something with a handle. It comes back if it is still of use.
fn treat(
    client: &Client,
    rng: &mut Rng,
    counts: &mut Counts,
    id: usize,
    mut handle: TaskHandle<Value>,
) -> Option<(usize, TaskHandle<Value>)> {
    let entry = client.ledger.entry(id);
    match rng.below(9) {
        0 => {
            counts.happened("joins");
            settle(&client.ledger, id, handle.join());
            return None;
        }
        1 | 2 => {
            counts.happened("joins with a time-out");
            match handle.join_timeout(rng.timeout()) {
                Err(TaskError::TimedOut) => {}
                joined => {
                    settle(&client.ledger, id, joined);
                    return None;
                }
            }
        }
        3 => {
            counts.happened("joins here");
            settle(&client.ledger, id, handle.run_or_join());
            return None;
        }
        4 | 5 => {
            entry.note(Fact::Asked);
            let cancelled = if rng.once_in(2) {
                handle.cancel()
            } else {
                handle.interrupt()
            };
            if cancelled {
                counts.happened("cancelled by a handle");
                entry.note(Fact::Cancelled);
            }
        }
        6 => {
            if client.pool.remove(&handle) {
                counts.happened("removed");
                entry.note(Fact::Removed);
            }
        }
        7 => {
            entry.note(Fact::Asked);
            entry.note(Fact::LetGo);
            counts.happened("aborted on drop");
            drop(handle.abort_on_drop());
            return None;
        }
        _ => {
            let_go(client, id, handle);
            return None;
        }
    }
    Some((id, handle))
}

/// Changes the pool until it is stopped.
pub(crate) fn meddle(
    client: &Client,
    factory: &FaultyFactory,
    mut rng: Rng,
    over: &AtomicBool,
) -> Counts {
    let mut counts = Counts::default();
    while !over.load(Ordering::Relaxed) {
        meddle_once(client, factory, &mut rng, &mut counts);
        rng.jitter();
    }
    counts
}

/// Changes the pool, or looks at it. One at a time does.
pub(crate) fn meddle_once(
    client: &Client,
    factory: &FaultyFactory,
    rng: &mut Rng,
    counts: &mut Counts,
) {
    let pool = match &client.pool {
        AnyPool::Threads(pool) => pool,
        AnyPool::ForkJoin(pool) => return meddle_fork_join(client, pool, factory, rng),
    };
    match rng.below(12) {
        0..=2 => patch(client, pool, rng, counts),
        3 => {
            let policy = Policy::draw(rng);
            counts.happened("policies swapped");
            pool.set_rejection(policy.build(&client.ledger, rng));
        }
        4 => {
            counts.happened("prestarts");
            // A failure of the factory is no failure of the pool.
            let _ = pool.prestart_core();
        }
        5 => {
            counts.happened("prestarts");
            let _ = pool.prestart_all_core();
        }
        6 => {
            counts.happened("snapshots");
            let seen = pool.snapshot();
            if seen.core > seen.max {
                client.ledger.wrong(format!("core above max: {seen:?}"));
            }
        }
        7 => {
            counts.happened("queues looked at");
            drop(pool.queued_tasks());
        }
        8 => {
            counts.happened("factory moods");
            let faults = if rng.once_in(2) { 0 } else { 1 + rng.below(12) };
            // Only where threads may fail in any case: others are to be judged strictly.
            if client.ledger.round.may_fail.load(Ordering::Relaxed) {
                factory.set_faults(faults);
            }
        }
        9 => pool.set_growth(growth(rng)),
        10 => drop(format!("{pool:?}")),
        _ => {
            counts.happened("purges");
            pool.purge();
        }
    }
}

fn meddle_fork_join(client: &Client, pool: &ForkJoinPool, factory: &FaultyFactory, rng: &mut Rng) {
    match rng.below(10) {
        0..=3 => {
            let (before, size) = (pool.parallelism(), rng.below(6));
            if pool.set_parallelism(size).is_ok() == (size == 0) {
                let what = format!("a parallelism of {size} was set, and before it was {before}");
                client.ledger.wrong(what);
            }
        }
        // A bad patch changes nothing, and that is judged by the suites.
        4 => drop(pool.set_max_spares(rng.below(20))),
        5 => drop(pool.apply(&fork_join_patch(rng))),
        6 => drop(pool.await_quiescence(rng.timeout())),
        7 => drop(format!("{pool:?}")),
        8 => drop(pool.is_quiescent()),
        _ => {
            if client.ledger.round.may_fail.load(Ordering::Relaxed) {
                factory.set_faults(rng.below(12));
            }
        }
    }
}

fn fork_join_patch(rng: &mut Rng) -> Patch {
    let keep_alive = match rng.once_in(2) {
        true => rng.timeout(),
        false => Duration::from_secs(60),
    };
    let help = ["descendants", "any", "never"][rng.below(3)];
    let patch = Patch::new().set("keep_alive", keep_alive);
    patch.set("fifo", rng.once_in(2)).set("help", help)
}

/// A patch, good or bad. A bad one changes nothing; the meddler is alone, so that can be seen.
fn patch(client: &Client, pool: &ThreadPool, rng: &mut Rng, counts: &mut Counts) {
    let mut patch = Patch::new();
    if rng.once_in(2) {
        patch = patch.core(rng.below(6));
    }
    if rng.once_in(2) {
        patch = patch.max(rng.below(7));
    }
    if rng.once_in(3) {
        patch = patch.keep_alive(if rng.once_in(2) {
            rng.timeout()
        } else {
            Duration::from_secs(60)
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
        // Whatever the queue is: an order that it cannot have is an error.
        let drawn = overload(rng, Line::Unbounded);
        if drawn.sheds() {
            client.ledger.round.may_shed.store(true, Ordering::Relaxed);
        }
        counts.happened("protections swapped");
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
        Ok(_) => counts.happened("patches applied"),
        Err(error) => {
            counts.happened("patches rejected");
            let after = all();
            if before != after {
                client.ledger.wrong(format!(
                    "a patch was rejected ({error}) and changed {before:?} to {after:?}"
                ));
            }
        }
    }
}
