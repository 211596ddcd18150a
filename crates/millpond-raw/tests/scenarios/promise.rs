//! Cells that are completed once: completing, attaching, cancelling, looking, dropping.

use super::{Probe, few_or_many, join_all, spawn_all};
use millpond_raw::promise::{self, Body, Claimed, Held, Producer, Queue, Reader, Source, Upstream};
use millpond_raw::sync::atomic::{AtomicUsize, Ordering};
use millpond_raw::sync::thread::spawn;
use std::sync::Arc;

/// A value that is written in two steps: a thread that sees it must see both.
#[derive(Debug)]
struct Whole {
    number: AtomicUsize,
    probe: Probe,
}

impl Whole {
    fn new(number: usize, probe: &Probe) -> Self {
        let whole = Whole {
            number: AtomicUsize::new(0),
            probe: probe.clone(),
        };
        whole.number.store(number, Ordering::Relaxed);
        whole
    }

    fn number(&self) -> usize {
        self.number.load(Ordering::Relaxed)
    }
}

impl Clone for Whole {
    fn clone(&self) -> Self {
        Whole::new(self.number(), &self.probe)
    }
}

/// Computes the sum of its sources that are complete, and one more.
struct Sum {
    sources: Vec<Reader<Whole, ()>>,
    probe: Probe,
    runs: Arc<AtomicUsize>,
}

impl Sum {
    fn of(sources: Vec<Reader<Whole, ()>>, probe: &Probe, runs: &Arc<AtomicUsize>) -> Self {
        Sum {
            sources,
            probe: probe.clone(),
            runs: Arc::clone(runs),
        }
    }
}

impl Body<Whole, ()> for Sum {
    fn run(self, _: Option<usize>, claimed: Claimed<Whole, (), Self>, queue: &mut Queue) {
        self.runs.fetch_add(1, Ordering::Relaxed);
        let values = self
            .sources
            .into_iter()
            .filter_map(|source| source.take().ok());
        let sum: usize = values.map(|value| value.number()).sum();
        assert!(sum > 0, "a source is complete");
        drop(claimed.complete(Whole::new(sum + 1, &self.probe), queue));
    }

    fn sources(&self, see: &mut dyn FnMut(Upstream<'_, ()>)) {
        self.sources
            .iter()
            .for_each(|source| see(source.upstream()));
    }
}

/// Waits for its source, and then for another one.
enum Twice {
    First(Reader<Whole, ()>, Reader<Whole, ()>),
    Second(Reader<Whole, ()>),
}

impl Body<Whole, ()> for Twice {
    fn run(self, _: Option<usize>, claimed: Claimed<Whole, (), Self>, queue: &mut Queue) {
        match self {
            Twice::First(source, next) => {
                drop(source.take().expect("it has fired"));
                claimed.wait_again(Twice::Second(next), queue);
            }
            Twice::Second(source) => {
                let value = source.take().expect("it has fired");
                drop(claimed.complete(value, queue));
            }
        }
    }

