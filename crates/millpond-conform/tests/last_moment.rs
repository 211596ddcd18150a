//! A wait that is given up and succeeds all the same, at the last moment.
//!
//! With threads the moment is a few instructions wide. This queue makes it certain: a thread that waits
//! in it waits in vain, and a thread that gives up finds that it has been served.

use millpond::interrupt;
use millpond::queue::{BlockingQueue, CapacityError, OfferError, Offered, Reason, Taken, WaitSlot};
use millpond::time::{Clock, Deadline};
use millpond_conform::kit::{Actor, delays};
use millpond_raw::task::{Stop, Token};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::task::Waker;

#[derive(Debug, Default)]
struct LastMoment {
    clock: Clock,
}

impl BlockingQueue<u32> for LastMoment {
    fn offer(&self, element: u32) -> Result<(), OfferError<u32>> {
        Err(OfferError {
            element,
            reason: Reason::Full,
        })
    }

    fn poll(&self) -> Option<u32> {
        None
    }

    fn poll_offer(&self, _: &mut Option<u32>, _: &mut WaitSlot, _: &Waker) -> Offered {
        Offered::Wait
    }

    fn poll_take(&self, _: &mut WaitSlot, _: &Waker) -> Taken<u32> {
        Taken::Wait(Deadline::NEVER)
    }

    fn leave_offer(&self, element: &mut Option<u32>, _: &mut WaitSlot) {
        *element = None;
    }

    fn leave_take(&self, _: &mut WaitSlot) -> Option<u32> {
        Some(7)
    }

    fn len(&self) -> usize {
        0
    }

    fn capacity(&self) -> Option<usize> {
        Some(0)
    }

    fn set_capacity(&self, _: usize) -> Result<(), CapacityError> {
        Err(CapacityError::Fixed)
    }

    fn visit(&self, _: &mut dyn FnMut(&u32) -> ControlFlow<()>) {}

    fn remove_where(&self, _: usize, _: &mut dyn FnMut(&u32) -> bool) -> Vec<u32> {
        Vec::new()
    }

    fn clock(&self) -> &Clock {
        &self.clock
    }
}

#[test]
fn a_take_that_succeeds_at_the_last_moment_leaves_the_interrupt_set() {
    let consumer = Actor::start("consumer", || {
        (LastMoment::default().take(), interrupt::is_interrupted())
    });
    consumer.interrupt_at("queue.take");
    assert_eq!(consumer.finish(), (Ok(7), true), "the interrupt is lost");
}

#[test]
fn a_put_that_succeeds_at_the_last_moment_leaves_the_interrupt_set() {
    let producer = Actor::start("producer", || {
        let put = LastMoment::default().put(7).is_ok();
        (put, interrupt::is_interrupted())
    });
    producer.interrupt_at("queue.put");
    assert_eq!(producer.finish(), (true, true), "the interrupt is lost");
}

#[test]
fn a_success_at_the_last_moment_leaves_the_stop_of_the_engine_to_be_reported_once() {
    let stop = Arc::new(Stop::new());
    let own = Arc::clone(&stop);
    let consumer = Actor::start("stopped", move || {
        let body = || {
            let took = LastMoment::default().take();
            (
                took,
                interrupt::check().is_err(),
                interrupt::check().is_ok(),
            )
        };
        own.enter(|| Token::new().enter(body))
    });
    consumer.await_parked("queue.take");
    stop.set();
    assert_eq!(consumer.finish(), (Ok(7), true, true));
}

#[test]
fn a_time_out_that_comes_too_late_is_a_success() {
    let queue = LastMoment::default();
    assert_eq!(queue.poll_timeout(delays::timeout()), Ok(Some(7)));
    assert!(queue.offer_timeout(7, delays::timeout()).is_ok());
}
