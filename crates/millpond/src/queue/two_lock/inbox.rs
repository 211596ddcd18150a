//! The state under the producers' lock: the inbox, the waiters and the bound.
//!
//! A push is on the fast path of every task, so it checks two things only: whether the inbox is at its ceiling,
//! and whether a consumer is listed. Everything else is computed when it changes, once for many pushes:
//!
//! - **INBOX-1** `ceiling` is the value that `put` may reach: `put` plus the free part of the bound, by the last
//!   known value of `taken`. So there is room while the two differ, and a push preserves this.
//! - **INBOX-2** Every change of `bound`, `is_sealed` or `taken_seen` updates the ceiling.

use super::capacity::NOT_FULL;
use crate::queue::ring::Ring;
use crate::queue::store::{End, Store};
use crate::queue::wake_list::Waiter;
use millpond_raw::wait_queue::TicketQueue;

/// About as many elements as arrive while a notified consumer is on its way (FIFO-6). Few in models, so that they
/// reach it.
pub(super) const BACKLOG_STEP: usize = if cfg!(millpond_shuttle) { 2 } else { 1024 };

/// The fields in the order: written by a push, read by a push, the rest (`repr(C)`).
#[repr(C)]
pub(super) struct Inbox<T> {
    pub(super) ring: Ring<T>,
    /// The number of elements ever pushed; it wraps.
    put: usize,
    /// INBOX-1.
    ceiling: usize,
    pub(super) consumers: TicketQueue<Waiter>,
    /// FIFO-6: the number of consumers that were notified and have not arrived; `None` without throttling.
    pub(super) notified: Option<usize>,
    pub(super) producers: TicketQueue<Waiter>,
    /// The value of `taken` that was read last.
    taken_seen: usize,
    /// Whether the last read of `taken` by an offer brought little room (`capacity.rs`).
    pub(super) is_room_thin: bool,
    bound: Option<usize>,
    /// Whether every offer fails from now on.
    is_sealed: bool,
    /// The mark as it was published last (FIFO-8).
    pub(super) full_mark: usize,
}

impl<T: Send> Inbox<T> {
    /// An inbox in front of an outbox with `before` elements.
    pub(super) fn new(ring: Ring<T>, before: usize, bound: Option<usize>) -> Self {
        let put = ring.len() + before;
        let mut inbox = Inbox {
            ring,
            put,
            ceiling: put,
            consumers: TicketQueue::new(),
            notified: None,
            producers: TicketQueue::new(),
            taken_seen: 0,
            is_room_thin: false,
            bound,
            is_sealed: false,
            full_mark: NOT_FULL,
        };
        inbox.update_ceiling();
        inbox
    }

    /// INBOX-2.
    fn update_ceiling(&mut self) {
        let max = if self.is_sealed {
            0
        } else {
            self.bound.unwrap_or(usize::MAX)
        };
        self.ceiling = self.put.wrapping_add(max.saturating_sub(self.len()));
    }

    /// Continues as if `count` elements had come and gone before.
    #[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
    pub(super) fn start_at(&mut self, count: usize) {
        self.put = self.put.wrapping_add(count);
        self.set_taken(count);
    }

    /// Records the current value of `taken`.
    pub(super) fn set_taken(&mut self, taken: usize) {
        self.taken_seen = taken;
        self.update_ceiling();
    }

    pub(super) fn taken_seen(&self) -> usize {
        self.taken_seen
    }

    pub(super) fn bound(&self) -> Option<usize> {
        self.bound
    }

    pub(super) fn set_bound(&mut self, bound: usize) {
        self.bound = Some(bound);
        self.update_ceiling();
    }

    /// Accepts nothing more, ever.
    pub(super) fn seal(&mut self) {
        self.is_sealed = true;
        self.update_ceiling();
    }

    pub(super) fn is_sealed(&self) -> bool {
        self.is_sealed
    }

    /// Whether there is room, as of `taken_seen`.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.put != self.ceiling
    }

    /// The number of free places, as of `taken_seen`.
    pub(super) fn free(&self) -> usize {
        self.ceiling.wrapping_sub(self.put)
    }

    /// The number of elements in both boxes, as of `taken_seen`.
    pub(super) fn len(&self) -> usize {
        self.put.wrapping_sub(self.taken_seen)
    }

    /// Whether there is an element in either box, as of `taken_seen`.
    pub(super) fn has_elements(&self) -> bool {
        self.put != self.taken_seen
    }

    /// Adds an element, for which there is room.
    #[inline]
    pub(super) fn push(&mut self, element: T) {
        self.ring.push(element, (), End::Last);
        self.put = self.put.wrapping_add(1);
    }

    /// Whether a consumer must be woken for an element.
    #[inline]
    pub(super) fn needs_consumer(&self) -> bool {
        !self.consumers.is_empty() && !matches!(self.notified, Some(1..))
    }

    /// Whether so many elements have arrived that another consumer is woken in any case (FIFO-6).
    #[inline]
    pub(super) fn is_backlog_step(&self) -> bool {
        self.ring.len() % BACKLOG_STEP == 0
    }

    /// Takes a consumer out of the list, for the caller to wake it.
    pub(super) fn pop_consumer(&mut self) -> Option<Waiter> {
        let Some(notified) = &mut self.notified else {
            return self.consumers.pop();
        };
        let consumer = self.consumers.pop_newest();
        *notified += usize::from(consumer.is_some());
        consumer
    }

    /// Records that a notified consumer has arrived or left.
    pub(super) fn acknowledge(&mut self) {
        if let Some(notified) = &mut self.notified {
            debug_assert!(
                *notified > 0,
                "FIFO-6: a consumer that arrives was notified"
            );
            *notified = notified.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inbox(bound: usize) -> Inbox<u64> {
        let mut inbox = Inbox::new(Ring::growing(), 0, Some(bound));
        while inbox.has_room() {
            inbox.push(7);
        }
        inbox
    }

    #[test]
    fn a_bound_below_what_is_there_leaves_no_room_until_enough_has_gone_out() {
        let mut inbox = inbox(5);
        inbox.set_bound(3);
        for (taken, free) in [(0, 0), (1, 0), (2, 0), (3, 1), (5, 3)] {
            inbox.set_taken(taken);
            assert_eq!(inbox.free(), free, "{taken} of 5 have gone out");
            assert_eq!(inbox.has_room(), free > 0);
        }
    }

    #[test]
    fn a_sealed_inbox_has_no_room_whatever_goes_out_and_whatever_the_bound() {
        let mut inbox = inbox(2);
        inbox.set_taken(2);
        assert_eq!(inbox.free(), 2);
        inbox.seal();
        assert!(!inbox.has_room());
        inbox.set_bound(9);
        inbox.set_taken(2);
        assert!(!inbox.has_room() && inbox.is_sealed());
    }

    #[test]
    fn counts_that_wrap_around_leave_the_room_as_it_is() {
        let mut inbox = inbox(3);
        inbox.put = 1;
        inbox.set_taken(usize::MAX);
        assert_eq!((inbox.len(), inbox.free()), (2, 1));
        inbox.push(7);
        assert!(!inbox.has_room());
    }
}
