//! Checks whether a history of concurrent calls is linearizable.
//!
//! Every call is recorded with its start and its end. A history is *linearizable*
//! (Herlihy and Wing, 1990) if there is an order of its calls in which no call comes before one that
//! had ended when it began, and in which a sequential model gives every call the answer that it got.
//! The search tries all orders; histories are short, so it is quick.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// One call: what was asked, what was answered, and when.
#[derive(Clone, Debug)]
pub struct Call<A, R> {
    /// The call's argument.
    pub asked: A,
    /// The call's result.
    pub answered: R,
    began: u64,
    ended: u64,
}

/// Notes the calls of one thread. All recorders of a history share its clock.
#[derive(Debug)]
pub struct Recorder<A, R> {
    clock: Arc<AtomicU64>,
    calls: Vec<Call<A, R>>,
}

impl<A, R> Recorder<A, R> {
    /// Makes the call and notes it.
    pub fn call(&mut self, asked: A, call: impl FnOnce(&A) -> R) {
        // SeqCst: the moments of all threads must stand in one order.
        let began = self.clock.fetch_add(1, Ordering::SeqCst);
        let answered = call(&asked);
        let ended = self.clock.fetch_add(1, Ordering::SeqCst);
        self.calls.push(Call {
            asked,
            answered,
            began,
            ended,
        });
    }
}

/// The calls of several threads.
#[derive(Debug)]
pub struct History<A, R> {
    clock: Arc<AtomicU64>,
    calls: Vec<Call<A, R>>,
}

impl<A: Debug, R: Debug + PartialEq> History<A, R> {
    /// A history without calls.
    pub fn new() -> Self {
        History {
            clock: Arc::default(),
            calls: Vec::new(),
        }
    }

    /// A recorder for a thread of this history.
    pub fn recorder(&self) -> Recorder<A, R> {
        Recorder {
            clock: Arc::clone(&self.clock),
            calls: Vec::new(),
        }
    }

    /// Adds what a thread has noted.
    pub fn add(&mut self, recorder: Recorder<A, R>) {
        self.calls.extend(recorder.calls);
    }

    /// Fails unless the model explains it.
    ///
    /// # Panics
    ///
    /// If there is no order of the calls in which the model gives the same answers.
    #[track_caller]
    pub fn assert_explained_by<M: Clone>(&self, model: &M, step: impl Fn(&mut M, &A) -> R) {
        assert!(self.calls.len() <= 64, "the search is for short histories");
        if !self.explained(model, &step, 0) {
            let mut calls: Vec<_> = self.calls.iter().collect();
            calls.sort_by_key(|call| call.began);
            let told: String = calls
                .iter()
                .map(|call| {
                    let Call {
                        asked,
                        answered,
                        began,
                        ended,
                    } = call;
                    format!("\n  from {began:>3} to {ended:>3}: {asked:?} -> {answered:?}")
                })
                .collect();
            panic!("no order of these calls explains their answers:{told}");
        }
    }

    /// Whether the calls that are not in `done` can follow from `model`.
    fn explained<M: Clone>(&self, model: &M, step: &impl Fn(&mut M, &A) -> R, done: u64) -> bool {
        let open = |number: &usize| done & (1 << number) == 0;
        let mut left = (0..self.calls.len()).filter(open).peekable();
        if left.peek().is_none() {
            return true;
        }
        // The next call must have begun before any other of them ended.
        let first_end = (0..self.calls.len())
            .filter(open)
            .map(|number| self.calls[number].ended)
            .min();
        left.any(|number| {
            let call = &self.calls[number];
            if Some(call.began) > first_end {
                return false;
            }
            let mut next = model.clone();
            step(&mut next, &call.asked) == call.answered
                && self.explained(&next, step, done | (1 << number))
        })
    }
}

impl<A: Debug, R: Debug + PartialEq> Default for History<A, R> {
    fn default() -> Self {
        History::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// A register: `Some` writes and answers what it wrote, `None` reads.
    fn register(value: &mut u32, asked: &Option<u32>) -> u32 {
        if let Some(new) = asked {
            *value = *new;
        }
        *value
    }

    fn call(asked: Option<u32>, answered: u32, began: u64, ended: u64) -> Call<Option<u32>, u32> {
        Call {
            asked,
            answered,
            began,
            ended,
        }
    }

    fn history(calls: Vec<Call<Option<u32>, u32>>) -> History<Option<u32>, u32> {
        History {
            clock: Arc::default(),
            calls,
        }
    }

    #[test]
    fn a_read_beside_a_write_may_see_either_value() {
        for seen in [0, 7] {
            history(vec![call(Some(7), 7, 0, 3), call(None, seen, 1, 2)])
                .assert_explained_by(&0, register);
        }
    }

    #[test]
    fn a_read_after_a_write_that_misses_it_is_caught() {
        let stale = history(vec![call(Some(7), 7, 0, 1), call(None, 0, 2, 3)]);
        let caught = catch_unwind(AssertUnwindSafe(|| stale.assert_explained_by(&0, register)));
        let text = caught.unwrap_err().downcast::<String>().unwrap();
        assert!(text.contains("from   2 to   3: None -> 0"), "{text}");
    }

    #[test]
    fn two_readers_that_see_two_writes_in_different_orders_are_caught() {
        let torn = history(vec![
            call(Some(1), 1, 0, 9),
            call(Some(2), 2, 1, 9),
            call(None, 1, 2, 3),
            call(None, 2, 4, 5),
            call(None, 1, 6, 7),
        ]);
        assert!(catch_unwind(AssertUnwindSafe(|| torn.assert_explained_by(&0, register))).is_err());
    }

    #[test]
    fn recorders_note_what_they_call() {
        let mut history = History::new();
        let mut recorder = history.recorder();
        recorder.call(Some(7), |asked| asked.unwrap());
        recorder.call(None, |_| 7);
        history.add(recorder);
        history.assert_explained_by(&0, register);
    }
}
