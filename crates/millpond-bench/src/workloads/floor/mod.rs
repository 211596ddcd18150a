//! What does the machine itself cost?
//!
//! A pool is made of these: a task that is handed over crosses from one CPU to another, wakes a sleeping
//! thread, and asks for memory. No pool can be faster than the floor; figures of a pool say more
//! beside it.
//!
//! | file | what |
//! |---|---|
//! | [`alone`] | what one thread does by itself |
//! | [`together`] | what two threads cost each other |
//! | [`wake`] | what it costs to wake a thread, and how long it takes |
//!
//! A *probe* repeats one operation, and a [`Stopwatch`] times it: a short one in one go of
//! very many rounds, a long one round by round. The bench has one stopwatch, which does a given number of
//! rounds; the page that the program `millpond` shows has another, which does as many as its budget
//! has room for. The probes are the same.
//!
//! Short probes run in a tight loop, and a processor does part of the next round while it waits for this
//! one: they cost that much *at least*, amid other work. Where two CPUs are two halves of one core, what
//! they share does not leave it, and is cheaper than between two cores.

pub mod alone;
pub mod together;
pub mod wake;

use crate::figure::Figure;
use crate::harness::{Absent, Candidate, Sample, Standing, Suite, Workload};
use crate::stats::Quantiles;
use crate::usage::Usage;
use anyhow::Result;
use std::time::{Duration, Instant};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "floor",
    about: "what the machine itself costs",
    workloads,
    notes: |_| Vec::new(),
};

/// The result of a probe: that it was timed, or why it cannot be done here.
pub type Outcome = Result<(), Absent>;

/// Does one thing again and again.
pub type Probe = fn(&mut dyn Stopwatch) -> Outcome;

/// Times what a probe does.
pub trait Stopwatch {
    /// Times an operation that is shorter than a clock read: `rounds` does it so many times, and is called as often
    /// as the stopwatch likes.
    fn short(&mut self, rounds: &mut dyn FnMut(u64));

    /// Times what is long enough to be timed alone. Each round says how long it took, so that it can
    /// leave out its preparations; `None` is a round that does not count.
    fn long(&mut self, round: &mut dyn FnMut() -> Option<Duration>);
}

