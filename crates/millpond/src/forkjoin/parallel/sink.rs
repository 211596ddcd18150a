//! The result of a part of a loop, and how the results of two adjacent parts are merged.

use super::drive::Stop;
use std::cmp::Ordering;
use std::iter::{self, Sum};
use std::marker::PhantomData;

pub(super) trait Sink<T>: Sync {
    /// The result of a part.
    type Part: Send;

    /// The result of no items. At most `len` items follow; exactly `len`, if those of all parts to the right are included.
    fn begin(&self, len: Option<usize>) -> Self::Part;

    /// Adds the next items.
    fn feed(&self, part: Self::Part, items: impl Iterator<Item = T>) -> Self::Part;

    /// Merges the results of two parts.
    fn merge(&self, left: Self::Part, right: Self::Part) -> Self::Part;
}

pub(super) struct ForEach<'a, F>(pub(super) &'a F);

impl<T, F: Fn(T) + Sync> Sink<T> for ForEach<'_, F> {
    type Part = ();

    fn begin(&self, _: Option<usize>) {}

    #[inline]
    fn feed(&self, (): (), items: impl Iterator<Item = T>) {
        items.for_each(self.0);
    }

    fn merge(&self, (): (), (): ()) {}
}

pub(super) struct TryForEach<'a, F> {
    pub(super) f: &'a F,
    pub(super) stop: &'a Stop,
}

impl<T, E: Send, F: Fn(T) -> Result<(), E> + Sync> Sink<T> for TryForEach<'_, F> {
    type Part = Result<(), E>;

    fn begin(&self, _: Option<usize>) -> Self::Part {
        Ok(())
    }

    #[inline]
    fn feed(&self, part: Self::Part, mut items: impl Iterator<Item = T>) -> Self::Part {
        part?;
        let done = items.try_for_each(self.f);
        if done.is_err() {
            self.stop.set();
        }
        done
    }

    fn merge(&self, left: Self::Part, right: Self::Part) -> Self::Part {
        left.and(right)
    }
}

pub(super) struct Fold<'a, G, F, M> {
    pub(super) init: &'a G,
    pub(super) f: &'a F,
    pub(super) merge: &'a M,
}

impl<T, A, G, F, M> Sink<T> for Fold<'_, G, F, M>
where
    A: Send,
    G: Fn() -> A + Sync,
    F: Fn(A, T) -> A + Sync,
    M: Fn(A, A) -> A + Sync,
{
    type Part = A;

    fn begin(&self, _: Option<usize>) -> A {
        (self.init)()
    }

    #[inline]
    fn feed(&self, part: A, items: impl Iterator<Item = T>) -> A {
        items.fold(part, self.f)
    }

    fn merge(&self, left: A, right: A) -> A {
        (self.merge)(left, right)
    }
}

pub(super) struct Summed<S>(PhantomData<fn() -> S>);

impl<S> Summed<S> {
    pub(super) fn new() -> Self {
        Summed(PhantomData)
    }
}

impl<T, S: Send + Sum<T> + Sum<S>> Sink<T> for Summed<S> {
    type Part = S;

    fn begin(&self, _: Option<usize>) -> S {
        iter::empty::<T>().sum()
    }

    #[inline]
    fn feed(&self, part: S, items: impl Iterator<Item = T>) -> S {
        [part, items.sum()].into_iter().sum()
    }

    fn merge(&self, left: S, right: S) -> S {
        [left, right].into_iter().sum()
    }
}

/// The first of the smallest, or the last of the greatest.
pub(super) struct Best<'a, F> {
    pub(super) compare: &'a F,
    /// The order that a later item must have to an earlier one to replace it.
    pub(super) replaces: fn(Ordering) -> bool,
}

impl<F> Best<'_, F> {
    #[inline]
    fn better<T>(&self, earlier: T, later: T) -> T
    where
        F: Fn(&T, &T) -> Ordering,
    {
        if (self.replaces)((self.compare)(&later, &earlier)) {
            later
        } else {
            earlier
        }
    }
}

impl<T: Send, F: Fn(&T, &T) -> Ordering + Sync> Sink<T> for Best<'_, F> {
    type Part = Option<T>;

    fn begin(&self, _: Option<usize>) -> Option<T> {
        None
    }

    #[inline]
    fn feed(&self, part: Option<T>, mut items: impl Iterator<Item = T>) -> Option<T> {
        let first = part.or_else(|| items.next())?;
        Some(items.fold(first, |best, item| self.better(best, item)))
    }

    fn merge(&self, left: Option<T>, right: Option<T>) -> Option<T> {
        match (left, right) {
            (Some(left), Some(right)) => Some(self.better(left, right)),
            (left, right) => left.or(right),
        }
    }
}

pub(super) struct FindAny<'a, F> {
    pub(super) wanted: &'a F,
    pub(super) stop: &'a Stop,
}

impl<T: Send, F: Fn(&T) -> bool + Sync> Sink<T> for FindAny<'_, F> {
    type Part = Option<T>;

    fn begin(&self, _: Option<usize>) -> Option<T> {
        None
    }

    #[inline]
    fn feed(&self, part: Option<T>, mut items: impl Iterator<Item = T>) -> Option<T> {
        let found = part.or_else(|| items.find(self.wanted));
        if found.is_some() {
            self.stop.set();
        }
        found
    }

    fn merge(&self, left: Option<T>, right: Option<T>) -> Option<T> {
        left.or(right)
    }
}

/// All items in order: a first piece, and the pieces to its right. They are merged at the end. So each item is moved at most
/// once, and those of the first piece are not moved at all.
pub(super) struct Pieces<T> {
    first: Vec<T>,
    rest: Vec<Vec<T>>,
}

impl<T> Pieces<T> {
    pub(super) fn into_vec(self) -> Vec<T> {
        let Pieces { mut first, rest } = self;
        first.reserve(rest.iter().map(Vec::len).sum());
        for mut piece in rest {
            first.append(&mut piece);
        }
        first
    }
}

pub(super) struct Collect;

impl<T: Send> Sink<T> for Collect {
    type Part = Pieces<T>;

    fn begin(&self, len: Option<usize>) -> Pieces<T> {
        Pieces {
            first: Vec::with_capacity(len.unwrap_or(0)),
            rest: Vec::new(),
        }
    }

    #[inline]
    fn feed(&self, mut part: Pieces<T>, items: impl Iterator<Item = T>) -> Pieces<T> {
        // A part gets its items before other parts are merged to its right.
        part.first.extend(items);
        part
    }

    fn merge(&self, mut left: Pieces<T>, right: Pieces<T>) -> Pieces<T> {
        if !right.first.is_empty() {
            left.rest.push(right.first);
        }
        left.rest.extend(right.rest);
        left
    }
}
