//! The pool as those who play see it: everything that they bring is counted on its way in.

use super::ledger::{Fact, Ledger, Outcome, Place, Stub, Value, lock};
use super::shape::End;
use crate::kit::Rng;
use millpond::executor::{Executor, ExecutorExt, Lifecycle, Rejected};
use millpond::interrupt;
use millpond::pool::ThreadPool;
use millpond::queue::{BlockingQueue, LinkedQueue};
use millpond::task::{Priority, Task, TaskError, TaskHandle, TaskSpec};
use millpond::time::{Clock, Deadline};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How deep tasks bring tasks.
const DEEPEST: usize = 2;

/// A handle of the pool, with its ledger.
#[derive(Clone, Debug)]
pub(super) struct Bank {
    pub(super) pool: ThreadPool,
    pub(super) ledger: Arc<Ledger>,
    pub(super) deadlines: bool,
}

impl Executor for Bank {
    fn execute(&self, task: Task) -> Result<(), Rejected<Task>> {
        let taken = self.pool.execute(task);
        let count = match &taken {
            Ok(()) => &self.ledger.round.accepted,
            Err(_) => &self.ledger.round.refused,
        };
        count.fetch_add(1, Ordering::Relaxed);
        taken
    }

    fn clock(&self) -> Clock {
        self.pool.clock()
    }
}

/// What a task does.
enum Work {
    Nothing,
    Jitter(Rng),
    Sleep(Duration),
    /// Waits in a queue that stays empty.
    Wait(Duration),
    Panic,
    /// Brings more, to the same pool.
    Bring(Bank, Rng, usize),
    /// Brings more, and waits for them.
    Scope(Bank, Rng),
    /// Ends the pool that runs it.
    End(Bank, bool),
    /// Holds the pool, perhaps as the last.
    Hold(#[expect(dead_code, reason = "it is held, and dropped")] Bank),
}

impl Work {
    fn draw(bank: &Bank, rng: &mut Rng, depth: usize) -> Self {
        match rng.below(16) {
            0..=4 => Work::Nothing,
            5..=7 => Work::Jitter(rng.fork()),
            8 => Work::Sleep(Duration::from_micros(rng.any() % 2000)),
            9 => Work::Wait(Duration::from_micros(rng.any() % 2000)),
            10 => Work::Panic,
            11 | 12 if depth < DEEPEST => Work::Bring(bank.clone(), rng.fork(), depth + 1),
            13 if depth < DEEPEST => Work::Scope(bank.clone(), rng.fork()),
            14 => Work::Hold(bank.clone()),
            _ => Work::Nothing,
        }
    }

    fn work(self) {
        match self {
            Work::Nothing | Work::Hold(_) => {}
            Work::Jitter(mut rng) => rng.jitter(),
            // An interrupt is as good an end as any.
            Work::Sleep(time) => drop(interrupt::sleep(time)),
            Work::Wait(time) => drop(LinkedQueue::<()>::unbounded().poll_timeout(time)),
            Work::Panic => resume_unwind(Box::new("chaos")),
            Work::Bring(bank, mut rng, depth) => bring_some(&bank, &mut rng, depth),
            Work::Scope(bank, mut rng) => scope(&bank, &mut rng, true),
            Work::End(bank, true) => stop(&bank, &mut Rng::new(bank.ledger.len() as u64)),
            Work::End(bank, false) => bank.pool.shutdown(),
        }
    }
}

/// The body of every task.
fn body(stub: Stub, work: Work) -> impl FnOnce() -> Value + Send + 'static {
    move || {
        let value = stub.runs();
        // Whoever runs it, what it does itself is done in no special place.
        match catch_unwind(AssertUnwindSafe(|| Place::Anywhere.enter(|| work.work()))) {
            Ok(()) => value,
            Err(payload) => resume_unwind(payload),
        }
    }
}

/// Brings a task. The handle, if it was taken and has one.
pub(super) fn bring(
    bank: &Bank,
    rng: &mut Rng,
    depth: usize,
) -> Option<(usize, TaskHandle<Value>)> {
    let work = Work::draw(bank, rng, depth);
    bring_work(bank, rng, depth, work)
}

fn bring_work(
    bank: &Bank,
    rng: &mut Rng,
    depth: usize,
    work: Work,
) -> Option<(usize, TaskHandle<Value>)> {
    let stub = bank.ledger.open()?;
    let (id, entry) = (stub.id, bank.ledger.entry(stub.id));
    if matches!(work, Work::Panic) {
        entry.note(Fact::Panics);
    }
    // Tasks inherit the deadline of the task that brings them.
    if bank.deadlines && depth > 0 {
        entry.note(Fact::MayExpire);
    }
    let run = body(stub, work);
    if rng.once_in(3) {
        let brought = bank.run(move || drop(run()));
        settle_refusal(bank, rng, id, brought);
        return None;
    }
    entry.note(Fact::HasHandle);
    let mut spec = TaskSpec::new().clock(bank.clock());
    if rng.once_in(3) {
        spec = spec.name(["a", "task", "chaotic"][rng.below(3)]);
    }
    if rng.once_in(3) {
        spec = spec.priority(Priority::ALL[rng.below(3)]);
    }
    if bank.deadlines && rng.once_in(4) {
        entry.note(Fact::MayExpire);
        spec = spec.deadline(Deadline::after(bank.clock().now(), rng.patience() * 20));
    }
    let handle = settle_refusal(bank, rng, id, bank.submit_spec(spec, run))?;
    Some((id, handle))
}

