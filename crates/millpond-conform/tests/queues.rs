//! Every queue, and the suites that it must pass.

use millpond::queue::{
    ArrayQueue, BlockingQueue, CapacityError, DelayQueue, DequeQueue, HandOffQueue, LinkedQueue,
    PriorityQueue, TransferQueue, WeighedQueue,
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

ask! { array, |capacity| shared(ArrayQueue::bounded(capacity)?),
queue_suite waiting_suite fifo_suite bounded_suite linear_suite stress_suite storing_suite }

ask! { linked_bounded, |capacity| shared(LinkedQueue::bounded(capacity)?),
queue_suite waiting_suite fifo_suite bounded_suite linear_suite stress_suite storing_suite }

ask! { linked_unbounded, |_| shared(LinkedQueue::unbounded()),
queue_suite waiting_suite fifo_suite unbounded_suite linear_suite stress_suite storing_suite }

ask! { hand_off_fair, |_| shared(HandOffQueue::fair()), waiting_suite stress_suite }

ask! { hand_off_unfair, |_| shared(HandOffQueue::unfair()), waiting_suite stress_suite }

ask! { hand_off_fair_hands, HandOffQueue::fair, hand_off_suite }

ask! { hand_off_unfair_hands, HandOffQueue::unfair, hand_off_suite }

ask! { transfer, |_| shared(TransferQueue::unbounded()),
queue_suite waiting_suite fifo_suite unbounded_suite linear_suite stress_suite storing_suite }

ask! { transfer_hands, TransferQueue::unbounded, transfer_suite }

ask! { deque_bounded, |capacity| shared(DequeQueue::bounded(capacity)?),
queue_suite waiting_suite fifo_suite bounded_suite linear_suite stress_suite storing_suite }

ask! { deque_unbounded, |_| shared(DequeQueue::unbounded()),
queue_suite waiting_suite fifo_suite unbounded_suite linear_suite stress_suite storing_suite }

ask! { deque_ends, |capacity| DequeQueue::bounded(capacity).unwrap(), deque_suite }

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

ask! { weighed_by_one, |capacity| shared(WeighedQueue::bounded(capacity as u64, |_| 1)?),
queue_suite waiting_suite fifo_suite bounded_suite linear_suite stress_suite storing_suite }

ask! { weighed, |bound| WeighedQueue::bounded(bound, |item: &Item| item.rank.into()),
weighed_suite }

ask! { array_async, |capacity| ArrayQueue::bounded(capacity).unwrap(), asynchronous_suite }

ask! { linked_async, |capacity| LinkedQueue::bounded(capacity).unwrap(), asynchronous_suite }

ask! { deque_async, |capacity| DequeQueue::bounded(capacity).unwrap(), asynchronous_suite }

ask! { priority_async, |capacity| PriorityQueue::bounded(capacity).unwrap(), asynchronous_suite }

ask! { weighed_async, |capacity| WeighedQueue::bounded(capacity as u64, |_: &Item| 1).unwrap(),
asynchronous_suite }
