//! Pools whose tasks have priorities: ours, and what one writes with std.

use crate::peers::pool::{Job, Pool, Queue};
use anyhow::Result;
use millpond::executor::{ExecutorExt, Lifecycle};
use millpond::pool::{self, ThreadPool};
use millpond::task::{Priority, TaskHandle, TaskSpec};
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Three priorities in turn: they are the same for all pools.
const LEVELS: [Priority; 3] = [Priority::Low, Priority::Normal, Priority::High];

/// More tasks than ever wait.
const CAPACITY: usize = 1_100_000;

/// Longer than a round: nothing ages in it.
const PER_LEVEL: Duration = Duration::from_secs(60);

const REFUSED: &str = "an open pool of the bench refuses nothing";

/// Ours.
#[derive(Debug)]
pub(super) struct Millpond {
    pool: ThreadPool,
    next: AtomicU64,
}

impl Millpond {
    fn spec(&self) -> TaskSpec {
        let turn = self.next.fetch_add(1, Ordering::Relaxed) as usize % LEVELS.len();
        TaskSpec::new().priority(LEVELS[turn])
    }
}

impl Pool for Millpond {
    const NAME: &'static str = "millpond";
    type Handle = TaskHandle<u64>;

    fn with_workers(workers: usize, _by_priority: Queue) -> Result<Self> {
        let builder = ThreadPool::builder("bench").core(workers).max(workers);
        let pool = builder.queue(pool::Queue::by_priority(CAPACITY, PER_LEVEL));
        let pool = pool.build()?;
        pool.prestart_all_core()?;
        let next = AtomicU64::new(0);
        Ok(Millpond { pool, next })
    }

    fn run<F: FnOnce() + Send + 'static>(&self, f: F) {
        self.pool.execute_with(self.spec(), f).expect(REFUSED);
    }

    fn submit<F: FnOnce() -> u64 + Send + 'static>(&self, f: F) -> Self::Handle {
        self.pool.submit_with(self.spec(), f).expect(REFUSED)
    }

    fn join(&self, handle: Self::Handle) -> u64 {
        handle.join().expect("a task of the bench does not panic")
    }

    fn close(self) {
        self.pool
            .close()
            .expect("no task of the bench closes its pool");
    }
}

/// Threads that take the most urgent closure out of a heap.
#[derive(Debug)]
pub(super) struct Heap {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    more: Condvar,
}

#[derive(Default)]
struct State {
    heap: BinaryHeap<Entry>,
    brought: u64,
    is_closed: bool,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").finish_non_exhaustive()
    }
}

/// The most urgent is the greatest; of those that are as urgent, the one that came first.
struct Entry {
    level: usize,
    number: u64,
    job: Job,
}

impl Entry {
    fn key(&self) -> (usize, std::cmp::Reverse<u64>) {
        (self.level, std::cmp::Reverse(self.number))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Option<Job> {
        let mut state = self.lock();
        loop {
            if let Some(entry) = state.heap.pop() {
                return Some(entry.job);
            }
            if state.is_closed {
                return None;
            }
            let waited = self.more.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn bring(&self, job: Job) {
        let mut state = self.lock();
        state.brought += 1;
        let number = state.brought;
        let level = number as usize % LEVELS.len();
        state.heap.push(Entry { level, number, job });
        drop(state);
        self.more.notify_one();
    }
}

impl Pool for Heap {
    const NAME: &'static str = "threads and a BinaryHeap";
    type Handle = oneshot::Receiver<u64>;

    fn with_workers(workers: usize, _by_priority: Queue) -> Result<Self> {
        let shared = Arc::new(Shared::default());
        let work = |shared: Arc<Shared>| {
            std::thread::spawn(move || {
                while let Some(job) = shared.take() {
                    job();
                }
            })
        };
        let threads = (0..workers).map(|_| work(Arc::clone(&shared))).collect();
        Ok(Heap { shared, threads })
    }

    fn run<F: FnOnce() + Send + 'static>(&self, f: F) {
        self.shared.bring(Box::new(f));
    }

    fn submit<F: FnOnce() -> u64 + Send + 'static>(&self, f: F) -> Self::Handle {
        let (sender, receiver) = oneshot::channel();
        self.run(move || {
            // The receiver is gone only if the round has failed already.
            let _ = sender.send(f());
        });
        receiver
    }

    fn join(&self, handle: Self::Handle) -> u64 {
        handle.recv().expect("a task of the bench does not panic")
    }

    fn close(self) {
        self.shared.lock().is_closed = true;
        self.shared.more.notify_all();
        for thread in self.threads {
            thread.join().expect("a worker of the bench does not panic");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// Brings three tasks of each level while the only worker is busy, and says in which order they ran.
    fn order<P: Pool>() -> Vec<u64> {
        let pool = P::with_workers(1, Queue::Unbounded).unwrap();
        let (open, gate) = mpsc::channel::<()>();
        let (begun, has_begun) = mpsc::channel();
        pool.run(move || {
            begun.send(()).unwrap();
            let _ = gate.recv();
        });
        has_begun.recv().unwrap();
        let (tell, told) = mpsc::channel();
        for number in 1..=9 {
            let tell = tell.clone();
            pool.run(move || tell.send(number).unwrap());
        }
        drop((tell, open));
        let order = told.iter().collect();
        pool.close();
        order
    }

    #[test]
    fn both_run_the_most_urgent_first_and_equals_in_their_order() {
        // The first of all kept the worker busy, so the second of a level comes first here.
        let expected = [2, 5, 8, 1, 4, 7, 3, 6, 9];
        assert_eq!(order::<Millpond>(), [2, 5, 8, 1, 4, 7, 3, 6, 9]);
        let of_heap = order::<Heap>();
        // Its levels begin with another one.
        assert_eq!(of_heap, [1, 4, 7, 3, 6, 9, 2, 5, 8], "{expected:?}");
    }
}
