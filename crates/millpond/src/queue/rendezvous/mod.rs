//! The core of the hand-off and the transfer queue: producers and consumers meet in two lines.
//!
//! Producers wait in one line, each with its element; consumers wait in another. An arriving producer or consumer
//! first looks at the opposite line. If there is a waiter the two are *matched*: the element changes hands, and
//! the waiter is woken. Otherwise the arrival gets a number and joins its own line. An element can also be in the
//! producers' line alone, without a waiting producer.
//!
//! ```text
//!                joins                     matched             polls again
//!   producer  ----------> producers' line ---------> removed ------------> done
//!   consumer  ----------> consumers' line ---------> handed  ------------> done, with an element
//!                              |
//!                              +-- leaves: removed; a producer gets its element back
//! ```
//!
//! | file | what |
//! |---|---|
//! | `lines.rs` | the two lines, without the lock |
//!
//! # Why one lock
//!
//! A match, a timeout, an interrupt and a dropped future all race for one waiter. The waiter's number is in its
//! line or not, and only one of them finds it there. So the slot of a waiter holds a number and no element, and
//! elements need not be `'static`.
//!
//! # Invariants
//!
//! - **HANDOFF-1** One of the two lines is empty.
//! - **HANDOFF-2** A number is used once. A producer's number is in the producers' line until the producer is
//!   matched or leaves. A consumer's number is in the consumers' line until the consumer is matched or leaves, and
//!   in `handed` from the match until the consumer fetches its element.
//! - **HANDOFF-3** An element is in exactly one place: with its producer, in the producers' line, in `handed`, or
//!   with its consumer. Each move happens under the lock.
//! - **HANDOFF-4** Both lines are sorted by number, so leaving is a binary search. Numbers count up from 0; those
//!   of elements that are put back in front count down from -1.
//! - **HANDOFF-5** Wakers are cloned, called and dropped, and elements dropped, without the lock. Only predicates
//!   and visitors run under it, and their panics are caught there.
//! - **HANDOFF-6** A waker is called when its waiter is matched, and at no other time.

mod lines;

pub(in crate::queue) use self::lines::Order;

use self::lines::{Lines, Number, Producer};
use crate::queue::WaitSlot;
use millpond_raw::catch_panic;
use millpond_raw::sync::Mutex;
use millpond_raw::user_code::except_locks;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::task::Waker;

/// Two lines under one lock.
pub(in crate::queue) struct Rendezvous<T> {
    order: Order,
    lines: Mutex<Lines<T>>,
}

impl<T> Rendezvous<T> {
    pub(in crate::queue) fn new(order: Order) -> Self {
        Rendezvous {
            order,
            lines: Mutex::new(Lines::new(order)),
        }
    }

    pub(in crate::queue) fn order(&self) -> Order {
        self.order
    }

    /// The number of elements in the producers' line.
    pub(in crate::queue) fn waiting_producers(&self) -> usize {
        self.lines.lock().producers().len()
    }

    /// The number of waiting consumers.
    pub(in crate::queue) fn waiting_consumers(&self) -> usize {
        self.lines.lock().waiting_consumers()
    }

    /// Hands the element to a waiting consumer, or returns it.
    pub(in crate::queue) fn try_hand_over(&self, element: T) -> Result<(), T> {
        let consumer = self.lines.lock().hand_over(element)?;
        catch_panic::wake(consumer);
        Ok(())
    }

    /// Hands the element to a waiting consumer, or adds it to the line without a producer, as the last.
    pub(in crate::queue) fn enqueue(&self, element: T) {
        self.hand_over_or(element, |lines, element| {
            lines.enqueue_producer(element, None);
        });
    }

    /// Hands the element to a waiting consumer, or adds it to the line without a producer, as the next.
    pub(in crate::queue) fn put_back(&self, element: T) {
        self.hand_over_or(element, Lines::enqueue_producer_in_front);
    }

    fn hand_over_or(&self, element: T, keep: impl FnOnce(&mut Lines<T>, T)) {
        let mut lines = self.lines.lock();
        match lines.hand_over(element) {
            Ok(consumer) => {
                drop(lines);
                catch_panic::wake(consumer);
            }
            Err(element) => keep(&mut lines, element),
        }
    }

    /// Hands the element to a waiting consumer, or joins the line with it. Returns whether it was handed over.
    pub(in crate::queue) fn poll_put(
        &self,
        element: &mut Option<T>,
        slot: &mut WaitSlot,
        waker: &Waker,
    ) -> bool {
        if let Some(number) = number_at(slot) {
            let waits = self.update_waker(waker, |lines| lines.producer_waker(number));
            if !waits {
                slot.node = None;
            }
            return !waits;
        }
        let waiting_producers = element.take().expect("there is an element to put");
        let Err(waiting_producers) = self.try_hand_over(waiting_producers) else {
            return true;
        };
        let fresh = waker.clone();
        let mut lines = self.lines.lock();
        // A consumer may have arrived in between.
        match lines.hand_over(waiting_producers) {
            Ok(consumer) => {
                drop(lines);
                catch_panic::drop(fresh);
                catch_panic::wake(consumer);
                true
            }
            Err(waiting_producers) => {
                let number = lines.enqueue_producer(waiting_producers, Some(fresh));
                drop(lines);
                slot.node = Some(Arc::new(number));
                false
            }
        }
    }

