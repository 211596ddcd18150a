//! `concurrent-queue`, which cannot wait. A thread that finds it full or empty looks again a few
//! times, then lets others run and looks again: it never sleeps, and burns its CPU while it waits.

use super::{Channel, Ends, Opened, Receive, Send};
use concurrent_queue::{ConcurrentQueue, PushError};
use std::sync::Arc;

/// `concurrent_queue::ConcurrentQueue`, in a loop.
#[derive(Debug)]
pub struct Concurrent;

/// Why it is no peer where others wait asleep.
pub const SPINS: &str = "not a blocking queue: waits in a loop of spins and yields, never asleep";

/// A shared queue.
#[derive(Clone, Debug)]
pub struct Shared(Arc<ConcurrentQueue<u64>>);

/// So often it looks again before it lets others run.
const LOOKS: u32 = 32;

impl Channel for Concurrent {
    const NAME: &'static str = "concurrent-queue";
    type Sender = Shared;
    type Receiver = Shared;

    fn open(ends: Ends) -> Opened<Self::Sender, Self::Receiver> {
        let queue = ends
            .bound
            .map_or_else(ConcurrentQueue::unbounded, ConcurrentQueue::bounded);
        let shared = Shared(Arc::new(queue));
        Opened::cloned(ends, shared.clone(), shared)
    }
}

impl Send for Shared {
    fn send(&mut self, message: u64) {
        let mut looks = 0;
        let mut message = message;
        while let Err(error) = self.0.push(message) {
            let PushError::Full(back) = error else {
                unreachable!("nobody closes the queue");
            };
            message = back;
            look_again(&mut looks);
        }
    }
}

impl Receive for Shared {
    fn receive(&mut self) -> u64 {
        let mut looks = 0;
        loop {
            if let Ok(message) = self.0.pop() {
                return message;
            }
            look_again(&mut looks);
        }
    }
}

fn look_again(looks: &mut u32) {
    *looks += 1;
    if looks.is_multiple_of(LOOKS) {
        std::thread::yield_now();
    } else {
        std::hint::spin_loop();
    }
}
