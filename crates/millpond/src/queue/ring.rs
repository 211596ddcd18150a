//! The store of the flavors that do not sort: a growing ring, open at both ends.
//!
//! An element that enters an empty ring is stored in the ring itself and not in its buffer. So a lone element goes
//! from one thread to another in the cache line of the flag that announces it, and not in another line.

use super::store::{End, Store};
use crate::time::Clock;
use std::collections::VecDeque;
use std::ops::ControlFlow;

/// The largest initial capacity of a ring that keeps its memory.
const MAX_PREALLOCATED: usize = 64;

/// The capacity that a growing ring keeps when it is empty; more, from a burst, is freed later ([`Ring::review_kept`]).
const KEPT: usize = 4096;

/// The capacity that a growing ring keeps after a burst, if the next is as large.
const KEPT_FOR_BURSTS: usize = 1 << 19;

/// Elements in order of arrival. The fields are always used together, so they are adjacent (`repr(C)`).
#[repr(C)]
pub(super) struct Ring<T> {
    /// The element before all others.
    first: Option<T>,
    /// The other elements; all of them if `first` is empty.
    others: VecDeque<T>,
    kept: usize,
}

impl<T> Ring<T> {
    /// A ring that grows with use, and frees the memory of a burst.
    pub(super) fn growing() -> Self {
        Ring {
            first: None,
            others: VecDeque::new(),
            kept: KEPT,
        }
    }

    /// A ring for at most about `capacity` elements, which keeps its memory. It grows with use, so a huge capacity
    /// costs nothing.
    pub(super) fn preallocated(capacity: usize) -> Self {
        Ring {
            first: None,
            others: VecDeque::with_capacity(capacity.min(MAX_PREALLOCATED)),
            kept: usize::MAX,
        }
    }

    /// Moves the elements of another ring to the end of this one.
    pub(super) fn append(&mut self, other: &mut Ring<T>) {
        self.others.extend(other.first.take());
        self.others.append(&mut other.others);
    }

    /// The oldest element.
    pub(super) fn first(&self) -> Option<&T> {
        self.first.as_ref().or_else(|| self.others.front())
    }

    #[cold]
    fn grow_for(&mut self, element: T) {
        self.others.push_back(element);
    }

    #[cold]
    fn free_burst(&mut self) {
        self.others.shrink_to(self.kept);
    }

    /// Decides how much memory is kept when the ring, now at its fullest, is empty again. Bursts of the same size keep
    /// it, because fresh memory costs a page fault for every 512 elements; after a burst that needed less than a quarter
    /// it is halved.
    #[inline]
    pub(super) fn review_kept(&mut self) {
        if self.others.capacity() > KEPT && self.kept < usize::MAX {
            let capacity = self.others.capacity();
            let is_small = self.others.len() < capacity / 4;
            let kept = if is_small { capacity / 2 } else { capacity };
            self.kept = kept.clamp(KEPT, KEPT_FOR_BURSTS);
        }
    }

    /// Whether it is empty and bursts have left memory in it.
    pub(super) fn has_surplus(&self) -> bool {
        self.first.is_none()
            && self.others.is_empty()
            && self.others.capacity() > KEPT
            && self.kept < usize::MAX
    }

    /// Frees what bursts have left, if the ring is empty.
    pub(super) fn trim(&mut self) {
        if self.has_surplus() {
            self.kept = KEPT;
            self.others.shrink_to(KEPT);
        }
    }
}

impl<T> FromIterator<T> for Ring<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        Ring {
            first: None,
            others: elements.into_iter().collect(),
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
        self.others.len() + usize::from(self.first.is_some())
    }

    #[inline]
    fn spot(&self, _: &T, (): (), end: End) -> End {
        end
    }

    #[inline]
    fn push(&mut self, element: T, (): (), end: End) -> bool {
        match end {
            End::Last if self.len() == 0 => self.first = Some(element),
            End::Last if self.others.len() < self.others.capacity() => {
                self.others.push_back(element)
            }
            End::Last => self.grow_for(element),
            End::First => {
                if let Some(second) = self.first.replace(element) {
                    self.others.push_front(second);
                }
            }
        }
        true
    }

    #[inline]
    fn pop(&mut self, _: &Clock, end: End) -> Option<T> {
        if end == End::First && self.first.is_some() {
            return self.first.take();
        }
        let element = match end {
            End::First => self.others.pop_front(),
            End::Last => self.others.pop_back().or_else(|| self.first.take()),
        };
        if self.others.is_empty() && self.others.capacity() > self.kept {
            self.free_burst();
        }
        element
    }

    fn visit(&self, end: End, see: &mut dyn FnMut(&T) -> ControlFlow<()>) {
        let _ = match end {
            End::First => self.first.iter().chain(&self.others).try_for_each(see),
            End::Last => (self.others.iter().rev())
                .chain(&self.first)
                .try_for_each(see),
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
        let first = self.first.take();
        let all = first.into_iter().chain(std::mem::take(&mut self.others));
        match end {
            End::First => {
                for (element, marked) in all.zip(marks) {
                    if marked {
                        removed.push(element);
                    } else {
                        self.others.push_back(element);
                    }
                }
            }
            End::Last => {
                for (element, marked) in all.rev().zip(marks) {
                    if marked {
                        removed.push(element);
                    } else {
                        self.others.push_front(element);
                    }
                }
            }
        }
        removed
    }
}

