//! The queues of a program. An element is an entry of the ledger: the consumer that takes it runs it.

use super::world::ledger;
use crate::chaos::ledger::{Fact, Ledger, Stub};
use crate::kit::Rng;
use millpond::queue::{
    BlockingDeque, BlockingQueue, DelayQueue, FifoQueue, HandOffQueue, Offered, PriorityQueue,
    Taken, TransferQueue, WaitSlot, WeightedQueue,
};
use millpond::time::Clock;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

/// A queue of any flavor.
#[derive(Clone)]
pub(super) struct QueueEngine {
    queue: Arc<dyn BlockingQueue<Stub>>,
    pub(super) ledger: Arc<Ledger>,
}

impl QueueEngine {
    pub(super) fn new(flavor: u64, bound: u64) -> Self {
        const VALID: &str = "what is drawn is valid";
        let room = usize::try_from(bound).unwrap_or(1).max(1);
        let by_number = || PriorityQueue::by(|one: &Stub, other: &Stub| one.id.cmp(&other.id));
        let queue: Arc<dyn BlockingQueue<Stub>> = match flavor {
            0 => Arc::new(FifoQueue::bounded(room).expect(VALID)),
            1 => Arc::new(FifoQueue::unbounded()),
            2 => Arc::new(FifoQueue::bounded_growing(room).expect(VALID)),
            3 => Arc::new(BlockingDeque::bounded(room).expect(VALID)),
            4 => Arc::new(by_number().with_bound(room).expect(VALID)),
            5 => Arc::new(by_number().aging(Duration::from_micros(100), |stub| stub.id as u32 % 3)),
            6 => {
                let start = Clock::system().now();
                let due =
                    move |stub: &Stub| start + Duration::from_micros(stub.id as u64 % 7 * 400);
                Arc::new(DelayQueue::due_by(due))
            }
            7 => {
                let weigh = |stub: &Stub| stub.id as u64 % 3;
                Arc::new(WeightedQueue::bounded(bound + 2, weigh).expect(VALID))
            }
            8 => Arc::new(match bound % 2 {
                0 => HandOffQueue::fair(),
                _ => HandOffQueue::unfair(),
            }),
            _ => Arc::new(TransferQueue::unbounded()),
        };
        QueueEngine {
            queue,
            ledger: ledger(),
        }
    }

    pub(super) fn put(&self, rng: &mut Rng) {
        let Some(stub) = self.ledger.open() else {
            return;
        };
        let entry = self.ledger.entry(stub.id);
        let is_in = match rng.below(3) {
            0 => self.queue.offer(stub).is_ok(),
            1 => self.queue.offer_timeout(stub, rng.timeout() * 5).is_ok(),
            _ => {
                // As a future does that is dropped if it takes too long.
                let (mut element, mut place) = (Some(stub), WaitSlot::default());
                let mut looks = 0;
                loop {
                    let queue = &self.queue;
                    match queue.poll_offer(&mut element, &mut place, Waker::noop()) {
                        Offered::In => break,
                        Offered::Wait if looks < 20 => rng.jitter(),
                        _ => {
                            queue.leave_offer(&mut element, &mut place);
                            break;
                        }
                    }
                    looks += 1;
                }
                element.is_none()
            }
        };
        entry.note(if is_in {
            Fact::Accepted
        } else {
            Fact::Rejected
        });
    }

    pub(super) fn take(&self, rng: &mut Rng) -> bool {
        let taken = match rng.below(4) {
            0 => self.queue.poll(),
            1 => self.queue.poll_timeout(rng.timeout() * 10).ok().flatten(),
            2 => {
                let mut last = None;
                self.queue.drain_to(1, &mut |stub| last = Some(stub));
                last
            }
            _ => {
                let (mut place, mut looks) = (WaitSlot::default(), 0);
                loop {
                    match self.queue.poll_take(&mut place, Waker::noop()) {
                        Taken::Got(stub) => break Some(stub),
                        Taken::Wait(_) if looks < 20 => rng.jitter(),
                        Taken::Wait(_) => break self.queue.leave_take(&mut place),
                    }
                    looks += 1;
                }
            }
        };
        taken.inspect(|stub| drop(stub.runs())).is_some()
    }

    pub(super) fn change(&self, rng: &mut Rng) {
        match rng.below(4) {
            // A queue without a bound of its own may say no.
            0 => drop(self.queue.set_capacity(1 + rng.below(8))),
            1 => {
                let divisor = 2 + rng.below(3);
                let limit = rng.below(4);
                let unwanted = &mut |stub: &Stub| stub.id.is_multiple_of(divisor);
                let removed = self.queue.remove_where(limit, unwanted);
                removed.iter().for_each(|stub| drop(stub.runs()));
            }
            2 => self.queue.visit(&mut |stub| match stub.id % 8 {
                7 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }),
            _ => {
                let _ = (self.queue.len(), self.queue.remaining_capacity());
            }
        }
    }

    /// Takes out what is left, due or not.
    pub(super) fn end(&self) {
        let rest = self.queue.remove_where(usize::MAX, &mut |_| true);
        rest.iter().for_each(|stub| drop(stub.runs()));
        if !self.queue.is_empty() || self.queue.poll().is_some() {
            self.ledger
                .wrong("a queue was cleared and is not empty (PROGRAM-6)".to_owned());
        }
    }
}
