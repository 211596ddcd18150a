//! The engine of the plain first-in-first-out flavors: two boxes, two locks.
//!
//! Putters push into the *inbox* and takers pop out of the *outbox*, each behind a lock of its own.
//! A taker that finds the outbox empty swaps the two: one look at the other side's lines for as many
//! elements as have come meanwhile (`swap.rs`). So putters and takers hardly ever meet, and each side works
//! at the price of an undisturbed lock.
//!
//! ```text
//!            inbox (lock)                     outbox (lock)
//!   put --> [ g h i ]  -- swap when empty --> [ d e f ] --> take
//!            put = 9                           taken = 3          length = put - taken
//!            bound, putters, takers
//! ```
//!
//! # The bound
//!
//! Each side counts for itself, under its own lock: `put` in the inbox, `taken` beside the outbox.
//! A putter knows `taken` as it was when it last looked, and looks again before it says that there is
//! no room: the bound is exact, and nobody is refused while there is room.
//!
//! Refusals come in crowds. So a full queue shows a sign, and who offers something to it and finds
//! the sign up and nothing taken since is refused without a lock, and without a write (B8).
//!
//! # Invariants
//!
//! - **B1** The outbox's elements are older than the inbox's. Who needs both locks takes the
//!   outbox's first.
//! - **B2** Takers wait in a list under the inbox's lock, and enter it while they hold both locks and
//!   both boxes are empty. So a push sees every taker that did not see it, and calls one.
//! - **B3** Putters wait in a list under the inbox's lock. `putters_wait` says whether there is one.
//!   A putter raises it *before* its last look at `taken`, and a taker adds to `taken` *before* it
//!   looks at `putters_wait`: one of them sees the other, and the taker then calls one putter for
//!   each element that it took.
//! - **B4** As in [`super::guarded`]: called is not served. Who was called in vain goes back to the
//!   place it had; who was called and leaves calls another in its place.
//! - **B5** No waker is cloned, called or dropped under a lock, and no element is dropped under one.
//!   Predicates and visitors run under both locks; their panics find the boxes whole.
//! - **B6** *Thrifty* queues, whose takers are the workers of one pool, call one taker at a time: the
//!   one that has rested least, and the next only when that one has come. `called` counts those who
//!   were called and have not come. While an element is there and a taker is listed, somebody is
//!   called: a push calls if nobody is; who was called and comes, or leaves, calls another if
//!   elements are left. That needs takers who come when they are called, so it is not for futures,
//!   which may be called and not be polled for long. The system may keep a called one from coming, for
//!   instance behind the putter on the same processor. So a push calls another when [`PILE`] elements
//!   more have piled up in the inbox, whoever else was called or seeks (B7); to call more than one costs
//!   a wake-up and nothing else.
//! - **B7** A *seeker* is a taker of a thrifty queue that has found nothing and looks again for a moment
//!   before it rests. While there is one a push calls nobody. A seeker is uncounted under the inbox's
//!   lock; then, if it leaves elements behind, whether it has got one or not, it calls another or, if
//!   others seek, raises the sign for them. So a push either sees that nobody seeks, or is seen.
//! - **B8** The sign `full_at` is down, or shows a count such that `put` is ahead of it by the bound or
//!   more, or the queue is sealed. It is written under the inbox's lock, when the last place is taken,
//!   with every look at `taken` and with every new bound; `put` only grows, so that stays true. Who
//!   reads it and then finds that `taken` is what it shows was looking at a full queue in the moment of
//!   the first look: `taken` only grows, so it was not more then.
//!
//! # Orderings
//!
//! - `[B-room]` The four accesses of B3 are sequentially consistent: Dekker's pattern.
//! - `[B-full]` Raising the sign releases, reading it acquires: who sees it sees all that had been taken
//!   when it was raised (B8), also what the putter had not looked at.
//!
//! Everything else that is shared travels under a lock. Both checkers walk these (`queue.rs` in
//! `tests/loom_library` and `tests/shuttle_library`).

mod inbox;
mod newest;
mod room;
mod seek;
mod swap;

