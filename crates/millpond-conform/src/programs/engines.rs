//! The engines that run tasks: what a step needs of each, and how each ends.

use super::world::ledger;
use crate::chaos::any_pool::AnyPool;
use crate::chaos::client::{self, Client, settle, settle_rejection, small_task};
use crate::chaos::faulty::FaultyFactory;
use crate::chaos::ledger::{Fact, Ledger, Value, lock};
use crate::chaos::round::{build, wait_for};
use crate::chaos::shape::{End, Shape};
use crate::chaos::{Counts, actions};
use crate::kit::Rng;
use millpond::executor::{
    CompletionService, ExecutorExt, Lifecycle, Rejected, SaturationPolicy, SerialExecutor, TaskId,
    ThreadPerTask,
};
use millpond::forkjoin::{ForkJoinPool, HelpPolicy};
use millpond::pool::ThreadPool;
use millpond::schedule::{Scheduled, ScheduledPool};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A pool of any shape.
pub(super) struct PoolEngine {
    /// Gone when a step has dropped it.
    client: Mutex<Option<Client>>,
    /// A handle that stays for the end, because thread-locals of workers hold others.
    anchor: Mutex<Option<Client>>,
    pub(super) ledger: Arc<Ledger>,
    pub(super) factory: Arc<FaultyFactory>,
    pub(super) shape: Shape,
    meddling: Mutex<()>,
}

impl PoolEngine {
    pub(super) fn new(shape: u64, deadlines: bool) -> Self {
        let mut rng = Rng::new(shape);
        let shape = Shape::draw(&mut rng);
        let ledger = ledger();
        let factory = Arc::new(FaultyFactory::new(&ledger, shape.faults, rng.fork()));
        let pool = build(&shape, &ledger, &factory, &mut rng);
        Self::of(AnyPool::Threads(pool), ledger, factory, shape, deadlines)
    }

    /// A fork-join pool of any shape.
    pub(super) fn fork_join(shape: u64, deadlines: bool) -> Self {
        let mut rng = Rng::new(shape);
        let rng = &mut rng;
        let shape = Shape {
            hooks: 0,
            ..Shape::draw(rng)
        };
        let ledger = ledger();
        let factory = Arc::new(FaultyFactory::new(&ledger, shape.faults, rng.fork()));
        let help = [HelpPolicy::Descendants, HelpPolicy::Any, HelpPolicy::Never];
        let builder = ForkJoinPool::builder("program")
            .parallelism(1 + rng.below(4))
            .max_spares(rng.below(6))
            .keep_alive(shape.keep_alive)
            .fifo(rng.once_in(2))
            .help(help[rng.below(3)])
            .on_event(|_| ())
            .on_panic(drop)
            .threads(Arc::clone(&factory));
        let pool = builder.build().expect("what is drawn is valid");
        Self::of(AnyPool::ForkJoin(pool), ledger, factory, shape, deadlines)
    }

    fn of(
        pool: AnyPool,
        ledger: Arc<Ledger>,
        factory: Arc<FaultyFactory>,
        shape: Shape,
        deadlines: bool,
    ) -> Self {
        let client = Client {
            pool,
            ledger: Arc::clone(&ledger),
            deadlines,
        };
        PoolEngine {
            client: Mutex::new(Some(client)),
            anchor: Mutex::default(),
            ledger,
            factory,
            shape,
            meddling: Mutex::default(),
        }
    }

    pub(super) fn client(&self) -> Option<Client> {
        lock(&self.client).clone()
    }

    /// The handle itself: the engine has none any more.
    pub(super) fn take_bank(&self) -> Option<Client> {
        lock(&self.client).take()
    }

    /// A handle that may outlive all others, in a thread-local of whichever worker. None for a pool
    /// that ends when its last handle goes: if that is in a worker of its own, it never does.
    pub(super) fn bank_for_a_thread_local(&self) -> Option<Client> {
        if self.shape.end == End::Drop {
            return None;
        }
        let client = self.client()?;
        *lock(&self.anchor) = Some(client.clone());
        Some(client)
    }

    pub(super) fn meddle(&self, seed: u64) {
        let (_alone, mut rng) = (lock(&self.meddling), Rng::new(seed));
        if let Some(client) = self.client() {
            for _ in 0..3 {
                actions::meddle_once(&client, &self.factory, &mut rng, &mut Counts::default());
            }
        }
    }

