//! The store of the flavors without a rule of their own: a growing ring, open at both ends.

use super::store::{End, Store};
use crate::time::Clock;
use std::collections::VecDeque;
use std::ops::ControlFlow;

/// Room that a bounded ring has from the start, if its bound is not below.
const AT_FIRST: usize = 64;

/// Room that a growing ring keeps when it is empty. What a burst took beyond that goes back.
const KEPT: usize = 4096;

/// Elements in the order in which they came.
pub(super) struct Ring<T> {
    elements: VecDeque<T>,
    kept: usize,
}

impl<T> Ring<T> {
    /// A ring that grows with what comes, and gives memory back after a burst.
    pub(super) fn growing() -> Self {
        Ring {
            elements: VecDeque::new(),
            kept: KEPT,
        }
    }

    /// A ring for at most about so many, which keeps its memory. It grows as it is used, so an absurd
    /// number costs nothing.
    pub(super) fn for_about(capacity: usize) -> Self {
        Ring {
            elements: VecDeque::with_capacity(capacity.min(AT_FIRST)),
            kept: usize::MAX,
        }
    }

    /// Moves everything out of another ring to the end of this one.
    pub(super) fn append(&mut self, other: &mut Ring<T>) {
        self.elements.append(&mut other.elements);
    }

    /// The one that came first.
    pub(super) fn first(&self) -> Option<&T> {
        self.elements.front()
    }

    #[cold]
    fn give_back(&mut self) {
        self.elements.shrink_to(self.kept);
    }
}

impl<T> FromIterator<T> for Ring<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        Ring {
            elements: elements.into_iter().collect(),
            kept: KEPT,
        }
    }
}

impl<T: Send> Store for Ring<T> {
    type Element = T;
    type Stamp = ();
    type Stamper = ();
    type Spot = End;

    fn stamp((): &(), _: &Clock, _: &T) {}

    #[inline]
    fn len(&self) -> usize {
        self.elements.len()
    }

    #[inline]
    fn spot(&self, _: &T, (): (), end: End) -> End {
        end
    }

    #[inline]
    fn push(&mut self, element: T, (): (), end: End) -> bool {
        match end {
            End::Last => self.elements.push_back(element),
            End::First => self.elements.push_front(element),
        }
        true
    }

    #[inline]
    fn pop(&mut self, _: &Clock, end: End) -> Option<T> {
        let element = match end {
            End::First => self.elements.pop_front(),
            End::Last => self.elements.pop_back(),
        };
        if self.elements.is_empty() && self.elements.capacity() > self.kept {
            self.give_back();
        }
        element
    }

    fn visit(&self, end: End, see: &mut dyn FnMut(&T) -> ControlFlow<()>) {
        let _ = match end {
            End::First => self.elements.iter().try_for_each(see),
            End::Last => self.elements.iter().rev().try_for_each(see),
        };
    }

    fn remove_where(
        &mut self,
        end: End,
        limit: usize,
        unwanted: &mut dyn FnMut(&T) -> bool,
    ) -> Vec<T> {
        let marks = marks(self, end, limit, unwanted);
        let count = marks.iter().filter(|marked| **marked).count();
        let mut removed = Vec::with_capacity(count);
        if count == 0 {
            return removed;
        }
        let all = std::mem::take(&mut self.elements);
        match end {
            End::First => {
                for (element, marked) in all.into_iter().zip(marks) {
                    match marked {
                        true => removed.push(element),
                        false => self.elements.push_back(element),
                    }
                }
            }
            End::Last => {
                for (element, marked) in all.into_iter().rev().zip(marks) {
                    match marked {
                        true => removed.push(element),
                        false => self.elements.push_front(element),
                    }
                }
            }
        }
        removed
    }
}

/// Asks `unwanted` about every element in the order of `end`, until `limit` are marked; those after
/// that are not asked about and not marked.
pub(super) fn marks<S: Store>(
    store: &S,
    end: End,
    limit: usize,
    unwanted: &mut dyn FnMut(&S::Element) -> bool,
) -> Vec<bool> {
    let mut marks = vec![false; store.len()];
    let mut left = limit;
    let mut place = marks.iter_mut();
    if left > 0 {
        store.visit(end, &mut |element| {
            let marked = unwanted(element);
            *place.next().expect("as many marks as elements") = marked;
            left -= usize::from(marked);
            match left {
                0 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        });
    }
    marks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn burst(mut ring: Ring<u64>, count: u64) -> Ring<u64> {
        let clock = Clock::system();
        for number in 0..count {
            ring.push(number, (), End::Last);
        }
        for number in 0..count {
            assert_eq!(ring.pop(&clock, End::First), Some(number));
        }
        ring
    }

    #[test]
    fn a_growing_ring_gives_back_what_a_burst_took() {
        let count = 20 * KEPT as u64;
        let ring = burst(Ring::growing(), count);
        assert!(ring.elements.capacity() < 2 * KEPT);
        let ring = burst(Ring::for_about(usize::MAX), count);
        assert!(ring.elements.capacity() >= 20 * KEPT, "this one keeps it");
    }

    #[test]
    fn removing_asks_from_the_end_it_is_told_and_keeps_the_order() {
        for (end, expected) in [(End::First, [1, 3, 4, 5]), (End::Last, [1, 2, 3, 5])] {
            let mut ring: Ring<u64> = (1..=5).collect();
            assert_eq!(ring.remove_where(end, 1, &mut |n| n % 2 == 0).len(), 1);
            let left: Vec<_> = ring.elements.into_iter().collect();
            assert_eq!(left, expected);
        }
    }
}
