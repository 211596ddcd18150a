//! Deferred work: what a waker must not do on the timer's thread.
//!
//! One thread serves every alarm of the system's clock, so nothing may run there that can take long, block, or
//! panic for reasons of its own: a user's queue, the destructor of a closure, a listener (TIMER-6 in `timer.rs`). A
//! waker that has such work calls [`run_off_timer`], which runs it on another thread. On any thread but the timer's, such as
//! the one that advances a manual clock, the work is done at once.
//!
//! # Invariants
//!
//! - **DEFER-1** Every job has an [`Owner`]: the executor or pool that it is for, and the kind of work. Jobs of
//!   one owner run one at a time, in order, on a thread [on demand](crate::thread::on_demand). The number of
//!   threads has no other limit. So slow work of one pool takes one thread and delays no other pool; and within
//!   that pool, only work of the same kind. (A job that waits for room in a pool must not delay one that starts
//!   a worker there.)
//! - **DEFER-2** If no thread can be started the jobs stay. The next caller tries again after a pause, which is one
//!   for all owners (ONDEMAND-6), and so does an alarm, every [`RETRY`]; and a thread that has nothing left to do
//!   takes over an owner that has none.
//! - **DEFER-3** A child process has the jobs of its parent without the threads. It leaves them alone.
//! - **DEFER-4** While anything [holds](ReserveHold) it there is a thread in reserve, which only takes over jobs of
//!   owners whose own thread was refused. A scheduled pool holds it together with the timer's thread, so what the
//!   pool has accepted can be submitted, rejected or dropped although no other thread can be started. The reserve
//!   serves all pools: while one job occupies it, the others wait for it or for DEFER-2.

mod reserve;

pub(crate) use reserve::{ReserveHold, hold_reserve};

use self::reserve::Standby;
use super::timer::is_timer_thread;
use super::{Alarm, Clock};
use crate::thread::Threads;
use crate::thread::on_demand::{Demand, Drain, Drainer, Next, NotStarted, OnDemand, StartPause};
use millpond_raw::fork;
use millpond_raw::sync::{Mutex, global};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

/// The time after which an alarm tries again to start a thread (DEFER-2).
const RETRY: Duration = Duration::from_millis(100);

type Job = Box<dyn FnOnce() + Send>;

/// The kind of work that a job does (DEFER-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Work {
    /// Submits a task to an executor, which may block, or run it.
    Submit,
    /// Drops or cancels something of the user's.
    Drop,
    /// Inspects a user's queue.
    Inspect,
    /// Starts a thread.
    StartThread,
    /// Calls a listener.
    Notify,
}

/// The owner of a job (DEFER-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Owner {
    address: usize,
    work: Work,
}

impl Owner {
    /// The owner of such work for the object at this address. An earlier object may have had the same address:
    /// then the jobs of both run one after the other.
    pub(crate) fn at(address: usize, work: Work) -> Self {
        Owner { address, work }
    }

    pub(crate) fn of<T: ?Sized>(shared: &T, work: Work) -> Self {
        Owner::at(std::ptr::from_ref(shared).cast::<()>() as usize, work)
    }
}

/// The jobs of an owner: at least one, or a drainer that is about to look for the next.
#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    thread: OnDemand,
}

#[derive(Default)]
struct Jobs {
    owners: BTreeMap<Owner, Queue>,
    /// DEFER-2: the alarm that is to ring, and the pause.
    retry: Option<Alarm>,
    pause: StartPause,
    /// The fork generation of the process that has the threads (DEFER-3).
    generation: u32,
    /// DEFER-4: the number of holders of the reserve, and its state.
    holds: usize,
    reserve: Standby,
}

global! {
    static JOBS: Mutex<Jobs> = Mutex::new(Jobs {
        owners: BTreeMap::new(),
        retry: None,
        pause: StartPause::new(),
        generation: 0,
        holds: 0,
        reserve: Standby::Absent,
    });
}

impl Jobs {
    /// Claims an owner that has no thread (DEFER-2).
    fn claim(&mut self) -> Option<Owner> {
        let mut queues = self.owners.iter_mut();
        queues.find_map(|(owner, queue)| match queue.thread.demand() {
            Demand::Start => Some(*owner),
            Demand::Served | Demand::Wake(_) => None,
        })
    }

    /// The next job for the thread of this owner, which may become that of another.
    fn next(&mut self, owner: &mut Owner) -> Option<Job> {
        loop {
            let queue = self.owners.get_mut(owner);
            if let Some(job) = queue.and_then(|queue| queue.jobs.pop_front()) {
                return Some(job);
            }
            // The state of its thread is removed with it: this thread serves another owner from now on.
            self.owners.remove(owner);
            *owner = self.claim()?;
        }
    }
}

/// Runs the job now; if this is the timer's thread, on another thread soon.
pub(crate) fn run_off_timer(owner: Owner, job: impl FnOnce() + Send + 'static) {
    if is_timer_thread() {
        enqueue(owner, Box::new(job));
    } else {
        job();
    }
}

/// Drops this reference. If it is the last one and this is the timer's thread, another thread drops the value.
pub(crate) fn drop_off_timer<T: Send + Sync + 'static>(owner: Owner, shared: Arc<T>) {
    if !is_timer_thread() {
        return drop(shared);
    }
    if let Some(last) = Arc::into_inner(shared) {
        enqueue(owner, Box::new(move || drop(last)));
    }
}

