//! The pool as its test clients see it: every submitted task gets an entry in the ledger.

use super::any_pool::AnyPool;
use super::ledger::{Fact, Ledger, Outcome, Place, Stub, Value, lock};
use super::shape::End;
use crate::kit::Rng;
use millpond::executor::{Executor, ExecutorExt, Lifecycle, Rejected};
use millpond::interrupt;
use millpond::queue::{BlockingQueue, FifoQueue};
use millpond::task::{Priority, Task, TaskError, TaskHandle, TaskSpec};
use millpond::time::{Clock, Deadline};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How deep tasks submit tasks.
const DEEPEST: usize = 2;

/// A handle of the pool, with its ledger.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) pool: AnyPool,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) deadlines: bool,
}

impl Executor for Client {
    fn execute_task(&self, task: Task) -> Result<(), Rejected<Task>> {
        let taken = self.pool.execute_task(task);
        let count = match &taken {
            Ok(()) => &self.ledger.round.accepted,
            Err(_) => &self.ledger.round.rejected,
        };
        count.fetch_add(1, Ordering::Relaxed);
        taken
    }

    fn clock(&self) -> Clock {
        self.pool.clock()
    }
}

/// The body of a task.
enum Work {
    Nothing,
    Jitter(Rng),
    Sleep(Duration),
    /// Waits in a queue that stays empty.
    Wait(Duration),
    Panic,
    /// Submits more, to the same pool.
    Submit(Client, Rng, usize),
    /// Submits more, and waits for them.
    Scope(Client, Rng),
    /// Ends the pool that runs it.
    End(Client, bool),
    /// Whatever a [program](crate::programs) wants of it.
    Other(Box<dyn FnOnce() + Send>),
    /// Holds the pool, perhaps as the last.
    Hold(#[expect(dead_code, reason = "it is held, and dropped")] Client),
}

impl Work {
    fn draw(client: &Client, rng: &mut Rng, depth: usize) -> Self {
        match rng.below(16) {
            0..=4 => Work::Nothing,
            5..=7 => Work::Jitter(rng.fork()),
            8 => Work::Sleep(Duration::from_micros(rng.any() % 2000)),
            9 => Work::Wait(Duration::from_micros(rng.any() % 2000)),
            10 => Work::Panic,
            11 | 12 if depth < DEEPEST => Work::Submit(client.clone(), rng.fork(), depth + 1),
            13 if depth < DEEPEST => Work::Scope(client.clone(), rng.fork()),
            14 => Work::Hold(client.clone()),
            _ => Work::Nothing,
        }
    }

    fn work(self) {
        match self {
            Work::Nothing | Work::Hold(_) => {}
            Work::Jitter(mut rng) => rng.jitter(),
            // An interrupt is as good an end as any.
            Work::Sleep(time) => drop(interrupt::sleep(time)),
            Work::Wait(time) => drop(FifoQueue::<()>::unbounded().poll_timeout(time)),
            Work::Panic => resume_unwind(Box::new("chaos")),
            Work::Other(work) => work(),
            Work::Submit(client, mut rng, depth) => submit_some(&client, &mut rng, depth),
            Work::Scope(client, mut rng) => scope(&client, &mut rng, true),
            Work::End(client, true) => stop(&client, &mut Rng::new(client.ledger.len() as u64)),
            Work::End(client, false) => client.pool.shutdown(),
        }
    }
}

/// The body of every task.
fn body(stub: Stub, work: Work) -> impl FnOnce() -> Value + Send + 'static {
    move || {
        let value = stub.runs();
        // Whichever thread runs it, what the body itself does happens in no special place.
        match catch_unwind(AssertUnwindSafe(|| Place::Anywhere.enter(|| work.work()))) {
            Ok(()) => value,
            Err(payload) => resume_unwind(payload),
        }
    }
}

