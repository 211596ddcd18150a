//! Waiters of a queue, the wakers to call after unlocking, and how the cores lock.

use super::WaitSlot;
use crate::thread::contention;
use millpond_raw::catch_panic;
use millpond_raw::sync::{Mutex, MutexGuard, hint, spins};
use millpond_raw::wait_queue::{Ticket, TicketQueue};
use std::task::Waker;

/// A waiter in a list of a core.
pub(super) struct Waiter {
    pub(super) waker: Waker,
    /// The weight of a producer's element; 0 for a consumer.
    pub(super) weight: u64,
}

/// Wakers to call after unlocking; nearly always none or one.
#[derive(Default)]
#[must_use = "a waiter that is notified but not woken sleeps for ever"]
pub(super) struct WakeList {
    first: Option<Waker>,
    more: Vec<Waker>,
}

impl WakeList {
    /// One waker or none.
    #[inline]
    pub(super) fn of(waker: Option<Waker>) -> Self {
        WakeList {
            first: waker,
            more: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, waker: Waker) {
        match self.first {
            None => self.first = Some(waker),
            Some(_) => self.more.push(waker),
        }
    }

    pub(super) fn and(mut self, others: WakeList) -> WakeList {
        for waker in others.first.into_iter().chain(others.more) {
            self.add(waker);
        }
        self
    }

    #[inline]
    pub(super) fn wake(self) {
        if let Some(waker) = self.first {
            catch_panic::wake(waker);
            self.more.into_iter().for_each(catch_panic::wake);
        }
    }
}

/// Adds a waiter to a list, or updates its waker there. Returns its ticket and a stale waker, to be dropped after
/// unlocking; or `None` if it needs a clone of the waker.
pub(super) fn enlist(
    list: &mut TicketQueue<Waiter>,
    slot: &mut WaitSlot,
    waker: &Waker,
    clone: &mut Option<Waker>,
    weight: u64,
) -> Option<(Ticket, Option<Waker>)> {
    let listed = slot.ticket.and_then(|ticket| list.find(ticket));
    if let Some(waiter) = listed {
        waiter.weight = weight;
        let stale = if waiter.waker.will_wake(waker) {
            None
        } else {
            Some(std::mem::replace(&mut waiter.waker, clone.take()?))
        };
        return Some((slot.ticket?, stale));
    }
    let waiter = Waiter {
        waker: clone.take()?,
        weight,
    };
    let ticket = match slot.ticket {
        None => list.push(waiter),
        Some(ticket) => {
            list.restore(ticket, waiter);
            ticket
        }
    };
    slot.ticket = Some(ticket);
    Some((ticket, None))
}

/// How often a thread tries a held lock after a spin, each twice as long as the one before: enough for the few
/// instructions that the lock is held.
const SPIN_ATTEMPTS: u32 = 4;

/// How often it tries after a yield, before it waits for the lock.
const YIELD_ATTEMPTS: u32 = 16;

/// Takes a lock. A thread that finds it held backs off instead of contending for its cache line. The holder then
/// completes many operations at the price of uncontended ones, and total throughput is several times that of
/// alternating threads.
#[inline]
#[track_caller]
pub(super) fn lock<V>(mutex: &Mutex<V>) -> MutexGuard<'_, V> {
    match mutex.try_lock() {
        Some(guard) => guard,
        None => lock_slow(mutex),
    }
}

#[cold]
#[track_caller]
fn lock_slow<V>(mutex: &Mutex<V>) -> MutexGuard<'_, V> {
    // Models do not spin, see `spins`.
    let attempts = if spins() == 0 { 0 } else { SPIN_ATTEMPTS };
    for attempt in 0..attempts {
        (0..1_u32 << attempt).for_each(|_| hint::spin_loop());
        if let Some(guard) = mutex.try_lock() {
            return guard;
        }
    }
    let mut yields = 0;
    while attempts > 0 && yields < YIELD_ATTEMPTS && contention::may_yield() {
        // The thread that has the CPU meanwhile is likely to be the holder.
        let _ = contention::yield_now();
        if let Some(guard) = mutex.try_lock() {
            return guard;
        }
        yields += 1;
    }
    mutex.lock()
}