    fn sources(&self, see: &mut dyn FnMut(Upstream<'_, ()>)) {
        match self {
            Twice::First(source, _) | Twice::Second(source) => see(source.upstream()),
        }
    }
}

fn complete(producer: &Producer<Whole, ()>, number: usize, probe: &Probe) -> bool {
    let mut queue = Queue::new();
    let done = producer.complete(Whole::new(number, probe), &mut queue);
    assert!(producer.is_complete(), "whoever was faster");
    queue.run();
    done.is_ok()
}

fn stage(source: Reader<Whole, ()>, probe: &Probe, runs: &Arc<AtomicUsize>) -> Reader<Whole, ()> {
    let mut queue = Queue::new();
    let made = promise::stage(Sum::of(vec![source], probe, runs), (), &mut queue);
    queue.run();
    made
}

fn taken(reader: Reader<Whole, ()>) -> usize {
    reader.take().expect("it is complete").number()
}

/// A stage that is attached while its source is completed runs once, and sees what was written before.
pub(crate) fn attaching_and_completing_agree() {
    let (probe, runs) = (Probe::default(), Arc::new(AtomicUsize::new(0)));
    let (producer, reader) = promise::pair(());
    let completer = spawn({
        let probe = probe.clone();
        move || assert!(complete(&producer, 7, &probe))
    });
    let made = stage(reader, &probe, &runs);
    completer.join().unwrap();
    assert_eq!((taken(made), runs.load(Ordering::Relaxed)), (8, 1));
    assert_eq!(probe.others(), 0);
}

/// Two stages that are attached at once run once each.
pub(crate) fn stages_that_are_attached_at_once_all_run() {
    let (probe, runs) = (Probe::default(), Arc::new(AtomicUsize::new(0)));
    let (producer, reader) = promise::pair(());
    let threads = spawn_all(few_or_many(1, 3), {
        let (reader, probe, runs) = (Arc::new(reader), probe.clone(), Arc::clone(&runs));
        move |_| stage(reader.share(), &probe, &runs)
    });
    assert!(complete(&producer, 7, &probe));
    let made = join_all(threads);
    let all = made.len();
    assert!(made.into_iter().all(|reader| taken(reader) == 8));
    assert_eq!(runs.load(Ordering::Relaxed), all);
    drop(producer);
    assert_eq!(probe.others(), 0);
}

/// Of many completers one wins; a reader that looks meanwhile sees nothing or the whole value.
pub(crate) fn one_completer_wins_and_the_value_is_whole() {
    let probe = Probe::default();
    let (producer, reader) = promise::pair(());
    let threads = spawn_all(few_or_many(2, 4), {
        let (producer, probe) = (Arc::new(producer), probe.clone());
        move |number| complete(&producer, number + 1, &probe)
    });
    if let Some(value) = reader.get() {
        assert_ne!(value.number(), 0, "the value is whole");
    }
    let won = join_all(threads);
    assert_eq!(won.iter().filter(|won| **won).count(), 1);
    assert!(won[taken(reader) - 1]);
    assert_eq!(probe.others(), 0);
}

/// A reader that takes the value at once, while its completer is still busy with the cell.
pub(crate) fn the_sole_reader_moves_the_value_out() {
    let probe = Probe::default();
    let (producer, mut reader) = promise::pair(());
    let completer = spawn({
        let probe = probe.clone();
        move || assert!(complete(&producer, 7, &probe))
    });
    let value = loop {
        match reader.take() {
            Ok(value) => break value,
            Err(same) => reader = same,
        }
        millpond_raw::sync::thread::yield_now();
    };
    assert_eq!((value.number(), probe.others() > 0), (7, true));
    completer.join().unwrap();
    drop(value);
    assert_eq!(probe.others(), 0);
}

/// A value is dropped once, whoever goes first: its reader, or the thread that completes it.
pub(crate) fn dropping_the_reader_and_completing_agree() {
    let probe = Probe::default();
    let (producer, reader) = promise::pair(());
    let completer = spawn({
        let probe = probe.clone();
        move || assert!(complete(&producer, 7, &probe))
    });
    drop(reader);
    completer.join().unwrap();
    assert_eq!(probe.others(), 0);
}

/// Two readers go, one with a clone and one without, while the cell is completed.
pub(crate) fn readers_that_share_a_value_leave_nothing_behind() {
    let probe = Probe::default();
    let (producer, reader) = promise::pair(());
    let other = reader.share();
    let completer = spawn({
        let probe = probe.clone();
        move || assert!(complete(&producer, 7, &probe))
    });
    let taker = spawn(move || match other.take() {
        Ok(value) => assert_eq!(value.number(), 7),
        Err(other) => drop(other),
    });
    drop(reader);
    completer.join().unwrap();
    taker.join().unwrap();
    assert_eq!(probe.others(), 0);
}

/// The body runs, or it is dropped by the thread that completes its cell by hand.
pub(crate) fn completing_a_stage_by_hand_and_firing_it_agree() {
    let (probe, runs) = (Probe::default(), Arc::new(AtomicUsize::new(0)));
    let (producer, reader) = promise::pair(());
    let made = stage(reader, &probe, &runs);
    let completer = spawn({
        let probe = probe.clone();
        move || assert!(complete(&producer, 7, &probe))
    });
    let mut queue = Queue::new();
    let by_hand = made.complete(Whole::new(100, &probe), &mut queue).is_ok();
    queue.run();
    completer.join().unwrap();
    let expected = if by_hand { 100 } else { 8 };
    assert_eq!(taken(made), expected);
    assert!(runs.load(Ordering::Relaxed) <= 1);
    assert!(by_hand || runs.load(Ordering::Relaxed) == 1);
    assert_eq!(probe.others(), 0);
}

/// The body that waits for any of two sources runs once, with one that is complete.
pub(crate) fn of_two_sources_one_claims_the_body() {
    let (probe, runs) = (Probe::default(), Arc::new(AtomicUsize::new(0)));
    let (producers, readers) = two();
    let threads = spawn_all(1, {
        let (producer, probe) = (Arc::new(producers.0), probe.clone());
        move |_| complete(&producer, 7, &probe)
    });
    let mut queue = Queue::new();
    let body = Sum::of(vec![readers.0, readers.1], &probe, &runs);
    let made = promise::stage_of_any(body, 2, (), &mut queue);
    queue.run();
    assert!(complete(&producers.1, 70, &probe));
    join_all(threads);
    assert!(matches!(taken(made), 8 | 71 | 78));
    assert_eq!(runs.load(Ordering::Relaxed), 1);
    drop(producers.1);
    assert_eq!(probe.others(), 0);
}

type Writers = (Producer<Whole, ()>, Producer<Whole, ()>);
type Readers = (Reader<Whole, ()>, Reader<Whole, ()>);

fn two() -> (Writers, Readers) {
    let ((one, first), (other, second)) = (promise::pair(()), promise::pair(()));
    ((one, other), (first, second))
}

/// The body that waits for two sources runs once, when both are complete.
pub(crate) fn the_last_of_two_sources_runs_the_body() {
    let (probe, runs) = (Probe::default(), Arc::new(AtomicUsize::new(0)));
    let (producers, readers) = two();
    let threads = spawn_all(1, {
        let (producer, probe) = (Arc::new(producers.0), probe.clone());
        move |_| complete(&producer, 7, &probe)
    });
    let mut queue = Queue::new();
    let body = Sum::of(vec![readers.0, readers.1], &probe, &runs);
    let made = promise::stage_of_all(body, 2, (), &mut queue);
    queue.run();
    assert!(complete(&producers.1, 70, &probe));
    join_all(threads);
    assert_eq!((taken(made), runs.load(Ordering::Relaxed)), (78, 1));
    drop(producers.1);
    assert_eq!(probe.others(), 0);
}

/// A body that waits again finds its second source, whichever is complete first; or is dropped by a thread that completes
/// the cell by hand.
pub(crate) fn waiting_again_meets_the_second_source() {
    let probe = Probe::default();
    let (producers, readers) = two();
    let mut queue = Queue::new();
    let made = promise::stage(Twice::First(readers.0, readers.1), (), &mut queue);
    queue.run();
    let threads = spawn_all(1, {
        let (producer, probe) = (Arc::new(producers.0), probe.clone());
        move |_| complete(&producer, 7, &probe)
    });
    assert!(complete(&producers.1, 70, &probe));
    join_all(threads);
    assert_eq!(taken(made), 70);
    drop(producers.1);
    assert_eq!(probe.others(), 0);
}

/// As above, but the cell is completed by hand meanwhile.
pub(crate) fn waiting_again_and_completing_by_hand_agree() {
    let probe = Probe::default();
    let (producers, readers) = two();
    let mut queue = Queue::new();
    let made = promise::stage(Twice::First(readers.0, readers.1), (), &mut queue);
    queue.run();
    let threads = spawn_all(1, {
        let (producer, probe) = (Arc::new(producers.0), probe.clone());
        move |_| complete(&producer, 7, &probe)
    });
    let mut queue = Queue::new();
    assert!(made.complete(Whole::new(100, &probe), &mut queue).is_ok());
    queue.run();
    join_all(threads);
    assert_eq!(taken(made), 100);
    drop(producers.1);
    assert_eq!(probe.others(), 0);
}

/// A thread that looks into a body neither loses a source that fires meanwhile nor runs the body twice.
pub(crate) fn peeking_and_firing_agree() {
    let (probe, runs) = (Probe::default(), Arc::new(AtomicUsize::new(0)));
    let (producer, reader) = promise::pair(());
    let made = stage(reader, &probe, &runs);
    let completer = spawn({
        let probe = probe.clone();
        move || assert!(complete(&producer, 7, &probe))
    });
    let mut queue = Queue::new();
    let sources: Vec<Source<()>> = made.upstream().to_source().sources(&mut queue);
    queue.run();
    assert!(sources.len() <= 1);
    completer.join().unwrap();
    assert_eq!((taken(made), runs.load(Ordering::Relaxed)), (8, 1));
    drop(sources);
    assert_eq!(probe.others(), 0);
}

/// A thread that looks into a body, and one that completes the cell by hand.
pub(crate) fn peeking_and_completing_by_hand_agree() {
    let (probe, runs) = (Probe::default(), Arc::new(AtomicUsize::new(0)));
    let (producer, reader) = promise::pair(());
    let made = stage(reader, &probe, &runs);
    let source = made.upstream().to_source();
    let watcher = spawn(move || {
        let mut queue = Queue::new();
        drop(source.sources(&mut queue));
        queue.run();
    });
    let mut queue = Queue::new();
    assert!(made.complete(Whole::new(100, &probe), &mut queue).is_ok());
    queue.run();
    watcher.join().unwrap();
    assert_eq!((taken(made), runs.load(Ordering::Relaxed)), (100, 0));
    drop(producer);
    assert_eq!(probe.others(), 0);
}

/// A sweep of a list loses no live link, although its source is completed meanwhile.
pub(crate) fn sweeping_and_completing_agree() {
    let (probe, runs) = (Probe::default(), Arc::new(AtomicUsize::new(0)));
    let (producer, reader) = promise::pair(());
    let (dead, live) = (
        stage(reader.share(), &probe, &runs),
        stage(reader, &probe, &runs),
    );
    let completer = spawn({
        let probe = probe.clone();
        move || assert!(complete(&producer, 7, &probe))
    });
    // In models one dead link is enough for a sweep.
    let mut queue = Queue::new();
    drop(dead.complete(Whole::new(100, &probe), &mut queue));
    queue.run();
    completer.join().unwrap();
    assert_eq!(taken(live), 8);
    drop(dead);
    assert_eq!(probe.others(), 0);
}

/// A sweep by one thread sees the links that others have attached.
pub(crate) fn sweeping_and_attaching_agree() {
    let (probe, runs) = (Probe::default(), Arc::new(AtomicUsize::new(0)));
    let (producer, reader) = promise::pair(());
    let source = reader.upstream().to_source();
    let attacher = spawn({
        let (probe, runs) = (probe.clone(), Arc::clone(&runs));
        move || stage(reader, &probe, &runs)
    });
    let mut queue = Queue::new();
    assert!(source.dependents(&mut queue) <= 1);
    queue.run();
    let made = attacher.join().unwrap();
    assert!(complete(&producer, 7, &probe));
    assert_eq!(taken(made), 8);
    drop((producer, source));
    assert_eq!(probe.others(), 0);
}

/// A body that waits to be claimed by its holder goes to the holder, or to the thread that completes the cell by hand.
pub(crate) fn claiming_a_held_body_and_completing_by_hand_agree() {
    struct Token(Probe);

    impl Body<Whole, ()> for Token {
        fn run(self, _: Option<usize>, _: Claimed<Whole, (), Self>, _: &mut Queue) {}

        fn sources(&self, _: &mut dyn FnMut(Upstream<'_, ()>)) {}
    }

    let probe = Probe::default();
    let mut queue = Queue::new();
    let (reader, held) = promise::held(
        (),
        |held: Held<Whole, (), Token>| (Token(probe.clone()), held),
        &mut queue,
    );
    let holder = spawn({
        let probe = probe.clone();
        move || {
            let Some((token, claimed)) = held.claim() else {
                return;
            };
            drop(token.0);
            let mut queue = Queue::new();
            drop(claimed.complete(Whole::new(7, &probe), &mut queue));
            queue.run();
        }
    });
    let by_hand = reader.complete(Whole::new(100, &probe), &mut queue).is_ok();
    queue.run();
    holder.join().unwrap();
    assert_eq!(taken(reader), if by_hand { 100 } else { 7 });
    assert_eq!(probe.others(), 0);
}

/// The last writer learns that it was the last.
pub(crate) fn one_of_several_writers_is_the_last() {
    let (producer, reader) = promise::pair::<usize, ()>(());
    let many = few_or_many(2, 4);
    (1..many).for_each(|_| producer.add_writer());
    let threads = spawn_all(many, {
        let producer = Arc::new(producer);
        move |number| {
            let is_last = producer.remove_writer();
            if is_last {
                let mut queue = Queue::new();
                producer.complete(number, &mut queue).unwrap();
                queue.run();
            }
            is_last
        }
    });
    let last = join_all(threads);
    assert_eq!(last.iter().filter(|last| **last).count(), 1);
    assert!(last[reader.take().unwrap()]);
}
