//! The core of the plain first-in-first-out queue: two boxes, two locks.
//!
//! Producers push into the *inbox*, consumers pop from the *outbox*, each under a lock of its own. A consumer that
//! finds the outbox empty swaps the two boxes: it touches the producers' cache lines once for all elements that
//! have arrived meanwhile (`swap.rs`). So producers and consumers rarely contend, and each side pays for an
//! uncontended lock.
//!
//! ```text
//!            inbox (lock)                     outbox (lock)
//!   put --> [ g h i ]  -- swap when empty --> [ d e f ] --> take
//!            put = 9                           taken = 3          length = put - taken
//!            bound, producers, consumers
//! ```
//!
//! | file | what |
//! |---|---|
//! | `inbox.rs` | the state under the inbox's lock |
//! | `capacity.rs` | the bound, pauses for room, waking producers, the full mark |
//! | `swap.rs` | swapping the boxes |
//! | `search.rs` | searching consumers |
//! | `newest.rs` | polling the newest element |
//!
//! # The bound
//!
//! Each side counts under its own lock: `put` in the inbox, `taken` beside the outbox. A producer keeps the value
//! of `taken` that it last read, and reads it again before it reports a full queue. So the bound is exact, and no
//! offer fails while there is room.
//!
//! A queue that stays full has a producer that waits for each free place. If it read `taken` for a few places at a
//! time it would take the consumers' cache line as often, so it pauses for a moment first (`capacity.rs`).
//!
//! Rejected offers come in bursts. A full queue therefore publishes a mark; an offer that reads the mark and
//! finds that nothing has been taken since fails without a lock and without a write (FIFO-8).
//!
//! # Invariants
//!
//! - **FIFO-1** The outbox's elements are older than the inbox's. A thread that needs both locks takes the
//!   outbox's first.
//! - **FIFO-2** Consumers wait in a list under the inbox's lock. A consumer enters it while it holds both locks
//!   and both boxes are empty. So a push sees every consumer that did not see its element, and wakes one.
//! - **FIFO-3** Producers wait in a list under the inbox's lock; `producers_wait` says whether it has an entry. A
//!   producer sets the flag *before* its last read of `taken`, and a consumer adds to `taken` *before* it reads
//!   the flag: one of them sees the other. The consumer then wakes one producer for each element that it took.
//! - **FIFO-4** As in [`super::monitor`], a notified waiter has no claim. If it finds nothing it returns to its
//!   old position in the list; if it leaves it notifies another waiter.
//! - **FIFO-5** No waker is cloned, called or dropped under a lock, and no element is dropped under one.
//!   Predicates and visitors run under both locks; if they panic, the boxes are intact.
//! - **FIFO-6** A queue with *throttled wake-ups*, whose consumers are the workers of one pool, wakes one consumer
//!   at a time: the one that parked last, and the next only when that one has arrived. `notified` counts the
//!   consumers that were woken and have not arrived. While there is an element and a listed consumer, at least
//!   one consumer is notified: a push wakes one if none is, and a notified consumer that arrives or leaves wakes
//!   another if elements are left. This needs consumers that arrive promptly, so it is not for futures, which may
//!   be woken and not polled for long. The system may delay a woken thread, for instance behind the producer on
//!   the same CPU. So a push wakes another consumer for every [`BACKLOG_STEP`](inbox::BACKLOG_STEP) elements in
//!   the inbox, even if others are notified or searching; an extra wake-up costs time and nothing else.
//! - **FIFO-7** A *searching consumer* of such a queue has found nothing and polls for a moment before it parks.
//!   While there is one, a push wakes nobody. The count of searching consumers is decremented under the inbox's
//!   lock. A consumer that stops searching and leaves elements behind, whether it got one or not, wakes another
//!   or, if others search, sets `is_ready` for them. So a push either sees no searching consumer, or is seen.
//!   No user code runs on a thread while it is counted as searching: it might take any time, and meanwhile a push
//!   would wake nobody.
//! - **FIFO-8** The full mark is [`NOT_FULL`], or encodes a value of `taken` such that `put` exceeds it by at
//!   least the bound, or the queue is sealed. It is written under the inbox's lock: when the last place is
//!   filled, with every read of `taken`, and with every new bound. `put` only grows, so this stays true. A
//!   thread that reads the mark and then finds that `taken` equals it has seen a full queue at the moment of the
//!   first read: `taken` only grows, so it was not larger then.
//! - **FIFO-9** A consumer may push one element *for itself* ([`TwoLock::push_for_self`]): it is idle and searches right
//!   afterwards, so such a push wakes nobody. No user code runs between it and the search; if some is to run instead of
//!   it, the right is given up ([`end_push_for_self`](search::end_push_for_self)).
//!
//! # Orderings
//!
//! - `[B-room]` The four accesses of FIFO-3 are sequentially consistent: Dekker's pattern.
//! - `[B-full]` Writing the mark releases, reading it acquires: a thread that reads the mark also sees everything
//!   that had been taken when it was written (FIFO-8), including what its writer had not read.
//!
//! All other shared state is under a lock. Both checkers cover this protocol (`queue.rs` in `tests/loom_library`
//! and `tests/shuttle_library`).

