use super::inbox::PILE;
use super::*;
use std::sync::Arc;

struct Bell(AtomicUsize);

impl std::task::Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// B7: a push calls nobody while one seeks, so one that seeks in vain and goes sees to what has come.
#[test]
fn a_seeker_that_goes_with_nothing_calls_a_taker_for_what_has_come_meanwhile() {
    let queue = Twin::new(Ring::growing(), Ring::growing(), None).thrifty();
    let bell = Arc::new(Bell(AtomicUsize::new(0)));
    let waker = Arc::clone(&bell).into();
    let mut place = Place::default();
    let waits = queue.poll_take(End::First, &mut place, &waker);
    assert!(matches!(waits, Taken::Wait(_)));
    let got = queue.as_seeker(|| {
        queue.offer(7, End::Last).unwrap();
        assert_eq!(bell.0.load(Ordering::Relaxed), 0, "somebody seeks");
        None
    });
    assert_eq!((got, bell.0.load(Ordering::Relaxed)), (None, 1));
    let taken = queue.poll_take(End::First, &mut place, &waker);
    assert!(matches!(taken, Taken::Got(7)));
}

/// B6: one who was called and does not come does not keep the others from it for ever.
#[test]
fn another_taker_is_called_when_elements_pile_up() {
    let queue = Twin::new(Ring::growing(), Ring::growing(), None).thrifty();
    let bell = Arc::new(Bell(AtomicUsize::new(0)));
    let waker = Arc::clone(&bell).into();
    let mut places: [Place; 3] = Default::default();
    for place in &mut places {
        let waits = queue.poll_take(End::First, place, &waker);
        assert!(matches!(waits, Taken::Wait(_)));
    }
    let pile = PILE as u64;
    for (number, called) in [
        (1, 1),
        (pile - 1, 1),
        (pile, 2),
        (2 * pile - 1, 2),
        (2 * pile, 3),
    ] {
        while (queue.len() as u64) < number {
            queue.offer(0, End::Last).unwrap();
        }
        let calls = bell.0.load(Ordering::Relaxed);
        assert_eq!(calls, called, "after {number} elements");
    }
    // All of them come, and each finds one.
    for place in &mut places {
        let taken = queue.poll_take(End::First, place, &waker);
        assert!(matches!(taken, Taken::Got(0)));
    }
    assert_eq!(bell.0.load(Ordering::Relaxed), 3);
}

/// T1 to T3 in `swap.rs`: who has stepped back takes what is there, and nothing where there is nothing.
#[test]
fn a_taker_of_a_thin_stream_gets_every_element_in_order() {
    let queue = Twin::new(Ring::growing(), Ring::growing(), None);
    let mut next = 0..;
    for batch in [1, 7, 8, 20, 63, 64, 3, 20, 1] {
        let numbers: Vec<u64> = next.by_ref().take(batch).collect();
        for number in &numbers {
            queue.offer(*number, End::Last).unwrap();
        }
        let got: Vec<u64> = std::iter::from_fn(|| queue.poll(End::First)).collect();
        assert_eq!(got, numbers);
        assert_eq!(queue.outbox.swapped.load(Ordering::Relaxed), batch);
    }
}

/// A queue that has had `count` elements before those that are in it.
fn after(count: usize, bound: Option<usize>) -> Twin<usize> {
    let queue = Twin::new(Ring::growing(), Ring::growing(), bound);
    queue.outbox.taken.store(count, Ordering::Relaxed);
    lock(&queue.inbox.inbox).have_had(count);
    queue
}

/// What has come in and gone out is counted in words that wrap, of 32 bits on some machines.
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
                    // One who waits for room hears of it.
                    let (mut place, mut offered) = (Place::default(), Some(99));
                    let waits = queue.poll_offer(&mut offered, End::Last, &mut place, waker);
                    assert!(matches!(waits, Offered::Wait), "{number} after {start}");
                    queue.leave_offer(&mut place);
                }
                assert_eq!(queue.poll(End::First), Some(number));
                assert!(!queue.is_full());
            }
        }
    }
}
