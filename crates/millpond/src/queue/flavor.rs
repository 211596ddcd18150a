//! Implements the trait for the flavors, once for both cores.

/// Implements [`BlockingQueue`](super::BlockingQueue) and `Debug` for a type whose field `core` is a
/// [`Monitor`](super::monitor::Monitor) or a [`TwoLock`](super::two_lock::TwoLock), and adds the inherent methods
/// that every flavor has.
///
/// `first` and `last` are the ends at which it removes and adds. Methods in `with` are added to the trait's
/// implementation.
macro_rules! flavor {
    ($queue:ident, with { $($own:tt)* }) => {
        impl<T: Send> $queue<T> {
            /// The same queue with timeouts by another clock, for tests and simulations.
            ///
            /// Builder-style: call it before the queue is shared.
            #[must_use]
            pub fn with_clock(self, clock: $crate::time::Clock) -> Self {
                $queue {
                    core: self.core.with_clock(clock),
                }
            }

            /// The number of consumers that wait for an element.
            #[doc(alias = "getWaitingConsumerCount")]
            pub fn waiting_consumers(&self) -> usize {
                self.core.waiting().0
            }

            /// The number of producers that wait for room.
            pub fn waiting_producers(&self) -> usize {
                self.core.waiting().1
            }
        }

        $crate::queue::flavor::flavor! { @queue [T] $queue<T>, First, Last, with { $($own)* } }
    };
    (@queue [$($life:lifetime,)? T] $queue:ty, $first:ident, $last:ident, with { $($own:tt)* }) => {
        impl<$($life,)? T: Send> $crate::queue::BlockingQueue<T> for $queue {
            #[inline]
            fn offer(&self, element: T) -> Result<(), $crate::queue::OfferError<T>> {
                self.core.offer(element, $crate::queue::store::End::$last)
            }

            #[inline]
            fn poll(&self) -> Option<T> {
                self.core.poll($crate::queue::store::End::$first)
            }

            fn poll_offer(
                &self,
                element: &mut Option<T>,
                slot: &mut $crate::queue::WaitSlot,
                waker: &std::task::Waker,
            ) -> $crate::queue::Offered {
                let end = $crate::queue::store::End::$last;
                self.core.poll_offer(element, end, slot, waker)
            }

            fn poll_take(
                &self,
                slot: &mut $crate::queue::WaitSlot,
                waker: &std::task::Waker,
            ) -> $crate::queue::Taken<T> {
                let end = $crate::queue::store::End::$first;
                self.core.poll_take(end, slot, waker)
            }

            fn leave_offer(&self, _: &mut Option<T>, slot: &mut $crate::queue::WaitSlot) {
                self.core.leave_offer(slot);
            }

            fn leave_take(&self, slot: &mut $crate::queue::WaitSlot) -> Option<T> {
                self.core.leave_take(slot);
                None
            }

            fn len(&self) -> usize {
                self.core.len()
            }

            fn capacity(&self) -> Option<usize> {
                self.core.bound().map($crate::queue::monitor::counted)
            }

            fn set_capacity(
                &self,
                capacity: usize,
            ) -> Result<(), $crate::queue::CapacityError> {
                self.core.set_bound(capacity as u64)
            }

            fn remaining_capacity(&self) -> usize {
                self.core.left().map_or(usize::MAX, $crate::queue::monitor::counted)
            }

            fn visit(&self, see: &mut dyn FnMut(&T) -> std::ops::ControlFlow<()>) {
                self.core.visit($crate::queue::store::End::$first, see);
            }

            fn remove_where(
                &self,
                limit: usize,
                unwanted: &mut dyn FnMut(&T) -> bool,
            ) -> Vec<T> {
                let end = $crate::queue::store::End::$first;
                self.core.remove_where(end, limit, unwanted)
            }

            fn clock(&self) -> &$crate::time::Clock {
                self.core.clock()
            }

            fn hint(&self) -> Option<$crate::queue::QueueHint> {
                self.core.hint()
            }

            $($own)*
        }

        impl<$($life,)? T: Send> std::fmt::Debug for $queue {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.core.describe(stringify!($queue), f)
            }
        }
    };
}

pub(super) use flavor;