mod capacity;
mod inbox;
mod newest;
pub(super) mod search;
mod swap;

use self::capacity::NOT_FULL;
use self::inbox::Inbox;
use super::ring::Ring;
use super::store::{End, Store};
use super::wake_list::{WakeList, enlist, lock};
use super::{CapacityError, OfferError, Offered, QueueHint, Reason, Taken, WaitSlot};
use crate::time::{Clock, Deadline};
use millpond_raw::cache_padded::CachePadded;
use millpond_raw::catch_panic;
use millpond_raw::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use millpond_raw::sync::{Mutex, MutexGuard};
use millpond_raw::user_code::except_locks;
use std::fmt;
use std::ops::ControlFlow;
use std::task::Waker;

/// Two boxes and their waiters.
pub(super) struct TwoLock<T: Send> {
    inbox: CachePadded<ProducerSide<T>>,
    outbox: CachePadded<ConsumerSide<T>>,
    /// FIFO-3. Written under the inbox's lock, and rarely.
    producers_wait: CachePadded<AtomicBool>,
    /// FIFO-8, encoded as in `capacity.rs`. On a cache line of its own, which nobody writes while there is room.
    full_mark: CachePadded<AtomicUsize>,
    clock: Clock,
}

/// The producers' side. The fields that a push writes are adjacent (`repr(C)`). A searching consumer polls the
/// cache line that it needs next anyway: flag, lock and ring are one line if an element is one word, and a lone
/// element is in it.
#[repr(C)]
struct ProducerSide<T> {
    /// A hint that the inbox is not empty. Written under the lock.
    is_ready: AtomicBool,
    /// FIFO-7: the number of searching consumers. Decremented and read under the lock.
    searching_workers: AtomicU32,
    inbox: Mutex<Inbox<T>>,
}

/// The consumers' side, laid out likewise.
#[repr(C)]
struct ConsumerSide<T> {
    /// The number of elements ever taken; it wraps. Written under the lock.
    taken: AtomicUsize,
    /// Whether there is a bound. Without one no producer waits, and consumers skip FIFO-3. Set once, under both
    /// locks, and never cleared.
    has_bound: AtomicBool,
    ring: Mutex<Ring<T>>,
    /// The number of elements that the last swap brought, see `swap.rs`. Written under the lock.
    last_swap: AtomicUsize,
}

