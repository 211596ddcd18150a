//! Computes what the pool would do on 4 to 128 cores: `cargo xtask scale`.
//!
//! An example and not a binary, because `cargo run` in the workspace must find exactly one program. It is
//! built twice: as usual it measures what a task costs alone (`times`), and with `--cfg millpond_traffic` it
//! records accesses and computes the tables (`tables`).

#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "it measures from outside"
)]

use clap::{Parser, Subcommand};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What the pool would do on more cores than there are, from counts of a recorded run.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    part: Part,
}

#[derive(Debug, Subcommand)]
enum Part {
    /// Measures what a task costs alone, and prints it as JSON
    Times,
    /// Records a run, counts, and prints the tables of docs/design/scale.md
    Tables {
        /// What `times` printed
        #[arg(long)]
        times: PathBuf,
    },
}

/// What things cost without another core, in ns.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
struct Times {
    /// A submit while no worker is awake.
    submit: f64,
    /// Taking and running a task while nobody submits.
    run: f64,
    /// A lock that is taken and released.
    lock: f64,
    /// A cache line from one core to the other; none where there is one core.
    transfer: Option<f64>,
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().part {
        Part::Times => {
            let times = times::measure()?;
            println!("{}", serde_json::to_string(&times)?);
        }
        Part::Tables { times } => {
            let times: Times = serde_json::from_str(&std::fs::read_to_string(times)?)?;
            tables::print(times)?;
        }
    }
    Ok(())
}

mod times {
    use super::Times;
    use millpond::executor::{ExecutorExt, Lifecycle};
    use millpond::pool::{Queue, ThreadPool};
    use millpond_raw::sync::Mutex;
    use std::hint::{black_box, spin_loop};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::mpsc;
    use std::time::Instant;

    const TASKS: usize = 200_000;
    const ROUNDS: usize = 11;

    pub(super) fn measure() -> anyhow::Result<Times> {
        let (mut submit, mut run) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let (one, other) = submit_then_run()?;
            submit.push(one);
            run.push(other);
        }
        Ok(Times {
            submit: median(submit),
            run: median(run),
            lock: median((0..ROUNDS).map(|_| lock()).collect()),
            transfer: std::thread::available_parallelism()
                .is_ok_and(|cores| cores.get() > 1)
                .then(|| median((0..ROUNDS).map(|_| transfer()).collect())),
        })
    }

    fn median(mut values: Vec<f64>) -> f64 {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    }

    /// The only worker is held while tasks are submitted, and then runs them.
    fn submit_then_run() -> anyhow::Result<(f64, f64)> {
        let pool = ThreadPool::builder("scale")
            .core(1)
            .max(1)
            .queue(Queue::unbounded())
            .build()?;
        let (open, gate) = mpsc::channel::<()>();
        let (begun, is_held) = mpsc::channel();
        pool.execute(move || {
            let _ = begun.send(());
            let _ = gate.recv();
        })
        .map_err(|rejected| anyhow::anyhow!("{rejected}"))?;
        is_held.recv()?;
        let begin = Instant::now();
        for task in 0..TASKS {
            pool.execute(move || {
                black_box(task);
            })
            .map_err(|rejected| anyhow::anyhow!("{rejected}"))?;
        }
        let submit = begin.elapsed();
        let begin = Instant::now();
        open.send(())?;
        pool.close()?;
        let run = begin.elapsed();
        Ok((
            submit.as_nanos() as f64 / TASKS as f64,
            run.as_nanos() as f64 / TASKS as f64,
        ))
    }

    fn lock() -> f64 {
        let lock = Mutex::new(0_u64);
        let begin = Instant::now();
        for _ in 0..TASKS {
            *black_box(&lock).lock() += 1;
        }
        begin.elapsed().as_nanos() as f64 / TASKS as f64
    }

    /// Two threads take turns to write one word: each turn moves its line once.
    fn transfer() -> f64 {
        let word = Arc::new(AtomicU64::new(0));
        let turns = TASKS as u64 / 2;
        let other = Arc::clone(&word);
        let partner = std::thread::spawn(move || answer(&other, 1, turns));
        let begin = Instant::now();
        answer(&word, 0, turns);
        partner.join().expect("it only counts");
        begin.elapsed().as_nanos() as f64 / (2 * turns) as f64
    }

    fn answer(word: &AtomicU64, parity: u64, turns: u64) {
        for turn in 0..turns {
            while word.load(Ordering::Acquire) != 2 * turn + parity {
                spin_loop();
            }
            word.store(2 * turn + parity + 1, Ordering::Release);
        }
    }
}

#[cfg(not(millpond_traffic))]
mod tables {
    pub(super) fn print(_: super::Times) -> anyhow::Result<()> {
        anyhow::bail!(
            "built without millpond_traffic, so there is no record: use `cargo xtask scale`"
        )
    }
}

#[cfg(millpond_traffic)]
mod tables {
    use super::Times;
    use millpond::executor::{ExecutorExt, Lifecycle};
    use millpond::pool::{Queue, ThreadPool};
    use millpond_bench::many_cores::count::{Role, count};
    use millpond_bench::many_cores::model::{Alone, Machine, Pool};
    use millpond_raw::sync::traffic::{self, Access, Event};
    use std::collections::BTreeSet;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const TASKS: usize = 20_000;
    const CORES: [usize; 7] = [2, 4, 8, 16, 32, 64, 128];

    /// A server with two sockets of 64 cores, eight to a last-level cache.
    const SERVER: Machine = Machine {
        name: "two sockets of 64 cores",
        group: 8,
        socket: 64,
        near: 18.0,
        far: 80.0,
        remote: 200.0,
    };

