//! A list of wakers, first come first served, from which a waiter can leave.
//!
//! Everything that has waiters keeps one of these: the task cell its joiners, an interrupt token
//! the strand it may have to wake, a queue its takers. A waiter [enlists](Waits::enlist) its waker
//! and gets a [`Ticket`]; it [leaves](Waits::leave) with the ticket when it gives up (a time-out,
//! an interrupt, a dropped future), so nothing piles up behind a thing that never happens.
//!
//! The first waiter needs no allocation: it has a place inside the list. Nearly all tasks have one
//! joiner or none.
//!
//! # Rules
//!
//! - **W1** A ticket is in the list at most once; it is gone when it was woken or has left. Exactly
//!   one of the two happens, under the lock: [`Waits::leave`] returns whether it was the leaving.
//! - **W2** Users' code (waking, dropping or cloning a foreign waker) never runs under the lock.
//! - **W3** Tickets count up and are never used twice; the list is sorted by ticket, so that leaving is
//!   a binary search. A ticket has 64 bits on every machine: a waiter may stay in the list for years
//!   while others come and go (a worker that is rarely called, say), and 32 bits wrap within days. The
//!   list refuses with a panic to hand out ticket 2^64, which is 584 years of one a nanosecond.

use crate::quiet;
use crate::sync::Mutex;
use core::fmt;
use core::num::NonZeroU64;
use std::collections::VecDeque;
use std::task::Waker;

/// A place in a list of waiters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "who does not leave the list stays in it until it is woken"]
pub struct Ticket(NonZeroU64);

/// A list of wakers.
///
/// ```
/// use millpond_raw::waits::Waits;
/// use std::task::Waker;
///
/// let waits = Waits::new();
/// let ticket = waits.enlist(Waker::noop(), || true).expect("there is something to wait for");
/// assert!(waits.leave(ticket));
/// assert!(!waits.wake_one());
/// ```
pub struct Waits {
    list: Mutex<List<Waker>>,
}

/// The list itself, for those who keep it under a lock of their own.
///
/// The keeper holds W1 and W2: entries that it gets back are dropped and woken after its lock is
/// free. Once a list has been used it keeps its memory, so that waiting does not allocate.
///
/// ```
/// use millpond_raw::waits::List;
///
/// let mut list = List::new();
/// let first = list.push("first");
/// let second = list.push("second");
/// assert_eq!(list.pop(), Some("first"));
/// // It was called for nothing, and takes its old place, before those who came later.
/// list.restore(first, "first");
/// assert_eq!(list.remove(second), Some("second"));
/// assert_eq!(list.len(), 1);
/// ```
pub struct List<E> {
    /// The oldest waiter; empty only if there is none at all.
    first: Option<E>,
    first_ticket: NonZeroU64,
    next_ticket: NonZeroU64,
    /// All younger waiters. The box keeps the empty list small: most are never used.
    #[allow(
        clippy::box_collection,
        reason = "24 bytes less in every task that nobody joins twice"
    )]
    more: Option<Box<VecDeque<(NonZeroU64, E)>>>,
}

impl<E> List<E> {
    /// A list without waiters.
    pub const fn new() -> Self {
        List {
            first: None,
            first_ticket: NonZeroU64::MIN,
            next_ticket: NonZeroU64::MIN,
            more: None,
        }
    }

    /// Enters at the end.
    ///
    /// # Panics
    ///
    /// After 2^64 - 2 entries (W3).
    pub fn push(&mut self, entry: E) -> Ticket {
        let ticket = self.next_ticket;
        self.next_ticket = ticket
            .checked_add(1)
            .expect("584 years have not passed (W3)");
        if self.first.is_none() {
            self.first = Some(entry);
            self.first_ticket = ticket;
        } else {
            self.more.get_or_insert_default().push_back((ticket, entry));
        }
        Ticket(ticket)
    }

    /// Enters again with a ticket that is no longer in the list, at the place it had.
    pub fn restore(&mut self, Ticket(ticket): Ticket, entry: E) {
        let Some(first) = self.first.take() else {
            self.first = Some(entry);
            self.first_ticket = ticket;
            return;
        };
        if ticket < self.first_ticket {
            let second = (self.first_ticket, first);
            self.more.get_or_insert_default().push_front(second);
            self.first = Some(entry);
            self.first_ticket = ticket;
        } else {
            self.first = Some(first);
            let more = self.more.get_or_insert_default();
            let place = more.partition_point(|(other, _)| *other < ticket);
            more.insert(place, (ticket, entry));
        }
    }

