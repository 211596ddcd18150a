//! What lies behind the putters' lock: the inbox, who waits, and how much may come in.
//!
//! A push is the price of a task, so it looks at two things: whether the inbox has as many elements as it
//! may have, and whether a taker is listed. All else is worked out when it changes, by whoever changes
//! it, and that is once for many pushes:
//!
//! - **I1** `ceiling` is what `put` may come to: it is ahead of it by what is free of the bound, by what
//!   is known of the outbox. So there is room as long as the two differ, and a push keeps that true.
//! - **I2** Whoever changes `bound`, `is_sealed` or `taken_seen` works it out anew.

use super::room::HAS_ROOM;
use crate::queue::line::Waiter;
use crate::queue::ring::Ring;
use crate::queue::store::{End, Store};
use millpond_raw::waits::List;

/// About as many elements as come in while one who was called is on its way. Few in models, for them to see
/// what comes of it.
pub(super) const PILE: usize = if cfg!(millpond_shuttle) { 2 } else { 1024 };

/// First what a push writes, then what it reads, then the rest (`repr(C)`).
#[repr(C)]
pub(super) struct Inbox<T> {
    pub(super) ring: Ring<T>,
    /// How many elements have ever come in; it wraps.
    put: usize,
    /// I1.
    ceiling: usize,
    pub(super) takers: List<Waiter>,
    /// B6: how many takers were called and have not come; `None` if the queue is not thrifty.
    pub(super) called: Option<usize>,
    pub(super) putters: List<Waiter>,
    /// How many had ever gone out when a putter last looked.
    taken_seen: usize,
    bound: Option<usize>,
    /// Nothing more comes in.
    is_sealed: bool,
    /// What the sign shows (B8).
    pub(super) shown: usize,
}

impl<T: Send> Inbox<T> {
    /// An inbox in front of an outbox with `before` elements.
    pub(super) fn new(ring: Ring<T>, before: usize, bound: Option<usize>) -> Self {
        let put = ring.len() + before;
        let mut inbox = Inbox {
            ring,
            put,
            ceiling: put,
            takers: List::new(),
            called: None,
            putters: List::new(),
            taken_seen: 0,
            bound,
            is_sealed: false,
            shown: HAS_ROOM,
        };
        inbox.work_out_ceiling();
        inbox
    }

    /// I2.
    fn work_out_ceiling(&mut self) {
        let most = match self.is_sealed {
            false => self.bound.unwrap_or(usize::MAX),
            true => 0,
        };
        self.ceiling = self.put.wrapping_add(most.saturating_sub(self.len()));
    }

    /// As if so many had come in and gone out before those that are in it.
    #[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
    pub(super) fn have_had(&mut self, count: usize) {
        self.put = self.put.wrapping_add(count);
        self.see(count);
    }

    /// Learns that so many have ever gone out.
    pub(super) fn see(&mut self, taken: usize) {
        self.taken_seen = taken;
        self.work_out_ceiling();
    }

    pub(super) fn taken_seen(&self) -> usize {
        self.taken_seen
    }

    pub(super) fn bound(&self) -> Option<usize> {
        self.bound
    }

    pub(super) fn set_bound(&mut self, bound: usize) {
        self.bound = Some(bound);
        self.work_out_ceiling();
    }

    /// Takes nothing more in, ever.
    pub(super) fn seal(&mut self) {
        self.is_sealed = true;
        self.work_out_ceiling();
    }

    pub(super) fn is_sealed(&self) -> bool {
        self.is_sealed
    }

    /// Whether there is room, by what is known.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.put != self.ceiling
    }

    /// For how many there is room, by what is known.
    pub(super) fn free(&self) -> usize {
        self.ceiling.wrapping_sub(self.put)
    }

    /// How many elements are in both boxes, by what is known.
    pub(super) fn len(&self) -> usize {
        self.put.wrapping_sub(self.taken_seen)
    }

    /// Whether there is an element in either box, by what is known.
    pub(super) fn has_some(&self) -> bool {
        self.put != self.taken_seen
    }

    /// Takes an element in, for which there is room.
    #[inline]
    pub(super) fn push(&mut self, element: T) {
        self.ring.push(element, (), End::Last);
        self.put = self.put.wrapping_add(1);
    }

    /// Whether a taker is to be called for what has come in.
    #[inline]
    pub(super) fn wants_taker(&self) -> bool {
        !self.takers.is_empty() && !matches!(self.called, Some(1..))
    }

    /// Whether another taker is to be called, for the one that was called, or seeks, does not come (B6).
    #[inline]
    pub(super) fn has_piled_up(&self) -> bool {
        self.ring.len() % PILE == 0
    }

    /// Calls a taker, if there is one. Waking it is up to the caller.
    pub(super) fn call(&mut self) -> Option<Waiter> {
        let Some(called) = &mut self.called else {
            return self.takers.pop();
        };
        let taker = self.takers.pop_newest();
        *called += usize::from(taker.is_some());
        taker
    }

    /// A taker that was called has come, or has left.
    pub(super) fn has_come(&mut self) {
        if let Some(called) = &mut self.called {
            debug_assert!(*called > 0, "B6: nobody was called");
            *called = called.saturating_sub(1);
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
            inbox.see(taken);
            assert_eq!(inbox.free(), free, "{taken} of 5 have gone out");
            assert_eq!(inbox.has_room(), free > 0);
        }
    }

    #[test]
    fn a_sealed_inbox_has_no_room_whatever_goes_out_and_whatever_the_bound() {
        let mut inbox = inbox(2);
        inbox.see(2);
        assert_eq!(inbox.free(), 2);
        inbox.seal();
        assert!(!inbox.has_room());
        inbox.set_bound(9);
        inbox.see(2);
        assert!(!inbox.has_room() && inbox.is_sealed());
    }

    #[test]
    fn counts_that_wrap_around_leave_the_room_as_it_is() {
        let mut inbox = inbox(3);
        inbox.put = 1;
        inbox.see(usize::MAX);
        assert_eq!((inbox.len(), inbox.free()), (2, 1));
        inbox.push(7);
        assert!(!inbox.has_room());
    }
}
