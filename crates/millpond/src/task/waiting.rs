//! Who waits for whom: the table in which cycles are found.
//!
//! A body that is about to park in a join without a time-out enters itself here: *these* tasks wait for
//! *that* one. Before it does, it follows the entries from the task that it wants to wait for. If they
//! lead back to itself nobody in that ring would ever go on, and instead of parking it gets an error
//! that names them all. Nothing of this is touched by joins of finished tasks, by joins with a time-out,
//! nor by threads that run no task: nobody can wait for those.
//!
//! ```text
//!   thread 1 runs A, which joins B         A -> B
//!   thread 2 runs B, which joins C         B -> C
//!   thread 3 runs C, and in place inside   C -> A     C waits for D, which it runs itself, and
//!            it D, which joins A           D -> A     that for A. To whom does A lead? To B, C: a ring
//! ```
//!
//! # The protocol
//!
//! - **G1** A task is known by the address of its interrupt token, which is in its cell; or on the stack of
//!   who runs it, if no task was made of it (`executor::turned_back`). A waiter has the awaited task's
//!   handle, and the thread that runs a body has its cell, or its token; each for as long as the entry is
//!   there. So as long as an address is in the table it means one task.
//! - **G2** All bodies on the stack of the thread wait for what the innermost waits for: none of them can
//!   end before. So a thread makes an entry for each of them. A task runs once, on one thread, and a
//!   thread parks in one join at a time: there is no more than one entry for a task.
//! - **G3** Looking for a ring and making the entries is one step, under the table's lock.
//! - **G4** An entry is taken out by its own thread before its join returns, whatever ended it. A wait
//!   lasts until then: an interrupt that the join has not returned yet has not ended it.
//! - **G5** An entry counts only as long as what it waits for is not finished. (A cancelled task is
//!   finished, although its body may go on, and wait.)
//!
//! *Every ring is found.* Its entries were made one after the other (G3). Who made the last one looked in
//! the same step, saw all others, and did not make it.
//!
//! *Nothing else is found.* Let the walk find a ring. The table was locked all the while, so all its
//! entries were there when the walk read the first of them; what they wait for was not finished when it
//! was read later, so it was not then (what is finished stays so). By G4 and G5 all of them were waiting
//! at that moment, each for the next: it was a ring. (One of them may have been interrupted and on its way
//! out. Nobody can tell that from an interrupt that came a moment later.)
//!
//! # Scopes
//!
//! The end of a scope waits for the scope's tasks, and is entered likewise. But it cannot return an error:
//! what its tasks borrow is in use. If it is the last of a ring it tells another one, the first on its
//! way that waits in a join. There is one: a scope waits for its own tasks only, which are younger than
//! itself, and a ring in which each waits for a younger one does not close.
//!
//! # What is not seen
//!
//! Waits for anything but one task: queues, channels, locks, `.await`, `invoke_any`, a completion
//! service, the end of a pool; joins with a time-out, which end by themselves; and a task that nobody
//! waits for in turn, but that no worker is left to run (a worker runs what it joins in its *own* pool's
//! queue, see [`super::in_place`]; two pools whose workers all wait for tasks in each other's queues do
//! starve each other).

use super::cycle::{Cycle, FoundCycle, TaskLabel, Waiting};
use super::meta::Meta;
use crate::interrupt;
use crate::time::{Clock, Deadline};
use millpond_raw::sync::{Mutex, global};
use millpond_raw::task::{self as raw, current};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::task::Waker;
use std::thread::Thread;

/// How many of the cycles that were found are kept.
const KEPT: usize = 8;

global! {
    static TABLE: Mutex<Table> = Mutex::new(Table::new());
}

/// The table is in order at forks. In the child the entries of the parent's threads stay in it, and
/// lead nowhere: nobody joins a task of another process.
pub(super) fn keep_at_forks() {
    #[cfg(not(any(millpond_loom, millpond_shuttle)))]
    millpond_raw::fork::keep(&TABLE);
}

struct Table {
    /// By the address of the task that waits.
    entries: BTreeMap<usize, Arc<Entry>>,
    found: VecDeque<FoundCycle>,
}

