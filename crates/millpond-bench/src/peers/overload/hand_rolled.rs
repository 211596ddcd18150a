//! Threads that take boxed closures out of a bounded `crossbeam-channel`: what many programs have.

use super::{BOUND, End, PATIENCE, Rushed};
use crate::peers::pool::{Job, WORKERS};
use std::thread::JoinHandle;
use std::time::Instant;

/// A pool over a channel, in a rush.
#[derive(Debug)]
pub struct HandRolled {
    sender: crossbeam_channel::Sender<Job>,
    threads: Vec<JoinHandle<()>>,
    taken_in: Vec<(usize, oneshot::Receiver<()>)>,
}

impl HandRolled {
    /// Its name.
    pub const NAME: &'static str = "crossbeam-channel";

    /// Opens one.
    pub fn open() -> Self {
        let (sender, receiver) = crossbeam_channel::bounded::<Job>(BOUND);
        let work = |receiver: crossbeam_channel::Receiver<Job>| {
            std::thread::spawn(move || receiver.into_iter().for_each(|task| task()))
        };
        HandRolled {
            sender,
            threads: (0..WORKERS).map(|_| work(receiver.clone())).collect(),
            taken_in: Vec::new(),
        }
    }
}

impl Rushed for HandRolled {
    fn offer(&mut self, number: usize, _came: Instant, task: Job) -> bool {
        let (over, is_over) = oneshot::channel();
        let task = move || {
            task();
            // The receiver is gone only if the round has failed already.
            let _ = over.send(());
        };
        let is_in = self.sender.try_send(Box::new(task)).is_ok();
        if is_in {
            self.taken_in.push((number, is_over));
        }
        is_in
    }

    fn ends(&mut self) -> Vec<(usize, End)> {
        let until = Instant::now() + PATIENCE;
        let end = |(number, is_over): (usize, oneshot::Receiver<()>)| {
            let left = until.saturating_duration_since(Instant::now());
            let answered = is_over.recv_timeout(left).ok();
            answered.map(|()| (number, End::Answered))
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