/// J2: what is refused is whole.
fn settle_refusal<T, R, F: FnOnce() -> R>(
    bank: &Bank,
    rng: &mut Rng,
    id: usize,
    brought: Result<T, Rejected<F>>,
) -> Option<T> {
    let entry = bank.ledger.entry(id);
    let refused = match brought {
        Ok(taken) => {
            entry.note(Fact::Accepted);
            return Some(taken);
        }
        Err(refused) => refused,
    };
    entry.note(Fact::Refused);
    let before = (entry.runs(), entry.drops());
    let runs = rng.once_in(2);
    Place::Submitter.enter(|| match runs {
        // What it comes to is all the same.
        true => drop(catch_unwind(AssertUnwindSafe(refused.task))),
        false => drop(refused.task),
    });
    let after = (entry.runs(), entry.drops());
    if before != (0, 0) || after != (u32::from(runs), 1) {
        bank.ledger.wrong(format!(
            "task {id} was refused and did not come back whole (J2): ran and dropped {before:?} \
             times when it came back, {after:?} afterwards"
        ));
    }
    None
}

fn bring_some(bank: &Bank, rng: &mut Rng, depth: usize) {
    for _ in 0..1 + rng.below(3) {
        let Some((id, handle)) = bring(bank, rng, depth) else {
            continue;
        };
        match rng.below(3) {
            // Never a plain join inside a worker: all of them might wait so.
            0 => settle(&bank.ledger, id, handle.join_here()),
            1 => lock(&bank.ledger.pouch).push((id, handle)),
            _ => let_go(bank, id, handle),
        }
    }
}

/// A handle that nobody wants.
pub(super) fn let_go(bank: &Bank, id: usize, handle: TaskHandle<Value>) {
    bank.ledger.entry(id).note(Fact::LetGo);
    drop(handle);
}

/// J4: what a join came to.
pub(super) fn settle(ledger: &Ledger, id: usize, joined: Result<Value, TaskError>) {
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
pub(super) fn scope(bank: &Bank, rng: &mut Rng, at_risk: bool) {
    let jobs = 1 + rng.below(4);
    let stubs: Vec<Stub> = (0..jobs).filter_map(|_| bank.ledger.open()).collect();
    let ids: Vec<usize> = stubs.iter().map(|stub| stub.id).collect();
    bank.scope(|s| {
        for (stub, id) in stubs.into_iter().zip(&ids) {
            let entry = bank.ledger.entry(*id);
            entry.note(if at_risk { Fact::JobAtRisk } else { Fact::Job });
            let mut jitter = rng.fork();
            // It borrows the number.
            let job = move || {
                jitter.jitter();
                (stub.runs(), id)
            };
            let Some(handle) = settle_refusal(bank, rng, *id, s.submit(job)) else {
                continue;
            };
            if rng.once_in(2) {
                match handle.join() {
                    Ok((value, of)) if value.id != *id || of != id => {
                        bank.ledger
                            .wrong(format!("job {id} has another one's value"));
                    }
                    _ => {}
                }
            }
        }
    });
    for id in ids {
        let entry = bank.ledger.entry(id);
        if entry.is(Fact::Accepted) && entry.drops() != 1 {
            bank.ledger.wrong(format!(
                "the scope is over, and the closure of job {id} is not (J8)"
            ));
        }
    }
}

/// Stops the pool, and runs or drops what it hands back.
pub(super) fn stop(bank: &Bank, rng: &mut Rng) {
    for task in bank.pool.shutdown_now() {
        bank.ledger
            .round
            .handed_back
            .fetch_add(1, Ordering::Relaxed);
        let runs = rng.once_in(2);
        Place::HandedBack.enter(|| match runs {
            true => drop(task.run()),
            false => drop(task),
        });
    }
}

/// Ends the pool.
pub(super) fn end(bank: &Bank, rng: &mut Rng, end: End) {
    match end {
        End::Shutdown => bank.pool.shutdown(),
        End::ShutdownNow => stop(bank, rng),
        End::ShutdownThenNow => {
            bank.pool.shutdown();
            rng.jitter();
            stop(bank, rng);
        }
        End::Close => bank.pool.close().unwrap(),
        End::FromWithin => {
            let work = Work::End(bank.clone(), rng.once_in(2));
            if let Some((id, handle)) = bring_work(bank, rng, 0, work) {
                lock(&bank.ledger.pouch).push((id, handle));
            }
            // It may have been refused, discarded or cancelled: then it is up to us.
            rng.jitter();
            bank.pool.shutdown();
        }
        End::Drop => {}
    }
}
