//! Judges a test under a shortage by the output and the exit of its process.
//!
//! A test that needs threads and gets none may fail. These are faults:
//!
//! | fault | how it is recognised |
//! |---|---|
//! | abort | a signal ended the process: a stack overflow, a panic in a panic, `abort()` |
//! | hang | the kit's watchdog, a lifecycle or an actor that does not end, or the time limit |
//! | spin | more CPU time than any test needs, or too many requests for threads |
//! | unclear | a panic inside the library, a failure that has nothing to do with threads, or a refusal without advice |
//! | lost | a wrong count of drops |

use std::fmt;
use std::time::Duration;

use super::child::{End, Ran};

/// The limit of CPU time for a test that has been refused a thread: eight times what the busiest takes.
pub const CPU: Duration = Duration::from_millis(800);

/// The limit of refusals. A pool requests a thread once for each submitted task, and the stress tests
/// submit up to 5,000.
pub const REFUSALS: u64 = 10_000;

/// How `sync/exhaust.rs` of `millpond-raw` begins the line about a refusal.
const REFUSED: &str = "exhausted: refusal ";

/// How the library says that a thread was refused: with the system's error in brackets.
const SENTENCES: [&str; 2] = ["could not start a thread (", "could not be started ("];

/// What such a sentence must say, too.
const ADVICE: [&str; 1] = ["use fewer threads"];

/// What is as clear to a program, as `Debug` shows it: the variant, or the system's error.
const CLEAR: [&str; 2] = ["SpawnFailed", "allows no more threads"];

/// The result of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It passed.
    Passed,
    /// It failed with an error that says that there was no thread.
    Clear,
    /// An assertion of its own failed, which needs more threads than there were.
    Unmet,
    /// A fault; the details in a few words.
    Fault(Fault, String),
}

/// What must not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The process was ended by a signal.
    Abort,
    /// It did not end.
    Hang,
    /// It used too much CPU time.
    Spin,
    /// It failed with an error that does not say what is wrong.
    Unclear,
    /// Something was not dropped, or dropped twice.
    Lost,
}

impl Fault {
    /// Every fault, in the order of the summary.
    pub const ALL: [Fault; 5] = [
        Fault::Abort,
        Fault::Hang,
        Fault::Spin,
        Fault::Unclear,
        Fault::Lost,
    ];
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::Abort => "abort",
            Fault::Hang => "hang",
            Fault::Spin => "spin",
            Fault::Unclear => "unclear",
            Fault::Lost => "lost",
        })
    }
}

/// How often the test was refused a thread.
pub fn refusals(output: &str) -> u64 {
    let numbers = output.split(REFUSED).skip(1).filter_map(|behind| {
        let (number, _) = behind.split_once(':')?;
        number.parse().ok()
    });
    numbers.max().unwrap_or(0)
}

/// Judges a test that may be refused threads, and has to pass if it is not.
pub fn of_either(ran: &Ran) -> Verdict {
    if refusals(&ran.output) == 0 {
        of_unrefused(ran)
    } else {
        of_refused(ran)
    }
}

