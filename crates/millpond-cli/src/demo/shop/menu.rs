//! The three departments: their pools, and what they usually do. Every number of the shop is here.

use std::time::Duration;

use anyhow::{Context, Result};
use millpond::manage::Growth;
use millpond::pool::{Queue, ThreadPool};

use super::department::Department;
use super::easel::Easel;
use super::tide::Tide;
use super::visits::{Crowd, Job, Round, Rounds, Source, Usual, Work};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Short enough to see workers leave.
const KEEP_ALIVE: Duration = Duration::from_secs(3);

const ORDERS: &[Usual] = &[
    Usual {
        name: "check stock",
        share: 3.0,
        takes: ms(8),
        work: Work::Wait,
    },
    Usual {
        name: "charge card",
        share: 2.0,
        takes: ms(30),
        work: Work::Wait,
    },
    Usual {
        name: "print label",
        share: 1.0,
        takes: ms(50),
        work: Work::Wait,
    },
];

const IMAGES: &[Usual] = &[
    Usual {
        name: "thumbnail",
        share: 4.0,
        takes: ms(12),
        work: Work::Paint,
    },
    Usual {
        name: "poster",
        share: 1.0,
        takes: ms(60),
        work: Work::Paint,
    },
];

const MAILS: &[Round] = &[
    Round {
        job: mail("receipt", 9),
        every: ms(40),
        from: ms(40),
        many: 1,
    },
    Round {
        job: mail("reminder", 60),
        every: ms(700),
        from: ms(300),
        many: 2,
    },
    Round {
        job: mail("newsletter", 15),
        every: ms(7_000),
        from: ms(3_000),
        many: 90,
    },
];

const fn mail(name: &'static str, millis: u64) -> Job {
    let work = Work::Wait(ms(millis));
    Job { name, work }
}

/// All departments, each with its customers.
pub(super) fn departments(seed: u64, tide: Tide) -> Result<Vec<(Department, Box<dyn Source>)>> {
    let easel = Easel::new();
    // Its tasks block, so one more thread is better than one more waiting task.
    let orders = ThreadPool::builder("orders")
        .core(2)
        .max(6)
        .growth(Growth::ThreadsFirst)
        .queue(Queue::bounded(40));
    // It computes, so more threads than CPUs are of no use; and one CPU is left for the others.
    let images = ThreadPool::builder("images")
        .core(1)
        .max(1)
        .queue(Queue::bounded(12));
    let mails = ThreadPool::builder("mails")
        .core(1)
        .max(2)
        .queue(Queue::bounded(50));
    let sources: [Box<dyn Source>; 3] = [
        Box::new(Crowd::new(seed, tide, 60.0, ORDERS)),
        // Another crowd, not the same one with other work.
        Box::new(Crowd::new(!seed, tide, 10.0, IMAGES)),
        Box::new(Rounds::new(MAILS)),
    ];
    let pools = [orders, images, mails].into_iter().map(|builder| {
        let pool = builder.keep_alive(KEEP_ALIVE).build();
        pool.context("a pool of the demo cannot be built as described")
    });
    pools
        .zip(sources)
        .map(|(pool, source)| Ok((Department::new(pool?, easel), source)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many workers would be busy all the time at this height of the tide.
    fn busy(rate: f64, menu: &[Usual], height: f64) -> f64 {
        let all: f64 = menu.iter().map(|usual| usual.share).sum();
        let each = menu
            .iter()
            .map(|usual| usual.share * usual.takes.as_secs_f64());
        rate * height * each.sum::<f64>() / all
    }

    #[test]
    fn at_ebb_every_pool_is_bored_and_at_flood_the_crowds_are_more_than_it_can_do() {
        assert!(busy(60.0, ORDERS, 0.3) < 1.0);
        assert!(busy(60.0, ORDERS, 5.0) > 6.0);
        assert!(busy(10.0, IMAGES, 0.3) < 0.2);
        assert!(busy(10.0, IMAGES, 5.0) > 1.0);
    }

    #[test]
    fn the_newsletter_is_more_than_the_queue_of_mails_has_room_for() {
        let tide = Tide::new(1);
        let all = departments(1, tide).unwrap();
        let mails = &all[2].0.pool;
        let most = MAILS.iter().map(|round| round.many).max();
        assert!(most > mails.capacity(), "{most:?}");
    }
}
