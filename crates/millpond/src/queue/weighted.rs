//! The queue that is bounded by the weight of its elements.
//!
//! A producer that waits with a heavy element lets lighter ones pass that fit. So a heavy element waits until
//! there is room for it at one moment; under a steady stream of light ones that may take long.

use super::flavor::flavor;
use super::monitor::Monitor;
use super::ring::Ring;
use super::store::{End, Store};
use super::{AsyncQueue, CapacityError};
use crate::time::Clock;
use millpond_raw::user_code::{self, Kind};
use std::ops::ControlFlow;

/// A first-in-first-out queue that is bounded by weight, for example in bytes.
///
/// [`len`](super::BlockingQueue::len) counts elements; [`capacity`](super::BlockingQueue::capacity),
/// [`remaining_capacity`](super::BlockingQueue::remaining_capacity) and
/// [`set_capacity`](super::BlockingQueue::set_capacity) count weight. An element that weighs more than
/// the bound is rejected at once, also by the blocking forms.
///
/// ```
/// use millpond::queue::{BlockingQueue, Reason, WeightedQueue};
///
/// let queue = WeightedQueue::bounded(10, |text: &String| text.len() as u64)?;
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
pub struct WeightedQueue<T: Send> {
    core: Monitor<WeightedRing<T>>,
}

impl<T: Send> WeightedQueue<T> {
    /// A queue whose elements have a total weight of at most `bound`.
    ///
    /// An element is weighed whenever it is offered, and counts with that weight until it is removed. An element
    /// of weight 0 always fits, even if the bound was lowered below the total weight.
    ///
    /// # Errors
    ///
    /// [`CapacityError::Zero`] for 0.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, WeightedQueue};
    ///
    /// let queue = WeightedQueue::bounded(10, |text: &String| text.len() as u64)?;
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
        let store = WeightedRing {
            ring: Ring::growing(),
            used: 0,
        };
        Ok(WeightedQueue {
            core: Monitor::new(store, Some(bound), Box::new(weigh)),
        })
    }

    /// The total weight of the elements.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, WeightedQueue};
    ///
    /// let queue = WeightedQueue::bounded(10, |text: &String| text.len() as u64)?;
    /// queue.put("oats".into())?;
    /// assert_eq!(queue.weight(), 4);
    /// queue.take()?;
    /// assert_eq!(queue.weight(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn weight(&self) -> u64 {
        self.core.used()
    }

    /// The largest total weight.
    ///
    /// ```
    /// use millpond::queue::WeightedQueue;
    ///
    /// let queue = WeightedQueue::bounded(10, |text: &String| text.len() as u64)?;
    /// assert_eq!(queue.bound(), 10);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn bound(&self) -> u64 {
        self.core.bound().unwrap_or(u64::MAX)
    }

    /// Changes the bound. Elements beyond it stay; a producer that waits with an element that is now too heavy gets
    /// it back.
    ///
    /// # Errors
    ///
    /// [`CapacityError::Zero`] for 0; the old bound stays.
    ///
    /// ```
    /// use millpond::queue::{BlockingQueue, WeightedQueue};
    ///
    /// let queue = WeightedQueue::bounded(10, |text: &String| text.len() as u64)?;
    /// queue.set_bound(3)?;
    /// assert!(queue.offer("oats".into()).is_err());
    /// assert!(queue.set_bound(0).is_err());
    /// assert_eq!(queue.bound(), 3, "the old one stays");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_bound(&self, bound: u64) -> Result<(), CapacityError> {
        self.core.set_bound(bound)
    }
}

flavor! { WeightedQueue, with {} }

impl<T: Send> AsyncQueue<T> for WeightedQueue<T> {}

/// A ring with the total weight of its elements.
struct WeightedRing<T> {
    ring: Ring<(u64, T)>,
    used: u64,
}

impl<T: Send> Store for WeightedRing<T> {
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
        // No overflow: the sum is within the bound.
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
    fn an_element_of_weight_zero_fits_whatever_the_bound_is_lowered_to() {
        let queue = WeightedQueue::bounded(10, |text: &&str| text.len() as u64).unwrap();
        queue.offer("buckwheat").unwrap();
        queue.set_bound(2).unwrap();
        queue.offer("").unwrap();
        queue.put("").unwrap();
        queue.offer_timeout("", Duration::ZERO).unwrap();
        assert!(queue.offer("a").is_err(), "a weight of 1 does not fit");
        assert_eq!((queue.len(), queue.weight()), (4, 9));
    }
}
