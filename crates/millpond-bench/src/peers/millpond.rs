//! Ours: [`FifoQueue`], called as a user calls it. `put` and `take` check the interrupt token each time, which no
//! peer has.

use super::{Channel, Ends, Opened, Receive, Send};
use millpond::queue::{BlockingQueue, FifoQueue};
use std::sync::Arc;

/// [`FifoQueue::bounded`].
#[derive(Debug)]
pub struct Bounded;

/// [`FifoQueue`] that frees the memory of a burst, with or without a bound.
#[derive(Debug)]
pub struct Growing;

/// A shared queue.
#[derive(Debug)]
pub struct Shared<Q>(Arc<Q>);

impl<Q> Clone for Shared<Q> {
    fn clone(&self) -> Self {
        Shared(Arc::clone(&self.0))
    }
}

impl Channel for Bounded {
    const NAME: &'static str = "millpond fifo";
    type Sender = Shared<FifoQueue<u64>>;
    type Receiver = Shared<FifoQueue<u64>>;

    /// # Panics
    ///
    /// If no bound, or a bound of 0, is asked for.
    fn open(ends: Ends) -> Opened<Self::Sender, Self::Receiver> {
        let bound = ends.bound.expect("a bounded queue has a bound");
        let queue = FifoQueue::bounded(bound).expect("the bound is not 0");
        shared(ends, queue)
    }
}

impl Channel for Growing {
    const NAME: &'static str = "millpond fifo growing";
    type Sender = Shared<FifoQueue<u64>>;
    type Receiver = Shared<FifoQueue<u64>>;

    /// # Panics
    ///
    /// If a bound of 0 is asked for.
    fn open(ends: Ends) -> Opened<Self::Sender, Self::Receiver> {
        let queue = ends.bound.map_or_else(FifoQueue::unbounded, |bound| {
            FifoQueue::bounded_growing(bound).expect("the bound is not 0")
        });
        shared(ends, queue)
    }
}

fn shared<Q>(ends: Ends, queue: Q) -> Opened<Shared<Q>, Shared<Q>> {
    let shared = Shared(Arc::new(queue));
    Opened::cloned(ends, shared.clone(), shared)
}

impl<Q: BlockingQueue<u64>> Send for Shared<Q> {
    fn send(&mut self, message: u64) {
        self.0.put(message).expect("nobody interrupts a producer");
    }
}

impl<Q: BlockingQueue<u64>> Receive for Shared<Q> {
    fn receive(&mut self) -> u64 {
        self.0.take().expect("nobody interrupts a consumer")
    }
}
