//! What a queue with two ends does at each of them.

use super::item::{Item, item};
use crate::kit::{Actor, Gate, Stopwatch, delays};
use millpond::interrupt::{self, Interrupted};
use millpond::queue::{BlockingDeque, BlockingQueue, OfferError, QueueExt, Reason};
use millpond_raw::task::current;
use std::sync::Arc;
use std::time::Duration;

/// Makes a deque of this capacity.
pub type Deques = fn(usize) -> BlockingDeque<Item>;

/// Tests of a deque with a bound.
#[macro_export]
macro_rules! deque_suite {
    ($make:expr) => {
        $crate::bodies! { deque, ($make as $crate::suites::deque::Deques);
            each_end_accepts_elements_while_there_is_room
            each_end_gives_what_is_there_and_then_nothing
            each_end_shows_its_element_and_leaves_it
            elements_pushed_at_the_front_come_out_first
            an_element_put_at_either_end_is_contained
            take_gives_the_elements_from_its_end
            the_equal_element_nearest_to_the_chosen_end_is_removed
            visiting_backwards_is_the_reverse_of_visiting_forwards
            removing_backwards_removes_the_elements_the_predicate_chooses
            a_put_at_either_end_waits_until_it_is_interrupted
            a_put_at_either_end_waits_for_a_take_at_either_end
            a_timed_offer_at_either_end_waits_for_its_whole_timeout
            a_take_at_either_end_waits_until_it_is_interrupted
            a_pending_interrupt_ends_every_form_that_may_wait
            a_timed_poll_with_timeout_zero_is_a_poll
            a_timed_poll_at_either_end_waits_for_its_whole_timeout
            a_timed_poll_gets_what_is_offered_at_either_end
            consumers_at_both_ends_share_the_elements
        }
    };
}

type Deque = BlockingDeque<Item>;
type Answer = Result<(), OfferError<Item>>;

/// The operations at one end, so that each body is written once.
#[derive(Clone, Copy)]
struct End {
    offer: fn(&Deque, Item) -> Answer,
    put: fn(&Deque, Item) -> Answer,
    offer_timeout: fn(&Deque, Item, Duration) -> Answer,
    poll: fn(&Deque) -> Option<Item>,
    take: fn(&Deque) -> Result<Item, Interrupted>,
    poll_timeout: fn(&Deque, Duration) -> Result<Option<Item>, Interrupted>,
    peek: fn(&Deque) -> Option<Item>,
}

const FIRST: End = End {
    offer: BlockingDeque::offer_first,
    put: BlockingDeque::put_first,
    offer_timeout: BlockingDeque::offer_first_timeout,
    poll: BlockingDeque::poll_first,
    take: BlockingDeque::take_first,
    poll_timeout: BlockingDeque::poll_first_timeout,
    peek: BlockingDeque::peek_first,
};

const LAST: End = End {
    offer: BlockingDeque::offer_last,
    put: BlockingDeque::put_last,
    offer_timeout: BlockingDeque::offer_last_timeout,
    poll: BlockingDeque::poll_last,
    take: BlockingDeque::take_last,
    poll_timeout: BlockingDeque::poll_last_timeout,
    peek: BlockingDeque::peek_last,
};

/// Each end and the other one.
const ENDS: [(End, End); 2] = [(FIRST, LAST), (LAST, FIRST)];

fn ranks(deque: &Deque) -> Vec<u32> {
    deque.snapshot().iter().map(|item| item.rank).collect()
}

/// A deque with these elements, first to last.
fn holding(make: &Deques, capacity: usize, ranks: &[u32]) -> Arc<Deque> {
    let deque = make(capacity);
    for &rank in ranks {
        deque.offer_last(item(rank)).expect("there is room");
    }
    Arc::new(deque)
}

/// Holds: LinkedBlockingDequeTest.testOfferFirst, LinkedBlockingDequeTest.testOfferLast
/// Holds: LinkedBlockingDequeTest.testAddFirst, LinkedBlockingDequeTest.testAddLast
/// Holds: LinkedBlockingDequeTest.testPush
pub fn each_end_accepts_elements_while_there_is_room(make: &Deques) {
    for (end, expected) in [(FIRST, [2, 1, 0]), (LAST, [0, 1, 2])] {
        let deque = make(3);
        for rank in 0..3 {
            (end.offer)(&deque, item(rank)).unwrap();
            assert_eq!(
                (end.peek)(&deque),
                Some(item(rank)),
                "it is the one at the end"
            );
        }
        let rejected = (end.offer)(&deque, item(9)).unwrap_err();
        assert_eq!((rejected.element, rejected.reason), (item(9), Reason::Full));
        assert_eq!(ranks(&deque), expected);
    }
}

