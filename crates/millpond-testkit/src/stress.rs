//! Rounds with a seed that is printed on failure.
//!
//! A stress test runs many short rounds. Everything random in a round comes from its seed, so a
//! round that failed has the same threads do the same steps again; the interleaving is still the
//! machine's, so repeat it a few thousand times.

use super::{Actor, Rng};
use std::panic::{self, AssertUnwindSafe};

/// The default number of rounds of a stress test.
const ROUNDS: usize = 1000;

const SEED: u64 = 0x006d_696c_6c70_6f6e;

/// How a stress test runs.
#[derive(Clone, Debug)]
pub struct Stress {
    name: &'static str,
    rounds: usize,
    seed: u64,
}

/// One round: its number, and the random numbers of its seed.
#[derive(Debug)]
pub struct Round {
    /// Which round it is, from 0.
    pub number: usize,
    /// The round's random numbers.
    pub rng: Rng,
}

impl Stress {
    /// A thousand rounds from a fixed seed, or what `MILLPOND_STRESS_ROUNDS` and
    /// `MILLPOND_STRESS_SEED` say.
    ///
    /// # Panics
    ///
    /// If a variable holds something that is no number.
    pub fn new(name: &'static str) -> Self {
        let number = |variable: &str| {
            let text = std::env::var(variable).ok()?;
            let number = text.trim().parse::<u64>();
            Some(number.unwrap_or_else(|_| panic!("{variable} is `{text}`: give a whole number")))
        };
        let rounds = number("MILLPOND_STRESS_ROUNDS").map_or(ROUNDS, |rounds| {
            usize::try_from(rounds).unwrap_or(usize::MAX)
        });
        Stress {
            name,
            rounds,
            seed: number("MILLPOND_STRESS_SEED").unwrap_or(SEED),
        }
    }

    /// So many rounds for every one that was asked for: for rounds that are much longer than usual.
    #[must_use]
    pub fn one_in(mut self, times: usize) -> Self {
        self.rounds = self.rounds.div_ceil(times);
        self
    }

    /// Runs the rounds. The first that fails ends them and says how to run it again.
    pub fn run(&self, mut round: impl FnMut(&mut Round)) {
        for number in 0..self.rounds {
            // Numbers that follow each other make seeds that do not.
            let seed = Rng::new(self.seed.wrapping_add(number as u64)).any();
            let mut this = Round {
                number,
                rng: Rng::new(seed),
            };
            if let Err(payload) = panic::catch_unwind(AssertUnwindSafe(|| round(&mut this))) {
                eprintln!(
                    "stress `{}` failed in round {number}: \
                     run it again with MILLPOND_STRESS_SEED={}",
                    self.name,
                    self.seed.wrapping_add(number as u64)
                );
                panic::resume_unwind(payload);
            }
        }
    }
}

impl Round {
    /// Starts an actor with random numbers of its own.
    pub fn actor<R: Send + 'static>(
        &mut self,
        name: &str,
        body: impl FnOnce(&mut Rng) -> R + Send + 'static,
    ) -> Actor<R> {
        let mut rng = self.rng.fork();
        Actor::start(name, move || body(&mut rng))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stress(rounds: usize, seed: u64) -> Stress {
        Stress {
            name: "test",
            rounds,
            seed,
        }
    }

    #[test]
    fn rounds_differ_and_repeat_by_seed() {
        let draw = |seed| {
            let mut drawn = Vec::new();
            stress(3, seed).run(|round| drawn.push(round.rng.any()));
            drawn
        };
        assert_eq!(draw(7), draw(7));
        assert_eq!(
            draw(7)[2],
            draw(9)[0],
            "the seed of a failed round repeats it first"
        );
        assert_eq!(draw(7).len(), 3);
    }

    #[test]
    fn a_round_that_fails_ends_the_run_with_its_own_failure() {
        let mut rounds = 0;
        let caught = panic::catch_unwind(AssertUnwindSafe(|| {
            stress(10, 1).run(|round| {
                rounds += 1;
                if round.number == 4 {
                    panic::resume_unwind(Box::new("round four"));
                }
            });
        }));
        assert_eq!(
            *caught.unwrap_err().downcast::<&str>().unwrap(),
            "round four"
        );
        assert_eq!(rounds, 5);
    }

    #[test]
    fn longer_rounds_can_be_fewer() {
        assert_eq!(stress(1000, 1).one_in(20).rounds, 50);
        assert_eq!(stress(1, 1).one_in(20).rounds, 1);
    }
}
