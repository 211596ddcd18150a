//! A program as data and as text: its engines, and the steps of its threads.
//!
//! In the text each line is an engine or a step: a word and its numbers. Numbers that choose among
//! engines are taken modulo their count, so that any line may be left out. Lines that begin with `#`
//! are comments.

use crate::kit::Rng;
use std::fmt;
use std::str::FromStr;

/// An enum whose variants have numbers, and are lines of text.
macro_rules! lines {
    ($(#[$meta:meta])* $name:ident {
        $($(#[$doc:meta])* $variant:ident, $word:literal, [$($field:ident),*];)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub(super) enum $name {
            $($(#[$doc])* $variant { $($field: u64),* },)*
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$variant { $($field),* } => {
                        f.write_str($word)?;
                        $(write!(f, concat!(" ", stringify!($field), "={}"), $field)?;)*
                        Ok(())
                    })*
                }
            }
        }

        impl $name {
            /// The first words of all lines.
            #[cfg(test)]
            const WORDS: &[&str] = &[$($word),*];

            /// The kind that the line names, if it is one of these.
            fn read(line: &str) -> Option<Self> {
                let mut words = line.split_whitespace();
                let word = words.next()?;
                let mut number = |name: &str| {
                    let (said, number) = words.next()?.split_once('=')?;
                    number.parse::<u64>().ok().filter(|_| said == name)
                };
                match word {
                    $($word => Some(Self::$variant {
                        $($field: number(stringify!($field))?),*
                    }),)*
                    _ => None,
                }
            }
        }
    };
}

lines! {
    /// The engines of a program.
    Engine {
        /// A pool; everything about it is drawn from this number, how it ends included.
        Pool, "pool", [shape];
        /// A fork-join pool, which is one of the pools.
        ForkJoin, "fork-join", [shape];
        /// A scheduled pool with a pool of its own.
        Scheduled, "scheduled", [shape];
        /// A scheduled pool on one of the pools.
        ScheduledOn, "scheduled-on", [pool];
        /// A thread for each task, at most so many.
        PerTask, "per-task", [threads];
        /// A serial executor on one of the pools.
        Serial, "serial", [pool];
        /// A completion service on one of the pools.
        Completion, "completion", [pool];
        /// A queue.
        Queue, "queue", [flavor, bound];
    }
}

lines! {
    /// The next step of a thread.
    Step {
        /// Submits tasks of all kinds to a pool and treats their handles badly.
        Storm, "storm", [pool, seed, tasks];
        /// Changes a pool while it runs.
        Meddle, "meddle", [pool, seed];
        /// Opens a scope on a pool.
        Scope, "scope", [pool, seed];
        /// A task of a pool submits tasks to another one, or to the same.
        Relay, "relay", [pool, to, seed];
        /// A task whose closure, or a value that it inherits, has a destructor that submits a task to
        /// another pool.
        Destructor, "destructor", [pool, to, seed];
        /// A task leaves a thread-local in its worker, with such a destructor.
        Local, "local", [pool, to, seed];
        /// A task of a pool drops the program's handle of another, or of its own.
        DropIn, "drop-in", [pool, of];
        /// Builds an engine and lets it go; a task drops its last handle.
        Ephemeral, "ephemeral", [pool, seed];
        /// Ends a pool in the middle.
        Stop, "stop", [pool, seed];
        /// Forks; the child touches a pool.
        Fork, "fork", [pool];
        /// Submits many at once and waits for all or for one, with a timeout.
        Invoke, "invoke", [pool, seed, tasks];
        /// Submits to an executor with a thread for each task.
        Spawn, "spawn", [threads, seed, tasks];
        /// Submits under a key.
        Serial, "serially", [serial, key, seed, tasks];
        /// Submits to a completion service.
        Complete, "complete", [service, seed, tasks];
        /// Takes what arrives at a completion service and submits as much to another.
        Feed, "feed", [from, to, seed, results];
        /// Schedules tasks.
        Schedule, "schedule", [timer, seed, tasks];
        /// Schedules a series.
        Repeat, "repeat", [timer, seed];
        /// Puts elements into a queue, some of them as futures.
        Put, "put", [queue, seed, elements];
        /// Takes elements out of a queue, some of them as futures.
        Take, "take", [queue, seed, elements];
        /// Changes or looks at a queue.
        Change, "change", [queue, seed];
        /// A task of a pool takes out of one queue and puts into another.
        Pipe, "pipe", [pool, from, to, seed];
        /// Computes on the fork-join pools, beginning in one of them.
        Compute, "compute", [pool, seed];
    }
}

/// A program. Its text can be read back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    pub(super) engines: Vec<Engine>,
    /// Whether tasks have deadlines.
    pub(super) deadlines: bool,
    pub(super) threads: Vec<Vec<Step>>,
}

impl Program {
    /// The program of this seed.
    pub fn draw(seed: u64) -> Self {
        let mut rng = Rng::new(seed).fork();
        let rng = &mut rng;
        let mut engines = Vec::new();
        let mut some = |at_most: usize, draw: &mut dyn FnMut(&mut Rng) -> Engine| {
            (0..rng.below(at_most + 1)).for_each(|_| engines.push(draw(rng)));
        };
        some(3, &mut |rng| Engine::Pool { shape: rng.any() });
        some(1, &mut |rng| Engine::Scheduled { shape: rng.any() });
        some(1, &mut |rng| Engine::ScheduledOn {
            pool: rng.any() % 4,
        });
        some(1, &mut |rng| Engine::PerTask {
            threads: 1 + rng.any() % 4,
        });
        some(1, &mut |rng| Engine::Serial {
            pool: rng.any() % 4,
        });
        some(2, &mut |rng| Engine::Completion {
            pool: rng.any() % 4,
        });
        some(2, &mut |rng| Engine::Queue {
            flavor: rng.any() % 10,
            bound: 1 + rng.any() % 6,
        });
        some(2, &mut |rng| Engine::ForkJoin { shape: rng.any() });
        // One pool at least: most steps want one.
        engines.insert(0, Engine::Pool { shape: rng.any() });
        let threads = 1 + rng.below(3);
        let steps = 4 + rng.below(24);
        let threads = (0..threads).map(|_| (0..steps).map(|_| Step::draw(rng)).collect());
        Program {
            threads: threads.collect(),
            deadlines: rng.once_in(2),
            engines,
        }
    }