/// Holds: LinkedBlockingDequeTest.testPollFirst, LinkedBlockingDequeTest.testPollLast
/// Holds: LinkedBlockingDequeTest.testRemoveFirst, LinkedBlockingDequeTest.testRemoveLast
/// Holds: LinkedBlockingDequeTest.testPop
pub fn each_end_gives_what_is_there_and_then_nothing(make: &Deques) {
    for (end, expected) in [(FIRST, [0, 1, 2]), (LAST, [2, 1, 0])] {
        let deque = holding(make, 3, &[0, 1, 2]);
        for rank in expected {
            assert_eq!((end.poll)(&deque), Some(item(rank)));
        }
        assert_eq!((end.poll)(&deque), None);
    }
}

/// Holds: LinkedBlockingDequeTest.testPeekFirst, LinkedBlockingDequeTest.testPeekLast
/// Holds: LinkedBlockingDequeTest.testFirstElement, LinkedBlockingDequeTest.testLastElement
pub fn each_end_shows_its_element_and_leaves_it(make: &Deques) {
    for (end, expected) in [(FIRST, [0, 1, 2]), (LAST, [2, 1, 0])] {
        let deque = holding(make, 3, &[0, 1, 2]);
        for rank in expected {
            assert_eq!((end.peek)(&deque), Some(item(rank)));
            assert_eq!((end.peek)(&deque), Some(item(rank)));
            assert!((end.poll)(&deque).is_some());
        }
        assert_eq!((end.peek)(&deque), None);
    }
}

/// Holds: LinkedBlockingDequeTest.testPushWithPeek
pub fn elements_pushed_at_the_front_come_out_first(make: &Deques) {
    let deque = holding(make, 4, &[1, 2]);
    deque.offer_first(item(9)).unwrap();
    assert_eq!(deque.peek(), Some(item(9)));
    assert_eq!(deque.poll(), Some(item(9)));
}

/// Holds: LinkedBlockingDequeTest.testPutFirst, LinkedBlockingDequeTest.testPutLast
pub fn an_element_put_at_either_end_is_contained(make: &Deques) {
    for (end, _) in ENDS {
        let deque = make(4);
        for rank in 0..4 {
            (end.put)(&deque, item(rank)).unwrap();
            assert!(deque.contains(&item(rank)));
        }
        assert_eq!(deque.remaining_capacity(), 0);
    }
}

/// Holds: LinkedBlockingDequeTest.testTakeFirst, LinkedBlockingDequeTest.testTakeLast
pub fn take_gives_the_elements_from_its_end(make: &Deques) {
    for (end, expected) in [(FIRST, [0, 1, 2]), (LAST, [2, 1, 0])] {
        let deque = holding(make, 3, &[0, 1, 2]);
        for rank in expected {
            assert_eq!((end.take)(&deque), Ok(item(rank)));
        }
        assert!(deque.is_empty());
    }
}

/// Holds: LinkedBlockingDequeTest.testRemoveFirstOccurrence
/// Holds: LinkedBlockingDequeTest.testRemoveLastOccurrence
pub fn the_equal_element_nearest_to_the_chosen_end_is_removed(make: &Deques) {
    let deque = make(4);
    for mark in 0..4 {
        deque.offer_last(item(5).marked(mark)).unwrap();
    }
    assert!(deque.remove(&item(5)));
    assert!(deque.reversed().remove(&item(5)));
    let marks: Vec<u32> = deque.snapshot().iter().map(|item| item.mark).collect();
    assert_eq!(marks, [1, 2]);
    assert!(!deque.remove(&item(6)));
    assert!(!deque.reversed().remove(&item(6)));
}