use self::inbox::Inbox;
use self::room::HAS_ROOM;
use super::line::{Calls, list_waiter, lock};
use super::ring::Ring;
use super::store::{End, Store};
use super::{CapacityError, Glance, Offered, Place, Reason, Refused, Taken};
use crate::time::{Clock, Deadline};
use millpond_raw::pad::Padded;
use millpond_raw::quiet;
use millpond_raw::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use millpond_raw::sync::{Mutex, MutexGuard};
use millpond_raw::user_code::except_locks;
use std::fmt;
use std::ops::ControlFlow;
use std::task::Waker;

/// Two boxes, and who waits for them.
pub(super) struct Twin<T: Send> {
    inbox: Padded<InSide<T>>,
    outbox: Padded<OutSide<T>>,
    /// B3. Written under the inbox's lock, and rarely.
    putters_wait: Padded<AtomicBool>,
    /// B8: what `room.rs` says. On a line of its own: as long as there is room nobody writes it.
    full_at: Padded<AtomicUsize>,
    clock: Clock,
}

/// The putters' side. What they write with every element lies together (`repr(C)`), and takers who
/// look out for an element look at a line that they need next anyway: sign, lock and ring are one line
/// if an element is one word, and so is a lone element.
#[repr(C)]
struct InSide<T> {
    /// A hint: the inbox is not empty. Written under the lock.
    is_ready: AtomicBool,
    /// B7: how many look out for an element. Counted down under the lock, read under the lock.
    seekers: AtomicU32,
    inbox: Mutex<Inbox<T>>,
}

/// The takers' side, likewise.
#[repr(C)]
struct OutSide<T> {
    /// How many elements have ever gone out; it wraps. Written under the lock.
    taken: AtomicUsize,
    /// Whether there is a bound: if not, nobody waits for room, and B3 is no business of takers. It
    /// comes and stays; written under both locks.
    has_bound: AtomicBool,
    ring: Mutex<Ring<T>>,
    /// How many elements the last swap has brought; see `swap.rs`. Written under the lock.
    swapped: AtomicUsize,
}

impl<T: Send> Twin<T> {
    /// Two boxes of one kind; `bound` elements may be in them together.
    pub(super) fn new(inbox: Ring<T>, outbox: Ring<T>, bound: Option<usize>) -> Self {
        Twin {
            inbox: Padded::new(InSide {
                is_ready: AtomicBool::new(inbox.len() > 0),
                seekers: AtomicU32::new(0),
                inbox: Mutex::new(Inbox::new(inbox, outbox.len(), bound)),
            }),
            outbox: Padded::new(OutSide {
                taken: AtomicUsize::new(0),
                has_bound: AtomicBool::new(bound.is_some()),
                ring: Mutex::new(outbox),
                swapped: AtomicUsize::new(0),
            }),
            putters_wait: Padded::new(AtomicBool::new(false)),
            full_at: Padded::new(AtomicUsize::new(HAS_ROOM)),
            clock: Clock::system(),
        }
    }

    /// The same, by another clock.
    pub(super) fn with_clock(self, clock: Clock) -> Self {
        Twin { clock, ..self }
    }

    /// The same, thrifty (B6).
    pub(super) fn thrifty(self) -> Self {
        lock(&self.inbox.inbox).called = Some(0);
        self
    }

    /// Takes an element in, for which there is room, and calls a taker for it (B2).
    #[inline]
    fn push(&self, mut inbox: MutexGuard<'_, Inbox<T>>, element: T) {
        let was_empty = inbox.ring.len() == 0;
        inbox.push(element);
        if !inbox.has_room() {
            self.show(&mut inbox);
        }
        if was_empty {
            // Last: who sees it takes the line away, and needs the lock, too.
            self.inbox.is_ready.store(true, Ordering::Relaxed);
        }
        let nobody_seeks = || self.inbox.seekers.load(Ordering::Relaxed) == 0;
        if !inbox.takers.is_empty()
            && (inbox.has_piled_up() || inbox.wants_taker() && nobody_seeks())
        {
            self.call_taker(inbox);
        }
    }

