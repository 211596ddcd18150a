//! A pool over `crossbeam-channel` whose tasks are claimed by the first: a worker, or the one
//! that waits. No crate among the peers has this for a caller outside of the pool, so it is written
//! as one would write it with std: a lock and a condition around closure and result.

use super::hand_rolled::{Crossbeam, HandRolled};
use super::{Pool, Queue};
use anyhow::Result;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// [`HandRolled`] over [`Crossbeam`], with tasks that can be claimed.
#[derive(Debug)]
pub struct Claiming(HandRolled<Crossbeam>);

/// A task, shared between the queue and its handle.
pub trait Claim: Send + Sync {
    /// Runs it unless another thread has started it.
    fn run_if_unclaimed(&self);

    /// Waits for its result.
    fn wait(&self) -> u64;
}

struct Shared<F> {
    state: Mutex<State<F>>,
    finished: Condvar,
}

enum State<F> {
    Unclaimed(F),
    Claimed,
    Finished(u64),
}

impl<F: FnOnce() -> u64 + Send> Claim for Shared<F> {
    fn run_if_unclaimed(&self) {
        let mut state = self.lock();
        match std::mem::replace(&mut *state, State::Claimed) {
            State::Unclaimed(body) => {
                drop(state);
                let result = body();
                *self.lock() = State::Finished(result);
                self.finished.notify_one();
            }
            other => *state = other,
        }
    }

    fn wait(&self) -> u64 {
        let mut state = self.lock();
        loop {
            if let State::Finished(result) = *state {
                return result;
            }
            state = self.finished.wait(state).expect(NO_PANIC);
        }
    }
}

impl<F> Shared<F> {
    fn lock(&self) -> MutexGuard<'_, State<F>> {
        self.state.lock().expect(NO_PANIC)
    }
}

const NO_PANIC: &str = "no task runs under this lock";

impl Pool for Claiming {
    const NAME: &'static str = "crossbeam-channel + claim";
    type Handle = Arc<dyn Claim>;

    fn open(queue: Queue) -> Result<Self> {
        HandRolled::open(queue).map(Claiming)
    }

    fn run<F: FnOnce() + Send + 'static>(&self, f: F) {
        self.0.run(f);
    }

    fn submit<F: FnOnce() -> u64 + Send + 'static>(&self, f: F) -> Self::Handle {
        let shared = Arc::new(Shared {
            state: Mutex::new(State::Unclaimed(f)),
            finished: Condvar::new(),
        });
        let queued = Arc::clone(&shared);
        self.0.bring(Box::new(move || queued.run_if_unclaimed()));
        shared
    }

    fn join(&self, handle: Self::Handle) -> u64 {
        handle.wait()
    }

    fn run_or_join(&self, handle: Self::Handle) -> u64 {
        handle.run_if_unclaimed();
        handle.wait()
    }

    fn close(self) {
        self.0.close();
    }
}
