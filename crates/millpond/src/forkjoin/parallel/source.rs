//! What can be split and iterated over.

use std::fmt;
use std::mem;
use std::ops::{Range, RangeInclusive};
use std::slice;
use std::vec;

/// Items in order, which can be split in two halves. [`over`](super::over) turns its argument into one.
///
/// It is not for users to implement or call.
pub trait Source: Sized + Send + sealed::Sealed {
    /// The type of its items.
    type Item;
    /// Some items at its front.
    type Block<'a>: Iterator<Item = Self::Item>
    where
        Self: 'a;

    /// How many there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first half, and the rest.
    fn split(self) -> (Self, Self);

    /// Takes the first `count` items. There are at least that many.
    fn take(&mut self, count: usize) -> Self::Block<'_>;

    /// Drops all but the first `len` items.
    fn truncate(&mut self, len: usize);
}

pub(super) mod sealed {
    pub trait Sealed {}
}

/// What [`over`](super::over) takes: `&[T]`, `&mut [T]`, `&Vec<T>`, `&mut Vec<T>`, `&[T; N]`, `Vec<T>`, and ranges of
/// integers.
pub trait IntoSource {
    /// The source that it becomes.
    type Source: Source;

    /// Turns it into a source.
    fn into_source(self) -> Self::Source;
}

/// The items of a slice.
pub struct Items<'s, T>(&'s [T]);

impl<T> sealed::Sealed for Items<'_, T> {}

impl<'s, T: Sync> Source for Items<'s, T> {
    type Item = &'s T;
    type Block<'a>
        = slice::Iter<'s, T>
    where
        Self: 'a;

    #[inline]
    fn len(&self) -> usize {
        self.0.len()
    }

    fn split(self) -> (Self, Self) {
        let (left, right) = self.0.split_at(self.0.len() / 2);
        (Items(left), Items(right))
    }

    #[inline]
    fn take(&mut self, count: usize) -> Self::Block<'_> {
        let (block, rest) = self.0.split_at(count);
        self.0 = rest;
        block.iter()
    }

    fn truncate(&mut self, len: usize) {
        self.0 = &self.0[..len.min(self.0.len())];
    }
}

/// The items of a slice, to be changed.
pub struct ItemsMut<'s, T>(&'s mut [T]);

impl<T> sealed::Sealed for ItemsMut<'_, T> {}

impl<'s, T: Send> Source for ItemsMut<'s, T> {
    type Item = &'s mut T;
    type Block<'a>
        = slice::IterMut<'s, T>
    where
        Self: 'a;

    #[inline]
    fn len(&self) -> usize {
        self.0.len()
    }

    fn split(self) -> (Self, Self) {
        let (left, right) = self.0.split_at_mut(self.0.len() / 2);
        (ItemsMut(left), ItemsMut(right))
    }

    #[inline]
    fn take(&mut self, count: usize) -> Self::Block<'_> {
        let (block, rest) = mem::take(&mut self.0).split_at_mut(count);
        self.0 = rest;
        block.iter_mut()
    }

    fn truncate(&mut self, len: usize) {
        let len = len.min(self.0.len());
        self.0 = mem::take(&mut self.0).split_at_mut(len).0;
    }
}

/// Slices of equal length; the last one may be shorter.
pub struct Chunks<'s, T> {
    slice: &'s [T],
    size: usize,
}

impl<'s, T> Chunks<'s, T> {
    pub(super) fn new(slice: &'s [T], size: usize) -> Self {
        assert!(size > 0, "{EMPTY_CHUNKS}");
        Chunks { slice, size }
    }
}

impl<T> sealed::Sealed for Chunks<'_, T> {}

impl<'s, T: Sync> Source for Chunks<'s, T> {
    type Item = &'s [T];
    type Block<'a>
        = slice::Chunks<'s, T>
    where
        Self: 'a;

    #[inline]
    fn len(&self) -> usize {
        self.slice.len().div_ceil(self.size)
    }