    /// The programs with one line less, and before them those with many lines less.
    pub fn smaller(&self) -> impl Iterator<Item = Program> + '_ {
        let lines = self.lines();
        let sizes = std::iter::successors(Some(lines.len() / 2), |size| Some(size / 2));
        let sizes = sizes.take_while(|size| *size > 0);
        sizes.flat_map(move |size| {
            let lines = lines.clone();
            (0..lines.len()).step_by(size).filter_map(move |from| {
                let until = (from + size).min(lines.len());
                let left = lines[..from].iter().chain(&lines[until..]);
                let text: Vec<&str> = left.map(String::as_str).collect();
                text.join("\n").parse().ok()
            })
        })
    }

    fn lines(&self) -> Vec<String> {
        self.to_string().lines().map(str::to_owned).collect()
    }
}

impl Step {
    fn draw(rng: &mut Rng) -> Self {
        let [pool, to, seed] = [rng.any() % 12, rng.any() % 12, rng.any()];
        let few = 1 + rng.any() % 6;
        match rng.below(44) {
            40.. => Step::Compute { pool, seed },
            0..=5 => Step::Storm {
                pool,
                seed,
                tasks: 2 * few,
            },
            6..=8 => Step::Meddle { pool, seed },
            9 if seed % 2 == 0 => Step::Scope { pool, seed },
            9 | 36 if seed % 2 == 1 => Step::Ephemeral { pool, seed },
            10..=13 => Step::Relay { pool, to, seed },
            14 | 15 => Step::Destructor { pool, to, seed },
            16 => Step::Local { pool, to, seed },
            17 if seed % 4 == 0 => Step::DropIn { pool, of: to },
            18 if seed % 4 == 0 => Step::Stop { pool, seed },
            19 if seed % 4 == 0 => Step::Fork { pool },
            17..=20 => Step::Invoke {
                pool,
                seed,
                tasks: few,
            },
            21 | 22 => Step::Spawn {
                threads: pool,
                seed,
                tasks: few,
            },
            23 | 24 => Step::Serial {
                serial: pool,
                key: to % 3,
                seed,
                tasks: 2 * few,
            },
            25 | 26 => Step::Complete {
                service: pool,
                seed,
                tasks: few,
            },
            27 | 28 => Step::Feed {
                from: pool,
                to,
                seed,
                results: few,
            },
            29 | 30 => Step::Schedule {
                timer: pool,
                seed,
                tasks: few,
            },
            31 => Step::Repeat { timer: pool, seed },
            32 | 33 => Step::Put {
                queue: pool,
                seed,
                elements: few,
            },
            34 | 35 => Step::Take {
                queue: pool,
                seed,
                elements: few,
            },
            36 => Step::Change { queue: pool, seed },
            _ => Step::Pipe {
                pool,
                from: to,
                to: seed % 5,
                seed,
            },
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for engine in &self.engines {
            writeln!(f, "{engine}")?;
        }
        if self.deadlines {
            writeln!(f, "deadlines")?;
        }
        for steps in &self.threads {
            writeln!(f, "thread")?;
            for step in steps {
                writeln!(f, "{step}")?;
            }
        }
        Ok(())
    }
}

impl FromStr for Program {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut program = Program::default();
        for line in text.lines().map(str::trim) {
            match (line, Engine::read(line), Step::read(line)) {
                ("", ..) => {}
                (comment, ..) if comment.starts_with('#') => {}
                ("deadlines", ..) => program.deadlines = true,
                ("thread", ..) => program.threads.push(Vec::new()),
                (_, Some(engine), _) => program.engines.push(engine),
                (_, None, Some(step)) => match program.threads.last_mut() {
                    Some(steps) => steps.push(step),
                    None => return Err(format!("no `thread` before this step: {line}")),
                },
                _ => return Err(format!("neither an engine nor a step: {line}")),
            }
        }
        Ok(program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_read_back_as_it_is_printed() {
        for seed in 0..200 {
            let program = Program::draw(seed);
            assert_eq!(program.to_string().parse(), Ok(program));
        }
    }

    #[test]
    fn every_engine_and_every_step_is_drawn() {
        let drawn: String = (0..200)
            .map(|seed| Program::draw(seed).to_string())
            .collect();
        for word in Engine::WORDS.iter().chain(Step::WORDS) {
            let begins = |line: &str| line.split(' ').next() == Some(word);
            assert!(drawn.lines().any(begins), "{word} is never drawn");
        }
    }

    #[test]
    fn a_line_that_means_nothing_is_named() {
        let wrong = "pool shape=1\nthread\nstorm pool=1 sed=2 tasks=3".parse::<Program>();
        assert!(wrong.unwrap_err().contains("sed=2"));
    }

    #[test]
    fn smaller_programs_are_parts_of_the_whole() {
        let program = Program::draw(7);
        let lines = program.lines().len();
        let smaller: Vec<Program> = program.smaller().collect();
        assert!(smaller.len() >= lines / 2);
        assert!(smaller.iter().all(|one| one.lines().len() < lines));
    }
}
