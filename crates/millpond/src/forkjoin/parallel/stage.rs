//! The transformation of each item, before the sink combines them.

use std::fmt;

/// A transformation of each item. The methods of [`Parallel`](super::Parallel) chain them.
///
/// It is not for users to implement or call.
pub trait Stage<In>: Sync {
    /// The type of items after it.
    type Out;
    /// The state of one part of the loop.
    type State;
    /// Whether it keeps the number of items.
    const IS_EXACT: bool;

    /// Begins a part of the loop.
    fn begin(&self) -> Self::State;

    /// Transforms the items.
    fn run<I: Iterator<Item = In>>(
        &self,
        state: &mut Self::State,
        items: I,
    ) -> impl Iterator<Item = Self::Out>;
}

/// Leaves items as they are.
#[derive(Clone, Copy, Debug)]
pub struct AsIs;

impl<In> Stage<In> for AsIs {
    type Out = In;
    type State = ();
    const IS_EXACT: bool = true;

    fn begin(&self) {}

    #[inline]
    fn run<I: Iterator<Item = In>>(&self, (): &mut (), items: I) -> impl Iterator<Item = In> {
        items
    }
}

/// See [`Parallel::map`](super::Parallel::map).
pub struct Map<P, F> {
    pub(super) previous: P,
    pub(super) f: F,
}

impl<In, Out, P: Stage<In>, F: Fn(P::Out) -> Out + Sync> Stage<In> for Map<P, F> {
    type Out = Out;
    type State = P::State;
    const IS_EXACT: bool = P::IS_EXACT;

    fn begin(&self) -> P::State {
        self.previous.begin()
    }

    #[inline]
    fn run<I: Iterator<Item = In>>(
        &self,
        state: &mut P::State,
        items: I,
    ) -> impl Iterator<Item = Out> {
        self.previous.run(state, items).map(&self.f)
    }
}

/// See [`Parallel::filter`](super::Parallel::filter).
pub struct Filter<P, F> {
    pub(super) previous: P,
    pub(super) f: F,
}

impl<In, P: Stage<In>, F: Fn(&P::Out) -> bool + Sync> Stage<In> for Filter<P, F> {
    type Out = P::Out;
    type State = P::State;
    const IS_EXACT: bool = false;

    fn begin(&self) -> P::State {
        self.previous.begin()
    }

    #[inline]
    fn run<I: Iterator<Item = In>>(
        &self,
        state: &mut P::State,
        items: I,
    ) -> impl Iterator<Item = P::Out> {
        self.previous.run(state, items).filter(&self.f)
    }
}

/// See [`Parallel::map_init`](super::Parallel::map_init).
pub struct MapInit<P, G, F> {
    pub(super) previous: P,
    pub(super) init: G,
    pub(super) f: F,
}

impl<In, Own, Out, P, G, F> Stage<In> for MapInit<P, G, F>
where
    P: Stage<In>,
    G: Fn() -> Own + Sync,
    F: Fn(&mut Own, P::Out) -> Out + Sync,
{
    type Out = Out;
    type State = (P::State, Own);
    const IS_EXACT: bool = P::IS_EXACT;

    fn begin(&self) -> Self::State {
        (self.previous.begin(), (self.init)())
    }

    #[inline]
    fn run<I: Iterator<Item = In>>(
        &self,
        (state, own): &mut Self::State,
        items: I,
    ) -> impl Iterator<Item = Out> {
        let items = self.previous.run(state, items);
        items.map(move |item| (self.f)(own, item))
    }
}

impl<P: fmt::Debug, F> fmt::Debug for Map<P, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, Map", self.previous)
    }
}

impl<P: fmt::Debug, F> fmt::Debug for Filter<P, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, Filter", self.previous)
    }
}

impl<P: fmt::Debug, G, F> fmt::Debug for MapInit<P, G, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, MapInit", self.previous)
    }
}