/// Holds: LinkedBlockingDequeTest.testDescendingIterator
/// Holds: LinkedBlockingDequeTest.testDescendingIteratorOrdering
pub fn visiting_backwards_is_the_reverse_of_visiting_forwards(make: &Deques) {
    let deque = holding(make, 5, &[3, 1, 4, 1]);
    let mut backwards = deque.reversed().snapshot();
    assert_eq!(backwards.len(), 4);
    backwards.reverse();
    assert_eq!(backwards, deque.snapshot());
}

/// Holds: LinkedBlockingDequeTest.testDescendingIteratorRemove
pub fn removing_backwards_removes_the_elements_the_predicate_chooses(make: &Deques) {
    let deque = holding(make, 5, &[0, 1, 2, 3]);
    let mut looked = 0;
    let taken = deque.reversed().remove_where(1, &mut |_| {
        looked += 1;
        looked == 2
    });
    assert_eq!(taken, [item(2)]);
    assert_eq!(ranks(&deque), [0, 1, 3]);
}

/// An actor at a deque.
fn at<R: Send + 'static>(
    deque: &Arc<Deque>,
    act: impl FnOnce(&Deque) -> R + Send + 'static,
) -> Actor<R> {
    let own = Arc::clone(deque);
    Actor::start("actor", move || act(&own))
}

/// Holds: LinkedBlockingDequeTest.testBlockingPutFirst
/// Holds: LinkedBlockingDequeTest.testBlockingPutLast
pub fn a_put_at_either_end_waits_until_it_is_interrupted(make: &Deques) {
    for (end, _) in ENDS {
        let deque = holding(make, 2, &[0, 1]);
        let producer = at(&deque, move |deque| (end.put)(deque, item(9)));
        producer.interrupt_at("queue.put");
        let rejected = producer.finish().unwrap_err();
        assert_eq!(
            (rejected.element, rejected.reason),
            (item(9), Reason::Interrupted)
        );
        assert_eq!(ranks(&deque), [0, 1]);
    }
}

/// Holds: LinkedBlockingDequeTest.testPutFirstWithTake, LinkedBlockingDequeTest.testPutLastWithTake
pub fn a_put_at_either_end_waits_for_a_take_at_either_end(make: &Deques) {
    for (end, other) in ENDS {
        for taking in [end, other] {
            let deque = holding(make, 2, &[0, 1]);
            let producer = at(&deque, move |deque| (end.put)(deque, item(9)));
            producer.await_parked("queue.put");
            assert!((taking.take)(&deque).is_ok());
            producer.finish().unwrap();
            assert_eq!((end.peek)(&deque), Some(item(9)));
            assert_eq!(deque.len(), 2);
        }
    }
}

/// Holds: LinkedBlockingDequeTest.testTimedOfferFirst, LinkedBlockingDequeTest.testTimedOfferLast
pub fn a_timed_offer_at_either_end_waits_for_its_whole_timeout(make: &Deques) {
    for (end, _) in ENDS {
        let deque = holding(make, 2, &[0, 1]);
        let timed_out = Gate::new();
        let opener = timed_out.clone();
        let producer = at(&deque, move |deque| {
            let watch = Stopwatch::start();
            let rejected = (end.offer_timeout)(deque, item(9), delays::timeout()).unwrap_err();
            watch.assert_at_least(delays::timeout());
            assert_eq!(rejected.reason, Reason::TimedOut);
            opener.open();
            (end.offer_timeout)(deque, rejected.element, delays::longer())
        });
        timed_out.wait();
        producer.interrupt_at("queue.put");
        assert_eq!(producer.finish().unwrap_err().reason, Reason::Interrupted);
        assert_eq!(ranks(&deque), [0, 1]);
    }
}

/// Holds: LinkedBlockingDequeTest.testTakeFirstFromEmptyBlocksInterruptibly
/// Holds: LinkedBlockingDequeTest.testTakeLastFromEmptyBlocksInterruptibly
/// Holds: LinkedBlockingDequeTest.testBlockingTakeLast
/// Holds: LinkedBlockingDequeTest.testInterruptedTimedPollLast
pub fn a_take_at_either_end_waits_until_it_is_interrupted(make: &Deques) {
    for (end, _) in ENDS {
        let deque = holding(make, 2, &[0]);
        let consumer = at(&deque, move |deque| {
            assert_eq!((end.take)(deque), Ok(item(0)), "what is there comes first");
            (end.take)(deque)
        });
        consumer.interrupt_at("queue.take");
        assert_eq!(consumer.finish(), Err(Interrupted));
        let consumer = at(&deque, move |deque| {
            (end.poll_timeout)(deque, delays::longer())
        });
        consumer.interrupt_at("queue.take");
        assert_eq!(
            consumer.finish(),
            Err(Interrupted),
            "an interrupt is no timeout"
        );
    }
}