    /// Takes the oldest out.
    pub fn pop(&mut self) -> Option<E> {
        let oldest = self.first.take()?;
        if let Some((ticket, entry)) = self.more.as_mut().and_then(|more| more.pop_front()) {
            self.first = Some(entry);
            self.first_ticket = ticket;
        }
        Some(oldest)
    }

    /// Takes the newest out.
    pub fn pop_newest(&mut self) -> Option<E> {
        match self.more.as_mut().and_then(|more| more.pop_back()) {
            Some((_, newest)) => Some(newest),
            None => self.first.take(),
        }
    }

    /// Takes the oldest out that `wanted` chooses.
    pub fn pop_where(&mut self, mut wanted: impl FnMut(&E) -> bool) -> Option<E> {
        if wanted(self.first.as_ref()?) {
            return self.pop();
        }
        let more = self.more.as_mut()?;
        let place = more.iter().position(|(_, entry)| wanted(entry))?;
        more.remove(place).map(|(_, entry)| entry)
    }

    /// Where a ticket other than the first stands in `more`.
    fn position(&self, ticket: NonZeroU64) -> Option<usize> {
        let more = self.more.as_ref()?;
        let place = more.partition_point(|(other, _)| *other < ticket);
        (more.get(place)?.0 == ticket).then_some(place)
    }

    /// Takes the one with this ticket out, if it is still in.
    pub fn remove(&mut self, Ticket(ticket): Ticket) -> Option<E> {
        if self.first.is_some() && self.first_ticket == ticket {
            return self.pop();
        }
        let position = self.position(ticket)?;
        self.more.as_mut()?.remove(position).map(|(_, entry)| entry)
    }

    /// The one with this ticket, if it is still in.
    pub fn find(&mut self, Ticket(ticket): Ticket) -> Option<&mut E> {
        if self.first_ticket == ticket {
            return self.first.as_mut();
        }
        let position = self.position(ticket)?;
        self.more
            .as_mut()?
            .get_mut(position)
            .map(|(_, entry)| entry)
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.more.as_ref().map_or(0, |more| more.len())
    }

    /// Whether nobody waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }
}

/// Those who are left are users' values, and their destructors may panic.
impl<E> Drop for List<E> {
    fn drop(&mut self) {
        if let Some(first) = self.first.take() {
            quiet::drop(first);
            quiet::drop(self.more.take());
        }
    }
}

impl<E> Default for List<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E> fmt::Debug for List<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("List").field("len", &self.len()).finish()
    }
}

impl Waits {
    /// A list without waiters.
    pub fn new() -> Self {
        Waits {
            list: Mutex::new(List::new()),
        }
    }

    /// Enters the list, if there is still something to wait for.
    ///
    /// `still_waiting` is asked under the lock, after the waker is in the list and before anybody
    /// can wake it: the step in which a protocol announces its waiter and looks a last time.
    pub fn enlist(&self, waker: &Waker, still_waiting: impl FnOnce() -> bool) -> Option<Ticket> {
        let waker = waker.clone();
        let mut list = self.list.lock();
        let ticket = list.push(waker);
        if still_waiting() {
            return Some(ticket);
        }
        let back = list.remove(ticket);
        drop(list);
        quiet::drop_waker(back);
        None
    }

    /// Replaces the waker of a waiter by one that wakes another task. Returns false, and does
    /// nothing, if the waiter is no longer in the list.
    pub fn renew(&self, ticket: Ticket, waker: &Waker) -> bool {
        let fresh = waker.clone();
        let mut list = self.list.lock();
        let Some(place) = list.find(ticket) else {
            drop(list);
            quiet::drop_waker(fresh);
            return false;
        };
        let stale = core::mem::replace(place, fresh);
        drop(list);
        quiet::drop_waker(stale);
        true
    }

    /// Leaves the list. Returns false if the waiter has been woken already; then it holds a token
    /// that was meant for it, and passes it on if what it waited for is of use to only one.
    pub fn leave(&self, ticket: Ticket) -> bool {
        let left = self.list.lock().remove(ticket);
        let found = left.is_some();
        quiet::drop_waker(left);
        found
    }

    /// Wakes the waiter that has waited longest. Returns whether there was one.
    pub fn wake_one(&self) -> bool {
        let oldest = self.list.lock().pop();
        match oldest {
            Some(waker) => {
                quiet::wake(waker);
                true
            }
            None => false,
        }
    }