/// Submits a task. The handle, if it was accepted and has one.
pub(crate) fn submit_task(
    client: &Client,
    rng: &mut Rng,
    depth: usize,
) -> Option<(usize, TaskHandle<Value>)> {
    let work = Work::draw(client, rng, depth);
    bring_work(client, rng, depth, work)
}

/// Submits a task with this body. It may inherit a deadline from a task of another pool.
pub(crate) fn submit_other(
    client: &Client,
    rng: &mut Rng,
    work: impl FnOnce() + Send + 'static,
) -> Option<(usize, TaskHandle<Value>)> {
    bring_work(client, rng, 1, Work::Other(Box::new(work)))
}

/// A submission without a [`Client`]: a small piece of work, and its number.
pub(crate) fn small_task(
    ledger: &Arc<Ledger>,
    rng: &mut Rng,
) -> Option<(usize, impl FnOnce() -> Value + Send + use<>)> {
    let work = match rng.below(8) {
        0 => Work::Sleep(Duration::from_micros(rng.any() % 1000)),
        1 => Work::Panic,
        2..=4 => Work::Jitter(rng.fork()),
        _ => Work::Nothing,
    };
    let stub = ledger.open()?;
    let id = stub.id;
    if matches!(work, Work::Panic) {
        stub.entry().note(Fact::Panics);
    }
    Some((id, body(stub, work)))
}

fn bring_work(
    client: &Client,
    rng: &mut Rng,
    depth: usize,
    work: Work,
) -> Option<(usize, TaskHandle<Value>)> {
    let stub = client.ledger.open()?;
    let (id, entry) = (stub.id, client.ledger.entry(stub.id));
    if matches!(work, Work::Panic) {
        entry.note(Fact::Panics);
    }
    let run = body(stub, work);
    if rng.once_in(3) {
        let submitted = client.execute(move || drop(run()));
        settle_rejection(&client.ledger, rng, id, submitted);
        return None;
    }
    entry.note(Fact::HasHandle);
    // Tasks with a handle inherit the deadline of the task that submits them.
    if client.deadlines && depth > 0 {
        entry.note(Fact::MayExpire);
    }
    let mut spec = TaskSpec::new().clock(client.clock());
    if rng.once_in(3) {
        spec = spec.name(["a", "task", "chaotic"][rng.below(3)]);
    }
    if rng.once_in(3) {
        spec = spec.priority(Priority::ALL[rng.below(3)]);
    }
    if client.deadlines && rng.once_in(4) {
        entry.note(Fact::MayExpire);
        spec = spec.deadline(Deadline::after(client.clock().now(), rng.timeout() * 20));
    }
    let handle = settle_rejection(&client.ledger, rng, id, client.submit_with(spec, run))?;
    Some((id, handle))
}

/// CHAOS-2: a rejected closure is whole.
pub(crate) fn settle_rejection<T, R, F: FnOnce() -> R>(
    ledger: &Ledger,
    rng: &mut Rng,
    id: usize,
    submitted: Result<T, Rejected<F>>,
) -> Option<T> {
    let entry = ledger.entry(id);
    let rejected = match submitted {
        Ok(taken) => {
            entry.note(Fact::Accepted);
            return Some(taken);
        }
        Err(rejected) => rejected,
    };
    entry.note(Fact::Rejected);
    let before = (entry.runs(), entry.drops());
    let runs = rng.once_in(2);
    Place::Submitter.enter(|| {
        if runs {
            // The outcome does not matter.
            drop(catch_unwind(AssertUnwindSafe(rejected.task)))
        } else {
            drop(rejected.task)
        }
    });
    let after = (entry.runs(), entry.drops());
    if before != (0, 0) || after != (u32::from(runs), 1) {
        ledger.wrong(format!(
            "task {id} was rejected and did not come back whole (CHAOS-2): ran and dropped {before:?} \
             times when it came back, {after:?} afterwards"
        ));
    }
    None
}

