//! A FIFO queue of wakers from which a waiter can leave.
//!
//! Everything that has waiters has one of these: the task cell for its joiners, an interrupt
//! token for the strand it may have to wake, a queue for its consumers. A waiter
//! [registers](WaitQueue::register) its waker and gets a [`Ticket`]; with the ticket it
//! [leaves](WaitQueue::unregister) when it gives up (a time-out, an interrupt, a dropped future), so
//! nothing piles up behind an event that never happens.
//!
//! The first waiter needs no allocation: its waker is stored inline. Nearly all tasks have one joiner or
//! none.
//!
//! # Invariants
//!
//! - **WAITQ-1** A ticket is in the queue at most once. It goes by being woken or by leaving, and exactly one
//!   of the two happens, under the lock: [`WaitQueue::unregister`] returns whether it was the leaving.
//! - **WAITQ-2** User code (waking, dropping or cloning a foreign waker) never runs under the lock.
//! - **WAITQ-3** Tickets count up and are never reused; the queue is sorted by ticket, so that leaving is a
//!   binary search. A ticket has 64 bits on every machine: a waiter may stay for years while others come and
//!   go (a worker that is rarely woken, say), and 32 bits wrap within days. Handing out ticket 2^64 - 1
//!   panics, after 584 years at one per nanosecond; so no waiter ever has it.

use crate::catch_panic;
use crate::sync::Mutex;
use core::fmt;
use core::num::NonZeroU64;
use std::collections::VecDeque;
use std::task::Waker;

/// The position of a waiter in its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a waiter that does not leave stays registered until it is woken"]
pub struct Ticket(NonZeroU64);

impl Ticket {
    /// The ticket that nobody gets (WAITQ-3).
    pub(crate) const UNISSUED: Ticket = Ticket(NonZeroU64::MAX);
}

/// A FIFO queue of wakers.
///
/// ```
/// use millpond_raw::wait_queue::WaitQueue;
/// use std::task::Waker;
///
/// let queue = WaitQueue::new();
/// let ticket = queue.register(Waker::noop(), || true).expect("there is something to wait for");
/// assert!(queue.unregister(ticket));
/// assert!(!queue.wake_one());
/// ```
pub struct WaitQueue {
    queue: Mutex<TicketQueue<Waker>>,
}

/// The queue without a lock, for users that have a lock of their own.
///
/// The user upholds WAITQ-1 and WAITQ-2: entries that it gets back are dropped and woken after its lock is
/// released. The queue keeps its memory, so that waiting does not allocate in the steady state.
///
/// ```
/// use millpond_raw::wait_queue::TicketQueue;
///
/// let mut queue = TicketQueue::new();
/// let first = queue.push("first");
/// let second = queue.push("second");
/// assert_eq!(queue.pop(), Some("first"));
/// // Woken in vain, it takes its old position, before later ones.
/// queue.restore(first, "first");
/// assert_eq!(queue.remove(second), Some("second"));
/// assert_eq!(queue.len(), 1);
/// ```
pub struct TicketQueue<E> {
    /// The oldest waiter; `None` only if the queue is empty.
    first: Option<E>,
    first_ticket: NonZeroU64,
    next_ticket: NonZeroU64,
    /// All younger waiters. The box keeps an unused queue small: most are never used.
    #[allow(
        clippy::box_collection,
        reason = "24 bytes less in every task with at most one joiner"
    )]
    more: Option<Box<VecDeque<(NonZeroU64, E)>>>,
}

impl<E> TicketQueue<E> {
    /// An empty queue.
    pub const fn new() -> Self {
        TicketQueue {
            first: None,
            first_ticket: NonZeroU64::MIN,
            next_ticket: NonZeroU64::MIN,
            more: None,
        }
    }

    /// Appends an entry.
    ///
    /// # Panics
    ///
    /// After 2^64 - 2 entries (WAITQ-3).
    pub fn push(&mut self, entry: E) -> Ticket {
        let ticket = self.next_ticket;
        self.next_ticket = ticket
            .checked_add(1)
            .expect("584 years have not passed (WAITQ-3)");
        if self.first.is_none() {
            self.first = Some(entry);
            self.first_ticket = ticket;
        } else {
            self.more.get_or_insert_default().push_back((ticket, entry));
        }
        Ticket(ticket)
    }