    /// Wakes everyone who is in the list now, the oldest first. Returns how many they were.
    pub fn wake_all(&self) -> usize {
        let mut list = self.list.lock();
        let first = list.first.take();
        let more = list.more.take();
        drop(list);
        let mut woken = 0;
        for waker in first
            .into_iter()
            .chain(more.into_iter().flat_map(|more| *more).map(|(_, w)| w))
        {
            quiet::wake(waker);
            woken += 1;
        }
        woken
    }

    /// How many wait now.
    pub fn len(&self) -> usize {
        self.list.lock().len()
    }

    /// Whether nobody waits now.
    pub fn is_empty(&self) -> bool {
        self.list.lock().is_empty()
    }
}

impl Default for Waits {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Waits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waits").field("len", &self.len()).finish()
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;
    use crate::sync::atomic::{AtomicU32, Ordering};
    use std::sync::Arc;
    use std::task::Wake;

    #[derive(Default)]
    struct Bell(AtomicU32);

    impl Wake for Bell {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn bells<const N: usize>() -> ([Arc<Bell>; N], [Waker; N]) {
        let bells = core::array::from_fn(|_| Arc::new(Bell::default()));
        let wakers = core::array::from_fn(|i| Waker::from(Arc::clone(&bells[i])));
        (bells, wakers)
    }

    fn rung<const N: usize>(bells: &[Arc<Bell>; N]) -> [u32; N] {
        core::array::from_fn(|i| bells[i].0.load(Ordering::Relaxed))
    }

    #[test]
    fn the_oldest_is_woken_first() {
        let (bells, wakers) = bells::<3>();
        let waits = Waits::new();
        for waker in &wakers {
            let _ = waits.enlist(waker, || true);
        }
        assert!(waits.wake_one());
        assert_eq!(rung(&bells), [1, 0, 0]);
        assert!(waits.wake_one());
        assert_eq!(rung(&bells), [1, 1, 0]);
        assert_eq!(waits.wake_all(), 1);
        assert_eq!(rung(&bells), [1, 1, 1]);
        assert!(!waits.wake_one());
    }

    #[test]
    fn whoever_leaves_is_not_woken_wherever_it_stood() {
        for leaver in 0..4 {
            let (bells, wakers) = bells::<4>();
            let waits = Waits::new();
            let tickets: Vec<_> = wakers
                .iter()
                .map(|w| waits.enlist(w, || true).expect("waits"))
                .collect();
            assert!(waits.leave(tickets[leaver]));
            assert!(!waits.leave(tickets[leaver]), "one leaves once");
            assert_eq!(waits.wake_all(), 3);
            let mut expected = [1; 4];
            expected[leaver] = 0;
            assert_eq!(rung(&bells), expected);
        }
    }

    #[test]
    fn leaving_after_the_wake_says_so() {
        let (_, wakers) = bells::<1>();
        let waits = Waits::new();
        let ticket = waits.enlist(&wakers[0], || true).expect("waits");
        assert!(waits.wake_one());
        assert!(!waits.leave(ticket));
    }

    #[test]
    fn one_who_need_not_wait_is_not_in_the_list() {
        let (bells, wakers) = bells::<2>();
        let waits = Waits::new();
        let _ = waits.enlist(&wakers[0], || true);
        assert!(waits.enlist(&wakers[1], || false).is_none());
        assert_eq!(waits.wake_all(), 1);
        assert_eq!(rung(&bells), [1, 0]);
        assert_eq!(Arc::strong_count(&bells[1]), 2, "its clone is gone");
    }

    #[test]
    fn a_renewed_waker_replaces_the_old_one() {
        let (bells, wakers) = bells::<3>();
        let waits = Waits::new();
        let _ = waits.enlist(&wakers[0], || true);
        let second = waits.enlist(&wakers[1], || true).expect("waits");
        assert!(waits.renew(second, &wakers[2]));
        waits.wake_all();
        assert_eq!(rung(&bells), [1, 0, 1]);
        assert!(!waits.renew(second, &wakers[2]), "it is gone");
    }

    #[test]
    fn a_ticket_is_no_larger_for_being_optional_and_lists_are_small() {
        assert_eq!(size_of::<Option<Ticket>>(), 8);
        assert!(size_of::<Waits>() <= 24 + 3 * size_of::<usize>());
        // Two lists, as a task has them once somebody waits, fit into the second smallest slab.
        assert!(2 * size_of::<Waits>() <= 128);
    }

    #[test]
    fn a_list_without_tickets_refuses_and_keeps_those_who_wait() {
        let mut list = List::new();
        let first = list.push("first");
        list.next_ticket = NonZeroU64::MAX;
        assert!(quiet::call(|| list.push("one too many")).is_none());
        assert_eq!(list.len(), 1);
        assert_eq!(list.remove(first), Some("first"));
    }