pub(crate) fn submit_some(client: &Client, rng: &mut Rng, depth: usize) {
    for _ in 0..1 + rng.below(3) {
        let Some((id, handle)) = submit_task(client, rng, depth) else {
            continue;
        };
        match rng.below(3) {
            // Never a plain join inside a worker: all of them might wait so.
            0 => settle(&client.ledger, id, handle.run_or_join()),
            1 => lock(&client.ledger.unjoined).push((id, handle)),
            _ => let_go(client, id, handle),
        }
    }
}

/// A handle that is not needed.
pub(crate) fn let_go(client: &Client, id: usize, handle: TaskHandle<Value>) {
    client.ledger.entry(id).note(Fact::LetGo);
    drop(handle);
}

/// CHAOS-4: what a join came to.
pub(crate) fn settle(ledger: &Ledger, id: usize, joined: Result<Value, TaskError>) {
    let entry = ledger.entry(id);
    match joined {
        Ok(value) if value.id == id => entry.came_to(Outcome::Value),
        Ok(value) => ledger.wrong(format!("the handle of {id} has the value of {}", value.id)),
        Err(TaskError::Panicked(_)) => entry.came_to(Outcome::Panicked),
        Err(TaskError::Cancelled(reason)) => entry.came_to(Outcome::Cancelled(reason)),
        // The caller was interrupted, and the handle is gone.
        Err(_) => entry.note(Fact::LetGo),
    }
}

/// A scope with a few jobs. `at_risk` if its owner can be interrupted: then jobs may be cancelled.
pub(crate) fn scope(client: &Client, rng: &mut Rng, at_risk: bool) {
    let jobs = 1 + rng.below(4);
    let stubs: Vec<Stub> = (0..jobs).filter_map(|_| client.ledger.open()).collect();
    let ids: Vec<usize> = stubs.iter().map(|stub| stub.id).collect();
    client.scope(|s| {
        for (stub, id) in stubs.into_iter().zip(&ids) {
            let entry = client.ledger.entry(*id);
            entry.note(if at_risk { Fact::JobAtRisk } else { Fact::Job });
            let mut jitter = rng.fork();
            // It borrows the number.
            let job = move || {
                jitter.jitter();
                (stub.runs(), id)
            };
            let Some(handle) = settle_rejection(&client.ledger, rng, *id, s.submit(job)) else {
                continue;
            };
            if rng.once_in(2) {
                match handle.join() {
                    Ok((value, of)) if value.id != *id || of != id => {
                        client
                            .ledger
                            .wrong(format!("job {id} has another one's value"));
                    }
                    _ => {}
                }
            }
        }
    });
    for id in ids {
        let entry = client.ledger.entry(id);
        if entry.is(Fact::Accepted) && entry.drops() != 1 {
            client.ledger.wrong(format!(
                "the scope is over, and the closure of job {id} is not (CHAOS-8)"
            ));
        }
    }
}

/// Stops the pool, and runs or drops what it hands back.
pub(crate) fn stop(client: &Client, rng: &mut Rng) {
    for task in client.pool.shutdown_now() {
        client
            .ledger
            .round
            .handed_back
            .fetch_add(1, Ordering::Relaxed);
        let runs = rng.once_in(2);
        Place::HandedBack.enter(|| if runs { drop(task.run()) } else { drop(task) });
    }
}

/// Ends the pool.
pub(crate) fn end(client: &Client, rng: &mut Rng, end: End) {
    match end {
        End::Shutdown => client.pool.shutdown(),
        End::ShutdownNow => stop(client, rng),
        End::ShutdownThenNow => {
            client.pool.shutdown();
            rng.jitter();
            stop(client, rng);
        }
        End::Close => client.pool.close().unwrap(),
        End::FromWithin => {
            let work = Work::End(client.clone(), rng.once_in(2));
            if let Some((id, handle)) = bring_work(client, rng, 0, work) {
                lock(&client.ledger.unjoined).push((id, handle));
            }
            // It may have been rejected, discarded or cancelled: then it is up to us.
            rng.jitter();
            client.pool.shutdown();
        }
        End::Drop => {}
    }
}
