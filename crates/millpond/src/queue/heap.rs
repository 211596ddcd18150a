//! A binary heap that users' comparators cannot break.
//!
//! Every change first finds out where things go, asking the comparator, and then moves them, asking
//! nobody. So a comparator that panics has changed nothing, and one that contradicts itself gives a
//! strange order but loses nothing.
//!
//! Places are those of the usual tree in an array: the children of `i` are `2i + 1` and `2i + 2`. The
//! way from the root to a place is written in the bits of its number, hence it is enough to remember
//! where it ends.

/// Entries of which the foremost can be had quickly.
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

    /// Where a new entry will stand; `goes_before` tells of an entry whether the new one does.
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

    /// Takes an entry in, at the spot that was found for it.
    pub(super) fn insert(&mut self, entry: E, spot: usize) {
        let mut place = self.entries.len();
        self.entries.push(entry);
        while place != spot {
            let Some(parent) = parent(place) else { break };
            self.entries.swap(place, parent);
            place = parent;
        }
    }

    /// Takes the foremost entry out.
    pub(super) fn pop(&mut self, before: impl Fn(&E, &E) -> bool) -> Option<E> {
        let last = self.entries.len().checked_sub(1)?;
        let end = self.way_of_last(last, before);
        let first = self.entries.swap_remove(0);
        let mut place = 0;
        for depth in (0..(end + 1).ilog2()).rev() {
            let next = ((end + 1) >> depth) - 1;
            self.entries.swap(place, next);
            place = next;
        }
        Some(first)
    }

    /// Where the last entry sinks to when the first is taken away.
    fn way_of_last(&self, last: usize, before: impl Fn(&E, &E) -> bool) -> usize {
        let mut place = 0;
        loop {
            let left = 2 * place + 1;
            if left >= last {
                return place;
            }
            let right = left + 1;
            let entries = &self.entries;
            let child = match right < last && before(&entries[right], &entries[left]) {
                true => right,
                false => left,
            };
            if !before(&entries[child], &entries[last]) {
                return place;
            }
            place = child;
        }
    }

    /// The entries in order, of which the first few are cheap.
    pub(super) fn in_order(
        &self,
        compare: impl Fn(&E, &E) -> std::cmp::Ordering,
    ) -> impl Iterator<Item = &E> {
        let rest = move || self.places_in_order(compare).into_iter().skip(1);
        self.entries.first().into_iter().chain(
            std::iter::once_with(rest)
                .flatten()
                .map(|place| &self.entries[place]),
        )
    }

    fn places_in_order(&self, compare: impl Fn(&E, &E) -> std::cmp::Ordering) -> Vec<usize> {
        let mut places: Vec<usize> = (0..self.entries.len()).collect();
        places.sort_by(|one, other| compare(&self.entries[*one], &self.entries[*other]));
        places
    }

    /// Takes out what `unwanted` chooses, asking in order, at most `limit`.
    pub(super) fn remove_where(
        &mut self,
        compare: impl Fn(&E, &E) -> std::cmp::Ordering,
        limit: usize,
        mut unwanted: impl FnMut(&E) -> bool,
    ) -> Vec<E> {
        let places = self.places_in_order(compare);
        let mut left = limit;
        let marks: Vec<bool> = places
            .iter()
            .map(|place| {
                let marked = left > 0 && unwanted(&self.entries[*place]);
                left -= usize::from(marked);
                marked
            })
            .collect();
        if left == limit {
            return Vec::new();
        }
        // Sorted entries are a heap: nobody need be asked again.
        let mut all: Vec<Option<E>> = self.entries.drain(..).map(Some).collect();
        let mut removed = Vec::new();
        for (place, marked) in places.into_iter().zip(marks) {
            let Some(entry) = all[place].take() else {
                continue;
            };
            match marked {
                true => removed.push(entry),
                false => self.entries.push(entry),
            }
        }
        removed
    }
}

fn parent(place: usize) -> Option<usize> {
    Some(place.checked_sub(1)? / 2)
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

    /// All orders of `n` numbers.
    fn orders(n: u32) -> Vec<Vec<u32>> {
        if n == 0 {
            return vec![Vec::new()];
        }
        let mut all = Vec::new();
        for order in orders(n - 1) {
            for place in 0..=order.len() {
                let mut longer = order.clone();
                longer.insert(place, n);
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