    #[cold]
    fn call_taker(&self, mut inbox: MutexGuard<'_, Inbox<T>>) {
        let taker = inbox.call();
        drop(inbox);
        Calls::of(taker.map(|taker| taker.waker)).wake();
    }

    #[inline]
    pub(super) fn offer(&self, element: T, _: End) -> Result<(), Refused<T>> {
        if !self.is_full() {
            let mut inbox = lock(&self.inbox.inbox);
            if self.has_room(&mut inbox) {
                self.push(inbox, element);
                return Ok(());
            }
        }
        Err(Refused {
            element,
            reason: Reason::Full,
        })
    }

    #[inline]
    pub(super) fn poll(&self, end: End) -> Option<T> {
        let mut outbox = lock(&self.outbox.ring);
        let Some(element) = outbox.pop(&self.clock, end) else {
            // Whoever put something in before this call has raised the sign.
            return match self.inbox.is_ready.load(Ordering::Relaxed) {
                true => self.poll_inbox(outbox, end),
                false => None,
            };
        };
        self.settle(outbox, 1);
        Some(element)
    }

    pub(super) fn poll_offer(
        &self,
        element: &mut Option<T>,
        _: End,
        place: &mut Place,
        waker: &Waker,
    ) -> Offered {
        if element.is_none() {
            return Offered::In;
        }
        let mut clone = None;
        loop {
            let mut inbox = lock(&self.inbox.inbox);
            let mut stale = None;
            if !self.has_room(&mut inbox) {
                let listed = list_waiter(&mut inbox.putters, place, waker, &mut clone, 1);
                let Some((_, replaced)) = listed else {
                    drop(inbox);
                    clone = Some(waker.clone());
                    continue;
                };
                stale = replaced;
                // B3: the sign first, the last look second.
                self.note(&inbox);
                self.look(&mut inbox);
                if !inbox.has_room() {
                    drop(inbox);
                    quiet::drop_wakers([stale, clone]);
                    return Offered::Wait;
                }
            }
            let struck = place
                .ticket
                .take()
                .and_then(|own| inbox.putters.remove(own));
            self.note(&inbox);
            match element.take() {
                Some(element) => self.push(inbox, element),
                None => drop(inbox),
            }
            quiet::drop_wakers([struck.map(|putter| putter.waker), stale, clone]);
            return Offered::In;
        }
    }

    pub(super) fn poll_take(&self, end: End, place: &mut Place, waker: &Waker) -> Taken<T> {
        let mut clone = None;
        let mut has_come = false;
        loop {
            let mut outbox = lock(&self.outbox.ring);
            let mut inbox = lock(&self.inbox.inbox);
            // B6: who has a ticket and is not listed was called.
            let was_called = place
                .ticket
                .is_some_and(|own| inbox.takers.find(own).is_none());
            if was_called && !std::mem::replace(&mut has_come, true) {
                inbox.has_come();
            }
            if outbox.len() > 0 || self.refill(&mut inbox, &mut outbox) {
                let struck = place.ticket.take().and_then(|own| inbox.takers.remove(own));
                let is_left = outbox.len() > 1 || inbox.ring.len() > 0;
                let next = match inbox.called.is_some() && is_left && inbox.wants_taker() {
                    true => inbox.call(),
                    false => None,
                };
                drop(inbox);
                let element = outbox.pop(&self.clock, end);
                self.settle(outbox, usize::from(element.is_some()));
                Calls::of(next.map(|taker| taker.waker)).wake();
                quiet::drop_wakers([struck.map(|taker| taker.waker), clone]);
                match element {
                    Some(element) => return Taken::Got(element),
                    None => unreachable!("B1: the outbox is ours and not empty"),
                }
            }
            let listed = list_waiter(&mut inbox.takers, place, waker, &mut clone, 0);
            drop(inbox);
            drop(outbox);
            match listed {
                Some((_, stale)) => {
                    quiet::drop_wakers([stale, clone]);
                    return Taken::Wait(Deadline::NEVER);
                }
                None => clone = Some(waker.clone()),
            }
        }
    }