    /// Leaves the producers' line, and gets the element back unless it has been taken.
    pub(in crate::queue) fn leave_put(&self, element: &mut Option<T>, slot: &mut WaitSlot) {
        let Some(number) = number_at(slot) else {
            return;
        };
        slot.node = None;
        let left = self.lines.lock().remove_producer(number);
        if let Some(producer) = left {
            *element = Some(producer.element);
            catch_panic::drop(producer.waker);
        }
    }

    /// Takes an element from the producers' line, if there is one.
    pub(in crate::queue) fn try_take(&self) -> Option<T> {
        let producer = self.lines.lock().pop_producer()?;
        Some(receive(producer))
    }

    /// Takes an element from the producers' line, or joins the consumers' line.
    pub(in crate::queue) fn poll_take(&self, slot: &mut WaitSlot, waker: &Waker) -> Option<T> {
        if let Some(number) = number_at(slot) {
            return self.fetch(number, slot, waker);
        }
        if let Some(element) = self.try_take() {
            return Some(element);
        }
        let fresh = waker.clone();
        let mut lines = self.lines.lock();
        // A producer may have arrived in between.
        if let Some(producer) = lines.pop_producer() {
            drop(lines);
            catch_panic::drop(fresh);
            return Some(receive(producer));
        }
        let number = lines.enqueue_consumer(fresh);
        drop(lines);
        slot.node = Some(Arc::new(number));
        None
    }

    /// Gets the element that was handed to a consumer, or goes on waiting.
    fn fetch(&self, number: Number, slot: &mut WaitSlot, waker: &Waker) -> Option<T> {
        let mut handed = None;
        let waits = self.update_waker(waker, |lines| {
            handed = lines.fetch(number);
            match handed {
                Some(_) => None,
                None => lines.consumer_waker(number),
            }
        });
        debug_assert!(waits != handed.is_some(), "HANDOFF-2");
        if !waits {
            slot.node = None;
        }
        handed
    }

    /// Leaves the consumers' line. Returns an element that was handed over before that.
    pub(in crate::queue) fn leave_take(&self, slot: &mut WaitSlot) -> Option<T> {
        let number = number_at(slot)?;
        slot.node = None;
        let mut lines = self.lines.lock();
        let left = lines.remove_consumer(number);
        let handed = lines.fetch(number);
        drop(lines);
        catch_panic::drop(left);
        handed
    }

    /// Finds the waker of a waiter, and replaces it if it wakes another task than `waker`. Returns false if there
    /// is no such waiter.
    fn update_waker(
        &self,
        waker: &Waker,
        mut find: impl FnMut(&mut Lines<T>) -> Option<&mut Waker>,
    ) -> bool {
        match find(&mut self.lines.lock()) {
            None => return false,
            Some(held) if held.will_wake(waker) => return true,
            Some(_) => {}
        }
        let fresh = waker.clone();
        let mut lines = self.lines.lock();
        // The waiter may have been matched in between.
        match find(&mut lines) {
            None => {
                drop(lines);
                catch_panic::drop(fresh);
                false
            }
            Some(held) => {
                let stale = std::mem::replace(held, fresh);
                drop(lines);
                catch_panic::drop(stale);
                true
            }
        }
    }

    /// Shows the elements in the order in which a fair queue serves them, until `see` breaks.
    pub(in crate::queue) fn visit(&self, see: &mut dyn FnMut(&T) -> ControlFlow<()>) {
        let lines = self.lines.lock();
        let seen = catch_unwind(AssertUnwindSafe(|| {
            let mut producers = lines.producers().iter();
            let _ = producers.try_for_each(|producer| except_locks(|| see(&producer.element)));
        }));
        drop(lines);
        seen.unwrap_or_else(|payload| resume_unwind(payload));
    }

    /// Removes the elements for which `unwanted` returns true, at most `limit`. Producers that wait for them to be
    /// taken are woken as if they were.
    pub(in crate::queue) fn remove_where(
        &self,
        limit: usize,
        unwanted: &mut dyn FnMut(&T) -> bool,
    ) -> Vec<T> {
        let mut lines = self.lines.lock();
        // All are judged before one is moved: a panic changes nothing.
        let judged = catch_unwind(AssertUnwindSafe(|| -> Vec<usize> {
            let all = lines.producers().iter().enumerate();
            let chosen = all.filter(|(_, producer)| except_locks(|| unwanted(&producer.element)));
            chosen.map(|(at, _)| at).take(limit).collect()
        }));
        let removed = match &judged {
            Ok(chosen) if !chosen.is_empty() => lines.remove_producers_at(chosen),
            _ => Vec::new(),
        };
        drop(lines);
        if let Err(payload) = judged {
            resume_unwind(payload);
        }
        removed.into_iter().map(receive).collect()
    }
}

/// Receives the element of a producer that was removed from its line, and wakes the producer.
fn receive<T>(producer: Producer<T>) -> T {
    producer.waker.into_iter().for_each(catch_panic::wake);
    producer.element
}

fn number_at(slot: &WaitSlot) -> Option<Number> {
    let node = slot.node.as_deref()?;
    let number = node
        .downcast_ref()
        .expect("a slot belongs to one queue and to one offer or take");
    Some(*number)
}
