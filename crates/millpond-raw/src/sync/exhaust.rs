//! Resource exhaustion on demand, for tests.
//!
//! Code that starts threads must cope with an operating system that refuses them, gives them small stacks, or
//! has one CPU for all of them. No test can bring a machine into that state for itself alone. So in test
//! builds (feature `probe`) the variable `MILLPOND_EXHAUST` says what this process is short of, and
//! [`thread::start`](super::thread::start) behaves as such a system does. Builds without the feature contain
//! none of this.
//!
//! | word | meaning |
//! |---|---|
//! | `threads:N` | the first N threads of the library start, every later one is refused |
//! | `timer` | threads whose names begin with `millpond-timer` are refused |
//! | `stack:BYTES` | the stack size of library threads that do not ask for another |
//! | `cpus:1` | one CPU; the test kit arranges it |
//! | `engines:N` | N other executors are alive; the test kit arranges it |
//!
//! Words are separated by commas. Each refusal is a line on standard error, past the capture of libtest, so
//! that a supervisor knows whether a test was refused anything, and how often: a caller that retries without
//! a pause spins.

#![allow(
    clippy::disallowed_types,
    reason = "it is read once, before anything that a checker would look at"
)]

use super::atomic::{AtomicU64, Ordering};
use std::io::{self, Write as _};

/// The name of the variable.
pub const VARIABLE: &str = "MILLPOND_EXHAUST";

/// The prefix of a line that reports a refusal; its number, from 1, and the thread's name follow.
pub const REFUSED: &str = "exhausted: refusal";

/// How many refusals are reported one by one; of later ones only those whose number is a power of two.
const REPORTED: u64 = 16;

/// What the process is short of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exhaustion {
    /// How many threads of the library start before the first is refused.
    pub threads: Option<u64>,
    /// Whether the process-wide timer is refused its thread.
    pub timer: bool,
    /// The stack size in bytes of library threads that do not ask for one.
    pub stack: Option<usize>,
    /// Whether there is only one CPU.
    pub one_cpu: bool,
    /// How many other executors are alive.
    pub engines: Option<usize>,
}

impl Exhaustion {
    /// Parses the variable.
    ///
    /// # Errors
    ///
    /// A sentence, if a word is not in the table above.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut all = Exhaustion::default();
        for word in text.split(',').filter(|word| !word.is_empty()) {
            let (name, number) = match word.split_once(':') {
                Some((name, digits)) => (name, digits.parse::<usize>().ok()),
                None => (word, None),
            };
            match (name, number) {
                ("threads", Some(most)) => all.threads = Some(most as u64),
                ("timer", None) if word == name => all.timer = true,
                ("stack", Some(bytes)) => all.stack = Some(bytes),
                ("cpus", Some(1)) => all.one_cpu = true,
                ("engines", Some(count)) => all.engines = Some(count),
                _ => {
                    return Err(format!(
                        "{VARIABLE} has the word `{word}`: write threads:N, timer, stack:BYTES, \
                         cpus:1 or engines:N, separated by commas"
                    ));
                }
            }
        }
        Ok(all)
    }

    /// What this process is short of.
    ///
    /// # Panics
    ///
    /// If the variable holds an unknown word.
    pub fn of_this_process() -> Exhaustion {
        // Not a `OnceLock`, which a thread sanitizer cannot see into.
        static READ: super::Mutex<Option<Exhaustion>> = super::Mutex::new(None);
        *READ
            .lock()
            .get_or_insert_with(|| match std::env::var(VARIABLE) {
                Ok(text) => Exhaustion::parse(&text).unwrap_or_else(|problem| panic!("{problem}")),
                Err(_) => Exhaustion::default(),
            })
    }

    /// Whether thread number `number`, counted from 0, is refused.
    fn refuses(&self, number: u64, name: Option<&str>) -> bool {
        let is_timer = || name.is_some_and(|name| name.starts_with("millpond-timer"));
        self.threads.is_some_and(|most| number >= most) || (self.timer && is_timer())
    }

    fn stack(&self, asked: Option<usize>) -> Option<usize> {
        asked.or(self.stack)
    }
}

/// Admits or refuses a thread of the library, and returns its stack size.
pub(crate) fn admit(name: Option<&str>, stack: Option<usize>) -> io::Result<Option<usize>> {
    static REQUESTS: AtomicU64 = AtomicU64::new(0);
    static REFUSALS: AtomicU64 = AtomicU64::new(0);
    let exhaustion = Exhaustion::of_this_process();
    let number = REQUESTS.fetch_add(1, Ordering::Relaxed);
    if exhaustion.refuses(number, name) {
        let refusal = REFUSALS.fetch_add(1, Ordering::Relaxed) + 1;
        if refusal <= REPORTED || refusal.is_power_of_two() {
            let line = format!("{REFUSED} {refusal}: {}\n", name.unwrap_or("no name"));
            // Errors are ignored. One call, so that lines of threads do not mix.
            let _ = io::stderr().write_all(line.as_bytes());
        }
        let text = format!("{VARIABLE} allows no more threads");
        return Err(io::Error::new(io::ErrorKind::WouldBlock, text));
    }
    Ok(exhaustion.stack(stack))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_understood_and_another_is_refused_with_advice() {
        let all = Exhaustion::parse("threads:3,timer,stack:65536,cpus:1,engines:1000").unwrap();
        let expected = Exhaustion {
            threads: Some(3),
            timer: true,
            stack: Some(65_536),
            one_cpu: true,
            engines: Some(1000),
        };
        assert_eq!(all, expected);
        assert_eq!(Exhaustion::parse(""), Ok(Exhaustion::default()));
        for bad in [
            "memory", "threads", "threads:", "timer:1", "timer:x", "cpus:2",
        ] {
            let problem = Exhaustion::parse(bad).unwrap_err();
            assert!(problem.contains("write threads:N"), "{problem}");
        }
    }

    #[test]
    fn threads_are_refused_from_the_nth_on_and_the_timer_by_its_name() {
        let two = Exhaustion::parse("threads:2").unwrap();
        let refused = (0..4).map(|number| two.refuses(number, Some("mill-1")));
        assert_eq!(refused.collect::<Vec<_>>(), [false, false, true, true]);
        let timer = Exhaustion::parse("timer").unwrap();
        assert!(timer.refuses(0, Some("millpond-timer-1")));
        assert!(!timer.refuses(9, Some("mill-1")) && !timer.refuses(9, None));
    }

    #[test]
    fn a_stack_is_small_unless_another_size_is_asked_for() {
        let tiny = Exhaustion::parse("stack:65536").unwrap();
        assert_eq!(tiny.stack(None), Some(65_536));
        assert_eq!(tiny.stack(Some(1 << 20)), Some(1 << 20));
        assert_eq!(Exhaustion::default().stack(None), None);
    }
}
