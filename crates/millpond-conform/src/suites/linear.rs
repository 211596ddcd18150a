//! Every step of a queue that holds elements happens at one moment.
//!
//! Short histories of three threads are checked against a sequential model: a line in which new
//! elements stand behind, or where their rank puts them.

use super::item::{Make, Queue, item};
use crate::kit::{Actor, History, Recorder, Rng, Stress};
use millpond::queue::QueueExt;
use std::sync::Arc;

/// Tests that the steps of a queue happen one after another, made by a [`Make`].
#[macro_export]
macro_rules! linear_suite {
    ($make:expr) => {
        $crate::bodies! { linear, ($make as $crate::suites::item::Make);
            any_mix_of_steps_agrees_with_a_model
            histories_of_three_threads_can_be_explained
        }
    };
}

/// A step, as a history notes it.
#[derive(Clone, Debug)]
enum Asked {
    Offer(u32),
    Poll,
    Peek,
    Remove(u32),
    Len,
    Snapshot,
    Drain(usize),
    SetCapacity(usize),
}

#[derive(Clone, Debug, PartialEq)]
enum Answer {
    Done(bool),
    Rank(Option<u32>),
    Ranks(Vec<u32>),
    Number(usize),
}

/// The queue as a model: a line, and whether ranks decide the places in it.
#[derive(Clone, Debug)]
struct Line {
    ranks: Vec<u32>,
    capacity: Option<usize>,
    by_rank: bool,
}

impl Line {
    /// The model of an empty queue, which is asked for its order by trying it.
    fn of(queue: &Queue) -> Self {
        queue.offer(item(2)).expect("there is room for two");
        queue.offer(item(1)).expect("there is room for two");
        let by_rank = queue.poll() == Some(item(1));
        assert!(queue.poll().is_some());
        Line {
            ranks: Vec::new(),
            capacity: queue.capacity(),
            by_rank,
        }
    }

    fn step(&mut self, asked: &Asked) -> Answer {
        match *asked {
            Asked::Offer(rank) => {
                let room = self.capacity.is_none_or(|most| self.ranks.len() < most);
                if room {
                    let place = if self.by_rank {
                        self.ranks.partition_point(|other| *other <= rank)
                    } else {
                        self.ranks.len()
                    };
                    self.ranks.insert(place, rank);
                }
                Answer::Done(room)
            }
            Asked::Poll => Answer::Rank((!self.ranks.is_empty()).then(|| self.ranks.remove(0))),
            Asked::Peek => Answer::Rank(self.ranks.first().copied()),
            Asked::Remove(rank) => {
                let place = self.ranks.iter().position(|other| *other == rank);
                place.map(|place| self.ranks.remove(place));
                Answer::Done(place.is_some())
            }
            Asked::Len => Answer::Number(self.ranks.len()),
            Asked::Snapshot => Answer::Ranks(self.ranks.clone()),
            Asked::Drain(max) => {
                Answer::Ranks(self.ranks.drain(..max.min(self.ranks.len())).collect())
            }
            Asked::SetCapacity(capacity) => {
                if self.capacity.is_some() {
                    self.capacity = Some(capacity);
                }
                Answer::Done(true)
            }
        }
    }
}

/// The same step with the queue itself.
fn step(queue: &Queue, asked: &Asked) -> Answer {
    match *asked {
        Asked::Offer(rank) => Answer::Done(queue.offer(item(rank)).is_ok()),
        Asked::Poll => Answer::Rank(queue.poll().map(|item| item.rank)),
        Asked::Peek => Answer::Rank(queue.peek().map(|item| item.rank)),
        Asked::Remove(rank) => Answer::Done(queue.remove(&item(rank))),
        Asked::Len => Answer::Number(queue.len()),
        Asked::Snapshot => Answer::Ranks(super::item::ranks(queue)),
        Asked::Drain(max) => {
            let mut ranks = Vec::new();
            queue.drain_to(max, &mut |item| ranks.push(item.rank));
            Answer::Ranks(ranks)
        }
        Asked::SetCapacity(capacity) => {
            // A queue without a bound may take one on: the model stays without, so it is not asked.
            if queue.capacity().is_some() {
                queue.set_capacity(capacity).expect("a capacity above 0");
            }
            Answer::Done(true)
        }
    }
}

fn any_step(rng: &mut Rng) -> Asked {
    let rank = rng.below(5) as u32;
    match rng.below(16) {
        0..6 => Asked::Offer(rank),
        6..10 => Asked::Poll,
        10 => Asked::Peek,
        11 => Asked::Remove(rank),
        12 => Asked::Len,
        13 => Asked::Snapshot,
        14 => Asked::Drain(rng.below(4)),
        _ => Asked::SetCapacity(1 + rng.below(5)),
    }
}

/// Single steps, hundreds of them, in lock-step with the model.
pub fn any_mix_of_steps_agrees_with_a_model(make: &Make) {
    Stress::new("lock-step").one_in(10).run(|round| {
        let queue = make(2 + round.rng.below(4)).unwrap();
        let mut line = Line::of(&queue);
        for _ in 0..100 {
            let asked = any_step(&mut round.rng);
            assert_eq!(
                step(&queue, &asked),
                line.step(&asked),
                "{asked:?} of {line:?}"
            );
            assert_eq!(super::item::ranks(&queue), line.ranks);
        }
    });
}

/// Drains move elements one by one, so they are no single step and are left out.
pub fn histories_of_three_threads_can_be_explained(make: &Make) {
    Stress::new("histories").one_in(4).run(|round| {
        let queue = make(2).unwrap();
        let line = Line::of(&queue);
        let mut history = History::new();
        let actors: Vec<Actor<Recorder<Asked, Answer>>> = (0..3)
            .map(|_| {
                let (queue, mut recorder) = (Arc::clone(&queue), history.recorder());
                round.actor("caller", move |rng| {
                    for _ in 0..5 {
                        let asked = match any_step(rng) {
                            Asked::Drain(_) => Asked::Poll,
                            asked => asked,
                        };
                        rng.jitter();
                        recorder.call(asked, |asked| step(&queue, asked));
                    }
                    recorder
                })
            })
            .collect();
        for actor in actors {
            history.add(actor.finish());
        }
        history.assert_explained_by(&line, Line::step);
    });
}
