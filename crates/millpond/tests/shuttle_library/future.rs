//! PCT schedules of completables: graphs of stages whose sources are completed by threads, readers that wait, tasks that are
//! cancelled and dropped.

use crate::graph_kit::{End, Graph, Node, Out, Play, evaluate};
use crate::shuttle_drive;
use crate::shuttle_kit::{pct, threads};
use millpond::executor::{Executor, Lifecycle, Rejected};
use millpond::future::{self, Completable};
use millpond::interrupt;
use millpond::task::{self, Task};
use millpond_raw::sync::Mutex;
use millpond_raw::sync::thread::spawn;
use std::sync::Arc;

/// So many graphs, each with a few schedules of each depth.
const GRAPHS: u64 = 40;

/// Marsaglia's xorshift, from a fixed seed.
struct Random(u64);

impl Random {
    fn byte(&mut self) -> u8 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.to_le_bytes()[3]
    }

    fn graph(&mut self) -> Graph {
        let bytes: Vec<[u8; 5]> = (0..8).map(|_| [(); 5].map(|()| self.byte())).collect();
        Graph::from_bytes(&bytes)
    }
}

/// The sources of a graph are completed by two threads while a third one makes its stages and a fourth cancels some.
#[test]
fn random_graphs_come_to_one_of_the_allowed_outcomes() {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for _ in 0..GRAPHS {
        let graph = random.graph();
        let allowed = evaluate(&graph, false);
        shuttle_drive::pct(20, move || play(&graph, &allowed));
    }
}

fn play(graph: &Graph, allowed: &[Option<crate::graph_kit::Allowed>]) {
    let mut play = Play::new();
    let sources = graph
        .nodes
        .iter()
        .take_while(|node| matches!(node, Node::Source(_)));
    let first = sources.count();
    for own in 0..first {
        play.create(graph.nodes[own], graph.on_executor[own]);
    }
    let ends: Vec<End> = play.ends.iter_mut().filter_map(Option::take).collect();
    let completer = spawn(move || ends.into_iter().for_each(End::now));
    for own in first..graph.nodes.len() {
        play.create(graph.nodes[own], graph.on_executor[own]);
    }
    let ends: Vec<End> = play.ends.iter_mut().filter_map(Option::take).collect();
    let other = spawn(move || ends.into_iter().for_each(End::now));
    for step in &graph.steps {
        if let crate::graph_kit::Step::Cancel(own) = step {
            play.stages[*own].cancel();
        }
    }
    completer.join().unwrap();
    other.join().unwrap();
    play.check(allowed);
}

#[test]
fn readers_that_wait_are_woken_and_one_completer_wins() {
    pct(|| {
        let (promise, reader) = future::promise::<u32, u32>();
        let readers = [(); 2].map(|()| {
            let reader = reader.clone();
            spawn(move || reader.join().unwrap())
        });
        let other = promise.clone();
        let racer = spawn(move || other.complete(1));
        let own = promise.complete(2);
        let raced = racer.join().unwrap();
        assert!(own.is_ok() != raced.is_ok());
        let value = if own.is_ok() { 2 } else { 1 };
        assert!(
            readers
                .into_iter()
                .all(|reader| reader.join().unwrap() == value)
        );
        assert_eq!(reader.join().unwrap(), value);
    });
}

#[test]
fn the_last_promise_that_is_dropped_abandons() {
    pct(|| {
        let (promise, reader) = future::promise::<u32, u32>();
        let stage = reader.map(|value| value + 1);
        let others = [promise.clone(), promise].map(|promise| spawn(move || drop(promise)));
        assert!(stage.join().unwrap_err().is_abandoned());
        for other in others {
            other.join().unwrap();
        }
    });
}

#[test]
fn stages_on_executors_run_or_are_rejected_and_always_end() {
    pct(|| {
        let executor = Arc::new(threads(2));
        let (promise, reader) = future::promise::<u32, u32>();
        let made = reader.clone().map_on(&executor, |value| value + 1);
        let composed = reader.and_then_on(&executor, |value| Completable::completed(value + 2));
        let closer = {
            let executor = Arc::clone(&executor);
            spawn(move || executor.close().unwrap())
        };
        promise.complete(7).unwrap();
        for (stage, expected) in [(made, 8), (composed, 9)] {
            match stage.join() {
                Ok(value) => assert_eq!(value, expected),
                Err(failure) => assert!(failure.is_rejected(), "{failure}"),
            }
        }
        closer.join().unwrap();
    });
}

/// Takes tasks; the model drops them.
#[derive(Clone, Debug, Default)]
struct Basket(Arc<Mutex<Vec<Task>>>);

impl Executor for Basket {
    fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        self.0.lock().push(task);
        Ok(())
    }
}

#[test]
fn a_task_that_is_dropped_while_its_stage_is_cancelled_ends_it_once() {
    pct(|| {
        let basket = Basket::default();
        let owned = Arc::new(());
        let own = Arc::clone(&owned);
        let stage = Completable::<u32, u32>::completed(7).map_on(&basket, move |value| {
            drop(own);
            value
        });
        let dropper = spawn(move || {
            let tasks = std::mem::take(&mut *basket.0.lock());
            drop(tasks);
        });
        assert!(stage.cancel() || stage.is_failed());
        dropper.join().unwrap();
        assert!(stage.join().unwrap_err().is_cancelled());
        assert_eq!(Arc::strong_count(&owned), 1);
    });
}

#[test]
fn a_reader_that_is_interrupted_leaves_and_the_value_stays() {
    pct(|| {
        let (promise, reader) = future::promise::<u32, u32>();
        let (work, handle) = task::new(move || match reader.clone().join() {
            Ok(value) => assert_eq!(value, 7),
            Err(failure) => {
                assert!(failure.is_interrupted() && !interrupt::is_interrupted());
                reader.cancel();
            }
        });
        let runner = spawn(move || drop(work.run()));
        let completer = spawn(move || {
            let _ = promise.complete(7);
        });
        handle.interrupt();
        runner.join().unwrap();
        completer.join().unwrap();
    });
}

#[test]
fn a_timeout_and_a_completion_agree() {
    pct(|| {
        let (stage, end) = {
            let clock = millpond::time::ManualClock::new();
            let (promise, reader) = future::promise::<u32, u32>();
            let stage = reader.or_timeout_by(&clock.clock(), std::time::Duration::from_secs(1));
            (stage, (promise, clock))
        };
        let (promise, clock) = end;
        let timer = spawn(move || clock.advance(std::time::Duration::from_secs(1)));
        let completed = promise.complete(7).is_ok();
        timer.join().unwrap();
        match stage.join() {
            Ok(value) => assert!(completed && value == 7),
            Err(failure) => assert!(!completed && failure.is_timed_out()),
        }
    });
}

#[test]
fn a_source_that_is_abandoned_is_so_for_all_of_its_stages() {
    pct(|| {
        let graph = Graph {
            nodes: vec![
                Node::Source(Out::Abandoned),
                Node::Source(Out::Value(1)),
                Node::AnyOf(0, 1, 0),
                Node::FirstSuccess(0, 1),
                Node::Zip(1, 0),
            ],
            on_executor: vec![false; 5],
            steps: (0..5).map(crate::graph_kit::Step::Create).collect(),
        };
        let allowed = evaluate(&graph, false);
        play(&graph, &allowed);
    });
}
