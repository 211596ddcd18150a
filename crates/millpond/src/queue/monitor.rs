//! The core of the flavors with an order of their own: a store and its waiters under one lock.
//!
//! A flavor is this core around a [`Store`]. The lock is held for a few instructions. A wake-up costs thousands,
//! so there is one only for a waiter that is listed, and after unlocking. A thread that finds the queue empty or
//! full backs off ([`super::wait`]) before it waits here.
//!
//! # The protocol
//!
//! Consumers wait in one list and producers in another, both under the lock of the store. A waiter is *listed*, or
//! *notified* (its waker was taken out of the list), or gone. A notified waiter has no claim: another thread may
//! take its element or its room first, and then the waiter returns to its old position in the list.
//!
//! # Invariants
//!
//! - **MONITOR-1** A waiter enters its list in the same critical section in which it found nothing.
//! - **MONITOR-2** While consumers are listed, there are at most as many available elements as notified consumers.
//!   So every push notifies one listed consumer, and no two are notified for one element.
//! - **MONITOR-3** Likewise, while producers are listed whose elements fit, notified producers account for the
//!   free room. So a thread that makes room notifies the producers that fit into it, oldest first: one for each
//!   element taken or, if weights differ, as many as fit.
//! - **MONITOR-4** A notified waiter that leaves notifies another if something is still available. This covers
//!   timeouts, interrupts, dropped futures, and panics of a comparator during a take.
//! - **MONITOR-5** In a timed store elements become available without a push. One listed consumer, the *leader*,
//!   has a wake-up time; the others, the followers, have none. While consumers are listed and the store is not
//!   empty, there is a leader with the right time or a notified consumer. So a push that changes that time, a
//!   take, and a leader that leaves each notify one consumer, which then takes or leads. A push notifies the
//!   leader, whose time is now wrong. Hence the leader is always listed, and no other listed consumer has a time:
//!   a consumer gets one only in [`Core::lead_or_follow`], which makes it the leader, and stops leading only when
//!   it is notified, is served, leaves, or polls again and gets another time (none if the store is empty). So
//!   one thread sleeps until the first element is due, however elements and consumers come and go.
//! - **MONITOR-6** No waker is cloned, called or dropped under the lock, and no element is dropped under it.
//!   Comparators, predicates and visitors do run under it and must not use the queue. Their panics unwind through
//!   the guard, which unlocks, and leave the store as it was (STORE-1).

use super::hint::HintWord;
use super::store::{End, Store};
use super::wake_list::{Waiter, WakeList, enlist, lock};
use super::{CapacityError, OfferError, Offered, QueueHint, Reason, Taken, WaitSlot};
use crate::time::{Clock, Deadline};
use millpond_raw::catch_panic;
use millpond_raw::sync::{Mutex, MutexGuard};
use millpond_raw::user_code::except_locks;
use millpond_raw::wait_queue::{Ticket, TicketQueue};
use std::fmt;
use std::ops::ControlFlow;
use std::task::Waker;

/// A store and its waiters under one lock.
pub(super) struct Monitor<S: Store> {
    core: Mutex<Core<S>>,
    hint: HintWord,
    clock: Clock,
    stamper: S::Stamper,
}

struct Core<S> {
    store: S,
    /// In elements or in weight.
    bound: Option<u64>,
    /// Whether every offer fails from now on.
    is_sealed: bool,
    consumers: TicketQueue<Waiter>,
    producers: TicketQueue<Waiter>,
    /// MONITOR-5.
    leader: Option<Ticket>,
}

/// Whether there is room.
enum Room {
    Free,
    Later,
    Never(Reason),
}

impl<S: Store> Core<S> {
    fn limit(&self) -> u64 {
        self.bound.unwrap_or(u64::MAX)
    }

    #[inline]
    fn room_for(&self, weight: u64) -> Room {
        let bound = self.limit();
        if weight > bound {
            return Room::Never(Reason::TooHeavy { weight, bound });
        }
        // An element of weight 0 fits even if the bound was lowered below the weight that is in use.
        let is_full = weight > 0 && self.store.used() > bound - weight;
        if self.is_sealed || is_full {
            Room::Later
        } else {
            Room::Free
        }
    }