    fn split(self) -> (Self, Self) {
        let (slice, size) = (self.slice, self.size);
        let (left, right) = slice.split_at(items_in(self.len() / 2, size, slice.len()));
        (Chunks { slice: left, size }, Chunks { slice: right, size })
    }

    #[inline]
    fn take(&mut self, count: usize) -> Self::Block<'_> {
        let items = items_in(count, self.size, self.slice.len());
        let (block, rest) = self.slice.split_at(items);
        self.slice = rest;
        block.chunks(self.size)
    }

    fn truncate(&mut self, len: usize) {
        self.slice = &self.slice[..items_in(len, self.size, self.slice.len())];
    }
}

/// Slices of equal length, to be changed; the last one may be shorter.
pub struct ChunksMut<'s, T> {
    slice: &'s mut [T],
    size: usize,
}

impl<'s, T> ChunksMut<'s, T> {
    pub(super) fn new(slice: &'s mut [T], size: usize) -> Self {
        assert!(size > 0, "{EMPTY_CHUNKS}");
        ChunksMut { slice, size }
    }
}

impl<T> sealed::Sealed for ChunksMut<'_, T> {}

impl<'s, T: Send> Source for ChunksMut<'s, T> {
    type Item = &'s mut [T];
    type Block<'a>
        = slice::ChunksMut<'s, T>
    where
        Self: 'a;

    #[inline]
    fn len(&self) -> usize {
        self.slice.len().div_ceil(self.size)
    }

    fn split(self) -> (Self, Self) {
        let items = items_in(self.len() / 2, self.size, self.slice.len());
        let (left, right) = self.slice.split_at_mut(items);
        let size = self.size;
        (
            ChunksMut { slice: left, size },
            ChunksMut { slice: right, size },
        )
    }

    #[inline]
    fn take(&mut self, count: usize) -> Self::Block<'_> {
        let items = items_in(count, self.size, self.slice.len());
        let (block, rest) = mem::take(&mut self.slice).split_at_mut(items);
        self.slice = rest;
        block.chunks_mut(self.size)
    }

    fn truncate(&mut self, len: usize) {
        let items = items_in(len, self.size, self.slice.len());
        self.slice = mem::take(&mut self.slice).split_at_mut(items).0;
    }
}

const EMPTY_CHUNKS: &str = "chunks need at least one item each: the size must not be 0";

fn items_in(chunks: usize, size: usize, len: usize) -> usize {
    chunks.saturating_mul(size).min(len)
}

/// The items of a vector, by value. Splitting moves half of the rest.
pub struct Owned<T>(vec::IntoIter<T>);

impl<T> sealed::Sealed for Owned<T> {}

impl<T: Send> Source for Owned<T> {
    type Item = T;
    type Block<'a>
        = std::iter::Take<&'a mut vec::IntoIter<T>>
    where
        Self: 'a;

    #[inline]
    fn len(&self) -> usize {
        self.0.len()
    }

    fn split(self) -> (Self, Self) {
        let mut left: Vec<T> = self.0.collect();
        let right = left.split_off(left.len() / 2);
        (Owned(left.into_iter()), Owned(right.into_iter()))
    }

    #[inline]
    fn take(&mut self, count: usize) -> Self::Block<'_> {
        self.0.by_ref().take(count)
    }

    fn truncate(&mut self, len: usize) {
        if len < self.0.len() {
            let mut items: Vec<T> = mem::take(&mut self.0).collect();
            items.truncate(len);
            self.0 = items.into_iter();
        }
    }
}

/// Integers in order.
pub struct Span<N> {
    start: N,
    len: usize,
}