/// Judges a test that may be refused threads.
pub fn of_refused(ran: &Ran) -> Verdict {
    let output = ran.output.as_str();
    let fault = |fault, detail: String| Verdict::Fault(fault, detail);
    let refusals = refusals(output);
    let panics = panics(output);
    let first = || panics.first().map_or(String::new(), ToString::to_string);
    if refusals > REFUSALS {
        return fault(Fault::Spin, format!("{refusals} threads requested in vain"));
    }
    if let Some(line) = line_with(output, "wedged: `").or(line_with(output, "did not end within")) {
        return fault(Fault::Hang, line.to_owned());
    }
    match ran.end {
        End::OutOfTime => return fault(Fault::Hang, "killed at its time limit".into()),
        End::Signal(number) => {
            let overflow = line_with(output, "has overflowed its stack");
            let detail = overflow.map_or_else(first, str::to_owned);
            return fault(Fault::Abort, format!("signal {number}; {detail}"));
        }
        End::Code(0 | 101) => {}
        End::Code(code) => return fault(Fault::Abort, format!("exit code {code}")),
    }
    if ran.cpu > CPU {
        return fault(Fault::Spin, format!("{:?} of CPU time", ran.cpu));
    }
    if let Some(inside) = panics.iter().find(|panic| panic.is_in_library()) {
        return fault(Fault::Unclear, inside.to_string());
    }
    if ran.end == End::Code(0) {
        return Verdict::Passed;
    }
    let loss = ["were never dropped", "are alive instead of"];
    if panics.iter().any(|panic| panic.says(&loss)) {
        return fault(Fault::Lost, first());
    }
    match panics.first() {
        _ if refusals == 0 => fault(Fault::Unclear, format!("refused nothing; {}", first())),
        None => fault(Fault::Unclear, "it failed without a panic".into()),
        Some(panic) if panic.says(&SENTENCES) && !panic.says(&ADVICE) => {
            fault(Fault::Unclear, format!("no advice; {panic}"))
        }
        Some(panic) if panic.says(&SENTENCES) || panic.says(&CLEAR) => Verdict::Clear,
        Some(panic) if panic.is_in_suites() => Verdict::Unmet,
        Some(panic) => fault(Fault::Unclear, panic.to_string()),
    }
}

/// Judges a test that is refused nothing and so has to pass.
pub fn of_unrefused(ran: &Ran) -> Verdict {
    match (of_refused(ran), ran.end) {
        // The limit of CPU time is for tests that were refused a thread.
        (Verdict::Fault(Fault::Spin, _), End::Code(0)) => Verdict::Passed,
        (Verdict::Clear | Verdict::Unmet, _) => {
            let detail = panics(&ran.output).first().map(ToString::to_string);
            Verdict::Fault(Fault::Unclear, detail.unwrap_or_default())
        }
        (verdict, _) => verdict,
    }
}

fn line_with<'a>(output: &'a str, text: &str) -> Option<&'a str> {
    output.lines().find(|line| line.contains(text))
}

/// A panic, as the default hook prints it.
struct Panic<'a> {
    place: &'a str,
    text: &'a str,
}

impl Panic<'_> {
    fn is_in_library(&self) -> bool {
        ["crates/millpond/src/", "crates/millpond-raw/src/"]
            .iter()
            .any(|room| self.place.contains(room))
    }

    fn is_in_suites(&self) -> bool {
        ["crates/millpond-conform/", "crates/millpond-testkit/"]
            .iter()
            .any(|folder| self.place.contains(folder))
    }

    fn says(&self, texts: &[&str]) -> bool {
        texts.iter().any(|text| self.text.contains(text))
    }
}

impl fmt::Display for Panic<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short: String = self.text.chars().take(160).collect();
        write!(f, "{}: {short}", self.place)
    }
}

