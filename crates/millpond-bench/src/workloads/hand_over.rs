//! What does a task cost that is made on one thread and run on another?
//!
//! One producer makes tasks and puts them into a queue, one consumer takes them out and runs them.
//! No task is joined. The queue is the same work for all candidates; what differs is the memory of a task,
//! which is had on one thread and given back on the other.
//!
//! A body adds its number to a sum of its own thread, so that it has something to carry and something
//! to do, and shares nothing.

use super::task::SUITE;
use crate::crew::{self, Member};
use crate::figure::Figure;
use crate::harness::{Candidate, Sample, Standing, Workload};
use anyhow::{Result, ensure};
use millpond::queue::{BlockingQueue, FifoQueue};
use millpond::task::{Task, TaskSpec};
use std::cell::Cell;
use std::sync::mpsc;

/// Without a bound the queue may grow by a whole round.
const MOST_TASKS: u64 = 1_000_000;

/// The queue element of a pool of boxed closures.
type Job = Box<dyn FnOnce() + Send>;

thread_local! {
    static SUM: Cell<u64> = const { Cell::new(0) };
}

fn add(number: u64) {
    SUM.set(SUM.get().wrapping_add(number));
}

/// The workload: made here, run there, through a queue with this bound or with none.
pub fn hand_over(bound: Option<usize>) -> Workload {
    let queue = bound.map_or("an unbounded queue".into(), |bound| {
        format!("a queue of {bound}")
    });
    let candidate = |name, standing, run: fn(Option<usize>, u64) -> Result<Sample>| Candidate {
        name,
        standing,
        counts_allocations: true,
        run: Box::new(move |tasks| run(bound, tasks)),
    };
    let mut candidates = vec![
        candidate("millpond task, growing", Standing::Ours, growing),
        candidate("boxed closure, crossbeam", Standing::Peer, crossbeam),
        candidate("boxed closure, kanal", Standing::Peer, kanal),
        candidate("boxed closure, std::sync::mpsc", Standing::Peer, std_mpsc),
    ];
    if bound.is_some() {
        candidates.insert(
            0,
            candidate("millpond task, bounded", Standing::Ours, bounded),
        );
    }
    Workload {
        suite: SUITE.name,
        name: format!("made here, run there, through {queue}"),
        figures: vec![Figure::nanos("task")],
        most_operations: MOST_TASKS,
        stretch: 1,
        planned: None,
        point: None,
        difference: None,
        candidates,
    }
}

fn bounded(bound: Option<usize>, tasks: u64) -> Result<Sample> {
    let queue = FifoQueue::bounded(bound.unwrap_or(1))?;
    ours(&queue, tasks)
}

fn growing(bound: Option<usize>, tasks: u64) -> Result<Sample> {
    match bound {
        Some(bound) => ours(&FifoQueue::bounded_growing(bound)?, tasks),
        None => ours(&FifoQueue::unbounded(), tasks),
    }
}

fn ours(queue: &impl BlockingQueue<Task>, tasks: u64) -> Result<Sample> {
    let make = |number| TaskSpec::new().build_detached(move || add(number));
    run(
        tasks,
        move |number| {
            let put = queue.put(make(number));
            put.expect("nobody interrupts a producer");
        },
        || drop(queue.take().expect("nobody interrupts a consumer").run()),
    )
}

fn crossbeam(bound: Option<usize>, tasks: u64) -> Result<Sample> {
    use crossbeam_channel::{bounded, unbounded};
    let (sender, receiver) = bound.map_or_else(unbounded::<Job>, bounded);
    run(
        tasks,
        move |number| drop(sender.send(Box::new(move || add(number)))),
        move || receiver.recv().expect("the sender sends them all")(),
    )
}

fn kanal(bound: Option<usize>, tasks: u64) -> Result<Sample> {
    use kanal::{bounded, unbounded};
    let (sender, receiver) = bound.map_or_else(unbounded::<Job>, bounded);
    run(
        tasks,
        // Both ends stay open until all are done: kanal drops what is in a channel without a sender.
        |number| drop(sender.send(Box::new(move || add(number)))),
        || receiver.recv().expect("the sender sends them all")(),
    )
}

fn std_mpsc(bound: Option<usize>, tasks: u64) -> Result<Sample> {
    let job = |number| -> Job { Box::new(move || add(number)) };
    match bound {
        Some(bound) => {
            let (sender, receiver) = mpsc::sync_channel(bound);
            run(
                tasks,
                move |number| drop(sender.send(job(number))),
                move || receiver.recv().expect("the sender sends them all")(),
            )
        }
        None => {
            let (sender, receiver) = mpsc::channel();
            run(
                tasks,
                move |number| drop(sender.send(job(number))),
                move || receiver.recv().expect("the sender sends them all")(),
            )
        }
    }
}

/// Lets one thread `send` the numbers up to `tasks`, and another `receive` and run as many tasks.
fn run(
    tasks: u64,
    mut send: impl FnMut(u64) + Send,
    mut receive: impl FnMut() + Send,
) -> Result<Sample> {
    let producer: Member<'_, u64> = Box::new(move || {
        (1..=tasks).for_each(&mut send);
        0
    });
    let consumer: Member<'_, u64> = Box::new(move || {
        SUM.set(0);
        (0..tasks).for_each(|_| receive());
        SUM.get()
    });
    let done = crew::run(vec![producer, consumer]);
    let sum: u64 = done.results.iter().sum();
    ensure!(
        sum == tasks * (tasks + 1) / 2,
        "{tasks} tasks were made, but not each of them was run once"
    );
    Ok(Sample {
        operations: tasks,
        elapsed: done.elapsed,
        usage: done.usage,
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
    fn every_candidate_runs_each_task_once() {
        for bound in [Some(2), Some(1024), None] {
            for candidate in hand_over(bound).candidates {
                let sample = (candidate.run)(1_000).unwrap();
                assert_eq!(sample.operations, 1_000, "{}", candidate.name);
            }
        }
    }

    #[test]
    fn a_task_that_is_lost_or_runs_twice_is_detected() {
        assert!(run(10, |_| (), || ()).is_err());
        let (sender, receiver) = mpsc::channel();
        let send = move |number| sender.send(number).unwrap_or(());
        assert!(run(10, send, move || add(receiver.recv().unwrap().max(2))).is_err());
    }
}
