//! The store of the flavors that sort: a heap by due time, then by comparator, then by age.
//!
//! A priority queue has no due times, unless it ages; a delay queue has no comparator, and its elements are
//! available only when they are due (`TIMED`).

use super::heap::Heap;
use super::store::{End, Store};
use crate::time::{Clock, Deadline};
use millpond_raw::user_code::{self, Kind, under_own_locks};
use std::cmp::Ordering;
use std::ops::ControlFlow;

/// A user-defined comparator.
pub(super) type Comparator<T> = Box<dyn Fn(&T, &T) -> Ordering + Send + Sync>;

/// The order of two elements that are due at the same time.
pub(super) enum Order<T> {
    /// The older first.
    Age,
    /// The lesser first.
    Natural(fn(&T, &T) -> Ordering),
    /// By a comparator.
    By(Comparator<T>),
}

impl<T> Order<T> {
    fn compare(&self, one: &T, other: &T) -> Ordering {
        match self {
            Order::Age => Ordering::Equal,
            Order::Natural(compare) => under_own_locks(1, || compare(one, other)),
            Order::By(compare) => under_own_locks(1, || compare(one, other)),
        }
    }
}

/// The due time of an element.
pub(super) type Due<T> = Box<dyn Fn(&Clock, &T) -> Deadline + Send + Sync>;

struct Entry<T> {
    element: T,
    due: Deadline,
    /// Counts up: among equals the older comes first.
    number: u64,
}

pub(super) struct Ranked<T, const TIMED: bool> {
    heap: Heap<Entry<T>>,
    order: Order<T>,
    next: u64,
}

impl<T, const TIMED: bool> Ranked<T, TIMED> {
    pub(super) fn new(order: Order<T>) -> Self {
        Ranked {
            heap: Heap::new(),
            order,
            next: 0,
        }
    }

    fn compare(order: &Order<T>, one: &Entry<T>, other: &Entry<T>) -> Ordering {
        one.due
            .cmp(&other.due)
            .then_with(|| order.compare(&one.element, &other.element))
            .then(one.number.cmp(&other.number))
    }
}

impl<T: Send, const TIMED: bool> Store for Ranked<T, TIMED> {
    type Element = T;
    type Stamp = Deadline;
    type Stamper = Option<Due<T>>;
    type Spot = usize;

    const TIMED: bool = TIMED;

    fn stamp(due: &Option<Due<T>>, clock: &Clock, element: &T) -> Deadline {
        match due {
            Some(due) => {
                user_code::check(Kind::Closure);
                due(clock, element)
            }
            None => Deadline::NEVER,
        }
    }

    fn len(&self) -> usize {
        self.heap.len()
    }

    fn spot(&self, element: &T, due: Deadline, _: End) -> usize {
        self.heap.spot(|other| {
            // It is the newest, so it goes behind its equals.
            due.cmp(&other.due)
                .then_with(|| self.order.compare(element, &other.element))
                == Ordering::Less
        })
    }

    fn push(&mut self, element: T, due: Deadline, spot: usize) -> bool {
        let number = self.next;
        self.next += 1;
        let entry = Entry {
            element,
            due,
            number,
        };
        self.heap.insert(entry, spot);
        // Only a new first element changes the time for which consumers wait.
        !TIMED || spot == 0
    }

    fn pop(&mut self, clock: &Clock, _: End) -> Option<T> {
        if TIMED {
            let due = self.heap.first()?.due;
            if !due.has_passed(clock.now()) {
                return None;
            }
        }
        let order = &self.order;
        self.heap
            .pop(|one, other| Self::compare(order, one, other) == Ordering::Less)
            .map(|entry| entry.element)
    }

    fn ready_at(&self) -> Deadline {
        match self.heap.first() {
            Some(entry) => entry.due,
            None => Deadline::NEVER,
        }
    }

    fn visit(&self, _: End, see: &mut dyn FnMut(&T) -> ControlFlow<()>) {
        let _ = self
            .heap
            .in_order(|one, other| Self::compare(&self.order, one, other))
            .try_for_each(|entry| see(&entry.element));
    }

    fn remove_where(
        &mut self,
        _: End,
        limit: usize,
        unwanted: &mut dyn FnMut(&T) -> bool,
    ) -> Vec<T> {
        let order = &self.order;
        self.heap
            .remove_where(
                |one, other| Self::compare(order, one, other),
                limit,
                |entry| unwanted(&entry.element),
            )
            .into_iter()
            .map(|entry| entry.element)
            .collect()
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn among_equals_who_came_long_ago_goes_before_who_comes_now() {
        let clock = Clock::system();
        for start in [(1 << 31) - 2, (1 << 32) - 2, u64::MAX - 9] {
            let mut ranked = Ranked::<u32, false>::new(Order::By(Box::new(|_, _| Ordering::Equal)));
            let push = |ranked: &mut Ranked<_, false>, element| {
                let spot = ranked.spot(&element, Deadline::NEVER, End::Last);
                ranked.push(element, Deadline::NEVER, spot);
            };
            push(&mut ranked, 0);
            push(&mut ranked, 1);
            ranked.next = start;
            (2..8).for_each(|element| push(&mut ranked, element));
            let all = std::iter::from_fn(|| ranked.pop(&clock, End::First));
            assert!(all.eq(0..8), "from {start}");
        }
    }
}