impl<T: Send> TwoLock<T> {
    /// Two boxes with `bound` as the limit of their joint length.
    pub(super) fn new(inbox: Ring<T>, outbox: Ring<T>, bound: Option<usize>) -> Self {
        TwoLock {
            inbox: CachePadded::new(ProducerSide {
                is_ready: AtomicBool::new(inbox.len() > 0),
                searching_workers: AtomicU32::new(0),
                inbox: Mutex::new(Inbox::new(inbox, outbox.len(), bound)),
            }),
            outbox: CachePadded::new(ConsumerSide {
                taken: AtomicUsize::new(0),
                has_bound: AtomicBool::new(bound.is_some()),
                ring: Mutex::new(outbox),
                last_swap: AtomicUsize::new(0),
            }),
            producers_wait: CachePadded::new(AtomicBool::new(false)),
            full_mark: CachePadded::new(AtomicUsize::new(NOT_FULL)),
            clock: Clock::system(),
        }
    }

    /// The same queue with another clock.
    pub(super) fn with_clock(self, clock: Clock) -> Self {
        TwoLock { clock, ..self }
    }

    /// The same queue with throttled wake-ups (FIFO-6).
    pub(super) fn throttle_wakeups(self) -> Self {
        lock(&self.inbox.inbox).notified = Some(0);
        self
    }

    /// Adds an element, for which there is room, and wakes a consumer for it (FIFO-2).
    #[inline]
    fn push(&self, mut inbox: MutexGuard<'_, Inbox<T>>, element: T) {
        let was_empty = inbox.ring.len() == 0;
        inbox.push(element);
        if !inbox.has_room() {
            self.update_full_mark(&mut inbox);
        }
        if was_empty {
            // Last: a consumer that sees it takes the cache line, and then needs the lock.
            self.inbox.is_ready.store(true, Ordering::Relaxed);
        }
        let none_searches = || self.inbox.searching_workers.load(Ordering::Relaxed) == 0;
        if !inbox.consumers.is_empty()
            && (inbox.is_backlog_step() || inbox.needs_consumer() && none_searches())
            && !self.take_push_for_self()
        {
            self.notify_consumer(inbox);
        }
    }

    #[cold]
    fn notify_consumer(&self, mut inbox: MutexGuard<'_, Inbox<T>>) {
        let consumer = inbox.pop_consumer();
        drop(inbox);
        WakeList::of(consumer.map(|consumer| consumer.waker)).wake();
    }

    #[inline]
    pub(super) fn offer(&self, element: T, _: End) -> Result<(), OfferError<T>> {
        if !self.is_full() {
            let mut inbox = lock(&self.inbox.inbox);
            if !inbox.has_room() && inbox.is_room_thin {
                inbox = self.pause_for_room(inbox);
            }
            if self.find_room(&mut inbox) {
                self.push(inbox, element);
                return Ok(());
            }
        }
        Err(OfferError {
            element,
            reason: Reason::Full,
        })
    }

    #[inline]
    pub(super) fn poll(&self, end: End) -> Option<T> {
        let mut outbox = lock(&self.outbox.ring);
        let Some(element) = outbox.pop(&self.clock, end) else {
            // A push that completed before this call has set `is_ready`.
            return if self.inbox.is_ready.load(Ordering::Relaxed) {
                self.poll_inbox(outbox, end)
            } else {
                None
            };
        };
        self.complete_take(outbox, 1);
        Some(element)
    }

    pub(super) fn poll_offer(
        &self,
        element: &mut Option<T>,
        _: End,
        slot: &mut WaitSlot,
        waker: &Waker,
    ) -> Offered {
        if element.is_none() {
            return Offered::In;
        }
        let mut clone = None;
        loop {
            let mut inbox = lock(&self.inbox.inbox);
            let mut stale = None;
            if !self.find_room(&mut inbox) {
                let listed = enlist(&mut inbox.producers, slot, waker, &mut clone, 1);
                let Some((_, replaced)) = listed else {
                    drop(inbox);
                    clone = Some(waker.clone());
                    continue;
                };
                stale = replaced;
                // FIFO-3: first the flag, then the last read of `taken`.
                self.update_producers_wait(&inbox);
                self.refresh_taken(&mut inbox);
                if !inbox.has_room() {
                    drop(inbox);
                    catch_panic::drop_wakers([stale, clone]);
                    return Offered::Wait;
                }
            }
            let removed = slot
                .ticket
                .take()
                .and_then(|own| inbox.producers.remove(own));
            self.update_producers_wait(&inbox);
            match element.take() {
                Some(element) => self.push(inbox, element),
                None => drop(inbox),
            }
            catch_panic::drop_wakers([removed.map(|producer| producer.waker), stale, clone]);
            return Offered::In;
        }
    }

