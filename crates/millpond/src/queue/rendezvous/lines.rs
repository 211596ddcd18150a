//! The two lines of a rendezvous, and the steps under its lock.
//!
//! Nothing here wakes a waiter or drops a user's value: each step returns what must be woken or dropped
//! (HANDOFF-5).

use std::collections::{BTreeMap, VecDeque};
use std::task::Waker;

/// Which waiter of a line is served first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::queue) enum Order {
    /// The one that came first.
    Fair,
    /// The one that came last: its thread is most likely awake, and its memory cached.
    Unfair,
}

/// The number of a waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Number(i64);

pub(super) struct Lines<T> {
    order: Order,
    next: i64,
    next_in_front: i64,
    producers: VecDeque<Producer<T>>,
    consumers: VecDeque<Consumer>,
    handed: BTreeMap<Number, T>,
}

pub(super) struct Producer<T> {
    number: Number,
    pub(super) element: T,
    /// `None` if no producer waits for it to be taken.
    pub(super) waker: Option<Waker>,
}

struct Consumer {
    number: Number,
    waker: Waker,
}

/// A line keeps at least this capacity.
const MIN_CAPACITY: usize = 64;

impl<T> Lines<T> {
    pub(super) fn new(order: Order) -> Self {
        Lines {
            order,
            next: 0,
            next_in_front: -1,
            producers: VecDeque::new(),
            consumers: VecDeque::new(),
            handed: BTreeMap::new(),
        }
    }

    pub(super) fn producers(&self) -> &VecDeque<Producer<T>> {
        &self.producers
    }

    pub(super) fn waiting_consumers(&self) -> usize {
        self.consumers.len()
    }

    fn number(&mut self) -> Number {
        self.next += 1;
        Number(self.next - 1)
    }

    /// Matches the next consumer with this element. Returns the waker to call.
    pub(super) fn hand_over(&mut self, element: T) -> Result<Waker, T> {
        let Some(consumer) = next(&mut self.consumers, self.order) else {
            return Err(element);
        };
        self.handed.insert(consumer.number, element);
        Ok(consumer.waker)
    }

    /// Removes the next producer from its line. If it waits it must be woken.
    pub(super) fn pop_producer(&mut self) -> Option<Producer<T>> {
        let producer = next(&mut self.producers, self.order);
        // A long line that has become short frees memory. It is moved again only after its length has halved
        // or doubled, so the moves cost a constant for each element.
        let held = self.producers.capacity();
        if held > MIN_CAPACITY && self.producers.len() < held / 4 {
            self.producers.shrink_to(held / 2);
        }
        producer
    }

    /// Adds a producer at the end of the line. No consumer waits: `hand_over` has failed.
    pub(super) fn enqueue_producer(&mut self, element: T, waker: Option<Waker>) -> Number {
        debug_assert!(self.consumers.is_empty(), "HANDOFF-1");
        let number = self.number();
        self.producers.push_back(Producer {
            number,
            element,
            waker,
        });
        number
    }

    /// Adds an element as the next to be taken. No consumer waits: `hand_over` has failed.
    pub(super) fn enqueue_producer_in_front(&mut self, element: T) {
        debug_assert!(self.consumers.is_empty(), "HANDOFF-1");
        match self.order {
            Order::Fair => {
                let number = Number(self.next_in_front);
                self.next_in_front -= 1;
                self.producers.push_front(Producer {
                    number,
                    element,
                    waker: None,
                });
            }
            Order::Unfair => {
                self.enqueue_producer(element, None);
            }
        }
    }

    /// Adds a consumer. No producer is in line: `pop_producer` has failed.
    pub(super) fn enqueue_consumer(&mut self, waker: Waker) -> Number {
        debug_assert!(self.producers.is_empty(), "HANDOFF-1");
        let number = self.number();
        self.consumers.push_back(Consumer { number, waker });
        number
    }

    /// The waker of a waiting producer.
    pub(super) fn producer_waker(&mut self, number: Number) -> Option<&mut Waker> {
        let at = position(&self.producers, number, |producer| producer.number)?;
        self.producers[at].waker.as_mut()
    }

    /// The waker of a waiting consumer.
    pub(super) fn consumer_waker(&mut self, number: Number) -> Option<&mut Waker> {
        let at = position(&self.consumers, number, |consumer| consumer.number)?;
        Some(&mut self.consumers[at].waker)
    }

    /// Removes the element that was handed to a consumer.
    pub(super) fn fetch(&mut self, number: Number) -> Option<T> {
        self.handed.remove(&number)
    }