    pub(super) fn print(times: Times) -> anyhow::Result<()> {
        let (events, producers, workers) = record()?;
        let pool = Pool {
            producer: count(&events, &producers),
            submit: Alone {
                visit: times.submit,
                access: times.lock / 2.0,
            },
            worker: count(&events, &workers),
            run: Alone {
                visit: times.run,
                access: times.lock / 2.0,
            },
        };
        print_counts(&pool, times);
        print_sites("producer", &pool.producer);
        print_sites("worker", &pool.worker);
        if let Some(transfer) = times.transfer {
            let here = Machine {
                name: "every transfer as long as on this machine",
                group: 128,
                socket: 128,
                near: transfer,
                far: transfer,
                remote: transfer,
            };
            print_curve(&pool, &here);
        }
        print_curve(&pool, &SERVER);
        Ok(())
    }

    /// Two producers and two workers; the record begins when all are warm.
    fn record() -> anyhow::Result<(Vec<Event>, Vec<u32>, Vec<u32>)> {
        let pool = Arc::new(
            ThreadPool::builder("scale")
                .core(2)
                .max(2)
                .queue(Queue::bounded(1024))
                .rejection(millpond::pool::RejectionPolicy::Block(
                    std::time::Duration::from_secs(60),
                ))
                .build()?,
        );
        let done = Arc::new(AtomicUsize::new(0));
        for recording in [false, true] {
            if recording {
                traffic::start();
            }
            done.store(0, Ordering::SeqCst);
            let producers: Vec<_> = (0..2)
                .map(|_| {
                    let (pool, done) = (Arc::clone(&pool), Arc::clone(&done));
                    std::thread::spawn(move || {
                        for _ in 0..TASKS / 2 {
                            let done = Arc::clone(&done);
                            let accepted = pool.execute(move || {
                                done.fetch_add(1, Ordering::Relaxed);
                                traffic::mark();
                            });
                            assert!(accepted.is_ok(), "the pool blocks and does not reject");
                            traffic::mark();
                        }
                    })
                })
                .collect();
            for producer in producers {
                producer.join().expect("it only submits");
            }
            while done.load(Ordering::Relaxed) < TASKS {
                std::thread::yield_now();
            }
        }
        let events = traffic::stop();
        pool.close()?;
        // A worker's marks come from the closure, a producer's from the loop: two places.
        let mut by_place: Vec<(u32, BTreeSet<u32>)> = Vec::new();
        for event in events.iter().filter(|event| event.access == Access::Mark) {
            let line = event.site.line();
            match by_place.iter_mut().find(|(place, _)| *place == line) {
                Some((_, threads)) => {
                    threads.insert(event.thread);
                }
                None => by_place.push((line, BTreeSet::from([event.thread]))),
            }
        }
        by_place.sort_by_key(|(line, _)| *line);
        let [(_, workers), (_, producers)] = &by_place[..] else {
            anyhow::bail!("marks come from {} places instead of two", by_place.len());
        };
        Ok((
            events,
            producers.iter().copied().collect(),
            workers.iter().copied().collect(),
        ))
    }

    fn print_counts(pool: &Pool, times: Times) {
        println!("| per task | submit | take and run |");
        println!("|---|---|---|");
        let row = |what: &str, of: &dyn Fn(&Role) -> f64| {
            println!(
                "| {what} | {:.2} | {:.2} |",
                of(&pool.producer),
                of(&pool.worker)
            );
        };
        row("loads", &|role| role.loads);
        row("plain stores", &|role| role.stores);
        row("locked instructions and fences", &|role| role.locked);
        row("transfers of lines, in the recorded order", &|role| {
            role.recorded
        });
        row("transfers, saturated: under locks", &|role| {
            role.locks.iter().map(|lock| lock.transfers).sum()
        });
        row("transfers, saturated: outside of locks", &|role| {
            role.outside
        });
        println!("| ns alone | {:.0} | {:.0} |", times.submit, times.run);
        println!();
        println!("| lock, taken at | by | times a task | saturated transfers while held |");
        println!("|---|---|---|---|");
        for (who, role) in [("producer", &pool.producer), ("worker", &pool.worker)] {
            for lock in role.locks.iter().filter(|lock| lock.taken >= 0.005) {
                println!(
                    "| `{}` | {who} | {:.2} | {:.2} |",
                    lock.site, lock.taken, lock.transfers
                );
            }
        }
        println!();
    }

    fn print_sites(who: &str, role: &Role) {
        println!("| {who}: place | locked instructions a task | transfers a task, recorded |");
        println!("|---|---|---|");
        for site in role
            .sites
            .iter()
            .filter(|site| site.locked >= 0.05 || site.recorded >= 0.05)
        {
            println!(
                "| `{}` | {:.2} | {:.2} |",
                site.place, site.locked, site.recorded
            );
        }
        println!();
    }

    fn print_curve(pool: &Pool, machine: &Machine) {
        println!("{}, million tasks a second:\n", machine.name);
        println!("| cores | ns a transfer | one queue | 4 shards | 8 shards | 16 shards |");
        println!("|---|---|---|---|---|---|");
        for cores in CORES {
            let rate = |shards: usize| pool.sharded(machine, cores, shards).rate / 1e6;
            println!(
                "| {cores} | {:.0} | {:.1} | {:.1} | {:.1} | {:.1} |",
                machine.transfer(cores),
                rate(1),
                rate(4),
                rate(8),
                rate(16)
            );
        }
        if let Some((rate, lock)) = pool.ceiling(machine.transfer(CORES[CORES.len() - 1])) {
            println!(
                "\nThe ceiling at {} cores is {:.1} million a second, set by the lock at `{lock}`.",
                CORES[CORES.len() - 1],
                rate / 1e6
            );
        }
        println!();
    }
}
