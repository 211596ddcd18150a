//! One round: builds a pool, runs all threads on it, ends it and checks the ledger.

use super::any_pool::AnyPool;
use super::client::{self, Client, settle};
use super::counts::Counts;
use super::faulty::{FaultyFactory, FaultyHooks};
use super::ledger::{Ledger, lock};
use super::shape::{End, Shape};
use super::{actions, judge, rng_of};
use crate::kit::Rng;
use millpond::executor::Lifecycle;
use millpond::manage::OverloadOrder;
use millpond::pool::ThreadPool;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{hint, thread};

/// The result of a round.
#[derive(Debug)]
pub struct Played {
    /// The drawn shape.
    pub shape: Shape,
    /// The events, and how often each happened.
    pub counts: Counts,
    /// All that is wrong; nothing, if all is well.
    pub wrong: Vec<String>,
}

/// Plays one round. `begins` is called with its shape first: a round that hangs never returns.
///
/// # Panics
///
/// If the operating system refuses a thread for the players.
pub fn play(seed: u64, round: u64, begins: impl FnOnce(&Shape)) -> Played {
    let mut rng = rng_of(seed, round);
    let shape = Shape::draw(&mut rng);
    begins(&shape);
    // Tasks submit tasks; one that finds no free entry is not submitted.
    let ledger = Ledger::new(shape.producers * shape.tasks * 4 + 64);
    let factory = Arc::new(FaultyFactory::new(&ledger, shape.faults, rng.fork()));
    let pool = build(&shape, &ledger, &factory, &mut rng);
    let mut counts = Counts::default();
    actions(&shape, &pool, &ledger, &factory, &mut rng, &mut counts);

    // CHAOS-1. The watchdog of this round ends it if this takes too long.
    let last = match shape.end {
        End::Drop => {
            drop(pool);
            wait_for(|| ledger.round.terminated.load(Ordering::SeqCst) > 0);
            None
        }
        _ => {
            while pool.await_termination().is_err() {}
            Some(pool)
        }
    };
    wait_for(|| factory.live_threads() == 0);

    for (id, mut handle) in lock(&ledger.unjoined).drain(..) {
        match handle.try_join() {
            Some(joined) => settle(&ledger, id, joined),
            None => ledger.wrong(format!(
                "the pool is over, and the handle of {id} is not (CHAOS-4)"
            )),
        }
    }
    judge::tasks(&ledger, &mut counts);
    if shape.hooks > 0 {
        judge::hooks(&ledger, &mut counts);
    }
    if let Some(pool) = last {
        let asked = factory.asked.load(Ordering::Relaxed);
        judge::books(
            &ledger,
            &pool.snapshot(),
            asked,
            shape.hooks > 0,
            &mut counts,
        );
    }
    counts.happened(shape.queue.name());
    if shape.overload.order == OverloadOrder::NewestFirst {
        counts.happened("order newest first");
    }
    counts.happened(shape.policy.name());
    counts.happened(shape.end.name());
    Played {
        shape,
        counts,
        wrong: ledger.all_wrong(),
    }
}

pub(crate) fn build(
    shape: &Shape,
    ledger: &Arc<Ledger>,
    factory: &Arc<FaultyFactory>,
    rng: &mut Rng,
) -> ThreadPool {
    let sheds = &ledger.round.may_shed;
    sheds.fetch_or(shape.overload.sheds(), Ordering::Relaxed);
    let builder = ThreadPool::builder("chaos")
        .core(shape.core)
        .max(shape.max)
        .keep_alive(shape.keep_alive)
        .core_may_time_out(shape.core_may_time_out)
        .growth(shape.growth)
        .queue(shape.queue.build())
        .max_queue_wait(shape.overload.max_queue_wait)
        .shedding(shape.overload.shedding)
        .overload_order(shape.overload.order)
        .rejection(shape.policy.build(ledger, rng))
        .threads(Arc::clone(factory));
    let builder = match shape.hooks {
        0 => builder,
        once_in => builder.hooks(FaultyHooks {
            ledger: Arc::clone(ledger),
            rng: Mutex::new(rng.fork()),
            once_in: once_in + 1,
        }),
    };
    builder.build().expect("what is drawn is valid")
}

/// All threads play, until the producers have submitted their tasks and the end has been started.
fn actions(
    shape: &Shape,
    pool: &ThreadPool,
    ledger: &Arc<Ledger>,
    factory: &FaultyFactory,
    rng: &mut Rng,
    counts: &mut Counts,
) {
    let over = AtomicBool::new(false);
    let a_bank = || Client {
        pool: AnyPool::Threads(pool.clone()),
        ledger: Arc::clone(ledger),
        deadlines: shape.deadlines,
    };
    thread::scope(|s| {
        let producers: Vec<_> = (0..shape.producers)
            .map(|_| {
                let (client, rng) = (a_bank(), rng.fork());
                let produce = if shape.lone {
                    actions::produce_alone
                } else {
                    actions::produce
                };
                s.spawn(move || produce(&client, rng, shape.tasks))
            })
            .collect();
        let meddler = shape.meddles.then(|| {
            let (client, rng, over) = (a_bank(), rng.fork(), &over);
            s.spawn(move || actions::meddle(&client, factory, rng, over))
        });
        let (client, mut own) = (a_bank(), rng.fork());
        let ended_early = shape.end_after.map(|tasks| {
            wait_for(|| ledger.len() >= tasks || producers.iter().all(|one| one.is_finished()));
            client::end(&client, &mut own, shape.end);
        });
        for producer in producers {
            counts.merge(producer.join().expect("producers do not panic"));
        }
        if ended_early.is_none() {
            client::end(&client, &mut own, shape.end);
        }
        over.store(true, Ordering::Relaxed);
        if let Some(meddler) = meddler {
            counts.merge(meddler.join().expect("the meddler does not panic"));
        }
    });
}

/// Waits for what must come.
pub(crate) fn wait_for(mut what: impl FnMut() -> bool) {
    for looks in 0_u64.. {
        if what() {
            return;
        }
        match looks {
            0..100 => hint::spin_loop(),
            100..200 => thread::yield_now(),
            _ => thread::sleep(Duration::from_micros(50)),
        }
    }
}
