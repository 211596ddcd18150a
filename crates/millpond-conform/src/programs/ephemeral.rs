//! Engines that live within one step, and whose last handle is dropped by a task: one of their own, or
//! one of another engine.

use super::world::ledger;
use crate::chaos::client::{Client, settle_rejection, small_task};
use crate::chaos::faulty::FaultyFactory;
use crate::chaos::ledger::{Fact, Ledger, Value, lock};
use crate::chaos::round::wait_for;
use crate::kit::Rng;
use millpond::executor::{
    CompletionService, ExecutorExt, Rejected, SerialExecutor, SpawnFuture, ThreadPerTask,
};
use millpond::pool::{Queue, ThreadPool};
use millpond::schedule::{Scheduled, ScheduledPool};
use millpond::task::TaskHandle;
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

/// Shared by all of them: a ledger, threads, and handles that were kept.
pub(super) struct Ephemeral {
    ledger: Arc<Ledger>,
    factory: Arc<FaultyFactory>,
    scheduled: Mutex<Vec<(usize, Scheduled<Value>)>>,
}

const VALID: &str = "what is drawn is valid";

impl Ephemeral {
    pub(super) fn new() -> Self {
        let ledger = ledger();
        Ephemeral {
            factory: Arc::new(FaultyFactory::new(&ledger, 0, Rng::new(0))),
            ledger,
            scheduled: Mutex::default(),
        }
    }

    /// Builds an engine, on this pool or on threads of its own, submits a little, and lets it go.
    pub(super) fn come_and_go(&self, client: Client, seed: u64) {
        let rng = &mut Rng::new(seed);
        match rng.below(6) {
            0 => {
                let pool = self.small_pool(rng);
                self.submit_some(rng, |task| pool.submit(task));
                let own = pool.clone();
                // Accepted or not, the handle is dropped; so it is with all below.
                let _ = pool.execute(move || drop(own));
            }
            1 => {
                let builder = ThreadPerTask::builder("ephemeral", 1 + rng.below(3));
                let threads = builder.threads(Arc::clone(&self.factory)).build();
                let threads = Arc::new(threads.expect(VALID));
                self.submit_some(rng, |task| threads.submit(task));
                let own = Arc::clone(&threads);
                let _ = threads.execute(move || drop(own));
            }
            2 => {
                let pool = self.small_pool(rng);
                let timers = ScheduledPool::owning(pool).on_event(|_| ()).build();
                self.schedule_some(rng, &timers);
                let own = timers.clone();
                let _ = timers.schedule(Duration::from_micros(rng.any() % 300), move || drop(own));
            }
            3 => {
                let serial = SerialExecutor::new(client);
                let key = serial.key(rng.any() % 2);
                self.submit_some(rng, |task| key.submit(task));
                let own = serial.clone();
                let _ = key.execute(move || drop(own));
            }
            4 => {
                let service = Arc::new(CompletionService::new(client.clone()));
                for _ in 0..1 + rng.below(3) {
                    let Some((id, task)) = small_task(&self.ledger, rng) else {
                        return;
                    };
                    // Results go with the service.
                    self.ledger.entry(id).note(Fact::LetGo);
                    settle_rejection(&self.ledger, rng, id, service.submit(task));
                }
                let own = service;
                let _ = client.execute(move || drop(own.poll_timeout(Duration::from_micros(200))));
            }
            _ => self.spawn_future(&client, rng),
        }
    }

    fn small_pool(&self, rng: &mut Rng) -> ThreadPool {
        let workers = 1 + rng.below(2);
        let builder = ThreadPool::builder("ephemeral").core(workers).max(workers);
        let builder = builder.queue(Queue::bounded(1 + rng.below(4)));
        builder
            .threads(Arc::clone(&self.factory))
            .build()
            .expect(VALID)
    }

    fn submit_some<F, S>(&self, rng: &mut Rng, mut submit: S)
    where
        F: FnOnce() -> Value,
        S: FnMut(Body) -> Result<TaskHandle<Value>, Rejected<F>>,
    {
        for _ in 0..1 + rng.below(3) {
            let Some((id, task)) = small_task(&self.ledger, rng) else {
                return;
            };
            self.ledger.entry(id).note(Fact::HasHandle);
            let submitted = submit(Box::new(task));
            if let Some(handle) = settle_rejection(&self.ledger, rng, id, submitted) {
                lock(&self.ledger.unjoined).push((id, handle));
            }
        }
    }

    fn schedule_some(&self, rng: &mut Rng, timers: &ScheduledPool<ThreadPool>) {
        for _ in 0..1 + rng.below(3) {
            let Some((id, task)) = small_task(&self.ledger, rng) else {
                return;
            };
            self.ledger.entry(id).note(Fact::HasHandle);
            let delay = Duration::from_micros(rng.any() % 400);
            let scheduled = timers.schedule(delay, task);
            if let Some(handle) = settle_rejection(&self.ledger, rng, id, scheduled) {
                lock(&self.scheduled).push((id, handle));
            }
        }
    }

    /// A future that wakes itself a few times; its handle may cancel it between two polls.
    fn spawn_future(&self, client: &Client, rng: &mut Rng) {
        let Some((id, task)) = small_task(&self.ledger, rng) else {
            return;
        };
        let mut polls = rng.below(5);
        let future = async move {
            poll_fn(move |context| {
                context.waker().wake_by_ref();
                match polls.checked_sub(1) {
                    None => Poll::Ready(()),
                    Some(left) => {
                        polls = left;
                        Poll::Pending
                    }
                }
            })
            .await;
            task()
        };
        let entry = self.ledger.entry(id);
        match client.spawn_future(future) {
            Ok(handle) => {
                entry.note(Fact::Accepted);
                entry.note(Fact::HasHandle);
                if rng.once_in(3) {
                    entry.note(Fact::Asked);
                    handle.interrupt();
                }
                lock(&self.ledger.unjoined).push((id, handle));
            }
            Err(rejected) => {
                entry.note(Fact::Rejected);
                drop(rejected);
            }
        }
    }

    /// Waits until no thread is left (PROGRAM-1). The leftovers are judged.
    pub(super) fn end(self) -> super::engines::EndedTimers {
        wait_for(|| self.factory.live_threads() == 0);
        super::engines::EndedTimers {
            ledger: self.ledger,
            has_hooks: false,
            may_lag: true,
            kept: std::mem::take(&mut lock(&self.scheduled)),
        }
    }
}

type Body = Box<dyn FnOnce() -> Value + Send>;
