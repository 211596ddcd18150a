//! Taking from the newest end, which the two boxes are not made for.
//!
//! The newest element is the last of the inbox, or, if that is empty, the last of the outbox; so this
//! takes both locks, each time. It is for pools that are overloaded, and those have other worries: the
//! usual way out is as cheap as ever.

use super::Twin;
use crate::queue::line::lock;
use crate::queue::store::{End, Store};
use millpond_raw::sync::atomic::Ordering;

impl<T: Send> Twin<T> {
    /// Takes the oldest element or the newest, as `choose` says when it sees the oldest. It runs under
    /// both locks, so it must be quick, and use nothing of this queue.
    pub(in crate::queue) fn poll_by(&self, choose: impl FnOnce(&T) -> End) -> Option<T> {
        let mut outbox = lock(&self.outbox.ring);
        let mut inbox = lock(&self.inbox.inbox);
        if outbox.len() == 0 {
            self.refill(&mut inbox, &mut outbox);
        }
        let end = choose(outbox.first()?);
        // B1: whatever is in the inbox is newer than all of the outbox.
        let element = match end == End::Last && inbox.ring.len() > 0 {
            true => {
                let newest = inbox.ring.pop(&self.clock, End::Last);
                let is_ready = inbox.ring.len() > 0;
                self.inbox.is_ready.store(is_ready, Ordering::Relaxed);
                newest
            }
            false => outbox.pop(&self.clock, end),
        };
        drop(inbox);
        self.settle(outbox, usize::from(element.is_some()));
        element
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;
    use crate::queue::ring::Ring;
    use crate::queue::{BlockingQueue, LinkedQueue};
    use millpond_raw::sync::atomic::AtomicUsize;
    use millpond_raw::sync::thread;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::VecDeque;
    use std::sync::Arc;

    fn twin(bound: usize) -> Twin<u64> {
        Twin::new(Ring::growing(), Ring::growing(), Some(bound))
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

        /// Whichever box an element is in: the oldest is shown, and the oldest or newest comes out.
        #[test]
        fn both_ends_are_those_of_a_plain_queue(
            first_bound in 1..8_usize,
            steps in vec(step(), 1..80),
        ) {
            let (queue, mut model) = (twin(first_bound), VecDeque::new());
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
                prop_assert!(!queue.is_full() || model.len() >= bound, "the sign tells the truth");
                let glance = queue.glance().is_some_and(|glance| glance.is_ready);
                let in_inbox = queue.inbox.inbox.lock().ring.len();
                prop_assert_eq!(glance, in_inbox > 0, "who looks out looks for nothing else");
            }
        }
    }

    /// Putters that wait for room are called by whoever takes at either end.
    #[test]
    fn stress_every_element_comes_out_once_at_whichever_end() {
        const EACH: u64 = 5000;
        let queue = Arc::new(LinkedQueue::bounded(3).unwrap());
        let left = Arc::new(AtomicUsize::new(2 * EACH as usize));
        let putters: Vec<_> = (0..2)
            .map(|part| {
                let queue = Arc::clone(&queue);
                thread::spawn(move || {
                    for number in 0..EACH {
                        queue.put(part * EACH + number).unwrap();
                    }
                })
            })
            .collect();
        let takers: Vec<_> = [true, false]
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
        putters
            .into_iter()
            .for_each(|putter| putter.join().unwrap());
        let mut all: Vec<u64> = takers
            .into_iter()
            .flat_map(|taker| taker.join().unwrap())
            .collect();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..2 * EACH));
    }
}
