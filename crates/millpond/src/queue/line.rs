//! Who waits in a queue, and whom to wake when its lock is free.

use super::Place;
use millpond_raw::quiet;
use millpond_raw::sync::{Mutex, MutexGuard, hint, spins, thread};
use millpond_raw::waits::{List, Ticket};
use std::task::Waker;

/// One who waits in a list of the engine.
pub(super) struct Waiter {
    pub(super) waker: Waker,
    /// What it wants to put; a taker's is nothing.
    pub(super) weight: u64,
}

/// Wakers to call when the lock is free; nearly always none or one.
#[derive(Default)]
#[must_use = "who is called but not woken sleeps for ever"]
pub(super) struct Calls {
    first: Option<Waker>,
    more: Vec<Waker>,
}

impl Calls {
    /// One call or none.
    #[inline]
    pub(super) fn of(waker: Option<Waker>) -> Self {
        Calls {
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

    pub(super) fn and(mut self, others: Calls) -> Calls {
        for waker in others.first.into_iter().chain(others.more) {
            self.add(waker);
        }
        self
    }

    #[inline]
    pub(super) fn wake(self) {
        if let Some(waker) = self.first {
            quiet::wake(waker);
            self.more.into_iter().for_each(quiet::wake);
        }
    }
}

/// Puts a waiter into a list, or makes sure that it is there with the right waker. Returns its
/// ticket and what is to be dropped outside the lock; or `None` if a clone of the waker is needed.
pub(super) fn list_waiter(
    list: &mut List<Waiter>,
    place: &mut Place,
    waker: &Waker,
    clone: &mut Option<Waker>,
    weight: u64,
) -> Option<(Ticket, Option<Waker>)> {
    let listed = place.ticket.and_then(|ticket| list.find(ticket));
    if let Some(waiter) = listed {
        waiter.weight = weight;
        let stale = match waiter.waker.will_wake(waker) {
            true => None,
            false => Some(std::mem::replace(&mut waiter.waker, clone.take()?)),
        };
        return Some((place.ticket?, stale));
    }
    let waiter = Waiter {
        waker: clone.take()?,
        weight,
    };
    let ticket = match place.ticket {
        None => list.push(waiter),
        Some(ticket) => {
            list.restore(ticket, waiter);
            ticket
        }
    };
    place.ticket = Some(ticket);
    Some((ticket, None))
}

/// How often one who finds a lock taken tries again before it queues up for it.
const STEPS_BACK: u32 = 20;

/// How many of these are short spins, each twice as long as the one before: enough for the few
/// instructions that the lock is held. After that it yields.
const SHORT_STEPS: u32 = 4;

/// Takes a lock. Who finds it taken steps back for a while, instead of fighting for the line in
/// which it lies: the other then gets many steps done, each at the price of an undisturbed one, and
/// the sum is several times what taking turns would give.
#[inline]
#[track_caller]
pub(super) fn lock<V>(mutex: &Mutex<V>) -> MutexGuard<'_, V> {
    match mutex.try_lock() {
        Some(guard) => guard,
        None => lock_after_a_while(mutex),
    }
}

#[cold]
#[track_caller]
fn lock_after_a_while<V>(mutex: &Mutex<V>) -> MutexGuard<'_, V> {
    // Models do not spin, see `spins`.
    let rounds = if spins() == 0 { 0 } else { STEPS_BACK };
    for round in 0..rounds {
        match round < SHORT_STEPS {
            true => (0..1_u32 << round).for_each(|_| hint::spin_loop()),
            false => thread::yield_now(),
        }
        if let Some(guard) = mutex.try_lock() {
            return guard;
        }
    }
    mutex.lock()
}
