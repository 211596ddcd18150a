//! The data structure of a flavor, under the lock of the core.
//!
//! A store knows the order of its elements and nothing else. It has no lock, no waiters and no bound; those belong
//! to the core ([`super::monitor`]).
//!
//! - **STORE-1** A store calls user code (a comparator, a predicate, a visitor) *before* it changes anything. A
//!   panic there unwinds through the guard of the core, which unlocks, and the store is as it was.
//! - **STORE-2** A store drops no element: it returns removed elements, to be dropped after unlocking.

use crate::time::{Clock, Deadline};
use std::ops::ControlFlow;

/// An end of a queue. Stores that sort ignore it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    First,
    Last,
}

/// The data structure of a flavor.
pub(super) trait Store: Send {
    /// The elements.
    type Element: Send;
    /// What is computed of an element before locking: its weight, its due time.
    type Stamp: Copy;
    /// The function that computes stamps.
    type Stamper: Send + Sync;
    /// The position of a new element.
    type Spot;

    /// Whether elements become available by time, so that consumers wait for a time, too.
    const TIMED: bool = false;
    /// Whether every element weighs 1.
    const UNIT: bool = true;

    /// The stamp of an element. User code, hence called before locking.
    fn stamp(stamper: &Self::Stamper, clock: &Clock, element: &Self::Element) -> Self::Stamp;

    /// The part of the bound that an element uses.
    fn weight(_stamp: Self::Stamp) -> u64 {
        1
    }

    /// The part of the bound that is in use.
    fn used(&self) -> u64 {
        self.len() as u64
    }

    /// The number of elements.
    fn len(&self) -> usize;

    /// Finds the position of a new element, and changes nothing.
    fn spot(&self, element: &Self::Element, stamp: Self::Stamp, end: End) -> Self::Spot;

    /// Adds an element at its spot. Returns whether a consumer must be notified.
    fn push(&mut self, element: Self::Element, stamp: Self::Stamp, spot: Self::Spot) -> bool;

    /// Removes the next element.
    fn pop(&mut self, clock: &Clock, end: End) -> Option<Self::Element>;

    /// The time at which an element is available if none is pushed.
    fn ready_at(&self) -> Deadline {
        Deadline::NEVER
    }

    /// Shows the elements in the order in which they come out at `end`.
    fn visit(&self, end: End, see: &mut dyn FnMut(&Self::Element) -> ControlFlow<()>);

    /// Removes the elements for which `unwanted` returns true, at most `limit`, in the order in which they come
    /// out at `end`.
    fn remove_where(
        &mut self,
        end: End,
        limit: usize,
        unwanted: &mut dyn FnMut(&Self::Element) -> bool,
    ) -> Vec<Self::Element>;
}