    pub(super) fn leave_offer(&self, place: &mut Place) {
        let Some(ticket) = place.ticket.take() else {
            return;
        };
        let mut inbox = lock(&self.inbox.inbox);
        let struck = inbox.putters.remove(ticket);
        // B4: called, so it calls another.
        self.finish(inbox, usize::from(struck.is_none()));
        quiet::drop_wakers([struck.map(|putter| putter.waker)]);
    }

    pub(super) fn leave_take(&self, place: &mut Place) {
        let Some(ticket) = place.ticket.take() else {
            return;
        };
        let mut inbox = lock(&self.inbox.inbox);
        let struck = inbox.takers.remove(ticket);
        self.look(&mut inbox);
        if struck.is_none() {
            inbox.has_come();
        }
        // B4: called, so it calls another, if there seems to be an element.
        if struck.is_none() && inbox.has_some() && inbox.wants_taker() {
            self.call_taker(inbox);
        } else {
            drop(inbox);
        }
        quiet::drop_wakers([struck.map(|taker| taker.waker)]);
    }

    /// Both boxes, in the order of B1, with `taken_seen` as it is.
    fn both(&self) -> (MutexGuard<'_, Ring<T>>, MutexGuard<'_, Inbox<T>>) {
        let outbox = lock(&self.outbox.ring);
        let mut inbox = lock(&self.inbox.inbox);
        self.look(&mut inbox);
        (outbox, inbox)
    }

    pub(super) fn len(&self) -> usize {
        let (_outbox, inbox) = self.both();
        inbox.len()
    }

    pub(super) fn bound(&self) -> Option<u64> {
        lock(&self.inbox.inbox).bound().map(|bound| bound as u64)
    }

    /// What is left of the bound; `None` if there is none.
    pub(super) fn left(&self) -> Option<u64> {
        let (_outbox, inbox) = self.both();
        inbox.bound().map(|_| inbox.free() as u64)
    }

    pub(super) fn set_bound(&self, bound: u64) -> Result<(), CapacityError> {
        if bound == 0 {
            return Err(CapacityError::Zero);
        }
        // B1: both, so that takers hear of a first bound.
        let (outbox, mut inbox) = self.both();
        self.outbox.has_bound.store(true, Ordering::Relaxed);
        drop(outbox);
        inbox.set_bound(usize::try_from(bound).unwrap_or(usize::MAX));
        self.finish(inbox, usize::MAX);
        Ok(())
    }

    /// Takes nothing more in, ever. Who waits for room is not told: that is up to the sealer.
    pub(super) fn seal(&self) {
        lock(&self.inbox.inbox).seal();
    }

    pub(super) fn is_sealed(&self) -> bool {
        lock(&self.inbox.inbox).is_sealed()
    }

    pub(super) fn visit(&self, end: End, see: &mut dyn FnMut(&T) -> ControlFlow<()>) {
        let see = &mut |element: &T| except_locks(|| see(element));
        let (outbox, inbox) = self.both();
        let mut goes_on = true;
        outbox.visit(end, &mut |element| {
            let flow = see(element);
            goes_on = flow.is_continue();
            flow
        });
        if goes_on {
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
        let (mut outbox, mut inbox) = self.both();
        outbox.append(&mut inbox.ring);
        self.inbox.is_ready.store(false, Ordering::Relaxed);
        let removed = outbox.remove_where(end, limit, unwanted);
        drop(inbox);
        self.settle(outbox, removed.len());
        removed
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    #[inline]
    pub(super) fn glance(&self) -> Option<Glance> {
        Some(Glance {
            is_ready: self.inbox.is_ready.load(Ordering::Relaxed),
            has_room: !self.is_full(),
        })
    }

    /// How many wait for an element, and how many for room.
    pub(super) fn waiting(&self) -> (usize, usize) {
        let inbox = lock(&self.inbox.inbox);
        (inbox.takers.len(), inbox.putters.len())
    }

    /// The Debug text of a flavor. Its elements need not have one, so it counts them.
    pub(super) fn describe(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (len, bound, (takers, putters)) = (self.len(), self.bound(), self.waiting());
        super::guarded::describe(name, len, bound, takers, putters, f)
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests;
