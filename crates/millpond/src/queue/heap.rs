//! A binary heap that user-defined comparators cannot break.
//!
//! Every change first computes the positions, calling the comparator, and then moves the entries, calling nothing.
//! So a comparator that panics has changed nothing, and an inconsistent one gives an odd order but loses nothing.
//!
//! The children of index `i` are `2i + 1` and `2i + 2`. The path from the root to an index is in the bits of the
//! index, so it is enough to remember where the path ends.

/// A heap of entries, the least first.
pub(super) struct Heap<E> {
    entries: Vec<E>,
}

impl<E> Heap<E> {
    pub(super) fn new() -> Self {
        Heap {
            entries: Vec::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn first(&self) -> Option<&E> {
        self.entries.first()
    }

    /// The index of a new entry; `goes_before` says whether it precedes an existing one.
    pub(super) fn spot(&self, goes_before: impl Fn(&E) -> bool) -> usize {
        let mut spot = self.entries.len();
        while let Some(parent) = parent(spot) {
            if !goes_before(&self.entries[parent]) {
                break;
            }
            spot = parent;
        }
        spot
    }

    /// Adds an entry at the index that [`spot`](Heap::spot) found.
    pub(super) fn insert(&mut self, entry: E, spot: usize) {
        let mut index = self.entries.len();
        self.entries.push(entry);
        while index != spot {
            let Some(parent) = parent(index) else { break };
            self.entries.swap(index, parent);
            index = parent;
        }
    }

    /// Removes the first entry.
    pub(super) fn pop(&mut self, before: impl Fn(&E, &E) -> bool) -> Option<E> {
        let last = self.entries.len().checked_sub(1)?;
        let end = self.sink_index(last, before);
        let first = self.entries.swap_remove(0);
        let mut index = 0;
        for depth in (0..(end + 1).ilog2()).rev() {
            let next = ((end + 1) >> depth) - 1;
            self.entries.swap(index, next);
            index = next;
        }
        Some(first)
    }

    /// The index to which the last entry sinks when the first is removed.
    fn sink_index(&self, last: usize, before: impl Fn(&E, &E) -> bool) -> usize {
        let mut index = 0;
        loop {
            let left = 2 * index + 1;
            if left >= last {
                return index;
            }
            let right = left + 1;
            let entries = &self.entries;
            let child = if right < last && before(&entries[right], &entries[left]) {
                right
            } else {
                left
            };
            if !before(&entries[child], &entries[last]) {
                return index;
            }
            index = child;
        }
    }

    /// The entries in order. Only the first is cheap.
    pub(super) fn in_order(
        &self,
        compare: impl Fn(&E, &E) -> std::cmp::Ordering,
    ) -> impl Iterator<Item = &E> {
        let rest = move || self.sorted_indices(compare).into_iter().skip(1);
        self.entries.first().into_iter().chain(
            std::iter::once_with(rest)
                .flatten()
                .map(|index| &self.entries[index]),
        )
    }

    fn sorted_indices(&self, compare: impl Fn(&E, &E) -> std::cmp::Ordering) -> Vec<usize> {
        let mut indices: Vec<usize> = (0..self.entries.len()).collect();
        indices.sort_by(|one, other| compare(&self.entries[*one], &self.entries[*other]));
        indices
    }

    /// Removes the entries for which `unwanted` returns true, in order, at most `limit`.
    pub(super) fn remove_where(
        &mut self,
        compare: impl Fn(&E, &E) -> std::cmp::Ordering,
        limit: usize,
        mut unwanted: impl FnMut(&E) -> bool,
    ) -> Vec<E> {
        let indices = self.sorted_indices(compare);
        let mut left = limit;
        let marks: Vec<bool> = indices
            .iter()
            .map(|index| {
                let marked = left > 0 && unwanted(&self.entries[*index]);
                left -= usize::from(marked);
                marked
            })
            .collect();
        if left == limit {
            return Vec::new();
        }
        // Sorted entries are a heap: no further comparison is needed.
        let mut all: Vec<Option<E>> = self.entries.drain(..).map(Some).collect();
        let mut removed = Vec::new();
        for (index, marked) in indices.into_iter().zip(marks) {
            let Some(entry) = all[index].take() else {
                continue;
            };
            if marked {
                removed.push(entry);
            } else {
                self.entries.push(entry);
            }
        }
        removed
    }
}

fn parent(index: usize) -> Option<usize> {
    Some(index.checked_sub(1)? / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(numbers: &[u32]) -> Heap<u32> {
        let mut heap = Heap::new();
        for number in numbers {
            let spot = heap.spot(|other| number < other);
            heap.insert(*number, spot);
        }
        heap
    }

    fn emptied(mut heap: Heap<u32>) -> Vec<u32> {
        std::iter::from_fn(|| heap.pop(|one, other| one < other)).collect()
    }

    /// All permutations of `n` numbers.
    fn orders(n: u32) -> Vec<Vec<u32>> {
        if n == 0 {
            return vec![Vec::new()];
        }
        let mut all = Vec::new();
        for order in orders(n - 1) {
            for index in 0..=order.len() {
                let mut longer = order.clone();
                longer.insert(index, n);
                all.push(longer);
            }
        }
        all
    }

    #[test]
    fn what_goes_in_in_any_order_comes_out_sorted() {
        for n in 0..=7 {
            let sorted: Vec<u32> = (1..=n).collect();
            for order in orders(n) {
                assert_eq!(emptied(filled(&order)), sorted, "from {order:?}");
            }
        }
    }

    #[test]
    fn removing_any_leaves_the_others_in_order() {
        for order in orders(6) {
            for unwanted in 1..=6 {
                let mut heap = filled(&order);
                assert_eq!(
                    heap.remove_where(u32::cmp, 1, |n| *n == unwanted),
                    [unwanted]
                );
                let expected: Vec<u32> = (1..=6).filter(|n| *n != unwanted).collect();
                assert_eq!(emptied(heap), expected, "from {order:?} without {unwanted}");
            }
        }
    }

    #[test]
    fn what_comes_in_order_is_all_there_is() {
        let heap = filled(&[5, 1, 4, 1, 3]);
        let shown: Vec<u32> = heap.in_order(u32::cmp).copied().collect();
        assert_eq!(shown, [1, 1, 3, 4, 5]);
        assert_eq!(filled(&[]).in_order(u32::cmp).count(), 0);
    }
}
