//! Many threads on one hand-off or transfer queue: every element is seen once, whichever side gives up.

use crate::handoff_kit::all;
use millpond::queue::{BlockingQueue, Taken, TransferQueue, WaitSlot};
use millpond::task;
use millpond_testkit::watch;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::task::Waker;
use std::time::Duration;

const PRODUCERS: usize = 4;
const CONSUMERS: usize = 3;
/// So many for each producer; all together divide evenly among the consumers.
const EACH: usize = 900;
const TOTAL: usize = PRODUCERS * EACH;

/// An element that is counted while it lives.
#[derive(Debug)]
struct Grain {
    number: usize,
    _alive: Arc<()>,
}

type Grains = Arc<dyn BlockingQueue<Grain>>;

/// Runs the threads: each producer calls `give` for its elements, each consumer `take` for its share.
fn grind(
    queue: &Grains,
    give: impl Fn(&Grains, Grain) + Copy + Send + 'static,
    take: impl Fn(&Grains) -> Grain + Copy + Send + 'static,
) {
    let alive = Arc::new(());
    let producers: Vec<_> = (0..PRODUCERS)
        .map(|producer| {
            let (queue, alive) = (Arc::clone(queue), Arc::clone(&alive));
            std::thread::spawn(move || {
                for number in (0..EACH).map(|at| at * PRODUCERS + producer) {
                    let _alive = Arc::clone(&alive);
                    give(&queue, Grain { number, _alive });
                }
            })
        })
        .collect();
    let consumers: Vec<_> = (0..CONSUMERS)
        .map(|_| {
            let queue = Arc::clone(queue);
            std::thread::spawn(move || -> Vec<usize> {
                (0..TOTAL / CONSUMERS)
                    .map(|_| take(&queue).number)
                    .collect()
            })
        })
        .collect();
    for producer in producers {
        producer.join().unwrap();
    }
    let shares: Vec<Vec<usize>> = consumers
        .into_iter()
        .map(|consumer| consumer.join().unwrap())
        .collect();
    let mut all: Vec<usize> = shares.into_iter().flatten().collect();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..TOTAL), "each is seen once");
    assert!(queue.poll().is_none());
    assert_eq!(Arc::strong_count(&alive), 1, "nothing is kept");
}

#[test]
fn everything_that_is_put_is_taken_once() {
    let _watch = watch();
    for queue in all() {
        grind(
            &queue,
            |queue, grain| queue.put(grain).unwrap(),
            |queue| queue.take().unwrap(),
        );
    }
}

#[test]
fn everything_is_taken_once_when_both_sides_keep_running_out_of_time() {
    let _watch = watch();
    const SOON: Duration = Duration::from_micros(5);
    for queue in all() {
        grind(
            &queue,
            |queue, mut grain| {
                while let Err(rejected) = queue.offer_timeout(grain, SOON) {
                    grain = rejected.element;
                }
            },
            |queue| {
                loop {
                    if let Some(grain) = queue.poll_timeout(SOON).unwrap() {
                        return grain;
                    }
                }
            },
        );
    }
}

#[test]
fn everything_is_taken_once_when_wait_slots_are_taken_and_given_up_all_the_time() {
    let _watch = watch();
    for queue in all() {
        grind(
            &queue,
            |queue, grain| {
                let mut grain = Some(grain);
                let mut place = WaitSlot::default();
                while grain.is_some() {
                    if queue.poll_offer(&mut grain, &mut place, Waker::noop())
                        == millpond::queue::Offered::Wait
                    {
                        std::thread::yield_now();
                        queue.leave_offer(&mut grain, &mut place);
                    }
                }
            },
            |queue| {
                loop {
                    let mut place = WaitSlot::default();
                    if let Taken::Got(grain) = queue.poll_take(&mut place, Waker::noop()) {
                        return grain;
                    }
                    std::thread::yield_now();
                    if let Some(grain) = queue.leave_take(&mut place) {
                        return grain;
                    }
                }
            },
        );
    }
}