macro_rules! integers {
    ($($integer:ty),+) => {$(
        impl sealed::Sealed for Span<$integer> {}

        impl Source for Span<$integer> {
            type Item = $integer;
            type Block<'a> = SpanIter<$integer>;

            #[inline]
            fn len(&self) -> usize {
                self.len
            }

            fn split(mut self) -> (Self, Self) {
                let len = self.len / 2;
                let left = Span { start: self.start, len };
                self.skip(len);
                (left, self)
            }

            #[inline]
            fn take(&mut self, count: usize) -> SpanIter<$integer> {
                let block = SpanIter { start: self.start, steps: 0..count };
                self.skip(count);
                block
            }

            fn truncate(&mut self, len: usize) {
                self.len = self.len.min(len);
            }
        }

        impl Span<$integer> {
            #[inline]
            fn skip(&mut self, count: usize) {
                // It wraps only when nothing is left.
                self.start = self.start.wrapping_add(count as $integer);
                self.len -= count;
            }
        }

        impl Iterator for SpanIter<$integer> {
            type Item = $integer;

            #[inline]
            fn next(&mut self) -> Option<$integer> {
                let start = self.start;
                self.steps.next().map(|step| start.wrapping_add(step as $integer))
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                self.steps.size_hint()
            }

            #[inline]
            fn fold<A, F: FnMut(A, $integer) -> A>(self, first: A, mut f: F) -> A {
                let start = self.start;
                self.steps.fold(first, |all, step| f(all, start.wrapping_add(step as $integer)))
            }
        }

        impl IntoSource for Range<$integer> {
            type Source = Span<$integer>;

            fn into_source(self) -> Span<$integer> {
                let len = (self.end as i128 - self.start as i128).max(0);
                Span { start: self.start, len: len_of(len) }
            }
        }

        impl IntoSource for RangeInclusive<$integer> {
            type Source = Span<$integer>;

            fn into_source(self) -> Span<$integer> {
                let len = (*self.end() as i128 - *self.start() as i128 + 1).max(0);
                let len = if self.is_empty() { 0 } else { len };
                Span { start: *self.start(), len: len_of(len) }
            }
        }
    )+};
}

integers!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize);

fn len_of(len: i128) -> usize {
    match usize::try_from(len) {
        Ok(len) => len,
        Err(_) => panic!("a range of {len} items is longer than a loop can be: divide it"),
    }
}

/// Some integers of a [`Span`].
#[derive(Debug)]
pub struct SpanIter<N> {
    start: N,
    steps: Range<usize>,
}

impl<'s, T: Sync> IntoSource for &'s [T] {
    type Source = Items<'s, T>;

    fn into_source(self) -> Items<'s, T> {
        Items(self)
    }
}

impl<'s, T: Sync> IntoSource for &'s Vec<T> {
    type Source = Items<'s, T>;

    fn into_source(self) -> Items<'s, T> {
        Items(self)
    }
}

impl<'s, T: Sync, const N: usize> IntoSource for &'s [T; N] {
    type Source = Items<'s, T>;

    fn into_source(self) -> Items<'s, T> {
        Items(self)
    }
}

impl<'s, T: Send> IntoSource for &'s mut [T] {
    type Source = ItemsMut<'s, T>;

    fn into_source(self) -> ItemsMut<'s, T> {
        ItemsMut(self)
    }
}

impl<'s, T: Send> IntoSource for &'s mut Vec<T> {
    type Source = ItemsMut<'s, T>;

    fn into_source(self) -> ItemsMut<'s, T> {
        ItemsMut(self)
    }
}

impl<T: Send> IntoSource for Vec<T> {
    type Source = Owned<T>;

    fn into_source(self) -> Owned<T> {
        Owned(self.into_iter())
    }
}

macro_rules! shown_by_len {
    ($($name:ident<$($lifetime:lifetime,)? T>: $bound:ident),+) => {$(
        impl<$($lifetime,)? T: $bound> fmt::Debug for $name<$($lifetime,)? T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).field("len", &Source::len(self)).finish()
            }
        }
    )+};
}

shown_by_len!(Items<'s, T>: Sync, ItemsMut<'s, T>: Send, Chunks<'s, T>: Sync, ChunksMut<'s, T>: Send, Owned<T>: Send);

impl<N: fmt::Debug> fmt::Debug for Span<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Span")
            .field("start", &self.start)
            .field("len", &self.len)
            .finish()
    }
}
