//! The queue that is bounded by what its elements weigh.
//!
//! Whoever waits with an element that does not fit yet lets those pass whose lighter ones do. A heavy
//! element therefore waits until there is room for it at one moment, and under a steady stream of
//! light ones that may take long.

use super::flavor::flavor;
use super::guarded::Guarded;
use super::ring::Ring;
use super::store::{End, Store};
use super::{AsyncQueue, CapacityError};
use crate::time::Clock;
use millpond_raw::user_code::{self, Kind};
use std::ops::ControlFlow;

/// A queue bounded by weight, bytes for example: first in, first out.
///
/// [`len`](super::BlockingQueue::len) counts elements; [`capacity`](super::BlockingQueue::capacity),
/// [`remaining_capacity`](super::BlockingQueue::remaining_capacity) and
/// [`set_capacity`](super::BlockingQueue::set_capacity) count weight. An element that weighs more than
/// the bound comes back at once, from the waiting forms too.
///
/// ```
/// use millpond::queue::{BlockingQueue, Reason, WeighedQueue};
///
/// let queue = WeighedQueue::bounded(10, |text: &String| text.len() as u64)?;
/// queue.offer("barley".to_owned()).unwrap();
/// let refused = queue.offer("millet".to_owned()).unwrap_err();
/// assert_eq!(refused.reason, Reason::Full);
/// queue.offer("oats".to_owned()).unwrap();
/// assert_eq!((queue.len(), queue.weight()), (2, 10));
///
/// let refused = queue.put("pumpernickel".to_owned()).unwrap_err();
/// assert_eq!(refused.reason, Reason::TooHeavy { weight: 12, bound: 10 });
/// # Ok::<(), millpond::queue::CapacityError>(())
/// ```
pub struct WeighedQueue<T: Send> {
    engine: Guarded<Scales<T>>,
}

impl<T: Send> WeighedQueue<T> {
    /// A queue whose elements weigh at most `bound` together.
    ///
    /// An element is weighed whenever it is offered, and counts with that weight until it is out. What
    /// weighs nothing always fits, also while the elements weigh more than a bound that was lowered.
    ///
    /// # Errors
    ///
    /// [`CapacityError::Zero`] for 0.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, WeighedQueue};
    ///
    /// let queue = WeighedQueue::bounded(10, |text: &String| text.len() as u64)?;
    /// assert!(queue.offer("oats".into()).is_ok());
    /// assert!(queue.offer("buckwheat".into()).is_err(), "4 and 9 are more than 10");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn bounded(
        bound: u64,
        weigh: impl Fn(&T) -> u64 + Send + Sync + 'static,
    ) -> Result<Self, CapacityError> {
        if bound == 0 {
            return Err(CapacityError::Zero);
        }
        let store = Scales {
            ring: Ring::growing(),
            used: 0,
        };
        Ok(WeighedQueue {
            engine: Guarded::new(store, Some(bound), Box::new(weigh)),
        })
    }

    /// What all elements weigh together.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, WeighedQueue};
    ///
    /// let queue = WeighedQueue::bounded(10, |text: &String| text.len() as u64)?;
    /// queue.put("oats".into())?;
    /// assert_eq!(queue.weight(), 4);
    /// queue.take()?;
    /// assert_eq!(queue.weight(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn weight(&self) -> u64 {
        self.engine.used()
    }

    /// What all elements may weigh together.
    ///
    /// ```
    /// use millpond::queue::WeighedQueue;
    ///
    /// let queue = WeighedQueue::bounded(10, |text: &String| text.len() as u64)?;
    /// assert_eq!(queue.bound(), 10);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn bound(&self) -> u64 {
        self.engine.bound().unwrap_or(u64::MAX)
    }

    /// Changes the bound. Elements beyond it stay; whoever waits with an element that is now too
    /// heavy gets it back.
    ///
    /// # Errors
    ///
    /// [`CapacityError::Zero`] for 0; the old bound stays.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, WeighedQueue};
    ///
    /// let queue = WeighedQueue::bounded(10, |text: &String| text.len() as u64)?;
    /// queue.set_bound(3)?;
    /// assert!(queue.offer("oats".into()).is_err());
    /// assert!(queue.set_bound(0).is_err());
    /// assert_eq!(queue.bound(), 3, "the old one stays");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_bound(&self, bound: u64) -> Result<(), CapacityError> {
        self.engine.set_bound(bound)
    }
}

flavor! { WeighedQueue, with {} }

impl<T: Send> AsyncQueue<T> for WeighedQueue<T> {}

/// A ring that knows what it holds.
struct Scales<T> {
    ring: Ring<(u64, T)>,
    used: u64,
}

impl<T: Send> Store for Scales<T> {
    type Element = T;
    type Stamp = u64;
    type Stamper = Box<dyn Fn(&T) -> u64 + Send + Sync>;
    type Spot = End;

    const UNIT: bool = false;

    fn stamp(weigh: &Self::Stamper, _: &Clock, element: &T) -> u64 {
        user_code::check(Kind::Closure);
        weigh(element)
    }

    fn weight(weight: u64) -> u64 {
        weight
    }

    fn used(&self) -> u64 {
        self.used
    }

    fn len(&self) -> usize {
        self.ring.len()
    }

    fn spot(&self, _: &T, _: u64, end: End) -> End {
        end
    }

    fn push(&mut self, element: T, weight: u64, end: End) -> bool {
        // It does not overflow: the sum is within the bound.
        self.used += weight;
        self.ring.push((weight, element), (), end)
    }

    fn pop(&mut self, clock: &Clock, end: End) -> Option<T> {
        let (weight, element) = self.ring.pop(clock, end)?;
        self.used -= weight;
        Some(element)
    }

    fn visit(&self, end: End, see: &mut dyn FnMut(&T) -> ControlFlow<()>) {
        self.ring.visit(end, &mut |(_, element)| see(element));
    }

    fn remove_where(
        &mut self,
        end: End,
        limit: usize,
        unwanted: &mut dyn FnMut(&T) -> bool,
    ) -> Vec<T> {
        let removed = self
            .ring
            .remove_where(end, limit, &mut |(_, element)| unwanted(element));
        self.used -= removed.iter().map(|(weight, _)| weight).sum::<u64>();
        removed.into_iter().map(|(_, element)| element).collect()
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;
    use crate::queue::BlockingQueue;
    use std::time::Duration;

    #[test]
    fn what_weighs_nothing_fits_whatever_the_bound_is_lowered_to() {
        let queue = WeighedQueue::bounded(10, |text: &&str| text.len() as u64).unwrap();
        queue.offer("buckwheat").unwrap();
        queue.set_bound(2).unwrap();
        queue.offer("").unwrap();
        queue.put("").unwrap();
        queue.offer_timeout("", Duration::ZERO).unwrap();
        assert!(queue.offer("a").is_err(), "that is more than nothing");
        assert_eq!((queue.len(), queue.weight()), (4, 9));
    }
}
