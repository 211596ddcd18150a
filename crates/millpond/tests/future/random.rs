//! Random graphs of stages against direct evaluation.

use super::graph_kit::{Graph, Node, Play, Step, evaluate};
use super::proptest_kit;
use proptest::collection::vec;
use proptest::prelude::any;

#[test]
fn random_graphs_come_to_what_direct_evaluation_comes_to() {
    proptest_kit::ask(3_000, &vec(any::<[u8; 5]>(), 1..24), |bytes| {
        let graph = Graph::from_bytes(&bytes);
        let allowed = evaluate(&graph, true);
        let mut play = Play::new();
        for step in &graph.steps {
            match *step {
                Step::Create(own) => play.create(graph.nodes[own], graph.on_executor[own]),
                Step::End(own) => play.ends[own].take().unwrap().now(),
                Step::Cancel(own) => drop(play.stages[own].cancel()),
            }
        }
        play.check(&allowed);
    });
}

/// All sources are completed, and some nodes cancelled, by threads at the same time.
#[test]
fn random_graphs_that_threads_complete_at_once_come_to_one_of_the_allowed_outcomes() {
    proptest_kit::ask(300, &vec(any::<[u8; 5]>(), 1..24), |bytes| {
        let graph = Graph::from_bytes(&bytes);
        let allowed = evaluate(&graph, false);
        let mut play = Play::new();
        for (node, on_executor) in graph.nodes.iter().zip(&graph.on_executor) {
            play.create(*node, *on_executor);
        }
        let cancelled = graph.steps.iter().filter_map(|step| match step {
            Step::Cancel(own) => Some(play.stages[*own].clone()),
            _ => None,
        });
        let cancelled: Vec<_> = cancelled.collect();
        let mut parts = [(); 2].map(|()| Vec::new());
        for (number, end) in play.ends.iter_mut().filter_map(Option::take).enumerate() {
            parts[number % 2].push(end);
        }
        std::thread::scope(|s| {
            for part in parts {
                s.spawn(move || part.into_iter().for_each(|end| end.now()));
            }
            s.spawn(move || {
                for stage in &cancelled {
                    stage.cancel();
                }
            });
        });
        play.check(&allowed);
    });
}

#[test]
fn the_evaluator_knows_what_a_small_graph_comes_to() {
    let graph = Graph {
        nodes: vec![
            Node::Source(super::graph_kit::Out::Value(7)),
            Node::Map(0, 1),
            Node::AndThen(1, 0),
        ],
        on_executor: vec![false; 3],
        steps: vec![
            Step::Create(0),
            Step::Create(1),
            Step::End(0),
            Step::Create(2),
        ],
    };
    let allowed = evaluate(&graph, true);
    let expected = |time, value| Some([(time, super::graph_kit::Out::Value(value))].into());
    assert_eq!(allowed, [expected(2, 7), expected(2, 8), expected(3, 7)]);
}
