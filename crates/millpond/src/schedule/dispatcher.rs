//! The dispatcher: a thread that brings due tasks to an executor that may make its caller wait.
//!
//! A thread that [dispatches](super::dispatch) must not wait and must not run tasks: the timers of other pools come next on
//! that thread. If the executor cannot take a task at once, because it would block its caller until there is room or
//! run the task on the spot, the task goes into the dispatcher's queue. From then on everything that becomes due
//! goes through that queue until it is empty, so that the order stays (DISPATCH-2).
//!
//! The thread is started [on demand](crate::thread::on_demand) and stays until the pool has terminated. Tasks are
//! pushed within a turn to dispatch, which demands the thread before it ends (DISPATCH-1).
//!
//! # Without the thread
//!
//! If the thread cannot be started, the caller drains the queue as far as that takes no waiting (`fallback`): it
//! hands over what the executor accepts or rejects at once. The first task that would have
//! to wait, or to run on the caller's thread, stays in the queue with all behind it, and the start is tried again soon
//! ([`RETRY`]), so a short shortage of threads costs nothing. Tasks that would have to wait are rejected when there
//! has been no thread for [`SHORTAGE_LIMIT`] and the executor has accepted nothing meanwhile, or if the threads that
//! another try needs (ALARM-2) cannot be had.
//!
//! # Stopping
//!
//! A stop seals the queue, takes out what is in it, and wants the task that is in flight, too:
//!
//! - **DISPATCHER-1** The dispatcher calls the executor under an interrupt token of its own, which the stop sets when
//!   the queue is sealed. So an executor's wait for room ends, and the task comes back as rejected.
//! - **DISPATCHER-2** What comes back after the seal was not rejected but stopped: it goes to the stop, which waits.
//! - **DISPATCHER-3** The stop does not wait for a body: an executor may run the task on the dispatcher's thread. A
//!   body that [begins](super::liveness::Guard::begin) wakes the stop, and its task is past handing back.
//! - **DISPATCHER-4** An executor that ignores interrupts holds the stop no longer than [`STOP_TIMEOUT`]. Then the
//!   stop returns without the task, which is cancelled if it comes back later. A stop that is called on the
//!   dispatcher's own thread, by a handler of the executor, does not wait at all.

mod fallback;

use self::fallback::Shortage;
use super::engine::ScheduleEngine;
use super::liveness::InHand;
use crate::executor::Waitable;
use crate::interrupt;
use crate::task::{CancelReason, Task, Witness};
use crate::thread::on_demand::{Demand, Drain, Drainer, Next, OnDemand};
use crate::time::{Deadline, Owner, Work, is_timer_thread, run_off_timer};
use millpond_raw::catch_panic;
use millpond_raw::park::{self, Site};
use millpond_raw::sync::Mutex;
use millpond_raw::sync::atomic::{AtomicUsize, Ordering};
use millpond_raw::sync::thread::{self, ThreadId};
use millpond_raw::task::Token;
use millpond_raw::user_code::{self, Kind};
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

/// When to try again to start the thread.
const RETRY: Duration = Duration::from_millis(100);

/// How long the thread cannot be started before tasks that need it are rejected.
const SHORTAGE_LIMIT: Duration = Duration::from_secs(1);

/// Why they are rejected.
const NO_DISPATCHER: &str = "the schedule's dispatcher could not be started";

/// How long a stop waits for an executor to give back the task in flight.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// A task that is due, on its way to the executor.
pub(super) struct DueTask {
    pub(super) task: Task,
    /// Whether it is a run of a series.
    pub(super) is_run: bool,
}

impl DueTask {
    pub(super) fn once(task: Task) -> Self {
        DueTask {
            task,
            is_run: false,
        }
    }
}

/// The dispatcher's queue, and the state of its thread.
pub(super) struct DispatchQueue {
    inner: Mutex<Inner>,
    /// The number of tasks, to be read without the lock.
    len: AtomicUsize,
    /// DISPATCHER-1
    token: Token,
    /// Where a stop waits for the task in flight.
    returns: Waitable<()>,
}

struct Inner {
    tasks: VecDeque<DueTask>,
    in_flight: Option<InFlight>,
    thread: OnDemand,
    /// Set while the thread cannot be started.
    shortage: Option<Shortage>,
    /// Whether a stop waits for the task in flight.
    is_awaited: bool,
    /// What has come back for that stop.
    returned: Vec<Task>,
    /// The pool was stopped, or has terminated: nothing more comes in.
    is_sealed: bool,
    /// The pool has terminated, and the thread may end.
    is_closed: bool,
}

/// A task that the dispatcher is bringing to the executor.
struct InFlight {
    witness: Witness,
    /// The dispatcher's, or that of its fallback.
    thread: ThreadId,
}

/// What a stop takes out of the queue.
pub(super) struct Drained {
    pub(super) tasks: VecDeque<DueTask>,
    /// The address of the task in flight, if the caller is to [wait](ScheduleEngine::await_in_flight) for it.
    pub(super) awaited: Option<usize>,
}