    pub(super) fn poll_take(&self, end: End, slot: &mut WaitSlot, waker: &Waker) -> Taken<T> {
        let mut clone = None;
        let mut is_acknowledged = false;
        loop {
            let mut outbox = lock(&self.outbox.ring);
            let mut inbox = lock(&self.inbox.inbox);
            // FIFO-6: a consumer that has a ticket and is not listed was notified.
            let was_notified = slot
                .ticket
                .is_some_and(|own| inbox.consumers.find(own).is_none());
            if was_notified && !std::mem::replace(&mut is_acknowledged, true) {
                inbox.acknowledge();
            }
            if outbox.len() > 0 || self.refill(&mut inbox, &mut outbox) {
                let removed = slot
                    .ticket
                    .take()
                    .and_then(|own| inbox.consumers.remove(own));
                let has_more = outbox.len() > 1 || inbox.ring.len() > 0;
                let is_throttled = inbox.notified.is_some();
                let next = if is_throttled && has_more && inbox.needs_consumer() {
                    inbox.pop_consumer()
                } else {
                    None
                };
                drop(inbox);
                let element = outbox.pop(&self.clock, end);
                self.complete_take(outbox, usize::from(element.is_some()));
                WakeList::of(next.map(|consumer| consumer.waker)).wake();
                catch_panic::drop_wakers([removed.map(|consumer| consumer.waker), clone]);
                match element {
                    Some(element) => return Taken::Got(element),
                    None => unreachable!("the outbox is locked and not empty"),
                }
            }
            let listed = enlist(&mut inbox.consumers, slot, waker, &mut clone, 0);
            drop(inbox);
            drop(outbox);
            match listed {
                Some((_, stale)) => {
                    catch_panic::drop_wakers([stale, clone]);
                    return Taken::Wait(Deadline::NEVER);
                }
                None => clone = Some(waker.clone()),
            }
        }
    }

    pub(super) fn leave_offer(&self, slot: &mut WaitSlot) {
        let Some(ticket) = slot.ticket.take() else {
            return;
        };
        let mut inbox = lock(&self.inbox.inbox);
        let removed = inbox.producers.remove(ticket);
        // FIFO-4: a notified producer that leaves notifies another.
        self.wake_producers(inbox, usize::from(removed.is_none()));
        catch_panic::drop_wakers([removed.map(|producer| producer.waker)]);
    }

    pub(super) fn leave_take(&self, slot: &mut WaitSlot) {
        let Some(ticket) = slot.ticket.take() else {
            return;
        };
        let mut inbox = lock(&self.inbox.inbox);
        let removed = inbox.consumers.remove(ticket);
        self.refresh_taken(&mut inbox);
        if removed.is_none() {
            inbox.acknowledge();
        }
        // FIFO-4: a notified consumer that leaves wakes another, if there may be an element.
        if removed.is_none() && inbox.has_elements() && inbox.needs_consumer() {
            self.notify_consumer(inbox);
        } else {
            drop(inbox);
        }
        catch_panic::drop_wakers([removed.map(|consumer| consumer.waker)]);
    }

    /// Locks both boxes in the order of FIFO-1, and refreshes `taken_seen`.
    fn lock_both(&self) -> (MutexGuard<'_, Ring<T>>, MutexGuard<'_, Inbox<T>>) {
        let outbox = lock(&self.outbox.ring);
        let mut inbox = lock(&self.inbox.inbox);
        self.refresh_taken(&mut inbox);
        (outbox, inbox)
    }

