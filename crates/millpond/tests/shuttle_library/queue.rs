//! PCT schedules of two and three threads on every flavor: what they see is what one thread after the
//! other could have seen, no waiter is forgotten, and nothing leaks.
//!
//! Each thread notes when each of its calls began and ended. Afterwards [`explained`] looks for an
//! order of all calls in which none comes before one that had ended when it began, and in which the
//! model answers as the queue did (Wing and Gong 1993). A thread that is forgotten shows as a
//! deadlock, which shuttle reports.
//!
//! Each scenario runs under 500 schedules for each depth.
#![allow(
    clippy::disallowed_types,
    reason = "the clock of the histories is std's, so that the checker does not branch on it"
)]

use crate::queue_kit::{EQUALS, Flavor, Model, Refusal};
use millpond::queue::{
    AsyncQueue, BlockingDeque, BlockingQueue, DelayQueue, FifoQueue, PriorityQueue, QueueExt,
    WeightedQueue,
};
use millpond::time::ManualClock;
use millpond_raw::sync::Mutex;
use millpond_raw::sync::thread::spawn;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// In a model every timed wait ends after others have run, however long it is.
const A_WHILE: Duration = Duration::from_secs(3600);

fn pct(scenario: impl Fn() + Send + Sync + 'static) {
    crate::shuttle_drive::pct(500, scenario);
}

#[derive(Clone, Debug)]
struct Item {
    value: u8,
    _alive: Arc<()>,
}

impl PartialEq for Item {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

/// A queue whose waiting forms async code has too; a delay queue has none.
trait Subject: BlockingQueue<Item> {
    /// Polls a receiving future once, and drops it.
    fn receive_once(&self) -> Option<Item>;
    /// Polls a sending future once, and drops it. Returns whether it was in.
    fn send_once(&self, item: Item) -> bool;
}

impl<Q: AsyncQueue<Item>> Subject for Q {
    fn receive_once(&self) -> Option<Item> {
        let mut context = Context::from_waker(Waker::noop());
        match pin!(self.recv()).poll(&mut context) {
            Poll::Ready(item) => Some(item),
            Poll::Pending => None,
        }
    }

    fn send_once(&self, item: Item) -> bool {
        let mut sending = self.send(item);
        let mut context = Context::from_waker(Waker::noop());
        let sent = std::pin::Pin::new(&mut sending).poll(&mut context);
        match sent {
            Poll::Ready(sent) => sent.is_ok(),
            Poll::Pending => sending.into_element().is_none(),
        }
    }
}

fn queue(flavor: Flavor, bound: u64) -> Arc<dyn Subject> {
    let capacity = bound as usize;
    match flavor {
        Flavor::FifoBounded => Arc::new(FifoQueue::bounded(capacity).unwrap()),
        Flavor::FifoGrowing => Arc::new(FifoQueue::bounded_growing(capacity).unwrap()),
        Flavor::Deque => Arc::new(BlockingDeque::bounded(capacity).unwrap()),
        Flavor::Priority => Arc::new(
            PriorityQueue::by(|one: &Item, other: &Item| {
                (one.value >> EQUALS).cmp(&(other.value >> EQUALS))
            })
            .with_bound(capacity)
            .unwrap(),
        ),
        Flavor::Weighed => {
            Arc::new(WeightedQueue::bounded(bound, |item: &Item| u64::from(item.value)).unwrap())
        }
        other => panic!("{other:?} has its own scenarios"),
    }
}

/// A call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Offer(u8),
    OfferTimeout(u8),
    SendOnce(u8),
    Put(u8),
    Poll,
    PollTimeout,
    ReceiveOnce,
    Take,
    Len,
    Remove(u8),
    SetCapacity(usize),
}

/// The answer to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Done(bool),
    Got(Option<u8>),
    Count(usize),
}

#[derive(Clone, Copy, Debug)]
struct Event {
    call: Call,
    answer: Answer,
    began: u64,
    ended: u64,
}

fn answer(queue: &dyn Subject, call: Call, alive: &Arc<()>) -> Answer {
    let item = |value| Item {
        value,
        _alive: Arc::clone(alive),
    };
    let got = |item: Option<Item>| Answer::Got(item.map(|item| item.value));
    match call {
        Call::Offer(value) => Answer::Done(queue.offer(item(value)).is_ok()),
        Call::OfferTimeout(value) => {
            Answer::Done(queue.offer_timeout(item(value), A_WHILE).is_ok())
        }
        Call::SendOnce(value) => Answer::Done(queue.send_once(item(value))),
        Call::Put(value) => Answer::Done(queue.put(item(value)).is_ok()),
        Call::Poll => got(queue.poll()),
        Call::PollTimeout => got(queue.poll_timeout(A_WHILE).unwrap()),
        Call::ReceiveOnce => got(queue.receive_once()),
        Call::Take => got(queue.take().ok()),
        Call::Len => Answer::Count(queue.len()),
        Call::Remove(value) => Answer::Done(queue.remove(&item(value))),
        Call::SetCapacity(capacity) => Answer::Done(queue.set_capacity(capacity).is_ok()),
    }
}