    /// Ends it as its shape says, or lets the last handle go. Returns a handle for the judge.
    pub(super) fn end(&self) -> Option<Client> {
        let mut rng = Rng::new(self.factory.asked.load(Ordering::Relaxed));
        let (client, anchor) = (self.take_bank(), lock(&self.anchor).take());
        match (client, anchor) {
            (Some(_last), _) if self.shape.end == End::Drop => None,
            (Some(client), _) => {
                client::end(&client, &mut rng, self.shape.end);
                Some(client)
            }
            (None, Some(client)) => {
                client.pool.shutdown();
                Some(client)
            }
            (None, None) => None,
        }
    }

    /// Waits until nothing is left of it (PROGRAM-1).
    pub(super) fn wait(&self, client: Option<&Client>) {
        if let Some(client) = client {
            while client.pool.await_termination().is_err() {}
        } else if self.shape.hooks > 0 {
            wait_for(|| self.ledger.round.terminated.load(Ordering::SeqCst) > 0);
        }
        wait_for(|| self.factory.live_threads() == 0);
    }
}

/// A scheduled pool.
pub(super) struct TimerEngine {
    timers: Timers,
    ledger: Arc<Ledger>,
    /// The threads and the shape of a pool of its own.
    own: Option<(Arc<FaultyFactory>, Shape)>,
    unjoined: Mutex<Vec<(usize, Scheduled<Value>)>>,
}

/// The leftovers of a scheduled pool that has terminated.
pub(super) struct EndedTimers {
    pub(super) ledger: Arc<Ledger>,
    /// Whether its own pool had hooks.
    pub(super) has_hooks: bool,
    /// Whether its handles may complete a moment later: no thread has awaited its end, or it was stopped and its
    /// executor was not.
    pub(super) may_lag: bool,
    pub(super) kept: Vec<(usize, Scheduled<Value>)>,
}

enum Timers {
    Owning(ScheduledPool<ThreadPool>),
    On(ScheduledPool<Client>),
}

impl TimerEngine {
    pub(super) fn owning(shape: u64) -> Self {
        let mut rng = Rng::new(shape);
        let shape = Shape::draw(&mut rng);
        let ledger = ledger();
        let factory = Arc::new(FaultyFactory::new(&ledger, shape.faults, rng.fork()));
        let pool = build(&shape, &ledger, &factory, &mut rng);
        let builder = ScheduledPool::owning(pool).run_delayed_after_shutdown(rng.once_in(2));
        let builder = builder.on_event(|_| ());
        TimerEngine {
            timers: Timers::Owning(builder.worker_timers(rng.once_in(2)).build()),
            ledger,
            own: Some((factory, shape)),
            unjoined: Mutex::default(),
        }
    }

    pub(super) fn on(client: Client) -> Self {
        TimerEngine {
            timers: Timers::On(ScheduledPool::on(client).on_event(|_| ()).build()),
            ledger: ledger(),
            own: None,
            unjoined: Mutex::default(),
        }
    }

    fn schedule<F>(&self, delay: Duration, f: F) -> Result<Scheduled<Value>, Rejected<F>>
    where
        F: FnOnce() -> Value + Send + 'static,
    {
        match &self.timers {
            Timers::Owning(timers) => timers.schedule(delay, f),
            Timers::On(timers) => timers.schedule(delay, f),
        }
    }

    /// Schedules so many tasks, and cancels, joins, keeps or drops their handles.
    pub(super) fn schedule_some(&self, seed: u64, tasks: u64) {
        let rng = &mut Rng::new(seed);
        for _ in 0..tasks {
            let Some((id, task)) = small_task(&self.ledger, rng) else {
                return;
            };
            let entry = self.ledger.entry(id);
            entry.note(Fact::HasHandle);
            let delay = Duration::from_micros(rng.any() % 3 * (rng.any() % 700));
            let scheduled = self.schedule(delay, task);
            let Some(mut handle) = settle_rejection(&self.ledger, rng, id, scheduled) else {
                continue;
            };
            match rng.below(6) {
                0 => {
                    entry.note(Fact::Asked);
                    if rng.once_in(2) {
                        handle.cancel()
                    } else {
                        handle.interrupt()
                    };
                    lock(&self.unjoined).push((id, handle));
                }
                1 => match handle.join_timeout(rng.timeout() * 10) {
                    Err(millpond::task::TaskError::TimedOut) => {
                        lock(&self.unjoined).push((id, handle));
                    }
                    joined => settle(&self.ledger, id, joined),
                },
                2 => {
                    entry.note(Fact::Asked);
                    entry.note(Fact::LetGo);
                    drop(handle.abort_on_drop());
                }
                3 => {
                    entry.note(Fact::LetGo);
                    drop(handle);
                }
                _ => lock(&self.unjoined).push((id, handle)),
            }
        }
    }

