//! Threads that take boxed closures out of a bounded `crossbeam-channel`: what many programs have.

use super::{End, PATIENCE, Rushed};
use crate::peers::pool::{Job, WORKERS};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A pool over a channel, in a rush.
#[derive(Debug)]
pub struct HandRolled {
    sender: crossbeam_channel::Sender<Job>,
    threads: Vec<JoinHandle<()>>,
    /// A task that came longer ago than this is not run.
    max_age: Option<Duration>,
    taken_in: Vec<(usize, oneshot::Receiver<End>)>,
}

impl HandRolled {
    /// Opens one with room for so many tasks.
    pub fn open(room: usize) -> Self {
        let (sender, receiver) = crossbeam_channel::bounded::<Job>(room);
        let work = |receiver: crossbeam_channel::Receiver<Job>| {
            std::thread::spawn(move || receiver.into_iter().for_each(|task| task()))
        };
        HandRolled {
            sender,
            threads: (0..WORKERS).map(|_| work(receiver.clone())).collect(),
            max_age: None,
            taken_in: Vec::new(),
        }
    }

    /// The same, and a worker looks at the time before it runs a task: one that came longer ago than this is dropped.
    pub fn with_deadlines(room: usize, max_age: Duration) -> Self {
        HandRolled {
            max_age: Some(max_age),
            ..Self::open(room)
        }
    }
}

impl Rushed for HandRolled {
    fn offer(&mut self, number: usize, came: Instant, task: Job) -> bool {
        let (over, is_over) = oneshot::channel();
        let max_age = self.max_age;
        let task = move || {
            let end = if max_age.is_some_and(|most| came.elapsed() > most) {
                End::Expired
            } else {
                task();
                End::Answered
            };
            // The receiver is gone only if the round has failed already.
            let _ = over.send(end);
        };
        let is_in = self.sender.try_send(Box::new(task)).is_ok();
        if is_in {
            self.taken_in.push((number, is_over));
        }
        is_in
    }

    fn ends(&mut self) -> Vec<(usize, End)> {
        let until = Instant::now() + PATIENCE;
        let end = |(number, is_over): (usize, oneshot::Receiver<End>)| {
            let left = until.saturating_duration_since(Instant::now());
            Some((number, is_over.recv_timeout(left).ok()?))
        };
        self.taken_in.drain(..).filter_map(end).collect()
    }

    fn close(self: Box<Self>) {
        drop(self.sender);
        for thread in self.threads {
            thread.join().expect("a worker of the bench does not panic");
        }
    }
}