impl DispatchQueue {
    pub(super) fn new() -> Self {
        DispatchQueue {
            inner: Mutex::new(Inner {
                tasks: VecDeque::new(),
                in_flight: None,
                thread: OnDemand::default(),
                shortage: None,
                is_awaited: false,
                returned: Vec::new(),
                is_sealed: false,
                is_closed: false,
            }),
            len: AtomicUsize::new(0),
            token: Token::new(),
            returns: Waitable::new(()),
        }
    }

    /// The number of tasks in it.
    pub(super) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// Pushes a task; returns it if the queue is sealed.
    pub(super) fn push(&self, due: DueTask) -> Option<DueTask> {
        let mut inner = self.inner.lock();
        if inner.is_sealed {
            return Some(due);
        }
        self.push_locked(&mut inner, due);
        None
    }

    /// Pushes a task if others are before it; otherwise returns it.
    pub(super) fn push_unless_empty(&self, due: DueTask) -> Option<DueTask> {
        let mut inner = self.inner.lock();
        if inner.is_sealed || (inner.tasks.is_empty() && inner.in_flight.is_none()) {
            return Some(due);
        }
        self.push_locked(&mut inner, due);
        None
    }

    fn push_locked(&self, inner: &mut Inner, due: DueTask) {
        inner.tasks.push_back(due);
        self.store_len(inner);
    }

    fn pop_locked(&self, inner: &mut Inner) -> Option<DueTask> {
        let due = inner.tasks.pop_front();
        self.store_len(inner);
        due
    }

    fn store_len(&self, inner: &Inner) {
        self.len.store(inner.tasks.len(), Ordering::Relaxed);
    }

    /// A stop seals the queue and takes everything out. If a task is in flight, its wait is interrupted.
    pub(super) fn drain(&self) -> Drained {
        let mut inner = self.inner.lock();
        inner.is_sealed = true;
        self.len.store(0, Ordering::Relaxed);
        let tasks = std::mem::take(&mut inner.tasks);
        let in_flight = inner.in_flight.as_ref();
        let is_in_flight = in_flight.is_some();
        // If another stop waits for it already, it is that one's.
        let awaited = in_flight
            .filter(|flying| !inner.is_awaited && flying.thread != thread::current().id())
            .map(|flying| flying.witness.address());
        inner.is_awaited |= awaited.is_some();
        drop(inner);
        if is_in_flight {
            self.token.set();
        }
        Drained { tasks, awaited }
    }

    /// Whether the pool was stopped, or has terminated.
    pub(super) fn is_sealed(&self) -> bool {
        self.inner.lock().is_sealed
    }

    /// Gives a task to the stop that waits; if there is none, returns it.
    fn return_to_stop(&self, task: Task) -> Option<Task> {
        let mut inner = self.inner.lock();
        if !inner.is_awaited {
            return Some(task);
        }
        inner.returned.push(task);
        None
    }

    /// Whether the task in flight cannot come back any more without having begun.
    fn is_landed(&self) -> bool {
        let inner = self.inner.lock();
        let in_flight = inner.in_flight.as_ref();
        in_flight.is_none_or(|flying| flying.witness.is_claimed())
    }

    /// The executor has the task in flight, or it came back.
    fn clear_in_flight(&self) {
        let mut inner = self.inner.lock();
        let in_flight = inner.in_flight.take();
        let is_awaited = inner.is_awaited;
        drop(inner);
        if is_awaited {
            self.wake_stop();
        }
        // Not under the lock: it may be the last of a task.
        drop(in_flight);
    }

    /// Lets a stop that waits for the task in flight look again.
    #[cold]
    pub(super) fn wake_stop(&self) {
        self.returns.change(|()| ());
    }

    /// The pool has terminated. Only tasks that were cancelled in here can be left, and they go.
    pub(super) fn close(&self) {
        let mut inner = self.inner.lock();
        (inner.is_closed, inner.is_sealed) = (true, true);
        self.len.store(0, Ordering::Relaxed);
        let cancelled = std::mem::take(&mut inner.tasks);
        let parked = match inner.thread.demand() {
            Demand::Wake(parked) => Some(parked),
            Demand::Served => None,
            Demand::Start => {
                inner.thread.leave();
                None
            }
        };
        drop(inner);
        debug_assert!(cancelled.iter().all(|due| due.task.is_gone()));
        drop(cancelled);
        parked.into_iter().for_each(Waker::wake);
    }
}