type Named = (&'static str, Standing, Probe);

const MACHINE: Standing = Standing::Reference {
    because: "it is the machine, and no pool",
};

/// THE table of probes: what is short, and is timed in one go.
const SHORT: &[Named] = &[
    ("atomic add", MACHINE, alone::atomic_add),
    (
        "atomic add (fought over)",
        MACHINE,
        together::atomic_add_fought_over,
    ),
    ("compare and swap", MACHINE, alone::compare_and_swap),
    ("store and full fence", MACHINE, alone::full_fence),
    ("lock and unlock (std)", MACHINE, alone::std_lock),
    ("clock read", MACHINE, alone::clock),
    ("counter read", MACHINE, alone::counter),
    ("system call", MACHINE, alone::system_call),
    ("yield (to nobody)", MACHINE, alone::yield_now),
    ("futex wake (of nobody)", MACHINE, alone::wake_nobody),
    ("cache line there and back", MACHINE, together::cache_line),
    ("allocate and free 64 bytes", MACHINE, alone::allocation),
    (
        "allocate 64 bytes (freed elsewhere)",
        MACHINE,
        together::allocation_freed_elsewhere,
    ),
];

/// A long operation, timed round by round.
const LONG: &[Named] = &[
    ("wake-up: the call", MACHINE, wake::the_call),
    ("wake-up: until it runs", MACHINE, wake::until_it_runs),
    ("thread: start and join", MACHINE, alone::thread_start),
];

/// The one of these that we have done ourselves.
const LOCKS: &[Named] = &[
    ("millpond", Standing::Ours, alone::own_lock),
    ("std", Standing::Peer, alone::std_lock),
];

/// A long round has preparations, which are not timed, and take longer than what is.
const MOST_LONG: u64 = 400;

fn workloads() -> Vec<Workload> {
    let long = workload(
        "what wake-ups and threads cost",
        Figure::micros("operation"),
        LONG,
    );
    vec![
        workload("what things cost", Figure::nanos("operation"), SHORT),
        Workload {
            most_operations: MOST_LONG,
            ..long
        },
        workload("lock and unlock, alone", Figure::nanos("operation"), LOCKS),
    ]
}

fn workload(name: &str, figure: Figure, probes: &'static [Named]) -> Workload {
    let candidate = |&(name, standing, probe): &Named| Candidate {
        name,
        standing,
        // It is known of each, and what it takes to know that a thread sleeps allocates too.
        counts_allocations: false,
        run: Box::new(move |rounds| measure(probe, rounds)),
    };
    Workload {
        suite: SUITE.name,
        name: name.into(),
        figures: vec![figure],
        most_operations: u64::MAX,
        stretch: 1,
        planned: None,
        point: None,
        difference: None,
        candidates: probes.iter().map(candidate).collect(),
    }
}

/// Does so many rounds of a probe.
fn measure(probe: Probe, rounds: u64) -> Result<Sample> {
    let mut watch = Counted {
        rounds,
        elapsed: Duration::ZERO,
        done: 0,
        times: Vec::new(),
    };
    let (outcome, usage) = Usage::during(|| probe(&mut watch));
    outcome?;
    if watch.done == 0 {
        return Err(Absent("no round of it counted: the machine is too busy".into()).into());
    }
    Ok(Sample {
        operations: watch.done,
        elapsed: watch.elapsed,
        // Of the thread that runs it. Other threads are not counted.
        usage,
        quantiles: Quantiles::of(&watch.times),
        rush: None,
        memory: None,
        by_workers: None,
    })
}

/// A stopwatch for so many rounds.
struct Counted {
    rounds: u64,
    elapsed: Duration,
    done: u64,
    /// Of single rounds, if they were timed one by one.
    times: Vec<u64>,
}

/// A round that does not count is done again, but not for ever.
const TRIES: u64 = 4;

impl Stopwatch for Counted {
    fn short(&mut self, rounds: &mut dyn FnMut(u64)) {
        let start = Instant::now();
        rounds(self.rounds);
        self.elapsed += start.elapsed();
        self.done += self.rounds;
    }

    fn long(&mut self, round: &mut dyn FnMut() -> Option<Duration>) {
        let mut tries = 0;
        while self.done < self.rounds && tries < self.rounds * TRIES {
            tries += 1;
            if let Some(time) = round() {
                self.done += 1;
                self.elapsed += time;
                self.times
                    .push(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_probe_does_as_many_rounds_as_it_is_told() {
        let all = workloads();
        for candidate in all.iter().flat_map(|workload| &workload.candidates) {
            let sample = match (candidate.run)(300) {
                Ok(sample) => sample,
                Err(error) if error.is::<Absent>() => {
                    eprintln!("skipped: {}: {error}", candidate.name);
                    continue;
                }
                Err(error) => panic!("{}: {error:#}", candidate.name),
            };
            // A wake-up of a thread that was not asleep does not count.
            let is_wake = candidate.name.starts_with("wake-up");
            assert!(
                sample.operations == 300 || is_wake,
                "{}: {sample:?}",
                candidate.name
            );
            assert!(!sample.elapsed.is_zero(), "{}", candidate.name);
        }
    }

    #[test]
    fn what_is_long_is_timed_one_by_one_and_what_is_short_is_not() {
        let timed = |probe| measure(probe, 20).unwrap().quantiles.is_some();
        assert!(timed(alone::thread_start));
        assert!(!timed(alone::atomic_add));
    }

    #[test]
    fn rounds_that_do_not_count_are_done_again_and_not_for_ever() {
        fn every_other(watch: &mut dyn Stopwatch) -> Outcome {
            let mut round = 0;
            watch.long(&mut || {
                round += 1;
                (round % 2 == 0).then_some(Duration::from_nanos(7))
            });
            Ok(())
        }
        fn never(watch: &mut dyn Stopwatch) -> Outcome {
            watch.long(&mut || None);
            Ok(())
        }
        let sample = measure(every_other, 10).unwrap();
        assert_eq!((sample.operations, sample.nanos()), (10, 7.0));
        assert!(measure(never, 10).unwrap_err().is::<Absent>());
    }

    #[test]
    fn names_are_unique_and_have_no_commas_which_stand_between_them() {
        let all = [SHORT, LONG, LOCKS].concat();
        let names: BTreeSet<_> = all.iter().map(|(name, ..)| name).collect();
        assert_eq!(names.len(), all.len());
        assert!(names.iter().all(|name| !name.contains(',')), "{names:?}");
    }
}
