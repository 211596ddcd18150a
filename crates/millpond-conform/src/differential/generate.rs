//! Random scripts.
//!
//! A script draws its pool, and then which kinds of step it will have at all: scripts that leave
//! kinds out get further into what they have than scripts that do a little of everything.
//!
//! The generator knows nothing of what a step will do. A step that finds nothing to do (releasing a
//! task that was rejected) is answered by `no` on both sides, and that is compared as well. What it
//! avoids it avoids because of a decision (DIFF-4, DIFF-5, DIFF-6, DIFF-7); the list is in `decisions.md`.

use super::generate_forkjoin;
use super::script::{Flavor, Number, Policy, PoolSetup, Script, Setup, Step, Submission};
use crate::kit::Rng;

/// A number of tasks so recent that it is worth speaking of them.
const RECENT: u32 = 10;

/// One script of so many is for a fork-join pool.
const EVERY: u64 = 6;

/// The script of this seed.
pub fn script(seed: u64) -> Script {
    if seed % EVERY == EVERY - 1 {
        return generate_forkjoin::script(seed);
    }
    Author::new(Rng::new(seed)).write()
}

/// The seed of the `index`th script of a run that began with `seed`. The first is `seed` itself, so
/// that one script is replayed by `--seed S --count 1`.
pub fn seed_of(seed: u64, index: u64) -> u64 {
    seed.wrapping_add(index)
}

/// The kinds of step besides submitting and releasing, each with its weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Fail,
    Cancel,
    Remove,
    Core,
    Max,
    Capacity,
    KeepAlive,
    CoreMayTimeOut,
    Policy,
    Prestart,
    IdleOut,
    Threads,
    Shutdown,
}

const KINDS: [(Kind, usize); 13] = [
    (Kind::Fail, 2),
    (Kind::Cancel, 3),
    (Kind::Remove, 3),
    (Kind::Core, 4),
    (Kind::Max, 4),
    (Kind::Capacity, 3),
    (Kind::KeepAlive, 2),
    (Kind::CoreMayTimeOut, 2),
    (Kind::Policy, 2),
    (Kind::Prestart, 2),
    (Kind::IdleOut, 2),
    (Kind::Threads, 2),
    (Kind::Shutdown, 1),
];

struct Author {
    rng: Rng,
    setup: PoolSetup,
    /// The features of this script, each as often as it is to be drawn.
    kinds: Vec<Kind>,
    /// Threads will fail in this script, so a worker must live from the first step to the last.
    keeps_a_worker: bool,
    /// The last task submitted.
    last: Number,
    steps: Vec<Step>,
}

impl Author {
    fn new(mut rng: Rng) -> Self {
        let mut kinds = Vec::new();
        for (kind, often) in KINDS {
            if rng.once_in(2) {
                kinds.extend(std::iter::repeat_n(kind, often));
            }
        }
        let keeps_a_worker = kinds.contains(&Kind::Threads);
        let max = 1 + rng.below(4);
        let core = if keeps_a_worker {
            1 + rng.below(max)
        } else {
            rng.below(max + 1)
        };
        let queue = match rng.below(6) {
            0 | 1 => Flavor::Linked(1 + rng.below(4)),
            2 => Flavor::Array(1 + rng.below(4)),
            3 => Flavor::Unbounded,
            _ => Flavor::HandOff,
        };
        if !matches!(queue, Flavor::Linked(_)) {
            kinds.retain(|kind| *kind != Kind::Capacity); // DIFF-7
        }
        let keep_alive = if rng.once_in(5) { 0 } else { 60 };
        let mut author = Author {
            setup: PoolSetup {
                core,
                max,
                queue,
                policy: Policy::Abort,
                keep_alive,
                core_may_time_out: keep_alive > 0 && !keeps_a_worker && rng.once_in(4),
            },
            rng,
            kinds,
            keeps_a_worker,
            last: 0,
            steps: Vec::new(),
        };
        author.setup.policy = author.policy();
        author
    }

    fn write(mut self) -> Script {
        if self.keeps_a_worker {
            self.steps.push(Step::PrestartAll);
        }
        let length = 8 + self.rng.below(30);
        while self.steps.len() < length {
            let step = self.step();
            let ends = matches!(step, Step::Shutdown | Step::ShutdownNow);
            self.steps.push(step);
            if ends {
                // A pool that has terminated needs few steps.
                let rest = length.min(self.steps.len() + 8);
                self.kinds
                    .retain(|kind| *kind != Kind::Shutdown || rest < length);
                while self.steps.len() < rest {
                    let step = self.step();
                    self.steps.push(step);
                }
                break;
            }
        }
        Script {
            setup: Setup::Pool(self.setup),
            steps: self.steps,
        }
    }

