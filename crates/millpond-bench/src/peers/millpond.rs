//! Ours: [`ArrayQueue`] and [`LinkedQueue`], called as a user calls them. `put` and `take` look at
//! the interrupt token each time, which no peer has.

use super::{Channel, Ends, Opened, Receive, Send};
use millpond::queue::{ArrayQueue, BlockingQueue, LinkedQueue};
use std::sync::Arc;

/// [`ArrayQueue`].
#[derive(Debug)]
pub struct Array;

/// [`LinkedQueue`], with or without a bound.
#[derive(Debug)]
pub struct Linked;

/// A shared queue.
#[derive(Debug)]
pub struct Shared<Q>(Arc<Q>);

impl<Q> Clone for Shared<Q> {
    fn clone(&self) -> Self {
        Shared(Arc::clone(&self.0))
    }
}

impl Channel for Array {
    const NAME: &'static str = "millpond array";
    type Sender = Shared<ArrayQueue<u64>>;
    type Receiver = Shared<ArrayQueue<u64>>;

    /// # Panics
    ///
    /// If no bound, or none that an array can have, is asked for.
    fn open(ends: Ends) -> Opened<Self::Sender, Self::Receiver> {
        let bound = ends.bound.expect("an array queue has a bound");
        let queue = ArrayQueue::bounded(bound).expect("an array queue can have this bound");
        shared(ends, queue)
    }
}

impl Channel for Linked {
    const NAME: &'static str = "millpond linked";
    type Sender = Shared<LinkedQueue<u64>>;
    type Receiver = Shared<LinkedQueue<u64>>;

    /// # Panics
    ///
    /// If a bound of 0 is asked for.
    fn open(ends: Ends) -> Opened<Self::Sender, Self::Receiver> {
        let queue = ends.bound.map_or_else(LinkedQueue::unbounded, |bound| {
            LinkedQueue::bounded(bound).expect("a linked queue can have this bound")
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