/// Holds: LinkedBlockingDequeTest.testTakeFirstFromEmptyAfterInterrupt
/// Holds: LinkedBlockingDequeTest.testInterruptedExceptionThrownInBlockingMethods
pub fn a_pending_interrupt_ends_every_form_that_may_wait(make: &Deques) {
    for fill in [&[][..], &[0]] {
        for (end, _) in ENDS {
            let deque = holding(make, 2, fill);
            let own = Arc::clone(&deque);
            let actor = Actor::start_interrupted("actor", move || {
                let again = || {
                    assert!(!interrupt::is_interrupted(), "what is reported is cleared");
                    assert!(current::set(), "an actor has a token");
                };
                assert_eq!((end.take)(&own), Err(Interrupted));
                again();
                assert_eq!((end.poll_timeout)(&own, delays::longer()), Err(Interrupted));
                again();
                let rejected = (end.put)(&own, item(9)).unwrap_err();
                assert_eq!(rejected.reason, Reason::Interrupted);
                again();
                let rejected = (end.offer_timeout)(&own, item(9), delays::longer()).unwrap_err();
                assert_eq!(rejected.reason, Reason::Interrupted);
            });
            actor.finish();
            assert_eq!(ranks(&deque), fill);
        }
    }
}

/// Holds: LinkedBlockingDequeTest.testTimedPollFirst0, LinkedBlockingDequeTest.testTimedPollLast0
pub fn a_timed_poll_with_timeout_zero_is_a_poll(make: &Deques) {
    for (end, _) in ENDS {
        let deque = holding(make, 2, &[5]);
        assert_eq!(
            (end.poll_timeout)(&deque, Duration::ZERO),
            Ok(Some(item(5)))
        );
        for timeout in delays::instants() {
            assert_eq!((end.poll_timeout)(&deque, timeout), Ok(None));
        }
    }
}

/// Holds: LinkedBlockingDequeTest.testTimedPollFirst
pub fn a_timed_poll_at_either_end_waits_for_its_whole_timeout(make: &Deques) {
    for (end, _) in ENDS {
        let deque = holding(make, 2, &[5]);
        assert_eq!(
            (end.poll_timeout)(&deque, delays::long()),
            Ok(Some(item(5)))
        );
        let watch = Stopwatch::start();
        assert_eq!((end.poll_timeout)(&deque, delays::timeout()), Ok(None));
        watch.assert_at_least(delays::timeout());
    }
}

/// Holds: LinkedBlockingDequeTest.testTimedPollFirstWithOfferFirst
/// Holds: LinkedBlockingDequeTest.testTimedPollWithOfferLast
pub fn a_timed_poll_gets_what_is_offered_at_either_end(make: &Deques) {
    for (end, other) in ENDS {
        for offering in [end, other] {
            let deque = holding(make, 2, &[]);
            let consumer = at(&deque, move |deque| {
                (end.poll_timeout)(deque, delays::longer())
            });
            consumer.await_parked("queue.take");
            let watch = Stopwatch::start();
            (offering.offer)(&deque, item(5)).unwrap();
            assert_eq!(consumer.finish(), Ok(Some(item(5))));
            watch.assert_prompt();
        }
    }
}

/// An element serves one waiting consumer, at either end.
pub fn consumers_at_both_ends_share_the_elements(make: &Deques) {
    let deque = holding(make, 2, &[]);
    let consumers = [FIRST, LAST].map(|end| {
        let consumer = at(&deque, move |deque| (end.take)(deque).unwrap().rank);
        consumer.await_parked("queue.take");
        consumer
    });
    deque.offer_first(item(1)).unwrap();
    deque.offer_last(item(2)).unwrap();
    let mut got = consumers.map(Actor::finish);
    got.sort_unstable();
    assert_eq!(got, [1, 2]);
}