    fn step(&mut self) -> Step {
        match self.rng.below(10) {
            0..=3 => self.submit(),
            4..=6 if self.last > 0 => self.release(),
            _ if self.kinds.is_empty() => self.submit(),
            _ => {
                let kind = self.kinds[self.rng.below(self.kinds.len())];
                self.step_of(kind)
            }
        }
    }

    fn step_of(&mut self, kind: Kind) -> Step {
        match kind {
            Kind::Fail | Kind::Cancel | Kind::Remove if self.last == 0 => self.submit(),
            Kind::Fail => Step::Fail(self.task()),
            Kind::Cancel if self.rng.once_in(2) => Step::Interrupt(self.task()),
            Kind::Cancel => Step::Cancel(self.task()),
            Kind::Remove => Step::Remove(self.task()),
            Kind::Core => {
                let least = usize::from(self.keeps_a_worker);
                Step::Core(least + self.rng.below(5 - least))
            }
            Kind::Max => Step::Max(self.rng.below(6)),
            Kind::Capacity => Step::Capacity(1 + self.rng.below(5)),
            Kind::KeepAlive => Step::KeepAlive(if self.rng.once_in(2) { 0 } else { 90 }),
            Kind::CoreMayTimeOut if self.keeps_a_worker => Step::CoreMayTimeOut(false),
            Kind::CoreMayTimeOut => Step::CoreMayTimeOut(self.rng.once_in(2)),
            Kind::Policy => Step::Policy(self.policy()),
            Kind::Prestart if self.rng.once_in(2) => Step::PrestartAll,
            Kind::Prestart => Step::Prestart,
            Kind::IdleOut => Step::IdleOut,
            Kind::Threads => Step::Threads(self.rng.once_in(2)),
            Kind::Shutdown if self.rng.once_in(2) => Step::ShutdownNow,
            Kind::Shutdown => Step::Shutdown,
        }
    }

    fn submit(&mut self) -> Step {
        self.last += 1;
        Step::Submission(Submission {
            number: self.last,
            // A worker of Java's dies of a task without a handle that fails (DIFF-5), and where no
            // thread can be started it is not replaced (DIFF-6).
            has_handle: self.keeps_a_worker || !self.rng.once_in(5),
            is_stubborn: self.rng.once_in(6),
            forks: 0,
        })
    }

    fn release(&mut self) -> Step {
        let mut numbers: Vec<Number> = (0..1 + self.rng.below(4)).map(|_| self.task()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        Step::Release(numbers)
    }

    /// A task that was submitted not long ago.
    fn task(&mut self) -> Number {
        let recent = RECENT.min(self.last);
        self.last - u32::try_from(self.rng.below(recent as usize)).unwrap_or(0)
    }

    fn policy(&mut self) -> Policy {
        let there_are = match self.setup.queue {
            Flavor::HandOff => &Policy::ALL[..3], // DIFF-4
            _ => &Policy::ALL[..],
        };
        there_are[self.rng.below(there_are.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::differential::decisions;

    #[test]
    fn the_same_seed_writes_the_same_script_and_another_seed_another() {
        assert_eq!(script(7), script(7));
        assert_ne!(script(7), script(8));
        assert_eq!(seed_of(7, 0), 7);
    }

    #[test]
    fn every_script_makes_sense_and_reads_as_it_was_written() {
        for seed in 0..2_000 {
            let script = script(seed);
            assert_eq!(script.check(), Ok(()), "seed {seed}\n{script}");
            assert_eq!(script.to_string().parse(), Ok(script), "seed {seed}");
        }
    }

    #[test]
    fn nothing_is_written_that_a_decision_forbids() {
        for seed in 0..2_000 {
            assert_eq!(decisions::forbids(&script(seed)), None, "seed {seed}");
        }
    }

    #[test]
    fn every_kind_of_step_and_of_pool_is_written() {
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..500 {
            let script = script(seed);
            let word = |text: String| text.split([' ', ':']).next().unwrap_or_default().to_owned();
            if let Some(pool) = script.setup.pool() {
                seen.insert(word(pool.queue.to_string()));
                seen.insert(pool.policy.name().to_owned());
            }
            seen.extend(script.steps.iter().map(|step| word(step.to_string())));
        }
        let steps = "submit run release fail cancel interrupt remove core max capacity keep-alive \
            core-may-time-out policy prestart prestart-all idle-out threads shutdown shutdown-now compute trace quiescence";
        let pools = "linked array unbounded hand-off abort caller-runs discard discard-oldest";
        for word in steps.split(' ').chain(pools.split(' ')) {
            assert!(seen.contains(word), "{word} is never written");
        }
    }
}
