//! Where those who give and those who take meet: the floor under the hand-off and the transfer
//! queue.
//!
//! Givers stand in one line, each with its element; takers stand in another. Whoever comes first
//! looks at the other line. If somebody stands there the two are *matched*: the element changes
//! hands, and the one who waited is woken. Otherwise it gets a number and joins its own line. An
//! element can also stand in the givers' line by itself, with nobody to wait for it.
//!
//! ```text
//!             joins                  matched                   looks again
//!   giver  ----------> givers' line ----------> gone   --------------------> done
//!   taker  ----------> takers' line ----------> handed --------------------> done, with element
//!                           |
//!                           +-- leaves: gone; a giver gets its element back
//! ```
//!
//! `room.rs` has the lines; this file has the lock, and calls the wakers when it is free again.
//!
//! # Why one lock
//!
//! A match, a time-out, an interrupt and a dropped future all race for one waiter. The waiter's
//! number is in the line or it is not, and only one of them finds it there. So the place of a
//! waiter holds a number and nothing else, no element can hide in it, and elements need not be
//! `'static`.
//!
//! # Invariants
//!
//! - **M1** One of the two lines is empty.
//! - **M2** A number is given once. A giver's number is in the givers' line until it is matched or
//!   leaves; a taker's is in the takers' line until it is matched or leaves, and from the match
//!   until the taker fetches its element it is among the handed.
//! - **M3** An element is with its giver, in the givers' line, among the handed, or with its taker,
//!   and in one of them only. Each step from one to the next happens under the lock.
//! - **M4** Both lines are sorted by number, so that leaving is a binary search. Numbers count up
//!   from 0; elements that are put back to the front count down from -1.
//! - **M5** Wakers are cloned, called and dropped, and elements dropped, outside the lock. Only
//!   predicates run inside, and their panics are caught there.
//! - **M6** A waker is called when its waiter is matched, and at no other time.

pub(in crate::queue) use super::room::Order;

use super::room::{Giver, Number, Room};
use crate::queue::Place;
use millpond_raw::quiet;
use millpond_raw::sync::Mutex;
use millpond_raw::user_code::except_locks;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::task::Waker;

/// Two lines and a lock.
pub(in crate::queue) struct Meeting<T> {
    order: Order,
    room: Mutex<Room<T>>,
}

impl<T> Meeting<T> {
    pub(in crate::queue) fn new(order: Order) -> Self {
        Meeting {
            order,
            room: Mutex::new(Room::new(order)),
        }
    }

    pub(in crate::queue) fn order(&self) -> Order {
        self.order
    }

    /// How many elements stand in line.
    pub(in crate::queue) fn offered(&self) -> usize {
        self.room.lock().givers().len()
    }

    /// How many takers stand in line.
    pub(in crate::queue) fn wanted(&self) -> usize {
        self.room.lock().waiting_takers()
    }

    /// Gives the element to a taker who waits now; or gives it back.
    pub(in crate::queue) fn give_now(&self, element: T) -> Result<(), T> {
        let taker = self.room.lock().hand(element)?;
        quiet::wake(taker);
        Ok(())
    }

    /// Gives the element to a taker who waits now, or leaves it in line by itself, as the last to
    /// be taken.
    pub(in crate::queue) fn leave_behind(&self, element: T) {
        self.give_or(element, |room, element| {
            room.join_givers(element, None);
        });
    }

    /// Gives the element to a taker who waits now, or leaves it in line by itself, as the first to
    /// be taken.
    pub(in crate::queue) fn put_back(&self, element: T) {
        self.give_or(element, Room::join_givers_in_front);
    }

    fn give_or(&self, element: T, keep: impl FnOnce(&mut Room<T>, T)) {
        let mut room = self.room.lock();
        match room.hand(element) {
            Ok(taker) => {
                drop(room);
                quiet::wake(taker);
            }
            Err(element) => keep(&mut room, element),
        }
    }

    /// Gives the element to a taker; or joins the line with it. Returns whether it is given.
    pub(in crate::queue) fn poll_give(
        &self,
        element: &mut Option<T>,
        place: &mut Place,
        waker: &Waker,
    ) -> bool {
        if let Some(number) = number_at(place) {
            let waits = self.renew(waker, |room| room.giver_waker(number));
            if !waits {
                place.node = None;
            }
            return !waits;
        }
        let offered = element.take().expect("there is an element to give");
        let Err(offered) = self.give_now(offered) else {
            return true;
        };
        let fresh = waker.clone();
        let mut room = self.room.lock();
        // Between the two looks a taker may have come.
        match room.hand(offered) {
            Ok(taker) => {
                drop(room);
                quiet::drop(fresh);
                quiet::wake(taker);
                true
            }
            Err(offered) => {
                let number = room.join_givers(offered, Some(fresh));
                drop(room);
                place.node = Some(Arc::new(number));
                false
            }
        }
    }