    /// A series of a few runs, which must not overlap.
    pub(super) fn repeat(&self, seed: u64) {
        let (mut rng, ledger) = (Rng::new(seed), Arc::clone(&self.ledger));
        let Some(stub) = ledger.open() else {
            return;
        };
        let id = stub.id;
        // Of a series it is judged that its closure is dropped once.
        let entry = self.ledger.entry(id);
        entry.note(Fact::Asked);
        entry.note(Fact::LetGo);
        let (mut runs, most) = (0, rng.below(5));
        let mut own = rng.fork();
        let (going, panics) = (AtomicBool::new(false), rng.once_in(8));
        let run = move || {
            if going.swap(true, Ordering::SeqCst) {
                ledger.wrong(format!("two runs of the series {} at once", stub.id));
            }
            own.jitter();
            going.store(false, Ordering::SeqCst);
            runs += 1;
            if panics {
                std::panic::resume_unwind(Box::new("a series"));
            }
            if runs > most {
                std::ops::ControlFlow::Break(())
            } else {
                std::ops::ControlFlow::Continue(())
            }
        };
        let first = Duration::from_micros(rng.any() % 500);
        let period = Duration::from_micros(200 + rng.any() % 500);
        let series = match &self.timers {
            Timers::Owning(timers) => timers.schedule_at_fixed_rate(first, period, run).ok(),
            Timers::On(timers) => timers.schedule_with_fixed_delay(first, period, run).ok(),
        };
        entry.note(match &series {
            Some(_) => Fact::Accepted,
            None => Fact::Rejected,
        });
        if let (Some(series), true) = (series, rng.once_in(3)) {
            series.cancel();
        }
    }

    /// Ends it and waits until nothing is left of it (PROGRAM-1), including its handle of the inner pool.
    pub(super) fn end(self, seed: u64) -> EndedTimers {
        let handed_back = match (&self.timers, seed % 3) {
            (Timers::Owning(timers), 0) => timers.shutdown_now(),
            (Timers::On(timers), 0) => timers.shutdown_now(),
            (Timers::Owning(timers), _) => {
                timers.shutdown();
                Vec::new()
            }
            (Timers::On(timers), _) => {
                timers.shutdown();
                Vec::new()
            }
        };
        drop(handed_back);
        match &self.timers {
            Timers::Owning(timers) => while timers.await_termination().is_err() {},
            Timers::On(timers) => while timers.await_termination().is_err() {},
        }
        if let Some((factory, _)) = &self.own {
            wait_for(|| factory.live_threads() == 0);
        }
        EndedTimers {
            may_lag: matches!(self.timers, Timers::On(_)) && seed.is_multiple_of(3),
            ledger: self.ledger,
            has_hooks: self.own.is_some_and(|(_, shape)| shape.hooks > 0),
            kept: std::mem::take(&mut lock(&self.unjoined)),
        }
    }
}

/// A thread for each task.
pub(super) struct PerTaskEngine {
    threads: ThreadPerTask,
    factory: Arc<FaultyFactory>,
    pub(super) ledger: Arc<Ledger>,
}

impl PerTaskEngine {
    pub(super) fn new(threads: u64) -> Self {
        let ledger = ledger();
        let factory = Arc::new(FaultyFactory::new(&ledger, 0, Rng::new(threads)));
        let most = usize::try_from(threads).unwrap_or(1).max(1);
        let at_bound = match threads % 2 {
            0 => SaturationPolicy::Reject,
            _ => SaturationPolicy::BlockFor(Duration::from_millis(5)),
        };
        let builder = ThreadPerTask::builder("program", most).at_bound(at_bound);
        let threads = builder.threads(Arc::clone(&factory)).build();
        PerTaskEngine {
            threads: threads.expect("what is drawn is valid"),
            factory,
            ledger,
        }
    }

    pub(super) fn spawn_some(&self, seed: u64, tasks: u64) {
        let rng = &mut Rng::new(seed);
        for _ in 0..tasks {
            let Some((id, task)) = small_task(&self.ledger, rng) else {
                return;
            };
            self.ledger.entry(id).note(Fact::HasHandle);
            let submitted = self.threads.submit(task);
            if let Some(handle) = settle_rejection(&self.ledger, rng, id, submitted) {
                if rng.once_in(3) {
                    settle(&self.ledger, id, handle.join())
                } else {
                    lock(&self.ledger.unjoined).push((id, handle))
                }
            }
        }
    }

    pub(super) fn end(&self) {
        self.threads.shutdown();
        while self.threads.await_termination().is_err() {}
        wait_for(|| self.factory.live_threads() == 0);
    }
}

