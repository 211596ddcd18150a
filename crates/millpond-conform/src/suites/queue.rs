//! What every queue that holds elements does.
//!
//! The bodies put elements in by ascending rank, so the order in which they must come out is the
//! same for queues that keep the order of arrival and for queues that make their own.

use super::item::{Make, ROOM, empty, item, offer_all, polled, ranks, with};
use crate::kit::{Actor, DropCount, delays};
use millpond::interrupt::Interrupted;
use millpond::queue::QueueExt;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

/// Tests of a queue that holds elements, made by a [`Make`].
#[macro_export]
macro_rules! queue_suite {
    ($make:expr) => {
        $crate::bodies! { queue, ($make as $crate::suites::item::Make);
            an_empty_queue_is_empty_in_every_view
            length_follows_what_comes_and_goes
            an_element_is_contained_until_it_is_taken
            poll_gives_the_elements_in_order_and_then_nothing
            take_gives_the_elements_in_order
            elements_added_in_bulk_come_out_in_order
            peek_shows_the_next_element_and_leaves_it
            clearing_empties_the_queue_and_leaves_it_usable
            containing_all_is_containing_each
            unwanted_elements_are_removed_and_the_rest_keeps_its_order
            wanted_elements_are_kept_and_the_rest_goes
            removing_one_takes_the_first_that_is_equal
            a_removed_element_makes_room_for_another
            a_snapshot_holds_every_element_once_in_order
            a_snapshot_is_in_order_after_many_turns
            a_snapshot_is_not_changed_by_what_comes_later
            a_visit_ends_when_it_is_told_to
            removing_during_a_visit_takes_the_elements_the_predicate_chooses
            a_predicate_that_panics_removes_nothing
            draining_moves_everything_in_order
            a_bounded_drain_leaves_the_rest
            a_drain_of_at_most_nothing_moves_nothing
            a_drain_into_a_sink_that_fails_loses_only_what_the_sink_was_given
            debug_text_counts_the_elements
            an_emptied_queue_holds_on_to_nothing
            a_dropped_queue_drops_its_elements
            an_interrupt_comes_before_an_element_that_is_there
            two_queues_with_the_same_elements_look_the_same
        }
    };
}

/// Holds: Collection8Test.testEmptyMeansEmpty, Collection8Test.testNoSuchElementExceptions
/// Holds: ArrayBlockingQueueTest.testEmptyIterator, LinkedBlockingQueueTest.testEmptyIterator
/// Holds: LinkedBlockingDequeTest.testEmptyIterator, PriorityBlockingQueueTest.testEmptyIterator
/// Holds: LinkedTransferQueueTest.testEmptyIterator, LinkedTransferQueueTest.testConstructor1
/// Holds: ArrayBlockingQueueTest.testElement, LinkedBlockingQueueTest.testElement
/// Holds: LinkedBlockingDequeTest.testElement, PriorityBlockingQueueTest.testElement
/// Holds: DelayQueueTest.testElement, LinkedTransferQueueTest.testElement
/// Holds: ArrayBlockingQueueTest.testRemove, LinkedBlockingQueueTest.testRemove
/// Holds: LinkedBlockingDequeTest.testRemove, PriorityBlockingQueueTest.testRemove
/// Holds: DelayQueueTest.testRemove, LinkedTransferQueueTest.testRemove
pub fn an_empty_queue_is_empty_in_every_view(make: &Make) {
    let queue = empty(make);
    for _ in 0..2 {
        assert!(queue.is_empty());
        assert_eq!(queue.len(), 0);
        assert_eq!(queue.peek(), None);
        assert_eq!(queue.poll(), None);
        assert!(queue.snapshot().is_empty());
        assert!(!queue.contains(&item(1)));
        assert!(!queue.remove(&item(1)));
        assert_eq!(queue.drain_into(&mut Vec::new()), 0);
        // And again when it has been used.
        offer_all(&queue, [1]);
        assert_eq!(polled(&queue), [1]);
    }
}

/// Holds: LinkedBlockingDequeTest.testEmpty, LinkedBlockingDequeTest.testSize
/// Holds: PriorityBlockingQueueTest.testEmpty
pub fn length_follows_what_comes_and_goes(make: &Make) {
    let queue = empty(make);
    for rank in 0..ROOM as u32 {
        assert_eq!(queue.len(), rank as usize);
        offer_all(&queue, [rank]);
        assert!(!queue.is_empty());
    }
    for left in (0..ROOM).rev() {
        assert!(queue.poll().is_some());
        assert_eq!(queue.len(), left);
    }
    assert!(queue.is_empty());
}

