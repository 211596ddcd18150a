//! Items with their numbers, and items of two sources side by side.

use super::source::{Source, sealed};
use std::iter;
use std::ops::Range;

/// Items with their numbers: see [`Parallel::enumerate`](super::Parallel::enumerate).
#[derive(Debug)]
pub struct Enumerated<S> {
    source: S,
    /// The number of the first item.
    first: usize,
}

impl<S> Enumerated<S> {
    pub(super) fn new(source: S) -> Self {
        Enumerated { source, first: 0 }
    }
}

impl<S> sealed::Sealed for Enumerated<S> {}

impl<S: Source> Source for Enumerated<S> {
    type Item = (usize, S::Item);
    type Block<'a>
        = iter::Zip<Range<usize>, S::Block<'a>>
    where
        Self: 'a;

    #[inline]
    fn len(&self) -> usize {
        self.source.len()
    }

    fn split(self) -> (Self, Self) {
        let (left, right) = self.source.split();
        let (first, middle) = (self.first, self.first + left.len());
        let half = |source, first| Enumerated { source, first };
        (half(left, first), half(right, middle))
    }

    #[inline]
    fn take(&mut self, count: usize) -> Self::Block<'_> {
        let first = self.first;
        self.first += count;
        (first..self.first).zip(self.source.take(count))
    }

    fn truncate(&mut self, len: usize) {
        self.source.truncate(len);
    }
}

/// Items of two sources side by side: see [`Parallel::zip`](super::Parallel::zip). Both have as many, and every source splits
/// in the middle, so halves have as many, too.
#[derive(Debug)]
pub struct Zipped<A, B> {
    left: A,
    right: B,
}

impl<A: Source, B: Source> Zipped<A, B> {
    pub(super) fn new(mut left: A, mut right: B) -> Self {
        let len = left.len().min(right.len());
        left.truncate(len);
        right.truncate(len);
        Zipped { left, right }
    }
}

impl<A, B> sealed::Sealed for Zipped<A, B> {}

impl<A: Source, B: Source> Source for Zipped<A, B> {
    type Item = (A::Item, B::Item);
    type Block<'a>
        = iter::Zip<A::Block<'a>, B::Block<'a>>
    where
        Self: 'a;

    #[inline]
    fn len(&self) -> usize {
        self.left.len()
    }

    fn split(self) -> (Self, Self) {
        let ((a, c), (b, d)) = (self.left.split(), self.right.split());
        debug_assert_eq!(a.len(), b.len(), "every source splits in the middle");
        (Zipped { left: a, right: b }, Zipped { left: c, right: d })
    }

    #[inline]
    fn take(&mut self, count: usize) -> Self::Block<'_> {
        self.left.take(count).zip(self.right.take(count))
    }

    fn truncate(&mut self, len: usize) {
        self.left.truncate(len);
        self.right.truncate(len);
    }
}