fn enqueue(owner: Owner, job: Job) {
    fork::install_handlers();
    with(|jobs| jobs.owners.entry(owner).or_default().jobs.push_back(job));
    start_threads();
}

fn with<R>(f: impl FnOnce(&mut Jobs) -> R) -> R {
    #[cfg(not(any(millpond_loom, millpond_shuttle)))]
    fork::register_lock(&JOBS);
    let mut jobs = JOBS.lock();
    if jobs.generation != fork::generation() {
        // DEFER-3
        std::mem::forget(std::mem::take(&mut *jobs));
        jobs.generation = fork::generation();
    }
    f(&mut jobs)
}

/// Starts a thread for each owner that has none.
fn start_threads() {
    while let Some(owner) = with(Jobs::claim) {
        let drainer = Drainer::new(JobsOf(owner));
        if let Err(not_started) = drainer.start(&Threads::named("millpond-deferred")) {
            reserve::wake();
            return match not_started {
                NotStarted::Failed => retry_later(),
                // The alarm of the failed start finds this job, too, unless it has rung already (ONDEMAND-6).
                NotStarted::Paused if with(|jobs| jobs.retry.is_some()) => {}
                NotStarted::Paused => retry_later(),
            };
        }
    }
}

/// DEFER-2
fn retry_later() {
    let clock = Clock::system();
    let retry = Retry {
        generation: fork::generation(),
    };
    let alarm = clock.alarm(clock.deadline(RETRY), &Waker::from(Arc::new(retry)));
    let alarm = alarm.unwrap_or_else(|no_thread| no_thread.alarm);
    let former = with(|jobs| jobs.retry.replace(alarm));
    drop(former);
}

/// DEFER-2
///
/// Not empty: a waker made of an `Arc` points behind its counts, so that of an empty one would point behind its
/// memory, where a leak checker does not find it.
struct Retry {
    /// DEFER-3
    generation: u32,
}

impl Wake for Retry {
    fn wake(self: Arc<Self>) {
        if self.generation == fork::generation() {
            let rung = with(|jobs| jobs.retry.take());
            drop(rung);
            start_threads();
        }
    }
}

/// The jobs of this owner, and when none is left those of one without a thread.
#[derive(Clone)]
struct JobsOf(Owner);

impl Drain for JobsOf {
    type Job = Job;

    fn with<R>(&self, f: impl FnOnce(&mut OnDemand) -> R) -> R {
        with(|jobs| match jobs.owners.get_mut(&self.0) {
            Some(queue) => f(&mut queue.thread),
            // Its jobs are done.
            None => f(&mut OnDemand::default()),
        })
    }

    fn with_pause<R>(&self, f: impl FnOnce(&mut StartPause) -> R) -> R {
        with(|jobs| f(&mut jobs.pause))
    }

    fn now(&self) -> Option<Instant> {
        Clock::system().system_now()
    }

    fn next(&mut self) -> Next<Job> {
        let job = with(|jobs| jobs.next(&mut self.0));
        job.map_or(Next::Leave, Next::Run)
    }

    fn run(&mut self, job: Job) {
        job();
    }

    fn abandoned(&self) {
        retry_later();
    }
}

#[cfg(all(test, not(any(millpond_loom, millpond_shuttle))))]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    const LONG: Duration = Duration::from_secs(30);

    #[test]
    fn jobs_of_one_owner_run_one_at_a_time_and_delay_no_other_owner() {
        let (one, other) = (0_u8, 0_u8);
        let ((go, may_go), (report, reports)) = (channel::<()>(), channel());
        let mut may_go = Some(may_go);
        for i in 0..100 {
            let (may_go, report) = (may_go.take(), report.clone());
            let job = move || {
                for () in may_go.into_iter().flatten() {}
                report.send(i).unwrap();
            };
            enqueue(Owner::of(&one, Work::Submit), Box::new(job));
        }
        for owner in [
            Owner::of(&one, Work::StartThread),
            Owner::of(&other, Work::Submit),
        ] {
            let report = report.clone();
            enqueue(owner, Box::new(move || report.send(1_000).unwrap()));
        }
        assert_eq!(reports.recv_timeout(LONG), Ok(1_000));
        assert_eq!(reports.recv_timeout(LONG), Ok(1_000));
        drop(go);
        for i in 0..100 {
            assert_eq!(reports.recv_timeout(LONG), Ok(i), "they stay in order");
        }
    }

    #[test]
    fn a_thread_without_jobs_takes_over_those_of_an_owner_without_a_thread() {
        let (one, other) = (0_u8, 0_u8);
        let (one, other) = (
            Owner::of(&one, Work::Notify),
            Owner::of(&other, Work::Notify),
        );
        let mut jobs = Jobs::default();
        let own = jobs.owners.entry(one).or_default();
        own.jobs.push_back(Box::new(|| ()));
        assert!(matches!(own.thread.demand(), Demand::Start));
        let stuck = jobs.owners.entry(other).or_default();
        stuck.jobs.push_back(Box::new(|| ()));
        let mut here = one;
        assert!(jobs.next(&mut here).is_some() && here == one);
        assert!(jobs.next(&mut here).is_some() && here == other);
        assert!(jobs.claim().is_none(), "it has a thread now");
        assert!(jobs.next(&mut here).is_none() && jobs.owners.is_empty());
    }
}