    /// Puts an entry back with a ticket that has left the queue, at its old position.
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

    /// Removes the oldest.
    pub fn pop(&mut self) -> Option<E> {
        let oldest = self.first.take()?;
        if let Some((ticket, entry)) = self.more.as_mut().and_then(|more| more.pop_front()) {
            self.first = Some(entry);
            self.first_ticket = ticket;
        }
        Some(oldest)
    }

    /// Removes the newest.
    pub fn pop_newest(&mut self) -> Option<E> {
        match self.more.as_mut().and_then(|more| more.pop_back()) {
            Some((_, newest)) => Some(newest),
            None => self.first.take(),
        }
    }

    /// Removes the oldest of which `wanted` is true.
    pub fn pop_where(&mut self, mut wanted: impl FnMut(&E) -> bool) -> Option<E> {
        if wanted(self.first.as_ref()?) {
            return self.pop();
        }
        let more = self.more.as_mut()?;
        let place = more.iter().position(|(_, entry)| wanted(entry))?;
        more.remove(place).map(|(_, entry)| entry)
    }

    /// The index in `more` of a ticket other than the first.
    fn position(&self, ticket: NonZeroU64) -> Option<usize> {
        let more = self.more.as_ref()?;
        let place = more.partition_point(|(other, _)| *other < ticket);
        (more.get(place)?.0 == ticket).then_some(place)
    }

    /// Removes the entry with this ticket, if it is still there.
    pub fn remove(&mut self, Ticket(ticket): Ticket) -> Option<E> {
        if self.first.is_some() && self.first_ticket == ticket {
            return self.pop();
        }
        let position = self.position(ticket)?;
        self.more.as_mut()?.remove(position).map(|(_, entry)| entry)
    }

    /// The entry with this ticket, if it is still there.
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

    /// The number of waiters.
    pub fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.more.as_ref().map_or(0, |more| more.len())
    }

    /// Whether there are no waiters.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }
}

/// The remaining entries are users' values, whose destructors may panic.
impl<E> Drop for TicketQueue<E> {
    fn drop(&mut self) {
        if let Some(first) = self.first.take() {
            catch_panic::drop(first);
            catch_panic::drop(self.more.take());
        }
    }
}

impl<E> Default for TicketQueue<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E> fmt::Debug for TicketQueue<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TicketQueue")
            .field("len", &self.len())
            .finish()
    }
}

impl WaitQueue {
    /// An empty queue.
    pub fn new() -> Self {
        WaitQueue {
            queue: Mutex::new(TicketQueue::new()),
        }
    }

    /// Registers `waker`, if there is still something to wait for.
    ///
    /// `still_waiting` is called under the lock, after the waker is in the queue and before it can be woken:
    /// in it a protocol announces its waiter and looks a last time.
    pub fn register(&self, waker: &Waker, still_waiting: impl FnOnce() -> bool) -> Option<Ticket> {
        let waker = waker.clone();
        let mut queue = self.queue.lock();
        let ticket = queue.push(waker);
        if still_waiting() {
            return Some(ticket);
        }
        let back = queue.remove(ticket);
        drop(queue);
        catch_panic::drop_waker(back);
        None
    }

    /// Replaces the waker of a waiter. Returns false, and does nothing, if the waiter is no longer
    /// registered.
    pub fn update_waker(&self, ticket: Ticket, waker: &Waker) -> bool {
        let fresh = waker.clone();
        let mut queue = self.queue.lock();
        let Some(registered) = queue.find(ticket) else {
            drop(queue);
            catch_panic::drop_waker(fresh);
            return false;
        };
        let stale = core::mem::replace(registered, fresh);
        drop(queue);
        catch_panic::drop_waker(stale);
        true
    }

    /// Leaves the queue. Returns false if the waiter has been woken already; then it must pass the wake-up on
    /// if what it waited for is of use to only one.
    pub fn unregister(&self, ticket: Ticket) -> bool {
        let left = self.queue.lock().remove(ticket);
        let found = left.is_some();
        catch_panic::drop_waker(left);
        found
    }

    /// Wakes the oldest waiter. Returns whether there was one.
    pub fn wake_one(&self) -> bool {
        let oldest = self.queue.lock().pop();
        match oldest {
            Some(waker) => {
                catch_panic::wake(waker);
                true
            }
            None => false,
        }
    }