    /// Adds an element. Returns whether a consumer must be notified (MONITOR-2, MONITOR-5).
    #[inline]
    #[must_use = "a consumer that is not notified sleeps for ever"]
    fn push(&mut self, element: S::Element, stamp: S::Stamp, spot: S::Spot) -> bool {
        self.store.push(element, stamp, spot) && !self.consumers.is_empty()
    }

    /// Notifies the producers whose elements fit, after `freed` elements were taken (MONITOR-3).
    fn notify_producers(&mut self, freed: usize) -> WakeList {
        let mut wakes = WakeList::default();
        let Some(mut free) = self.limit().checked_sub(self.store.used()) else {
            return wakes;
        };
        if self.is_sealed {
            return wakes;
        }
        if S::UNIT {
            free = free.min(freed as u64);
        }
        while let Some(producer) = self.producers.pop_where(|producer| producer.weight <= free) {
            free -= producer.weight;
            wakes.add(producer.waker);
        }
        wakes
    }

    /// Notifies one consumer (MONITOR-2): the leader if there is one (MONITOR-5), else the oldest.
    fn notify_consumer(&mut self) -> WakeList {
        let leader = self.leader.take();
        let leader = leader.and_then(|leader| self.consumers.remove(leader));
        let consumer = leader.or_else(|| self.consumers.pop());
        WakeList::of(consumer.map(|consumer| consumer.waker))
    }

    /// Notifies a consumer if one must lead (MONITOR-5) or may find an element (MONITOR-4).
    fn notify_successor(&mut self) -> WakeList {
        if self.store.len() > 0 && self.leader.is_none() {
            self.notify_consumer()
        } else {
            WakeList::default()
        }
    }

    /// The time at which the consumer at `ticket`, which has found nothing, polls again (MONITOR-5).
    fn lead_or_follow(&mut self, ticket: Ticket) -> Deadline {
        if !S::TIMED || self.leader.is_some_and(|leader| leader != ticket) {
            return Deadline::NEVER;
        }
        self.leader = (self.store.len() > 0).then_some(ticket);
        self.store.ready_at()
    }

    /// Removes a consumer. Returns its list entry, to be dropped after unlocking.
    fn remove_consumer(&mut self, slot: &mut WaitSlot) -> Option<Waiter> {
        let ticket = slot.ticket.take()?;
        if self.leader == Some(ticket) {
            self.leader = None;
        }
        self.consumers.remove(ticket)
    }
}

impl<S: Store> Monitor<S> {
    pub(super) fn new(store: S, bound: Option<u64>, stamper: S::Stamper) -> Self {
        let monitor = Monitor {
            hint: HintWord::new(),
            core: Mutex::new(Core {
                store,
                bound,
                is_sealed: false,
                consumers: TicketQueue::new(),
                producers: TicketQueue::new(),
                leader: None,
            }),
            clock: Clock::system(),
            stamper,
        };
        monitor.update_hint(&monitor.lock());
        monitor
    }

    /// The same queue with another clock.
    pub(super) fn with_clock(self, clock: Clock) -> Self {
        Monitor { clock, ..self }
    }

    /// The same queue with another stamper.
    pub(super) fn with_stamper(self, stamper: S::Stamper) -> Self {
        Monitor { stamper, ..self }
    }