/// Marks the elements for which `unwanted` returns true, in the order of `end`. After `limit` marks it is not called
/// any more.
pub(super) fn marks<S: Store>(
    store: &S,
    end: End,
    limit: usize,
    unwanted: &mut dyn FnMut(&S::Element) -> bool,
) -> Vec<bool> {
    let mut marks = vec![false; store.len()];
    let mut left = limit;
    let mut slots = marks.iter_mut();
    if left > 0 {
        store.visit(end, &mut |element| {
            let marked = unwanted(element);
            *slots.next().expect("as many marks as elements") = marked;
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
    use proptest::collection::vec;
    use proptest::prelude::*;

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
    fn a_growing_ring_frees_what_a_burst_took() {
        let count = 20 * KEPT as u64;
        let ring = burst(Ring::growing(), count);
        assert!(ring.others.capacity() < 2 * KEPT);
        let ring = burst(Ring::preallocated(usize::MAX), count);
        assert!(ring.others.capacity() >= 20 * KEPT, "this one keeps it");
    }

    #[test]
    fn removing_asks_from_the_end_it_is_told_and_keeps_the_order() {
        for (end, expected) in [(End::First, [1, 3, 4, 5]), (End::Last, [1, 2, 3, 5])] {
            let mut ring: Ring<u64> = (1..=5).collect();
            assert_eq!(ring.remove_where(end, 1, &mut |n| n % 2 == 0).len(), 1);
            assert_eq!(all(&ring), expected);
        }
    }

    /// The elements in order.
    fn all(ring: &Ring<u64>) -> Vec<u64> {
        let mut seen = Vec::new();
        ring.visit(End::First, &mut |element| {
            seen.push(*element);
            ControlFlow::Continue(())
        });
        seen
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Push(bool),
        Pop(bool),
        Append(u64),
        RemoveEven(bool, usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => any::<bool>().prop_map(Step::Push),
            4 => any::<bool>().prop_map(Step::Pop),
            1 => (0..3_u64).prop_map(Step::Append),
            1 => (any::<bool>(), 0..3_usize).prop_map(|(first, most)| Step::RemoveEven(first, most)),
        ]
    }

    fn end(first: bool) -> End {
        if first { End::First } else { End::Last }
    }

    proptest! {
        #![proptest_config(crate::proptest_kit::config(256))]

        /// Wherever an element is stored, in the ring itself or in its buffer, the order is a plain queue's.
        #[test]
        fn a_ring_is_a_plain_queue_with_two_ends(steps in vec(step(), 1..60)) {
            let clock = Clock::system();
            let (mut ring, mut model) = (Ring::growing(), VecDeque::new());
            for (number, step) in (0_u64..).step_by(3).zip(steps) {
                match step {
                    Step::Push(first) => {
                        ring.push(number, (), end(first));
                        if first {
                            model.push_front(number);
                        } else {
                            model.push_back(number);
                        }
                    }
                    Step::Pop(first) => {
                        let expected = if first { model.pop_front() } else { model.pop_back() };
                        prop_assert_eq!(ring.pop(&clock, end(first)), expected);
                    }
                    Step::Append(count) => {
                        let mut other = Ring::growing();
                        for added in number..number + count {
                            other.push(added, (), End::Last);
                            model.push_back(added);
                        }
                        ring.append(&mut other);
                        prop_assert_eq!(other.len(), 0);
                    }
                    Step::RemoveEven(first, most) => {
                        let removed = ring.remove_where(end(first), most, &mut |n| n % 2 == 0);
                        let mut even: Vec<_> = model.iter().copied().filter(|n| n % 2 == 0).collect();
                        if !first {
                            even.reverse();
                        }
                        even.truncate(most);
                        prop_assert_eq!(&removed, &even);
                        model.retain(|n| !even.contains(n));
                    }
                }
                prop_assert_eq!(ring.len(), model.len());
                prop_assert_eq!(ring.first(), model.front());
                prop_assert_eq!(all(&ring), Vec::from(model.clone()));
            }
        }
    }
}
