use super::inbox::BACKLOG_STEP;
use super::*;
use std::sync::Arc;

struct Bell(AtomicUsize);

impl std::task::Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// FIFO-7: a push wakes nobody during a search, so a failed search checks for new elements when it ends.
#[test]
fn a_search_that_finds_nothing_wakes_a_consumer_for_what_has_come_meanwhile() {
    let queue = TwoLock::new(Ring::growing(), Ring::growing(), None).throttle_wakeups();
    let bell = Arc::new(Bell(AtomicUsize::new(0)));
    let waker = Arc::clone(&bell).into();
    let mut slot = WaitSlot::default();
    let waits = queue.poll_take(End::First, &mut slot, &waker);
    assert!(matches!(waits, Taken::Wait(_)));
    let got = queue.as_searching(|| {
        queue.offer(7, End::Last).unwrap();
        assert_eq!(bell.0.load(Ordering::Relaxed), 0, "a consumer searches");
        None
    });
    assert_eq!((got, bell.0.load(Ordering::Relaxed)), (None, 1));
    let taken = queue.poll_take(End::First, &mut slot, &waker);
    assert!(matches!(taken, Taken::Got(7)));
}

/// FIFO-9.
#[test]
fn a_consumer_that_pushes_one_element_for_itself_wakes_nobody_for_it() {
    let queue = TwoLock::new(Ring::growing(), Ring::growing(), None).throttle_wakeups();
    let bell = Arc::new(Bell(AtomicUsize::new(0)));
    let waker = Arc::clone(&bell).into();
    let wakes = || bell.0.load(Ordering::Relaxed);
    let mut slot = WaitSlot::default();
    assert!(matches!(
        queue.poll_take(End::First, &mut slot, &waker),
        Taken::Wait(_)
    ));
    let push = |number| queue.offer(number, End::Last).unwrap();
    queue.push_for_self(|| search::pushing_for_self(|| push(1)));
    assert_eq!(wakes(), 0);
    // The search finds it; nothing is left behind.
    assert_eq!(queue.as_searching(|| queue.poll(End::First)), Some(1));
    assert_eq!(wakes(), 0);
    // A search that does not take it wakes a consumer for it.
    queue.push_for_self(|| search::pushing_for_self(|| push(2)));
    assert_eq!(queue.as_searching(|| None), None);
    assert_eq!(wakes(), 1);
    assert!(matches!(
        queue.poll_take(End::First, &mut slot, &waker),
        Taken::Got(2)
    ));
}

/// FIFO-9.
#[test]
fn a_push_that_is_not_the_consumers_own_wakes_another_one() {
    type Push<'a> = &'a dyn Fn(&dyn Fn());
    let queue = TwoLock::new(Ring::growing(), Ring::growing(), None).throttle_wakeups();
    let another = TwoLock::<u8>::new(Ring::growing(), Ring::growing(), None);
    let outside: Push<'_> = &|push| queue.push_for_self(push);
    let after_user_code: Push<'_> = &|push| {
        queue.push_for_self(|| {
            search::pushing_for_self(|| {
                search::end_push_for_self();
                push();
            });
        });
    };
    let into_another: Push<'_> = &|push| another.push_for_self(|| search::pushing_for_self(push));
    let later: Push<'_> = &|push| {
        queue.push_for_self(|| ());
        search::pushing_for_self(push);
    };
    for (number, case) in [outside, after_user_code, into_another, later]
        .into_iter()
        .enumerate()
    {
        let bell = Arc::new(Bell(AtomicUsize::new(0)));
        let waker = Arc::clone(&bell).into();
        let mut slot = WaitSlot::default();
        let waits = queue.poll_take(End::First, &mut slot, &waker);
        assert!(matches!(waits, Taken::Wait(_)));
        case(&|| queue.offer(7, End::Last).unwrap());
        assert_eq!(bell.0.load(Ordering::Relaxed), 1, "case {number}");
        let taken = queue.poll_take(End::First, &mut slot, &waker);
        assert!(matches!(taken, Taken::Got(7)));
    }
}