fn panics(output: &str) -> Vec<Panic<'_>> {
    let told = output.split(" panicked at ").skip(1);
    let panics = told.map(|behind| {
        let (place, rest) = behind.split_once('\n').unwrap_or((behind, ""));
        // A message may have several lines; the next line of the runtime ends it.
        let text = rest.split("\nnote: run with").next().unwrap_or(rest);
        let text = text.split("\nthread '").next().unwrap_or(text);
        let place = place.trim_end_matches(':');
        Panic { place, text }
    });
    panics.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFUSAL: &str = "test a ... exhausted: refusal 1: mill-1\n";
    const SUITE: &str = "crates/millpond-conform/src/suites/pool.rs:7:5";
    const NOTE: &str = "note: run with `RUST_BACKTRACE=1`";

    fn ran(end: End, output: &str) -> Ran {
        Ran {
            end,
            cpu: Duration::ZERO,
            output: output.into(),
        }
    }

    fn failed(place: &str, text: &str) -> Verdict {
        let output = format!("{REFUSAL}\nthread 'a' (7) panicked at {place}:\n{text}\n{NOTE}\n");
        of_refused(&ran(End::Code(101), &output))
    }

    fn fault(verdict: Verdict) -> Option<Fault> {
        match verdict {
            Verdict::Fault(fault, _) => Some(fault),
            _ => None,
        }
    }

    #[test]
    fn a_test_may_pass_fail_clearly_or_fail_an_assertion_of_its_own() {
        assert_eq!(of_refused(&ran(End::Code(0), REFUSAL)), Verdict::Passed);
        let clear = "called `Result::unwrap()` on an `Err`: Rejected { reason: SpawnFailed(..) }";
        assert_eq!(failed(SUITE, clear), Verdict::Clear);
        let unmet = "not in time: 2 workers are idle";
        assert_eq!(failed(SUITE, unmet), Verdict::Unmet);
    }

    #[test]
    fn an_error_that_names_what_was_refused_must_say_what_to_do() {
        let said = "the executor could not start a thread (os error 11)";
        assert_eq!(fault(failed(SUITE, said)), Some(Fault::Unclear));
        let advised = format!("{said}: use fewer threads, or raise the limit of the process");
        assert_eq!(failed(SUITE, &advised), Verdict::Clear);
    }

    #[test]
    fn a_rejection_for_another_reason_is_not_clear() {
        let full =
            "called `Result::unwrap()` on an `Err`: Rejected(Rejected { reason: Saturated })";
        assert_eq!(failed(SUITE, full), Verdict::Unmet);
        let std = failed("/rustc/0/library/core/src/result.rs:1:1", full);
        assert_eq!(fault(std), Some(Fault::Unclear));
    }

    #[test]
    fn an_abort_is_a_fault() {
        let verdict = of_refused(&ran(
            End::Signal(6),
            "thread 'w' has overflowed its stack\n",
        ));
        let Verdict::Fault(Fault::Abort, detail) = verdict else {
            panic!("{verdict:?}")
        };
        assert!(
            detail.contains("signal 6") && detail.contains("overflowed"),
            "{detail}"
        );
    }

    #[test]
    fn a_hang_is_a_fault_however_it_is_noticed() {
        let wedged = ran(End::Signal(6), "wedged: `a` has not ended within 8s\n");
        let ended = "it did not end within 2s after it was shut down\n";
        for hang in [wedged, ran(End::Code(101), ended), ran(End::OutOfTime, "")] {
            assert_eq!(fault(of_refused(&hang)), Some(Fault::Hang), "{hang:?}");
        }
    }

    #[test]
    fn a_spin_is_a_fault_by_its_cpu_time_and_by_its_requests() {
        let mut busy = ran(End::Code(0), REFUSAL);
        busy.cpu = 2 * CPU;
        assert_eq!(fault(of_refused(&busy)), Some(Fault::Spin));
        let storm = "exhausted: refusal 1: t\nexhausted: refusal 65536: t\n";
        let verdict = of_refused(&ran(End::Code(0), storm));
        assert_eq!(fault(verdict), Some(Fault::Spin));
    }

    #[test]
    fn a_panic_inside_the_library_is_a_fault_even_if_it_is_caught() {
        let output =
            "\nthread 'w' panicked at crates/millpond/src/pool/engine.rs:1:1:\nno worker\n";
        let verdict = of_refused(&ran(End::Code(0), output));
        assert_eq!(fault(verdict), Some(Fault::Unclear));
    }

    #[test]
    fn a_failure_that_has_nothing_to_do_with_threads_is_a_fault() {
        let std = failed("/rustc/0/library/core/src/slice.rs:1:1", "out of range");
        assert_eq!(fault(std), Some(Fault::Unclear));
        let output = format!("\nthread 'a' panicked at {SUITE}:\nwrong\n");
        let unrefused = of_refused(&ran(End::Code(101), &output));
        assert_eq!(fault(unrefused), Some(Fault::Unclear));
    }

    #[test]
    fn a_leak_is_a_fault() {
        assert_eq!(
            fault(failed(SUITE, "2 were never dropped")),
            Some(Fault::Lost)
        );
    }

    #[test]
    fn a_test_that_lacks_nothing_has_to_pass_and_may_use_cpu_time() {
        let mut busy = ran(End::Code(0), "");
        busy.cpu = 9 * CPU;
        assert_eq!(of_unrefused(&busy), Verdict::Passed);
        let output = format!("{REFUSAL}\nthread 'a' panicked at {SUITE}:\nSpawnFailed\n");
        let failed = ran(End::Code(101), &output);
        assert_eq!(fault(of_unrefused(&failed)), Some(Fault::Unclear));
    }
}
