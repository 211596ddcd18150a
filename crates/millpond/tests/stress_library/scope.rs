//! Scopes under load, with threads that order themselves by nothing but scopes and queues of ours:
//! what sanitizers can judge. Bodies write to plain memory that they borrow, and it is read, changed
//! and freed as soon as the scope has ended.

use millpond::executor::{Executor, ExecutorExt, RejectReason, Rejected};
use millpond::queue::{BlockingQueue, FifoQueue};
use millpond::task::Task;
use millpond_raw::sync::thread::{JoinHandle, spawn};
use std::sync::Arc;

const ROUNDS: usize = 300;

/// A queue and a few threads that take from it.
#[derive(Debug)]
struct Workers {
    queue: Arc<FifoQueue<Option<Task>>>,
    threads: Vec<JoinHandle<()>>,
}

impl Workers {
    fn start(count: usize) -> Self {
        let queue = Arc::new(FifoQueue::<Option<Task>>::bounded_growing(64).expect("64 is fine"));
        let worker = |_| {
            let queue = Arc::clone(&queue);
            spawn(move || {
                while let Ok(Some(task)) = queue.take() {
                    drop(task.run());
                }
            })
        };
        let threads = (0..count).map(worker).collect();
        Workers { queue, threads }
    }

    fn stop(self) {
        for _ in &self.threads {
            self.queue.put(None).expect("nobody interrupts");
        }
        for thread in self.threads {
            thread.join().expect("a worker ends well");
        }
    }
}

impl Executor for Workers {
    fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        match self.queue.offer(Some(task)) {
            Ok(()) => Ok(()),
            Err(full) => {
                let task = full.element.expect("it was a task");
                let reason = RejectReason::saturated(64, 64, self.threads.len());
                Err(Rejected::new(task, reason))
            }
        }
    }
}

#[test]
fn writes_of_tasks_are_visible_when_the_scope_has_ended() {
    let workers = Workers::start(3);
    for round in 0..ROUNDS {
        let mut cells: Vec<Box<usize>> = (0..20).map(Box::new).collect();
        workers.scope(|s| {
            for cell in &mut cells {
                if let Err(rejected) = s.execute(|| **cell += round) {
                    (rejected.task)();
                }
            }
        });
        assert!(
            cells
                .iter()
                .enumerate()
                .all(|(n, cell)| **cell == n + round)
        );
    }
    workers.stop();
}

#[test]
fn values_and_tasks_of_tasks_are_there_too() {
    let workers = Workers::start(3);
    for round in 0..ROUNDS {
        let cells: Vec<Box<usize>> = (0..12).map(Box::new).collect();
        let sum: usize = workers.scope(|s| {
            let parts = cells.chunks(3).map(|part| {
                s.submit(move || {
                    let rest = s.submit(move || *part[1] + *part[2] + round);
                    let first = Box::new(*part[0]);
                    let rest = match rest {
                        Ok(rest) => rest.join().expect("it does not fail"),
                        Err(rejected) => (rejected.task)(),
                    };
                    Box::new(*first + rest)
                })
            });
            let parts: Vec<_> = parts.collect();
            parts
                .into_iter()
                .map(|part| match part {
                    Ok(part) => *part.join().expect("it does not fail"),
                    Err(rejected) => *(rejected.task)(),
                })
                .sum()
        });
        assert_eq!(sum, 66 + 4 * round);
    }
    workers.stop();
}

#[test]
fn cancelling_and_ending_free_every_closure_once() {
    let workers = Workers::start(3);
    for round in 0..ROUNDS {
        let shared = Arc::new(round);
        let text = format!("round {round}");
        workers.scope(|s| {
            for n in 0..16 {
                let (shared, text) = (Arc::clone(&shared), &text);
                let handle = s.submit(move || (text.len() + *shared, Box::new(n)));
                match handle {
                    Ok(handle) if n % 4 == 0 => drop(handle.cancel()),
                    Ok(handle) if n % 4 == 1 => drop(handle),
                    Ok(handle) if n % 4 == 2 => drop(handle.join()),
                    _ => {}
                }
            }
            if round % 2 == 0 {
                s.cancel_rest();
            }
        });
        drop(text);
        assert_eq!(Arc::strong_count(&shared), 1, "round {round}");
    }
    workers.stop();
}
