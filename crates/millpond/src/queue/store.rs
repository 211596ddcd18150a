//! What a flavor is made of: a plain data structure behind the engine's lock.
//!
//! A store knows order and nothing else. It has no lock, no waiters and no bound; those are the
//! engine's ([`super::guarded`]).
//!
//! # What a store promises
//!
//! - **S1** It runs users' code (a comparator, a predicate, a visitor) *before* it changes anything.
//!   A panic in there unwinds through the engine's guard, which unlocks, and finds the store as it
//!   was.
//! - **S2** It drops no element: what comes out is handed out, and dropped outside the lock.

use crate::time::{Clock, Deadline};
use std::ops::ControlFlow;

/// An end of a queue. Stores whose order does not depend on it ignore it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    First,
    Last,
}

/// The data structure of a flavor.
pub(super) trait Store: Send {
    /// What is kept.
    type Element: Send;
    /// What is noted about an element at the door, outside the lock: its weight, its due time.
    type Stamp: Copy;
    /// What makes the stamps.
    type Stamper: Send + Sync;
    /// Where an element will stand.
    type Spot;

    /// Whether elements become ready as time goes by, so that takers wait for a time too.
    const TIMED: bool = false;
    /// Whether every element weighs 1.
    const UNIT: bool = true;

    /// Looks at an element at the door. Users' code, hence outside the lock.
    fn stamp(stamper: &Self::Stamper, clock: &Clock, element: &Self::Element) -> Self::Stamp;

    /// What an element takes of the bound.
    fn weight(_stamp: Self::Stamp) -> u64 {
        1
    }

    /// What all elements take of the bound.
    fn used(&self) -> u64 {
        self.len() as u64
    }

    /// How many elements there are.
    fn len(&self) -> usize;

    /// Finds where an element will stand, and changes nothing.
    fn spot(&self, element: &Self::Element, stamp: Self::Stamp, end: End) -> Self::Spot;

    /// Takes an element in, at its spot. Returns whether a taker has reason to look.
    fn push(&mut self, element: Self::Element, stamp: Self::Stamp, spot: Self::Spot) -> bool;

    /// Takes the next element out.
    fn pop(&mut self, clock: &Clock, end: End) -> Option<Self::Element>;

    /// When there will be an element to take, if none comes in.
    fn ready_at(&self) -> Deadline {
        Deadline::NEVER
    }

    /// Shows the elements in the order in which they come out at `end`.
    fn visit(&self, end: End, see: &mut dyn FnMut(&Self::Element) -> ControlFlow<()>);

    /// Takes out what `unwanted` chooses, at most `limit`, asking in the order in which they come
    /// out at `end`.
    fn remove_where(
        &mut self,
        end: End,
        limit: usize,
        unwanted: &mut dyn FnMut(&Self::Element) -> bool,
    ) -> Vec<Self::Element>;
}
