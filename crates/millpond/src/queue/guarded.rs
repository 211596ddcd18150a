//! The engine of the flavors that hold elements: a store behind a lock, and who waits for it.
//!
//! A flavor is this engine around a [`Store`]. Locks are held for a few instructions; a wake-up, the
//! one thing here that costs thousands, happens only if somebody really waits, and after the lock
//! is free. Who finds the queue empty or full looks again for a moment ([`super::wait`]) before it
//! comes here to wait.
//!
//! # The protocol
//!
//! Takers wait in one list and putters in another, both under the lock of the store. A waiter is in
//! its list, or it has been *called* (its waker was taken out of the list), or it is gone. Called is
//! not served: somebody else may take what it was called for, and then it goes back to the place
//! that it had.
//!
//! # Invariants
//!
//! - **Q1** A waiter enters its list in the same locked step in which it found nothing.
//! - **Q2** While takers are listed, there are no more elements to take than takers who have been
//!   called and have not come. So every push calls one taker, if one is listed, and nobody calls a
//!   second one for the same element.
//! - **Q3** Likewise, while putters are listed whose elements fit, as much room is promised to
//!   putters who have been called. So whoever makes room calls those who fit into it, the oldest
//!   first: for each element taken out one, and when weights differ as many as fit.
//! - **Q4** A waiter that leaves after it was called calls another in its place, if there is still
//!   something to be had. That covers time-outs, interrupts, dropped futures, and panics of a
//!   comparator in the midst of a take.
//! - **Q5** In a timed store the elements become ready without a push. One of the listed takers, the
//!   leader, has been told the time to look again; the others sleep without one. While takers are
//!   listed and the store is not empty there is a leader who knows the right time, or a taker who
//!   has been called. So a push that changes that time, a take, and a leader that leaves each call
//!   one taker, which then takes or leads. A push calls the leader itself: its time is the one that
//!   is wrong now. Hence the leader is always listed, and no other listed taker has a time: a taker
//!   gets one only in [`Core::watch`], which makes it the leader, and it stops being the leader only
//!   when it is called, is served, leaves, or looks again and is told another time (none, if the
//!   store is empty). So however elements and takers come and go, one thread sleeps until the first
//!   element is due.
//! - **Q6** No waker is cloned, called or dropped under the lock, and no element is dropped under
//!   it. Comparators, predicates and visitors do run under it; they must not use the queue. Their
//!   panics unwind through the guard, which unlocks, and leave the store as it was (S1).

use super::glance::Signs;
use super::line::{Calls, Waiter, list_waiter, lock};
use super::store::{End, Store};
use super::{CapacityError, Glance, Offered, Place, Reason, Refused, Taken};
use crate::time::{Clock, Deadline};
use millpond_raw::quiet;
use millpond_raw::sync::{Mutex, MutexGuard};
use millpond_raw::user_code::except_locks;
use millpond_raw::waits::{List, Ticket};
use std::fmt;
use std::ops::ControlFlow;
use std::task::Waker;

/// A store behind a lock, and who waits for it.
pub(super) struct Guarded<S: Store> {
    core: Mutex<Core<S>>,
    signs: Signs,
    clock: Clock,
    stamper: S::Stamper,
}

struct Core<S> {
    store: S,
    /// In elements, or in weight.
    bound: Option<u64>,
    /// Nothing more comes in.
    is_sealed: bool,
    takers: List<Waiter>,
    putters: List<Waiter>,
    /// Q5.
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
        // What weighs nothing fits, also while more is in than a lowered bound allows.
        let is_full = weight > 0 && self.store.used() > bound - weight;
        match self.is_sealed || is_full {
            true => Room::Later,
            false => Room::Free,
        }
    }

    /// Takes an element in. Returns whether a taker is to be called for it (Q2, Q5).
    #[inline]
    #[must_use = "a taker that is not called sleeps on"]
    fn push(&mut self, element: S::Element, stamp: S::Stamp, spot: S::Spot) -> bool {
        self.store.push(element, stamp, spot) && !self.takers.is_empty()
    }

    /// Calls the putters for whom there is room, after `freed` elements went out (Q3).
    fn call_putters(&mut self, freed: usize) -> Calls {
        let mut calls = Calls::default();
        let Some(mut free) = self.limit().checked_sub(self.store.used()) else {
            return calls;
        };
        if self.is_sealed {
            return calls;
        }
        if S::UNIT {
            free = free.min(freed as u64);
        }
        while let Some(putter) = self.putters.pop_where(|putter| putter.weight <= free) {
            free -= putter.weight;
            calls.add(putter.waker);
        }
        calls
    }

    /// Calls one taker (Q2): the leader, if there is one (Q5), or else the oldest.
    fn call_taker(&mut self) -> Calls {
        let leader = self.leader.take();
        let leader = leader.and_then(|leader| self.takers.remove(leader));
        let taker = leader.or_else(|| self.takers.pop());
        Calls::of(taker.map(|taker| taker.waker))
    }

    /// Calls a taker if one must take over the watch (Q5) or may take what is there (Q4).
    fn pass_on(&mut self) -> Calls {
        match self.store.len() > 0 && self.leader.is_none() {
            true => self.call_taker(),
            false => Calls::default(),
        }
    }

    /// The taker at `ticket` has found nothing ready: tells it when to look again (Q5).
    fn watch(&mut self, ticket: Ticket) -> Deadline {
        if !S::TIMED || self.leader.is_some_and(|leader| leader != ticket) {
            return Deadline::NEVER;
        }
        self.leader = (self.store.len() > 0).then_some(ticket);
        self.store.ready_at()
    }

    /// A taker is done with its place. Returns what was in the list, to be dropped outside.
    fn strike_taker(&mut self, place: &mut Place) -> Option<Waiter> {
        let ticket = place.ticket.take()?;
        if self.leader == Some(ticket) {
            self.leader = None;
        }
        self.takers.remove(ticket)
    }
}

