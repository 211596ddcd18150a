//! What does it cost to make a task, run it and join it, if no second thread comes into it?
//!
//! This is the floor under every submit-and-join: closure, result and the word a waiter would sleep
//! on. Peers need a box for the closure and a channel for the result; ours needs one piece of memory,
//! which it uses again.

use super::hand_over::hand_over;
use crate::figure::Figure;
use crate::harness::{Candidate, Sample, Standing, Suite, Workload};
use crate::usage::Usage;
use anyhow::{Result, ensure};
use std::hint::black_box;
use std::sync::mpsc;
use std::time::Instant;

/// The suite.
pub const SUITE: Suite = Suite {
    name: "task",
    about: "what a task costs, on one thread and from one thread to another",
    workloads: || vec![round_trip(), hand_over(Some(1024)), hand_over(None)],
    notes: |_| Vec::new(),
};

/// The queue element of a pool of boxed closures.
type Job = Box<dyn FnOnce() + Send>;

/// The workload: make, run, join.
pub fn round_trip() -> Workload {
    let candidate = |name, standing, one: fn(u64) -> Result<u64>| Candidate {
        name,
        standing,
        counts_allocations: true,
        run: Box::new(move |tasks| run(tasks, one)),
    };
    Workload {
        suite: SUITE.name,
        name: "make, run and join on one thread".into(),
        figures: vec![Figure::nanos("task")],
        most_operations: u64::MAX,
        stretch: 1,
        planned: None,
        point: None,
        difference: None,
        candidates: vec![
            candidate("millpond task", Standing::Ours, millpond_task),
            candidate(
                "boxed closure + oneshot",
                Standing::Peer,
                boxed_with_oneshot,
            ),
            candidate(
                "boxed closure + std::sync::mpsc",
                Standing::Peer,
                boxed_with_mpsc,
            ),
        ],
    }
}

fn millpond_task(input: u64) -> Result<u64> {
    let (task, handle) = millpond::task::new(move || black_box(input));
    let _ = black_box(task).run();
    Ok(handle.join()?)
}

fn boxed_with_oneshot(input: u64) -> Result<u64> {
    let (sender, receiver) = oneshot::channel();
    let job: Job = Box::new(move || {
        let _ = sender.send(black_box(input));
    });
    black_box(job)();
    Ok(receiver.recv()?)
}

fn boxed_with_mpsc(input: u64) -> Result<u64> {
    let (sender, receiver) = mpsc::channel();
    let job: Job = Box::new(move || {
        let _ = sender.send(black_box(input));
    });
    black_box(job)();
    Ok(receiver.recv()?)
}

/// All pay for the same indirect call of `one`.
fn run(tasks: u64, one: fn(u64) -> Result<u64>) -> Result<Sample> {
    let ((sum, elapsed), usage) = Usage::during(|| {
        let start = Instant::now();
        let sum = (0..tasks).try_fold(0_u64, |sum, input| {
            one(input).map(|got| sum.wrapping_add(got))
        });
        (sum, start.elapsed())
    });
    let expected = (0..tasks).fold(0_u64, u64::wrapping_add);
    ensure!(
        sum? == expected,
        "the tasks did not return what they were given"
    );
    Ok(Sample {
        operations: tasks,
        elapsed,
        usage,
        quantiles: None,
        rush: None,
        memory: None,
        by_workers: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_candidate_returns_what_each_task_was_given() {
        for one in [millpond_task, boxed_with_oneshot, boxed_with_mpsc] {
            assert_eq!(
                [0, 7, u64::MAX].map(|input| one(input).unwrap()),
                [0, 7, u64::MAX]
            );
        }
        for candidate in round_trip().candidates {
            assert_eq!((candidate.run)(100).unwrap().operations, 100);
        }
    }

    #[test]
    fn a_candidate_that_returns_a_wrong_value_is_detected() {
        assert!(run(10, |input| Ok(input.max(1))).is_err());
        assert!(run(10, Ok).is_ok());
    }
}
