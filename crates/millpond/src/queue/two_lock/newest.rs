//! Polling the newest element, for overloaded pools that serve the newest task first.
//!
//! The newest element is the last of the inbox or, if that is empty, the last of the outbox. So this takes both
//! locks each time; the usual path is not affected.

use super::TwoLock;
use crate::queue::store::{End, Store};
use crate::queue::wake_list::lock;
use millpond_raw::sync::atomic::Ordering;

impl<T: Send> TwoLock<T> {
    /// Takes the oldest element or the newest: `choose` decides, given the oldest. It runs under both locks, so it
    /// must be quick and not use this queue.
    pub(in crate::queue) fn poll_by(&self, choose: impl FnOnce(&T) -> End) -> Option<T> {
        let mut outbox = lock(&self.outbox.ring);
        let mut inbox = lock(&self.inbox.inbox);
        if outbox.len() == 0 {
            self.refill(&mut inbox, &mut outbox);
        }
        let end = choose(outbox.first()?);
        // FIFO-1: the inbox's elements are newer than the outbox's.
        let element = if end == End::Last && inbox.ring.len() > 0 {
            let newest = inbox.ring.pop(&self.clock, End::Last);
            let is_ready = inbox.ring.len() > 0;
            self.inbox.is_ready.store(is_ready, Ordering::Relaxed);
            newest
        } else {
            outbox.pop(&self.clock, end)
        };
        drop(inbox);
        self.complete_take(outbox, usize::from(element.is_some()));
        element
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;
    use crate::queue::ring::Ring;
    use crate::queue::{BlockingQueue, FifoQueue};
    use millpond_raw::sync::atomic::AtomicUsize;
    use millpond_raw::sync::thread;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::VecDeque;
    use std::sync::Arc;

    fn two_lock(bound: usize) -> TwoLock<u64> {
        TwoLock::new(Ring::growing(), Ring::growing(), Some(bound))
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Offer,
        Poll,
        PollBy(bool),
        RemoveEven,
        Bound(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => Just(Step::Offer),
            2 => Just(Step::Poll),
            4 => any::<bool>().prop_map(Step::PollBy),
            1 => Just(Step::RemoveEven),
            1 => (1..8_usize).prop_map(Step::Bound),
        ]
    }

    proptest! {
        #![proptest_config(crate::proptest_kit::config(256))]

        /// Whichever box an element is in, the oldest is shown, and the oldest or newest comes out.
        #[test]
        fn both_ends_are_those_of_a_plain_queue(
            first_bound in 1..8_usize,
            steps in vec(step(), 1..80),
        ) {
            let (queue, mut model) = (two_lock(first_bound), VecDeque::new());
            let mut bound = first_bound;
            for (number, step) in (0_u64..).zip(steps) {
                match step {
                    Step::Offer => {
                        let is_in = queue.offer(number, End::Last).is_ok();
                        prop_assert_eq!(is_in, model.len() < bound, "the bound is exact");
                        if is_in {
                            model.push_back(number);
                        }
                    }
                    Step::Poll => prop_assert_eq!(queue.poll(End::First), model.pop_front()),
                    Step::PollBy(newest) => {
                        let mut shown = None;
                        let got = queue.poll_by(|oldest| {
                            shown = Some(*oldest);
                            if newest { End::Last } else { End::First }
                        });
                        prop_assert_eq!(shown, model.front().copied());
                        let expected = if newest { model.pop_back() } else { model.pop_front() };
                        prop_assert_eq!(got, expected);
                    }
                    Step::RemoveEven => {
                        queue.remove_where(End::First, usize::MAX, &mut |n| n % 2 == 0);
                        model.retain(|n| n % 2 == 1);
                    }
                    Step::Bound(new) => {
                        queue.set_bound(new as u64).unwrap();
                        bound = new;
                    }
                }
                prop_assert_eq!(queue.len(), model.len());
                prop_assert!(!queue.is_full() || model.len() >= bound, "a marked queue is full");
                let hint = queue.hint().is_some_and(|hint| hint.is_ready);
                let in_inbox = queue.inbox.inbox.lock().ring.len();
                prop_assert_eq!(hint, in_inbox > 0, "the hint is about the inbox");
            }
        }
    }

    /// A poll at either end wakes producers that wait for room.
    #[test]
    fn stress_every_element_comes_out_once_at_whichever_end() {
        const EACH: u64 = 5000;
        let queue = Arc::new(FifoQueue::bounded_growing(3).unwrap());
        let left = Arc::new(AtomicUsize::new(2 * EACH as usize));
        let producers: Vec<_> = (0..2)
            .map(|part| {
                let queue = Arc::clone(&queue);
                thread::spawn(move || {
                    for number in 0..EACH {
                        queue.put(part * EACH + number).unwrap();
                    }
                })
            })
            .collect();
        let consumers: Vec<_> = [true, false]
            .map(|newest| {
                let (queue, left) = (Arc::clone(&queue), Arc::clone(&left));
                thread::spawn(move || {
                    let mut got = Vec::new();
                    while left.load(Ordering::Relaxed) > 0 {
                        match queue.poll_by(|_| newest) {
                            Some(element) => {
                                left.fetch_sub(1, Ordering::Relaxed);
                                got.push(element);
                            }
                            None => thread::yield_now(),
                        }
                    }
                    got
                })
            })
            .into();
        producers
            .into_iter()
            .for_each(|producer| producer.join().unwrap());
        let mut all: Vec<u64> = consumers
            .into_iter()
            .flat_map(|consumer| consumer.join().unwrap())
            .collect();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..2 * EACH));
    }
}