/// FIFO-6: a notified consumer that does not arrive does not block the others for ever.
#[test]
fn another_consumer_is_woken_when_elements_pile_up() {
    let queue = TwoLock::new(Ring::growing(), Ring::growing(), None).throttle_wakeups();
    let bell = Arc::new(Bell(AtomicUsize::new(0)));
    let waker = Arc::clone(&bell).into();
    let mut slots: [WaitSlot; 3] = Default::default();
    for slot in &mut slots {
        let waits = queue.poll_take(End::First, slot, &waker);
        assert!(matches!(waits, Taken::Wait(_)));
    }
    let pile = BACKLOG_STEP as u64;
    for (number, notified) in [
        (1, 1),
        (pile - 1, 1),
        (pile, 2),
        (2 * pile - 1, 2),
        (2 * pile, 3),
    ] {
        while (queue.len() as u64) < number {
            queue.offer(0, End::Last).unwrap();
        }
        let wakes = bell.0.load(Ordering::Relaxed);
        assert_eq!(wakes, notified, "after {number} elements");
    }
    // All of them arrive, and each finds an element.
    for slot in &mut slots {
        let taken = queue.poll_take(End::First, slot, &waker);
        assert!(matches!(taken, Taken::Got(0)));
    }
    assert_eq!(bell.0.load(Ordering::Relaxed), 3);
}

/// SWAP-1 to SWAP-3: a pause changes nothing about what is taken.
#[test]
fn a_consumer_of_a_thin_stream_gets_every_element_in_order() {
    let queue = TwoLock::new(Ring::growing(), Ring::growing(), None);
    let mut next = 0..;
    for batch in [1, 7, 8, 20, 63, 64, 3, 20, 1] {
        let numbers: Vec<u64> = next.by_ref().take(batch).collect();
        for number in &numbers {
            queue.offer(*number, End::Last).unwrap();
        }
        let got: Vec<u64> = std::iter::from_fn(|| queue.poll(End::First)).collect();
        assert_eq!(got, numbers);
        assert_eq!(queue.outbox.last_swap.load(Ordering::Relaxed), batch);
    }
}

/// A queue that `count` elements have passed through.
fn after(count: usize, bound: Option<usize>) -> TwoLock<usize> {
    let queue = TwoLock::new(Ring::growing(), Ring::growing(), bound);
    queue.outbox.taken.store(count, Ordering::Relaxed);
    lock(&queue.inbox.inbox).start_at(count);
    queue
}

/// The counts are words, of 32 bits on some machines, and wrap.
#[test]
fn a_queue_goes_on_when_its_counts_wrap_around_with_old_elements_in_it() {
    for start in [usize::MAX - 3, usize::MAX / 2 - 3, usize::MAX, 0] {
        for bound in [Some(3), None] {
            let queue = after(start, bound);
            let waker = Waker::noop();
            queue.offer(0, End::Last).unwrap();
            queue.offer(1, End::Last).unwrap();
            for number in 0..40 {
                queue.offer(number + 2, End::Last).unwrap();
                assert_eq!(queue.len(), 3, "{number} after {start}");
                if bound.is_some() {
                    assert_eq!(queue.left(), Some(0));
                    assert!(queue.offer(7, End::Last).is_err());
                    assert!(queue.is_full(), "{number} after {start}");
                    // A producer can wait for room.
                    let (mut slot, mut offered) = (WaitSlot::default(), Some(99));
                    let waits = queue.poll_offer(&mut offered, End::Last, &mut slot, waker);
                    assert!(matches!(waits, Offered::Wait), "{number} after {start}");
                    queue.leave_offer(&mut slot);
                }
                assert_eq!(queue.poll(End::First), Some(number));
                assert!(!queue.is_full());
            }
        }
    }
}

/// ROOM-3: a pause changes nothing about the bound, and `is_room_thin` follows each read of `taken`.
#[test]
fn an_offer_that_pauses_for_room_succeeds_for_each_place_and_then_fails() {
    let queue = TwoLock::new(Ring::growing(), Ring::growing(), Some(1024));
    let fill = || {
        std::iter::repeat_with(|| queue.offer(7, End::Last))
            .take_while(Result::is_ok)
            .count()
    };
    let take = |count| (0..count).for_each(|_| assert_eq!(queue.poll(End::First), Some(7)));
    let is_room_thin = || lock(&queue.inbox.inbox).is_room_thin;
    assert_eq!(fill(), 1024);
    for (taken, is_thin) in [(10, true), (63, true), (1, false), (2, true), (64, false)] {
        take(taken);
        // The first offer reads `taken`.
        queue.offer(7, End::Last).unwrap();
        assert_eq!(is_room_thin(), is_thin, "{taken} places");
        assert_eq!(fill(), taken - 1);
    }
    take(10);
    queue.offer(7, End::Last).unwrap();
    queue.seal();
    assert!(is_room_thin());
    assert!(queue.offer(7, End::Last).is_err(), "it is sealed");
    assert!(!is_room_thin(), "it has found no room");
}