/// Holds: ArrayBlockingQueueTest.testPut, LinkedBlockingQueueTest.testPut
/// Holds: LinkedBlockingDequeTest.testPut, PriorityBlockingQueueTest.testPut
/// Holds: DelayQueueTest.testPut, LinkedTransferQueueTest.testPut
/// Holds: ArrayBlockingQueueTest.testContains, LinkedBlockingQueueTest.testContains
/// Holds: LinkedBlockingDequeTest.testContains, DelayQueueTest.testContains
/// Holds: LinkedTransferQueueTest.testContains
pub fn an_element_is_contained_until_it_is_taken(make: &Make) {
    let queue = empty(make);
    for rank in 0..ROOM as u32 {
        queue.put(item(rank)).unwrap();
        assert!(queue.contains(&item(rank)));
    }
    for rank in 0..ROOM as u32 {
        assert!(queue.contains(&item(rank)));
        assert_eq!(queue.poll(), Some(item(rank)));
        assert!(!queue.contains(&item(rank)));
    }
}

/// Holds: ArrayBlockingQueueTest.testPoll, LinkedBlockingQueueTest.testPoll
/// Holds: LinkedBlockingDequeTest.testPoll
pub fn poll_gives_the_elements_in_order_and_then_nothing(make: &Make) {
    let queue = with(make, 4);
    assert_eq!(polled(&queue), [0, 1, 2, 3]);
    assert_eq!(queue.poll(), None);
}

/// Holds: LinkedBlockingQueueTest.testTake, LinkedBlockingDequeTest.testTake
/// Holds: PriorityBlockingQueueTest.testTake, LinkedTransferQueueTest.testTake
pub fn take_gives_the_elements_in_order(make: &Make) {
    let queue = with(make, 4);
    for rank in 0..4 {
        assert_eq!(queue.take(), Ok(item(rank)));
    }
}

/// Holds: ArrayBlockingQueueTest.testAddAll5, LinkedBlockingQueueTest.testAddAll5
/// Holds: LinkedBlockingDequeTest.testAddAll5, PriorityBlockingQueueTest.testAddAll5
/// Holds: DelayQueueTest.testAddAll5, LinkedTransferQueueTest.testAddAll5
/// Holds: ArrayBlockingQueueTest.testConstructor7, LinkedBlockingQueueTest.testConstructor6
/// Holds: LinkedBlockingDequeTest.testConstructor6, PriorityBlockingQueueTest.testConstructor6
pub fn elements_added_in_bulk_come_out_in_order(make: &Make) {
    let (source, queue) = (with(make, 5), empty(make));
    let moved = source.drain_to(usize::MAX, &mut |item| queue.offer(item).unwrap());
    assert_eq!(moved, 5);
    assert_eq!(polled(&queue), [0, 1, 2, 3, 4]);
}

/// Holds: ArrayBlockingQueueTest.testPeek, LinkedBlockingQueueTest.testPeek
/// Holds: LinkedBlockingDequeTest.testPeek, LinkedTransferQueueTest.testPeek
pub fn peek_shows_the_next_element_and_leaves_it(make: &Make) {
    let queue = with(make, 3);
    for rank in 0..3 {
        assert_eq!(queue.peek(), Some(item(rank)));
        assert_eq!(queue.peek(), Some(item(rank)));
        assert_eq!(queue.poll(), Some(item(rank)));
    }
    assert_eq!(queue.peek(), None);
}

/// Holds: ArrayBlockingQueueTest.testClear, LinkedBlockingQueueTest.testClear
/// Holds: LinkedBlockingDequeTest.testClear, PriorityBlockingQueueTest.testClear
/// Holds: DelayQueueTest.testClear
pub fn clearing_empties_the_queue_and_leaves_it_usable(make: &Make) {
    let queue = with(make, ROOM as u32);
    let room = queue.capacity();
    queue.clear();
    assert!(queue.is_empty());
    assert_eq!(queue.capacity(), room);
    queue.clear();
    offer_all(&queue, 0..ROOM as u32);
    assert_eq!(queue.len(), ROOM);
}

/// Holds: ArrayBlockingQueueTest.testContainsAll, LinkedBlockingQueueTest.testContainsAll
/// Holds: LinkedBlockingDequeTest.testContainsAll, PriorityBlockingQueueTest.testContainsAll
pub fn containing_all_is_containing_each(make: &Make) {
    let queue = empty(make);
    let holds_all = |count: u32| (0..count).all(|rank| queue.contains(&item(rank)));
    for count in 0..4 {
        assert!(holds_all(count));
        assert!(!holds_all(count + 1));
        offer_all(&queue, [count]);
    }
}