/// The answer of the model; `None` if the call would still wait.
fn modelled(model: &mut Model, call: Call) -> Option<Answer> {
    // Unlike all that are in, and it tells the value.
    let newest = model.held.iter().map(|held| held.id >> 8).max();
    let id = (newest.unwrap_or(0) + 1) << 8;
    Some(match call {
        Call::Offer(value) | Call::OfferTimeout(value) | Call::SendOnce(value) => {
            Answer::Done(model.offer(value, id | u32::from(value), 0).is_ok())
        }
        Call::Put(value) => match model.offer(value, id | u32::from(value), 0) {
            Err(Refusal::Full) => return None,
            done => Answer::Done(done.is_ok()),
        },
        Call::Poll | Call::PollTimeout | Call::ReceiveOnce => {
            Answer::Got(model.poll().map(|id| id as u8))
        }
        Call::Take => Answer::Got(Some(model.poll()? as u8)),
        Call::Len => Answer::Count(model.held.len()),
        Call::Remove(value) => {
            Answer::Done(!model.remove_where(1, |other| other == value).is_empty())
        }
        Call::SetCapacity(capacity) => {
            model.bound = Some(capacity as u64);
            Answer::Done(true)
        }
    })
}

/// Whether one thread after the other could have seen this.
fn explained(model: &Model, history: &[Event]) -> bool {
    let Some(first_end) = history.iter().map(|event| event.ended).min() else {
        return true;
    };
    (0..history.len()).any(|which| {
        let event = history[which];
        if event.began > first_end {
            return false;
        }
        let mut next = model.clone();
        if modelled(&mut next, event.call) != Some(event.answer) {
            return false;
        }
        let mut rest = history.to_vec();
        rest.remove(which);
        explained(&next, &rest)
    })
}

