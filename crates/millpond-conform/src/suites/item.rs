//! What the queues of the suites hold, and how the suites get their queues.

use crate::kit::{Actor, DropCount, DropToken, Gate, Stopwatch, delays};
use millpond::queue::{BlockingQueue, CapacityError, QueueExt, Reason};
use std::cmp::Ordering;
use std::sync::Arc;

/// A queue under test.
pub type Queue = Arc<dyn BlockingQueue<Item>>;

/// Makes a queue under test, bounded by this capacity if it has bounds.
pub type Make = fn(usize) -> Result<Queue, CapacityError>;

/// An element: it has a rank, by which it is compared and ordered, and can be counted.
#[derive(Clone, Debug)]
pub struct Item {
    /// Its place in the order.
    pub rank: u32,
    /// Which of several equals it is; it does not compare.
    pub mark: u32,
    _life: Option<DropToken>,
}

/// An element of this rank.
pub fn item(rank: u32) -> Item {
    Item {
        rank,
        mark: 0,
        _life: None,
    }
}

impl Item {
    /// The same with a mark.
    #[must_use]
    pub fn marked(mut self, mark: u32) -> Self {
        self.mark = mark;
        self
    }

    /// The same, counted while it lives.
    #[must_use]
    pub fn counted(mut self, count: &DropCount) -> Self {
        self._life = Some(count.token());
        self
    }
}

impl PartialEq for Item {
    fn eq(&self, other: &Self) -> bool {
        self.rank == other.rank
    }
}

impl Eq for Item {}

impl PartialOrd for Item {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Item {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank.cmp(&other.rank)
    }
}

/// The room that most bodies ask for.
pub(super) const ROOM: usize = 8;

/// An empty queue with [`ROOM`].
pub(super) fn empty(make: &Make) -> Queue {
    make(ROOM).expect("a capacity that every queue can have")
}

/// A queue with [`ROOM`], of which the first ranks up to `count` are taken.
pub(super) fn with(make: &Make, count: u32) -> Queue {
    let queue = empty(make);
    offer_all(&queue, 0..count);
    queue
}

/// A full queue of this capacity.
pub(super) fn full(make: &Make, capacity: u32) -> Queue {
    let queue = make(capacity as usize).expect("a capacity that every queue can have");
    offer_all(&queue, 0..capacity);
    queue
}

#[track_caller]
pub(super) fn offer_all(queue: &Queue, ranks: impl IntoIterator<Item = u32>) {
    for rank in ranks {
        queue.offer(item(rank)).expect("there is room");
    }
}

/// The ranks of the elements, as they are seen.
pub(super) fn ranks(queue: &Queue) -> Vec<u32> {
    queue.snapshot().iter().map(|item| item.rank).collect()
}

/// The ranks of the elements, as they come out.
pub(super) fn polled(queue: &Queue) -> Vec<u32> {
    std::iter::from_fn(|| queue.poll())
        .map(|item| item.rank)
        .collect()
}

/// A producer that offers `element` with a timeout to a queue without room: it waits for the whole
/// timeout, waits again, and is interrupted.
pub(super) fn assert_timed_offer_waits(queue: &Queue, element: Item) {
    let (own, offered, timed_out) = (Arc::clone(queue), element.clone(), Gate::new());
    let opener = timed_out.clone();
    let producer = Actor::start("producer", move || {
        let watch = Stopwatch::start();
        let rejected = own.offer_timeout(offered, delays::timeout()).unwrap_err();
        watch.assert_at_least(delays::timeout());
        assert_eq!(rejected.reason, Reason::TimedOut);
        opener.open();
        own.offer_timeout(rejected.element, delays::longer())
    });
    timed_out.wait();
    producer.interrupt_at("queue.put");
    let rejected = producer.finish().unwrap_err();
    assert_eq!(
        (rejected.element, rejected.reason),
        (element, Reason::Interrupted)
    );
}