    /// Leaves the givers' line and gets the element back, unless it has been taken.
    pub(in crate::queue) fn leave_give(&self, element: &mut Option<T>, place: &mut Place) {
        let Some(number) = number_at(place) else {
            return;
        };
        place.node = None;
        let left = self.room.lock().remove_giver(number);
        if let Some(giver) = left {
            *element = Some(giver.element);
            quiet::drop(giver.waker);
        }
    }

    /// Takes an element from the line of givers, if one is there.
    pub(in crate::queue) fn take_now(&self) -> Option<T> {
        let giver = self.room.lock().next_giver()?;
        Some(receive(giver))
    }

    /// Takes an element from a giver; or joins the line of takers.
    pub(in crate::queue) fn poll_take(&self, place: &mut Place, waker: &Waker) -> Option<T> {
        if let Some(number) = number_at(place) {
            return self.fetch(number, place, waker);
        }
        if let Some(element) = self.take_now() {
            return Some(element);
        }
        let fresh = waker.clone();
        let mut room = self.room.lock();
        // Between the two looks a giver may have come.
        if let Some(giver) = room.next_giver() {
            drop(room);
            quiet::drop(fresh);
            return Some(receive(giver));
        }
        let number = room.join_takers(fresh);
        drop(room);
        place.node = Some(Arc::new(number));
        None
    }

    /// Gets what was handed to a taker, if something was, and otherwise goes on waiting.
    fn fetch(&self, number: Number, place: &mut Place, waker: &Waker) -> Option<T> {
        let mut handed = None;
        let waits = self.renew(waker, |room| {
            handed = room.fetch(number);
            match handed {
                Some(_) => None,
                None => room.taker_waker(number),
            }
        });
        debug_assert!(waits != handed.is_some(), "M2");
        if !waits {
            place.node = None;
        }
        handed
    }

    /// Leaves the takers' line. What was handed over before that is the taker's.
    pub(in crate::queue) fn leave_take(&self, place: &mut Place) -> Option<T> {
        let number = number_at(place)?;
        place.node = None;
        let mut room = self.room.lock();
        let left = room.remove_taker(number);
        let handed = room.fetch(number);
        drop(room);
        quiet::drop(left);
        handed
    }

    /// Finds the waker of a waiter and sees to it that it wakes the same task as `waker`. Returns
    /// false if there is no such waiter.
    fn renew(
        &self,
        waker: &Waker,
        mut find: impl FnMut(&mut Room<T>) -> Option<&mut Waker>,
    ) -> bool {
        match find(&mut self.room.lock()) {
            None => return false,
            Some(held) if held.will_wake(waker) => return true,
            Some(_) => {}
        }
        let fresh = waker.clone();
        let mut room = self.room.lock();
        // Between the two looks it may have been matched.
        match find(&mut room) {
            None => {
                drop(room);
                quiet::drop(fresh);
                false
            }
            Some(held) => {
                let stale = std::mem::replace(held, fresh);
                drop(room);
                quiet::drop(stale);
                true
            }
        }
    }

    /// Shows the elements in line in the order in which a fair one is taken, until `see` breaks.
    pub(in crate::queue) fn visit(&self, see: &mut dyn FnMut(&T) -> ControlFlow<()>) {
        let room = self.room.lock();
        let seen = catch_unwind(AssertUnwindSafe(|| {
            let mut givers = room.givers().iter();
            let _ = givers.try_for_each(|giver| except_locks(|| see(&giver.element)));
        }));
        drop(room);
        seen.unwrap_or_else(|payload| resume_unwind(payload));
    }

    /// Takes the elements out of the line that `unwanted` chooses, at most `limit`. Who waited for
    /// one of them to be taken is told that it was.
    pub(in crate::queue) fn remove_where(
        &self,
        limit: usize,
        unwanted: &mut dyn FnMut(&T) -> bool,
    ) -> Vec<T> {
        let mut room = self.room.lock();
        // All are judged before one is moved: a panic finds them where they were.
        let judged = catch_unwind(AssertUnwindSafe(|| -> Vec<usize> {
            let all = room.givers().iter().enumerate();
            let chosen = all.filter(|(_, giver)| except_locks(|| unwanted(&giver.element)));
            chosen.map(|(at, _)| at).take(limit).collect()
        }));
        let removed = match &judged {
            Ok(chosen) if !chosen.is_empty() => room.remove_givers_at(chosen),
            _ => Vec::new(),
        };
        drop(room);
        if let Err(payload) = judged {
            resume_unwind(payload);
        }
        removed.into_iter().map(receive).collect()
    }
}

/// Receives the element of a giver that was taken out of its line, and tells it so.
fn receive<T>(giver: Giver<T>) -> T {
    giver.waker.into_iter().for_each(quiet::wake);
    giver.element
}

fn number_at(place: &Place) -> Option<Number> {
    let node = place.node.as_deref()?;
    let number = node
        .downcast_ref()
        .expect("a place belongs to one queue and to one offer or take");
    Some(*number)
}