    /// Wakes all current waiters, the oldest first. Returns how many there were.
    pub fn wake_all(&self) -> usize {
        let mut queue = self.queue.lock();
        let first = queue.first.take();
        let more = queue.more.take();
        drop(queue);
        let mut woken = 0;
        for waker in first
            .into_iter()
            .chain(more.into_iter().flat_map(|more| *more).map(|(_, w)| w))
        {
            catch_panic::wake(waker);
            woken += 1;
        }
        woken
    }

    /// The current number of waiters.
    pub fn len(&self) -> usize {
        self.queue.lock().len()
    }

    /// Whether there are no waiters now.
    pub fn is_empty(&self) -> bool {
        self.queue.lock().is_empty()
    }
}

impl Default for WaitQueue {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for WaitQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitQueue")
            .field("len", &self.len())
            .finish()
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
        let queue = WaitQueue::new();
        for waker in &wakers {
            let _ = queue.register(waker, || true);
        }
        assert!(queue.wake_one());
        assert_eq!(rung(&bells), [1, 0, 0]);
        assert!(queue.wake_one());
        assert_eq!(rung(&bells), [1, 1, 0]);
        assert_eq!(queue.wake_all(), 1);
        assert_eq!(rung(&bells), [1, 1, 1]);
        assert!(!queue.wake_one());
    }

    #[test]
    fn a_waiter_that_leaves_is_not_woken_wherever_it_stood() {
        for leaver in 0..4 {
            let (bells, wakers) = bells::<4>();
            let queue = WaitQueue::new();
            let tickets: Vec<_> = wakers
                .iter()
                .map(|w| queue.register(w, || true).expect("waits"))
                .collect();
            assert!(queue.unregister(tickets[leaver]));
            assert!(!queue.unregister(tickets[leaver]), "a waiter leaves once");
            assert_eq!(queue.wake_all(), 3);
            let mut expected = [1; 4];
            expected[leaver] = 0;
            assert_eq!(rung(&bells), expected);
        }
    }

    #[test]
    fn leaving_after_the_wake_says_so() {
        let (_, wakers) = bells::<1>();
        let queue = WaitQueue::new();
        let ticket = queue.register(&wakers[0], || true).expect("waits");
        assert!(queue.wake_one());
        assert!(!queue.unregister(ticket));
    }

    #[test]
    fn a_waiter_that_need_not_wait_is_not_registered() {
        let (bells, wakers) = bells::<2>();
        let queue = WaitQueue::new();
        let _ = queue.register(&wakers[0], || true);
        assert!(queue.register(&wakers[1], || false).is_none());
        assert_eq!(queue.wake_all(), 1);
        assert_eq!(rung(&bells), [1, 0]);
        assert_eq!(Arc::strong_count(&bells[1]), 2, "its clone is gone");
    }

    #[test]
    fn a_renewed_waker_replaces_the_old_one() {
        let (bells, wakers) = bells::<3>();
        let queue = WaitQueue::new();
        let _ = queue.register(&wakers[0], || true);
        let second = queue.register(&wakers[1], || true).expect("waits");
        assert!(queue.update_waker(second, &wakers[2]));
        queue.wake_all();
        assert_eq!(rung(&bells), [1, 0, 1]);
        assert!(!queue.update_waker(second, &wakers[2]), "it is gone");
    }

    #[test]
    fn an_optional_ticket_is_no_larger_and_queues_are_small() {
        assert_eq!(size_of::<Option<Ticket>>(), 8);
        assert!(size_of::<WaitQueue>() <= 24 + 3 * size_of::<usize>());
        // The two queues of a task fit into the second smallest size class.
        assert!(2 * size_of::<WaitQueue>() <= 128);
    }

    #[test]
    fn a_queue_without_tickets_panics_and_keeps_its_waiters() {
        let mut queue = TicketQueue::new();
        let first = queue.push("first");
        queue.next_ticket = NonZeroU64::MAX;
        assert!(catch_panic::call(|| queue.push("one too many")).is_none());
        assert_eq!(queue.len(), 1);
        assert_eq!(queue.remove(first), Some("first"));
    }

    /// As if `count` waiters had come and gone meanwhile.
    fn skip<E>(queue: &mut TicketQueue<E>, count: u64) {
        queue.next_ticket = queue.next_ticket.checked_add(count).expect("in range");
    }

    /// Distances between two tickets at which narrower counters of other widths wrap.
    const DISTANCES: [u64; 5] = [1 << 16, 1 << 31, (1 << 31) + 1, 1 << 32, 1 << 62];

    #[test]
    fn a_waiter_is_found_however_many_came_and_went_since() {
        for distance in DISTANCES {
            let mut queue = TicketQueue::new();
            let first = queue.push("first");
            skip(&mut queue, distance);
            let second = queue.push("second");
            skip(&mut queue, distance - 2);
            let third = queue.push("third");
            assert_eq!(queue.find(first), Some(&mut "first"), "{distance}");
            assert_eq!(queue.find(second), Some(&mut "second"), "{distance}");
            assert_eq!(queue.find(third), Some(&mut "third"), "{distance}");
            assert_eq!(queue.remove(second), Some("second"), "{distance}");
            assert_eq!(queue.remove(second), None, "{distance}");
            // Woken in vain, they take their old positions again.
            queue.restore(second, "second");
            assert_eq!(queue.pop(), Some("first"), "{distance}");
            queue.restore(first, "first");
            let order: Vec<_> = core::iter::from_fn(|| queue.pop()).collect();
            assert_eq!(order, ["first", "second", "third"], "{distance}");
        }
    }

    #[test]
    fn a_waker_that_was_registered_long_ago_is_updated_woken_and_removed() {
        for distance in DISTANCES {
            let (bells, wakers) = bells::<4>();
            let queue = WaitQueue::new();
            let first = queue.register(&wakers[0], || true).expect("waits");
            let second = queue.register(&wakers[1], || true).expect("waits");
            skip(&mut queue.queue.lock(), distance);
            let third = queue.register(&wakers[2], || true).expect("waits");
            assert!(queue.update_waker(second, &wakers[3]), "{distance}");
            assert!(queue.unregister(third), "{distance}");
            assert!(queue.unregister(first), "{distance}");
            assert_eq!(queue.wake_all(), 1);
            assert_eq!(rung(&bells), [0, 0, 0, 1], "{distance}");
        }
    }

    #[test]
    fn a_restored_entry_is_where_its_ticket_puts_it() {
        for start in [0, u64::from(u32::MAX) - 2, u64::MAX - 7] {
            let mut queue = TicketQueue::new();
            skip(&mut queue, start);
            let tickets: Vec<_> = (0..5).map(|number| queue.push(number)).collect();
            let out: Vec<_> = (0..4).filter_map(|_| queue.pop()).collect();
            assert_eq!(out, [0, 1, 2, 3]);
            for number in [2, 0, 3, 1] {
                queue.restore(tickets[number], number);
            }
            let order: Vec<_> = core::iter::from_fn(|| queue.pop()).collect();
            assert_eq!(order, [0, 1, 2, 3, 4]);
        }
    }

    #[test]
    fn the_newest_comes_out_first_if_asked_for() {
        let mut queue = TicketQueue::new();
        for number in 0..3 {
            let _ = queue.push(number);
        }
        assert_eq!(queue.pop_newest(), Some(2));
        assert_eq!(queue.pop(), Some(0));
        assert_eq!(queue.pop_newest(), Some(1));
        assert_eq!(queue.pop_newest(), None);
        assert!(queue.is_empty());
    }

    #[test]
    fn the_oldest_that_is_wanted_comes_out_wherever_it_stands() {
        let mut queue = TicketQueue::new();
        for number in 0..5 {
            let _ = queue.push(number);
        }
        assert_eq!(queue.pop_where(|n| n % 2 == 1), Some(1));
        assert_eq!(queue.pop_where(|n| *n == 0), Some(0));
        assert_eq!(queue.pop_where(|n| *n > 9), None);
        assert_eq!(queue.len(), 3);
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
        let queue = WaitQueue::new();
        let _ = queue.register(&Waker::from(Arc::new(Grenade)), || true);
        let _ = queue.register(&wakers[0], || true);
        assert_eq!(queue.wake_all(), 2);
        assert_eq!(rung(&bells), [1]);
    }
}