/// Runs the programs, one thread each, on a queue of this flavor that holds `filled` at first.
fn check(flavor: Flavor, bound: u64, filled: &'static [u8], programs: &'static [&'static [Call]]) {
    pct(move || {
        let queue = queue(flavor, bound);
        let alive = Arc::new(());
        let mut model = Model::new(flavor, Some(bound));
        for value in filled {
            assert_eq!(
                answer(&*queue, Call::Offer(*value), &alive),
                Answer::Done(true)
            );
            modelled(&mut model, Call::Offer(*value)).unwrap();
        }
        let ticks = Arc::new(AtomicU64::new(0));
        let history = Arc::new(Mutex::new(Vec::new()));
        let threads: Vec<_> = programs
            .iter()
            .map(|program| {
                let (queue, alive) = (Arc::clone(&queue), Arc::clone(&alive));
                let (ticks, history) = (Arc::clone(&ticks), Arc::clone(&history));
                spawn(move || {
                    for call in *program {
                        let began = ticks.fetch_add(1, Ordering::SeqCst);
                        let answer = answer(&*queue, *call, &alive);
                        let ended = ticks.fetch_add(1, Ordering::SeqCst);
                        history.lock().push(Event {
                            call: *call,
                            answer,
                            began,
                            ended,
                        });
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        let mut history = std::mem::take(&mut *history.lock());
        history.sort_by_key(|event| event.began);
        assert!(
            explained(&model, &history),
            "nobody could have seen {history:#?}"
        );
        drop(queue);
        assert_eq!(Arc::strong_count(&alive), 1, "nothing leaks");
    });
}

const FIRST_IN_FIRST_OUT: [Flavor; 3] = [Flavor::FifoBounded, Flavor::FifoGrowing, Flavor::Deque];

/// Runs the programs on all flavors that count elements. Values differ, so that priorities do.
fn check_counted(bound: u64, filled: &'static [u8], programs: &'static [&'static [Call]]) {
    for flavor in FIRST_IN_FIRST_OUT {
        check(flavor, bound, filled, programs);
    }
    check(Flavor::Priority, bound, filled, programs);
}

use Call::{
    Len, Offer, OfferTimeout, Poll as PollNow, PollTimeout, Put, ReceiveOnce, Remove, SendOnce,
    SetCapacity, Take,
};

#[test]
fn puts_and_takes_on_a_queue_of_one() {
    check_counted(1, &[], &[&[Put(9), Put(5), Put(1)], &[Take, Take, Take]]);
}

#[test]
fn offers_and_polls_that_do_not_wait() {
    check_counted(
        2,
        &[],
        &[
            &[Offer(9), PollNow, Offer(8)],
            &[Offer(5), PollNow],
            &[Len, Offer(1), Len],
        ],
    );
}

#[test]
fn a_consumer_that_gives_up_passes_its_wake_up_on() {
    check_counted(4, &[], &[&[Put(9), Put(1)], &[Take], &[PollTimeout]]);
}

#[test]
fn a_dropped_receiver_passes_its_wake_up_on() {
    check_counted(4, &[], &[&[Put(9), Put(1)], &[Take], &[ReceiveOnce]]);
}

#[test]
fn a_producer_that_gives_up_passes_its_wake_up_on() {
    check_counted(1, &[9], &[&[Take, Take], &[Put(5)], &[OfferTimeout(1)]]);
}

#[test]
fn a_dropped_sender_passes_its_wake_up_on() {
    check_counted(1, &[9], &[&[Take, Take], &[Put(5)], &[SendOnce(1)]]);
}

#[test]
fn raising_the_capacity_lets_in_all_producers_that_fit() {
    check_counted(1, &[9], &[&[Put(5)], &[Put(1)], &[SetCapacity(3)]]);
}

#[test]
fn removing_lets_a_producer_in() {
    check_counted(2, &[9, 8], &[&[Put(5)], &[Put(1)], &[Remove(8), Remove(9)]]);
}

#[test]
fn two_producers_and_two_consumers() {
    check_counted(1, &[], &[&[Put(9), Put(5)], &[Put(1)], &[Take, Take, Take]]);
}

#[test]
fn light_producers_pass_a_heavy_one_that_waits() {
    check(
        Flavor::Weighed,
        4,
        &[3],
        &[&[Put(4), Take], &[Put(1), Put(1)], &[Take, Take, Take]],
    );
}

#[test]
fn a_heavy_producer_that_gives_up_makes_way() {
    check(
        Flavor::Weighed,
        4,
        &[4],
        &[
            &[OfferTimeout(3)],
            &[Put(2)],
            &[Put(2)],
            &[Take, Take, Take],
        ],
    );
}

#[test]
fn a_producer_that_can_no_longer_fit_is_told_so() {
    check(Flavor::Weighed, 4, &[1], &[&[Put(4)], &[SetCapacity(3)]]);
}

#[test]
fn waiters_at_both_ends_of_a_deque_share_one_wait_list() {
    pct(|| {
        let queue = Arc::new(BlockingDeque::bounded(1).unwrap());
        let front = Arc::clone(&queue);
        let back = Arc::clone(&queue);
        let producers = [
            spawn(move || front.put_first(1).unwrap()),
            spawn(move || back.put_last(2).unwrap()),
        ];
        let other = Arc::clone(&queue);
        let consumer = spawn(move || other.take_last().unwrap());
        let mut taken = [queue.take_first().unwrap(), consumer.join().unwrap()];
        for producer in producers {
            producer.join().unwrap();
        }
        taken.sort_unstable();
        assert_eq!(taken, [1, 2]);
    });
}

#[test]
fn a_new_first_element_reaches_a_waiting_consumer() {
    pct(|| {
        let hand = ManualClock::new();
        let queue = Arc::new(DelayQueue::new().with_clock(hand.clock()));
        let consumers: Vec<_> = (0..2)
            .map(|_| {
                let queue = Arc::clone(&queue);
                spawn(move || queue.take().unwrap())
            })
            .collect();
        let offers = Arc::clone(&queue);
        let offerer = spawn(move || {
            offers.offer_after("late", A_WHILE).unwrap();
            offers.offer_after("soon", A_WHILE / 2).unwrap();
        });
        hand.advance(A_WHILE / 2);
        offerer.join().unwrap();
        hand.advance(A_WHILE);
        let mut taken: Vec<_> = consumers.into_iter().map(|t| t.join().unwrap()).collect();
        taken.sort_unstable();
        assert_eq!(taken, ["late", "soon"]);
    });
}

#[test]
fn a_leader_that_gives_up_promotes_a_follower() {
    pct(|| {
        let hand = ManualClock::new();
        let queue = Arc::new(DelayQueue::new().with_clock(hand.clock()));
        for _ in 0..2 {
            queue.offer_after("due", A_WHILE).unwrap();
        }
        let patient = Arc::clone(&queue);
        let consumer = spawn(move || patient.take().unwrap());
        let hasty = Arc::clone(&queue);
        let leaver = spawn(move || hasty.poll_timeout(A_WHILE / 4).unwrap());
        hand.advance(A_WHILE / 2);
        hand.advance(A_WHILE);
        assert_eq!(consumer.join().unwrap(), "due");
        let left = 1 - usize::from(leaver.join().unwrap().is_some());
        assert_eq!(queue.len(), left);
    });
}
