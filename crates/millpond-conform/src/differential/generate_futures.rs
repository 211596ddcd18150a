//! Random scripts for completable futures.
//!
//! A script draws how many nodes it has and how they fail; nodes are made, completed, failed and cancelled in any order. What
//! a decision rules out is not written: DIFF-19, DIFF-21, DIFF-24.

use super::decisions;
use super::futures::{Ancestors, FutureStep, Place, Shape, Verb};
use super::script::{Number, Script, Setup, Step};
use crate::kit::Rng;

/// The script of this seed.
pub fn script(seed: u64) -> Script {
    let mut rng = Rng::new(seed);
    let mut author = Author {
        throws: 2 + rng.below(6),
        executors: rng.once_in(2),
        hands: 2 + rng.below(4),
        rng,
        last: 0,
        ancestors: Ancestors::default(),
        queued: Vec::new(),
    };
    let length = 6 + author.rng.below(25);
    let steps = (0..length).map(|_| Step::Future(author.step())).collect();
    let script = Script {
        setup: Setup::Futures,
        steps,
    };
    debug_assert_eq!(decisions::forbids(&script), None);
    script
}

struct Author {
    rng: Rng,
    /// One function of so many throws.
    throws: usize,
    /// Whether functions run on executors, too.
    executors: bool,
    /// One step of so many is done by hand to a node that is there.
    hands: usize,
    last: Number,
    ancestors: Ancestors,
    queued: Vec<Number>,
}

impl Author {
    fn step(&mut self) -> FutureStep {
        if self.last > 0 && self.rng.once_in(self.hands) {
            return self.act();
        }
        if !self.queued.is_empty() && self.rng.once_in(4) {
            let node = self.queued[self.rng.below(self.queued.len())];
            return step(Verb::Go, node, vec![node]);
        }
        let made = self.make();
        self.ancestors.add(&made);
        if made.place == Place::Queue {
            self.queued.push(made.node);
        }
        made
    }

    fn act(&mut self) -> FutureStep {
        let node = self.node();
        let verb = match self.rng.below(20) {
            0..=8 => Verb::Complete,
            9..=12 => Verb::Fail,
            13..=15 => Verb::Cancel,
            16 => Verb::OrTimeout,
            17 => Verb::DefaultOnTimeout,
            18 => Verb::TimeOut,
            _ => Verb::DefaultNow,
        };
        step(verb, node, vec![node])
    }

    fn make(&mut self) -> FutureStep {
        let is_root = self.last == 0 || self.rng.once_in(4);
        let verb = if is_root {
            [
                Verb::New,
                Verb::New,
                Verb::New,
                Verb::New,
                Verb::Completed,
                Verb::Failed,
            ][self.rng.below(6)]
        } else {
            let made: Vec<Verb> = Verb::ALL
                .iter()
                .copied()
                .filter(|verb| !matches!(verb.shape(), Shape::Root | Shape::Act))
                .collect();
            made[self.rng.below(made.len())]
        };
        let count = match verb.shape() {
            Shape::Root | Shape::Act => 0,
            Shape::One | Shape::Plain => 1,
            Shape::Two | Shape::Composed => 2,
            Shape::Many => self.rng.below(5),
        };
        let mut names: Vec<Number> = (0..count).map(|_| self.node()).collect();
        if verb.races() {
            // One call must not complete several of them (DIFF-19).
            for _ in 0..8 {
                if !self.ancestors.share(&names) {
                    break;
                }
                names = (0..count).map(|_| self.node()).collect();
            }
            if self.ancestors.share(&names) {
                self.last += 1;
                return step(Verb::New, self.last, Vec::new());
            }
        }
        self.last += 1;
        let mut made = step(verb, self.last, names);
        if matches!(verb.shape(), Shape::One | Shape::Two | Shape::Composed) {
            made.throws = self.rng.once_in(self.throws);
            if self.executors && self.rng.once_in(2) {
                made.place = Place::ALL[self.rng.below(Place::ALL.len())].0;
                if verb.races() && made.place == Place::Queue {
                    made.place = Place::Direct; // DIFF-24
                }
            }
        }
        made
    }

    /// A node that is there, a young one rather than an old one.
    fn node(&mut self) -> Number {
        let recent = if self.rng.once_in(2) { 5 } else { 30 };
        let recent = self.last.min(recent) as usize;
        self.last - u32::try_from(self.rng.below(recent)).unwrap_or(0)
    }
}

fn step(verb: Verb, node: Number, names: Vec<Number>) -> FutureStep {
    FutureStep {
        verb,
        node,
        names,
        throws: false,
        place: Place::InPlace,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_makes_sense_and_reads_as_it_was_written() {
        for seed in 0..2_000 {
            let script = script(seed);
            assert_eq!(script.check(), Ok(()), "seed {seed}\n{script}");
            assert_eq!(decisions::forbids(&script), None, "seed {seed}");
            assert_eq!(script.to_string().parse(), Ok(script), "seed {seed}");
        }
    }

    #[test]
    fn every_kind_of_step_is_written() {
        let all: String = (0..200).map(|seed| script(seed).to_string()).collect();
        for verb in Verb::ALL {
            let line = format!("\n{} ", verb.name());
            assert!(all.contains(&line), "{} is never written", verb.name());
        }
        for word in ["throws", "on=direct", "on=queue", "on=rejects"] {
            assert!(all.contains(word), "{word} is never written");
        }
    }
}