#[test]
fn everything_is_taken_once_when_offers_and_polls_never_wait() {
    let _watch = watch();
    for queue in all() {
        grind(
            &queue,
            // One side must wait in a hand-off queue; here it is the producers.
            |queue, grain| queue.put(grain).unwrap(),
            |queue| {
                loop {
                    if let Some(grain) = queue.poll() {
                        return grain;
                    }
                    std::thread::yield_now();
                }
            },
        );
        grind(
            &queue,
            |queue, mut grain| {
                while let Err(rejected) = queue.offer(grain) {
                    grain = rejected.element;
                    std::thread::yield_now();
                }
            },
            |queue| queue.take().unwrap(),
        );
    }
}

#[test]
fn an_interrupt_at_any_moment_either_comes_too_late_or_gives_the_element_back() {
    let _watch = watch();
    for queue in all::<usize>() {
        let (report, reports) = mpsc::channel();
        for round in 0..600 {
            let report = report.clone();
            let producer = Arc::clone(&queue);
            let (task, handle) = task::new(move || {
                let came_back = match producer.put(round) {
                    Ok(()) => None,
                    Err(rejected) => Some(rejected.element),
                };
                report.send(came_back).unwrap();
            });
            let runner = std::thread::spawn(move || task.run());
            // Once it runs, it reports: a task that is interrupted before its start never does.
            while !handle.is_started() {
                std::thread::yield_now();
            }
            let hands = Arc::clone(&queue);
            let consumer = std::thread::spawn(move || hands.poll_timeout(Duration::ZERO).unwrap());
            handle.interrupt();
            runner.join().unwrap();
            let taken = consumer.join().unwrap().or_else(|| queue.poll());
            let came_back = reports.recv().unwrap();
            assert_eq!(
                [taken, came_back].into_iter().flatten().collect::<Vec<_>>(),
                [round],
                "it is in one place"
            );
        }
    }
}

#[test]
fn every_transfer_that_succeeds_was_received_and_every_other_came_back() {
    let _watch = watch();
    let queue = Arc::new(TransferQueue::unbounded());
    let closed = Arc::new(AtomicBool::new(false));
    let producers: Vec<_> = (0..PRODUCERS)
        .map(|producer| {
            let queue = Arc::clone(&queue);
            std::thread::spawn(move || -> Vec<usize> {
                let numbers = (0..EACH).map(|at| at * PRODUCERS + producer);
                let received = |number: &usize| {
                    match number % 4 {
                        0 => queue.put(*number),
                        1 => queue.transfer(*number),
                        2 => queue.transfer_timeout(*number, Duration::from_micros(5)),
                        _ => queue.try_transfer(*number),
                    }
                    .is_ok()
                };
                numbers.filter(received).collect()
            })
        })
        .collect();
    let consumers: Vec<_> = (0..CONSUMERS)
        .map(|_| {
            let (queue, closed) = (Arc::clone(&queue), Arc::clone(&closed));
            std::thread::spawn(move || -> Vec<usize> {
                let mut taken = Vec::new();
                loop {
                    // Read before the queue is: an interrupt that comes later is not for this call.
                    let last = closed.load(Ordering::SeqCst);
                    match queue.poll_timeout(Duration::from_micros(20)).unwrap() {
                        Some(number) => taken.push(number),
                        None if last => return taken,
                        None => {}
                    }
                }
            })
        })
        .collect();
    let gather = |threads: Vec<std::thread::JoinHandle<Vec<usize>>>| {
        let lists: Vec<Vec<usize>> = threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect();
        let mut all: Vec<usize> = lists.into_iter().flatten().collect();
        all.sort_unstable();
        all
    };
    let given = gather(producers);
    closed.store(true, Ordering::SeqCst);
    assert_eq!(gather(consumers), given);
}