/// Holds: ArrayBlockingQueueTest.testRemoveAll, LinkedBlockingQueueTest.testRemoveAll
/// Holds: LinkedBlockingDequeTest.testRemoveAll, DelayQueueTest.testRemoveAll
/// Holds: LinkedTransferQueueTest.testRemoveAll, Collection8Test.testRemoveIf
pub fn unwanted_elements_are_removed_and_the_rest_keeps_its_order(make: &Make) {
    let queue = with(make, 6);
    let odd = queue.remove_where(usize::MAX, &mut |item| item.rank % 2 == 1);
    assert_eq!(odd, [item(1), item(3), item(5)]);
    let none = queue.remove_where(usize::MAX, &mut |item| item.rank % 2 == 1);
    assert!(none.is_empty(), "nothing changes the second time");
    assert_eq!(ranks(&queue), [0, 2, 4]);
    assert_eq!(polled(&queue), [0, 2, 4]);
}

/// Holds: LinkedBlockingQueueTest.testRetainAll, LinkedBlockingDequeTest.testRetainAll
/// Holds: PriorityBlockingQueueTest.testRetainAll, DelayQueueTest.testRetainAll
/// Holds: LinkedTransferQueueTest.testRetainAll
pub fn wanted_elements_are_kept_and_the_rest_goes(make: &Make) {
    let queue = with(make, 5);
    let wanted = [item(1), item(2), item(9)];
    let gone = queue.remove_where(usize::MAX, &mut |item| !wanted.contains(item));
    assert_eq!(gone, [item(0), item(3), item(4)]);
    assert_eq!(polled(&queue), [1, 2]);
}

/// One of several equal elements goes, and it is the first.
pub fn removing_one_takes_the_first_that_is_equal(make: &Make) {
    let queue = empty(make);
    for mark in 0..3 {
        queue.offer(item(5).marked(mark)).unwrap();
    }
    assert!(queue.remove(&item(5)));
    assert!(!queue.remove(&item(6)));
    let marks: Vec<u32> = queue.snapshot().iter().map(|item| item.mark).collect();
    assert_eq!(marks, [1, 2]);
}

/// Holds: LinkedTransferQueueTest.testRemoveElementAndAdd
pub fn a_removed_element_makes_room_for_another(make: &Make) {
    let queue = empty(make);
    for _ in 0..3 * ROOM {
        offer_all(&queue, [1]);
        assert!(queue.remove(&item(1)));
        assert!(!queue.remove(&item(1)));
        assert!(queue.is_empty());
    }
    offer_all(&queue, [2]);
    assert_eq!(queue.take(), Ok(item(2)));
}

/// Holds: ArrayBlockingQueueTest.testIterator, LinkedBlockingQueueTest.testIterator
/// Holds: LinkedBlockingDequeTest.testIterator, PriorityBlockingQueueTest.testIterator
/// Holds: DelayQueueTest.testIterator, LinkedTransferQueueTest.testIterator
/// Holds: ArrayBlockingQueueTest.testIteratorOrdering, LinkedBlockingQueueTest.testIteratorOrdering
/// Holds: LinkedBlockingDequeTest.testIteratorOrdering, LinkedTransferQueueTest.testIteratorOrdering
/// Holds: LinkedBlockingQueueTest.testToArray2, LinkedBlockingDequeTest.testToArray2
/// Holds: PriorityBlockingQueueTest.testToArray2, DelayQueueTest.testToArray2
/// Holds: LinkedTransferQueueTest.testToArray2
/// Holds: Collection8Test.testTraversalEquivalence, Collection8Test.testForEach
/// Holds: Collection8Test.testForEachRemainingConsistentWithDefaultImplementation
pub fn a_snapshot_holds_every_element_once_in_order(make: &Make) {
    let queue = with(make, 5);
    let mut seen = Vec::new();
    queue.visit(&mut |item| {
        seen.push(item.rank);
        ControlFlow::Continue(())
    });
    assert_eq!(seen, [0, 1, 2, 3, 4]);
    assert_eq!(ranks(&queue), seen);
    assert_eq!(polled(&queue), seen, "seen as they come out");
}