    pub(super) fn len(&self) -> usize {
        let (_outbox, inbox) = self.lock_both();
        inbox.len()
    }

    pub(super) fn bound(&self) -> Option<u64> {
        lock(&self.inbox.inbox).bound().map(|bound| bound as u64)
    }

    /// The remaining capacity; `None` if there is no bound.
    pub(super) fn left(&self) -> Option<u64> {
        let (_outbox, inbox) = self.lock_both();
        inbox.bound().map(|_| inbox.free() as u64)
    }

    pub(super) fn set_bound(&self, bound: u64) -> Result<(), CapacityError> {
        if bound == 0 {
            return Err(CapacityError::Zero);
        }
        // Both locks, so that consumers see a first bound.
        let (outbox, mut inbox) = self.lock_both();
        self.outbox.has_bound.store(true, Ordering::Relaxed);
        drop(outbox);
        inbox.set_bound(usize::try_from(bound).unwrap_or(usize::MAX));
        self.wake_producers(inbox, usize::MAX);
        Ok(())
    }

    /// Accepts nothing more, ever. Waiting producers are not notified: that is up to the caller.
    pub(super) fn seal(&self) {
        lock(&self.inbox.inbox).seal();
    }

    pub(super) fn is_sealed(&self) -> bool {
        lock(&self.inbox.inbox).is_sealed()
    }

    pub(super) fn visit(&self, end: End, see: &mut dyn FnMut(&T) -> ControlFlow<()>) {
        let see = &mut |element: &T| except_locks(|| see(element));
        let (outbox, inbox) = self.lock_both();
        let mut continues = true;
        outbox.visit(end, &mut |element| {
            let flow = see(element);
            continues = flow.is_continue();
            flow
        });
        if continues {
            inbox.ring.visit(end, see);
        }
    }

    pub(super) fn remove_where(
        &self,
        end: End,
        limit: usize,
        unwanted: &mut dyn FnMut(&T) -> bool,
    ) -> Vec<T> {
        let unwanted = &mut |element: &T| except_locks(|| unwanted(element));
        let (mut outbox, mut inbox) = self.lock_both();
        outbox.append(&mut inbox.ring);
        self.inbox.is_ready.store(false, Ordering::Relaxed);
        let removed = outbox.remove_where(end, limit, unwanted);
        drop(inbox);
        self.complete_take(outbox, removed.len());
        removed
    }

    /// Whether it is empty and bursts have left memory in it.
    pub(super) fn has_surplus(&self) -> bool {
        let (outbox, inbox) = self.lock_both();
        outbox.has_surplus() || inbox.ring.has_surplus()
    }

    /// Frees what bursts have left, if the queue is empty.
    pub(super) fn trim(&self) {
        let (mut outbox, mut inbox) = self.lock_both();
        outbox.trim();
        inbox.ring.trim();
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// While the inbox is empty a producer is told to try: an offer reads the full mark itself, and a consumer that
    /// polls for an element does not take the mark's cache line from the producer that writes it next.
    #[inline]
    pub(super) fn hint(&self) -> Option<QueueHint> {
        let is_ready = self.inbox.is_ready.load(Ordering::Relaxed);
        Some(QueueHint {
            is_ready,
            has_room: !is_ready || !self.is_full(),
        })
    }

    /// The numbers of waiting consumers and of waiting producers.
    pub(super) fn waiting(&self) -> (usize, usize) {
        let inbox = lock(&self.inbox.inbox);
        (inbox.consumers.len(), inbox.producers.len())
    }

    /// The Debug text of a flavor. It counts the elements, which need not implement `Debug`.
    pub(super) fn describe(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (len, bound, (consumers, producers)) = (self.len(), self.bound(), self.waiting());
        super::monitor::describe(name, len, bound, consumers, producers, f)
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests;