    #[inline]
    #[track_caller]
    fn lock(&self) -> MutexGuard<'_, Core<S>> {
        lock(&self.core)
    }

    /// Updates the hint.
    #[inline]
    fn update_hint(&self, core: &Core<S>) {
        self.hint
            .set(core.store.len() > 0, core.store.used() < core.limit());
    }

    /// Ends a change that wakes nobody: updates the hint and unlocks.
    #[inline]
    fn unlock(&self, core: MutexGuard<'_, Core<S>>) {
        self.update_hint(&core);
    }

    /// Ends a change: updates the hint, unlocks and wakes.
    fn unlock_and_wake(&self, core: MutexGuard<'_, Core<S>>, wakes: WakeList) {
        self.unlock(core);
        wakes.wake();
    }

    /// Ends a push that notifies a consumer.
    #[cold]
    fn finish_push(&self, mut core: MutexGuard<'_, Core<S>>) {
        let wakes = core.notify_consumer();
        self.unlock_and_wake(core, wakes);
    }

    /// Ends a pop that notifies a producer.
    #[cold]
    fn finish_pop(&self, mut core: MutexGuard<'_, Core<S>>) {
        let wakes = core.notify_producers(1);
        self.unlock_and_wake(core, wakes);
    }

    #[inline]
    pub(super) fn offer(
        &self,
        element: S::Element,
        end: End,
    ) -> Result<(), OfferError<S::Element>> {
        let stamp = S::stamp(&self.stamper, &self.clock, &element);
        self.offer_stamped(element, stamp, end)
    }

    #[inline]
    pub(super) fn offer_stamped(
        &self,
        element: S::Element,
        stamp: S::Stamp,
        end: End,
    ) -> Result<(), OfferError<S::Element>> {
        let mut core = self.lock();
        let reason = match core.room_for(S::weight(stamp)) {
            Room::Free => {
                let spot = core.store.spot(&element, stamp, end);
                if core.push(element, stamp, spot) {
                    self.finish_push(core);
                } else {
                    self.unlock(core);
                }
                return Ok(());
            }
            Room::Later => Reason::Full,
            Room::Never(reason) => reason,
        };
        drop(core);
        Err(OfferError { element, reason })
    }

    #[inline]
    pub(super) fn poll(&self, end: End) -> Option<S::Element> {
        let mut core = self.lock();
        let element = core.store.pop(&self.clock, end)?;
        if core.producers.is_empty() {
            self.unlock(core);
        } else {
            self.finish_pop(core);
        }
        Some(element)
    }

    pub(super) fn poll_offer(
        &self,
        element: &mut Option<S::Element>,
        end: End,
        slot: &mut WaitSlot,
        waker: &Waker,
    ) -> Offered {
        let Some(offered) = element.as_ref() else {
            return Offered::In;
        };
        let stamp = S::stamp(&self.stamper, &self.clock, offered);
        let weight = S::weight(stamp);
        let mut clone = None;
        loop {
            let mut core = self.lock();
            match core.room_for(weight) {
                Room::Free => {
                    let spot = core.store.spot(offered, stamp, end);
                    let removed = slot
                        .ticket
                        .take()
                        .and_then(|own| core.producers.remove(own));
                    let wakes_consumer = element
                        .take()
                        .is_some_and(|element| core.push(element, stamp, spot));
                    if wakes_consumer {
                        self.finish_push(core);
                    } else {
                        self.unlock(core);
                    }
                    catch_panic::drop_wakers([removed.map(|producer| producer.waker), clone]);
                    return Offered::In;
                }
                Room::Never(reason) => {
                    drop(core);
                    catch_panic::drop_wakers([clone]);
                    self.leave_offer(slot);
                    return Offered::Never(reason);
                }
                Room::Later => {}
            }
            let listed = enlist(&mut core.producers, slot, waker, &mut clone, weight);
            if let Some((_, stale)) = listed {
                // MONITOR-4: a lighter element may fit into the room that this producer was notified for.
                let wakes = if S::UNIT {
                    WakeList::default()
                } else {
                    core.notify_producers(1)
                };
                self.unlock_and_wake(core, wakes);
                catch_panic::drop_wakers([stale, clone]);
                return Offered::Wait;
            }
            drop(core);
            clone = Some(waker.clone());
        }
    }

    pub(super) fn poll_take(
        &self,
        end: End,
        slot: &mut WaitSlot,
        waker: &Waker,
    ) -> Taken<S::Element> {
        let mut clone = None;
        loop {
            let mut core = self.lock();
            if let Some(element) = core.store.pop(&self.clock, end) {
                let removed = core.remove_consumer(slot);
                let mut wakes = core.notify_producers(1);
                if S::TIMED {
                    wakes = wakes.and(core.notify_successor());
                }
                self.unlock_and_wake(core, wakes);
                catch_panic::drop_wakers([removed.map(|consumer| consumer.waker), clone]);
                return Taken::Got(element);
            }
            let listed = enlist(&mut core.consumers, slot, waker, &mut clone, 0);
            if let Some((ticket, stale)) = listed {
                let again = core.lead_or_follow(ticket);
                drop(core);
                catch_panic::drop_wakers([stale, clone]);
                return Taken::Wait(again);
            }
            drop(core);
            clone = Some(waker.clone());
        }
    }

    pub(super) fn leave_offer(&self, slot: &mut WaitSlot) {
        let Some(ticket) = slot.ticket.take() else {
            return;
        };
        let mut core = self.lock();
        let removed = core.producers.remove(ticket);
        let wakes = match removed {
            Some(_) => WakeList::default(),
            None => core.notify_producers(1),
        };
        self.unlock_and_wake(core, wakes);
        catch_panic::drop_wakers([removed.map(|producer| producer.waker)]);
    }

    pub(super) fn leave_take(&self, slot: &mut WaitSlot) {
        if slot.ticket.is_none() {
            return;
        }
        let mut core = self.lock();
        let led = S::TIMED && core.leader == slot.ticket;
        let removed = core.remove_consumer(slot);
        let wakes = if removed.is_none() || led {
            core.notify_successor()
        } else {
            WakeList::default()
        };
        self.unlock_and_wake(core, wakes);
        catch_panic::drop_wakers([removed.map(|consumer| consumer.waker)]);
    }

    pub(super) fn len(&self) -> usize {
        self.lock().store.len()
    }

    /// The time at which an element is available if none is pushed.
    pub(super) fn ready_at(&self) -> Deadline {
        self.lock().store.ready_at()
    }

    pub(super) fn used(&self) -> u64 {
        self.lock().store.used()
    }

    pub(super) fn bound(&self) -> Option<u64> {
        self.lock().bound
    }

    /// The remaining capacity; `None` if there is no bound.
    pub(super) fn left(&self) -> Option<u64> {
        let core = self.lock();
        core.bound
            .map(|bound| bound.saturating_sub(core.store.used()))
    }

    pub(super) fn set_bound(&self, bound: u64) -> Result<(), CapacityError> {
        if bound == 0 {
            return Err(CapacityError::Zero);
        }
        let mut core = self.lock();
        core.bound = Some(bound);
        let mut wakes = core.notify_producers(usize::MAX);
        // Producers whose elements can never fit any more are notified, so that their offers fail.
        while let Some(producer) = core.producers.pop_where(|producer| producer.weight > bound) {
            wakes.add(producer.waker);
        }
        self.unlock_and_wake(core, wakes);
        Ok(())
    }

    /// Accepts nothing more, ever. Waiting producers are not notified: that is up to the caller.
    pub(super) fn seal(&self) {
        self.lock().is_sealed = true;
    }

    pub(super) fn is_sealed(&self) -> bool {
        self.lock().is_sealed
    }

    pub(super) fn visit(&self, end: End, see: &mut dyn FnMut(&S::Element) -> ControlFlow<()>) {
        let see = &mut |element: &S::Element| except_locks(|| see(element));
        self.lock().store.visit(end, see);
    }

    pub(super) fn remove_where(
        &self,
        end: End,
        limit: usize,
        unwanted: &mut dyn FnMut(&S::Element) -> bool,
    ) -> Vec<S::Element> {
        let unwanted = &mut |element: &S::Element| except_locks(|| unwanted(element));
        let mut core = self.lock();
        let removed = core.store.remove_where(end, limit, unwanted);
        let wakes = core.notify_producers(removed.len());
        self.unlock_and_wake(core, wakes);
        removed
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(super) fn hint(&self) -> Option<QueueHint> {
        (!S::TIMED).then(|| self.hint.hint())
    }

    /// The numbers of waiting consumers and of waiting producers.
    pub(super) fn waiting(&self) -> (usize, usize) {
        let core = self.lock();
        (core.consumers.len(), core.producers.len())
    }
}

/// A capacity as a bound.
pub(super) fn bound(capacity: usize) -> Result<u64, CapacityError> {
    match capacity {
        0 => Err(CapacityError::Zero),
        some => Ok(some as u64),
    }
}

/// A bound as a capacity.
pub(super) fn counted(bound: u64) -> usize {
    usize::try_from(bound).unwrap_or(usize::MAX)
}

impl<S: Store> Monitor<S> {
    /// The Debug text of a flavor. It counts the elements, which need not implement `Debug`.
    pub(super) fn describe(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let core = self.lock();
        let (len, bound) = (core.store.len(), core.bound);
        let (consumers, producers) = (core.consumers.len(), core.producers.len());
        drop(core);
        describe(name, len, bound, consumers, producers, f)
    }
}

/// The Debug text of the flavors on both cores.
pub(super) fn describe(
    name: &str,
    len: usize,
    bound: Option<u64>,
    consumers: usize,
    producers: usize,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    f.debug_struct(name.split('<').next().unwrap_or(name))
        .field("len", &len)
        .field("bound", &bound)
        .field("waiting_consumers", &consumers)
        .field("waiting_producers", &producers)
        .finish()
}
