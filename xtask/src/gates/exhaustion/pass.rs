//! Tests that are refused threads, each in a process of its own.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::child::{self, Ran};
use super::judge::{self, Fault, Verdict};
use super::{Row, SECOND_RUN, SHORT, TestCase, UNREFUSED};
use crate::step::Step;
use crate::workspace::Workspace;

/// How many run at once: more than there are CPUs, because most of them wait.
const AT_ONCE: usize = 6;

/// Longer than the timeout of the kit's watchdog, whose report says more.
const LIMIT: Duration = Duration::from_secs(20);

/// How many tests at fault are run again at most.
const MAX_SECOND_RUNS: usize = 24;

/// After how many tests progress is reported.
const PROGRESS: usize = 250;

/// What a run comes to.
type Judge = fn(&Ran) -> Verdict;

/// Runs the tests; also returns those that were refused a thread.
pub(super) fn run<'a>(
    workspace: &Workspace,
    step: &mut Step,
    condition: &str,
    tests: &[TestCase<'a>],
) -> Result<(Row, Vec<TestCase<'a>>)> {
    let begin = Instant::now();
    let mut row = Row::new(condition);
    let mut refused = Vec::new();
    let mut at_fault = Vec::new();
    let mut unrefused = Vec::new();
    each(
        workspace,
        step,
        condition,
        tests,
        SHORT,
        judge::of_refused,
        |test, ran, verdict| {
            if judge::refusals(&ran.output) > 0 {
                refused.push(test);
            }
            match verdict {
                // It lacked nothing but time.
                Verdict::Fault(Fault::Unclear, _) if judge::refusals(&ran.output) == 0 => {
                    unrefused.push(test);
                    None
                }
                Verdict::Fault(..) if at_fault.len() < MAX_SECOND_RUNS => {
                    at_fault.push(test);
                    None
                }
                verdict => row.count(test, SHORT, verdict),
            }
        },
    )?;
    let second: [(_, _, Judge); 2] = [
        (at_fault, SHORT * SECOND_RUN, judge::of_refused),
        (unrefused, UNREFUSED, judge::of_either),
    ];
    for (tests, factor, judge) in second {
        each(
            workspace,
            step,
            condition,
            &tests,
            factor,
            judge,
            |test, _, verdict| row.count(test, factor, verdict),
        )?;
    }
    row.time = begin.elapsed();
    Ok((row, refused))
}

/// Runs each test alone, some at a time, and calls `ended` with its result; what that returns is printed.
pub(super) fn each<'a>(
    workspace: &Workspace,
    step: &mut Step,
    condition: &str,
    tests: &[TestCase<'a>],
    factor: f64,
    judge: Judge,
    mut ended: impl FnMut(TestCase<'a>, &Ran, Verdict) -> Option<String>,
) -> Result<()> {
    let limit = LIMIT.mul_f64((factor / SHORT).max(1.0));
    let next = AtomicUsize::new(0);
    let failure = Mutex::new(None);
    thread::scope(|scope| {
        let (send, results) = mpsc::channel();
        for _ in 0..AT_ONCE {
            let (send, next, failure) = (send.clone(), &next, &failure);
            scope.spawn(move || {
                while let Some(&test) = tests.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let mut command = test.command(&workspace.root, condition, factor);
                    match child::run(&mut command, limit) {
                        Ok(mut ran) => {
                            // A test that waits longer checks more often; one that spins does so all the time.
                            ran.cpu = ran.cpu.div_f64((factor / SHORT).max(1.0));
                            drop(send.send((test, ran)));
                        }
                        Err(error) => {
                            *failure.lock().expect("no thread panics with it") = Some(error)
                        }
                    }
                }
            });
        }
        drop(send);
        for (number, (test, ran)) in results.iter().enumerate() {
            let verdict = judge(&ran);
            if let Some(fault) = ended(test, &ran, verdict) {
                step.say(&fault)?;
            }
            if (number + 1) % PROGRESS == 0 || number + 1 == tests.len() {
                step.say(&format!(
                    "{condition}: {} of {} tests",
                    number + 1,
                    tests.len()
                ))?;
            }
        }
        Ok::<_, anyhow::Error>(())
    })?;
    match failure.into_inner().expect("no thread panics with it") {
        Some(error) => Err(error),
        None => Ok(()),
    }
}