/// Holds: ArrayBlockingQueueTest.testToArray, LinkedBlockingQueueTest.testToArray
/// Holds: LinkedBlockingDequeTest.testToArray, DelayQueueTest.testToArray
/// Holds: LinkedTransferQueueTest.testToArray
pub fn a_snapshot_is_in_order_after_many_turns(make: &Make) {
    let queue = with(make, 3);
    for rank in 0..3 * ROOM as u32 {
        assert_eq!(ranks(&queue), [rank, rank + 1, rank + 2]);
        assert_eq!(queue.poll(), Some(item(rank)));
        offer_all(&queue, [rank + 3]);
    }
}

/// Holds: ArrayBlockingQueueTest.testWeaklyConsistentIteration
/// Holds: LinkedTransferQueueTest.testWeaklyConsistentIteration
/// Holds: Collection8Test.testElementRemovalDuringTraversal
/// Holds: Collection8Test.testRandomElementRemovalDuringTraversal
/// Holds: Collection8Test.testStickySpliteratorExhaustion
/// Holds: jtreg queues.ArrayBlockingQueue/WhiteBox, jtreg queues.DelayQueue/Iterate
/// Holds: jtreg queues.ConcurrentQueues/IteratorWeakConsistency
pub fn a_snapshot_is_not_changed_by_what_comes_later(make: &Make) {
    let queue = with(make, 4);
    let mut walk = queue.snapshot().into_iter();
    assert_eq!(walk.next(), Some(item(0)));
    assert!(queue.remove(&item(2)));
    assert_eq!(queue.poll(), Some(item(0)));
    offer_all(&queue, [7]);
    let rest: Vec<u32> = walk.by_ref().map(|item| item.rank).collect();
    assert_eq!(rest, [1, 2, 3]);
    offer_all(&queue, [8]);
    assert_eq!(walk.next(), None, "what is exhausted stays so");
    assert_eq!(polled(&queue), [1, 3, 7, 8]);
}