impl<S: Store> Guarded<S> {
    pub(super) fn new(store: S, bound: Option<u64>, stamper: S::Stamper) -> Self {
        let guarded = Guarded {
            signs: Signs::new(),
            core: Mutex::new(Core {
                store,
                bound,
                is_sealed: false,
                takers: List::new(),
                putters: List::new(),
                leader: None,
            }),
            clock: Clock::system(),
            stamper,
        };
        guarded.note(&guarded.lock());
        guarded
    }

    /// The same, by another clock.
    pub(super) fn with_clock(self, clock: Clock) -> Self {
        Guarded { clock, ..self }
    }

    /// The same, with other stamps.
    pub(super) fn with_stamper(self, stamper: S::Stamper) -> Self {
        Guarded { stamper, ..self }
    }

    #[inline]
    #[track_caller]
    fn lock(&self) -> MutexGuard<'_, Core<S>> {
        lock(&self.core)
    }

    /// Writes down what a passer-by may want to know.
    #[inline]
    fn note(&self, core: &Core<S>) {
        self.signs
            .set(core.store.len() > 0, core.store.used() < core.limit());
    }

    /// What a change ends with if nobody is to be woken: note it, unlock.
    #[inline]
    fn settle(&self, core: MutexGuard<'_, Core<S>>) {
        self.note(&core);
    }

    /// What every other change ends with: note it, unlock, wake.
    fn finish(&self, core: MutexGuard<'_, Core<S>>, calls: Calls) {
        self.settle(core);
        calls.wake();
    }

    /// Calls a taker for what has been pushed.
    #[cold]
    fn finish_push(&self, mut core: MutexGuard<'_, Core<S>>) {
        let calls = core.call_taker();
        self.finish(core, calls);
    }

    /// Calls a putter for the room that one element has left.
    #[cold]
    fn finish_pop(&self, mut core: MutexGuard<'_, Core<S>>) {
        let calls = core.call_putters(1);
        self.finish(core, calls);
    }

    #[inline]
    pub(super) fn offer(&self, element: S::Element, end: End) -> Result<(), Refused<S::Element>> {
        let stamp = S::stamp(&self.stamper, &self.clock, &element);
        self.offer_stamped(element, stamp, end)
    }

    #[inline]
    pub(super) fn offer_stamped(
        &self,
        element: S::Element,
        stamp: S::Stamp,
        end: End,
    ) -> Result<(), Refused<S::Element>> {
        let mut core = self.lock();
        let reason = match core.room_for(S::weight(stamp)) {
            Room::Free => {
                let spot = core.store.spot(&element, stamp, end);
                match core.push(element, stamp, spot) {
                    false => self.settle(core),
                    true => self.finish_push(core),
                }
                return Ok(());
            }
            Room::Later => Reason::Full,
            Room::Never(reason) => reason,
        };
        drop(core);
        Err(Refused { element, reason })
    }

    #[inline]
    pub(super) fn poll(&self, end: End) -> Option<S::Element> {
        let mut core = self.lock();
        let element = core.store.pop(&self.clock, end)?;
        match core.putters.is_empty() {
            true => self.settle(core),
            false => self.finish_pop(core),
        }
        Some(element)
    }

    pub(super) fn poll_offer(
        &self,
        element: &mut Option<S::Element>,
        end: End,
        place: &mut Place,
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
                    let struck = place.ticket.take().and_then(|own| core.putters.remove(own));
                    let calls_taker = element
                        .take()
                        .is_some_and(|element| core.push(element, stamp, spot));
                    match calls_taker {
                        false => self.settle(core),
                        true => self.finish_push(core),
                    }
                    quiet::drop((struck.map(|putter| putter.waker), clone));
                    return Offered::In;
                }
                Room::Never(reason) => {
                    drop(core);
                    quiet::drop(clone);
                    self.leave_offer(place);
                    return Offered::Never(reason);
                }
                Room::Later => {}
            }
            let listed = list_waiter(&mut core.putters, place, waker, &mut clone, weight);
            if let Some((_, stale)) = listed {
                // Q4: it may have been called for room in which a lighter one fits.
                let calls = match S::UNIT {
                    true => Calls::default(),
                    false => core.call_putters(1),
                };
                self.finish(core, calls);
                quiet::drop((stale, clone));
                return Offered::Wait;
            }
            drop(core);
            clone = Some(waker.clone());
        }
    }

    pub(super) fn poll_take(
        &self,
        end: End,
        place: &mut Place,
        waker: &Waker,
    ) -> Taken<S::Element> {
        let mut clone = None;
        loop {
            let mut core = self.lock();
            if let Some(element) = core.store.pop(&self.clock, end) {
                let struck = core.strike_taker(place);
                let mut calls = core.call_putters(1);
                if S::TIMED {
                    calls = calls.and(core.pass_on());
                }
                self.finish(core, calls);
                // It may be the timer's thread that polls: a waker of the user's may do that.
                quiet::drop_waker(struck.map(|taker| taker.waker));
                quiet::drop_waker(clone);
                return Taken::Got(element);
            }
            let listed = list_waiter(&mut core.takers, place, waker, &mut clone, 0);
            if let Some((ticket, stale)) = listed {
                let again = core.watch(ticket);
                drop(core);
                quiet::drop_waker(stale);
                quiet::drop_waker(clone);
                return Taken::Wait(again);
            }
            drop(core);
            clone = Some(waker.clone());
        }
    }

    pub(super) fn leave_offer(&self, place: &mut Place) {
        let Some(ticket) = place.ticket.take() else {
            return;
        };
        let mut core = self.lock();
        let struck = core.putters.remove(ticket);
        let calls = match struck {
            Some(_) => Calls::default(),
            None => core.call_putters(1),
        };
        self.finish(core, calls);
        quiet::drop(struck.map(|putter| putter.waker));
    }

    pub(super) fn leave_take(&self, place: &mut Place) {
        if place.ticket.is_none() {
            return;
        }
        let mut core = self.lock();
        let led = S::TIMED && core.leader == place.ticket;
        let struck = core.strike_taker(place);
        let calls = match struck.is_none() || led {
            true => core.pass_on(),
            false => Calls::default(),
        };
        self.finish(core, calls);
        quiet::drop(struck.map(|taker| taker.waker));
    }

    pub(super) fn len(&self) -> usize {
        self.lock().store.len()
    }

    /// When there will be an element to take, if none comes in.
    pub(super) fn ready_at(&self) -> Deadline {
        self.lock().store.ready_at()
    }

    pub(super) fn used(&self) -> u64 {
        self.lock().store.used()
    }

    pub(super) fn bound(&self) -> Option<u64> {
        self.lock().bound
    }

    /// What is left of the bound; `None` if there is none.
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
        let mut calls = core.call_putters(usize::MAX);
        // Who can never fit any more waits for nothing: it is called to hear so.
        while let Some(putter) = core.putters.pop_where(|putter| putter.weight > bound) {
            calls.add(putter.waker);
        }
        self.finish(core, calls);
        Ok(())
    }

    /// Takes nothing more in, ever. Who waits for room is not told: that is up to the sealer.
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
        let calls = core.call_putters(removed.len());
        self.finish(core, calls);
        removed
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(super) fn glance(&self) -> Option<Glance> {
        (!S::TIMED).then(|| self.signs.glance())
    }

    /// How many wait for an element, and how many for room.
    pub(super) fn waiting(&self) -> (usize, usize) {
        let core = self.lock();
        (core.takers.len(), core.putters.len())
    }
}

/// The bound of a queue that may hold so many elements.
pub(super) fn bound(capacity: usize) -> Result<u64, CapacityError> {
    match capacity {
        0 => Err(CapacityError::Zero),
        some => Ok(some as u64),
    }
}

/// A bound as a number of elements.
pub(super) fn counted(bound: u64) -> usize {
    usize::try_from(bound).unwrap_or(usize::MAX)
}

impl<S: Store> Guarded<S> {
    /// The Debug text of a flavor. Its elements need not have one, so it counts them.
    pub(super) fn describe(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let core = self.lock();
        let (len, bound) = (core.store.len(), core.bound);
        let (takers, putters) = (core.takers.len(), core.putters.len());
        drop(core);
        describe(name, len, bound, takers, putters, f)
    }
}

/// The Debug text of every flavor that has an engine.
pub(super) fn describe(
    name: &str,
    len: usize,
    bound: Option<u64>,
    takers: usize,
    putters: usize,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    f.debug_struct(name.split('<').next().unwrap_or(name))
        .field("len", &len)
        .field("bound", &bound)
        .field("takers", &takers)
        .field("putters", &putters)
        .finish()
}
