//! The fate of each task of a script on our side, and the gates that hold their bodies.

use super::super::script::{Number, Submission};
use millpond::interrupt;
use millpond::queue::{BlockingQueue, FifoQueue};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::panic;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

thread_local! {
    /// Whether this thread is a worker of the pool; all others are callers.
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
}

/// This thread is a worker from now on.
pub(super) fn be_worker() {
    IS_WORKER.set(true);
}

/// The fate of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Given to the pool; its fate is not known yet.
    Offered,
    Worker,
    Caller,
    Refused,
    Discarded,
    Dropped,
    Cancelled,
    Removed,
    Returned,
}

/// The orders of a script to a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Return,
    Fail,
}

/// A gate is a queue of orders: waiting for one is a blocking call of millpond's own, which obeys
/// interrupts as such calls do.
type Gate = Arc<FifoQueue<Order>>;

#[derive(Debug)]
struct Entry {
    fate: Fate,
    gate: Gate,
    is_running: bool,
}

#[derive(Debug, Default)]
struct Books {
    tasks: BTreeMap<Number, Entry>,
    events: BTreeSet<String>,
    is_open: bool,
}

/// The books of one script.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    books: Mutex<Books>,
}

impl Ledger {
    fn lock(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The body of a task that is about to be submitted.
    pub(super) fn body(self: &Arc<Self>, submission: Submission) -> impl FnOnce() + Send + 'static {
        let entry = Entry {
            fate: Fate::Offered,
            gate: Arc::new(FifoQueue::unbounded()),
            is_running: false,
        };
        self.lock().tasks.insert(submission.number, entry);
        let unrun = Unrun {
            ledger: Arc::clone(self),
            number: submission.number,
        };
        move || unrun.run(submission.is_stubborn)
    }

    fn pass(&self, number: Number, is_stubborn: bool) -> Option<Order> {
        let gate = {
            let mut books = self.lock();
            let is_open = books.is_open;
            let entry = books.entry(number);
            entry.is_running = true;
            let (fate, place) = if IS_WORKER.get() {
                (Fate::Worker, "worker")
            } else {
                (Fate::Caller, "caller")
            };
            entry.fate = fate;
            let gate = Arc::clone(&entry.gate);
            books.events.insert(format!("started {number}@{place}"));
            (!is_open).then_some(gate)
        };
        let order = match gate {
            None => Ok(Order::Return),
            Some(gate) if is_stubborn => interrupt::uninterruptible(|| gate.take()),
            Some(gate) => gate.take(),
        };
        // An interrupt that was obeyed is over; one that was ignored is still there.
        let was_interrupted = order.is_err() || interrupt::check().is_err();
        let verb = match order {
            Ok(Order::Fail) => "failed",
            _ => "ended",
        };
        let mark = if was_interrupted { "!" } else { "" };
        let mut books = self.lock();
        books.entry(number).is_running = false;
        books.events.insert(format!("{verb} {number}{mark}"));
        order.ok()
    }

    /// Tells those of the bodies that run what to do, and says which do. In one go, as far as the
    /// bodies can tell: one that starts because another has ended comes too late.
    pub(super) fn order(&self, numbers: &[Number], order: Order) -> Vec<bool> {
        let mut books = self.lock();
        let tell = |number: &Number| {
            let entry = books.entry(*number);
            if entry.is_running {
                let _ = entry.gate.offer(order);
            }
            entry.is_running
        };
        numbers.iter().map(tell).collect()
    }

    /// Lets all bodies return, those to come included.
    pub(super) fn open_all(&self) {
        let mut books = self.lock();
        books.is_open = true;
        for entry in books.tasks.values() {
            let _ = entry.gate.offer(Order::Return);
        }
    }

    /// Whether it has a body for that task.
    pub(super) fn knows(&self, number: Number) -> bool {
        self.lock().tasks.contains_key(&number)
    }

    pub(super) fn fate(&self, number: Number) -> Fate {
        self.lock().entry(number).fate
    }

    /// If the task has not begun, this is what becomes of it. Returns what it was before.
    pub(super) fn settle(&self, number: Number, fate: Fate) -> Fate {
        let mut books = self.lock();
        let entry = books.entry(number);
        let before = entry.fate;
        if before == Fate::Offered {
            entry.fate = fate;
        }
        before
    }

    /// The call that submitted the task has returned, or its body runs in the caller: this is its result. A task
    /// that is gone already was dropped by the policy.
    pub(super) fn called(&self, number: Number) -> &'static str {
        let mut books = self.lock();
        let entry = books.entry(number);
        if entry.fate == Fate::Dropped {
            entry.fate = Fate::Discarded;
            books.events.remove(&format!("dropped {number}"));
        }
        match books.entry(number).fate {
            Fate::Refused => "refused",
            Fate::Discarded => "discarded",
            Fate::Caller => "caller",
            _ => "taken",
        }
    }

    /// The events since the last call, sorted: threads have no order.
    pub(super) fn events(&self) -> String {
        let events = std::mem::take(&mut self.lock().events);
        events.into_iter().collect::<Vec<_>>().join(", ")
    }

    /// The fate of each task.
    pub(super) fn fates(&self) -> String {
        let books = self.lock();
        let each = books.tasks.iter().map(|(number, entry)| {
            let fate = format!("{:?}", entry.fate).to_lowercase();
            format!("{number}={fate}")
        });
        each.collect::<Vec<_>>().join(" ")
    }
}

impl Books {
    fn entry(&mut self, number: Number) -> &mut Entry {
        let entry = self.tasks.get_mut(&number);
        entry.expect("a script that was checked names tasks that were submitted")
    }
}

/// A body that has not begun. If it is dropped, the ledger records that.
struct Unrun {
    ledger: Arc<Ledger>,
    number: Number,
}

impl Unrun {
    fn run(self, is_stubborn: bool) {
        let (ledger, number) = (Arc::clone(&self.ledger), self.number);
        let order = ledger.pass(number, is_stubborn);
        drop(self);
        if order == Some(Order::Fail) {
            // A panic like any other, but without a message on the terminal.
            panic::resume_unwind(Box::new("as the script says"));
        }
    }
}

impl Drop for Unrun {
    fn drop(&mut self) {
        let mut books = self.ledger.lock();
        let entry = books.entry(self.number);
        if entry.fate == Fate::Offered {
            entry.fate = Fate::Dropped;
            books.events.insert(format!("dropped {}", self.number));
        }
    }
}