/// A visitor that has seen enough sees no more.
pub fn a_visit_ends_when_it_is_told_to(make: &Make) {
    let queue = with(make, 5);
    let mut seen = 0;
    queue.visit(&mut |_| {
        seen += 1;
        match seen {
            2 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    });
    assert_eq!(seen, 2);
}

/// Holds: ArrayBlockingQueueTest.testIteratorRemove, LinkedBlockingQueueTest.testIteratorRemove
/// Holds: PriorityBlockingQueueTest.testIteratorRemove, DelayQueueTest.testIteratorRemove
pub fn removing_during_a_visit_takes_the_elements_the_predicate_chooses(make: &Make) {
    let queue = with(make, 5);
    let mut looked = 0;
    let taken = queue.remove_where(1, &mut |_| {
        looked += 1;
        looked == 2
    });
    assert_eq!(taken, [item(1)], "the look goes in order");
    assert_eq!(polled(&queue), [0, 2, 3, 4]);
}

/// A panic of a predicate goes to the caller and leaves the queue whole.
pub fn a_predicate_that_panics_removes_nothing(make: &Make) {
    let queue = with(make, 5);
    for panics_at in 0..5 {
        let caught = catch_unwind(AssertUnwindSafe(|| {
            queue.remove_where(usize::MAX, &mut |item| {
                if item.rank == panics_at {
                    resume_unwind(Box::new("indecisive"));
                }
                true
            })
        }));
        assert!(caught.is_err());
        assert_eq!(ranks(&queue), [0, 1, 2, 3, 4]);
    }
    let caught = catch_unwind(AssertUnwindSafe(|| {
        queue.visit(&mut |_| resume_unwind(Box::new("blind")));
    }));
    assert!(caught.is_err());
    assert_eq!(polled(&queue), [0, 1, 2, 3, 4]);
}

/// Holds: ArrayBlockingQueueTest.testDrainTo, PriorityBlockingQueueTest.testDrainTo
/// Holds: DelayQueueTest.testDrainTo
pub fn draining_moves_everything_in_order(make: &Make) {
    let queue = with(make, 4);
    let mut sink = vec![item(9)];
    assert_eq!(queue.drain_into(&mut sink), 4);
    assert_eq!(sink, [9, 0, 1, 2, 3].map(item));
    assert!(queue.is_empty());
    offer_all(&queue, [0, 1]);
    assert_eq!(queue.drain_into(&mut sink), 2);
    assert_eq!(sink[5..], [0, 1].map(item));
}

/// Holds: ArrayBlockingQueueTest.testDrainToN, PriorityBlockingQueueTest.testDrainToN
/// Holds: DelayQueueTest.testDrainToN, LinkedTransferQueueTest.testDrainToN
pub fn a_bounded_drain_leaves_the_rest(make: &Make) {
    for max in 0..7 {
        let queue = with(make, 5);
        let mut sink = Vec::new();
        let moved = queue.drain_to(max, &mut |item| sink.push(item.rank));
        assert_eq!(moved, max.min(5));
        sink.extend(polled(&queue));
        assert_eq!(sink, [0, 1, 2, 3, 4]);
    }
}

/// Holds: BlockingQueueTest.testDrainToNonPositiveMaxElements
pub fn a_drain_of_at_most_nothing_moves_nothing(make: &Make) {
    let queue = with(make, 3);
    assert_eq!(queue.drain_to(0, &mut |_| panic!("it moves something")), 0);
    assert_eq!(queue.len(), 3);
}

/// Holds: jtreg queues.BlockingQueue/DrainToFails
pub fn a_drain_into_a_sink_that_fails_loses_only_what_the_sink_was_given(make: &Make) {
    let count = DropCount::new();
    let queue = empty(make);
    for rank in 0..6 {
        queue.offer(item(rank).counted(&count)).unwrap();
    }
    let mut sink = Vec::new();
    let caught = catch_unwind(AssertUnwindSafe(|| {
        queue.drain_to(usize::MAX, &mut |item| {
            if sink.len() == 2 {
                resume_unwind(Box::new("the sack is full"));
            }
            sink.push(item);
        })
    }));
    assert!(caught.is_err());
    assert_eq!(sink, [0, 1].map(item));
    assert_eq!(ranks(&queue), [3, 4, 5]);
    count.assert_alive(5);
    offer_all(&queue, [6]);
    assert_eq!(polled(&queue), [3, 4, 5, 6]);
}

/// Holds: ArrayBlockingQueueTest.testToString, LinkedBlockingQueueTest.testToString
/// Holds: LinkedBlockingDequeTest.testToString, PriorityBlockingQueueTest.testToString
/// Holds: DelayQueueTest.testToString, LinkedTransferQueueTest.testToString
pub fn debug_text_counts_the_elements(make: &Make) {
    let queue = with(make, 3);
    let text = format!("{queue:?}");
    let names_it = text.contains("Queue") || text.contains("Deque");
    assert!(names_it && text.contains("len: 3"), "{text}");
}

/// Holds: jtreg queues.BlockingQueue/LastElement
pub fn an_emptied_queue_holds_on_to_nothing(make: &Make) {
    let count = DropCount::new();
    let queue = empty(make);
    for way in 0..5 {
        queue.offer(item(1).counted(&count)).unwrap();
        match way {
            0 => drop(queue.poll()),
            1 => drop(queue.take()),
            2 => assert!(queue.remove(&item(1))),
            3 => queue.clear(),
            _ => assert_eq!(queue.drain_to(1, &mut drop), 1),
        }
        count.assert_alive(0);
        assert!(queue.is_empty() && queue.snapshot().is_empty());
        assert_eq!(queue.poll(), None);
        offer_all(&queue, [3]);
        assert_eq!(polled(&queue), [3], "it works after way {way}");
    }
}

/// Whatever is in a queue that is dropped is dropped with it, once.
pub fn a_dropped_queue_drops_its_elements(make: &Make) {
    let count = DropCount::new();
    let queue = empty(make);
    for rank in 0..5 {
        queue.offer(item(rank).counted(&count)).unwrap();
    }
    drop(queue.poll());
    count.assert_alive(4);
    drop(queue);
    count.assert_alive(0);
}

/// A pending interrupt ends a take also when it need not wait, and takes nothing.
pub fn an_interrupt_comes_before_an_element_that_is_there(make: &Make) {
    let queue = with(make, 1);
    for timed in [false, true] {
        let own = Arc::clone(&queue);
        let consumer = Actor::start_interrupted("consumer", move || {
            if timed {
                own.poll_timeout(delays::longer())
            } else {
                own.take().map(Some)
            }
        });
        assert_eq!(consumer.finish(), Err(Interrupted));
    }
    assert_eq!(polled(&queue), [0]);
}

/// Holds: Collection8Test.testCollectionCopies
pub fn two_queues_with_the_same_elements_look_the_same(make: &Make) {
    let (one, two) = (with(make, 5), empty(make));
    for element in one.snapshot() {
        two.offer(element).unwrap();
    }
    assert_eq!(one.snapshot(), two.snapshot());
    assert_eq!(one.len(), 5, "copying takes nothing out");
}