impl ScheduleEngine {
    /// Sees to it that there is a thread for what is in the queue. Returns when to try again because none could be had.
    pub(super) fn ensure_dispatcher(self: &Arc<Self>) -> Deadline {
        let demand = {
            let mut inner = self.dispatch_queue.inner.lock();
            if inner.tasks.is_empty() {
                return Deadline::NEVER;
            }
            inner.thread.demand()
        };
        match demand {
            Demand::Served => return Deadline::NEVER,
            Demand::Wake(parked) => {
                parked.wake();
                return Deadline::NEVER;
            }
            Demand::Start => {}
        }
        let drainer = Drainer::new(Dispatcher(Arc::clone(self)));
        if !is_timer_thread() {
            return self.start_dispatcher(drainer);
        }
        // SCHEDULE-3: the factory is the user's.
        let engine = Arc::clone(self);
        run_off_timer(Owner::of(&**self, Work::StartThread), move || {
            if engine.start_dispatcher(drainer) != Deadline::NEVER {
                engine.dispatch_due();
            }
        });
        Deadline::NEVER
    }

    /// Returns when to try again because no thread could be had.
    fn start_dispatcher(self: &Arc<Self>, drainer: Drainer<Dispatcher>) -> Deadline {
        user_code::check(Kind::Factory);
        if drainer.start(&*self.dispatcher_threads).is_ok() {
            return Deadline::NEVER;
        }
        let now = self.clock.now();
        let is_long = {
            let mut inner = self.dispatch_queue.inner.lock();
            if inner.tasks.is_empty() {
                return Deadline::NEVER;
            }
            Shortage::record(&mut inner.shortage, now)
        };
        let retry = self.dispatch_without_thread(is_long);
        // ALARM-2: what was due at once was accepted without the threads that another try needs.
        if retry == Deadline::NEVER || self.try_hold_threads() {
            return retry;
        }
        self.dispatch_without_thread(true)
    }

    /// The next task of the queue, whose lock the caller holds. It is [in hand](InHand) from now on.
    fn next_task(&self, inner: &mut Inner) -> Option<DueTask> {
        let due = self.dispatch_queue.pop_locked(inner)?;
        inner.in_flight = Some(InFlight {
            witness: due.task.witness(),
            thread: thread::current().id(),
        });
        self.take_in_hand().detach();
        Some(due)
    }

    /// For a stop that has to wait for the task in flight: what has come back.
    pub(super) fn await_in_flight(&self) -> Vec<Task> {
        self.runs.announce_begins();
        let queue = &self.dispatch_queue;
        let site = Site::new("schedule.shutdown_now");
        let deadline = self.clock.deadline(STOP_TIMEOUT);
        let landed = |(): &mut ()| queue.is_landed().then_some(());
        // A task that stops a pool and is interrupted meanwhile gets what is handed back all the same. When the
        // time is up it goes on without.
        let _ =
            interrupt::uninterruptible(|| queue.returns.wait(site, &self.clock, deadline, landed));
        let mut inner = queue.inner.lock();
        inner.is_awaited = false;
        std::mem::take(&mut inner.returned)
    }

    /// A task was not executed because the pool was stopped: it is the stop's, if that still waits (DISPATCHER-2).
    pub(super) fn return_to_stop(&self, task: Task) {
        if let Some(late) = self.dispatch_queue.return_to_stop(task) {
            late.cancel(CancelReason::ShutDown);
        }
    }
}

/// What the thread does.
#[derive(Clone)]
struct Dispatcher(Arc<ScheduleEngine>);

impl Dispatcher {
    fn execute_task(&self, due: DueTask) {
        let DueTask { task, is_run } = due;
        if !self.0.track_handed_over(&task) {
            return self.0.return_to_stop(task);
        }
        user_code::check(Kind::Executor);
        let ScheduleEngine {
            dispatch_queue,
            executor,
            ..
        } = &*self.0;
        let executed =
            catch_panic::call(|| dispatch_queue.token.enter(|| executor.execute_task(task)));
        if let Some(Err(rejected)) = executed {
            self.0.not_executed(rejected, is_run);
        }
    }
}

impl Drain for Dispatcher {
    /// It is in hand.
    type Job = DueTask;

    fn with<R>(&self, f: impl FnOnce(&mut OnDemand) -> R) -> R {
        f(&mut self.0.dispatch_queue.inner.lock().thread)
    }

    fn now(&self) -> Option<Instant> {
        self.0.clock.system_now()
    }

    fn next(&mut self) -> Next<DueTask> {
        let queue = &self.0.dispatch_queue;
        let mut inner = queue.inner.lock();
        inner.shortage = None;
        if let Some(due) = self.0.next_task(&mut inner) {
            return Next::Run(due);
        }
        if inner.is_closed {
            inner.thread.leave();
            return Next::Leave;
        }
        inner.thread.park(park::current().waker());
        Next::Park(Site::new("schedule.dispatcher"))
    }

    fn run(&mut self, due: DueTask) {
        let _in_hand = InHand::attach(&self.0);
        self.execute_task(due);
        self.0.dispatch_queue.clear_in_flight();
    }

    fn abandoned(&self) {
        // The factory took the thread's body and dropped it later: another round starts another thread.
        self.0.dispatch_due();
    }
}