    pub(super) fn remove_producer(&mut self, number: Number) -> Option<Producer<T>> {
        let at = position(&self.producers, number, |producer| producer.number)?;
        self.producers.remove(at)
    }

    pub(super) fn remove_consumer(&mut self, number: Number) -> Option<Waker> {
        let at = position(&self.consumers, number, |consumer| consumer.number)?;
        self.consumers.remove(at).map(|consumer| consumer.waker)
    }

    /// Removes the producers at these positions, which are ascending.
    pub(super) fn remove_producers_at(&mut self, positions: &[usize]) -> Vec<Producer<T>> {
        let mut removed = Vec::with_capacity(positions.len());
        let mut chosen = positions.iter().copied().peekable();
        for (at, producer) in std::mem::take(&mut self.producers).into_iter().enumerate() {
            match chosen.next_if_eq(&at) {
                Some(_) => removed.push(producer),
                None => self.producers.push_back(producer),
            }
        }
        removed
    }
}

fn next<W>(line: &mut VecDeque<W>, order: Order) -> Option<W> {
    match order {
        Order::Fair => line.pop_front(),
        Order::Unfair => line.pop_back(),
    }
}

fn position<W>(
    line: &VecDeque<W>,
    number: Number,
    number_of: impl Fn(&W) -> Number,
) -> Option<usize> {
    line.binary_search_by_key(&number, number_of).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_long_ago_and_of_now_stay_apart_and_in_order() {
        for start in [(1 << 31) - 2, (1 << 32) - 2, i64::MAX - 9] {
            let mut lines = Lines::new(Order::Fair);
            let oldest = lines.enqueue_producer(1, Some(Waker::noop().clone()));
            (lines.next, lines.next_in_front) = (start, -start);
            lines.enqueue_producer_in_front(0);
            let newer: Vec<_> = (2..6).map(|n| lines.enqueue_producer(n, None)).collect();
            assert!(lines.producer_waker(oldest).is_some());
            assert_eq!(lines.remove_producer(newer[1]).map(|g| g.element), Some(3));
            assert!(lines.remove_producer(newer[1]).is_none());
            assert_eq!(lines.remove_producer(oldest).map(|g| g.element), Some(1));
            let left = std::iter::from_fn(|| lines.pop_producer().map(|g| g.element));
            assert_eq!(left.collect::<Vec<_>>(), [0, 2, 4, 5]);
        }
    }

    #[test]
    fn a_line_that_was_long_gives_its_memory_back() {
        let mut lines = Lines::new(Order::Fair);
        for element in 0..10_000 {
            lines.enqueue_producer(element, None);
        }
        assert!(lines.producers.capacity() >= 10_000);
        while lines.producers.len() > 10 {
            let producer = lines.pop_producer().expect("there are more");
            assert_eq!(producer.element, 10_000 - 1 - lines.producers.len());
        }
        assert!(lines.producers.capacity() <= 2 * MIN_CAPACITY);
    }

    #[test]
    fn a_number_is_never_given_twice_in_front_or_behind() {
        for order in [Order::Fair, Order::Unfair] {
            let mut lines = Lines::new(order);
            let mut seen = std::collections::BTreeSet::new();
            for element in 0..10 {
                lines.enqueue_producer(element, None);
                lines.enqueue_producer_in_front(element);
                if element % 3 == 0 {
                    let producer = lines.pop_producer().expect("there are two");
                    assert!(seen.insert(producer.number));
                }
            }
            while let Some(producer) = lines.pop_producer() {
                assert!(seen.insert(producer.number));
            }
            assert_eq!(seen.len(), 20);
        }
    }

    #[test]
    fn a_leaving_producer_is_found_wherever_it_is() {
        for leaver in 0..7 {
            let mut lines = Lines::new(Order::Fair);
            let numbers: Vec<_> = (0..7)
                .map(|element| lines.enqueue_producer(element, Some(Waker::noop().clone())))
                .collect();
            lines.enqueue_producer_in_front(7);
            let left = lines
                .remove_producer(numbers[leaver])
                .expect("it is in line");
            assert_eq!(left.element, leaver);
            assert!(lines.remove_producer(numbers[leaver]).is_none(), "once");
            assert!(lines.producer_waker(numbers[leaver]).is_none());
            let rest = std::iter::from_fn(|| lines.pop_producer()).map(|producer| producer.element);
            let expected = [7].into_iter().chain((0..7).filter(|at| *at != leaver));
            assert!(rest.eq(expected));
        }
    }
}
