//! How a flavor becomes a queue: the engine's methods under the names of the trait, once for all.

/// Implements [`BlockingQueue`](super::BlockingQueue) and what goes with it for a type whose field
/// `engine` is a [`Guarded`](super::guarded::Guarded) or a [`Twin`](super::twin::Twin), and adds the inherent methods that every
/// flavor has.
///
/// `first` and `last` are the ends at which it takes out and puts in. What stands in `with` replaces
/// methods of the trait.
macro_rules! flavor {
    ($queue:ident, with { $($own:tt)* }) => {
        impl<T: Send> $queue<T> {
            /// The same queue with time-outs by another clock, for tests and simulations.
            ///
            /// Builder-style: call it before anybody waits.
            #[must_use]
            pub fn with_clock(self, clock: $crate::time::Clock) -> Self {
                $queue {
                    engine: self.engine.with_clock(clock),
                }
            }

            /// How many wait for an element now.
            #[doc(alias = "getWaitingConsumerCount")]
            pub fn waiting_takers(&self) -> usize {
                self.engine.waiting().0
            }

            /// How many wait for room now.
            pub fn waiting_putters(&self) -> usize {
                self.engine.waiting().1
            }
        }

        $crate::queue::flavor::flavor! { @queue [T] $queue<T>, First, Last, with { $($own)* } }
    };
    (@queue [$($life:lifetime,)? T] $queue:ty, $first:ident, $last:ident, with { $($own:tt)* }) => {
        impl<$($life,)? T: Send> $crate::queue::BlockingQueue<T> for $queue {
            #[inline]
            fn offer(&self, element: T) -> Result<(), $crate::queue::Refused<T>> {
                self.engine.offer(element, $crate::queue::store::End::$last)
            }

            #[inline]
            fn poll(&self) -> Option<T> {
                self.engine.poll($crate::queue::store::End::$first)
            }

            fn poll_offer(
                &self,
                element: &mut Option<T>,
                place: &mut $crate::queue::Place,
                waker: &std::task::Waker,
            ) -> $crate::queue::Offered {
                let end = $crate::queue::store::End::$last;
                self.engine.poll_offer(element, end, place, waker)
            }

            fn poll_take(
                &self,
                place: &mut $crate::queue::Place,
                waker: &std::task::Waker,
            ) -> $crate::queue::Taken<T> {
                let end = $crate::queue::store::End::$first;
                self.engine.poll_take(end, place, waker)
            }

            fn leave_offer(&self, _: &mut Option<T>, place: &mut $crate::queue::Place) {
                self.engine.leave_offer(place);
            }

            fn leave_take(&self, place: &mut $crate::queue::Place) -> Option<T> {
                self.engine.leave_take(place);
                None
            }

            fn len(&self) -> usize {
                self.engine.len()
            }

            fn capacity(&self) -> Option<usize> {
                self.engine.bound().map($crate::queue::guarded::counted)
            }

            fn set_capacity(
                &self,
                capacity: usize,
            ) -> Result<(), $crate::queue::CapacityError> {
                self.engine.set_bound(capacity as u64)
            }

            fn remaining_capacity(&self) -> usize {
                self.engine.left().map_or(usize::MAX, $crate::queue::guarded::counted)
            }

            fn visit(&self, see: &mut dyn FnMut(&T) -> std::ops::ControlFlow<()>) {
                self.engine.visit($crate::queue::store::End::$first, see);
            }

            fn remove_where(
                &self,
                limit: usize,
                unwanted: &mut dyn FnMut(&T) -> bool,
            ) -> Vec<T> {
                let end = $crate::queue::store::End::$first;
                self.engine.remove_where(end, limit, unwanted)
            }

            fn clock(&self) -> &$crate::time::Clock {
                self.engine.clock()
            }

            fn glance(&self) -> Option<$crate::queue::Glance> {
                self.engine.glance()
            }

            $($own)*
        }

        impl<$($life,)? T: Send> std::fmt::Debug for $queue {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.engine.describe(stringify!($queue), f)
            }
        }
    };
}

pub(super) use flavor;
