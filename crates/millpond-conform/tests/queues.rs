//! Every queue, and the suites that it must pass.

use millpond::queue::{
    BlockingDeque, BlockingQueue, CapacityError, DelayQueue, FifoQueue, HandOffQueue,
    PriorityQueue, TransferQueue, WeightedQueue,
};
use millpond::time::Clock;
use millpond_conform::ask;
use millpond_conform::suites::item::{Item, Queue};
use std::sync::Arc;
use std::time::Duration;

fn shared(queue: impl BlockingQueue<Item> + 'static) -> Result<Queue, CapacityError> {
    Ok(Arc::new(queue))
}

/// A delay queue whose elements are due since a second, in the order of their ranks.
fn overdue() -> DelayQueue<Item> {
    let now = Clock::system().now();
    let base = now.checked_sub(Duration::from_secs(1)).unwrap_or(now);
    DelayQueue::due_by(move |item: &Item| base + Duration::from_nanos(item.rank.into()))
}

ask! { fifo_bounded, |capacity| shared(FifoQueue::bounded(capacity)?),
queue_suite waiting_suite fifo_suite bounded_suite linear_suite stress_suite storing_suite }

ask! { fifo_growing_bounded, |capacity| shared(FifoQueue::bounded_growing(capacity)?),
queue_suite waiting_suite fifo_suite bounded_suite linear_suite stress_suite storing_suite }

ask! { fifo_growing_unbounded, |_| shared(FifoQueue::unbounded()),
queue_suite waiting_suite fifo_suite unbounded_suite linear_suite stress_suite storing_suite }

ask! { hand_off_fair, |_| shared(HandOffQueue::fair()), waiting_suite stress_suite }

ask! { hand_off_unfair, |_| shared(HandOffQueue::unfair()), waiting_suite stress_suite }

ask! { hand_off_fair_hands, HandOffQueue::fair, hand_off_suite }

ask! { hand_off_unfair_hands, HandOffQueue::unfair, hand_off_suite }

ask! { transfer, |_| shared(TransferQueue::unbounded()),
queue_suite waiting_suite fifo_suite unbounded_suite linear_suite stress_suite storing_suite }

ask! { transfer_hands, TransferQueue::unbounded, transfer_suite }

ask! { deque_bounded, |capacity| shared(BlockingDeque::bounded(capacity)?),
queue_suite waiting_suite fifo_suite bounded_suite linear_suite stress_suite storing_suite }

ask! { deque_unbounded, |_| shared(BlockingDeque::unbounded()),
queue_suite waiting_suite fifo_suite unbounded_suite linear_suite stress_suite storing_suite }

ask! { deque_ends, |capacity| BlockingDeque::bounded(capacity).unwrap(), deque_suite }

ask! { priority_bounded, |capacity| shared(PriorityQueue::bounded(capacity)?),
queue_suite waiting_suite bounded_suite linear_suite stress_suite storing_suite }

ask! { priority_unbounded, |_| shared(PriorityQueue::new()),
queue_suite waiting_suite unbounded_suite linear_suite stress_suite storing_suite }

ask! { priority_order, |compare| PriorityQueue::by(compare), priority_suite }

ask! { delay_bounded, |capacity| shared(overdue().with_bound(capacity)?),
queue_suite waiting_suite bounded_suite linear_suite stress_suite storing_suite }

ask! { delay_unbounded, |_| shared(overdue()),
queue_suite waiting_suite unbounded_suite linear_suite stress_suite storing_suite }

ask! { delay_times, DelayQueue::new, delay_suite }

ask! { weighed_by_one, |capacity| shared(WeightedQueue::bounded(capacity as u64, |_| 1)?),
queue_suite waiting_suite fifo_suite bounded_suite linear_suite stress_suite storing_suite }

ask! { weighed, |bound| WeightedQueue::bounded(bound, |item: &Item| item.rank.into()),
weighed_suite }

ask! { fifo_bounded_async, |capacity| FifoQueue::bounded(capacity).unwrap(), asynchronous_suite }

ask! { fifo_growing_async, |capacity| FifoQueue::bounded_growing(capacity).unwrap(), asynchronous_suite }

ask! { deque_async, |capacity| BlockingDeque::bounded(capacity).unwrap(), asynchronous_suite }

ask! { priority_async, |capacity| PriorityQueue::bounded(capacity).unwrap(), asynchronous_suite }

ask! { weighed_async, |capacity| WeightedQueue::bounded(capacity as u64, |_: &Item| 1).unwrap(),
asynchronous_suite }