    /// As if `count` waiters had come and gone meanwhile.
    fn skip<E>(list: &mut List<E>, count: u64) {
        list.next_ticket = list.next_ticket.checked_add(count).expect("in range");
    }

    /// Distances between two tickets at which narrower counters of other widths wrap.
    const DISTANCES: [u64; 5] = [1 << 16, 1 << 31, (1 << 31) + 1, 1 << 32, 1 << 62];

    #[test]
    fn whoever_waits_is_found_however_many_came_and_went_since() {
        for distance in DISTANCES {
            let mut list = List::new();
            let first = list.push("first");
            skip(&mut list, distance);
            let second = list.push("second");
            skip(&mut list, distance - 2);
            let third = list.push("third");
            assert_eq!(list.find(first), Some(&mut "first"), "{distance}");
            assert_eq!(list.find(second), Some(&mut "second"), "{distance}");
            assert_eq!(list.find(third), Some(&mut "third"), "{distance}");
            assert_eq!(list.remove(second), Some("second"), "{distance}");
            assert_eq!(list.remove(second), None, "{distance}");
            // Called for nothing, they take their old places again.
            list.restore(second, "second");
            assert_eq!(list.pop(), Some("first"), "{distance}");
            list.restore(first, "first");
            let order: Vec<_> = core::iter::from_fn(|| list.pop()).collect();
            assert_eq!(order, ["first", "second", "third"], "{distance}");
        }
    }

    #[test]
    fn a_waker_that_has_been_listed_for_long_is_renewed_woken_and_taken_off() {
        for distance in DISTANCES {
            let (bells, wakers) = bells::<4>();
            let waits = Waits::new();
            let first = waits.enlist(&wakers[0], || true).expect("waits");
            let second = waits.enlist(&wakers[1], || true).expect("waits");
            skip(&mut waits.list.lock(), distance);
            let third = waits.enlist(&wakers[2], || true).expect("waits");
            assert!(waits.renew(second, &wakers[3]), "{distance}");
            assert!(waits.leave(third), "{distance}");
            assert!(waits.leave(first), "{distance}");
            assert_eq!(waits.wake_all(), 1);
            assert_eq!(rung(&bells), [0, 0, 0, 1], "{distance}");
        }
    }

    #[test]
    fn whoever_is_restored_stands_where_its_age_puts_it() {
        for start in [0, u64::from(u32::MAX) - 2, u64::MAX - 7] {
            let mut list = List::new();
            skip(&mut list, start);
            let tickets: Vec<_> = (0..5).map(|number| list.push(number)).collect();
            let out: Vec<_> = (0..4).filter_map(|_| list.pop()).collect();
            assert_eq!(out, [0, 1, 2, 3]);
            for number in [2, 0, 3, 1] {
                list.restore(tickets[number], number);
            }
            let order: Vec<_> = core::iter::from_fn(|| list.pop()).collect();
            assert_eq!(order, [0, 1, 2, 3, 4]);
        }
    }

    #[test]
    fn the_newest_comes_out_first_if_asked_for() {
        let mut list = List::new();
        for number in 0..3 {
            let _ = list.push(number);
        }
        assert_eq!(list.pop_newest(), Some(2));
        assert_eq!(list.pop(), Some(0));
        assert_eq!(list.pop_newest(), Some(1));
        assert_eq!(list.pop_newest(), None);
        assert!(list.is_empty());
    }

    #[test]
    fn the_oldest_that_is_wanted_comes_out_wherever_it_stands() {
        let mut list = List::new();
        for number in 0..5 {
            let _ = list.push(number);
        }
        assert_eq!(list.pop_where(|n| n % 2 == 1), Some(1));
        assert_eq!(list.pop_where(|n| *n == 0), Some(0));
        assert_eq!(list.pop_where(|n| *n > 9), None);
        assert_eq!(list.len(), 3);
    }

    #[test]
    fn a_waker_that_panics_does_not_keep_the_others_asleep() {
        struct Grenade;
        impl Wake for Grenade {
            fn wake(self: Arc<Self>) {
                std::panic::resume_unwind(Box::new(()));
            }
        }
        let (bells, wakers) = bells::<1>();
        let waits = Waits::new();
        let _ = waits.enlist(&Waker::from(Arc::new(Grenade)), || true);
        let _ = waits.enlist(&wakers[0], || true);
        assert_eq!(waits.wake_all(), 2);
        assert_eq!(rung(&bells), [1]);
    }
}