/// One thread's wait.
struct Entry {
    /// The bodies on its stack, innermost first (G2).
    bodies: Vec<Body>,
    awaited: Awaited,
    thread: Thread,
    /// How to tell it that it is in a ring; `None` if it cannot be told.
    news: Option<Mutex<News>>,
}

/// A body on the stack of a thread that waits.
struct Body {
    address: usize,
    /// If a waiter runs it in place. Of others those know it who wait for them.
    label: Option<TaskLabel>,
}

#[derive(Default)]
struct News {
    waker: Option<Waker>,
    cycle: Option<Cycle>,
}

/// What is waited for.
pub(crate) struct Awaited {
    pub(super) address: usize,
    pub(super) label: TaskLabel,
    /// Whether there is nothing left to wait for (G5). No code of a user's: it is asked under the lock.
    pub(super) is_over: Box<dyn Fn() -> bool + Send + Sync>,
}

impl Awaited {
    /// A task that is waited for until it is finished.
    pub(super) fn task(witness: raw::Witness<Meta>) -> Self {
        Awaited {
            address: address(witness.token()),
            label: witness.meta().label(),
            is_over: Box::new(move || witness.state().is_finished()),
        }
    }
}

pub(super) fn address(token: &raw::Token) -> usize {
    std::ptr::from_ref(token).addr()
}

impl Table {
    const fn new() -> Self {
        Table {
            entries: BTreeMap::new(),
            found: VecDeque::new(),
        }
    }

    /// Follows the entries from what `own` wants to wait for. Returns the ring, and those who wait in it,
    /// if it leads back.
    fn ring(&self, own: &Entry) -> Option<(Cycle, Vec<Arc<Entry>>)> {
        let (mut tasks, mut waiters) = (Vec::new(), Vec::new());
        let mut awaited = &own.awaited;
        // Each step but the last is another entry.
        for _ in 0..=self.entries.len() {
            if (awaited.is_over)() {
                return None;
            }
            tasks.push(awaited.label.clone());
            if let Some(place) = own.place_of(awaited.address) {
                // It was the last in the row, and is the first in the ring; after it come those that
                // run in place inside it.
                tasks.rotate_right(1);
                let inside = own.inside(place);
                tasks.splice(1..1, inside);
                return Some((Cycle { tasks }, waiters));
            }
            let entry = self.entries.get(&awaited.address)?;
            let place = entry.place_of(awaited.address)?;
            tasks.extend(entry.inside(place));
            waiters.push(Arc::clone(entry));
            awaited = &entry.awaited;
        }
        None
    }

    fn keep(&mut self, cycle: &Cycle) {
        if self.found.len() == KEPT {
            self.found.pop_front();
        }
        self.found.push_back(FoundCycle {
            cycle: cycle.clone(),
            at: Clock::system().now(),
        });
    }

    fn insert(&mut self, entry: &Arc<Entry>) {
        for body in &entry.bodies {
            self.entries.insert(body.address, Arc::clone(entry));
        }
    }

    fn remove(&mut self, entry: &Entry) {
        for body in &entry.bodies {
            self.entries.remove(&body.address);
        }
    }
}

impl Entry {
    fn place_of(&self, address: usize) -> Option<usize> {
        self.bodies.iter().position(|body| body.address == address)
    }

    /// The labels of the bodies that run inside the one at this place, outermost first.
    fn inside(&self, place: usize) -> Vec<TaskLabel> {
        let inner = self.bodies[..place].iter().rev();
        inner.filter_map(|body| body.label.clone()).collect()
    }
}

/// Being in the table; it is left when this drops.
pub(crate) struct Listed {
    entry: Option<Arc<Entry>>,
}

impl Listed {
    fn new(entry: Option<Arc<Entry>>) -> Self {
        Listed { entry }
    }

    /// Nobody.
    pub(crate) fn none() -> Self {
        Listed::new(None)
    }