/// A serial executor, and what is known of its keys (PROGRAM-4).
pub(super) struct SerialEngine {
    serial: SerialExecutor<u64, Client>,
    keys: Arc<[Key; 3]>,
    pub(super) ledger: Arc<Ledger>,
}

#[derive(Default)]
struct Key {
    busy: AtomicBool,
    /// The last task that ran, by submitting thread.
    last: [AtomicU64; 8],
    /// The last task that was submitted.
    next: AtomicU64,
}

impl SerialEngine {
    pub(super) fn new(client: Client) -> Self {
        SerialEngine {
            serial: SerialExecutor::new(client),
            keys: Arc::default(),
            ledger: ledger(),
        }
    }

    /// Submits so many tasks under a key; `thread` is the submitting thread.
    pub(super) fn submit_some(&self, thread: usize, key: u64, seed: u64, tasks: u64) {
        let rng = &mut Rng::new(seed);
        let executor = self.serial.key(key);
        for _ in 0..tasks {
            let Some((id, task)) = small_task(&self.ledger, rng) else {
                return;
            };
            let (keys, ledger) = (Arc::clone(&self.keys), Arc::clone(&self.ledger));
            let (at, by) = ((key % 3) as usize, thread % 8);
            let number = 1 + keys[at].next.fetch_add(1, Ordering::Relaxed);
            let run = move || {
                let key = &keys[at];
                // A rejected task is run by its submitter, outside the order of the key.
                let is_accepted = !ledger.entry(id).is(Fact::Rejected);
                if is_accepted && key.busy.swap(true, Ordering::SeqCst) {
                    ledger.wrong(format!(
                        "two tasks of key {at} at once, {id} is one (PROGRAM-4)"
                    ));
                }
                if is_accepted && key.last[by].swap(number, Ordering::SeqCst) > number {
                    ledger.wrong(format!("task {id} of key {at} was overtaken (PROGRAM-4)"));
                }
                let free = Free(is_accepted.then_some(&key.busy));
                let value = task();
                drop(free);
                value
            };
            self.ledger.entry(id).note(Fact::HasHandle);
            let submitted = executor.submit(run);
            let Some(handle) = settle_rejection(&self.ledger, rng, id, submitted) else {
                continue;
            };
            if rng.once_in(6) {
                self.ledger.entry(id).note(Fact::Asked);
                handle.cancel();
            }
            lock(&self.ledger.unjoined).push((id, handle));
        }
    }
}

/// Frees a key, even if its task panics.
struct Free<'a>(Option<&'a AtomicBool>);

impl Drop for Free<'_> {
    fn drop(&mut self) {
        if let Some(busy) = self.0 {
            busy.store(false, Ordering::SeqCst);
        }
    }
}

/// A completion service, and whose results are still to come (PROGRAM-5).
pub(super) struct ServiceEngine {
    service: CompletionService<Value, Client>,
    out: Mutex<HashMap<TaskId, usize>>,
    pub(super) ledger: Arc<Ledger>,
}

impl ServiceEngine {
    pub(super) fn new(client: Client) -> Self {
        ServiceEngine {
            service: CompletionService::new(client),
            out: Mutex::default(),
            ledger: ledger(),
        }
    }

    pub(super) fn submit(&self, rng: &mut Rng) {
        let Some((id, task)) = small_task(&self.ledger, rng) else {
            return;
        };
        self.ledger.entry(id).note(Fact::HasHandle);
        // The thread that takes the result must find the number here.
        let mut out = lock(&self.out);
        let submitted = self.service.submit(task);
        if let Some(task_id) = settle_rejection(&self.ledger, rng, id, submitted) {
            out.insert(task_id, id);
            if rng.once_in(8) {
                self.ledger.entry(id).note(Fact::Asked);
                self.service.interrupt(task_id);
            }
        }
    }

    /// Takes a result, if one comes in time.
    pub(super) fn take(&self, timeout: Duration) -> bool {
        let Ok(Some(arrived)) = self.service.poll_timeout(timeout) else {
            return false;
        };
        match lock(&self.out).remove(&arrived.id) {
            Some(id) => settle(&self.ledger, id, arrived.result),
            None => self.ledger.wrong(format!(
                "{:?} arrived, and was not out (PROGRAM-5)",
                arrived.id
            )),
        }
        true
    }

    /// Takes all results that are still to come.
    pub(super) fn end(&self) {
        while self.service.pending() + self.service.ready_len() > 0 {
            self.take(Duration::from_millis(50));
        }
        if !lock(&self.out).is_empty() {
            let out = lock(&self.out).len();
            self.ledger
                .wrong(format!("{out} results never arrived (PROGRAM-5)"));
        }
    }
}