    /// Enters the tasks that run here as waiting for this one until `deadline`. Who runs no task, or has
    /// a deadline, or has been interrupted, is not entered.
    ///
    /// # Errors
    ///
    /// The cycle that this would close.
    pub(crate) fn enter(
        deadline: Deadline,
        awaited: impl FnOnce() -> Awaited,
    ) -> Result<Self, Cycle> {
        if deadline != Deadline::NEVER || interrupt::is_interrupted() {
            return Ok(Listed::new(None));
        }
        let Some(entry) = Entry::new(awaited, true) else {
            return Ok(Listed::new(None));
        };
        let mut table = TABLE.lock();
        let Some((cycle, waiters)) = table.ring(&entry) else {
            table.insert(&entry);
            drop(table);
            return Ok(Listed::new(Some(entry)));
        };
        table.keep(&cycle);
        drop(table);
        // Outside the lock: whoever else has let go of an entry meanwhile leaves us the last of it.
        drop(waiters);
        Err(cycle)
    }

    /// As [`enter`](Listed::enter), for one who has to wait whatever comes. If that closes a ring,
    /// another one in it is told.
    pub(crate) fn enter_for_good(awaited: impl FnOnce() -> Awaited) -> Self {
        let Some(entry) = Entry::new(awaited, false) else {
            return Listed::new(None);
        };
        let mut table = TABLE.lock();
        let ring = table.ring(&entry);
        if let Some((cycle, _)) = &ring {
            table.keep(cycle);
        }
        table.insert(&entry);
        drop(table);
        if let Some((cycle, waiters)) = ring {
            if let Some(news) = waiters.iter().find_map(|waiter| waiter.news.as_ref()) {
                let waker = {
                    let mut news = news.lock();
                    news.cycle = Some(cycle);
                    news.waker.take()
                };
                if let Some(waker) = waker {
                    waker.wake();
                }
            }
        }
        Listed::new(Some(entry))
    }

    /// Before each park: the cycle that this wait turned out to be in, if somebody says so; otherwise
    /// `waker` will be woken when somebody does.
    pub(crate) fn news(&self, waker: &Waker) -> Option<Cycle> {
        let mut news = self.entry.as_ref()?.news.as_ref()?.lock();
        if news.cycle.is_none() && !news.waker.as_ref().is_some_and(|own| own.will_wake(waker)) {
            news.waker = Some(waker.clone());
        }
        news.cycle.take()
    }
}

impl Entry {
    fn new(awaited: impl FnOnce() -> Awaited, can_be_told: bool) -> Option<Arc<Self>> {
        let mut bodies = Vec::new();
        current::bodies(|token| {
            let address = address(token);
            bodies.push(Body {
                address,
                label: super::in_place::label_of(address),
            });
        });
        if bodies.is_empty() {
            return None;
        }
        Some(Arc::new(Entry {
            bodies,
            awaited: awaited(),
            thread: std::thread::current(),
            news: can_be_told.then(Mutex::default),
        }))
    }
}

impl Drop for Listed {
    /// G4.
    fn drop(&mut self) {
        if let Some(entry) = self.entry.take() {
            TABLE.lock().remove(&entry);
        }
    }
}

/// Who waits for whom at this moment, in the whole process: every task that waits in a join without a
/// time-out for another one.
///
/// ```
/// use millpond::executor::ExecutorExt;
/// use millpond::pool::ThreadPool;
/// use millpond::task::{self, TaskSpec};
///
/// let pool = ThreadPool::builder("mill").build()?;
/// let (grain, flour) = TaskSpec::new().name("grain").build(|| "flour");
/// let bread = pool.submit(|| flour.join())?;
/// while task::waits().is_empty() {
///     std::thread::yield_now();
/// }
/// assert_eq!(task::waits()[0].task.name(), Some("grain"));
/// grain.run();
/// assert_eq!(bread.join()??, "flour");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn waits() -> Vec<Waiting> {
    let entries: Vec<Arc<Entry>> = {
        let table = TABLE.lock();
        let outermost = |entry: &&Arc<Entry>, address: &usize| {
            entry
                .bodies
                .last()
                .is_some_and(|body| body.address == *address)
        };
        let all = table.entries.iter();
        all.filter(|(address, entry)| outermost(entry, address))
            .map(|(_, entry)| Arc::clone(entry))
            .collect()
    };
    entries
        .iter()
        .map(|entry| Waiting {
            thread: entry.thread.name().map(str::to_owned),
            task: entry.awaited.label.clone(),
        })
        .collect()
}

/// The last wait cycles that were found in this process, oldest first; no more than eight.
pub fn wait_cycles() -> Vec<FoundCycle> {
    TABLE.lock().found.iter().cloned().collect()
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests;
